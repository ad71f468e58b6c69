"""Measures what the pages show, all in one run, and writes it there: `make figures`, on a machine that does nothing else.

    PYTHONPATH=benchmarks/peers python benchmarks/figures.py

Then it draws the charts of docs/how_fast.md from its tables (charts.py).

Tables stand between <!-- figures: COMMAND --> and <!-- end -->, where COMMAND is one of benchmarks/peers with its options, as
"loops.py --batch 4096". Under them are the command and what it says of the machine.
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
    """What stands on a page, by command."""
    return marked_tables.shown(page, KIND)


def shown(command: str, output: str) -> str:
    """What a page shows of a command's output: its tables, and its first line, which is about the machine."""
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
