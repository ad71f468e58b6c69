"""Correctly rounded elementary functions of floats, with the same bits on every machine.

The functions of `math` are those of the system's library, whose last digit differs between systems and processors. The
functions here compute with integers: n stands for n / 2^bits. Each function increases the number of bits until both ends of
its error interval round to the same float. Angles and logarithms start from the library's value, whatever its rounding, and
add a correction. These functions are for the numbers of a robot, which are read once: a call takes about 20 µs.

`math.sqrt`, `math.fsum` and float arithmetic are correctly rounded on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

BITS = 128  # initial number; the hardest sine of a double needs about as many
GUARD = 16  # further bits of intermediate results: their errors are below 2^GUARD units
ERROR = 16  # largest error of results, in units


def sin_and_cos(x: float) -> tuple[float, float]:
    """Return sine and cosine of an angle [rad]; NaN for an infinite angle."""
    if not math.isfinite(x):
        return math.nan, math.nan
    return _known_sin_and_cos(x) if x else (x, 1.0)  # the cache does not distinguish 0 and -0


@lru_cache(4096)
def _known_sin_and_cos(x: float) -> tuple[float, float]:
    sine, cosine = _rounded(lambda bits: _sin_and_cos(x, bits), x)
    return sine, cosine


def sin(x: float) -> float:
    """Return the sine of an angle [rad]."""
    return sin_and_cos(x)[0]


def cos(x: float) -> float:
    """Return the cosine of an angle [rad]."""
    return sin_and_cos(x)[1]


def atan2(y: float, x: float) -> float:
    """Return the angle [rad] of the point (x, y), in [-π, π]."""
    if y == 0.0 or not (math.isfinite(x) and math.isfinite(y)):
        return math.atan2(y, x)  # multiples of π/4
    near, exponent = math.atan2(y, x), max(math.frexp(x)[1], math.frexp(y)[1])
    return _rounded(lambda bits: (_angle(near, _fixed(y, bits - exponent), _fixed(x, bits - exponent), bits),), near)[0]


def acos(x: float) -> float:
    """Return the angle [rad] in [0, π] whose cosine is x. Raises ValueError for x outside of [-1, 1]."""
    near = math.acos(x)
    if abs(x) == 1.0:
        return near

    def angle(bits: int) -> tuple[int]:
        cosine = _fixed(x, bits)
        return (_angle(near, math.isqrt((1 << 2 * bits) - cosine * cosine), cosine, bits),)

    return _rounded(angle, near)[0]


def exp(x: float) -> float:
    """Return e to the power x; the result must not overflow."""
    if x == 0.0 or not -700.0 < x < 709.0:
        return math.exp(x)  # 1, an overflow, or a number that no robot has
    return _rounded(lambda bits: (_exponential(x, bits),), math.exp(x))[0]


def log(x: float) -> float:
    """Return the natural logarithm of a positive number."""
    near = math.log(x)
    if x == 1.0 or not math.isfinite(near):
        return near
    size = abs(math.frexp(x)[1])

    def logarithm(bits: int) -> tuple[int]:
        rest = (_exponential(-near, bits + size) * _fixed(x, bits + size) >> bits + 2 * size) - (1 << bits)  # x / e^near - 1
        return (_fixed(near, bits) + _series(rest, -rest, bits, lambda k: (k, k + 1)),)

    return _rounded(logarithm, near)[0]


def norm(*x: float) -> float:
    """Return the length of a vector, within one unit of the last digit and without overflow."""
    exponent = math.frexp(max(map(abs, x)))[1]
    scaled = [math.ldexp(c, -exponent) for c in x]
    return math.ldexp(math.sqrt(math.fsum(c * c for c in scaled)), exponent)


# ---- integers for numbers


def _rounded(values: Callable[[int], tuple[int, ...]], near: float) -> list[float]:
    """Return the correctly rounded floats of numbers that are computed with an increasing number of bits."""
    bits = BITS + max(0, -math.frexp(near)[1])
    while True:
        numbers, one = values(bits), 1 << bits
        low = [(n - ERROR) / one for n in numbers]  # Python divides integers with correct rounding
        if low == [(n + ERROR) / one for n in numbers]:
            return low
        bits *= 2


def _fixed(x: float, bits: int) -> int:
    """Return x 2^bits, rounded down."""
    numerator, denominator = x.as_integer_ratio()
    shift = bits - (denominator.bit_length() - 1)
    return numerator << shift if shift >= 0 else numerator >> -shift


def _sin_and_cos(x: float, bits: int) -> tuple[int, int]:
    more = max(0, math.frexp(x)[1])  # bits before the point
    work = bits + GUARD
    half_pi = _pi(work + more) >> 1
    angle = _fixed(x, work + more)
    quarters = (2 * angle + half_pi) // (2 * half_pi)
    rest = (angle - quarters * half_pi) >> more  # at most π/4
    square = rest * rest >> work
    sine = _series(rest, -square, work, lambda k: (1, 2 * k * (2 * k + 1)))
    cosine = math.isqrt((1 << 2 * work) - sine * sine)
    sine, cosine = ((sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine))[quarters % 4]
    return sine >> GUARD, cosine >> GUARD


def _angle(near: float, y: int, x: int, bits: int) -> int:
    """Return the angle of a point (x, y), given an approximation; the larger coordinate has `bits` bits."""
    sine, cosine = _sin_and_cos(near, bits + GUARD)
    ahead, aside = x * cosine + y * sine, y * cosine - x * sine
    return _fixed(near, bits) + _arc_tangent(aside, ahead, bits)


def _arc_tangent(y: int, x: int, bits: int) -> int:
    """Return the angle of a point near the positive x axis."""
    work = bits + GUARD
    tangent = (y << work) // x
    square = tangent * tangent >> work
    return _series(tangent, -square, work, lambda k: (2 * k - 1, 2 * k + 1)) >> GUARD


def _exponential(x: float, bits: int) -> int:
    work = bits + GUARD + max(0, math.frexp(x)[1]) + max(0, math.ceil(1.45 * x))
    number, log_2 = _fixed(x, work), _log_2(work)
    exponent = (2 * number + log_2) // (2 * log_2)
    rest = number - exponent * log_2
    one = 1 << work
    power = _series(one, rest, work, lambda k: (1, k))
    shift = work - bits - exponent
    return power >> shift if shift >= 0 else power << -shift


def _series(first: int, factor: int, work: int, ratio: Callable[[int], tuple[int, int]]) -> int:
    """Return the sum of a power series: term k + 1 is term k times `factor`, of `work` bits, and times a ratio of integers."""
    total, term, k = 0, first, 1
    while term not in (0, -1):
        total += term
        numerator, denominator = ratio(k)
        term = (term * factor >> work) * numerator // denominator
        k += 1
    return total


@cache
def _pi(bits: int) -> int:
    """Return π by Machin's formula."""
    return 4 * (4 * _arc_tangent(1, 5, bits + GUARD) - _arc_tangent(1, 239, bits + GUARD)) >> GUARD


@cache
def _log_2(bits: int) -> int:
    """Return log 2 as 2 artanh(1/3)."""
    work = bits + GUARD
    term, total, k = (2 << work) // 3, 0, 1
    while term:
        total += term // k
        term, k = term // 9, k + 2
    return total >> GUARD


# ---- many numbers at once


HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)  # parts of 33 bits, 33 bits, and the rest
MOST_QUARTERS = 2.0**19  # products up to this with these parts are exact
SINE = (-1.66666666666666324348e-1, 8.33333333332248946124e-3, -1.98412698298579493134e-4, 2.75573137070700676789e-6,
        -2.50507602534068634195e-8, 1.58969099521155010221e-10)  # fmt: skip
COSINE = (4.16666666666666019037e-2, -1.38888888888741095749e-3, 2.48015872894767294178e-5, -2.75573143513906633035e-7,
          2.08757232129817482790e-9, -1.13596475577881948265e-11)  # fmt: skip
"""Sines and cosines up to pi/4 by polynomials in the square, as in FreeBSD's msun (Sun Microsystems 1993)."""


def sines_and_cosines(x: Array) -> tuple[Array, Array]:
    """Return sines and cosines of arrays of angles [rad], with the same bits on every machine.

    Their errors are within one unit of the last digit. NumPy's functions use different polynomials on different processors.
    Its arithmetic on single elements is correctly rounded on all.
    """
    given, x = x.dtype, x.astype(np.float64, copy=False)
    quarters = np.rint(x * (2.0 / math.pi))
    near = np.abs(quarters) < MOST_QUARTERS
    quarters, within = np.where(near, quarters, 0.0), np.where(near, x, 0.0)
    rest = within - quarters * HALF_PI[0]
    tail = quarters * HALF_PI[1]
    high = rest - tail
    low = ((rest - high) - tail) - quarters * HALF_PI[2]
    r = high + low
    low = (high - r) + low
    z = r * r
    s = r + (low + z * (r * _polynomial(SINE, z) - 0.5 * low))
    half = 0.5 * z
    w = 1.0 - half
    c = w + (((1.0 - w) - half) + (z * z * _polynomial(COSINE, z) - r * low))
    quadrant = quarters.astype(np.int64)
    odd = (quadrant & 1).astype(bool)
    sine = np.array(np.where(odd, c, s) * (1 - (quadrant & 2)))
    cosine = np.array(np.where(odd, s, c) * (1 - (quadrant + 1 & 2)))
    for k in map(tuple, np.argwhere(~near)):
        sine[k], cosine[k] = sin_and_cos(float(x[k]))
    return sine.astype(given, copy=False), cosine.astype(given, copy=False)


def _polynomial(coefficients: Sequence[float], z: Array) -> Array:
    value = coefficients[-1] * z
    for coefficient in reversed(coefficients[1:-1]):
        value = (value + coefficient) * z
    return np.asarray(value + coefficients[0])
