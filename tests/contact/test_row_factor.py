"""Tests of products with a factor B = E Y whose blocks come in groups, against the dense matrix."""

from __future__ import annotations

import numpy as np
import pytest

from contact.given_matrices import dense_factor, factor_of_rows, random_factor
from featherweight.array_types import Array
from featherweight.contact.factors.block_equations import place_of
from featherweight.contact.factors.branches import padded
from featherweight.contact.factors.row_factor import (
    MOST_ROWS,
    NO_BRANCHES,
    NO_ROWS,
    RowFactor,
    blocks_of_factor,
    no_factor,
    row_factor_work,
    rows_of_factor,
    sizes_of_branches,
    sizes_of_one_branch,
    sum_of_squares,
    write_column,
    write_product_of_factor,
    write_transposed_product,
)

GROUPS = {  # sizes of branches, and the branches of each group
    "one branch": ([5], [[0]]),
    "one wide branch": ([19], [[0]]),
    "apart": ([6, 9, 6], [[0], [1], [2]]),
    "shared": ([6, 3, 3, 12], [[0, 1], [0, 2], [0, 1, 3], [2, 0, 3], [0]]),
    "not all": ([4, 8, 2], [[2], [0, 2]]),
    "no branches": ([3, 2], [[], [1]]),
}
BLOCKS = pytest.mark.parametrize(("k", "n"), [(1, 0), (0, 2), (4, 3), (9, 7)])
ALL = pytest.mark.parametrize("name", GROUPS)
SCALE = 10.0  # relative to entries of B, which are sums of up to eight products


def drawn(name: str, k: int, n: int) -> tuple[RowFactor, Array]:
    """Return a factor, and its matrix."""
    B = random_factor(np.random.default_rng(k + n), *GROUPS[name], k, n)
    return B, dense_factor(B, k)


@ALL
@BLOCKS
def test_products_with_vectors(name: str, k: int, n: int) -> None:
    """Check B w and Bᵀ f; zeros of f skip rows, and numbers beyond the columns remain."""
    rng, (B, dense) = np.random.default_rng(1), drawn(name, k, n)
    w, f = rng.standard_normal(B.size), rng.standard_normal(len(dense))
    f[rng.random(len(f)) < 0.3] = 0.0
    f[:3] = 0.0
    product, sums = np.full(len(f), np.nan), np.full(B.size + 1, np.nan)
    write_product_of_factor(B, k, w, product)
    np.testing.assert_allclose(product, dense @ w, rtol=0.0, atol=1e-13 * SCALE)
    write_transposed_product(B, k, f, sums)
    np.testing.assert_allclose(sums[:-1], dense.T @ f, rtol=0.0, atol=1e-13 * SCALE)
    assert np.isnan(sums[-1])


@ALL
@BLOCKS
def test_rows_and_their_squares(name: str, k: int, n: int) -> None:
    """Check that neither Y nor E changes."""
    B, dense = drawn(name, k, n)
    for i, row in enumerate(dense):
        w = np.zeros((B.size, 3))
        write_column(B, *place_of(i, k), w.ravel(), 1, 3)
        np.testing.assert_allclose(w[:, 1], row, rtol=0.0, atol=1e-13)
        assert not w[:, [0, 2]].any()
        np.testing.assert_allclose(sum_of_squares(B, *place_of(i, k)), row @ row, rtol=1e-12)
    np.testing.assert_array_equal(dense_factor(B, k), dense)


@ALL
def test_some_rows_of_a_factor_are_blocks_of_one(name: str) -> None:
    """Check normals and joint rows, in any order; numbers are not copied."""
    k, n = 5, 4
    B, dense = drawn(name, k, n)
    for rows in ([0, 3, 12, 15, 18], [17, 2, 16, 5, 6, 8, 15, 1], []):
        work = row_factor_work(k + n, NO_BRANCHES)
        part = rows_of_factor(B, k, np.array(rows, np.int64), work)
        assert part.values is B.values
        np.testing.assert_allclose(dense_factor(part, 0), dense[rows], rtol=0.0, atol=1e-13)
        for g in range(len(B.width)):
            members = part.members[part.member_begin[g] : part.member_begin[g + 1]]
            assert members.tolist() == [i for i, r in enumerate(rows) if B.group[place_of(r, k)[0]] == g]


@ALL
def test_members_are_the_blocks_of_each_group_in_their_order(name: str) -> None:
    B, _ = drawn(name, 6, 5)
    for g in range(len(B.width)):
        members = B.members[B.member_begin[g] : B.member_begin[g + 1]]
        assert members.tolist() == np.flatnonzero(B.group == g).tolist()
    assert B.member_begin[-1] == 11


@ALL
def test_some_blocks_of_a_factor(name: str) -> None:
    """Check that products omit groups without any of the blocks."""
    B, dense = drawn(name, 5, 4)
    chosen, rows = [1, 3, 6, 8], [*range(3, 6), *range(9, 12), 16, 18]
    work = row_factor_work(9, NO_BRANCHES)
    work.at[:4], work.group[:4] = B.at[chosen], B.group[chosen]
    part = blocks_of_factor(B, len(chosen), work)
    np.testing.assert_array_equal(dense_factor(part, 2), dense[rows])
    f, w, product = np.random.default_rng(0).standard_normal(8), np.full(B.size, np.nan), np.full(8, np.nan)
    write_transposed_product(part, 2, f, w)
    np.testing.assert_allclose(w, dense[rows].T @ f, rtol=0.0, atol=1e-13 * SCALE)
    write_product_of_factor(part, 2, w, product)
    np.testing.assert_allclose(product, dense[rows] @ w, rtol=0.0, atol=1e-12 * SCALE)


@pytest.mark.parametrize(("k", "n"), [(0, 1), (2, 0), (3, 4), (1, 17), (0, 8)])
@pytest.mark.parametrize("rank", [0, 1, 8, 13])
def test_a_factor_of_a_matrix_has_one_branch(rank: int, k: int, n: int) -> None:
    """Check groups of two contacts and of eight rows, with their own rows; also in a workspace that contained another
    factor.
    """
    rng = np.random.default_rng(rank)
    work = row_factor_work(k + n + 2, sizes_of_branches(np.array([16, 2, 3]), 24, 2))
    for room in (*work[:11], work.plan.coupled):
        room.fill(1)
    dense = rng.standard_normal((3 * k + n, rank))
    B = factor_of_rows(dense, k, work)
    np.testing.assert_array_equal(dense_factor(B, k), dense)
    assert (B.size, B.plan.branches, B.plan.numbers) == (rank, 1, rank * padded(rank))
    assert B.rows.tolist() == [6] * (k // 2) + [3] * (k % 2) + [MOST_ROWS] * (n // MOST_ROWS) + [n % MOST_ROWS] * (
        n % MOST_ROWS > 0
    )
    assert B.plan.end == ((3 * k + n) + rank) * padded(rank) and len(B.members) == k + n


def test_there_may_be_no_rows() -> None:
    w = np.zeros(0)
    for B in (NO_ROWS, no_factor(row_factor_work(3, sizes_of_one_branch(8)))):
        write_transposed_product(B, 0, np.zeros(0), w)
        write_product_of_factor(B, 0, w, np.zeros(0))
        assert (B.size, len(B.at), len(B.width), B.plan.branches, B.plan.end) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("blocks", [1, 7])
def test_room_is_enough_for_groups_of_the_most_rows_on_all_branches(blocks: int) -> None:
    """Check Y, the two parts of the equations, and products: -Eᵀ L E Y behind Eᵀ L E."""
    sizes = sizes_of_branches(np.array([6, 9, 5]), 32, 3)
    B = random_factor(np.random.default_rng(0), [6, 9, 5], [[0, 1, 2]] * blocks, blocks, 0)
    needed = MOST_ROWS * blocks * 32 + 2 * B.plan.numbers + MOST_ROWS * (MOST_ROWS + 32)
    assert len(row_factor_work(blocks, sizes).values) >= needed
