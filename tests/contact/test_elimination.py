"""Tests of elimination against numpy.linalg.solve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featherweight.array_types import Array
from featherweight.contact.factors.elimination import numbers_of_equations, solve_partly_symmetric, stride_of
from featherweight.engine.loops.kernels import LANES, as_matrix, compiled, subtract_multiples, sum_of_products

solve = compiled(solve_partly_symmetric)


def solved(M: Array, right: Array, symmetric: int) -> tuple[bool, Array]:
    """Return the solution by our elimination, with noise in entries that it must not read."""
    n, stride = len(M), stride_of(len(M))
    room = np.full(numbers_of_equations(n), 1e3)
    rows = room.reshape(n, stride)
    rows[:, :n], rows[:, n] = M, right
    rows[np.tril_indices(symmetric, -1)] = 1e3
    x = np.empty(n)
    return bool(solve(room, n, symmetric, np.empty(n), x)), x


def positive_definite(rng: np.random.Generator, n: int, rank: int, regular: float) -> Array:
    J = rng.standard_normal((n, rank))
    return np.asarray(J @ J.T + regular * np.diag(rng.uniform(0.5, 2.0, n)))


@pytest.mark.parametrize("n", [1, 3, 7, 8, 9, 15, 16, 31, 45, 120])
def test_partly_symmetric_systems(n: int) -> None:
    """Check systems in which none, some or all rows are symmetric, with scales of 10⁶ from row to row."""
    rng = np.random.default_rng(n)
    for symmetric in sorted({0, n // 3, n // 2, n - 1, n}):
        M = positive_definite(rng, n, n, 0.1)
        M[symmetric:] += rng.standard_normal((n - symmetric, n))  # the other rows are arbitrary
        scale = 10.0 ** rng.uniform(-3.0, 3.0, n)
        M = scale[:, None] * M * scale
        right = rng.standard_normal(n)
        fine, x = solved(M, right, symmetric)
        assert fine
        np.testing.assert_allclose(M / scale @ (scale * x), right, atol=1e-9 * np.linalg.cond(M / scale[:, None] / scale) / 10)
        expected = np.linalg.solve(M / scale[:, None] / scale, right / scale) / scale
        np.testing.assert_allclose(x * scale, expected * scale, rtol=0, atol=1e-9 * np.abs(expected * scale).max())


@pytest.mark.parametrize("symmetric", [20, 12])
def test_redundant_rows_that_are_regularized(symmetric: int) -> None:
    """Check redundant contacts: 20 rows of rank 6. The effect of the solution is unique, and correct."""
    rng = np.random.default_rng(1)
    J = rng.standard_normal((20, 6))
    M = J @ J.T + 1e-9 * np.eye(20)
    right = J @ rng.standard_normal(6)
    fine, x = solved(M, right, symmetric)
    assert fine
    np.testing.assert_allclose(J @ (J.T @ x), right, atol=1e-6)
    np.testing.assert_allclose(J.T @ x, J.T @ np.linalg.solve(M, right), atol=1e-6)


def test_pivots_are_taken_where_they_must_be() -> None:
    M = np.array([[0.0, 1.0, 0.0], [1e-20, 0.0, 1.0], [2.0, 0.0, 0.0]])
    fine, x = solved(M, np.array([1.0, 2.0, 3.0]), 0)
    assert fine
    np.testing.assert_allclose(x, [1.5, 1.0, 2.0])


def test_what_is_not_positive_definite_is_said() -> None:
    assert not solved(np.diag([1.0, 2.0, -1.0]), np.ones(3), 3)[0]
    assert not solved(np.full((2, 2), np.nan), np.ones(2), 2)[0]


def write_through_view(numbers: Any, rows: int, columns: int) -> float:
    """Change a number by a matrix that is a view of it, and return the last number of the matrix."""
    matrix = as_matrix(numbers, rows, columns)
    matrix[1, 0] = -1.0
    return float(matrix[rows - 1, columns - 1])


def subtract(numbers: Any, factors: Any) -> None:
    subtract_multiples(numbers, 3, 20, 17, 16, factors)


def test_matrices_are_views() -> None:
    """Check plain Python and compiled code."""
    np.testing.assert_array_equal(as_matrix(np.arange(7.0), 2, 3), [[0, 1, 2], [3, 4, 5]])
    for function in (write_through_view, compiled(write_through_view)):
        numbers = np.arange(7.0)
        assert function(numbers, 2, 3) == 5.0
        np.testing.assert_array_equal(numbers, [0, 1, 2, -1, 4, 5, 6])


def test_multiples_are_subtracted_alike_in_python_and_compiled() -> None:
    rng = np.random.default_rng(0)
    start, factors = rng.standard_normal(80), (0.5, -2.0, 3.0)
    expected = start.copy()
    expected[3:19] -= 0.5 * start[20:36] - 2.0 * start[37:53] + 3.0 * start[54:70]
    for function in (subtract_multiples, compiled(lambda *a: subtract_multiples(*a))):
        numbers = start.copy()
        function(numbers, 3, 20, 17, 16, factors)
        np.testing.assert_allclose(numbers, expected, rtol=1e-14)


@pytest.mark.parametrize("length", [0, LANES, 3 * LANES])
def test_products_are_summed_alike_in_python_and_compiled(length: int) -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 40))
    expected = a[3 : 3 + length] @ b[11 : 11 + length]
    for function in (sum_of_products, compiled(lambda *arguments: sum_of_products(*arguments))):
        assert function(a, 3, b, 11, length) == pytest.approx(expected, rel=1e-14)
        assert function(a, 3, a, 3, length) == pytest.approx(np.sum(a[3 : 3 + length] ** 2), rel=1e-14)
