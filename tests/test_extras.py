"""Tests that every extra in messages exists."""

from __future__ import annotations

import ast
import re
import tomllib
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import featherweight
from docs.page_blocks import blocks
from featherweight.extras import install_command, without_warnings

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
SOURCES = {path: path.read_text() for path in Path(featherweight.__file__).parent.rglob("*.py")}


def named_extras() -> set[str]:
    """Return the extras that calls of `install_command` and `imports_from_extra` name."""
    calls = [
        node.args[0]
        for source in SOURCES.values()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("install_command", "imports_from_extra")
    ]
    return {str(x.value) for x in calls if isinstance(x, ast.Constant)}


def test_messages_name_extras_that_there_are() -> None:
    named = named_extras()
    assert named
    assert named - EXTRAS.keys() == set()


def test_messages_ask_the_helper_for_what_to_install() -> None:
    """Check that messages call the helper, whose command is correct for an index, a wheel and a clone."""
    written = {p.name for p, text in SOURCES.items() if re.search(r"pip install [\"'\\]*(featherweight|\.\[)", text)}
    assert written == set()


def test_where_the_package_is_installed_pip_adds_to_it() -> None:
    if any(metadata.distributions(name="featherweight")):
        assert install_command("mjcf") == 'pip install "featherweight[mjcf]"'


def test_where_it_only_lies_on_the_path_the_clone_has_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", nothing)
    clone = Path(featherweight.__file__).parents[2]
    assert install_command("mjcf") == f'pip install "{clone}[mjcf]"'


def test_the_first_page_has_every_extra_and_no_other() -> None:
    table = (ROOT / "docs" / "start.md").read_text().partition("| extra | what it adds |")[2].partition("\n\n")[0]
    named = re.findall(r"`(\w+)`", " ".join(row.split("|")[1] for row in table.strip().split("\n")))
    assert sorted(named) == sorted(EXTRAS)


def test_all_is_every_extra_for_users_but_those_that_are_large() -> None:
    (listed,) = EXTRAS["all"]
    apart = {"all", "cuda", "jax", "torch", "robots", "demo", "docs", "examples", "solvers", "test"}
    assert {*listed.partition("[")[2].rstrip("]").split(",")} == EXTRAS.keys() - apart


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "guides").glob("*.md")), ids=lambda page: page.stem)
def test_a_guide_says_which_extras_it_needs(page: Path) -> None:
    """Check the text before the first section: it names the extras of the robots, solvers and packages that the code uses."""
    text = page.read_text()
    code = "\n".join(block.code for block in blocks(text))
    needed = {extra for extra, words in USES_OF_EXTRAS.items() if re.search(words, code)}
    said = re.search(r"^\*\*Needs\*\* .*$", text.partition("\n## ")[0], re.MULTILINE)
    assert said and {*re.findall(r"`(\w+)`", said[0])} == needed


USES_OF_EXTRAS = {
    "robots": r"fw\.example\(",
    "cli": r"\.plot\(",
    "render": r"\.(?:gif|mp4)\"|\.render\(",
    "identification": r"fit_inertial_parameters|base_parameters",
    "mjcf": r"\.xml\"",
    "shapes": r"\bfrom scipy|fw\.clearance\(",
    "learning": r"\bimport gymnasium\b",
}


@pytest.mark.filterwarnings("error")
def test_warnings_about_a_call_are_dropped_and_others_are_not() -> None:
    """Check both ways in which other libraries warn about the line that calls them."""

    def warned(warn: Callable[[str], None]) -> int:
        warn("about this line")
        return len("built-in names are seen")

    assert without_warnings(warned)(warnings.warn) == 23
    with pytest.raises(UserWarning, match="about this line"):
        warned(warnings.warn)


def test_filters_of_warnings_are_never_changed() -> None:
    """Check the text of the package: threads share the filters. The command line is a program of its own."""
    assert [path.name for path, source in SOURCES.items() if "catch_warnings(" in source] == ["app.py"]
