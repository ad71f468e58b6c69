"""Results of a function in 50 digits, with a bound on the rounding errors of a computation.

Each value has bounds of its error in double and in single precision, operation by operation: a running error analysis
(Wilkinson 1963; Higham 2002, section 3.3), with terms for products of errors, denormal numbers and overflow. Nothing is fitted,
and nothing is relative to an estimated condition: where a trace cancels, its bound grows. It is the condition of the
computation, and holds for every machine that executes these operations in any of the ways that IEEE 754 allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np

import featherweight as fw

DIGITS = 50


class Format(NamedTuple):
    """A floating-point format."""

    unit: float  # unit roundoff: half of the relative distance of neighbours
    tiny: float  # largest loss of a result that becomes denormal
    largest: float

    def rounded(self, y: float, spread: float, units: float = 1.0) -> float:
        """Return the error bound of a result y whose operands make it uncertain by `spread`; infinite if it may overflow."""
        reach = y + spread
        error = spread + units * self.unit * reach + self.tiny
        return error if reach + error <= self.largest else math.inf


DOUBLE = Format(2.0**-53, 5e-324, float(np.finfo(np.float64).max))
SINGLE = Format(2.0**-24, 2.0**-150, float(np.finfo(np.float32).max))
TRIGONOMETRIC = 4.0  # sines and cosines are accurate to 2 units in the last place


class Bounded(NamedTuple):
    """A value in 50 digits, with bounds of its error in double and single precision."""

    value: Any
    double: float
    single: float

    def within(self, result: Any) -> bool:
        """Return whether a result is within the bound for the precision of its dtype."""
        bound = self.single if np.asarray(result).dtype == np.float32 else self.double
        if not bound < math.inf:
            return True
        return math.isfinite(result) and abs(mpmath.mpf(float(result)) - self.value) <= bound

    def __add__(self, other: Any) -> Any:
        if isinstance(other, (float, int)):
            return self + constant(other) if other else self
        return _sum(self.value + other.value, self, other) if isinstance(other, Bounded) else NotImplemented

    def __radd__(self, other: float) -> Any:
        return self + other

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, (float, int)):
            return self - constant(other) if other else self
        return _sum(self.value - other.value, self, other) if isinstance(other, Bounded) else NotImplemented

    def __rsub__(self, other: float) -> Any:
        return constant(other) - self if other else -self

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (float, int)):
            if other == 0.0 and self.double < math.inf and self.single < math.inf:
                return 0.0  # zero times infinity would not be zero
            return self if other == 1.0 else self * constant(other)
        if not isinstance(other, Bounded):
            return NotImplemented
        y, a, b = self.value * other.value, _size(self.value), _size(other.value)

        def error(f: Format, e: float, d: float) -> float:
            return f.rounded(_size(y), e * b + d * a + e * d)

        return Bounded(y, error(DOUBLE, self.double, other.double), error(SINGLE, self.single, other.single))

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, (float, int)):
            other = constant(other)
        if not isinstance(other, Bounded):
            return NotImplemented
        if not other.value:
            return Bounded(mpmath.mpf(0), math.inf, math.inf)
        y, b = self.value / other.value, _size(other.value)

        def error(f: Format, e: float, d: float) -> float:
            return f.rounded(_size(y), (e + d * _size(y)) / (b - d)) if d < b else math.inf

        return Bounded(y, error(DOUBLE, self.double, other.double), error(SINGLE, self.single, other.single))

    def __rtruediv__(self, other: float) -> Any:
        return constant(other) / self if other else 0.0

    def __neg__(self) -> Bounded:
        return self._replace(value=-self.value)

    def sqrt(self) -> Bounded:
        if self.value < 0:  # traces have roots of sums of squares; the rounded value of a sum that cancels may be negative
            return Bounded(mpmath.mpf(0), math.inf, math.inf)
        y = mpmath.sqrt(self.value)

        def error(f: Format, e: float) -> float:
            least = _size(self.value) - e
            return f.rounded(_size(y), e / (_size(y) + math.sqrt(least))) if e < math.inf and least > 0.0 else math.inf

        exact = not self.value and self.double == self.single == 0.0
        return Bounded(y, 0.0, 0.0) if exact else Bounded(y, error(DOUBLE, self.double), error(SINGLE, self.single))

    def sin(self) -> Bounded:
        return _wave(mpmath.sin(self.value), _size(mpmath.cos(self.value)), self)

    def cos(self) -> Bounded:
        return _wave(mpmath.cos(self.value), _size(mpmath.sin(self.value)), self)


def _size(y: Any) -> float:
    return abs(float(y))


def _sum(y: Any, a: Bounded, b: Bounded) -> Bounded:
    size = _size(y)
    return Bounded(y, DOUBLE.rounded(size, a.double + b.double), SINGLE.rounded(size, a.single + b.single))


def _wave(y: Any, slope: float, x: Bounded) -> Bounded:
    def error(f: Format, e: float) -> float:
        return f.rounded(_size(y), min(2.0, e * min(1.0, slope + e)), TRIGONOMETRIC) if e < math.inf else math.inf

    return Bounded(y, error(DOUBLE, x.double), error(SINGLE, x.single))


def constant(x: float) -> Bounded:
    with np.errstate(over="ignore"):
        held = float(np.float32(x)) == x
    return Bounded(mpmath.mpf(x), 0.0, 0.0 if held else SINGLE.rounded(abs(x), 0.0))


BOUNDED = fw.Arithmetic(constant, Bounded.sqrt, Bounded.sin, Bounded.cos)


def exact_results(f: fw.CompiledFunction, arguments: Sequence[Any]) -> list[Bounded]:
    """Return all results of a function, for arguments that both precisions represent, or that are double.

    The bounds belong to the computation that runs: the trace, or the kernel as it stands, whose terms are computed before they
    cancel.
    """
    with mpmath.workdps(DIGITS):
        numbers = [[Bounded(mpmath.mpf(float(x)), 0.0, 0.0) for x in np.ravel(a)] for a in arguments]
        if f.execution == "traced":
            return fw.evaluate(f.trace, numbers, BOUNDED)
        return [y if isinstance(y, Bounded) else constant(y) for y in f.program.flat(*numbers)]


def flat(results: Any) -> Any:
    """Return the numbers of one or several results in sequence."""
    many = results if isinstance(results, tuple) else (results,)
    return np.concatenate([np.ravel(r) for r in many])


def beyond(results: Any, exact: Sequence[Bounded]) -> list[int]:
    """Return the results whose error exceeds the bound."""
    with mpmath.workdps(DIGITS):
        return [k for k, (y, e) in enumerate(zip(flat(results), exact, strict=True)) if not e.within(y)]


def computed(f: fw.CompiledFunction[Any], arguments: Sequence[Any]) -> Any:
    """Return the results of the trace with the bounds.

    Some derivatives of a single state use another trace, in vector lanes.
    """
    if all(f.program.in_lanes(lanes) is None for lanes in (2, 4, 8)):
        return f(*arguments)
    twice = f(*(np.stack([x, x]) for x in arguments))
    return tuple(y[0] for y in (twice if isinstance(twice, tuple) else (twice,)))
