"""The compiled loop over robots: one robot after the other takes all its steps, without Python in between."""

from __future__ import annotations

from ..array_types import Matrix, Tensor, Tensor4, Vector
from ..collision.detection import resize_shapes
from ..contact.contact_solver import forget_forces, keep_force
from ..engine.loops.kernels import CompiledLoop, call_machine, lane, lanes
from .robot_stages import all_finite, clear_impulses, find_touching, solve_in_lane
from .smooth_motion import clear, clear_rows, copy, copy_rows, energies
from .stage_records import EVERY, FOUND, INEXACT, RESULT, SOLVED, UNTIL, WITH_CONTROL, WITH_FORCES, FleetArrays, RobotStages
from .step import take_step, try_step
from .step_failures import note_failure
from .step_status import NO_CONTROL, NO_FORCE, TAKEN, TOO_MANY_CONTACTS

RUN, STEP, LOOK, ENERGY, IMPULSES = range(5)


def work_on_robots(one: RobotStages, many: FleetArrays, first: int, stop: int, work: int) -> int:
    """Work on robots first to stop with the stages of one robot; return the number of robots for which this succeeds."""
    done = 0
    if work == IMPULSES:
        one.touching.counts[RESULT] = solve_in_lane(one)
        return 1
    for i in range(first, stop):
        if work == ENERGY:
            done += find_energy(one, many, i)
            continue
        if work == STEP:
            many.states.active[i], many.states.taken[i], many.states.plan[UNTIL] = True, 0, 1
        if not many.states.active[i]:
            continue
        if work <= STEP:
            done += run(one, many, i)
        else:
            done += look(one, many, i)
    return done


def run_vectors(one: RobotStages, many: FleetArrays, first: int, stop: int) -> int:
    """Take the steps of robots `order[first:stop]`, one vector of robots at a time; return the number that took all steps."""
    done, begin = 0, first
    while begin < stop:
        place = begin + lane()
        if place < stop:
            done += run(one, many, many.states.order[place])
        begin += lanes()
    return done


SEVERAL = 4  # steps of one robot in a row from which gaps of its shapes are remembered without memory for each robot


def run(one: RobotStages, many: FleetArrays, i: int) -> int:
    """Take the steps of robot i. Return 1 if all succeeded."""
    states = many.states
    load_robot(one, many, i)
    status, k, steps = TAKEN, states.taken[i], states.plan[UNTIL]
    load_gaps(one, many, i, steps - k)
    while k < steps:
        remember(one, many, i, k)
        status = take_step_of(one, many, i, k)
        if status != TAKEN:
            break
        store_contacts(one, many, i)
        states.inexact[i] += 1 if one.touching.report[INEXACT] > 0.0 else 0
        k += 1
        states.steps[i] += 1
        keep(many, i, k, one.state.q, one.state.v)
        if len(states.kept_blocks) > 0 and k % states.plan[EVERY] == 0:
            store_robot(one, many, i)
            copy(states.block, states.kept_blocks[k // states.plan[EVERY]])
    states.taken[i] = k
    note_status(one, many, i, status)
    store_robot(one, many, i)
    store_gaps(one, many, i)
    return 1 if k == steps else 0


def remember(one: RobotStages, many: FleetArrays, i: int, k: int) -> None:
    """Store the state of robot i before step k, and the inputs of this step, for sensors."""
    states, inputs = many.states, many.inputs
    if len(states.before_q) == 0:
        return
    copy(one.state.q, states.before_q[i])
    copy(one.state.v, states.before_v[i])
    copy(one.state.act, states.before_act[i])
    states.before_given[i, WITH_CONTROL] = 1 if inputs.given[WITH_CONTROL] else 0
    states.before_given[i, WITH_FORCES] = 1 if inputs.given[WITH_FORCES] else 0
    if inputs.given[WITH_CONTROL]:
        copy(row_of(inputs.control, i, k), states.before_control[i])
    if inputs.given[WITH_FORCES]:
        copy_rows(forces_of(inputs.external, i, k), states.before_external[i])


def attempt(one: RobotStages, many: FleetArrays, i: int) -> int:
    """Compute the next step of robot i, leaving all results in the stages. Return 1 if it succeeds."""
    load_robot(one, many, i)
    load_inputs(one, many, i, 0)
    status = judge_inputs(one)
    if status == TAKEN:
        status = try_step(one)
    note_status(one, many, i, status)
    return 1 if status == TAKEN else 0


def take_step_of(one: RobotStages, many: FleetArrays, i: int, k: int) -> int:
    """Take step k of robot i."""
    load_inputs(one, many, i, k)
    status = judge_inputs(one)
    return take_step(one) if status == TAKEN else status


def judge_inputs(one: RobotStages) -> int:
    """Check that joint forces and controls are finite."""
    if not all_finite(one.state.tau):
        return NO_FORCE
    return TAKEN if all_finite(one.state.control) else NO_CONTROL


def note_status(one: RobotStages, many: FleetArrays, i: int, status: int) -> None:
    """Store the status of the last step of robot i, and the numbers of the message if it failed."""
    many.states.status[i] = status
    if status != TAKEN:
        many.states.culprit[i] = note_failure(one, status, many.states.symptoms[i])


def keep(many: FleetArrays, i: int, k: int, q: Vector, v: Vector) -> None:
    """Record the state of robot i after k steps, if it is one of the recorded states."""
    every = many.states.plan[EVERY]
    if len(many.states.kept_q) > 0 and k % every == 0:
        copy(q, many.states.kept_q[i, k // every])
        copy(v, many.states.kept_v[i, k // every])


def look(one: RobotStages, many: FleetArrays, i: int) -> int:
    """Find the current contacts of robot i, without moving it. Return 1 if they are not more than the capacity."""
    load_robot(one, many, i)
    t, contacts = one.touching, many.contacts
    clear_rows(t.kinematics.velocity)
    call_machine(one.calls.placement)
    found = find_touching(t)
    contacts.counts[i] = max(found, 0)
    many.states.status[i] = TOO_MANY_CONTACTS if found < 0 else TAKEN
    for c in range(found):
        contacts.candidate[i, c], contacts.gap[i, c] = t.contacts.candidate[c], t.contacts.gap[c]
    return 1 if found >= 0 else 0


def find_energy(one: RobotStages, many: FleetArrays, i: int) -> int:
    """Write the energy of robot i, without moving it. Return 1."""
    load_robot(one, many, i)
    kinetic, potential = energies(one, one.state.q, one.state.v)
    many.states.energy[i] = kinetic + potential
    return 1


def load_robot(one: RobotStages, many: FleetArrays, i: int) -> None:
    """Load the state of robot i into the stages."""
    impulses, contacts, own = one.touching.impulses, many.contacts, many.varied
    put(one, many, i)
    clear_impulses(impulses)
    forget_forces(impulses)
    for c in range(contacts.counts[i]):
        keep_force(impulses, contacts.candidate[i, c], contacts.force[i, c], contacts.turn[i, c])
    copy(many.states.last_row[i], impulses.last_row)
    one.touching.deepest[0] = many.states.deepest[i]
    model, springs, inertias = one.touching.model, one.joints.springs, one.inertias
    put_own(own.friction, i, model.friction)
    put_own_rows(own.yielding, i, model.yielding)
    put_own_rows(own.yielding_rows, i, model.yielding_rows)
    put_own_rows(own.shapes, i, one.touching.collisions.offset)
    if len(own.sizes) > 0:
        resize_shapes(one.touching.scene, own.sizes[i], own.radii[i], one.touching.collisions)
    put_own(own.damping, i, springs.damping)
    put_own(own.stiffness, i, springs.stiffness)
    put_own_rows(own.poly, i, springs.poly)
    put_own_rows(own.drives, i, one.joints.drives.values)
    put_own(own.lower, i, model.rows.lower)
    put_own(own.upper, i, model.rows.upper)
    put_own(own.bound, i, model.rows.bound)
    put_own_rows(own.parameters, i, inertias.parameters)
    put_own(own.armature, i, inertias.base_armature)
    put_own(own.armature, i, inertias.armature)
    put_own(own.own_armature, i, inertias.own_armature)
    put_own(own.middle_armature, i, one.joints.middle_armature)


def put_own(own: Matrix, i: int, target: Vector) -> None:
    """Copy the numbers of robot i if robots have their own."""
    if len(own) > 0:
        copy(own[i], target)


def put_own_rows(own: Tensor, i: int, target: Matrix) -> None:
    if len(own) > 0:
        copy_rows(own[i], target)


def put(one: RobotStages, many: FleetArrays, i: int) -> None:
    """Load the state of robot i, and the flags of its inputs."""
    copy(many.states.q[i], one.state.q)
    copy(many.states.v[i], one.state.v)
    copy(many.states.act[i], one.state.act)
    one.state.given[WITH_CONTROL] = many.inputs.given[WITH_CONTROL]
    one.state.given[WITH_FORCES] = many.inputs.given[WITH_FORCES]


def load_inputs(one: RobotStages, many: FleetArrays, i: int, k: int) -> None:
    """Set the inputs of step k of robot i."""
    inputs = many.inputs
    copy(row_of(inputs.tau, i, k), one.state.tau)
    if inputs.given[WITH_CONTROL]:
        copy(row_of(inputs.control, i, k), one.state.control)
    else:
        clear(one.state.control)  # remove that of another robot, which delays would keep
    one.state.given[WITH_FORCES] = inputs.given[WITH_FORCES]  # adhesive contacts may have set it
    if inputs.given[WITH_FORCES]:
        rows = forces_of(inputs.external, i, k)
        copy_rows(rows, one.state.external)
        copy_rows(rows, one.touching.forces)
    else:
        clear_rows(one.touching.forces)  # remove the forces of an earlier step and of its contacts


def row_of(inputs: Tensor, i: int, k: int) -> Vector:
    """Return the numbers of robot i in step k; inputs may be shared by all robots or steps."""
    row: Vector = inputs[min(i, inputs.shape[0] - 1), min(k, inputs.shape[1] - 1)]
    return row


def forces_of(external: Tensor4, i: int, k: int) -> Matrix:
    """Return the forces on the bodies of robot i in step k; they may be shared by all robots or steps."""
    rows: Matrix = external[min(i, external.shape[0] - 1), min(k, external.shape[1] - 1)]
    return rows


def store_contacts(one: RobotStages, many: FleetArrays, i: int) -> None:
    """Store the contacts of a successful step."""
    contacts, t = many.contacts, one.touching
    contacts.counts[i], contacts.solved[i] = t.counts[FOUND], t.counts[SOLVED] if t.counts[FOUND] > 0 else 0
    for c in range(t.counts[FOUND]):
        candidate = t.contacts.candidate[c]
        contacts.candidate[i, c], contacts.gap[i, c] = candidate, t.contacts.gap[c]
        copy(t.contacts.point[c], contacts.point[i, c])
        copy(t.contacts.normal[c], contacts.normal[i, c])
        contacts.bodies[i, c, 0], contacts.bodies[i, c, 1] = t.contacts.a[c], t.contacts.b[c]
        copy(t.impulses.force[c], contacts.force[i, c])
        for j in range(contacts.turn.shape[2]):
            contacts.turn[i, c, j] = t.impulses.turn[c, j]
    copy_rows(t.impulses.wrench, contacts.wrench[i])


def store_robot(one: RobotStages, many: FleetArrays, i: int) -> None:
    """Store the state after the last successful step."""
    states = many.states
    copy(one.state.q, states.q[i])
    copy(one.state.v, states.v[i])
    copy(one.state.act, states.act[i])
    copy(one.touching.impulses.last_row, states.last_row[i])
    copy(one.touching.report, states.report[i])
    states.opened[i], states.deepest[i] = one.loops.opened[0], one.touching.deepest[0]


def load_gaps(one: RobotStages, many: FleetArrays, i: int, steps: int) -> None:
    """Load the gaps of robot i before so many steps, and set whether they are remembered."""
    gaps, work = many.gaps, one.touching.collisions
    work.remembers[0] = len(many.states.q) == 1 or len(gaps.travel) > 0 or steps >= SEVERAL
    if len(gaps.travel) > 0:
        copy_rows(gaps.placement[i], work.placement)
        copy(gaps.travel[i], work.travel)
        copy(gaps.apart_until[i], work.apart_until)


def store_gaps(one: RobotStages, many: FleetArrays, i: int) -> None:
    gaps, work = many.gaps, one.touching.collisions
    if len(gaps.travel) > 0:
        copy_rows(work.placement, gaps.placement[i])
        copy(work.travel, gaps.travel[i])
        copy(work.apart_until, gaps.apart_until[i])


RUN_VECTORS = {
    n: CompiledLoop(run_vectors, numbers=2, what="the time step of many robots in vectors", lanes=n) for n in (2, 4, 8)
}
WORK_ON_ROBOTS = CompiledLoop(work_on_robots, numbers=3, what="the time step of simulations, which all robots share")
