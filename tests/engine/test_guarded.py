"""Tests of guarded programs: calls compute states again whose strain is too great, by every way to call a function."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from featherweight.engine.function import CompiledFunction
from featherweight.engine.guarded import GuardedProgram
from featherweight.engine.program import Input, KernelProgram, Output, WithoutLastResult

LIMIT = 100.0


def inverse(x: Any, scale: Any, results: Any) -> None:
    """Write scale / x, and the strain 1 / x²."""
    y, strain = results
    for i in range(2):
        y[i] = scale / x[i]
    strain[0] = 1.0 / (x[0] * x[0])


def pseudo_inverse(x: Any, scale: Any, results: Any) -> None:
    """Write scale / x, or zero if x is small, and the number of others."""
    y, rank = results
    count = 0.0
    for i in range(2):
        y[i] = 0.0
        if x[i] * x[i] > 1e-6:
            y[i] = scale / x[i]
            count = count + 1.0
    rank[0] = count


def by_difference(x: Any, scale: Any, results: Any) -> None:
    """Write scale / x, with rounding errors of 1 / x, and the rank 2."""
    y, rank = results
    for i in range(2):
        y[i] = (scale + x[i]) / x[i] - 1.0
    rank[0] = 2.0


def function(hidden: bool, execution: str = "auto", again: Callable[..., None] = pseudo_inverse) -> CompiledFunction[Any]:
    arguments, y = (Input("x", (2,)), Input("scale", ())), Output("y", (2,))
    watched = KernelProgram("inverse", inverse, (), arguments, (y, Output("strain", ())))
    careful = KernelProgram("careful", again, (), arguments, (y, Output("rank", ())))
    program, branches = WithoutLastResult(watched) if hidden else watched, ("careful",) if again is pseudo_inverse else ()
    return CompiledFunction(GuardedProgram(program, watched, careful, LIMIT, 2, "x is small", branches), execution)


GOOD, POOR, SINGULAR = np.array([0.5, 2.0]), np.array([0.01, 2.0]), np.array([1e-5, 2.0])


@pytest.mark.parametrize("execution", ["traced", "rolled", "interpreted"])
@pytest.mark.parametrize("hidden", [False, True])
def test_states_are_computed_again_in_each_kind_of_call(hidden: bool, execution: str) -> None:
    f = function(hidden, execution)

    def y(*args: Any, **named: Any) -> Any:
        result = f(*args, **named)
        return result if hidden else result.y

    for _ in range(2):  # the second time by the entry
        np.testing.assert_array_equal(y(GOOD, 1.0), [2.0, 0.5])
        np.testing.assert_array_equal(y(POOR, 1.0), [100.0, 0.5])
        with pytest.warns(RuntimeWarning, match="inverse: x is small") as seen:
            np.testing.assert_array_equal(y(SINGULAR, scale=3.0), [0.0, 1.5])
        assert [w.filename for w in seen] == [__file__]
        with pytest.warns(RuntimeWarning, match=r"at state \(1,\)"):
            np.testing.assert_array_equal(y(np.array([GOOD, SINGULAR, POOR]), 1.0), [[2.0, 0.5], [0.0, 0.5], [100.0, 0.5]])
    out = np.empty(2)
    given = {"out": out} if hidden else {"out": (out, np.empty(()))}
    for x, expected in ((GOOD, [2.0, 0.5]), (SINGULAR, [0.0, 0.5])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y(x, 1.0, **given)
        np.testing.assert_array_equal(out, expected)
    with pytest.warns(RuntimeWarning):
        assert y(SINGULAR.astype(np.float32), np.float32(1.0)).tolist() == [0.0, 0.5]
    assert not np.isfinite(y(np.full(2, np.nan), 1.0)).any()


def test_states_in_single_precision_are_computed_again_as_those_of_a_batch() -> None:
    """Check that both are computed in double precision: 0.01 - 1 loses the digits of single precision."""
    f = function(True, again=by_difference)
    x = np.column_stack([np.linspace(0.01, 0.09, 20), np.full(20, 2.0)]).astype(np.float32)
    many = f(x, np.float32(3e-3))
    for k, row in enumerate(x):
        alone = f(row, np.float32(3e-3))
        assert alone.dtype == np.float32
        np.testing.assert_array_equal(alone, many[k])


def test_the_strain_of_lower_ranks_is_infinite_and_that_of_others_is_kept() -> None:
    f = function(hidden=False)
    with pytest.warns(RuntimeWarning):
        strain = f(np.array([GOOD, POOR, SINGULAR]), 1.0).strain
    np.testing.assert_allclose(strain, [4.0, 1e4, np.inf])


def test_other_users_see_the_program_without_its_guard() -> None:
    f = function(hidden=True)
    assert (f.nout, f.operations.div) == (1, 2)
    slopes = f.derivative("x")(SINGULAR, 1.0)
    np.testing.assert_allclose(slopes, np.diag([-1e10, -0.25]))
    with pytest.raises(ValueError, match=r"inverse: x must have shape \(\.\.\., 2\)"):
        f(np.zeros(3), 1.0)
    with pytest.raises(ValueError, match="out must be an array of shape"):
        f(GOOD, 1.0, out=np.zeros(3))


@pytest.mark.parametrize("hidden", [False, True])
def test_no_call_keeps_memory(hidden: bool) -> None:
    f = function(hidden)
    out = np.empty(2) if hidden else (np.empty(2), np.empty(()))
    calls: list[Callable[[], Any]] = [
        lambda: f(GOOD, 1.0),
        lambda: f(SINGULAR, 1.0),
        lambda: f(np.array([GOOD, SINGULAR]), 1.0),
        lambda: f(GOOD, 1.0, out=out),
        lambda: f(SINGULAR, 1.0, out=out),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls:
            for _ in range(20):
                call()
            gc.collect()
            before = sys.getallocatedblocks()
            for _ in range(1000):
                call()
            gc.collect()
            assert sys.getallocatedblocks() - before < 500  # one object per call would be 1000
