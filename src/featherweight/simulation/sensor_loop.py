"""The compiled loop that measures most kinds of sensors, one robot after the other.

Meanings, signs and units are MuJoCo's (XML reference, chapter "sensor").
"""

from __future__ import annotations

from math import isnan
from typing import NamedTuple

from ..array_types import Matrix, Tensor, Vector
from ..engine.loops.kernels import CompiledLoop, call_machine
from ..spatial import Mat3, Sym3, Vec3
from ..spatial.vectors import sqrt
from .controllers import DrivesNow
from .drive_inputs import write_drive_inputs
from .forces import bound_laws, drive_armature, drive_law
from .sensor_records import (
    ANGULAR_ACCELERATION,
    ANGULAR_VELOCITY,
    AXIS_X,
    AXIS_Z,
    FIELD,
    LINEAR_ACCELERATION,
    NONE,
    POSITION,
    QUATERNION,
    FrameSensors,
    Instant,
    LimitSensors,
    Parts,
    SensedFleet,
    SensorRecords,
)
from .sensor_zones import is_inside, is_met
from .smooth_motion import copy
from .stage_records import WITH_CONTROL, WITH_FORCES, FleetArrays

PREPARE, MEASURE, ALL = range(3)  # works of the loop
NO_DEPTH = 1e-15  # [m]
NO_MASS = 1e-15  # [kg]


def measure_fleet(x: SensedFleet, many: FleetArrays, work: int) -> int:
    """Measure all robots. Return the number of robots whose `spread` impulses are missing; nothing is measured then."""
    missing, robots = 0, len(many.states.q)
    if work != MEASURE:
        for i in range(robots):
            prepare(x, many, i)
            missing += 1 if many.contacts.solved[i] < many.contacts.counts[i] else 0
        call_machine(x.joints_now)
        call_machine(x.frames_now)
        call_machine(x.frames_then)
        missing = missing if len(x.records.touch.column) + len(x.records.links) > 0 else 0
    if work != PREPARE and missing == 0:
        for i in range(robots):
            measure(x, many, i)
    return missing


def took_no_step(many: FleetArrays, i: int) -> bool:
    """Return whether a robot has taken no step from its state."""
    before = many.states.before_v
    return len(before) == 0 or (before.shape[1] > 0 and isnan(before[i, 0]))


def prepare(x: SensedFleet, many: FleetArrays, i: int) -> None:
    """Write the channels of the states, and the start of the last step with its mean acceleration, including impulses."""
    s, start, then, states = x.records, x.records.channels, x.then, many.states
    rested, channel = took_no_step(many, i), x.channels[i]
    channel[start.time] = states.set_time[0] + (states.steps[0] - states.set_step[0]) * s.step
    if x.joints_now.address == 0 and start.v - start.q == len(states.q[i]):
        copy(states.q[i], channel[start.q : start.v])
        copy(states.v[i], channel[start.v : start.impulse])
    for r in range(states.last_row.shape[1]):
        channel[start.impulse + r] = 0.0 if rested else states.last_row[i, r]
    if len(then.q) == 0:
        return
    q, v, a = then.q[i], then.v[i], then.a[i]
    copy(states.q[i] if rested else states.before_q[i], q)
    for j in range(len(v)):
        v[j] = 0.0 if rested else states.before_v[i, j]
        a[j] = 0.0 if rested else (states.v[i, j] - v[j]) / s.step
    if not rested:
        for k in range(len(s.turning.q)):
            write_turning(s, k, states.q[i], states.v[i], q, v, a)


def write_turning(s: SensorRecords, k: int, q1: Vector, v1: Vector, q0: Vector, v0: Vector, a: Vector) -> None:
    """Write the acceleration of a joint whose linear velocity is stepped in the axes of the start."""
    q, v, h = s.turning.q[k], s.turning.v[k], s.step
    if not s.turning.planar[k]:
        back = Vec3(-q0[q + 3], -q0[q + 4], -q0[q + 5])
        u = rotated(back, q0[q + 6], rotated(Vec3(q1[q + 3], q1[q + 4], q1[q + 5]), q1[q + 6], linear(v1, v)))
        u0 = linear(v0, v)
        write((1.0 / h) * (u - u0) - linear(v0, v + 3).cross(u0), a, v)
        return
    c0, s0, c1, s1 = q0[q + 2], q0[q + 3], q1[q + 2], q1[q + 3]
    c, s = c1 * c0 + s1 * s0, s1 * c0 - c1 * s0
    a[v] = (c * v1[v] - s * v1[v + 1] - v0[v]) / h + v0[v + 2] * v0[v + 1]
    a[v + 1] = (s * v1[v] + c * v1[v + 1] - v0[v + 1]) / h - v0[v + 2] * v0[v]


def rotated(u: Vec3, s: float, x: Vec3) -> Vec3:
    """Return a vector rotated by a unit quaternion."""
    t = 2.0 * u.cross(x)
    return x + s * t + u.cross(t)


def measure(x: SensedFleet, many: FleetArrays, i: int) -> None:
    """Measure the sensors of a robot."""
    s, out, channel = x.records, x.readings[i], x.channels[i]
    if len(x.drives.law) > 0:
        write_drive_forces(x, many, i)
    for k in range(len(s.sums.column)):
        out[s.sums.column[k]] = sum_of_terms(s, k, channel, x.drives.S, i)
    for k in range(len(s.limits.column)):
        out[s.limits.column[k]] = beyond_limits(s.limits, k, channel)
    for k in range(len(s.balls.column)):
        j = s.balls.channel[k]
        write_quaternion(channel[j + 3], channel[j], channel[j + 1], channel[j + 2], out, s.balls.column[k])
    for k in range(len(s.frames.column)):
        measure_frame(x, i, k, out)
    for k in range(len(s.pixels.column)):
        measure_pixel(x, i, k, out)
    for k in range(len(s.inside.column)):
        to, T = x.now.placement[i, s.inside.reference[k]], x.now.placement[i, s.inside.frame[k]]
        inside = is_inside(s.inside_zones, k, seen_in(to, origin(T) - origin(to)))
        out[s.inside.column[k]] = 1.0 if inside else 0.0
    for k in range(len(s.subtrees.first)):
        measure_subtree(x, many, i, k, out)
    for k in range(len(s.loads.first)):
        measure_load(x, many, i, k, out)
    for k in range(len(s.touch.column)):
        out[s.touch.column[k]] = touch(x, many, i, k)


# channels


def write_drive_forces(x: SensedFleet, many: FleetArrays, i: int) -> None:
    """Write the forces of the actuators' drives in the last step, before their gears; zero without controls."""
    d, states, s, out = x.drives, many.states, x.records, x.channels[i]
    first, acting = s.channels.drive, states.before_given[i, WITH_CONTROL] != 0 and not took_no_step(many, i)
    for k in range(len(d.law)):
        out[first + k] = 0.0
    if not acting:
        return
    coordinates, values = d.coordinates[i], d.values[min(i, len(d.values) - 1)]
    copy(states.before_control[i], d.control)
    for r in range(len(d.rates)):
        d.rates[r] = rate_of_row(d.S, i, r, x.then.v[i])
    write_drive_inputs(d.laws, DrivesNow(d.control, states.before_act[i], coordinates, d.rates, d.inputs, d.act_rate))
    for k in range(len(d.law)):
        row, at, gear = d.drives.row[k], d.drives.at[k], values[0, k]
        ends = s.driven and row < d.joint_rows
        drive = gear, values[1, k], values[2, k], values[3, k], values[4, k], values[5, k], values[6, k], 0.0, 0.0
        d.law[k] = drive_law(drive, d.inputs[k], coordinates[at], d.rates[row], s.step if ends else 0.0)
        if ends and gear != 0.0:
            d.law[k] -= drive_armature(drive, s.step) / gear * rate_of_row(d.S, i, row, x.then.a[i])
    bound_laws(d.drives, d.law)
    for k in range(len(d.law)):
        out[first + k] = min(max(d.law[k], values[7, k]), values[8, k])


def rate_of_row(S: Tensor, i: int, r: int, v: Vector) -> float:
    """Return the velocity of a row for independent velocities."""
    if len(S) == 0:
        return v[r]  # type: ignore[no-any-return]
    total = 0.0
    for j in range(len(v)):
        total += S[i, r, j] * v[j]
    return total


def sum_of_terms(s: SensorRecords, k: int, channel: Vector, S: Tensor, i: int) -> float:
    total = 0.0
    for t in range(s.sums.first[k], s.sums.stop[k]):
        term = s.terms.factor[t] * channel[s.terms.channel[t]]
        total += term if s.terms.row[t] == NONE else S[i, s.terms.row[t], s.terms.dof[t]] * term
    return min(max(total, s.sums.lower[k]), s.sums.upper[k])  # type: ignore[no-any-return]


def beyond_limits(limits: LimitSensors, k: int, channel: Vector) -> float:
    """Return the violation of the nearer of two limits, or the outward velocity; 0 within limits."""
    x = channel[limits.coordinate[k]]
    below, above = x - limits.lower[k], limits.upper[k] - x
    if min(below, above) >= 0.0:
        return 0.0
    if limits.rate[k] == NONE:
        return min(below, above)  # type: ignore[no-any-return]
    velocity = channel[limits.rate[k]]
    return velocity if below <= above else -velocity  # type: ignore[no-any-return]


# frames


def rotation(T: Matrix) -> Mat3:
    return Mat3(Vec3(T[0, 0], T[0, 1], T[0, 2]), Vec3(T[1, 0], T[1, 1], T[1, 2]), Vec3(T[2, 0], T[2, 1], T[2, 2]))


def origin(T: Matrix) -> Vec3:
    return Vec3(T[0, 3], T[1, 3], T[2, 3])


def linear(x: Vector, at: int) -> Vec3:
    """Return the three numbers from an index on."""
    return Vec3(x[at], x[at + 1], x[at + 2])


def seen_in(T: Matrix, x: Vec3) -> Vec3:
    """Return the components of a vector along the axes of a frame."""
    return rotation(T).transpose() @ x


def write(x: Vec3, out: Vector, column: int) -> None:
    out[column], out[column + 1], out[column + 2] = x.x, x.y, x.z


def measure_frame(x: SensedFleet, i: int, k: int, out: Vector) -> None:
    s, g = x.records.frames, linear(x.records.gravity, 0)
    quantity, frame, column = s.quantity[k], s.frame[k], s.column[k]
    if quantity == LINEAR_ACCELERATION:
        write(seen_in(x.then.placement[i, s.axes[k]], linear(x.then.acceleration[i, frame], 0) - g), out, column)
    elif quantity == ANGULAR_ACCELERATION:
        write(seen_in(x.then.placement[i, s.axes[k]], linear(x.then.acceleration[i, frame], 3)), out, column)
    elif quantity == QUATERNION:
        R = rotation(x.now.placement[i, s.reference[k]]).transpose().product(rotation(x.now.placement[i, frame]))
        write_rotation(R, out, column)
    else:
        write(seen_in(x.now.placement[i, s.axes[k]], motion_of_frame(s, k, x.now, i)), out, column)


def motion_of_frame(s: FrameSensors, k: int, now: Instant, i: int) -> Vec3:
    """Return a position, an axis or a velocity relative to the reference, in the world's axes."""
    quantity, frame, reference = s.quantity[k], s.frame[k], s.reference[k]
    if quantity == FIELD:
        return linear(s.field[k], 0)
    T = now.placement[i, frame]
    if quantity >= AXIS_X and quantity <= AXIS_Z:
        j = quantity - AXIS_X
        return Vec3(T[0, j], T[1, j], T[2, j])
    apart = origin(T) - origin(now.placement[i, reference])
    if quantity == POSITION:
        return apart
    v, other = now.velocity[i, frame], now.velocity[i, reference]
    turning = linear(other, 3)
    if quantity == ANGULAR_VELOCITY:
        return linear(v, 3) - turning
    return linear(v, 0) - linear(other, 0) - turning.cross(apart)


def write_rotation(R: Mat3, out: Vector, column: int) -> None:
    """Write the quaternion of a rotation: the row of 4 q qᵀ with the greatest diagonal entry (Shepperd 1978)."""
    a, e, i = R.x.x, R.y.y, R.z.z
    x, y, z = R.z.y - R.y.z, R.x.z - R.z.x, R.y.x - R.x.y
    xy, xz, yz = R.x.y + R.y.x, R.x.z + R.z.x, R.y.z + R.z.y
    X, Y, Z, W = 1.0 + a - e - i, 1.0 + e - a - i, 1.0 + i - a - e, 1.0 + a + e + i
    if max(Y, max(Z, W)) <= X:
        write_quaternion(x, X, xy, xz, out, column)
    elif max(Z, W) <= Y:
        write_quaternion(y, xy, Y, yz, out, column)
    elif Z >= W:
        write_quaternion(z, xz, yz, Z, out, column)
    else:
        write_quaternion(W, x, y, z, out, column)
    if out[column] < 0.0:
        for j in range(4):
            out[column + j] = -out[column + j]


def write_quaternion(w: float, x: float, y: float, z: float, out: Vector, column: int) -> None:
    """Write a quaternion (w, x, y, z), MuJoCo's convention, with unit length."""
    r = 1.0 / sqrt(x * x + y * y + z * z + w * w)
    out[column], out[column + 1], out[column + 2], out[column + 3] = r * w, r * x, r * y, r * z


def measure_pixel(x: SensedFleet, i: int, k: int, out: Vector) -> None:
    """Write the pixel of a point, also for points behind the camera."""
    s, placement = x.records.pixels, x.now.placement[i]
    to = placement[s.camera[k]]
    p, column = seen_in(to, origin(placement[s.frame[k]]) - origin(to)), s.column[k]
    least = -NO_DEPTH if p.z < 0.0 else NO_DEPTH
    depth = least if abs(p.z) < NO_DEPTH else p.z
    out[column] = s.center[k, 0] - s.focal[k, 0] * p.x / depth
    out[column + 1] = s.center[k, 1] + s.focal[k, 1] * p.y / depth


# subtrees of bodies


class PartInertia(NamedTuple):
    """Mass, first moment and inertia about the origin of the body, in the world's axes."""

    mass: float
    moment: Vec3
    inertia: Sym3


def inertia_of(parts: Parts, p: int, T: Matrix, many: FleetArrays, i: int) -> PartInertia:
    """Return the inertia of a part; each robot has its own, if `vary` made them different and the part is a whole body."""
    own = parts.varied[p] != NONE and len(many.varied.parameters) > 0
    x = many.varied.parameters[i, max(parts.varied[p], 0)] if own else parts.parameters[p]
    R = rotation(T)
    return PartInertia(x[0], R @ linear(x, 1), Sym3(x[4], x[5], x[7], x[6], x[8], x[9]).rotate(R))


def measure_subtree(x: SensedFleet, many: FleetArrays, i: int, k: int, out: Vector) -> None:
    """Write centre of mass, its velocity, and angular momentum about it."""
    s, parts = x.records.subtrees, x.records.parts
    mass, moment, momentum, spin = 0.0, Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0)
    for p in range(s.first[k], s.stop[k]):
        T = x.now.placement[i, parts.frame[p]]
        own, o = inertia_of(parts, p, T, many, i), origin(T)
        mass += own.mass
        moment = moment + own.mass * o + own.moment
        if s.velocity[k] != NONE or s.momentum[k] != NONE:
            u = x.now.velocity[i, parts.frame[p]]
            v, w = linear(u, 0), linear(u, 3)
            carried = own.mass * v + w.cross(own.moment)
            momentum = momentum + carried
            spin = spin + own.inertia @ w + own.moment.cross(v) + o.cross(carried)
    share = 1.0 / max(mass, NO_MASS)
    center = share * moment
    if s.center[k] != NONE:
        write(center, out, s.center[k])
    if s.velocity[k] != NONE:
        write(share * momentum, out, s.velocity[k])
    if s.momentum[k] != NONE:
        write(spin - center.cross(momentum), out, s.momentum[k])


def measure_load(x: SensedFleet, many: FleetArrays, i: int, k: int, out: Vector) -> None:
    """Write force and torque on a subtree from outside: the rate of its momentum, minus gravity and external forces."""
    s, then, g = x.records.loads, x.then, linear(x.records.gravity, 0)
    force, torque, to = Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0), then.placement[i, s.frame[k]]
    site, acting = origin(to), not took_no_step(many, i)
    for p in range(s.first[k], s.stop[k]):
        frame = x.records.parts.frame[p]
        T, b, w = then.placement[i, frame], then.acceleration[i, frame], linear(then.velocity[i, frame], 3)
        own, a, alpha = inertia_of(x.records.parts, p, T, many, i), linear(b, 0) - g, linear(b, 3)
        f = own.mass * a + alpha.cross(own.moment) + w.cross(w.cross(own.moment))
        t = own.moment.cross(a) + own.inertia @ alpha + w.cross(own.inertia @ w)
        if acting:
            row, pushed = x.records.parts.row[p], x.records.parts.pushed[p]
            if row != NONE and many.contacts.counts[i] > 0:
                y = many.contacts.wrench[i, row]
                f = f - (1.0 / x.records.step) * (rotation(T) @ linear(y, 0))
                t = t - (1.0 / x.records.step) * (rotation(T) @ linear(y, 3))
            if pushed != NONE and many.states.before_given[i, WITH_FORCES] != 0:
                y = many.states.before_external[i, pushed]
                f, t = f - rotation(T) @ linear(y, 0), t - rotation(T) @ linear(y, 3)
        force, torque = force + f, torque + t + (origin(T) - site).cross(f)
    if acting:
        for c in range(many.contacts.counts[i] if s.first_link[k] < s.stop_link[k] else 0):
            side = x.records.sides[many.contacts.candidate[i, c]]
            first, second = held(x.records, k, side[0]), held(x.records, k, side[1])
            if first != second:
                pushing = (1.0 if first else -1.0) * force_of_contact(x, many, i, c)
                force, torque = force - pushing, torque - (linear(many.contacts.point[i, c], 0) - site).cross(pushing)
    if s.force[k] != NONE:
        write(seen_in(to, force), out, s.force[k])
    if s.torque[k] != NONE:
        write(seen_in(to, torque), out, s.torque[k])


def held(s: SensorRecords, k: int, link: int) -> bool:
    """Return whether a link belongs to the incomplete bodies of a subtree."""
    found = False
    for j in range(s.loads.first_link[k], s.loads.stop_link[k]):
        found = found or s.links[j] == link
    return found


# contacts


def force_of_contact(x: SensedFleet, many: FleetArrays, i: int, c: int) -> Vec3:
    """Return the force on the first side of a contact in the last step."""
    contacts = many.contacts
    impulse = x.spread[i, c] if contacts.solved[i] < contacts.counts[i] else contacts.force[i, c]
    return (1.0 / x.records.step) * linear(impulse, 0)


def touch(x: SensedFleet, many: FleetArrays, i: int, k: int) -> float:
    """Return the sum of normal forces of contacts of a link in a volume, or whose normals point into it."""
    s, contacts, total = x.records.touch, many.contacts, 0.0
    for c in range(0 if took_no_step(many, i) else contacts.counts[i]):
        side = x.records.sides[contacts.candidate[i, c]]
        first = side[0] == s.link[k]
        if first == (side[1] == s.link[k]):
            continue
        normal = linear(contacts.normal[i, c], 0)
        pressed, T = force_of_contact(x, many, i, c).dot(normal), x.then.placement[i, s.frame[k]]
        if pressed > 0.0:
            at = seen_in(T, linear(contacts.point[i, c], 0) - origin(T))
            if is_met(x.records.touch_zones, k, at, seen_in(T, (-1.0 if first else 1.0) * normal)):
                total += pressed
    return total


MEASURE_FLEET = CompiledLoop(measure_fleet, numbers=1, what="the sensors of simulations")
