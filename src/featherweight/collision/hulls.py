"""Convex hulls of meshes: made once by Qhull, searched by compiled functions."""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..array_types import IntegerMatrix, Integers, Matrix, Vector
from ..engine.cache import digest_of_files, kept
from ..extras import imports_from_extra
from ..model.files import read_mesh
from ..model.types import LARGEST, WORLD, Shape
from .collision_scene import Hulls
from .triples import TripleLike, inner

FEW = 16  # greatest number of vertices for linear search
GRID = 8  # cells of directions along both sides of a cube's faces
CELLS = 6 * GRID * GRID
COPLANAR = 1e-7  # greatest sine of the angle between triangles of one face
STEPS = 10000  # bound of the steps of hill climbing, which terminates by itself

SearchedHull = tuple[Matrix, Integers, Integers, Matrix, Integers, int, int, int]
"""Vertices, links, linked, around and starts of `Hulls`; the range of the hull's vertices, and its first start."""


class Hull(NamedTuple):
    """A convex hull: corners (n, 3), neighbours of each corner along edges, its faces, and the corners of each face.

    Corners of a face are counter-clockwise seen from outside. Lists are ranges of arrays. If several hulls share arrays,
    numbers count from the first corner of this hull.
    """

    vertices: Matrix  # (n, 3)
    links: Integers  # (n + 1,) first neighbour of each vertex in `linked`
    linked: Integers
    around: Matrix  # (m, 3) positions of the neighbours, in the order of the search
    faces: Integers  # (f + 1,) first corner of each face in `corners`
    corners: Integers
    normals: Matrix  # (f, 3) outward
    owners: Integers  # (n + 1,) first face of each vertex in `owned`
    owned: Integers
    starts: Integers  # (CELLS,) farthest vertex along the central direction of each cell, see `cell_of`
    centroid: Vector  # (3,) of the hull, or MuJoCo's of the mesh


NO_HULL = Hull(
    np.zeros((0, 3)), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros(1, np.int64),
    np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64),
    np.zeros(3),
)  # fmt: skip


def hull_of(points: Matrix) -> Hull:
    """Return the convex hull of points (n, 3), which must have a volume. Raises ImportError without SciPy."""
    with imports_from_extra("shapes", "convex hulls of meshes need scipy"):
        from scipy.spatial import ConvexHull  # slow to import

    qhull = ConvexHull(points)
    number = np.full(len(points), -1)
    number[qhull.vertices] = np.arange(len(qhull.vertices))
    vertices = np.ascontiguousarray(points[qhull.vertices])
    triangles, planes = number[qhull.simplices], qhull.equations
    faces, normals = [], []
    for group in _coplanar(qhull.neighbors, planes):
        normal = planes[group[0], :3]
        corners = np.unique(triangles[group])
        faces.append(_in_order(vertices, corners, normal))
        normals.append(normal)
    return _linked_hull(vertices, triangles, faces, np.array(normals), _centroid(vertices, faces))


def _centroid(vertices: Matrix, faces: list[list[int]]) -> Vector:
    """Return the centroid of a hull."""
    origin, moment, volume = vertices.mean(axis=0), np.zeros(3), 0.0
    for face in faces:
        a, *rest = vertices[face] - origin
        for b, c in itertools.pairwise(rest):
            six = float(a @ np.cross(b, c))
            moment, volume = moment + six * (a + b + c), volume + six
    centroid: Vector = origin + moment / (4.0 * volume)
    return centroid


def _linked_hull(
    vertices: Matrix, triangles: IntegerMatrix, faces: list[list[int]], normals: Matrix, centroid: Vector
) -> Hull:  # fmt: skip
    """Return the hull with these triangles, and faces of several of them."""
    linked: list[set[int]] = [set() for _ in vertices]
    owned: list[list[int]] = [[] for _ in vertices]
    for a, b, c in triangles.tolist():  # all edges: along edges of merged faces only, climbing could stop early
        linked[a] |= {b, c}
        linked[b] |= {a, c}
        linked[c] |= {a, b}
    for f, face in enumerate(faces):
        for a in face:
            owned[a].append(f)
    links, all_linked = _ranges([sorted(x) for x in linked])
    starts, corners = _ranges(faces)
    owners, all_owned = _ranges(owned)
    first = (_middles_of_cells() @ vertices.T).argmax(axis=1)
    around = vertices[all_linked]
    return Hull(vertices, links, all_linked, around, starts, corners, normals, owners, all_owned, first, centroid)


def _middles_of_cells() -> Matrix:
    """Return the central direction (CELLS, 3) of each cell."""
    along = (np.arange(GRID) + 0.5) * (2.0 / GRID) - 1.0
    v, u = np.meshgrid(along, along, indexing="ij")
    cells = np.empty((3, 2, GRID, GRID, 3))
    for axis in range(3):
        for side in range(2):
            cells[axis, side, ..., axis] = 2.0 * side - 1.0
            cells[axis, side, ..., (axis + 1) % 3] = u
            cells[axis, side, ..., (axis + 2) % 3] = v
    return cells.reshape(-1, 3)


def _coplanar(neighbors: IntegerMatrix, planes: Matrix) -> list[list[int]]:
    """Group triangles that share sides and are in one plane."""
    left, groups = set(range(len(planes))), []
    while left:
        group, todo = [], [left.pop()]
        first = planes[todo[0], :3]
        while todo:
            t = todo.pop()
            group.append(t)
            for other in neighbors[t]:
                if other in left and np.linalg.norm(planes[other, :3] - first) < COPLANAR:
                    left.remove(int(other))
                    todo.append(int(other))
        groups.append(group)
    return groups


def _in_order(vertices: Matrix, corners: Integers, normal: Vector) -> list[int]:
    """Return the corners of a convex polygon, counter-clockwise about its normal."""
    x = vertices[corners] - vertices[corners].mean(axis=0)
    u = x[0] / np.linalg.norm(x[0])
    angle = np.arctan2(x @ np.cross(normal, u), x @ u)
    return [int(c) for c in corners[np.argsort(angle)]]


def _ranges(lists: list[list[int]]) -> tuple[Integers, Integers]:
    ends = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return ends, np.array([x for one in lists for x in one], dtype=np.int64)


def searched_hull(hulls: Hulls | Hull, data: Integers) -> SearchedHull:
    """Return the hull for `farthest_vertex`, from a shape's row of numbers (see `part_ranges`)."""
    return hulls.vertices, hulls.links, hulls.linked, hulls.around, hulls.starts, data[3], data[4], data[7]


def farthest_vertex(hull: SearchedHull, direction: TripleLike) -> int:
    """Return the number of the farthest vertex along a direction.

    Hill climbing starts at the vertex for the direction's cell. On a convex hull, a vertex that no neighbour exceeds is the
    farthest.
    """
    vertices, links, linked, around, starts, first, stop, start = hull
    if stop - first <= FEW:
        best = first
        most = inner(vertices[best], direction)
        for i in range(first + 1, stop):
            far = inner(vertices[i], direction)
            if far > most:
                best, most = i, far
        return best
    best = starts[start + cell_of(direction)]
    most = inner(vertices[best], direction)
    for _ in range(STEPS):
        here = best
        for n in range(links[here], links[here + 1]):
            far = inner(around[n], direction)
            if far > most:
                best, most = linked[n], far
        if best == here:
            break
    return best


def cell_of(d: TripleLike) -> int:
    """Return the number of a direction's cell: a face of a cube, and a square on it."""
    x, y, z = abs(d[0]), abs(d[1]), abs(d[2])
    if x >= y and x >= z:
        axis, out, u, v = 0, d[0], d[1], d[2]
    elif y >= z:
        axis, out, u, v = 1, d[1], d[2], d[0]
    else:
        axis, out, u, v = 2, d[2], d[0], d[1]
    side = 1 if out > 0.0 else 0
    scale = 0.5 * GRID / max(abs(out), 1e-300)
    i = min(max(int(v * scale + 0.5 * GRID), 0), GRID - 1)
    j = min(max(int(u * scale + 0.5 * GRID), 0), GRID - 1)
    return ((2 * axis + side) * GRID + i) * GRID + j


FLAT = 1e-9  # least extent relative to the greatest extent of a mesh


@np.errstate(all="ignore")  # of files whose numbers are too large
def mesh_vertices(shape: Shape) -> Matrix:
    """Return the vertices (n, 3) of a mesh in its body's frame [m].

    Raises ValueError for an unreadable file and for vertices that are not finite, and ImportError if reading the file needs
    trimesh, which is not installed.
    """
    if shape.vertices is not None:
        scaled = np.asarray(shape.vertices, dtype=float) * np.array(shape.size)
        vertices = np.asarray(scaled @ np.array(shape.placement.R).T + np.array(shape.placement.p))
    else:
        with imports_from_extra("shapes", f"reading the mesh {_described(shape)} needs trimesh"):
            from ..model.triangles import shape_meshes
        vertices = np.concatenate([np.asarray(mesh.vertices) for mesh, _ in shape_meshes(shape)])
    if not (np.abs(vertices) <= LARGEST).all():
        raise ValueError(
            f"the mesh {_named(shape)} has vertices that are not finite, or beyond {LARGEST:g} m: correct the file or its scale"
        )
    return vertices


def hull_vertices(shape: Shape) -> Matrix:
    """Return the vertices (n, 3) of a collision mesh, which its convex hull replaces, in its body's frame [m].

    Raises ValueError for a mesh without volume, and as `mesh_vertices` does.
    """
    vertices = mesh_vertices(shape)
    extents = np.linalg.svd(vertices - vertices.mean(axis=0), compute_uv=False)
    if len(extents) < 3 or not extents[2] > FLAT * extents[0]:
        raise ValueError(
            f"the mesh {_named(shape)} is flat, so bodies would pass through it: "
            "give it thickness, replace it by a box, or remove it from the collision shapes"
        )
    return vertices


PACKAGE = Path(__file__).parents[1]
CODE = digest_of_files(PACKAGE, (PACKAGE / "collision/hulls.py", PACKAGE / "model/triangles.py"))
SELF_CONTAINED = (".stl", ".obj", ".dae", ".ply", ".glb", ".msh")  # mesh files whose vertices are in no other file


def hull_of_mesh(shape: Shape, by_file: bool = False) -> Hull:
    """Return the convex hull of a collision mesh in its body's frame [m]. It is kept on disk, by the content of the mesh.

    `by_file` asks for the hull that MuJoCo computes, in single precision, with the faces in its order, because contact points
    of meshes depend on both. Without MuJoCo, and for meshes that it cannot read, the hull is Qhull's.

    Raises ValueError for a mesh without volume or an unreadable mesh, and ImportError if a package is missing.
    """

    def packed() -> bytes:
        file = io.BytesIO()
        np.savez(file, *_made_hull(shape, by_file))
        return file.getvalue()

    content = (*_content(shape), *(("mujoco", _version("mujoco")) if by_file and find_spec("mujoco") else ()))
    if not _content(shape):
        return _made_hull(shape, by_file)
    placed = np.concatenate([np.ravel(x) for x in (shape.size, *shape.placement)]).tolist()
    with np.load(io.BytesIO(kept(packed, "hull", CODE, content, placed))) as arrays:
        return Hull(*arrays.values())


def _made_hull(shape: Shape, by_file: bool) -> Hull:
    vertices = hull_vertices(shape)
    if by_file and (made := _hull_of_mujoco(shape)):
        return made
    try:
        return hull_of(vertices)
    except ImportError as error:
        raise ImportError(f"the mesh {shape.name!r} on {shape.body!r}: {error}") from error
    except RuntimeError as error:  # of Qhull
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(f"the mesh {_named(shape)} has no convex hull ({reason}): correct the file or its scale") from error


def _hull_of_mujoco(shape: Shape) -> Hull | None:
    """Return the hull of a mesh that MuJoCo compiles; None without MuJoCo, or for a mesh that it refuses."""
    try:
        import mujoco  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    spec = mujoco.MjSpec()
    mesh = spec.add_mesh(name="mesh", scale=shape.size)
    if shape.vertices is None:
        mesh.file = shape.path or ""
    else:
        mesh.uservert = np.ravel(shape.vertices)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="mesh")
    try:
        model = spec.compile()
    except (ValueError, RuntimeError, MemoryError):
        return None
    inertial = np.zeros(9)
    mujoco.mju_quat2Mat(inertial, model.mesh_quat[0])
    P = np.array(shape.placement.R)
    R = P @ inertial.reshape(3, 3)
    middle = P @ model.mesh_pos[0] + np.array(shape.placement.p)
    vertices = model.mesh_vert.astype(float) @ R.T + middle
    numbers, triangles = int(model.mesh_graph[0]), int(model.mesh_graph[1])
    used = model.mesh_graph[2 + numbers : 2 + 2 * numbers]
    number = np.full(len(vertices), -1)
    number[used] = np.arange(numbers)
    ends = model.mesh_polyvertadr + model.mesh_polyvertnum
    faces = [number[model.mesh_polyvert[a:b]].tolist() for a, b in zip(model.mesh_polyvertadr, ends, strict=True)]
    corners = number[model.mesh_graph[len(model.mesh_graph) - 3 * triangles :]].reshape(-1, 3)
    return _linked_hull(np.ascontiguousarray(vertices[used]), corners, faces, np.asarray(model.mesh_polynormal @ R.T), middle)


def _content(shape: Shape) -> tuple[str, ...]:
    """Return what determines the vertices of a mesh: their hash and the packages that compute the hull.

    Return nothing if other files may belong to the mesh, or if it cannot be read.
    """
    packages = ("scipy",) if shape.vertices is not None else ("scipy", "trimesh")
    try:
        if shape.vertices is not None:
            data = np.ascontiguousarray(shape.vertices, dtype=float).tobytes()
        elif (shape.path or "").lower().endswith(SELF_CONTAINED):
            data = read_mesh(shape.path or "")
        else:
            return ()
        return (hashlib.sha256(data).hexdigest(), Path(shape.path or "").suffix.lower(), *map(_version, packages))
    except (ValueError, ImportError):
        return ()


@functools.cache
def _version(package: str) -> str:
    """Return the version of an installed package. Raises ImportError if it is not installed."""
    from importlib.metadata import version  # slow to import

    return version(package)


def _named(shape: Shape) -> str:
    return f"{shape.name!r}{f' ({shape.path})' if shape.path else ''} on {shape.body!r}"


def _described(shape: Shape) -> str:
    return f"{shape.name!r} on {shape.body or WORLD!r}"
