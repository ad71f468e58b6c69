"""Surfaces to draw for each body of a robot, one for each colour, in several layers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import trimesh

from ..array_types import Array
from ..model.editing.notes import warn_caller
from ..model.equivalent_box import equivalent_box
from ..model.triangles import RGB, MeshError, shape_meshes
from ..model.types import Shape, ShapeType
from ..robot.robot import Robot
from .drawn_meshes import LAYERS, layers, lighter, once_each, shaded

PLAIN: RGB = (190, 196, 204)
INERTIA: RGB = (120, 160, 210)
COLLISION: RGB = (225, 150, 90)
FACES = 100_000  # triangles of all meshes of a layer: about two megabytes for the browser
SMALL = 0.01  # [m]: radius of the ball that represents a body without mass
THIN = 2e-3  # [m]: least side of a box as drawn


FIELD = 0.7  # [rad] vertical field of view
AWAY = np.array([0.80, 0.55, 0.28]) / np.linalg.norm([0.80, 0.55, 0.28])  # direction from a robot to the first camera


class Layer(StrEnum):
    """Selection of the shapes to draw."""

    VISUAL = "visual"
    FULL = "visual, every triangle"
    COLLISION = "collision"
    INERTIA = "inertia"


class BodySurface(NamedTuple):
    """Triangles in the frame of a body."""

    vertices: Array  # (n, 3) [m]
    faces: Array  # (k, 3)
    color: RGB
    opacity: float | None


class _BodyPart(NamedTuple):
    body: str | None
    mesh: trimesh.Trimesh
    color: RGB
    opacity: float | None
    exact: bool  # has few faces as it is
    name: str = ""  # of its file, or of the shape


class Figure:
    """The surfaces of a robot's bodies. The files of a layer are read when it is first used.

    If the meshes of a layer have more than `faces` triangles together, they are simplified; the difference is not visible. The
    layer "visual, every triangle" contains all triangles. `notes` names the meshes that could not be read.
    """

    def __init__(self, robot: Robot, faces: int = FACES) -> None:
        self.robot = robot
        self.faces = faces
        self.notes: list[str] = []
        self._layers: dict[Layer, dict[str | None, list[BodySurface]]] = {}

    def layer(self, layer: Layer) -> dict[str | None, list[BodySurface]]:
        """Return the surfaces of each body, and of the ground (None)."""
        if layer not in self._layers:
            parts = self._parts(layer)
            self._layers[layer] = _surfaces(parts if layer == Layer.FULL else self._lighter(parts))
        return self._layers[layer]

    def planes(self, layer: Layer) -> list[Shape]:
        """Return the infinite planes of a layer, or those of the ground in contacts, drawn or not."""
        drawn = [s for s in self._shapes(layer) if s.type == ShapeType.PLANE]
        return drawn or [s for s in self.robot.shapes if s.type == ShapeType.PLANE and s.collision and s.body is None]

    def points(self, layer: Layer, placements: Mapping[Any, Array]) -> Array:
        """Return vertices (n, 3) in the world frame, of the bodies with given placements (4, 4)."""
        vertices = [np.zeros((0, 3))]
        for body, T in placements.items():
            for surface in self.layer(layer).get(body, ()):
                vertices.append(surface.vertices @ T[:3, :3].T + T[:3, 3])
        return np.concatenate(vertices)

    def _shapes(self, layer: Layer) -> list[Shape]:
        if layer == Layer.INERTIA:
            return []
        return [s for s in self.robot.shapes if (s.collision if layer == Layer.COLLISION else s.visual)]

    def _parts(self, layer: Layer) -> list[_BodyPart]:
        parts: list[_BodyPart] = []
        unread: set[str | None] = set()
        missing: list[str] = []
        for shape in self._shapes(layer):
            if shape.type == ShapeType.PLANE:
                continue
            try:
                parts += _parts_of(shape, COLLISION if layer == Layer.COLLISION else PLAIN)
            except MeshError as error:
                if str(error) not in self.notes:
                    missing.append(str(error))
                    self.notes.append(str(error))
                unread.add(shape.body)
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            warn_caller(f"{self.robot.name}: meshes cannot be read, boxes of inertias are drawn for them: {missing[0]}{more}")
        parts, crowded = _without_crowded(parts)
        for part in crowded:
            self.notes.append(
                f"{part.name}: {len(part.mesh.faces)} faces, most of them as large as the mesh, would take too long to draw; "
                "simplify it"
            )
            unread.add(part.body)
        drawn = {p.body for p in parts}
        for body in self.robot.bodies:
            if body.name in unread or (body.name not in drawn and layer != Layer.COLLISION):
                parts.append(self._inertia_part(body.name))
        return parts

    def _inertia_part(self, body: str) -> _BodyPart:
        """Return the box with the body's inertia, or a small ball for a body without mass."""
        box = equivalent_box(self.robot.bodies[body].inertia)
        if box is None:
            return _BodyPart(body, trimesh.creation.icosphere(subdivisions=1, radius=SMALL), INERTIA, None, True)
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = box.rotation, box.center
        return _BodyPart(body, trimesh.creation.box(np.maximum(box.lengths, THIN), transform=T), INERTIA, None, True)

    def _lighter(self, parts: list[_BodyPart]) -> list[_BodyPart]:
        """Return the parts, with simplified meshes if they have too many triangles."""
        light = iter(lighter([p.mesh for p in parts if not p.exact], self.faces))
        return [p if p.exact else p._replace(mesh=next(light)) for p in parts]


def extent(points: Array) -> Array:
    """Return the least and greatest coordinates (2, 3) of points (..., 3)."""
    points = points.reshape(-1, 3)
    return np.array([points.min(axis=0), points.max(axis=0)]) if len(points) else np.zeros((2, 3))


def extent_of_robot(moving: Array, standing: Array) -> Array:
    """Return the extent (2, 3) of moving points, and of those that stand if they are a foot, and not a landscape."""
    found = extent(moving)
    if standing.size and np.ptp(extent(standing), axis=0).max() <= np.ptp(found, axis=0).max():
        found = extent(np.concatenate([moving.reshape(-1, 3), standing.reshape(-1, 3)]))
    return found


def cell_of(size: float) -> float:
    """Return the side of the squares of the ground [m]: 0.5 m for robots of a few metres."""
    return float(0.5 * 10.0 ** np.round(np.log10(size / 2.0)))


def _surfaces(parts: list[_BodyPart]) -> dict[str | None, list[BodySurface]]:
    """Return one surface for each colour of a body, because browsers are slow with many small objects."""
    groups: dict[tuple[str | None, RGB, float | None], list[trimesh.Trimesh]] = {}
    for p in parts:
        groups.setdefault((p.body, p.color, p.opacity), []).append(p.mesh)
    surfaces: dict[str | None, list[BodySurface]] = {}
    for (body, color, opacity), many in groups.items():
        vertices, faces = _joined([shaded(m) for m in many])
        surfaces.setdefault(body, []).append(BodySurface(vertices, faces, color, opacity))
    return surfaces


def _joined(pieces: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Concatenate the vertices and faces of all pieces."""
    starts = np.cumsum([0, *(len(v) for v, _ in pieces)])
    vertices = np.concatenate([v for v, _ in pieces])
    return vertices, np.concatenate([f + k for (_, f), k in zip(pieces, starts, strict=False)])


def _parts_of(shape: Shape, plain: RGB) -> list[_BodyPart]:
    given, opacity = None, None
    if shape.color is not None:
        r, g, b, a = shape.color
        given, opacity = (round(255 * r), round(255 * g), round(255 * b)), a if a < 1.0 else None
    exact = shape.type not in (ShapeType.MESH, ShapeType.HEIGHTFIELD)
    name = shape.path or f"shape {shape.name!r}"
    parts = [_BodyPart(shape.body, mesh, own or given or plain, opacity, exact, name) for mesh, own in shape_meshes(shape)]
    for part in parts:
        if not exact:
            once_each(part.mesh)
    return parts


def _without_crowded(parts: list[_BodyPart]) -> tuple[list[_BodyPart], list[_BodyPart]]:
    """Split parts into those that can be drawn in time and those whose faces overlap one another most often."""
    size = max((float(np.linalg.norm(p.mesh.extents)) for p in parts if len(p.mesh.faces)), default=0.0)
    costs = np.array([layers(p.mesh, size) for p in parts])
    order = np.argsort(costs, kind="stable")
    left_out = set(order[np.cumsum(costs[order]) > LAYERS].tolist())
    drawn = [p for k, p in enumerate(parts) if k not in left_out]
    return drawn, [parts[k] for k in sorted(left_out)]
