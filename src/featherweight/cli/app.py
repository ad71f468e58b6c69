"""The commands as one program, and what it does about errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ..model.types import ModelError
from ..version import __version__
from .bench import bench_robot
from .cached import show_cache
from .demo import show_demo
from .inspect import inspect_robot
from .ops import count_operations
from .simulate import drop_robot
from .view import view_robot

app = typer.Typer(
    help="Dynamics of articulated robots, compiled for the robot at hand.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        print(f"featherweight {__version__}")
        raise typer.Exit


app.command("inspect")(inspect_robot)
app.command("ops")(count_operations)
app.command("bench")(bench_robot)
app.command("demo")(show_demo)
app.command("simulate")(drop_robot)
app.command("view")(view_robot)
app.command("cache")(show_cache)


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; errors that a user can put right are one line on stderr, and exit code 1."""
    try:
        app(None if arguments is None else list(arguments), prog_name="featherweight")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ModelError, ImportError, MemoryError) as error:
        return _fail(str(error) or type(error).__name__)
    return 0


def _fail(message: str) -> int:
    line = " ".join(message.split())
    Console(stderr=True).print(Text(f"error: {line}", style="bold red"), soft_wrap=True)
    return 1
