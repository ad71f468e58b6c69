"""The commands that print tables: of a robot, of operations, of times, and of the cache of compiled code."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ..engine.cache_folder import bound, directory, kept_files, remove_files
from ..engine.program_trace import NODE_BUDGET
from ..engine.threads import processors
from ..model.types import ModelError
from ..robot.closed import ClosedRobot
from ..robot.constraints.contact import BilateralContact
from . import tables
from .console import make_console, progress, say
from .measure import time_functions
from .options import OutputOption, RepeatsOption, RobotFile, ThreadsOption, of_robot_file

MEGABYTE = 1e6
ContactOption = Annotated[
    list[str] | None,
    typer.Option(metavar="FRAME", help="A frame with a 6-D contact, to compare Delassus algorithms; repeatable."),
]


@of_robot_file
def inspect_robot(file: RobotFile) -> None:
    """Show a robot's joints, drives, bodies and totals, and the contents of its file that are not used."""
    loaded = file.load()
    shown = [tables.joints_table(loaded), tables.joint_forces_table(loaded), tables.actuators_table(loaded)]
    shown += [tables.bodies_table(loaded), tables.totals_table(loaded)]
    if isinstance(loaded, ClosedRobot):
        shown.append(tables.clusters_table(loaded))
    if loaded.report():
        shown.append(tables.unused_table(loaded))
    console = make_console()
    for k, table in enumerate(t for t in shown if t is not None):
        console.print(*([""] if k else []), table, sep="\n")


@of_robot_file
def count_operations(
    file: RobotFile,
    contact: ContactOption = None,
) -> None:
    """Count the operations of each function."""
    loaded = file.load()
    console = make_console()
    try:
        delassus = loaded.delassus([BilateralContact(frame) for frame in contact]) if contact else None
    except ValueError as unknown:
        raise ModelError(str(unknown)) from unknown
    console.print(tables.operations_table(loaded.functions))
    if delassus is not None:
        console.print("", tables.delassus_table(delassus), sep="\n")


@of_robot_file
def bench_robot(
    file: RobotFile,
    batch: Annotated[int, typer.Option(min=1, help="Number of states in a batch.")] = 4096,
    threads: ThreadsOption = None,
    repeats: RepeatsOption = 15,
    output: OutputOption = Path("output"),
) -> None:
    """Measure the time per state of each function, and draw a chart.

    Functions whose traces exceed the node budget are listed but not measured.
    """
    from .charts import save_timings  # imports matplotlib

    loaded = file.load()
    console = make_console()
    used = threads or processors()
    output.mkdir(parents=True, exist_ok=True)
    functions = loaded.functions
    names = [name for name, f in functions.items() if not tables.is_too_long(f)]
    with progress(console, "measuring", len(names)) as step:
        timings = time_functions(loaded, names, batch, used, repeats, step)
    console.print(tables.timings_table(timings, batch, used), "", sep="\n")
    if left_out := sorted(functions.keys() - set(names)):
        say(console, f"Not measured, because their traces exceed {NODE_BUDGET:,} nodes: {', '.join(left_out)}\n")
    path = output / f"bench_{file.stem}.png"
    save_timings(path, loaded, timings, batch, used)
    console.print(f"Chart: {path}", soft_wrap=True)


def show_cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all compiled code.")] = False,
) -> None:
    """Show the folder and the size of the cache of compiled code, or clear the cache."""
    console, folder = make_console(), directory()
    if folder is None:
        console.print("There is no cache of compiled code: you have no home folder. Set FEATHERWEIGHT_CACHE to a folder.")
        return
    files = kept_files(folder)
    if clear:
        remove_files(files)
        left = len(kept_files(folder))
        console.print(f"Removed {len(files) - left} files from {folder}" + (f"; {left} could not be removed" if left else ""))
        return
    size = sum(file.size for file in files) / MEGABYTE
    console.print(f"{folder}", soft_wrap=True)
    console.print(f"{len(files)} files, {size:.1f} MB of {bound() / MEGABYTE:.0f} MB (FEATHERWEIGHT_CACHE_SIZE)")
    if files:
        console.print(f"most recently used: {_days_ago(files[-1].used)}; least recently used: {_days_ago(files[0].used)}")


def _days_ago(used: float) -> str:
    days = int((time.time() - used) / 86400)
    return "today" if days <= 0 else f"{days} day{'s' * (days > 1)} ago"
