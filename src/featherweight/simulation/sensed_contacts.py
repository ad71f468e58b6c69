"""Contacts of the last step as contact sensors see them, of all robots of a simulation."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..array_types import Array
from ..collision.collision_scene import CAPSULE, PLANE
from ..contact.laws import RIGID
from .sensed_robots import SensedRobots, cross

TINY = 1e-15
MUJOCO_ORDER = np.array((2, 3, 6, 5, 4, 7, 0, 1))  # MuJoCo's order of the kinds of `collision_scene`


class ContactsOfStep:
    """Contacts of the last step."""

    def __init__(self, robots: SensedRobots) -> None:
        self.robots, self.stage, self.fleet = robots, robots.probes.stage, robots.fleet
        self.then = robots.then

    @cached_property
    def contacts(self) -> SensedContacts:
        """All contacts of the last step."""
        found = self.fleet.spread_contacts(slice(None))
        counts = np.where(self.robots.rested, 0, found.counts)
        robot, k = np.nonzero(np.arange(found.candidate.shape[1]) < counts[:, None])
        candidate = found.candidate[robot, k]
        normals = self.fleet.contact_normals()[robot, k]
        sides = self.robots.probes.records.sides[candidate]
        force = found.impulse[robot, k] / self.robots.probes.records.step
        gaps = self.fleet.contact_gaps()[robot, k]
        return SensedContacts(robot, sides, found.point[robot, k], normals, force, candidate, gaps)

    @cached_property
    def touching(self) -> TouchingContacts:
        """Contacts of the last step by MuJoCo's definition: surfaces within their margin.

        Rigid contacts with an impulse count as well, because their surfaces meet within the step.
        """
        c, touching, scene = self.contacts, self.stage.touching, self.stage.scene
        rigid = self.stage.settings.law == RIGID
        pair = touching.pairs[c.candidate]
        parts, margin = scene.pair[pair], scene.margin[pair]
        kinds, shapes = MUJOCO_ORDER[scene.kind[parts]], touching.shapes[parts]
        swapped = scene.body[parts[:, 0]] < 0  # the world comes second
        kinds[swapped], shapes[swapped] = kinds[swapped, ::-1], shapes[swapped, ::-1]
        distance, plane = c.gap + margin, scene.kind[parts[:, 1]] == PLANE
        lift = 0.5 * np.where(plane, distance if rigid else margin, 0.0)
        point = c.point + (np.where(swapped, -lift, lift))[:, None] * c.normal
        back = (kinds[:, 0] > kinds[:, 1]) | ((kinds[:, 0] == kinds[:, 1]) & (shapes[:, 0] > shapes[:, 1]))
        sign = np.where(back, 1.0, -1.0)[:, None]  # MuJoCo's normal points from the first to the second
        sides = np.where(back[:, None], c.sides[:, ::-1], c.sides)
        shapes = np.where(back[:, None], shapes[:, ::-1], shapes)
        at = (distance <= margin) | (c.force.any(axis=1) if rigid else False)
        normal = sign * c.normal
        lying = np.flatnonzero(plane & (scene.kind[parts[:, 0]] == CAPSULE))
        tangent = tangents_of(normal)
        tangent[lying] = tangents_of(normal[lying], self._axes_of_parts(c.robot[lying], parts[lying, 0]))
        axes = np.stack([normal, tangent, cross(normal, tangent)], axis=1)
        ordered = np.where((back != swapped)[:, None], parts[:, ::-1], parts)
        found = c.robot, sides, shapes, ordered, point, distance, axes, np.einsum("kij,kj->ki", axes, sign * c.force)
        return TouchingContacts(*(x[at] for x in found))

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


class SensedContacts(NamedTuple):
    """k contacts of many robots."""

    robot: Array  # (k,)
    sides: Array  # (k, 2) touching links (for spheres, moving bodies); forces act on the first
    point: Array  # (k, 3) [m]
    normal: Array  # (k, 3)
    force: Array  # (k, 3) [N]
    candidate: Array  # (k,) index in `TouchingScene`
    gap: Array  # (k,) [m] gap minus margin


class TouchingContacts(NamedTuple):
    """k contacts of many robots between two objects, in MuJoCo's order."""

    robot: Array  # (k,)
    sides: Array  # (k, 2)
    shapes: Array  # (k, 2) numbers of the robot's shapes, -1 for others
    parts: Array  # (k, 2) numbers of the objects in the scene
    point: Array  # (k, 3) [m] midway between the surfaces
    distance: Array  # (k,) [m]
    axes: Array  # (k, 3, 3) rows: the normal to the second, and two tangents
    force: Array  # (k, 3) [N] on the second, along the axes


def tangents_of(normal: Array, near: Array | None = None) -> Array:
    """Return MuJoCo's first tangents (k, 3) of contacts for normals (k, 3).

    They are near the vectors `near` (k, 3), by default near y, or near z if the normal is near y.
    """
    if near is None:
        near = np.where(np.abs(normal[:, 1:2]) < 0.5, np.eye(3)[1], np.eye(3)[2])
    tangent = near - np.einsum("ki,ki->k", near, normal)[:, None] * normal
    length = np.linalg.norm(tangent, axis=1, keepdims=True)
    return np.asarray(np.where(length < TINY, np.eye(3)[0], tangent / np.maximum(length, TINY)))
