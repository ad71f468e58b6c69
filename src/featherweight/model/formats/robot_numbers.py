"""Functions for all readers of links and joints, whatever the elements are called: rotations, axes, inertias and limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from ...spatial.elementary import cos, norm, sin
from ..checks import excess_moments
from ..types import LARGEST, Body, Inertia, Matrix, ModelError, Pose, Vector, matmul, transpose
from .right_angles import right_angles


def rotation_by_angles(roll: float, pitch: float, yaw: float) -> Matrix:
    """Rz(yaw) Ry(pitch) Rx(roll)."""
    (cr, sr), (cp, sp), (cy, sy) = _cos_sin(roll), _cos_sin(pitch), _cos_sin(yaw)
    Rx: Matrix = ((1.0, 0.0, 0.0), (0.0, cr, -sr), (0.0, sr, cr))
    Ry: Matrix = ((cp, 0.0, sp), (0.0, 1.0, 0.0), (-sp, 0.0, cp))
    Rz: Matrix = ((cy, -sy, 0.0), (sy, cy, 0.0), (0.0, 0.0, 1.0))
    return matmul(Rz, matmul(Ry, Rx))


def rotation_by_quaternion(quaternion: Sequence[float], where: str) -> Matrix:
    """The rotation of a quaternion x y z w of any length; raises ModelError for zero.

    Divided by the square of the length and not by the length, so that equal components give exact right angles.
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
    """Cosine and sine, exact for right angles."""
    count = right_angles(angle, math.pi / 2)
    if count is not None:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[count % 4]
    return cos(angle), sin(angle)


def unit_axis(xyz: Vector, what: str, where: str) -> Vector:
    """The unit vector along `xyz`; raises ModelError for zero, which is `what` there."""
    x, y, z = _about_one(xyz)
    length = norm(x, y, z)
    if length == 0.0:
        raise ModelError(f"{where}: the {what} is zero; give it a direction")
    return (x / length, y / length, z / length)


def _about_one(vector: Sequence[float]) -> Iterator[float]:
    """Return a vector times the power of two that brings its greatest number near one: tiny ones have few digits."""
    _, exponent = math.frexp(max(map(abs, vector)))
    return (math.ldexp(c, -exponent) for c in vector)


def inertia_at(frame: Pose, mass: float, moments: Sequence[float], where: str) -> Inertia:
    """The inertia of a link with its centre of mass at the origin of `frame`, in whose axes its moments are as in `Inertia`."""
    if mass < 0.0:
        raise ModelError(f"{where}: the mass is negative ({mass}); correct it")
    xx, xy, xz, yy, yz, zz = moments
    local: Matrix = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = matmul(matmul(frame.R, local), transpose(frame.R))
    return Inertia(mass, frame.p, (xx, xy, xz, yy, yz, zz))


def unused_inertias(bodies: Iterable[Body]) -> Iterator[tuple[str, str]]:
    """Yield the entry of a report for links whose greatest principal moment exceeds the sum of the two others."""
    bodies = tuple(bodies)
    excess = excess_moments([body.inertia for body in bodies])
    if impossible := [body.name for body, e in zip(bodies, excess, strict=True) if e > 1e-6]:
        yield "inertias that no rigid body can have", ", ".join(impossible)


def unlimited(limit: float, largest: float = LARGEST) -> float:
    """Infinity for the largest number there is, which stands for it where a limit must be written."""
    return math.copysign(math.inf, limit) if abs(limit) >= largest else limit


def ordered_limits(lower: float, upper: float, where: str) -> tuple[float, float]:
    """The limits; raises ModelError where the lower one is above the upper one."""
    if lower > upper:
        raise ModelError(f"{where}: the lower limit {lower} is above the upper limit {upper}; exchange or correct them")
    return lower, upper
