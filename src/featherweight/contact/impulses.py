"""Contact impulses that dissipate the most energy, under Coulomb's law.

For contacts with normal n and tangents t, impulses f and the velocities u = A f + b that they leave, A = J M⁻¹ Jᵀ is the
Delassus matrix (its blocks are NᵀM⁻¹N, NᵀM⁻¹D and DᵀM⁻¹D), and b are the velocities without contact (plus open gaps divided by
the step). Drumwright and Shell (2010) minimize the remaining kinetic energy, which is convex in f:

    min  1/2 fᵀ A f + fᵀ (b + s)      f_n >= 0,  |f_t| <= mu f_n  (or |f_t1|, |f_t2| <= mu f_n)

For s = 0, this makes sliding contacts take off, u_n = mu |u_t|, because larger normal impulses would dissipate more; the paper
bounds the sum of normal impulses to prevent it. Here, the normal velocity of each contact is shifted by s_n = mu |u_t| of the
solution (de Saxcé and Feng 1998). The limit of this sequence of convex problems satisfies Coulomb's law exactly:

    f_n >= 0,  u_n >= 0,  f_n u_n = 0;      friction opposes sliding and is mu f_n if the contact slides.

Rows with bounds, lower <= f <= upper (limits and dry friction of joints), satisfy u = 0, or u >= 0 at the lower and u <= 0 at
the upper bound. Contacts come first in A, three rows each, then rows with bounds.

The solver processes one island after the other (`islands`), and in each a few contacts first (`working_set`). From the impulses
of the previous step, Newton's method follows a path (`rigid.newton`), on which each step ends where a contact starts to stick,
to slide or to open: one or two steps if little has changed. If the path does not reach the solution, an interior-point method
(`rigid.interior_point`) follows for few contacts. Then sweeps over all contacts (`rigid.gauss_seidel`), further paths and
interior points alternate. The number of all these steps is bounded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Vector
from ..engine.loops.kernels import as_matrix, compiled
from .compliant.no_slip import StillWork, hold_still, still_work
from .compliant.primal_by_factor import PrimalWork, answering, primal_work, solve_by_factor
from .factors.block_equations import copy_numbers
from .factors.delassus_factor import FactorWork, factor_work, write_factor
from .factors.row_factor import (
    NO_BRANCHES,
    FactorSizes,
    RowFactorWork,
    factor_of_matrix,
    row_factor_work,
    sizes_of,
    sizes_of_one_branch,
)
from .islands import Islands, find_islands, give_back_island, islands_work, problem_of_island
from .laws import COULOMB, Problem
from .rigid.gauss_seidel import sweep
from .rigid.interior_point import STARTS, InteriorWork, interior_work, solve_inside
from .rigid.newton import (
    AT_END,
    CLOSE,
    LEAST,
    PATH_STEPS,
    WITHOUT_TRIAL,
    NewtonWork,
    newton_work,
    project_all,
    solve_along_path,
    solve_by_newton,
    write_residual,
    write_rho,
)
from .working_set import WorkingSet, begin_set, extend_set, give_back, list_chosen, problem_of_set, take_from, working_set

FEWEST = 4  # number of contacts up to which there is no working set
TURNS = 10  # greatest number of working sets before all contacts are used
MANY, FAR = 40, 1e7  # number of contacts, and residual in tolerances, above which sweeps come first
TRIALS = 3, 11  # numbers of steps after which the first and second path end if they are slow, for at most MANY contacts
DIRECT = 2  # number of starts of interior points before the first round, for at most MANY contacts
MOST_STARTS = len(STARTS)
ROUNDS = 2 * MOST_STARTS  # number of rounds of sweeps and a path; every second one has interior points
SWEEPS = 10  # number of sweeps in a round
PARTS = 0.0, 0.5, 2.0, 0.1  # multiples of the best impulses from which every second round starts; zero without sweeps
LONG_PATH = 28
FAIR, LAST_SWEEPS = 1e5, 2000  # residual, in tolerances, above which this many final sweeps follow
LAST_STEPS = 6  # number of whole steps for a small residual
SETTLING = 3  # number of steps until impulses inside their bounds also reach the tolerance


class Solution(NamedTuple):
    """Impulses (m,), their natural residual [m/s], and the work of the solver."""

    impulses: Vector
    residual: float
    newton_steps: int
    interior_steps: int


class SolverWork(NamedTuple):
    """Workspace for impulses of at most m unknowns."""

    newton: NewtonWork
    interior: InteriorWork
    factor: FactorWork  # factor of A, if the assembly provides none
    rows: RowFactorWork
    no_compliance: Vector  # (m,) zeros, because A's factor includes compliance
    kept: Vector  # (m,)
    best: Vector  # (m,)
    few: WorkingSet
    islands: Islands
    primal: PrimalWork
    still: StillWork


def solver_work(size: int, branches: FactorSizes = NO_BRANCHES, convex: bool = False) -> SolverWork:
    """Return workspace for `size` unknowns; `convex` adds workspace for convex problems."""
    rows = row_factor_work(size, sizes_of_one_branch(size))
    newton, interior, factor = newton_work(size, branches), interior_work(size), factor_work(size)
    kept, best = np.empty((2, size))
    islands = islands_work(size, branches)
    few = working_set(size)
    primal = primal_work(size // 3, size) if convex else primal_work(0, 0)
    return SolverWork(
        newton, interior, factor, rows, np.zeros(size), kept, best, few, islands, primal, still_work(size if convex else 0)
    )


def solve_problem(problem: Problem, start: Vector, tolerance: float) -> Solution:
    """Return the solution from an initial guess, to a residual of `tolerance` [m/s] if possible, else the best one found."""
    work = solver_work(len(start), sizes_of(problem.B), problem.cones != COULOMB)
    return Solution(work.best, *solve_in_workspace(of_arrays(problem), np.asarray(start, float), tolerance, work))


def of_arrays(problem: Problem) -> Problem:
    """Return the problem with arrays in the form that compiled functions accept."""
    A, b, mu, lower, upper, pyramid, B, R, pair, cones, turning, rounds, stiff = problem
    A, b, mu, lower, upper, R = (np.ascontiguousarray(x, float) for x in (A, b, mu, lower, upper, R))
    return Problem(A, b, mu, lower, upper, pyramid, B, R, np.ascontiguousarray(pair, np.int64), cones, turning, rounds, stiff)


def solve_in(problem: Problem, start: Vector, tolerance: float, work: SolverWork) -> Solution:
    """Solve the problem as `solve_problem` does, in the workspace `work`, which keeps the impulses of the solution.

    With several islands, each number of steps is the greatest of any island.
    """
    best, islands = work.best[: len(start)], work.islands
    copy_numbers(start, best)
    if problem.cones != COULOMB:
        residual, steps = solve_by_factor(problem, best, tolerance, work.primal, work.newton.equations)
        if problem.rounds > 0:
            hold_still(problem, best, answering(problem, work.primal), work.still)
        return Solution(best, residual, steps, 0)
    project_all(problem, best, work.newton.equations.P)
    count = find_islands(problem.B, islands) if problem.factored else 1
    worst, steps, inside = 0.0, 0, 0
    for island in range(count):
        part, f = problem, best
        if count > 1:
            part = problem_of_island(problem, island, best, islands)
            f = islands.f[: len(part.b)]
        solution = solve_connected(part, f, tolerance, work)
        worst, steps, inside = (
            max(worst, solution.residual),
            max(steps, solution.newton_steps),
            max(inside, solution.interior_steps),
        )
        if count > 1:
            give_back_island(problem, island, islands, best)
    return Solution(best, worst, steps, inside)


def solve_connected(problem: Problem, best: Vector, tolerance: float, work: SolverWork) -> Solution:
    """Change impulses of one island to the solution."""
    m, k = len(best), len(problem.mu)
    few, newton = work.few, work.newton
    write_rho(problem, newton.rho)
    count, steps, inside, residual = k, 0, 0, np.inf
    if FEWEST < k == len(problem.pair):
        copy_numbers(newton.rho, few.rho[:m])
        residual = write_residual(problem, best, newton)
        count = begin_set(problem, best, tolerance, newton.velocity, few)
    for turn in range(1, TURNS + 1):
        if not residual > tolerance:
            break
        alone = turn == TURNS or 4 * count >= 3 * k
        part, f = problem, best
        if not alone:
            part, f = problem_of_set(problem, count, few), few.f[: m - 3 * (k - count)]
            take_from(few.rho, k, count, len(f), few, newton.rho)
            take_from(best, k, count, len(f), few, f)
        solution = solve_alone(part, f, tolerance, ROUNDS if alone else 1, work)
        steps, inside, residual = steps + solution.newton_steps, inside + solution.interior_steps, solution.residual
        if alone:
            break
        give_back(k, count, few, best)
        copy_numbers(few.rho, newton.rho[:m])
        if residual > tolerance:
            count = k
        else:
            residual = write_residual(problem, best, newton)
            extend_set(problem, tolerance, newton.velocity, few)
            count = list_chosen(k, few)
    return Solution(best, residual, steps, inside)


def solve_alone(problem: Problem, f: Vector, tolerance: float, rounds: int, work: SolverWork) -> Solution:
    """Replace impulses by the solution without a working set, in at most `rounds` rounds; rho is written."""
    newton, current = work.newton, work.kept[: len(f)]
    few = len(problem.mu) <= MANY
    if not few and write_residual(problem, f, newton) > FAR * tolerance:
        sweep(problem, f, SWEEPS, newton)
    residual, steps = solve_along_path(problem, f, tolerance, PATH_STEPS, newton, TRIALS[0] if few else WITHOUT_TRIAL)
    copy_numbers(newton.last, current)
    if few and residual > CLOSE * tolerance:
        project_all(problem, current, newton.equations.P)
        sweep(problem, current, SWEEPS, newton)
        residual, more = follow_path(problem, current, f, residual, tolerance, PATH_STEPS, newton, TRIALS[1])
        steps += more
        copy_numbers(newton.last, current)
    direct = DIRECT if few and rounds == ROUNDS and problem.cones == COULOMB else 0
    inside = starts = 0
    for count in range(direct + rounds):
        if tolerance < residual <= CLOSE * tolerance:
            residual, more = solve_by_newton(problem, f, tolerance, LAST_STEPS, LEAST, newton)
            steps += more
        if not residual > tolerance:
            break
        number = count - direct
        if number >= 0:
            if number % 2 == 1:  # from another starting point
                for i in range(len(f)):
                    current[i] = PARTS[number // 2] * f[i]
            project_all(problem, current, newton.equations.P)
            if number != 1:
                sweep(problem, current, SWEEPS, newton)
            length = PATH_STEPS if number == 0 else LONG_PATH
            residual, more = follow_path(problem, current, f, residual, tolerance, length, newton)
            steps += more
            copy_numbers(newton.last, current)
        inner = (number < 0 or number % 2 == 0) and starts < MOST_STARTS and problem.cones == COULOMB
        if residual > tolerance and inner:
            factored, start = with_factor(problem, work), STARTS[starts]
            residual, taken, more = solve_inside(problem, factored, f, residual, tolerance, start, work.interior, newton)
            inside, steps, starts = inside + taken, steps + more, starts + 1
    if residual > FAIR * tolerance and rounds == ROUNDS:
        copy_numbers(f, current)
        sweep(problem, current, LAST_SWEEPS, newton)
        residual, more = follow_path(problem, current, f, residual, tolerance, PATH_STEPS, newton)
        steps += more
    reached = residual <= tolerance
    for again in range(SETTLING):
        project_all(problem, f, newton.equations.P)  # impulses outside within the tolerance
        residual = write_residual(problem, f, newton)
        if again == SETTLING - 1 or not reached or not residual > tolerance:
            break
        residual, more = solve_by_newton(problem, f, 0.1 * tolerance, SETTLING, AT_END, newton)
        steps += more
    return Solution(f, residual, steps, inside)


def follow_path(
    problem: Problem,
    current: Vector,
    best: Vector,
    least: float,
    tolerance: float,
    most: int,
    newton: NewtonWork,
    trial: int = WITHOUT_TRIAL,
) -> tuple[float, int]:
    """Follow a path from `current`; replace the impulses `best`, with residual `least`, by better ones that it meets."""
    residual, steps = solve_along_path(problem, current, tolerance, most, newton, trial)
    if not residual < least:
        return least, steps
    copy_numbers(current, best)
    return residual, steps


def with_factor(problem: Problem, work: SolverWork) -> Problem:
    """Return the problem with a factor of A in place of A."""
    m, k, rows = len(problem.b), len(problem.mu), work.factor.rows
    B, R, A = problem.B, problem.R, problem.A
    if not problem.factored:
        for i in range(m):
            rows[i] = i
        rank = write_factor(problem.A, m, work.factor)
        B = factor_of_matrix(k, m - 3 * k, rank, work.factor.L, work.rows)
        R, A = work.no_compliance[:m], as_matrix(work.best, 0, 0)
    return problem._replace(A=A, B=B, R=R)


def natural_residual(problem: Problem, f: Vector) -> float:
    """Return the greatest entry of the natural residual, as a velocity [m/s]."""
    return float(_natural_residual(of_arrays(problem), np.asarray(f, float), newton_work(len(f), sizes_of(problem.B))))


def natural_residual_in(problem: Problem, f: Vector, work: NewtonWork) -> float:
    """Return the same as `natural_residual`, computed in the workspace `work`."""
    write_rho(problem, work.rho)
    return write_residual(problem, f, work)


def greatest_of(b: Vector) -> float:
    worst = 0.0
    for x in b:
        worst = max(worst, abs(x))
    return worst


@compiled
def solve_in_workspace(problem: Problem, start: Vector, tolerance: float, work: SolverWork) -> tuple[float, int, int]:
    """Call `solve_in` from Python: return the residual, Newton steps and interior steps. The impulses are in `work.best`."""
    solution = solve_in(problem, start, tolerance, work)
    return solution.residual, solution.newton_steps, solution.interior_steps


_natural_residual = compiled(natural_residual_in)
