"""Tests of forward and backward differentiation of a trace, against fifty digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

from featherweight.engine.differentiation import backward, forward
from featherweight.engine.trace import Trace, outputs_of, trace, values_of
from featherweight.spatial import sincos, sqrt

A, B = [0.3, -0.7], [1.1]


def function(x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
    """Return results of every operation, with numbers on either side; some are inputs, negatives, constants or repeated."""
    s, c = sincos(x[0] * x[1])
    root = sqrt(4.0 + x[0] * x[0])
    return [2.0 * x[0] - x[1] / (y[0] + 3.0) + 1.0, s * c - 0.5, root / (1.5 - x[1]), -(1.0 / root), y[0], -y[0], 7.0, y[0]]


def by_mpmath(x: Sequence[Any]) -> list[Any]:
    a, b, c = x
    root = mpmath.sqrt(4 + a * a)
    turned = mpmath.sin(a * b) * mpmath.cos(a * b) - 0.5
    return [2 * a - b / (c + 3) + 1, turned, root / (1.5 - b), -1 / root, c, -c, mpmath.mpf(7), c]


def exact() -> np.ndarray[Any, Any]:
    """Return the Jacobian, by differences with a step of 1e-20 in fifty digits."""
    with mpmath.workdps(50):
        point, h = [mpmath.mpf(x) for x in (*A, *B)], mpmath.mpf("1e-20")
        columns = []
        for k in range(3):
            ahead, behind = list(point), list(point)
            ahead[k] += h
            behind[k] -= h
            pairs = zip(by_mpmath(ahead), by_mpmath(behind), strict=True)
            columns.append([float((p - m) / (2 * h)) for p, m in pairs])
    return np.array(columns).T


def traced() -> Trace:
    return trace(function, (2, 1))


def test_forward_is_exact() -> None:
    t = traced()
    rates = forward(t, values_of(t, (A, B)), ([{0: 1.0}, {1: 1.0}], [{2: 1.0}]))
    np.testing.assert_allclose([[r.get(d, 0.0) for d in range(3)] for r in rates], exact(), rtol=1e-14, atol=1e-16)


def test_forward_carries_only_directions_that_reach() -> None:
    t = traced()
    rates = forward(t, values_of(t, (A, B)), ([{0: 1.0}, {1: 1.0}], [{2: 1.0}]))
    assert [set(r) for r in rates] == [{0, 1, 2}, {0, 1}, {0, 1}, {0}, {2}, {2}, set(), {2}]


def test_backward_is_the_transpose() -> None:
    t = traced()
    weights = list(np.random.default_rng(0).standard_normal(8))
    by_x, by_y = backward(t, values_of(t, (A, B)), weights)
    np.testing.assert_allclose([*by_x, *by_y], np.array(weights) @ exact(), rtol=1e-14, atol=1e-16)


def test_values_are_those_of_the_function() -> None:
    t = traced()
    np.testing.assert_array_equal(outputs_of(t, values_of(t, (A, B))), function(A, B))


def test_values_on_expressions_are_the_nodes_that_are_there() -> None:
    t = traced()

    def twice(x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        return [*function(x, y), *outputs_of(t, values_of(t, (x, y)))]

    both = trace(twice, (2, 1))
    assert len(both.live) == len(t.live)
    assert both.outputs[:8] == both.outputs[8:]
