"""Tests of sparse factors of general matrices: against LAPACK, on difficult trees, in batches, and errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg

import featherweight as fw
from featherweight import generators
from oracles.matrices import BATCH, PARENTS, SINGLE, Array, close, pattern, sample, vectors

Factorize = Callable[..., fw.Factorization]


@pytest.fixture(params=PARENTS)
def parent(request: pytest.FixtureRequest) -> list[int]:
    return PARENTS[request.param]


@pytest.fixture(params=["ltdl", "ltl"])
def factorize(request: pytest.FixtureRequest) -> Factorize:
    return {"ltdl": fw.ltdl, "ltl": fw.ltl}[str(request.param)]


# against known results, and LAPACK


def test_factors_are_those_the_matrix_was_made_of(parent: list[int]) -> None:
    H, L, D = sample(parent)
    F = fw.ltdl(H, parent)
    close(F.L, L)
    close(F.D, D)
    G = fw.ltl(H, parent)
    close(G.L, np.sqrt(D)[..., None] * L)
    np.testing.assert_array_equal(G.D, np.ones_like(D))


def test_factors_multiply_to_the_matrix(parent: list[int], factorize: Factorize) -> None:
    H, _, _ = sample(parent)
    F = factorize(H, parent)
    close(np.swapaxes(F.L, -1, -2) @ (F.D[..., None] * F.L), H)


def test_nothing_fills_in(parent: list[int], factorize: Factorize) -> None:
    """Check that L has an entry for each ancestor in the tree, and exact zeros elsewhere."""
    F = factorize(sample(parent)[0], parent)
    np.testing.assert_array_equal(F.L != 0.0, np.broadcast_to(pattern(parent), F.L.shape))


def test_solutions_and_determinants_are_those_of_lapack(parent: list[int], factorize: Factorize) -> None:
    H, _, _ = sample(parent)
    b, B = vectors(parent), np.swapaxes(vectors(parent, (*BATCH, 4)), -1, -2)
    F = factorize(H, parent)
    close(F.solve(b), np.linalg.solve(H, b[..., None])[..., 0])
    close(F.solve_columns(B), np.linalg.solve(H, B))
    sign, logdet = np.linalg.slogdet(H)
    assert np.all(sign == 1.0)
    close(F.logdet(), logdet)


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_an_unbranched_tree_gives_the_reversed_cholesky_factor(n: int) -> None:
    """Check that with rows and columns reversed, H = L^T L is Cholesky's factorization, and LTDL is the same with unit
    diagonal.
    """
    A = np.random.default_rng(n).standard_normal((n, n))
    H = A @ A.T + n * np.eye(n)
    lower = scipy.linalg.cholesky(H[::-1, ::-1], lower=True)
    expected = lower.T[::-1, ::-1]
    scale = np.sqrt(n)
    close(fw.ltl(H, range(-1, n - 1)).L / scale, expected / scale)
    F = fw.ltdl(H, range(-1, n - 1))
    close(np.sqrt(F.D)[:, None] * F.L / scale, expected / scale)


def test_a_matrix_of_any_size_is_factorized() -> None:
    """Check sizes beyond the one at which loops stay loops."""
    parent = generators.unbranched_parents(130)
    H, L, D = sample(parent, ())
    F = fw.ltdl(H, parent)
    np.testing.assert_allclose(F.L.T @ (F.D[:, None] * F.L), H, rtol=0.0, atol=1e-13 * np.max(H))
    np.testing.assert_allclose(F.L, L, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(F.D, D, rtol=1e-8)


# products


def test_products_with_factors(parent: list[int], factorize: Factorize) -> None:
    F, x = factorize(sample(parent)[0], parent), vectors(parent)
    L, X = F.L, np.swapaxes(vectors(parent, (*BATCH, 3)), -1, -2)
    T = np.swapaxes(L, -1, -2)
    expected: dict[Callable[..., Array], Callable[..., Array]] = {
        F.multiply: lambda y: L @ y,
        F.multiply_transposed: lambda y: T @ y,
        F.divide: lambda y: np.linalg.solve(L, y),
        F.divide_transposed: lambda y: np.linalg.solve(T, y),
    }
    for product, reference in expected.items():
        close(product(x), reference(x[..., None])[..., 0])
        close(F.columns(product, X), reference(X))


def test_division_undoes_multiplication(parent: list[int], factorize: Factorize) -> None:
    F, x = factorize(sample(parent)[0], parent), vectors(parent)
    close(F.divide(F.multiply(x)), x)
    close(F.divide_transposed(F.multiply_transposed(x)), x)
    close(F.multiply_transposed(F.D * F.multiply(F.solve(x))), x)


# batches and precisions


def test_a_batch_is_its_matrices_one_by_one(factorize: Factorize) -> None:
    parent = PARENTS["expanded"]
    H, b = sample(parent)[0], vectors(parent)
    F = factorize(H, parent)
    assert F.L.shape == H.shape and F.D.shape == b.shape and F.logdet().shape == BATCH
    for k in np.ndindex(BATCH):
        one = factorize(H[k], parent)
        close(F.L[k], one.L)
        close(F.D[k], one.D)
        close(F.solve(b)[k], one.solve(b[k]))
        assert np.ndim(one.logdet()) == 0


def test_vectors_and_matrices_broadcast_with_the_factors(factorize: Factorize) -> None:
    parent = PARENTS["binary"]
    n = len(parent)
    H = sample(parent, (3, 1))[0]
    F, b, B = factorize(H, parent), vectors(parent, (4,)), np.swapaxes(vectors(parent, (4, 2)), -1, -2)
    close(F.solve(b), np.linalg.solve(H, b[..., None])[..., 0])
    close(F.solve_columns(B), np.linalg.solve(H, B))
    assert F.solve(b[0]).shape == (3, 1, n) and F.solve_columns(B[0]).shape == (3, 1, n, 2)
    one = factorize(H[0, 0], parent)
    close(one.solve(b), np.linalg.solve(H[0, 0], b.T).T)
    close(one.solve_columns(B), np.linalg.solve(H[0, 0], B))


def test_an_empty_batch_is_no_trouble(factorize: Factorize) -> None:
    parent = PARENTS["binary"]
    F = factorize(np.empty((0, 7, 7)), parent)
    assert F.L.shape == (0, 7, 7) and F.solve(np.empty((0, 7))).shape == (0, 7)


def test_single_precision_stays_single(factorize: Factorize) -> None:
    parent = PARENTS["expanded"]
    H, b = sample(parent)[0].astype(np.float32), vectors(parent).astype(np.float32)
    F, exact = factorize(H, parent), factorize(H.astype(np.float64), parent)
    for x, y in ((F.L, exact.L), (F.D, exact.D), (F.solve(b), exact.solve(b)), (F.logdet(), exact.logdet())):
        assert x.dtype == np.float32
        close(x, y, SINGLE)
    close(F.solve_columns(b[..., None])[..., 0], exact.solve(b), SINGLE)


def test_whole_numbers_become_double(factorize: Factorize) -> None:
    F = factorize([[4, 2], [2, 4]], [-1, 0])
    assert F.L.dtype == np.float64
    close(F.solve([6, 6]), [1.0, 1.0])


def test_only_the_lower_triangle_is_read(parent: list[int], factorize: Factorize) -> None:
    H, _, _ = sample(parent)
    lower = np.where(np.tri(len(parent), dtype=bool), H, np.nan)
    np.testing.assert_array_equal(factorize(lower, parent).packed, factorize(H, parent).packed)


def test_arguments_and_results_are_not_shared(factorize: Factorize) -> None:
    parent = PARENTS["binary"]
    H, b = sample(parent)[0], vectors(parent)
    before, given = H.copy(), b.copy()
    F = factorize(H, parent)
    x = F.solve(b)
    F.L[...], F.D[...] = 0.0, 0.0
    np.testing.assert_array_equal(H, before)
    np.testing.assert_array_equal(b, given)
    np.testing.assert_array_equal(F.solve(b), x)


# numbering


@pytest.mark.parametrize("seed", range(3))
def test_another_numbering_of_the_tree_renumbers_the_factors(parent: list[int], factorize: Factorize, seed: int) -> None:
    """Check exchanged siblings and interleaved branches: L, D and solutions are permuted with them."""
    rng, n = np.random.default_rng(seed), len(parent)
    order: list[int] = []  # the old number of each new one, parents first
    while len(order) < n:
        order.append(int(rng.choice([i for i in range(n) if i not in order and parent[i] in (-1, *order)])))
    renumbered = [-1 if parent[i] < 0 else order.index(parent[i]) for i in order]
    H, b = sample(parent)[0], vectors(parent)
    F, G = factorize(H, parent), factorize(H[..., order, :][..., order], renumbered)
    close(G.L, F.L[..., order, :][..., order])
    close(G.D, F.D[..., order])
    close(G.solve(b[..., order]), F.solve(b)[..., order])
    close(G.logdet(), F.logdet())


def test_a_tree_with_more_ancestors_than_needed_gives_the_same_factors(factorize: Factorize) -> None:
    """Check that zeros of the pattern may be entries: in depth-first order the unbranched tree has the same factors."""
    H, _, _ = sample(PARENTS["side_branches"])
    dense = factorize(H, generators.unbranched_parents(10))
    sparse = factorize(H, PARENTS["side_branches"])
    close(dense.L, sparse.L)
    close(dense.D, sparse.D)


# refusals


@pytest.mark.parametrize(("parent", "named"), [([0], r"parent\[0\]"), ([-1, 1], r"parent\[1\]"), ([-1, 2, 0], r"parent\[1\]")])
def test_parents_come_before_their_children(factorize: Factorize, parent: list[int], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        factorize(np.eye(len(parent)), parent)


def test_a_parent_below_the_ground_is_refused(factorize: Factorize) -> None:
    with pytest.raises(ValueError, match=r"parent\[1\] is -2"):
        factorize(np.eye(2), [-1, -2])


@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (3, 2), (2, 3), (3, 3, 2)])
def test_the_matrix_must_fit_the_parents(factorize: Factorize, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"H must have shape \(\.\.\., 3, 3\)"):
        factorize(np.ones(shape), [-1, 0, 1])


def test_vectors_must_fit_the_factors(factorize: Factorize) -> None:
    F = factorize(np.eye(3), [-1, 0, 1])
    for product in (F.solve, F.multiply, F.multiply_transposed, F.divide, F.divide_transposed):
        with pytest.raises(ValueError, match=r"x must have shape \(\.\.\., 3\)"):
            product(np.ones(4))
    for wrong in (np.ones(3), np.ones((4, 2))):
        with pytest.raises(ValueError, match=r"matrices must have shape \(\.\.\., 3, m\)"):
            F.solve_columns(wrong)
    with pytest.raises(ValueError, match="broadcast"):
        factorize(np.broadcast_to(np.eye(3), (2, 3, 3)), [-1, 0, 1]).solve(np.ones((5, 3)))


@pytest.mark.parametrize("value", [1.0, -1e-3, 1e-300, np.nan, np.inf])
def test_an_entry_outside_the_pattern_is_named(factorize: Factorize, value: float) -> None:
    parent = PARENTS["binary"]
    H, _, _ = sample(parent, ())
    H[5, 3] = value
    with pytest.raises(ValueError, match=r"H\[5, 3\] is"):
        factorize(H, parent)


def test_an_entry_outside_the_pattern_is_named_with_its_matrix(factorize: Factorize) -> None:
    parent = PARENTS["binary"]
    H, _, _ = sample(parent)
    H[2, 1, 4, 3] = 0.25
    with pytest.raises(ValueError, match=r"H\[4, 3\] of matrix \(2, 1\) is 0\.25"):
        factorize(H, parent)


def test_check_false_takes_entries_outside_for_zeros(factorize: Factorize) -> None:
    parent = PARENTS["binary"]
    H, _, _ = sample(parent)
    spoilt = H.copy()
    spoilt[..., 5, 3] = 1.0
    np.testing.assert_array_equal(factorize(spoilt, parent, check=False).packed, factorize(H, parent).packed)


@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan])
@pytest.mark.parametrize("row", [0, 3, 6])
def test_a_pivot_that_is_not_positive_is_named(factorize: Factorize, row: int, value: float) -> None:
    parent = PARENTS["binary"]
    H = np.eye(7)
    H[row, row] = value
    with pytest.raises(np.linalg.LinAlgError, match=rf"the pivot of row {row} is"):
        factorize(H, parent)
    batch = np.broadcast_to(np.eye(7), (2, 3, 7, 7)).copy()
    batch[1, 2] = H
    with pytest.raises(np.linalg.LinAlgError, match=rf"the pivot of row {row} of matrix \(1, 2\) is"):
        factorize(batch, parent)


def test_an_indefinite_matrix_with_a_positive_diagonal_is_refused(factorize: Factorize) -> None:
    with pytest.raises(np.linalg.LinAlgError, match="the pivot of row 0 is"):
        factorize([[1.0, 2.0], [2.0, 1.0]], [-1, 0])


@pytest.mark.parametrize("at", [(6, 2), (6, 0), (2, 0)])
def test_nan_in_the_pattern_is_refused(factorize: Factorize, at: tuple[int, int]) -> None:
    """Check that the message names the column of the first failing pivot, as rows are eliminated from the last."""
    parent = PARENTS["binary"]
    H, _, _ = sample(parent)
    H[1, 0][at] = np.nan
    with pytest.raises(np.linalg.LinAlgError, match=rf"row {at[1]} of matrix \(1, 0\) is nan"):
        factorize(H, parent)


def test_complex_numbers_are_refused(factorize: Factorize) -> None:
    with pytest.raises(TypeError, match="real numbers"):
        factorize(np.eye(2) * 1j, [-1, 0])
