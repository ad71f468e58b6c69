"""Vectors and matrices of size three, as named tuples of scalars."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .elementary import sin_and_cos, sines_and_cosines

Scalar = Any  # a float, a traced expression, or an array


def sincos(x: Scalar) -> tuple[Scalar, Scalar]:
    """Return sine and cosine of an angle in radians, the same on every machine; NaN for an infinite angle."""
    if isinstance(x, float):
        return sin_and_cos(x)
    if isinstance(x, np.ndarray):
        return sines_and_cosines(x)
    return x.sin(), x.cos()


def sqrt(x: Scalar) -> Scalar:
    """Return the square root; NaN for a negative number."""
    if isinstance(x, float):
        return math.sqrt(x) if x >= 0.0 else math.nan
    return np.sqrt(x) if isinstance(x, np.ndarray) else x.sqrt()


class Vec3(NamedTuple):
    """A vector of three scalars."""

    x: Scalar
    y: Scalar
    z: Scalar

    def __add__(a, b: Vec3) -> Vec3:  # type: ignore[override]
        return Vec3(a.x + b.x, a.y + b.y, a.z + b.z)

    def __sub__(a, b: Vec3) -> Vec3:
        return Vec3(a.x - b.x, a.y - b.y, a.z - b.z)

    def __rmul__(a, s: Scalar) -> Vec3:
        return Vec3(s * a.x, s * a.y, s * a.z)

    def dot(a, b: Vec3) -> Scalar:
        return a.x * b.x + a.y * b.y + a.z * b.z

    def cross(a, b: Vec3) -> Vec3:
        return Vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)

    def spin(a, c: Scalar, s: Scalar) -> Vec3:
        """Rotate about z: return Rz a."""
        return Vec3(c * a.x - s * a.y, s * a.x + c * a.y, a.z)

    def cycle(a) -> Vec3:
        """Return the same vector with the axes renamed to y, z, x."""
        return Vec3(a.y, a.z, a.x)


Vec3.__array_ufunc__ = None  # type: ignore[attr-defined]  # so that an array times a vector is a vector of arrays


class Mat3(NamedTuple):
    """A 3x3 matrix by rows."""

    x: Vec3
    y: Vec3
    z: Vec3

    def __add__(a, b: Mat3) -> Mat3:  # type: ignore[override]
        return Mat3(a.x + b.x, a.y + b.y, a.z + b.z)

    def __sub__(a, b: Mat3) -> Mat3:
        return Mat3(a.x - b.x, a.y - b.y, a.z - b.z)

    def __matmul__(a, v: Vec3) -> Vec3:
        return Vec3(a.x.dot(v), a.y.dot(v), a.z.dot(v))

    def transpose(a) -> Mat3:
        return Mat3(Vec3(a.x.x, a.y.x, a.z.x), Vec3(a.x.y, a.y.y, a.z.y), Vec3(a.x.z, a.y.z, a.z.z))

    def product(a, b: Mat3) -> Mat3:
        """Return the matrix product a b."""
        t = b.transpose()
        return Mat3(t @ a.x, t @ a.y, t @ a.z)

    def spin(a, c: Scalar, s: Scalar) -> Mat3:
        """Return Rz a Rz^T, with four products for the upper left block: its trace and skew part do not change."""
        k = s * (a.y.y - a.x.x) - c * (a.x.y + a.y.x)
        sk, ck = s * k, c * k
        right = Vec3(a.x.z, a.y.z, a.z.z).spin(c, s)
        below = a.z.spin(c, s)
        return Mat3(Vec3(a.x.x + sk, (0.0 - ck) - a.y.x, right.x), Vec3((0.0 - ck) - a.x.y, a.y.y - sk, right.y), below)

    def cycle(a) -> Mat3:
        """Return the same matrix with the axes renamed to y, z, x."""
        return Mat3(a.y.cycle(), a.z.cycle(), a.x.cycle())


class Sym3(NamedTuple):
    """A symmetric 3x3 matrix by its six distinct entries."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yy: Scalar
    yz: Scalar
    zz: Scalar

    def __add__(a, b: Sym3) -> Sym3:  # type: ignore[override]
        return Sym3(a.xx + b.xx, a.xy + b.xy, a.xz + b.xz, a.yy + b.yy, a.yz + b.yz, a.zz + b.zz)

    def __sub__(a, b: Sym3) -> Sym3:
        return Sym3(a.xx - b.xx, a.xy - b.xy, a.xz - b.xz, a.yy - b.yy, a.yz - b.yz, a.zz - b.zz)

    def __matmul__(a, v: Vec3) -> Vec3:
        return Vec3(
            a.xx * v.x + a.xy * v.y + a.xz * v.z,
            a.xy * v.x + a.yy * v.y + a.yz * v.z,
            a.xz * v.x + a.yz * v.y + a.zz * v.z,
        )

    def spin(a, c: Scalar, s: Scalar) -> Sym3:
        """Return Rz a Rz^T, with four products for the upper left block."""
        k = s * (a.yy - a.xx) - (c + c) * a.xy  # c + c is often a constant, or shared
        sk = s * k
        side = Vec3(a.xz, a.yz, a.zz).spin(c, s)
        return Sym3(a.xx + sk, (0.0 - c * k) - a.xy, side.x, a.yy - sk, side.y, a.zz)

    def cycle(a) -> Sym3:
        """Return the same matrix with the axes renamed to y, z, x."""
        return Sym3(a.yy, a.yz, a.xy, a.zz, a.xz, a.xx)

    def rotate(a, R: Mat3) -> Sym3:
        """Return R a R^T for any rotation R."""
        x, y, z = a @ R.x, a @ R.y, a @ R.z
        return Sym3(R.x.dot(x), R.x.dot(y), R.x.dot(z), R.y.dot(y), R.y.dot(z), R.z.dot(z))


def rotation_from_quaternion(x: Scalar, y: Scalar, z: Scalar, w: Scalar) -> Mat3:
    """Return the rotation matrix of a unit quaternion with scalar part w."""
    a, b, c = x + x, y + y, z + z
    xx, yy, zz = a * x, b * y, c * z
    xy, xz, yz = a * y, a * z, b * z
    wx, wy, wz = a * w, b * w, c * w
    return Mat3(
        Vec3(1.0 - (yy + zz), xy - wz, xz + wy),
        Vec3(xy + wz, 1.0 - (xx + zz), yz - wx),
        Vec3(xz - wy, yz + wx, 1.0 - (xx + yy)),
    )


ZERO3 = Vec3(0.0, 0.0, 0.0)
ZERO_SYM3 = Sym3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
IDENTITY3 = Mat3(Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))
