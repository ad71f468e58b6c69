"""Tests of convex hulls of meshes against Qhull and properties of polyhedra; of farthest vertices against all vertices."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.array_types import Array
from featherweight.collision import hulls
from featherweight.collision.hulls import CELLS, FEW, GRID, Hull, cell_of, farthest_vertex, hull_of, searched_hull
from featherweight.model.triangles import shape_meshes
from featherweight.model.types import Pose, Shape, ShapeType

CUBE = np.array(list(product((-1.0, 1.0), repeat=3)))
RNG = np.random.default_rng(0)
TURN = Rotation.random(rng=np.random.default_rng(5)).as_matrix()


def on_sphere(n: int, seed: int = 0) -> Array:
    x = np.random.default_rng(seed).standard_normal((n, 3))
    return np.asarray(x / np.linalg.norm(x, axis=1)[:, None])


def prism(n: int) -> Array:
    angle = 2.0 * np.pi * np.arange(n) / n
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.concatenate([np.column_stack([ring, np.full(n, z)]) for z in (-0.3, 0.3)])


LATTICE = np.array(list(product(np.linspace(-1.0, 1.0, 4), repeat=3)))
SHAPES = {  # points, and if known the numbers of vertices and faces, and the most corners of a face
    "tetrahedron": (np.vstack([np.zeros(3), np.eye(3)]), (4, 4, 3)),
    "cube": (CUBE, (8, 6, 4)),
    "turned cube, with points within, on its faces and edges": (LATTICE @ TURN.T, (8, 6, 4)),
    "points that are there twice": (np.repeat(CUBE, 3, axis=0), (8, 6, 4)),
    "prism with twenty sides": (prism(20) @ TURN.T, (40, 22, 20)),
    "thin plate": (CUBE * [1.0, 1.0, 1e-5], (8, 6, 4)),
    "needle": (CUBE * [1.0, 1e-3, 1e-3] @ TURN.T, (8, 6, 4)),
    "far from the origin": (CUBE + 1e3, (8, 6, 4)),
    "small": (1e-4 * CUBE, (8, 6, 4)),
    "ball": (on_sphere(300), (300, None, 3)),
    "random": (RNG.standard_normal((60, 3)), None),
}  # fmt: skip


def corners_of(hull: Hull, f: int) -> Array:
    return np.asarray(hull.corners[hull.faces[f] : hull.faces[f + 1]])


@pytest.mark.parametrize("name", SHAPES)
def test_a_hull_is_a_polyhedron_around_all_points(name: str) -> None:
    """Check that faces are planar, convex and counter-clockwise from outside; no point is beyond; edges are in two faces;
    Euler holds.
    """
    points, known = SHAPES[name]
    hull = hull_of(points)
    size = np.ptp(points, axis=0).max()
    assert set(map(tuple, hull.vertices)) <= set(map(tuple, points))
    count = len(hull.faces) - 1
    edges = []
    for f in range(count):
        n, face = hull.normals[f], corners_of(hull, f)
        x = hull.vertices[face]
        assert np.linalg.norm(n) == pytest.approx(1.0)
        np.testing.assert_allclose((x - x[0]) @ n, 0.0, atol=1e-9 * size)
        assert ((points - x[0]) @ n).max() <= 1e-9 * size
        sides = np.roll(x, -1, axis=0) - x
        assert (np.cross(sides, np.roll(sides, -1, axis=0)) @ n > 0.0).all()
        assert np.linalg.norm(sides.sum(axis=0)) < 1e-9 * size
        edges += list(zip(face, np.roll(face, -1), strict=True))
    assert len(set(edges)) == len(edges) and {(b, a) for a, b in edges} == set(edges)
    assert len(hull.vertices) - len(edges) // 2 + count == 2
    volume = sum(np.linalg.det(hull.vertices[[face[0], face[i], face[i + 1]]] - points.mean(axis=0)) / 6.0
                 for face in (corners_of(hull, f) for f in range(count)) for i in range(1, len(face) - 1))  # fmt: skip
    assert volume == pytest.approx(ConvexHull(points).volume, rel=1e-6)
    if known:
        vertices, faces, most = known
        assert len(hull.vertices) == vertices and count in (faces, faces or count)
        assert np.diff(hull.faces).max() == most


@pytest.mark.parametrize("name", SHAPES)
def test_neighbours_and_faces_of_vertices_are_those_of_the_faces(name: str) -> None:
    hull = hull_of(SHAPES[name][0])
    neighbours: list[set[int]] = [set() for _ in hull.vertices]
    owned: list[set[int]] = [set() for _ in hull.vertices]
    for f in range(len(hull.faces) - 1):
        face = corners_of(hull, f)
        for a, b in zip(face, np.roll(face, -1), strict=True):
            neighbours[a].add(b)
            neighbours[b].add(a)
            owned[a].add(f)
    for i in range(len(hull.vertices)):
        linked, faces = hull.linked[hull.links[i] : hull.links[i + 1]], hull.owned[hull.owners[i] : hull.owners[i + 1]]
        assert set(linked) >= neighbours[i] and len(set(linked)) == len(linked) >= 3 and i not in linked
        assert all(owned[i] & owned[j] for j in linked)  # an edge may also be a diagonal of another face
        assert set(faces) == owned[i] and len(faces) == len(owned[i])


@pytest.mark.parametrize("name", SHAPES)
def test_climbs_begin_at_the_vertex_that_is_farthest_along_the_middle_of_a_cell(name: str) -> None:
    hull = hull_of(SHAPES[name][0])
    middle = (np.arange(GRID) + 0.5) * (2.0 / GRID) - 1.0
    for u, v, axis in product(middle, middle, np.vstack([np.eye(3), -np.eye(3)])):
        d = axis + u * np.roll(np.abs(axis), 1) + v * np.roll(np.abs(axis), 2)
        heights = hull.vertices @ d
        assert heights[hull.starts[cell_of(tuple(d))]] >= heights.max() - 1e-12 * np.abs(heights).max()


@pytest.mark.parametrize("points", [CUBE[:4], CUBE[:3], np.column_stack([LATTICE[:, :2], np.zeros(len(LATTICE))])])
def test_points_without_a_volume_have_no_hull(points: Array) -> None:
    with pytest.raises(QhullError):
        hull_of(points)


@pytest.mark.parametrize("name", [*SHAPES, "two hulls"])
def test_the_farthest_vertex_is_that_of_all(name: str) -> None:
    """Check random directions and normals of faces, also if the hull's numbers are not first in their array."""
    rng = np.random.default_rng(1)
    points = 3.0 * on_sphere(FEW + 100, 7) if name == "two hulls" else SHAPES[name][0]
    hull = hull_of(points)
    first, begin = (5, CELLS) if name == "two hulls" else (0, 0)  # vertices and cells of another hull precede
    vertices = np.vstack([np.full((first, 3), 1e9), hull.vertices])
    links = np.concatenate([np.zeros(first, np.int64), hull.links])
    starts = np.concatenate([np.zeros(begin, np.int64), hull.starts + first])
    both = hull._replace(vertices=vertices, links=links, linked=hull.linked + first, starts=starts)
    found = searched_hull(both, np.array([0, 0, 0, first, len(vertices), 0, 0, begin]))
    normals = hull.normals[rng.permutation(len(hull.normals))[:6]]
    for d in (*rng.standard_normal((30, 3)), *normals, *np.eye(3), *-np.eye(3), np.zeros(3), 1e-200 * np.ones(3)):
        best = farthest_vertex(found, d)
        exact = (hull.vertices @ d).max()
        assert first <= best < len(vertices)
        assert vertices[best] @ d >= exact - 1e-12 * np.abs(d).max() * np.abs(hull.vertices).max()


def test_directions_have_cells_in_which_they_lie_near_the_middle() -> None:
    """Check that all cells of both halves occur, and that directions in one are within a cell's diagonal of its middle."""
    d = np.random.default_rng(0).standard_normal((6000, 3))
    cells = np.array([cell_of(tuple(x)) for x in d])
    assert set(cells) == set(range(CELLS))
    assert [cell_of(tuple(1e6 * x)) for x in d[:50]] == cells[:50].tolist()
    on_cube = d / np.abs(d).max(axis=1)[:, None]
    for cell in range(0, CELLS, 7):
        inside = on_cube[cells == cell]
        assert np.ptp(inside, axis=0).max() <= 2.0 / GRID + 1e-12 and (np.ptp(inside, axis=0) == 0.0).sum() == 1


def ball_file(path: Path, radius: float) -> Shape:
    trimesh.creation.icosphere(subdivisions=1, radius=radius).export(path)
    return Shape("ball", "body", ShapeType.MESH, (1.0, 2.0, 1.0), Pose(TURN, (0.1, 0.2, 0.3)), path=str(path))


@pytest.mark.usefixtures("empty_cache")
def test_hulls_of_meshes_are_kept_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a second call, and another file with the same content, compute nothing, and that changes of any kind do."""
    path, other, made = tmp_path / "ball.stl", tmp_path / "copy.stl", list[int]()

    def noted(points: Array) -> Hull:
        made.append(len(points))
        return hull_of(points)

    monkeypatch.setattr(hulls, "hull_of", noted)
    shape = ball_file(path, radius=1.234567)
    first = hulls.hull_of_mesh(shape)
    other.write_bytes(path.read_bytes())
    for again in (shape, replace(shape, path=str(other))):
        for x, y in zip(first, hulls.hull_of_mesh(again), strict=True):
            np.testing.assert_array_equal(x, y)
            assert x.dtype == y.dtype and y.flags.c_contiguous
    assert len(made) == 1
    vertices = hulls.mesh_vertices(shape)
    inside = first.normals @ vertices.T - (first.normals * first.vertices[first.corners[first.faces[:-1]]]).sum(axis=1)[:, None]
    assert inside.max() < 1e-9 and len(first.vertices) == 42
    for changed in (
        replace(shape, size=(1.0, 1.0, 1.0)), replace(shape, placement=Pose()), ball_file(path, radius=1.3),
        replace(shape, path=None, vertices=on_sphere(30)), replace(shape, path=None, vertices=on_sphere(30, seed=1)),
    ):  # fmt: skip
        assert not np.array_equal(hulls.hull_of_mesh(changed).vertices, first.vertices)
    assert len(made) == 6
    with pytest.raises(ValueError, match=r"nowhere\.stl: no such file"):
        hulls.hull_of_mesh(replace(shape, path=str(tmp_path / "nowhere.stl")))


def test_meshes_are_read_from_regular_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a device has no content by which a hull is kept; a pipe would let the test wait without end."""
    monkeypatch.setattr(hulls, "kept", None)
    os.symlink(os.devnull, tmp_path / "device.stl")
    shape = Shape("ball", "body", ShapeType.MESH, (1.0, 1.0, 1.0), path=str(tmp_path / "device.stl"))
    for reading in (hulls.hull_of_mesh, hulls.mesh_vertices, hulls.hull_vertices):
        with pytest.raises(ValueError, match=r"device\.stl: no such file"):
            reading(shape)


def test_a_mesh_that_is_missing_beside_its_robot_is_not_that_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "robot").mkdir()
    ball_file(tmp_path / "ball.stl", radius=1.0)
    mesh = '<collision><geometry><mesh filename="ball.stl"/></geometry></collision>'
    (tmp_path / "robot/a.urdf").write_text(f'<robot name="r"><link name="a">{mesh}</link></robot>')
    monkeypatch.chdir(tmp_path)
    description = fw.read("robot/a.urdf")
    assert "ball.stl" in dict(description.unused)["meshes not found"]
    with pytest.raises(ValueError, match=r"ball\.stl: no such file"):
        hulls.hull_of_mesh(description.shapes[0])
    with pytest.raises(ValueError, match=r"ball\.stl: no such file"):
        shape_meshes(description.shapes[0])
    hulls.hull_of_mesh(Shape("ball", "body", ShapeType.MESH, (1.0, 1.0, 1.0), path="ball.stl"))  # of a description in code


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("of_file", [True, False])
def test_meshes_of_numbers_that_overflow_are_refused_by_name(of_file: bool, tmp_path: Path) -> None:
    shape = replace(ball_file(tmp_path / "ball.stl", radius=10.0), size=(1e308, 1.0, 1.0))
    shape = shape if of_file else replace(shape, path=None, vertices=10.0 * CUBE)
    file = r" \(.*ball\.stl\)" if of_file else ""
    with pytest.raises(
        ValueError, match=rf"the mesh 'ball'{file} on 'body' has vertices that are not finite, or beyond 1e\+30"
    ):
        hulls.hull_of_mesh(shape)


def test_errors_of_qhull_name_the_mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(points: Array) -> Hull:
        raise QhullError("QH6006 of Qhull\nand much more")

    monkeypatch.setattr(hulls, "hull_of", failing)
    with pytest.raises(ValueError, match=r"the mesh 'ball' \(.*ball\.stl\) on 'body' has no convex hull \(QH6006 of Qhull\)"):
        hulls.hull_of_mesh(ball_file(tmp_path / "ball.stl", radius=1.7654321))
