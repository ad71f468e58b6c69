"""Tests of elementary functions: correctly rounded against mpmath; for arrays within a unit in the last place."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from mpmath.libmp import to_float

from featherweight.spatial import elementary

DIGITS = 800  # reducing an argument of 1e308 loses 308 digits
HARDEST = (  # cosine and sine of the first are the nearest to zero of all doubles (Kahan and McDonald)
    math.ldexp(6381956970095103.0, 797), 5e-324, 1.5e-310, 1.7976931348623157e308, 2.0**-27, math.pi, 1e22, 0.5 * math.pi,
)  # fmt: skip


def numbers(seed: int) -> list[float]:
    """Return numbers of both signs and all sizes, degrees in radians, and multiples of eighths of a turn."""
    rng = random.Random(seed)
    found = [rng.choice((-1.0, 1.0)) * math.ldexp(rng.random() + 0.5, rng.randint(-30, 30)) for _ in range(200)]
    found += [rng.choice((-1.0, 1.0)) * math.ldexp(rng.random() + 0.5, rng.randint(-1073, 1023)) for _ in range(40)]
    return [*found, *(k * math.pi / 180 for k in range(1, 91)), *(k * math.pi / 4 for k in range(1, 40)), *HARDEST]


def assert_rounded(value: float, exact: mpmath.mpf, at: object) -> None:
    assert value == to_float(exact._mpf_, rnd="n"), at


@pytest.mark.parametrize(("function", "exact"), [(elementary.sin, mpmath.sin), (elementary.cos, mpmath.cos)])
def test_sines_and_cosines_are_correctly_rounded(function: Callable[[float], float], exact: Callable[..., mpmath.mpf]) -> None:
    with mpmath.workdps(DIGITS):
        for x in numbers(1):
            assert_rounded(function(x), exact(x), x)


def test_angles_are_correctly_rounded() -> None:
    with mpmath.workdps(DIGITS):
        for y, x in zip(numbers(2), reversed(numbers(3)), strict=True):
            assert_rounded(elementary.atan2(y, x), mpmath.atan2(y, x), (y, x))
        for x in (*(math.sin(y) for y in numbers(4)[:200]), *(1.0 - 2.0**-k for k in range(1, 54)), -1.0 + 2.0**-52):
            assert_rounded(elementary.acos(x), mpmath.acos(x), x)


def test_exponentials_and_logarithms_are_correctly_rounded() -> None:
    with mpmath.workdps(DIGITS):
        for x in numbers(5):
            assert_rounded(elementary.log(abs(x)), mpmath.log(abs(x)), x)
            if 1e-300 < abs(x) < 700.0:
                assert_rounded(elementary.exp(x), mpmath.exp(x), x)


def test_angles_at_the_edges_have_their_signs() -> None:
    """Check that signs of zeros and infinite numbers are those of the C library."""
    edges = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf)
    for y in edges:
        for x in edges:
            value, expected = elementary.atan2(y, x), math.atan2(y, x)
            assert value == expected and math.copysign(1.0, value) == math.copysign(1.0, expected), (y, x)
    assert [math.copysign(1.0, elementary.sin(x)) for x in (0.0, -0.0, 0.0)] == [1.0, -1.0, 1.0] and elementary.cos(0.0) == 1.0
    assert elementary.acos(1.0) == 0.0 and elementary.acos(-1.0) == math.pi
    assert math.isnan(elementary.sin(math.inf)) and math.isnan(elementary.cos(math.nan))
    with pytest.raises(ValueError, match=r"domain|range"):
        elementary.acos(1.0 + 2.0**-52)


def test_lengths_do_not_overflow() -> None:
    assert elementary.norm(3.0, 4.0) == 5.0 and elementary.norm(0.0, 0.0) == 0.0
    assert elementary.norm(3e200, 4e200) == pytest.approx(5e200, rel=2e-16)
    assert elementary.norm(3e-200, 4e-200) == pytest.approx(5e-200, rel=2e-16)


def test_sines_of_arrays_are_within_a_unit_of_the_last_digit() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.uniform(-4.0, 4.0, 400), rng.uniform(-1e5, 1e5, 200), np.arange(-40, 40) * math.pi / 4, [1e9, 1e300]]
    )
    sines, cosines = elementary.sines_and_cosines(x.reshape(2, -1))
    with mpmath.workdps(DIGITS):
        for values, exact in ((sines, mpmath.sin), (cosines, mpmath.cos)):
            for at, value in zip(x.tolist(), values.ravel().tolist(), strict=True):
                assert abs(value - exact(at)) < math.ulp(value), at


def test_sines_of_no_numbers_are_none() -> None:
    sines, cosines = elementary.sines_and_cosines(np.array([0.0, math.inf, math.nan]))
    assert sines[0] == 0.0 and cosines[0] == 1.0
    assert np.isnan([*sines[1:], *cosines[1:]]).all()


def test_sines_have_the_shape_and_precision_of_their_angles() -> None:
    for x in (np.array(2.0), np.array(1e9), np.zeros((0, 3)), np.full((2, 1, 3), 0.7, dtype=np.float32)):
        for values, exact in zip(elementary.sines_and_cosines(x), (np.sin(x), np.cos(x)), strict=True):
            assert values.shape == x.shape and values.dtype == x.dtype
            np.testing.assert_allclose(values, exact, rtol=2e-16 if x.dtype == np.float64 else 1e-7)
