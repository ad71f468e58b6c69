"""Contact sensors: data of the contacts of the last step that match."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...array_types import Array
from ...collision.collision_scene import CAPSULE, PLANE
from ...contact.laws import RIGID
from ...model.model import ModelSensor
from ...model.model_sensors import FIELDS, SIZES, fields_of
from ...model.types import ContactReduction, SensorField, SensorKind
from .records import are_inside, zones_of
from .sensed_robots import SensedRobots, cross

TINY = 1e-15
MUJOCO_ORDER = np.array((2, 3, 6, 5, 4, 7, 0, 1))  # MuJoCo's order of the kinds of `collision_scene`
CONTACT_FIELDS = FIELDS[SensorKind.CONTACT]

ContactData = tuple[Array, Array, dict[SensorField, Array]]
"""Robots and slots (n,) of contacts, and their data by field."""


class TouchingContacts(NamedTuple):
    """k contacts of many robots between two objects, in MuJoCo's order."""

    robot: Array  # (k,)
    sides: Array  # (k, 2) touching links (for spheres, moving bodies)
    shapes: Array  # (k, 2) numbers of the robot's shapes, -1 for others
    parts: Array  # (k, 2) numbers of the objects in the scene
    point: Array  # (k, 3) [m] midway between the surfaces
    distance: Array  # (k,) [m]
    axes: Array  # (k, 3, 3) rows: the normal to the second, and two tangents
    force: Array  # (k, 3) [N] on the second, along the axes


class ContactSensors:
    """Contacts of the last step of all robots, as contact sensors see them."""

    def __init__(self, robots: SensedRobots) -> None:
        self.robots, self.stage, self.then = robots, robots.plan.stage, robots.then

    def read(self, s: ModelSensor) -> Array:
        """Return data (robots, dim) of some of the matching contacts; see `ContactReduction`."""
        chosen, sign = self._matching(s)
        data = self._net_force if s.sensor.reduction is ContactReduction.NETFORCE else self._of_contacts
        robot, slot, found = data(chosen, sign, s)
        rows = np.concatenate([found[f].reshape(-1, SIZES[f]) for f in fields_of(s.sensor)], axis=1)
        result = np.zeros((self.robots.robots, s.sensor.slots, rows.shape[1]))
        result[robot, slot] = rows
        return result.reshape(len(result), -1)

    def _matching(self, s: ModelSensor) -> tuple[Array, Array]:
        """Return numbers (n,) of the contacts between both ends of a sensor, and the signs (n,) of their normals."""
        c, ends = self.touching, (s.sensor.on, s.sensor.reference)
        at, numbers = np.ones(len(c.robot), bool), self.robots.plan.links
        if s.sensor.zone is not None:
            T = self.then.placement[c.robot, self.robots.plan.number(s.frame)]
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

    def _of_contacts(self, chosen: Array, sign: Array, s: ModelSensor) -> ContactData:
        """Return data of the first contacts among (m,) for each robot, in order, with their normals times `sign` (m,)."""
        c, how = self.touching, s.sensor.reduction
        if how is not ContactReduction.NONE:
            key = c.distance if how is ContactReduction.MINDIST else -(c.force**2).sum(axis=1)
            order = np.lexsort((key[chosen], c.robot[chosen]))
            chosen, sign = chosen[order], sign[order]
        robot = c.robot[chosen]  # in ascending order
        slot = np.arange(len(robot)) - np.searchsorted(robot, robot)
        kept = slot < s.sensor.slots
        count = np.bincount(robot, minlength=self.robots.robots)[robot]
        chosen, sign = chosen[kept], sign[kept, None]
        turned = np.concatenate([np.ones((len(sign), 2)), sign], axis=1)  # rotates by half a turn about the second tangent
        normal, tangent, _ = np.moveaxis(c.axes[chosen], 1, 0)
        force, distance = turned * c.force[chosen], c.distance[chosen]
        values = count[kept], force, 0.0 * force, distance, c.point[chosen], sign * normal, sign * tangent
        data = dict(zip(CONTACT_FIELDS, values, strict=False))
        if {SensorField.LINVEL, SensorField.ANGVEL} & {*s.sensor.data}:
            linear, angular = np.moveaxis(self.sliding[chosen], 1, 0)
            data |= {SensorField.LINVEL: turned * linear, SensorField.ANGVEL: turned * angular}
        return robot[kept], slot[kept], data

    def _net_force(self, chosen: Array, sign: Array, s: ModelSensor) -> ContactData:
        """Return data of the total wrench of all contacts (m,) of each robot.

        The reference point is the force-weighted mean of their points; axes are those of the world.
        """
        c, robot = self.touching, self.touching.robot[chosen]
        force = np.einsum("kij,ki->kj", c.axes[chosen], sign[:, None] * c.force[chosen])
        weight = np.linalg.norm(force, axis=1)

        def total_of(x: Array) -> Array:
            """Return sums (robots, ..) over contacts."""
            sums = np.zeros((self.robots.robots, *x.shape[1:]))
            np.add.at(sums, robot, x)
            return sums

        point = total_of(weight[:, None] * c.point[chosen]) / np.maximum(total_of(weight), TINY)[:, None]
        torque, count = total_of(cross(c.point[chosen] - point[robot], force)), total_of(np.ones(len(robot)))
        x, y = (np.broadcast_to(axis, point.shape) for axis in np.eye(3)[:2])
        found = np.flatnonzero(count)
        values = count, total_of(force), torque, 0.0 * count, point, x, y
        data = {f: value[found] for f, value in zip(CONTACT_FIELDS, values, strict=False)}
        return found, 0 * found, data

    @cached_property
    def touching(self) -> TouchingContacts:
        """Contacts of the last step by MuJoCo's definition: surfaces within their margin.

        Rigid contacts with an impulse count as well, because their surfaces meet within the step.
        """
        touching, scene, rigid = self.stage.touching, self.stage.scene, self.stage.settings.law == RIGID
        found, stored = self.robots.fleet.spread_contacts(slice(None)), self.robots.home.contacts
        records = self.robots.plan.records
        counts = np.where(self.robots.rested, 0, found.counts)
        at = robot, _ = np.nonzero(np.arange(found.candidate.shape[1]) < counts[:, None])
        candidate, force, normal = found.candidate[at], found.impulse[at] / records.step, stored.normal[at]
        pair = touching.pairs[candidate]
        parts, margin = scene.pair[pair], scene.margin[pair]
        kinds, shapes = MUJOCO_ORDER[scene.kind[parts]], touching.shapes[parts]
        swapped = scene.body[parts[:, 0]] < 0  # the world comes second
        kinds[swapped], shapes[swapped] = kinds[swapped, ::-1], shapes[swapped, ::-1]
        distance, plane = stored.gap[at] + margin, scene.kind[parts[:, 1]] == PLANE
        lift = 0.5 * np.where(rigid & (scene.kind[parts[:, 1]] >= PLANE), stored.gap[at], 0.0)
        point = found.point[at] + (np.where(swapped, -lift, lift))[:, None] * normal
        back = (kinds[:, 0] > kinds[:, 1]) | ((kinds[:, 0] == kinds[:, 1]) & (shapes[:, 0] > shapes[:, 1]))
        sign = np.where(back, 1.0, -1.0)[:, None]  # MuJoCo's normal points from the first to the second
        sides = np.where(back[:, None], records.sides[candidate][:, ::-1], records.sides[candidate])
        shapes = np.where(back[:, None], shapes[:, ::-1], shapes)
        near = (distance <= margin) | (force.any(axis=1) if rigid else False)
        normal = sign * normal
        lying = np.flatnonzero(plane & (scene.kind[parts[:, 0]] == CAPSULE))
        tangent = tangents_of(normal)
        tangent[lying] = tangents_of(normal[lying], self._axes_of_parts(robot[lying], parts[lying, 0]))
        axes = np.stack([normal, tangent, cross(normal, tangent)], axis=1)
        ordered = np.where((back != swapped)[:, None], parts[:, ::-1], parts)
        force = np.einsum("kij,kj->ki", axes, sign * force)
        return TouchingContacts(*(x[near] for x in (robot, sides, shapes, ordered, point, distance, axes, force)))

    @cached_property
    def sliding(self) -> Array:
        """Return velocities (k, 2, 3) of the second relative to the first of `touching`, linear and angular, along the axes."""
        c, stage = self.touching, self.stage
        body = stage.scene.body[c.parts]
        if stage.body_placements is None or not len(body):
            return np.zeros((len(body), 2, 3))
        T, v = (np.asarray(x) for x in (stage.body_placements(self.then.q), stage.body_velocities(self.then.q, self.then.v)))
        at = c.robot[:, None], np.maximum(body, 0)
        linear, angular = (np.einsum("ksij,ksj->ksi", T[at][..., :3, :3], x) for x in (v[at][..., :3], v[at][..., 3:]))
        linear = linear + cross(angular, c.point[:, None] - T[at][..., :3, 3])
        both = np.stack([linear, angular], axis=2) * (body >= 0)[..., None, None]
        return np.asarray(np.einsum("kij,knj->kni", c.axes, both[:, 1] - both[:, 0]))

    def _axes_of_parts(self, robot: Array, part: Array) -> Array:
        """Return the z axes (k, 3) of touching parts, in the world frame, at the start of the last step."""
        body, axes = self.stage.scene.body[part], self.stage.scene.placement[part][:, [2, 5, 8]]
        if self.stage.body_placements is None or not len(part):
            return axes
        R = np.asarray(self.stage.body_placements(self.then.q))[robot, np.maximum(body, 0), :3, :3]
        return np.where((body >= 0)[:, None], np.einsum("kij,kj->ki", R, axes), axes)


def tangents_of(normal: Array, near: Array | None = None) -> Array:
    """Return MuJoCo's first tangents (k, 3) of contacts for normals (k, 3).

    They are near the vectors `near` (k, 3), by default near y, or near z if the normal is near y.
    """
    if near is None:
        near = np.where(np.abs(normal[:, 1:2]) < 0.5, np.eye(3)[1], np.eye(3)[2])
    tangent = near - np.einsum("ki,ki->k", near, normal)[:, None] * normal
    length = np.linalg.norm(tangent, axis=1, keepdims=True)
    return np.asarray(np.where(length < TINY, np.eye(3)[0], tangent / np.maximum(length, TINY)))
