"""Tests of the cache with many writers, killed processes, full or read-only disks, damaged and foreign files."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.kernels import expected, swinging
from featherweight.engine.cache_folder import kept_files
from patience import PATIENCE
from trial.conftest import MINUTES, Rounds

WRITERS = 50
PROGRAM = """
import sys
import numpy as np
from engine.kernels import expected, swinging
for n in map(int, sys.argv[1:]):
    x = np.linspace(-3, 3, 10 * n).reshape(10, n)
    assert np.allclose(swinging(n)(x, x), expected(x, x), atol=1e-13), n
    assert np.allclose(swinging(n)(x[0], x[0]), expected(x[0], x[0]), atol=1e-13), n
print("right")
"""


def start(folder: Path, *sizes: int, limit: int | None = None) -> subprocess.Popen[str]:
    """Start a process that computes with functions of these sizes; `limit` is the maximum size of the files that it
    writes, in bytes.
    """
    limited = "" if limit is None else f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
    environment = os.environ | {
        "FEATHERWEIGHT_CACHE": str(folder),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-c", limited + PROGRAM, *map(str, sizes)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def ended(process: subprocess.Popen[str]) -> str:
    """Return the stderr of a process after a check of its results."""
    out, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "right\n"), errors
    return errors


def compute(sizes: list[int]) -> None:
    """Compute with functions of these sizes in this process."""
    for n in sizes:
        x = np.linspace(-3, 3, 10 * n).reshape(10, n)
        np.testing.assert_allclose(swinging(n)(x, x), expected(x, x), rtol=0, atol=1e-13)
        np.testing.assert_allclose(swinging(n)(x[0], x[0]), expected(x[0], x[0]), rtol=0, atol=1e-13)


def some(rng: np.random.Generator, count: int = 3) -> list[int]:
    return [int(n) for n in rng.integers(2, 12, count)]


def test_many_writers_at_once(tmp_path: Path, rounds: Rounds) -> None:
    """Start fifty processes, or three if there is little time, that all want the same entries."""
    for k, rng in enumerate(rounds(0.05, 4)):
        folder, sizes = tmp_path / f"{k}", some(rng)
        writers = WRITERS if MINUTES > 5 else 3
        for process in [start(folder, *random.Random(i).sample(sizes, len(sizes))) for i in range(writers)]:
            assert ended(process) == ""
        assert not list(folder.glob("*.part"))


def test_writers_are_killed_at_any_moment(tmp_path: Path, rounds: Rounds) -> None:
    for k, rng in enumerate(rounds(0.05, 200)):
        folder, sizes = tmp_path / f"{k}", some(rng)
        for process in [start(folder, *sizes) for _ in range(3)]:
            time.sleep(rng.uniform(0, 0.4))
            process.kill()
            process.communicate()
        assert ended(start(folder, *sizes)) == ""  # half-written files do not have the name of an entry
        assert ended(start(folder, *sizes)) == ""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_disks_that_are_full(tmp_path: Path, rounds: Rounds) -> None:
    """Limit the size of files, which has the effect of a full disk."""
    for k, rng in enumerate(rounds(0.02, 50)):
        folder, sizes = tmp_path / f"{k}", some(rng)
        assert ended(start(folder, *sizes, limit=int(rng.integers(1, 20_000)))) == ""
        assert not list(folder.glob("*.part"))
        assert ended(start(folder, *sizes)) == ""


def test_disks_that_are_read_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder can be in a file")
    assert ended(start(tmp_path / "file" / "cache", 3)) == ""
    folder = tmp_path / "read-only"
    assert ended(start(folder, 3)) == ""
    folder.chmod(0o500)  # root may write nevertheless
    assert ended(start(folder, 3, 4)) == ""
    folder.chmod(0o700)


def damage(file: Path, others: list[Path], rng: np.random.Generator) -> None:
    """Damage the entries of a cache in a random way."""
    data = bytearray(file.read_bytes())
    way = int(rng.integers(9))
    if way == 0:
        file.write_bytes(data[: int(rng.integers(len(data)))])
    elif way == 1:
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        file.write_bytes(data)
    elif way == 2:
        file.write_bytes(rng.bytes(int(rng.integers(5000))))
    elif way == 3:
        file.write_bytes(others[int(rng.integers(len(others)))].read_bytes())
    elif way == 4:
        file.write_bytes(bytes(data) + rng.bytes(100))
    elif way == 5:
        file.chmod(int(rng.choice([0o000, 0o666, 0o622])))
    else:
        file.unlink()
        makers: list[Any] = [file.mkdir, lambda: os.mkfifo(file), lambda: file.symlink_to(os.devnull)]
        makers[way - 6]()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_damaged_and_foreign_files(tmp_path: Path, rounds: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    for k, rng in enumerate(rounds(0.03, 5000)):
        folder, sizes = tmp_path / f"{k % 100}", some(rng)
        monkeypatch.setenv("FEATHERWEIGHT_CACHE", str(folder))
        compute(sizes)
        files = [file.path for file in kept_files(folder)]
        for file in files:
            if rng.random() < 0.7:
                damage(file, files, rng)
                if not file.is_file() or not os.access(file, os.R_OK):
                    files = [f for f in files if f != file] or [Path(__file__)]
        compute(sizes)  # with warnings about damaged files
        shutil.rmtree(folder)
