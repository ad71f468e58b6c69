"""Derivatives of contact impulses, by the implicit function theorem.

Impulses f and the velocities u = A f + b satisfy f = P(f - u/rho) (`newton`), with P the projection on admissible impulses.
Where P is smooth, its derivative P' describes each contact: 1 if it sticks, 0 if it is open, and in between if it slides. With
du for fixed f,

    (1 - P') df + P' (A df + du)/rho = (1 - P') dbound

Impulses of redundant contacts are not unique. The least df is chosen; its effect on velocities does not depend on the choice.
"""

from __future__ import annotations

from math import sqrt
from typing import Protocol

import numpy as np

from ..array_types import Booleans, Matrix, Vector
from .contact_problem import AssembledProblem
from .laws import Problem
from .newton import newton_work, write_residual, write_rho

ValueAndRates = tuple[Vector, Matrix]  # (m,) and (m, directions)

RANK = 1e-10  # singular value, relative to the greatest, that counts as zero
CONSISTENT = 1e-6  # allowed residual relative to the right-hand side


class ImpulseRates:
    """Rates of the impulses f that solve a problem.

    `doubtful` (m - 2k,), contacts first, marks contacts and rows within `edge` [m/s] of another state: between sticking and
    sliding, or touching without force.
    """

    def __init__(self, problem: Problem, f: Vector, edge: float) -> None:
        m, k = len(f), len(problem.mu)
        work = newton_work(m)
        write_rho(problem, work.rho)
        write_residual(problem, f, work)
        self.problem, self.k, self.rho, slope = problem, k, work.rho, work.equations.P[: m - 2 * k]
        self.P = np.zeros((m, m))
        for c in range(k):
            if problem.mu[c] == 0.0:
                slope[c, 1:] = 0.0
            self.P[3 * c : 3 * c + 3, 3 * c : 3 * c + 3] = slope[c]
        self.P[range(3 * k, m), range(3 * k, m)] = slope[k:, 0, 0]
        self.doubtful = self._near_another_state(f, edge)

    def _near_another_state(self, f: Vector, edge: float) -> Booleans:
        p, k, rho = self.problem, self.k, self.rho
        aim = rho * f - (p.A @ f + p.b)
        near = np.zeros(len(f) - 2 * k, bool)
        for c in range(k):
            n, t = aim[3 * c], np.abs(aim[3 * c + 1 : 3 * c + 3])
            length = t if p.pyramid else np.array([np.hypot(*t)])
            near[c] = abs(n) <= edge or (n > 0.0 and p.mu[c] > 0.0 and bool((np.abs(length - p.mu[c] * n) <= edge).any()))
        for i in range(len(p.lower)):
            at = 3 * k + i
            near[k + i] = any(np.isfinite(b) and abs(aim[at] - rho[at] * b) <= edge for b in (p.lower[i], p.upper[i]))
        return near

    def __call__(self, du: Matrix, dbound: Matrix | None = None) -> Matrix:
        """Return df (m, directions) for rates du of velocities at fixed f, and of the bounds (m - 3k, directions) of rows.

        Contacts that cannot all keep their states are doubtful.
        """
        rest = np.eye(len(self.rho)) - self.P
        right = -self.P @ du
        if dbound is not None:
            at = 3 * self.k
            right[at:] += rest[at:, at:] @ (self.rho[at:, None] * dbound)
        matrix = rest + self.P @ self.problem.A / self.rho
        u, s, vt = np.linalg.svd(matrix)
        rank = int((s > RANK * s[0]).sum()) if len(s) else 0
        df: Matrix = (vt[:rank].T @ ((u[:, :rank].T @ right) / s[:rank, None])) / self.rho[:, None]
        lost = np.abs(u[:, rank:].T @ right).max(initial=0.0) > CONSISTENT * np.abs(right).max(initial=0.0)
        loose = np.abs(self.problem.A @ (vt[rank:] / self.rho).T).max(initial=0.0) > CONSISTENT
        if lost or loose:
            self.doubtful |= np.concatenate([self.P[0 : 3 * self.k : 3].any(axis=1), np.diag(self.P)[3 * self.k :] > 0.0])
        return df


class RatesOfRows(Protocol):
    """Rates of the velocities of contact and joint rows, in all directions."""

    dapproach: Matrix  # (m, directions) rates of velocities at the end of the step, without impulses

    @property
    def dbefore(self) -> Matrix:
        """Rates (m, directions) of velocities at its start."""

    def applied(self, f: Vector, df: Matrix) -> ValueAndRates:
        """Return the change of velocities by impulses, A f, and its rates."""


def restitution_rates(
    p: AssembledProblem,
    restitution: Vector,
    in_step: bool,
    impulses: ValueAndRates,
    compression: ValueAndRates,
    rates: RatesOfRows,
) -> ValueAndRates:
    """Return impulses including those of restitution, and their rates, as in `laws.part_of_restitution`.

    `restitution` (k,) is that of contacts that bounce. `impulses` and `compression` are values and rates. `rates` has
    `applied` for the change of velocities, and the rates of `before` and `approach`.
    """
    (f, df), (g, dg) = impulses, compression
    part = np.zeros(len(f))
    part[0 : 3 * len(restitution) : 3] = restitution
    back, dback = part * g, part[:, None] * dg
    (Af, dAf), (Ab, dAb) = rates.applied(f, df), rates.applied(back, dback)
    mean, dmean = p.before, rates.dbefore
    if not in_step:
        mean, dmean = 0.5 * (p.before + p.approach), 0.5 * (rates.dbefore + rates.dapproach)
    before, dbefore = float(f @ (0.5 * Af + mean)), df.T @ (0.5 * Af + mean) + (0.5 * dAf + dmean).T @ f
    first, dfirst = float(back @ (Af + mean)), dback.T @ (Af + mean) + (dAf + dmean).T @ back
    second, dsecond = 0.5 * float(back @ Ab), 0.5 * (dback.T @ Ab + dAb.T @ back)
    s, ds = 1.0, np.zeros(df.shape[1])
    if before + first + second > 0.0 and second > 0.0:
        root = sqrt(max(first * first - 4.0 * second * before, 0.0))
        s = (root - first) / (2.0 * second)
        if 0.0 < s < 1.0 and root > 0.0:  # s solves before + s first + s² second = 0
            ds = -(dbefore + s * dfirst + s * s * dsecond) / root
        s = min(max(s, 0.0), 1.0)
    return f + s * back, df + s * dback + back[:, None] * ds
