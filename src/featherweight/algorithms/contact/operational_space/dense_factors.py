"""Dense factors of the Delassus matrix D of m rows: D = C diag(p) C^T, C with a unit diagonal; no pivoting.

If rows depend on each other at a configuration, some pivots are rounding errors. `factorize_semidefinite` gives these a
reciprocal near zero, so that solutions are finite: one of the least-squares solutions. The *strain* of a solution is an
estimate of the squared loss of accuracy, in units of rounding errors: the sum of squares of the ratios D_kk / p_k.

If rows depend on each other everywhere, D is singular. Then D + mu 1 has factors, and the proximal iteration

    x <- (D + mu 1)^-1 (b + mu x)

converges to a least-squares solution of D x = b, in one iteration along all directions in which D is much larger than mu. In
the null space of D it adds b / mu each time; a difference of the last two iterates removes that, and leaves the least norm.

Rows that depend on others of the same body are eliminated before; they receive their share of the forces afterwards
(`Reduction`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

SMALL = 1e-24  # square of the ratio p_k / D_kk of pivots that are rounding errors
STILL = 1e-22  # square of an entry D_kk for which no force is too great; rows that cannot move count as dependent
NOTHING = 1e-37  # gives rows that cannot move factors too; a number also in single precision
MU = 1e-6  # relative to the mean diagonal entry
ITERATIONS = 6
ROUNDING = 1e-32  # square of a relative error


def is_zero(x) -> bool:
    """Return whether an entry is known to be zero."""
    return isinstance(x, float) and x == 0.0


def dot(x, y):
    total = 0.0
    for a, b in zip(x, y, strict=True):
        total = total + a * b
    return total


def factorize(m: int, D):
    """Return C, below the diagonal, and 1 / p; D is not changed."""
    C, reciprocal = lower(m, D), [0.0] * m
    for k in range(m):
        reciprocal[k] = 1.0 / C[k][k]
        eliminate(m, C, k, reciprocal[k])
    return C, reciprocal


def factorize_semidefinite(m: int, D):
    """Return C, reciprocals p / (p^2 + s^2) with s = 1e-12 D_kk, and the strain; D is not changed."""
    C, reciprocal, strain = lower(m, D), [0.0] * m, 0.0
    for k in range(m):
        square = D[k][k] * D[k][k] + STILL
        q = 1.0 / (C[k][k] * C[k][k] + (SMALL * square + NOTHING))
        reciprocal[k] = C[k][k] * q
        strain = strain + square * q
        eliminate(m, C, k, reciprocal[k])
    return C, reciprocal, strain


def lower(m: int, D):
    """Return the lower triangle of D."""
    C = [[0.0] * m for _ in range(m)]
    for i in range(m):
        for j in range(i + 1):
            C[i][j] = D[i][j]
    return C


def eliminate(m: int, C, k: int, reciprocal) -> None:
    """Replace column k below the diagonal by that of the factor, and the rest by its Schur complement."""
    column = [0.0] * m
    for i in range(k + 1, m):
        column[i] = C[i][k]
        C[i][k] = column[i] * reciprocal
        for j in range(k + 1, i + 1):
            C[i][j] = C[i][j] - C[i][k] * column[j]


def solve(m: int, C, reciprocal, b):
    """Return D^-1 b."""
    x = [0.0] * m
    for i in range(m):
        x[i] = b[i]
        for j in range(i):
            x[i] = x[i] - C[i][j] * x[j]
    for i in range(m):
        x[i] = x[i] * reciprocal[i]
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            x[i] = x[i] - C[j][i] * x[j]
    return x


def invert(m: int, D, damping):
    """Replace D by the inverse of D + damping 1. Returns the strain."""
    for k in range(m):
        D[k][k] = D[k][k] + damping
    C, reciprocal, strain = factorize_semidefinite(m, D)
    N = [[0.0] * m for _ in range(m)]  # C^-1
    for i in range(m):
        N[i][i] = 1.0
        for j in range(i):
            s = 0.0
            for k in range(j, i):
                s = s + C[i][k] * N[k][j]
            N[i][j] = 0.0 - s
    for i in range(m):
        E = [0.0] * m
        for k in range(i, m):
            E[k] = N[k][i] * reciprocal[k]
        for j in range(i + 1):
            s = 0.0
            for k in range(i, m):
                s = s + E[k] * N[k][j]
            D[i][j] = s
            D[j][i] = s
    return strain


def write_times_inverse(m: int, D, B, result):
    """Write B^T D^-1, for B of m rows. Returns the strain."""
    C, reciprocal, strain = factorize_semidefinite(m, D)
    for i in range(len(result)):
        x = solve(m, C, reciprocal, [B[r][i] for r in range(m)])
        for r in range(m):
            result[i][r] = x[r]
    return strain


def solve_dependent(m: int, D, b, dependent: int):
    """Return a solution of D x = b, and its strain.

    `dependent` is 1 if D is singular everywhere; then the solution is that of least norm, and its strain follows from the
    second difference of the last iterates, which vanishes in the null space.
    """
    if dependent == 0:
        C, reciprocal, strain = factorize_semidefinite(m, D)
        return solve(m, C, reciprocal, b), strain
    trace = 0.0
    for k in range(m):
        trace = trace + D[k][k]
    mu = (MU / m) * trace + NOTHING
    A = [[0.0] * m for _ in range(m)]
    for i in range(m):
        for j in range(i + 1):
            A[i][j] = D[i][j] + mu if i == j else D[i][j]
    C, reciprocal = factorize(m, A)
    last = solve(m, C, reciprocal, b)
    before, earlier = last, last
    for _ in range(ITERATIONS - 1):
        earlier, before = before, last
        last = solve(m, C, reciprocal, [b[k] + mu * before[k] for k in range(m)])
    x = [0.0] * m
    size, bend = 0.0, 0.0
    for k in range(m):
        growth = last[k] - before[k]
        change = growth - (before[k] - earlier[k])
        x[k] = before[k] - (ITERATIONS - 1) * growth
        size = size + x[k] * x[k]
        bend = bend + change * change
    return x, bend / (ROUNDING * size + NOTHING)


class Reduction(NamedTuple):
    """The map between all M rows and the m independent ones."""

    spread: Any  # (M, m) maps forces of the independent rows to those of all rows with the least norm
    gather: Any  # (m, M) maps targets of all rows to those of the independent rows, by least squares
    norm: Any  # (m, m) spread^T spread, the square of the norm of all forces as a function of the independent ones
    dependent: int  # 1 if the remaining rows are dependent at every configuration


class ReducedRows(NamedTuple):
    """Independent rows in the form that a kernel reads, and the map between these and all rows."""

    rows: Any
    reduction: Reduction


def gathered(reduction: Reduction, target):
    """Return the targets (m,) of the independent rows for the targets (M,) of all rows."""
    result = [0.0] * len(reduction.gather)
    for r in range(len(reduction.gather)):
        for s in range(len(reduction.spread)):
            result[r] = result[r] + reduction.gather[r][s] * target[s]
    return result


def spread_out(reduction: Reduction, f, force) -> None:
    """Write the forces of all rows."""
    for s in range(len(reduction.spread)):
        total = 0.0
        for r in range(len(reduction.gather)):
            total = total + reduction.spread[s][r] * f[r]
        force[s] = total


def damp_rows(reduction: Reduction, damping, D) -> None:
    """Add to the Delassus matrix of the independent rows what `damping` 1 adds to that of all rows."""
    for r in range(len(D)):
        for s in range(len(D)):
            D[r][s] = D[r][s] + damping * reduction.norm[r][s]
