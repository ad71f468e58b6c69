"""Charts of trajectories: positions, velocities and forces of joints over time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from ..array_types import Array
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


class Line(NamedTuple):
    """The curves of a degree of freedom: positions, velocities and forces (T,), along an axis or about it."""

    name: str
    turns: bool
    values: tuple[Array | None, ...]


def plot_motion(motion: Trajectory, path: str | os.PathLike[str] | None, joints: Sequence[str] | None) -> Any:
    """Draw a trajectory; `Trajectory.plot` documents the arguments."""
    if motion.system is None:
        raise ValueError("plot: units need the robot, which this trajectory does not know; use Trajectory.load(path, robot)")
    if motion.q.ndim != 2:
        raise ValueError(f"plot: this is the motion of {motion.q.shape[1]} robots; select one with of(0)")
    lines = _lines(motion, motion.system, joints)
    columns = [turns for turns in (False, True) if any(line.turns == turns for line in lines)] or [True]
    touching = joints is None and bool(motion.forces.any())
    rows = [k for k in range(3) if any(line.values[k] is not None for line in lines)]
    names = list(dict.fromkeys(line.name for line in lines))
    entries = -(-len(names) // (3 * len(columns)))
    with style():
        size = (WIDE if len(columns) > 1 else NARROW, HIGH * (len(rows) + touching) + ENTRY * entries)
        figure = plt.figure(figsize=size, dpi=DPI, layout="constrained")
        axes = figure.subplots(len(rows) + touching, len(columns), squeeze=False, sharex=True)
        colors = dict(zip(names, plt.get_cmap("tab10" if len(names) <= FEW else "turbo")(_places(len(names))), strict=True))
        for at, k in enumerate(rows):
            for ax, turns in zip(axes[at], columns, strict=True):
                for line in lines:
                    if line.turns == turns and line.values[k] is not None:
                        ax.plot(motion.times, line.values[k], color=colors[line.name], linewidth=1.2, label=line.name)
                ax.set(ylabel=f"{NAMES[k]} [{UNITS[k][turns]}]")
                ax.grid(axis="y")
        handles = {h.get_label(): h for ax in axes[0] for h in ax.get_lines()}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3 * len(columns), fontsize=8.0)
        for ax in axes[len(rows) - 1]:
            ax.set(xlabel="time [s]")
            ax.tick_params(labelbottom=True)
        for ax in axes[len(rows) :, 1:].flat:
            ax.set_axis_off()
        if touching:
            _draw_contacts(axes[-1, 0], motion)
        axes[0, 0].set_title(motion.robot)
        if path is None:
            return axes
        figure.savefig(path)
        plt.close(figure)
        return None


def _lines(motion: Trajectory, robot: System, joints: Sequence[str] | None) -> list[Line]:
    """Return the degrees of freedom of joints. Orientations are rotation vectors."""
    chosen = [j for j in robot.joints if j.v_slice.stop - j.v_slice.start == j.type.nv]  # others follow them
    names = [j.name for j in chosen]
    if joints is not None and not joints:
        raise ValueError("Trajectory.plot: joints must name at least one joint; got none")
    for name in joints or ():
        if name not in names:
            raise ValueError(f"plot: {robot.name} has no joint {choose_from(name, names)}")
    lines = []
    for j in chosen:
        if joints is not None and j.name not in joints:
            continue
        q, v = motion.q[:, j.q_slice], motion.v[:, j.v_slice]
        tau = motion.tau[:, j.v_slice] if len(motion.tau) else None
        for k, (label, turns) in enumerate(_freedoms(j.type)):
            values = _positions(j.type, q)[:, k], v[:, k], None if tau is None else tau[:, k]
            lines.append(Line(f"{j.name} {label}".strip(), turns, values))
    return lines


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
    """Draw the sum of the contact forces of each instant."""
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(motion.forces, axis=0)])[motion.first]
    for k, name in enumerate(AXES):
        ax.plot(motion.times, np.diff(sums[:, k]), color=f"C{k}", linewidth=1.2, label=name)
    ax.set(xlabel="time [s]", ylabel="contact force [N]")
    ax.grid(axis="y")
    ax.legend(loc="upper right", ncols=3, fontsize=8.0)


def _places(count: int) -> Array:
    """Return where colours of so many lines are in a map of ten colours, or on a scale."""
    return np.arange(count) if count <= FEW else np.linspace(0.02, 0.98, count)
