"""Robot bodies as a few flat faces: their plain shapes, or boxes of equal inertia."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..model.equivalent_box import body_inertias, equivalent_box
from ..model.types import Shape, ShapeType
from ..robot.robot import Robot

Array = np.ndarray[Any, np.dtype[Any]]

SIDES = 14  # sides of a round shape
ARC = 5  # faces from a pole to the equator
GREY, BLUE = (190, 196, 204), (120, 160, 210)
THIN = 2e-3  # [m]: least side of a box as drawn
_TURNED = (ShapeType.SPHERE, ShapeType.ELLIPSOID, ShapeType.CYLINDER, ShapeType.CAPSULE)


class PlainSurface(NamedTuple):
    """Flat convex faces, anticlockwise seen from outside, in the frame of a body; in the world frame if `body` is -1."""

    body: int
    vertices: Array  # (n, 3) [m]
    faces: list[list[int]]
    color: tuple[int, int, int]

    def points(self, placements: Array) -> Array:
        """Return the vertices in the world frame for placements (nbodies, 4, 4)."""
        if self.body < 0:
            return self.vertices
        T = placements[self.body]
        return np.asarray(self.vertices @ T[:3, :3].T + T[:3, 3])

    def described(self) -> dict[str, Any]:
        """Return the surface for JSON, with vertices rounded to a tenth of a millimetre."""
        vertices = np.round(self.vertices, 4).tolist()
        return {"body": self.body, "vertices": vertices, "faces": self.faces, "color": self.color}


def plain_surfaces(robot: Robot) -> list[PlainSurface]:
    """Return the surfaces of the world and of each body.

    A body has its visual shapes or, if these include meshes, its plain collision shapes. A body with neither has the box with
    its inertia.
    """
    inertias = body_inertias(robot.model)
    surfaces = [s for shape in _plain(robot.shapes, None) for s in _surface(shape, -1)]
    for k, body in enumerate(robot.bodies):
        own = [s for shape in _plain(robot.shapes, body.name) for s in _surface(shape, k)]
        surfaces += own
        box = None if own else equivalent_box(inertias[body.name])
        if box is not None:
            vertices, faces = _box(np.maximum(box.lengths, THIN))
            surfaces.append(PlainSurface(k, vertices @ box.rotation.T + box.center, faces, BLUE))
    return surfaces


def _plain(shapes: Sequence[Shape], body: str | None) -> list[Shape]:
    own = [s for s in shapes if s.body == body]
    plain = [s for s in own if s.type in _TURNED or s.type == ShapeType.BOX]
    visual, colliding = [s for s in plain if s.visual], [s for s in plain if s.collision]
    meshes = any(s.visual and s.type == ShapeType.MESH for s in own)  # plain shapes beside a mesh are only details
    return (colliding or visual) if meshes else (visual or colliding)


def _surface(shape: Shape, body: int) -> Iterator[PlainSurface]:
    if max(shape.size) <= 0.0:  # a point
        return
    vertices, faces = _box(np.array(shape.size)) if shape.type == ShapeType.BOX else _turned(*_profile(shape))
    R, p = np.array(shape.placement.R), np.array(shape.placement.p)
    r, g, b = GREY if shape.color is None else (round(255 * x) for x in shape.color[:3])
    yield PlainSurface(body, vertices @ R.T + p, faces, (r, g, b))


def _box(lengths: Array) -> tuple[Array, list[list[int]]]:
    vertices = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * lengths
    return vertices, [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]


def _profile(shape: Shape) -> tuple[Array, Array]:
    """Return radius and height (n, 2) of rings from bottom to top, and the scale (3,) of the surface of revolution."""
    angles = np.linspace(0.0, np.pi / 2, ARC + 1)
    quarter = np.stack([np.cos(angles), np.sin(angles)], axis=1)  # from the equator to the pole
    unit = np.ones(3)
    if shape.type == ShapeType.CYLINDER:
        radius, length = shape.size
        return np.array([[radius, -length / 2], [radius, length / 2]]), unit
    if shape.type == ShapeType.CAPSULE:
        radius, length = shape.size
        upper = radius * quarter + (0.0, length / 2)
        return np.concatenate([upper[::-1] * (1, -1), upper]), unit
    scale = np.array(shape.size if shape.type == ShapeType.ELLIPSOID else shape.size * 3)
    return np.concatenate([quarter[:0:-1] * (1, -1), quarter]), scale


def _turned(profile: Array, scale: Array) -> tuple[Array, list[list[int]]]:
    """Return rings about z, the faces between them, and a lid at each end."""
    turns = 2.0 * np.pi * np.arange(SIDES) / SIDES
    rings = [np.stack([r * np.cos(turns), r * np.sin(turns), np.full(SIDES, z)], axis=1) for r, z in profile]
    faces = []
    for k in range(len(rings) - 1):
        for i in range(SIDES):
            a, b = SIDES * k + i, SIDES * k + (i + 1) % SIDES
            faces.append([a, b, b + SIDES, a + SIDES])
    last = SIDES * (len(rings) - 1)
    lids = [list(range(SIDES))[::-1], [last + i for i in range(SIDES)]]
    return np.concatenate(rings) * scale, faces + lids
