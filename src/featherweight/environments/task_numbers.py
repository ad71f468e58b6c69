"""Numbers for texts of tasks: random numbers, the exponential function and sums, bitwise the same on every machine."""

from __future__ import annotations

from math import floor

from ..array_types import Integers, Vector

GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # SplitMix64's numbers, as words with a sign (see `reset_noise`)
FACTORS = 0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64
OF_34_BITS, OF_37_BITS, OF_33_BITS, OF_53_BITS = 2**34 - 1, 2**37 - 1, 2**33 - 1, 2**53 - 1
PER_LN2 = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # ln 2 in two parts; k times the first is exact


def drawn_number(drawn: Integers) -> float:
    """Return the next random number of an episode, in [0, 1), from its key and a counter.

    The numbers are those of `ResetNoise.uniform`. Products must wrap at 64 bits, as in compiled kernels.
    """
    drawn[1] += 1
    x = drawn[0] + drawn[1] * GOLDEN
    x = (x ^ ((x >> 30) & OF_34_BITS)) * FACTORS[0]
    x = (x ^ ((x >> 27) & OF_37_BITS)) * FACTORS[1]
    x = x ^ ((x >> 31) & OF_33_BITS)
    return float((x >> 11) & OF_53_BITS) * 2.0**-53


def drawn_between(drawn: Integers, least: float, most: float) -> float:
    """Return the next random number between two bounds."""
    return least + (most - least) * drawn_number(drawn)


def falling_exponential(x: float) -> float:
    """Return e^-x for x >= 0, accurate to a few units in the last place.

    e^-x = 2^-k e^r, |r| <= ln 2 / 2, with the Taylor series of degree 13.
    """
    if not x < 700.0:
        return 0.0
    k = floor(x * PER_LN2 + 0.5)
    r = (float(k) * LN2_HIGH - x) + float(k) * LN2_LOW
    series, n = 1.0, 13
    while n > 0:
        series = 1.0 + series * r / float(n)
        n -= 1
    half = 0.5
    while k > 0:
        if k % 2 == 1:
            series *= half
        half *= half
        k //= 2
    return series


def cut(x: float, low: float, high: float) -> float:
    """Return a number clipped to a range."""
    return min(max(x, low), high)


def total(x: Vector) -> float:
    """Return the sum of numbers."""
    found = 0.0
    for y in x:
        found += y
    return found


def squares(x: Vector) -> float:
    """Return the sum of the squares of numbers."""
    found = 0.0
    for y in x:
        found += y * y
    return found
