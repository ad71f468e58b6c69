"""The commands and their options."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ..engine.threads import processors
from ..model.types import ModelError
from ..robot.build import load
from ..robot.closed import ClosedRobot
from ..robot.constraints.contact import Contact
from ..robot.robot import Robot
from ..version import __version__
from . import tables
from .console import make_console, progress
from .measure import time_functions

app = typer.Typer(
    help="Dynamics of articulated robots, compiled for the robot at hand.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Base(StrEnum):
    """How the root hangs on the world."""

    FIXED = "fixed"
    FLOATING = "floating"


class Mimic(StrEnum):
    """What becomes of joints that follow others."""

    FOLLOW = "follow"
    INDEPENDENT = "independent"


RobotPath = Annotated[Path, typer.Argument(metavar="ROBOT", help="A .urdf or .xml (MJCF) file.", show_default=False)]
BaseOption = Annotated[Base, typer.Option(help="What carries the root: nothing, or a free-flyer.")]
MimicOption = Annotated[Mimic, typer.Option(help="URDF joints that follow others: they do, or move by themselves.")]
ContactOption = Annotated[
    list[str] | None,
    typer.Option(metavar="FRAME", help="A frame with a 6-D contact; once for each contact. Compares Delassus algorithms."),
]
OutputOption = Annotated[Path, typer.Option(metavar="DIR", help="Where the picture goes.")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="Threads of a batch.", show_default="all processors")]
RepeatsOption = Annotated[int, typer.Option(min=1, help="Measurements of which the median is taken.")]


def run(arguments: Sequence[str] | None = None) -> int:
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


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        print(f"featherweight {__version__}")
        raise typer.Exit


@app.command()
def inspect(robot: RobotPath, base: BaseOption = Base.FIXED, mimic: MimicOption = Mimic.FOLLOW) -> None:
    """Show a robot's joints, bodies and totals, and what its file holds that dynamics does not use."""
    loaded = _load(robot, base, mimic)
    console = make_console()
    console.print(tables.joints_table(loaded), "", tables.bodies_table(loaded), "", tables.totals_table(loaded), sep="\n")
    if isinstance(loaded, ClosedRobot):
        console.print("", tables.clusters_table(loaded), sep="\n")
    if loaded.report():
        console.print("", tables.unused_table(loaded), sep="\n")


@app.command()
def ops(
    robot: RobotPath,
    base: BaseOption = Base.FIXED,
    mimic: MimicOption = Mimic.FOLLOW,
    contact: ContactOption = None,
) -> None:
    """Count the operations of each function exactly."""
    loaded = _load(robot, base, mimic)
    console = make_console()
    try:
        delassus = loaded.delassus([Contact(frame) for frame in contact]) if contact else None
    except ValueError as unknown:
        raise ModelError(str(unknown)) from unknown
    console.print(tables.operations_table(loaded))
    if delassus is not None:
        console.print("", tables.delassus_table(delassus), sep="\n")


@app.command()
def bench(
    robot: RobotPath,
    base: BaseOption = Base.FIXED,
    mimic: MimicOption = Mimic.FOLLOW,
    batch: Annotated[int, typer.Option(min=1, help="States of one call.")] = 4096,
    threads: ThreadsOption = None,
    repeats: RepeatsOption = 15,
    output: OutputOption = Path("output"),
) -> None:
    """Measure the time of each function for one state, and draw it."""
    from .charts import save_timings

    loaded = _load(robot, base, mimic)
    console = make_console()
    used = threads or processors()
    output.mkdir(parents=True, exist_ok=True)
    with progress(console, "measuring", len(loaded.functions)) as step:
        timings = time_functions(loaded, batch, used, repeats, step)
    console.print(tables.timings_table(timings, batch, used), "", sep="\n")
    path = output / f"bench_{robot.stem}.png"
    save_timings(path, loaded, timings, batch, used)
    console.print(f"Chart: {path}", soft_wrap=True)


@app.command()
def demo(
    output: OutputOption = Path("output"),
    states: Annotated[int, typer.Option(min=1, help="States of forward dynamics.")] = 1_000_000,
    threads: ThreadsOption = None,
    repeats: RepeatsOption = 15,
) -> None:
    """Show what the library does on Talos, a humanoid robot: numbers, speed, and a picture."""
    from .demo import run_demo

    if not run_demo(make_console(), output, states, threads or processors(), repeats):
        raise typer.Exit(1)


def _load(path: Path, base: Base, mimic: Mimic) -> Robot:
    return load(path, base.value, mimic=mimic.value)


def _fail(message: str) -> int:
    line = " ".join(message.split())
    Console(stderr=True).print(Text(f"error: {line}", style="bold red"), soft_wrap=True)
    return 1


from . import simulate, view  # noqa: E402, F401  # the commands register themselves
