"""The lowest point of a robot's shapes, and configurations that place it on the ground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...array_types import Array
from ...collision.collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HULL
from ...collision.shape_parts import ShapePart, shape_part
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
    carried = {root.child}
    for j in robot.joints:  # parents first
        if j.parent in carried:
            carried.add(j.child)
    own = [s for s in robot.shapes if s.body in carried and s.type not in (ShapeType.PLANE, ShapeType.HEIGHTFIELD)]
    shapes = [s for s in own if s.collision] or [s for s in own if s.visual]
    if not shapes:
        raise ValueError(f"{robot.name}: no body that {root.name!r} carries has a shape, so it has no lowest point")
    return shapes


def lowest_point(robot: System, shapes: Sequence[Shape], q: Array) -> Array:
    """Return the height [m] (...) of the lowest point of shapes at q (..., nq)."""
    bodies: list[Any] = list(dict.fromkeys(s.body for s in shapes))
    placements = np.asarray(frame_placement(robot, bodies)(q))
    heights = []
    for shape in shapes:
        part = shape_part(shape)
        T = placements[..., bodies.index(shape.body), :, :] @ part.placement
        heights.append(T[..., 2, 3] - reach_down(part, T[..., 2, :3]))
    return np.asarray(np.min(heights, axis=0))


def reach_down(part: ShapePart, up: Array) -> Array:
    """Return the distance from a shape's origin down to its lowest point, for the vertical (..., 3) in its frame."""
    a, b, c = part.size
    if part.kind == BOX:
        return np.asarray(np.abs(up) @ np.array([a, b, c]))
    if part.kind == CAPSULE:
        return np.asarray(a + b * np.abs(up[..., 2]))
    if part.kind == CYLINDER:
        return np.asarray(b * np.abs(up[..., 2]) + a * np.hypot(up[..., 0], up[..., 1]))
    if part.kind == ELLIPSOID:
        return np.asarray(np.linalg.norm(up * np.array([a, b, c]), axis=-1))
    if part.kind == HULL:
        return np.asarray(-(up @ part.hull.vertices.T).min(axis=-1))
    return np.full(up.shape[:-1], a)


def lifted(robot: Any, root: MovingJoint, q: Array, way: Array) -> Array:
    """Return q (..., nq) with a free joint moved along the world's z axis by `way` (...) [m]."""
    R = np.asarray(frame_placement(robot, [root.child])(q))[..., 0, :3, :3]
    v = np.zeros((*q.shape[:-1], robot.nv))
    v[..., root.v_slice.start : root.v_slice.start + 3] = R[..., 2, :] * way[..., None]  # linear velocity in the body's frame
    return np.asarray(robot.integrate(q, v))
