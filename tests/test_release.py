"""Tests of the package's metadata and of the trials of extras (release/check.py)."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from featherweight.version import __version__

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def script(name: str) -> ModuleType:
    """Load a script of release/, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"release/{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_say_the_same_version_of_the_same_day() -> None:
    newest = re.search(r"^## \[(.+?)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = dict(re.findall(r"^([a-z-]+): (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE))
    assert newest
    assert newest.groups() == (cited["version"], cited["date-released"])
    assert __version__ == cited["version"]


def test_each_extra_is_tried_or_it_is_said_why_not() -> None:
    check, tried = script("check"), script("smoke").USES
    assert {*tried, *check.NOT_TRIED} == EXTRAS.keys()
    assert tried.keys() & check.NOT_TRIED.keys() == set()
    assert set(check.HEAVY) <= tried.keys()
    assert all(check.NOT_TRIED.values())


def test_extras_that_cannot_be_tried_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Check that the refusal comes before anything is built: for an unknown extra, pip only warns, and would install the
    core.
    """
    check = script("check")
    monkeypatch.setattr("sys.argv", ["check.py", "core", "xarco", "docs"])
    with pytest.raises(SystemExit):
        check.main()
    said = capsys.readouterr().err
    assert "cannot try xarco, docs, only core, mjcf, xacro" in said
    assert f"docs: {check.NOT_TRIED['docs']}" in said
