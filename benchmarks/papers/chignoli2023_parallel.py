"""Chignoli et al., second version (2025): forward dynamics of two parallel chains with one loop between them.

M. Chignoli, N. Adrian, S. Kim and P. M. Wensing, "A Propagation Perspective on Recursive Forward Dynamics for Systems with
Kinematic Loops", arXiv 2311.13732v2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from chignoli2023_robots import cost
from compared import candidate
from report import Report

from featherweight import Body, ClosedRobot, Coupling, Description, Inertia, Joint, JointType, Loop, LoopType, Pose, build
from featherweight.array_types import Array
from featherweight.model.types import WORLD

EXPLICIT, IMPLICIT = "explicit", "implicit"
SIZES = {
    5: (2, 4, 6, 8, 10),
    10: (2, 4, 8, 12, 16),
    20: (2, 6, 12, 20, 30),
    40: (2, 8, 16, 28, 40),
}  # bodies of loops, by depth
ALGORITHMS = {"aba": "C-ABA", "crba-ltdl": "C-CRBA", "multipliers": "multipliers"}
OFFERED = ("aba", "crba-ltdl")
BATCH, CHECKED = 1024, 64
GAP = 0.5  # [m] between the chains
LINK = Inertia(1.0, (0.5, 0.0, 0.0), (0.01, 0.0, 0.0, 0.1, 0.0, 0.1))
BAR = Inertia(1.0, (0.0, 0.5 * GAP, 0.0), (0.1, 0.0, 0.0, 0.01, 0.0, 0.1))
SPREAD = 0.3  # [rad] of random directions of links; those of the chains differ by less, so that all loops close


class Parallel(NamedTuple):
    """Two chains of `depth` links each, and a constraint between the links that close a loop of `bodies` links."""

    kind: str
    depth: int
    bodies: int

    @property
    def level(self) -> int:
        """The constrained links, counted from 1 at the ground."""
        return self.bodies // 2


def description(made: Parallel) -> Description:
    """Return the chains: all axes are z, links are along x, the second chain beside the first.

    The explicit constraint is that the constrained links have the same angle to the ground. The implicit one is a bar between
    their tips, on a joint at the first and a loop joint at the second.
    """
    k = made.level
    bodies, joints = [], []
    for side, y in (("a", 0.0), ("b", GAP)):
        for i in range(1, made.depth + 1):
            at, below = ((1.0, 0.0, 0.0), f"{side}{i - 1}") if i > 1 else ((0.0, y, 0.0), WORLD)
            bodies.append(Body(f"{side}{i}", LINK))
            joints.append(Joint(f"joint_{side}{i}", JointType.REVOLUTE, below, f"{side}{i}", Pose(p=at), (0.0, 0.0, 1.0)))
    name, gravity = f"{made.kind}_{made.depth}_{made.bodies}", (9.81, 0.0, 0.0)
    last = f"joint_b{k}"
    if made.kind == EXPLICIT:
        first = [(f"joint_a{i}", (1.0,)) for i in range(1, k + 1)]
        second = [(f"joint_b{i}", (-1.0,)) for i in range(1, k)]
        same = (Coupling("same_angle", last, (*first, *second)),)
        return Description(name, "", tuple(bodies), tuple(joints), gravity=gravity, couplings=same, dependent=(last,))
    tip = Pose(p=(1.0, 0.0, 0.0))
    bodies.append(Body("bar", BAR))
    joints.append(Joint("joint_bar", JointType.REVOLUTE, f"a{k}", "bar", tip, (0.0, 0.0, 1.0)))
    pin_joint = Loop("pin", LoopType.REVOLUTE, "bar", f"b{k}", Pose(p=(0.0, GAP, 0.0)), tip)
    dependent = ("joint_bar", last)
    return Description(name, "", tuple(bodies), tuple(joints), gravity=gravity, loops=(pin_joint,), dependent=dependent)


@cache
def robot(made: Parallel) -> ClosedRobot:
    found = build(description(made))
    assert isinstance(found, ClosedRobot)
    return found


def every(kind: str) -> list[Parallel]:
    return [Parallel(kind, depth, bodies) for depth, sizes in SIZES.items() for bodies in sizes]


@cache
def counted(made: Parallel) -> dict[str, int]:
    """Return costs by algorithm."""
    return {a: cost(candidate(robot(made).forward_dynamics, a)) for a in ALGORITHMS}


def states(made: Parallel, count: int) -> tuple[Array, Array, Array]:
    """Return configurations with closed loops, velocities and joint forces."""
    r, rng = robot(made), np.random.default_rng(0)
    guess = np.zeros((count, r.nq))
    directions, others = rng.uniform(-SPREAD, SPREAD, (2, count, made.depth))
    for side, turned in (("a", directions), ("b", directions + others / made.level)):
        for i, angle in enumerate(np.diff(turned, axis=1, prepend=0.0).T, 1):
            guess[:, r.joints[f"joint_{side}{i}"].q_slice] = angle[:, None]
    if made.kind == IMPLICIT:
        guess[:, r.joints["joint_bar"].q_slice] = -directions[:, [made.level - 1]]
    v, tau = rng.standard_normal((2, count, r.nv))
    return r.close(guess), v, tau


def sections(report: Report) -> None:
    report.heading("Second version: two parallel chains with a loop")
    report.text(
        """The second version of the paper ("A Propagation Perspective on Recursive Forward Dynamics for Systems with Kinematic
        Loops", arXiv 2311.13732v2) has two parallel chains with a constraint between them. Depths and bodies of the loop are
        those of its repository. The geometry is our choice: parallel axes, links of 1 m. The explicit constraint gives the last
        two links of the loop the same angle. The implicit constraint is a bar between their tips with a revolute loop joint.
        The cluster contains all bodies of the loop. C-CRBA is with sparse factors. The table has no numbers of the paper."""
    )
    rows: list[list[object]] = []
    for depth, sizes in SIZES.items():
        for k, bodies in enumerate(tabled(sizes)):
            pair = [counted(Parallel(kind, depth, bodies)) for kind in (EXPLICIT, IMPLICIT)]
            rows.append([depth if k == 0 else "", bodies, *(c[a] for c in pair for a in ALGORITHMS)])
    labels = [f"{kind}, {label}" for kind in (EXPLICIT, IMPLICIT) for label in ALGORITHMS.values()]
    report.table(["depth", "bodies of the loop", *labels], rows)
    report.text(_small_loops())


def tabled(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of loops in tables: the smallest, the middle and the largest one."""
    return sizes[0], sizes[len(sizes) // 2], sizes[-1]


def _small_loops() -> str:
    """Compare the growth with the size of a loop, and say where multipliers need fewer operations."""
    deepest = max(SIZES)
    growth = []
    for kind in (EXPLICIT, IMPLICIT):
        first, last = (counted(Parallel(kind, deepest, bodies)) for bodies in (SIZES[deepest][0], SIZES[deepest][-1]))
        growth.append([last[a] / first[a] for a in ("aba", "multipliers")])
    both = [*every(EXPLICIT), *every(IMPLICIT)]
    fewer = [m for m in both if counted(m)["multipliers"] < min(counted(m)[a] for a in OFFERED)]
    where = ", ".join(f"{m.depth} and {m.bodies} ({m.kind})" for m in fewer) or "none"
    aba, multipliers = ([f"{g[k]:.2f}" for g in growth] for k in (0, 1))
    return f"""From the smallest to the largest loop at a depth of {deepest}, C-ABA grows by a factor of {aba[0]} (explicit) and
        {aba[1]} (implicit), multipliers by {multipliers[0]} and {multipliers[1]}: C-ABA factorizes the matrix of a whole
        cluster, which is dense, while multipliers grow with the depth. Multipliers need fewer operations than C-ABA and C-CRBA
        if most of a mechanism is one loop, for which the library offers "aba-multipliers". Here they do for these depths and
        loops: {where}."""
