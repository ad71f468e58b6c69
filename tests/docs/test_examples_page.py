"""Tests of docs/examples.md: it lists all scripts of examples/ with their extras, and shows the pictures of the pages."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "examples.md").read_text()
PICTURES = runpy.run_path(str(ROOT / "docs" / "draw_pictures.py"))
SCRIPTS = {path.name: path.read_text() for path in (ROOT / "examples").glob("*.py")}


def test_the_page_lists_all_scripts_and_no_others() -> None:
    assert {*re.findall(r"`(\w+\.py)`", PAGE)} == SCRIPTS.keys()


def test_the_extras_are_those_that_the_script_names() -> None:
    rows = dict(re.findall(r"(?m)^\| `(\w+\.py)` \| .* \| ([\w, ]*) \| [^|]* \|$", PAGE))
    named = {name: re.search(r"pip install 'featherweight\[([\w,]+)\]'", text) for name, text in SCRIPTS.items()}
    assert {name: row.split(", ") for name, row in rows.items() if named[name]} == {
        name: extras[1].split(",") for name, extras in named.items() if extras and name != "pictures.py"
    }


def test_the_gallery_shows_all_pictures_of_examples() -> None:
    shown = {Path(link).name for link in re.findall(r"!\[[^]]*\]\(([^)]+)\)", PAGE)}
    drawn = {name for name in PICTURES["pictures"]() if PICTURES["command"](name)[0].startswith("examples/")}
    assert drawn <= shown
    assert all((ROOT / "docs" / link).is_file() for link in re.findall(r"\]\(([\w./]+)\)", PAGE))
