"""Tests of example robots by name: files of a package that may be missing, and robots defined in code."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import featherweight as fw
from featherweight.robots import example_files


def test_an_example_is_a_file_that_loads() -> None:
    arm = fw.example("panda")
    assert (arm.name, arm.is_file()) == ("panda.urdf", True)
    assert fw.load(arm).nv == 8
    assert fw.example("panda.urdf") == arm
    dog = fw.load(fw.example("go2"), base="floating", srdf=fw.example("go2.srdf"))
    assert "standing" in dog.configurations


def test_files_of_one_name_are_told_apart_by_their_folders() -> None:
    names = [name for name in example_files._files() if name.endswith("/anymal")]
    assert len(names) == len({fw.example(name) for name in names}) == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pandda", "there is no example robot 'pandda' (is it 'panda'?); there are "),
        ("talos", "(is it 'talos_full_v2' or 'talos_left_arm' or 'talos_reduced'?)"),
        ("cheetah", "(is it 'mini_cheetah'?)"),
        ("tello", "featherweight.build(featherweight.robots.tello(...))"),
    ],
)
def test_a_wrong_name_says_what_there_is(name: str, said: str) -> None:
    with pytest.raises(ValueError, match="robot") as error:
        fw.example(name)
    assert said in str(error.value)


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def files(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", files)
    with pytest.raises(ImportError, match=r'example-robot-data: pip install ".*\[robots\]"'):
        example_files._files()


def test_pages_and_examples_name_robots_that_there_are() -> None:
    """Check names on pages too, which no other test uses."""
    root = Path(__file__).parents[2]
    pages = [*(root / "docs").rglob("*.md"), *(root / "examples").glob("*.py"), root / "README.md"]
    named = {name for page in pages for name in re.findall(r'\.example\("([^"]+)"\)', page.read_text())}
    assert {"panda", "talos.srdf"} <= named
    assert all(fw.example(name).is_file() for name in named)
