"""Replacement of collision meshes by convex parts, which CoACD computes (Wei et al. 2022, extra "decomposition")."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..array_types import Array
from ..engine.cache import kept
from ..extras import imports_from_extra
from ..model.contact_rules import ContactPair
from ..model.description import Decomposition
from ..model.editing.notes import noted
from ..model.editing.references import D, new_name, require_body
from ..model.files import is_mesh_there
from ..model.types import LARGEST, ModelError, Pose, Shape, ShapeType
from . import coacd_process

if TYPE_CHECKING:
    import trimesh

CONVEX = 1e-6  # greatest part of a convex hull that a mesh leaves empty, if it counts as convex
EMPTY = 1e-9  # least volume of a part relative to all parts
DECOMPOSED = "collision meshes replaced by convex parts"  # key of reports


def decomposed(d: D, options: Decomposition) -> D:
    """Return the description with convex parts in place of collision meshes, and in contact pairs with these.

    The mesh itself remains, and touches nothing. A mesh that is convex, flat or missing remains as it is.
    """
    bodies = None if options.bodies is None else tuple(options.bodies)
    for name in bodies or ():
        require_body(d, name, "decompose")
    parts: dict[str, list[Shape]] = {}
    shapes: list[Shape] = []
    taken = {s.name for s in d.shapes}
    for s in d.shapes:
        chosen = s.type is ShapeType.MESH and s.collision and (bodies is None or s.body in bodies)
        pieces = _parts(s, options, d.source) if chosen else []
        if len(pieces) < 2:
            shapes.append(s)
            continue
        shapes.append(replace(s, collision=False))  # also a hidden one: sensors name it
        own = []
        for vertices in pieces:
            name = new_name(f"{s.name}_part", taken)
            taken.add(name)
            own.append(
                replace(
                    s, name=name, part_of=s.name, visual=False, path=None, vertices=vertices, faces=None, size=(1.0, 1.0, 1.0)
                )
            )
        shapes += own
        parts.setdefault(s.name, own)
    pairs = tuple(pair for given in d.contact_pairs for pair in _pairs(given, parts))
    entries = [f"{name} ({len(own)} parts)" for name, own in parts.items()]
    return noted(replace(d, shapes=tuple(shapes), contact_pairs=pairs), DECOMPOSED, entries)


def _pairs(pair: ContactPair, parts: dict[str, list[Shape]]) -> Iterator[ContactPair]:
    first, second = ([s.name for s in parts[name]] if name in parts else [name] for name in pair.shapes)
    for a in first:
        for b in second:
            yield replace(pair, shapes=(a, b))


def _parts(shape: Shape, options: Decomposition, source: str) -> list[Array]:
    """Return the vertices (n, 3) of the convex parts of a mesh, in the shape's frame [m]; nothing for one that remains."""
    with imports_from_extra("decomposition", f"decomposing the mesh {shape.name!r} needs coacd, scipy and trimesh"):
        version = metadata.version("coacd")
        import scipy  # noqa: F401  # which trimesh imports for convex hulls only
        import trimesh  # noqa: F401  # an ImportError here names the extra
    if shape.vertices is None and not is_mesh_there(shape.path or ""):
        return []
    mesh = _closed_by_merging(shape)
    extents = np.ptp(mesh.vertices, axis=0) if len(mesh.faces) else np.zeros(3)
    if len(mesh.faces) < 4 or not (np.abs(mesh.vertices) <= LARGEST).all() or extents.min() <= 0.0:
        return []
    hull = mesh.convex_hull.volume
    if mesh.is_watertight and mesh.volume >= (1.0 - CONVEX) * hull:
        return []
    keywords = {
        "threshold": options.threshold,
        "max_convex_hull": -1 if options.most_parts is None else options.most_parts,
        "preprocess_resolution": options.resolution,
        "mcts_iterations": options.iterations,
        "decimate": options.most_corners is not None,
        "max_ch_vertex": 256 if options.most_corners is None else options.most_corners,
        "seed": options.seed,
    }
    content = hashlib.sha256(mesh.vertices.tobytes() + mesh.faces.tobytes()).hexdigest()
    where = f"{source}: the mesh {shape.name!r}{f' ({shape.path})' if shape.path else ''} on {shape.body!r}"
    made = kept(lambda: _run(mesh, keywords, where), "convex parts", content, sorted(keywords.items()), version)
    with np.load(io.BytesIO(made)) as arrays:
        found = [np.asarray(x, dtype=float) for x in arrays.values()]
    volumes = [_volume(x) for x in found]
    return [x for x, volume in zip(found, volumes, strict=True) if volume > EMPTY * sum(volumes)]


def _closed_by_merging(shape: Shape) -> trimesh.Trimesh:
    """Return the whole mesh in the shape's frame [m], with one vertex for all corners of triangles in one point."""
    import trimesh

    from ..model.triangles import shape_meshes

    meshes = [mesh for mesh, _ in shape_meshes(replace(shape, placement=Pose()))]
    whole = trimesh.Trimesh(*trimesh.util.append_faces([m.vertices for m in meshes], [m.faces for m in meshes]), process=False)
    whole.merge_vertices(merge_tex=True, merge_norm=True)
    whole.update_faces(whole.nondegenerate_faces())
    whole.remove_unreferenced_vertices()
    if whole.is_watertight and whole.volume < 0.0:
        whole.invert()
    return whole


def _volume(points: Array) -> float:
    """Return the volume of the convex hull of points (n, 3); zero for points in a plane."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return float(ConvexHull(points).volume)
    except (QhullError, ValueError):
        return 0.0


def _run(mesh: trimesh.Trimesh, keywords: Mapping[str, object], where: str) -> bytes:
    """Return an .npz file with the vertices of each part. Raises ModelError if CoACD fails."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "mesh.npz"), Path(folder, "parts.npz")
        np.savez(given, vertices=mesh.vertices, faces=mesh.faces.astype(np.int32))
        command = [sys.executable, coacd_process.__file__, str(given), str(made), json.dumps(keywords)]
        there = os.pathsep.join(p for p in sys.path if p)
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": there}, capture_output=True, text=True, check=False)
        if done.returncode or not made.is_file():
            last = (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
            raise ModelError(
                f"{where}: CoACD cannot decompose it ({last[-200:]}); repair the mesh, or leave its body out of "
                "Decomposition(bodies=...)"
            )
        return made.read_bytes()
