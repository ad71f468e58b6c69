"""What messages say to install is there to be installed."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import featherweight
from featherweight.extras import install_command

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
SOURCES = {path: path.read_text() for path in Path(featherweight.__file__).parent.rglob("*.py")}


def named_extras() -> set[str]:
    """Those that calls of `install_command` name; where a variable does, its file has them as words of a table."""
    calls = [
        node.args[0]
        for source in SOURCES.values()
        if "install_command(" in source
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "install_command"
    ]
    return {str(x.value) for x in calls if isinstance(x, ast.Constant)}


def test_messages_name_extras_that_there_are() -> None:
    named = named_extras()
    assert named
    assert named - EXTRAS.keys() == set()


def test_messages_ask_the_helper_for_what_to_install() -> None:
    """So that each is right from an index, a wheel and a clone."""
    written = {p.name for p, text in SOURCES.items() if re.search(r"pip install [\"'\\]*(featherweight|\.\[)", text)}
    assert written == set()


def test_where_the_package_is_installed_pip_adds_to_it() -> None:
    if any(metadata.distributions(name="featherweight")):
        assert install_command("ik") == 'pip install "featherweight[ik]"'


def test_where_it_only_lies_on_the_path_the_clone_has_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", nothing)
    clone = Path(featherweight.__file__).parents[2]
    assert install_command("ik") == f'pip install "{clone}[ik]"'
