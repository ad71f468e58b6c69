"""Triangles made few enough to draw, and shaded across what is smooth."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import trimesh

Array = np.ndarray[Any, np.dtype[Any]]

SAMPLES, CELLS = 20_000, 32  # points on a mesh, and cells along its longest side, that decide what can be seen
WELD = (160, 80, 40, 20)  # cells along a mesh's longest side in which vertices become one, until few enough faces are left
CREASE = 0.6  # [rad]: two faces at a greater angle meet in an edge
CRUMB = 5e-3  # of the area of a mesh's largest part: loose parts below are screws and the like


def shares(meshes: Sequence[trimesh.Trimesh], budget: int) -> list[int]:
    """How many faces each mesh may keep so that all have at most `budget` together.

    In proportion to their size (the root of their area), where they have that many.
    """
    weight = np.array([np.sqrt(m.area) for m in meshes]) + 1e-9
    count = np.array([len(m.faces) for m in meshes])
    kept = np.zeros(len(meshes), dtype=int)
    left = np.ones(len(meshes), dtype=bool)
    while left.any():
        share = (budget - kept.sum()) * weight / weight[left].sum()
        small = left & (count <= share)
        if not small.any():
            kept[left] = np.maximum(share[left], 12)
            break
        kept[small] = count[small]
        left &= ~small
    return [int(k) for k in kept]


def simplified(mesh: trimesh.Trimesh, faces: int) -> trimesh.Trimesh:
    """A mesh with about this many faces, or itself where it has no more.

    What nobody can see from outside goes first, then loose parts that are tiny; then edges are contracted.
    """
    mesh.merge_vertices()
    if len(mesh.faces) <= faces:
        return mesh
    mesh.update_faces(seen_from_outside(mesh))
    parts = trimesh.graph.connected_component_labels(mesh.face_adjacency, node_count=len(mesh.faces))
    area = np.bincount(parts, mesh.area_faces)
    mesh.update_faces((area > CRUMB * area.max())[parts])
    mesh.remove_unreferenced_vertices()
    for cells in WELD:
        mesh = welded(mesh, float(mesh.extents.max()) / cells)
        if len(mesh.faces) > faces:
            mesh = mesh.simplify_quadric_decimation(face_count=faces)
        if len(mesh.faces) <= 1.3 * faces:
            break
    return mesh


def welded(mesh: trimesh.Trimesh, width: float) -> trimesh.Trimesh:
    """A mesh whose vertices in one cell of this width [m] are one: cracks keep edges from being contracted."""
    cell = np.round(mesh.vertices / width).astype(int)
    _, first, group = np.unique(cell, axis=0, return_index=True, return_inverse=True)
    faces = group.reshape(-1)[mesh.faces]
    faces = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])]
    _, kept = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)
    return trimesh.Trimesh(mesh.vertices[first], faces[kept])


def seen_from_outside(mesh: trimesh.Trimesh) -> Array:
    """Which faces (k,) are in front along two or more of 26 directions.

    Points on the faces are sorted into square cells across each direction; a face is in front if a point of it is no deeper
    in its cell than two cells are wide. Some cells miss what lies in front: hence two.
    """
    points, owner = trimesh.sample.sample_surface(mesh, SAMPLES, seed=0)[:2]
    points = np.concatenate([points, mesh.triangles_center])
    owner = np.concatenate([owner, np.arange(len(mesh.faces))])
    width = float(mesh.extents.max()) / CELLS or 1.0
    seen = np.zeros(len(mesh.faces), dtype=int)
    for direction in np.array([d for d in itertools.product((-1.0, 0.0, 1.0), repeat=3) if any(d)]):
        axes = np.linalg.svd(direction[None])[2]  # the first along the direction
        depth, *across = (axes * np.sign(axes[0] @ direction)) @ points.T / width
        cells = np.stack(across).astype(int)
        cells -= cells.min(axis=1, keepdims=True)
        cell = cells[0] * (int(cells[1].max()) + 1) + cells[1]
        top = np.full(int(cell.max()) + 1, -np.inf)
        np.maximum.at(top, cell, depth)
        seen[np.unique(owner[depth > top[cell] - 2.0])] += 1
    return seen > 1


def shaded(mesh: trimesh.Trimesh) -> tuple[Array, Array]:
    """Vertices (n, 3) and faces (k, 3), with a vertex split where faces meet in an edge: normals are means over a vertex."""
    mesh.merge_vertices()
    mesh.update_faces(mesh.nondegenerate_faces())
    if len(mesh.faces) < 2:
        return np.asarray(mesh.vertices), np.asarray(mesh.faces)
    smooth = trimesh.graph.smooth_shade(mesh, angle=CREASE)
    return np.asarray(smooth.vertices), np.asarray(smooth.faces)
