"""Triangles made few enough to draw, and shaded across what is smooth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import fast_simplification
import numpy as np
import trimesh

Array = np.ndarray[Any, np.dtype[Any]]

DEVIATIONS = (0.002, 0.004)  # of the largest mesh, by which all may be off, until they are few enough
CREASE = 0.6  # [rad]: two faces at a greater angle meet in an edge

LAYERS = 5000.0  # times that squares about all faces cover that about the largest mesh: what a picture has time for
MEETING = 5000  # faces at one vertex, from which on a mesh is not simplified, since that takes time in their square

# `fast_simplification` contracts edges whose error (a squared distance) is below 1e-9 (k + 3)^GROWTH in its round k of 100.
# In units in which the last of these is one, what it does is bounded by a distance, whatever the number of faces.
GROWTH = 3.0
UNIT = float(np.sqrt(1e-9 * 102.0**GROWTH))


def once_each(mesh: trimesh.Trimesh) -> None:
    """Merge vertices at one place, and leave out faces between the same ones, in whatever order."""
    mesh.merge_vertices()
    mesh.update_faces(mesh.unique_faces())


def layers(mesh: trimesh.Trimesh, size: float) -> float:
    """How often squares about the faces cover a square about something of that size [m]."""
    triangles = np.asarray(mesh.triangles)
    extents = triangles.max(axis=1) - triangles.min(axis=1)
    return float((extents * extents).sum()) / max(size * size, 1e-300)


def lighter(meshes: Sequence[trimesh.Trimesh], budget: int) -> list[trimesh.Trimesh]:
    """The meshes with fewer faces, if they have more than `budget` together.

    They are made coarser until they have no more, or deviate by the last of `DEVIATIONS`: many cracks, of which no edge moves,
    may keep them above. Nothing opens that was closed.
    """
    made = list(meshes)
    size = max((float(m.extents.max()) for m in made if len(m.faces)), default=0.0)
    for part in DEVIATIONS:
        if sum(len(m.faces) for m in made) <= budget:
            break
        made = [simplified(m, part * size) for m in made]
    return made


def simplified(mesh: trimesh.Trimesh, deviation: float) -> trimesh.Trimesh:
    """A mesh with fewer faces, whose surface is about `deviation` [m] from the given one's at most; its borders stay."""
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
    """Vertices (n, 3) and faces (k, 3), with a vertex split where faces meet in an edge: normals are means over a vertex."""
    mesh.merge_vertices()
    mesh.update_faces(mesh.nondegenerate_faces())
    if len(mesh.faces) < 2:
        return np.asarray(mesh.vertices), np.asarray(mesh.faces)
    smooth = trimesh.graph.smooth_shade(mesh, angle=CREASE)
    return np.asarray(smooth.vertices), np.asarray(smooth.faces)
