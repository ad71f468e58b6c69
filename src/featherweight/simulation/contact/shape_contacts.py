"""Contacts of a robot's shapes with each other and with the ground, by the library coal (an extra).

What touches a plane at known points does so as points and spheres (`standins`). Everything else, shapes against shapes and
round or hull-shaped ones against a plane, is a pair for coal: where two convex shapes come near, the polygon of their contact
patch gives the points. Pairs are those that may collide (`pairs_that_may_touch`); shapes that overlap from the beginning do
not touch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...model.types import WORLD, Shape, ShapeType
from ...robot.collision.geometries import geometry_of, geometry_placement, import_coal
from ...robot.collision.shape_pairs import pairs_that_may_touch
from ...robot.robot import Robot
from ..scene import Ground, Plane, Sphere
from .contact_model import SurfaceValues
from .detection import ContactPoints
from .standins import stand_ins

Array = np.ndarray[Any, np.dtype[Any]]

ROOM = 8  # contacts of one pair
PATCH = 1e-5  # [m] what lies within it of a contact's plane is of its patch
OVERLAP = 1e-3  # [m] at the beginning, from which on two shapes are taken for parts of one
EXACT_ON_A_PLANE = (ShapeType.SPHERE, ShapeType.CAPSULE, ShapeType.BOX)


class ShapeContacts:
    """Pairs of shapes, and their contacts in a step."""

    def __init__(self, robot: Robot, ground: Ground | None, pairs: Iterable[tuple[str, str]] | None = None) -> None:
        coal = self._coal = import_coal("contacts of shapes")
        used = [k for k, s in enumerate(robot.shapes) if s.collision and s.type is not ShapeType.PLANE]
        self.shapes = [robot.shapes[k] for k in used]
        self.bodies = list(dict.fromkeys(s.body for s in self.shapes if s.body is not None))
        self._geometry = [geometry_of(coal, s) for s in self.shapes]
        self._radius = np.array([float(g.aabb_radius) for g in self._geometry])
        self._center = np.array(
            [_in_body(s, np.array(g.aabb_center)) for s, g in zip(self.shapes, self._geometry, strict=True)]
        )
        wanted = None if pairs is None else {frozenset(p) for p in pairs}
        number = {k: n for n, k in enumerate(used)}
        candidates = [
            (number[i], number[j])
            for i, j in pairs_that_may_touch(robot)
            if i in number
            and j in number
            and (wanted is None or frozenset((robot.shapes[i].body, robot.shapes[j].body)) in wanted)
        ]
        grounded = [k for k, s in enumerate(self.shapes) if s.body is not None and s.type not in EXACT_ON_A_PLANE]
        if isinstance(ground, Plane):
            self._geometry.append(coal.Halfspace(np.array(ground.normal), float(np.dot(ground.normal, ground.point))))
            candidates += [(k, len(self.shapes)) for k in grounded]
        self.pairs = np.array(candidates, dtype=np.int64).reshape(-1, 2)
        self._left_out: set[int] = set()
        self._plane = ground if isinstance(ground, Plane) else None
        self._request = coal.CollisionRequest()
        self._request.enable_contact = True
        self._patch_request = coal.ContactPatchRequest()
        self._patch_request.setPatchTolerance(PATCH)

    def points(self, ground: Ground | None) -> list[Sphere]:
        """Points and spheres for what touches the ground at known ones, and for all shapes on a height field."""
        if ground is None:
            return []
        plane = isinstance(ground, Plane)
        standing = [(s.body, s) for s in self.shapes if s.body is not None and (not plane or s.type in EXACT_ON_A_PLANE)]
        return [sphere for body, shape in standing for sphere in stand_ins(shape, body)]

    def surfaces(self, ground: Ground | None) -> list[tuple[SurfaceValues, SurfaceValues]]:
        """Friction and restitution of both sides of each candidate for contact."""
        under = (ground.friction, ground.restitution) if ground is not None else (None, None)
        sides = [*((s.friction, None) for s in self.shapes), under]
        return [(sides[i], sides[j]) for i, j in self.pairs for _ in range(ROOM)]

    def names(self) -> list[str]:
        """What touches, for each candidate."""
        of = [f"the shape {s.name!r} on {s.body or WORLD!r}" for s in self.shapes]
        texts = [of[i] if j == len(of) else f"{of[i]} and {of[j]}" for i, j in self.pairs]
        return [text for text in texts for _ in range(ROOM)]

    def apart(self, placement: Array, number: dict[str, int]) -> None:
        """Leave out pairs of shapes that overlap, given the placements (bodies, 4, 4)."""
        near = [(k, r.getContact(0).penetration_depth) for k, r, _ in self._near(placement, number, 0.0)]
        self._left_out = {k for k, gap in near if gap < -OVERLAP and self.pairs[k, 1] < len(self.shapes)}

    def add(
        self, placement: Array, number: dict[str, int], reach: float, first: int, contacts: ContactPoints, count: int
    ) -> int:
        """Append contacts with gaps below `reach` to one robot's; how many there are then.

        `number` is that of each body that may touch, `first` the number of the first candidate.
        """
        for k, result, pose in self._near(placement, number, reach):
            if k in self._left_out:
                continue
            i, j = (int(x) for x in self.pairs[k])
            contact = result.getContact(0)
            normal = -np.array(contact.normal)  # coal's leads from the first to the second
            patches = self._coal.ContactPatchResult()
            one, other = self._geometry[i], self._geometry[j]
            self._coal.computeContactPatch(one, pose[i], other, pose[j], result, self._patch_request, patches)
            points = [np.array(contact.pos)]
            if patches.numContactPatches():
                patch = patches.getContactPatch(0)
                points = [np.array(patch.getPoint(n)) for n in range(patch.size())] or points
            for slot, x in enumerate(_spread(points)):
                contacts.candidate[count] = first + ROOM * k + slot
                contacts.a[count] = self._number_of(i, number)
                contacts.b[count] = self._number_of(j, number)
                contacts.point[count], contacts.normal[count], contacts.gap[count] = x, normal, contact.penetration_depth
                count += 1
        return count

    def _number_of(self, k: int, number: dict[str, int]) -> int:
        """The number of the body of a geometry; -1 for the ground."""
        body = None if k == len(self.shapes) else self.shapes[k].body
        return -1 if body is None else number[body]

    def _near(self, placement: Array, number: dict[str, int], reach: float) -> Any:
        """Pairs with gaps below `reach`: their numbers, coal's results, and the poses of all shapes."""
        coal = self._coal
        whole = [np.eye(4) if s.body is None else placement[number[s.body]] for s in self.shapes]
        centers = np.array([T[:3, :3] @ c + T[:3, 3] for T, c in zip(whole, self._center, strict=True)]).reshape(-1, 3)
        poses: dict[int, Any] = {}
        self._request.security_margin = reach
        i, j = self.pairs.T
        last = len(self.shapes)
        other = np.minimum(j, last - 1)
        near = np.linalg.norm(centers[i] - centers[other], axis=1) < self._radius[i] + self._radius[other] + reach
        if self._plane is not None:
            n, p = np.array(self._plane.normal), np.array(self._plane.point)
            near = np.where(j == last, (centers[i] - p) @ n < self._radius[i] + reach, near)
        poses[last] = coal.Transform3s()
        for k in np.flatnonzero(near):
            for s in (int(i[k]), int(j[k])):
                if s not in poses:
                    poses[s] = coal.Transform3s(*_rotation_and_position(self.shapes[s], whole[s]))
            result = coal.CollisionResult()
            one, two = self._geometry[int(i[k])], self._geometry[int(j[k])]
            if coal.collide(one, poses[int(i[k])], two, poses[int(j[k])], self._request, result):
                yield int(k), result, poses


def _rotation_and_position(shape: Shape, body: Array) -> tuple[Array, Array]:
    """Rotation and position of the frame of a shape's geometry in the world."""
    placement = geometry_placement(shape)
    return body[:3, :3] @ np.array(placement.R), body[:3, :3] @ np.array(placement.p) + body[:3, 3]


def _in_body(shape: Shape, x: Array) -> Array:
    R, p = _rotation_and_position(shape, np.eye(4))
    return np.asarray(R @ x + p)


def _spread(points: Sequence[Array]) -> list[Array]:
    """At most `ROOM` of the corners of a polygon."""
    if len(points) <= ROOM:
        return list(points)
    return [points[(k * len(points)) // ROOM] for k in range(ROOM)]
