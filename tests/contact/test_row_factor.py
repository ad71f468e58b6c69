"""Products with a factor whose rows come in groups, against the dense matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contact.given_matrices import dense_factor, factor_of_one_branch, random_factor
from featherweight.contact.block_equations import place_of
from featherweight.contact.branches import padded
from featherweight.contact.row_factor import (
    NO_ROWS,
    RowFactor,
    add_multiples,
    no_factor,
    products,
    row_factor_work,
    rows_of_factor,
    sum_of_squares,
    write_product_of_factor,
    write_row,
    write_transposed_product,
)

Array = np.ndarray[Any, np.dtype[Any]]
GROUPS = {  # sizes of branches, and which of them each group has
    "one branch": ([5], [[0]]),
    "one wide branch": ([19], [[0]]),
    "apart": ([6, 9, 6], [[0], [1], [2]]),
    "shared": ([6, 3, 3, 12], [[0, 1], [0, 2], [0, 1, 3], [2, 0, 3], [0]]),
    "not all": ([4, 8, 2], [[2], [0, 2]]),
    "no branches": ([3, 2], [[], [1]]),
}
BLOCKS = pytest.mark.parametrize(("k", "n"), [(1, 0), (0, 2), (4, 3), (9, 7)])
ALL = pytest.mark.parametrize("name", GROUPS)


def drawn(name: str, k: int, n: int) -> tuple[RowFactor, Array]:
    """A factor, and it as a matrix."""
    B = random_factor(np.random.default_rng(k + n), *GROUPS[name], k, n)
    return B, dense_factor(B, k)


@ALL
@BLOCKS
def test_products_with_vectors(name: str, k: int, n: int) -> None:
    """B w and Bᵀ f; zeros of f leave rows out, and what is beyond the columns stays."""
    rng, (B, dense) = np.random.default_rng(1), drawn(name, k, n)
    w, f = rng.standard_normal(B.size), rng.standard_normal(len(dense))
    f[rng.random(len(f)) < 0.3] = 0.0
    f[:3] = 0.0
    product, sums = np.full(len(f), np.nan), np.full(B.size + 1, np.nan)
    write_product_of_factor(B, k, w, product)
    np.testing.assert_allclose(product, dense @ w, rtol=0.0, atol=1e-13)
    write_transposed_product(B, k, f, sums)
    np.testing.assert_allclose(sums[:-1], dense.T @ f, rtol=0.0, atol=1e-13)
    assert np.isnan(sums[-1])


@ALL
@BLOCKS
def test_rows_and_blocks(name: str, k: int, n: int) -> None:
    """Single rows are written at their places alone; blocks of three and of one are added to what is there."""
    rng, (B, dense) = np.random.default_rng(2), drawn(name, k, n)
    for i, row in enumerate(dense):
        w = np.full(B.size, 7.0)
        write_row(B, *place_of(i, k), -2.0, w)
        np.testing.assert_array_equal(w, np.where(row != 0.0, -2.0 * row, 7.0))
        np.testing.assert_allclose(sum_of_squares(B, *place_of(i, k)), row @ row, rtol=1e-13)
    for c in range(k + n):
        rows = dense[3 * c : 3 * c + 3] if c < k else dense[2 * k + c : 2 * k + c + 1]
        f, w = rng.standard_normal(3), rng.standard_normal(B.size)
        np.testing.assert_allclose(products(B, c, len(rows), w)[: len(rows)], rows @ w, rtol=0.0, atol=1e-13)
        total = w.copy()
        add_multiples(B, c, tuple(f), len(rows), total)
        np.testing.assert_allclose(total, w + f[: len(rows)] @ rows, rtol=0.0, atol=1e-13)


@ALL
def test_some_rows_of_a_factor_are_blocks_of_one(name: str) -> None:
    """Normals and joint rows, in any order; numbers are not copied."""
    k, n = 5, 4
    B, dense = drawn(name, k, n)
    for rows in ([0, 3, 12, 15, 18], [17, 2, 16, 5, 6, 8, 15, 1], []):
        work = row_factor_work(k + n, 0, 0, 0)
        part = rows_of_factor(B, k, np.array(rows, np.int64), work)
        assert part.values is B.values
        np.testing.assert_array_equal(dense_factor(part, 0), dense[rows])
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


@pytest.mark.parametrize(("k", "n"), [(0, 1), (2, 0), (3, 4)])
@pytest.mark.parametrize("rank", [0, 1, 8, 13])
def test_a_factor_of_one_branch_has_all_columns(rank: int, k: int, n: int) -> None:
    """Also in room that another factor was in."""
    rng = np.random.default_rng(rank)
    work = row_factor_work(k + n + 2, 0, 3, 2)
    for room in (work.at, work.group, work.members, work.member_begin, work.width, work.run_begin, work.plan.coupled):
        room.fill(1)
    dense = rng.standard_normal((3 * k + n, rank))
    B = factor_of_one_branch(dense, k, work)
    np.testing.assert_array_equal(dense_factor(B, k), dense)
    assert (B.size, B.plan.branches, B.plan.end) == (rank, 1, rank * padded(rank))
    assert B.width.tolist() == [padded(rank)] and len(B.members) == k + n


def test_there_may_be_no_rows() -> None:
    w = np.zeros(0)
    for B in (NO_ROWS, no_factor(row_factor_work(3, 8, 1, 1))):
        write_transposed_product(B, 0, np.zeros(0), w)
        write_product_of_factor(B, 0, w, np.zeros(0))
        assert (B.size, len(B.at), len(B.width), B.plan.branches, B.plan.end) == (0, 0, 0, 0, 0)
