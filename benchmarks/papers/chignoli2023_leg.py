"""Chignoli et al. (2023), figure 14: torques of one leg of the MIT Humanoid by exact and by approximate inverse dynamics."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from report import Report

from featherweight import Description, build, robots
from featherweight.array_types import Array
from featherweight.model.types import WORLD
from featherweight.viewer.chart_style import BLUE, INK, ORANGE

AMPLITUDE, OMEGA = 0.5, 1.5  # [rad]; [1/s] in 2 pi omega t, although the paper says rad/s
DURATION, STEP = 5.0, 5e-4  # [s]
SIDE, JOINTS = "left_", ("hip z", "hip x", "hip y", "knee", "ankle")
KNEE, ANKLE = 3, 4
PAPER = {"unconstrained": (4.31, 39.2), "approximate": (1.04, 9.5)}  # [N m], and per cent of the largest torque
MODELS = ("exact", *PAPER)


@cache
def leg(massless_rotors: bool = False) -> Description:
    """Return the left leg with its rotors and belts on a fixed torso."""
    whole = robots.mit_humanoid()
    root = whole.joints[0].child
    parts = ("hip", "knee", "ankle")
    names = {b.name for b in whole.bodies if b.name.startswith(SIDE) and b.name.removeprefix(SIDE).startswith(parts)}
    joints = tuple(replace(j, parent=WORLD if j.parent == root else j.parent) for j in whole.joints if j.child in names)
    kept = {j.name for j in joints}
    bodies = tuple(b for b in whole.bodies if b.name in names)
    if massless_rotors:
        bodies = tuple(replace(b, inertia=b.inertia._replace(mass=0.0)) if "rotor" in b.name else b for b in bodies)
    return replace(
        whole,
        name="mit_humanoid_leg",
        bodies=bodies,
        joints=joints,
        couplings=tuple(c for c in whole.couplings if c.joint in kept),
        dependent=tuple(name for name in whole.dependent if name in kept),
    )


class Motion(NamedTuple):
    """An interpretation of the experiment: angular frequency [rad/s], moving joints, and whether rotors have mass."""

    frequency: float = 2 * math.pi * OMEGA
    moving: tuple[int, ...] = (0, 1, 2, 3, 4)
    massless_rotors: bool = False


@cache
def torques(motion: Motion) -> tuple[Array, dict[str, Array]]:
    """Return times [s], and the joint torques (times, 5) [N m] by model."""
    d = leg(motion.massless_rotors)
    models = (build(d), build(robots.unconstrained(d)), build(robots.approximate(d)))
    t = np.arange(0.0, DURATION, STEP)
    w, moves = motion.frequency, np.isin(np.arange(len(JOINTS)), motion.moving)
    q = AMPLITUDE * np.outer(np.sin(w * t), moves)
    v = AMPLITUDE * w * np.outer(np.cos(w * t), moves)
    return t, {name: m.inverse_dynamics(q, v, -w * w * q) for name, m in zip(MODELS, models, strict=True)}


def deviation(motion: Motion, model: str, joint: int) -> tuple[float, float]:
    """Return the rms error of a model's torque [N m], and in per cent of the largest exact torque."""
    found = torques(motion)[1]
    true = found["exact"][:, joint]
    rms = float(np.sqrt(np.mean((found[model][:, joint] - true) ** 2)))
    return rms, 100.0 * rms / float(np.abs(true).max())


READINGS = {
    "as in the paper's text": (Motion(), ANKLE),
    "— the torque of the knee": (Motion(), KNEE),
    "— the torque of the knee, rotors without mass": (Motion(massless_rotors=True), KNEE),
    "— knee and ankle move alone, the ankle": (Motion(moving=(KNEE, ANKLE)), ANKLE),
    "— knee and ankle move alone, the knee": (Motion(moving=(KNEE, ANKLE)), KNEE),
    "— the ankle moves alone, the ankle": (Motion(moving=(ANKLE,)), ANKLE),
    "1.5 rad/s, the ankle": (Motion(OMEGA), ANKLE),
    "1.5 rad/s, the knee": (Motion(OMEGA), KNEE),
}


def sections(report: Report) -> None:
    report.heading("Figure 14: torques of the MIT Humanoid's leg")
    report.text(
        f"""The leg with its rotors and belts is attached to a fixed torso. All five joints move as {AMPLITUDE} sin(2π {OMEGA}
        t) rad for {DURATION:g} s in steps of {1e3 * STEP:g} ms. "Exact" is C-RNEA, "unconstrained" the tree without rotors,
        "approximate" the tree with reflected inertias. The table has the root mean square of the difference from the exact
        torque and, in brackets, its share of the largest exact torque of the same joint."""
    )
    header = ["reading", *PAPER, "largest torque"]
    rows: list[list[object]] = [["the paper", *(f"{rms} N·m ({part} %)" for rms, part in PAPER.values()), "—"]]
    for name, (motion, joint) in READINGS.items():
        found = [deviation(motion, model, joint) for model in PAPER]
        largest = float(np.abs(torques(motion)[1]["exact"][:, joint]).max())
        rows.append([name, *(f"{rms:.2f} N·m ({part:.1f} %)" for rms, part in found), f"{largest:.2f} N·m"])
    report.table(header, rows)
    knee = [deviation(Motion(), model, KNEE) for model in PAPER]
    largest = float(np.abs(torques(Motion())[1]["exact"][:, KNEE]).max())
    rms, part = PAPER["unconstrained"]
    report.text(
        f"""The paper's root mean squares are those of the knee, {knee[0][0]:.4f} and {knee[1][0]:.4f} N·m here, although
        its text names the ankle; both joints belong to one cluster. Read literally, with the ankle, the text does not yield
        the paper's numbers. The mass of the rotors does not matter. The paper's percentages refer to a maximum of
        {100 * rms / part:.1f} N·m, the knee has {largest:.1f} N·m here; we do not know the reason. ω is 1.5 Hz, not 1.5
        rad/s."""
    )
    with report.panels("chignoli2023_figure14", "Torques of the leg's knee and ankle", (1, 2), (7.6, 3.0)) as axes:
        for ax, joint in zip(axes, (KNEE, ANKLE), strict=True):
            draw(ax, joint)


def draw(ax: Axes, joint: int) -> None:
    t, found = torques(Motion())
    shown = t < 2 / OMEGA  # two periods
    for (model, tau), color in zip(found.items(), (INK, ORANGE, BLUE), strict=True):
        ax.plot(t[shown], tau[shown, joint], color=color, linewidth=1.4, label=model)
    ax.set(xlabel="time, s", ylabel="torque, N·m", xlim=(0, float(t[shown][-1])))
    ax.grid()
    ax.set_title(f"The {JOINTS[joint]}")
    ax.legend(fontsize=8.0, loc="lower center", bbox_to_anchor=(0.5, -0.42), ncols=3)
