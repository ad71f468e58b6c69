"""Measure the figures of the pages in one run and write them there: `make figures`, on an idle machine.

    python benchmarks/figures.py [COMMAND ...]

With COMMANDs, only their tables are measured; a test then fails until all tables are of one version and one machine. The script
draws the charts of docs/how_fast.md from its tables, too (charts.py).

Tables stand between <!-- figures: COMMAND --> and <!-- end -->. COMMAND is a script of benchmarks/peers with its options, such
as "loops.py --batch 4096". Below the tables stand the command, the version of the library, and the script's first line, which
describes the machine.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / "benchmarks" / "peers"
sys.path.insert(0, str(PEERS))

import marked_tables  # noqa: E402

from featherweight.version import __version__  # noqa: E402

KIND = "figures"
WIDTH = 128  # characters of a line


def pages() -> dict[Path, str]:
    """Return the pages with figures, and their texts."""
    texts = {path: path.read_text() for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}
    return {path: text for path, text in texts.items() if places(text)}


def places(page: str) -> dict[str, str]:
    """Return the text between the marks of a page, by command."""
    return marked_tables.shown(page, KIND)


def shown(command: str, output: str) -> str:
    """Return the part of a command's output for a page: its tables and its first line, which describes the machine."""
    lines = output.splitlines()
    tables, table = [], list[str]()
    for line in [*lines, ""]:
        if line.startswith("|"):
            table.append(line.rstrip())
        elif table:
            tables.append("\n".join(table))
            table = []
    if not tables:
        raise ValueError(f"{command} printed no table:\n{output}")
    return "\n" + "\n\n".join([*tables, wrapped(f"{source(command)}: {lines[0].strip()}"), ""])


def wrapped(text: str) -> str:
    """Return a paragraph in lines of a page. Code stays on one line."""
    code = re.sub("`[^`]*`", lambda found: found[0].replace(" ", "\0"), text)
    return textwrap.fill(code, WIDTH, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


def source(command: str) -> str:
    """Return the command as a user writes it, and the version that it measures."""
    return f"`python benchmarks/peers/{command}`, Featherweight {__version__}"


def measured(command: str) -> str:
    """Run a command, and return its text for a page."""
    begun = time.monotonic()
    script, *options = shlex.split(command)
    run = subprocess.run([sys.executable, PEERS / script, *options], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    if run.returncode:
        raise ValueError(f"{command} failed with exit status {run.returncode}")
    print(f"{command}: {time.monotonic() - begun:.0f} s", flush=True)
    return shown(command, run.stdout)


def chosen(arguments: Sequence[str] | None = None) -> list[str]:
    """Return the commands that the command line names, or all commands of the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", metavar="COMMAND")
    known = list(dict.fromkeys(command for text in pages().values() for command in places(text)))
    given: list[str] = parser.parse_args(arguments).commands
    if unknown := [command for command in given if command not in known]:
        parser.error(f"no page has figures of {unknown[0]!r}; there are: {'; '.join(known)}")
    return given or known


def main() -> None:
    failed = []
    for command in chosen():
        try:
            text = measured(command)
        except ValueError as error:
            print(f"{error}; its tables are not changed", flush=True)
            failed.append(command)
            continue
        for path, page in pages().items():
            path.write_text(marked_tables.written(page, KIND, (places(page) | {command: text}).__getitem__))
    subprocess.run([sys.executable, ROOT / "benchmarks" / "charts.py"], check=True)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
