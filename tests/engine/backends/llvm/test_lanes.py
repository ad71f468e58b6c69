"""Tests of derivatives of one state, with directions in lanes, against those of batches, with states in lanes."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from engine.kernels import SEVERAL, swinging
from featherweight.engine.backends.llvm import single
from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import Input, KernelProgram, Output
from featherweight.engine.trace import evaluate
from featherweight.model.generators import from_parents, unbranched_parents
from featherweight.spatial import sincos, sqrt
from oracles.mechanisms import MECHANISMS

CLOSE = {np.float64: 1e-13, np.float32: 5e-5}
"""Tolerances relative to the norm of a result, for sums in another order and products fused in other places."""


def everything(x: Any, s: Any, results: Any) -> None:
    """Apply every operation; some results are constant, an argument, or its negative."""
    y, z = results
    n = len(x)
    sine, cosine = sincos(x[0] * s)
    for i in range(n):
        y[i] = sine * x[i] / (2.0 + x[i - 1] * x[i - 1]) - sqrt(3.0 + s * x[i])
    z[0][0], z[0][1], z[1][0], z[1][1] = 3.0, x[n - 1], -x[0], cosine - s


def of_everything(n: int) -> CompiledFunction:
    arguments = (Input("x", (n,)), Input("s", ()))
    return CompiledFunction(
        KernelProgram("everything", everything, (), arguments, (Output("y", (n,)), Output("z", (2, 2)))), "traced"
    )


@pytest.fixture
def used(empty_cache: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the precisions of code for single states in lanes."""
    made: list[str] = []
    emit_lanes = single.emit_lanes

    def emit(t: Any, precision: str, fma: bool) -> Any:
        made.append(precision)
        return emit_lanes(t, precision, fma)

    monkeypatch.setattr(single, "emit_lanes", emit)
    return made


def assert_same(results: Any, wanted: Any, dtype: Any = np.float64) -> None:
    """Compare to rounding, relative to the norm of all numbers, because terms of a single number may cancel."""
    scale = CLOSE[dtype] * max(np.linalg.norm(y) for y in wanted)
    for x, y in zip(results, wanted, strict=True):
        assert x.shape == y.shape
        assert x.dtype == y.dtype == dtype
        assert np.linalg.norm(x - y) <= scale


def tupled(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def check(f: CompiledFunction[Any], arguments: list[Any], dtype: Any = np.float64) -> None:
    arguments = [np.asarray(x, dtype) for x in arguments]
    one = tupled(f(*arguments))
    assert_same(one, [x[0] for x in tupled(f(*(x[None] for x in arguments)))], dtype)
    outs = tuple(np.full_like(x, np.nan) for x in one)
    f(*arguments, out=outs if len(outs) > 1 else outs[0])
    for x, y in zip(one, outs, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [16, 17, 23, 31, 64])
def test_as_many_directions_as_one_likes(n: int, dtype: Any, used: list[str]) -> None:
    rng = np.random.default_rng(n)
    check(of_everything(n).derivative(), [rng.standard_normal(n), 0.3], dtype)
    check(of_everything(n).derivative("x"), [rng.standard_normal(n), 0.3], dtype)
    assert len(used) == 2


@pytest.mark.parametrize("name", ["x", "s"])
def test_the_trace_gives_the_same(name: str) -> None:
    D = of_everything(19).derivative(name)
    x, s = np.random.default_rng(0).standard_normal(19), np.float64(0.7)
    flat = np.concatenate([np.ravel(y) for y in D(x, s)])
    np.testing.assert_allclose(flat, evaluate(D.trace, [x.tolist(), [0.7]]), rtol=1e-13, atol=1e-13)


def test_few_directions_stay_scalars(used: list[str]) -> None:
    check(CompiledFunction(SEVERAL, "traced").derivative("s"), [[0.1, 0.2, 0.3], 0.5, np.ones((2, 3))])
    assert not used


def test_arguments_and_results_of_all_ranks() -> None:
    f = CompiledFunction(SEVERAL, "traced")
    rng = np.random.default_rng(2)
    values = [rng.standard_normal(3), 0.4, rng.standard_normal((2, 3))]
    check(f.derivative(), values)
    check(f.derivative("load"), [*values, rng.standard_normal(3)])
    check(f.variant("load").derivative(), [*values, rng.standard_normal(3)])


def test_derivatives_of_derivatives(used: list[str]) -> None:
    second = of_everything(9).derivative().derivative()
    check(second, [np.random.default_rng(1).standard_normal(9), 0.3])
    assert used


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("joints", [1, 3])
def test_configurations_on_manifolds(joints: int, dtype: Any) -> None:
    """Check joints of all kinds on a floating one; the larger robot has workspaces on the heap."""
    description = from_parents(unbranched_parents(joints), rng=joints, joint_types=("floating", "revolute", "spherical"))
    robot = fw.build(description, execution="traced")
    rng = np.random.default_rng(3)
    q, v, a = robot.random_configuration(rng=rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)
    check(robot.inverse_dynamics.derivative(), [q, v, a], dtype)
    check(robot.mass_matrix.derivative("q"), [q], dtype)
    check(robot.forward_dynamics.derivative(), [q, v, a], dtype)


@pytest.mark.parametrize("name", ["crank_and_rocker", "four_bar"])
def test_mechanisms_with_loops(name: str) -> None:
    robot = fw.build(MECHANISMS[name](), execution="traced")
    rng = np.random.default_rng(4)
    q, v = robot.random_configuration(rng=rng), rng.standard_normal(robot.nv)
    check(robot.inverse_dynamics.derivative(), [q, v, rng.standard_normal(robot.nv)])


def doubled(y: Any, rate: Any, out: Any) -> None:
    for i in range(len(out)):
        out[i] = 2.0 * rate[i]


def test_results_on_manifolds_are_computed_as_scalars(used: list[str]) -> None:
    pair = (Input("y", (9,)), Input("rate", (9,)))
    along = KernelProgram("doubled", doubled, (), pair, (Output("tangent", (9,)),))
    whole: Any = swinging(9).program
    program = replace(whole, results=(Output("out", (9,), None, along),))
    check(CompiledFunction(program, "traced").derivative(), list(np.random.default_rng(0).standard_normal((2, 9))))
    assert not used


def test_code_by_address_is_the_same() -> None:
    f = swinging(24).derivative()
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 24))
    results = tuple(np.full((24, 24), np.nan) for _ in range(2))
    pointers = (ctypes.c_void_p * 4)(*[a.ctypes.data for a in (x, y, *results)])
    assert f.address is not None
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(f.address)(ctypes.addressof(pointers)) == 0
    for a, b in zip(results, f(x, y), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", [17, 24])
def test_nothing_beside_the_results_is_touched(n: int) -> None:
    f = swinging(n).derivative()
    x, y = np.random.default_rng(0).standard_normal((2, n))
    room = np.full((2, n * n + 32), 7.0)
    f(x, y, out=tuple(r[16:-16].reshape(n, n) for r in room))
    assert (room[:, :16] == 7.0).all()
    assert (room[:, -16:] == 7.0).all()
