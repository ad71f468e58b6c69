"""The commands as one program, with its error handling."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from ..model.types import ModelError
from ..version import __version__
from .console import VisibleConsole, write_plainly
from .demo import show_demo
from .export_files import export_files
from .reports import bench_robot, count_operations, inspect_robot, show_cache
from .simulate import drop_robot
from .view import view_robot

app = typer.Typer(
    help="Dynamics of articulated robots, compiled for each robot.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # brackets contain units and file names
    context_settings={"max_content_width": 120},
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
app.command("export")(export_files)
app.command("cache")(show_cache)


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. An error that the user can correct prints one line on stderr and returns exit code 1."""
    write_plainly(sys.stdout)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            app(None if arguments is None else list(arguments), prog_name="featherweight")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ModelError, ImportError, MemoryError) as error:
        return _fail(_with_options(str(error)) or type(error).__name__)
    return 0


def _with_options(message: str) -> str:
    """Replace the keywords of `featherweight.load` in a message by options of the command line."""
    message = re.sub(r"""\b(base|mimic|unsupported)=["'](\w+)["']""", r"--\1 \2", message)
    return message.replace("package_path=", "--package-path DIR")


def _fail(message: str) -> int:
    _tell(f"error: {message}", "bold red")
    return 1


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _tell(f"warning: {message}", "yellow")


def _tell(message: str, style: str) -> None:
    """Print one line on stderr."""
    VisibleConsole(stderr=True).print(Text(" ".join(message.split()), style=style), soft_wrap=True)
