"""The command line: `featherweight inspect`, `ops`, `bench`, `simulate`, `view` and `demo`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

from ..extras import install_command

REQUIRED = ("typer", "rich", "matplotlib")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with `arguments` (default: those of the process) and return its exit code."""
    missing = [name for name in REQUIRED if not _available(name)]
    if missing:
        print(
            f"the command line needs {', '.join(missing)}, not installed here: {install_command('cli')}",
            file=sys.stderr,
        )
        return 1
    from .app import run_command

    return run_command(arguments)


def _available(name: str) -> bool:
    return name in sys.modules or importlib.util.find_spec(name) is not None
