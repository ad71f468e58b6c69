"""Jacobians of exponentials and logarithms of the groups of joints' configurations: functions of ad(v) x = [v, x], of arrays.

    exp(v)⁻¹ x exp(v) = exp(-ad) x                  the tangent x of a configuration q in q exp(v)
    exp(v)⁻¹ exp(v + dv) = exp(J dv)                J = (1 - exp(-ad))/ad, the right Jacobian
    log(exp(v) exp(dx)) = v + J⁻¹ dx                J⁻¹ = ad/(1 - exp(-ad))

For velocities that turn by an angle x, ad (ad² + x²)² = 0 in all of these groups. So with E and O the even and the odd part of
a function, f(ad) = E(x²) + ad O(x²) where ad is i x, and ' for derivatives by x²,

    f(ad) = E(0) + (O - x² O') ad + (x² E' - 2 (E - E(0)))/x² ad² - O' ad³ + (x² E' - (E - E(0)))/x⁴ ad⁴
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Values = Callable[[Array], tuple[Any, Any, Any, Any]]

ANGLE = 0.5  # [rad]: below, series are taken; above, differences lose no digit that counts
TERMS = 10  # of the series, exact to rounding


class AdjointFunction(NamedTuple):
    """f by the series of E and O in x², and the values of E, E', O and O' for an angle x."""

    even: Array
    odd: Array
    values: Values

    def __call__(self, ad: Array, angle: Array) -> Array:
        """f(ad) (..., n, n) for ad (..., n, n) of velocities that turn by `angle` (...) [rad]."""
        unit, c0 = np.eye(ad.shape[-1]), self.even[0]
        c1, c2, c3, c4 = (c[..., None, None] for c in self._coefficients(angle))
        result: Array = c0 * unit + ad @ (c1 * unit + ad @ (c2 * unit + ad @ (c3 * unit + c4 * ad)))
        return result

    def _coefficients(self, angle: Array) -> list[Array]:
        k, s = np.arange(TERMS), np.minimum(angle, ANGLE) ** 2
        series = ((1 - k) * self.odd, ((k - 2) * self.even)[1:], (-k * self.odd)[1:], ((k - 1) * self.even)[2:])
        x = np.maximum(angle, ANGLE)
        even, even_rate, odd, odd_rate = self.values(x)
        s0 = x * x
        grown, carried = even - self.even[0], s0 * even_rate
        closed = (odd - s0 * odd_rate, (carried - 2.0 * grown) / s0, -odd_rate, (carried - grown) / s0**2)
        small = angle < ANGLE
        return [np.where(small, np.polynomial.polynomial.polyval(s, c), y) for c, y in zip(series, closed, strict=True)]


def _quotient(a: Array, b: Array) -> Array:
    """The series of a quotient."""
    c: list[float] = []
    for k in range(TERMS):
        c.append(float((a[k] - sum(c[j] * b[k - j] for j in range(k))) / b[0]))
    return np.array(c)


def _alternating(factorials: Sequence[int]) -> Array:
    return np.array([(-1.0) ** k / math.factorial(n) for k, n in enumerate(factorials)])


def _sinc_and_rate(x: Array) -> tuple[Array, Array]:
    sinc = np.sin(x) / x
    return sinc, (np.cos(x) - sinc) / (2.0 * x * x)


def _inverse_values(x: Array) -> tuple[Array, Array, Array, Array]:
    sinc, rate = _sinc_and_rate(x)
    return np.cos(x), -0.5 * sinc, -sinc, -rate


def _jacobian_values(x: Array) -> tuple[Array, Array, Array, Array]:
    sinc, rate = _sinc_and_rate(x)
    odd = -2.0 * (np.sin(0.5 * x) / x) ** 2
    return sinc, rate, odd, -(0.5 * sinc + odd) / (x * x)


def _inverse_jacobian_values(x: Array) -> tuple[Array, Array, float, float]:
    h = 0.5 * x
    sine, cosine = np.sin(h), np.cos(h)
    return h * cosine / sine, (cosine - h / sine) / (8.0 * h * sine), 0.5, 0.0


_COS, _SINC = (_alternating([2 * k + first for k in range(TERMS)]) for first in (0, 1))
_ONE_LESS_COS = _alternating([2 * k + 2 for k in range(TERMS)])  # (1 - cos x)/x²
_HALVES = 0.25 ** np.arange(TERMS)
_HALF = 0.5 * np.eye(TERMS)[0]

inverse_adjoint = AdjointFunction(_COS, -_SINC, _inverse_values)  # exp(-ad), of exp(v)^-1
right_jacobian = AdjointFunction(_SINC, -_ONE_LESS_COS, _jacobian_values)  # (1 - exp(-ad))/ad
inverse_right_jacobian = AdjointFunction(_quotient(_COS * _HALVES, _SINC * _HALVES), _HALF, _inverse_jacobian_values)


def ad_so3(w: Array) -> Array:
    """ad (..., 3, 3) of angular velocities (..., 3)."""
    x, y, z = (w[..., k] for k in range(3))
    ad = np.zeros((*w.shape, 3))
    ad[..., 0, 1], ad[..., 0, 2], ad[..., 1, 2] = -z, y, -x
    ad[..., 1, 0], ad[..., 2, 0], ad[..., 2, 1] = z, -y, x
    return ad


def ad_se3(v: Array) -> Array:
    """ad (..., 6, 6) of velocities (..., 6), linear and angular."""
    ad = np.zeros((*v.shape, 6))
    ad[..., :3, :3] = ad[..., 3:, 3:] = ad_so3(v[..., 3:])
    ad[..., :3, 3:] = ad_so3(v[..., :3])
    return ad


def ad_se2(v: Array) -> Array:
    """ad (..., 3, 3) of velocities (..., 3), linear and angular."""
    ad = np.zeros((*v.shape, 3))
    ad[..., 0, 1], ad[..., 0, 2] = -v[..., 2], v[..., 1]
    ad[..., 1, 0], ad[..., 1, 2] = v[..., 2], -v[..., 0]
    return ad
