"""Lie groups of joint configurations: rotations as unit quaternions, rigid motions in space and in the plane.

    exp SO(3)   (w/2 sinc h, cos h)                                            h = |w|/2, sinc x = (sin x)/x
    exp SE(3)   l -> V(w) l = sinc 2h l + 1/2 sinc² h w x l + (1 - sinc 2h)/(4h²) w (w . l)
    V(w)^-1 l = l - w x l / 2 + (1 - h cot h)/(4h²) w x (w x l)

The formulas are those of Solà, Deray and Atchuthan, "A micro Lie theory for state estimation in robotics" (2018), appendices B
to D, with half angles. Scalars may be of any kind, including NumPy arrays. There is no branch for tiny angles: `TINY` keeps
quotients defined, and the digits that (1 - sinc) or (1 - h cot h) lose there are below the rounding of l.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .vectors import Mat3, Scalar, Vec3, rotation_from_quaternion, sincos, sqrt

TINY = 1e-30  # [rad²] far below angles at which sin x and x differ


class Quaternion(NamedTuple):
    """A quaternion with the vector part u and the scalar part s."""

    u: Vec3
    s: Scalar

    def product(a, b: Quaternion) -> Quaternion:
        """Return the Hamilton product."""
        return Quaternion(b.s * a.u + a.s * b.u + a.u.cross(b.u), a.s * b.s - a.u.dot(b.u))

    def conjugate(a) -> Quaternion:
        return Quaternion(Vec3(0.0 - a.u.x, 0.0 - a.u.y, 0.0 - a.u.z), a.s)

    def normalized(a) -> Quaternion:
        r = 1.0 / sqrt(a.u.dot(a.u) + a.s * a.s)
        return Quaternion(r * a.u, r * a.s)

    def upright(a) -> Quaternion:
        """Return the same rotation with s not negative, for floats or arrays."""
        side: Any = np.where(a.s < 0.0, -1.0, 1.0) if isinstance(a.s, np.ndarray) else -1.0 if a.s < 0.0 else 1.0
        return Quaternion(side * a.u, side * a.s)

    def matrix(a) -> Mat3:
        """Return the rotation matrix of a unit quaternion."""
        return rotation_from_quaternion(a.u.x, a.u.y, a.u.z, a.s)

    def rotate_back(a, x: Vec3) -> Vec3:
        """Return x rotated by the inverse of a unit quaternion."""
        across = a.u.cross(x)
        y: Vec3 = x - (2.0 * a.s) * across + 2.0 * a.u.cross(across)
        return y

    def derivative(a, w: Vec3) -> Quaternion:
        """Return the rate of change for an angular velocity in the rotated frame."""
        u = a.s * w + a.u.cross(w)
        return Quaternion(Vec3(0.5 * u.x, 0.5 * u.y, 0.5 * u.z), 0.0 - 0.5 * a.u.dot(w))


def quaternion_of_matrix(R: Any) -> Quaternion:
    """Return the unit quaternion of a rotation matrix, with s not negative. Its entries are floats, or arrays of one shape.

    The rows of 4 q qᵀ have its direction; the row with the greatest diagonal entry loses no digit (Shepperd 1978).
    """
    (a, b, c), (d, e, f), (g, h, i) = R
    x, y, z = h - f, c - g, d - b
    rows = (
        (1.0 + a - e - i, b + d, c + g, x),
        (b + d, 1.0 + e - a - i, f + h, y),
        (c + g, f + h, 1.0 + i - a - e, z),
        (x, y, z, 1.0 + a + e + i),
    )
    if isinstance(a, np.ndarray):
        best = np.argmax([row[k] for k, row in enumerate(rows)], axis=0)
        x, y, z, s = (np.choose(best, column) for column in rows)
    else:
        k = 0
        for j in range(1, 4):
            k = j if rows[j][j] > rows[k][k] else k
        x, y, z, s = rows[k]
    return Quaternion(Vec3(x, y, z), s).normalized().upright()


def quaternion_at(q: Any, k: int) -> Quaternion:
    """Return the quaternion (x, y, z, w) that starts at index k."""
    return Quaternion(Vec3(q[k], q[k + 1], q[k + 2]), q[k + 3])


def sinc_of_half(w: Vec3) -> tuple[Scalar, Scalar, Scalar]:
    """Return sinc h, cos h and h² for half the length h of a vector."""
    h2 = 0.25 * w.dot(w) + TINY
    h = sqrt(h2)
    s, c = sincos(h)
    return s / h, c, h2


def exp_so3(w: Vec3) -> Quaternion:
    sinc, c, _ = sinc_of_half(w)
    return Quaternion(0.5 * sinc * w, c)


def exp_se3(l: Vec3, w: Vec3) -> tuple[Vec3, Quaternion]:
    """Return the displacement and the rotation."""
    sinc, c, h2 = sinc_of_half(w)
    sinc2 = sinc * c  # sin(2h)/(2h)
    step = sinc2 * l + 0.5 * sinc * sinc * w.cross(l) + (0.25 * (1.0 - sinc2) / h2 * w.dot(l)) * w
    return step, Quaternion(0.5 * sinc * w, c)


def exp_se2(x: Scalar, y: Scalar, angle: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return the displacement, and cosine and sine of the rotation."""
    half = 0.5 * angle
    h = sqrt(half * half + TINY)
    s, c = sincos(h)
    sinc = s / h
    sine = half * sinc  # sine of half the angle
    return sinc * (c * x - sine * y), sinc * (sine * x + c * y), c * c - sine * sine, 2.0 * sine * c


# Logarithms. Angles follow from sines and cosines of their eighths, whose tangents have a short series.

ARC = tuple((-1.0) ** k / (2 * k + 1) for k in range(11, -1, -1))  # arctan(t)/t in t², to rounding for t < tan(pi/16)


def log_so3(q: Quaternion) -> Vec3:
    """Return the rotation vector, of length at most pi, of a unit quaternion or its negative."""
    side = _side(q.s)
    w: Vec3 = (2.0 * side * angle_over_sine(side * q.s, q.u.dot(q.u))) * q.u
    return w


def log_se3(p: Vec3, q: Quaternion) -> tuple[Vec3, Vec3]:
    """Return l and w with exp_se3(l, w) = (p, q)."""
    side, sine2 = _side(q.s), q.u.dot(q.u)
    g = angle_over_sine(side * q.s, sine2)
    w: Vec3 = (2.0 * side * g) * q.u
    once = w.cross(p)
    return p - 0.5 * once + ((1.0 - g * (side * q.s)) / (w.dot(w) + TINY)) * w.cross(once), w


def log_se2(x: Scalar, y: Scalar, c: Scalar, s: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Return (x, y, angle) whose exp_se2 is (x, y, c, s)."""
    ahead, turned = _side(c), _side(s)
    more = sqrt(0.5 * (1.0 + ahead * c))  # the greater and the lesser of cosine and sine of half the angle
    less = 0.5 * turned * s / more
    acute, obtuse = 0.5 + 0.5 * ahead, 0.5 - 0.5 * ahead
    cosine, sine = acute * more + obtuse * less, acute * less + obtuse * more
    g = angle_over_sine(cosine, sine * sine)
    half = turned * g * sine
    return g * cosine * x + half * y, g * cosine * y - half * x, 2.0 * half


def _side(x: Scalar) -> Scalar:
    """Return -1 for numbers below zero, 1 for others."""
    moved = x + 1e-150
    return moved / sqrt(moved * moved)


def angle_over_sine(cosine: Scalar, sine2: Scalar) -> Scalar:
    """Return h / sin h for 0 <= h <= pi/2, from cos h and sin² h."""
    whole = 1.0 + cosine
    t2 = sine2 / (whole * whole)  # squared tangents of h/2, h/4 and h/8
    for _ in range(2):
        r = 1.0 + sqrt(1.0 + t2)
        whole, t2 = whole * r, t2 / (r * r)
    series: Scalar = 0.0
    for k in range(len(ARC)):
        series = series * t2 + ARC[k]
    return 8.0 * series / whole
