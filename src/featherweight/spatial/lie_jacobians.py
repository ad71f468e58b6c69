"""Jacobians of exponentials and logarithms of rotations and rigid motions.

    exp(v)⁻¹ exp(v + dv) = exp(J dv)                J = (1 - exp(-ad))/ad, the right Jacobian; ad(v) x = [v, x]
    log(exp(v) exp(dx)) = v + J⁻¹ dx                J⁻¹ = ad/(1 - exp(-ad))

For an angular velocity w with s = w . w, both are

    1 + a [w] + b [w]²                              [w] the cross product, a and b functions of s

    J       a = -(1 - cos x)/s    b = (1 - sinc x)/s                x = sqrt(s), sinc x = (sin x)/x
    J⁻¹     a = 1/2               b = (1 - h cot h)/(4 h²)          h = x/2

The ad of a motion, linear l and angular w, is [w] in both diagonal blocks and [l] in the upper right block. There, both have
the rate of the above along l, with a' and b' the derivatives by s:

    a [l] + b (l wᵀ + w lᵀ) + 2 (w . l) (a' [w] + b' w wᵀ - (b + s b') 1)

No coefficient loses a digit at small angles: those of J are series there, those of J⁻¹ sums of positive terms. There is no
branch, so scalars may be of any kind.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .lie import TINY, Quaternion, cotangent_rest, parted, power_series, side, sinc_of_half, sinc_rest
from .vectors import Mat3, Scalar, Vec3

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
