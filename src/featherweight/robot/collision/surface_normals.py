"""Outward normals of shapes at points on their surfaces, where rays hit them."""

from __future__ import annotations

import numpy as np

from ...array_types import Array
from ...collision.collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHTS, HULL, SPHERE
from ...collision.rays import RayShapes

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
