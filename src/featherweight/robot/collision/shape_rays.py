"""Intersections of rays with the shapes of a robot and of a ground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...array_types import Array
from ...collision.collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHTS, HULL, SPHERE
from ...collision.hulls import NO_HULL, Hull
from ...collision.rays import RayShapes, cast
from ...collision.shape_parts import KINDS, GridOfHeights, joined_fields, shape_part
from ...extras import imports_from_extra
from ...model.types import WORLD, Pose, Shape, ShapeType
from ..system import System
from .shape_queries import placement_rows


class RayPart(NamedTuple):
    """A shape that rays can hit, in the frame of the moving body that carries it."""

    kind: int  # kind in `collision_scene`
    body: str | None  # the moving body; None for the ground
    link: str | None  # the link of the file
    pose: Pose
    size: Sequence[float] = (0.0, 0.0, 0.0)
    triangles: Array = np.zeros((0, 9))  # corners
    field: GridOfHeights | None = None
    balls: Array = np.zeros((0, 4))  # none: for `joined_fields`
    hull: Hull = NO_HULL


def ray_part(shape: Shape, link: str | None) -> RayPart:
    """Return a shape of a robot in the form that ray queries use.

    Raises ValueError for a mesh that cannot be read, and ImportError if a package for reading it is missing.
    """
    kind, at = KINDS[shape.type], Pose.of(shape.placement, shape.name)
    if shape.type is ShapeType.MESH:
        return RayPart(kind, shape.body, link, Pose(), triangles=_triangles(shape))
    part = shape_part(shape)
    return RayPart(kind, shape.body, link, at, part.size, field=part.field)


def _triangles(shape: Shape) -> Array:
    """Return the corners (n, 9) of a mesh's triangles in its body's frame; without faces, those of its convex hull."""
    if shape.vertices is not None and shape.faces is not None:
        points = np.asarray(shape.vertices, float) * np.array(shape.size)
        points = points @ np.array(shape.placement.R).T + np.array(shape.placement.p)
        return np.asarray(points[np.asarray(shape.faces)]).reshape(-1, 9)
    with imports_from_extra("shapes", f"reading the mesh {shape.name!r} on {shape.body or WORLD!r} needs trimesh"):
        from ...model.triangles import shape_meshes  # needs trimesh
    meshes = [mesh for mesh, _ in shape_meshes(shape)]
    return np.concatenate([np.asarray(mesh.vertices)[np.asarray(mesh.faces)].reshape(-1, 9) for mesh in meshes])


class ShapeRays:
    """Distances along rays to shapes of a robot."""

    def __init__(self, robot: System, parts: Sequence[RayPart]) -> None:
        links = [p.link for p in parts]
        self._number = {link: k for k, link in enumerate(dict.fromkeys(links))}
        self._place = placement_rows(robot, "ray_rows", [p.body for p in parts], [p.pose for p in parts])
        self._shapes = _ray_shapes(parts, np.array([self._number[x] for x in links], np.int64))

    def distances(self, q: Array, origins: Array, directions: Array, links: Sequence[str | None]) -> Array:
        """Return distances (n, rays) from origins (n, rays, 3) along unit vectors (n, rays, 3) at q (n, nq); -1 for no hit.

        Rays ignore shapes on their own `links`, one for each ray.
        """
        return self._cast(q, origins, directions, links)[0]

    def distances_and_normals(
        self, q: Array, origins: Array, directions: Array, links: Sequence[str | None]
    ) -> tuple[Array, Array]:
        """Return distances as `distances` does, and outward unit normals (n, rays, 3) of the surfaces; zero for no hit."""
        distance, met, placement = self._cast(q, origins, directions, links)
        normals = np.zeros(origins.shape)
        for s in np.unique(met[met >= 0]):
            at = np.nonzero(met == s)
            T = placement[at[0], s]
            R = T[:, :9].reshape(-1, 3, 3)
            points = origins[at] + distance[at][:, None] * directions[at] - T[:, 9:]
            local = surface_normals(self._shapes, int(s), np.einsum("kji,kj->ki", R, points))
            normals[at] = np.einsum("kij,kj->ki", R, local)
        return distance, normals

    def _cast(self, q: Array, origins: Array, directions: Array, links: Sequence[str | None]) -> tuple[Array, Array, Array]:
        """Return distances and numbers (n, rays) of the shapes that are hit, and placements (n, shapes, 12)."""
        blind = np.array([self._number.get(link, -1) for link in links], np.int64)
        distance, met = np.full(origins.shape[:2], -1.0), np.full(origins.shape[:2], -1, np.int64)
        placement = np.ascontiguousarray(self._place(q), np.float64)
        if len(self._shapes.kind):
            given = np.ascontiguousarray(origins), np.ascontiguousarray(directions)
            cast(self._shapes, placement, *given, blind, distance, met)
        return distance, met, placement


def _ray_shapes(parts: Sequence[RayPart], links: Array) -> RayShapes:
    n = len(parts)
    span, reach, edges = np.zeros((n, 4), np.int64), np.zeros((n, 4)), np.zeros((n, 6))
    fields = joined_fields(parts)
    triangles, heights = 0, 0
    for k, p in enumerate(parts):
        if p.kind == HULL:
            span[k, :2] = triangles, triangles + len(p.triangles)
            triangles += len(p.triangles)
            corners = p.triangles.reshape(-1, 3)
            middle = 0.5 * (corners.min(axis=0) + corners.max(axis=0))
            reach[k] = *middle, np.linalg.norm(corners - middle, axis=1).max() * (1.0 + 1e-9)
        elif p.kind == HEIGHTS:
            span[k, :3], edges[k] = fields.grid[heights], fields.edges[heights]
            heights += 1
    return RayShapes(
        kind=np.array([p.kind for p in parts], np.int64), link=links,
        size=np.array([p.size for p in parts], float).reshape(-1, 3), reach=reach, span=span, edges=edges,
        triangles=np.concatenate([np.zeros((0, 9)), *(p.triangles for p in parts)]), heights=fields.heights,
    )  # fmt: skip


# --- normals of surfaces


UP = np.array((0.0, 0.0, 1.0))


def surface_normals(shapes: RayShapes, s: int, points: Array) -> Array:
    """Return unit normals (n, 3) of shape s at points (n, 3) of its surface, both in its frame."""
    kind, size = shapes.kind[s], shapes.size[s]
    if kind == HULL:
        return _of_triangles(shapes.triangles[shapes.span[s, 0] : shapes.span[s, 1]], points)
    if kind == HEIGHTS:
        return _of_field(shapes, s, points)
    if kind == BOX:
        return _of_box(size, points)
    if kind == CYLINDER:
        across = np.hypot(points[:, 0], points[:, 1])
        is_end = np.abs(np.abs(points[:, 2]) - size[1]) < np.abs(across - size[0])
        return _unit(np.where(is_end[:, None], points * UP, points * (1.0, 1.0, 0.0)))
    if kind == CAPSULE:
        return _unit(points - UP * np.clip(points[:, 2:], -size[1], size[1]))
    if kind in (SPHERE, ELLIPSOID):
        return _unit(points if kind == SPHERE else points / np.square(size))
    return np.broadcast_to(UP, points.shape)


def _unit(x: Array) -> Array:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-300))


def _of_box(half: Array, points: Array) -> Array:
    """Return normals of the faces that contain points (n, 3)."""
    axis = np.abs(np.abs(points) - half).argmin(axis=1)
    return np.asarray(np.eye(3)[axis] * np.sign(points[np.arange(len(points)), axis])[:, None])


def _of_triangles(triangles: Array, points: Array) -> Array:
    """Return normals of the nearest of triangles (k, 9); their corners are ordered around the outside."""
    a, b, c = np.moveaxis(triangles.reshape(-1, 3, 3), 1, 0)
    e, f = b - a, c - a
    normal = np.cross(e, f)
    area = np.maximum((normal * normal).sum(axis=1), 1e-300)
    result = np.empty((len(points), 3))
    for i, x in enumerate(points):
        s = x - a
        u, v = ((np.cross(p, q) * normal).sum(axis=1) / area for p, q in ((s, f), (e, s)))
        outside = np.maximum(np.maximum(-u, -v), np.maximum(u + v - 1.0, 0.0)) * np.sqrt(np.sqrt(area))
        away = np.abs((s * normal).sum(axis=1)) / np.sqrt(area)
        k = int((away + outside).argmin())
        result[i] = normal[k] / np.sqrt(area[k])
    return result


def _of_field(shapes: RayShapes, s: int, points: Array) -> Array:
    """Return normals of the surface, the walls and the base of a height field."""
    (offset, nx, ny), e = (int(k) for k in shapes.span[s, :3]), shapes.edges[s]
    heights = shapes.heights[offset : offset + nx * ny].reshape(nx, ny)
    u, v = (points[:, 0] - e[0]) / e[2], (points[:, 1] - e[1]) / e[3]
    i, j = np.clip(u.astype(int), 0, nx - 2), np.clip(v.astype(int), 0, ny - 2)
    u, v = u - i, v - j
    low, right, left, high = heights[i, j], heights[i + 1, j], heights[i, j + 1], heights[i + 1, j + 1]
    above = u < v  # the diagonal, in the triangle of the left corner
    dx, dy = np.where(above, high - left, right - low), np.where(above, left - low, high - right)
    surface = _unit(np.stack([-dx / e[2], -dy / e[3], np.ones(len(u))], axis=1))
    height = low + u * dx + v * dy
    last = np.array((e[0] + (nx - 1) * e[2], e[1] + (ny - 1) * e[3]))
    x, y, z = points.T
    away = np.stack([np.abs(z - height) * surface[:, 2], z + e[5], x - e[0], last[0] - x, y - e[1], last[1] - y], axis=1)
    sides = np.array([(0, 0, 0), (0, 0, -1), (-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0)], float)
    nearest = np.abs(away).argmin(axis=1)
    return np.where((nearest == 0)[:, None], surface, sides[nearest])
