"""Symbolic scalars: a function of scalars runs once on them and produces its expression graph.

The tracer applies only exact algebraic identities. It folds constants, and simplifies 0 x, 1 x, x + 0, x - x and x + (y - x); 2
x becomes x + x. Equal expressions are one node. Signs are kept outside of nodes (an expression is a node and a sign), so that a
- b and b - a, or (-a) b and a b, share their computation, and a negation costs nothing. The same function always gives the same
graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .operations import ADD, CONSTANT, COS, DIV, INPUT, MUL, OPERATIONS, SIN, SQRT, SUB

Number = int | float
ARITIES = [operation.arity for operation in OPERATIONS]
SUMS = [k in (ADD, SUB) for k in range(len(OPERATIONS))]


class BudgetExceeded(Exception):
    """Error of a graph that exceeds the node budget."""


class Graph:
    """Nodes in the order of creation: `op[i]` and its operands `a[i]`, `b[i]`, which are earlier nodes.

    An INPUT has operands (index of the argument, index within it). A CONSTANT has its value, which is positive, in `a`.
    """

    def __init__(self, budget: int | None = None) -> None:
        self.op: list[int] = []
        self.a: list[float] = []  # node numbers; for a constant, its value
        self.b: list[int] = []
        self.columns: list[tuple[int, tuple[tuple[int, bool], ...]]] = []  # see `note_columns`
        self.budget = budget if budget is not None else math.inf
        self._known: dict[tuple[int, float, int], int] = {}

    def node(self, op: int, a: float, b: int = 0) -> int:
        i = self._known.setdefault((op, a, b), len(self.op))
        if i == len(self.op):
            if i >= self.budget:
                raise BudgetExceeded(f"more than {self.budget} operations")
            self.op.append(op)
            self.a.append(a)
            self.b.append(b)
        return i

    def input(self, argument: int, index: int) -> Expression:
        return Expression(self, self.node(INPUT, argument, index), False)

    def note_columns(self, rows: Sequence[Sequence[Expression | Number]], begin: int) -> None:
        """Note the columns of a matrix, which nodes from `begin` on compute one by one (`KernelProgram.columns`)."""
        for column in zip(*rows, strict=True):
            self.columns.append((begin, tuple((x.node, x.negative) for x in column if isinstance(x, Expression))))

    def operands(self, i: int) -> tuple[int, ...]:
        """Return the operands of node i."""
        arity = ARITIES[self.op[i]]
        if arity == 2:
            return self.a[i], self.b[i]  # type: ignore[return-value]  # it is a constant's value that is not an integer
        return (int(self.a[i]),) if arity else ()

    def __len__(self) -> int:
        return len(self.op)


class Expression:
    """A node of a graph with a sign. It supports arithmetic with numbers and with expressions of the same graph."""

    __slots__ = ("graph", "negative", "node")

    def __init__(self, graph: Graph, node: int, negative: bool) -> None:
        self.graph = graph
        self.node = node
        self.negative = negative

    def __neg__(self) -> Expression:
        return Expression(self.graph, self.node, not self.negative)

    def __add__(self, other: Expression | Number) -> Expression | float:
        g = self.graph
        if isinstance(other, Expression):
            return _sum(g, self.node, self.negative, other.node, other.negative)
        if other == 0.0:
            return self
        return _sum(g, self.node, self.negative, g.node(CONSTANT, abs(float(other))), other < 0.0)

    __radd__ = __add__

    def __sub__(self, other: Expression | Number) -> Expression | float:
        g = self.graph
        if isinstance(other, Expression):
            return _sum(g, self.node, self.negative, other.node, not other.negative)
        if other == 0.0:
            return self
        return _sum(g, self.node, self.negative, g.node(CONSTANT, abs(float(other))), other > 0.0)

    def __rsub__(self, other: Number) -> Expression | float:
        return -self + other

    def __mul__(self, other: Expression | Number) -> Expression | float:
        g = self.graph
        if isinstance(other, Expression):
            a, b = self.node, other.node
            negative = self.negative != other.negative
        elif isinstance(other, (float, int)):
            if other == 0.0:
                return 0.0
            if other == 1.0:
                return self
            if other == -1.0:
                return -self
            if abs(other) == 2.0:
                return self + self if other > 0.0 else -(self + self)
            a, b = self.node, g.node(CONSTANT, abs(float(other)))
            negative = self.negative != (other < 0.0)
        else:
            return NotImplemented  # a vector on the right defines the product
        if b < a:
            a, b = b, a
        return Expression(g, g.node(MUL, a, b), negative)

    __rmul__ = __mul__

    def __truediv__(self, other: Expression | Number) -> Expression:
        g = self.graph
        if not isinstance(other, Expression):
            if other == 1.0:
                return self
            b, negative = g.node(CONSTANT, abs(float(other))), other < 0.0
        else:
            b, negative = other.node, other.negative
        return Expression(g, g.node(DIV, self.node, b), self.negative != negative)

    def __rtruediv__(self, other: Number) -> Expression | float:
        if other == 0.0:
            return 0.0
        g = self.graph
        return Expression(g, g.node(DIV, g.node(CONSTANT, abs(float(other))), self.node), self.negative != (other < 0.0))

    def sqrt(self) -> Expression:
        g = self.graph
        return Expression(g, g.node(SQRT, _positive(self)), False)

    def sin(self) -> Expression:
        return Expression(self.graph, self.graph.node(SIN, self.node), self.negative)

    def cos(self) -> Expression:
        return Expression(self.graph, self.graph.node(COS, self.node), False)

    def __bool__(self) -> bool:
        raise TypeError("a traced function may not branch on a value that depends on its inputs")

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: self.__bool__()
    __hash__ = None  # type: ignore[assignment]


def _sum(g: Graph, a: int, minus_a: bool, b: int, minus_b: bool) -> Expression | float:
    """Return (±a) + (±b), with the operands in the order of their numbers."""
    if b < a:
        a, minus_a, b, minus_b = b, minus_b, a, minus_a
    if a == b and minus_a != minus_b:
        return 0.0
    left = None
    if SUMS[g.op[b]]:
        left = _cancelled(g, a, minus_a, b, minus_b)
    if left is None and SUMS[g.op[a]]:
        left = _cancelled(g, b, minus_b, a, minus_a)
    if left is not None:
        return left
    return Expression(g, g.node(ADD if minus_a == minus_b else SUB, a, b), minus_a)


def _cancelled(g: Graph, a: int, minus_a: bool, b: int, minus_b: bool) -> Expression | None:
    """Return the rest of (±a) + (±b) if b is a sum or difference in which a cancels, as in x + (y - x); otherwise None."""
    minus_second = minus_b != (g.op[b] == SUB)
    if g.a[b] == a and minus_b != minus_a:
        return Expression(g, g.b[b], minus_second)
    if g.b[b] == a and minus_second != minus_a:
        return Expression(g, int(g.a[b]), minus_b)
    return None


def _positive(x: Expression) -> int:
    """Return the node of x. A negated operand of a function that is neither odd nor even becomes 0 - x."""
    if not x.negative:
        return x.node
    return x.graph.node(SUB, x.graph.node(CONSTANT, 0.0), x.node)
