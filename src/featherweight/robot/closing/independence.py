"""Which constraints of loops, and which velocities, are independent: by rank, at several closed configurations.

Where loops close to rounding a singular value that is not rounding counts. Where rounded numbers make them contradict each
other, redundant constraints are independent by as little as they contradict: there the widest gap between singular values
tells, and constraints are left out only if the joints, moved by a distance without them, do not open the loops beyond what
is tolerated (`Assembly`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .assembly import Assembly
from .solver import refined

Array = np.ndarray[Any, np.dtype[Any]]

RANK = 1e-8  # of the largest singular value
WEAK = 1e-2  # of the largest singular value, at most, for constraints that follow from others but for what is tolerated
FIRM = 0.1  # of the singular value that counts least: by so much constraints are independent of others, if they can be
GAP = 10.0  # between singular values that count and those that do not
TIE = 1e-6  # of the greatest value: what rounding may make of equal ones, and of the configurations where they are taken
APART = 0.5  # [rad] in all between configurations at which constraints are tried that are left out


def kept_rows(assembly: Assembly, x: Array) -> tuple[list[int], Array]:
    """The numbers of independent constraints, and K (m, n) where they are; by closed configurations x (samples, nx)."""
    p = assembly.problem
    r, J = p.gap(x)
    if not J[0].size:
        return [], J[0]
    scaled = p.scaled(r, J.copy())[1]
    values = [np.linalg.svd(K, compute_uv=False) / max(1e-300, float(np.linalg.norm(K, 2))) for K in scaled]
    greatest = np.max(values, axis=0)
    rank = int((greatest > RANK).sum())
    if (np.abs(r).max(axis=1) >= p.exact).any():
        weak = [k for k in range(1, rank) if greatest[k] < min(WEAK, 10.0 * p.tolerance / assembly.length)]
        k = max(weak, key=lambda k: greatest[k - 1] / greatest[k], default=rank)
        if k < rank and greatest[k - 1] > GAP * greatest[k]:
            best = first_of_best([float(v[k - 1]) for v in values])
            rows = _pivots(scaled[best], k)
            if _follow(assembly, x, rows):
                return rows, np.asarray(J[best])
    ranks = [int((v > RANK).sum()) for v in values]
    first, rank = ranks.index(max(ranks)), max(ranks)
    if rank:  # rows that are all but dependent there may be so a little way off
        firm = _independent_rows(scaled[first], rank, FIRM * float(values[first][rank - 1]))
        if len(firm) == rank:
            return firm, np.asarray(J[first])
    return _independent_rows(J[first], rank), np.asarray(J[first])


def _follow(assembly: Assembly, x: Array, rows: Sequence[int]) -> bool:
    """Whether loops stay as good as closed when only some rows are closed, some way from closed configurations."""
    move = np.random.default_rng(0).standard_normal((len(x), len(assembly.gap.rows)))
    move *= APART / np.linalg.norm(move, axis=1, keepdims=True)
    p = assembly.problem
    moved = refined(p._replace(tolerance=np.inf), p.moved(x, move), np.array(rows))
    return bool(moved.closed.any() and np.median(moved.worst[moved.closed]) <= p.tolerance)


def _pivots(K: Array, rank: int) -> list[int]:
    """Rows that are as independent as can be, each the farthest from those before."""
    left, chosen = K.copy(), []
    for _ in range(rank):
        lengths = np.linalg.norm(left, axis=1)
        chosen.append(first_of_best(lengths.tolist()))
        unit = left[chosen[-1]] / lengths[chosen[-1]]
        left = left - np.outer(left @ unit, unit)
    return sorted(chosen)


def _independent_rows(K: Array, rank: int, least: float = RANK) -> list[int]:
    """The first rows that are independent of those before them, by some part of the largest singular value."""
    chosen: list[int] = []
    for r in range(len(K)):
        if len(chosen) < rank and smallest(K[[*chosen, r]]) > least * np.linalg.norm(K, 2):
            chosen.append(r)
    return chosen


def smallest(K: Array) -> float:
    """The smallest singular value."""
    return float(np.linalg.svd(K, compute_uv=False)[-1]) if K.size else 0.0


def first_of_best(values: Sequence[float]) -> int:
    """Of values that are the greatest but for rounding, the first: symmetric mechanisms are the same on all machines."""
    least = max(values) * (1.0 - TIE)
    return next(k for k, value in enumerate(values) if value >= least)


def determined(K: Array, groups: Sequence[Sequence[int]]) -> list[int]:
    """Columns that the rows of K determine well: those of earlier groups first, each the best beside those before."""
    chosen: list[int] = []
    for group in groups:
        left = list(group)
        while left and len(chosen) < len(K):
            values = [smallest(K[:, [*chosen, c]]) for c in left]
            if max(values) < 1e-6 * np.abs(K).max():
                break
            best = left[first_of_best(values)]
            chosen.append(best)
            left.remove(best)
    return chosen
