"""From the contact problem to impulses on bodies and joints, compiled by Numba: one robot after another, without the GIL."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ..compiling import compiled, jitable
from .contact_problem import BodyDelassus, ContactImpulses, ContactKinematics, assembled, body_of
from .detection import points_of
from .impulses import GOOD, Problem, greatest_of, solve_problem
from .sweeps import solve_by_sweeps

PUSH_SWEEPS = 200
MOST_PUSHED = 0.1  # [m, rad] of any coordinate, in a step that parts bodies that overlap: levers may be tiny


class SolverReport(NamedTuple):
    """What the solver did for a robot; of many robots, arrays."""

    residual: Any  # [m/s]
    allowed: Any  # [m/s]; a residual above it is a failure
    sweeps: Any
    newton_steps: Any
    overlap: Any  # bool, whether a displacement parts what overlaps


class ContactState(NamedTuple):
    """All that the contact stage knows of many robots, with a leading axis."""

    contacts: Any  # ContactPoints
    counts: Any  # (robots,) int, of contacts
    kinematics: Any  # ContactKinematics
    impulses: Any  # ContactImpulses
    report: Any  # SolverReport


@jitable
def add_restitution(p: Any, f: Any) -> bool:
    """Add the impulses of restitution to those of compression, f, in place; whether any contact takes off into another.

    Poisson's: the restitution times the normal impulse of compression, of all contacts the same part less where together
    with friction they would add kinetic energy (Kane and Levinson 1985 show that they may).
    """
    A, b = p.problem.A, p.problem.b
    k, m = len(p.restitution), len(f)
    back = np.zeros(m)
    any_bounces = False
    for c in range(k):
        if p.restitution[c] > 0.0 and f[3 * c] > 0.0:
            back[3 * c] = p.restitution[c] * f[3 * c]
            any_bounces = True
    if not any_bounces:
        return False
    before = first = second = 0.0  # kinetic energy gained: before + s first + s² second, by the part s of `back`
    for i in range(m):
        Af = Ab = 0.0
        for j in range(m):
            Af += A[i, j] * f[j]
            Ab += A[i, j] * back[j]
        before += f[i] * (0.5 * Af + p.approach[i])
        first += back[i] * (Af + p.approach[i])
        second += 0.5 * back[i] * Ab
    part = 1.0
    if before + first + second > 0.0 and second > 0.0:
        part = min(max((sqrt(max(first * first - 4.0 * second * before, 0.0)) - first) / (2.0 * second), 0.0), 1.0)
    for i in range(m):
        f[i] += part * back[i]
    for c in range(k):
        u = b[3 * c]
        for j in range(m):
            u += A[3 * c, j] * f[j]
        if u < -1e-12:
            return True
    return False


@jitable
def write_impulses(model: Any, contacts: Any, kinematics: Any, p: Any, f: Any, impulses: Any) -> bool:
    """Impulses on bodies and joints, and those of the displacement where bodies overlap; whether there are any."""
    k, rows, slop = len(p.restitution), model.rows, model.settings.slop
    impulses.wrench[:], impulses.joint[:], impulses.last_force[:], impulses.last_row[:] = 0.0, 0.0, 0.0, 0.0
    for c in range(k):
        for j in range(3):
            total = 0.0
            for i in range(3):
                total += p.axes[c, i, j] * f[3 * c + i]
            impulses.force[c, j] = total
            impulses.last_force[contacts.candidate[c], j] = total
        add_wrench(contacts, c, p.rows, (f[3 * c], f[3 * c + 1], f[3 * c + 2]), impulses.wrench)
    overlap = False
    for i in range(len(p.active)):
        r = p.active[i]
        impulses.joint[rows.joint[r]] += rows.sign[r] * f[3 * k + i]
        impulses.last_row[r] = f[3 * k + i]
        overlap |= kinematics.gap[r] < -slop and not rows.friction[r]
    for c in range(k):
        overlap |= contacts.gap[c] < -slop
    if overlap:
        write_push(model, contacts, kinematics, p, impulses)
    return overlap


@jitable
def add_wrench(contacts: Any, c: int, rows: Any, f: Any, wrench: Any) -> None:
    for s in range(2):
        body = body_of(contacts, c, s)
        if body >= 0:
            for j in range(6):
                wrench[body, j] += rows[c, s, 0, j] * f[0] + rows[c, s, 1, j] * f[1] + rows[c, s, 2, j] * f[2]


@jitable
def write_push(model: Any, contacts: Any, kinematics: Any, p: Any, impulses: Any) -> None:
    """The least displacement, in the metric of the mass matrix, that leaves no overlap: M⁻¹ Nᵀ l, N M⁻¹ Nᵀ l + gap >= 0 = l."""
    rows, slop = model.rows, model.settings.slop
    k, n = len(p.restitution), len(p.active)
    index = np.empty(k + n, np.int64)
    gap = np.empty(k + n)
    for c in range(k):
        index[c], gap[c] = 3 * c, contacts.gap[c] + slop
    kept = k
    for i in range(n):
        if not rows.friction[p.active[i]]:
            index[kept], gap[kept] = 3 * k + i, kinematics.gap[p.active[i]] + slop
            kept += 1
    A = np.empty((kept, kept))
    for i in range(kept):
        for j in range(kept):
            A[i, j] = p.problem.A[index[i], index[j]]
    l = np.zeros(kept)
    normals = Problem(A, gap[:kept], np.zeros(0), np.zeros(kept), np.full(kept, np.inf), False)
    solve_by_sweeps(normals, l, PUSH_SWEEPS, 0.1 * slop)
    impulses.push[:], impulses.joint_push[:] = 0.0, 0.0
    for c in range(k):
        add_wrench(contacts, c, p.rows, (l[c], 0.0, 0.0), impulses.push)
    for i in range(k, kept):
        r = p.active[index[i] - 3 * k]
        impulses.joint_push[rows.joint[r]] += rows.sign[r] * l[i]


@jitable
def resolve(model: Any, contacts: Any, kinematics: Any, delassus: Any, impulses: Any) -> Any:
    """One robot's impulses, written, and the solver's report."""
    p = assembled(model, contacts, kinematics, delassus, impulses)
    tolerance = model.settings.tolerance * greatest_of(p.problem.b)
    allowed = GOOD * tolerance
    f, problem, guess = np.zeros(len(p.start)), p.problem, p.start
    swept = steps = 0
    residual = 0.0
    for again in range(2):  # once more, without bouncing, where restitution leads bodies into one another
        solution = solve_problem(problem, guess, tolerance)
        f, swept, steps = f + solution.impulses, swept + solution.sweeps, steps + solution.newton_steps
        residual = solution.residual
        if again or not residual <= allowed or not add_restitution(p, f):
            break
        problem, guess = problem_after(p.problem, f), np.zeros(len(f))
    overlap = residual <= allowed and write_impulses(model, contacts, kinematics, p, f, impulses)
    return SolverReport(residual, allowed, swept, steps, overlap)


@jitable
def problem_after(problem: Any, f: Any) -> Any:
    """The problem for impulses in addition to f."""
    free = f[3 * len(problem.mu) :]
    return Problem(
        problem.A, problem.A @ f + problem.b, problem.mu, problem.lower - free, problem.upper - free, problem.pyramid
    )


@compiled
def resolve_robots(first: int, stop: int, robots: Any, model: Any, delassus: Any, state: Any) -> None:
    """`resolve` for the robots numbered `robots[first:stop]`, of which G has one after the other."""
    report = state.report
    for n in range(first, stop):
        i = robots[n]
        contacts = points_of(state.contacts, i, state.counts[i])
        own = BodyDelassus(delassus.G[n], delassus.begin[n])
        done = resolve(model, contacts, kinematics_of(state.kinematics, i), own, impulses_of(state.impulses, i))
        report.residual[i], report.allowed[i], report.overlap[i] = done.residual, done.allowed, done.overlap
        report.sweeps[i], report.newton_steps[i] = done.sweeps, done.newton_steps


@compiled
def forget(robots: Any, impulses: Any, report: Any) -> None:
    """No impulses, for robots that nothing touches."""
    for i in robots:
        impulses.wrench[i], impulses.joint[i] = 0.0, 0.0
        impulses.last_force[i], impulses.last_row[i] = 0.0, 0.0
        report.residual[i], report.overlap[i] = 0.0, False


@jitable
def kinematics_of(kinematics: Any, robot: int) -> Any:
    """Those of one robot."""
    k, i = kinematics, robot
    return ContactKinematics(k.placement[i], k.velocity[i], k.gap[i], k.speed[i])


@jitable
def impulses_of(impulses: Any, robot: int) -> Any:
    """Those of one robot."""
    f, i = impulses, robot
    return ContactImpulses(f.force[i], f.wrench[i], f.joint[i], f.push[i], f.joint_push[i], f.last_force[i], f.last_row[i])


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


@compiled
def write_displacement(overlap: Any, a: Any, pushed: Any, step: float, displacement: Any) -> None:
    """The displacements (robots, nv) that accelerations `pushed` in place of a stand for, zero without overlap."""
    for i in range(len(a)):
        farthest = 1e-300
        for j in range(a.shape[1]):
            displacement[i, j] = step * (pushed[i, j] - a[i, j]) if overlap[i] else 0.0
            farthest = max(farthest, abs(displacement[i, j]))
        for j in range(a.shape[1]):
            displacement[i, j] *= min(1.0, MOST_PUSHED / farthest)
