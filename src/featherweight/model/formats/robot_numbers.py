"""Common functions of all readers of links and joints: rotations, axes, inertias and limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from ...spatial import Mat3, Vec3, exp_so3
from ...spatial.elementary import cos, norm, sin
from ...spatial.rotation_vector import rotation_vector
from ..inertia_checks import excess_moments
from ..types import LARGEST, SMALLEST_MASS, Body, Inertia, Matrix, ModelError, Moments, Pose, Vector, matmul
from .unsupported import tolerate


def rotation_by_angles(roll: float, pitch: float, yaw: float) -> Matrix:
    """Return Rz(yaw) Ry(pitch) Rx(roll)."""
    (cr, sr), (cp, sp), (cy, sy) = _cos_sin(roll), _cos_sin(pitch), _cos_sin(yaw)
    Rx: Matrix = ((1.0, 0.0, 0.0), (0.0, cr, -sr), (0.0, sr, cr))
    Ry: Matrix = ((cp, 0.0, sp), (0.0, 1.0, 0.0), (-sp, 0.0, cp))
    Rz: Matrix = ((cy, -sy, 0.0), (sy, cy, 0.0), (0.0, 0.0, 1.0))
    return matmul(Rz, matmul(Ry, Rx))


def rotation_by_quaternion(quaternion: Sequence[float], where: str) -> Matrix:
    """Return the rotation of a quaternion x y z w of any length. Raises ModelError for zero.

    The function divides by the square of the length, not by the length, so that equal components give exact right angles.
    """
    x, y, z, w = _about_one(quaternion)
    square = x * x + y * y + z * z + w * w
    if square == 0.0:
        raise ModelError(f"{where}: the quaternion is zero; give it a direction")
    return (
        ((w * w + x * x - y * y - z * z) / square, 2.0 * (x * y - w * z) / square, 2.0 * (x * z + w * y) / square),
        (2.0 * (x * y + w * z) / square, (w * w - x * x + y * y - z * z) / square, 2.0 * (y * z - w * x) / square),
        (2.0 * (x * z - w * y) / square, 2.0 * (y * z + w * x) / square, (w * w - x * x - y * y + z * z) / square),
    )


def _cos_sin(angle: float) -> tuple[float, float]:
    """Return cosine and sine, exact for right angles."""
    count = right_angles(angle, math.pi / 2)
    if count is not None:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[count % 4]
    return cos(angle), sin(angle)


def free_coordinates(pose: Pose) -> tuple[float, ...]:
    """Return the coordinates of a free body: position and quaternion (x, y, z, w)."""
    q = exp_so3(rotation_vector(Mat3(*(Vec3(*row) for row in pose.R))))
    return (*pose.p, *q.u, q.s)


class ZeroVectorError(ModelError):
    """Raised for an axis of length zero."""


def unit_axis(xyz: Vector, what: str, where: str) -> Vector:
    """Return the unit vector along `xyz`. Raises ZeroVectorError for zero; `what` names the vector."""
    x, y, z = _about_one(xyz)
    length = norm(x, y, z)
    if length == 0.0:
        raise ZeroVectorError(f"{where}: the {what} is zero; give it a direction")
    return (x / length, y / length, z / length)


def _about_one(vector: Sequence[float]) -> Iterator[float]:
    """Return a vector times the power of two that brings its greatest component near one: tiny numbers have few digits."""
    _, exponent = math.frexp(max(map(abs, vector)))
    return (math.ldexp(c, -exponent) for c in vector)


def inertia_at(frame: Pose, mass: float, moments: Sequence[float], where: str) -> Inertia:
    """Return the inertia of a link with its centre of mass at the origin of `frame`.

    The moments, as in `Inertia`, are in the axes of `frame`.
    """
    if mass < 0.0:
        tolerate(where, f"the mass is negative ({mass})", "correct it", "taken as zero, without inertia")
        return Inertia()
    if 0.0 < mass < SMALLEST_MASS:
        tolerate(where, f"the mass {mass:g} kg is too small for the computation", "make it zero", "taken as zero")
        mass = 0.0
    return Inertia(mass, frame.p, Moments(*moments).rotated(frame.R))


def unused_inertias(bodies: Iterable[Body]) -> Iterator[tuple[str, str]]:
    """Yield the entry of a report for links whose greatest principal moment exceeds the sum of the two others."""
    bodies = tuple(bodies)
    excess = excess_moments([body.inertia for body in bodies])
    if impossible := [body.name for body, e in zip(bodies, excess, strict=True) if e > 1e-6]:
        yield "inertias that no rigid body can have", ", ".join(impossible)


def unlimited(limit: float, largest: float = LARGEST) -> float:
    """Return infinity for the largest float, which files write in place of no limit."""
    return math.copysign(math.inf, limit) if abs(limit) >= largest else limit


def ordered_limits(lower: float, upper: float, where: str) -> tuple[float, float]:
    """Return the limits, in order."""
    if lower <= upper:
        return lower, upper
    problem = f"the lower limit {lower} is above the upper limit {upper}"
    tolerate(where, problem, "exchange or correct them", "the two are exchanged")
    return upper, lower


NEAR = 1e-11  # tolerance in the file's unit


def right_angles(angle: float, right: float) -> int | None:
    """Return the number of right angles in an angle, to within `NEAR`; None for other angles.

    `right` is a right angle in the angle's unit. Files write 1.57079632679 for a right angle. Exact zeros keep parallel axes
    parallel, and remove terms that rounding would make nonzero.
    """
    count = round(angle / right)
    return count if abs(angle - count * right) < NEAR else None
