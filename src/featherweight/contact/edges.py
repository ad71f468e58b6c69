"""Friction pyramids as in MuJoCo: impulses l >= 0 along the edges of each contact's pyramid.

Edges are n + mu t and n - mu t, for both tangents, and also for spinning and rolling of contacts with friction against them.
With E their directions, and R' the compliance of each,

    f = E l        u = (Eᵀ A E + R') l + Eᵀ b        l >= 0,  u >= 0,  l u = 0

for the matrix A without compliance. This is a convex problem, in which rows with bounds follow the edges. The compliance of
contacts is that of pyramids all of whose edges push (see `compliance`): R' is that of the normal times the number of edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Integers, Matrix, Vector
from ..engine.loops.kernels import as_matrix
from .laws import Problem

MOST_EDGES = 10


class EdgeWork(NamedTuple):
    """Workspace for problems of edges with at most n unknowns; each unknown is one row of A plus a multiple of another one."""

    A: Vector  # (n²,)
    b: Vector  # (n,)
    lower: Vector
    upper: Vector
    impulses: Vector
    part: Vector
    row: Integers  # (n,)
    other: Integers
    turning: Integers  # (n,) index of the three rows after those of contacts for a contact's spinning and rolling, or -1
    turning_friction: Matrix  # (n, 3) [m] against spinning, and rolling about both tangents


def edge_work(size: int) -> EdgeWork:
    """Return workspace for `size` unknowns."""
    b, lower, upper, impulses, part = np.empty((5, size))
    row, other = np.empty((2, size), np.int64)
    turning, friction = np.full(size, -1), np.zeros((size, 3))
    return EdgeWork(np.empty(size * size), b, lower, upper, impulses, part, row, other, turning, friction)


def list_edges(problem: Problem, work: EdgeWork) -> int:
    """Write the rows of all unknowns and return their number. Edges of a contact are adjacent."""
    k, count = len(problem.mu), 0
    for c in range(k):
        for l in range(2):
            count = add_edges(work, count, 3 * c, 3 * c + 1 + l, problem.mu[c])
        t = work.turning[c]
        for l in range(3 if t >= 0 else 0):
            most = work.turning_friction[c, l]
            if most > 0.0:
                count = add_edges(work, count, 3 * c, 3 * (k + t) + l, most)
    for i in range(3 * k + 3 * turnings(k, work), len(problem.b)):
        work.row[count], work.other[count], work.part[count] = i, i, 0.0
        count += 1
    return count


def add_edges(work: EdgeWork, count: int, row: int, other: int, part: float) -> int:
    """Add the two edges of a normal and a direction of friction; return the new number of unknowns."""
    for i in range(2):
        work.row[count + i], work.other[count + i], work.part[count + i] = row, other, part if i == 0 else -part
    return count + 2


def turnings(k: int, work: EdgeWork) -> int:
    """Return the number of contacts, among k, with friction against spinning or rolling."""
    count = 0
    for c in range(k):
        count += 1 if work.turning[c] >= 0 else 0
    return count


def edges_of(c: int, work: EdgeWork) -> int:
    """Return the number of edges of a contact."""
    count = 4
    for l in range(3 if work.turning[c] >= 0 else 0):
        count += 2 if work.turning_friction[c, l] > 0.0 else 0
    return count


def problem_of_edges(problem: Problem, size: int, work: EdgeWork) -> Problem:
    """Return the problem of the edges of all contacts, and of the rows with bounds; `size` unknowns are listed."""
    k, R = len(problem.mu), problem.R
    A, b, lower, upper = as_matrix(work.A, size, size), work.b[:size], work.lower[:size], work.upper[:size]
    for x in range(size):
        i, j, part = work.row[x], work.other[x], work.part[x]
        for y in range(x + 1):
            A[x, y] = A[y, x] = entry_of_row(problem, i, y, work) + part * entry_of_row(problem, j, y, work)
        if i < 3 * k:
            A[x, x] += edges_of(i // 3, work) * R[i]
            b[x], lower[x], upper[x] = problem.b[i] + part * problem.b[j], 0.0, np.inf
        else:
            A[x, x] += R[i]
            b[x], lower[x], upper[x] = problem.b[i], problem.lower[i - 3 * k], problem.upper[i - 3 * k]
    none = problem.mu[:0]
    return problem._replace(A=A, b=b, mu=none, lower=lower, upper=upper, R=none, pair=problem.pair[:0], cones=0)


def entry_of_row(problem: Problem, i: int, y: int, work: EdgeWork) -> float:
    """Return an entry of A E, without compliance."""
    j, l, part = work.row[y], work.other[y], work.part[y]
    total = problem.A[i, j] + part * problem.A[i, l]
    if i == j:
        total -= problem.R[i]
    if i == l:
        total -= part * problem.R[i]
    return total  # type: ignore[no-any-return]


def write_edges(problem: Problem, f: Vector, size: int, work: EdgeWork) -> None:
    """Write initial impulses along edges near f: half of those for each direction of friction, and for the normal."""
    for x in range(size):
        i, part = work.row[x], work.part[x]
        if i < 3 * len(problem.mu):
            friction = f[work.other[x]] / (2.0 * part) if part != 0.0 else 0.0
            work.impulses[x] = max(f[i] / edges_of(i // 3, work) + friction, 0.0)
        else:
            work.impulses[x] = f[i]


def write_impulses_of_edges(f: Vector, size: int, work: EdgeWork) -> None:
    """Write f = E l."""
    for i in range(len(f)):
        f[i] = 0.0
    for x in range(size):
        f[work.row[x]] += work.impulses[x]
        if work.part[x] != 0.0:
            f[work.other[x]] += work.part[x] * work.impulses[x]
