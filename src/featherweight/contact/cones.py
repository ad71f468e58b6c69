"""Contact impulses by convex optimization over cones, with Clarabel: slow and sure.

Newton's method and sweeps may fail where contacts are many times redundant and all must carry just so, as on a robot at rest on
many points. An interior-point method finds such impulses in some fifteen iterations. Each problem has fixed shifts of the
normal velocities (`laws.normal_shift`); those of the next are the shifts of its solution, by `RELAXED` of the difference,
since a whole one may go to and fro. Where nothing slides the first is the last.
"""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
from scipy.sparse import csc_matrix, triu

from ..engine.loops.array_types import Vector
from .contact_model import ContactModel
from .contact_problem import ContactKinematics, find_active_rows, problem_in
from .contact_solver import SolverWorkspace, find_impulses_by
from .impulses import GOOD, Solution, SolverWork, greatest_of, natural_residual, solve_problem
from .laws import Problem, normal_shift

PROBLEMS = 60
RELAXED = 0.7


def solve_by_cones(problem: Problem, start: Vector, tolerance: float) -> Solution:
    """Impulses to a residual of `tolerance` [m/s], or the best that a sequence of convex problems gives."""
    k = len(problem.mu)
    scale = 1.0 / np.sqrt(_diagonal(problem))
    size = float(np.abs(problem.b).max())
    A, unit = problem.A * np.outer(scale, scale), scale / size
    rows, offset, cones = _cones(problem, scale, size)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    best = Solution(start, natural_residual(problem, start), 0, 0)
    shift = np.zeros(k)
    for _ in range(PROBLEMS):
        b = problem.b.copy()
        b[: 3 * k : 3] += shift
        answer = clarabel.DefaultSolver(triu(csc_matrix(A)).tocsc(), b * unit, rows, offset, cones, settings).solve()
        f = np.asarray(answer.x) * scale * size
        if not np.isfinite(f).all():
            break
        polished = solve_problem(problem, f, tolerance)
        for tried in (Solution(f, natural_residual(problem, f), 0, 0), polished):
            best = tried if tried.residual < best.residual else best
        if best.residual <= GOOD * tolerance:
            break
        u = (problem.A @ f + problem.b)[: 3 * k].reshape(k, 3)
        shifts = [normal_shift(mu, x, y, problem.pyramid) for mu, (_, x, y) in zip(problem.mu, u, strict=True)]
        shift += RELAXED * (np.array(shifts) - shift)
    return best


def find_impulses_by_cones(
    model: ContactModel, contacts: int, kinematics: ContactKinematics, workspace: SolverWorkspace
) -> float:
    """Write the impulses of the problem that a step has left in its workspace; their residual [m/s], or -1 without any."""
    work = workspace.assembly
    p = problem_in(work, model.settings.pyramid, contacts, find_active_rows(model, kinematics, work.active))
    if not (np.isfinite(p.problem.A).all() and np.isfinite(p.problem.b).all()):
        return -1.0
    tolerance = model.settings.tolerance * greatest_of(p.problem.b)
    return float(find_impulses_by(_solve_in, p, model.settings.in_step, tolerance, workspace.impulses).residual)


def _solve_in(problem: Problem, start: Vector, tolerance: float, _: SolverWork) -> Solution:
    return solve_by_cones(problem, start, tolerance)


def _diagonal(problem: Problem) -> Vector:
    """The greatest entry on the diagonal of A for each contact and row; one where there is none."""
    k, d = len(problem.mu), np.diag(problem.A)
    most = np.concatenate([np.repeat(d[: 3 * k].reshape(k, 3).max(axis=1, initial=0.0), 3), d[3 * k :]])
    return np.where(most > 0.0, most, 1.0)


def _cones(problem: Problem, scale: Vector, size: float) -> tuple[Any, Vector, list[Any]]:
    """Clarabel's constraints offset - rows x in cones, for impulses scale size x."""
    k, m = len(problem.mu), len(problem.b)
    flat: list[tuple[dict[int, float], float]] = []  # coefficients of what must not be negative, and a constant
    round_: list[dict[int, float]] = []
    for c in range(k):
        n, mu = 3 * c, float(problem.mu[c])
        if mu == 0.0 or problem.pyramid:
            flat.append(({n: 1.0}, 0.0))
        if problem.pyramid or mu == 0.0:
            flat += [({n: mu, n + i: sign}, 0.0) for i in (1, 2) for sign in (1.0, -1.0)]
        else:
            round_ += [{n: mu}, {n + 1: 1.0}, {n + 2: 1.0}]
    for i, (low, high) in enumerate(zip(problem.lower, problem.upper, strict=True)):
        at = 3 * k + i
        if np.isfinite(low):
            flat.append(({at: 1.0}, -float(low) / float(scale[at] * size)))
        if np.isfinite(high):
            flat.append(({at: -1.0}, float(high) / float(scale[at] * size)))
    every = [*(f[0] for f in flat), *round_]
    entries = [(row, column, -x) for row, terms in enumerate(every) for column, x in terms.items()]
    at_rows, at_columns, values = zip(*entries, strict=True)
    cones = [clarabel.NonnegativeConeT(len(flat))] if flat else []
    cones += [clarabel.SecondOrderConeT(3)] * (len(round_) // 3)
    return (
        csc_matrix((values, (at_rows, at_columns)), shape=(len(every), m)),
        np.array([*(f[1] for f in flat), *[0.0] * len(round_)]),
        cones,
    )
