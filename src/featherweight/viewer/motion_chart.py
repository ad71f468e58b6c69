"""Charts of trajectories: positions, velocities and forces of joints over time."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D

from ..array_types import Array
from ..model.model import MovingJoint
from ..model.types import JointType
from ..names import choose_from
from ..robot.system import System
from ..robot.trajectory import Trajectory
from ..spatial.lie import log_so3, quaternion_at
from .chart_style import style

AXES = ("x", "y", "z")
UNITS = (("m", "rad"), ("m/s", "rad/s"), ("N", "N m"))  # of positions, velocities and forces along and about axes
NAMES = ("position", "velocity", "joint force")
NARROW, WIDE, HIGH, ENTRY = 7.0, 11.0, 1.9, 0.17  # [inch] widths, height of a row of charts, and of the legend
DPI = 110
FEW = 10  # lines that the colours of Matplotlib tell apart
STROKES = ("-", "--", ":", "-.")  # of a limb's lines, in turn
INSIDE = 4  # lines whose names fit into their chart
ACROSS = 5  # names side by side in a legend
POINTS, LETTER, SPACE = 72.0, 0.6, 4  # an inch; the mean width of a letter over its height; letters of a stroke and a gap


class Line(NamedTuple):
    """The curves of a degree of freedom: positions, velocities and forces (T,), along an axis or about it.

    `limb` numbers the unbranched parts of the robot, in the order of the joints.
    """

    name: str
    limb: int
    turns: bool
    values: tuple[Array | None, ...]


def plot_motion(motion: Trajectory, path: str | os.PathLike[str] | None, joints: Sequence[str] | None) -> Any:
    """Draw a trajectory; `Trajectory.plot` documents the arguments."""
    if motion.system is None:
        raise ValueError("plot: units need the robot, which this trajectory does not know; use Trajectory.load(path, robot)")
    if motion.q.ndim != 2:
        raise ValueError(f"plot: this is the motion of {motion.q.shape[1]} robots; select one with of(0)")
    lines = _lines(motion, motion.system, joints)
    columns = [c for turns in (False, True) if (c := [line for line in lines if line.turns == turns])]
    touching = joints is None and bool(motion.forces.any())
    kinds = [k for k in range(3) if any(line.values[k] is not None for line in lines)]
    beside = touching and len(columns) > 1  # the last place of the second column is free
    below = max((-(-len(c) // ACROSS) for c in columns[: len(columns) - beside] if len(c) > INSIDE), default=0)
    with style():
        size = (WIDE if len(columns) > 1 else NARROW, HIGH * (len(kinds) + touching) + ENTRY * below)
        figure = plt.figure(figsize=size, dpi=DPI, layout="constrained")
        axes = figure.subplots(len(kinds) + touching, len(columns), squeeze=False, sharex=True)
        for column, places in zip(columns, axes.T, strict=True):
            looks = _looks(column)
            for ax, k in zip(places, kinds, strict=False):
                for line, look in zip(column, looks, strict=True):
                    if line.values[k] is not None:
                        ax.plot(motion.times, line.values[k], label=line.name, linewidth=1.2, **look)
                ax.set(ylabel=f"{NAMES[k]} [{UNITS[k][column[0].turns]}]")
                ax.grid(axis="y")
            places[len(kinds) - 1].set(xlabel="time [s]")
            places[len(kinds) - 1].tick_params(labelbottom=True)
        if beside:
            axes[-1, 1].set_axis_off()
        if touching:
            _draw_contacts(axes[-1, 0], motion)
        for column, places in zip(columns, axes.T, strict=True):
            _add_legend(figure, places, column, beside and column is columns[-1])
        axes[0, 0].set_title(motion.robot)
        if path is None:
            return axes
        figure.savefig(path)
        plt.close(figure)
        return None


def _looks(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Return the colour and the stroke of each line: of a few lines a colour each, of many a colour for each limb."""
    table, limbs = plt.get_cmap("tab10"), list(dict.fromkeys(line.limb for line in lines))
    if len(lines) <= FEW:
        return [{"color": table(k)} for k in range(len(lines))]
    looks, seen = [], Counter[int]()
    for line in lines:
        looks.append({"color": table(limbs.index(line.limb) % FEW), "linestyle": STROKES[seen[line.limb] % len(STROKES)]})
        seen[line.limb] += 1
    return looks


def _add_legend(figure: Any, places: Any, lines: Sequence[Line], beside: bool) -> None:
    """Add the names of a column's lines: inside its first chart if they are few, in its last place if `beside`, or below.

    If there are few limbs, each is a column of names.
    """
    handles, across = places[0].get_lines(), ACROSS
    limbs = [[h for h, _ in group] for _, group in groupby(zip(handles, lines, strict=True), lambda pair: pair[1].limb)]
    if len(lines) > INSIDE and 1 < len(limbs) <= ACROSS:
        longest, across = max(map(len, limbs)), len(limbs)
        nothing = Line2D([], [], alpha=0.0, label=" ")
        handles = [h for limb in limbs for h in (*limb, *[nothing] * (longest - len(limb)))]
    if len(lines) <= INSIDE:
        places[0].legend(handles=handles, loc="best", ncols=2, fontsize=8.0)
    elif beside:
        columns = np.array_split(handles, across)  # at most one name more in the first ones, as in the legend
        letters = sum(max(len(str(h.get_label())) for h in column) + SPACE for column in columns)
        size = min(7.5, 0.5 * WIDE * POINTS / (LETTER * letters))
        legend = places[-1].legend(handles=handles, loc="upper center", ncols=across, fontsize=size, columnspacing=1.0)
        legend.set_in_layout(False)  # the charts keep their widths
    else:
        figure.legend(handles=handles, loc="outside lower center", ncols=across, fontsize=7.5)


def _lines(motion: Trajectory, robot: System, joints: Sequence[str] | None) -> list[Line]:
    """Return the degrees of freedom of joints. Orientations are rotation vectors."""
    chosen = [j for j in robot.joints if j.v_slice.stop - j.v_slice.start == j.type.nv]  # others follow them
    names = [j.name for j in chosen]
    if joints is not None and not joints:
        raise ValueError("Trajectory.plot: joints must name at least one joint; got none")
    for name in joints or ():
        if name not in names:
            raise ValueError(f"plot: {robot.name} has no joint {choose_from(name, names)}")
    lines, limbs = [], _limbs(chosen)
    for j in chosen:
        if joints is not None and j.name not in joints:
            continue
        q, v = motion.q[:, j.q_slice], motion.v[:, j.v_slice]
        tau = motion.tau[:, j.v_slice] if len(motion.tau) else None
        for k, (label, turns) in enumerate(_freedoms(j.type)):
            values = _positions(j.type, q)[:, k], v[:, k], None if tau is None else tau[:, k]
            lines.append(Line(f"{j.name} {label}".strip(), limbs[j.name], turns, values))
    return lines


def _limbs(joints: Sequence[MovingJoint]) -> dict[str, int]:
    """Return the number of each joint's limb: joints one after another without a branch, the free joint of a base alone."""
    before = {j.child: j for j in joints}
    branches = Counter(j.parent for j in joints)
    limbs: dict[str, int] = {}
    for j in joints:
        parent = before.get(j.parent or "")
        follows = parent is not None and branches[j.parent] == 1 and parent.type is not JointType.FLOATING
        limbs[j.name] = limbs[parent.name] if parent is not None and follows else len(set(limbs.values()))
    return limbs


def _freedoms(kind: JointType) -> list[tuple[str, bool]]:
    """Return a label of each degree of freedom, and whether it turns."""
    along, about = [(x, False) for x in AXES], [(f"about {x}", True) for x in AXES]
    several = {JointType.FLOATING: along + about, JointType.SPHERICAL: about, JointType.PLANAR: [*along[:2], about[2]]}
    return several.get(kind, [("", kind is not JointType.PRISMATIC)])


def _positions(kind: JointType, q: Array) -> Array:
    """Return coordinates (T, nv) [m, rad]: quaternions as rotation vectors, cosines and sines as angles."""
    if kind is JointType.PLANAR:
        return np.column_stack([q[:, :2], np.unwrap(np.arctan2(q[:, 3], q[:, 2]))])
    if kind.rotation != 4:
        return q
    return np.column_stack([q[:, :-4], *log_so3(quaternion_at(q[:, -4:].T, 0))])


def _draw_contacts(ax: Any, motion: Trajectory) -> None:
    """Draw the sum of the contact forces of the world."""
    for k, name in enumerate(AXES):
        ax.plot(motion.times, motion.ground_force[:, k], color=f"C{k}", linewidth=1.2, label=name)
    ax.set(xlabel="time [s]", ylabel="contact force [N]")
    ax.grid(axis="y")
    ax.legend(loc="upper right", ncols=3, fontsize=8.0)
