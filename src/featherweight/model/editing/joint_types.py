"""Changes of a joint's type, including three consecutive hinges that become one spherical joint."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ...names import listed
from ...spatial import Vec3
from ...spatial.elementary import norm
from ...spatial.ordered import lengths, pseudo_inverse, times, total
from ..types import ROOT_JOINT, Contents, Joint, JointDynamics, JointType, ModelError, Pose, Vector, rotate, values_of
from .acting import without_joints
from .kept_parts import with_coordinates_of, with_sensors_of_rest
from .locking import joint_motion, locked
from .notes import missed, noted
from .references import D, grounded, joint_of, on_bodies, tied_with

TURNING = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.SPHERICAL)
HINGES = (JointType.REVOLUTE, JointType.CONTINUOUS)
MEET = 1e-6  # [m] tolerance of a meeting point, and of the volume that three axes span
LOST = "numbers of joints that have another type"
FREE = "their joints are now independent"


def with_joint_type(d: D, joints: Sequence[str], kind: JointType, axis: Vector | None) -> D:
    """Return the description with a joint of another type, or with one spherical joint in place of three hinges."""
    d, kind = grounded(d), JointType(kind)
    if len(joints) != 1:
        return _as_one(d, joints, kind)
    joint = joint_of(d, joints[0], "with_joint_type")
    if kind is JointType.FIXED:
        return d if joint.type is kind else locked(d, {joint.name: neutral_position(joint)})
    new = _of_type(joint, kind, joint.axis if axis is None else _unit(d, joint.name, axis))
    d = noted(replace(d, joints=tuple(new if j is joint else j for j in d.joints)), LOST, _lost(joint, new))
    if joint.type is kind or {joint.type, kind} <= {*HINGES}:
        return d
    return _without_coordinates(d, {joint.name})


def neutral_position(joint: Joint) -> tuple[float, ...]:
    """Return the position at which the child lies at `placement`."""
    return (joint.zero,) if joint.type.nq == 1 else zero_position(joint.type)


def zero_position(kind: JointType) -> tuple[float, ...]:
    """Return the position at which a joint of this type has zero coordinates or no rotation."""
    if kind is JointType.PLANAR:
        return (0.0, 0.0, 1.0, 0.0)
    return (0.0,) * (kind.nq - 1) + (1.0,) if kind.rotation else (0.0,) * kind.nq


def _of_type(joint: Joint, kind: JointType, axis: Vector) -> Joint:
    """Return the joint with the new type, and with those of its parameters that keep their meaning."""
    if joint.type is kind or (kind is JointType.REVOLUTE and joint.type in HINGES):
        return replace(joint, type=kind, axis=axis)
    if not {joint.type, kind} <= {*TURNING}:
        return Joint(joint.name, kind, joint.parent, joint.child, joint.placement, axis)
    new = replace(joint, type=kind, axis=axis, lower=-math.inf, upper=math.inf)
    return new if kind in HINGES else replace(new, zero=0.0, rest=0.0)


def _lost(old: Joint, new: Joint) -> list[str]:
    """Describe a joint and those of its parameters that no longer apply; empty if all do."""
    neutral, kept = values_of(JointDynamics, JointDynamics()), values_of(JointDynamics, new)
    gone = [key for key, x in values_of(JointDynamics, old).items() if x not in (neutral[key], kept[key])]
    return [f"{old.name} ({', '.join(gone)})"] if gone else []


def _unit(d: Contents, name: str, axis: Vector) -> Vector:
    x, y, z = axis
    length = norm(x, y, z)
    if not 0.0 < length < math.inf:
        raise ModelError(f"{d.source}: joint {name!r}: the axis {axis!r} has no direction; give it one")
    return (x / length, y / length, z / length)


def _without_coordinates(d: D, joints: Collection[str]) -> D:
    """Return the description without elements that refer to the coordinates of these joints."""
    couplings = [c.name for c in d.couplings if not {c.joint, *(name for name, _ in c.terms)}.isdisjoint(joints)]
    closures = [c.name for c in d.closures if not {*c.joints}.isdisjoint(joints)]
    left_tendons, left_actuators = without_joints(d, joints)
    actuators = [a.name for a in d.actuators if a not in left_actuators]
    tendons = [t.name for t in d.tendons if t not in left_tendons]
    tied = tied_with(d, joints)
    result = replace(
        d,
        couplings=tuple(c for c in d.couplings if c.name not in couplings),
        closures=tuple(c for c in d.closures if c.name not in closures),
        tendons=left_tendons,
        actuators=left_actuators,
        independent=tuple(name for name in d.independent if name not in tied),
        dependent=tuple(name for name in d.dependent if name not in tied),
    )
    result = missed(result, "couplings of joints that have another type", couplings, FREE)
    result = missed(result, "closures of joints that have another type", closures, FREE)
    result = missed(result, "tendons of joints that have another type", tendons, FREE)
    result = missed(result, "actuators of joints that have another type", actuators, "give them joints with one coordinate")
    result = with_coordinates_of(result, {ROOT_JOINT} | {j.name for j in d.joints} - {*joints})
    result = with_sensors_of_rest(result)
    marks = [name for name in (*d.independent, *d.dependent) if name in tied]
    return noted(result, "marks of joints in loops, which are chosen again", marks)


# --- three hinges


def _as_one(d: D, names: Sequence[str], kind: JointType) -> D:
    """Return a spherical joint, with the first one's name, in place of hinges whose axes meet and span space."""
    joints = [joint_of(d, name, "with_joint_type") for name in names]
    _require_ball(d, joints, kind)
    first, last = joints[0], joints[-1]
    at_zero = [joint.placement @ joint_motion(joint, (0.0,)) for joint in joints]  # the children's frames
    below = at_zero[1] @ at_zero[2]  # the last child's frame in the first child's frame
    placement = at_zero[0] @ below
    seen = [inward.inverse() for inward in (below, at_zero[2], Pose())]  # the children's frames in the last one's
    points = [(at @ Pose(p=j.anchor)).p for at, j in zip(seen, joints, strict=True)]
    anchor = _meeting_point(d, names, points, [rotate(at.R, j.axis) for at, j in zip(seen, joints, strict=True)])
    ball = Joint(first.name, JointType.SPHERICAL, first.parent, last.child, placement, anchor=anchor)
    between = {joints[0].child, joints[1].child}
    d = replace(
        d,
        bodies=tuple(b for b in d.bodies if b.name not in between),
        virtual=d.virtual - between,
        joints=tuple(ball if j is first else j for j in d.joints if j is first or j not in joints),
    )
    d = noted(d, LOST, [text for j in joints for text in _lost(j, ball)])
    return _without_coordinates(d, {*names})


def _require_ball(d: Contents, joints: Sequence[Joint], kind: JointType) -> None:
    names = ", ".join(repr(j.name) for j in joints)
    where = f"{d.source}: with_joint_type: {names}"
    if kind is not JointType.SPHERICAL or len(joints) != 3 or any(j.type not in HINGES for j in joints):
        kinds = ", ".join(j.type for j in joints)
        raise ModelError(f"{where} ({kinds}) cannot be one {kind} joint; name three hinges for a spherical one, or one joint")
    for above, below in pairwise(joints):
        if below.parent != above.child:
            raise ModelError(f"{where}: {below.name!r} is not on the body that {above.name!r} moves; name consecutive joints")
        others = [f.name for f in d.frames if f.body == above.child] + [s.name for s in d.shapes if s.body == above.child]
        others += [c.name for c in d.cameras if above.child in (c.body, c.target)]
        others += [j.name for j in d.joints if j.parent == above.child and j is not below]
        others += [x.name for x in on_bodies(d).loops if above.child in (x.predecessor, x.successor)]
        inertia = next(b.inertia for b in d.bodies if b.name == above.child)
        if others or any(inertia.rotational) or inertia.mass:
            contents = f"carries {listed(others)}" if others else "has mass"
            raise ModelError(f"{where}: body {above.child!r} between them {contents}; move that to another body first")


def _meeting_point(d: Contents, names: Sequence[str], points: Sequence[Vector], axes: Sequence[Vector]) -> Vector:
    """Return the point where the axes meet, in the last child's frame."""
    p, w = np.array(points), np.array(axes)
    across = np.eye(3) - w[:, :, None] * w[:, None, :]
    meeting = times(pseudo_inverse(total(across, 0)), total(times(across, p), 0))
    apart = lengths(times(across, meeting - p)).max()
    first, second, third = (Vec3(*axis) for axis in axes)
    if apart > MEET or abs(first.dot(second.cross(third))) < MEET:
        problem = f"miss each other by {apart:.3g} m" if apart > MEET else "lie in a plane at zero"
        remedy = "name three hinges whose axes meet in a point and lie in no plane"
        raise ModelError(f"{d.source}: with_joint_type: the axes of {listed([*names])} {problem}; {remedy}")
    x, y, z = (float(round(c, 15)) for c in meeting)
    return (x, y, z)
