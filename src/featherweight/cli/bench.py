"""The command that measures the time of functions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..engine.program_trace import NODE_BUDGET
from ..engine.threads import processors
from . import tables
from .console import make_console, progress, say
from .measure import time_functions
from .options import OutputOption, RepeatsOption, RobotFile, ThreadsOption, of_robot_file


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
