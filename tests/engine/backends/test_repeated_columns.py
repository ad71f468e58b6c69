"""Tests of loops over columns in a trace: their contents, their inputs, and unchanged results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.engine.backends import repeated_columns
from featherweight.engine.backends.llvm import loop as loop_module
from featherweight.engine.backends.llvm.backend import Gufunc
from featherweight.engine.backends.llvm.ir import Type
from featherweight.engine.backends.llvm.jit import compile_object, host, load_object
from featherweight.engine.backends.llvm.loop import emit_loop
from featherweight.engine.backends.repeated_columns import Rolled, Value, roll, split
from featherweight.engine.backends.straight_plan import fused_products
from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import ComposedProgram, Input, KernelProgram, Output
from featherweight.engine.trace import Trace, evaluate, trace
from featherweight.spatial import sqrt

N = 16  # rows of a triangular matrix, whose solutions are columns of more than FEWEST_NODES nodes
FACTORS = N * (N - 1) // 2


def solved(L: Sequence[Any], column: Sequence[Any]) -> list[Any]:
    """Return the solution by a unit triangular matrix with the entries `L` below the diagonal."""
    x, entries = list(column), iter(L)
    for i in range(N):
        for j in range(i):
            x[i] = x[i] - next(entries) * x[j]
    return x


def solutions(columns: int, start: Callable[[int, Any], Any] = lambda c, x: x) -> Trace:
    """Return columns that are solved for in the same way; `start` makes column k from the input."""

    def function(L: list[Any], B: list[Any]) -> list[Any]:
        own = [solved(L, [start(c, x) for x in B[c * N : (c + 1) * N]]) for c in range(columns)]
        return [own[c][i] for i in range(N) for c in range(columns)]

    return trace(function, [FACTORS, N * columns])


def rolled(t: Trace, columns: int, fma: bool = True) -> Rolled:
    fused = fused_products(t, {i: t.graph.operands(i) for i in t.live}) if fma else {}
    return roll(t, [range(c, len(t.outputs), columns) for c in range(columns)], fused)


def by_loops(t: Trace, found: Rolled, arguments: list[list[float]]) -> list[float]:
    """Return the outputs that loops compute: the values before them, and then each body for each of its columns."""

    def values(wanted: Sequence[Value]) -> list[float]:
        return evaluate(t._replace(outputs=tuple(wanted)), arguments)

    results = [np.nan] * len(t.outputs)
    shared = values([(i, False) for i in found.shared])
    for loop in found.loops:
        for inputs, elements in zip(loop.inputs, loop.results, strict=True):
            sizes = loop.body.inputs
            given = [*arguments, (shared + [0.0] * sizes[-2])[: sizes[-2]], values(inputs)]
            for k, x in zip(elements, evaluate(loop.body, given), strict=True):
                results[k] = x
    return results


def numbers(t: Trace) -> list[list[float]]:
    rng = np.random.default_rng(0)
    return [list(rng.standard_normal(n)) for n in t.inputs]


@pytest.mark.parametrize("fma", [True, False])
def test_columns_with_equal_operations_are_a_loop(fma: bool) -> None:
    t = solutions(5)
    found = rolled(t, 5, fma)
    assert [len(loop.inputs) for loop in found.loops] == [5]
    assert all(len(inputs) == N for inputs in found.loops[0].inputs)
    assert by_loops(t, found, numbers(t)) == evaluate(t, numbers(t))


def test_signs_go_on_to_inputs() -> None:
    """Check a column 1 that begins with negatives, whose sign traces store beside their nodes."""
    t = solutions(3, lambda c, x: -x if c == 1 else x)
    found = rolled(t, 3)
    [loop] = found.loops
    assert {x[1] for x in loop.inputs[1] if isinstance(x, tuple)} == {True}
    assert by_loops(t, found, numbers(t)) == evaluate(t, numbers(t))


def test_what_differs_is_computed_before_the_loop() -> None:
    """Check columns that begin with different operations: their results are inputs of the loop."""
    t = solutions(3, lambda c, x: (x * x, x + 1.0, x)[c])
    found = rolled(t, 3)
    [loop] = found.loops
    assert len(loop.body.live) <= len(solutions(1).live)
    assert by_loops(t, found, numbers(t)) == evaluate(t, numbers(t))


def test_values_that_loops_share_are_computed_once() -> None:
    """Check factors that are products of inputs: each is a node that all columns read."""

    def function(L: list[Any], B: list[Any]) -> list[Any]:
        factors = [x * x for x in L]
        own = [solved(factors, B[c * N : (c + 1) * N]) for c in range(2)]
        return [own[c][i] for i in range(N) for c in range(2)]

    t = trace(function, [FACTORS, 2 * N])
    found = rolled(t, 2)
    assert len(found.shared) == FACTORS
    assert by_loops(t, found, numbers(t)) == evaluate(t, numbers(t))


def test_columns_that_have_little_in_common_are_no_loop() -> None:
    """Check a second column that is solved with the factors of another matrix, and a short third one."""

    def function(L: list[Any], R: list[Any], B: list[Any]) -> list[Any]:
        own = [solved(L, B[:N]), solved(R, B[N : 2 * N]), B[2 * N :]]
        return [own[c][i] for i in range(N) for c in range(3)]

    assert rolled(trace(function, [FACTORS, FACTORS, 3 * N]), 3).loops == ()


def test_loops_in_batches_give_the_bits_of_straight_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check derivatives of a chain, by factors of its mass matrix: a vector of states, and some more."""
    robot = fw.build(fw.generators.chain(10))
    f = robot.forward_dynamics_derivatives
    assert f.algorithm.startswith("crba-ltdl")
    q = robot.random_configuration(rng=0, size=53)
    v, tau = np.random.default_rng(0).standard_normal((2, 53, robot.nv))
    results = []
    for fewest in (60, 1 << 60):
        monkeypatch.setattr(repeated_columns, "FEWEST_NODES", fewest)
        modules = emit_loop(f.trace, f.program.shapes, Type("double", host().lanes("double")), host().fma)
        assert any("fw.kernel.column0" in text for text in modules) == (fewest == 60)
        gufunc = Gufunc(f.program, load_object(compile_object(*modules), "loop"), np.dtype(float))
        results.append(gufunc(q, v, tau))
    for looped, straight in zip(*results, strict=True):
        np.testing.assert_array_equal(looped, straight)


def solve(L: Any, B: Any, X: Any) -> None:
    """Write the columns of the solution of L X = B, the second one negative."""
    for c in range(len(B[0])):
        for i, x in enumerate(solved(L, [row[c] for row in B])):
            X[i][c] = -x if c == 1 else x


def gram(X: Any, G: Any) -> None:
    """Write the products of columns, and the square roots of their squares."""
    for i in range(len(G)):
        for j in range(len(G)):
            G[i][j] = sum((row[i] * row[j] for row in X), 0.0) if i != j else sqrt(X[0][i] * X[0][i]) - X[1][i]


def test_columns_that_other_results_read_are_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a batch: a loop over columns that a kernel notes, and straight code for both."""
    columns = 5
    X, inputs = Output("X", (N, columns)), (Input("L", (FACTORS,)), Input("B", (N, columns)))
    own = KernelProgram("solve", solve, (), inputs, (X,), columns=(("X",),))
    products = KernelProgram("gram", gram, (), (Input(*X[:2]),), (Output("G", (columns, columns)),))
    f = CompiledFunction(ComposedProgram("products", (own, products), ("G",)), "traced")
    L, B = (np.random.default_rng(0).standard_normal((53, *x.shape)) for x in inputs)
    results, type = [], Type("double", host().lanes("double"))
    for found in (split, lambda t, fused: None):
        monkeypatch.setattr(loop_module, "split", found)
        modules = emit_loop(f.trace, f.program.shapes, type, host().fma)
        assert any("fw.kernel.first.column0" in text for text in modules) == (found is split)
        results.append(Gufunc(f.program, load_object(compile_object(*modules), "loop"), np.dtype(float))(L, B))
    np.testing.assert_array_equal(*results)
