"""Tests of CONTRIBUTING.md and docs/extending: the table is that of imports; recipes pass their tests in a copy of the package.

Each block of a recipe follows a hidden comment:

    <!-- into: FILE -->                     a new file, or the end of one
    <!-- into: FILE, in NAME -->            the end of a class, a list or a dictionary, or the beginning of a function's body
    <!-- into: FILE, in place of NAME -->   in place of the statement that binds a name

Imports at the beginning of a block go to the beginning of the file.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from test_house import BELOW, BELOW_ROBOT

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = "".join(page.read_text() for page in sorted((ROOT / "docs" / "extending").glob("*.md")))
BLOCK = re.compile(
    r"(?:^ *<!-- into: (?P<file>[\w./]+)(?:, (?P<how>in place of|in) (?P<name>\w+))? -->\n\n)?"
    r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
PLACE = ("src", "tests")  # folders that recipes write to


class Step(NamedTuple):
    """Code of a recipe and its target."""

    file: str
    how: str
    name: str
    code: str


def steps(text: str) -> Iterator[Step]:
    for block in BLOCK.finditer(text):
        assert block["file"], f"a block without a file:\n{block['code']}"
        yield Step(block["file"], block["how"] or "", block["name"] or "", textwrap.dedent(block["code"]))


def followed(step: Step, text: str) -> str:
    """Return the text of a file with the code of a step inserted."""
    imports, code = re.fullmatch(r"((?:(?:from|import) [^\n]*\n)*)\n*(.*)", step.code, re.DOTALL).groups()  # type: ignore[union-attr]
    lines, tree = text.splitlines(keepends=True), ast.parse(text).body
    if not step.name:
        lines += ["\n\n", code]
    else:
        node = next(x for x in tree if step.name in bound(x))
        first, last = node.lineno - 1, node.end_lineno or 0
        if step.how == "in place of":
            lines[first:last] = [code]
        elif isinstance(node, ast.ClassDef):
            lines.insert(last, "\n" + textwrap.indent(code, "    "))
        elif isinstance(node, ast.FunctionDef):
            lines.insert(node.body[1].lineno - 1, textwrap.indent(code, "    "))  # after the docstring
        else:
            display = re.fullmatch(r"(.*?),?\s*([])}])(\s*#.*)?\n", "".join(lines[first:last]), re.DOTALL)
            assert display, f"{step.name} of {step.file} has no end for an entry"
            entries, bracket, after = display.groups()
            code = re.sub(r"\((.*,)\)\n", r"\1\n", code)  # formatters put parentheses around an entry of a list
            lines[first:last] = [f"{entries},\n{textwrap.indent(code, '    ')}{bracket}{after or ''}\n"]
    at = next(
        x.lineno - 1 for x in tree if isinstance(x, ast.Import | ast.ImportFrom) and getattr(x, "module", "") != "__future__"
    )
    return "".join([*lines[:at], imports, *lines[at:]])


def bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement at the top of a module binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    return {x.id for x in ast.walk(node) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}


def test_the_table_of_rooms_is_that_of_imports() -> None:
    rows = re.findall(r"^\| (`.*?) \| .* \| (.*?) \|$", CONTRIBUTING.partition("## The house")[2], re.MULTILINE)
    table: dict[str, set[str]] = {}
    for rooms, imports in rows:
        below = {*re.findall(r"`(\w+)`", imports)} | (BELOW_ROBOT if "*base*" in imports else set())
        table |= dict.fromkeys(re.findall(r"`(\w+)`", rooms), below)
    assert table == BELOW
    base = re.search(r"\*base\* stands for (.*?)\.\n", CONTRIBUTING, re.DOTALL)
    assert base and {*re.findall(r"`(\w+)`", base[1])} == BELOW_ROBOT


def test_a_step_goes_where_it_says() -> None:
    text = 'import b\n\nX = range(2)\nL = [\n    1,\n]\n\nclass C:\n    x = 1\n\n\ndef f():\n    """Words."""\n    return 2\n'
    ways = [("", "", "y = 3\n"), ("in", "L", "2,\n"), ("in", "C", "y = 2\n"), ("in", "f", "y = 2\n")]
    ways += [("in place of", "X", "import a\n\nX = range(3)\n")]
    for how, name, code in ways:
        text = followed(Step("file", how, name, code), text)
    assert text == (
        "import a\nimport b\n\nX = range(3)\nL = [\n    1,\n    2,\n]\n\nclass C:\n    x = 1\n\n    y = 2\n\n\n"
        'def f():\n    """Words."""\n    y = 2\n    return 2\n\n\ny = 3\n'
    )


def test_recipes_followed_as_they_stand_give_what_their_tests_say(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "featherweight", tmp_path / "src" / "featherweight")
    tests = set()
    for step in steps(RECIPES):
        path = tmp_path / step.file
        assert step.file.startswith(PLACE), step.file
        before = path if path.exists() else ROOT / step.file
        assert before.exists() or not step.name, f"{step.file} is not a file"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(followed(step, before.read_text()) if before.exists() else step.code)
        if path.name.startswith("test_"):
            tests.add(step.file)
    tests.discard("tests/test_house.py")
    places = "tests/test_house.py::test_all_packages_have_their_place"
    command = [sys.executable, "-m", "pytest", "--import-mode=importlib", *sorted(tests), places]
    paths = os.pathsep.join(map(str, (tmp_path / "src", tmp_path / "tests", ROOT / "tests")))
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
