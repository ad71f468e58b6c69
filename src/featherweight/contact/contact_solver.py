"""Solution of contact problems by impulses on bodies and joints: one robot after another, without the GIL."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Integers, Matrix, Tensor4, Vector
from ..collision.detection import ContactPoints, body_of
from ..engine.loops.kernels import aligned_numbers, as_matrix
from .compliant.contact_passes import RobotInPasses, scene_of, solve_in_passes
from .compliant.primal_by_factor import PrimalWork
from .contact_model import ContactModel
from .contact_problem import (
    AssembledProblem,
    AssemblyWork,
    BodyDelassus,
    ContactImpulses,
    ContactKinematics,
    ProblemRows,
    RowWork,
    assembled,
    assembly_work,
    is_cheaper,
    rows_of_contacts,
    write_square,
)  # fmt: skip
from .contact_settings import ContactSettings
from .factors.block_equations import copy_numbers, write_product
from .factors.branches import BranchPaths, longest_path, padded, widest_row
from .factors.row_factor import (
    NO_BRANCHES,
    FactorSizes,
    RowFactorWork,
    row_factor_work,
    rows_of_factor,
    sizes_of_branches,
    sizes_of_one_branch,
    sum_of_squares,
)
from .impulses import Solution, SolverWork, greatest_of, solve_in, solver_work
from .laws import (
    COULOMB,
    MOST_LATE,
    RETURN_SPEED,
    Problem,
    bounces,
    is_stiff,
    part_of_restitution,
    stored_energy,
    write_bounce,
    write_restitution,
)
from .rigid.gauss_seidel import sweep
from .rigid.interior_point import ACCEPTED
from .rigid.newton import write_rho

PARTED = 1e-6  # accuracy of the separating displacement, relative to slop
SPARED = 1e-3  # overlap beyond slop, relative to slop, that is not corrected, because bodies at rest have such errors
STRUCK = 1e2  # approach speed, in tolerances, from which a contact counts as an impact
IMPACT, SMOOTH, LAST, DONE = range(4)  # problems of a step: rounds of the first two while there are impacts, then the last
MOST_ROUNDS = 32  # of impacts in a step
PUSHES = 20  # sweeps for the displacement, which starts from zero
LEAST_SPEED = 1e-6  # [m/s] least reference speed of the tolerance
FASTEST_PARTING = 10.0  # [m/s, rad/s] bound for any coordinate while bodies separate, because lever arms may be tiny


class SolverReport(NamedTuple):
    """Result of the solver for one robot."""

    residual: float  # [m/s]
    allowed: float  # [m/s] greatest residual of a successful step
    inexact: bool  # the residual is above the tolerance
    newton_steps: int
    interior_steps: int
    parting: float  # [rad, m] bound of a joint's motion by the separating displacement; zero without overlaps
    stored: float  # [J] gain of the energy of contact springs in the step


class ImpulseWork(NamedTuple):
    """Workspace for the impulses of a step, of at most k contacts and n joint rows, m = 3 k + n."""

    solver: SolverWork
    f: Vector  # (m,)
    impact: Vector  # (m,) part of f at the start of the step, if velocities and positions are at the same time
    compression: Vector  # (m,)
    guess: Vector  # (m,)
    after: Vector  # (m,) velocities after f
    change: Vector  # (m,) change of velocities by impulses
    change_back: Vector  # (m,) change by impulses of restitution
    lower: Vector  # (m,) bounds
    upper: Vector  # (m,)
    pushed: Integers  # (k + n,) rows of the displacement
    gap: Vector  # (k + n,) gaps of these rows
    correction: Vector  # (k + n,) displacements in the form of impulses
    normals: Vector  # ((k + n)²,) A of these rows
    pushed_rows: RowFactorWork
    square: Vector  # ((k + n + columns of B) padded(k + n),)
    none: Vector  # (0,)
    zero: Vector  # (k + n,)
    unbounded: Vector  # (k + n,)


def impulse_work(contacts: int, rows: int, branches: FactorSizes = NO_BRANCHES, convex: bool = False) -> ImpulseWork:
    """Return workspace for contacts and joint rows."""
    m, n = 3 * contacts + rows, contacts + rows
    f, impact, compression, guess, after, change, change_back = np.empty((7, m))
    lower, upper = np.empty((2, m))  # rows of spinning and rolling also have bounds
    gap, correction = np.empty((2, n))
    pushed, none, zero, unbounded = np.empty(n, np.int64), np.empty(0), np.zeros(n), np.full(n, np.inf)
    return ImpulseWork(
        solver_work(m, branches, convex), f, impact, compression, guess, after, change, change_back,
        lower, upper, pushed, gap, correction, np.empty(n * n), row_factor_work(n, NO_BRANCHES),
        aligned_numbers((n + branches.columns) * padded(n)), none, zero, unbounded,
    )  # fmt: skip


class SolverWorkspace(NamedTuple):
    """Workspace for the contacts of one robot at a time."""

    assembly: AssemblyWork
    impulses: ImpulseWork


def solver_workspace(contacts: int, rows: int, columns: int, branches: BranchPaths, convex: bool = False) -> SolverWorkspace:
    """Return workspace for contacts and joint rows; G has `columns` columns. The system provides memory as it is used."""
    by_branches = sizes_of_branches(np.diff(branches.first), widest_row(branches), 2 * longest_path(branches))
    sizes = FactorSizes(*map(max, by_branches, sizes_of_one_branch(columns)))
    work = impulse_work(contacts, rows, sizes, convex)
    return SolverWorkspace(assembly_work(contacts, rows, columns, sizes), work)


def find_impulses(p: AssembledProblem, settings: ContactSettings, tolerance: float, work: ImpulseWork) -> Solution:
    """Return the impulses of a step, and statistics, for an `AssembledProblem`; the impulses stay in `work`.

    Poisson's restitution: a bouncing contact adds the restitution times its normal impulse of compression. This uses the
    velocities at the start of the step, because forces of a step do not belong to an impact. If velocities are half a step
    before positions (semi-implicit Euler), a ball then leaves as fast as it arrived, which conserves the energy that such steps
    conserve. If they are at the same time (`in_step`), the impact is over before the step's motion starts. A contact that does
    not bounce, but would close within the step at the velocities of its start, is an impact too: its impulses act for the whole
    step, and the others, on average, for half of it.

    Impacts pass through bodies that touch, as through Newton's cradle: each round resolves the contacts that close, while
    elastic contacts that do not close wait, until a round makes them close (the generalized reflections of Smith et al. 2012).
    What still closes after `MOST_ROUNDS` rounds does not bounce.
    """
    stage, worst, steps, inside, rounds = first_stage(p, settings.in_step, tolerance, work), 0.0, 0, 0, 0
    while stage != DONE:
        problem = problem_of_stage(p, stage, rounds, settings, work)
        solution = solve_in(problem, work.guess[: len(p.start)], tolerance, work.solver)
        steps, inside = steps + solution.newton_steps, inside + solution.interior_steps
        worst = max(worst, solution.residual)
        take_impulses(stage, settings.in_step, solution.impulses, work)
        if stage == LAST:
            stage = DONE
        elif stage == IMPACT and not settings.in_step:
            stage = SMOOTH
        else:
            rounds += 1
            stage = end_round(p, settings, rounds < MOST_ROUNDS, work)
    return Solution(work.f[: len(p.start)], worst, steps, inside)


def first_stage(p: AssembledProblem, in_step: bool, tolerance: float, work: ImpulseWork) -> int:
    """Start with zero impulses and a guess; return `IMPACT` if there is an impact, otherwise `LAST`."""
    m = len(p.start)
    copy_numbers(p.start, work.guess[:m])
    for i in range(m):
        work.f[i] = work.impact[i] = 0.0
    return IMPACT if bounces(p.law) or (in_step and is_struck(p, STRUCK * tolerance)) else LAST


def problem_of_stage(p: AssembledProblem, stage: int, rounds: int, settings: ContactSettings, work: ImpulseWork) -> Problem:
    """Return the problem for the impulses that a stage adds; those of `IMPACT` act on velocities at the start of the step."""
    m = len(p.start)
    if stage == LAST and rounds == 0:
        return p.problem
    problem = problem_after(p.problem, work.f[:m], work)
    if stage == IMPACT:
        for i in range(m):
            problem.b[i] = problem.b[i] - p.approach[i] + p.before[i]
    if stage != LAST and bounces(p.law):
        for c in range(len(p.law.restitution)):
            if p.law.elasticity[c] > 0.0 and p.law.restitution[c] == 0.0:
                problem.b[3 * c] += MOST_LATE / settings.step  # it waits
    return problem


def take_impulses(stage: int, in_step: bool, found: Vector, work: ImpulseWork) -> None:
    """Store the impulses of a stage, which add to earlier ones, except those of a compression that only measures it."""
    for i in range(len(found)):
        if stage == IMPACT:
            work.compression[i] = found[i]
        if stage != IMPACT or in_step:
            work.f[i] += found[i]


def end_round(p: AssembledProblem, settings: ContactSettings, again: bool, work: ImpulseWork) -> int:
    """Add the impulses of restitution, and decide what bounces after them, if it may do so `again`; return the next stage."""
    m, in_step = len(p.start), settings.in_step
    f, guess, change = work.f[:m], work.guess[:m], work.change[:m]
    if bounces(p.law):
        back, by_back = guess, work.change_back[:m]
        write_restitution(p.law, work.compression[:m], back)
        write_change(p, f, work, change)
        write_change(p, back, work, by_back)
        part = part_of_restitution((p.before, p.before if in_step else p.approach), f, back, (change, by_back))
        for i in range(m):
            f[i] += part * back[i]
        write_change(p, f, work, change)
        for c in range(len(p.law.restitution)):
            if p.law.elasticity[c] > 0.0:
                allowed = p.law.allowed[c]
                closing = p.before[3 * c] + change[3 * c] if again else 0.0
                write_bounce(settings, closing, p.approach[3 * c] + change[3 * c], p.law, c)
                p.problem.b[3 * c] += p.law.allowed[c] - allowed
    if in_step:
        copy_numbers(f, work.impact[:m])
    for i in range(m):
        guess[i] = 0.0
    return IMPACT if bounces(p.law) else LAST


def is_struck(p: AssembledProblem, least: float) -> bool:
    """Return whether velocities at the start of the step close a contact or a limit within it, by more than `least` [m/s]."""
    k, problem, struck = len(p.problem.mu), p.problem, False
    for r in range(len(p.problem.b) - 2 * k):
        i = 3 * r if r < k else 2 * k + r
        if r < k or (problem.upper[r - k] == np.inf and problem.lower[r - k] > -np.inf):
            struck |= problem.b[i] - p.approach[i] + p.before[i] < -least
    return struck


def write_impulses(
    model: ContactModel, contacts: ContactPoints, p: AssembledProblem, f: Vector, impulses: ContactImpulses, work: ImpulseWork
) -> tuple[float, int]:
    """Write impulses on bodies and joints, and the separating displacement; return `SolverReport.parting` and the sweeps."""
    k, rows, most = len(p.law.friction), model.rows, (1.0 + SPARED) * model.settings.slop
    write_forces(model, contacts, p, f, impulses)
    impulses.impact[:], impulses.joint_impact[:] = 0.0, 0.0
    at_first, parting = work.impact, 0.0
    for c in range(k):
        add_wrench(contacts, c, p.rows, (at_first[3 * c], at_first[3 * c + 1], at_first[3 * c + 2]), impulses.impact)
        if p.law.distance[c] < -most:
            parting = FASTEST_PARTING * model.settings.step
    for i in range(3 * (len(contacts.gap) - k), len(p.active)):
        r = p.active[i]
        impulses.joint_impact[rows.joint[r]] += rows.sign[r] * at_first[3 * k + i]
        if p.law.distance[k + i] < -most and parting == 0.0:
            parting = RETURN_SPEED * model.settings.step
    steps = 0
    if parting > 0.0:
        steps = write_push(model, contacts, p, f, impulses, work)
    return parting, steps


def write_forces(
    model: ContactModel, contacts: ContactPoints, p: AssembledProblem | ProblemRows, f: Vector, impulses: ContactImpulses
) -> None:
    """Write the impulses f on bodies and joints."""
    k, rows = len(p.law.friction), model.rows
    impulses.wrench[:], impulses.joint[:], impulses.next_row[:] = 0.0, 0.0, 0.0
    for c in range(k):
        normal = f[3 * c] - p.pull[c]
        for j in range(3):
            total = 0.0 + p.axes[c, 0, j] * normal
            for i in range(1, 3):
                total += p.axes[c, i, j] * f[3 * c + i]
            impulses.force[c, j] = total
        add_wrench(contacts, c, p.rows, (normal, f[3 * c + 1], f[3 * c + 2]), impulses.wrench)
    turning = len(contacts.gap) - k
    write_turns(contacts, p, f, turning, impulses)
    for i in range(3 * turning, len(p.active)):
        r = p.active[i]
        impulses.joint[rows.joint[r]] += rows.sign[r] * f[3 * k + i]
        impulses.next_row[r] = f[3 * k + i]


def write_turns(
    contacts: ContactPoints, p: AssembledProblem | ProblemRows, f: Vector, turning: int, impulses: ContactImpulses
) -> None:
    """Write impulses of friction against spinning and rolling, and add them to those on bodies."""
    k, of = len(contacts.gap) - turning, 0
    for c in range(k):
        impulses.turn[c] = 0.0
    for t in range(turning):
        c, i = k + t, 3 * (k + t)
        add_wrench(contacts, c, p.rows, (f[i], f[i + 1], f[i + 2]), impulses.wrench)
        while contacts.candidate[of] != contacts.candidate[c]:
            of += 1
        for j in range(3):
            impulses.turn[of, j] = p.axes[c, 0, j] * f[i] + p.axes[c, 1, j] * f[i + 1] + p.axes[c, 2, j] * f[i + 2]


def add_wrench(contacts: ContactPoints, c: int, rows: Tensor4, f: tuple[float, float, float], wrench: Matrix) -> None:
    for s in range(2):
        body = body_of(contacts, c, s)
        if body >= 0:
            for j in range(6):
                wrench[body, j] += rows[c, s, 0, j] * f[0] + rows[c, s, 1, j] * f[1] + rows[c, s, 2, j] * f[2]


def write_push(
    model: ContactModel, contacts: ContactPoints, p: AssembledProblem, f: Vector, impulses: ContactImpulses, work: ImpulseWork
) -> int:
    """Write the least displacement, in the metric of the mass matrix, that leaves no overlap.

    It is M⁻¹ Nᵀ l with N M⁻¹ Nᵀ l + gap >= 0, l >= 0, and at least one of both zero in each row. Gaps are those after the
    impulses f: bouncing bodies separate by themselves, and would otherwise gain height. Joints far beyond their limits return
    at `RETURN_SPEED`. Returns the number of sweeps.
    """
    rows, slop, h, law = model.rows, model.settings.slop, model.settings.step, p.law
    k, kept = len(law.friction), 0
    pushed, gap, l, change = work.pushed, work.gap, work.correction, work.change[: len(f)]
    write_change(p, f, work, change)
    for i in range(len(law.distance)):
        r = 3 * i if i < k else 2 * k + i
        if law.distance[i] < np.inf:
            opening = max(p.approach[r] + change[r], 0.0)
            pushed[kept], gap[kept], l[kept] = r, law.distance[i] + h * opening + slop, 0.0
            kept += 1
    problem, newton = problem_of_normals(p, kept, work), work.solver.newton
    write_rho(problem, newton.rho)
    sweep(problem, l[:kept], PUSHES, newton)

    solution = solve_in(problem, l[:kept], PARTED * slop, work.solver)
    copy_numbers(solution.impulses, l[:kept])
    impulses.correction[:], impulses.joint_correction[:] = 0.0, 0.0
    for i in range(kept):
        if pushed[i] < 3 * k:
            add_wrench(contacts, pushed[i] // 3, p.rows, (l[i], 0.0, 0.0), impulses.correction)
        else:
            r = p.active[pushed[i] - 3 * k]
            impulses.joint_correction[rows.joint[r]] += rows.sign[r] * l[i]
    return solution.newton_steps


def problem_of_normals(p: AssembledProblem, kept: int, work: ImpulseWork) -> Problem:
    """Return the problem of the displacement: rows of normals and limits only, with nonnegative impulses."""
    whole, pushed = p.problem, work.pushed
    A, B = as_matrix(work.normals, kept, kept), whole.B
    if whole.factored:
        B = rows_of_factor(B, len(whole.mu), pushed[:kept], work.pushed_rows)
        if is_cheaper(B, kept):
            A = as_matrix(work.normals, 0, 0)
        else:
            write_square(B, 0, work.square, A)
    else:
        for i in range(kept):
            for j in range(kept):
                A[i, j] = whole.A[pushed[i], pushed[j]]
            A[i, i] -= p.law.compliance[pushed[i]]
    return Problem(
        A, work.gap[:kept], work.none, work.zero[:kept], work.unbounded[:kept], False, B, work.zero[:kept], whole.pair[:0]
    )  # fmt: skip


def write_change(p: AssembledProblem, f: Vector, work: ImpulseWork, change: Vector) -> None:
    """Write the change of velocities by impulses f, without the compliance of contacts."""
    write_product(p.problem, f, work.solver.newton.equations, change)
    for i in range(len(f)):
        change[i] -= p.law.compliance[i] * f[i]


def newly_stored(p: AssembledProblem, f: Vector, step: float, gap: Vector, work: ImpulseWork) -> float:
    """Return `SolverReport.stored`; `gap` (k + n,) of springs becomes that at the end of the step."""
    law, k, change, springs = p.law, len(p.law.friction), work.change[: len(f)], False
    for stiffness in law.stiffness:
        springs = springs or bool(stiffness > 0.0)
    if not springs:
        return 0.0
    before = stored_energy(law, gap)
    write_change(p, f, work, change)
    for i in range(len(law.stiffness)):
        if law.stiffness[i] > 0.0:
            r = 3 * i if i < k else 2 * k + i
            gap[i] += step * (p.approach[r] + change[r])
    return stored_energy(law, gap) - before


def translate(p: AssembledProblem, work: ImpulseWork) -> None:
    """Move the apex of the cones of adhesive contacts to the start of their impulses.

    Impulses f of the problem are those of the contacts plus the pulls p along their normals, so b - (A + R) p replaces b.
    """
    m = len(p.start)
    pulls, change = work.change_back[:m], work.change[:m]
    for i in range(m):
        pulls[i] = p.pull[i // 3] if i % 3 == 0 and i < 3 * len(p.pull) else 0.0
    write_product(p.problem, pulls, work.solver.newton.equations, change)
    for i in range(m):
        p.problem.b[i] -= change[i]
        p.approach[i] -= change[i] - p.law.compliance[i] * pulls[i]


def work_of_surfaces(model: ContactModel, p: AssembledProblem, f: Vector, work: ImpulseWork) -> float:
    """Return the work [J] of moving surfaces and of adhesion in a step."""
    total, change = 0.0, work.change[: len(f)]
    if len(model.surfaces) > 0:
        for i in range(3 * len(p.axes)):
            total -= f[i] * p.conveyed[i]
    if len(model.adhesion) > 0:
        write_change(p, f, work, change)
        for c in range(len(p.pull)):
            total -= p.pull[c] * (p.approach[3 * c] + change[3 * c])
    return total


def write_turning(k: int, turning: int, rows: RowWork, work: PrimalWork) -> None:
    """Write which of k contacts have friction against spinning and rolling, and their coefficients."""
    for c in range(k if turning > 0 else 0):
        work.group[c] = rows.turning[c]
        for l in range(3):
            work.friction[c, l] = rows.turning_friction[c, l]


def resolve(
    model: ContactModel,
    contacts: ContactPoints,
    kinematics: ContactKinematics,
    delassus: BodyDelassus,
    impulses: ContactImpulses,
    workspace: SolverWorkspace,
    turning: int = 0,
) -> SolverReport:
    """Write one robot's impulses, and return the solver's report; `turning` is as in `assembled`."""
    work = workspace.impulses
    p = assembled(model, contacts, kinematics, delassus, impulses, workspace.assembly, turning)
    if len(model.adhesion) > 0:
        translate(p, work)
    if p.problem.cones != COULOMB:
        p = p._replace(problem=p.problem._replace(stiff=is_stiff(model, contacts.candidate, p.active, p.law)))
        write_turning(len(p.law.friction), turning, workspace.assembly.of_rows, work.solver.primal)
    tolerance = model.settings.tolerance * max(greatest_of(p.problem.b), LEAST_SPEED)
    allowed = ACCEPTED * tolerance
    solution = Solution(work.f[: len(p.start)], np.inf, 0, 0)
    if is_finite(p.problem):  # in comparisons, NaN would look like a residual of zero
        solution = find_impulses(p, model.settings, tolerance, work)
    parting = stored = 0.0
    if solution.residual <= allowed:
        parting, pushing = write_impulses(model, contacts, p, solution.impulses, impulses, work)
        solution = solution._replace(newton_steps=solution.newton_steps + pushing)
        stored = newly_stored(p, solution.impulses, model.settings.step, workspace.assembly.of_rows.gap, work)
        if len(model.surfaces) > 0 or len(model.adhesion) > 0:
            stored -= work_of_surfaces(model, p, solution.impulses, work)
    inexact = bool(solution.residual > tolerance)
    return SolverReport(
        solution.residual, allowed, inexact, solution.newton_steps, solution.interior_steps, parting, stored
    )  # fmt: skip


def resolve_in_passes(
    model: ContactModel, contacts: ContactPoints, kinematics: ContactKinematics, impulses: ContactImpulses,
    robot: RobotInPasses, turning: int,
) -> SolverReport:  # fmt: skip
    """Write one robot's impulses by a compliant law, and return the solver's report (see `compliant.contact_passes`)."""
    rows = rows_of_contacts(model, contacts, kinematics, impulses, robot.passes.rows, turning)
    tolerance = model.settings.tolerance * max(greatest_of(rows.law.bias), LEAST_SPEED)
    residual, steps = solve_in_passes(scene_of(model, contacts, rows, turning, robot), tolerance)
    allowed = ACCEPTED * tolerance
    if residual <= allowed:
        write_forces(model, contacts, rows, rows.start, impulses)
    return SolverReport(residual, allowed, bool(residual > tolerance), steps, 0, 0.0, 0.0)


def is_finite(problem: Problem) -> bool:
    """Return whether all entries of A and b are finite."""
    finite = True
    for i in range(len(problem.b)):
        finite = finite and bool(abs(problem.b[i]) < np.inf)
        if not problem.factored:
            for x in problem.A[i]:
                finite = finite and bool(abs(x) < np.inf)
    for c in range(len(problem.B.at) if problem.factored else 0):
        for l in range(3 if c < len(problem.mu) else 1):
            finite = finite and sum_of_squares(problem.B, c, l) < np.inf
    return finite


def problem_after(problem: Problem, f: Vector, work: ImpulseWork) -> Problem:
    """Return the problem for impulses in addition to f."""
    m, at = len(f), 3 * len(problem.mu)
    b, lower, upper = work.after[:m], work.lower[: m - at], work.upper[: m - at]
    write_product(problem, f, work.solver.newton.equations, b)
    for i in range(m):
        b[i] += problem.b[i]
    for i in range(m - at):
        lower[i], upper[i] = problem.lower[i] - f[at + i], problem.upper[i] - f[at + i]
    return problem._replace(b=b, lower=lower, upper=upper)


def keep_impulses(impulses: ContactImpulses, candidates: Integers, count: int) -> None:
    """Store the impulses of one robot's step, at the first `count` candidates, as initial guess of the next step."""
    keep_forces(impulses, candidates, count)
    for r in range(len(impulses.last_row)):
        impulses.last_row[r] = impulses.next_row[r]


def keep_forces(impulses: ContactImpulses, candidates: Integers, count: int) -> None:
    """Store the impulses of contacts at the first `count` candidates, in place of those stored before."""
    forget_forces(impulses)
    for c in range(count):
        keep_force(impulses, candidates[c], impulses.force[c], impulses.turn[c])


def keep_force(impulses: ContactImpulses, candidate: int, force: Vector, turn: Vector) -> None:
    """Store the impulses of a contact; `turn` is empty if no contact has friction against spinning or rolling."""
    for j in range(3):
        impulses.last_force[candidate, j] = force[j]
    for j in range(len(turn) if len(impulses.last_turn) > 0 else 0):
        impulses.last_turn[candidate, j] = turn[j]
    impulses.kept[impulses.kept_count[0]] = candidate
    impulses.kept_count[0] += 1


def forget_forces(impulses: ContactImpulses) -> None:
    """Set the stored impulses of contacts to zero."""
    turns = len(impulses.last_turn) > 0
    for c in range(impulses.kept_count[0]):
        for j in range(3):
            impulses.last_force[impulses.kept[c], j] = 0.0
            if turns:
                impulses.last_turn[impulses.kept[c], j] = 0.0
    impulses.kept_count[0] = 0
