"""A few of a problem's contacts, which are solved first.

Most contacts of a sole, a hand or a heap are redundant or open, and need no impulse. A working set starts with the contacts
that had impulses in the previous step, and the fastest closing contact of each pair of bodies. With its solution, contacts
outside of the set that would close join it, again the fastest of each pair of bodies. The final impulses solve the whole
problem, because all conditions hold: a contact outside of the set has no impulse, and opens. Rows with bounds always belong to
the set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Booleans, Integers, Vector
from ..engine.loops.kernels import as_matrix
from .factors.row_factor import NO_BRANCHES, RowFactor, RowFactorWork, blocks_of_factor, row_factor_work
from .laws import Problem


class WorkingSet(NamedTuple):
    """Memory of the set, for at most k contacts and m unknowns."""

    chosen: Integers  # (k,) contacts, in ascending order
    is_chosen: Booleans  # (k,)
    fastest: Integers  # (k,) fastest closing contact of each pair of bodies, or -1
    rho: Vector  # (m,) rho of the whole problem
    f: Vector  # (m,) impulses of the set
    b: Vector  # (m,)
    mu: Vector  # (k,)
    R: Vector  # (m,)
    A: Vector  # (m m,)
    rows: RowFactorWork


def working_set(size: int) -> WorkingSet:
    """Return memory for problems of `size` unknowns."""
    k = size // 3
    rho, f, b, R = np.empty((4, size))
    chosen, fastest = np.empty((2, k), np.int64)
    rows = row_factor_work(size, NO_BRANCHES)
    return WorkingSet(chosen, np.empty(k, bool), fastest, rho, f, b, np.empty(k), R, np.empty(size * size), rows)


def begin_set(problem: Problem, f: Vector, tolerance: float, u: Vector, work: WorkingSet) -> int:
    """Choose the contacts with impulses, and the fastest closing contact of each pair of bodies; return their number.

    u are the velocities under the impulses f.
    """
    for c in range(len(problem.mu)):
        work.is_chosen[c] = f[3 * c] > 0.0
    extend_set(problem, tolerance, u, work)
    return list_chosen(len(problem.mu), work)


def extend_set(problem: Problem, tolerance: float, u: Vector, work: WorkingSet) -> None:
    """Add the fastest closing contact of each pair of bodies outside the set, if its residual exceeds the tolerance."""
    k = len(problem.mu)
    for c in range(k):
        work.fastest[c] = -1
    for c in range(k):
        pair = problem.pair[c]
        closes = not work.is_chosen[c] and -u[3 * c] * max(1.0, problem.mu[c]) > tolerance
        if closes and (work.fastest[pair] < 0 or u[3 * c] < u[3 * work.fastest[pair]]):
            work.fastest[pair] = c
    for pair in range(k):
        if work.fastest[pair] >= 0:
            work.is_chosen[work.fastest[pair]] = True


def list_chosen(k: int, work: WorkingSet) -> int:
    """Write the contacts of the set; return their number."""
    count = 0
    for c in range(k):
        if work.is_chosen[c]:
            work.chosen[count] = c
            count += 1
    return count


def problem_of_set(problem: Problem, count: int, work: WorkingSet) -> Problem:
    """Return the problem of the chosen contacts, and of all rows with bounds."""
    k, n = len(problem.mu), len(problem.lower)
    m = 3 * count + n
    A, B = as_matrix(work.A, 0, 0), problem.B
    for i in range(m):
        r = row_of(i, count, k, work)
        work.b[i] = problem.b[r]
        if problem.factored:
            work.R[i] = problem.R[r]
    for c in range(count):
        work.mu[c] = problem.mu[work.chosen[c]]
    if problem.factored:
        B = factor_of_set(problem.B, k, count, n, work)
    else:
        A = as_matrix(work.A, m, m)
        for i in range(m):
            r = row_of(i, count, k, work)
            for j in range(m):
                A[i, j] = problem.A[r, row_of(j, count, k, work)]
    return Problem(
        A, work.b[:m], work.mu[:count], problem.lower, problem.upper, problem.pyramid, B, work.R[:m], problem.pair[:0],
    )  # fmt: skip


def factor_of_set(B: RowFactor, k: int, count: int, n: int, work: WorkingSet) -> RowFactor:
    """Return the rows of the set."""
    for c in range(count + n):
        block = work.chosen[c] if c < count else k - count + c
        work.rows.at[c], work.rows.group[c] = B.at[block], B.group[block]
    return blocks_of_factor(B, count + n, work.rows)


def row_of(i: int, count: int, k: int, work: WorkingSet) -> int:
    """Return the row of the whole problem that corresponds to row i of the set."""
    return 3 * work.chosen[i // 3] + i % 3 if i < 3 * count else i + 3 * (k - count)


def take_from(whole: Vector, k: int, count: int, rows: int, work: WorkingSet, numbers: Vector) -> None:
    """Copy the numbers of the set's rows from those of the whole problem."""
    for i in range(rows):
        numbers[i] = whole[row_of(i, count, k, work)]


def give_back(k: int, count: int, work: WorkingSet, whole: Vector) -> None:
    """Write the impulses of the whole problem, zero outside of the set."""
    for i in range(len(whole)):
        whole[i] = 0.0
    for i in range(len(whole) - 3 * (k - count)):
        whole[row_of(i, count, k, work)] = work.f[i]
