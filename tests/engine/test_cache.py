"""Object code on disk: found again, damaged, contended, impossible to write."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.kernels import expected, swinging
from featherweight.engine import cache
from featherweight.engine.backends.llvm.jit import host

RNG = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEATHERWEIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def check(n: int = 4) -> None:
    x, y = RNG.standard_normal((2, 9, n))
    np.testing.assert_allclose(swinging(n)(x, y), expected(x, y), rtol=0, atol=1e-13)


def test_code_is_kept_and_found_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check()
    kept = sorted(folder.iterdir())
    assert kept
    monkeypatch.setattr("featherweight.engine.backends.llvm.backend.compile_object", lambda ir: pytest.fail("compiled again"))
    check()
    assert sorted(folder.iterdir()) == kept


@pytest.mark.parametrize("damage", ["cut short", "emptied", "changed", "another file", "made a folder"])
def test_damaged_files_are_made_anew(folder: Path, damage: str) -> None:
    check()
    for file in folder.iterdir():
        data = bytearray(file.read_bytes())
        if damage == "cut short":
            file.write_bytes(data[: len(data) // 2])
        elif damage == "emptied":
            file.write_bytes(b"")
        elif damage == "changed":
            data[len(data) // 2] ^= 0x55
            file.write_bytes(data)
        elif damage == "another file":
            file.write_bytes(b"\x7fELF nothing of ours")
        else:
            file.unlink()
            file.mkdir()
    check()
    check()


def test_a_cache_that_cannot_be_written_is_only_slower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("FEATHERWEIGHT_CACHE", str(tmp_path / "file" / "cache"))
    check()


def test_a_full_disk_is_only_slower(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("featherweight.engine.cache.os.replace", full)
    check()
    assert not list(folder.iterdir())


def test_two_processes_may_write_at_once(folder: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import numpy as np\nfrom engine.kernels import swinging, expected\n"
        "x = np.linspace(-3, 3, 120).reshape(10, 12)\n"
        "assert np.allclose(swinging(12)(x, x), expected(x, x), atol=1e-13)\n"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parents[1])]
    for process in [subprocess.Popen(command) for _ in range(4)]:
        assert process.wait(120) == 0
    assert not list(folder.glob("*.part"))


def test_the_key_tells_apart_all_that_matters() -> None:
    f, h = swinging(4), host()
    keys = {
        cache.key("object", f.program.identity(), h, "double"),
        cache.key("object", f.program.identity(), h, "float"),
        cache.key("object", swinging(5).program.identity(), h, "double"),
        cache.key("object", f.program.identity(), h._replace(cpu="another"), "double"),
        cache.key("object", f.program.identity(), h._replace(features="+none"), "double"),
        cache.key("object", f.program.identity(), h._replace(llvm="another"), "double"),
        cache.key("object", (*f.program.identity()[:2], (math.nextafter(0.3, 1),), *f.program.identity()[3:]), h, "double"),
    }
    assert len(keys) == 7


def test_importing_the_package_is_light() -> None:
    code = "import sys, featherweight; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numba", "mujoco", "matplotlib", "typer", "rich", "scipy", "pinocchio"}
    assert not heavy & set(loaded)
