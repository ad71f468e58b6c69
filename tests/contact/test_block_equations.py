"""Tests of the equations (M + P A) x = r, with the matrix and with its factor, against dense solutions by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag

from contact.given_matrices import dense_factor, random_factor, with_factor_of
from featherweight.array_types import Array
from featherweight.contact.factors.block_equations import (
    BlockEquations,
    block_equations,
    order_unknowns,
    write_inverse,
    write_product,
    write_step,
    write_symmetric_product,
)
from featherweight.contact.factors.row_factor import sizes_of
from featherweight.contact.laws import Problem, project

KINDS = pytest.mark.parametrize("kinds", ["stick", "slide", "open", "mixed"])


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 8, 11])
def test_products(size: int) -> None:
    """Check A, and A given by its factor and a compliance."""
    rng = np.random.default_rng(size)
    A, f, product = rng.standard_normal((size, size)), rng.standard_normal(size), np.full(size + 1, 7.0)
    write_symmetric_product(A + A.T, f, product[:size])
    np.testing.assert_allclose(product[:size], (A + A.T) @ f, rtol=1e-13, atol=1e-13)
    assert product[size] == 7.0
    B, R = rng.standard_normal((size, min(size, 3))), rng.random(size)
    if size:
        p = with_factor_of(Problem(A, f, np.zeros(0)), B, R)
        write_product(p, f, block_equations(size), product[:size])
        np.testing.assert_allclose(product[:size], B @ (B.T @ f) + R * f, rtol=1e-13, atol=1e-13)


@KINDS
@pytest.mark.parametrize("pyramid", [False, True], ids=["cone", "pyramid"])
@pytest.mark.parametrize("friction", [True, False], ids=["friction", "no friction"])
@pytest.mark.parametrize("compliance", [0.0, 0.2])
@pytest.mark.parametrize(("k", "n"), [(1, 0), (0, 3), (4, 0), (3, 5), (9, 4)])
def test_both_ways_solve_the_dense_equations(
    k: int, n: int, compliance: float, friction: bool, pyramid: bool, kinds: str
) -> None:
    """Check matrices whose rank is less than the number of rows."""
    rng = np.random.default_rng(7 * k + n)
    m = 3 * k + n
    J, R = rng.standard_normal((m, max(1, 2 * m // 3))), compliance * rng.random(m)
    A, blocks = J @ J.T + np.diag(R), blocks_of(rng, k, n, (kinds, 0.5 * friction, pyramid))
    p = Problem(A, rng.standard_normal(m), np.zeros(k), np.zeros(n), np.zeros(n), pyramid)
    for given in (p, with_factor_of(p, J, R)):
        assert_step_solves(given, A, blocks, block_equations(m + 2))


@KINDS
@pytest.mark.parametrize("compliance", [0.0, 0.2])
@pytest.mark.parametrize(("k", "n"), [(1, 0), (0, 4), (9, 4), (24, 9)])
@pytest.mark.parametrize("seed", range(3))
def test_factors_with_branches_solve_the_dense_equations(seed: int, k: int, n: int, compliance: float, kinds: str) -> None:
    """Check groups that share branches or not; there may be more columns than rows."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, 6).tolist()
    groups = [rng.permutation(6)[: rng.integers(1, 4)].tolist() for _ in range(5)]
    B, R = random_factor(rng, sizes, groups, k, n), compliance * rng.random(3 * k + n)
    J = dense_factor(B, k)
    p = Problem(np.zeros((0, 0)), rng.standard_normal(3 * k + n), np.zeros(k), np.zeros(n), np.zeros(n), False, B, R)
    equations = block_equations(3 * k + n + 2, sizes_of(B))
    assert_step_solves(p, J @ J.T + np.diag(R), blocks_of(rng, k, n, (kinds, 0.5, False)), equations)


def blocks_of(rng: np.random.Generator, k: int, n: int, law: tuple[str, float, bool]) -> tuple[Array, Array]:
    """Return M and P: P has derivatives of projections for kinds of contacts and their friction, M is as in a Newton step."""
    kinds, mu, pyramid = law
    P = np.zeros((k + n, 3, 3))
    for c in range(k):
        kind = kinds if kinds != "mixed" else ("stick", "slide", "open")[c % 3]
        aim = {"stick": [1.0, 0.1, -0.1], "slide": [1.0, 2.0, -3.0], "open": [-1.0, 1.0, 1.0]}[kind]
        project(np.array(aim), mu, pyramid, 0, P[c])
    P[k:, 0, 0] = rng.integers(0, 2, n)
    proximal, rho = 1e-3, 2.0
    return rho * (np.eye(3) - (1.0 - proximal) * P), P


def assert_step_solves(p: Problem, A: Array, blocks: tuple[Array, Array], equations: BlockEquations) -> None:
    """Solve with b as the right side, in workspace without valid numbers."""
    k, n, m = len(p.mu), len(p.lower), len(p.b)
    M, P = (block_diag(*x[:k], *(x[c, :1, :1] for c in range(k, k + n))) for x in blocks)
    expected = np.linalg.solve(M + P @ A, p.b)
    for room in equations:
        room.fill(0 if room.dtype == np.int64 else np.nan)
    equations.M[: k + n], equations.P[: k + n], equations.right[:m] = *blocks, p.b
    write_step(p, equations)
    np.testing.assert_allclose(equations.step[:m], expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())


def test_equations_with_a_symmetric_part_come_first() -> None:
    """Check the order: sticking rows and normals first, then sliding rows; the step of open contacts is computed
    immediately.
    """
    equations = block_equations(9)
    equations.P[:] = 0.0
    equations.P[0] = np.eye(3)  # sticks
    equations.P[1] = [[1.0, 0.0, 0.0], [0.3, 0.5, 0.1], [0.2, 0.1, 0.4]]  # slides; the third is open
    equations.M[:], equations.right[:] = 2.0 * np.eye(3), 6.0
    assert order_unknowns(9, 3, equations) == (6, 4)
    assert equations.unknowns[:4].tolist() == [0, 1, 2, 3] and sorted(equations.unknowns[4:6]) == [4, 5]
    np.testing.assert_array_equal(equations.step[:9], [0.0] * 6 + [3.0] * 3)


def test_inverses_of_blocks() -> None:
    M = np.random.default_rng(0).standard_normal((3, 3))
    inverse = M.copy()
    write_inverse(inverse)
    np.testing.assert_allclose(inverse @ M, np.eye(3), atol=1e-13)
