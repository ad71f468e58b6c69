"""Tests of linear algebra with sums in one order, against LAPACK."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from featherweight.spatial import ordered

SHAPES = ((5, 3), (3, 5), (4, 4), (1, 1), (2, 1), (30, 31))
ROUNDING = 1e-13  # for matrices of random numbers with up to thirty rows


def matrices(shape: tuple[int, int], count: int = 3) -> np.ndarray:
    """Return random matrices; in the first, the last column is twice the first."""
    A = np.random.default_rng(sum(shape)).standard_normal((count, *shape))
    if shape[1] > 1:
        A[0, :, -1] = 2.0 * A[0, :, 0]
    return A


@pytest.mark.parametrize("shape", SHAPES)
def test_products_and_sums_are_those_of_matrices(shape: tuple[int, int]) -> None:
    A = matrices(shape)
    np.testing.assert_allclose(ordered.product(A, A.swapaxes(1, 2)), A @ A.swapaxes(1, 2), atol=ROUNDING)
    np.testing.assert_allclose(ordered.times(A, A[:, 0]), np.einsum("bij,bj->bi", A, A[:, 0]), atol=ROUNDING)
    np.testing.assert_allclose(ordered.lengths(A), np.linalg.norm(A, axis=-1), rtol=1e-14)


def test_sums_go_from_the_first_to_the_last() -> None:
    """Check any length, with rounding at each step as with Python's numbers."""
    A = np.random.default_rng(1).standard_normal((2, 300))
    expected = 0.0
    for x, y in zip(*A.tolist(), strict=True):
        expected = float(Fraction(expected) + Fraction(x * y))
    assert ordered.product(A[:1], A[1:].T)[0, 0] == ordered.times(A[:1], A[1])[0] == ordered.total(A[0] * A[1]) == expected


def test_sums_of_nothing_are_zero() -> None:
    assert ordered.product(np.zeros((2, 3, 0)), np.zeros((2, 0, 4))).shape == (2, 3, 4)
    assert ordered.total(np.zeros((3, 0))).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_positive_definite_systems_are_solved(n: int) -> None:
    A = matrices((n, n))
    A, b = A @ A.swapaxes(1, 2) + np.eye(n), A[:, 0]
    np.testing.assert_allclose(ordered.solved(A, b), np.linalg.solve(A, b[..., None])[..., 0], rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values_and_vectors_make_the_matrix(shape: tuple[int, int]) -> None:
    A = matrices(shape)
    found = ordered.singular(A)
    np.testing.assert_allclose(ordered.singular_values(A), np.linalg.svd(A, compute_uv=False), atol=ROUNDING)
    np.testing.assert_allclose(found.scaled @ found.right.swapaxes(1, 2), A, atol=ROUNDING)
    np.testing.assert_allclose(found.right @ found.right.swapaxes(1, 2), np.broadcast_to(np.eye(shape[1]), found.right.shape),
                               atol=ROUNDING)  # fmt: skip
    assert (np.diff(found.values) <= 0.0).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_pseudo_inverses_are_those_of_lapack(shape: tuple[int, int]) -> None:
    A = matrices(shape)
    np.testing.assert_allclose(ordered.pseudo_inverse(A, 1e-10), np.linalg.pinv(A, 1e-10), rtol=0.0, atol=1e-11)


def test_small_singular_values_are_precise() -> None:
    """Check the least singular value of a graded matrix, which LAPACK loses in rounding of the greatest, against the
    exact product.
    """
    sizes = np.array([1.0, 1e-4, 1e-8, 1e-12])
    Q = np.linalg.qr(matrices((4, 4))[1])[0]
    np.testing.assert_allclose(ordered.singular_values(Q * sizes), sizes, rtol=1e-12)


def test_a_matrix_does_not_depend_on_those_beside_it() -> None:
    A = matrices((6, 5))
    alone = [ordered.singular_values(x[None])[0] for x in A]
    assert np.array_equal(ordered.singular_values(A), alone)
