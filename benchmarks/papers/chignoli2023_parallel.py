"""Chignoli et al., second version (2025): forward dynamics of two parallel chains with one loop between them.

M. Chignoli, N. Adrian, S. Kim and P. M. Wensing, "A Propagation Perspective on Recursive Forward Dynamics for Systems with
Kinematic Loops", arXiv 2311.13732v2.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from chignoli2023_robots import cost
from compared import candidate

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
