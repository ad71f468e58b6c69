"""The factor B of a contact problem's matrix, A = B Bᵀ, from the Delassus matrix of bodies.

Contacts of a foot, or of a hand around an object, are more than the velocities that they share. The matrix G of the bodies
that touch has as many rows as those velocities, or more: G = L Lᵀ, with as many columns as G has rank, and what contacts see is
B = R L.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..engine.loops.array_types import Integers, Matrix, Vector
from ..engine.loops.kernels import as_matrix
from .branches import padded

RANK = 1e-13  # of an entry on the diagonal: less of it left is rounding


class FactorWork(NamedTuple):
    """Room for factors of matrices with n rows at most."""

    L: Vector  # (n padded(n),)
    rows: Integers  # (n,) those of the matrix that are factored
    left: Vector  # (n,) diagonal that is left
    at_first: Vector  # (n,)


def factor_work(size: int) -> FactorWork:
    """Room for so many rows."""
    return FactorWork(np.empty(size * padded(size)), np.empty(size, np.int64), np.empty(size), np.empty(size))


def write_factor(G: Matrix, size: int, work: FactorWork) -> int:
    """Write L with L Lᵀ = G for the first `size` of `work.rows`, its rows in their order: Cholesky's method with pivots.

    Its rank r is returned; rows have `padded(r)` numbers, the last of which are zero.

    The next pivot is the row of which the greatest part is left, so that units and masses do not count.
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


def compact(room: Vector, size: int, rank: int) -> int:
    """Bring rows together that have room for `size` columns; their number `rank` of columns."""
    before, after = padded(size), padded(rank)
    for i in range(size):
        for j in range(after):
            room[i * after + j] = room[i * before + j] if j < rank else 0.0
    return rank
