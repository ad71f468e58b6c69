"""Tests of the tracer: algebraic simplification, and exact counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featherweight.engine.graph import BudgetExceeded
from featherweight.engine.operations import ADD, CONSTANT, COS, DIV, INPUT, MUL, SIN, SQRT, SUB, Operations
from featherweight.engine.trace import Trace, count, trace


def evaluate(t: Trace, arguments: Sequence[Sequence[float]]) -> list[float]:
    """Evaluate a trace on floats, node by node."""
    g = t.graph
    value: dict[int, float] = {}
    for i in t.live:
        x = [value[j] for j in g.operands(i)]
        computed: dict[int, Callable[..., float]] = {
            INPUT: lambda i=i, x=x: arguments[int(g.a[i])][g.b[i]],
            CONSTANT: lambda i=i, x=x: g.a[i],
            ADD: lambda i=i, x=x: x[0] + x[1],
            SUB: lambda i=i, x=x: x[0] - x[1],
            MUL: lambda i=i, x=x: x[0] * x[1],
            DIV: lambda i=i, x=x: x[0] / x[1],
            SQRT: lambda i=i, x=x: math.sqrt(x[0]),
            SIN: lambda i=i, x=x: math.sin(x[0]),
            COS: lambda i=i, x=x: math.cos(x[0]),
        }
        value[i] = computed[g.op[i]]()
    return [x if isinstance(x, float) else -value[x[0]] if x[1] else value[x[0]] for x in t.outputs]


def counted(function: Any, n: int = 3) -> Operations:
    return count(trace(function, [n]))


NOTHING = Operations(0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "identity",
    [
        lambda x: [0.0 * x[0], x[0] * 0, 1.0 * x[0], x[0] * -1.0, x[0] + 0.0, 0 - x[0], x[0] - 0.0, x[0] / 1.0],
        lambda x: [x[0] - x[0], -(0.0 - x[0]) - x[0], 0.0 / x[0], 2.0 * 3.0, x[0] + (-x[0])],
        lambda x: [3.0, x[1], -x[2]],
    ],
)
def test_what_algebra_settles_is_no_operation(identity: Any) -> None:
    assert counted(identity) == NOTHING


@pytest.mark.parametrize(
    ("twice", "operations"),
    [
        (lambda x: [x[0] - x[1], x[1] - x[0], -(x[0] - x[1])], Operations(0, 1, 0, 0, 0)),
        (lambda x: [x[0] + x[1], -x[0] - x[1], x[1] + x[0]], Operations(0, 1, 0, 0, 0)),
        (lambda x: [x[0] * x[1], -x[0] * x[1], x[1] * -x[0], (-x[0]) * (-x[1])], Operations(1, 0, 0, 0, 0)),
        (lambda x: [x[0] / x[1], -x[0] / x[1], x[0] / -x[1]], Operations(0, 0, 1, 0, 0)),
        (lambda x: [x[0].sin(), (-x[0]).sin(), x[0].cos(), (-x[0]).cos()], Operations(0, 0, 0, 0, 2)),
        (lambda x: [x[0].sqrt(), x[0].sqrt() * 3.0, x[0].sqrt() * -3.0], Operations(1, 0, 0, 1, 0)),
        (lambda x: [x[0] * 3.0, x[0] * -3.0, 3.0 * -x[0]], Operations(1, 0, 0, 0, 0)),
        (lambda x: [x[0] * 2.0, x[0] * -2.0, 2.0 * -x[0], x[0] + x[0]], Operations(0, 1, 0, 0, 0)),
        (lambda x: [x[0] + 2.0, 2.0 + x[0], -2.0 - x[0], -x[0] - 2.0], Operations(0, 1, 0, 0, 0)),
    ],
)
def test_equal_expressions_are_computed_once_whatever_their_sign(twice: Any, operations: Operations) -> None:
    assert counted(twice) == operations


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    "difference",
    [
        lambda x, y: x + (y - x),
        lambda x, y: (y - x) + x,
        lambda x, y: (x + y) - x,
        lambda x, y: (y + x) - x,
        lambda x, y: -x + (x + y),
        lambda x, y: x - (x - y),
        lambda x, y: -((x - y) - x),
        lambda x, y: -(x - (x + y)),
    ],
)
def test_what_is_added_and_taken_away_again_goes_out(difference: Any, sign: float) -> None:
    def function(x: Any) -> Any:
        return [difference(sign * x[0], x[1]), difference(x[0], sign * x[1])]

    assert function([3.0, 5.0]) == [5.0, sign * 5.0]
    traced = trace(function, [2])
    y = traced.graph.input(0, 1).node
    assert traced.outputs == ((y, False), (y, sign < 0))


def test_what_no_result_needs_is_not_counted() -> None:
    def function(x: Any) -> Any:
        x[0] * x[1] + x[2]
        return [x[0] + x[1]]

    assert counted(function) == Operations(0, 1, 0, 0, 0)


def test_a_trace_is_the_same_every_time() -> None:
    def function(x: Any) -> Any:
        y = [a.sin() * b + 0.5 for a in x for b in x]
        return [sum(y, 0.0) / y[0], -y[3]]

    first, second = trace(function, [3]), trace(function, [3])
    assert (first.graph.op, first.graph.a, first.graph.b) == (second.graph.op, second.graph.a, second.graph.b)
    assert first.outputs == second.outputs


def test_branching_on_an_input_is_refused() -> None:
    for branch in (lambda x: [1.0 if x[0] > 0 else 2.0], lambda x: [x[0] or 1.0], lambda x: [max(x[0], x[1])]):
        with pytest.raises(TypeError, match="branch"):
            trace(branch, [3])


def test_the_budget_stops_a_trace() -> None:
    def long(x: Any) -> Any:
        y = x[0]
        for _ in range(1000):
            y = y * x[1] + x[2]
        return [y]

    with pytest.raises(BudgetExceeded):
        trace(long, [3], budget=500)
    assert count(trace(long, [3], budget=5000)).flops == 2000


expressions = st.recursive(
    st.one_of(st.integers(0, 3), st.sampled_from([0.0, 1.0, -1.0, 0.5, -2.0, 3.25])),
    lambda inner: st.tuples(st.sampled_from("+-*n"), inner, inner),
    max_leaves=30,
)


def built(tree: Any, x: Sequence[Any]) -> Any:
    if isinstance(tree, tuple):
        op, a, b = tree[0], built(tree[1], x), built(tree[2], x)
        return a + b if op == "+" else a - b if op == "-" else a * b if op == "*" else -a
    return x[tree] if isinstance(tree, int) else tree


@settings(max_examples=300, deadline=None)
@given(expressions, st.lists(st.floats(-4, 4), min_size=4, max_size=4))
def test_a_trace_computes_what_python_computes(tree: Any, x: list[float]) -> None:
    [result] = evaluate(trace(lambda y: [built(tree, y)], [4]), [x])
    assert result == pytest.approx(built(tree, x), rel=1e-12, abs=1e-9)
