"""Lie groups of joint configurations: rotations as unit quaternions, rigid motions in space and in the plane; Jacobians.

    exp SO(3)   (w/2 sinc h, cos h)                                            h = |w|/2, sinc x = (sin x)/x
    exp SE(3)   l -> V(w) l = l + 1/2 sinc² h w x l + (1 - sinc 2h)/(4h²) w x (w x l)
    V(w)^-1 l = l - w x l / 2 + (1 - h cot h)/(4h²) w x (w x l)

The formulas are those of Solà, Deray and Atchuthan, "A micro Lie theory for state estimation in robotics" (2018), appendices B
to D, with half angles. Scalars may be of any kind, including NumPy arrays. There is no branch for tiny angles: `TINY` keeps
quotients defined. The coefficients (1 - sinc 2h)/(4h²) and (1 - h cot h)/(4h²) keep all digits there, so that derivatives keep
theirs.

The Jacobians are

    exp(v)⁻¹ exp(v + dv) = exp(J dv)                J = (1 - exp(-ad))/ad, the right Jacobian; ad(v) x = [v, x]
    log(exp(v) exp(dx)) = v + J⁻¹ dx                J⁻¹ = ad/(1 - exp(-ad))

For an angular velocity w with s = w . w, both are

    1 + a [w] + b [w]²                              [w] the cross product, a and b functions of s

    J       a = -(1 - cos x)/s    b = (1 - sinc x)/s                x = sqrt(s), sinc x = (sin x)/x
    J⁻¹     a = 1/2               b = (1 - h cot h)/(4 h²)          h = x/2

The ad of a motion, linear l and angular w, is [w] in both diagonal blocks and [l] in the upper right block. There, both have
the rate of the above along l, with a' and b' the derivatives by s:

    a [l] + b (l wᵀ + w lᵀ) + 2 (w . l) (a' [w] + b' w wᵀ - (b + s b') 1)

No coefficient loses a digit at small angles: those of J are series there, those of J⁻¹ sums of positive terms.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .vectors import Mat3, Scalar, Vec3, rotation_from_quaternion, sincos, sqrt

TINY = 1e-30  # [rad²] far below angles at which sin x and x differ
SIGN = 2.0**-62  # added to numbers whose sign is taken: a power of two, so that the sign of zero has the rate zero


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
        """Return the same rotation with s not negative."""
        sign = side(a.s)
        return Quaternion(sign * a.u, sign * a.s)

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


ASIDE = 0.0173  # thresholds that rotations of robots, whose entries are often 0, 1 or equal, do not meet by construction


def quaternion_of_matrix(R: Any) -> Quaternion:
    """Return the unit quaternion of a rotation matrix, with s not negative.

    The rows of 4 q qᵀ have the direction of q. Three signs choose a row whose diagonal entry is about 1 or greater, which
    loses no digit (after Shepperd 1978). Rates of a chosen sign, which rounding causes, change only the length of the row.
    """
    (a, b, c), (d, e, f), (g, h, i) = R
    x, y, z = h - f, c - g, d - b
    by_x = Quaternion(Vec3(1.0 + a - e - i, b + d, c + g), x)
    by_y = Quaternion(Vec3(b + d, 1.0 + e - a - i, f + h), y)
    by_z = Quaternion(Vec3(c + g, f + h, 1.0 + i - a - e), z)
    by_s = Quaternion(Vec3(x, y, z), 1.0 + a + e + i)
    lower, first, last = at_least(i, ASIDE), at_least(a - e, 2.0 * ASIDE), at_least(a + e, -3.0 * ASIDE)
    row = chosen(lower, chosen(last, by_s, by_z), chosen(first, by_x, by_y))
    q, sign = row.normalized(), side(row.s)  # the sign does not wait for the length
    return Quaternion(sign * q.u, sign * q.s)


def chosen(first: Scalar, a: Quaternion, b: Quaternion) -> Quaternion:
    """Return a if `first` is 1, and b if it is 0."""
    second = 1.0 - first
    return Quaternion(first * a.u + second * b.u, first * a.s + second * b.s)


def side(x: Scalar) -> Scalar:
    """Return -1 for numbers below zero, 1 for others."""
    moved = x + SIGN
    return moved / sqrt(moved * moved)


def at_least(x: Scalar, threshold: float) -> Scalar:
    """Return 1 for numbers from a threshold on, 0 for smaller ones."""
    return 0.5 + 0.5 * side(x - threshold)


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
    sinc, c, _ = sinc_of_half(w)
    once = w.cross(l)
    step = l + 0.5 * sinc * sinc * once + sinc_rest(sinc * c, w.dot(w)) * w.cross(once)  # sinc 2h = sinc h cos h
    return step, Quaternion(0.5 * sinc * w, c)


SINC_REST = tuple((-1.0) ** k / math.factorial(2 * k + 3) for k in range(9))  # (1 - sinc x)/s in s = x², to rounding for s < 1


def sinc_rest(sinc: Scalar, s: Scalar) -> Scalar:
    """Return (1 - sinc x)/s for s = x²: a series for s < 1, where the difference would lose digits."""
    far, near, o, m = parted(s)
    return far * ((1.0 - sinc) / o) + near * power_series(SINC_REST, m)


def parted(s: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return weights (1, 0) for s >= 1 and (0, 1) for s < 1, and for each a number that is s where the weight is 1.

    The first number is never less than 1, and the second is 0 where it does not count.
    """
    far = at_least(s, 1.0)
    near = 1.0 - far
    return far, near, s + near, s * near


def power_series(coefficients: tuple[float, ...], s: Scalar) -> Scalar:
    total: Scalar = 0.0
    for k in range(len(coefficients) - 1, -1, -1):
        total = total * s + coefficients[k]
    return total


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
    sign = side(q.s)
    w: Vec3 = (2.0 * sign * angle_over_sine(sign * q.s, q.u.dot(q.u))) * q.u
    return w


def log_se3(p: Vec3, q: Quaternion) -> tuple[Vec3, Vec3]:
    """Return l and w with exp_se3(l, w) = (p, q)."""
    sign, sine2 = side(q.s), q.u.dot(q.u)
    g = angle_over_sine(sign * q.s, sine2)
    w: Vec3 = (2.0 * sign * g) * q.u
    once = w.cross(p)
    return p - 0.5 * once + (0.25 * cotangent_rest(sign * q.s, sine2)) * w.cross(once), w


def log_se2(x: Scalar, y: Scalar, c: Scalar, s: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Return (x, y, angle) whose exp_se2 is (x, y, c, s)."""
    turned, cosine, sine = half_turn(c, s)
    g = angle_over_sine(cosine, sine * sine)
    half = turned * g * sine
    return g * cosine * x + half * y, g * cosine * y - half * x, 2.0 * half


def half_turn(c: Scalar, s: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Return the sign of an angle in ±π, and cosine and sine of half its size, from its cosine and sine."""
    ahead, turned = side(c), side(s)
    more = sqrt(0.5 * (1.0 + ahead * c))  # the greater and the lesser of cosine and sine of half the angle
    less = 0.5 * turned * s / more
    acute, obtuse = 0.5 + 0.5 * ahead, 0.5 - 0.5 * ahead
    return turned, acute * more + obtuse * less, acute * less + obtuse * more


def angle_over_sine(cosine: Scalar, sine2: Scalar) -> Scalar:
    """Return h / sin h for 0 <= h <= pi/2, from cos h and sin² h."""
    e = eighth_of(cosine, sine2)
    series: Scalar = 0.0
    for k in range(len(ARC)):
        series = series * e.t2 + ARC[k]
    return 8.0 * series / e.whole


class Eighth(NamedTuple):
    """Half-angle steps from sin h: t = tan(h/8), and sin h = whole t."""

    t2: Scalar
    whole: Scalar
    quarter: Scalar  # tan(h/4) / t
    half: Scalar  # tan(h/2) / tan(h/4)


def eighth_of(cosine: Scalar, sine2: Scalar) -> Eighth:
    """Return the steps for 0 <= h <= pi/2, from cos h and sin² h."""
    first = 1.0 + cosine
    t2 = sine2 / (first * first)  # squared tangents of h/2, h/4 and h/8
    half = 1.0 + sqrt(1.0 + t2)
    t2 = t2 / (half * half)
    quarter = 1.0 + sqrt(1.0 + t2)
    return Eighth(t2 / (quarter * quarter), first * half * quarter, quarter, half)


def cotangent_rest(cosine: Scalar, sine2: Scalar) -> Scalar:
    """Return F = (1 - h cot h)/h² for 0 <= h <= pi/2, from cos h and sin² h.

    F(h) = (F(h/2) + tan(h/2)/(h/2))/4, whose terms are positive, and no digit is lost at small angles.
    """
    e = eighth_of(cosine, sine2)
    rest: Scalar = 0.0  # of arctan(t)/t = 1 - t² rest, for t = tan(h/8)
    for k in range(len(ARC) - 1):
        rest = rest * e.t2 - ARC[k]
    tangent = 1.0 / (1.0 - e.t2 * rest)  # tan(x)/x for x = h/8, h/4 and h/2
    F = rest * tangent * tangent
    F = 0.25 * (F + tangent)
    tangent = 0.5 * e.quarter * tangent
    F = 0.25 * (F + tangent)
    tangent = 0.5 * e.half * tangent
    return 0.25 * (F + tangent)


ONE_LESS_COSINE_RATE = tuple((-1.0) ** k * k / math.factorial(2 * k + 2) for k in range(1, 10))  # of (1 - cos x)/s by s, in s
SINC_REST_RATE = tuple((-1.0) ** k * k / math.factorial(2 * k + 3) for k in range(1, 10))  # of (1 - sinc x)/s


class LieCoefficients(NamedTuple):
    """The coefficients a and b of a Jacobian, and their derivatives by s."""

    a: Scalar
    b: Scalar
    a_rate: Scalar
    b_rate: Scalar

    def opposite(f) -> LieCoefficients:
        """Return the coefficients of the Jacobian for the opposite velocity."""
        return LieCoefficients(0.0 - f.a, f.b, 0.0 - f.a_rate, f.b_rate)

    def turning(f, w: Vec3) -> Mat3:
        """Return the Jacobian of a rotation, which is the diagonal block of that of a motion."""
        u = f.b * w
        return _plus_skew(Mat3(u.x * w, u.y * w, u.z * w), f.a * w, 1.0 - u.dot(w))

    def moving(f, l: Vec3, w: Vec3) -> Mat3:
        """Return the upper right block of the Jacobian of a motion."""
        twice = 2.0 * w.dot(l)
        u, v = f.b * w, f.b * l + (twice * f.b_rate) * w
        outer = Mat3(v.x * w + u.x * l, v.y * w + u.y * l, v.z * w + u.z * l)
        return _plus_skew(outer, f.a * l + (twice * f.a_rate) * w, 0.0 - twice * (f.b + w.dot(w) * f.b_rate))


def of_exponential(w: Vec3) -> LieCoefficients:
    """Return the coefficients of J for an angular velocity of any size."""
    s = w.dot(w)
    half, cosine, _ = sinc_of_half(w)
    sinc, a = half * cosine, 0.5 * half * half
    b = sinc_rest(sinc, s)
    far, near, o, m = parted(s)
    a_rate = far * ((0.5 * sinc - a) / o) + near * power_series(ONE_LESS_COSINE_RATE, m)
    b_rate = far * (0.5 * (a - 3.0 * b) / o) + near * power_series(SINC_REST_RATE, m)
    return LieCoefficients(0.0 - a, b, 0.0 - a_rate, b_rate)


def of_logarithm(q: Quaternion, w: Vec3) -> LieCoefficients:
    """Return the coefficients of J⁻¹ for a unit quaternion and its logarithm w."""
    b, s = 0.25 * cotangent_rest(side(q.s) * q.s, q.u.dot(q.u)), w.dot(w)
    return LieCoefficients(0.5, b, 0.0, (1.0 - 12.0 * b + 4.0 * s * b * b) / (8.0 * s + TINY))


def _plus_skew(M: Mat3, v: Vec3, diagonal: Scalar) -> Mat3:
    """Return M + [v] + diagonal 1."""
    return Mat3(
        Vec3(M.x.x + diagonal, M.x.y - v.z, M.x.z + v.y),
        Vec3(M.y.x + v.z, M.y.y + diagonal, M.y.z - v.x),
        Vec3(M.z.x - v.y, M.z.y + v.x, M.z.z + diagonal),
    )
