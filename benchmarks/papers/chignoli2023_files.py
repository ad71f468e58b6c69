"""Chignoli et al. (2023): robot files of the paper's repository, with growing numbers of branches and depths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from chignoli2023_robots import cost
from compared import candidate
from report import MINUS, Report

from featherweight import ClosedRobot, CompiledFunction, load

FILES = ("mini_cheetah.urdf", "mit_humanoid.urdf", "jvrc1_humanoid.urdf", "four_bar.urdf", "revolute_rotor_chain.urdf")
FAMILIES = {
    "variable_revolute_urdf/revolute_rotor_branch": ("geared joints", (1, 4, 10)),
    "variable_revolute_pair_urdf/revolute_rotor_pair_branch": ("belt pairs", (1, 4, 7)),
    "variable_four_bar_urdf/four_bar_branch": ("four-bars", (1, 4, 10)),
}
BRANCHES = (1, 2, 4, 6)
ALGORITHMS = ("aba", "projection", "multipliers")


class Checked(NamedTuple):
    """Sizes of a robot, counts unless the trace is too large, and the difference between C-ABA and projection."""

    nv: int
    spanning: int
    counts: tuple[int | None, ...]
    difference: float


def checked(path: Path) -> Checked:
    """Return sizes, counts, and the difference at a random state, relative to the largest acceleration."""
    robot = load(path)
    assert isinstance(robot, ClosedRobot)
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng=rng, size=1)
    v, tau = rng.standard_normal((2, 1, robot.nv))
    found = [candidate(robot.forward_dynamics, name) for name in ALGORITHMS]
    ours, other = (CompiledFunction(f.program, "interpreted")(q, v, tau) for f in found[:2])
    difference = float(np.abs(ours - other).max() / np.abs(other).max())
    counts = tuple(None if f.too_large else cost(f) for f in found)
    return Checked(robot.nv, len(robot._mechanism.tree.parent), counts, difference)


def sections(report: Report) -> None:
    report.heading("Robot files of the repository")
    if report.robots is None or not all((report.robots / name).is_file() for name in FILES):
        report.text(
            f"""Skipped: no folder with {", ".join(FILES)} was given (`--robots FOLDER`). These files are in no package that
            the library installs."""
        )
        return
    report.text(
        """The files are those of generalized_rbda (commit 45fa7c4). The last column is the difference between C-ABA and
        projection at a random state, relative to the largest acceleration. Traces that are too large are not counted (—)."""
    )
    found: list[tuple[str, Checked]] = [(name, checked(report.robots / name)) for name in FILES]
    worst = max(c.difference for _, c in found)
    for family, (what, depths) in FAMILIES.items():
        for branches in BRANCHES:
            paths = [report.robots / "benchmarks" / f"{family}_{branches}_{depth}.urdf" for depth in depths]
            made = [checked(path) for path in paths if path.is_file()]
            worst = max(worst, *(c.difference for c in made)) if made else worst
            if made and branches in (BRANCHES[0], BRANCHES[-1]):
                name = f"{what}, {branches} {'branch' if branches == 1 else 'branches'} of {depths[len(made) - 1]}"
                found.append((name, made[-1]._replace(difference=max(c.difference for c in made))))
    header = ["robot", "nv", "of the spanning tree", "C-ABA", "projection", "multipliers", "difference"]
    report.table(header, [_row(name, c) for name, c in found])
    report.text(
        f"""Rows of families have the counts of the deepest file and the largest difference of the files with depths
        {"; ".join(f"{_list(depths)} ({what})" for what, depths in FAMILIES.values())}. The largest difference of all files,
        also those with {_list(BRANCHES[1:-1])} branches, is {exponential(worst, 1)}."""
    )


def _list(depths: Sequence[int]) -> str:
    return ", ".join(map(str, depths))


def _row(name: str, c: Checked) -> list[object]:
    counts = ["—" if n is None else n for n in c.counts]
    return [name, c.nv, c.spanning, *counts, exponential(c.difference, 0)]


def exponential(x: float, digits: int) -> str:
    return f"{x:.{digits}e}".replace("-", MINUS) if x else "0"
