"""Jacobians of exponentials and logarithms of the groups of joints' configurations: functions of ad(v) x = [v, x], of arrays.

    exp(v)⁻¹ x exp(v) = exp(-ad) x                  the tangent x of a configuration q in q exp(v)
    exp(v)⁻¹ exp(v + dv) = exp(J dv)                J = (1 - exp(-ad))/ad, the right Jacobian
    log(exp(v) exp(dx)) = v + J⁻¹ dx                J⁻¹ = ad/(1 - exp(-ad))

For velocities that rotate by an angle x, ad (ad² + x²)² = 0 in all of these groups. With E and O the even and the odd part of
a function, so that f(ad) = E(x²) + ad O(x²) for ad = i x, and ' for derivatives by x²,

    f(ad) = E(0) + (O - x² O') ad + (x² E' - 2 (E - E(0)))/x² ad² - O' ad³ + (x² E' - (E - E(0)))/x⁴ ad⁴

For a rotation w this is E(0) + O [w] + b [w]², with b = -(E - E(0))/x² and [w] the cross product. The ad of a motion, linear l
and angular w, is [w] in both diagonal blocks and [l] in the upper right block, where f(ad) has

    O [l] + b (l wᵀ + w lᵀ) + 2 (w . l) (O' [w] - c w wᵀ + (x² c - b) 1)        c = (x² E' - (E - E(0)))/x⁴
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .vectors import Mat3, Scalar, Vec3, sincos, sqrt

Array = npt.NDArray[np.float64]
Values = Callable[[Scalar], tuple[Scalar, Scalar, Scalar, Scalar]]

ANGLE = 0.5  # [rad] smaller angles use series; for greater ones, differences lose no significant digit
TERMS = 10  # of the series, exact to rounding


class AdjointFunction(NamedTuple):
    """A function f, given by the series of E and O in x², and the values of E, E', O and O' for an angle x."""

    even: Array
    odd: Array
    values: Values

    def __call__(self, ad: Array, angle: Array) -> Array:
        """Return f(ad) (..., n, n) for ad (..., n, n) of velocities that rotate by `angle` (...) [rad]."""
        unit, c0, s = np.eye(ad.shape[-1]), self.even[0], angle * angle
        odd, odd_rate, b, c = self._coefficients(angle)
        c1, c2, c3, c4 = (np.asarray(x)[..., None, None] for x in (odd - s * odd_rate, b + s * c, -odd_rate, c))
        result: Array = c0 * unit + ad @ (c1 * unit + ad @ (c2 * unit + ad @ (c3 * unit + c4 * ad)))
        return result

    def of_turn(self, w: Vec3) -> list[list[Scalar]]:
        """Return f(ad) by rows for an angular velocity of numbers or arrays."""
        odd, _, b, _ = self._coefficients(sqrt(w.dot(w)))
        return self._turning(w, odd, b)

    def of_motion(self, l: Vec3, w: Vec3) -> tuple[list[list[Scalar]], list[list[Scalar]]]:
        """Return the diagonal and the upper right block of f(ad), by rows, for a linear and an angular velocity."""
        x2, along = w.dot(w), w.dot(l)
        odd, odd_rate, b, c = self._coefficients(sqrt(x2))
        twice = 2.0 * along
        outer = Mat3(*((b * l[i] - twice * c * w[i]) * w + (b * w[i]) * l for i in range(3)))
        skew = odd * l + (twice * odd_rate) * w
        return self._turning(w, odd, b), _plus_skew(outer, skew, twice * (x2 * c - b))

    def _turning(self, w: Vec3, odd: Scalar, b: Scalar) -> list[list[Scalar]]:
        outer = Mat3(*((b * w[i]) * w for i in range(3)))
        return _plus_skew(outer, odd * w, self.even[0] - b * w.dot(w))

    def _coefficients(self, angle: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        """Return O, O', b and c of the header."""
        if isinstance(angle, float):
            return self._near(angle * angle) if angle < ANGLE else self._far(angle)
        small = angle < ANGLE
        near, far = self._near(np.minimum(angle, ANGLE) ** 2), self._far(np.maximum(angle, ANGLE))
        o, r, b, c = (np.where(small, x, y) for x, y in zip(near, far, strict=True))
        return o, r, b, c

    def _near(self, s: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        even, odd = self.even.tolist(), self.odd.tolist()
        o, r, b, c = odd[-1], (TERMS - 1) * odd[-1], -even[-1], (TERMS - 2) * even[-1]
        for k in range(TERMS - 2, 0, -1):
            o, r, b = o * s + odd[k], r * s + k * odd[k], b * s - even[k]
            if k > 1:
                c = c * s + (k - 1) * even[k]
        return o * s + odd[0], r, b, c

    def _far(self, x: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        even, even_rate, odd, odd_rate = self.values(x)
        s = x * x
        grown = even - self.even[0]
        return odd, odd_rate, -grown / s, (s * even_rate - grown) / (s * s)


def _plus_skew(M: Mat3, v: Vec3, diagonal: Scalar) -> list[list[Scalar]]:
    """Return M + [v] + diagonal 1, by rows."""
    (a, b, c), (d, e, f), (g, h, i) = M
    return [
        [a + diagonal, b - v.z, c + v.y],
        [d + v.z, e + diagonal, f - v.x],
        [g - v.y, h + v.x, i + diagonal],
    ]


def _quotient(a: Array, b: Array) -> Array:
    """Return the series of a quotient."""
    c: list[float] = []
    for k in range(TERMS):
        c.append(float((a[k] - sum(c[j] * b[k - j] for j in range(k))) / b[0]))
    return np.array(c)


def _alternating(factorials: Sequence[int]) -> Array:
    return np.array([(-1.0) ** k / math.factorial(n) for k, n in enumerate(factorials)])


def _sinc_and_rate(x: Scalar) -> tuple[Scalar, Scalar]:
    sine, cosine = sincos(x)
    sinc = sine / x
    return sinc, (cosine - sinc) / (2.0 * x * x)


def _inverse_values(x: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    sinc, rate = _sinc_and_rate(x)
    return sincos(x)[1], -0.5 * sinc, -sinc, -rate


def _jacobian_values(x: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    sinc, rate = _sinc_and_rate(x)
    half = sincos(0.5 * x)[0] / x
    odd = -2.0 * half * half
    return sinc, rate, odd, -(0.5 * sinc + odd) / (x * x)


def _inverse_jacobian_values(x: Scalar) -> tuple[Scalar, Scalar, float, float]:
    h = 0.5 * x
    sine, cosine = sincos(h)
    return h * cosine / sine, (cosine - h / sine) / (8.0 * h * sine), 0.5, 0.0


_COS, _SINC = (_alternating([2 * k + first for k in range(TERMS)]) for first in (0, 1))
_ONE_LESS_COS = _alternating([2 * k + 2 for k in range(TERMS)])  # (1 - cos x)/x²
_HALVES = 0.25 ** np.arange(TERMS)
_HALF = 0.5 * np.eye(TERMS)[0]

inverse_adjoint = AdjointFunction(_COS, -_SINC, _inverse_values)  # exp(-ad), of exp(v)^-1
right_jacobian = AdjointFunction(_SINC, -_ONE_LESS_COS, _jacobian_values)  # (1 - exp(-ad))/ad
inverse_right_jacobian = AdjointFunction(_quotient(_COS * _HALVES, _SINC * _HALVES), _HALF, _inverse_jacobian_values)


def ad_so3(w: Array) -> Array:
    """Return ad (..., 3, 3) of angular velocities (..., 3)."""
    x, y, z = (w[..., k] for k in range(3))
    ad = np.zeros((*w.shape, 3))
    ad[..., 0, 1], ad[..., 0, 2], ad[..., 1, 2] = -z, y, -x
    ad[..., 1, 0], ad[..., 2, 0], ad[..., 2, 1] = z, -y, x
    return ad


def ad_se3(v: Array) -> Array:
    """Return ad (..., 6, 6) of velocities (..., 6), linear and angular."""
    ad = np.zeros((*v.shape, 6))
    ad[..., :3, :3] = ad[..., 3:, 3:] = ad_so3(v[..., 3:])
    ad[..., :3, 3:] = ad_so3(v[..., :3])
    return ad


def ad_se2(v: Array) -> Array:
    """Return ad (..., 3, 3) of velocities (..., 3), linear and angular."""
    ad = np.zeros((*v.shape, 3))
    ad[..., 0, 1], ad[..., 0, 2] = -v[..., 2], v[..., 1]
    ad[..., 1, 0], ad[..., 1, 2] = v[..., 2], -v[..., 0]
    return ad
