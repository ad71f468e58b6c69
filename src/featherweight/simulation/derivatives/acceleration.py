"""Derivatives of the acceleration of a step by q, v, joint forces, controls and activations, with contacts.

The acceleration a under forces F at joints and impulses f of contacts and joint rows, spread over the step h, solves

    M(q) a + c(q, v) = F(q, v, u) + J(q)ᵀ f / h         f = f(y),   y = J w - J v + h (b J v + k d(g) g)

with the velocity w = v + h (a + curvature) after the step and gaps g (see `contact.compliant.compliance`). The answers f have
the derivative -G by y, and are proportional to 1/R(g). Hence (M + Jᵀ G J) da = r, where r has

    the derivatives of inverse dynamics with impulses as forces on bodies (Carpentier and Mansard 2018), and of F
    -Jᵀ G / h times the derivatives of y at constant a, and -Jᵀ f / h times those of R, relative to R
    the derivatives of Jᵀ f and J at constant velocities of the bodies, by the motion of contacts (`contacts`)

Rigid contacts answer to y = J w + g / h, or to J w if they overlap. Their G has a proximal term (`contact.rigid.answers`),
which corrections remove (`rigid_contacts`).

Where dampers act after impulses, the acceleration a' solves (M + h D) a' = M a at the same state. Forces at joints are linear
within limits (`loads`). Those of tendons, muscles, drives with activations, drag, springs of ball joints, and of a robot with
loops and compliant equalities have derivatives by differences: of the load at joints, or, where this is not all that depends on
the state (drag, gravity compensation, implicit drives, dampers that vary), of the acceleration without impulses.
"""

from __future__ import annotations

from ...array_types import Vector
from ...collision.detection import body_of
from ...collision.triples import inner, minus, outer
from ...contact.contact_problem import find_active_rows
from ...contact.contact_slopes import axis_of_body, origin_of, triple
from ...contact.impulses import greatest_of
from ...contact.joint_rows import is_active
from ...engine.loops.kernels import call_machine, subtract_multiples
from ...robot.tendons.lengths import write_drift
from ..forces.free_bodies import free_body, turn_cotangent, turn_rates, write_slopes_of_body
from ..robot_stages import is_touched, write_bias_accelerations, write_pushed_acceleration
from ..smooth_motion import (
    accelerate_at_start,
    be_at,
    clear,
    clear_rows,
    copy,
    copy_rows,
    ordered_product,
    write_body_forces,
    write_late_damping,
    write_load_at_rows,
    write_next_activations,
    write_rows,
)
from ..stage_records import FOUND, NEAR, SOLVED, WITH_CONTROL, WITH_FORCES, RobotStages
from .contacts import ROUNDED, add_touching, are_impulses_constant, pull_back_touching, weight_before
from .equations import add_product, solve_for_rates, subtract_tiles
from .loads import write_load_slopes, write_tau_slopes
from .records import AccelerationSlopes
from .rigid_contacts import pull_back_rigid_rates, solve_for_rigid_rates

PARTED = 0.1  # displacement that separates overlaps, in units of slop, below which these count as tolerated
BOUNCING = 0.99  # part of the speed from which contacts bounce
SMALL_STEP = 1e-6  # of differences of forces
NONSMOOTH = 1e-3  # relative difference of the slopes on both sides above which a force has a kink


def write_acceleration_slopes(s: RobotStages, y: AccelerationSlopes) -> int:
    """Write the slopes of the step that has just been computed, with its contacts and joint rows.

    Return the number of forces and controls at a limit, and of contacts and rows at the boundary of two states.
    """
    n, touched = len(y.after), is_touched(s)
    at_limits = write_forces_of_step(s, y)
    mark_gaps_of_zero(s, y)
    if has_dampers_only(s, y):
        write_dynamics_with_dampers(s, y, False)
        write_spanning(s, y)
        write_right_hand_sides(s, y, False)
        write_matrix(y)
        solve_for_rates(y.numbers, n, y.at)
        turn_rates_of_free_bodies(s, y)
        write_controls(s, y)
        return at_limits
    write_dynamics(s, y, touched)
    write_right_hand_sides(s, y, touched)
    write_matrix(y)
    if touched:
        add_touching(s, y, True)
    if touched and y.is_rigid:
        solve_with_rigid_rows(s, y)
    else:
        solve_for_rates(y.numbers, n, y.at)
    if s.numbers.settles:
        settle_rates(s, y, touched)
        turn_rates_of_free_bodies(s, y)
    write_controls(s, y)
    for i in range(len(y.doubtful)):
        at_limits += 1 if y.doubtful[i] else 0
    for k in range(len(y.nonsmooth)):
        at_limits += 1 if y.nonsmooth[k] else 0
    return at_limits


def has_dampers_only(s: RobotStages, y: AccelerationSlopes) -> bool:
    """Return whether the acceleration after dampers solves (M + h D) a' + c = F, since no impulses change."""
    settles = s.numbers.settles and not y.by_differences
    return bool(settles and (not is_touched(s) or are_impulses_constant(s, y)))


def write_forces_of_step(s: RobotStages, y: AccelerationSlopes) -> int:
    """Write the slopes of forces at joints by their laws or by differences; return the number of values at a limit."""
    n, at, x = len(y.after), y.at, y.numbers
    be_at(s, s.state.q, s.state.v)
    if not y.by_differences:
        return write_load_slopes(s, y.load)
    at_limits = write_tau_slopes(s, y.load)
    copy(s.step.acceleration, y.acceleration)
    if not are_loads(s, y):
        write_forces_on_bodies(s, y, False)
        call_machine(y.calls.dynamics)
        for i in range(n * n):
            x[at.by_q_free + i] = x[at.by_q + i]
    return at_limits


def are_loads(s: RobotStages, y: AccelerationSlopes) -> bool:
    """Return whether differences are those of the load, instead of the acceleration without impulses."""
    return y.by_loads and not (s.numbers.driven and s.state.given[WITH_CONTROL])


def write_dynamics(s: RobotStages, y: AccelerationSlopes, touched: bool) -> None:
    """Write the derivatives of inverse dynamics at the acceleration with impulses, before dampers act; w; and differences."""
    n, h, rigid = len(y.after), s.numbers.step, touched and y.is_rigid
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
    write_spanning(s, y)
    if y.calls.spanning_after.address != 0 and s.touching.counts[NEAR] > 0:
        write_mapped_impulses(s, y)
    if y.by_differences:
        write_differences(s, y, touched)


def write_dynamics_with_dampers(s: RobotStages, y: AccelerationSlopes, touched: bool) -> None:
    """Write the derivatives of inverse dynamics at the acceleration after dampers act."""
    n, damped = len(y.after), s.joints.damped
    copy(s.step.settled, y.acceleration)
    write_forces_on_bodies(s, y, touched)
    call_machine(y.calls.settled)
    for k in range(len(damped.row)):
        for i in range(n):
            late = s.numbers.step * damped.damping[k] * damped.direction[k, i]
            for j in range(n if late != 0.0 else 0):
                y.numbers[y.at.mass + i * n + j] += late * damped.direction[k, j]


def write_spanning(s: RobotStages, y: AccelerationSlopes) -> None:
    """Write the map S to the velocities of all joints and lengths, and its derivatives, if loops move joints."""
    n, alike = len(y.after), s.joints.driving.alike
    if y.calls.spanning.address != 0:
        call_machine(y.calls.spanning)
    for r in range(alike, len(y.load.position) if alike > 0 and not y.by_differences else alike):
        copy(s.point.S[r], y.numbers[y.at.spread + r * n : y.at.spread + (r + 1) * n])


def write_mapped_impulses(s: RobotStages, y: AccelerationSlopes) -> None:
    """Write the derivatives of the joint forces of limits and dry friction of joints that loops move, at constant impulses."""
    t = s.touching
    clear(y.pushes)
    for k in range(len(t.dofs)):
        y.pushes[t.dofs[k]] += t.impulses.joint[k] / s.numbers.step
    call_machine(y.calls.spanning_after)


def mark_gaps_of_zero(s: RobotStages, y: AccelerationSlopes) -> None:
    """Mark the contacts and limits that begin here as doubtful, and no others.

    A contact along whose normal no joint moves the bodies does not begin.
    """
    t, capacity = s.touching, len(s.touching.contacts.gap)
    for c in range(capacity):
        begins = not y.is_rigid and c < t.counts[FOUND] and abs(t.contacts.gap[c]) < ROUNDED
        y.doubtful[c] = begins and moves_along_normal(s, y, c)
    for r in range(len(t.model.rows.joint)):
        limits = not y.is_rigid and not t.model.rows.friction[r] and t.model.rows.holds[r] == 0
        y.doubtful[capacity + r] = limits and abs(t.kinematics.gap[r]) < ROUNDED


def moves_along_normal(s: RobotStages, y: AccelerationSlopes, c: int) -> bool:
    """Return whether a joint moves the bodies of a contact relative to each other along its normal."""
    t, x, n, most, every = s.touching, y.numbers, len(y.after), 0.0, 0.0
    point, normal = triple(t.contacts.point[c], 0), triple(t.contacts.normal[c], 0)
    call_machine(y.calls.jacobian)
    for j in range(n):
        speed = 0.0
        for side in range(2):
            body = body_of(t.contacts, c, side)
            if body >= 0:
                T, J = t.kinematics.placement[body], y.at.jacobian + 6 * n * body + j
                about = outer(minus(point, origin_of(T)), normal)
                for i in range(3):
                    e = axis_of_body(T, i)
                    u, w = inner(e, normal) * x[J + i * n], inner(e, about) * x[J + (3 + i) * n]
                    speed += u + w if side == 0 else -u - w
                    every = max(every, abs(x[J + i * n]), abs(x[J + (3 + i) * n]))
        most = max(most, abs(speed))
    return bool(most > ROUNDED * every)


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


# ---- right-hand sides without contacts


def write_right_hand_sides(s: RobotStages, y: AccelerationSlopes, touched: bool) -> None:
    """Write the derivatives of the forces minus those of inverse dynamics, at constant acceleration."""
    n, at, x = len(y.after), y.at, y.numbers
    for i in range(n):
        row = at.rates + i * at.width
        clear(x[row : row + at.width])
        add_row_of_forces(s, y, i, row, 1.0, touched)
        x[row + 2 * at.stride + i] = y.load.tau[i] if at.solved == at.width else 1.0
        if y.by_differences and are_loads(s, y):
            subtract_multiples(x, row, at.differences + i * at.width, 0, at.width, (-1.0,))
        elif y.by_differences:
            add_product(x, row, (at.mass + i * n, n), (at.differences, at.width), at.width)
        if at.solved == at.width:
            add_controls_of_row(s, y, i, row, 1.0)


def add_row_of_forces(s: RobotStages, y: AccelerationSlopes, i: int, target: int, factor: float, touched: bool) -> None:
    """Add row i of the right-hand sides by q and v, times a factor, without differences.

    Forces f of joint rows, by the coordinates and velocities S v of these, act as Sᵀ f.
    """
    n, at, x = len(y.after), y.at, y.numbers
    by_v = target + at.stride
    subtract_multiples(x, target, at.by_q + i * n, 0, at.stride, (factor,))
    if y.by_differences:
        subtract_multiples(x, target, at.pulls + i * at.stride, 0, at.stride, (-factor,))
        if are_loads(s, y):
            subtract_multiples(x, by_v, at.by_v + i * n, 0, at.stride, (factor,))
        else:  # the acceleration has rates that contain those of inverse dynamics without impulses
            subtract_multiples(x, target, at.by_q_free + i * n, 0, at.stride, (-factor,))
        return
    subtract_multiples(x, by_v, at.by_v + i * n, 0, at.stride, (factor,))
    if touched and y.calls.spanning_after.address != 0 and s.touching.counts[NEAR] > 0:
        subtract_multiples(x, target, at.mapped_after + i * n, 0, at.stride, (-factor,))
    alike, loops = s.joints.driving.alike, y.calls.spanning.address != 0
    if loops:
        subtract_multiples(x, target, at.mapped + i * n, 0, at.stride, (-factor,))
    else:
        x[target + i] += factor * y.load.position[i]
        x[by_v + i] += factor * y.load.velocity[i]
    for r in range(alike, len(y.load.position)):
        S, position, velocity = at.spread + r * n, y.load.position[r], y.load.velocity[r]
        force = factor * x[S + i]
        if force != 0.0 and (position != 0.0 or velocity != 0.0):
            subtract_multiples(x, target, S, 0, at.stride, (-force * position,))
            subtract_multiples(x, by_v, S, 0, at.stride, (-force * velocity,))
            if loops:
                subtract_multiples(x, target, at.swept + r * n, 0, at.stride, (-force * velocity,))


def add_controls_of_row(s: RobotStages, y: AccelerationSlopes, i: int, target: int, factor: float) -> None:
    """Add row i of the right-hand sides by controls, times a factor, without differences."""
    n, drives, at, x = len(y.after), s.joints.drives, y.at, y.numbers
    for k in range(len(drives.row) if not y.by_differences else 0):
        if y.calls.spanning.address != 0:
            x[target + 3 * at.stride + k] += factor * x[at.spread + drives.row[k] * n + i] * y.load.control[k]
        elif drives.row[k] == i:
            x[target + 3 * at.stride + k] += factor * y.load.control[k]


def write_controls(s: RobotStages, y: AccelerationSlopes) -> None:
    """Write the rates by controls whose forces are at single joints, from those by unit forces of joints, if not solved for."""
    n, drives, at, x = len(y.after), s.joints.drives, y.at, y.numbers
    for i in range(n if at.solved < at.width else 0):
        forces = at.rates + i * at.width + 2 * at.stride
        for k in range(len(drives.row)):
            x[forces + at.stride + k] = x[forces + drives.row[k]] * y.load.control[k]
        for j in range(n):
            x[forces + j] *= y.load.tau[j]


def write_matrix(y: AccelerationSlopes) -> None:
    """Copy the mass matrix, or its lower triangle where this is enough."""
    n, at, x = len(y.after), y.at, y.numbers
    for i in range(n):
        subtract_multiples(x, at.matrix + i * at.stride, at.mass + i * n, n, at.stride, (-1.0,), True)
        for j in range(i if y.is_rigid else 0):
            x[at.matrix + j * at.stride + i] = x[at.mass + i * n + j]


def write_differences(s: RobotStages, y: AccelerationSlopes, touched: bool) -> None:
    """Write the derivatives of the load, or of the acceleration a without impulses, by central differences.

    The acceleration solves M a + c = F, so that the derivatives of F are M times those of a and those of inverse dynamics.
    """
    n, nu, na = len(y.after), len(s.state.control), len(s.state.act)
    clear_parts(y)
    for column in range(2 * n):
        if column == n:
            write_forces_here(s, y)
        for side in range(2):
            step = SMALL_STEP if side == 0 else -SMALL_STEP
            evaluate_along(s, y, column, step)
            add_differences(s, y, column, 0.5 / step, touched)
            if column >= n:
                move_along(s, y, column, -step)
    for column in range(2 * n, 2 * n + nu + na):
        if column >= 2 * n + nu or s.state.given[WITH_CONTROL]:
            write_inputs_of_differences(s, y, column)
    be_at(s, s.state.q, s.state.v)
    accelerate_at_start(s)


def write_forces_here(s: RobotStages, y: AccelerationSlopes) -> None:
    """Write the load or acceleration at the state, with S and lengths, and note it."""
    copy(s.step.acceleration, y.probes[2, : len(y.after)])
    copy(s.step.act, y.probes[2, len(y.after) :])
    if are_loads(s, y):
        be_at(s, s.state.q, s.state.v)
        copy(s.state.act, s.point.act)
        write_forces(s, y, True)
        copy(s.point.acceleration, y.probes[2, : len(y.after)])


def write_forces(s: RobotStages, y: AccelerationSlopes, moves: bool) -> None:
    """Write the load to the place of the acceleration, or the acceleration without impulses.

    S and lengths are those of the last call if the configuration does not move.
    """
    if are_loads(s, y):
        copy(s.inertias.base_armature, s.inertias.armature)
        if moves:
            write_rows(s)
        write_load_at_rows(s, s.numbers.ahead)
        copy(s.point.load, s.point.acceleration)
        if s.numbers.settles:
            write_late_damping(s)
    else:
        accelerate_at_start(s)


def clear_parts(y: AccelerationSlopes) -> None:
    """Set all differences to zero."""
    for i in range(y.at.differences, y.at.spread):
        y.numbers[i] = 0.0
    for k in range(len(y.nonsmooth)):
        y.nonsmooth[k] = False


def evaluate_along(s: RobotStages, y: AccelerationSlopes, column: int, step: float) -> None:
    """Write the load or acceleration, and the activations after the step, at a small distance along a direction."""
    move_along(s, y, column, step)
    write_forces(s, y, column < len(y.after))
    write_next_activations(s)


def write_inputs_of_differences(s: RobotStages, y: AccelerationSlopes, column: int) -> None:
    """Write the differences along a control or activation.

    Forces have kinks at limits of controls and activations. There, the side on which they
    change counts, as it is within the limits.
    """
    n, at, kink, sides = len(y.after), y.at, 0.0, (0.0, 0.0)
    for side in range(2):
        step = SMALL_STEP if side == 0 else -SMALL_STEP
        evaluate_along(s, y, column, step)
        if s.numbers.settles:
            add_inertia_of_dampers(s, y, 3 * y.at.stride + column - 2 * n, 0.5 / step)
        note_acceleration(s, y.probes[side])
        move_along(s, y, column, -step)
    here, ahead, behind = y.probes[2], y.probes[0], y.probes[1]
    for i in range(len(here)):
        kink = max(kink, bend_beyond_rounding(ahead[i], here[i], behind[i]))
        sides = max(sides[0], abs(ahead[i] - here[i])), max(sides[1], abs(behind[i] - here[i]))
    y.nonsmooth[column - 2 * n] = kink > NONSMOOTH * (sides[0] + sides[1])
    place = 3 * at.stride + column - 2 * n
    for i in range(len(here)):
        slope = 0.5 * (ahead[i] - behind[i])
        if y.nonsmooth[column - 2 * n]:
            slope = ahead[i] - here[i] if sides[0] > sides[1] else here[i] - behind[i]
        row = at.differences + i * at.width if i < n else at.acts + (i - n) * at.width
        y.numbers[row + place] = slope / SMALL_STEP


def bend_beyond_rounding(ahead: float, here: float, behind: float) -> float:
    """Return the difference of the changes on both sides, or 0 if it may be due to rounding."""
    bend = abs(ahead - 2.0 * here + behind)
    return bend if bend > ROUNDED * max(1.0, abs(here)) else 0.0


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
    for j in range(len(s.step.act)):
        x[at.acts + j * at.width + place] += weight * s.step.act[j]
    if s.numbers.settles:
        add_inertia_of_dampers(s, y, place, weight)
    if not touched or not s.numbers.joined:
        return
    rows, t = s.touching.model.rows, s.touching
    if s.calls.length_bias.address != 0:
        write_bias_accelerations(s.joints.curved, s.state.v, s.lengths.bias_acceleration)
        call_machine(s.calls.length_bias)
        write_drift(s.lengths, s.state.v)
    for r in range(len(rows.joint)):
        dof = t.dofs[rows.joint[r]]
        if dof >= s.joints.driving.alike and is_active(rows, r, t.kinematics.gap[r], t.kinematics.speed[r], t.model.settings):
            if rows.holds[r] > 0 and len(s.lengths.drift) > 0:
                x[at.drifts + 2 * r * at.stride + place] += weight * s.lengths.drift[dof]
            if column < n:
                before, speed = weight_before(y, h, t.model.yielding_rows, r), 0.0
                force = weight * rows.sign[r] * t.impulses.next_row[r] / h
                for i in range(n):
                    speed += p.S[dof, i] * (y.after[i] + before * s.state.v[i])
                    x[at.pulls + i * at.stride + column] += force * p.S[dof, i]
                x[at.arms + r * n + column] += weight * speed


def add_inertia_of_dampers(s: RobotStages, y: AccelerationSlopes, place: int, weight: float) -> None:
    """Add the forces h D a' of dampers that act after impulses, times a weight, to a column; a' is that of the step."""
    n, at, x, damped, a = len(y.after), y.at, y.numbers, s.joints.damped, s.step.settled
    for i in range(n):
        if len(s.inertias.armature) > 0 and y.paths.joint[i] >= 0:
            x[at.late + i * at.width + place] += weight * s.inertias.armature[y.paths.joint[i]] * a[i]
    for k in range(len(damped.row)):
        force = weight * s.numbers.step * damped.damping[k] * ordered_product(damped.direction[k], a)
        for i in range(n):
            x[at.late + i * at.width + place] += force * damped.direction[k, i]


# ---- dampers that act after impulses


def settle_rates(s: RobotStages, y: AccelerationSlopes, touched: bool) -> None:
    """Replace the rates by those of the acceleration a' after dampers, with (M + h D) (a' - a) = -h D a.

    Its derivatives at constant a and a' are differences of those of inverse dynamics. Without loops and dampers along lengths,
    D is diagonal.
    """
    n, at, x, late = len(y.after), y.at, y.numbers, y.at.matrix
    whole = s.joints.driving.alike == 0 or len(s.joints.damped.row) > 0
    subtract_multiples(x, at.struck, at.rates, 0, n * at.width, (-1.0,), True)
    for i in range(n):
        row = at.rates + i * at.width
        clear(x[row : row + at.width])
        add_row_of_inverse_dynamics(y, i, row, 1.0)
    copy(x[at.mass : at.mass + n * n], x[late : late + n * n])
    write_dynamics_with_dampers(s, y, touched)
    for i in range(n):
        first, last = (0, n) if whole else (i, i + 1)
        for j in range(first, last):
            x[late + i * n + j] = x[at.mass + i * n + j] - x[late + i * n + j]
    for i in range(n):
        row = at.rates + i * at.width
        add_row_of_inverse_dynamics(y, i, row, -1.0)
        if not whole:
            subtract_multiples(x, row, at.struck + i * at.width, 0, at.solved, (x[late + i * (n + 1)],))
        if y.by_differences:  # the inertia that represents dampers
            subtract_multiples(x, row, at.late + i * at.width, 0, at.width, (1.0,))
    if whole:
        subtract_tiles(x, (at.rates, at.width), (at.struck, at.width), (late, n, 1), (n, at.solved, n))
    write_matrix(y)
    solve_for_rates(x, n, at)
    subtract_multiples(x, at.rates, at.struck, 0, n * at.width, (-1.0,))


def turn_rates_of_free_bodies(s: RobotStages, y: AccelerationSlopes) -> None:
    """Add the rates of what late forces of free bodies change."""
    free, at = s.joints.free, y.at
    for k in range(len(free.row)):
        write_slopes_of_free_body(s, k)
        turn_rates(free, free.row[k], y.numbers, at.rates, at.width, at.stride, at.struck)


def write_slopes_of_free_body(s: RobotStages, k: int) -> None:
    free, v = s.joints.free, s.state.v
    body = free_body(free, k, s.inertias.parameters, s.joints.springs.damping, v, s.numbers.step)
    write_slopes_of_body(free, body, free.row[k], v, s.step.pushed)


def add_row_of_inverse_dynamics(y: AccelerationSlopes, i: int, target: int, factor: float) -> None:
    """Add a row of the derivatives of inverse dynamics by q and v, times a factor."""
    n, at = len(y.after), y.at
    subtract_multiples(y.numbers, target, at.by_q + i * n, 0, at.stride, (-factor,))
    subtract_multiples(y.numbers, target + at.stride, at.by_v + i * n, 0, at.stride, (-factor,))


# ---- products with cotangents


def pull_back_acceleration(s: RobotStages, y: AccelerationSlopes) -> None:
    """Add the product of the cotangent of the acceleration, in the column, and the slopes of `write_acceleration_slopes`."""
    n, at, x, touched, settles = len(y.after), y.at, y.numbers, is_touched(s), s.numbers.settles
    w = at.cotangent
    write_forces_of_step(s, y)
    if settles:
        for k in range(len(s.joints.free.row)):
            write_slopes_of_free_body(s, k)
            turn_cotangent(s.joints.free, s.joints.free.row[k], x, y.one.rates, y.one.width, at.product + at.stride)
        write_dynamics_with_dampers(s, y, touched)
        write_matrix(y)
        solve_for_rates(x, n, y.one)
        write_cotangent(y)
        if has_dampers_only(s, y):
            write_spanning(s, y)
            pull_back_right_hand_sides(s, y, False)
            return
        for i in range(n):
            add_row_of_inverse_dynamics(y, i, at.product, -x[w + i])
            x[at.moved_column + i] = x[w + i]
    write_dynamics(s, y, touched)
    if settles:
        for i in range(n):
            add_row_of_inverse_dynamics(y, i, at.product, x[w + i])
            if y.by_differences:  # the inertia that represents dampers
                subtract_multiples(x, at.product, at.late + i * at.width, 0, at.width, (x[at.moved_column + i],))
        write_product_with_mass(y)
    write_matrix(y)
    if touched:
        add_touching(s, y, False)
    if touched and y.is_rigid:
        pull_back_rigid_rates(x, n, at, y.rigid, rows_of_problem(s), s.numbers.step)
    else:
        solve_for_rates(x, n, y.one)
        write_cotangent(y)
    pull_back_right_hand_sides(s, y, touched)
    if touched:
        pull_back_touching(s, y)


def write_cotangent(y: AccelerationSlopes) -> None:
    """Copy the column."""
    for i in range(len(y.after)):
        y.numbers[y.at.cotangent + i] = y.numbers[y.one.rates + i * y.one.width]


def write_product_with_mass(y: AccelerationSlopes) -> None:
    """Replace the column by the product of the mass matrix and the cotangent."""
    n, at, x = len(y.after), y.at, y.numbers
    for i in range(n):
        x[y.one.rates + i * y.one.width] = 0.0
    for j in range(n):
        for i in range(n):
            x[y.one.rates + i * y.one.width] += x[at.mass + j * n + i] * x[at.cotangent + j]


def pull_back_right_hand_sides(s: RobotStages, y: AccelerationSlopes, touched: bool) -> None:
    """Add the product of the cotangent and the right-hand sides without contacts."""
    n, at, x, drives = len(y.after), y.at, y.numbers, s.joints.drives
    product, w, controls = at.product, at.cotangent, at.product + 3 * at.stride
    for i in range(n):
        add_row_of_forces(s, y, i, product, x[w + i], touched)
        x[product + 2 * at.stride + i] += x[w + i] * y.load.tau[i]
        if y.calls.spanning.address != 0:
            add_controls_of_row(s, y, i, product, x[w + i])
    for k in range(len(drives.row) if not y.by_differences and y.calls.spanning.address == 0 else 0):
        x[controls + k] += x[w + drives.row[k]] * y.load.control[k]
    if y.by_differences:
        loads = are_loads(s, y)
        if not loads:
            write_product_with_mass(y)
        for i in range(n):
            factor = x[w + i] if loads else x[y.one.rates + i * y.one.width]
            subtract_multiples(x, product, at.differences + i * at.width, 0, at.width, (-factor,))


# ---- rigid contacts


def solve_with_rigid_rows(s: RobotStages, y: AccelerationSlopes) -> None:
    """Replace the right-hand sides by rates with rigid contacts, and note contacts whose impulses are not unique."""
    t, active = s.touching, s.touching.workspace.assembly.of_rows.active
    k, count = rows_of_problem(s)
    if solve_for_rigid_rates(y.numbers, len(y.after), y.at, y.rigid, (k, count), s.numbers.step):
        for c in range(k):
            y.doubtful[c] = y.doubtful[c] or y.rigid.pushing[c]
        for i in range(count):
            row = len(t.contacts.gap) + active[i]
            y.doubtful[row] = y.doubtful[row] or y.rigid.pushing[k + i]


def rows_of_problem(s: RobotStages) -> tuple[int, int]:
    """Return the numbers of contacts and joint rows of the problem."""
    t = s.touching
    k = t.counts[SOLVED] if t.counts[FOUND] > 0 else 0
    return k, find_active_rows(t.model, t.kinematics, t.workspace.assembly.of_rows.active)


def separates(s: RobotStages) -> bool:
    """Return whether a displacement separates bodies that overlap."""
    return bool(greatest_of(s.step.displacement) > PARTED * s.touching.model.settings.slop)


def are_covered(s: RobotStages) -> bool:
    """Return whether these derivatives cover the rigid contacts and joint rows of the step.

    They do not cover contacts that bounce, those of a body with a single contact point, whose Delassus matrix is that of the
    point instead of its projection on the ground, and steps that separate overlapping bodies.
    """
    t = s.touching
    if not is_touched(s):
        return True
    if separates(s):
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
