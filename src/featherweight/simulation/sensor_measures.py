"""Sensors by kind: a function for each that measures all sensors of the kind on all robots.

Meanings, signs and units are MuJoCo's (XML reference, chapter "sensor"). A function takes the robots and the sensors of one
kind, and returns readings (robots, sensors, dim).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..array_types import Array
from ..model.model import ModelSensor, MovingJoint
from ..model.model_sensors import FIELDS, SIZES, fields_of
from ..model.types import Actuator, Camera, ContactReduction, Sensed, SensedKind, SensorField, SensorKind, Tendon
from ..robot.collision.shape_queries import ShapeQueries
from ..spatial.lie import quaternion_of_matrix
from ..spatial.ordered import total
from .controllers import parts_of
from .sensed_robots import TINY, Group, PartInertias, SensedRobots, cross
from .sensor_zones import is_inside, is_met

Measure = Callable[[SensedRobots, Group], Array]
K = SensorKind
CONTACT_FIELDS = FIELDS[K.CONTACT]


# frames


def frame_position(robots: SensedRobots, g: Group) -> Array:
    now = robots.now
    return now.seen_from(g.reference, now.origin(g.frame) - now.origin(g.reference))


def frame_quaternion(robots: SensedRobots, g: Group) -> Array:
    """Return quaternions (w, x, y, z), MuJoCo's convention; of cameras as if fixed to their bodies."""
    R = robots.now.fixed_placement[..., :3, :3]
    return quaternions_of(np.einsum("...ji,...jk->...ik", R[:, g.reference], R[:, g.frame]))


def frame_axis(robots: SensedRobots, g: Group, k: int) -> Array:
    return robots.now.seen_from(g.reference, robots.now.rotation(g.frame)[..., k])


def frame_linear_velocity(robots: SensedRobots, g: Group) -> Array:
    now = robots.now
    v, other = now.velocity[:, g.frame], now.velocity[:, g.reference]
    apart = now.origin(g.frame) - now.origin(g.reference)
    return now.seen_from(g.reference, v[..., :3] - other[..., :3] - cross(other[..., 3:], apart))


def frame_angular_velocity(robots: SensedRobots, g: Group) -> Array:
    v = robots.now.velocity
    return robots.now.seen_from(g.reference, v[:, g.frame, 3:] - v[:, g.reference, 3:])


def frame_linear_acceleration(robots: SensedRobots, g: Group) -> Array:
    """Return accelerations minus gravity, as of an accelerometer, but in the world's axes."""
    return np.asarray(robots.then.acceleration[:, g.frame, :3] - robots.gravity)


def frame_angular_acceleration(robots: SensedRobots, g: Group) -> Array:
    return np.asarray(robots.then.acceleration[:, g.frame, 3:])


def accelerometer(robots: SensedRobots, g: Group) -> Array:
    return robots.then.seen_from(g.frame, frame_linear_acceleration(robots, g))


def velocimeter(robots: SensedRobots, g: Group) -> Array:
    return robots.now.seen_from(g.frame, robots.now.velocity[:, g.frame, :3])


def gyro(robots: SensedRobots, g: Group) -> Array:
    return robots.now.seen_from(g.frame, robots.now.velocity[:, g.frame, 3:])


def magnetometer(robots: SensedRobots, g: Group) -> Array:
    field = np.array([s.sensor.field for s in g.sensors])
    return robots.now.seen_from(g.frame, np.broadcast_to(field, (robots.robots, *field.shape)))


def inside_site(robots: SensedRobots, g: Group) -> Array:
    now = robots.now
    points = now.seen_from(g.reference, now.origin(g.frame) - now.origin(g.reference))
    inside = [is_inside(s.sensor.zone, points[:, k]) for k, s in enumerate(g.sensors) if s.sensor.zone is not None]
    return np.stack(inside, axis=1).astype(float)[..., None]


def camera_projection(robots: SensedRobots, g: Group) -> Array:
    """Return the pixel (column, row) of a site in a camera's picture, also for sites behind the camera."""
    now = robots.now
    x, y, z = np.moveaxis(now.seen_from(g.reference, now.origin(g.frame) - now.origin(g.reference)), -1, 0)
    cameras = [_camera_of(robots, s.sensor.reference) for s in g.sensors]
    focal, size = np.array([_focal_length(c) for c in cameras]), np.array([c.resolution or (1, 1) for c in cameras])
    depth = np.where(np.abs(z) < TINY, np.copysign(TINY, z), z)
    return np.stack([-focal[:, 0] * x / depth, focal[:, 1] * y / depth], axis=-1) + 0.5 * size


def _camera_of(robots: SensedRobots, sensed: Sensed | None) -> Camera:
    return next(c for c in robots.robot.cameras if sensed is not None and c.name == sensed.name)


def _focal_length(c: Camera) -> tuple[float, float]:
    """Return focal lengths of a camera [pixels], for columns and rows."""
    width, height = c.resolution or (1, 1)
    if c.sensor is not None:
        return c.sensor.focal[0] / c.sensor.size[0] * width, c.sensor.focal[1] / c.sensor.size[1] * height
    angle = np.radians(c.field_of_view) if c.orthographic else c.field_of_view  # MuJoCo interprets the height as degrees
    return (0.5 / np.tan(0.5 * angle) * height,) * 2


# joints and actuators


def of_joint(robots: SensedRobots, j: MovingJoint, rate: int) -> Array:
    """Return the coordinates or, for rate 1, the velocities (robots, n) of a joint."""
    return np.asarray(robots.now.joints[rate][:, j.v_slice if rate else j.q_slice])


def of_joints(robots: SensedRobots, g: Group, rate: int) -> Array:
    """Return coordinates or, for rate 1, velocities (robots, sensors, n) of the sensors' joints."""
    joints = {j.name: j for j in robots.robot.model.joints}
    return np.stack([of_joint(robots, joints[_name(s)], rate) for s in g.sensors], axis=1)


def ball_quaternion(robots: SensedRobots, g: Group) -> Array:
    """Return quaternions (w, x, y, z), MuJoCo's convention."""
    x = of_joints(robots, g, 0)
    return np.asarray(x[..., [3, 0, 1, 2]] / np.linalg.norm(x, axis=-1, keepdims=True))


def joint_limits(robots: SensedRobots, g: Group, rate: int) -> Array:
    joints = {j.name: j for j in robots.robot.model.joints}
    return beyond_limits([joints[_name(s)] for s in g.sensors], *(of_joints(robots, g, k) for k in range(rate + 1)))


def beyond_limits(limited: Sequence[MovingJoint | Tendon], x: Array, velocity: Array | None = None) -> Array:
    """Return the violation of the nearer of two limits, or the outward velocity, (robots, sensors, 1); 0 within limits."""
    sign = np.array((1.0, -1.0))
    distance = sign * (x - np.array([(j.lower, j.upper) for j in limited]))
    least, nearest = distance.min(axis=-1, keepdims=True), distance.argmin(axis=-1)[..., None]
    return np.where(least < 0.0, least if velocity is None else sign[nearest] * velocity, 0.0)


def joint_limit_force(robots: SensedRobots, g: Group) -> Array:
    forces = robots.limit_forces
    row = {j.name: j.v_slice.start for j in robots.robot.model.joints}
    return np.asarray(forces[:, [row[_name(s)] for s in g.sensors], None])


def _actuators(robots: SensedRobots, g: Group) -> tuple[list[int], Array]:
    """Return numbers and gears of the sensors' actuators."""
    number = {a.name: k for k, a in reversed(list(enumerate(robots.robot.actuators)))}
    chosen = [number[_name(s)] for s in g.sensors]
    return chosen, np.array([robots.robot.actuators[k].gear for k in chosen])[:, None]


def of_actuators(robots: SensedRobots, g: Group, rate: int) -> Array:
    """Return lengths or, for rate 1, velocities of actuators: the gear times the joint's; three for orientation servos."""
    numbers, gear = _actuators(robots, g)
    chosen = [robots.robot.actuators[k] for k in numbers]
    parts = [parts_of(a) if a.orientation else (a,) for a in chosen]
    on = [np.concatenate([_length_of(robots, part, rate) for part in one], axis=1) for one in parts]
    return np.asarray(gear * np.stack(on, axis=1))


def _length_of(robots: SensedRobots, a: Actuator, rate: int) -> Array:
    """Return the length or the velocity (robots, 1) along which an actuator acts, before its gear."""
    if a.at is not None:
        return robots.along_frame(a.at)[rate]
    if a.tendon is not None:
        number = [t.name for t in robots.robot.tendons].index(a.tendon)
        return robots.tendon_motion[rate][:, number, None]
    return of_joint(robots, next(j for j in robots.robot.model.joints if j.name == a.joint), rate)


# tendons


def of_tendons(robots: SensedRobots, g: Group, rate: int) -> Array:
    """Return lengths or, for rate 1, velocities (robots, sensors, 1) of the sensors' tendons."""
    names = [t.name for t in robots.robot.tendons]
    return np.asarray(robots.tendon_motion[rate][:, [names.index(_name(s)) for s in g.sensors], None])


def tendon_actuator_force(robots: SensedRobots, g: Group) -> Array:
    """Return the sum of actuator forces along a tendon, before their gears."""
    result = np.zeros((robots.robots, len(g.sensors), 1))
    for k, s in enumerate(g.sensors):
        on = [i for i, a in enumerate(robots.forces.parts) if a.tendon == _name(s)]
        result[:, k, 0] = robots.drive_forces[:, on].sum(axis=1)
    return result


def tendon_limits(robots: SensedRobots, g: Group, rate: int) -> Array:
    tendons = [robots.robot.tendons[_name(s)] for s in g.sensors]
    return beyond_limits(tendons, *(of_tendons(robots, g, k) for k in range(rate + 1)))


def tendon_limit_force(robots: SensedRobots, g: Group) -> Array:
    forces, rows = robots.limit_forces, robots.forces.joint_rows
    names = [t.name for t in robots.forces.tendons]
    found = [forces[:, rows + names.index(_name(s))] if _name(s) in names else np.zeros(robots.robots) for s in g.sensors]
    return np.stack(found, axis=1)[..., None]


def actuator_force(robots: SensedRobots, g: Group) -> Array:
    numbers, _ = _actuators(robots, g)
    if tuple(robots.forces.actuators) != tuple(robots.robot.actuators):
        raise ValueError(
            f"{robots.robot.name}: sensor {g.sensors[0].name!r} measures an actuator of the file, but the simulation has other "
            "actuators; leave out actuators=, or add them to the description"
        )
    drives = [robots.drive_forces[:, robots.forces.owner == k] for k in numbers]  # a motor has another one for its friction
    turning = any(robots.robot.actuators[k].orientation for k in numbers)
    return np.stack([force if turning else force.sum(axis=1, keepdims=True) for force in drives], axis=1)


def joint_actuator_force(robots: SensedRobots, g: Group) -> Array:
    """Return the sum of actuator forces on a joint, with gravity compensation by actuators, within its effort."""
    joints = {j.name: j for j in robots.robot.model.joints}
    result = np.zeros((robots.robots, len(g.sensors), 1))
    for k, s in enumerate(g.sensors):
        on = [(i, a.gear) for i, a in enumerate(robots.forces.parts) if a.joint == _name(s) and a.at is None]
        force = sum((gear * robots.drive_forces[:, i] for i, gear in on), np.zeros(robots.robots))
        force = force + robots.drives_along_lengths(joints[_name(s)].v_slice.start)
        joint, model = joints[_name(s)], robots.robot.model
        if joint.drive_compensates and model.carried:
            force = force + robots.compensation[:, robots.robot.joints[joint.index].v_slice].sum(axis=1)
        result[:, k, 0] = np.clip(force, *joint.efforts)
    return result


def _name(s: ModelSensor) -> str:
    """Return the joint, tendon or actuator of a sensor."""
    assert s.sensor.on is not None
    assert s.sensor.on.name is not None
    return s.sensor.on.name


# subtrees of bodies


def _turned_inertias(R: Array, inertias: PartInertias) -> tuple[Array, Array]:
    """Return first moments (robots, parts, 3) and inertias (.., 3, 3) in the world's axes."""
    return np.einsum("...ij,...j->...i", R, inertias.moment), R @ inertias.inertia @ np.swapaxes(R, -1, -2)


def subtree_motion(robots: SensedRobots, s: ModelSensor) -> tuple[Array, Array, Array]:
    """Return centre of mass, its velocity, and angular momentum about it, (robots, 3) each, of the subtree of a body."""
    frames, inertias, now = robots.probes.part_frames(s.parts), robots.inertias(s.parts), robots.now
    h, I = _turned_inertias(now.rotation(frames), inertias)
    p, v, w = now.origin(frames), now.velocity[:, frames, :3], now.velocity[:, frames, 3:]
    m = inertias.mass[..., None]
    mass = np.maximum(total(m, 1), 1e-15)
    center = total(m * p + h, 1) / mass
    momentum = m * v + cross(w, h)
    velocity = total(momentum, 1) / mass
    spin = np.einsum("...ij,...j->...i", I, w) + cross(h, v) + cross(p, momentum)
    return center, velocity, total(spin, 1) - cross(center, mass * velocity)


def of_subtrees(robots: SensedRobots, g: Group, which: int) -> Array:
    found = (robots.kept(("subtree", s.parts), partial(subtree_motion, robots, s)) for s in g.sensors)
    return np.stack([x[which] for x in found], axis=1)


def interaction(robots: SensedRobots, s: ModelSensor) -> tuple[Array, Array]:
    """Return force and torque (robots, 3) on the subtree of a sensor's body from outside, at the sensor, in the world's axes.

    They are the rate of the subtree's momentum, minus gravity and external forces.
    """
    then, frames, inertias = robots.then, robots.probes.part_frames(s.parts), robots.inertias(s.parts)
    R = then.rotation(frames)
    h, I = _turned_inertias(R, inertias)
    p, w, m = then.origin(frames), then.velocity[:, frames, 3:], inertias.mass[..., None]
    a, alpha = then.acceleration[:, frames, :3] - robots.gravity, then.acceleration[:, frames, 3:]
    force = m * a + cross(alpha, h) + cross(w, cross(w, h))
    torque = cross(h, a) + np.einsum("...ij,...j->...i", I, alpha) + cross(w, np.einsum("...ij,...j->...i", I, w))
    for k, part in enumerate(s.parts):
        if part.body is None:
            continue
        number = robots.probes.body_number[part.body]
        outer = robots.contact_wrenches[:, number] if part.whole else np.zeros((robots.robots, 6))
        if part.body in part.links:
            outer = outer + robots.external[:, number]
        force[:, k] -= np.einsum("...ij,...j->...i", R[:, k], outer[:, :3])
        torque[:, k] -= np.einsum("...ij,...j->...i", R[:, k], outer[:, 3:])
    site = then.origin(np.array([robots.probes.number[s.frame]]))[:, 0] if s.frame is not None else np.zeros(3)
    torque = torque + cross(p - site[:, None], force)
    force, torque = total(force, 1), total(torque, 1)
    links = [link for part in s.parts if part.body is None or not part.whole for link in part.links]
    if links:
        touching = robots.contacts
        own = np.isin(touching.sides, [touching.numbers[x] for x in links if x in touching.numbers])
        pushed = (own[:, 0].astype(float) - own[:, 1])[:, None] * touching.force
        np.subtract.at(force, touching.robot, pushed)
        np.subtract.at(torque, touching.robot, cross(touching.point - site[touching.robot], pushed))
    return force, torque


def of_interactions(robots: SensedRobots, g: Group, which: int) -> Array:
    found = (robots.kept(("held", s.frame, s.parts), partial(interaction, robots, s)) for s in g.sensors)
    return robots.then.seen_from(g.frame, np.stack([x[which] for x in found], axis=1))


def touch(robots: SensedRobots, g: Group) -> Array:
    """Return the sum of normal forces of contacts of the site's body in the site's volume, or whose normal points into it."""
    c, result = robots.contacts, np.zeros((robots.robots, len(g.sensors), 1))
    pressed = np.einsum("...i,...i->...", c.force, c.normal)
    origin, R = robots.then.origin(g.frame), robots.then.rotation(g.frame)
    for k, s in enumerate(g.sensors):
        link = s.frame.body if s.frame is not None else None
        if s.sensor.zone is None or link not in c.numbers:
            continue
        first, second = np.equal(c.sides, c.numbers[link]).T
        near = (first != second) & (pressed > 0.0)
        axes, outward = R[c.robot, k], np.where(first, -1.0, 1.0)[:, None] * c.normal
        local = np.einsum("...ji,...j->...i", axes, c.point - origin[c.robot, k])
        met = near & is_met(s.sensor.zone, local, np.einsum("...ji,...j->...i", axes, outward))
        np.add.at(result[:, k, 0], c.robot[met], pressed[met])
    return result


def contact(robots: SensedRobots, g: Group) -> Array:
    """Return data of some of the matching contacts; see `ContactReduction`."""
    result = np.zeros((robots.robots, len(g.sensors), g.sensors[0].dim))
    for k, s in enumerate(g.sensors):
        chosen, sign = _matching(robots, s, g.frame[k])
        data = _net_force if s.sensor.reduction is ContactReduction.NETFORCE else _of_contacts
        robot, slot, found = data(robots, chosen, sign, s)
        rows = np.concatenate([found[f].reshape(-1, SIZES[f]) for f in fields_of(s.sensor)], axis=1)
        result[:, k].reshape(robots.robots, s.sensor.slots, -1)[robot, slot] = rows
    return result


def _matching(robots: SensedRobots, s: ModelSensor, frame: int) -> tuple[Array, Array]:
    """Return numbers (n,) of the contacts between both ends of a sensor, and the signs (n,) of their normals."""
    c, ends = robots.touching, (s.sensor.on, s.sensor.reference)
    at = np.ones(len(c.robot), bool)
    if s.sensor.zone is not None:
        R, p = robots.then.rotation(np.array([frame]))[:, 0], robots.then.origin(np.array([frame]))[:, 0]
        at = is_inside(s.sensor.zone, np.einsum("kji,kj->ki", R[c.robot], c.point - p[c.robot]))
    match = []  # (k, 2) for each end of the sensor
    for links, shapes in zip(s.links, s.shapes, strict=True):
        if links:
            match.append(np.isin(c.sides, [c.numbers[x] for x in links if x in c.numbers]))
        else:
            match.append(np.isin(c.shapes, shapes) if shapes else np.ones(c.sides.shape, bool))
    (a, b), (d, e) = match[0].T, match[1].T  # first end with the first and second object; the same for the second end
    at &= (a & e) | (b & d)
    forward = a & e if None not in ends else a if ends[0] is not None else e  # an end that is not given matches all
    return np.flatnonzero(at), np.where(forward[at], 1.0, -1.0)


ContactData = tuple[Array, Array, dict[SensorField, Array]]
"""Robots and slots (n,) of contacts, and their data by field."""


def _of_contacts(robots: SensedRobots, chosen: Array, sign: Array, s: ModelSensor) -> ContactData:
    """Return data of the first contacts among (m,) for each robot, in order, with their normals times `sign` (m,)."""
    c, how = robots.touching, s.sensor.reduction
    if how is not ContactReduction.NONE:
        key = c.distance if how is ContactReduction.MINDIST else -(c.force**2).sum(axis=1)
        order = np.lexsort((key[chosen], c.robot[chosen]))
        chosen, sign = chosen[order], sign[order]
    robot = c.robot[chosen]  # in ascending order
    slot = np.arange(len(robot)) - np.searchsorted(robot, robot)
    kept = slot < s.sensor.slots
    count = np.bincount(robot, minlength=robots.robots)[robot]
    chosen, sign = chosen[kept], sign[kept, None]
    turned = np.concatenate([np.ones((len(sign), 2)), sign], axis=1)  # rotates by half a turn about the second tangent
    normal, tangent, _ = np.moveaxis(c.axes[chosen], 1, 0)
    force, distance = turned * c.force[chosen], c.distance[chosen]
    values = count[kept], force, 0.0 * force, distance, c.point[chosen], sign * normal, sign * tangent
    data = dict(zip(CONTACT_FIELDS, values, strict=False))
    if {SensorField.LINVEL, SensorField.ANGVEL} & {*s.sensor.data}:
        linear, angular = np.moveaxis(robots.sliding[chosen], 1, 0)
        data |= {SensorField.LINVEL: turned * linear, SensorField.ANGVEL: turned * angular}
    return robot[kept], slot[kept], data


def _net_force(robots: SensedRobots, chosen: Array, sign: Array, s: ModelSensor) -> ContactData:
    """Return data of the total wrench of all contacts (m,) of each robot.

    The reference point is the force-weighted mean of their points; axes are those of the world.
    """
    c, robot = robots.touching, robots.touching.robot[chosen]
    force = np.einsum("kij,ki->kj", c.axes[chosen], sign[:, None] * c.force[chosen])
    weight = np.linalg.norm(force, axis=1)

    def total_of(x: Array) -> Array:
        """Return sums (robots, ..) over contacts."""
        sums = np.zeros((robots.robots, *x.shape[1:]))
        np.add.at(sums, robot, x)
        return sums

    point = total_of(weight[:, None] * c.point[chosen]) / np.maximum(total_of(weight), TINY)[:, None]
    torque, count = total_of(cross(c.point[chosen] - point[robot], force)), total_of(np.ones(len(robot)))
    x, y = (np.broadcast_to(axis, point.shape) for axis in np.eye(3)[:2])
    found = np.flatnonzero(count)
    values = count, total_of(force), torque, 0.0 * count, point, x, y
    data = {f: value[found] for f, value in zip(CONTACT_FIELDS, values, strict=False)}
    return found, 0 * found, data


# shapes


def rangefinder(robots: SensedRobots, g: Group) -> Array:
    """Return the distance along the site's z axis to the nearest shape that is not on the site's body; -1 without a hit.

    Other data of such a ray, and rays through each pixel of a camera, row by row, are also supported.
    """
    now, rays, fields = robots.now, robots.probes.rays, [fields_of(s.sensor) for s in g.sensors]
    own = [_rays_of(robots, s) for s in g.sensors]
    of_ray = np.repeat(np.arange(len(own)), [len(x) for x, _ in own])
    R, p = now.rotation(g.frame)[:, of_ray], now.origin(g.frame)[:, of_ray]
    starts, directions = (np.einsum("...ij,...j->...i", R, np.concatenate(x)) for x in zip(*own, strict=True))
    origins = p + starts
    given = now.q, origins, directions, [None if (f := g.sensors[k].frame) is None else f.body for k in of_ray]
    with_normals = any(SensorField.NORMAL in x for x in fields)
    distance, normals = rays.distances_and_normals(*given) if with_normals else (rays.distances(*given), directions)
    met, t = (distance >= 0.0)[..., None], distance[..., None]
    points = np.where(met, origins + t * directions, 0.0)
    on_camera = np.array([_on_camera(s) for s in g.sensors])[of_ray, None]
    depth = np.where(on_camera, -np.einsum("...i,...i->...", points - p, R[..., 2])[..., None], t)
    values = t, np.where(met, directions, 0.0), origins, points, np.where(met, normals, 0.0), np.where(met, depth, -1.0)
    data = dict(zip(FIELDS[K.RANGEFINDER], values, strict=True))
    found = [np.concatenate([data[f][:, of_ray == k] for f in x], axis=-1) for k, x in enumerate(fields)]
    return np.stack([x.reshape(robots.robots, -1) for x in found], axis=1)


def _on_camera(s: ModelSensor) -> bool:
    return s.sensor.on is not None and s.sensor.on.kind is SensedKind.CAMERA


def _rays_of(robots: SensedRobots, s: ModelSensor) -> tuple[Array, Array]:
    """Return origins and unit directions (rays, 3) of a sensor's rays, in its frame; cameras follow MuJoCo's convention."""
    if not _on_camera(s):
        return np.zeros((1, 3)), np.array([[0.0, 0.0, 1.0]])
    c = _camera_of(robots, s.sensor.on)
    width, height = c.resolution or (1, 1)
    row, column = (x.ravel() for x in np.mgrid[:height, :width] + 0.5)
    if c.orthographic:
        half = 0.5 * c.field_of_view
        origins = np.stack([(2.0 * column / width - 1.0) * half, (1.0 - 2.0 * row / height) * half, 0.0 * row], axis=-1)
        return origins, np.broadcast_to((0.0, 0.0, -1.0), origins.shape)
    (fx, fy), (x, y) = _focal_length(c), (0.5 * width, 0.5 * height)
    if c.sensor is not None:
        x, y = c.sensor.principal[0] / c.sensor.size[0] * width, c.sensor.principal[1] / c.sensor.size[1] * height
    directions = np.stack([(column - x) / fx, (y - row) / fy, np.full(len(row), -1.0)], axis=-1)
    return np.zeros(directions.shape), directions / np.linalg.norm(directions, axis=-1, keepdims=True)


def _distances(robots: SensedRobots, g: Group) -> tuple[Array, Array, Array]:
    """Return least distances (robots, sensors) between shapes, within cutoffs, with points (.., 2, 3) and normals (.., 3)."""
    pairs = [[(i, j) for i in s.shapes[0] for j in s.shapes[1] if i != j] for s in g.sensors]
    every = list(dict.fromkeys((min(p), max(p)) for each in pairs for p in each))
    queries = _queries(robots, tuple(every))
    reach = max(s.sensor.cutoff for s in g.sensors)
    found, points, normals = queries.distances(robots.now.q, reach)
    n = robots.robots
    least, ends = np.empty((n, len(g.sensors))), np.zeros((n, len(g.sensors), 2, 3))
    directions = np.zeros((n, len(g.sensors), 3))
    for k, (s, each) in enumerate(zip(g.sensors, pairs, strict=True)):
        columns = [every.index((min(p), max(p))) for p in each]
        swapped = np.array([p[0] > p[1] for p in each])
        best = found[:, columns].argmin(axis=1)
        column, row = np.array(columns)[best], np.arange(n)
        least[:, k] = np.minimum(found[row, column], s.sensor.cutoff)
        back = swapped[best][:, None]
        near = (found[row, column] < s.sensor.cutoff)[:, None]
        ends[:, k] = np.where(near[..., None], np.where(back[..., None], points[row, column, ::-1], points[row, column]), 0.0)
        directions[:, k] = np.where(near, np.where(back, -normals[row, column], normals[row, column]), 0.0)
    return least, ends, directions


def _queries(robots: SensedRobots, pairs: tuple[tuple[int, int], ...]) -> ShapeQueries:
    kept: dict[Any, ShapeQueries] = robots.probes.queries
    if pairs not in kept:
        kept[pairs] = ShapeQueries(robots.robot, pairs)
    return kept[pairs]


def shape_distance(robots: SensedRobots, g: Group) -> Array:
    return _distances(robots, g)[0][..., None]


def shape_normal(robots: SensedRobots, g: Group) -> Array:
    return _distances(robots, g)[2]


def shape_points(robots: SensedRobots, g: Group) -> Array:
    ends = _distances(robots, g)[1]
    return ends.reshape(*ends.shape[:2], 6)


# the whole system


def potential_energy(robots: SensedRobots, g: Group) -> Array:
    """Return the energy of gravity and springs, including bodies at rest on the ground."""
    fleet = robots.fleet
    energy = np.asarray(fleet.with_own_inertias(robots.robot.potential_energy, fleet.q))
    if robots.model.passive:
        energy = energy + fleet.spring_energy(fleet.q)
    still = sum(-float(np.dot(robots.gravity, tuple(p.inertia.moment))) for p in g.sensors[0].parts)
    return _of_all(robots, g, energy + still)


def kinetic_energy(robots: SensedRobots, g: Group) -> Array:
    fleet = robots.fleet
    return _of_all(robots, g, np.asarray(fleet.with_own_inertias(robots.robot.kinetic_energy, fleet.q, fleet.v)))


def clock(robots: SensedRobots, g: Group) -> Array:
    return _of_all(robots, g, robots.times)


def _of_all(robots: SensedRobots, g: Group, values: Array) -> Array:
    return np.broadcast_to(values[:, None, None], (robots.robots, len(g.sensors), 1))


def quaternions_of(R: Array) -> Array:
    """Return unit quaternions (..., 4), (w, x, y, z) with w >= 0, of rotations (..., 3, 3) (Shepperd 1978)."""
    q = quaternion_of_matrix(np.moveaxis(R, (-2, -1), (0, 1)))
    return np.stack([q.s, *q.u], axis=-1)


MEASURES: dict[SensorKind, Measure] = {
    K.TOUCH: touch,
    K.CONTACT: contact,
    K.ACCELEROMETER: accelerometer,
    K.VELOCIMETER: velocimeter,
    K.GYRO: gyro,
    K.FORCE: partial(of_interactions, which=0),
    K.TORQUE: partial(of_interactions, which=1),
    K.MAGNETOMETER: magnetometer,
    K.RANGEFINDER: rangefinder,
    K.CAMPROJECTION: camera_projection,
    K.JOINTPOS: partial(of_joints, rate=0),
    K.JOINTVEL: partial(of_joints, rate=1),
    K.ACTUATORPOS: partial(of_actuators, rate=0),
    K.ACTUATORVEL: partial(of_actuators, rate=1),
    K.ACTUATORFRC: actuator_force,
    K.JOINTACTUATORFRC: joint_actuator_force,
    K.BALLQUAT: ball_quaternion,
    K.BALLANGVEL: partial(of_joints, rate=1),
    K.JOINTLIMITPOS: partial(joint_limits, rate=0),
    K.JOINTLIMITVEL: partial(joint_limits, rate=1),
    K.JOINTLIMITFRC: joint_limit_force,
    K.TENDONPOS: partial(of_tendons, rate=0),
    K.TENDONVEL: partial(of_tendons, rate=1),
    K.TENDONACTUATORFRC: tendon_actuator_force,
    K.TENDONLIMITPOS: partial(tendon_limits, rate=0),
    K.TENDONLIMITVEL: partial(tendon_limits, rate=1),
    K.TENDONLIMITFRC: tendon_limit_force,
    K.FRAMEPOS: frame_position,
    K.FRAMEQUAT: frame_quaternion,
    K.FRAMEXAXIS: partial(frame_axis, k=0),
    K.FRAMEYAXIS: partial(frame_axis, k=1),
    K.FRAMEZAXIS: partial(frame_axis, k=2),
    K.FRAMELINVEL: frame_linear_velocity,
    K.FRAMEANGVEL: frame_angular_velocity,
    K.FRAMELINACC: frame_linear_acceleration,
    K.FRAMEANGACC: frame_angular_acceleration,
    K.SUBTREECOM: partial(of_subtrees, which=0),
    K.SUBTREELINVEL: partial(of_subtrees, which=1),
    K.SUBTREEANGMOM: partial(of_subtrees, which=2),
    K.INSIDESITE: inside_site,
    K.DISTANCE: shape_distance,
    K.NORMAL: shape_normal,
    K.FROMTO: shape_points,
    K.E_POTENTIAL: potential_energy,
    K.E_KINETIC: kinetic_energy,
    K.CLOCK: clock,
}
"""The function of each kind. A new kind needs a row here, in `SensorKind`, and in `model_sensors.DIMENSIONS`."""


def measured(robots: SensedRobots, groups: Sequence[Group] | None = None) -> Array:
    """Return readings (robots, nsensordata) of all sensors, or of some groups and zero else, without noise and cutoffs."""
    readings = np.zeros((robots.robots, robots.probes.size))
    for g in robots.probes.groups if groups is None else groups:
        readings[:, g.columns.ravel()] = MEASURES[g.kind](robots, g).reshape(robots.robots, -1)
    return readings


# noise and cutoffs

QUATERNIONS = (K.BALLQUAT, K.FRAMEQUAT)
DIRECTIONS = (K.FRAMEXAXIS, K.FRAMEYAXIS, K.FRAMEZAXIS, K.NORMAL)
NOT_NEGATIVE = (K.TOUCH, K.INSIDESITE)
NOISY = (SensorField.FORCE, SensorField.TORQUE, SensorField.DIST, SensorField.POS)
NOT_CLIPPED = (*QUATERNIONS, *DIRECTIONS, K.FROMTO, K.CONTACT)


def add_noise(readings: Array, sensors: Sequence[ModelSensor], rng: np.random.Generator) -> None:
    """Add Gaussian noise to readings (robots, nsensordata), with the file's standard deviation for each sensor.

    Directions keep unit length. Quaternions turn by a rotation vector whose components have that deviation. Nonnegative
    quantities stay nonnegative, and a rangefinder without a hit keeps its value.
    """
    for s in sensors:
        deviation = s.sensor.noise
        if not deviation > 0.0:
            continue
        x = readings[:, s.slice]
        noise = deviation * rng.standard_normal((len(x), 3 if s.kind in QUATERNIONS else s.dim))
        if s.kind in QUATERNIONS:
            x[:] = _turned_by(x, noise)
        elif s.kind in DIRECTIONS:
            there = x.any(axis=-1, keepdims=True)
            moved = x + noise
            x[:] = np.where(there, moved / np.linalg.norm(moved, axis=-1, keepdims=True), x)
        elif s.kind in FIELDS:
            _add_to_data(x, noise, s)
        else:
            x += noise
            if s.kind in NOT_NEGATIVE:
                np.maximum(x, 0.0, out=x)


def _add_to_data(x: Array, noise: Array, s: ModelSensor) -> None:
    """Add noise (robots, dim) to data of existing contacts, and to distances of rays with a hit."""
    fields, start = fields_of(s.sensor), 0
    shape = len(x), -1, sum(SIZES[f] for f in fields)
    rows, added = x.reshape(shape), noise.reshape(shape)
    there = rows.any(axis=-1, keepdims=True)
    for f in fields:
        part = slice(start, start + SIZES[f])
        y, more = rows[..., part], added[..., part]
        if s.kind is K.RANGEFINDER and f in (SensorField.DIST, SensorField.DEPTH):
            y[:] = np.where(y >= 0.0, np.maximum(y + more, 0.0), y)
        elif s.kind is K.CONTACT and f in NOISY:
            y += np.where(there, more, 0.0)
        start = part.stop
    x[:] = rows.reshape(x.shape)


def _turned_by(x: Array, turn: Array) -> Array:
    """Return quaternions (robots, 4), scalar first, rotated by rotation vectors (robots, 3) in their own axes."""
    angle = np.linalg.norm(turn, axis=-1, keepdims=True)
    w, u = np.cos(0.5 * angle), turn * (0.5 * np.sinc(0.5 * angle / np.pi))
    s, v = x[:, :1], x[:, 1:]
    return np.concatenate([s * w - (v * u).sum(-1, keepdims=True), s * u + w * v + cross(v, u)], axis=-1)


def clip(readings: Array, sensors: Sequence[ModelSensor]) -> None:
    """Clip readings to the sensors' cutoffs, except directions, quaternions and points."""
    for s in sensors:
        if s.sensor.cutoff > 0.0 and s.kind not in NOT_CLIPPED:
            x = readings[:, s.slice]
            np.clip(x, -s.sensor.cutoff, s.sensor.cutoff, out=x)
