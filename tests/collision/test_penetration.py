"""Tests of depths of overlap against Qhull's convex hull of the difference of two shapes, and exact geometry."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from featherweight.array_types import Array
from featherweight.collision.closest_points import closest
from featherweight.collision.collision_scene import BOX, CYLINDER, ELLIPSOID, HULL, MOST_FACES, MOST_SUPPORTS
from featherweight.collision.convex_shapes import ConvexShape
from featherweight.collision.hulls import NO_HULL, hull_of, searched_hull
from featherweight.collision.penetration import deepest, first_faces, grow, tetrahedron, weights_of_face, write_face
from featherweight.collision.query_tables import QueryWork, pair_table, query_work

CUBE = np.array(list(product((-1.0, 1.0), repeat=3)))


def room() -> QueryWork:
    """Return workspace that contains other numbers."""
    return query_work(pair_table((), ()), 0, 0)._replace(
        supports=np.full((MOST_SUPPORTS, 9), np.nan),
        planes=np.full((MOST_FACES, 4), np.nan),
        triangles=np.full((MOST_FACES, 3), 10**6),
        horizon=np.full((MOST_FACES, 2), 10**6),
        weights=np.full(8, np.nan),
    )


def placed(kind: int, size: Any, R: Any = None, p: Any = (0.0, 0.0, 0.0), points: Array | None = None) -> ConvexShape:
    made = NO_HULL if points is None else hull_of(points)
    hull = searched_hull(made, np.array([0, 0, 0, 0, len(made.vertices), 0, 0, 0]))
    return ConvexShape(
        kind, np.concatenate([np.eye(3).ravel() if R is None else np.ravel(R), p]), np.asarray(size, float), 0.0, hull
    )


def overlap(one: ConvexShape, other: ConvexShape, size: float) -> tuple[float, Array, Array, Array]:
    """Return the depth, the normal from `one` to `other`, and the deepest points of both."""
    work = room()
    count, distance = closest(one, other, (0.3, -0.2, 1.0), (size, 1e300, 0.0), work.supports, work.weights)
    assert distance == 0.0
    f = deepest(one, other, count, size, work)
    assert f >= 0
    w, corners = np.array(weights_of_face(work, f)), work.supports[work.triangles[f]]
    assert w.sum() == pytest.approx(1.0)
    return float(work.planes[f, 3]), work.planes[f, :3], w @ corners[:, 3:6], w @ corners[:, 6:9]


def depth_by_qhull(x: Array, y: Array) -> float:
    """Return the distance from the origin to the surface of the hull of all differences."""
    planes = ConvexHull((x[:, None] - y).reshape(-1, 3)).equations
    return float(-planes[:, 3].max())


def corners(points: Array, R: Array, p: Any) -> Array:
    moved: Array = points @ R.T + p
    return moved


@pytest.mark.parametrize("seed", range(16))
def test_the_depth_is_that_of_the_difference_of_both_shapes(seed: int) -> None:
    """Check that shapes moved apart by the depth along the normal only touch; the deepest points lie on both, and are
    that far apart.
    """
    rng = np.random.default_rng(seed)
    clouds = [
        CUBE * [0.5, 0.4, 0.3],
        CUBE * [1.0, 1.0, 0.01],
        CUBE * [1.0, 0.02, 0.03],
        rng.standard_normal((25, 3)),
        rng.standard_normal((5, 3)),
    ]
    a, b = clouds[seed % 5], clouds[int(rng.integers(5))]
    R = [np.eye(3) if seed % 3 == 0 else Rotation.random(rng=rng).as_matrix() for _ in range(2)]
    middle = (corners(b, R[1], 0.0)[:4].mean(axis=0) - corners(a, R[0], 0.0)[:4].mean(axis=0)) * rng.uniform(0.3, 1.0)
    X, Y = corners(a, R[0], middle), corners(b, R[1], 0.0)
    exact = depth_by_qhull(X, Y)
    assert exact > 1e-6
    depth, n, x, y = overlap(placed(HULL, np.zeros(3), R[0], middle, a), placed(HULL, np.zeros(3), R[1], points=b), 6.0)
    assert depth == pytest.approx(exact, abs=1e-7)
    assert np.linalg.norm(n) == pytest.approx(1.0)
    assert (X @ n).max() - (Y @ n).min() == pytest.approx(depth, abs=1e-7)  # no direction separates them by less
    np.testing.assert_allclose(x - y, depth * n, atol=1e-6)
    for point, cloud in ((x, X), (y, Y)):
        planes = ConvexHull(cloud).equations
        assert (planes[:, :3] @ point + planes[:, 3]).max() < 1e-8


@pytest.mark.parametrize("depth", [1.0, 0.1, 1e-3, 1e-6])
@pytest.mark.parametrize("across", [0.0, 0.3, -0.9])
def test_boxes_in_one_another(depth: float, across: float) -> None:
    """Check faces in one plane: many points of the difference lie in the face that is next to the origin."""
    upper, lower = placed(BOX, (1.0, 1.0, 1.0), p=(across, 0.0, 2.0 - depth)), placed(BOX, (1.0, 1.0, 1.0))
    found, n, x, y = overlap(upper, lower, 3.5)
    assert found == pytest.approx(min(depth, 2.0 - abs(across)), abs=1e-8)
    np.testing.assert_allclose(n, [0.0, 0.0, -1.0], atol=1e-6)
    assert (np.abs(x - [across, 0.0, 2.0 - depth]) <= 1.0 + 1e-9).all() and (np.abs(y) <= 1.0 + 1e-9).all()


@pytest.mark.parametrize(
    ("turn", "size", "p"),
    [
        (45.0, (0.5, 0.2, 1.0), (0.6, 0.1, 1.95)),
        (30.0, (0.5, 0.3, 0.5), (0.1, 0.6, 1.3)),
        (0.0, (1.0, 1.0, 0.5), (0.1, 0.1, 1.3)),
    ],
)
def test_the_deepest_points_of_faces_that_meet_are_in_both(turn: float, size: Any, p: Any) -> None:
    """Check several coplanar faces of the polytope: the one that contains the point below the origin must be used."""
    R = Rotation.from_euler("z", turn, degrees=True).as_matrix()
    depth, n, x, y = overlap(placed(BOX, size, R, p), placed(BOX, (1.0, 1.0, 1.0)), 3.5)
    assert depth == pytest.approx(1.0 + size[2] - p[2], abs=1e-8)
    assert (np.abs(R.T @ (x - p)) <= np.array(size) + 1e-9).all() and (np.abs(y) <= 1.0 + 1e-9).all()
    np.testing.assert_allclose(x - y, depth * n, atol=1e-8)


def test_a_shape_in_itself_is_parted_along_its_thinnest_side() -> None:
    box = placed(BOX, (0.5, 0.2, 0.9))
    depth, n, _, _ = overlap(box, box, 2.1)
    assert depth == pytest.approx(0.4)
    np.testing.assert_allclose(np.abs(n), [0.0, 1.0, 0.0], atol=1e-9)


def test_shapes_that_touch_have_no_depth() -> None:
    upper, lower = placed(BOX, (1.0, 1.0, 1.0), p=(0.5, 0.0, 2.0)), placed(BOX, (1.0, 1.0, 1.0))
    assert overlap(upper, lower, 3.5)[0] == pytest.approx(0.0, abs=4e-8)


@pytest.mark.parametrize("kind", [CYLINDER, ELLIPSOID])
@pytest.mark.parametrize("depth", [0.3, 1e-2])
def test_curved_shapes_on_a_box(kind: int, depth: float) -> None:
    """Check shapes that stand on the box. The tolerance is the deviation of a polytope with 128 points."""
    size = (0.5, 1.0, 1.0) if kind == CYLINDER else (0.8, 0.5, 1.0)
    found, n, _, _ = overlap(placed(kind, size, p=(0.1, -0.2, 4.0 - depth)), placed(BOX, (3.0, 3.0, 3.0)), 6.3)
    assert found == pytest.approx(depth, abs=1e-5)
    np.testing.assert_allclose(n, [0.0, 0.0, -1.0], atol=1e-2)


# ---- the polytope


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 0, 2, 3), (3, 1, 0, 2)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_first_faces_look_outward(order: tuple[int, ...], scale: float) -> None:
    work = room()
    work.supports[:4, :3] = scale * np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1]])[list(order)]
    assert first_faces(work.supports, work.planes, work.triangles) == 4
    for f in range(4):
        n, d = work.planes[f, :3], work.planes[f, 3]
        np.testing.assert_allclose(work.supports[work.triangles[f], :3] @ n, d, atol=1e-12 * scale)
        assert np.linalg.norm(n) == pytest.approx(1.0) and d > 0.0
    assert sorted(map(sorted, work.triangles[:4].tolist())) == [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]


def test_points_are_added_until_the_polytope_is_their_hull() -> None:
    """Check that each new point is outside, and that new faces at the outline replace those that it sees: the hull of all
    by Qhull.
    """
    rng, work = np.random.default_rng(0), room()
    points = rng.standard_normal((40, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    points[:4] = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1]]) / [[1], [1], [1], [np.sqrt(3.0)]]
    work.supports[:40, :3] = points
    faces = first_faces(work.supports, work.planes, work.triangles)
    for k in range(4, 40):
        faces = grow(faces, k, -1e-12, work)
        hull = ConvexHull(points[: k + 1])
        assert faces == len(hull.simplices)
        assert {frozenset(t) for t in work.triangles[:faces].tolist()} == {frozenset(t) for t in hull.simplices.tolist()}
    np.testing.assert_allclose(sorted(work.planes[:faces, 3]), sorted(-hull.equations[:, 3]), atol=1e-12)


def test_a_point_in_the_plane_of_a_face_makes_no_sliver() -> None:
    """Check that the new point replaces its face as faces that it sees, and that a point inside is refused without a change."""
    work = room()
    work.supports[:6, :3] = np.array([[0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, -4], [3, 3, 0], [0.1, 0.1, -0.1]])
    faces = first_faces(work.supports, work.planes, work.triangles)
    faces = grow(faces, 4, -1e-12, work)
    hull = ConvexHull(work.supports[:5, :3])
    areas = [np.linalg.norm(np.cross(b - a, c - a)) for a, b, c in work.supports[:, :3][work.triangles[:faces]]]
    assert min(areas) > 1e-3 and 0.5 * sum(areas) == pytest.approx(hull.area)
    assert grow(faces, 5, -1e-12, work) == -1


def test_a_face_without_area_is_never_the_nearest() -> None:
    work = room()
    work.supports[:3, :3] = np.array([[0, 0, 1], [1, 0, 1], [2, 1e-12, 1]])
    write_face(work.supports, work.planes, work.triangles, 0, (0, 1, 2))
    assert work.planes[0, 3] == 1e300


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_simplex_becomes_a_tetrahedron(count: int) -> None:
    """Check simplices with coincident or collinear points too."""
    rng = np.random.default_rng(count)
    one, other = placed(BOX, (1.0, 0.5, 0.2)), placed(HULL, np.zeros(3), points=rng.standard_normal((12, 3)))
    for awkward in (False, True):
        work = room()
        work.supports[:4, :3] = rng.standard_normal((4, 3))
        if awkward:
            work.supports[1:3, :3] = work.supports[0, :3] + [[1e-9, 0, 0], [2e-9, 0, 0]]
        found = tetrahedron(one, other, min(count, 3) if awkward else count, 3.0, work.supports)
        assert found == 4
        x = work.supports[:4, :3]
        assert abs(np.linalg.det(x[1:] - x[0])) > 1e-9


def test_a_point_and_a_segment_have_no_volume() -> None:
    """Check the difference of two flat shapes in one plane: no tetrahedron exists, and no depth."""
    plate = placed(BOX, (1.0, 1.0, 0.0))
    work = room()
    work.supports[0, :3] = 0.0
    assert tetrahedron(plate, plate, 1, 3.0, work.supports) == 3
    assert deepest(plate, plate, 1, 3.0, work) == -1
