"""Selection of independent loop constraints and independent velocities, by rank at several closed configurations.

If loops close up to rounding, all singular values above rounding count. If rounded numbers make loops contradict each other,
redundant constraints appear independent, by as little as the contradiction. The rank is then given by the widest gap between
singular values. Constraints are left out only if joints that move without them keep the loops closed within the tolerance
(`Assembly`).

Loops that contradict each other may close exactly in isolated configurations. There, the constraints lock joints that move
without the small singular values. Constraints that nearly depend on others by chance also lock joints, but loops open far along
the motions that these constraints prevent. If a mechanism is singular with the constraints wherever it closes, it suffices that
loops stay closed nearby.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...array_types import Array
from ...model.random_numbers import unit_vectors
from ...spatial.ordered import lengths, perpendicular, product, singular, singular_values, times, total
from .assembly import Assembly
from .solver import Settled, refined

NOTHING = 1e-12  # largest singular value of constraints that hold however joints move: rounding errors
RANK = 1e-8  # of the largest singular value
WEAK = 1e-2  # of the largest singular value: most of constraints that are redundant within the tolerance
FIRM = 0.1  # of the least singular value that counts: independence of the selected constraints, if possible
GAP = 10.0  # least ratio between singular values that count and others
TIE = 1e-6  # of the greatest value: difference of equal values through rounding, here and in configurations
BISECTIONS = 40  # steps of a bisection
APART, STEPS_APART = 0.5, 5  # [rad] to configurations at which left-out constraints are tested, and steps towards them
FAR = 2.0  # [rad] the same where loops close exactly, along motions that only the left-out constraints prevent
SINGULAR = 1e-5  # of the largest singular value: with such constraints, a mechanism loses five digits
LOCKED = 1e-6  # of a unit velocity: a joint's share in all motions that constraints allow, if they lock it


class Kept(NamedTuple):
    """The constraints that a cluster keeps, and configurations where all constraints hold, up to their contradiction."""

    rows: list[int]  # numbers of the constraints
    K: Array  # (m, n) of all constraints, at one of the configurations
    x: Array  # (samples, nx)


def kept_rows(assembly: Assembly, x: Array) -> Kept:
    """Return independent constraints at closed configurations x (samples, nx).

    Where constraints are left out, further configurations show how much loops contradict each other.
    """
    p = assembly.problem
    r, J = p.gap(x)
    if not J[0].size:
        return Kept([], J[0], x)
    scaled = p.scaled(r, J.copy())[1]
    values = singular_values(scaled)
    if not values.max() > NOTHING:
        return Kept([], np.asarray(J[0]), x)
    values /= np.maximum(values[:, :1], 1e-300)
    greatest = values.max(axis=0)
    rank = int((greatest > RANK).sum())
    weak = [k for k in range(1, rank) if greatest[k] < min(WEAK, 10.0 * p.tolerance / assembly.length)]
    k = max(weak, key=lambda k: greatest[k - 1] / greatest[k], default=rank)
    weaker = k < rank and greatest[k - 1] > GAP * greatest[k]
    exact = bool((np.abs(r).max(axis=1) < p.exact).any())
    if weaker and (not exact or all(_locks_more(K, k, rank) for K in scaled)):
        best = first_of_best([float(v[k - 1]) for v in values])
        rows = _pivots(scaled[best], k)
        if exact and greatest[k] > SINGULAR:
            ways = FAR * _prevented(scaled, k, rank)
        else:
            ways = APART * unit_vectors(np.random.default_rng(0), (len(x), J.shape[-1]))
        apart = _apart(assembly, x, rows, ways)
        if apart.closed.any() and np.median(apart.worst[apart.closed]) <= p.tolerance:
            further = apart.x[apart.closed & (apart.worst <= p.tolerance)]
            return Kept(rows, np.asarray(J[best]), np.concatenate([x, further]))
    ranks = [int((v > RANK).sum()) for v in values]
    first, rank = ranks.index(max(ranks)), max(ranks)
    if rank:  # nearly dependent rows may be dependent close by
        firm = _independent_rows(scaled[first], rank, FIRM * float(values[first][rank - 1]))
        if len(firm) == rank:
            return Kept(firm, np.asarray(J[first]), x)
    return Kept(_independent_rows(J[first], rank), np.asarray(J[first]), x)


def _locks_more(K: Array, strong: int, rank: int) -> bool:
    """Return whether constraints (m, n) lock a joint that moves if only the `strong` greatest of `rank` values count."""
    right = singular(K).right
    free, freer = lengths(right[:, rank:]), lengths(right[:, strong:])
    return bool(((free < LOCKED) & (freer > GAP * LOCKED)).any())


def _prevented(K: Array, strong: int, rank: int) -> Array:
    """Return unit motions (samples, n) that constraints (samples, m, n) prevent, but not the `strong` greatest values alone."""
    mixed = unit_vectors(np.random.default_rng(0), (len(K), rank - strong))
    return times(singular(K).right[:, :, strong:rank], mixed)


def _apart(assembly: Assembly, x: Array, rows: Sequence[int], ways: Array) -> Settled:
    """Return configurations apart from x by `ways`, where only some constraints are closed, and what the others leave open.

    The steps towards them are short, so that the mechanism does not change to another way of assembly.
    """
    p = assembly.problem._replace(tolerance=np.inf)
    closed = np.ones(len(x), dtype=bool)
    for _ in range(STEPS_APART):
        s = refined(p, p.moved(x, ways / STEPS_APART), np.array(rows))
        x, closed = s.x, closed & s.closed
    return s._replace(closed=closed)


def _pivots(K: Array, rank: int) -> list[int]:
    """Return the most independent rows: each is the farthest from the span of those before it."""
    left, chosen = K.copy(), []
    for _ in range(rank):
        sizes = lengths(left)
        chosen.append(first_of_best(sizes.tolist()))
        unit = left[chosen[-1]] / sizes[chosen[-1]]
        left = left - times(left, unit)[:, None] * unit
    return sorted(chosen)


def _independent_rows(K: Array, rank: int, least: float = RANK) -> list[int]:
    """Return the first rows that are independent of earlier rows, by a fraction of the largest singular value."""
    chosen: list[int] = []
    units = np.zeros((0, K.shape[1]))
    least *= float(lengths(K.ravel()))
    for r, row in enumerate(K):
        left = row
        for _ in range(2):  # the second pass removes the rounding errors of the first
            left = left - times(units.T, times(units, left))
        length = float(lengths(left))
        if len(chosen) < rank and length > least:
            chosen.append(r)
            units = np.vstack([units, left / length])
    return chosen


def _least_beside(W: Array, C: Array) -> Array:
    """Return the smallest singular value of [W c] for each column c of C; the columns of W are perpendicular and not zero.

    With W = U S, z = Uᵀ c and rest the length of c - U z they are the least roots x of

        1 - rest²/x² + sum z_i²/(s_i² - x²) = 0

    The left side grows with x up to the least entry of S (Bunch, Nielsen and Sorensen 1978); bisection finds the root.
    """
    if not W.shape[1]:
        return lengths(C, 0)
    sizes = lengths(W, 0)
    U = W / sizes
    z = product(U.T, C)
    rest2 = total((C - product(U, z)) ** 2, 0)
    low, high = np.zeros(C.shape[1]), np.full(C.shape[1], sizes.min())
    for _ in range(BISECTIONS):
        x = 0.5 * (low + high)
        beyond = 1.0 - rest2 / (x * x) + total(z * z / ((sizes[:, None] - x) * (sizes[:, None] + x)), 0) > 0.0
        low, high = np.where(beyond, low, x), np.where(beyond, x, high)
    return low


def first_of_best(values: Sequence[float]) -> int:
    """Return the index of the first value that equals the greatest up to rounding.

    Symmetric mechanisms therefore give the same result on all machines.
    """
    least = max(values) * (1.0 - TIE)
    return next(k for k, value in enumerate(values) if value >= least)


def determined(K: Array, groups: Sequence[Sequence[int]]) -> list[int]:
    """Return the columns that the rows of K determine well: earlier groups first, and each the best given those before."""
    chosen: list[int] = []
    W = np.zeros((len(K), 0))  # left singular vectors times singular values of the chosen columns
    for group in groups:
        left = list(group)
        while left and len(chosen) < len(K):
            values = _least_beside(W, K[:, left]).tolist()
            if max(values) < 1e-6 * np.abs(K).max():
                break
            best = left[first_of_best(values)]
            chosen.append(best)
            left.remove(best)
            W = perpendicular(np.column_stack([W, K[:, best]]), len(K))
    return chosen
