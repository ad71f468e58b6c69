"""Random convex problems of compliant contacts, given by their factor, for tests of the solver."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact.given_matrices import factor_of_blocks
from featherweight.array_types import Array
from featherweight.contact.compliant.answers import Answering, directions_of, friction_of, row_of
from featherweight.contact.compliant.primal_by_factor import answering
from featherweight.contact.factors.row_factor import sizes_of
from featherweight.contact.impulses import SolverWork, of_arrays, solve_in_workspace, solver_work
from featherweight.contact.laws import Problem


class ConvexProblem(NamedTuple):
    """A problem, its matrix A without compliance, and its friction against spinning and rolling."""

    problem: Problem
    A: Array
    own: Answering

    def solve(self, start: Array, tolerance: float) -> tuple[Array, float, int]:
        """Return impulses, residual and steps."""
        work = self.work()
        residual, steps, _ = solve_in_workspace(of_arrays(self.problem), start, tolerance, work)
        return work.best[: len(start)].copy(), residual, steps

    def work(self) -> SolverWork:
        """Return workspace with the friction against spinning and rolling."""
        k, work = len(self.own.mu), solver_work(len(self.problem.b), sizes_of(self.problem.B), True)
        work.primal.group[:k], work.primal.friction[:k] = self.own.group, self.own.friction
        return work

    def rows(self, c: int) -> tuple[list[int], Array]:
        """Return the rows of a contact's friction with nonzero coefficients, and these coefficients."""
        rows = [row_of(c, l, self.own) for l in range(1, directions_of(c, self.own))]
        mu = np.array([friction_of(c, l, self.own) for l in range(1, directions_of(c, self.own))])
        return [row for row, x in zip(rows, mu, strict=True) if x > 0.0], mu[mu > 0.0]


def convex_problem(
    seed: int, cones: int, contacts: int, bounded: int, *, turning: float = 0.0, spread: float = 0.0, stiffness: float = 1.0
) -> ConvexProblem:
    """Return contacts with a singular matrix, a part of which turn, and rows with bounds.

    Inertias differ by powers of ten of `spread`. Relative to them, compliances lie between 0.05 and 0.5, or with equal inertias
    between 1e-4 and 1, divided by `stiffness`.
    """
    rng = np.random.default_rng(seed)
    turns = rng.random(contacts) < turning
    t = int(turns.sum())
    k, m = contacts, 3 * (contacts + t) + bounded
    J = rng.standard_normal((m, max(m // 2, 1))) * 10.0 ** rng.normal(0.0, spread, (m, 1))
    mu, friction = rng.choice([0.0, 0.3, 1.0, 2.0], k), rng.uniform(0.001, 0.3, (k, 3))
    mu[turns] = np.maximum(mu[turns], 0.1)
    friction[rng.random(k) < 0.3, 1:] = 0.0
    group = np.where(turns, np.cumsum(turns) - 1, -1)
    R = np.einsum("ij,ij->i", J, J) * rng.uniform(0.05, 0.5, m) if spread else 10.0 ** rng.uniform(-4, 0, m) / stiffness
    lower = -rng.uniform(0, 1, m - 3 * k)
    upper = lower + rng.uniform(0, 2, m - 3 * k)
    problem = Problem(np.zeros((0, 0)), rng.standard_normal(m), mu, lower, upper, R=R, cones=cones, turning=t)
    own = Answering(R, mu, lower, upper, cones, t, group, friction)
    for c in range(k):
        if not spread:  # compliance of friction, as in a pyramid whose edges all push
            R[3 * c + 1] = R[3 * c] * 2.0 / (mu[c] ** 2 or 1.0)
        R[3 * c + 2] = R[3 * c + 1]
        for l in range(3, directions_of(c, own)):
            most = friction_of(c, l, own)
            R[row_of(c, l, own)] = R[3 * c + 1] * (mu[c] / most) ** 2 if most else 0.0
    blocks = [[c, *(range(k + 3 * group[c], k + 3 * group[c] + 3) if turns[c] else ())] for c in range(k)]
    blocks += [[i] for i in range(k + 3 * t, k + 3 * t + bounded)]
    found = ConvexProblem(problem._replace(B=factor_of_blocks(J, k, blocks)), J @ J.T, own)
    return found._replace(own=answering(problem, found.work().primal)._replace(group=group, friction=friction))
