"""Vertices of collision meshes, which are replaced by their convex hulls."""

from __future__ import annotations

import numpy as np

from ..engine.loops.array_types import Matrix
from ..extras import imports_from_extra
from ..model.types import WORLD, Shape

FLAT = 1e-9  # least extent relative to the greatest extent of a mesh


def mesh_vertices(shape: Shape) -> Matrix:
    """Return the vertices (n, 3) of a mesh in its body's frame [m].

    Raises ValueError for an unreadable file, and ImportError if reading it needs trimesh, which is not installed.
    """
    if shape.vertices is not None:
        scaled = np.asarray(shape.vertices, dtype=float) * np.array(shape.size)
        return np.asarray(scaled @ np.array(shape.placement.R).T + np.array(shape.placement.p))
    with imports_from_extra("shapes", f"reading the mesh {_described(shape)} needs trimesh"):
        from ..model.triangles import shape_meshes
    return np.concatenate([np.asarray(mesh.vertices) for mesh, _ in shape_meshes(shape)])


def hull_vertices(shape: Shape) -> Matrix:
    """Return the vertices (n, 3) of a collision mesh in its body's frame [m].

    Raises ValueError for a mesh without volume, and as `mesh_vertices` does.
    """
    vertices = mesh_vertices(shape)
    extents = np.linalg.svd(vertices - vertices.mean(axis=0), compute_uv=False)
    if len(extents) < 3 or not extents[2] > FLAT * extents[0]:
        file = f" ({shape.path})" if shape.path else ""
        raise ValueError(
            f"the mesh {shape.name!r}{file} on {shape.body!r} is flat, so bodies would pass through it: "
            "give it thickness, replace it by a box, or remove it from the collision shapes"
        )
    return vertices


def _described(shape: Shape) -> str:
    return f"{shape.name!r} on {shape.body or WORLD!r}"
