"""Trees made to be awkward, by name; each is met by more than one oracle."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import featherweight as fw
from featherweight.model.generators import (
    balanced_tree,
    chain,
    from_parents,
    random_tree,
    short_side_branches,
    span_grid,
    unbranched_parents,
)
from featherweight.model.types import WORLD, Matrix

ONE_DOF = ("revolute", "continuous", "prismatic")
LIGHT_AND_HEAVY = (1e-4, 1e4)  # [kg]
LIKE_ROBOTS = (0.1, 10.0)


def _mixed(n: int, seed: int, branching: float = 0.5) -> Callable[[], fw.Description]:
    return lambda: random_tree(n, seed=seed, branching=branching, masses=LIKE_ROBOTS)


def _of(kind: str) -> Callable[[], fw.Description]:
    return lambda: random_tree(8, seed=3, joint_types=(kind,), masses=LIKE_ROBOTS)


def roots() -> fw.Description:
    """Five bodies on the ground, each with another on it."""
    kinds = ("revolute", "prismatic", "spherical", "planar", "floating")
    return from_parents([-1, 0, -1, 2, -1, 4, -1, 6, -1, 8], seed=4, joint_types=kinds, name="roots")


def spherical_below_prismatic() -> fw.Description:
    return _with_types(chain(6, seed=5), ["prismatic", "spherical"] * 3)


def floating_inside() -> fw.Description:
    """Floating joints that hang on moving bodies, and carry others."""
    return _with_types(chain(6, seed=6), ["revolute", "floating", "prismatic", "floating", "planar", "revolute"])


def fixed_but_one() -> fw.Description:
    """Fixed joints all the way, above and below one that moves."""
    kinds = ["fixed"] * 4 + ["revolute"] + ["fixed"] * 5
    return _with_types(chain(10, seed=7), kinds)


def fixed_between() -> fw.Description:
    """Every second joint of a branched tree is fixed: masses and placements must be merged."""
    description = random_tree(16, seed=8, masses=LIKE_ROBOTS)
    return _with_types(description, ["fixed" if i % 2 else j.type.value for i, j in enumerate(description.joints)])


def anchored() -> fw.Description:
    """Joints that turn about a point beside the body's origin, have their zero elsewhere, and rotors of their own."""
    rng = np.random.default_rng(9)
    description = random_tree(10, seed=9, joint_types=("revolute", "prismatic", "spherical"), masses=LIKE_ROBOTS)
    joints = []
    for joint in description.joints:
        x, y, z = (float(value) for value in rng.uniform(-0.2, 0.2, 3))
        anchor = (0.0, 0.0, 0.0) if joint.type is fw.JointType.PRISMATIC else (x, y, z)
        zero = 0.0 if joint.type is fw.JointType.SPHERICAL else float(rng.uniform(-1.0, 1.0))
        armature = float(rng.uniform(0.0, 0.5))
        joints.append(dataclasses.replace(joint, anchor=anchor, zero=zero, armature=armature))
    return dataclasses.replace(description, joints=tuple(joints))


def nearly_right_angles() -> fw.Description:
    """Pitch angles as files write them, close to the right angle at which roll and yaw turn about one axis."""
    pitches = [1.57, 1.5708, 1.570796, 1.57079633, 1.570796327, -1.5708, -1.57079633, math.pi / 2]
    description = from_parents(unbranched_parents(len(pitches)), seed=10)
    joints = []
    for joint, pitch in zip(description.joints, pitches, strict=True):
        spin = np.array(joint.placement.R)
        R = _about(2, 0.7) @ _about(1, pitch) @ _about(0, -0.4) @ spin @ spin.T  # small entries, rounded
        placement = fw.Pose(_matrix(R), joint.placement.p)
        joints.append(dataclasses.replace(joint, placement=placement, axis=(0.0, 0.0, 1.0)))
    return dataclasses.replace(description, joints=tuple(joints))


def single_body() -> fw.Description:
    """One free body."""
    return dataclasses.replace(
        from_parents([-1], seed=11, joint_types=("floating",)),
        joints=(fw.Joint("free", fw.JointType.FLOATING, WORLD, "body0"),),
    )


def _about(axis: int, angle: float) -> npt.NDArray[np.float64]:
    c, s = math.cos(angle), math.sin(angle)
    R = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def _matrix(R: npt.NDArray[np.float64]) -> Matrix:
    x, y, z = ((float(row[0]), float(row[1]), float(row[2])) for row in R)
    return (x, y, z)


def _with_types(description: fw.Description, kinds: list[str]) -> fw.Description:
    joints = [
        dataclasses.replace(joint, type=fw.JointType(kind)) for joint, kind in zip(description.joints, kinds, strict=True)
    ]
    return dataclasses.replace(description, joints=tuple(joints))


TREES: dict[str, Callable[[], fw.Description]] = {
    **{f"mixed_{n}": _mixed(n, seed) for seed, n in enumerate((1, 2, 3, 5, 8, 13, 21))},
    "mixed_chain": _mixed(10, 20, 0.0),
    "mixed_bush": _mixed(15, 21, 1.0),
    **{f"all_{kind}": _of(kind) for kind in ("revolute", "continuous", "prismatic", "spherical", "planar", "floating")},
    "one_dof_60": lambda: random_tree(60, seed=1, joint_types=ONE_DOF, masses=LIKE_ROBOTS),
    "side_branches": lambda: short_side_branches(6),
    "balanced": lambda: balanced_tree(4),
    "grid": lambda: span_grid(4),
    "depth_one": lambda: from_parents([-1], seed=2),
    "roots": roots,
    "single_body": single_body,
    "spherical_below_prismatic": spherical_below_prismatic,
    "floating_inside": floating_inside,
    "fixed_but_one": fixed_but_one,
    "fixed_between": fixed_between,
    "anchored": anchored,
    "nearly_right_angles": nearly_right_angles,
}
"""Trees on which two programs agree to rounding."""

ILL_CONDITIONED: dict[str, Callable[[], fw.Description]] = {
    f"light_and_heavy_{seed}": functools.partial(random_tree, 20, seed=seed, masses=LIGHT_AND_HEAVY) for seed in range(4)
}
"""Trees whose masses span eight orders of magnitude."""


LARGE = 12  # degrees of freedom, beyond which trees run in plain Python: it is ready a hundred times sooner than machine code
COMPILED = ("floating_inside", "anchored")  # nevertheless: joints of all types, and places, zeros and rotors of their own


@functools.cache
def tree(name: str) -> tuple[fw.Description, fw.Robot]:
    """One of the trees above, built once."""
    description = (TREES | ILL_CONDITIONED)[name]()
    small = sum(joint.type.nv for joint in description.joints) <= LARGE
    return description, fw.build(description, execution="auto" if small or name in COMPILED else "interpreted")
