"""Intersections of rays with the shapes of a robot and of a ground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...array_types import Array
from ...collision.collision_scene import HEIGHTS, HULL
from ...collision.hulls import NO_HULL, Hull
from ...collision.rays import RayShapes, cast
from ...collision.shape_parts import KINDS, GridOfHeights, joined_fields, shape_part
from ...extras import imports_from_extra
from ...model.types import WORLD, Pose, Shape, ShapeType
from ..system import System
from .shape_queries import placement_rows
from .surface_normals import surface_normals


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
