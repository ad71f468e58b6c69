"""Tests of dual numbers: exact derivatives, of first and second order, of floats and of expressions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

from featherweight.engine.dual_numbers import Dual, jacobian, second_derivative
from featherweight.engine.trace import trace


def function(x: Sequence[Any]) -> list[Any]:
    """Return results of every operation, with numbers on either side."""
    a, b, c = x
    return [
        2.0 * a - b / (c + 3.0) + 1.0,
        np.sin(a * b) * np.cos(c) - 0.5,
        np.sqrt(4.0 + a * a) / (1.5 - b),
        1.0 / (2.0 + c * c) - (-a),
        a * 0.0 + 7.0,
    ]


def by_mpmath(x: Sequence[Any]) -> list[Any]:
    a, b, c = x
    return [
        2 * a - b / (c + 3) + 1,
        mpmath.sin(a * b) * mpmath.cos(c) - 0.5,
        mpmath.sqrt(4 + a * a) / (1.5 - b),
        1 / (2 + c * c) + a,
        mpmath.mpf(7),
    ]


X, V, A = [0.3, -0.7, 1.1], [0.2, 0.9, -0.4], [-0.6, 0.1, 0.5]


def arrays(x: Sequence[Any]) -> Any:
    made = np.empty(len(x), dtype=object)
    made[:] = x
    return made


def test_first_derivatives_are_exact() -> None:
    seeds = np.eye(3).tolist()
    values, J = jacobian(lambda x: function(arrays(x)), X, seeds)
    for k in range(5):
        assert math.isclose(values[k], float(by_mpmath(X)[k]), rel_tol=1e-15)
        for i in range(3):
            expected = mpmath.diff(lambda *x, k=k: by_mpmath(x)[k], X, tuple(int(i == j) for j in range(3)))
            assert J[k][i] == pytest.approx(float(expected), rel=1e-13, abs=1e-14)


def path(t: Any) -> list[Any]:
    return [x + v * t + a * t * t / 2 for x, v, a in zip(X, V, A, strict=True)]


def test_second_derivatives_along_a_path_are_exact() -> None:
    found = second_derivative(lambda x: function(arrays(x)), X, V, A)
    for k in range(5):
        expected = mpmath.diff(lambda t, k=k: by_mpmath(path(t))[k], 0, 2)
        assert found[k] == pytest.approx(float(expected), rel=1e-11, abs=1e-12)


def test_derivatives_of_expressions_are_expressions() -> None:
    def flat(x: list[Any]) -> list[Any]:
        values, J = jacobian(lambda y: function(arrays(y)), x, np.eye(3).tolist())
        return [*values, *(entry for row in J for entry in row)]

    t = trace(flat, [3])
    assert len(t.outputs) == 20
    assert t.outputs[4] == 7.0 and t.outputs[-3:] == (0.0, 0.0, 0.0)  # a constant has no derivative


def test_a_branch_on_a_dual_number_is_refused() -> None:
    with pytest.raises(TypeError, match="may not branch"):
        bool(Dual(1.0, (1.0,)) > 0.0)
