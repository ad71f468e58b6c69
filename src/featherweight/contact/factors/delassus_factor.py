"""The factor B of a contact problem's matrix, A = B Bᵀ, from the Delassus matrix of bodies.

The contacts of a foot, or of a hand around an object, outnumber the velocities that they share. The matrix G of the touching
bodies has at least as many rows as these velocities. With G = L Lᵀ, where L has as many columns as the rank of G, the factor is
B = R L.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ...array_types import Integers, Matrix, Vector
from ...engine.loops.kernels import aligned_numbers, as_matrix
from .branches import padded

RANK = 1e-13  # remainder of a diagonal entry, relative to the entry, that counts as a rounding error


class FactorWork(NamedTuple):
    """Workspace for factors of matrices with at most n rows."""

    L: Vector  # (n padded(n),)
    rows: Integers  # (n,) rows of the matrix to factor
    left: Vector  # (n,) remaining diagonal
    at_first: Vector  # (n,) original diagonal


def factor_work(size: int) -> FactorWork:
    """Return workspace for `size` rows."""
    return FactorWork(aligned_numbers(size * padded(size)), np.empty(size, np.int64), np.empty(size), np.empty(size))


def write_factor(G: Matrix, size: int, work: FactorWork) -> int:
    """Write L with L Lᵀ = G for the first `size` of `work.rows`, in their order; return its rank.

    This is Cholesky's method with pivots. Rows have `padded(rank)` numbers, the last of which are zero. The next pivot is the
    row with the greatest remaining fraction, so that units and masses do not matter.
    """
    L, rows, left, at_first = as_matrix(work.L, size, padded(size)), work.rows, work.left, work.at_first
    finite = True
    for i in range(size):
        left[i] = at_first[i] = G[rows[i], rows[i]]
        finite = finite and abs(left[i]) < np.inf
    if not finite:
        for i in range(size):
            L[i, 0] = np.nan
        return compact(work.L, size, 1)
    for c in range(size):
        pivot, most = 0, 0.0
        for i in range(size):
            if left[i] > most * at_first[i]:
                pivot, most = i, left[i] / at_first[i]
        if not most > RANK:
            return compact(work.L, size, c)
        root = sqrt(left[pivot])
        reciprocal = 1.0 / root
        for i in range(size):
            total = 0.0
            if left[i] > 0.0:
                total = G[rows[i], rows[pivot]]
                for j in range(c):
                    total -= L[i, j] * L[pivot, j]
                total *= reciprocal
                left[i] = max(left[i] - total * total, 0.0)
            L[i, c] = total
        L[pivot, c], left[pivot] = root, 0.0
    return compact(work.L, size, size)


def compact(numbers: Vector, size: int, rank: int) -> int:
    """Move rows with space for `size` columns together, so that they have `rank` columns; return the padded width."""
    before, after = padded(size), padded(rank)
    for i in range(size):
        for j in range(after):
            numbers[i * after + j] = numbers[i * before + j] if j < rank else 0.0
    return rank
