"""Friction pyramids as MuJoCo has them: impulses l >= 0 along the four edges of each contact's pyramid.

With E the directions of edges, n + mu t and n - mu t for both tangents, and R' the compliance of each,

    f = E l        u = (Eᵀ A E + R') l + Eᵀ b        l >= 0,  u >= 0,  l u = 0

for the matrix A without compliance. This is a convex problem, in which rows with bounds follow the edges. The compliance of
contacts is that of pyramids whose edges all push (see `compliance`): R' is four times that of the normal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.loops.array_types import Vector
from ..engine.loops.kernels import as_matrix
from .laws import Problem

EDGES = 4


class EdgeWork(NamedTuple):
    """Room for problems of edges with at most n unknowns."""

    A: Vector  # (n²,)
    b: Vector  # (n,)
    lower: Vector
    upper: Vector
    impulses: Vector


def edge_work(size: int) -> EdgeWork:
    """Room for so many unknowns."""
    b, lower, upper, impulses = np.empty((4, size))
    return EdgeWork(np.empty(size * size), b, lower, upper, impulses)


def part_of_edge(e: int, mu: float) -> tuple[int, float]:
    """The tangent of an edge, 1 or 2, and its part there."""
    return 1 + e // 2, mu if e % 2 == 0 else -mu


def problem_of_edges(problem: Problem, work: EdgeWork) -> Problem:
    """Return the problem of the edges of all contacts, and of the rows with bounds."""
    k, mu, R = len(problem.mu), problem.mu, problem.R
    rows = len(problem.b) - 3 * k
    size = EDGES * k + rows
    A, b, lower, upper = as_matrix(work.A, size, size), work.b[:size], work.lower[:size], work.upper[:size]
    for x in range(size):
        for y in range(x + 1):
            A[x, y] = A[y, x] = entry_of_edges(problem, x, y)
        if x < EDGES * k:
            l, part = part_of_edge(x % EDGES, mu[x // EDGES])
            i = 3 * (x // EDGES)
            A[x, x] += EDGES * R[i]
            b[x] = problem.b[i] + part * problem.b[i + l]
            lower[x], upper[x] = 0.0, np.inf
        else:
            i = x - EDGES * k
            A[x, x] += R[3 * k + i]
            b[x], lower[x], upper[x] = problem.b[3 * k + i], problem.lower[i], problem.upper[i]
    none = problem.mu[:0]
    return problem._replace(A=A, b=b, mu=none, lower=lower, upper=upper, R=none, pair=problem.pair[:0], cones=0)


def entry_of_edges(problem: Problem, x: int, y: int) -> float:
    """An entry of Eᵀ A E."""
    k, mu = len(problem.mu), problem.mu
    if x < EDGES * k:
        l, part = part_of_edge(x % EDGES, mu[x // EDGES])
        i = 3 * (x // EDGES)
        return entry_of_row(problem, i, y) + part * entry_of_row(problem, i + l, y)
    return entry_of_row(problem, x - k, y)


def entry_of_row(problem: Problem, i: int, y: int) -> float:
    """An entry of A E, without compliance."""
    k, mu, A = len(problem.mu), problem.mu, problem.A
    if y >= EDGES * k:
        return A[i, y - k] - (problem.R[i] if i == y - k else 0.0)  # type: ignore[no-any-return]
    l, part = part_of_edge(y % EDGES, mu[y // EDGES])
    j = 3 * (y // EDGES)
    own = (problem.R[i] if i == j else 0.0) + (part * problem.R[i] if i == j + l else 0.0)
    return A[i, j] + part * A[i, j + l] - own  # type: ignore[no-any-return]


def write_edges(problem: Problem, f: Vector, impulses: Vector) -> None:
    """Write impulses along edges that begin near f: half of the normal ones for friction along each tangent."""
    k, mu = len(problem.mu), problem.mu
    for c in range(k):
        for e in range(EDGES):
            l, part = part_of_edge(e, mu[c])
            friction = f[3 * c + l] / (2.0 * part) if part != 0.0 else 0.0
            impulses[EDGES * c + e] = max(0.25 * f[3 * c] + friction, 0.0)
    for i in range(3 * k, len(f)):
        impulses[i + k] = f[i]


def write_impulses_of_edges(problem: Problem, impulses: Vector, f: Vector) -> None:
    """Write f = E l."""
    k, mu = len(problem.mu), problem.mu
    for c in range(k):
        f[3 * c] = f[3 * c + 1] = f[3 * c + 2] = 0.0
        for e in range(EDGES):
            l, part = part_of_edge(e, mu[c])
            f[3 * c] += impulses[EDGES * c + e]
            f[3 * c + l] += part * impulses[EDGES * c + e]
    for i in range(3 * k, len(f)):
        f[i] = impulses[i + k]
