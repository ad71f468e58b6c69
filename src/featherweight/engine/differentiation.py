"""Derivatives of a trace: forward, along many directions at once, and backward, of a weighted sum of outputs.

Both process the trace node by node, by the rates of the table of operations (Griewank and Walther 2008, chapters 3 and 4). They
work on scalars of any kind: floats, or expressions of a graph, which reuses values instead of computing them twice. Forward
differentiation is sparse: a node carries only the directions that reach it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .graph import Expression
from .operations import CONSTANT, INPUT, OPERATIONS, Operation
from .trace import Trace, of_expressions, values_of

Scalar = Any
Rates = dict[int, Scalar]  # by direction; missing rates are zero


def is_zero(x: Scalar) -> bool:
    """Return whether a scalar is the number zero; expressions are not."""
    return isinstance(x, (float, int)) and x == 0.0


def forward(t: Trace, x: dict[int, Scalar], seeds: Sequence[Sequence[Rates]]) -> list[Rates]:
    """Return the rates of each output, from the values x of nodes and the rates of the scalars of each argument."""
    g = t.graph
    rates: dict[int, Rates] = {}
    none: Rates = {}
    for i in t.live:
        op = g.op[i]
        if op == INPUT:
            own = seeds[int(g.a[i])][g.b[i]]
        else:
            operands = g.operands(i)
            moving = [rates.get(j, none) for j in operands]
            if not any(moving):
                continue
            own = _rates(OPERATIONS[op], [x[j] for j in operands], x[i], moving)
        if own:
            rates[i] = own
    results = []
    for y in t.outputs:
        own = rates.get(y[0], none) if isinstance(y, tuple) else none
        results.append({d: -r for d, r in own.items()} if isinstance(y, tuple) and y[1] else own)
    return results


def rates_of_expressions(expressions: Sequence[Scalar], seeds: Sequence[tuple[Expression, Rates]]) -> list[Rates]:
    """Return the rates of expressions of a graph with one argument, as expressions, from those of the argument's scalars."""
    inputs, rates = zip(*seeds, strict=True)
    t = of_expressions(inputs[0].graph, [len(inputs)], expressions)
    return forward(t, values_of(t, [inputs]), [rates])


def _rates(operation: Operation, values: Sequence[Scalar], result: Scalar, moving: Sequence[Rates]) -> Rates:
    """Return the rates of the result of an operation from those of its operands. Most directions reach only one operand."""
    rate = operation.rate
    if operation.alone is None:
        directions = dict.fromkeys(d for m in moving for d in m)
        found = {d: rate(*values, result, *(m.get(d, 0.0) for m in moving)) for d in directions}
    else:
        (a, b), (da, db), (by_a, by_b) = values, moving, operation.alone
        found = {d: rate(a, b, result, y, db[d]) if d in db else by_a(a, b, y) for d, y in da.items()}
        found |= {d: by_b(a, b, y) for d, y in db.items() if d not in da}
    return {d: y for d, y in found.items() if not is_zero(y)}


def backward(t: Trace, x: dict[int, Scalar], weights: Sequence[Scalar]) -> list[list[Scalar]]:
    """Return the derivatives of the weighted sum of outputs with respect to the scalars of each argument.

    x contains the values of nodes.
    """
    g = t.graph
    results: list[list[Scalar]] = [[0.0] * n for n in t.inputs]
    adjoint: dict[int, Scalar] = {}
    for y, w in zip(t.outputs, weights, strict=True):
        if isinstance(y, tuple):
            adjoint[y[0]] = adjoint.get(y[0], 0.0) + (-w if y[1] else w)
    for i in reversed(t.live):
        bar = adjoint.pop(i, 0.0)
        if is_zero(bar):
            continue
        op = g.op[i]
        if op == INPUT:
            results[int(g.a[i])][g.b[i]] = bar
            continue
        operands = g.operands(i)
        values = [x[j] for j in operands]
        for k, j in enumerate(operands):
            if g.op[j] != CONSTANT:
                unit = [1.0 if k == m else 0.0 for m in range(len(operands))]
                slope = OPERATIONS[op].rate(*values, x[i], *unit)
                adjoint[j] = adjoint.get(j, 0.0) + slope * bar
    return results
