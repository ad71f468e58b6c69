"""Coordinates that a user can set: one number each, with an interval, whatever the coordinates of the joint are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import viser.transforms as tf

from ..array_types import Array
from ..model.model import MovingJoint
from ..model.types import JointType
from ..robot.robot import Robot

POSITION = (("x", 2.0), ("y", 2.0), ("z", 2.0))
ANGLES = (("roll", math.pi), ("pitch", math.pi / 2), ("yaw", math.pi))
NUMBERS = {
    JointType.FLOATING: (*POSITION, *ANGLES),
    JointType.SPHERICAL: ANGLES,
    JointType.PLANAR: (*POSITION[:2], ANGLES[2]),
}
"""Numbers of joints with several degrees of freedom, and half the lengths of their intervals around zero [m, rad]."""


class SettableCoordinate(NamedTuple):
    """One number of a joint [m or rad] that a user can set."""

    label: str
    joint: MovingJoint
    place: int  # index among the joint's numbers
    lower: float
    upper: float


def settable_coordinates(robot: Robot) -> list[SettableCoordinate]:
    """Return the coordinates of independent joints, in the order of the joints."""
    settable = []
    for joint in robot.joints:
        if not joint.independent or joint.q_slice.start == joint.q_slice.stop:
            continue
        many = NUMBERS.get(joint.type)
        if many is None:
            lower, upper = slider_interval(joint)
            settable.append(SettableCoordinate(joint.name, joint, 0, lower, upper))
        else:
            settable += [SettableCoordinate(f"{joint.name} {name}", joint, k, -far, far) for k, (name, far) in enumerate(many)]
    return settable


def slider_interval(joint: MovingJoint) -> tuple[float, float]:
    """Return the limits of a joint with one coordinate; a missing limit is replaced.

    Without limits the interval is ±π rad or ±1 m; with one limit, it extends at least that far from the limit.
    """
    far = 1.0 if joint.type == JointType.PRISMATIC else math.pi
    lower, upper = joint.lower, joint.upper
    if not math.isfinite(lower):
        lower = min(-far, upper - far) if math.isfinite(upper) else -far
    if not math.isfinite(upper):
        upper = max(far, lower + far)
    return lower, upper


def joint_numbers(joint: MovingJoint, q: Array) -> list[float]:
    """Return the numbers of a joint at q (nq,)."""
    x = q[joint.q_slice]
    match joint.type:
        case JointType.FLOATING:
            return [*map(float, x[:3]), *_angles(x[3:])]
        case JointType.SPHERICAL:
            return _angles(x)
        case JointType.PLANAR:
            return [float(x[0]), float(x[1]), math.atan2(x[3], x[2])]
    return [float(x[0])]


def with_joint_numbers(joint: MovingJoint, q: Array, numbers: Sequence[float]) -> Array:
    """Return the configuration q (nq,) with new numbers of a joint."""
    x: list[float] = list(numbers)
    if joint.type == JointType.FLOATING:
        x = [*x[:3], *_quaternion(x[3:])]
    elif joint.type == JointType.SPHERICAL:
        x = _quaternion(x)
    elif joint.type == JointType.PLANAR:
        x = [x[0], x[1], math.cos(x[2]), math.sin(x[2])]
    changed = q.copy()
    changed[joint.q_slice] = x
    return changed


def _angles(xyzw: Array) -> list[float]:
    """Return roll, pitch and yaw of a unit quaternion."""
    turn = tf.SO3(np.roll(np.asarray(xyzw, dtype=float), 1)).as_rpy_radians()
    return [float(turn.roll), float(turn.pitch), float(turn.yaw)]


def _quaternion(angles: Sequence[float]) -> list[float]:
    """Return the unit quaternion (x, y, z, w) of roll, pitch and yaw."""
    return [float(x) for x in np.roll(tf.SO3.from_rpy_radians(*angles).wxyz, -1)]
