"""Points and spheres that stand for a robot's shapes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..model.equivalent_box import body_inertias, equivalent_box
from ..model.types import Shape, ShapeType
from ..robot.collision.geometries import mesh_vertices
from ..robot.robot import Robot
from .scene import ContactSphere

Array = np.ndarray[Any, np.dtype[Any]]

RIM = 12  # points on the rim of a cylinder
DIRECTIONS = np.array([d for d in itertools.product((-1.0, 0.0, 1.0), repeat=3) if any(d)])  # 26


def spheres_of(robot: Robot) -> list[ContactSphere]:
    """Spheres and points with which a robot's shapes touch the ground, by its collision shapes.

    Spheres, capsules (two spheres) and boxes (their corners) touch a plane exactly; cylinders have points on their rims,
    ellipsoids and meshes those that reach farthest in 26 directions. A body whose mesh cannot be read (or without trimesh), and
    all bodies of a robot without any collision shapes, have the corners of the box with the body's inertia.
    """
    shapes = [(s.body, s) for s in robot.shapes if s.collision and s.body is not None and s.type is not ShapeType.PLANE]
    spheres: list[ContactSphere] = []
    boxes = [] if shapes else [b.name for b in robot.bodies]
    for body, shape in shapes:
        try:
            spheres += stand_ins(shape, body)
        except (ImportError, ValueError):  # a mesh that nothing here can read
            boxes.append(body)
    inertias = body_inertias(robot.model) if boxes else {}
    for body in dict.fromkeys(boxes):
        box = equivalent_box(inertias[body])
        if box is not None:
            pose = box.rotation, box.center
            spheres += [ContactSphere(body, 0.0, _at(*pose, c)) for c in _corners(box.lengths)]
    return spheres


def stand_ins(shape: Shape, body: str) -> list[ContactSphere]:
    """Spheres and points for one shape, on its moving body. Raises ValueError or ImportError for a mesh that cannot be read."""
    R, p = np.array(shape.placement.R), np.array(shape.placement.p)
    radius, points = local_stand_ins(shape)
    if shape.type is ShapeType.MESH:
        return [ContactSphere(body, 0.0, tuple(x), shape.friction) for x in points]
    return [ContactSphere(body, radius, _at(R, p, x), shape.friction) for x in points]


def local_stand_ins(shape: Shape) -> tuple[float, Any]:
    """The radius of the spheres that stand for a shape, and their centres in its frame (a mesh's in its body's); no plane.

    Raises ValueError or ImportError for a mesh that cannot be read.
    """
    size = shape.size
    match shape.type:
        case ShapeType.SPHERE:
            return size[0], [(0.0, 0.0, 0.0)]
        case ShapeType.CAPSULE:
            return size[0], [(0.0, 0.0, -0.5 * size[1]), (0.0, 0.0, 0.5 * size[1])]
        case ShapeType.BOX:
            return 0.0, list(_corners(size))
        case ShapeType.CYLINDER:
            angles = [2.0 * math.pi * k / RIM for k in range(RIM)]
            ends = (-0.5 * size[1], 0.5 * size[1])
            return 0.0, [(size[0] * math.cos(a), size[0] * math.sin(a), z) for z in ends for a in angles]
        case ShapeType.ELLIPSOID:
            axes = np.array(size)
            return 0.0, axes**2 * DIRECTIONS / np.linalg.norm(axes * DIRECTIONS, axis=1)[:, None]
    vertices = mesh_vertices(shape)
    return 0.0, vertices[np.unique((DIRECTIONS @ vertices.T).argmax(axis=1))]


def _corners(size: Any) -> Iterator[tuple[float, float, float]]:
    for signs in itertools.product((-0.5, 0.5), repeat=3):
        yield signs[0] * size[0], signs[1] * size[1], signs[2] * size[2]


def _at(R: Array, p: Array, x: Any) -> tuple[float, float, float]:
    a, b, c = (float(y) for y in R @ np.asarray(x) + p)
    return a, b, c
