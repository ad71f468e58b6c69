"""The groups of joints' configurations: rotations as unit quaternions, rigid motions in space and in the plane.

    exp SO(3)   (w/2 sinc h, cos h)                                            h = |w|/2, sinc x = (sin x)/x
    exp SE(3)   l -> V(w) l = sinc 2h l + 1/2 sinc² h w x l + (1 - sinc 2h)/(4h²) w (w . l)
    V(w)^-1 l = l - w x l / 2 + (1 - h cot h)/(4h²) w x (w x l)

As in Solà, Deray and Atchuthan, "A micro Lie theory for state estimation in robotics" (2018), appendices B to D, with half
angles. Exponentials take scalars of any kind, NumPy's arrays among them. They have no branch where angles are tiny: `TINY`
keeps quotients defined, and what (1 - sinc) loses there is lost to rounding of l anyway. Logarithms take floats and arrays: a
trace has no arc tangent.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .vectors import Mat3, Scalar, Vec3, rotation_from_quaternion, sincos, sqrt

TINY = 1e-30  # [rad²], far below where sin x and x differ in any digit


class Quaternion(NamedTuple):
    """Vector part u and scalar part s."""

    u: Vec3
    s: Scalar

    def product(a, b: Quaternion) -> Quaternion:
        """The Hamilton product."""
        return Quaternion(b.s * a.u + a.s * b.u + a.u.cross(b.u), a.s * b.s - a.u.dot(b.u))

    def conjugate(a) -> Quaternion:
        return Quaternion(Vec3(0.0 - a.u.x, 0.0 - a.u.y, 0.0 - a.u.z), a.s)

    def normalized(a) -> Quaternion:
        r = 1.0 / sqrt(a.u.dot(a.u) + a.s * a.s)
        return Quaternion(r * a.u, r * a.s)

    def matrix(a) -> Mat3:
        """The rotation matrix of a unit quaternion."""
        return rotation_from_quaternion(a.u.x, a.u.y, a.u.z, a.s)

    def rotate_back(a, x: Vec3) -> Vec3:
        """x turned by the inverse of a unit quaternion."""
        across = a.u.cross(x)
        y: Vec3 = x - (2.0 * a.s) * across + 2.0 * a.u.cross(across)
        return y

    def derivative(a, w: Vec3) -> Quaternion:
        """The rate of change for an angular velocity in the turned frame."""
        u = a.s * w + a.u.cross(w)
        return Quaternion(Vec3(0.5 * u.x, 0.5 * u.y, 0.5 * u.z), 0.0 - 0.5 * a.u.dot(w))


def quaternion_at(q: Any, k: int) -> Quaternion:
    """The quaternion (x, y, z, w) that begins at k."""
    return Quaternion(Vec3(q[k], q[k + 1], q[k + 2]), q[k + 3])


def sinc_of_half(w: Vec3) -> tuple[Scalar, Scalar, Scalar]:
    """sinc h, cos h and h² for half the length h of a vector."""
    h2 = 0.25 * w.dot(w) + TINY
    h = sqrt(h2)
    s, c = sincos(h)
    return s / h, c, h2


def exp_so3(w: Vec3) -> Quaternion:
    sinc, c, _ = sinc_of_half(w)
    return Quaternion(0.5 * sinc * w, c)


def exp_se3(l: Vec3, w: Vec3) -> tuple[Vec3, Quaternion]:
    """The displacement and the turn."""
    sinc, c, h2 = sinc_of_half(w)
    sinc2 = sinc * c  # sin(2h)/(2h)
    step = sinc2 * l + 0.5 * sinc * sinc * w.cross(l) + (0.25 * (1.0 - sinc2) / h2 * w.dot(l)) * w
    return step, Quaternion(0.5 * sinc * w, c)


def exp_se2(x: Scalar, y: Scalar, angle: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """The displacement, and cosine and sine of the turn."""
    half = 0.5 * angle
    h = sqrt(half * half + TINY)
    s, c = sincos(h)
    sinc = s / h
    sine = half * sinc  # of half the turn
    return sinc * (c * x - sine * y), sinc * (sine * x + c * y), c * c - sine * sine, 2.0 * sine * c


# Logarithms, of floats and arrays

SMALL = 0.25  # [rad]: below, the truncated series is exact to rounding


def log_so3(q: Quaternion) -> Vec3:
    """The turn by at most pi that a unit quaternion, or its negative, is."""
    side = _where(q.s < 0.0, -1.0, 1.0)
    sine = sqrt(q.u.dot(q.u))
    half = _arctan2(sine, side * q.s)
    w: Vec3 = (2.0 * side / _sinc(half)) * q.u
    return w


def log_se3(p: Vec3, q: Quaternion) -> tuple[Vec3, Vec3]:
    """l and w with exp_se3(l, w) = (p, q)."""
    w = log_so3(q)
    once = w.cross(p)
    return p - 0.5 * once + _cotangent_remainder(sqrt(w.dot(w))) * w.cross(once), w


def log_se2(x: Scalar, y: Scalar, c: Scalar, s: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(x, y, angle) with exp_se2 of them (x, y, c, s)."""
    half = 0.5 * _arctan2(s, c)
    along = sincos(half)[1] / _sinc(half)
    return along * x + half * y, along * y - half * x, 2.0 * half


def _where(condition: Any, a: Scalar, b: Scalar) -> Scalar:
    if isinstance(condition, np.ndarray):
        return np.where(condition, a, b)
    return a if condition else b


def _arctan2(y: Scalar, x: Scalar) -> Scalar:
    return math.atan2(y, x) if isinstance(y, float) else np.arctan2(y, x)


def _sinc(x: Scalar) -> Scalar:
    zero = x == 0.0
    return _where(zero, 1.0, sincos(x)[0] / _where(zero, 1.0, x))


def _cotangent_remainder(angle: Scalar) -> Scalar:
    """(1 - h cot h) / x² with h = x/2, for 0 <= x <= pi."""
    small = angle < SMALL
    h2 = 0.25 * _where(small, angle, SMALL) ** 2
    series = (1 / 3 + h2 * (1 / 45 + h2 * (2 / 945 + h2 * (1 / 4725 + h2 * (2 / 93555))))) / 4
    x = _where(small, SMALL, angle)
    return _where(small, series, (1 - sincos(0.5 * x)[1] / _sinc(0.5 * x)) / x**2)
