"""Tests of derivatives of compiled functions: names, shapes, options, and calls."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from engine.kernels import swinging
from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import Input, KernelProgram, Output

RNG = np.random.default_rng(3)


def mixed(x: Any, B: Any, scale: Any, results: Any) -> None:
    """Map a vector and a matrix to a number and a vector; `scale` is optional."""
    total, y = results
    total[0] = 0.0
    for i in range(2):
        y[i] = scale * x[i]
        for j in range(3):
            y[i] = y[i] + B[i][j] * x[j] * x[j]
            total[0] = total[0] + B[i][j] * x[i]


def mixing(execution: str = "traced") -> CompiledFunction:
    inputs = (Input("x", (3,)), Input("B", (2, 3)), Input("scale", (), optional=True))
    outputs = (Output("total", ()), Output("y", (2,)))
    return CompiledFunction(KernelProgram("mixed", mixed, (), inputs, outputs), execution)


def jacobian_of_swing(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    n = len(x)
    s, c = np.sin(x), np.cos(x)
    by_x = np.diag(0.3 * (c * (2 + c) + s * s) / (2 + c) ** 2)
    for i in range(n):
        by_x[i, i - 1] -= y[i]
    return by_x, -np.diag(np.roll(x, 1))


@pytest.mark.parametrize("execution", ["traced", "interpreted"])
@pytest.mark.parametrize("n", [2, 5, 9])
def test_jacobian(execution: str, n: int) -> None:
    x, y = RNG.standard_normal((2, n))
    by_x, by_y = swinging(n, execution).derivative()(x, y)
    expected = jacobian_of_swing(x, y)
    np.testing.assert_allclose(by_x, expected[0], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(by_y, expected[1], rtol=1e-13, atol=1e-15)


def test_by_one_argument_is_one_array() -> None:
    x, y = RNG.standard_normal((2, 4))
    f = swinging(4).derivative("y")
    assert [r.name for r in f.program.outputs] == ["dout_dy"]
    np.testing.assert_allclose(f(x, y), jacobian_of_swing(x, y)[1], rtol=1e-13, atol=1e-15)


def test_names_and_shapes() -> None:
    f = mixing().derivative()
    shapes = {r.name: r.shape for r in f.program.outputs}
    assert shapes == {"dtotal_dx": (3,), "dtotal_dB": (2, 3), "dy_dx": (2, 3), "dy_dB": (2, 2, 3)}


@pytest.mark.parametrize("execution", ["traced", "interpreted"])
def test_optional_argument(execution: str) -> None:
    x, B = RNG.standard_normal(3), RNG.standard_normal((2, 3))
    f = mixing(execution).derivative("x")
    without = f(x, B)
    np.testing.assert_allclose(f(x, B, scale=2.0).dy_dx - without.dy_dx, [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]], atol=1e-14)
    by_scale = mixing(execution).derivative("scale")
    np.testing.assert_array_equal(by_scale(x, B, 2.0).dy_dscale, x[:2])


def test_pushforward_and_pullback_are_products_with_the_jacobian() -> None:
    x, B, scale = RNG.standard_normal(3), RNG.standard_normal((2, 3)), 0.7
    f = mixing().variant("scale")
    J = f.derivative()(x, B, scale)
    dx, dB, ds = RNG.standard_normal(3), RNG.standard_normal((2, 3)), -0.4
    moved = f.pushforward(x, B, x_dot=dx, B_dot=dB, scale=scale, scale_dot=ds)
    np.testing.assert_allclose(moved.total_dot, J.dtotal_dx @ dx + (J.dtotal_dB * dB).sum(), rtol=1e-13)
    np.testing.assert_allclose(moved.y_dot, J.dy_dx @ dx + np.einsum("ijk,jk", J.dy_dB, dB) + J.dy_dscale * ds, rtol=1e-13)
    total_bar, y_bar = 0.3, RNG.standard_normal(2)
    bars = f.pullback(x, B, total_bar=total_bar, y_bar=y_bar, scale=scale)
    np.testing.assert_allclose(bars.x_bar, total_bar * J.dtotal_dx + y_bar @ J.dy_dx, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(bars.B_bar, total_bar * J.dtotal_dB + np.einsum("i,ijk", y_bar, J.dy_dB), rtol=1e-13)
    np.testing.assert_allclose(bars.scale_bar, y_bar @ J.dy_dscale, rtol=1e-13)


def test_batches_out_and_single_precision() -> None:
    f = swinging(5).derivative()
    x, y = RNG.standard_normal((2, 7, 5))
    whole = f(x, y)
    for k in range(7):
        for one, many in zip(f(x[k], y[k]), whole, strict=True):
            np.testing.assert_allclose(one, many[k], rtol=1e-13, atol=1e-15)
    out = (np.empty((7, 5, 5)), np.empty((7, 5, 5)))
    assert f(x, y, out=out)[0] is out[0]
    np.testing.assert_array_equal(out[1], whole[1])
    single = f(x.astype(np.float32), y.astype(np.float32))
    assert single[0].dtype == np.float32
    np.testing.assert_allclose(single[0], whole[0], rtol=2e-5, atol=2e-6)


def test_second_derivatives_by_nesting() -> None:
    x, y = RNG.standard_normal((2, 3))
    second = swinging(3).derivative("x").derivative("x")(x, y)
    h = 1e-6
    first = swinging(3).derivative("x")
    for k in range(3):
        e = h * np.eye(3)[k]
        np.testing.assert_allclose(second[..., k], (first(x + e, y) - first(x - e, y)) / (2 * h), atol=1e-8)


def test_can_be_pickled_and_is_made_once() -> None:
    f = swinging(3)
    assert f.derivative("x") is f.derivative("x")
    assert f.pullback is f.pullback
    x, y = RNG.standard_normal((2, 3))
    copy = pickle.loads(pickle.dumps(f.derivative("x")))
    np.testing.assert_array_equal(copy(x, y), f.derivative("x")(x, y))


def test_unknown_argument() -> None:
    with pytest.raises(TypeError, match="has no argument 'z'"):
        swinging(3).derivative("z")
