"""Tests of object code on disk: reuse, damage, concurrent writers, failing writes."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.kernels import expected, swinging
from featherweight.engine import cache, cache_folder
from featherweight.engine.backends.llvm.jit import host
from featherweight.engine.cache_folder import kept_files
from patience import PATIENCE

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
    kept = sorted(folder.glob("*.bin"))
    assert kept
    monkeypatch.setattr("featherweight.engine.backends.llvm.backend.compile_object", lambda ir: pytest.fail("compiled again"))
    check()
    assert sorted(folder.glob("*.bin")) == kept


@pytest.mark.parametrize("damage", ["cut short", "emptied", "changed", "another file", "made a folder"])
def test_damaged_files_are_made_anew(folder: Path, damage: str) -> None:
    check()
    for file in folder.glob("*.bin"):
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

    monkeypatch.setattr("featherweight.engine.cache_folder.os.replace", full)
    check()
    assert not kept_files(folder)


def test_two_processes_may_write_at_once(folder: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import numpy as np\nfrom engine.kernels import swinging, expected\n"
        "x = np.linspace(-3, 3, 120).reshape(10, 12)\n"
        "assert np.allclose(swinging(12)(x, x), expected(x, x), atol=1e-13)\n"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parents[1])]
    for process in [subprocess.Popen(command) for _ in range(4)]:
        assert process.wait(PATIENCE) == 0
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
    heavy = {"mujoco", "matplotlib", "typer", "rich", "scipy", "pinocchio"}
    assert not heavy & set(loaded)


def test_an_entry_under_the_name_of_another_is_made_anew(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Check entries of equal or different length; the name is part of the comparison."""
    check(4)
    check(5)
    files = sorted(folder.glob("*.bin"))
    contents = [file.read_bytes() for file in files]
    for file, content in zip(files, contents[1:] + contents[:1], strict=True):
        file.write_bytes(content)
    check(4)
    check(5)
    assert sum("damaged" in r.message for r in caplog.records) == len(files)
    assert [file.read_bytes() for file in files] == contents


UPGRADED = """
import shutil, sys
import featherweight
from pathlib import Path
package = Path(featherweight.__file__).parent
changed = package / "engine" / "backends" / "llvm" / "emit.py"
changed.write_text(changed.read_text() + "\\n# another version\\n")
robot = featherweight.build(featherweight.generators.chain(2))
print(robot.mass_matrix(robot.neutral()).shape)
"""


def test_code_of_changed_files_is_not_kept(tmp_path: Path, folder: Path) -> None:
    """Check a package that is upgraded after its import, and before the first call: its files belong to two versions."""
    source = Path(cache.__file__).parents[1]
    shutil.copytree(source, tmp_path / "new" / "featherweight", ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "new")}
    command = [sys.executable, "-c", UPGRADED]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "(2, 2)\n" and "files changed" in done.stderr
    assert all(file.size < 200 for file in kept_files(folder))  # counts of the imported version; no code


def test_a_folder_is_the_users_alone(folder: Path) -> None:
    before = os.umask(0)
    try:
        check()
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o077 for file in folder.glob("*.bin")} == {0}


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_folder, "_warned", set())


@pytest.mark.usefixtures("warned")
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_to_is_not_used(folder: Path, mode: int, caplog: pytest.LogCaptureFixture) -> None:
    folder.mkdir()
    folder.chmod(mode)
    check()
    assert not kept_files(folder)
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert str(folder) in caplog.text and "may be written by other users" in caplog.text and "chmod 700" in caplog.text


@pytest.mark.usefixtures("warned")
def test_a_folder_of_another_user_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    check()
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    monkeypatch.setattr(cache, "_digest", lambda *_: pytest.fail("read"))
    assert cache.read("x") is None
    assert "belongs to another user" in caplog.text


@pytest.mark.usefixtures("warned")
def test_a_file_that_others_may_write_is_not_read(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    check()
    for file in folder.glob("*.bin"):
        file.chmod(0o666)
    check()
    assert "may be written by other users" in caplog.text
    assert {file.stat().st_mode & 0o077 for file in folder.glob("*.bin")} == {0}  # written again


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_or_a_link_among_the_files_does_no_harm(folder: Path, tmp_path: Path) -> None:
    check()
    for file in folder.glob("*.bin"):
        file.unlink()
        os.mkfifo(file, 0o600)
    check()
    for file in folder.glob("*.bin"):
        file.unlink(missing_ok=True)
        file.symlink_to(tmp_path / "elsewhere")
    check()
    assert not (tmp_path / "elsewhere").exists()


def test_a_user_without_a_home_has_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FEATHERWEIGHT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as without HOME and an account
    monkeypatch.chdir(tmp_path)
    assert cache_folder.directory() is None
    check()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "size"), [("", 10**9), ("0", 0), ("1234", 1234), ("500M", 5 * 10**8), ("1.5 GB", 15 * 10**8), ("20kib", 20_000)]
)
def test_sizes_of_the_folder(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATHERWEIGHT_CACHE_SIZE", text)
    assert cache_folder.bound() == size


@pytest.mark.usefixtures("warned")
def test_a_size_that_is_none_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("FEATHERWEIGHT_CACHE_SIZE", "much")
    assert cache_folder.bound() == 10**9 and "much is not a size" in caplog.text


@pytest.mark.usefixtures("warned")
def test_a_size_without_bound_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Check a number that no float holds, of which the message quotes the beginning."""
    monkeypatch.setenv("FEATHERWEIGHT_CACHE_SIZE", "1" * 5000)
    assert cache_folder.bound() == 10**9 and "111… is not a size" in caplog.text and len(caplog.text) < 300


def test_what_was_not_used_for_the_longest_time_goes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATHERWEIGHT_CACHE_SIZE", "20000")
    for k in range(10):
        cache.write(f"{k}", {}, bytes(1900))
        if (path := folder / f"{k}.bin").exists():
            os.utime(path, (k, k))
    assert cache.read("0") is not None  # counts as a use
    for k in range(10, 13):
        cache.write(f"{k}", {}, bytes(1900))
    files = {file.path.stem for file in kept_files(folder)}
    assert sum(file.size for file in kept_files(folder)) <= 20_000
    assert {"0", "12"} <= files and not {"1", "2"} & files


def test_what_a_killed_process_left_goes_in_time(folder: Path) -> None:
    cache.write("whole", {}, b"code")
    for name, age in (("old", 2 * cache_folder.EVERY), ("new", 0.0)):
        (folder / f"{name}.part").write_bytes(b"half")
        os.utime(folder / f"{name}.part", (time.time() - age,) * 2)
    cache_folder.trim(folder)
    assert {file.path.name for file in kept_files(folder)} == {"whole.bin", "new.part"}


def test_nothing_is_kept_where_nothing_may_be(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATHERWEIGHT_CACHE_SIZE", "0")
    check()
    assert not folder.exists()
