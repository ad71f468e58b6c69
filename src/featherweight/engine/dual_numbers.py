"""Forward-mode differentiation: numbers that carry their derivatives (Wengert 1964; Griewank and Walther 2008, chapter 3).

A function of scalars that runs on `Dual` numbers returns its value and its exact derivatives along several directions at once,
by the rules of the table of operations. The parts of a dual number are floats, traced expressions, or dual numbers, for
derivatives of higher order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .operations import ADD, COS, DIV, MUL, OPERATIONS, SIN, SQRT, SUB

Scalar = Any


class Dual:
    """A value and its derivatives along several directions, with arithmetic for numbers, expressions and dual numbers."""

    __slots__ = ("rates", "value")

    def __init__(self, value: Scalar, rates: tuple[Scalar, ...]) -> None:
        self.value = value
        self.rates = rates

    def __neg__(self) -> Dual:
        return Dual(-self.value, tuple(-x for x in self.rates))

    def __add__(self, other: Scalar) -> Dual:
        return _apply(ADD, self, other)

    def __radd__(self, other: Scalar) -> Dual:
        return _apply(ADD, other, self)

    def __sub__(self, other: Scalar) -> Dual:
        return _apply(SUB, self, other)

    def __rsub__(self, other: Scalar) -> Dual:
        return _apply(SUB, other, self)

    def __mul__(self, other: Scalar) -> Dual:
        if isinstance(other, tuple):
            return NotImplemented  # a vector on the right defines the product
        return _apply(MUL, self, other)

    def __rmul__(self, other: Scalar) -> Dual:
        return _apply(MUL, other, self)

    def __truediv__(self, other: Scalar) -> Dual:
        return _apply(DIV, self, other)

    def __rtruediv__(self, other: Scalar) -> Dual:
        return _apply(DIV, other, self)

    def sqrt(self) -> Dual:
        return _apply(SQRT, self)

    def sin(self) -> Dual:
        return _apply(SIN, self)

    def cos(self) -> Dual:
        return _apply(COS, self)

    def __bool__(self) -> bool:
        raise TypeError("a differentiated function may not branch on a value that depends on its inputs")

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: self.__bool__()
    __hash__ = None  # type: ignore[assignment]


def _apply(number: int, *operands: Scalar) -> Dual:
    """Apply an operation to operands, at least one of which is dual."""
    operation = OPERATIONS[number]
    values = [value_of(x) for x in operands]
    directions = max(len(x.rates) for x in operands if isinstance(x, Dual))
    rates = zip(*(rates_of(x, directions) for x in operands), strict=True)
    result = operation.value(*values)
    return Dual(result, tuple(operation.rate(*values, result, *dx) for dx in rates))


def value_of(x: Scalar) -> Scalar:
    """Return the value of a dual number, or any other number itself."""
    if isinstance(x, Dual):
        return x.value
    return float(x) if isinstance(x, int) else x


def rates_of(x: Scalar, directions: int) -> tuple[Scalar, ...]:
    """Return the derivatives of a dual number; zeros for any other number."""
    return x.rates if isinstance(x, Dual) else (0.0,) * directions


Function = Callable[[Sequence[Scalar]], Sequence[Scalar]]


def jacobian(
    function: Function, x: Sequence[Scalar], seeds: Sequence[Sequence[Scalar]]
) -> tuple[list[Scalar], list[list[Scalar]]]:
    """Return the function's values at x, and for each value a row of derivatives along the seeds."""
    duals = [Dual(xi, tuple(seed[i] for seed in seeds)) for i, xi in enumerate(x)]
    results = function(duals)
    return [value_of(y) for y in results], [list(rates_of(y, len(seeds))) for y in results]


def second_derivative(
    function: Function, x: Sequence[Scalar], velocity: Sequence[Scalar], acceleration: Sequence[Scalar]
) -> list[Scalar]:
    """Return the second time derivative of the function, along a path with this velocity and acceleration at x."""
    duals = [Dual(Dual(xi, (vi,)), (Dual(vi, (ai,)),)) for xi, vi, ai in zip(x, velocity, acceleration, strict=True)]
    results = function(duals)
    first = [rates_of(y, 1)[0] for y in results]
    return [rates_of(dy, 1)[0] for dy in first]
