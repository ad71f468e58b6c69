"""Contact impulses that dissipate the most energy, under Coulomb's law.

For contacts with normal n and tangents t, impulses f and the velocities u = A f + b that they leave, A = J M⁻¹ Jᵀ the
Delassus matrix (its blocks are NᵀM⁻¹N, NᵀM⁻¹D and DᵀM⁻¹D), b the velocities without contact (plus gaps that are still open,
divided by the step), Drumwright and Shell (2010) minimize the kinetic energy that is left, which is convex in f:

    min  1/2 fᵀ A f + fᵀ (b + s)      f_n >= 0,  |f_t| <= mu f_n  (or |f_t1|, |f_t2| <= mu f_n)

Taken alone (s = 0), this lets sliding contacts take off, u_n = mu |u_t|, since pressing harder would dissipate more; the
paper bounds the sum of normal impulses against it. Here each contact's own normal velocity is shifted by s_n = mu |u_t| of
the solution (de Saxcé and Feng 1998), a sequence of the same convex problems whose limit obeys Coulomb's law exactly:

    f_n >= 0,  u_n >= 0,  f_n u_n = 0;      friction opposes sliding and is mu f_n where there is any.

Rows with bounds, lower <= f <= upper (limits and dry friction of joints), obey u = 0, or u >= 0 at the lower and u <= 0 at
the upper bound. Contacts come first in A, three rows each, then rows with bounds.

Solved from the impulses of the step before by semismooth Newton steps (`newton`), which solve exactly what sticks, slides and
is open as it seems; where they are led astray, or cost much, a few projected Gauss-Seidel sweeps (`sweeps`) come first, then
twice as many: they converge slowly, but often where Newton's method does not. Great ratios of mass, on which both fail, are
solved by Newton's method for contacts that give way at first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.loops.array_types import Vector
from ..engine.loops.kernels import compiled
from .laws import Problem
from .newton import NEWTON_STEPS, NewtonWork, newton_work, project_all, solve_by_newton, write_residual, write_rho
from .sweeps import solve_by_sweeps

SWEEPS = 6  # before Newton's method is tried; a fifteenth of the unknowns for many, whose Newton steps cost as much as those
NEWTON_FIRST = 100  # unknowns: for fewer, Newton's method is tried before any sweeps
ROUNDS = 8  # of sweeps, twice as many each time, and Newton's method
CONTINUED = 2  # the round in which Newton's method begins with soft contacts
STIFFER, LAST_SOFTNESS = 0.3, 1e-11  # from each stage to the next, and the last before none
GOOD = 1e2  # times the tolerance: where more is left, cones are tried too (`cones`)
ACCEPTED = 1e5  # times the tolerance, if they do not help: redundant contacts that slide may have no exact solution


class Solution(NamedTuple):
    """Impulses (m,), the natural residual that they leave [m/s], and the work that it took."""

    impulses: Vector
    residual: float
    sweeps: int
    newton_steps: int


class SolverWork(NamedTuple):
    """Room for impulses of at most m unknowns."""

    newton: NewtonWork
    f: Vector  # (m,) of sweeps
    newest: Vector  # (m,) of Newton's method
    settled: Vector  # (m,) the best of contacts that give way
    best: Vector  # (m,)
    diagonal: Vector  # (m,) of A, while contacts give way


def solver_work(size: int) -> SolverWork:
    """Room for so many unknowns."""
    return SolverWork(newton_work(size), *np.empty((5, size)))


def solve_problem(problem: Problem, start: Vector, tolerance: float) -> Solution:
    """The solution found from a guess, to a residual of `tolerance` [m/s] if that can be had, or else the best one met."""
    work = solver_work(len(start))
    return Solution(work.best, *solve_in_room(of_arrays(problem), np.asarray(start, float), tolerance, work))


def of_arrays(problem: Problem) -> Problem:
    """With arrays as compiled functions take them; A a copy, whose diagonal the solver changes for a while."""
    b, mu, lower, upper = (np.ascontiguousarray(x, float) for x in problem[1:5])
    return Problem(np.array(problem.A, float, order="C"), b, mu, lower, upper, problem.pyramid)


def solve_in(problem: Problem, start: Vector, tolerance: float, work: SolverWork) -> Solution:
    """As `solve_problem`, in the room of `work`, where the impulses of the solution stay."""
    m = len(start)
    f, newest, best = work.f[:m], work.newest[:m], work.best[:m]
    copy_numbers(start, f)
    copy_numbers(start, best)
    swept = steps = 0
    most = max(SWEEPS, m // 15)
    least = np.inf
    for attempt in range(ROUNDS):
        if attempt > 0 or m > NEWTON_FIRST:
            count, residual = solve_by_sweeps(problem, f, most, tolerance)
            swept += count
            most *= 2
            if residual <= tolerance:
                copy_numbers(f, best)
                least = residual
                break
        copy_numbers(f, newest)  # it may be led astray: sweeps go on from where they were
        if attempt == CONTINUED:
            residual, count = solve_by_continuation(problem, newest, tolerance, work)
        else:
            residual, count = solve_by_newton(problem, newest, tolerance, NEWTON_STEPS, work.newton)
        steps += count
        if residual < least:
            copy_numbers(newest, best)
            least = residual
        if least <= tolerance or (attempt >= CONTINUED and least <= GOOD * tolerance):
            break
    project_all(problem, best, work.newton.slope)  # what rounding left outside
    return Solution(best, least, swept, steps)


def solve_by_continuation(problem: Problem, f: Vector, tolerance: float, work: SolverWork) -> tuple[float, int]:
    """Newton's method for contacts that give way, u = A f + b + softness rho f, ever stiffer, as long as it settles.

    Changes f to the best impulses met; the diagonal of A is another one meanwhile.
    """
    m, A, rho = len(f), problem.A, work.newton.rho
    best, diagonal = work.settled[:m], work.diagonal[:m]
    for i in range(m):
        diagonal[i] = A[i, i]
    copy_numbers(f, best)
    scale = greatest_of(problem.b)
    least, steps = np.inf, 0
    softness = 1.0
    while True:
        write_rho(A, len(problem.mu), rho)
        for i in range(m):
            A[i, i] = diagonal[i] + softness * rho[i]
        allowed = tolerance if softness == 0.0 else 1e-3 * scale if softness > LAST_SOFTNESS else GOOD * tolerance
        residual, count = solve_by_newton(problem, f, allowed, 2 * NEWTON_STEPS, work.newton)
        steps += count
        for i in range(m):
            A[i, i] = diagonal[i]
        true = natural_residual_in(problem, f, work.newton)
        if true < least:
            copy_numbers(f, best)
            least = true
        if softness == 0.0 or not residual <= allowed:
            copy_numbers(best, f)
            return least, steps
        softness = STIFFER * softness if softness > LAST_SOFTNESS else 0.0


def natural_residual(problem: Problem, f: Vector) -> float:
    """The greatest entry of the natural residual, as a velocity [m/s]."""
    return float(_natural_residual(of_arrays(problem), np.asarray(f, float), newton_work(len(f))))


def natural_residual_in(problem: Problem, f: Vector, work: NewtonWork) -> float:
    """As `natural_residual`, in the room of a `NewtonWork`."""
    write_rho(problem.A, len(problem.mu), work.rho)
    return write_residual(problem, f, work.rho, work.residual, work.slope)


def copy_numbers(source: Vector, target: Vector) -> None:
    for i in range(len(target)):
        target[i] = source[i]


def greatest_of(b: Vector) -> float:
    worst = 0.0
    for x in b:
        worst = max(worst, abs(x))
    return worst


@compiled
def solve_in_room(problem: Problem, start: Vector, tolerance: float, work: SolverWork) -> tuple[float, int, int]:
    """As `solve_in`, for callers in Python: the residual, sweeps and Newton steps. The impulses are in `work.best`."""
    solution = solve_in(problem, start, tolerance, work)
    return solution.residual, solution.sweeps, solution.newton_steps


_natural_residual = compiled(natural_residual_in)
