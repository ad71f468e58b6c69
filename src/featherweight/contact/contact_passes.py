"""Compliant contacts by Newton's method in velocities, with a pass of the articulated-body algorithm in each step.

The impulses f(u) of contacts and joint rows follow from their velocities u = J x + b (see `compliant_answers`), where x is the
change of the robot's velocities. x is the minimum of a convex function (Todorov 2014), with the gradient M x - Jᵀ f(u) and the
Hessian M + Jᵀ G J, where -G is the derivative of f. A step d from x = M⁻¹ Jᵀ f solves

    (M + Jᵀ G J) d = Jᵀ r      r = f(u) - f        and adds r - G J d to f, so that x = M⁻¹ Jᵀ f remains true

The blocks of G of contacts with the ground become 6 x 6 matrices of their bodies, and those of joint rows numbers of their
joints: the robot solves the equations by a pass whose cost does not depend on contacts (`algorithms.contact.contact_passes`).
Contacts between two moving bodies couple all joints between them, and tendons those that they pass. The robot then writes the
matrix without them, to which their rows J are added. Its factor Lᵀ D L is eliminated from the leaves to the root, so that only
these rows cause fill-in.

A line search follows the slope of the function along each step to its zero. The first step starts from zero impulses, with G of
the impulses of the last step. The function of pyramids is quadratic while the same edges push, so that few steps suffice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Integers, Matrix, Tensor, Vector
from ..collision.detection import ContactPoints, body_of
from ..engine.loops.kernels import MachineCall, aligned_numbers, call_machine, subtract_multiples
from .block_equations import copy_numbers
from .branches import padded
from .compliant_answers import (
    DIRECTIONS,
    Answering,
    answer_of_row,
    clear,
    directions_of,
    edges_of,
    friction_of,
    row_of,
    write_answer,
    write_edges,
)  # fmt: skip
from .contact_model import ContactModel
from .contact_problem import ProblemRows, RowWork, row_work
from .laws import PYRAMIDS
from .soft_pyramids import PATIENCE, SMALLER, STEPS, part_of_step

BLOCK = 4  # rows of the matrix
ROUNDS = 10  # of steps and corrections of rounding errors
ROUNDING = 1e-12  # difference between impulses and answers, relative to the greatest, that counts as a rounding error
ROUNDED = 1e-9  # impulse along an edge, relative to that of the normal, that counts as zero


class ContactRows(NamedTuple):
    """Numbers of at most m rows, and G of contacts."""

    velocity: Vector  # (m,) u
    right: Vector  # (m,) r
    step: Vector  # (m,) r - G J d
    moved: Vector  # (m,) J d
    there: Vector  # (m,) velocities, and
    answer: Vector  # (m,) impulses along a step
    best: Vector  # (m,) impulses of the least residual
    slope: Tensor  # (contacts, 6, 6) G of contacts
    stiffness: Vector  # (m,) G of rows with bounds


def contact_rows(contacts: int, m: int) -> ContactRows:
    """Return room for m rows, 3 for each contact and those of joints."""
    a, b, c, d, e, f, g = np.zeros((7, m))
    return ContactRows(a, b, c, d, e, f, g, np.zeros((contacts, DIRECTIONS, DIRECTIONS)), np.zeros(m))


class PassWork(NamedTuple):
    """Arguments and results of the robot's functions, and workspace for contacts between two moving bodies."""

    stiffness: Tensor  # (bodies, 6, 6) K
    stiffening: Vector  # (rows,) D of joints with limits or dry friction
    factor: Matrix  # (n, 7)
    wrench: Matrix  # (bodies, 6)
    force: Vector  # (n,)
    motion: Matrix  # (bodies, 6)
    coupled: Integers  # (contacts,) contacts between two moving bodies
    matrix: Vector  # (n, padded n) M + Jᵀ G J, then its factor; J of tendons; J and -G J (6, padded n) of each coupled contact
    load: Vector  # (n,) Jᵀ r
    change: Vector  # (n,) d
    dof: Integers  # (joints,) velocities of joints, and after these the rows of tendons, with limits or dry friction
    numbers: ContactRows
    rows: RowWork


def pass_work(bodies: int, dof: Integers, n: int, contacts: int, rows: int, coupling: bool) -> PassWork:
    """Return workspace for a robot with n joint velocities, and `rows` of the joints and tendons `dof`."""
    force, load, change = np.zeros((3, n))
    stiffening, (wrench, motion) = np.zeros(int((dof < n).sum())), np.zeros((2, bodies, 6))
    m, stride, coupled = 3 * contacts + rows, padded(n), contacts if coupling else 0
    numbers = contact_rows(contacts, m)
    matrix = aligned_numbers((n + len(dof) + 2 * DIRECTIONS * coupled) * stride if coupling else 0)
    return PassWork(
        np.zeros((bodies, 6, 6)), stiffening, np.zeros((n, 7)), wrench, force, motion, np.zeros(coupled, np.int64), matrix,
        load, change, dof, numbers,
        row_work(contacts, rows),
    )  # fmt: skip


class PassCalls(NamedTuple):
    """The functions of the robot; the last three only if contacts between two moving bodies are possible."""

    factor: MachineCall  # q, stiffness, stiffening -> factor
    response: MachineCall  # q, factor, wrench, force -> motion, change
    matrix: MachineCall  # q, stiffness, stiffening -> matrix
    loads: MachineCall  # q, wrench, force -> load
    motions: MachineCall  # q, change -> motion


class RobotInPasses(NamedTuple):
    """A robot whose contacts are solved in passes."""

    calls: PassCalls
    passes: PassWork
    S: Matrix  # (n + tendons, n) from joint velocities to those of joints and tendons, or no rows without tendons


class Coupled(NamedTuple):
    """Numbers of active rows that couple several branches of a robot."""

    pairs: int  # contacts between two moving bodies
    tendons: int


class Scene(NamedTuple):
    """The rows of a problem, the numbers that determine their answers, and the robot."""

    model: ContactModel
    contacts: ContactPoints
    p: ProblemRows
    answering: Answering
    calls: PassCalls
    passes: PassWork
    S: Matrix


def scene_of(model: ContactModel, contacts: ContactPoints, p: ProblemRows, turning: int, robot: RobotInPasses) -> Scene:
    """Return the scene of a robot; the last `turning` contacts represent the turning of others."""
    rows = robot.passes.rows
    answering = Answering(p.law, model.settings.cones, turning, rows.turning, rows.turning_friction)
    return Scene(model, contacts, p, answering, robot.calls, robot.passes, robot.S)


def solve_in_passes(scene: Scene, tolerance: float) -> tuple[float, int]:
    """Replace the impulses of the last step, `p.start`, by the solution; return the residual as a velocity, and the steps.

    The change x of the robot's velocities becomes `change`. Stiff contacts may hide the inertia of a robot in rounding errors,
    so x = M⁻¹ Jᵀ f is computed once more. The residual is the greatest change of a velocity by this or the last step.
    """
    write_first_guess(scene)
    coupled, steps, residual = write_coupled_rows(scene), 0, np.inf
    for _ in range(ROUNDS):
        least, more = take_steps(scene, coupled, steps == 0, tolerance)
        residual, steps = max(least, greatest_error(scene)), steps + more
        if residual <= tolerance:
            break
        write_missing(scene)
    take_bounds(scene)
    return residual, steps


def take_steps(scene: Scene, coupled: Coupled, first: bool, tolerance: float) -> tuple[float, int]:
    """Take Newton steps until velocities change by less than the tolerance, or impulses are the answers up to rounding.

    Return the last change, or zero, and the number of steps.
    """
    x, f, m = scene.passes.numbers, scene.p.start, len(scene.p.start)
    steps, stalled, least, marked = 0, 0, np.inf, np.inf
    while least > tolerance and steps < STEPS and stalled < PATIENCE:
        write_direction(scene, coupled)
        residual = np.inf if first and steps == 0 else greatest_change(x.moved[:m])
        downhill = slope_at_start(scene) if tolerance < residual < np.inf else 0.0
        part = part_of_step(slope_after, scene, downhill) if downhill > 0.0 else 1.0  # otherwise a rounding error
        for i in range(m):
            f[i] += part * x.step[i]
            x.velocity[i] += part * x.moved[i]
        if write_missing(scene) <= ROUNDING:
            residual = 0.0
        steps, stalled = steps + 1, stalled + 1
        if residual < least:
            least = residual
            copy_numbers(f, x.best[:m])
        if residual < SMALLER * marked:
            marked, stalled = residual, 0
    copy_numbers(x.best, f)
    return least, steps


def greatest_error(scene: Scene) -> float:
    """Write x and the velocities of the impulses; return the greatest change of these velocities, infinity if any is NaN."""
    p, passes, calls = scene.p, scene.passes, scene.calls
    x, k, worst = passes.numbers, len(p.law.friction), 0.0
    clear_stiffness(passes)
    clear_wrenches(passes)
    clear_force(passes)
    for c in range(len(p.axes)):
        add_impulses(scene, c, (p.start[3 * c] - (p.pull[c] if c < k else 0.0), p.start[3 * c + 1], p.start[3 * c + 2]))
    add_forces(scene, p.start)
    call_machine(calls.factor)
    call_machine(calls.response)
    write_velocities(scene)
    for i in range(len(p.start)):
        u = velocity_at_first(p, i) + x.moved[i]
        worst, x.velocity[i] = max(worst, abs(u - x.velocity[i])) if abs(u) < np.inf else np.inf, u
    return worst


def velocity_at_first(p: ProblemRows, i: int) -> float:
    """Return the velocity of a row to which it answers without impulses: its cone starts at the pull of adhesion."""
    normal = i < 3 * len(p.law.friction) and i % 3 == 0
    return p.law.bias[i] - (p.law.compliance[i] * p.pull[i // 3] if normal else 0.0)  # type: ignore[no-any-return]


def greatest_change(moved: Vector) -> float:
    """Return the greatest entry, infinity if any is NaN."""
    worst = 0.0
    for u in moved:
        worst = max(worst, abs(u)) if abs(u) < np.inf else np.inf
    return worst


def write_first_guess(scene: Scene) -> None:
    """Write G and r of zero impulses, if the same edges push and the same rows act as in the last step.

    New contacts and rows without impulses act as their velocities without impulses require. Impulses become zero; those of
    contacts that adhesion pulls become the pull, from which their cones start.
    """
    p, x, own, k = scene.p, scene.passes.numbers, scene.answering, len(scene.p.law.friction)
    f, law = p.start, p.law
    for i in range(len(f)):
        x.velocity[i] = velocity_at_first(p, i)
    for c in range(k):
        G = x.slope[c]
        if not f[3 * c] > 0.0:
            write_answer(own, x.velocity, c, x.answer, G)
        elif own.cones == PYRAMIDS:
            write_pushing_edges(own, f, c, G)
        else:
            for l in range(directions_of(c, own)):
                row = row_of(c, l, own)
                x.there[row] = -law.compliance[row] * f[row]
            write_answer(own, x.there, c, x.answer, G)
        for i in range(directions_of(c, own)):
            row = row_of(c, i, own)
            x.right[row], f[row] = 0.0, p.pull[c] if i == 0 else 0.0
            x.right[row] -= f[row]
            for j in range(directions_of(c, own)):
                x.right[row] -= G[i, j] * x.velocity[row_of(c, j, own)]
    for i in range(3 * len(p.axes), len(f)):
        lower, upper = law.lower[i - 3 * k], law.upper[i - 3 * k]
        if f[i] == 0.0:
            x.right[i], x.stiffness[i] = answer_of_row(law, i, x.velocity[i])
        elif lower < f[i] < upper:
            x.stiffness[i] = 1.0 / law.compliance[i]
            x.right[i] = -x.stiffness[i] * x.velocity[i]
        else:
            x.right[i], x.stiffness[i] = min(max(f[i], lower), upper), 0.0
        f[i] = 0.0


def write_pushing_edges(own: Answering, f: Vector, c: int, G: Matrix) -> None:
    """Write G of a pyramid with impulses f, by the edges that push there.

    These impulses are the least along edges whose sum is f. If both edges of a direction push, they differ from the mean of
    all such edges by the same amount; the other directions have one edge, and the whole of their friction.
    """
    count, unit = directions_of(c, own), 1.0 / (edges_of(c, own) * own.law.compliance[3 * c])
    level, left, pairs = -1.0, f[3 * c], 0
    for l in range(1, count):
        pairs += 1 if l < 3 or friction_of(c, l, own) > 0.0 else 0
    rest, last = pairs, pairs + 1
    while 0 < rest < last:  # directions with more friction than twice the mean have one edge
        last, level, left, rest = rest, left / (2.0 * rest), f[3 * c], pairs
        for l in range(1, count):
            mu = friction_of(c, l, own)
            if mu > 0.0 and 0.5 * abs(f[row_of(c, l, own)]) > mu * level * (1.0 - ROUNDED):
                left -= abs(f[row_of(c, l, own)]) / mu
                rest -= 1
    clear(G, count)
    for l in range(1, count):
        mu = friction_of(c, l, own)
        if l < 3 or mu > 0.0:
            aside = f[row_of(c, l, own)] / mu if mu > 0.0 else 0.0
            one = mu > 0.0 and 0.5 * abs(aside) > level * (1.0 - ROUNDED)
            write_edges(G, l, mu, (0.0 if one and aside <= 0.0 else unit, 0.0 if one and aside >= 0.0 else unit))


def write_missing(scene: Scene) -> float:
    """Write r and G at the velocities; return the greatest entry of r relative to that of the answers."""
    p, x, worst, most = scene.p, scene.passes.numbers, 0.0, 0.0
    write_answers(scene, x.velocity)
    for i in range(len(p.start)):
        x.right[i] = x.answer[i] - p.start[i]
        worst, most = max(worst, abs(x.right[i])), max(most, abs(x.answer[i]))
    return worst / most if most > 0.0 else worst


def write_answers(scene: Scene, v: Vector) -> None:
    """Write the answers to velocities v, and G."""
    p, x = scene.p, scene.passes.numbers
    for c in range(len(p.law.friction)):
        write_answer(scene.answering, v, c, x.answer, x.slope[c])
    for i in range(3 * len(p.axes), len(p.start)):
        x.answer[i], x.stiffness[i] = answer_of_row(p.law, i, v[i])


def take_bounds(scene: Scene) -> None:
    """Replace impulses by the answers to velocities where these are zero or at a bound.

    Elsewhere impulses are more accurate, because answers divide errors of velocities by R.
    """
    p, x, own, k = scene.p, scene.passes.numbers, scene.answering, len(scene.p.law.friction)
    for c in range(k):
        for l in range(directions_of(c, own) if x.slope[c, 0, 0] == 0.0 else 0):
            p.start[row_of(c, l, own)] = x.answer[row_of(c, l, own)]
    for i in range(3 * len(p.axes), len(p.start)):
        if x.stiffness[i] == 0.0:
            p.start[i] = x.answer[i]


# ---- line search


def slope_at_start(scene: Scene) -> float:
    """Return by how much the function falls along a step at its start."""
    x, downhill = scene.passes.numbers, 0.0
    for i in range(len(scene.p.start)):
        downhill += x.right[i] * x.moved[i]
    return downhill


def slope_after(scene: Scene, part: float) -> tuple[float, float]:
    """Return the slope of the function along a step after a part of it, and its curvature; G becomes that there."""
    p, x, k, own = scene.p, scene.passes.numbers, len(scene.p.law.friction), scene.answering
    slope = curvature = 0.0
    for i in range(len(p.start)):
        x.there[i] = x.velocity[i] + part * x.moved[i]
    write_answers(scene, x.there)
    for i in range(len(p.start)):
        slope += x.moved[i] * (p.start[i] + part * x.step[i] - x.answer[i])
        curvature += x.moved[i] * x.step[i]
    for c in range(k):
        for i in range(directions_of(c, own)):
            for j in range(directions_of(c, own)):
                both = x.moved[row_of(c, i, own)] * x.moved[row_of(c, j, own)]
                curvature += x.slope[c, i, j] * both
    for i in range(3 * len(p.axes), len(p.start)):
        curvature += x.stiffness[i] * x.moved[i] * x.moved[i]
    return slope, curvature


# ---- one step


def write_direction(scene: Scene, coupled: Coupled) -> None:
    """Write J d to `moved`, and the change of impulses r - G J d to `step`."""
    p, calls, passes = scene.p, scene.calls, scene.passes
    x, own, k = passes.numbers, scene.answering, len(p.law.friction)
    write_stiffness(scene)
    clear_wrenches(passes)
    clear_force(passes)
    for c in range(len(p.axes)):
        add_impulses(scene, c, (x.right[3 * c], x.right[3 * c + 1], x.right[3 * c + 2]))
    add_forces(scene, x.right)
    if coupled.pairs + coupled.tendons == 0:
        call_machine(calls.factor)
        call_machine(calls.response)
        write_velocities(scene)
    else:
        call_machine(calls.loads)
        call_machine(calls.matrix)
        add_coupled_rows(scene, coupled)
        solve_by_factor(passes)
        call_machine(calls.motions)
        write_velocities(scene)
    for c in range(k):
        for i in range(directions_of(c, own)):
            row = row_of(c, i, own)
            x.step[row] = x.right[row]
            for j in range(directions_of(c, own)):
                x.step[row] -= x.slope[c, i, j] * x.moved[row_of(c, j, own)]
    for i in range(3 * len(p.axes), len(p.start)):
        x.step[i] = x.right[i] - x.stiffness[i] * x.moved[i]


def clear_wrenches(passes: PassWork) -> None:
    """Set wrenches to zero."""
    for body in range(len(passes.wrench)):
        for j in range(6):
            passes.wrench[body, j] = 0.0


def clear_force(passes: PassWork) -> None:
    """Set joint forces to zero."""
    for i in range(len(passes.force)):
        passes.force[i] = 0.0


def add_impulses(scene: Scene, c: int, f: tuple[float, float, float]) -> None:
    """Add the wrenches on its bodies of a contact's impulses, or of the rotational ones of a contact that turns."""
    rows, wrench = scene.p.rows, scene.passes.wrench
    for s in range(2):
        body = body_of(scene.contacts, c, s)
        if body >= 0:
            for j in range(6):
                wrench[body, j] += rows[c, s, 0, j] * f[0] + rows[c, s, 1, j] * f[1] + rows[c, s, 2, j] * f[2]


def add_forces(scene: Scene, f: Vector) -> None:
    """Add the joint forces of impulses of joint rows."""
    p, rows, k, force = scene.p, scene.model.rows, len(scene.p.law.friction), scene.passes.force
    for i in range(3 * len(p.axes), len(p.start)):
        r = p.active[i - 3 * k]
        dof, sign = scene.passes.dof[rows.joint[r]], rows.sign[r]
        if dof < len(force):
            force[dof] += sign * f[i]
        else:
            for j in range(len(force)):
                force[j] += sign * f[i] * scene.S[dof, j]


def write_velocities(scene: Scene) -> None:
    """Write `moved` for the motions of bodies and the velocities of joints."""
    p, rows, passes, k = scene.p, scene.model.rows, scene.passes, len(scene.p.law.friction)
    for c in range(len(p.axes)):
        write_velocity(scene, c)
    for i in range(3 * len(p.axes), len(p.start)):
        r = p.active[i - 3 * k]
        dof, speed = passes.dof[rows.joint[r]], 0.0
        if dof < len(passes.change):
            speed = passes.change[dof]
        else:
            for j in range(len(passes.change)):
                speed += scene.S[dof, j] * passes.change[j]
        passes.numbers.moved[i] = rows.sign[r] * speed


def write_velocity(scene: Scene, c: int) -> None:
    """Write the velocity at a contact for the motions of bodies."""
    rows, motion, moved = scene.p.rows, scene.passes.motion, scene.passes.numbers.moved
    u = v = w = 0.0
    for s in range(2):
        body = body_of(scene.contacts, c, s)
        if body >= 0:
            for j in range(6):
                x = motion[body, j]
                u += rows[c, s, 0, j] * x
                v += rows[c, s, 1, j] * x
                w += rows[c, s, 2, j] * x
    moved[3 * c], moved[3 * c + 1], moved[3 * c + 2] = u, v, w


def write_stiffness(scene: Scene) -> None:
    """Write K of bodies and D of joints, of contacts with the ground and of joint rows."""
    p, passes, joint = scene.p, scene.passes, scene.model.rows.joint
    x, k = passes.numbers, len(p.law.friction)
    clear_stiffness(passes)
    for c in range(k):
        a, b = body_of(scene.contacts, c, 0), body_of(scene.contacts, c, 1)
        if a < 0 or b < 0:
            s, K, G, t = 0 if a >= 0 else 1, passes.stiffness[max(a, b)], x.slope[c], k
            add_stiffness(p.rows[c, s], G, 0, 0, p.rows[c, s], K)
            if directions_of(c, scene.answering) > 3:
                t += scene.answering.group[c]
                add_stiffness(p.rows[c, s], G, 0, 3, p.rows[t, s], K)
                add_stiffness(p.rows[t, s], G, 3, 0, p.rows[c, s], K)
                add_stiffness(p.rows[t, s], G, 3, 3, p.rows[t, s], K)
    for i in range(3 * len(p.axes), len(p.start)):
        if joint[p.active[i - 3 * k]] < len(passes.stiffening):
            passes.stiffening[joint[p.active[i - 3 * k]]] += x.stiffness[i]


def clear_stiffness(passes: PassWork) -> None:
    """Set K and D to zero."""
    for body in range(len(passes.stiffness)):
        for j in range(6):
            for i in range(j + 1):
                passes.stiffness[body, i, j] = 0.0
    for i in range(len(passes.stiffening)):
        passes.stiffening[i] = 0.0


def add_stiffness(A: Matrix, G: Matrix, row: int, column: int, B: Matrix, K: Matrix) -> None:
    """Add Aᵀ G B to the upper triangle of K, with the block of G that starts at a row and a column."""
    for j in range(6):
        x, y, z = B[0, j], B[1, j], B[2, j]
        u = G[row, column] * x + G[row, column + 1] * y + G[row, column + 2] * z
        v = G[row + 1, column] * x + G[row + 1, column + 1] * y + G[row + 1, column + 2] * z
        w = G[row + 2, column] * x + G[row + 2, column + 1] * y + G[row + 2, column + 2] * z
        for i in range(j + 1):
            K[i, j] += A[0, i] * u + A[1, i] * v + A[2, i] * w


# ---- contacts between two moving bodies


def write_coupled_rows(scene: Scene) -> Coupled:
    """Write J of the contacts between two moving bodies, and of active tendons; return their numbers."""
    p, passes, k = scene.p, scene.passes, len(scene.p.law.friction)
    n, stride, pairs, tendons = len(passes.load), padded(len(passes.load)), 0, 0
    for c in range(k):
        if body_of(scene.contacts, c, 0) >= 0 and body_of(scene.contacts, c, 1) >= 0:
            passes.coupled[pairs] = c
            pairs += 1
    for x in range(pairs):
        c = passes.coupled[x]
        clear_force(passes)
        for l in range(directions_of(c, scene.answering)):
            clear_wrenches(passes)
            unit = 1.0 if l % 3 == 0 else 0.0, 1.0 if l % 3 == 1 else 0.0, 1.0 if l % 3 == 2 else 0.0
            add_impulses(scene, c if l < 3 else k + scene.answering.group[c], unit)
            call_machine(scene.calls.loads)
            for i in range(n):
                passes.matrix[place_of_contact(passes, x) + l * stride + i] = passes.load[i]
    for i in range(3 * len(p.axes), len(p.start)):
        joint = scene.model.rows.joint[p.active[i - 3 * k]]
        if joint >= len(passes.stiffening):
            for j in range(n):
                passes.matrix[(n + joint) * stride + j] = scene.S[passes.dof[joint], j]
            tendons += 1
    return Coupled(pairs, tendons)


def place_of_contact(passes: PassWork, x: int) -> int:
    """Return the place of J of coupled contact number x."""
    n = len(passes.load)
    return (n + len(passes.dof) + 2 * DIRECTIONS * x) * padded(n)


def add_coupled_rows(scene: Scene, coupled: Coupled) -> None:
    """Add Jᵀ G J of coupled contacts and of tendons to the lower triangle of the matrix."""
    p, passes, n, k = scene.p, scene.passes, len(scene.passes.load), len(scene.p.law.friction)
    for x in range(coupled.pairs):
        c = passes.coupled[x]
        add_rows_of_pair(passes, place_of_contact(passes, x), passes.numbers.slope[c], directions_of(c, scene.answering))
    H, stride = passes.matrix, padded(n)
    for i in range(3 * len(p.axes), len(p.start)):
        joint, g = scene.model.rows.joint[p.active[i - 3 * k]], passes.numbers.stiffness[i]
        if joint >= len(passes.stiffening) and g > 0.0:
            J = (n + joint) * stride
            for j in range(n):
                if H[J + j] != 0.0:
                    subtract_multiples(H, j * stride, J, stride, padded(j + 1), (-g * H[J + j],))


def add_rows_of_pair(passes: PassWork, J: int, G: Matrix, count: int) -> None:
    """Add Jᵀ G J of a coupled contact, whose J starts at a place, with `count` directions."""
    H, n, stride = passes.matrix, len(passes.load), padded(len(passes.load))
    G_J = J + DIRECTIONS * stride
    for l in range(count):
        subtract_multiples(H, G_J + l * stride, J, stride, stride, (G[l, 0], G[l, 1], G[l, 2]), True)
        if count == DIRECTIONS:
            subtract_multiples(H, G_J + l * stride, J + 3 * stride, stride, stride, (G[l, 3], G[l, 4], G[l, 5]))
    for i in range(n):
        for l in range(0, count, 3):
            u, v, w = H[J + l * stride + i], H[J + (l + 1) * stride + i], H[J + (l + 2) * stride + i]
            if u != 0.0 or v != 0.0 or w != 0.0:
                subtract_multiples(H, i * stride, G_J + l * stride, stride, padded(i + 1), (u, v, w))


def solve_by_factor(passes: PassWork) -> None:
    """Write the solution `change` for `load`; the matrix becomes its factor Lᵀ D L (Featherstone 2008, section 6.5).

    Rows are eliminated in blocks of four. Entries above the diagonal change, too, but are not read.
    """
    H, x, n, stride = passes.matrix, passes.change, len(passes.load), padded(len(passes.load))
    copy_numbers(passes.load, x)
    for block in range(n, 0, -BLOCK):
        first = max(block - BLOCK, 0)
        for i in range(block - 1, first - 1, -1):
            unit = 1.0 / H[i * stride + i]
            for j in range(first, i):
                subtract_multiples(H, j * stride, i * stride, stride, padded(j + 1), (unit * H[i * stride + j],))
                x[j] -= unit * H[i * stride + j] * x[i]
        for i in range(first, block):
            H[i * stride + i] = 1.0 / H[i * stride + i]
        for j in range(first):  # all blocks below others are whole
            a, b = gain_of(H, stride, first, j), gain_of(H, stride, first + 1, j)
            c, d = gain_of(H, stride, first + 2, j), gain_of(H, stride, first + 3, j)
            if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                subtract_multiples(H, j * stride, first * stride, stride, padded(j + 1), (a, b, c, d))
                x[j] -= a * x[first] + b * x[first + 1] + c * x[first + 2] + d * x[first + 3]
    for i in range(n):
        rest = x[i]
        for j in range(i):
            rest -= H[i * stride + j] * x[j]
        x[i] = rest * H[i * stride + i]


def gain_of(H: Vector, stride: int, i: int, j: int) -> float:
    """Return an entry of a row times the inverse of its pivot."""
    return H[i * stride + j] * H[i * stride + i]  # type: ignore[no-any-return]
