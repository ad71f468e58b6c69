"""Forward-mode differentiation: numbers that carry their derivatives (Wengert 1964; Griewank and Walther 2008, chapter 3).

A function of scalars that runs on `Dual` numbers gives its value and its exact derivatives along several directions at once.
The parts of a dual number are floats, traced expressions, or dual numbers again, for derivatives of higher order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Scalar = Any


class Dual:
    """A value and its derivatives along a number of directions. Arithmetic with numbers, expressions and its own kind."""

    __slots__ = ("rates", "value")

    def __init__(self, value: Scalar, rates: tuple[Scalar, ...]) -> None:
        self.value = value
        self.rates = rates

    def __neg__(self) -> Dual:
        return Dual(-self.value, tuple(-x for x in self.rates))

    def __add__(self, other: Scalar) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, tuple(x + y for x, y in zip(self.rates, other.rates, strict=True)))
        return Dual(self.value + other, self.rates)

    __radd__ = __add__

    def __sub__(self, other: Scalar) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value - other.value, tuple(x - y for x, y in zip(self.rates, other.rates, strict=True)))
        return Dual(self.value - other, self.rates)

    def __rsub__(self, other: Scalar) -> Dual:
        return Dual(other - self.value, tuple(0.0 - x for x in self.rates))

    def __mul__(self, other: Scalar) -> Dual:
        if isinstance(other, Dual):
            a, b = self.value, other.value
            return Dual(a * b, tuple(x * b + a * y for x, y in zip(self.rates, other.rates, strict=True)))
        if isinstance(other, tuple):
            return NotImplemented  # a vector on the right scales itself
        return Dual(self.value * other, tuple(x * other for x in self.rates))

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar) -> Dual:
        if isinstance(other, Dual):
            ratio = self.value / other.value
            return Dual(ratio, tuple((x - ratio * y) / other.value for x, y in zip(self.rates, other.rates, strict=True)))
        return Dual(self.value / other, tuple(x / other for x in self.rates))

    def __rtruediv__(self, other: Scalar) -> Dual:
        ratio = other / self.value
        return Dual(ratio, tuple(0.0 - ratio * x / self.value for x in self.rates))

    def sqrt(self) -> Dual:
        root = _call(math.sqrt, "sqrt", self.value)
        return Dual(root, tuple(0.5 * x / root for x in self.rates))

    def sin(self) -> Dual:
        s, c = _call(math.sin, "sin", self.value), _call(math.cos, "cos", self.value)
        return Dual(s, tuple(c * x for x in self.rates))

    def cos(self) -> Dual:
        s, c = _call(math.sin, "sin", self.value), _call(math.cos, "cos", self.value)
        return Dual(c, tuple(0.0 - s * x for x in self.rates))

    def __bool__(self) -> bool:
        raise TypeError("a differentiated function may not branch on a value that depends on its inputs")

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: self.__bool__()
    __hash__ = None  # type: ignore[assignment]


def _call(of_float: Callable[[float], float], method: str, x: Scalar) -> Scalar:
    return of_float(x) if isinstance(x, (int, float)) else getattr(x, method)()


def value_of(x: Scalar) -> Scalar:
    return x.value if isinstance(x, Dual) else x


def rates_of(x: Scalar, directions: int) -> tuple[Scalar, ...]:
    return x.rates if isinstance(x, Dual) else (0.0,) * directions


Function = Callable[[Sequence[Scalar]], Sequence[Scalar]]


def jacobian(
    function: Function, x: Sequence[Scalar], seeds: Sequence[Sequence[Scalar]]
) -> tuple[list[Scalar], list[list[Scalar]]]:
    """The function's values at x, and one row a value of its derivatives along each of the seeds."""
    duals = [Dual(xi, tuple(seed[i] for seed in seeds)) for i, xi in enumerate(x)]
    results = function(duals)
    return [value_of(y) for y in results], [list(rates_of(y, len(seeds))) for y in results]


def second_derivative(
    function: Function, x: Sequence[Scalar], velocity: Sequence[Scalar], acceleration: Sequence[Scalar]
) -> list[Scalar]:
    """The second time derivative of the function along a path with this velocity and acceleration at x."""
    duals = [Dual(Dual(xi, (vi,)), (Dual(vi, (ai,)),)) for xi, vi, ai in zip(x, velocity, acceleration, strict=True)]
    results = function(duals)
    first = [rates_of(y, 1)[0] for y in results]
    return [rates_of(dy, 1)[0] for dy in first]
