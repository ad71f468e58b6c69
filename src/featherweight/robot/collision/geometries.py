"""Shapes as geometries of the library coal (an extra). Meshes are taken for their convex hulls."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...extras import install_command
from ...model.types import Pose, Shape, ShapeType

Array = np.ndarray[Any, np.dtype[Any]]

FLAT = 1e-9  # of the greatest extent of a mesh


def import_coal(what: str) -> Any:
    """The library. Raises ImportError, which says what it is needed for and how to get it."""
    try:
        import coal
    except ImportError as error:
        raise ImportError(f"{what} need coal: {install_command('shapes')}") from error
    return coal


def geometry_of(coal: Any, shape: Shape) -> Any:
    """The geometry, in the frame `geometry_placement`; a plane is the half space below it.

    Raises ValueError for a mesh that cannot be read or is flat, ImportError for one that needs trimesh where that is not.
    """
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
        case ShapeType.HEIGHTFIELD:
            geometry = _height_field(coal, shape)
        case _:
            geometry = _hull(coal, shape)
    geometry.computeLocalAABB()
    return geometry


def geometry_placement(shape: Shape) -> Pose:
    """Where the frame of a shape's geometry lies on the shape's body; a mesh is in the body's frame already."""
    return Pose() if shape.type is ShapeType.MESH else shape.placement


def _height_field(coal: Any, shape: Shape) -> Any:
    """coal's rows go along -y, its columns along x."""
    x, y, depth = shape.size
    return coal.HeightFieldAABB(x, y, np.ascontiguousarray(np.asarray(shape.heights, dtype=float).T[::-1]), -depth)


def hull_vertices(shape: Shape) -> Array:
    """The vertices (n, 3) of a mesh that is taken for its convex hull, in its body's frame. Raises ValueError for one without
    volume."""
    vertices = mesh_vertices(shape)
    extents = np.linalg.svd(vertices - vertices.mean(axis=0), compute_uv=False)
    if len(extents) < 3 or not extents[2] > FLAT * extents[0]:
        file = f" ({shape.path})" if shape.path else ""
        raise ValueError(
            f"the mesh {shape.name!r}{file} on {shape.body!r} is flat, and bodies would pass through it: "
            "give it thickness, take a box in its place, or leave it out of the collision shapes"
        )
    return vertices


def _hull(coal: Any, shape: Shape) -> Any:
    """The convex hull of a mesh, in its body's frame. Raises ValueError for one without volume."""
    points = coal.StdVec_Vec3s()
    for x in hull_vertices(shape):
        points.append(x)
    return coal.Convex.convexHull(points, True, "Qt")


def mesh_vertices(shape: Shape) -> Array:
    """Those (n, 3) of a mesh in its body's frame [m]. Raises ValueError or ImportError where it cannot be read."""
    if shape.vertices is not None:
        scaled = np.asarray(shape.vertices, dtype=float) * np.array(shape.size)
        return np.asarray(scaled @ np.array(shape.placement.R).T + np.array(shape.placement.p))
    try:
        from ...model.triangles import shape_meshes
    except ImportError as error:
        raise ImportError(f"reading the mesh {shape.name!r} needs trimesh: {install_command('shapes')}") from error
    return np.concatenate([np.asarray(mesh.vertices) for mesh, _ in shape_meshes(shape)])
