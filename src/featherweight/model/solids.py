"""Volumes, centres and moments of shapes as solids of uniform density, from which inertias are computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array
from ..extras import imports_from_extra
from ..spatial.ordered import total
from .types import Inertia, Moments, Pose, Shape, ShapeType, Vector, add, as_matrix, as_vector, rotate, scale

WATER = 1000.0  # [kg/m³] density of shapes without one, as in UsdPhysics and SDF


class Solid(NamedTuple):
    """Volume [m³], centre [m], and moments of unit density about it [m⁵], in a body's frame."""

    volume: float
    center: Vector
    moments: Moments

    def of_mass(self, mass: float) -> Inertia:
        """Return the inertia of this solid with a mass."""
        ratio = mass / self.volume if self.volume else 0.0
        return Inertia(mass, self.center, Moments(*(ratio * x for x in self.moments)))


def summed(parts: Sequence[Inertia]) -> Inertia:
    """Return the inertia of parts in one frame together; without mass, its centre is that of the first part."""
    whole = math.fsum(part.mass for part in parts)
    if whole == 0.0:
        center = parts[0].center if parts else (0.0, 0.0, 0.0)
    else:
        center = as_vector(math.fsum(part.mass * part.center[k] for part in parts) / whole for k in range(3))
    moments = [0.0] * 6
    for mass, at, own_moments in parts:
        shift = of_point(add(at, scale(-1.0, center)))
        moments = [a + b + mass * x for a, b, x in zip(moments, own_moments, shift, strict=True)]
    return Inertia(whole, center, Moments(*moments))


def of_point(r: Vector) -> list[float]:
    """Return the moments of unit mass at a point."""
    x, y, z = r
    return [y * y + z * z, -x * y, -x * z, x * x + z * z, -y * z, x * x + y * y]


def primitive_solid(s: Shape) -> Solid:
    """Return the solid of a box, sphere, ellipsoid, cylinder or capsule, in the frame of its body."""
    match s.type:
        case ShapeType.BOX:
            a, b, c = (x * x for x in s.size)
            volume, moments = s.size[0] * s.size[1] * s.size[2], ((b + c) / 12, (a + c) / 12, (a + b) / 12)
        case ShapeType.SPHERE | ShapeType.ELLIPSOID:
            radii = s.size if len(s.size) == 3 else s.size * 3
            a, b, c = (x * x for x in radii)
            volume, moments = 4 / 3 * math.pi * radii[0] * radii[1] * radii[2], ((b + c) / 5, (a + c) / 5, (a + b) / 5)
        case ShapeType.CYLINDER | ShapeType.CAPSULE:
            r, h = s.size
            rod, ball = math.pi * r * r * h, 4 / 3 * math.pi * r**3 if s.type is ShapeType.CAPSULE else 0.0
            volume = rod + ball
            across = rod * (r * r / 4 + h * h / 12) + ball * (0.4 * r * r + h * h / 4 + 0.375 * h * r)
            moments = (across / volume, across / volume, (rod * r * r / 2 + ball * 0.4 * r * r) / volume)
        case _:
            raise ValueError(f"shape {s.name!r}: a {s.type} is no solid of this kind")
    xx, yy, zz = (volume * m for m in moments)
    return Solid(volume, s.placement.p, Moments(xx, 0.0, 0.0, yy, 0.0, zz).rotated(s.placement.R))


def mesh_solid(points: Array, faces: Any, placement: Pose) -> Solid | None:
    """Return the sum of tetrahedra from a point of a mesh (n, 3) to its triangles (k, 3); None for a mesh without volume."""
    base = points[0]
    a, b, c = (points[faces[:, k]] - base for k in range(3))
    volumes = total(a * np.cross(b, c)) / 6.0
    volume = float(total(volumes))
    if not abs(volume) > 0.0:
        return None
    center = total(volumes[:, None] * (a + b + c), 0) / (4.0 * volume)
    second = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            sums = a[:, i] * a[:, j] + b[:, i] * b[:, j] + c[:, i] * c[:, j] + (a + b + c)[:, i] * (a + b + c)[:, j]
            second[i, j] = float(total(volumes * sums)) / 20.0 - volume * center[i] * center[j]
    second, volume = second * math.copysign(1.0, volume), abs(volume)
    trace = second[0, 0] + second[1, 1] + second[2, 2]
    R = as_matrix(placement.R)
    at = add(as_vector(placement.p), rotate(R, as_vector(base + center)))
    return Solid(volume, at, Moments.of_matrix(as_matrix(trace * np.eye(3) - second)).rotated(R))


def hull_faces(points: Array) -> Any:
    """Return the triangles (k, 3) of a convex hull, counter-clockwise from outside; none for points in a plane."""
    with imports_from_extra("shapes", "masses of convex hulls of meshes need scipy"):
        from scipy.spatial import ConvexHull, QhullError
    try:
        hull = ConvexHull(points)
    except QhullError:
        return np.zeros((0, 3), dtype=np.int64)
    faces = hull.simplices.copy()
    a, b, c = (points[faces[:, k]] for k in range(3))
    inward = total(np.cross(b - a, c - a) * hull.equations[:, :3]) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    return faces


def shape_solid(s: Shape) -> Solid | None:
    """Return the solid of a shape; None for one without volume: planes, height fields, flat meshes and shapes of size zero.

    A mesh that is not closed is its convex hull. Raises MeshError for a mesh file that cannot be read, and ImportError without
    the packages that read meshes.
    """
    if s.type in (ShapeType.PLANE, ShapeType.HEIGHTFIELD):
        return None
    if s.type is not ShapeType.MESH:
        return primitive_solid(s) if min(s.size) > 0.0 else None
    with imports_from_extra("shapes", "masses of meshes need trimesh"):
        from .triangles import shape_meshes
    points: list[Array] = []
    faces: list[Array] = []
    closed = True
    for mesh, _ in shape_meshes(s):
        faces.append(np.asarray(mesh.faces) + sum(len(x) for x in points))
        points.append(np.asarray(mesh.vertices, dtype=float))
        closed &= bool(mesh.is_watertight)
    every = np.concatenate(points)
    return mesh_solid(every, np.concatenate(faces) if closed else hull_faces(every), Pose())
