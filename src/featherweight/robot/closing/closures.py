"""Functions of the user's, recorded once as lists of operations, with their exact derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...algorithms.mechanisms.cluster_tree import Closing, Program
from ...algorithms.tape import OPERATIONS
from ...engine.derivative import jacobian, second_derivative
from ...engine.trace import CONSTANT, INPUT, OP_NAMES, Expression, Graph


def record(outputs: Sequence[Any]) -> Program:
    """The operations that expressions need; inputs are numbered as those of their graphs' first arguments."""
    columns: tuple[list[int], list[float], list[int], list[int]] = ([number(CONSTANT)], [1.0], [0], [0])
    op, value, first, second = columns  # the first operation is one, of which numbers are multiples
    known: dict[int, dict[int, int]] = {}  # by graph, where its nodes are
    node, scale = [], []
    for x in outputs:
        if not isinstance(x, Expression):
            node.append(0)
            scale.append(float(x))
            continue
        at = known.setdefault(id(x.graph), {})
        for i in needed(x.graph, x.node, at):
            at[i] = len(op)
            operands = x.graph.operands(i)
            op.append(number(x.graph.op[i]))
            value.append(float(x.graph.a[i]) if x.graph.op[i] == CONSTANT else 0.0)
            first.append(x.graph.b[i] if x.graph.op[i] == INPUT else at[operands[0]] if operands else 0)
            second.append(at[operands[1]] if len(operands) > 1 else 0)
        node.append(at[x.node])
        scale.append(-1.0 if x.negative else 1.0)
    return Program(tuple(op), tuple(value), tuple(first), tuple(second), tuple(node), tuple(scale))


def needed(g: Graph, node: int, known: dict[int, int]) -> list[int]:
    """The nodes that one is computed from, itself included, but for those that are known."""
    found, waiting = set(), [node]
    while waiting:
        i = waiting.pop()
        if i not in found and i not in known:
            found.add(i)
            waiting += g.operands(i)
    return sorted(found)


def number(op: int) -> int:
    """A list's number of a graph's operation."""
    return OPERATIONS.index(OP_NAMES[op])


def closing(name: str, function: Callable[[Any], Any], rows: tuple[int, ...]) -> Closing:
    """Constraints function(q) = 0 on the coordinates of rows, with K and K' q'."""
    n = len(rows)
    g = Graph()
    q = [g.input(0, i) for i in range(n)]
    rates = [g.input(0, n + i) for i in range(n)]

    def flat(x: Sequence[Any]) -> list[Any]:
        array = np.empty(n, dtype=object)
        array[:] = x
        result = np.array(function(array), dtype=object)
        if result.ndim != 1 or len(result) == 0:
            raise ValueError(f"constraint {name!r} must give a sequence of numbers, one at least; got shape {result.shape}")
        return list(result)

    values, K = jacobian(flat, q, [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)])
    bent = second_derivative(flat, q, rates, [0.0] * n)
    return Closing(rows, len(values), record(values), record([x for row in K for x in row]), record(bent))
