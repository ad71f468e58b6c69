"""The picture of the demonstration: the robot, its mass matrix, and the operations and times of its functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from ..array_types import Array
from ..engine.function import CompiledFunction
from ..robot.robot import Robot
from ..viewer.chart_style import DPI, FAINT, style
from .charts import draw_operations, draw_times
from .measure import Timing
from .skeleton import LIMBS, draw_skeleton, limb_of
from .tables import format_rate


def save_picture(
    path: Path, robot: Robot, functions: Mapping[str, CompiledFunction[Any]], q: Array, timings: Sequence[Timing],
    states_per_second: float, threads: int,
) -> None:  # fmt: skip
    """Draw and save the picture, with the measured `timings` and `states_per_second`."""
    with style():
        figure = Figure(figsize=(11.0, 9.6), dpi=DPI)
        upper = figure.add_gridspec(1, 2, left=0.01, right=0.91, bottom=0.40, top=0.872, width_ratios=(1.0, 1.0), wspace=0.22)
        lower = figure.add_gridspec(1, 2, left=0.17, right=0.985, bottom=0.07, top=0.315, wspace=0.48)
        _heading(figure, robot, states_per_second, threads)

        draw_skeleton(figure.add_subplot(upper[0]), robot, q)
        draw_mass_matrix(figure, figure.add_subplot(upper[1]), robot, q)
        counted, timed = (figure.add_subplot(lower[k]) for k in range(2))
        draw_operations(counted, [(n, f.operations) for n, f in functions.items()])
        counted.set_title("Operations for one state")
        draw_times(timed, timings, threads)
        timed.set_title("Time for one state")
        for ax in (counted, timed):
            ax.legend(loc="upper left", bbox_to_anchor=(-0.42, -0.12), ncols=3)
        figure.savefig(path, metadata={"Description": operations_shown(functions)})


def operations_shown(functions: Mapping[str, CompiledFunction[Any]]) -> str:
    """Return the chart of operations as text, a line for each function; the file contains it for readers who cannot see it."""
    return "\n".join(f"{name}: {f.operations}" for name, f in functions.items())


def _heading(figure: Figure, robot: Robot, states_per_second: float, threads: int) -> None:
    on = f"{threads} threads" if threads > 1 else "one thread"
    figure.text(0.03, 0.957, f"{robot.name.title()}, compiled", fontsize=17, fontweight="bold")
    figure.text(
        0.03,
        0.930,
        f"{len(robot.bodies)} bodies, {robot.nv} degrees of freedom, {robot.mass:.1f} kg: "
        f"forward dynamics of {format_rate(states_per_second)} states per second on {on}",
        fontsize=10.5,
        color=FAINT,
    )


def draw_mass_matrix(figure: Figure, ax: Axes, robot: Robot, q: Array) -> None:
    """Draw the magnitudes of the mass matrix; zeros that result from the branches of the tree are white."""
    M = abs(robot.mass_matrix(q))
    zeros = 1.0 - (M > 0.0).mean()
    shown = np.ma.masked_equal(M, 0.0)
    image = ax.imshow(shown, norm=LogNorm(1e-4, M.max(), clip=False), cmap="viridis", interpolation="nearest")
    n = robot.nv
    for name, start, stop in _blocks(robot):
        color = next(c for limb, _, c in LIMBS if limb == name)
        size = stop - start
        ax.add_patch(Rectangle((-1.7, start - 0.38), 0.7, size - 0.24, color=color, clip_on=False, linewidth=0))
        ax.add_patch(Rectangle((start - 0.38, -1.7), size - 0.24, 0.7, color=color, clip_on=False, linewidth=0))
        ax.text(-2.2, 0.5 * (start + stop - 1), name, ha="right", va="center", fontsize=8.5, color=color)
    ax.set_xlim(-0.5, n - 0.5)
    ax.set_ylim(n - 0.5, -0.5)
    ax.set_anchor("N")
    ax.set_title("Mass matrix", pad=18.0)
    ax.set_xlabel(
        f"{zeros:.0%} of {n * n:,} entries are zero: limbs on different branches do not couple",
        color=FAINT,
        labelpad=6.0,
    )
    ax.xaxis.set_major_locator(NullLocator())
    ax.yaxis.set_major_locator(NullLocator())
    ax.spines[:].set_visible(False)
    bar = figure.colorbar(image, cax=ax.inset_axes((1.04, 0.0, 0.03, 1.0)))
    bar.outline.set_visible(False)
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelcolor=FAINT, labelsize=8.0)
    bar.set_label("magnitude in SI units", fontsize=8.5)


def _blocks(robot: Robot) -> list[tuple[str, int, int]]:
    """Return the limbs in order, with the range of their velocities."""
    blocks: list[tuple[str, int, int]] = []
    for joint in robot.joints:
        name = limb_of(joint.name)[0]
        if blocks and blocks[-1][0] == name:
            blocks[-1] = (name, blocks[-1][1], joint.v_slice.stop)
        else:
            blocks.append((name, joint.v_slice.start, joint.v_slice.stop))
    return blocks
