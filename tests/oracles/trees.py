"""Difficult trees by name, which several oracles use."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

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
    return lambda: random_tree(n, rng=seed, branching=branching, masses=LIKE_ROBOTS)


def _of(kind: str) -> Callable[[], fw.Description]:
    return lambda: random_tree(8, rng=3, joint_types=(kind,), masses=LIKE_ROBOTS)


def roots() -> fw.Description:
    """Return five bodies on the ground, each with another body on it."""
    kinds = ("revolute", "prismatic", "spherical", "planar", "floating")
    return from_parents([-1, 0, -1, 2, -1, 4, -1, 6, -1, 8], rng=4, joint_types=kinds, name="roots")


def spherical_below_prismatic() -> fw.Description:
    return _with_types(chain(6, rng=5), ["prismatic", "spherical"] * 3)


def floating_inside() -> fw.Description:
    """Return a tree with floating joints that hang on moving bodies, and carry others."""
    return _with_types(chain(6, rng=6), ["revolute", "floating", "prismatic", "floating", "planar", "revolute"])


def fixed_but_one() -> fw.Description:
    """Return fixed joints above and below the only moving one."""
    kinds = ["fixed"] * 4 + ["revolute"] + ["fixed"] * 5
    return _with_types(chain(10, rng=7), kinds)


def fixed_between() -> fw.Description:
    """Return a branched tree in which every second joint is fixed: masses and placements must be merged."""
    description = random_tree(16, rng=8, masses=LIKE_ROBOTS)
    return _with_types(description, ["fixed" if i % 2 else j.type.value for i, j in enumerate(description.joints)])


def awkward(description: fw.Description, rng: np.random.Generator) -> fw.Description:
    """Add rare features to most joints, of every type and on the ground too: an armature, an axis beside the body's
    origin, and an offset of their zero, if their type allows it.
    """
    joints = []
    for joint in description.joints:
        own: dict[str, Any] = {}
        if joint.type is not fw.JointType.FIXED:
            own["armature"] = float(rng.choice([0.0, rng.uniform(0.05, 0.5)], p=[0.3, 0.7]))
        if joint.type in (fw.JointType.REVOLUTE, fw.JointType.CONTINUOUS, fw.JointType.SPHERICAL):
            own["anchor"] = tuple(rng.uniform(-0.2, 0.2, 3).tolist())
        if joint.type.nv == 1:
            own["zero"] = float(rng.uniform(-1.0, 1.0))
        joints.append(dataclasses.replace(joint, **own))
    return dataclasses.replace(description, joints=tuple(joints))


def anchored() -> fw.Description:
    kinds = ("revolute", "prismatic", "spherical")
    return awkward(random_tree(10, rng=9, joint_types=kinds, masses=LIKE_ROBOTS), np.random.default_rng(9))


def rotors() -> fw.Description:
    """Return every type of joint with an armature, on the ground and on other bodies."""
    kinds = ["floating", "revolute", "planar", "spherical", "prismatic", "floating", "continuous"]
    description = _with_types(from_parents([-1, 0, -1, 2, 1, 3, -1], rng=12), kinds)
    joints = [
        dataclasses.replace(j, armature=0.1 + 0.1 * i)
        for i, j in enumerate(awkward(description, np.random.default_rng(12)).joints)
    ]
    return dataclasses.replace(description, joints=tuple(joints))


def nearly_right_angles() -> fw.Description:
    """Return a tree with pitch angles as in files, close to the right angle at which roll and yaw turn about one axis."""
    pitches = [1.57, 1.5708, 1.570796, 1.57079633, 1.570796327, -1.5708, -1.57079633, math.pi / 2]
    description = from_parents(unbranched_parents(len(pitches)), rng=10)
    joints = []
    for joint, pitch in zip(description.joints, pitches, strict=True):
        spin = np.array(joint.placement.R)
        R = _about(2, 0.7) @ _about(1, pitch) @ _about(0, -0.4) @ spin @ spin.T  # small rounded entries
        placement = fw.Pose(_matrix(R), joint.placement.p)
        joints.append(dataclasses.replace(joint, placement=placement, axis=(0.0, 0.0, 1.0)))
    return dataclasses.replace(description, joints=tuple(joints))


def single_body() -> fw.Description:
    """Return one free body."""
    return dataclasses.replace(
        from_parents([-1], rng=11, joint_types=("floating",)),
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
    "one_dof_60": lambda: random_tree(60, rng=1, joint_types=ONE_DOF, masses=LIKE_ROBOTS),
    "side_branches": lambda: short_side_branches(6),
    "balanced": lambda: balanced_tree(4),
    "grid": lambda: span_grid(4),
    "depth_one": lambda: from_parents([-1], rng=2),
    "roots": roots,
    "single_body": single_body,
    "spherical_below_prismatic": spherical_below_prismatic,
    "floating_inside": floating_inside,
    "fixed_but_one": fixed_but_one,
    "fixed_between": fixed_between,
    "anchored": anchored,
    "rotors": rotors,
    "nearly_right_angles": nearly_right_angles,
}
"""Trees on which two programs agree to rounding."""

ILL_CONDITIONED: dict[str, Callable[[], fw.Description]] = {
    f"light_and_heavy_{seed}": functools.partial(random_tree, 20, rng=seed, masses=LIGHT_AND_HEAVY) for seed in range(4)
}
"""Trees whose masses span eight orders of magnitude."""


LARGE = 12  # degrees of freedom; larger trees run in plain Python, which is ready a hundred times sooner than machine code
# compiled nevertheless: joints of all types, with their own places, zeros and rotors
COMPILED = ("floating_inside", "anchored")


@functools.cache
def tree(name: str) -> tuple[fw.Description, fw.Robot]:
    """Return one of the trees above, built once."""
    description = (TREES | ILL_CONDITIONED)[name]()
    small = sum(joint.type.nv for joint in description.joints) <= LARGE
    return description, fw.build(description, execution="auto" if small or name in COMPILED else "interpreted")
