"""Points and spheres that approximate a robot's shapes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array
from ..collision.stand_ins import box_corners, local_stand_ins
from ..model.editing.notes import warn_caller
from ..model.equivalent_box import equivalent_box
from ..model.types import Shape, ShapeType
from ..names import listed
from ..robot.robot import Robot
from .scene import ContactSphere


def spheres_of(robot: Robot) -> list[ContactSphere]:
    """Return spheres and points by which a robot's collision shapes touch the ground.

    Spheres, capsules (two spheres) and boxes (their corners) touch a plane exactly. Cylinders have points on their rims;
    ellipsoids and meshes have the farthest points in 26 directions. The corners of the box with the body's inertia replace the
    shapes of a body whose mesh cannot be read (or without trimesh), and of all bodies of a robot without collision shapes.
    A ModelWarning names the bodies and the first reason why a mesh cannot be read.
    """
    shapes = [(s.body, s) for s in robot.shapes if s.collision and s.body is not None and s.type is not ShapeType.PLANE]
    spheres: list[ContactSphere] = []
    boxes = [] if shapes else [b.name for b in robot.bodies]
    unread: dict[str, Exception] = {}
    for body, shape in shapes:
        try:
            spheres += stand_ins(shape, body)
        except (ImportError, ValueError) as error:  # an unreadable mesh
            unread.setdefault(body, error)
    boxes += unread
    if unread:
        reason = next(iter(unread.values()))
        warn_caller(f"{robot.name}: boxes replace meshes that cannot be read, of the bodies {listed([*unread])}: {reason}")
    for body in boxes:
        box = equivalent_box(robot.bodies[body].inertia)
        if box is not None:
            pose = box.rotation, box.center
            spheres += [ContactSphere(body, 0.0, _at(*pose, c)) for c in box_corners(box.lengths)]
    return spheres


def stand_ins(shape: Shape, body: str) -> list[ContactSphere]:
    """Return spheres and points for one shape on its moving body. Raises ValueError or ImportError for an unreadable mesh."""
    R, p = np.array(shape.placement.R), np.array(shape.placement.p)
    radius, points = local_stand_ins(shape)
    if shape.type is ShapeType.MESH:
        return [ContactSphere(body, 0.0, tuple(x), shape.friction) for x in points]
    return [ContactSphere(body, radius, _at(R, p, x), shape.friction) for x in points]


def _at(R: Array, p: Array, x: ArrayLike) -> tuple[float, float, float]:
    a, b, c = (float(y) for y in R @ np.asarray(x) + p)
    return a, b, c
