"""Sathya, Decré and Swevers (2023), figures 5 and 6 and section IV-E: Atlas, with and without Shadow hands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from report import Report
from sathya2023_counts import LABELS, moved, total

from featherweight import BilateralContact, Description, Robot, build
from featherweight.model.formats.registry import load_description
from featherweight.model.types import WORLD
from featherweight.viewer.chart_style import BLUE, FAINT, GREEN, ORANGE, PALE

FILES = ("atlas.urdf", "shadow_hand_right.xml")
FINGERS = ("ff", "mf", "rf", "lf", "th")
FINGERTIP = (0.0, 0.0, 0.026)  # [m], in the frame of the last link
SOLE = tuple((x, y, -0.08) for x in (0.17, -0.09) for y in (0.06, -0.06))  # [m] corners, in the frame of the foot
BARS = {"pv-osimr": BLUE, "pv-osimr-some": PALE, "pv-osim": ORANGE, "efpa": GREEN, "ltl": FAINT}
PAIR = ("pv-osimr", "pv-osim")
COUNTED = ("pv-osimr", "pv-osimr-some", "pv-osim", "efpa", "kjr", "ltl")


class Case(NamedTuple):
    """A robot with constraints, and the last label of the axis of the paper's bars."""

    figure: str
    what: str
    robot: Robot
    contacts: tuple[BilateralContact, ...]
    axis: int | None  # the last label
    title: str = ""  # title of its picture

    def counts(self) -> dict[str, int]:
        return {name: total(self.robot.delassus(self.contacts, name).operations) for name in COUNTED}


def hand_description(path: Path) -> Description:
    """Return the hand without the rotor inertias of its file, which the paper's equations do not have."""
    made = load_description(path)
    return replace(made, joints=tuple(replace(j, armature=0.0) for j in made.joints))


def with_hand(robot: Description, hand: Description, link: str, prefix: str) -> Description:
    """Return the robot with a hand fixed to a link; the forearm's pose in the link is that in the world."""
    bodies = (replace(b, name=prefix + b.name) for b in hand.bodies)
    joints = (
        replace(
            j, name=prefix + j.name, parent=link if j.parent in (None, WORLD) else f"{prefix}{j.parent}", child=prefix + j.child
        )
        for j in hand.joints
    )
    return replace(robot, bodies=(*robot.bodies, *bodies), joints=(*robot.joints, *joints))


def fingertips(prefix: str = "") -> tuple[BilateralContact, ...]:
    return tuple(BilateralContact(f"{prefix}rh_{finger}distal", "point", placement=moved(*FINGERTIP)) for finger in FINGERS)


@cache
def cases(folder: Path) -> tuple[Case, ...]:
    atlas, hand = load_description(folder / FILES[0]), hand_description(folder / FILES[1])
    one = with_hand(atlas, hand, "l_hand", "left_")
    both = with_hand(one, hand, "r_hand", "right_")
    feet = (BilateralContact("l_foot"), BilateralContact("r_foot"))
    corners = tuple(BilateralContact(foot, "point", placement=moved(*p)) for foot in ("l_foot", "r_foot") for p in SOLE)
    hands = (BilateralContact("l_hand"), BilateralContact("r_hand"))
    tips = (*fingertips("left_"), *fingertips("right_"))
    made = {name: build(d, "floating", execution="traced") for name, d in (("", atlas), ("1", one), ("2", both))}
    alone, free = (build(hand, base, execution="traced") for base in ("fixed", "floating"))
    return (
        Case("5a", "Atlas, 6-D on each foot", made[""], feet, 15_000, "6-D on each foot"),
        Case("5b", "Atlas, four points on each foot", made[""], corners, 20_000, "Four points on each foot"),
        Case("6a", "Shadow hand, five fingertips", alone, fingertips(), 8_000, "Shadow hand"),
        Case("6a", "— with a floating forearm", free, fingertips(), None),
        Case("6b", "Atlas with one hand, its fingertips", made["1"], fingertips("left_"), 40_000, "Atlas with one hand"),
        Case("6c", "Atlas with two hands, their fingertips", made["2"], tips, 80_000, "Atlas with two hands"),
        Case("6d", "— and 6-D on each foot", made["2"], (*tips, *feet), 80_000, "Two hands and feet"),
        Case("IV-E", "Atlas, 6-D on feet and hands", made[""], (*feet, *hands), None),
    )


def sections(report: Report) -> None:
    report.heading("Figures 5 and 6: Atlas and the Shadow hand")
    if report.robots is None or not all((report.robots / name).is_file() for name in FILES):
        report.text(
            f"""Skipped: no folder with {" and ".join(FILES)} was given (`--robots FOLDER`). These files are in no package
            that the library installs."""
        )
        return
    made = cases(report.robots)
    report.text(
        """Atlas has 30 joints and a floating pelvis, a hand 24 joints. Points are 3-D constraints. The paper does not give the
        corners of the soles and the fingertips, which we estimated, nor the frames of the forearms, for which we use those of
        Atlas's hands. Rotor inertias of the hand are ignored. "Some" is PV-OSIMr without the branching links that save no
        operations."""
    )
    _pictures(report, made)


def _pictures(report: Report, made: Sequence[Case]) -> None:
    shown = [case for case in made if case.axis]
    for figure, shape, size in (("5", (1, 2), (7.2, 2.3)), ("6", (2, 2), (7.2, 4.3))):
        caption = f"Figure {figure}: operations of the Delassus matrix for robots"
        with report.panels(f"sathya2023_figure{figure}", caption, shape, size) as axes:
            for ax, case in zip(axes, (c for c in shown if c.figure.startswith(figure)), strict=True):
                draw_bars(ax, case)


def draw_bars(ax: Axes, case: Case) -> None:
    counts = case.counts()
    for row, (name, color) in enumerate(BARS.items()):
        ax.barh(row, counts[name], height=0.64, color=color)
        ax.text(counts[name] + 0.015 * max(counts.values()), row, f"{counts[name]:,}", va="center", fontsize=8.0, color=FAINT)
    ax.set_yticks(range(len(BARS)), [LABELS[name] for name in BARS])
    ax.invert_yaxis()
    ax.set_xlim(0, 1.2 * max(counts[name] for name in BARS))
    ax.set_xticks([])
    ax.set_title(case.title, fontsize=9.0)
