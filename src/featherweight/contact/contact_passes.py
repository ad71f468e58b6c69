"""Compliant contacts by Newton's method in velocities, with a pass of the articulated-body algorithm in each step.

The impulses f(u) of contacts and joint rows follow from their velocities u = J x + b, where x is the change of the robot's
velocities, as for `soft_pyramids`. x is the minimum of a convex function (Todorov 2014), with the gradient M x - Jᵀ f(u) and
the Hessian M + Jᵀ P J, where P is the negative derivative of f. A step d from x = M⁻¹ Jᵀ f solves

    (M + Jᵀ P J) d = Jᵀ r      r = f(u) - f        and adds r - P J d to f, so that x = M⁻¹ Jᵀ f remains true

The blocks of P of contacts with the ground become 6 x 6 matrices of their bodies, and those of joint rows numbers of their
joints: the robot solves the equations by a pass whose cost does not depend on contacts (`algorithms.contact.contact_passes`).
Blocks P = C Cᵀ of contacts between two moving bodies couple them. With G the response of the robot, by the factors of the pass,

    d = G Jᵀ (r - C y)        (1 + Cᵀ J G Jᵀ C) y = Cᵀ J G Jᵀ r        (Woodbury)

where J has the rows of these contacts only. The first step starts from zero impulses, and takes P from those of the last step.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..array_types import Integers, Matrix, Tensor, Vector
from ..collision.detection import ContactPoints, body_of
from ..engine.loops.kernels import MachineCall, as_matrix, call_machine
from .block_equations import copy_numbers
from .compliance import ABSENT
from .contact_model import ContactModel
from .contact_problem import AssembledProblem
from .laws import Problem
from .newton import NewtonWork
from .soft_pyramids import (
    PATIENCE,
    SMALLER,
    STEPS,
    answer,
    answer_of_row,
    part_of_step,
    take_bounds,
    write_missing_at,
    write_slope,
)

INVERSE = 7  # field `inverse` of `Yielding`
NO_ROOT = 1e-12  # pivot of P, relative to its greatest entry, that counts as zero
SURE = 1.0 - 1e-9  # part of a pyramid's width within which both edges of a direction push


class PassWork(NamedTuple):
    """Arguments and results of the robot's functions, and workspace for contacts between two moving bodies."""

    stiffness: Tensor  # (bodies, 6, 6) K
    stiffening: Vector  # (joints,) D
    factor: Matrix  # (n, 7)
    wrench: Matrix  # (bodies, 6)
    force: Vector  # (joints,)
    motion: Matrix  # (bodies, 6)
    speed: Vector  # (joints,)
    coupled: Integers  # (contacts,) contacts between two moving bodies
    root: Tensor  # (contacts, 3, 3) C of each
    square: Vector  # ((3 contacts)²,) 1 + Cᵀ J G Jᵀ C, then its Cholesky factor
    along: Vector  # (3 contacts,) Cᵀ J d, then y


def pass_work(bodies: int, joints: int, rows: int, contacts: int) -> PassWork:
    """Return workspace for a robot with `rows` rows of its tree, of which `joints` have limits or dry friction."""
    force, stiffening, speed = np.zeros((3, joints))
    return PassWork(
        np.zeros((bodies, 6, 6)), stiffening, np.zeros((rows, 7)), np.zeros((bodies, 6)), force, np.zeros((bodies, 6)), speed,
        np.zeros(contacts, np.int64), np.zeros((contacts, 3, 3)), np.zeros(9 * contacts * contacts), np.zeros(3 * contacts),
    )  # fmt: skip


class PassCalls(NamedTuple):
    """The functions of the robot."""

    factor: MachineCall  # q, stiffness, stiffening -> factor
    response: MachineCall  # q, factor, wrench, force -> motion, speed


def solve_in_passes(
    model: ContactModel, contacts: ContactPoints, p: AssembledProblem, tolerance: float, calls: PassCalls, passes: PassWork,
    work: NewtonWork,
) -> tuple[float, int]:  # fmt: skip
    """Replace the impulses of the last step, `p.start`, by the solution; return the residual as a velocity, and the steps."""
    problem, f, m, equations = p.problem, p.start, len(p.start), work.equations
    write_scale(model, contacts, p, work.rho)
    copy_numbers(problem.b, work.velocity[:m])
    write_first_guess(problem, f, work)
    coupled = list_coupled(contacts, len(problem.mu), passes.coupled)
    steps = stalled = 0
    least = marked = residual = np.inf
    while residual > tolerance and steps < STEPS and stalled < PATIENCE:
        write_direction(model, contacts, p, coupled, calls, passes, work)
        downhill = 0.0
        for i in range(m):
            downhill += equations.right[i] * equations.moved[i]
        part = part_of_step(problem, f, downhill, work) if steps > 0 and downhill > 0.0 else 1.0
        for i in range(m):
            f[i] += part * equations.step[i]
            work.velocity[i] += part * equations.moved[i]
        residual = write_missing_at(problem, f, work)
        steps, stalled = steps + 1, stalled + 1
        if residual < least:
            least = residual
            copy_numbers(f, work.last[:m])
            copy_numbers(work.velocity[:m], work.tried[:m])
        if residual < SMALLER * marked:
            marked, stalled = residual, 0
    if residual > least:
        copy_numbers(work.last, f)
        copy_numbers(work.tried[:m], work.velocity[:m])
        write_missing_at(problem, f, work)
    take_bounds(problem, f, work)
    return least, steps


def write_scale(model: ContactModel, contacts: ContactPoints, p: AssembledProblem, rho: Vector) -> None:
    """Write how much velocities change by impulses, to the order of magnitude; zero for contacts that do not act."""
    k, R = len(p.problem.mu), p.law.compliance
    for c in range(k):
        i = 3 * c
        scale = model.yielding[contacts.candidate[c], INVERSE] + max(R[i], R[i + 1])
        rho[i] = rho[i + 1] = rho[i + 2] = scale if R[i] < ABSENT else 0.0
    for i in range(3 * k, len(R)):
        scale = model.yielding_rows[p.active[i - 3 * k], INVERSE] + R[i]
        rho[i] = scale if R[i] < ABSENT else 0.0


def write_first_guess(problem: Problem, f: Vector, work: NewtonWork) -> None:
    """Write P and r of zero impulses, if the same edges push and the same rows act as in f, which becomes zero.

    New contacts and rows without impulses act as their velocities without impulses require.
    """
    k, velocity, right, P = len(problem.mu), work.velocity, work.equations.right, work.equations.P
    for c in range(len(f) - 2 * k):
        if c < k:
            i, b = 3 * c, (velocity[3 * c], velocity[3 * c + 1], velocity[3 * c + 2])
            if f[i] > 0.0:
                write_slope_at(problem, c, (f[i], f[i + 1], f[i + 2]), P[c])
            else:
                answer(problem, c, b, P[c])
            for j in range(3):
                right[i + j] = 0.0 - (P[c, j, 0] * b[0] + P[c, j, 1] * b[1] + P[c, j, 2] * b[2])
                f[i + j] = 0.0
        else:
            i = 2 * k + c
            lower, upper = problem.lower[i - 3 * k], problem.upper[i - 3 * k]
            if lower < f[i] < upper and f[i] != 0.0:
                P[c, 0, 0] = 1.0 / problem.R[i]
                right[i] = 0.0 - P[c, 0, 0] * velocity[i]
            elif f[i] != 0.0:
                P[c, 0, 0], right[i] = 0.0, min(max(f[i], lower), upper)
            else:
                right[i], P[c, 0, 0] = answer_of_row(problem, i, velocity[i])
            f[i] = 0.0


def write_slope_at(problem: Problem, c: int, f: tuple[float, float, float], P: Matrix) -> None:
    """Write P of a contact that pushes with the impulses f, by the edges that push there."""
    mu, unit, n = problem.mu[c], 1.0 / (4.0 * problem.R[3 * c]), f[0]
    first = second = third = fourth = True
    if mu > 0.0:
        x, y = f[1] / mu, f[2] / mu
        a, b = abs(x), abs(y)
        if 2.0 * max(a, b) > n:
            along, across = (a > SURE * 0.5 * n, b < SURE * (n - a)) if a >= b else (a < SURE * (n - b), True)
            one_of_x = along if a >= b else not along
            one_of_y = not across if a >= b else True
            first, second = x > 0.0 or not one_of_x, x < 0.0 or not one_of_x
            third, fourth = y > 0.0 or not one_of_y, y < 0.0 or not one_of_y
    write_slope(mu, unit, (first, second, third, fourth), P)


def list_coupled(contacts: ContactPoints, k: int, coupled: Integers) -> int:
    """Write which of k contacts are between two moving bodies; return their number."""
    count = 0
    for c in range(k):
        if body_of(contacts, c, 0) >= 0 and body_of(contacts, c, 1) >= 0:
            coupled[count] = c
            count += 1
    return count


# ---- one step


def write_direction(
    model: ContactModel, contacts: ContactPoints, p: AssembledProblem, coupled: int, calls: PassCalls, passes: PassWork,
    work: NewtonWork,
) -> None:  # fmt: skip
    """Write J d to `moved`, and the change of impulses r - P J d to `step`."""
    equations, k, m, rows = work.equations, len(p.problem.mu), len(p.start), model.rows
    right, P, step, moved = equations.right, equations.P, equations.step, equations.moved
    clear_loads(passes)
    for body in range(len(passes.stiffness)):
        for i in range(6):
            for j in range(6):
                passes.stiffness[body, i, j] = 0.0
    for i in range(len(passes.stiffening)):
        passes.stiffening[i] = 0.0
    for c in range(k):
        a, b = body_of(contacts, c, 0), body_of(contacts, c, 1)
        if a < 0 or b < 0:
            add_stiffness(p.rows[c, 0] if a >= 0 else p.rows[c, 1], P[c], passes.stiffness[max(a, b)])
    for i in range(3 * k, m):
        passes.stiffening[rows.joint[p.active[i - 3 * k]]] += P[i - 2 * k, 0, 0]
    add_loads(model, contacts, p, right[:m], passes)
    call_machine(calls.factor)
    call_machine(calls.response)
    if coupled > 0:
        couple(contacts, p, coupled, calls, passes, P)
        copy_numbers(right, step[:m])
        for x in range(coupled):
            i = 3 * passes.coupled[x]
            for j in range(3):
                for l in range(3):
                    step[i + j] -= passes.root[x, j, l] * passes.along[3 * x + l]
        clear_loads(passes)
        add_loads(model, contacts, p, step[:m], passes)
        call_machine(calls.response)
    for c in range(k):
        i = 3 * c
        u, v, w = velocity_at(contacts, c, p, passes.motion)
        moved[i], moved[i + 1], moved[i + 2] = u, v, w
        for j in range(3):
            step[i + j] = right[i + j] - (P[c, j, 0] * u + P[c, j, 1] * v + P[c, j, 2] * w)
    for i in range(3 * k, m):
        r = p.active[i - 3 * k]
        moved[i] = rows.sign[r] * passes.speed[rows.joint[r]]
        step[i] = right[i] - P[i - 2 * k, 0, 0] * moved[i]


def clear_loads(passes: PassWork) -> None:
    """Set wrenches and forces to zero."""
    for body in range(len(passes.wrench)):
        for j in range(6):
            passes.wrench[body, j] = 0.0
    for i in range(len(passes.force)):
        passes.force[i] = 0.0


def add_loads(model: ContactModel, contacts: ContactPoints, p: AssembledProblem, f: Vector, passes: PassWork) -> None:
    """Add the wrenches and joint forces of impulses f."""
    k, rows = len(p.problem.mu), model.rows
    for c in range(k):
        add_impulses(contacts, c, p, (f[3 * c], f[3 * c + 1], f[3 * c + 2]), passes.wrench)
    for i in range(3 * k, len(f)):
        r = p.active[i - 3 * k]
        passes.force[rows.joint[r]] += rows.sign[r] * f[i]


def add_impulses(contacts: ContactPoints, c: int, p: AssembledProblem, f: tuple[float, float, float], wrench: Matrix) -> None:
    """Add the wrenches of one contact's impulses on its bodies."""
    for s in range(2):
        body = body_of(contacts, c, s)
        if body >= 0:
            for j in range(6):
                wrench[body, j] += p.rows[c, s, 0, j] * f[0] + p.rows[c, s, 1, j] * f[1] + p.rows[c, s, 2, j] * f[2]


def velocity_at(contacts: ContactPoints, c: int, p: AssembledProblem, motion: Matrix) -> tuple[float, float, float]:
    """Return the velocity at a contact for the motions of bodies."""
    u = v = w = 0.0
    for s in range(2):
        body = body_of(contacts, c, s)
        if body >= 0:
            for j in range(6):
                x = motion[body, j]
                u += p.rows[c, s, 0, j] * x
                v += p.rows[c, s, 1, j] * x
                w += p.rows[c, s, 2, j] * x
    return u, v, w


def add_stiffness(rows: Matrix, P: Matrix, K: Matrix) -> None:
    """Add rowsᵀ P rows to the upper triangle of K."""
    for j in range(6):
        x, y, z = rows[0, j], rows[1, j], rows[2, j]
        u = P[0, 0] * x + P[0, 1] * y + P[0, 2] * z
        v = P[0, 1] * x + P[1, 1] * y + P[1, 2] * z
        w = P[0, 2] * x + P[1, 2] * y + P[2, 2] * z
        for i in range(j + 1):
            K[i, j] += rows[0, i] * u + rows[1, i] * v + rows[2, i] * w


# ---- contacts between two moving bodies


def couple(contacts: ContactPoints, p: AssembledProblem, coupled: int, calls: PassCalls, passes: PassWork, P: Tensor) -> None:
    """Write C of each coupled contact, and y, for the motion without coupling."""
    n, along = 3 * coupled, passes.along
    square = as_matrix(passes.square, n, n)
    for x in range(coupled):
        write_root(P[passes.coupled[x]], passes.root[x])
        write_along(contacts, p, x, passes, along)
    for x in range(coupled):
        c, root = passes.coupled[x], passes.root[x]
        for l in range(3):
            column = 3 * x + l
            if root[0, l] == root[1, l] == root[2, l] == 0.0:
                for i in range(n):
                    square[i, column] = square[column, i] = 0.0
            else:
                clear_loads(passes)
                add_impulses(contacts, c, p, (root[0, l], root[1, l], root[2, l]), passes.wrench)
                call_machine(calls.response)
                for y in range(x, coupled):
                    u, v, w = velocity_at(contacts, passes.coupled[y], p, passes.motion)
                    for i in range(3):
                        there = passes.root[y]
                        square[3 * y + i, column] = there[0, i] * u + there[1, i] * v + there[2, i] * w
            square[column, column] += 1.0
    solve_positive(square, along[:n])


def write_along(contacts: ContactPoints, p: AssembledProblem, x: int, passes: PassWork, along: Vector) -> None:
    """Write Cᵀ J d of a coupled contact."""
    u, v, w = velocity_at(contacts, passes.coupled[x], p, passes.motion)
    for l in range(3):
        along[3 * x + l] = passes.root[x, 0, l] * u + passes.root[x, 1, l] * v + passes.root[x, 2, l] * w


def write_root(P: Matrix, root: Matrix) -> None:
    """Write the Cholesky factor of a positive semidefinite matrix (3, 3), with columns of zeros for pivots that vanish."""
    least = NO_ROOT * max(P[0, 0], P[1, 1], P[2, 2])
    for j in range(3):
        for i in range(3):
            root[i, j] = 0.0
        pivot = P[j, j]
        for l in range(j):
            pivot -= root[j, l] * root[j, l]
        if pivot > least:
            root[j, j] = sqrt(pivot)
            for i in range(j + 1, 3):
                rest = P[i, j]
                for l in range(j):
                    rest -= root[i, l] * root[j, l]
                root[i, j] = rest / root[j, j]


def solve_positive(A: Matrix, x: Vector) -> None:
    """Replace x by A⁻¹ x, for a positive definite matrix by its lower triangle, which becomes its Cholesky factor."""
    n = len(x)
    for j in range(n):
        for l in range(j):
            part = A[j, l]
            for i in range(j, n):
                A[i, j] -= part * A[i, l]
        unit = 1.0 / sqrt(A[j, j])
        for i in range(j, n):
            A[i, j] *= unit
        x[j] *= unit
        for i in range(j + 1, n):
            x[i] -= A[i, j] * x[j]
    for j in range(n - 1, -1, -1):
        for i in range(j + 1, n):
            x[j] -= A[i, j] * x[i]
        x[j] /= A[j, j]
