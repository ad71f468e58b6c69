"""Simplification of meshes for drawing, and smooth shading."""

from __future__ import annotations

from collections.abc import Sequence

import fast_simplification
import numpy as np
import trimesh

from ..array_types import Array

DEVIATIONS = (0.002, 0.004)  # allowed deviations, relative to the largest mesh, tried until the faces are few enough
CREASE = 0.6  # [rad]: two faces at a greater angle form a sharp edge
FLAT, LARGE = 1e-3, 0.1  # [rad] between faces of a plane part, and the part of the area from which it is shaded apart

LAYERS = 5000.0  # greatest total area of the faces' squares that a picture has time for, in squares of the largest mesh
MEETING = 5000  # faces at one vertex from which a mesh is not simplified, because the time is quadratic in their number

# `fast_simplification` contracts edges whose error (a squared distance) is below 1e-9 (k + 3)^GROWTH in round k of 100. In
# units in which the last of these bounds is one, a distance bounds its result, whatever the number of faces.
GROWTH = 3.0
UNIT = float(np.sqrt(1e-9 * 102.0**GROWTH))


def once_each(mesh: trimesh.Trimesh) -> None:
    """Merge coincident vertices, and remove faces that have the same vertices as another face in any order."""
    mesh.merge_vertices()
    mesh.update_faces(mesh.unique_faces())


def layers(mesh: trimesh.Trimesh, size: float) -> float:
    """Return the total area of squares about the faces, relative to a square of side `size` [m]."""
    triangles = np.asarray(mesh.triangles)
    extents = triangles.max(axis=1) - triangles.min(axis=1)
    return float((extents * extents).sum()) / max(size * size, 1e-300)


def lighter(meshes: Sequence[trimesh.Trimesh], budget: int) -> list[trimesh.Trimesh]:
    """Return the meshes, simplified if they have more than `budget` faces together.

    They become coarser until the budget is met or the last of `DEVIATIONS` is reached. Meshes with many cracks may stay above
    the budget, because borders do not move. Closed surfaces stay closed.
    """
    made = list(meshes)
    size = max((float(m.extents.max()) for m in made if len(m.faces)), default=0.0)
    for part in DEVIATIONS:
        if sum(len(m.faces) for m in made) <= budget:
            break
        made = [simplified(m, part * size) for m in made]
    return made


def simplified(mesh: trimesh.Trimesh, deviation: float) -> trimesh.Trimesh:
    """Return a mesh with fewer faces, whose surface deviates by at most about `deviation` [m]; its borders do not move."""
    if deviation <= 0.0 or not len(mesh.faces) or np.bincount(np.asarray(mesh.faces).ravel()).max() > MEETING:
        return mesh
    unit = deviation / UNIT
    vertices, faces = fast_simplification.simplify(
        np.asarray(mesh.vertices) / unit,
        np.asarray(mesh.faces, dtype=np.int32),
        target_count=0,
        agg=GROWTH,
        preserve_border=True,
    )
    return trimesh.Trimesh(vertices * unit, faces)


def shaded(mesh: trimesh.Trimesh) -> tuple[Array, Array]:
    """Return vertices (n, 3) and faces (k, 3) with sharp edges split, because normals are averaged over a vertex."""
    mesh.merge_vertices()
    mesh.update_faces(mesh.nondegenerate_faces())
    if len(mesh.faces) < 2:
        return np.asarray(mesh.vertices), np.asarray(mesh.faces)
    corners = np.stack([mesh.faces, np.repeat(_patches(mesh)[:, None], 3, axis=1)], axis=-1)
    pairs, faces = np.unique(corners.reshape(-1, 2), axis=0, return_inverse=True)
    return np.asarray(mesh.vertices)[pairs[:, 0]], faces.reshape(-1, 3)


def vertex_normals(mesh: trimesh.Trimesh) -> Array:
    """Return the normals (n, 3) of the vertices: means of the normals of their faces, weighted by the angles of the corners."""
    corners = (mesh.face_angles[..., None] * mesh.face_normals[:, None]).reshape(-1, 3)
    numbers = np.asarray(mesh.faces).ravel()
    sums = np.stack([np.bincount(numbers, x, len(mesh.vertices)) for x in corners.T], axis=1)
    normals: Array = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-300)
    return normals


def _patches(mesh: trimesh.Trimesh) -> Array:
    """Return each face's smooth patch (k,). Sharp edges and the borders of large plane parts bound patches."""
    pairs, angles, areas = np.asarray(mesh.face_adjacency), mesh.face_adjacency_angles, mesh.area_faces
    plane = _components(len(areas), pairs[angles < FLAT])
    large = np.bincount(plane, areas)[plane] > LARGE * areas.sum()
    smooth = _components(len(areas), pairs[(angles < CREASE) & ~large[pairs].any(axis=1)])
    return np.where(large, len(areas) + plane, smooth)


def _components(count: int, pairs: Array) -> Array:
    """Return the component (count,) of each node of a graph with edges (m, 2): the least number of a node in it."""
    found = np.arange(count)
    while (found[pairs[:, 0]] != found[pairs[:, 1]]).any():
        ends = found[pairs]
        np.minimum.at(found, ends, ends.min(axis=1, keepdims=True))
        while (found != found[found]).any():
            found = found[found]
    return found
