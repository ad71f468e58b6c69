"""Write the tables of docs/algorithms between their marks in the pages, and draw the pictures that no paper has.

    PYTHONPATH=benchmarks/peers python benchmarks/papers/algorithm_pages.py [--output docs/algorithms]

A table stands between <!-- table: NAME --> and <!-- end -->; its name is one of `algorithm_tables.TABLES`. The tests compare
the pages with new counts.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from algorithm_pictures import draw
from algorithm_tables import NONE, TABLES
from marked_tables import shown, written

PAGES = Path(__file__).resolve().parents[2] / "docs" / "algorithms"
KIND = "table"


def tables_of(page: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return the tables of a page by name, as cells by column and row."""
    found = {}
    for name, text in shown(page, KIND).items():
        header, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.strip().splitlines()]
        found[name] = {column: {row[0]: row[k] for row in rows} for k, column in enumerate(header) if k > 0}
    return found


def differences(page: str, column: str, name: str) -> list[str]:
    """Return a line for each cell of a column that differs from a new count."""
    there, counted = tables_of(page)[name].get(column, {}), TABLES[name].column(column)
    rows = dict.fromkeys((*there, *counted))
    pairs = [(row, there.get(row, NONE), counted.get(row, NONE)) for row in rows]
    return [f"{name}, {column}, {row}: the page has {old}, the count is {new}" for row, old, new in pairs if old != new]


def with_tables(page: str) -> str:
    """Return the page with new tables."""
    return written(page, KIND, lambda name: f"\n{TABLES[name].markdown()}\n\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=PAGES, help=f"folder of the pages (default: {PAGES})")
    folder = parser.parse_args().output
    for path in sorted(folder.glob("*.md")):
        path.write_text(with_tables(path.read_text()))
        print(path)
    draw(folder)


if __name__ == "__main__":
    main()
