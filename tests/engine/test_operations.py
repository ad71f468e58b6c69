"""Tests that the table of operations is complete and consistent with all its readers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from featherweight.engine.differentiation import forward, rates_of_expressions
from featherweight.engine.function import CompiledFunction
from featherweight.engine.graph import Expression, Graph
from featherweight.engine.operations import ADD, CONSTANT, COS, DIV, INPUT, MUL, OPERATIONS, SIN, SQRT, SUB, Operations
from featherweight.engine.program import Input, KernelProgram, Output
from featherweight.engine.tape import Tape, record
from featherweight.engine.trace import Arithmetic, count, evaluate, of_expressions, trace, values_of

COMPUTED = [k for k, operation in enumerate(OPERATIONS) if operation.arity]
MPMATH = Arithmetic(mpmath.mpf, mpmath.sqrt, mpmath.sin, mpmath.cos)
POINTS = ((0.7, 1.9), (2.5, -0.3), (1e-3, 40.0), (12.0, 0.5))


def on_mpmath(number: int, *x: Any) -> Any:
    """Return the operation in mpmath."""
    operation = OPERATIONS[number]
    return getattr(MPMATH, operation.name, operation.value)(*x)


def test_numbers_and_rows_are_in_one_order() -> None:
    numbers = {"input": INPUT, "constant": CONSTANT, "add": ADD, "sub": SUB, "mul": MUL, "div": DIV, "sqrt": SQRT}
    numbers |= {"sin": SIN, "cos": COS}
    assert {operation.name: k for k, operation in enumerate(OPERATIONS)} == numbers
    assert [k for k in range(len(OPERATIONS)) if k not in COMPUTED] == [INPUT, CONSTANT]


@pytest.mark.parametrize("number", COMPUTED)
def test_an_operation_has_all_that_its_readers_ask_for(number: int) -> None:
    operation = OPERATIONS[number]
    assert operation.counted in Operations._fields and operation.latency > 0
    ones = Operations.of([number])
    assert sum(ones) == 1 and getattr(ones, operation.counted) == 1
    assert Operations.of([number] * 3 + [INPUT, CONSTANT]) == Operations(*(3 * n for n in ones))
    assert operation.instruction or operation.counted == "trig"
    if operation.arity == 1:
        assert hasattr(Expression, operation.name)


@pytest.mark.parametrize("number", [INPUT, CONSTANT])
def test_what_is_not_computed_has_no_value_and_counts_nothing(number: int) -> None:
    assert Operations.of([number]) == Operations(0, 0, 0, 0, 0)
    for rule in (OPERATIONS[number].value, OPERATIONS[number].rate):
        with pytest.raises(TypeError, match="have no operation"):
            rule(1.0)


@pytest.mark.parametrize("number", COMPUTED)
def test_tracing_an_operation_makes_its_node(number: int) -> None:
    operation = OPERATIONS[number]
    t = trace(lambda x: [operation.value(*x)], [operation.arity])
    assert [t.graph.op[i] for i in t.live] == [INPUT] * operation.arity + [number]
    assert count(t) == Operations.of([number])
    for point in POINTS:
        assert evaluate(t, [point[: operation.arity]]) == [operation.value(*point[: operation.arity])]


@pytest.mark.parametrize("number", COMPUTED)
@pytest.mark.parametrize("point", POINTS)
def test_values_and_rates_are_those_of_mpmath(number: int, point: tuple[float, ...]) -> None:
    operation = OPERATIONS[number]
    x = point[: operation.arity]
    with mpmath.workdps(50):
        exact = on_mpmath(number, *map(mpmath.mpf, x))
        partial = [
            mpmath.diff(lambda *y: on_mpmath(number, *y), tuple(map(mpmath.mpf, x)), tuple(int(i == k) for i in range(len(x))))
            for k in range(len(x))
        ]
        value = operation.value(*x)
        assert abs(value - exact) <= 2 * np.finfo(float).eps * abs(exact)
        for seed in ((1.0, 0.0), (0.0, 1.0), (0.3, -2.0)):
            dx = seed[: operation.arity]
            wanted = sum(p * d for p, d in zip(partial, dx, strict=True))
            size = sum(abs(p * d) for p, d in zip(partial, dx, strict=True))
            assert abs(operation.rate(*x, value, *dx) - wanted) <= 8 * np.finfo(float).eps * (size + abs(exact))
            t = trace(lambda y: [operation.value(*y)], [operation.arity])
            [rates] = forward(t, values_of(t, [x]), [[{0: d} for d in dx]])
            assert rates.get(0, 0.0) == operation.rate(*x, value, *dx)


def second_derivative(function: Any, x: list[float], v: list[float], a: list[float]) -> list[float]:
    """Return the second derivatives by time along a path with this velocity and acceleration at x."""
    n, g = len(x), Graph()
    q, dq, ddq = ([g.input(0, part * n + i) for i in range(n)] for part in range(3))
    path = [*((y, {0: r}) for y, r in zip((*q, *dq), (*dq, *ddq), strict=True)), *((y, {}) for y in ddq)]
    slopes = [r.get(0, 0.0) for r in rates_of_expressions(function(q), path)]
    curvature = [r.get(0, 0.0) for r in rates_of_expressions(slopes, path)]
    return evaluate(of_expressions(g, [3 * n], curvature), [[*x, *v, *a]])


@pytest.mark.parametrize("number", COMPUTED)
def test_second_derivatives_are_those_of_mpmath(number: int) -> None:
    operation = OPERATIONS[number]
    x, v, a = ([1.7, 0.6], [0.4, -1.1], [-0.9, 0.2])
    n = operation.arity
    [second] = second_derivative(lambda y: [operation.value(*y)], x[:n], v[:n], a[:n])
    with mpmath.workdps(50):
        wanted = mpmath.diff(
            lambda t: on_mpmath(number, *(x[i] + v[i] * t + a[i] * t * t / 2 for i in range(n))), 0, 2
        )  # fmt: skip
    assert second == pytest.approx(float(wanted), rel=1e-13)  # about ten roundings


Function = Callable[[Any], Any]


def everything(x: Any) -> list[Any]:
    """Return results of each operation with each order of signs; some are numbers, and one occurs twice."""
    s, c = OPERATIONS[SIN].value(x[0] * 0.5), OPERATIONS[COS].value(x[1] - 2.5)
    r = OPERATIONS[SQRT].value(x[2] * x[2] + 1.0)
    y = (s + c) * r - x[2] / (r + 0.25)
    return [y, -y, s - r, 3.0 * c, -(x[0] * x[1]), 1.5, 0.0, x[1], -x[2], (y - x[1]) / r]


def recorded() -> Tape:
    g = Graph()
    return record(everything([g.input(0, i) for i in range(3)]))


TAPE = recorded()


def taped(tape: Any, x: Any, out: Any) -> None:
    y = tape.run(x)
    for k in range(len(out)):
        out[k] = y[k]


@pytest.mark.parametrize("execution", ["interpreted", "traced", "rolled"])
def test_a_tape_runs_as_what_it_recorded_in_all_executions(execution: str) -> None:
    program = KernelProgram("taped", taped, (TAPE,), (Input("x", (3,)),), (Output("out", (10,)),))
    f = CompiledFunction(program, execution)
    assert f.operations == count(trace(everything, [3]))
    x = np.random.default_rng(0).uniform(-2.0, 2.0, (30, 3))
    wanted = [everything([float(y) for y in row]) for row in x]
    np.testing.assert_allclose(f(x), wanted, rtol=0, atol=1e-14)  # a few roundings of numbers below four
    np.testing.assert_array_equal([TAPE.run([float(y) for y in row]) for row in x], wanted)
    np.testing.assert_array_equal(f(x[3]), f(x)[3])


def test_a_tape_runs_on_expressions() -> None:
    assert count(trace(TAPE.run, [3])) == count(trace(everything, [3]))


def test_functions_of_floats_hold_at_their_edges() -> None:
    assert math.isnan(OPERATIONS[SQRT].value(-1.0))
    assert OPERATIONS[SQRT].value(0.0) == 0.0 and OPERATIONS[SIN].value(0.0) == 0.0 and OPERATIONS[COS].value(0.0) == 1.0
    assert all(math.isnan(OPERATIONS[k].value(math.nan)) for k in (SQRT, SIN, COS))
