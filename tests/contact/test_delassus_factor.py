"""Tests of Cholesky's method with pivots: products of factors equal rank-deficient and badly scaled matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featherweight.array_types import Array
from featherweight.contact.factors.branches import padded
from featherweight.contact.factors.delassus_factor import factor_work, write_factor
from featherweight.engine.loops.kernels import as_matrix


def factor(G: Array, picked: Any = None) -> Array:
    """Return L for some rows, in a larger workspace that contained other numbers; zeros fill its rows."""
    rows = np.arange(len(G)) if picked is None else np.asarray(picked)
    work = factor_work(len(G) + 3)
    for room in (work.L, work.left, work.at_first):
        room.fill(np.nan)
    work.rows[: len(rows)] = rows
    rank = write_factor(G, len(rows), work)
    L: Array = as_matrix(work.L, len(rows), padded(rank))
    assert not L[:, rank:].any()
    return L[:, :rank].copy()


@pytest.mark.parametrize("scale", [0.0, 4.0, 8.0], ids=["alike", "1e4", "1e8"])
@pytest.mark.parametrize(("size", "rank"), [(1, 1), (6, 6), (12, 6), (20, 7), (9, 1), (40, 40)])
def test_factors_have_the_rank_of_the_matrix_whatever_the_units(size: int, rank: int, scale: float) -> None:
    """Check rows that differ by factors of up to 10 to the power of ±`scale`; errors are relative to the units of each row."""
    rng = np.random.default_rng(size + rank)
    J = rng.standard_normal((size, rank))
    unit = 10.0 ** rng.uniform(-scale, scale, size)
    G = unit[:, None] * (J @ J.T) * unit
    L = factor(G)
    assert L.shape == (size, rank)
    np.testing.assert_allclose(L @ L.T / unit / unit[:, None], J @ J.T, atol=1e-11 * size)


def test_rows_are_picked_in_their_order() -> None:
    J = np.random.default_rng(0).standard_normal((9, 4))
    G, rows = J @ J.T, [7, 2, 5]
    L = factor(G, rows)
    assert L.shape == (3, 3)
    np.testing.assert_allclose(L @ L.T, G[np.ix_(rows, rows)], atol=1e-13)


def test_what_does_not_move_has_rows_of_zero() -> None:
    G = np.diag([2.0, 0.0, 3.0])
    L = factor(G)
    assert L.shape == (3, 2) and not L[1].any()
    np.testing.assert_allclose(L @ L.T, G, atol=1e-15)
    assert factor(np.zeros((4, 4))).shape == (4, 0)


def test_copies_of_rows_have_the_same_factor() -> None:
    J = np.repeat(np.random.default_rng(1).standard_normal((3, 6)), 5, axis=0)
    L = factor(J @ J.T)
    assert L.shape == (15, 3)
    np.testing.assert_allclose(L, np.repeat(L[::5], 5, axis=0), atol=1e-7)
    np.testing.assert_allclose(L @ L.T, J @ J.T, atol=1e-13 * 15)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_shows(bad: float) -> None:
    G = np.eye(3)
    G[1, 1] = bad
    assert np.isnan(factor(G)).any()
