"""Measure the figures of the pages in one run and write them there: `make figures`, on an idle machine.

    PYTHONPATH=benchmarks/peers python benchmarks/figures.py

The script then draws the charts of docs/how_fast.md from its tables (charts.py).

Tables stand between <!-- figures: COMMAND --> and <!-- end -->. COMMAND is a script of benchmarks/peers with its options, such
as "loops.py --batch 4096". The command and its line about the machine stand below the tables.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

import marked_tables

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / "benchmarks" / "peers"
PAGES = (ROOT / "README.md", ROOT / "docs" / "how_fast.md")
KIND = "figures"


def places(page: str) -> dict[str, str]:
    """Return the text between the marks of a page, by command."""
    return marked_tables.shown(page, KIND)


def shown(command: str, output: str) -> str:
    """Return the part of a command's output for a page: its tables and its first line, which describes the machine."""
    lines = output.splitlines()
    tables, table = [], list[str]()
    for line in [*lines, ""]:
        if line.startswith("|"):
            table.append(line)
        elif table:
            tables.append("\n".join(table))
            table = []
    if not tables:
        raise SystemExit(f"{command} printed no table:\n{output}")
    return "\n" + "\n\n".join([*tables, f"`python benchmarks/peers/{command}`: {lines[0].strip()}", ""])


def measured(command: str) -> str:
    begun = time.monotonic()
    script, *options = shlex.split(command)
    run = subprocess.run([sys.executable, PEERS / script, *options], stdout=subprocess.PIPE, text=True)
    if run.returncode:
        raise SystemExit(f"{command} failed; no page was changed")
    print(f"{command}: {time.monotonic() - begun:.0f} s", flush=True)
    return shown(command, run.stdout)


def main() -> None:
    pages = {path: path.read_text() for path in PAGES}
    figures = {command: measured(command) for command in dict.fromkeys(c for page in pages.values() for c in places(page))}
    for path, page in pages.items():
        path.write_text(marked_tables.written(page, KIND, figures.__getitem__))
        print(path)
    subprocess.run([sys.executable, ROOT / "benchmarks" / "charts.py"], check=True)


if __name__ == "__main__":
    main()
