"""Shapes as geometries of the library coal, with convex hulls of meshes, for comparisons."""

from __future__ import annotations

from typing import Any

import coal
import numpy as np

from featherweight import Shape, ShapeType
from featherweight.collision.hulls import hull_vertices


def coal_geometry(shape: Shape) -> Any:
    """Return the geometry in the frame of the shape, or of the body for a mesh; a plane is the half space below it."""
    size = shape.size
    match shape.type:
        case ShapeType.SPHERE:
            geometry = coal.Sphere(size[0])
        case ShapeType.BOX:
            geometry = coal.Box(*size)
        case ShapeType.CAPSULE:
            geometry = coal.Capsule(*size)
        case ShapeType.CYLINDER:
            geometry = coal.Cylinder(*size)
        case ShapeType.ELLIPSOID:
            geometry = coal.Ellipsoid(*size)
        case ShapeType.PLANE:
            geometry = coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
        case ShapeType.HEIGHTFIELD:  # coal's rows go along -y, its columns along x
            heights = np.ascontiguousarray(np.asarray(shape.heights, dtype=float).T[::-1])
            geometry = coal.HeightFieldAABB(size[0], size[1], heights, -size[2])
        case _:
            points = coal.StdVec_Vec3s()
            for x in hull_vertices(shape):
                points.append(x)
            geometry = coal.Convex.convexHull(points, True, "Qt")
    geometry.computeLocalAABB()
    return geometry
