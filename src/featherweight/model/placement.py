"""Where the internal frame of a body lies, and its orientation as planar rotations."""

from __future__ import annotations

import math

from .types import Joint, JointType, Matrix, Pose, Vector, dot, scale, transpose

Planar = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]


def internal_frame(joint: Joint) -> Pose:
    """The frame at the joint's anchor whose z is the joint's axis, in the child's frame of the file."""
    if joint.type in (JointType.FLOATING, JointType.SPHERICAL):
        return Pose(p=joint.anchor)
    return Pose(frame_with_z(joint.axis), joint.anchor)


def frame_with_z(axis: Vector) -> Matrix:
    """A rotation that carries z to `axis`, a unit vector; with as many zeros as there can be.

    For an axis along a coordinate it only renames axes, so constants that were zero stay zero.
    """
    k = max(range(3), key=lambda i: abs(axis[i]))
    i, j = (k + 1) % 3, (k + 2) % 3
    if axis[i] == 0.0 and axis[j] == 0.0:
        sign = math.copysign(1.0, axis[k])
        return transpose((_unit(i, 1.0), _unit(j, sign), _unit(k, sign)))
    least = min((i, j), key=lambda m: abs(axis[m]))
    x = _cross(_unit(least, 1.0), axis) if axis[least] else _unit(least, 1.0)
    x = scale(1.0 / math.sqrt(dot(x, x)), x)
    return transpose((x, _cross(axis, x), axis))


def tidy(pose: Pose) -> Pose:
    """The pose with entries of its rotation that are rounding errors of 0 and ±1 made exact."""
    rows = tuple(tuple(_exact(x) for x in row) for row in pose.R)
    return Pose(rows, pose.p)  # type: ignore[arg-type]


def planar_rotations(R: Matrix) -> Planar:
    """(cosine, sine) of roll, pitch and yaw with R = Rz(yaw) Ry(pitch) Rx(roll)."""
    c = math.hypot(R[0][0], R[1][0])
    upright = c < 1e-12  # x points along ±z: yaw and roll turn about the same axis, and yaw is none
    cy, sy = (1.0, 0.0) if upright else (R[0][0] / c, R[1][0] / c)
    # Row y of Rz(yaw)^T R. From the small entries R[2][1] and R[2][2] roll would lose digits as the pitch nears 90°.
    cr, sr = cy * R[1][1] - sy * R[0][1], sy * R[0][2] - cy * R[1][2]
    pitch = (0.0, -math.copysign(1.0, R[2][0])) if upright else (c, -R[2][0])
    return ((cr, sr), pitch, (cy, sy))


def _exact(x: float) -> float:
    if abs(x) < 1e-15:
        return 0.0
    return math.copysign(1.0, x) if abs(abs(x) - 1.0) < 1e-15 else x


def _unit(k: int, sign: float) -> Vector:
    return (sign if k == 0 else 0.0, sign if k == 1 else 0.0, sign if k == 2 else 0.0)


def _cross(a: Vector, b: Vector) -> Vector:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
