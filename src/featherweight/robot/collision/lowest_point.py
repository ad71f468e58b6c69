"""The lowest point of a robot's shapes, and configurations that place it on the ground."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...array_types import Array
from ...collision.collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HULL
from ...collision.shape_parts import shape_part
from ...model.model import MovingJoint
from ...model.types import JointType, Shape, ShapeType
from ...names import UnknownNameError, choose_from
from ..frame_functions import frame_placement
from ..system import System


def floating_root(robot: System, name: str | None) -> MovingJoint:
    """Return the free joint between the world and a robot; `name` selects one of several.

    Raises ValueError if there is none, or if there are several and no name.
    """
    free = [j for j in robot.joints if j.type is JointType.FLOATING and j.parent is None]
    if name is not None:
        found = next((j for j in free if j.name == name), None)
        if found is None:
            raise UnknownNameError(f"{robot.name} has no free joint {choose_from(name, [j.name for j in free])} at the world")
        return found
    if not free:
        raise ValueError(f"{robot.name}: its base does not float, so it cannot be moved to the ground (base='floating')")
    if len(free) > 1:
        names = ", ".join(repr(j.name) for j in free)
        raise ValueError(f"{robot.name} has several free joints, {names}: select one with root=")
    return free[0]


def shapes_below(robot: System, root: MovingJoint) -> list[Shape]:
    """Return the collision shapes that a joint carries, or its visual shapes if the robot has no collision shapes.

    Raises ValueError if the joint carries none.
    """
    below = {root.child}
    for j in robot.joints:  # parents first
        if j.parent in below:
            below.add(j.child)
    own = [s for s in robot.shapes if s.body in below and s.type not in (ShapeType.PLANE, ShapeType.HEIGHTFIELD)]
    shapes = [s for s in own if s.collision] or [s for s in own if s.visual]
    if not shapes:
        raise ValueError(f"{robot.name}: no body that {root.name!r} carries has a shape, so it has no lowest point")
    return shapes


class LowestPoint:
    """The height of the lowest point of what a free joint carries, and configurations that place it at a height."""

    def __init__(self, robot: System, root: MovingJoint) -> None:
        shapes = shapes_below(robot, root)
        self._robot: Any = robot
        self._start = root.v_slice.start
        self._root = frame_placement(robot, root.child)
        parts = [shape_part(shape) for shape in shapes]
        bodies: list[Any] = list(dict.fromkeys(s.body for s in shapes))
        self._placements = frame_placement(robot, bodies)
        self._bodies = np.array([bodies.index(s.body) for s in shapes])
        self._parts = np.array([part.placement for part in parts])
        kinds = {part.kind for part in parts} - {HULL}
        self._groups = [(kind, np.array([k for k, part in enumerate(parts) if part.kind == kind])) for kind in sorted(kinds)]
        self._sizes = np.array([part.size for part in parts])
        self._hulls = [(k, part.hull.vertices.T) for k, part in enumerate(parts) if part.kind == HULL]

    def height(self, q: Array) -> Array:
        """Return the height [m] (...) of the lowest point at q (..., nq)."""
        rows = self._placements(q)[..., self._bodies, 2:3, :]  # the third row of each body's placement
        up = (rows @ self._parts)[..., 0, :]  # (..., shapes, 4): the vertical in the shape's frame, and its origin's height
        lowest = np.empty(up.shape[:-1])
        for kind, members in self._groups:
            reach = reach_down(kind, self._sizes[members], up[..., members, :3])
            lowest[..., members] = up[..., members, 3] - reach
        for k, vertices in self._hulls:
            lowest[..., k] = up[..., k, 3] + (up[..., k, :3] @ vertices).min(axis=-1)
        return np.asarray(lowest.min(axis=-1))

    def lifted(self, q: Array, height: float) -> Array:
        """Return q (..., nq) with the joint moved along the world's z axis so that the lowest point is at a height [m]."""
        way = height - self.height(q)
        v = np.zeros((*q.shape[:-1], self._robot.nv))
        # the linear velocity in the body's frame
        v[..., self._start : self._start + 3] = self._root(q)[..., 2, :3] * way[..., None]
        return np.asarray(self._robot.integrate(q, v))


def reach_down(kind: int, size: Array, up: Array) -> Array:
    """Return the distances (..., shapes) from origins down to lowest points, of shapes of one kind.

    `size` (shapes, 3) are the numbers of their `ShapePart`, and `up` (..., shapes, 3) the vertical in their frames.
    """
    a, b = size[:, 0], size[:, 1]
    if kind == BOX:
        return np.asarray((np.abs(up) * size).sum(axis=-1))
    if kind == CAPSULE:
        return np.asarray(a + b * np.abs(up[..., 2]))
    if kind == CYLINDER:
        return np.asarray(b * np.abs(up[..., 2]) + a * np.hypot(up[..., 0], up[..., 1]))
    if kind == ELLIPSOID:
        return np.asarray(np.linalg.norm(up * size, axis=-1))
    return np.broadcast_to(a, up.shape[:-1])
