"""Derivatives of the acceleration of a step by q, v, joint forces, controls and activations, with contacts.

The acceleration a under forces F at joints and impulses f of contacts and joint rows, spread over the step h, solves

    M(q) a + c(q, v) = F(q, v, u) + J(q)ᵀ f / h         f = f(y),   y = J w - J v + h (b J v + k d(g) g)

with the velocity w = v + h (a + curvature) after the step and gaps g (see `contact.compliance`). The answers f have the
derivative -G by y, and are proportional to 1/R(g). Hence (M + Jᵀ G J) da = r, where r has

    the derivatives of inverse dynamics with impulses as forces on bodies (Carpentier and Mansard 2018), and of F
    -Jᵀ G / h times the derivatives of y at constant a, and -Jᵀ f / h times those of R, relative to R
    the derivatives of Jᵀ f and J at constant velocities of the bodies, by the motion of contacts (`contact.contact_slopes`)

Rigid contacts answer to y = J w + g / h, or to J w if they overlap. Their G has a proximal term (`contact.rigid_answers`),
which corrections remove (`rigid_slopes`).

Where dampers act after impulses, the acceleration a' solves (M + h D) a' = M a at the same state. Forces at joints are linear
within limits (`load_slopes`). Those of tendons, muscles, drives with activations, drag, springs of ball joints, and of all
joints of a robot with loops, have derivatives by differences of the acceleration without impulses.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..array_types import Array, BooleanMatrix, Booleans, Integers, Matrix, Vector
from ..collision.collision_scene import PLANE
from ..collision.detection import body_of
from ..collision.triples import along, component, outer, plus
from ..contact.branches import padded
from ..contact.compliance import impedance, yielding_of
from ..contact.compliant_answers import (
    BOUNDARY,
    Answering,
    answer_of_row,
    answering_of,
    directions_of,
    is_between,
    row_of,
    write_answer,
)
from ..contact.contact_problem import ProblemRows, RowWork, find_active_rows, rows_in
from ..contact.contact_slopes import (
    DIRECTIONS,
    ContactAt,
    ContactSlopes,
    Twist,
    contact_slopes,
    impedance_slope,
    twist_of,
    write_contact_slopes,
)
from ..contact.impulses import greatest_of
from ..contact.rigid_answers import (
    EDGE,
    EDGE_OF_GAPS,
    RigidAnswers,
    is_near_another_state,
    rigid_answers,
    write_rigid_answer,
    write_rigid_row,
)
from ..engine.loops.kernels import MachineCall, aligned_numbers, call_machine, subtract_multiples
from ..model.tree import FLOATING, PLANAR
from ..robot.tendons.lengths import write_drift
from .load_slopes import LoadSlopes, load_slopes, write_load_slopes, write_tau_slopes
from .rigid_slopes import solve_for_rigid_rates
from .robot_stages import turns, write_bent, write_pushed_acceleration
from .slope_equations import Places, Sizes, add_product, places, solve_for_rates
from .smooth_motion import (
    accelerate_at_start,
    be_at,
    clear,
    clear_rows,
    copy,
    copy_rows,
    ordered_product,
    write_body_forces,
    write_next_activations,
)
from .stage_records import FOUND, NEAR, SOLVED, WITH_CONTROL, WITH_FORCES, RobotStages

PARTED = 0.1  # displacement that separates overlaps, in units of slop, below which these count as tolerated
BOUNCING = 0.99  # part of the speed from which contacts bounce
SMALL_STEP = 1e-6  # of differences of forces
BENT = 1e-3  # relative difference of the slopes on both sides above which a force bends
ROUNDED = 1e-12  # [m, rad] gap that counts as zero


class SlopeCalls(NamedTuple):
    """Functions of the robot at q; velocities of bodies are in their axes."""

    dynamics: MachineCall  # q, v, acceleration, forces -> by_q, by_v, mass, with the armature of the step
    settled: MachineCall  # the same with the inertia that represents dampers, if they act after impulses
    spanning: MachineCall  # q, v, forces of rows -> spread, swept, carried, if loops move joints
    spanning_after: MachineCall  # q, after, pushes -> spread, swept_after, carried_after, if contacts are rigid
    struck: MachineCall  # q, v, joint forces with impulses, forces on bodies -> acceleration before dampers act
    jacobian: MachineCall  # q -> jacobian
    motions: MachineCall  # q, after -> turned, for robots with loops
    moved: MachineCall  # q, increment -> x
    motions_before: MachineCall  # q, v -> turned_before


class Paths(NamedTuple):
    """Joints of velocities, and bodies that they move."""

    joint: Integers  # (n,) armature of each row, or -1
    first: Integers  # (n,) first row of the joint of each row
    moves: BooleanMatrix  # (bodies that may touch, n) whether a row moves a body, for robots without loops


class AccelerationSlopes(NamedTuple):
    """Derivatives of one robot's acceleration, and workspace."""

    numbers: Vector
    at: Places
    load: LoadSlopes
    acceleration: Vector  # (n,) with impulses
    after: Vector  # (n,) velocity w with these impulses
    forces: Matrix  # (bodies, 6) of the user and of contacts
    paths: Paths
    velocity: Matrix  # (bodies that may touch, 6) at w
    velocity_before: Matrix  # (bodies, 6) at v
    contact: ContactSlopes
    doubtful: Booleans  # (contacts + joint rows,) whether a contact or row is at the boundary between two states
    bent: Booleans  # (nu + na,) whether the force of a control or activation is at a limit
    increment: Vector  # (n,) small motion
    pushes: Vector  # (loop rows,) forces of limits and dry friction, spread over the step
    probes: Matrix  # (3, n + na) accelerations and activations after the step, on both sides of the state and there
    impulses: Vector  # (m,) of all rows
    responding: Vector  # (m,) velocities y of all rows
    spare: Vector  # (m,)
    slope: Matrix  # (6, 6) G of one contact
    rigid: RigidAnswers  # of rigid contacts
    is_rigid: bool  # whether contacts are rigid; otherwise their law is convex
    by_differences: bool  # whether the forces are differentiated by differences
    calls: SlopeCalls


def acceleration_slopes(s: RobotStages, paths: Paths, loop_rows: int, plain: bool, is_rigid: bool) -> AccelerationSlopes:
    """Return arrays for the stages of one robot, without functions."""
    n, bodies, nu, na = len(s.state.v), len(s.touching.bodies), len(s.state.control), len(s.state.act)
    lengths = -1 if plain else len(s.touching.model.rows.joint)
    contacts, rows = len(s.touching.contacts.gap), len(s.touching.model.rows.joint)
    room, m, none = contacts + rows, 6 * contacts + rows, MachineCall(0, np.zeros(0, np.int64))
    rigid = (contacts, rows) if is_rigid else (0, 0)
    at = places(Sizes(n, nu, na, bodies, loop_rows, lengths, 3 * rigid[0] + rigid[1], plain and not loop_rows))
    return AccelerationSlopes(
        numbers=aligned_numbers(at.size), at=at, load=load_slopes(s), acceleration=np.zeros(n), after=np.zeros(n),
        forces=np.zeros_like(s.state.external), paths=paths,
        velocity=np.zeros((bodies, 6)), velocity_before=np.zeros((bodies, 6)), contact=contact_slopes(),
        doubtful=np.zeros(room, bool), bent=np.zeros(nu + na, bool), increment=np.zeros(n), pushes=np.zeros(loop_rows),
        probes=np.zeros((3, n + na)), by_differences=not plain,
        impulses=np.zeros(m), responding=np.zeros(m), spare=np.zeros(m), slope=np.zeros((DIRECTIONS, DIRECTIONS)),
        rigid=rigid_answers(*rigid), is_rigid=is_rigid, calls=SlopeCalls(*(none for _ in SlopeCalls._fields)),
    )  # fmt: skip


def matrix_at(y: AccelerationSlopes, place: int, *shape: int) -> Array:
    """Return a matrix in the vector of numbers."""
    return y.numbers[place : place + int(np.prod(shape))].reshape(shape)


def write_acceleration_slopes(s: RobotStages, y: AccelerationSlopes) -> int:
    """Write the slopes of the step that has just been computed, with its contacts and joint rows.

    Return the number of forces and controls at a limit, and of contacts and rows at the boundary of two states.
    """
    n, h = len(y.after), s.numbers.step
    be_at(s, s.state.q, s.state.v)
    at_limits = write_tau_slopes(s, y.load) if y.by_differences else write_load_slopes(s, y.load)
    mark_gaps_of_zero(s, y)
    if y.by_differences:
        copy(s.step.acceleration, y.acceleration)
        write_forces_on_bodies(s, y, False)
        call_machine(y.calls.dynamics)
        for i in range(n * n):
            y.numbers[y.at.by_q_struck + i] = y.numbers[y.at.by_q + i]
    touched = s.touching.counts[FOUND] > 0 or s.touching.counts[NEAR] > 0
    rigid = touched and y.is_rigid
    if s.numbers.settles and not touched and not y.by_differences:
        write_rates_with_dampers(s, y)
        write_controls(s, y)
        return at_limits
    in_passes = touched and s.calls.contact_factor.address != 0
    for i in range(n):
        change = s.step.after[i] - s.step.free[i] if rigid else s.touching.passes.change[i] if in_passes else 0.0
        y.after[i], y.acceleration[i] = s.step.free[i] + change, s.step.acceleration[i] + change / h
    if touched and not (in_passes or rigid):
        write_pushed_acceleration(s, s.touching.impulses.wrench, s.touching.impulses.joint)
        call_machine(y.calls.struck)
        for i in range(n):
            y.after[i] += h * (y.acceleration[i] - s.step.acceleration[i])
    write_forces_on_bodies(s, y, touched)
    call_machine(y.calls.dynamics)
    if y.by_differences:
        write_differences(s, y, touched)
    else:
        write_smooth_part(s, y)
    write_matrix(y)
    if touched:
        add_touching(s, y)
    if rigid:
        solve_with_rigid_rows(s, y)
    else:
        solve_for_rates(y.numbers, n, y.at)
    if s.numbers.settles:
        settle_rates(s, y)
    write_controls(s, y)
    for i in range(len(y.doubtful)):
        at_limits += 1 if y.doubtful[i] else 0
    for k in range(len(y.bent)):
        at_limits += 1 if y.bent[k] else 0
    return at_limits


def mark_gaps_of_zero(s: RobotStages, y: AccelerationSlopes) -> None:
    """Mark the contacts and limits that begin here as doubtful, and no others."""
    t, room = s.touching, len(s.touching.contacts.gap)
    for c in range(room):
        y.doubtful[c] = not y.is_rigid and c < t.counts[FOUND] and abs(t.contacts.gap[c]) < ROUNDED
    for r in range(len(t.model.rows.joint)):
        limits = not y.is_rigid and not t.model.rows.friction[r] and t.model.rows.holds[r] == 0
        y.doubtful[room + r] = limits and abs(t.kinematics.gap[r]) < ROUNDED


def write_forces_on_bodies(s: RobotStages, y: AccelerationSlopes, touched: bool) -> None:
    """Write the forces on bodies of the user, of a fluid and of contacts."""
    t, h = s.touching, s.numbers.step
    if len(s.drag.body) > 0:
        be_at(s, s.state.q, s.state.v)
        write_body_forces(s)
        copy_rows(t.forces, y.forces)
    elif s.state.given[WITH_FORCES]:
        copy_rows(s.state.external, y.forces)
    else:
        clear_rows(y.forces)
    for k in range(len(t.bodies) if touched else 0):
        for j in range(6):
            y.forces[t.bodies[k], j] += t.impulses.wrench[k, j] / h


def write_smooth_part(s: RobotStages, y: AccelerationSlopes) -> None:
    """Write the derivatives of the forces minus those of inverse dynamics, at constant acceleration."""
    n, drives, at, x = len(y.after), s.joints.drives, y.at, y.numbers
    for i in range(n):
        row = at.rates + i * at.width
        for j in range(2 * at.stride, at.width):
            x[row + j] = 0.0
        subtract_multiples(x, row, at.by_q + i * n, n, at.stride, (1.0,), True)
        subtract_multiples(x, row + at.stride, at.by_v + i * n, n, at.stride, (1.0,), True)
        x[row + 2 * at.stride + i] = y.load.tau[i] if at.solved == at.width else 1.0
    if y.calls.spanning.address != 0:
        call_machine(y.calls.spanning)
        add_forces_of_rows(s, y)
        return
    for i in range(n):
        x[at.rates + i * at.width + i] += y.load.position[i]
        x[at.rates + i * at.width + at.stride + i] += y.load.velocity[i]
    for k in range(len(drives.row) if at.solved == at.width else 0):
        x[at.rates + drives.row[k] * at.width + 3 * at.stride + k] += y.load.control[k]


def write_controls(s: RobotStages, y: AccelerationSlopes) -> None:
    """Write the rates by controls whose forces are at single joints, from those by unit forces of joints, if not solved for."""
    n, drives, at, x = len(y.after), s.joints.drives, y.at, y.numbers
    for i in range(n if at.solved < at.width else 0):
        forces = at.rates + i * at.width + 2 * at.stride
        for k in range(len(drives.row)):
            x[forces + at.stride + k] = x[forces + drives.row[k]] * y.load.control[k]
        for j in range(n):
            x[forces + j] *= y.load.tau[j]


def add_forces_of_rows(s: RobotStages, y: AccelerationSlopes) -> None:
    """Add the derivatives of Sᵀ f, with forces f of joint rows by the coordinates and velocities S v of these."""
    n, drives, at, x = len(y.after), s.joints.drives, y.at, y.numbers
    for i in range(n):
        row = at.rates + i * at.width
        subtract_multiples(x, row, at.carried + i * n, n, at.stride, (-1.0,))
        for r in range(len(y.load.position)):
            S, factor = at.spread + r * n, x[at.spread + r * n + i]
            if factor != 0.0:
                subtract_multiples(x, row, S, n, at.stride, (-factor * y.load.position[r],))
                subtract_multiples(x, row, at.swept + r * n, n, at.stride, (-factor * y.load.velocity[r],))
                subtract_multiples(x, row + at.stride, S, n, at.stride, (-factor * y.load.velocity[r],))
        for k in range(len(drives.row)):
            x[row + 3 * at.stride + k] += x[at.spread + drives.row[k] * n + i] * y.load.control[k]


def write_matrix(y: AccelerationSlopes) -> None:
    """Copy the mass matrix, or its lower triangle where this is enough."""
    n, at, x = len(y.after), y.at, y.numbers
    for i in range(n):
        subtract_multiples(x, at.matrix + i * at.stride, at.mass + i * n, n, at.stride, (-1.0,), True)
        for j in range(i if y.is_rigid else 0):
            x[at.matrix + j * at.stride + i] = x[at.mass + i * n + j]


def write_differences(s: RobotStages, y: AccelerationSlopes, touched: bool) -> None:
    """Write the derivatives of the forces minus those of inverse dynamics, by central differences of the acceleration a.

    Without impulses it solves M a + c = F, so that the derivatives of F are M times those of a and those of inverse dynamics.
    """
    n, at, x, nu, na = len(y.after), y.at, y.numbers, len(s.state.control), len(s.state.act)
    clear_parts(y)
    copy(s.step.acceleration, y.probes[2, :n])
    copy(s.step.act, y.probes[2, n:])
    for column in range(2 * n):
        for side in range(2):
            step = SMALL_STEP if side == 0 else -SMALL_STEP
            accelerate_along(s, y, column, step)
            add_differences(s, y, column, 0.5 / step, touched)
            if column >= n:
                move_along(s, y, column, -step)
    for column in range(2 * n, 2 * n + nu + na):
        if column >= 2 * n + nu or s.state.given[WITH_CONTROL]:
            write_inputs_of_differences(s, y, column)
    be_at(s, s.state.q, s.state.v)
    accelerate_at_start(s)
    for i in range(n):
        row = at.rates + i * at.width
        for j in range(at.width):
            x[row + j] = 0.0
        add_product(x, row, (at.mass + i * n, n), (at.differences, at.width), at.width)
        for j in range(n):
            x[row + j] += x[at.by_q_struck + i * n + j] - x[at.by_q + i * n + j]
            x[row + 2 * at.stride + j] = 0.0
        x[row + 2 * at.stride + i] = y.load.tau[i]


def clear_parts(y: AccelerationSlopes) -> None:
    """Set all differences to zero."""
    for i in range(y.at.differences, y.at.spread):
        y.numbers[i] = 0.0
    for k in range(len(y.bent)):
        y.bent[k] = False


def accelerate_along(s: RobotStages, y: AccelerationSlopes, column: int, step: float) -> None:
    """Write the acceleration without impulses, and the activations after the step, at a small distance along a direction."""
    move_along(s, y, column, step)
    accelerate_at_start(s)
    write_next_activations(s)


def write_inputs_of_differences(s: RobotStages, y: AccelerationSlopes, column: int) -> None:
    """Write the differences along a control or activation.

    Forces bend at limits of controls and activations. There, the side on which they change counts, as it is within the limits.
    """
    n, at, bend, sides = len(y.after), y.at, 0.0, (0.0, 0.0)
    for side in range(2):
        step = SMALL_STEP if side == 0 else -SMALL_STEP
        accelerate_along(s, y, column, step)
        note_acceleration(s, y.probes[side])
        move_along(s, y, column, -step)
    here, ahead, behind = y.probes[2], y.probes[0], y.probes[1]
    for i in range(len(here)):
        bend = max(bend, abs(ahead[i] - 2.0 * here[i] + behind[i]))
        sides = max(sides[0], abs(ahead[i] - here[i])), max(sides[1], abs(behind[i] - here[i]))
    y.bent[column - 2 * n] = bend > BENT * (sides[0] + sides[1])
    place = 3 * at.stride + column - 2 * n
    for i in range(len(here)):
        slope = 0.5 * (ahead[i] - behind[i])
        if y.bent[column - 2 * n]:
            slope = ahead[i] - here[i] if sides[0] > sides[1] else here[i] - behind[i]
        row = at.differences + i * at.width if i < n else at.acts + (i - n) * at.width
        y.numbers[row + place] = slope / SMALL_STEP


def note_acceleration(s: RobotStages, target: Vector) -> None:
    """Copy the acceleration, and the activations after the step."""
    n = len(s.point.acceleration)
    copy(s.point.acceleration, target[:n])
    copy(s.step.act, target[n:])


def move_along(s: RobotStages, y: AccelerationSlopes, column: int, step: float) -> None:
    """Set x and w to a state at a small distance along a velocity, or change a velocity, control or activation of the state."""
    n, nu = len(y.after), len(s.state.control)
    if column >= 2 * n + nu:
        s.state.act[column - 2 * n - nu] += step
    elif column >= 2 * n:
        s.state.control[column - 2 * n] += step
    elif column >= n:
        s.state.v[column - n] += step
    be_at(s, s.state.q, s.state.v)
    copy(s.state.act, s.point.act)
    if column < n:
        clear(y.increment)
        y.increment[column] = step
        call_machine(y.calls.moved)


def add_differences(s: RobotStages, y: AccelerationSlopes, column: int, weight: float, touched: bool) -> None:
    """Add the acceleration at x and w, times a weight, to a column of q or v; and what depends on lengths."""
    n, at, x, p, h = len(y.after), y.at, y.numbers, s.point, s.numbers.step
    place = column if column < n else at.stride + column - n
    for i in range(n):
        x[at.differences + i * at.width + place] += weight * p.acceleration[i]
        if len(s.inertias.armature) > 0 and y.paths.joint[i] >= 0:
            x[at.late + i * at.width + place] += weight * s.inertias.armature[y.paths.joint[i]]
    for j in range(len(s.step.act)):
        x[at.acts + j * at.width + place] += weight * s.step.act[j]
    if not touched or not s.numbers.joined:
        return
    rows, t = s.touching.model.rows, s.touching
    if s.calls.length_bias.address != 0:
        write_bent(s.joints.curved, s.state.v, s.lengths.bent)
        call_machine(s.calls.length_bias)
        write_drift(s.lengths, s.state.v)
    for r in range(len(rows.joint)):
        dof, f = t.dofs[rows.joint[r]], t.impulses.next_row[r]
        if dof >= s.joints.driving.alike:
            if rows.holds[r] > 0 and len(s.lengths.drift) > 0:
                x[at.drifts + 2 * r * at.stride + place] += weight * s.lengths.drift[dof]
            if column < n:
                before = weight_before(y, h, t.model.yielding_rows, r)
                for i in range(n):
                    seen = y.after[i] + before * s.state.v[i]
                    x[at.arms + r * n + column] += weight * p.S[dof, i] * seen
                    x[at.pulls + i * at.stride + column] += weight * p.S[dof, i] * rows.sign[r] * f / h


def write_rates_with_dampers(s: RobotStages, y: AccelerationSlopes) -> None:
    """Write the rates of the acceleration after dampers of a robot that touches nothing: (M + h D) a' + c = F."""
    copy(s.step.pushed, y.acceleration)
    write_forces_on_bodies(s, y, False)
    call_machine(y.calls.settled)
    write_smooth_part(s, y)
    write_matrix(y)
    solve_for_rates(y.numbers, len(y.after), y.at)


def settle_rates(s: RobotStages, y: AccelerationSlopes) -> None:
    """Replace the rates by those of the acceleration after dampers, (M + h D)⁻¹ M a."""
    n, at, x = len(y.after), y.at, y.numbers
    for i in range(n * at.width):
        x[at.struck + i] = x[at.rates + i]
    for i in range(n * n):
        x[at.by_q_struck + i], x[at.by_v_struck + i] = x[at.by_q + i], x[at.by_v + i]
    copy(s.step.pushed, y.acceleration)
    for i in range(n):
        row = at.rates + i * at.width
        for j in range(at.width):
            x[row + j] = 0.0
        add_product(x, row, (at.mass + i * n, n), (at.struck, at.width), at.solved)
    call_machine(y.calls.settled)
    for i in range(n):
        row = at.rates + i * at.width
        for j in range(n):
            x[row + j] += x[at.by_q_struck + i * n + j] - x[at.by_q + i * n + j]
            x[row + at.stride + j] += x[at.by_v_struck + i * n + j] - x[at.by_v + i * n + j]
        if y.by_differences:
            subtract_multiples(x, row, at.late + i * at.width, 0, at.width, (y.acceleration[i],))
    write_matrix(y)
    solve_for_rates(x, n, at)


# ---- contacts and joint rows


def add_touching(s: RobotStages, y: AccelerationSlopes) -> None:
    """Add Jᵀ G J to the matrix, and the terms of contacts and joint rows to the right-hand sides."""
    t = s.touching
    if t.counts[FOUND] > 0 and t.counts[SOLVED] > 0:
        call_machine(y.calls.jacobian)
        if y.calls.motions.address != 0:
            call_machine(y.calls.motions)
        if y.calls.motions_before.address != 0:
            call_machine(y.calls.motions_before)
        write_velocities_of_bodies(s, y)
    if y.calls.spanning_after.address != 0 and t.counts[NEAR] > 0:
        add_carried_impulses(s, y)
    if s.calls.contact_factor.address != 0:
        add_rows(s, y, t.passes.rows)
    else:
        add_rows(s, y, t.workspace.assembly.of_rows)


def add_carried_impulses(s: RobotStages, y: AccelerationSlopes) -> None:
    """Add the derivatives of the joint forces of limits and dry friction of joints that loops move, at constant impulses."""
    t, n, at = s.touching, len(y.after), y.at
    clear(y.pushes)
    for k in range(len(t.dofs)):
        y.pushes[t.dofs[k]] += t.impulses.joint[k] / s.numbers.step
    call_machine(y.calls.spanning_after)
    for i in range(n):
        subtract_multiples(y.numbers, at.rates + i * at.width, at.carried_after + i * n, n, at.stride, (-1.0,))


def add_rows(s: RobotStages, y: AccelerationSlopes, work: RowWork) -> None:
    """Add the terms of the rows that the last problem of the robot has in its workspace."""
    t, settings = s.touching, s.touching.model.settings
    k, turning = (t.counts[SOLVED] if t.counts[FOUND] > 0 else 0), 0
    for c in range(k if settings.turning else 0):
        turning += 1 if turns(t, c) else 0
    count = 3 * turning + find_active_rows(t.model, t.kinematics, work.active[3 * turning :])
    p = rows_in(work, settings.pyramid, k, count, turning)
    own = answering_of(p.law, settings.cones, turning, work.turning, work.turning_friction)
    if y.is_rigid:
        y.rigid.edge[0] = EDGE * settings.tolerance * max(greatest_of(p.law.bias), greatest_of(p.approach))
        y.rigid.scale[0] = 0.0
    for c in range(k):
        write_row_numbers(s, y, p, own, c)
        add_contact(s, y, p, own, c)
    for i in range(3 * turning, count):
        add_joint_row(s, y, p, own, i)
    if y.by_differences:
        for i in range(len(y.after)):
            subtract_multiples(y.numbers, y.at.rates + i * y.at.width, y.at.pulls + i * y.at.stride, 0, y.at.stride, (-1.0,))


def write_row_numbers(s: RobotStages, y: AccelerationSlopes, p: ProblemRows, own: Answering, c: int) -> None:
    """Write the impulses of a contact, the velocities y to which they answer, and G."""
    t, count = s.touching, directions_of(c, own)
    for l in range(count):
        row, turning = row_of(c, l, own), l > 2
        at = len(own.mu) + own.group[c] if turning else c
        axis, impulse = p.axes[at, l % 3], t.impulses.turn[c] if turning else t.impulses.force[c]
        y.responding[row] = p.law.bias[row]
        y.impulses[row] = ordered_product(axis, impulse) / ordered_product(axis, axis)
        for side in range(2):
            body = body_of(t.contacts, c, side)
            if body >= 0:
                for j in range(6):
                    change = y.velocity[body, j] - t.kinematics.velocity[body, j]
                    y.responding[row] += p.rows[at, side, l % 3, j] * change
    if not y.is_rigid:
        write_answer(own, y.responding, c, y.spare, y.slope)


def write_velocities_of_bodies(s: RobotStages, y: AccelerationSlopes) -> None:
    """Write the velocities of bodies that may touch, at w and v."""
    n, x, v = len(y.after), y.numbers, s.state.v
    for b in range(len(s.touching.bodies)):
        for i in range(6):
            row = y.at.jacobian + (6 * b + i) * n
            after = before = 0.0
            for j in range(n):
                after += x[row + j] * y.after[j]
                before += x[row + j] * v[j]
            y.velocity[b, i], y.velocity_before[b, i] = after, before


class ContactOnRows(NamedTuple):
    """A contact, the rows of its impulses, and its number among those with friction against spinning and rolling."""

    c: int
    turning: int
    directions: int  # 3 or 6


def add_contact(s: RobotStages, y: AccelerationSlopes, p: ProblemRows, own: Answering, c: int) -> None:
    """Add the terms of one contact."""
    t, h, slopes, gap = s.touching, s.numbers.step, y.contact, s.touching.contacts.gap[c]
    candidate, count, turning = t.contacts.candidate[c], directions_of(c, own), c
    if count > 3:
        turning = len(p.law.friction) + own.group[c]
    pair, before = t.pair_of[candidate], weight_before(y, h, t.model.yielding, candidate)
    for l in range(DIRECTIONS):
        slopes.impulse[l] = y.impulses[row_of(c, l, own)] if l < count else 0.0
    shapes = t.scene.pair[pair, 0], t.scene.pair[pair, 1]
    on_ground = y.is_rigid and t.scene.kind[shapes[1]] >= PLANE
    tangents = t.model.tangents[candidate] if len(t.model.tangents) > 0 else t.model.friction[:0]
    if y.calls.motions.address == 0:
        turn_jacobian(s, y, body_of(t.contacts, c, 0), before)
        turn_jacobian(s, y, body_of(t.contacts, c, 1), before)
    at = ContactAt(c, shapes, t.scene.margin[pair], p.axes[c], p.axes[turning], count, tangents, on_ground)
    twists = twist_of_side(s, y, c, 0, before), twist_of_side(s, y, c, 1, before)
    unique = write_contact_slopes(t.scene, t.collisions.placement, t.contacts, t.kinematics.placement, at, twists, slopes)
    on_rows = ContactOnRows(c, turning, count)
    write_seen(s, y, p, on_rows, before)
    if y.is_rigid:
        add_closing(s, y, c, gap)
        write_rigid_answer(p.law, c, rho_of(y, 3), y.impulses[3 * c : 3 * c + 3], y.responding[3 * c : 3 * c + 3], y.rigid)
        note_doubtful_contact(y, p, c, unique)
        write_answers(y, y.rigid.G[c], 3, 0.0)
        keep_contact(y, c)
        add_forces_of_contact(s, y, p, on_rows)
        add_stiffness_of_contact(y, y.rigid.G[c], 3)
        return
    y.doubtful[c] = y.doubtful[c] or not unique or is_between(own, y.responding, c)
    yields = yielding_of(t.model.yielding, candidate)
    d, slope = impedance(yields, gap), impedance_slope(yields, gap)
    subtract_multiples(y.numbers, y.at.seen, y.at.opening, 0, y.at.stride, (-h * yields.stiffness * (d + slope * gap),))
    write_answers(y, y.slope, count, slope / (d * (1.0 - d)))  # R'/R = -d' / (d (1 - d))
    add_forces_of_contact(s, y, p, on_rows)
    add_stiffness_of_contact(y, y.slope, count)


def weight_before(y: AccelerationSlopes, h: float, yielding: Matrix, i: int) -> float:
    """Return the weight of the velocity at the start of the step in the velocity to which a contact or row answers."""
    if y.is_rigid:
        return 0.0
    return h * yielding_of(yielding, i).damping - 1.0


def closes(s: RobotStages, gap: float) -> bool:
    """Return whether a rigid contact or limit may close the gap within the step."""
    return bool(gap > EDGE_OF_GAPS * s.touching.model.settings.slop)


def add_closing(s: RobotStages, y: AccelerationSlopes, c: int, gap: float) -> None:
    """Add the derivative of the gap of a rigid contact to that of its normal velocity."""
    if closes(s, gap):
        subtract_multiples(y.numbers, y.at.seen, y.at.opening, 0, y.at.stride, (-1.0 / s.numbers.step,))


def rho_of(y: AccelerationSlopes, count: int) -> float:
    """Return a velocity per impulse for `count` rows J: the greatest J D⁻¹ Jᵀ, with the diagonal D of the mass matrix."""
    n, at, x, most = len(y.after), y.at, y.numbers, 0.0
    for l in range(count):
        total = 0.0
        for j in range(n):
            total += x[at.rows + l * at.stride + j] * x[at.rows + l * at.stride + j] / x[at.mass + j * n + j]
        most = max(most, total)
    return most if most > 0.0 else 1.0


def note_doubtful_contact(y: AccelerationSlopes, p: ProblemRows, c: int, unique: bool) -> None:
    """Note whether a rigid contact is doubtful: near another state, or pushing at a point that is not determined.

    A gap of zero and an overlap of `slop` are not: all contacts and limits at rest have one of these. They count as overlaps
    that the step tolerates. Nor is a contact along whose normal no joint moves the bodies: it has no force.
    """
    pushes = y.impulses[3 * c] != 0.0
    y.doubtful[c] = is_near_another_state(p.law, c, y.rigid) or (pushes and not unique)
    if y.doubtful[c] and is_immovable(y):
        y.doubtful[c] = False


def is_immovable(y: AccelerationSlopes) -> bool:
    """Return whether the normal row of J of a contact is zero up to rounding."""
    at, x, normal, every = y.at, y.numbers, 0.0, 0.0
    for l in range(3):
        for j in range(len(y.after)):
            every = max(every, abs(x[at.rows + l * at.stride + j]))
    for j in range(len(y.after)):
        normal = max(normal, abs(x[at.rows + j]))
    return bool(normal <= ROUNDED * every)


def keep_contact(y: AccelerationSlopes, c: int) -> None:
    """Keep J of a rigid contact, and the derivatives of its impulses at constant acceleration."""
    at = y.at
    for l in range(3):
        keep_row(y, 3 * c + l, (at.rows, at.answer, at.answer_by_v), l)
        if y.rigid.pushing[c]:
            note_scale(y, at.seen + l * at.stride, at.seen_by_v + l * at.stride)


def keep_row(y: AccelerationSlopes, row: int, places: tuple[int, int, int], l: int) -> None:
    """Keep line l at the places of J, and of the derivatives by q and v of an impulse."""
    at, x, (J, by_q, by_v) = y.at, y.numbers, places
    for j in range(at.width):
        x[at.moved + row * at.width + j] = 0.0
    for j in range(len(y.after)):
        x[at.kept + row * at.stride + j] = x[J + l * at.stride + j]
        x[at.moved + row * at.width + j] = x[by_q + l * at.stride + j]
        x[at.moved + row * at.width + at.stride + j] = x[by_v + l * at.stride + j]


def note_scale(y: AccelerationSlopes, seen: int, by_v: int) -> None:
    """Note the size of the derivatives of a velocity by q and v."""
    for j in range(len(y.after)):
        y.rigid.scale[0] = max(y.rigid.scale[0], abs(y.numbers[seen + j]), abs(y.numbers[by_v + j]))


def twist_of_side(s: RobotStages, y: AccelerationSlopes, c: int, side: int, before: float) -> Twist:
    """Return the velocity of a contact's body at w and v, weighted by 1 and `before`."""
    t, body = s.touching, body_of(s.touching.contacts, c, side)
    if body < 0:
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    return twist_of(t.kinematics.placement[body], y.velocity[body], y.velocity_before[body], before)


def turn_jacobian(s: RobotStages, y: AccelerationSlopes, body: int, before: float) -> None:
    """Write the derivatives by q of a body's velocity at w and v, weighted by 1 and `before`, for a robot without loops.

    A joint turns the body's axes relative to the joints above it, whose velocity of the body is P: the derivative by its
    coordinate is P x J, with its column of J.
    """
    if body < 0:
        return
    n, x, J, turned = len(y.after), y.numbers, y.at.jacobian + 6 * len(y.after) * body, y.at.turned + 6 * len(y.after) * body
    l, w = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)  # velocity by the joints above the joint of row j
    more_l, more_w = l, w  # and by this joint
    for j in range(n):
        if y.paths.moves[body, j]:
            if y.paths.first[j] == j:
                l, w = more_l, more_w
            a = x[J + j], x[J + n + j], x[J + 2 * n + j]
            b = x[J + 3 * n + j], x[J + 4 * n + j], x[J + 5 * n + j]
            u, v = plus(outer(w, a), outer(l, b)), outer(w, b)
            for i in range(3):
                x[turned + i * n + j], x[turned + (3 + i) * n + j] = component(u, i), component(v, i)
            rate = y.after[j] + before * s.state.v[j]
            more_l, more_w = along(more_l, rate, a), along(more_w, rate, b)


def row_of_side(p: ProblemRows, k: ContactOnRows, side: int, l: int) -> Vector:
    """Return the row (6,) of a direction of a contact on the velocity of one of its bodies."""
    return p.rows[k.c, side, l] if l < 3 else p.rows[k.turning, side, l - 3]  # type: ignore[no-any-return]


def write_seen(s: RobotStages, y: AccelerationSlopes, p: ProblemRows, k: ContactOnRows, before: float) -> None:
    """Write J of a contact, and the derivatives of its gap and velocities y, without the term of the gap."""
    n, at, x, slopes = len(y.after), y.at, y.numbers, y.contact
    for j in range(at.stride):
        x[at.opening + j] = 0.0
    for j in range(k.directions * at.stride):
        x[at.rows + j] = x[at.seen + j] = x[at.seen_by_v + j] = 0.0
    for side in range(2):
        body = body_of(s.touching.contacts, k.c, side)
        if body >= 0:
            J, turned, earlier = at.jacobian + 6 * n * body, at.turned + 6 * n * body, at.turned_before + 6 * n * body
            add_six(x, at.opening, J, n, at.stride, slopes.gap[6 * side : 6 * side + 6], 1.0)
            for l in range(k.directions):
                row, seen = row_of_side(p, k, side, l), at.seen + l * at.stride
                add_six(x, at.rows + l * at.stride, J, n, at.stride, row, 1.0)
                add_six(x, seen, turned, n, at.stride, row, 1.0)
                if y.calls.motions_before.address != 0:
                    add_six(x, seen, earlier, n, at.stride, row, before)
                add_six(x, seen, J, n, at.stride, slopes.seen[l, 6 * side : 6 * side + 6], 1.0)
    for l in range(k.directions):
        own, seen = at.rows + l * at.stride, at.seen_by_v + l * at.stride
        subtract_multiples(x, seen, own, 0, at.stride, (-1.0 - before,))
        add_curved(s, x[own : own + n], x[seen : seen + n])


def add_six(x: Vector, target: int, rows: int, stride: int, length: int, f: Vector, factor: float) -> None:
    """Add a combination of six rows with the factors f, all times `factor`."""
    a, b, c, d, e, g = f[0], f[1], f[2], f[3], f[4], f[5]
    u = -factor
    subtract_multiples(x, target, rows, stride, length, (u * a, u * b, u * c, u * d, u * e, u * g))


def write_answers(y: AccelerationSlopes, G: Matrix, count: int, softer: float) -> None:
    """Write the derivatives of a contact's impulses; a gap that opens makes them greater at the rate `softer`."""
    at, x, f = y.at, y.numbers, y.contact.impulse
    for l in range(count):
        answer, by_v = at.answer + l * at.stride, at.answer_by_v + l * at.stride
        subtract_multiples(x, answer, at.opening, 0, at.stride, (-f[l] * softer,), True)
        subtract_multiples(x, answer, at.seen, at.stride, at.stride, (G[l, 0], G[l, 1], G[l, 2]))
        subtract_multiples(x, by_v, at.seen_by_v, at.stride, at.stride, (G[l, 0], G[l, 1], G[l, 2]), True)
        if count > 3:
            rest = G[l, 3], G[l, 4], G[l, 5]
            subtract_multiples(x, answer, at.seen + 3 * at.stride, at.stride, at.stride, rest)
            subtract_multiples(x, by_v, at.seen_by_v + 3 * at.stride, at.stride, at.stride, rest)


def add_forces_of_contact(s: RobotStages, y: AccelerationSlopes, p: ProblemRows, k: ContactOnRows) -> None:
    """Add the joint forces of the rates of a contact's impulses and wrenches."""
    n, at, x, unit, contacts = len(y.after), y.at, y.numbers, 1.0 / s.numbers.step, s.touching.contacts
    for side in range(2):
        body = body_of(contacts, k.c, side)
        if body >= 0:
            for i in range(6):
                felt = at.felt + i * at.stride
                for j in range(at.stride):
                    x[felt + j] = 0.0
                for other in range(2):
                    moved = body_of(contacts, k.c, other)
                    if moved >= 0:
                        J, rates = at.jacobian + 6 * n * moved, y.contact.felt[side, i, 6 * other : 6 * other + 6]
                        add_six(x, felt, J, n, at.stride, rates, 1.0)
                for l in range(0, k.directions, 3):
                    first, second = row_of_side(p, k, side, l), row_of_side(p, k, side, l + 1)
                    third = row_of_side(p, k, side, l + 2)
                    factors = -first[i], -second[i], -third[i]
                    subtract_multiples(x, felt, at.answer + l * at.stride, at.stride, at.stride, factors)
            J = at.jacobian + 6 * n * body
            for j in range(n):
                a, b, c, d = x[J + j], x[J + n + j], x[J + 2 * n + j], x[J + 3 * n + j]
                e, f = x[J + 4 * n + j], x[J + 5 * n + j]
                if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0 or e != 0.0 or f != 0.0:
                    six = -unit * a, -unit * b, -unit * c, -unit * d, -unit * e, -unit * f
                    subtract_multiples(x, at.rates + j * at.width, at.felt, at.stride, at.stride, six)
    for l in range(0, k.directions, 3):
        for j in range(n):
            add_three(x, at.rates + j * at.width + at.stride, at.answer_by_v + l * at.stride, at, l, j, unit, at.stride)


def add_three(x: Vector, target: int, rows: int, at: Places, l: int, j: int, factor: float, length: int) -> None:
    """Add three rows, with the j-th numbers of three directions of J as factors, times `factor`."""
    J = at.rows + l * at.stride + j
    a, b, c = x[J], x[J + at.stride], x[J + 2 * at.stride]
    if a != 0.0 or b != 0.0 or c != 0.0:
        subtract_multiples(x, target, rows, at.stride, length, (-factor * a, -factor * b, -factor * c))


def add_stiffness_of_contact(y: AccelerationSlopes, G: Matrix, count: int) -> None:
    """Add Jᵀ G J to the matrix, or to its lower triangle, if it is symmetric."""
    at, x = y.at, y.numbers
    for l in range(count):
        felt = at.felt + l * at.stride
        subtract_multiples(x, felt, at.rows, at.stride, at.stride, (-G[l, 0], -G[l, 1], -G[l, 2]), True)
        if count > 3:
            rest = -G[l, 3], -G[l, 4], -G[l, 5]
            subtract_multiples(x, felt, at.rows + 3 * at.stride, at.stride, at.stride, rest)
    for l in range(0, count, 3):
        for j in range(len(y.after)):
            length = at.stride if y.is_rigid else padded(j + 1)
            add_three(x, at.matrix + j * at.stride, at.felt + l * at.stride, at, l, j, 1.0, length)


def add_joint_row(s: RobotStages, y: AccelerationSlopes, p: ProblemRows, own: Answering, i: int) -> None:
    """Add the terms of a limit, of dry friction or of an equality of a joint or a length."""
    t, h, n, at, x, sliding = s.touching, s.numbers.step, len(y.after), y.at, y.numbers, len(p.law.friction)
    rows, r = t.model.rows, p.active[i]
    dof, sign, before = t.dofs[rows.joint[r]], rows.sign[r], weight_before(y, h, t.model.yielding_rows, r)
    gap, f, at_row = t.kinematics.gap[r], t.impulses.next_row[r], 3 * sliding + i
    alike, change = s.joints.driving.alike, 0.0
    for j in range(3 * at.stride):
        x[at.rows + j] = 0.0
    for j in range(at.stride):
        x[at.opening + j] = x[at.seen_by_v + j] = 0.0
    J, seen, by_v = at.rows, at.rows + at.stride, at.seen_by_v
    if dof < alike:
        x[J + dof], change = sign, sign * (y.after[dof] - s.step.free[dof])
    else:
        for j in range(n):
            x[J + j] = sign * s.point.S[dof, j]
            change += x[J + j] * (y.after[j] - s.step.free[j])
            x[seen + j] = sign * (x[at.arms + r * n + j] if y.by_differences else x[at.swept_after + dof * n + j])
            if rows.holds[r] > 0:
                x[seen + j] += h * x[at.drifts + 2 * r * at.stride + j]
                x[by_v + j] = h * x[at.drifts + (2 * r + 1) * at.stride + j]
    y.responding[at_row] = p.law.bias[at_row] + change
    add_curved(s, x[J : J + n], x[by_v : by_v + n])
    G, at_gap = 0.0, len(t.contacts.gap) + r
    if y.is_rigid:
        near = write_rigid_row(p.law, i, rho_of(y, 1), f, y.responding[at_row], y.rigid)
        y.doubtful[at_gap] = near
        G = y.rigid.G[sliding + i, 0, 0]
    else:
        _, G = answer_of_row(own, at_row, y.responding[at_row])
        y.doubtful[at_gap] = y.doubtful[at_gap] or is_row_between(p, at_row, y.responding)
    if y.is_rigid:
        if not rows.friction[r] and closes(s, gap):
            subtract_multiples(x, seen, J, 0, at.stride, (-1.0 / h,))
    elif rows.holds[r] > 0:
        add_gaps_of_equality(s, y, r, seen)
    elif not rows.friction[r]:
        yields = yielding_of(t.model.yielding_rows, r)
        d, slope = impedance(yields, gap), impedance_slope(yields, gap)
        subtract_multiples(x, at.opening, J, 0, at.stride, (-slope / (d * (1.0 - d)),))
        subtract_multiples(x, seen, J, 0, at.stride, (-h * yields.stiffness * (d + slope * gap),))
    subtract_multiples(x, by_v, J, 0, at.stride, (-1.0 - before,))
    if y.is_rigid:
        keep_joint_row(y, sliding, i, seen)
    first, stop = (dof, dof + 1) if dof < alike else (0, n)
    for j in range(first, stop):
        force, row = x[J + j] / h, at.rates + j * at.width
        if force != 0.0:
            subtract_multiples(x, row, seen, 0, at.stride, (force * G,))
            subtract_multiples(x, row, at.opening, 0, at.stride, (-force * f,))
            subtract_multiples(x, row + at.stride, by_v, 0, at.stride, (force * G,))
            length = at.stride if y.is_rigid else padded(j + 1)
            subtract_multiples(x, at.matrix + j * at.stride, J, 0, length, (-x[J + j] * G,))


def keep_joint_row(y: AccelerationSlopes, sliding: int, i: int, seen: int) -> None:
    """Keep J of row i, and the derivatives of its impulse at constant acceleration."""
    at, x, row, G = y.at, y.numbers, 3 * sliding + i, y.rigid.G[sliding + i, 0, 0]
    subtract_multiples(x, at.answer, seen, 0, at.stride, (G,), True)
    subtract_multiples(x, at.answer_by_v, at.seen_by_v, 0, at.stride, (G,), True)
    keep_row(y, row, (at.rows, at.answer, at.answer_by_v), 0)
    if y.rigid.pushing[sliding + i]:
        note_scale(y, seen, at.seen_by_v)


def add_gaps_of_equality(s: RobotStages, y: AccelerationSlopes, r: int, seen: int) -> None:
    """Add the terms of the gaps of an equality to its row r; their common distance determines the impedance."""
    t, at, x, n = s.touching, y.at, y.numbers, len(y.after)
    rows, yields, gap = t.model.rows, yielding_of(t.model.yielding_rows, r), t.kinematics.gap[r]
    first, count, square, stiffness = rows.first[r], rows.holds[r], 0.0, s.numbers.step * yields.stiffness
    for k in range(first, first + count):
        square += t.kinematics.gap[k] * t.kinematics.gap[k]
    distance = sqrt(square)
    d, slope = impedance(yields, distance), impedance_slope(yields, distance)
    subtract_multiples(x, seen, at.rows, 0, at.stride, (-stiffness * d,))
    for k in range(first, first + count if slope != 0.0 else first):
        part, dof = slope * t.kinematics.gap[k] / distance, t.dofs[rows.joint[k]]
        for j in range(n):
            own = s.point.S[dof, j] if dof >= s.joints.driving.alike else (1.0 if dof == j else 0.0)
            farther = part * rows.sign[k] * own
            x[seen + j] += stiffness * gap * farther
            x[at.opening + j] += farther / (d * (1.0 - d))


def is_row_between(p: ProblemRows, i: int, velocity: Vector) -> bool:
    """Return whether a row with bounds is at one of them without force."""
    j, f = i - 3 * len(p.law.friction), -velocity[i] / p.law.compliance[i]
    lower, upper = p.law.lower[j], p.law.upper[j]
    return bool(abs(f - lower) < BOUNDARY * abs(f) or abs(f - upper) < BOUNDARY * abs(f))


def add_curved(s: RobotStages, row: Vector, target: Vector) -> None:
    """Add h times a row times the derivative of w x v of joints whose velocities do not commute (see `free_velocity`)."""
    joints, v, h = s.joints.curved, s.state.v, s.numbers.step
    for k in range(len(joints)):
        kind, i = joints[k, 0], joints[k, 1]
        if kind == FLOATING:
            a, b, c, x, y, z = v[i + 3], v[i + 4], v[i + 5], v[i], v[i + 1], v[i + 2]
            p, q, r = h * row[i], h * row[i + 1], h * row[i + 2]
            target[i] += q * c - r * b
            target[i + 1] += r * a - p * c
            target[i + 2] += p * b - q * a
            target[i + 3] += y * r - z * q
            target[i + 4] += z * p - x * r
            target[i + 5] += x * q - y * p
        elif kind == PLANAR:
            p, q = h * row[i], h * row[i + 1]
            target[i] += q * v[i + 2]
            target[i + 1] -= p * v[i + 2]
            target[i + 2] += q * v[i] - p * v[i + 1]


# ---- rigid contacts


def solve_with_rigid_rows(s: RobotStages, y: AccelerationSlopes) -> None:
    """Replace the right-hand sides by rates with rigid contacts, and note contacts whose impulses are not unique."""
    t, active = s.touching, s.touching.workspace.assembly.of_rows.active
    k = t.counts[SOLVED] if t.counts[FOUND] > 0 else 0
    count = find_active_rows(t.model, t.kinematics, active)
    if solve_for_rigid_rates(y.numbers, len(y.after), y.at, y.rigid, (k, count), s.numbers.step):
        for c in range(k):
            y.doubtful[c] = y.doubtful[c] or y.rigid.pushing[c]
        for i in range(count):
            row = len(t.contacts.gap) + active[i]
            y.doubtful[row] = y.doubtful[row] or y.rigid.pushing[k + i]


def are_covered(s: RobotStages) -> bool:
    """Return whether these derivatives cover the rigid contacts and joint rows of the step.

    They do not cover contacts that bounce, those of a body with a single contact point, whose Delassus matrix is that of the
    point instead of its projection on the ground, and steps that separate overlapping bodies.
    """
    t = s.touching
    if t.counts[FOUND] == 0 and t.counts[NEAR] == 0:
        return True
    if greatest_of(s.step.displacement) > PARTED * t.model.settings.slop:
        return False
    before, bounce = t.workspace.assembly.of_rows.before, BOUNCING * t.model.settings.bounce
    for c in range(t.counts[SOLVED] if t.counts[FOUND] > 0 else 0):
        for side in range(2):
            body = body_of(t.contacts, c, side)
            if body >= 0 and t.model.width[body] == 3:
                return False
        if t.model.restitution[t.contacts.candidate[c]] > 0.0 and before[3 * c] < -bounce:
            return False
    return True
