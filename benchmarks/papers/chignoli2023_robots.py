"""Chignoli, Adrian, Kim and Wensing (2023): the six robots, the compared functions, and their costs.

Times of the C++ library generalized_rbda 1.1.0 that are not in the paper were measured for this comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from compared import candidate
from costs import operations_with_divisions

from featherweight import BilateralContact, ClosedRobot, Description, Inertia, JointType, Pose, Robot, build, robots
from featherweight.algorithms.kinematics import joint_transforms
from featherweight.algorithms.mechanisms.cluster_tree import ClusterTree
from featherweight.algorithms.mechanisms.maps import maps, spanning_acceleration, spanning_configuration, spanning_velocity
from featherweight.algorithms.rnea import newton_euler
from featherweight.engine.execution import DIVISION
from featherweight.engine.function import CompiledFunction
from featherweight.engine.operations import Operations
from featherweight.engine.program import Input, KernelProgram, Output
from featherweight.spatial import ZERO_FORCE

SEED = 0  # of chains with general geometry

# The columns of tables II to IV, and the rows of the repository's data.
ROBOTS = ("12 link GT chain", "12 link PBT chain", "Mini Cheetah", "MIT Humanoid", "Tello Humanoid", "JVRC-1")
UNIFORM = ("GT chain in a plane", "PBT chain in a plane")
GENERAL = ", general geometry"
SHORT = dict(
    zip(
        (*ROBOTS, *UNIFORM), ("GT chain", "PBT chain", "Mini Cheetah", "MIT Humanoid", "Tello", "JVRC-1", *UNIFORM), strict=True
    )
)

Measured = Mapping[str, tuple[float, ...]]  # by algorithm, for each of ROBOTS

INVERSE, FORWARD, OSIM = "inverse dynamics", "forward dynamics", "inverse operational-space inertia"
CLUSTER = {INVERSE: "C-RNEA", FORWARD: "C-ABA", OSIM: "C-EFPA"}

# Tables II, III and IV: percent more or less than C-RNEA, C-ABA and C-EFPA.
PAPER: dict[str, Measured] = {
    INVERSE: {
        "approximate": (-40.3, -36.2, -41.0, -42.0, -59.6, -37.7),
        "projected RNEA": (38.0, 37.8, 36.7, 35.9, 22.4, 36.6),
    },
    FORWARD: {
        "approximate": (-34.1, -34.6, -35.3, -38.6, -49.4, -38.4),
        "projection": (86.8, 73.5, 21.0, 32.5, 22.2, 87.3),
        "multipliers": (133.1, 119.8, 76.3, 106.2, 82.7, 212.8),
    },
    OSIM: {
        "approximate": (-35.7, -52.1, -28.6, -37.4, -51.4, -22.54),
        "sparse factors": (51.8, 6.3, 19.0, 23.2, 7.80, 107.4),
    },
}
TABLES = {INVERSE: "II", FORWARD: "III", OSIM: "IV"}

FEET: dict[str, tuple[tuple[str, tuple[float, float, float]], ...]] = {
    "Mini Cheetah": (
        ("FR_knee_link", (0.0, 0.004, -0.195)),
        ("FL_knee_link", (0.0, -0.004, -0.195)),
        ("HR_knee_link", (0.0, 0.004, -0.195)),
        ("HL_knee_link", (0.0, -0.004, -0.195)),
    ),
    "MIT Humanoid": (("right_ankle_link", (0.1, 0.0, -0.041)), ("left_ankle_link", (0.1, 0.0, -0.041))),
    "Tello Humanoid": (("left-foot", (0.1, 0.0, -0.041)), ("right-foot", (0.1, 0.0, -0.041))),
    "JVRC-1": (("left-ankle-pitch", (0.1, 0.0, -0.041)), ("right-ankle-pitch", (0.1, 0.0, -0.041))),
}
"""Links with their ground contact points [m], from the repository, whose end-effector comes first."""


@cache
def description(name: str) -> Description:
    """Return one of ROBOTS or UNIFORM; the suffix GENERAL selects general geometry and inertias."""
    if name.endswith(GENERAL):
        return general(description(name.removesuffix(GENERAL)))
    seed = None if name in UNIFORM else SEED
    if "GT chain" in name:
        return robots.geared_chain(12, seed)
    if "PBT chain" in name:
        return robots.belt_chain(12, seed)
    made = {
        "Mini Cheetah": robots.mini_cheetah,
        "MIT Humanoid": robots.mit_humanoid,
        "Tello Humanoid": robots.tello,
        "JVRC-1": robots.jvrc1,
    }
    return made[name]()


def general(made: Description) -> Description:
    """Return the same joints and bodies with inertias and placements without zeros."""
    rng = np.random.default_rng(SEED)

    def placement() -> Pose:
        Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        x, y, z = (tuple(map(float, row)) for row in Q * np.linalg.det(Q))
        return Pose((x, y, z), tuple(map(float, rng.uniform(-1.0, 1.0, 3))))

    def inertia() -> Inertia:
        A = rng.standard_normal((3, 3))
        xx, xy, xz, yy, yz, zz = (float((A @ A.T)[i, j]) for i in range(3) for j in range(i, 3))
        return Inertia(1.0, tuple(map(float, rng.uniform(-1.0, 1.0, 3))), (xx, xy, xz, yy, yz, zz))

    return replace(
        made,
        bodies=tuple(replace(b, inertia=inertia()) for b in made.bodies),
        joints=tuple(j if j.type == JointType.FLOATING else replace(j, placement=placement()) for j in made.joints),
    )


@cache
def exact(name: str) -> ClosedRobot:
    made = build(description(name))
    assert isinstance(made, ClosedRobot)
    return made


@cache
def approximate(name: str) -> Robot:
    """Return the independent tree with the rotors' reflected inertia."""
    return build(robots.approximate(description(name)))


def contacts(name: str, feet: int | None = 1) -> tuple[BilateralContact, ...]:
    """Return six rows on the tip of a chain, on the first foot, or on all feet (`feet=None`)."""
    points = FEET.get(name.removesuffix(GENERAL))
    if points is None:
        return (BilateralContact("link-11"),)
    return tuple(BilateralContact(link, placement=moved(p)) for link, p in points[:feet])


def moved(p: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the placement of a translated frame."""
    T = np.eye(4)
    T[:3, 3] = p
    return T


class Compared(NamedTuple):
    """A function, and the robot of its states."""

    robot: Robot
    function: CompiledFunction[Any]


def compared(what: str, name: str, feet: int | None = 1) -> dict[str, Compared]:
    """Return the functions of one table for one robot, the cluster algorithm first."""
    r, a = exact(name), approximate(name)
    if what == INVERSE:
        return {
            CLUSTER[what]: Compared(r, r.inverse_dynamics),
            "approximate": Compared(a, a.inverse_dynamics),
        }
    if what == FORWARD:
        found = {CLUSTER[what]: Compared(r, candidate(r.forward_dynamics, "aba"))}
        found["approximate"] = Compared(a, candidate(a.forward_dynamics, "aba"))
        others = {key: candidate(r.forward_dynamics, key) for key in ("projection", "multipliers", "crba-ltdl")}
        return found | {key: Compared(r, f) for key, f in others.items()}
    made = contacts(name, feet)
    return {
        CLUSTER[what]: Compared(r, r.delassus(made, "efpa")),
        "approximate": Compared(a, a.delassus(made, "efpa")),
        "sparse factors": Compared(r, r.delassus(made, "ltl")),
        "PV-OSIM": Compared(r, r.delassus(made, "pv-osim")),
        "PV-OSIMr": Compared(r, r.delassus(made, "pv-osimr")),
    }


def cost(function: CompiledFunction[Any]) -> int:
    """Return operations with the weights by which the library chooses algorithms: a division or a root counts as eight."""
    return weighed(function.operations)


def weighed(o: Operations) -> int:
    return o.flops + DIVISION * (o.div + o.sqrt)


@cache
def costs_with_divisions(what: str, name: str, feet: int | None = 1) -> dict[str, int]:
    """Return `costs` with a division for each entry of sparse factors, as in the literature."""
    return {key: weighed(operations_with_divisions(c.function)) for key, c in compared(what, name, feet).items()}


@cache
def costs(what: str, name: str, feet: int | None = 1) -> dict[str, int]:
    """Return the costs of all algorithms of a table."""
    found = {key: cost(c.function) for key, c in compared(what, name, feet).items()}
    if what == INVERSE:
        found["projected RNEA"] = projected_rnea(exact(name))
    return found


def percent(ours: float, cluster: float) -> float:
    return 100.0 * (ours / cluster - 1.0)


def spanning_rnea(mech: ClusterTree, q, v, a, forces) -> None:  # type: ignore[no-untyped-def]  # a kernel, of any scalars
    """Write the joint forces of the spanning tree: C-RNEA without its last step."""
    qs = spanning_configuration(mech, q)
    M = maps(mech, joint_transforms(mech.tree, qs), qs, v)
    weights = [ZERO_FORCE] * len(mech.tree.parent)
    newton_euler(mech.tree, qs, spanning_velocity(mech, M, v), spanning_acceleration(mech, M, a), weights, forces)


def cost_of(kernel: Callable[..., None], robot: ClosedRobot, inputs: Sequence[str], output: int) -> int:
    """Return the cost of a kernel alone; only q is as long as a configuration."""
    arguments = tuple(Input(x, (robot.nq if x == "q" else robot.nv,)) for x in inputs)
    program = KernelProgram(kernel.__name__, kernel, (robot._mechanism,), arguments, (Output("result", (output,)),))
    return cost(CompiledFunction(program))


def projected_rnea(robot: ClosedRobot) -> int:
    """Return the cost of RNEA of the spanning tree and of G^T times its forces, with all m n entries of G as in the paper."""
    n, m = len(robot._mechanism.tree.parent), robot.nv
    return cost_of(spanning_rnea, robot, ("q", "v", "a"), n) + m * (2 * n - 1)
