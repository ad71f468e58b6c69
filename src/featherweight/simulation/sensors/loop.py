"""The compiled loop that measures most kinds of sensors, one robot after the other.

Meanings, signs and units are MuJoCo's (XML reference, chapter "sensor").
"""

from __future__ import annotations

from math import isnan

from ...algorithms.frames import write_vec3
from ...array_types import Matrix, Tensor, Vector
from ...engine.loops.kernels import CompiledLoop, call_machine
from ...spatial import Force, Mat3, Motion, RigidInertia, Sym3, Vec3
from ...spatial.lie import quaternion_at, quaternion_of_matrix
from ..forces.controllers import DrivesNow
from ..forces.drive_inputs import write_drive_inputs
from ..forces.implicit_drives import begin_drives
from ..forces.laws import GEAR, HIGH, LOW
from ..smooth_motion import clear, copy, copy_rows
from ..stage_records import WITH_CONTROL, WITH_FORCES, FleetArrays
from ..state import time_of
from . import records
from .records import NONE, Instant, SensedFleet, SensorRecords, is_inside, is_met

PREPARE, MEASURE, ALL = range(3)  # works of the loop
POSITION, AXIS_X, AXIS_Y, AXIS_Z, LINEAR_VELOCITY, ANGULAR_VELOCITY, LINEAR_ACCELERATION, ANGULAR_ACCELERATION = range(8)
QUATERNION, FIELD, PIXEL, INSIDE, TOUCH = range(8, 13)  # quantities of frames
CENTER, VELOCITY, MOMENTUM, LOAD = range(4)  # quantities of subtrees
NO_DEPTH, NO_MASS = 1e-15, 1e-15  # [m], [kg]


def measure_fleet(x: SensedFleet, many: FleetArrays, work: int) -> int:
    """Measure all robots. Return the number of robots whose `spread` impulses are missing; nothing is measured then."""
    missing, robots, contacts = 0, len(many.states.q), many.contacts
    if work != MEASURE:
        for i in range(robots):
            prepare(x, many, i)
            missing += 1 if x.records.reads_contacts and contacts.solved[i] < contacts.counts[i] else 0
        call_machine(x.joints_now)
        call_machine(x.frames_now)
        call_machine(x.frames_then)
    if work == MEASURE or (work == ALL and missing == 0):
        for i in range(robots):
            measure(x, many, i)
    return missing


def is_rested(many: FleetArrays, i: int) -> bool:
    """Return whether a robot has taken no step from its state."""
    before = many.states.before_v
    return len(before) == 0 or (before.shape[1] > 0 and isnan(before[i, 0]))


def prepare(x: SensedFleet, many: FleetArrays, i: int) -> None:
    """Write the channels of the states, and the start of the last step with its mean acceleration, including impulses."""
    start, step, then, states = x.records.channels, x.records.step, x.then, many.states
    rested, channel = is_rested(many, i), x.channels[i]
    channel[start.time] = time_of(states.set_time[i], states.steps[i], states.set_step[i], step)
    if start.v - start.q == states.q.shape[1]:
        copy(states.q[i], channel[start.q : start.v])
        copy(states.v[i], channel[start.v : start.impulse])
    for r in range(states.last_row.shape[1]):
        channel[start.impulse + r] = 0.0 if rested else states.last_row[i, r]
    if len(then.q) == 0:
        return
    copy(states.q[i] if rested else states.before_q[i], then.q[i])
    for j in range(then.v.shape[1]):
        then.v[i, j] = 0.0 if rested else states.before_v[i, j]
        then.a[i, j] = 0.0 if rested else (states.v[i, j] - then.v[i, j]) / step
    for k in range(0 if rested else len(x.records.turning.q)):
        write_turning(x.records, k, states.q[i], states.v[i], then, i)


def write_turning(s: SensorRecords, k: int, q1: Vector, v1: Vector, then: Instant, i: int) -> None:
    """Write the acceleration of a joint whose linear velocity is stepped in the axes of the start."""
    at, j, h, q0, v0, a = s.turning.q[k], s.turning.v[k], s.step, then.q[i], then.v[i], then.a[i]
    if not s.turning.planar[k]:
        turned = quaternion_at(q1, at + 3).conjugate().rotate_back(vector_at(v1, j))
        change = quaternion_at(q0, at + 3).rotate_back(turned) - vector_at(v0, j)
        write_vec3((1.0 / h) * change - vector_at(v0, j + 3).cross(vector_at(v0, j)), a, j)
        return
    c0, s0, c1, s1 = q0[at + 2], q0[at + 3], q1[at + 2], q1[at + 3]
    cosine, sine = c1 * c0 + s1 * s0, s1 * c0 - c1 * s0
    a[j] = (cosine * v1[j] - sine * v1[j + 1] - v0[j]) / h + v0[j + 2] * v0[j + 1]
    a[j + 1] = (sine * v1[j] + cosine * v1[j + 1] - v0[j + 1]) / h - v0[j + 2] * v0[j]


def measure(x: SensedFleet, many: FleetArrays, i: int) -> None:
    s, out, channel = x.records, x.readings[i], x.channels[i]
    if s.reads_drives:
        write_drive_forces(x, many, i)
    for k in range(len(s.sums.column)):
        out[s.sums.column[k]] = sum_of_terms(s, k, channel, x.drives.S, i)
    for k in range(len(s.limits.column)):
        out[s.limits.column[k]] = beyond_limits(s.limits, k, channel)
    for k in range(len(s.frames.column)):
        measure_frame(x, many, i, k)
    for k in range(len(s.subtrees.column)):
        if s.subtrees.quantity[k] == LOAD:
            write_load(x, many, i, k)
        else:
            write_vec3(motion_of_subtree(x, many, i, k), out, s.subtrees.column[k])


# channels


def write_drive_forces(x: SensedFleet, many: FleetArrays, i: int) -> None:
    """Write the forces of the actuators' drives in the last step, before their gears; zero without controls."""
    d, c, states, then = x.drives, x.records.channels, many.states, x.then
    force, acting = x.channels[i, c.drive : c.compensation], states.before_given[i, WITH_CONTROL] != 0
    clear(force)
    if is_rested(many, i) or not acting:
        return
    if len(many.varied.drives) > 0:
        copy_rows(many.varied.drives[i], d.drives.values)
    coordinates, values = d.coordinates[i], d.drives.values
    copy(states.before_control[i], d.control)
    for r in range(len(d.rates)):
        d.rates[r] = rate_of_row(d.S, i, r, then.v[i])
    now = DrivesNow(d.control, states.before_act[i], coordinates, d.rates, d.inputs, d.act_rate, d.inputs[:0])
    write_drive_inputs(d.laws, now)
    begin_drives(d.drives, d.ahead, d.inputs, coordinates, d.rates, d.work)
    for k in range(len(force)):
        law, gear = d.work.law[k], values[GEAR, k]
        if d.work.inertia[k] > 0.0:
            law -= d.work.inertia[k] / gear * rate_of_row(d.S, i, d.drives.row[k], then.a[i])
        force[k] = min(max(law, values[LOW, k]), values[HIGH, k])


def rate_of_row(S: Tensor, i: int, r: int, v: Vector) -> float:
    """Return the velocity of a row for independent velocities."""
    if len(S) == 0:
        return v[r]
    total = 0.0
    for j in range(len(v)):
        total += S[i, r, j] * v[j]
    return total


def sum_of_terms(s: SensorRecords, k: int, channel: Vector, S: Tensor, i: int) -> float:
    total, terms = 0.0, s.terms
    for t in range(s.sums.first[k], s.sums.stop[k]):
        term = terms.factor[t] * channel[terms.channel[t]]
        total += term if terms.row[t] == NONE else S[i, terms.row[t], terms.dof[t]] * term
    return min(max(total, s.sums.lower[k]), s.sums.upper[k])


def beyond_limits(limits: records.LimitSensors, k: int, channel: Vector) -> float:
    """Return the violation of the nearer of two limits, or the outward velocity; 0 within limits."""
    x = channel[limits.coordinate[k]]
    below, above = x - limits.lower[k], limits.upper[k] - x
    if min(below, above) >= 0.0:
        return 0.0
    if limits.rate[k] == NONE:
        return min(below, above)
    velocity = channel[limits.rate[k]]
    return velocity if below <= above else -velocity


# frames


def rotation(T: Matrix) -> Mat3:
    return Mat3(Vec3(T[0, 0], T[0, 1], T[0, 2]), Vec3(T[1, 0], T[1, 1], T[1, 2]), Vec3(T[2, 0], T[2, 1], T[2, 2]))


def column_of(T: Matrix, j: int) -> Vec3:
    """Return an axis of a frame or, for 3, its origin."""
    return Vec3(T[0, j], T[1, j], T[2, j])


def seen_in(T: Matrix, x: Vec3) -> Vec3:
    """Return the components of a vector along the axes of a frame."""
    return rotation(T).transpose() @ x


def vector_at(x: Vector, at: int) -> Vec3:
    return Vec3(x[at], x[at + 1], x[at + 2])


def motion_at(x: Vector) -> Motion:
    """Return a motion from its linear and angular components."""
    return Motion(vector_at(x, 3), vector_at(x, 0))


def measure_frame(x: SensedFleet, many: FleetArrays, i: int, k: int) -> None:
    s, out = x.records.frames, x.readings[i]
    quantity, frame, column = s.quantity[k], s.frame[k], s.column[k]
    if quantity == TOUCH:
        out[column] = touch(x, many, i, k)
    elif quantity == LINEAR_ACCELERATION:
        a = vector_at(x.then.acceleration[i, frame], 0) - vector_at(x.records.gravity, 0)
        write_vec3(seen_in(x.then.placement[i, s.axes[k]], a), out, column)
    elif quantity == ANGULAR_ACCELERATION:
        write_vec3(seen_in(x.then.placement[i, s.axes[k]], vector_at(x.then.acceleration[i, frame], 3)), out, column)
    elif quantity == QUATERNION:
        R = rotation(x.now.placement[i, s.reference[k]]).transpose().product(rotation(x.now.placement[i, frame]))
        turned = quaternion_of_matrix(R)
        out[column] = turned.s
        write_vec3(turned.u, out, column + 1)
    else:
        y = seen_in(x.now.placement[i, s.axes[k]], motion_of_frame(x, i, k))
        if quantity == INSIDE:
            out[column] = 1.0 if is_inside(x.records.zones, k, (y.x, y.y, y.z)) else 0.0
        elif quantity == PIXEL:
            write_pixel(s, k, y, out)
        else:
            write_vec3(y, out, column)


def motion_of_frame(x: SensedFleet, i: int, k: int) -> Vec3:
    """Return an axis, or a velocity or a position relative to the reference, in the world's axes."""
    s, now = x.records.frames, x.now
    quantity, frame, reference = s.quantity[k], s.frame[k], s.reference[k]
    if quantity == FIELD:
        return vector_at(s.field[k], 0)
    if quantity >= AXIS_X and quantity <= AXIS_Z:
        return column_of(now.placement[i, frame], quantity - AXIS_X)
    apart = column_of(now.placement[i, frame], 3) - column_of(now.placement[i, reference], 3)
    if quantity >= LINEAR_VELOCITY and quantity <= ANGULAR_VELOCITY:
        v, other = motion_at(now.velocity[i, frame]), motion_at(now.velocity[i, reference])
        return v.ang - other.ang if quantity == ANGULAR_VELOCITY else v.lin - other.lin - other.ang.cross(apart)
    return apart


def write_pixel(s: records.FrameSensors, k: int, p: Vec3, out: Vector) -> None:
    """Write the pixel (column, row) of a point in the frame of a camera, also behind it."""
    depth, column = p.z, s.column[k]
    if abs(depth) < NO_DEPTH:
        depth = -NO_DEPTH if depth < 0.0 else NO_DEPTH
    out[column] = s.center[k, 0] - s.focal[k, 0] * p.x / depth
    out[column + 1] = s.center[k, 1] + s.focal[k, 1] * p.y / depth


# subtrees of bodies


def inertia_of_part(x: SensedFleet, many: FleetArrays, i: int, p: int, T: Matrix) -> RigidInertia:
    """Return the inertia of a part about its body's origin, in the world's axes; robots that differ have their own."""
    parts = x.records.parts
    own = parts.varied[p] != NONE and len(many.varied.parameters) > 0
    y = many.varied.parameters[i, parts.varied[p]] if own else parts.parameters[p]
    return RigidInertia(y[0], vector_at(y, 1), Sym3(y[4], y[5], y[7], y[6], y[8], y[9])).rotate(rotation(T))


def motion_of_subtree(x: SensedFleet, many: FleetArrays, i: int, k: int) -> Vec3:
    """Return the centre of mass, its velocity, or the angular momentum about it."""
    s = x.records.subtrees
    mass, moment, momentum = 0.0, Vec3(0.0, 0.0, 0.0), Force(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0))
    for p in range(s.first[k], s.stop[k]):
        frame = x.records.parts.frame[p]
        T = x.now.placement[i, frame]
        inertia, o = inertia_of_part(x, many, i, p, T), column_of(T, 3)
        mass, moment = mass + inertia.mass, moment + inertia.mass * o + inertia.moment
        momentum = momentum + (inertia @ motion_at(x.now.velocity[i, frame])).translate(o)
    center = (1.0 / max(mass, NO_MASS)) * moment
    if s.quantity[k] == CENTER:
        return center
    if s.quantity[k] == VELOCITY:
        return (1.0 / max(mass, NO_MASS)) * momentum.lin
    return momentum.ang - center.cross(momentum.lin)


def write_load(x: SensedFleet, many: FleetArrays, i: int, k: int) -> None:
    """Write the force on a subtree from outside, at the sensor: the rate of its momentum, minus weight and other forces."""
    s, then, g = x.records.subtrees, x.then, Motion(Vec3(0.0, 0.0, 0.0), vector_at(x.records.gravity, 0))
    load, at = Force(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0)), then.placement[i, s.frame[k]]
    site = column_of(at, 3)
    for p in range(s.first[k], s.stop[k]):
        frame = x.records.parts.frame[p]
        T, w = then.placement[i, frame], vector_at(then.velocity[i, frame], 3)
        inertia = inertia_of_part(x, many, i, p, T)
        f = inertia @ (motion_at(then.acceleration[i, frame]) - g) + inertia.gyroscopic(w)
        f = f - force_on_part(x, many, i, p, rotation(T))
        load = load + f.translate(column_of(T, 3) - site)
    first, stop = s.first_link[k], s.stop_link[k]
    for c in range(contacts_of(many, i) if first < stop else 0):
        side = x.records.sides[many.contacts.candidate[i, c]]
        sign = 0.0
        for j in range(first, stop):
            sign += (1.0 if x.records.links[j] == side[0] else 0.0) - (1.0 if x.records.links[j] == side[1] else 0.0)
        pushed = Force(Vec3(0.0, 0.0, 0.0), sign * force_of_contact(x, many, i, c))
        load = load - pushed.translate(vector_at(many.contacts.point[i, c], 0) - site)
    if s.column[k] != NONE:
        write_vec3(seen_in(at, load.lin), x.readings[i], s.column[k])
    if s.torque[k] != NONE:
        write_vec3(seen_in(at, load.ang), x.readings[i], s.torque[k])


def force_on_part(x: SensedFleet, many: FleetArrays, i: int, p: int, R: Mat3) -> Force:
    """Return the force of contacts on a whole body, and of the user, in the last step."""
    parts, force, torque = x.records.parts, Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0)
    if parts.touching[p] != NONE and contacts_of(many, i) > 0:
        y = many.contacts.wrench[i, parts.touching[p]]
        force, torque = (1.0 / x.records.step) * vector_at(y, 0), (1.0 / x.records.step) * vector_at(y, 3)
    if parts.pushed[p] != NONE and not is_rested(many, i) and many.states.before_given[i, WITH_FORCES] != 0:
        y = many.states.before_external[i, parts.pushed[p]]
        force, torque = force + vector_at(y, 0), torque + vector_at(y, 3)
    return Force(R @ torque, R @ force)


# contacts


def contacts_of(many: FleetArrays, i: int) -> int:
    """Return the number of contacts of a robot in its last step."""
    return 0 if is_rested(many, i) else many.contacts.counts[i]


def force_of_contact(x: SensedFleet, many: FleetArrays, i: int, c: int) -> Vec3:
    """Return the force on the first side of a contact in the last step."""
    contacts = many.contacts
    impulse = x.spread[i, c] if contacts.solved[i] < contacts.counts[i] else contacts.force[i, c]
    return (1.0 / x.records.step) * vector_at(impulse, 0)


def touch(x: SensedFleet, many: FleetArrays, i: int, k: int) -> float:
    """Return the sum of normal forces of contacts of a link in a volume, or whose normals point into it."""
    s, contacts, total = x.records.frames, many.contacts, 0.0
    T = x.then.placement[i, s.frame[k]]
    for c in range(contacts_of(many, i)):
        side = x.records.sides[contacts.candidate[i, c]]
        first, second = side[0] == s.link[k], side[1] == s.link[k]
        if first != second:
            normal = vector_at(contacts.normal[i, c], 0)
            pressed = force_of_contact(x, many, i, c).dot(normal)
            at, outward = vector_at(contacts.point[i, c], 0) - column_of(T, 3), (-1.0 if first else 1.0) * normal
            at, outward = seen_in(T, at), seen_in(T, outward)
            if pressed > 0.0 and is_met(x.records.zones, k, (at.x, at.y, at.z), (outward.x, outward.y, outward.z)):
                total += pressed
    return total


MEASURE_FLEET = CompiledLoop(measure_fleet, numbers=1, what="the sensors of simulations")
