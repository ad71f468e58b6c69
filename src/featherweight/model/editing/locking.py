"""Locking of joints at positions: they become fixed, and joints that move along with them are locked too.

When a robot is built, inertias of bodies that fixed joints connect are added, so the locked robot equals the whole robot with
these velocities at zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...array_types import Array
from ...checks import ARRAY, Refused, shown
from ...spatial.elementary import cos, norm, sin
from ...spatial.vectors import rotation_from_quaternion
from ..placement import frame_with_z
from ..types import ROOT_JOINT, Contents, Joint, JointType, Matrix, ModelError, Pose, Vector, as_matrix, as_vector
from .acting import without_joints
from .configurations import with_coordinates_of
from .held_couplings import hold_couplings
from .held_loops import hold_closures, hold_loops
from .kept_sensors import with_sensors_of_rest
from .notes import noted, warn
from .references import D, grounded, joint_of, on_bodies, tied_with, unknown
from .virtual import contracted

UNIT = 1e-6  # deviation of the length of a quaternion, and of (cos, sin), from 1


def locked(d: D, positions: Mapping[str, Any]) -> D:
    """Return the description with these joints fixed at these positions, each a number or the joint's part of q."""
    d = on_bodies(grounded(d))
    asked = {name: _position(d, name, value) for name, value in positions.items()}
    couplings, all_held = hold_couplings(d, asked)
    fixed = tuple(_fixed(j, all_held[j.name]) if j.name in all_held else j for j in d.joints)
    _warn_of_limits(d, all_held)
    tendons, actuators = without_joints(d, all_held)
    locked = replace(
        d,
        joints=fixed,
        couplings=couplings,
        closures=hold_closures(d, all_held),
        tendons=tendons,
        actuators=actuators,
    )
    locked = hold_loops(locked)
    locked = _marked(locked, d, all_held)
    locked = with_coordinates_of(locked, {ROOT_JOINT} | {j.name for j in d.joints} - all_held.keys())
    locked = noted(locked, "locked joints", [*all_held])
    locked = noted(locked, "actuators of locked joints", [a.name for a in d.actuators if a not in actuators])
    locked = noted(locked, "tendons of locked joints", [t.name for t in d.tendons if t not in tendons])
    return contracted(with_sensors_of_rest(locked))


def _position(d: Contents, name: str, value: object) -> tuple[float, ...]:
    joint = joint_of(d, name, "locked")
    if joint.type is JointType.FIXED:
        free = [j.name for j in d.joints if j.type is not JointType.FIXED]
        raise unknown(d, name, "moving joint", free, "locked")
    where = f"{d.source}: locked: joint {name!r}, which is {joint.type},"
    numbers = _numbers(value)
    if numbers.size != joint.type.nq or numbers.ndim > 1 or not np.isfinite(numbers).all():
        needs = f"{joint.type.nq} finite numbers" if joint.type.nq > 1 else "one finite number"
        raise ModelError(f"{where} needs {needs}; got {shown(value)}")
    q = numbers.ravel()
    group = {JointType.SPHERICAL: q[0:4], JointType.FLOATING: q[3:7], JointType.PLANAR: q[2:4]}.get(joint.type)
    if group is not None:
        length = norm(*group.tolist())
        if abs(length - 1.0) > UNIT:
            what = "(cos, sin)" if joint.type is JointType.PLANAR else "quaternion (x, y, z, w)"
            raise ModelError(f"{where} needs a {what} of length one; got {shown(value)}")
        group /= length
    return tuple(q.tolist())


def _numbers(value: object) -> Array:
    """Return the value as an array; NaN if it does not consist of numbers."""
    try:
        return np.asarray(ARRAY.convert(value), dtype=np.float64)
    except Refused:
        return np.array(np.nan)


def _warn_of_limits(d: Contents, held: Mapping[str, tuple[float, ...]]) -> None:
    """Warn about positions beyond joint limits, which are often given in degrees by mistake."""
    for j in d.joints:
        if j.name in held and j.type.nq == 1 and not j.lower <= held[j.name][0] <= j.upper:
            problem = f"joint {j.name!r} is locked at {held[j.name][0]:g}, outside of its limits [{j.lower:g}, {j.upper:g}]"
            warn(d, f"{problem}; positions are in rad and m")


def _fixed(joint: Joint, position: tuple[float, ...]) -> Joint:
    placement = joint.placement @ joint_motion(joint, position)
    return Joint(joint.name, JointType.FIXED, joint.parent, joint.child, placement)


def joint_motion(joint: Joint, q: tuple[float, ...]) -> Pose:
    """Return the pose of the child's frame at a position, relative to its pose at `placement`."""
    if joint.type in (JointType.FLOATING, JointType.SPHERICAL):
        frame, move = Pose(p=joint.anchor), _free(q)
    else:
        frame, move = Pose(frame_with_z(joint.axis), joint.anchor), _along_z(joint, q)
    return frame @ move @ frame.inverse()


def _along_z(joint: Joint, q: tuple[float, ...]) -> Pose:
    if joint.type is JointType.PLANAR:
        return Pose(_about_z(q[2], q[3]), (q[0], q[1], 0.0))
    x = q[0] - joint.zero
    return Pose(p=(0.0, 0.0, x)) if joint.type is JointType.PRISMATIC else Pose(_about_z(cos(x), sin(x)))


def _about_z(c: float, s: float) -> Matrix:
    return ((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0))


def _free(q: tuple[float, ...]) -> Pose:
    """Return the motion of a spherical joint (q is a quaternion) or a floating joint (position and quaternion)."""
    p: Vector = as_vector(q[:3]) if len(q) == 7 else (0.0, 0.0, 0.0)
    return Pose(as_matrix(rotation_from_quaternion(*q[-4:])), p)


def _marked(d: D, before: Contents, held: Mapping[str, tuple[float, ...]]) -> D:
    """Return the description without marks of locked joints.

    A locked joint that was marked as independent removes one degree of freedom together with its mark. A joint without a mark
    removes a degree of freedom of another joint, so the marks of all joints that are connected to it are removed.
    """
    chosen_again = tied_with(before, [name for name in held if name not in before.independent])
    left = {j.name for j in d.joints if j.name not in held}
    result = replace(
        d,
        independent=tuple(name for name in d.independent if name in left - chosen_again),
        dependent=tuple(name for name in d.dependent if name in left),
    )
    lost = [name for name in before.independent if name in left & chosen_again]
    return noted(result, "marks of independent joints, which are chosen again", lost)
