"""The table of operations, used by tracing, counting, code generation, tapes and derivatives.

To add an operation, add a row here and a method that creates it to `graph.Expression`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..spatial import sincos, sqrt
from ..summaries import described

Scalar = Any


class Operation(NamedTuple):
    """Definition of an operation, for all code that handles operations."""

    name: str
    arity: int
    value: Callable[..., Scalar]  # value for operands of any kind
    rate: Callable[..., Scalar]  # rate of the result, from the operands, the result, and the operands' rates
    counted: str  # field of `Operations` that counts it; empty if it does not count
    instruction: str = ""  # LLVM's instruction for two operands, or intrinsic function for one
    latency: int = 0  # cycles; nearly twice the processors' latency, which measured best
    # For two operands: `rate` for each operand if the other's rate is zero, from the operands and its rate; None uses `rate`.
    alone: tuple[Callable[[Scalar, Scalar, Scalar], Scalar], ...] | None = None


def _none(*operands: Scalar) -> Scalar:
    raise TypeError("inputs and constants have no operation to compute")


def _sin(x: Scalar) -> Scalar:
    return sincos(x)[0]


def _cos(x: Scalar) -> Scalar:
    return sincos(x)[1]


ALONE_IN_SUM = (lambda a, b, da: da), (lambda a, b, db: db)
ALONE_IN_DIFFERENCE = (lambda a, b, da: da), (lambda a, b, db: -db)
ALONE_IN_PRODUCT = (lambda a, b, da: da * b), (lambda a, b, db: a * db)

INPUT, CONSTANT, ADD, SUB, MUL, DIV, SQRT, SIN, COS = range(9)

OPERATIONS = (  # in the order of the numbers above
    Operation("input", 0, _none, _none, ""),
    Operation("constant", 0, _none, _none, ""),
    Operation("add", 2, operator.add, lambda a, b, y, da, db: da + db, "add", "fadd", 4, ALONE_IN_SUM),
    Operation("sub", 2, operator.sub, lambda a, b, y, da, db: da - db, "add", "fsub", 4, ALONE_IN_DIFFERENCE),
    Operation("mul", 2, operator.mul, lambda a, b, y, da, db: da * b + a * db, "mul", "fmul", 7, ALONE_IN_PRODUCT),
    Operation("div", 2, operator.truediv, lambda a, b, y, da, db: (da - y * db) * (1.0 / b), "div", "fdiv", 26),
    Operation("sqrt", 1, sqrt, lambda x, y, dx: (0.5 / y) * dx, "sqrt", "sqrt", 36),
    Operation("sin", 1, _sin, lambda x, y, dx: _cos(x) * dx, "trig", "", 54),
    Operation("cos", 1, _cos, lambda x, y, dx: 0.0 - _sin(x) * dx, "trig", "", 54),
)


@described
class Operations(NamedTuple):
    """Exact operation counts of a compiled function. Negations and constants are not operations."""

    mul: int
    add: int  # additions and subtractions
    div: int
    sqrt: int
    trig: int  # sines and cosines

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return self.mul + self.add

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Operations:
        """Count operations given by their numbers."""
        n = dict.fromkeys(("", *cls._fields), 0)
        for i in numbers:
            n[OPERATIONS[i].counted] += 1
        return cls(**{field: n[field] for field in cls._fields})
