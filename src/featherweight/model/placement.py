"""Placement of the internal frames of bodies, and the axial screws from one frame to the next.

The joint's axis determines a frame up to a rotation about it and a translation along it. Where one child of a body allows it,
the frame is chosen so that two axial screws lead to that child's axis (Denavit and Hartenberg). Of several candidates, the
frame is chosen whose screws to all children take the fewest operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..spatial.elementary import norm
from .types import Joint, JointType, Matrix, Pose, Vector, add, dot, rotate, scale, transpose

Turn = tuple[float, float]  # cosine and sine
ALONG_Z = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC)

FAR = 10.0
"""The greatest distance of a common normal's foot, relative to that of the axes' points: inertias about it lose its square."""
TURN, MOVE, TWIST = 55, 28, 6  # operations for rotating or moving an articulated inertia; for adding a twist to a joint's angle


IDENTITY = Pose().R


def pose_of(R: Matrix, p: Vector) -> Pose:
    """Return the pose of numbers that need no check, ten times as fast."""
    return Pose._make((R, p))


class Line(NamedTuple):
    """A joint's axis in the frame of the body that carries it."""

    point: Vector
    direction: Vector


class AxialScrews(NamedTuple):
    """A placement in steps along single axes: translate by `base`, rotate about z, about x, slide along z, rotate about z."""

    base: Vector
    yaw: Turn
    roll: Turn
    slide: float
    twist: Turn

    @property
    def cost(self) -> int:
        """The approximate operations of moving an articulated inertia; the last rotation is part of the joint's."""
        turns = sum(0.0 not in t for t in (self.yaw, self.roll))
        moves = sum(x != 0.0 for x in (*self.base, self.slide))
        return TURN * turns + MOVE * moves + TWIST * (0.0 not in self.twist)


def internal_frame(joint: Joint, children: Sequence[Line] = (), center: Vector | None = None) -> Pose:
    """Return the frame on the joint's anchor and axis, in the child's frame of the file, for a body that carries `children`.

    A body without children has its `center` of mass on the x axis. If the joint's axis has a zero component in the file's
    frame, the axes of the file are kept instead, because the parts of the body are probably simple in them.
    """
    if joint.type in (JointType.FLOATING, JointType.SPHERICAL):
        return pose_of(IDENTITY, joint.anchor)
    plain = pose_of(frame_with_z(joint.axis), joint.anchor)
    if joint.type not in ALONG_Z:
        return plain
    if not children and 0.0 not in joint.axis and center is not None:
        along = dot(add(center, scale(-1.0, joint.anchor)), joint.axis)
        foot = add(joint.anchor, scale(along, joint.axis))
        return common_normal_frame(Line(foot, joint.axis), Line(center, joint.axis))
    axis = Line(joint.anchor, joint.axis)
    candidates = list(dict.fromkeys((plain, *(common_normal_frame(axis, child) for child in children))))
    if len(candidates) == 1:
        return plain
    return min(candidates, key=lambda frame: sum(_to_line(frame, child).cost for child in children))


def common_normal_frame(axis: Line, other: Line) -> Pose:
    """Return the frame on `axis` whose x axis points along the common normal to `other`, at its foot.

    For axes that are parallel up to rounding, the foot is arbitrary; the frame stays at the axis's point.
    """
    z, w = axis.direction, other.direction
    between = add(other.point, scale(-1.0, axis.point))
    normal = _cross(z, w)
    sine = math.sqrt(dot(normal, normal))
    along = dot(_cross(between, w), normal) / (sine * sine) if sine > 1e-9 else math.inf
    if abs(along) > FAR * math.sqrt(dot(between, between)):
        normal = add(between, scale(-dot(between, z), z))
        length = math.sqrt(dot(normal, normal))
        if length < 1e-9:
            return pose_of(frame_with_z(z), axis.point)
        return _frame(z, scale(1.0 / length, normal), axis.point)
    x = scale(1.0 / sine, normal)
    return _frame(z, x, add(axis.point, scale(along, z)))


def _to_line(frame: Pose, line: Line) -> AxialScrews:
    inverse = frame.inverse()
    direction = rotate(inverse.R, line.direction)
    return axial_screws(pose_of(frame_with_z(_unit_vector(direction)), (inverse @ pose_of(IDENTITY, line.point)).p))


def axial_screws(placement: Pose) -> AxialScrews:
    """Return a placement in steps along single axes: R = Rz(yaw) Rx(roll) Rz(twist), with the cheapest slide of the origin."""
    R = placement.R
    s = norm(R[0][2], R[1][2])
    if s < 1e-12:
        s, yaw = 0.0, (1.0, 0.0)
    else:
        flip = -1.0 if R[1][2] > 0.0 or (R[1][2] == 0.0 and R[0][2] < 0.0) else 1.0
        s, yaw = flip * s, (-flip * R[1][2] / s, flip * R[0][2] / s)
    yaw = _exact_turn(yaw)
    c, d = yaw
    roll = _exact_turn((R[2][2], s))
    along, across = c * R[0][0] + d * R[1][0], -(c * R[0][1] + d * R[1][1])
    size = norm(along, across)
    twist = _exact_turn((along / size, across / size))
    z = (R[0][2], R[1][2], R[2][2])
    slides = [0.0, *(placement.p[i] / z[i] for i in range(3) if abs(z[i]) > 1e-3)]
    candidates = [AxialScrews(_exact_difference(placement.p, scale(x, z)), yaw, roll, x, twist) for x in slides]
    return min(candidates, key=lambda screws: screws.cost)


def _exact_difference(p: Vector, q: Vector) -> Vector:
    """Return p - q, exactly zero if it is only a rounding error."""
    size = math.sqrt(dot(p, p))
    x, y, z = (0.0 if abs(a - b) < 1e-14 * (size + abs(b)) else a - b for a, b in zip(p, q, strict=True))
    return (x, y, z)


def frame_with_z(axis: Vector) -> Matrix:
    """Return a rotation that carries z to the unit vector `axis`, with as many zeros as possible.

    For a coordinate axis it only permutes the axes, so constants that are zero stay zero.
    """
    k = max(range(3), key=lambda i: abs(axis[i]))
    i, j = (k + 1) % 3, (k + 2) % 3
    if axis[i] == 0.0 and axis[j] == 0.0:
        sign = math.copysign(1.0, axis[k])
        return transpose((_unit(i, 1.0), _unit(j, sign), _unit(k, sign)))
    least = min((i, j), key=lambda m: abs(axis[m]))
    x = _cross(_unit(least, 1.0), axis) if axis[least] else _unit(least, 1.0)
    return _frame(axis, _unit_vector(x), (0.0, 0.0, 0.0)).R


def tidy(pose: Pose) -> Pose:
    """Return the pose with entries of its rotation that are 0 or ±1 up to rounding made exact."""
    (a, b, c), (d, e, f), (g, h, i) = pose.R
    rows = ((_exact(a), _exact(b), _exact(c)), (_exact(d), _exact(e), _exact(f)), (_exact(g), _exact(h), _exact(i)))
    return pose_of(rows, pose.p)


def chained(outer: Pose, inner: Pose) -> Pose:
    """Return outer @ inner, with zeros up to rounding made exact."""
    R, p = tidy(outer @ inner)
    return pose_of(R, exact_zeros(p, norm(*outer.p) + norm(*inner.p)))


def exact_zeros(p: Vector, size: float) -> Vector:
    """Return the vector with entries that are rounding errors of terms of the given size made exactly zero."""
    x, y, z = (0.0 if abs(a) <= 1e-15 * size else a for a in p)
    return (x, y, z)


def _frame(z: Vector, x: Vector, p: Vector) -> Pose:
    return tidy(pose_of(transpose((x, _cross(z, x), z)), p))


def _exact_turn(t: Turn) -> Turn:
    return (_exact(t[0]), _exact(t[1]))


def _exact(x: float) -> float:
    size = abs(x)
    if size < 1e-15:
        return 0.0
    return math.copysign(1.0, x) if -1e-15 < size - 1.0 < 1e-15 else x


def _unit(k: int, sign: float) -> Vector:
    return (sign if k == 0 else 0.0, sign if k == 1 else 0.0, sign if k == 2 else 0.0)


def _unit_vector(v: Vector) -> Vector:
    x, y, z = (_exact(c) for c in scale(1.0 / math.sqrt(dot(v, v)), v))
    return (x, y, z)


def _cross(a: Vector, b: Vector) -> Vector:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
