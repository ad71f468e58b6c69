"""Sensors of contacts, rays, distances and energies, which the compiled loop does not measure; noise and cutoffs.

Meanings, signs and units are MuJoCo's (XML reference, chapter "sensor").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..array_types import Array
from ..model.model import ModelSensor
from ..model.model_sensors import FIELDS, SIZES, fields_of
from ..model.types import ContactReduction, SensedKind, SensorField, SensorKind
from ..robot.collision.shape_queries import ShapeQueries
from ..spatial.lie import quaternion_of_matrix
from .sensed_contacts import TINY, ContactsOfStep
from .sensed_robots import Group, SensedRobots, cross
from .sensor_plan import DIRECTIONS, QUATERNIONS, focal_length
from .sensor_zones import are_inside, zones_of

Measure = Callable[[SensedRobots, Group], Array]
K = SensorKind
CONTACT_FIELDS = FIELDS[K.CONTACT]


# contacts


def contacts_of(robots: SensedRobots) -> ContactsOfStep:
    return robots.kept("contacts", partial(ContactsOfStep, robots))


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
    c, ends = contacts_of(robots).touching, (s.sensor.on, s.sensor.reference)
    at, numbers = np.ones(len(c.robot), bool), robots.probes.plan.links
    if s.sensor.zone is not None:
        T = robots.then.placement[c.robot, frame]
        points = np.einsum("kji,kj->ki", T[:, :3, :3], c.point - T[:, :3, 3])
        are_inside(zones_of([s.sensor.zone]), points, at)
    match = []  # (k, 2) for each end of the sensor
    for links, shapes in zip(s.links, s.shapes, strict=True):
        if links:
            match.append(np.isin(c.sides, [numbers[x] for x in links if x in numbers]))
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
    c, how = contacts_of(robots).touching, s.sensor.reduction
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
        linear, angular = np.moveaxis(contacts_of(robots).sliding[chosen], 1, 0)
        data |= {SensorField.LINVEL: turned * linear, SensorField.ANGVEL: turned * angular}
    return robot[kept], slot[kept], data


def _net_force(robots: SensedRobots, chosen: Array, sign: Array, s: ModelSensor) -> ContactData:
    """Return data of the total wrench of all contacts (m,) of each robot.

    The reference point is the force-weighted mean of their points; axes are those of the world.
    """
    c = contacts_of(robots).touching
    robot = c.robot[chosen]
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
    T = now.placement[:, g.frame][:, of_ray]
    R, p = T[..., :3, :3], T[..., :3, 3]
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
    c = robots.probes.plan.camera(s.sensor.on)
    width, height = c.resolution or (1, 1)
    row, column = (x.ravel() for x in np.mgrid[:height, :width] + 0.5)
    if c.orthographic:
        half = 0.5 * c.field_of_view
        origins = np.stack([(2.0 * column / width - 1.0) * half, (1.0 - 2.0 * row / height) * half, 0.0 * row], axis=-1)
        return origins, np.broadcast_to((0.0, 0.0, -1.0), origins.shape)
    (fx, fy), (x, y) = focal_length(c), (0.5 * width, 0.5 * height)
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
    if robots.probes.model.passive:
        energy = energy + fleet.spring_energy(fleet.q)
    still = sum(-float(np.dot(robots.robot.gravity, tuple(p.inertia.moment))) for p in g.sensors[0].parts)
    return _of_all(robots, g, energy + still)


def kinetic_energy(robots: SensedRobots, g: Group) -> Array:
    fleet = robots.fleet
    return _of_all(robots, g, np.asarray(fleet.with_own_inertias(robots.robot.kinetic_energy, fleet.q, fleet.v)))


def _of_all(robots: SensedRobots, g: Group, values: Array) -> Array:
    return np.broadcast_to(values[:, None, None], (robots.robots, len(g.sensors), 1))


def quaternions_of(R: Array) -> Array:
    """Return unit quaternions (..., 4), (w, x, y, z) with w >= 0, of rotations (..., 3, 3) (Shepperd 1978)."""
    q = quaternion_of_matrix(np.moveaxis(R, (-2, -1), (0, 1)))
    return np.stack([q.s, *q.u], axis=-1)


MEASURES: dict[SensorKind, Measure] = {
    K.CONTACT: contact,
    K.RANGEFINDER: rangefinder,
    K.DISTANCE: shape_distance,
    K.NORMAL: shape_normal,
    K.FROMTO: shape_points,
    K.E_POTENTIAL: potential_energy,
    K.E_KINETIC: kinetic_energy,
}
"""The function of each kind that returns readings (robots, sensors, dim) of the sensors of the kind."""


def measure(robots: SensedRobots, sensors: Sequence[ModelSensor] | None = None) -> Array:
    """Write the readings of all robots, clipped to their cutoffs, without noise and delays, and return them.

    The array (robots, nsensordata) belongs to `robots`. Of kinds that the loop does not measure, only `sensors` are measured.
    """
    probes = robots.probes
    robots.measure()
    for g in probes.groups if sensors is None else probes.groups_of(sensors):
        robots.values[:, g.columns.ravel()] = MEASURES[g.kind](robots, g).reshape(robots.robots, -1)
    if probes.clips:
        np.clip(robots.values, -probes.cutoffs, probes.cutoffs, out=robots.values)
    return robots.values


# noise

NOT_NEGATIVE = (K.TOUCH, K.INSIDESITE)
NOISY = (SensorField.FORCE, SensorField.TORQUE, SensorField.DIST, SensorField.POS)


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
