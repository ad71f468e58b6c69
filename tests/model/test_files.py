"""Tests of reading files: regular files only, wherever a name leads."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from featherweight.model import files
from featherweight.model.files import MissingFile, is_mesh_there, open_regular, read_mesh, read_regular
from featherweight.model.types import ModelError

DEVICE = os.devnull  # reading it ends, unlike a pipe

pytestmark = pytest.mark.skipif(os.name == "nt", reason="this system has no devices in folders")


def test_the_content_of_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    os.symlink("a", tmp_path / "link")
    assert read_regular(tmp_path / "link") == b"content"
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "b")
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        read_regular(tmp_path)


def test_pipes_and_devices_are_refused_without_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a pipe that takes the place of a file after the first look is opened without waiting for its other end."""
    os.mkfifo(tmp_path / "pipe")
    os.symlink(DEVICE, tmp_path / "link")
    for name in ("pipe", "link"):
        with pytest.raises(ModelError, match=rf"arm\.urdf: .*/{name}: a pipe, socket or device, not a file"):
            open_regular(tmp_path / name, "arm.urdf")
    monkeypatch.setattr(files, "require_regular", lambda *_: None)
    with pytest.raises(ModelError, match="a pipe, socket or device"):
        open_regular(tmp_path / "pipe")


def test_files_of_the_system_that_claim_to_be_empty_are_not_read_to_their_end() -> None:
    if not os.path.isfile("/proc/self/maps"):
        pytest.skip("this system has no such files")
    assert read_regular("/proc/self/maps") == b""


def test_a_mesh_that_is_missing_is_missing_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a name that was not found beside its robot is not found in the current folder later."""
    (tmp_path / "a.stl").write_bytes(b"mesh")
    monkeypatch.chdir(tmp_path)
    assert read_mesh("a.stl") == b"mesh" and is_mesh_there("a.stl")
    name = MissingFile("a.stl")
    assert name == "a.stl" and not is_mesh_there(name) and not is_mesh_there(pickle.loads(pickle.dumps(name)))
    with pytest.raises(ValueError, match=r"a\.stl: no such file"):
        read_mesh(name)
    with pytest.raises(ValueError, match="no such file"):
        read_mesh(DEVICE)
