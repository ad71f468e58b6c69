"""Measures of sensors that the compiled loop leaves to Python; noise, delays, and the readings of a simulation.

Meanings, signs and units are MuJoCo's (XML reference, chapter "sensor").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Array, Booleans, Integers, Matrix, Tensor
from ...model.model import ModelSensor
from ...model.model_sensors import FIELDS, SIZES, fields_of
from ...model.types import Pose, SensedKind, SensorField, SensorKind
from ...robot.camera_placement import pixel_rays
from ...robot.collision.shape_queries import ShapeQueries
from ...robot.collision.shape_rays import RayPart, ShapeRays, ray_part
from ..fleet import Fleet, Inputs
from ..scene_building import ground_part
from .contact import ContactSensors
from .history import SensorHistory
from .plan import DIRECTIONS, QUATERNIONS, SensorPlan
from .sensed_robots import SensedRobots, SensorReadings, cross

Measure = Callable[[SensedRobots, ModelSensor], Array]
K = SensorKind


def contact(robots: SensedRobots, s: ModelSensor) -> Array:
    return robots.kept("contacts", partial(ContactSensors, robots)).read(s)


# rays


def rangefinder(robots: SensedRobots, s: ModelSensor) -> Array:
    """Return the distance along the site's z axis to the nearest shape that is not on the site's body; -1 without a hit.

    Other data of such a ray, and rays through each pixel of a camera, row by row, are also supported.
    """
    data, own = robots.kept("rays", partial(_data_of_rays, robots)), _rays(robots.plan).own[s.index]
    parts = [data[f][:, own] for f in fields_of(s.sensor)]
    return (np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]).reshape(robots.robots, -1)


class Rays(NamedTuple):
    origin: Matrix  # (rays, 3) in the frame of the sensor
    direction: Matrix  # (rays, 3) unit vectors
    frame: Integers  # (rays,) number of the frame
    body: list[str | None]  # the body whose shapes each ray ignores
    on_camera: Booleans  # (rays, 1)
    with_normals: bool
    own: dict[int, slice]  # the rays of each sensor, by its index


def _rays(plan: SensorPlan) -> Rays:
    """Return the rays of all sensors, which are found once."""
    if "sensed rays" not in plan.queries:
        sensors = [s for s in plan.sensors if s.kind is K.RANGEFINDER]
        own = [_rays_of(plan, s) for s in sensors]
        counts = [len(x) for x, _ in own]
        first, of_ray = np.cumsum([0, *counts]).tolist(), np.repeat(np.arange(len(own)), counts)
        origin, direction = (np.concatenate(x) for x in zip(*own, strict=True))
        plan.queries["sensed rays"] = Rays(
            origin, direction, np.array([plan.number(s.frame, s.sensor.on) for s in sensors])[of_ray],
            [None if (f := sensors[k].frame) is None else f.body for k in of_ray],
            np.array([_on_camera(s) for s in sensors])[of_ray, None],
            any(SensorField.NORMAL in s.sensor.data for s in sensors),
            {s.index: slice(*first[k : k + 2]) for k, s in enumerate(sensors)},
        )  # fmt: skip
    return plan.queries["sensed rays"]


def _data_of_rays(robots: SensedRobots) -> dict[SensorField, Array]:
    """Return the data (robots, rays, size) of the rays of all sensors."""
    every, shapes = _rays(robots.plan), _shapes_in_sight(robots.plan)
    T = robots.now.placement[:, every.frame]
    R, p = T[..., :3, :3], T[..., :3, 3]
    starts, directions = (np.einsum("...ij,...j->...i", R, x) for x in (every.origin, every.direction))
    origins = p + starts
    given = robots.now.q, origins, directions, every.body
    distance, normals = shapes.distances_and_normals(*given) if every.with_normals else (shapes.distances(*given), directions)
    met, t = (distance >= 0.0)[..., None], distance[..., None]
    points = np.where(met, origins + t * directions, 0.0)
    depth = np.where(every.on_camera, -np.einsum("...i,...i->...", points - p, R[..., 2])[..., None], t)
    values = t, np.where(met, directions, 0.0), origins, points, np.where(met, normals, 0.0), np.where(met, depth, -1.0)
    return dict(zip(FIELDS[K.RANGEFINDER], values, strict=True))


def _on_camera(s: ModelSensor) -> bool:
    return s.sensor.on is not None and s.sensor.on.kind is SensedKind.CAMERA


def _rays_of(plan: SensorPlan, s: ModelSensor) -> tuple[Array, Array]:
    """Return origins and unit directions (rays, 3) of a sensor's rays, in its frame."""
    return pixel_rays(plan.camera(s.sensor.on)) if _on_camera(s) else (np.zeros((1, 3)), np.array([[0.0, 0.0, 1.0]]))


def _shapes_in_sight(plan: SensorPlan) -> ShapeRays:
    """Return queries of rays to all visible shapes, and the ground."""
    if "rays" not in plan.queries:
        shapes = zip(plan.robot.shapes, plan.robot.model.shape_links, strict=True)
        parts = [ray_part(s, link) for s, link in shapes if s.color is None or s.color[3] > 0.0]
        if plan.ground is not None:
            part = ground_part(plan.ground)
            parts.append(RayPart(part.kind, None, None, Pose.of(part.placement, "the ground"), field=part.field))
        plan.queries["rays"] = ShapeRays(plan.robot, parts)
    return plan.queries["rays"]


# distances between shapes


def _nearest(robots: SensedRobots, s: ModelSensor) -> tuple[Array, Array, Array]:
    """Return the least distance (robots,) of shapes within the cutoff, with both points (.., 2, 3) and the normal (.., 3)."""
    pairs = [(i, j) for i in s.shapes[0] for j in s.shapes[1] if i != j]
    every = tuple(dict.fromkeys((min(p), max(p)) for p in pairs))
    if every not in robots.plan.queries:
        robots.plan.queries[every] = ShapeQueries(robots.robot, every)
    found, points, normals = robots.plan.queries[every].distances(robots.now.q, s.sensor.cutoff)
    columns, robot = np.array([every.index((min(p), max(p))) for p in pairs]), np.arange(robots.robots)
    best = found[:, columns].argmin(axis=1)
    at, back = (robot, columns[best]), np.array([p[0] > p[1] for p in pairs])[best][:, None]
    near = (found[at] < s.sensor.cutoff)[:, None]
    ends = np.where(near[..., None], np.where(back[..., None], points[at][:, ::-1], points[at]), 0.0)
    return np.minimum(found[at], s.sensor.cutoff), ends, np.where(near, np.where(back, -normals[at], normals[at]), 0.0)


def nearest(robots: SensedRobots, s: ModelSensor, which: int) -> Array:
    return robots.kept(("nearest", s.shapes, s.sensor.cutoff), partial(_nearest, robots, s))[which].reshape(robots.robots, -1)


# energies


def potential_energy(robots: SensedRobots, s: ModelSensor) -> Array:
    """Return the energy of gravity and springs, including bodies at rest on the ground."""
    fleet = robots.fleet
    energy = np.asarray(fleet.with_own_inertias(robots.robot.potential_energy, fleet.q))
    if robots.plan.model.passive:
        energy = energy + fleet.spring_energy(fleet.q)
    return np.asarray(energy - sum(float(np.dot(robots.robot.gravity, tuple(p.inertia.moment))) for p in s.parts))[:, None]


def kinetic_energy(robots: SensedRobots, s: ModelSensor) -> Array:
    fleet = robots.fleet
    return np.asarray(fleet.with_own_inertias(robots.robot.kinetic_energy, fleet.q, fleet.v))[:, None]


MEASURES: dict[SensorKind, Measure] = {
    K.CONTACT: contact,
    K.RANGEFINDER: rangefinder,
    K.DISTANCE: partial(nearest, which=0),
    K.FROMTO: partial(nearest, which=1),
    K.NORMAL: partial(nearest, which=2),
    K.E_POTENTIAL: potential_energy,
    K.E_KINETIC: kinetic_energy,
}
"""The function of each kind that returns the readings (robots, dim) of a sensor."""


def measure(robots: SensedRobots, apart: Sequence[ModelSensor]) -> Array:
    """Write the readings of all robots, clipped to their cutoffs, without noise and delays, and return them.

    The array (robots, nsensordata) belongs to `robots`. Only those sensors `apart` that the loop does not measure are measured.
    """
    robots.measure()
    for s in apart:
        robots.values[:, s.slice] = MEASURES[s.kind](robots, s)
    if robots.plan.clips:
        clip(robots.values, robots.plan.cutoffs)
    return robots.values


def clip(readings: Array, cutoffs: Array) -> None:
    """Clip readings (robots, nsensordata) to ±cutoffs; `numpy.clip` takes three times as long for one robot."""
    np.minimum(np.maximum(readings, -cutoffs, out=readings), cutoffs, out=readings)


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


class SimulatedSensors:
    """The sensors of the robots of a fleet. `history` has the samples of those that do not measure in each step, if any."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.sensors = fleet, fleet.plant.robot.sensors
        self._sampled = any(s.sensor.sampling is not None for s in self.sensors)
        self.history: SensorHistory | None = None

    def copied(self, fleet: Fleet) -> SimulatedSensors:
        other = SimulatedSensors(fleet)
        other.history = self.history and self.history.copy()
        return other

    @cached_property
    def robots(self) -> SensedRobots:
        """The robots as the sensors see them."""
        plant = self.fleet.plant
        return SensedRobots(SensorPlan(plant.model, plant.contacts, plant.ground), self.fleet)

    def begin(self, robots: int, time: float) -> None:
        """Forget all samples."""
        self.history = SensorHistory(self.sensors, robots, self.fleet.model.h, time) if self._sampled else None

    def readings(self, noise: np.random.Generator | None) -> SensorReadings:
        """Return readings of all sensors, (nsensordata,) or (robots, nsensordata)."""
        robots, single = self.robots, self.fleet.single
        measure(robots, robots.plan.apart)
        if noise is None and self.history is None:
            return (robots.first if single else robots.readings).copy()
        readings = robots.values.copy()
        if self.history is not None:
            self.history.delay(self.fleet.times, readings)
        if noise is not None:
            add_noise(readings, self.sensors, noise)
            clip(readings, robots.plan.cutoffs)
        return SensorReadings(readings[0] if single else readings, robots.plan.names)

    def measured(self, sensors: Sequence[ModelSensor]) -> Array:
        """Return readings (robots, nsensordata) of some sensors and zero for others, without noise and delays."""
        plan = self.robots.plan
        readings = np.zeros((len(self.fleet.q), len(plan.cutoffs)))
        if sensors:
            measured = measure(self.robots, [s for s in plan.apart if s in sensors])
            for s in sensors:
                readings[:, s.slice] = measured[:, s.slice]
        return readings

    def roll_out(
        self, steps: int, inputs: Inputs, every: int, out: tuple[Tensor, Tensor] | None
    ) -> tuple[tuple[Tensor, Tensor], Booleans]:
        """Take steps as `Fleet.roll_out` does, and store samples; return the states, and which robots failed."""
        fleet, robots = self.fleet, len(self.fleet.q)
        q, v = out or (np.empty((robots, 1 + steps // every, x.shape[1])) for x in (fleet.q, fleet.v))
        q[:, 0], v[:, 0], failed = fleet.q, fleet.v, np.zeros(robots, bool)
        for k in range(steps):
            self._sample_step(*(None if x is None else np.broadcast_to(x[:, k], (robots, *x.shape[2:])) for x in inputs))
            failed |= fleet.failed
            if (k + 1) % every == 0:
                q[:, (k + 1) // every], v[:, (k + 1) // every] = fleet.q, fleet.v
        return (q, v), failed

    def sample(self, tau: Any, control: Any, external: Any, steps: int) -> None:
        for _ in range(steps):
            self._sample_step(tau, control, external)

    def _sample_step(self, tau: Any, control: Any, external: Any) -> None:
        """Take a step, and store the samples of its start and of the step. If anything interrupts it, nothing changes."""
        assert self.history is not None
        fleet, began, history = self.fleet, self.fleet.times, self.history.copy()
        readings, backup = self.measured(history.due(began, of_step=False)), fleet.backup()
        try:
            fleet.step(tau, control, external)
            of_step = self.measured(history.due(began, of_step=True))
            history.insert(began, readings + of_step, ~fleet.failed)  # for each sensor one of the two is zero
            if fleet.on_failure == "reset" and fleet.failed.any():
                history.begin(fleet.failed, fleet.times[fleet.failed])
            self.history = history
        except BaseException:
            fleet.restore(backup)
            raise
