"""Rounds that remove slip from compliant friction, as MuJoCo's `noslip_iterations` do.

With the matrix A without compliance R, and fixed normal impulses, each round sets dry friction and the friction of one contact
after the other to the minimum of

    f A f / 2 + b f        |f_i| <= most_i, or in a cone  sum over j of (f_j / mu_j)² <= f_n²

with respect to these impulses alone: the Gauss-Seidel method (chapter Computation of MuJoCo's documentation, section
Algorithms). In pyramids, each pair of opposite edges keeps its sum, which bounds its friction.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from ...array_types import Integers, Matrix, Vector
from ..laws import PYRAMIDS, Problem
from .answers import DIRECTIONS, Answering, directions_of, friction_of, row_of
from .primal_newton import level_of_edges

MOST_SHIFTS = 30  # greatest number of Newton steps for the multiplier of a cone
EXACT = 1e-12  # tolerance relative to a cone's radius, and to the diagonal
LEAST_NORMAL = 1e-15  # [N s]


class StillWork(NamedTuple):
    """Workspace for problems with at most m unknowns."""

    most: Vector  # (m,) greatest friction of rows of pyramids
    A: Matrix  # (5, 5) A for the friction of one contact, in units of f_j / mu_j
    factor: Matrix  # (5, 5)
    b: Vector  # (5,)
    y: Vector
    slope: Vector
    row: Integers  # (5,)
    mu: Vector


def still_work(size: int) -> StillWork:
    """Return workspace for `size` unknowns."""
    n = DIRECTIONS - 1
    A, factor = np.empty((2, n, n))
    b, y, slope, mu = np.empty((4, n))
    most = np.empty(size)
    return StillWork(most, A, factor, b, y, slope, np.empty(n, np.int64), mu)


def write_most(own: Answering, f: Vector, most: Vector) -> None:
    """Write the greatest friction along each row, from the impulses of its pair of edges."""
    for c in range(len(own.mu)):
        level = level_of_edges(own, f, c)
        for l in range(1, directions_of(c, own)):
            row = row_of(c, l, own)
            most[row] = max(abs(f[row]), 2.0 * friction_of(c, l, own) * level)


def hold_still(problem: Problem, f: Vector, own: Answering, work: StillWork) -> None:
    """Apply the problem's rounds to the friction of the impulses f."""
    k = len(problem.mu)
    if own.cones == PYRAMIDS:
        write_most(own, f, work.most)
    first = 3 * (k + problem.turning)
    for _ in range(problem.rounds):
        for i in range(first, len(f)):
            lower, upper = problem.lower[i - 3 * k], problem.upper[i - 3 * k]
            if lower > -inf and upper < inf:
                shift(problem, f, i, (lower, upper))
        for c in range(k):
            if own.cones == PYRAMIDS:
                for l in range(1, directions_of(c, own)):
                    i = row_of(c, l, own)
                    if l < 3 or friction_of(c, l, own) > 0.0:
                        shift(problem, f, i, (-work.most[i], work.most[i]))
            elif f[3 * c] < LEAST_NORMAL:
                for l in range(1, directions_of(c, own)):
                    f[row_of(c, l, own)] = 0.0
            else:
                hold_in_cone(problem, f, c, own, work)


def residual_of(problem: Problem, f: Vector, i: int) -> float:
    """Return the velocity of a row without its compliance."""
    total, row = problem.b[i] - problem.R[i] * f[i], problem.A[i]
    for j in range(len(f)):
        total += row[j] * f[j]
    return total


def shift(problem: Problem, f: Vector, i: int, bounds: tuple[float, float]) -> None:
    """Set one impulse to the minimum within bounds."""
    own = problem.A[i, i] - problem.R[i]
    if own > 0.0:
        f[i] = min(max(f[i] - residual_of(problem, f, i) / own, bounds[0]), bounds[1])


def hold_in_cone(problem: Problem, f: Vector, c: int, own: Answering, work: StillWork) -> None:
    """Set the friction of a contact to the minimum within its cone, of radius f_n in units of f_j / mu_j."""
    n, x = 0, work
    for l in range(1, directions_of(c, own)):
        mu = friction_of(c, l, own)
        if mu > 0.0:
            x.row[n], x.mu[n] = row_of(c, l, own), mu
            n += 1
    for i in range(n):
        x.b[i] = x.mu[i] * residual_of(problem, f, x.row[i])
        for j in range(n):
            yields = problem.R[x.row[i]] if i == j else 0.0
            x.A[i, j] = x.mu[i] * x.mu[j] * (problem.A[x.row[i], x.row[j]] - yields)
    trace = 0.0
    for i in range(n):
        trace += x.A[i, i]
        for j in range(n):
            x.b[i] -= x.A[i, j] * f[x.row[j]] / x.mu[j]
    if not trace > 0.0:
        return
    radius, multiplier = f[3 * c], EXACT * trace
    length = solve_shifted(x, n, multiplier)
    for _ in range(MOST_SHIFTS if length > radius else 0):  # Newton's method for 1 / |y| = 1 / radius, which is concave
        if length <= radius * (1.0 + EXACT):
            break
        square = 0.0
        for i in range(n):
            x.slope[i] = x.y[i]
        substitute(x.factor, n, x.slope)
        for i in range(n):
            square += x.y[i] * x.slope[i]
        multiplier += (length / radius - 1.0) * length * length / square
        length = solve_shifted(x, n, multiplier)
    for i in range(n):
        f[x.row[i]] = x.mu[i] * x.y[i] * min(1.0, radius / max(length, LEAST_NORMAL))


def solve_shifted(x: StillWork, n: int, multiplier: float) -> float:
    """Write y = -(A + multiplier)⁻¹ b and the Cholesky factor of that matrix; return the length of y."""
    L, square = x.factor, 0.0
    for i in range(n):
        x.y[i] = -x.b[i]
        for j in range(i + 1):
            total = x.A[i, j] + (multiplier if i == j else 0.0)
            for l in range(j):
                total -= L[i, l] * L[j, l]
            L[i, j] = total / L[j, j] if i != j else sqrt(max(total, multiplier * EXACT))
    substitute(L, n, x.y)
    for i in range(n):
        square += x.y[i] * x.y[i]
    return sqrt(square)


def substitute(L: Matrix, n: int, y: Vector) -> None:
    """Solve L Lᵀ y = y in place."""
    for i in range(n):
        for j in range(i):
            y[i] -= L[i, j] * y[j]
        y[i] /= L[i, i]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            y[i] -= L[j, i] * y[j]
        y[i] /= L[i, i]
