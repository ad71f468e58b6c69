"""Tests of the pages on algorithms: their numbers equal current counts, and the sources and files that they name exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from algorithm_pages import PAGES, differences, tables_of, with_tables
from algorithm_tables import TABLES

TEXTS = {path.name: path.read_text() for path in sorted(PAGES.glob("*.md"))}
PAGE_OF = {table: text for text in TEXTS.values() for table in tables_of(text)}
CHEAP = [(name, column) for name, table in TABLES.items() for column in table.columns if column not in table.dear]
INCLUDE = re.compile(r"^```\{literalinclude\} (\S+)\n:pyobject: (\S+)\n```$", re.MULTILINE)
LINK = re.compile(r"!?\[[^]]*\]\(([^)]+)\)")
TARGET = re.compile(r"^\((\S+)\)=$", re.MULTILINE)


@pytest.mark.parametrize(("name", "column"), CHEAP, ids=[f"{name}, {column}" for name, column in CHEAP])
def test_tables_show_what_is_counted_now(name: str, column: str) -> None:
    """Check the tables; if this fails, run benchmarks/papers/algorithm_pages.py again, and check the text around the table."""
    assert differences(PAGE_OF[name], column, name) == []


def test_a_stale_number_is_found() -> None:
    page = TEXTS["integration.md"].replace("| 1a |", "| 2a |", 1)
    assert differences(page, "revolute", "integration") == [
        "integration, revolute, `integrate`: the page has 2a, the count is 1a"
    ]


def test_every_table_stands_on_one_page() -> None:
    assert sorted(name for text in TEXTS.values() for name in tables_of(text)) == sorted(TABLES)
    for name, table in TABLES.items():
        assert tuple(tables_of(PAGE_OF[name])[name]) == table.columns


def test_a_page_is_written_as_it_stands() -> None:
    """Check that the script writes exactly the text that the test reads."""
    page = TEXTS["integration.md"]
    assert with_tables(page) == page and with_tables(page.replace("114a", "115a")) == page


@pytest.mark.parametrize("page", TEXTS)
def test_code_that_a_page_shows_is_in_the_source(page: str) -> None:
    shown = INCLUDE.findall(TEXTS[page])
    assert len(shown) == TEXTS[page].count("{literalinclude}") > 0
    for path, name in shown:
        tree = ast.parse((PAGES / path).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, path


@pytest.mark.parametrize("page", TEXTS)
def test_what_a_page_links_to_exists(page: str) -> None:
    targets = {f"#{target}" for text in TEXTS.values() for target in TARGET.findall(text)}
    for link in LINK.findall(TEXTS[page]):
        assert link in targets if link.startswith("#") else (PAGES / link).is_file(), link


def test_the_index_lists_all_pages() -> None:
    toctree = TEXTS["index.md"].partition("{toctree}")[2].partition("```")[0].split()[1:]
    assert sorted(toctree) == sorted(Path(page).stem for page in TEXTS if page != "index.md")


@pytest.mark.parametrize("page", TEXTS)
def test_formulas_end_where_they_begin(page: str) -> None:
    """Check that a display formula is one line; braces and dollars come in pairs, outside of code."""
    text = re.sub(r"^```.*?^```$", "", TEXTS[page], flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "", text)
    display = [line for line in text.splitlines() if "$$" in line]
    assert all(re.fullmatch(r"\$\$[^$]+\$\$", line) for line in display)
    inline = re.findall(r"\$([^$]+)\$", text.replace("$$", ""))
    assert text.replace("$$", "").count("$") == 2 * len(inline)
    for formula in (*display, *inline):
        assert formula.count("{") == formula.count("}") and "align" not in formula
