"""From the contact problem to impulses on bodies and joints: one robot after another, without the GIL."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ..collision.detection import points_of
from ..engine.loops.kernels import as_matrix, compiled
from .contact_problem import BodyDelassus, ContactImpulses, ContactKinematics, assembled, assembly_work, body_of
from .impulses import GOOD, Problem, Solution, copy_numbers, greatest_of, solve_in, solver_work
from .sweeps import solve_by_sweeps

PUSH_SWEEPS = 200
IMPACT, SMOOTH, LAST = range(3)  # problems of a step with impacts; the last alone where there are none
MOST_PUSHED = 0.1  # [m, rad] of any coordinate, in a step that parts bodies that overlap: levers may be tiny
RETURN_SPEED = 1.0
"""[rad/s, m/s] at which a joint beyond its limit is pushed back; no other joint is pushed faster by that. At 1 rad/s the tip
of a link of a metre moves by 1 mm, the margin of contacts, in a step of 1 ms: contacts found before the step see it come."""


class SolverReport(NamedTuple):
    """What the solver did for a robot; of many robots, arrays."""

    residual: Any  # [m/s]
    allowed: Any  # [m/s]; a residual above it is a failure
    sweeps: Any
    newton_steps: Any
    parting: Any  # [rad, m] how far a displacement that parts what overlaps may move a joint; zero where nothing overlaps


class ContactState(NamedTuple):
    """All that the contact stage knows of many robots, with a leading axis."""

    contacts: Any  # ContactPoints
    counts: Any  # (robots,) int, of contacts
    kinematics: Any  # ContactKinematics
    impulses: Any  # ContactImpulses
    report: Any  # SolverReport


class ImpulseWork(NamedTuple):
    """Room for the impulses of a step, of at most k contacts and n joint rows, m = 3 k + n."""

    solver: Any  # SolverWork
    f: Any  # (m,)
    impact: Any  # (m,) the part of f at the beginning of the step, where velocities are of the time of positions
    compression: Any  # (m,)
    guess: Any  # (m,)
    at_impact: Any  # (m,) velocities, also those of restitution
    after: Any  # (m,) velocities after f
    lower: Any  # (n,) and bounds
    upper: Any  # (n,)
    index: Any  # (k + n,) int, rows that are pushed
    none: Any  # (0,)
    zero: Any  # (k + n,)
    unbounded: Any  # (k + n,)


def impulse_work(contacts: int, rows: int) -> ImpulseWork:
    """Room for so many contacts and joint rows."""
    m, n = 3 * contacts + rows, contacts + rows
    f, impact, compression, guess, at_impact, after = np.empty((6, m))
    lower, upper = np.empty((2, rows))
    index, none, zero, unbounded = np.empty(n, np.int64), np.empty(0), np.zeros(n), np.full(n, np.inf)
    return ImpulseWork(
        solver_work(m), f, impact, compression, guess, at_impact, after, lower, upper, index, none, zero, unbounded
    )  # fmt: skip


class SolverWorkspace(NamedTuple):
    """Room for one robot's contacts at a time."""

    assembly: Any  # AssemblyWork
    impulses: Any  # ImpulseWork


def solver_workspace(contacts: int, rows: int, columns: int) -> SolverWorkspace:
    """Room for so many contacts and joint rows, where G has so many columns; memory is taken as it is used."""
    return SolverWorkspace(assembly_work(contacts, rows, columns), impulse_work(contacts, rows))


def finder_of_impulses(solve: Callable[[Any, Any, float, Any], Any]) -> Callable[[Any, bool, float, Any], Any]:
    """A function that finds the impulses of a step, and what they took, by a solver of problems in some room.

    The impulses stay in the room that it is given, an `ImpulseWork`, of which the solver's is a part.

    Poisson's restitution: a contact that bounces gives the restitution times its normal impulse of compression once more. That
    is for the velocities of the step's beginning, since forces of a step are none of an impact. Where velocities belong half a
    step before positions (semi-implicit Euler) a ball then leaves as fast as it came, which keeps the energy that such steps
    keep; where they are of one time (`in_step`) the impact is over before the step's motion begins. What does not bounce but
    would close within the step at the velocities of its beginning is an impact too: those impulses act for the whole step, and
    the others, on average, for half of it.
    """

    def find_impulses(p: Any, in_step: bool, tolerance: float, work: Any) -> Any:
        problem, m = p.problem, len(p.start)
        f, guess, compression, worst, bounces = work.f[:m], work.guess[:m], work.compression[:m], 0.0, False
        impact, sweeps, steps = work.impact[:m], 0, 0
        copy_numbers(p.start, guess)
        for i in range(m):
            f[i] = impact[i] = 0.0
        for restitution in p.restitution:
            bounces |= restitution != 0.0
        strikes = bounces or (in_step and is_struck(p, GOOD * tolerance))
        for stage in range(IMPACT if strikes else LAST, LAST + 1):  # in one place, since machine code of the solver is long
            if stage == IMPACT:
                problem = impact_problem(p, work)
            elif stage == SMOOTH:
                if in_step:
                    continue
                problem = p.problem
            elif strikes:
                if bounces:
                    add_restitution(p, in_step, compression, f, guess)
                if in_step:
                    copy_numbers(f, impact)
                problem = problem_after(p.problem, f, work)  # where that leads bodies into one another
                for i in range(m):
                    guess[i] = 0.0
            solution = solve(problem, guess, tolerance, work.solver)
            sweeps, steps = sweeps + solution.sweeps, steps + solution.newton_steps
            worst = max(worst, solution.residual)
            if stage == IMPACT:
                copy_numbers(solution.impulses, compression)
            for i in range(m):
                f[i] = solution.impulses[i] + (f[i] if stage == LAST else 0.0)
        return Solution(f, worst, sweeps, steps)

    return find_impulses


def is_struck(p: Any, least: float) -> bool:
    """Whether velocities at the beginning of the step close a contact or a limit within it, by more than `least` [m/s]."""
    k, problem, struck = len(p.problem.mu), p.problem, False
    for r in range(len(p.problem.b) - 2 * k):
        i = 3 * r if r < k else 2 * k + r
        if r < k or problem.upper[r - k] == np.inf:
            struck |= problem.b[i] - p.approach[i] + p.before[i] < -least
    return struck


def impact_problem(p: Any, work: Any) -> Any:
    """That of the velocities at the beginning of the step, with the gaps that count in the step."""
    problem = p.problem
    b = work.at_impact[: len(problem.b)]
    for i in range(len(b)):
        b[i] = problem.b[i] - p.approach[i] + p.before[i]
    return Problem(problem.A, b, problem.mu, problem.lower, problem.upper, problem.pyramid)


def add_restitution(p: Any, in_step: bool, compression: Any, f: Any, back: Any) -> None:
    """Add the impulses of restitution to f, in place: of all contacts the same part less where they would add energy.

    They are written to `back`.

    With friction they may (Kane and Levinson 1985). The work of impulses f is fᵀ (u + u') / 2, for the velocities u and u'
    before and after them: those of the step, or of an impact at its beginning.
    """
    A = p.problem.A
    m = len(f)
    for i in range(m):
        back[i] = 0.0
    for c in range(len(p.restitution)):
        back[3 * c] = p.restitution[c] * compression[3 * c]
    before = first = second = 0.0  # the work: before + s first + s² second, by the part s of `back`
    for i in range(m):
        Af = Ab = 0.0
        for j in range(m):
            Af += A[i, j] * f[j]
            Ab += A[i, j] * back[j]
        mean = p.before[i] if in_step else 0.5 * (p.before[i] + p.approach[i])
        before += f[i] * (0.5 * Af + mean)
        first += back[i] * (Af + mean)
        second += 0.5 * back[i] * Ab
    part = 1.0
    if before + first + second > 0.0 and second > 0.0:
        part = min(max((sqrt(max(first * first - 4.0 * second * before, 0.0)) - first) / (2.0 * second), 0.0), 1.0)
    for i in range(m):
        f[i] += part * back[i]


def write_impulses(model: Any, contacts: Any, kinematics: Any, p: Any, f: Any, impulses: Any, work: Any) -> float:
    """Impulses on bodies and joints, and those of the displacement where anything overlaps; `SolverReport.parting`.

    `work` is an `ImpulseWork`.
    """
    k, rows, slop = len(p.restitution), model.rows, model.settings.slop
    impulses.wrench[:], impulses.joint[:], impulses.next_force[:], impulses.next_row[:] = 0.0, 0.0, 0.0, 0.0
    impulses.impact[:], impulses.joint_impact[:] = 0.0, 0.0
    at_first = work.impact
    for c in range(k):
        for j in range(3):
            total = 0.0
            for i in range(3):
                total += p.axes[c, i, j] * f[3 * c + i]
            impulses.force[c, j] = total
            impulses.next_force[contacts.candidate[c], j] = total
        add_wrench(contacts, c, p.rows, (f[3 * c], f[3 * c + 1], f[3 * c + 2]), impulses.wrench)
        struck = at_first[3 * c], at_first[3 * c + 1], at_first[3 * c + 2]
        add_wrench(contacts, c, p.rows, struck, impulses.impact)
    parting = 0.0
    for i in range(len(p.active)):
        r = p.active[i]
        impulses.joint[rows.joint[r]] += rows.sign[r] * f[3 * k + i]
        impulses.joint_impact[rows.joint[r]] += rows.sign[r] * at_first[3 * k + i]
        impulses.next_row[r] = f[3 * k + i]
        if kinematics.gap[r] < -slop and not rows.friction[r]:
            parting = RETURN_SPEED * model.settings.step
    for c in range(k):
        if contacts.gap[c] < -slop:
            parting = MOST_PUSHED
    if parting > 0.0:
        write_push(model, contacts, kinematics, p, f, impulses, work)
    return parting


def add_wrench(contacts: Any, c: int, rows: Any, f: Any, wrench: Any) -> None:
    for s in range(2):
        body = body_of(contacts, c, s)
        if body >= 0:
            for j in range(6):
                wrench[body, j] += rows[c, s, 0, j] * f[0] + rows[c, s, 1, j] * f[1] + rows[c, s, 2, j] * f[2]


def write_push(model: Any, contacts: Any, kinematics: Any, p: Any, f: Any, impulses: Any, work: Any) -> None:
    """The least displacement, in the metric of the mass matrix, that leaves no overlap: M⁻¹ Nᵀ l, N M⁻¹ Nᵀ l + gap >= 0 = l.

    Gaps are those to which the impulses f lead: what bounces parts by itself, and would else gain height. Joints that are far
    beyond their limits come back by `RETURN_SPEED`.
    """
    rows, slop, h = model.rows, model.settings.slop, model.settings.step
    k, n, kept = len(p.restitution), len(p.active), 0
    index, gap, l = work.index, work.solver.newest, work.solver.settled
    for i in range(k + n):
        r = 3 * i if i < k else 2 * k + i
        if i < k or not rows.friction[p.active[i - k]]:
            opening = max(p.approach[r] + applied(p.problem.A, f, r), 0.0)
            distance = contacts.gap[i] if i < k else max(kinematics.gap[p.active[i - k]], -(RETURN_SPEED * h + slop))
            index[kept], gap[kept], l[kept] = r, distance + h * opening + slop, 0.0
            kept += 1
    A = as_matrix(work.solver.newton.equations, kept, kept)
    for i in range(kept):
        for j in range(kept):
            A[i, j] = p.problem.A[index[i], index[j]]
    normals = Problem(A, gap[:kept], work.none, work.zero[:kept], work.unbounded[:kept], False)
    solve_by_sweeps(normals, l[:kept], PUSH_SWEEPS, 0.1 * slop)
    impulses.push[:], impulses.joint_push[:] = 0.0, 0.0
    for c in range(k):
        add_wrench(contacts, c, p.rows, (l[c], 0.0, 0.0), impulses.push)
    for i in range(k, kept):
        r = p.active[index[i] - 3 * k]
        impulses.joint_push[rows.joint[r]] += rows.sign[r] * l[i]


def applied(A: Any, f: Any, row: int) -> float:
    """A row of A f."""
    total = 0.0
    for j in range(len(f)):
        total += A[row, j] * f[j]
    return total


find_impulses = finder_of_impulses(solve_in)


def resolve(model: Any, contacts: Any, kinematics: Any, delassus: Any, impulses: Any, workspace: Any) -> Any:
    """One robot's impulses, written, and the solver's report; `workspace` is a `SolverWorkspace`."""
    work = workspace.impulses
    p = assembled(model, contacts, kinematics, delassus, impulses, workspace.assembly)
    tolerance = model.settings.tolerance * greatest_of(p.problem.b)
    allowed = GOOD * tolerance
    solution = find_impulses(p, model.settings.in_step, tolerance, work)
    residual = solution.residual
    parting = 0.0
    if residual <= allowed:
        parting = write_impulses(model, contacts, kinematics, p, solution.impulses, impulses, work)
    return SolverReport(residual, allowed, solution.sweeps, solution.newton_steps, parting)


def problem_after(problem: Any, f: Any, work: Any) -> Any:
    """The problem for impulses in addition to f."""
    m, at = len(f), 3 * len(problem.mu)
    b, lower, upper = work.after[:m], work.lower[: m - at], work.upper[: m - at]
    for i in range(m):
        b[i] = problem.b[i] + applied(problem.A, f, i)
    for i in range(m - at):
        lower[i], upper[i] = problem.lower[i] - f[at + i], problem.upper[i] - f[at + i]
    return Problem(problem.A, b, problem.mu, lower, upper, problem.pyramid)


@compiled
def resolve_robots(first: int, stop: int, robots: Any, model: Any, delassus: Any, state: Any, workspace: Any) -> None:
    """`resolve` for the robots numbered `robots[first:stop]`, of which G has one after the other."""
    report = state.report
    for n in range(first, stop):
        i = robots[n]
        contacts = points_of(state.contacts, i, state.counts[i])
        own = BodyDelassus(delassus.G[n], delassus.begin[n])
        done = resolve(model, contacts, kinematics_of(state.kinematics, i), own, impulses_of(state.impulses, i), workspace)
        report.residual[i], report.allowed[i], report.parting[i] = done.residual, done.allowed, done.parting
        report.sweeps[i], report.newton_steps[i] = done.sweeps, done.newton_steps


@compiled
def forget(robots: Any, impulses: Any, report: Any) -> None:
    """No impulses, for robots that nothing touches."""
    for i in robots:
        impulses.wrench[i], impulses.joint[i] = 0.0, 0.0
        impulses.impact[i], impulses.joint_impact[i] = 0.0, 0.0
        impulses.next_force[i], impulses.next_row[i] = 0.0, 0.0
        report.residual[i], report.parting[i] = 0.0, 0.0


def keep_impulses(impulses: Any) -> None:
    """Those of one robot's step are what the next one starts from: it was taken."""
    f = impulses
    for c in range(len(f.last_force)):
        for j in range(3):
            f.last_force[c, j] = f.next_force[c, j]
    for r in range(len(f.last_row)):
        f.last_row[r] = f.next_row[r]


def kinematics_of(kinematics: Any, robot: int) -> Any:
    """Those of one robot."""
    k, i = kinematics, robot
    return ContactKinematics(k.placement[i], k.velocity[i], k.gap[i], k.speed[i], k.velocity_before[i], k.speed_before[i])


def impulses_of(impulses: Any, robot: int) -> Any:
    """Those of one robot."""
    f, i = impulses, robot
    return ContactImpulses(
        f.force[i], f.wrench[i], f.joint[i], f.push[i], f.joint_push[i], f.impact[i], f.joint_impact[i], f.last_force[i],
        f.last_row[i], f.next_force[i], f.next_row[i],
    )  # fmt: skip


@compiled
def write_external_forces(bodies: Any, wrench: Any, step: float, forces: Any) -> None:
    """Impulses (robots, bodies that may touch, 6) as forces (robots, all bodies, 6) over a step; `bodies` are their numbers."""
    for i in range(len(wrench)):
        for k in range(len(bodies)):
            for j in range(6):
                forces[i, bodies[k], j] = wrench[i, k, j] / step


@compiled
def add_joint_forces(dofs: Any, impulse: Any, step: float, tau: Any) -> None:
    """Add impulses (robots, joints with limits or friction) to forces tau (robots, nv) over a step."""
    for i in range(len(impulse)):
        for k in range(len(dofs)):
            tau[i, dofs[k]] += impulse[i, k] / step
