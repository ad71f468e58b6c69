"""Traces: functions of scalars, run once on symbolic scalars, to be counted, differentiated, evaluated and compiled."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..array_types import Array
from ..summaries import described, summarized
from .graph import Expression, Graph, Number
from .operations import CONSTANT, INPUT, OPERATIONS, Operations


@summarized
class Trace(NamedTuple):
    """A traced function: its graph, and each output as a number or as (node, negative)."""

    graph: Graph
    inputs: tuple[int, ...]  # number of scalars in each argument
    outputs: tuple[tuple[int, bool] | float, ...]
    live: tuple[int, ...]  # nodes that outputs depend on, in order


def trace(function: Callable[..., Iterable[Expression | Number]], inputs: Sequence[int], budget: int | None = None) -> Trace:
    """Run `function` on lists of symbolic scalars, one list of each given length.

    Raises BudgetExceeded if the graph exceeds `budget` nodes.
    """
    g = Graph(budget)
    arguments = [[g.input(k, i) for i in range(n)] for k, n in enumerate(inputs)]
    return of_expressions(g, inputs, function(*arguments))


def of_expressions(g: Graph, inputs: Sequence[int], results: Iterable[Expression | Number]) -> Trace:
    """Return the trace of expressions of a graph, whose arguments have these numbers of scalars."""
    outputs = tuple((x.node, x.negative) if isinstance(x, Expression) else float(x) for x in results)
    return Trace(g, tuple(inputs), outputs, live_nodes(g, (x[0] for x in outputs if isinstance(x, tuple))))


def live_nodes(g: Graph, outputs: Iterable[int]) -> tuple[int, ...]:
    """Return the nodes that outputs depend on, in order."""
    alive = bytearray(len(g))
    for i in outputs:
        alive[i] = 1
    for i in range(len(g) - 1, -1, -1):
        if alive[i]:
            for j in g.operands(i):
                alive[j] = 1
    return tuple(itertools.compress(range(len(g)), alive))


def count(t: Trace) -> Operations:
    """Count the live operations of a trace."""
    return Operations.of([t.graph.op[i] for i in t.live])


@described
class Arithmetic(NamedTuple):
    """Another kind of numbers, for `evaluate`: they add, subtract, multiply and divide by their own operators.

    With mpmath: Arithmetic(mpmath.mpf, mpmath.sqrt, mpmath.sin, mpmath.cos); with JAX: Arithmetic(jnp.asarray, jnp.sqrt, …).
    """

    constant: Callable[[float], Any]  # conversion from float
    sqrt: Callable[[Any], Any]
    sin: Callable[[Any], Any]
    cos: Callable[[Any], Any]


def evaluate(t: Trace, inputs: Sequence[Sequence[Any] | Array], arithmetic: Arithmetic | None = None) -> list[Any]:
    """Return the concatenated outputs of a trace, for numbers of any kind.

    `inputs` has a flat sequence of numbers for each argument. Floats, and numbers with methods `sqrt`, `sin` and `cos`, need no
    `arithmetic`. `arithmetic.constant` converts outputs that do not depend on the inputs.

    Raises ValueError for inputs of wrong lengths.
    """
    lengths = tuple(len(x) for x in inputs)
    if lengths != t.inputs:
        raise ValueError(f"evaluate: the trace has inputs of lengths {t.inputs}; got {lengths}")
    return outputs_of(t, values_of(t, inputs, arithmetic), float if arithmetic is None else arithmetic.constant)


def values_of(t: Trace, inputs: Sequence[Sequence[Any] | Array], arithmetic: Arithmetic | None = None) -> dict[int, Any]:
    """Return the value of each live node; the arguments are those of `evaluate`."""
    constant = float if arithmetic is None else arithmetic.constant
    values = [op.value if arithmetic is None else getattr(arithmetic, op.name, op.value) for op in OPERATIONS]
    g = t.graph
    x: dict[int, Any] = {}
    for i in t.live:
        op = g.op[i]
        if op == INPUT:
            x[i] = inputs[int(g.a[i])][g.b[i]]
        elif op == CONSTANT:
            x[i] = constant(g.a[i])
        else:
            x[i] = values[op](*(x[j] for j in g.operands(i)))
    return x


def outputs_of(t: Trace, x: dict[int, Any], constant: Callable[[float], Any] = float) -> list[Any]:
    """Return the outputs for given values of nodes."""
    return [(-x[y[0]] if y[1] else x[y[0]]) if isinstance(y, tuple) else constant(y) for y in t.outputs]
