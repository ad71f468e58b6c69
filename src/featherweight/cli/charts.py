"""Charts of operations and times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..array_types import Array
from ..engine.operations import Operations
from ..robot.robot import Robot
from ..viewer.chart_style import BLUE, DPI, FAINT, GRID, INK, PALE, style
from .measure import Timing
from .tables import format_duration


def words(name: str) -> str:
    """Return a function's name as text."""
    return name.replace("_", " ")


def draw_operations(ax: Axes, operations: Sequence[tuple[str, Operations]]) -> None:
    """Draw stacked bars: multiplications, additions, and all other operations."""
    rows = range(len(operations))
    left = [0] * len(operations)
    parts = (
        ("multiplications", BLUE, [o.mul for _, o in operations]),
        ("additions", PALE, [o.add for _, o in operations]),
        ("divisions, roots, sines, cosines", FAINT, [o.div + o.sqrt + o.trig for _, o in operations]),
    )
    for label, color, width in parts:
        ax.barh(rows, width, left=left, height=0.62, color=color, label=label)
        left = [a + b for a, b in zip(left, width, strict=True)]
    for row, total in zip(rows, left, strict=True):
        ax.text(total + 0.012 * max(left), row, f"{total:,}", va="center", fontsize=8.0, color=FAINT)
    ax.set_xlim(0, 1.13 * max(left))
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.grid(axis="x")
    _name_rows(ax, [name for name, _ in operations])


def draw_times(ax: Axes, timings: Sequence[Timing], threads: int) -> None:
    """Draw one row for each function and one mark for each way to call it, on a logarithmic axis of time."""
    marks = [("one call from Python", FAINT, "o", [t.single for t in timings])]
    marks.append(("batch, 1 thread", PALE, "s", [t.batch for t in timings]))
    if threads > 1:
        marks.append((f"batch, {threads} threads", BLUE, "D", [t.threaded for t in timings]))
    rows = range(len(timings))
    for row, t in zip(rows, timings, strict=True):
        times = t[1:]
        ax.plot([min(times), max(times)], [row, row], color=GRID, linewidth=3.0, solid_capstyle="round", zorder=1)
        ax.annotate(
            format_duration(min(times)),
            (min(times), row),
            (-7, 0),
            "data",
            "offset points",
            va="center",
            ha="right",
            fontsize=8.0,
            color=FAINT,
        )
    for label, color, marker, times_of in marks:
        ax.scatter(times_of, rows, s=30, color=color, marker=marker, label=label, zorder=2, edgecolors="white", linewidths=0.6)
    ax.set_xscale("log")
    shortest, longest = min(min(t[1:]) for t in timings), max(max(t[1:]) for t in timings)
    ax.set_xlim(shortest / (longest / shortest) ** 0.28, longest * (longest / shortest) ** 0.06)
    ax.xaxis.set_major_formatter(lambda x, position: format_duration(x).replace(".00", "").replace(".0", ""))
    ax.grid(axis="x")
    _name_rows(ax, [t.name for t in timings])


def save_timings(path: Path, robot: Robot, timings: Sequence[Timing], batch: int, threads: int) -> None:
    """Save the chart of `featherweight bench`."""
    with style():
        figure = Figure(figsize=(8.0, 1.9 + 0.36 * len(timings)), dpi=DPI)
        figure.set_layout_engine("constrained", h_pad=0.12, w_pad=0.12)
        ax = figure.add_subplot()
        draw_times(ax, timings, threads)
        name = robot.name if len(robot.name) <= 40 else robot.name[:39] + "…"
        ax.set_title(f"{name}, {robot.nv} degrees of freedom\nTime for one state; batches have {batch:,}")
        figure.legend(loc="outside lower center", ncols=3)
        figure.savefig(path)


def _name_rows(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), [words(n) for n in names])
    ax.set_ylim(len(names) - 0.4, -0.6)


def save_energy(path: Path, name: str, times: Array, energies: Array) -> None:
    """Save a chart of the energies (T, 3) of a motion [J]: kinetic, potential above its minimum, and total with springs."""
    with style():
        figure = Figure(figsize=(6.4, 3.4), dpi=DPI, layout="constrained")
        ax: Axes = figure.add_subplot()
        least = energies[:, 1].min()
        for k, label, color, shift in (
            (2, "kinetic, potential and springs", INK, least),
            (1, "potential above its minimum", PALE, least),
            (0, "kinetic", BLUE, 0.0),
        ):
            ax.plot(times, energies[:, k] - shift, color=color, linewidth=1.6, label=label)
        ax.set(xlabel="time [s]", ylabel="energy [J]", xlim=(times[0], times[-1]) if len(times) > 1 else None)
        ax.set_title(f"Energy of {name} as it falls")
        ax.grid()
        figure.legend(loc="outside lower center", ncols=3)
        figure.savefig(path)
