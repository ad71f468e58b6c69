"""One tick of whole-body control, as a kernel with loops.

    M a + h = τ + Σ J_pᵀ f_p        a, f: the unknowns; τ = 0 for joints without drives, otherwise within limits
    K (J_c a + J_c' v) = -k K J_c v         of each contact
    f_p in the friction cone of each point
    A a = x''* + k_p e + k_d (x'* - A v) - A' v         of each task, as well as priorities and weights allow

Dynamics and contacts are eliminated, and the tasks of each priority are the cost of one quadratic program. The result
of a priority is an equality of the next ones (de Lasa, Mordatch and Hertzmann 2010; Escande, Mansard and Wieber 2014).
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from ..array_types import Booleans, Integers, Matrix, Tensor, Vector
from ..contact.factors.block_equations import copy_numbers
from ..engine.loops.kernels import MachineCall, call_machine
from ..engine.loops.prepared_calls import BatchCalls, call_batch
from ..quadratic_programs.active_set import minimize
from ..quadratic_programs.cascade import begin_program, keep_costs, next_cost, next_equality, next_limit
from ..quadratic_programs.program import COSTS, EQUALITIES, SOLVED, ActiveSet, QuadraticProgram

POSE, POSITION, ORIENTATION, CENTER, MOMENTUM, POSTURE = range(6)


class Terms(NamedTuple):
    """Functions of the robot at q and v, and their results. Task frames have the world's axes, contact frames their own."""

    call: MachineCall
    errors: MachineCall
    postures: BatchCalls  # the differences from q to the targets of posture tasks
    per_mass: float  # [1/kg]
    q: Vector
    v: Vector
    mass: Matrix  # (nv, nv)
    bias: Vector  # (nv,)
    placement: Tensor  # (frames, 4, 4)
    jacobian: Tensor  # (frames, 6, nv)
    drift: Matrix  # (frames, 6)
    error: Matrix  # (frames, 6) from the placements to their targets
    center: Vector  # (3,)
    momentum: Matrix  # (6, nv) centroidal map
    momentum_drift: Vector  # (6,)
    posture_error: Matrix  # (postures, nv)
    contact_jacobian: Tensor  # (contacts, 6, nv)
    contact_drift: Matrix  # (contacts, 6)


class Tasks(NamedTuple):
    """Tasks by priority, and their references."""

    kind: Integers  # (tasks,)
    level: Integers  # (tasks,) 0 first
    source: Integers  # (tasks,) the number of its frame or posture
    begin: Integers  # (tasks + 1,) first row of each
    turned: Booleans  # (tasks,) whether the rows have the target's axes
    stiffness: Vector  # (tasks,)
    damping: Vector  # (tasks,)
    weight: Vector  # (rows,)
    column: Integers  # (rows,) of postures, the velocity
    target: Tensor  # (frames, 4, 4)
    center: Vector  # (3,)
    velocity: Vector  # (rows,)
    acceleration: Vector  # (rows,)


class Contacts(NamedTuple):
    """Contacts, their constraint rows and points."""

    point: Integers  # (contacts + 1,) first point of each
    begin: Integers  # (contacts + 1,) first constraint row
    rows: Matrix  # (constraint rows, 6)
    damping: Vector  # (contacts,)
    place: Matrix  # (points, 3)
    friction: Vector  # (points,)
    limited: Integers  # (k,) contacts with a greatest force
    most: Vector  # (k,)
    closed: Booleans  # (contacts,) planned


class Joints(NamedTuple):
    """Drives and limits."""

    driven: Integers  # (k,) velocities with drives
    passive: Integers  # velocities without
    least: Vector  # (k,) joint forces
    most: Vector  # (k,)
    bounded: Integers  # (b,) velocities with limits of position or velocity
    coordinate: Integers  # (b,) their coordinates
    lower: Vector  # (b,)
    upper: Vector
    speed: Vector


class Result(NamedTuple):
    """Results of a tick."""

    tau: Vector  # (nv,)
    acceleration: Vector  # (nv,)
    forces: Matrix  # (points, 3) in the axes of their contacts
    wrenches: Matrix  # (contacts, 6) force and moment at the origins of the contacts' frames, in their axes


class Tick(NamedTuple):
    """All data of a controller."""

    levels: int
    rate: float  # [1/s] of the approach to limits of position and velocity
    acceleration_weight: float
    force_weight: float
    terms: Terms
    tasks: Tasks
    contacts: Contacts
    joints: Joints
    program: QuadraticProgram
    points: Matrix  # (3 points, nv) Jacobians of the points, in the axes of their contacts
    reached: Vector  # (n,) x of the last priority that has a solution
    result: Result


def tick(w: Tick, _: int) -> int:
    """Compute joint forces for q, v and the references; return the status of the quadratic program."""
    p = w.program
    call_machine(w.terms.call)
    call_machine(w.terms.errors)
    if len(w.terms.posture_error) > 0:
        call_batch(w.terms.postures, 0, 0, len(w.terms.posture_error))
    begin_program(p)
    write_points(w)
    write_dynamics(w)
    write_contacts(w)
    write_bounds(w)
    begin, status = 0, SOLVED
    for level in range(w.levels):
        write_tasks(w, level)
        found = minimize(p, begin)
        if level == 0 or found == SOLVED:
            for k in range(p.n):
                w.reached[k] = p.numbers[p.x + k]
        if level == 0:
            status = found
            remember(p.active, p.before)
        if found != SOLVED:  # a later priority has no freedom left beyond rounding errors
            break
        begin = p.counts[EQUALITIES]
        if level + 1 < w.levels:
            keep_tasks(w, level)
    write_results(w)
    return status


def remember(active: ActiveSet, before: ActiveSet) -> None:
    """Store the active inequalities, with which the next tick begins."""
    before.size[0] = active.size[0]
    for k in range(active.size[0]):
        before.kind[k], before.which[k], before.side[k] = active.kind[k], active.which[k], active.side[k]
        before.cosine[k], before.sine[k] = active.cosine[k], active.sine[k]


def write_points(w: Tick) -> None:
    """Write the Jacobians of the points: the rows of v + ω × r."""
    c, n = w.contacts, len(w.terms.v)
    for k in range(len(c.closed)):
        J = w.terms.contact_jacobian[k]
        for i in range(c.point[k], c.point[k + 1]):
            x, y, z = c.place[i, 0], c.place[i, 1], c.place[i, 2]
            rows = w.points[3 * i : 3 * i + 3]
            for j in range(n):
                rows[0, j] = J[0, j] + z * J[4, j] - y * J[5, j]
                rows[1, j] = J[1, j] + x * J[5, j] - z * J[3, j]
                rows[2, j] = J[2, j] + y * J[3, j] - x * J[4, j]


def write_dynamics(w: Tick) -> None:
    """Write the equations of joints without drives, and the limits of the joint forces of the others."""
    p, joints, c = w.program, w.joints, w.contacts
    for k in range(len(joints.passive)):
        i = joints.passive[k]
        write_row_of_dynamics(w, i, next_equality(p, -w.terms.bias[i]))
    for k in range(len(joints.driven)):
        i = joints.driven[k]
        bias = w.terms.bias[i]
        write_row_of_dynamics(w, i, next_limit(p, joints.least[k] - bias, joints.most[k] - bias))
    for k in range(len(c.limited)):
        at = next_limit(p, -inf, c.most[k])
        for point in range(c.point[c.limited[k]], c.point[c.limited[k] + 1]):
            p.numbers[at + p.cone[point] + 2] = 1.0


def write_row_of_dynamics(w: Tick, i: Any, at: int) -> None:
    """Write row i of M a - Σ J_pᵀ f_p."""
    x, n = w.program.numbers, len(w.terms.v)
    for j in range(n):
        x[at + j] = w.terms.mass[i, j]
    for j in range(len(w.points)):
        x[at + n + j] = -w.points[j, i]


def write_contacts(w: Tick) -> None:
    """Write the equations of the contacts' motions; forces of open contacts are zero."""
    p, c, v = w.program, w.contacts, w.terms.v
    for k in range(len(c.closed)):
        for i in range(c.point[k], c.point[k + 1]):
            p.friction[i] = c.friction[i] if c.closed[k] else -1.0
            if not c.closed[k]:
                for j in range(3):
                    p.numbers[next_equality(p, 0.0) + p.cone[i] + j] = 1.0
        if c.closed[k]:
            for r in range(c.begin[k], c.begin[k + 1]):
                at = next_equality(p, 0.0)
                drift = speed = 0.0
                for i in range(6):
                    factor = c.rows[r, i]
                    if factor != 0.0:
                        drift += factor * w.terms.contact_drift[k, i]
                        for j in range(len(v)):
                            p.numbers[at + j] += factor * w.terms.contact_jacobian[k, i, j]
                for j in range(len(v)):
                    speed += p.numbers[at + j] * v[j]
                p.right[p.counts[EQUALITIES] - 1] = -drift - c.damping[k] * speed


def write_bounds(w: Tick) -> None:
    """Write bounds of accelerations, with which coordinates and velocities approach their limits without passing them.

    With the rate k, a <= k² (q_max - q) - 2 k v keeps q below its limit (Nguyen and Sreenath 2016), and a <= k (v_max - v) v.
    """
    p, b, k = w.program, w.joints, w.rate
    for i in range(len(b.bounded) if k > 0.0 else 0):
        j = b.bounded[i]
        v, at = w.terms.v[j], w.terms.q[b.coordinate[i]]
        p.lower[j] = max(k * k * (b.lower[i] - at) - 2.0 * k * v, k * (-b.speed[i] - v))
        p.upper[j] = min(k * k * (b.upper[i] - at) - 2.0 * k * v, k * (b.speed[i] - v))


def write_tasks(w: Tick, level: int) -> None:
    """Write the cost of the tasks of a priority."""
    p, t, n = w.program, w.tasks, len(w.terms.v)
    p.counts[COSTS] = 0
    for k in range(p.n):
        p.diagonal[k] = w.acceleration_weight if k < n else w.force_weight
        p.center[k] = 0.0
    for k in range(len(t.kind)):
        if t.level[k] != level:
            continue
        if t.kind[k] == POSTURE:
            write_posture(w, k)
        elif t.kind[k] == CENTER or t.kind[k] == MOMENTUM:
            write_centroidal(w, k)
        else:
            write_frame(w, k)
    for k in range(n):
        p.center[k] /= p.diagonal[k]


def write_posture(w: Tick, k: int) -> None:
    """Add the cost of a posture, whose rows are single accelerations; `center` is weighted until all are added."""
    p, t = w.program, w.tasks
    for r in range(t.begin[k], t.begin[k + 1]):
        j = t.column[r]
        error = w.terms.posture_error[t.source[k], j]
        wanted = t.acceleration[r] + t.stiffness[k] * error + t.damping[k] * (t.velocity[r] - w.terms.v[j])
        p.diagonal[j] += t.weight[r]
        p.center[j] += t.weight[r] * wanted


def write_centroidal(w: Tick, k: int) -> None:
    """Write the rows of the centre of mass or of the angular momentum."""
    t, first = w.tasks, 0 if w.tasks.kind[k] == CENTER else 3
    scale = w.terms.per_mass if w.tasks.kind[k] == CENTER else 1.0
    for i in range(3):
        r = t.begin[k] + i
        if t.weight[r] > 0.0:
            at, error = next_cost(w.program), 0.0
            for j in range(len(w.terms.v)):
                w.program.numbers[at + j] = scale * w.terms.momentum[first + i, j]
            if t.kind[k] == CENTER:
                error = t.center[i] - w.terms.center[i]
            finish_row(w, k, r, error, scale * w.terms.momentum_drift[first + i])


def write_frame(w: Tick, k: int) -> None:
    """Write the rows of a frame, in the world's axes or in those of the target."""
    t, f = w.tasks, w.tasks.source[k]
    shift = 3 if t.kind[k] == ORIENTATION else 0
    for i in range(t.begin[k + 1] - t.begin[k]):
        r = t.begin[k] + i
        if t.weight[r] == 0.0:
            continue
        at, drift, error, part = next_cost(w.program), 0.0, 0.0, (shift + i) // 3
        for a in range(3):
            own = 1.0 if a == i % 3 else 0.0
            factor = t.target[f, a, i % 3] if t.turned[k] else own
            if factor != 0.0:
                row = 3 * part + a
                drift += factor * w.terms.drift[f, row]
                error += factor * w.terms.error[f, row]
                for j in range(len(w.terms.v)):
                    w.program.numbers[at + j] += factor * w.terms.jacobian[f, row, j]
        finish_row(w, k, r, error, drift)


def finish_row(w: Tick, k: int, r: int, error: float, drift: float) -> None:
    """Write the wanted acceleration of row r of task k, and multiply the row by the square root of its weight."""
    p, t = w.program, w.tasks
    at, rate, scale = p.costs + p.counts[COSTS] * p.wide, 0.0, t.weight[r] ** 0.5
    for j in range(len(w.terms.v)):
        rate += p.numbers[at + j] * w.terms.v[j]
    wanted = t.acceleration[r] + t.stiffness[k] * error + t.damping[k] * (t.velocity[r] - rate) - drift
    for j in range(len(w.terms.v)):
        p.numbers[at + j] *= scale
    p.target[p.counts[COSTS]] = scale * wanted
    p.counts[COSTS] += 1


def keep_tasks(w: Tick, level: int) -> None:
    """Make equalities of what the tasks of a priority have reached."""
    p, t, x = w.program, w.tasks, w.program.numbers
    keep_costs(p)
    for k in range(len(t.kind)):
        if t.kind[k] == POSTURE and t.level[k] == level:
            for r in range(t.begin[k], t.begin[k + 1]):
                at = next_equality(p, x[p.x + t.column[r]])
                x[at + t.column[r]] = 1.0


def write_results(w: Tick) -> None:
    """Write joint forces within their limits, and what they should cause."""
    n, c, result = len(w.terms.v), w.contacts, w.result
    copy_numbers(w.reached[:n], result.acceleration)
    for i in range(n):
        result.tau[i] = 0.0
    for i in range(len(c.friction)):
        for j in range(3):
            result.forces[i, j] = w.reached[n + 3 * i + j]
    for k in range(len(c.closed)):
        total = result.wrenches[k]
        for i in range(6):
            total[i] = 0.0
        for i in range(c.point[k], c.point[k + 1]):
            r, f = c.place[i], result.forces[i]
            total[0] += f[0]
            total[1] += f[1]
            total[2] += f[2]
            total[3] += r[1] * f[2] - r[2] * f[1]
            total[4] += r[2] * f[0] - r[0] * f[2]
            total[5] += r[0] * f[1] - r[1] * f[0]
    for k in range(len(w.joints.driven)):
        i = w.joints.driven[k]
        total_force = w.terms.bias[i]
        for j in range(n):
            total_force += w.terms.mass[i, j] * w.reached[j]
        for j in range(len(w.points)):
            total_force -= w.points[j, i] * w.reached[n + j]
        result.tau[i] = min(max(total_force, w.joints.least[k]), w.joints.most[k])
