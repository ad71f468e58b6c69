"""Stages of a step of one robot: all integrators, drives, loops, contacts.

All numbers are in arrays at fixed addresses (`stage_records`). Functions of the robot are separate machine code, called with
fixed addresses. The stages return a status (`step_status`).
"""

from __future__ import annotations

from math import inf

from ..array_types import IntegerMatrix, Matrix, Vector
from ..collision.collision_scene import PLANE
from ..collision.detection import ContactPoints, find_contacts
from ..contact.compliant.contact_passes import PassCalls, RobotInPasses
from ..contact.contact_model import ContactModel, pull_of
from ..contact.contact_problem import ContactImpulses
from ..contact.contact_solver import SolverReport, keep_forces, keep_impulses, resolve, resolve_in_passes
from ..contact.impulses import greatest_of
from ..contact.joint_rows import BEYOND, any_active, comes_back, farthest_beyond, write_row_gaps, write_row_speeds
from ..contact.laws import COULOMB, RETURN_SPEED, RIGID
from ..contact.patches import PatchWork, copy_contact, move_behind, reduce_patches
from ..engine.loops.kernels import CompiledLoop, call_machine, lanes
from ..model.tree import FLOATING, PLANAR
from ..robot.tendons.lengths import write_drift
from . import step_status
from .forces.adhesion import add_adhesion
from .forces.free_bodies import settle_free_bodies
from .forces.implicit_drives import ROUNDS_OF_ALL, judge_drives
from .smooth_motion import (
    RK4,
    SEMI_IMPLICIT,
    accelerate_with_known_drives,
    be_at,
    call_dynamics,
    clear,
    clear_rows,
    close,
    copy,
    copy_rows,
    damp_lengths,
    energies,
    integrate_smoothly,
    ordered_product,
    write_body_forces,
    write_given,
    write_row_velocity,
    write_rows,
)  # fmt: skip
from .stage_records import (
    ALLOWED,
    FOUND,
    INEXACT,
    INTERIOR_STEPS,
    NEAR,
    NEWTON_STEPS,
    PARTING,
    RESIDUAL,
    RESULT,
    SOLVED,
    STORED,
    TURNING,
    WITH_CONTROL,
    WITH_FORCES,
    RobotStages,
    TouchingRecord,
)
from .step_status import TAKEN

WITH_ROWS, OF_BODIES, OF_SETS, BY_INVERSE = range(4)  # kinds of Delassus matrices in `ContactInertiaRecord`
UNKNOWN = -1  # number of contacts that count, before redundant ones are left out
LEAST_GAP = 1e-14  # [m] rounding error of positions
SLOW = 0.02  # [rad, m] motion of all joints in a step below which there is no check: velocity products are small
FARTHEST = 100.0  # [rad, m] motion of a joint in a step beyond which the simulation diverges: 16 turns in one step
GAINED = 0.05  # allowed gain of energy relative to the sum of the kinetic energies before and after
ROUNDING = 1e-12  # rounding error relative to the potential energy


def move_freely(s: RobotStages) -> int:
    clear(s.step.displacement)
    status = integrate_smoothly(s)
    if status != TAKEN:
        return status
    copy(s.step.free, s.step.after)
    return TAKEN if all_finite(s.step.free) else step_status.NO_VELOCITY


def detect(s: RobotStages) -> int:
    """Find contacts and gaps of joint limits."""
    t = s.touching
    write_row_gaps(t.model.rows, s.point.coordinates, t.kinematics.gap)
    if s.calls.length_bias.address != 0:
        write_bias_accelerations(s.joints.curved, s.state.v, s.lengths.bias_acceleration)
        call_machine(s.calls.length_bias)
        write_drift(s.lengths, s.state.v)
    t.counts[FOUND] = 0
    if len(t.bodies) == 0:
        return TAKEN
    call_machine(s.calls.placement)
    call_machine(s.calls.velocity)
    if not all_finite(t.kinematics.velocity[0]) or not all_finite(t.kinematics.placement[0, 0]):
        return step_status.NO_PLACEMENT
    count = find_touching(t)
    t.counts[FOUND] = count
    if count < 0:
        return step_status.TOO_MANY_CONTACTS
    deepest = s.numbers.max_penetration
    for c in range(count):
        deepest = max(deepest, -t.contacts.gap[c])
    if deepest > t.deepest[0] and t.model.settings.depth_bounded:
        return step_status.TOO_DEEP
    t.deepest[0] = deepest  # bodies that overlapped at the start are still being separated
    stick(s)
    return TAKEN


def write_bias_accelerations(joints: IntegerMatrix, v: Vector, found: Vector) -> None:
    """Write the accelerations of coordinates at constant velocity components: coordinates in rotating axes turn backwards."""
    for k in range(len(joints)):
        kind, i = joints[k, 0], joints[k, 1]
        if kind == FLOATING:
            x, y, z, a, b, c = v[i], v[i + 1], v[i + 2], v[i + 3], v[i + 4], v[i + 5]
            found[i], found[i + 1], found[i + 2] = c * y - b * z, a * z - c * x, b * x - a * y
        elif kind == PLANAR:
            found[i], found[i + 1] = v[i + 2] * v[i + 1], -v[i + 2] * v[i]


def find_touching(t: TouchingRecord) -> int:
    """Find the current contacts; return their number, or -1 if there are more than the capacity."""
    k, settings = t.kinematics, t.model.settings
    count = find_contacts(t.scene, k.placement, k.velocity, settings.step, settings.margin, t.contacts, t.collisions)
    for c in range(count):
        put_midway(t, c)
    return -1 if settings.turning and 2 * count > len(t.contacts.gap) else count


def stick(s: RobotStages) -> None:
    """Apply adhesion: compute the velocity again with the forces that pull contacts together."""
    t, step, external = s.touching, s.step, s.state.external
    if len(s.adhesion.drive) == 0 or not s.state.given[WITH_CONTROL] or t.counts[FOUND] == 0:
        return
    settings, pull = t.model.settings, t.impulses.correction
    clear_rows(pull)
    near = settings.slop if settings.law == RIGID else 0.0
    placement, inputs = t.kinematics.placement, s.point.inputs
    if not add_adhesion(s.adhesion, s.joints.drives, inputs, t.contacts, t.counts[FOUND], near, placement, pull):
        return
    if not s.state.given[WITH_FORCES]:
        clear_rows(external)
    s.state.given[WITH_FORCES] = True
    for k in range(len(t.bodies)):
        for j in range(6):
            external[t.bodies[k], j] += pull[k, j]
    clear_rows(pull)
    copy_rows(external, t.forces)
    be_at(s, s.state.q, s.state.v)
    copy(step.load, s.point.load)
    call_dynamics(s)
    copy(s.point.acceleration, step.acceleration)
    call_machine(s.calls.free_velocity)
    copy(step.free, step.after)
    call_machine(s.calls.velocity)


def put_midway(t: TouchingRecord, c: int) -> None:
    """Move a contact point on a half space or height field midway between both surfaces, where all other contact points are.

    Rigid surfaces are at their margin after the step.
    """
    p = t.pair_of[t.contacts.candidate[c]]
    if t.scene.kind[t.scene.pair[p, 1]] >= PLANE:
        distance = t.scene.margin[p] + (t.contacts.gap[c] if t.model.settings.law != RIGID else 0.0)
        for i in range(3):
            t.contacts.point[c, i] += 0.5 * distance * t.contacts.normal[c, i]


def is_touched(s: RobotStages) -> bool:
    """Return whether there are contacts, or joint rows are active: joints near their limits, or dry friction."""
    return bool(s.touching.counts[FOUND] > 0 or s.touching.counts[NEAR] > 0)


def find_near(s: RobotStages) -> None:
    """Determine whether joints with limits or dry friction are active at `free`."""
    k, rows = s.touching.kinematics, s.touching.model.rows
    if len(rows.joint) == 0:
        return
    write_row_velocity(s, s.step.free)
    write_row_speeds(rows, s.point.row_velocity, k.speed)
    for r in range(len(rows.joint)):
        if rows.holds[r] > 0:  # MuJoCo uses the acceleration of the gap itself
            k.speed[r] += s.numbers.step * s.lengths.drift[rows.dof[r]]
    s.touching.counts[NEAR] = 1 if any_active(rows, k.gap, k.speed, s.touching.model.settings) else 0


def find_impulses(s: RobotStages) -> int:
    """Find impulses that satisfy the contact law, with drives at their limits consistent with the impulses."""
    write_unpushed_acceleration(s)
    if s.numbers.looks_back:
        if len(s.touching.bodies) > 0:
            call_machine(s.calls.velocity_before)
        write_row_velocity(s, s.state.v)
        write_row_speeds(s.touching.model.rows, s.point.row_velocity, s.touching.kinematics.speed_before)
    s.touching.counts[SOLVED] = UNKNOWN
    status = impulses_with_drives(s)
    for _ in range(ROUNDS_OF_ALL):
        if status != TAKEN or not drives_pass(s):
            break
        status = impulses_with_drives(s)
    return status


def impulses_with_drives(s: RobotStages) -> int:
    """Find the impulses with drives in their current state.

    Vectors of robots compute them in lanes by passes, or one robot after the other without passes.
    """
    if lanes() == 1 or s.calls.contact_factor.address != 0:
        return solve_for_impulses(s)
    write_guess(s.touching)
    if way_to_impulses(s) == BY_INVERSE:
        call_machine(s.calls.inverse_factor)
    call_machine(s.calls.impulses_alone)
    return s.touching.counts[RESULT]


def write_guess(t: TouchingRecord) -> None:
    """Write the impulses of the previous step at the current contacts."""
    impulses = t.impulses
    for c in range(t.counts[FOUND]):
        copy(impulses.last_force[t.contacts.candidate[c]], impulses.force[c])
        if len(impulses.last_turn) > 0:
            copy(impulses.last_turn[t.contacts.candidate[c]], impulses.turn[c])


def solve_in_lane(s: RobotStages) -> int:
    """Find the impulses of one robot of a vector, which are the guess on entry (`write_guess`)."""
    keep_forces(s.touching.impulses, s.touching.contacts.candidate, s.touching.counts[FOUND])
    return solve_for_impulses(s)


def solve_for_impulses(s: RobotStages) -> int:
    """Find the impulses of one robot, or those of a vector in passes, with drives in their current state."""
    t, calls = s.touching, s.calls
    if t.counts[SOLVED] == UNKNOWN:
        leave_out_redundant(t, s.numbers.gravity)
    sliding = t.counts[SOLVED]
    for c in range(sliding, t.counts[FOUND]):
        clear(t.impulses.force[c])
        clear(t.impulses.turn[c])
    turning = add_turning(t, sliding) if t.model.settings.turning else 0
    t.counts[TURNING] = turning
    if lanes() == 1 and calls.solver is not None:
        call_machine(calls.solver)
    elif lanes() > 1 or calls.contact_factor.address != 0:
        solve_by_passes(s)
    else:
        solve_by_delassus(s)
    if turning > 0:
        take_turning_back(t, sliding, turning)
    return TAKEN if t.report[RESIDUAL] <= t.report[ALLOWED] else step_status.UNSOLVED


def write_report(t: TouchingRecord, done: SolverReport) -> None:
    report = t.report
    report[RESIDUAL], report[ALLOWED] = done.residual, done.allowed
    report[NEWTON_STEPS], report[INTERIOR_STEPS] = done.newton_steps, done.interior_steps
    report[PARTING], report[STORED], report[INEXACT] = done.parting, done.stored, done.inexact


def leave_out_redundant(t: TouchingRecord, gravity: float) -> None:
    """Move contacts behind the others that need no impulse, or get none by the compliant law; count the others."""
    settings, model, contacts = t.model.settings, t.model, first_contacts(t.contacts, t.counts[FOUND])
    tolerance = max(settings.tolerance * gravity * settings.step * settings.step, LEAST_GAP)
    t.counts[SOLVED] = len(contacts.gap)
    if settings.law != RIGID:
        t.counts[SOLVED] = leave_out_open(t.model, contacts, t.patches)
    elif lanes() == 1 and settings.patches:
        t.counts[SOLVED] = reduce_patches(contacts, model.friction, model.restitution, tolerance, t.patches)


def leave_out_open(model: ContactModel, contacts: ContactPoints, work: PatchWork) -> int:
    """Move open contacts that nothing pulls together behind the others; return the number of others."""
    stay = count = len(contacts.gap)
    for c in range(count):
        gap = contacts.gap[c]
        work.stays[c] = gap < 0.0 or pull_of(model, contacts.candidate[c], gap) > 0.0
        stay -= 0 if work.stays[c] else 1
    if stay < count:
        move_behind(contacts, work)
    return stay


def add_turning(t: TouchingRecord, count: int) -> int:
    """Append copies of the contacts with friction against spinning or rolling after the first contacts; return their number.

    If normal impulses of the previous step bound this friction, contacts without impulse are skipped. Other contacts move
    behind the copies.
    """
    contacts, total, added = t.contacts, t.counts[FOUND], 0
    for c in range(count):
        added += 1 if turns(t, c) else 0
    for c in range(total - 1, count - 1, -1):
        copy_contact(contacts, c, contacts, c + added)
    other = count
    for c in range(count):
        if turns(t, c):
            copy_contact(contacts, c, contacts, other)
            other += 1
    return added


def turns(t: TouchingRecord, c: int) -> bool:
    """Return whether a contact has friction against spinning or rolling in this step."""
    candidate, gap = t.contacts.candidate[c], t.contacts.gap[c]
    rubs = greatest_of(t.model.turning[candidate]) > 0.0
    last = ordered_product(t.impulses.last_force[candidate], t.contacts.normal[c])
    pull = pull_of(t.model, candidate, gap, last)
    if pull > 0.0 and gap >= 0.0 and t.model.settings.law != RIGID:  # no contact
        return False
    return rubs and (t.model.settings.cones != COULOMB or last + pull > 0.0)


def take_turning_back(t: TouchingRecord, count: int, added: int) -> None:
    """Remove the copies of `add_turning`."""
    for c in range(count, t.counts[FOUND]):
        copy_contact(t.contacts, c + added, t.contacts, c)


def drives_pass(s: RobotStages) -> bool:
    """Return whether the impulses move drives beyond their limits or back; if so, compute `free` with their new state."""
    if not s.numbers.driven or not s.state.given[WITH_CONTROL]:
        return False
    step, impulses = s.step, s.touching.impulses
    write_pushed_acceleration(s, impulses.wrench, impulses.joint)
    write_row_velocity(s, step.pushed)
    if not judge_drives(s.joints.drives, s.joints.within, s.point.S, s.point.row_velocity, s.joints.driving, False):
        return False
    if s.state.given[WITH_FORCES]:
        copy_rows(s.state.external, s.touching.forces)
    be_at(s, s.state.q, s.state.v)
    accelerate_with_known_drives(s)
    copy(s.point.load, step.load)
    copy(s.point.acceleration, step.acceleration)
    copy(s.point.acceleration, step.unpushed)
    call_machine(s.calls.free_velocity)
    copy(step.free, step.after)
    if len(s.touching.bodies) > 0:
        call_machine(s.calls.velocity)
    find_near(s)
    return True


def first_contacts(contacts: ContactPoints, k: int) -> ContactPoints:
    c = contacts
    return ContactPoints(c.candidate[:k], c.a[:k], c.b[:k], c.point[:k], c.normal[:k], c.gap[:k])


def solve_by_passes(s: RobotStages) -> int:
    """Find impulses by a compliant law in passes of articulated bodies. Return 1."""
    t, calls = s.touching, s.calls
    factor, response, matrix = calls.contact_factor, calls.contact_response, calls.contact_matrix
    passes = PassCalls(factor, response, matrix, calls.contact_loads, calls.contact_motions, calls.contact_axes)
    contacts = first_contacts(t.contacts, t.counts[SOLVED] + t.counts[TURNING])
    robot = RobotInPasses(passes, t.passes, s.point.S)
    write_report(t, resolve_in_passes(t.model, contacts, t.kinematics, t.impulses, robot, t.counts[TURNING]))
    return 1


def solve_by_delassus(s: RobotStages) -> int:
    """Find impulses by G of the bodies that may touch, with active joint rows; or by J and a factor of M⁻¹. Return 1."""
    way, calls, inertia, dofs = way_to_impulses(s), s.calls, s.touching.inertia, s.touching.dofs
    t, delassus = s.touching, inertia.with_rows
    if way == WITH_ROWS:
        call_machine(calls.delassus_with_rows)
    elif way == OF_BODIES:
        call_machine(calls.body_delassus)
        delassus = inertia.of_bodies
    elif way == OF_SETS:
        call_machine(calls.delassus_of_touching)
        delassus = inertia.of_sets
    else:
        call_machine(calls.jacobian)
        call_machine(calls.inverse_factor)
        delassus = inertia.by_inverse
        if s.touching.counts[NEAR] > 0 and s.numbers.joined:
            for k in range(len(dofs)):
                if dofs[k] >= s.joints.driving.alike:
                    copy(s.point.S[dofs[k]], delassus.factors.E[k])
    turning = t.counts[TURNING]
    contacts = first_contacts(t.contacts, t.counts[SOLVED] + turning)
    write_report(t, resolve(t.model, contacts, t.kinematics, delassus, t.impulses, t.workspace, turning))
    return 1


SOLVER = "the contact solver of simulations, which all robots with such contacts share"
SOLVE_BY_DELASSUS = CompiledLoop(solve_by_delassus, 0, what=SOLVER)
SOLVE_IN_PASSES = CompiledLoop(solve_by_passes, 0, what=SOLVER)


def way_to_impulses(s: RobotStages) -> int:
    calls, near = s.calls, s.touching.counts[NEAR] > 0
    if near:
        return WITH_ROWS if calls.delassus_with_rows.address != 0 else BY_INVERSE
    if calls.body_delassus.address != 0:
        return OF_BODIES
    return OF_SETS if calls.delassus_of_touching.address != 0 else BY_INVERSE


def write_unpushed_acceleration(s: RobotStages) -> None:
    """Write the acceleration at the start of the step with the armature that applies to impulses.

    The stages of "rk4" use a different armature.
    """
    step = s.step
    copy(step.acceleration, step.unpushed)
    if s.numbers.integrator != RK4 or len(s.joints.middle_armature) == 0:
        return
    write_body_forces(s)
    copy(step.load, step.pushed_load)
    call_machine(s.calls.dynamics_pushed)
    copy(step.pushed, step.unpushed)


def write_pushed_acceleration(s: RobotStages, wrench: Matrix, impulse: Vector) -> None:
    """Write the acceleration with impulses on bodies and at joints, spread over the step."""
    step, h, t, dofs = s.step, s.numbers.step, s.touching, s.touching.dofs
    fluid = len(s.drag.body) > 0
    if fluid:
        write_body_forces(s)
    for k in range(len(t.bodies)):
        body = t.bodies[k]
        for j in range(6):
            given = s.state.external[body, j] if s.state.given[WITH_FORCES] else 0.0
            t.forces[body, j] = wrench[k, j] / h + (t.forces[body, j] if fluid else given)
    copy(step.load, step.pushed_load)
    for k in range(len(dofs)):
        if dofs[k] < s.joints.driving.alike:
            step.pushed_load[dofs[k]] += impulse[k] / h
        else:
            for i in range(len(step.pushed_load)):
                step.pushed_load[i] += s.point.S[dofs[k], i] * impulse[k] / h
    call_machine(s.calls.dynamics_pushed)
    damp_lengths(s)
    if s.numbers.settles:
        copy(step.pushed, step.settled)
        damping = s.joints.springs.damping
        settle_free_bodies(s.joints.free, s.inertias.parameters, damping, s.state.v, h, step.pushed)


def write_change(s: RobotStages, change: Vector) -> None:
    """Write the change of velocity over the step by the impulses in `pushed`."""
    for i in range(len(change)):
        change[i] = s.numbers.step * (s.step.pushed[i] - s.step.unpushed[i])


def part(s: RobotStages) -> None:
    """Compute the displacement that separates overlapping bodies."""
    step, impulses = s.step, s.touching.impulses
    write_pushed_acceleration(s, impulses.correction, impulses.joint_correction)
    write_change(s, step.displacement)
    write_row_velocity(s, step.displacement)
    shrink = min(1.0, s.touching.report[PARTING] / max(greatest_of(s.point.row_velocity), 1e-300))
    for i in range(len(step.displacement)):
        step.displacement[i] *= shrink


def apply_impulses(s: RobotStages) -> None:
    step, h, impulses = s.step, s.numbers.step, s.touching.impulses
    if s.calls.contact_factor.address != 0 and not s.numbers.settles:
        for i in range(len(step.after)):
            step.after[i] = step.free[i] + s.touching.passes.change[i]
        return
    if s.numbers.integrator != SEMI_IMPLICIT:
        write_struck(s)
    write_pushed_acceleration(s, impulses.wrench, impulses.joint)
    if s.numbers.integrator == SEMI_IMPLICIT:
        call_machine(s.calls.pushed_velocity)
        return
    for i in range(len(step.after)):
        step.after[i] = step.free[i] + h * (step.pushed[i] - step.unpushed[i])


def write_struck(s: RobotStages) -> None:
    """Write the change of velocity by impacts at the start of the step."""
    step, impulses = s.step, s.touching.impulses
    impact = greatest_of(impulses.joint_impact) > 0.0
    for j in range(len(impulses.impact)):
        impact = impact or greatest_of(impulses.impact[j]) > 0.0
    clear(step.struck)
    if impact:
        write_pushed_acceleration(s, impulses.impact, impulses.joint_impact)
        write_change(s, step.struck)


def forget_impulses(s: RobotStages) -> None:
    """Set impulses and the initial guess of the next step to zero."""
    clear(s.step.struck)
    clear_impulses(s.touching.impulses)
    clear(s.touching.report)


def clear_impulses(impulses: ContactImpulses) -> None:
    """Set impulses of a step to zero."""
    clear_rows(impulses.wrench)
    clear(impulses.joint)
    clear(impulses.next_row)


def move(s: RobotStages) -> int:
    """Compute the result of the velocity and the displacement."""
    if s.numbers.integrator != SEMI_IMPLICIT:
        copy(s.step.after, s.step.end)
    status = write_arrival(s, True)
    copy(s.point.x, s.step.ahead)
    return status


def write_arrival(s: RobotStages, parted: bool) -> int:
    """Write to `x` the configuration after the step, with or without displacement, with loops closed; and the velocity there.

    With "rk4" and "midpoint", impulses move bodies at the mean of the velocities after impacts and at the end, which is zero
    for bodies at rest.
    """
    step, p, numbers = s.step, s.point, s.numbers
    if numbers.integrator == SEMI_IMPLICIT:
        call_machine(s.calls.advance if parted else s.calls.advance_straight)
        return close(s)
    untouched = True
    for i in range(len(p.increment)):
        moved = step.displacement[i] if parted else 0.0
        untouched = untouched and step.after[i] == step.free[i] and moved == 0.0
        p.increment[i] = 0.5 * numbers.step * (s.state.v[i] + step.struck[i] + step.after[i]) + moved
    if untouched:
        copy(step.smooth, p.x)
        return TAKEN
    call_machine(s.calls.integrate)
    return close(s)


def limits_are_attainable(s: RobotStages) -> bool:
    """Return whether loops allow a joint beyond its limit to come back."""
    step, rows, gap, parting = s.step, s.touching.model.rows, s.touching.kinematics.gap, s.touching.report[PARTING]
    if not (s.numbers.looped and parting == RETURN_SPEED * s.numbers.step):
        return True
    worst = farthest_beyond(rows, gap)
    sign, at = rows.sign[worst], rows.at[worst]
    if gap[worst] >= -BEYOND or at >= len(step.ahead):
        return True
    write_row_velocity(s, step.displacement)
    expected = sign * s.point.row_velocity[rows.dof[worst]]
    if write_arrival(s, False) != TAKEN:
        return False
    return comes_back(sign * (step.ahead[at] - s.point.x[at]), expected, parting)


def judge_end(s: RobotStages) -> int:
    """Check that the end of the step is finite and that no energy was gained (see `excess`)."""
    step, h = s.step, s.numbers.step
    if not all_finite(step.end):
        return step_status.NO_VELOCITY_AFTER_STEP
    if not all_finite(step.ahead):
        return step_status.NO_CONFIGURATION
    if not limits_are_attainable(s):
        return step_status.LIMIT
    farthest = max(h * greatest_of(step.after), greatest_of(step.displacement))
    if farthest <= SLOW:
        return TAKEN
    if s.touching.model.settings.law == RIGID and not excess(s) <= 0.0:  # springs of MuJoCo's contact law add energy
        return step_status.GAIN
    return step_status.TOO_FAST if farthest > FARTHEST else TAKEN


def arrive(s: RobotStages) -> None:
    copy(s.step.ahead, s.state.q)
    copy(s.step.end, s.state.v)
    copy(s.step.act, s.state.act)
    keep_impulses(s.touching.impulses, s.touching.contacts.candidate, s.touching.counts[FOUND])


def all_finite(x: Vector) -> bool:
    finite = True
    for y in x:
        finite = bool(finite and abs(y) < inf)
    return finite


# energy
#
# Gravity and springs have potentials; other forces at joints are known; contacts, limits, friction and dampers only dissipate.
# Energy gained beyond their work is an error of a step that is too long: of order (h v)² for smooth motion, arbitrary after
# impacts or for bodies that turn by a large part of a radian. The guard does not see the work of given forces, such as those of
# a controller with gains too high for the step, which makes a joint oscillate with growing speed: so velocities are bounded.


def excess(s: RobotStages) -> float:
    """Return the gain of energy beyond the allowed gain of a step [J].

    The displacement that separates bodies may lift them; it is left out if it would increase their speed.
    """
    step = s.step
    before, work, stored = energies(s, s.state.q, s.state.v), greatest_work_from(s), s.touching.report[STORED]
    kinetic, potential = energies(s, step.ahead, step.end)
    potential += stored
    if greatest_of(step.displacement) > 0.0:
        if write_arrival(s, False) != TAKEN:
            return inf
        copy(s.point.x, step.straight)
        if s.numbers.integrator != SEMI_IMPLICIT:
            copy(step.end, step.straight_end)
        straight, potential = energies(s, step.straight, step.straight_end)
        potential += stored
        if not excess_energy(before, (kinetic, potential), work, s.numbers.least_energy) <= 0.0:
            copy(step.straight, step.ahead)
            copy(step.straight_end, step.end)
            clear(step.displacement)
            kinetic = straight
    return excess_energy(before, (kinetic, potential), work, s.numbers.least_energy)


def excess_energy(before: tuple[float, float], after: tuple[float, float], work: float, least: float) -> float:
    """Return the excess for kinetic and potential energies before and after the step, and the greatest work [J].

    `least` is the energy that a body gains by falling for one step, a lower bound of errors of a step.
    """
    gained = after[0] - before[0] + (after[1] - before[1]) - work
    return gained - GAINED * (before[0] + after[0]) - least - ROUNDING * (abs(before[1]) + abs(after[1]))


def greatest_work_from(s: RobotStages) -> float:
    """Return the most that forces of users and drives may have done in the step [J].

    That is the work at the velocity of either end, or at their mean, as that of a spring or a stiff drive over a long step.
    """
    step, p, h, v = s.step, s.point, s.numbers.step, s.state.v
    acting = step.acting
    copy(p.given, acting)  # at the start
    be_at(s, step.ahead, step.end)
    if len(s.lengths.at) > 0:
        write_rows(s)
    if s.numbers.integrator != SEMI_IMPLICIT or s.numbers.driven:
        write_given(s)
    if s.numbers.driven:
        copy(p.given, acting)  # forces at the start would be far greater than those that act
    work = 0.0
    for i in range(len(p.given)):
        at_mean = 0.25 * h * (acting[i] + p.given[i]) * (v[i] + step.end[i])
        work += max(greatest_work(p.given[i], v[i], step.end[i], h), at_mean)
    if not s.state.given[WITH_FORCES] and len(s.drag.placement) == 0:
        return work
    be_at(s, s.state.q, v)  # joint forces equivalent to forces on bodies and wind
    copy(step.acceleration, p.acceleration)
    call_machine(s.calls.inverse_dynamics)
    for i in range(len(p.given)):
        work += greatest_work(p.load[i] - step.load[i], v[i], step.end[i], h)
    return work


def greatest_work(force: float, start: float, end: float, h: float) -> float:
    """Return the greatest work of a joint's force in a step [J], for its velocities at the start and the end."""
    return h * max(force * start, force * end, 0.0)
