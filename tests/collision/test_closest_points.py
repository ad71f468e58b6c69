"""Tests of distances of convex shapes against least squares, enumeration of simplices, and exact geometry."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from featherweight.array_types import Array
from featherweight.collision.closest_points import (
    TOUCHING,
    add_support,
    closest,
    nearest_of_simplex,
    nearest_of_triangle,
    reduced,
    weighted,
)
from featherweight.collision.collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HULL, SPHERE
from featherweight.collision.convex_shapes import ConvexShape, farthest_point
from featherweight.collision.hulls import NO_HULL, hull_of, searched_hull

FAR = 1e300


def nearest_by_enumeration(points: Array) -> tuple[Array, bool]:
    """Return the point of a simplex nearest to the origin, from all its faces, and whether the simplex contains the origin."""
    best: Array = points[0]
    for size in range(1, len(points) + 1):
        for some in combinations(range(len(points)), size):
            chosen = points[list(some)]
            rest = (chosen[1:] - chosen[0]).T
            w = np.linalg.lstsq(rest, -chosen[0], rcond=None)[0] if size > 1 else np.zeros(0)
            weights = np.array([1.0 - w.sum(), *w])
            p = weights @ chosen
            if (weights >= -1e-13).all() and np.linalg.norm(p) < np.linalg.norm(best):
                best = p
    return best, bool(np.linalg.norm(best) < 1e-12)


def awkward_simplices(rng: np.random.Generator, count: int) -> list[Array]:
    """Yield random simplices, flat ones, slivers, and some with coincident corners or with the origin on a side."""
    x = rng.standard_normal((count, 3))
    one, other = rng.integers(count, size=2)
    flat, double, sliver, through = (x.copy() for _ in range(4))
    flat[:, 2] = 0.5
    double[one] = double[other]
    sliver[:, :2] *= 1e-7
    sliver += [0.3, 0.2, 0.1]
    through[:-1] -= through[:-1].sum(axis=0) / max(count - 1, 1)
    return [x, x + 1.0, flat, double, sliver, through, 1e-6 * x, 1e3 * x]


@pytest.mark.parametrize("seed", range(10))
def test_the_nearest_point_of_a_triangle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for corners in awkward_simplices(rng, 3):
        size = np.abs(corners).max()
        if np.linalg.norm(np.cross(corners[1] - corners[0], corners[2] - corners[0])) < 1e-12 * size * size:
            continue  # a triangle without area has no unique weights: `nearest_of_simplex` meets it only by rounding
        weights = np.array(nearest_of_triangle(*corners))
        expected, _ = nearest_by_enumeration(corners)
        assert weights.sum() == pytest.approx(1.0) and weights.min() >= -1e-12
        np.testing.assert_allclose(np.linalg.norm(weights @ corners), np.linalg.norm(expected), atol=1e-9 * size)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(10))
def test_the_nearest_point_of_a_simplex(count: int, seed: int) -> None:
    """Check that the remaining simplex has that point inside, with positive weights."""
    rng = np.random.default_rng(seed)
    for i, corners in enumerate(awkward_simplices(rng, count)):
        if count > 2 and i == 3:
            continue  # coincident corners: simplices of supports have none (`known` in `closest`)
        size = np.abs(corners).max()
        supports, weights = np.full((8, 9), np.nan), np.full(8, np.nan)
        supports[:count, :3], supports[:count, 3:6], supports[:count, 6:] = corners, corners + 1.0, np.arange(3.0)
        inside = nearest_of_simplex(supports, count, weights)
        expected, within = nearest_by_enumeration(corners)
        if inside:
            assert within or count == 4
            assert np.linalg.norm(expected) < 1e-9 * size
            continue
        found = weights[:count] @ corners
        np.testing.assert_allclose(np.linalg.norm(found), np.linalg.norm(expected), atol=1e-7 * size)
        left = reduced(supports, count, weights)
        assert 1 <= left <= min(count, 3) and (weights[:left] > 0.0).all()
        for column, shift in ((0, 0.0), (3, 1.0)):
            np.testing.assert_allclose(weighted(supports, left, weights, column), found + shift, atol=1e-12 * max(size, 1.0))


def test_a_tetrahedron_with_the_origin_within() -> None:
    corners = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1]])
    supports, weights = np.zeros((8, 9)), np.zeros(8)
    for s in (1.0, 1e-6, 1e6):
        for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
            supports[:4, :3] = s * corners[order]
            assert nearest_of_simplex(supports, 4, weights)
            supports[:4, 2] += 2.0 * s
            assert not nearest_of_simplex(supports, 4, weights)


# ---- shapes


def shape(kind: int, size: Any, R: Array, p: Any, points: Array | None = None) -> ConvexShape:
    made = NO_HULL if points is None else hull_of(points)
    hull = searched_hull(made, np.array([0, 0, 0, 0, len(made.vertices), 0, 0, 0]))
    rounding = float(size[0]) if kind in (SPHERE, CAPSULE) else 0.0
    return ConvexShape(kind, np.concatenate([np.ravel(R), p]), np.asarray(size, float), rounding, hull)


def polytope(points: Array, R: Array, p: Any) -> ConvexShape:
    return shape(HULL, np.zeros(3), R, p, points)


def distance(
    one: ConvexShape, other: ConvexShape, size: float, most: float = FAR, guess: Any = (0.0, 0.0, 1.0), enough: float = 0.0
) -> Any:
    """Return the distance without rounding, and the nearest points of both shapes."""
    supports, weights = np.full((20, 9), np.nan), np.full(8, np.nan)
    count, found = closest(one, other, guess, (size, most, enough), supports, weights)
    a, b = (np.array(weighted(supports, count, weights, column)) for column in (3, 6))
    return found, a, b


def least_distance(x: Array, y: Array) -> float:
    """Return the distance of the hulls of two sets of points; the weights of each are not negative and sum to one."""
    scale = 1e5 * max(1.0, float(np.abs(np.vstack([x, y])).max()))
    sums = np.zeros((2, len(x) + len(y)))
    sums[0, : len(x)] = sums[1, len(x) :] = scale
    w, _ = nnls(np.vstack([np.hstack([x.T, -y.T]), sums]), np.array([0.0, 0.0, 0.0, scale, scale]), maxiter=10000)
    return float(np.linalg.norm(x.T @ w[: len(x)] - y.T @ w[len(x) :]))


CUBE = np.array(list(product((-1.0, 1.0), repeat=3)))


@pytest.mark.parametrize("seed", range(12))
def test_the_distance_of_two_polytopes(seed: int) -> None:
    """Check boxes, meshes, flat and thin ones; the nearest points are at this distance along a direction that separates
    the shapes.
    """
    rng = np.random.default_rng(seed)
    clouds = [CUBE * [0.3, 1e-3, 0.6], CUBE * [2.0, 0.1, 0.1], rng.standard_normal((30, 3)), rng.standard_normal((5, 3))]
    for first in clouds[:2]:
        x, y = first, clouds[int(rng.integers(4))]
        R = [Rotation.random(rng=rng).as_matrix() if seed % 2 else np.eye(3) for _ in range(2)]
        p = rng.uniform(1.0, 4.0) * rng.standard_normal(3)
        found, a, b = distance(polytope(x, R[0], p), polytope(y, R[1], np.zeros(3)), 5.0)
        X, Y = x @ R[0].T + p, y @ R[1].T
        expected = least_distance(X, Y)
        assert found == pytest.approx(expected, abs=2e-6)
        if found > 0.0:
            n = (a - b) / found
            assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-9)
            assert (X @ n).min() - (Y @ n).max() == pytest.approx(found, abs=1e-7)


@pytest.mark.parametrize("gap", [0.5, 1e-3, 1e-6, 0.0, -1e-3, -0.5])
@pytest.mark.parametrize("across", [0.0, 0.4, 1.9])
def test_boxes_side_by_side(gap: float, across: float) -> None:
    """Check touching faces, where many pairs of points are nearest; zero if they overlap or nearly touch."""
    boxes = [shape(BOX, (1.0, 1.0, 1.0), np.eye(3), p) for p in ((across, 0.0, 2.0 + gap), (0.0, 0.0, 0.0))]
    for guess in ((0.0, 0.0, 1.0), (1.0, 0.3, -0.2)):
        assert distance(boxes[0], boxes[1], 3.5, guess=guess)[0] == pytest.approx(max(gap, 0.0), abs=3.5 * TOUCHING)


def test_what_is_known_of_round_shapes() -> None:
    """Check that centres and axes represent balls and capsules, with a margin around them."""
    ball, other = (
        shape(SPHERE, (0.3, 0.0, 0.0), np.eye(3), (3.0, 4.0, 0.0)),
        shape(SPHERE, (9.0, 0.0, 0.0), np.eye(3), np.zeros(3)),
    )
    assert distance(ball, other, 9.3)[0] == pytest.approx(5.0)
    rod = shape(CAPSULE, (0.2, 1.0, 0.0), np.eye(3), (0.5, 0.0, 0.0))
    assert distance(rod, other, 9.3)[0] == pytest.approx(0.5)
    box = shape(BOX, (1.0, 2.0, 3.0), np.eye(3), np.zeros(3))
    found, a, b = distance(ball, box, 9.0)
    assert found == pytest.approx(np.hypot(2.0, 2.0))
    np.testing.assert_allclose(a, [3.0, 4.0, 0.0])
    np.testing.assert_allclose(b, [1.0, 2.0, 0.0])
    can = shape(CYLINDER, (1.0, 0.5, 0.0), np.eye(3), np.zeros(3))
    assert distance(ball, can, 9.0)[0] == pytest.approx(4.0, abs=1e-6)
    above = shape(SPHERE, (0.1, 0.0, 0.0), np.eye(3), (0.3, 0.2, 2.0))
    assert distance(above, can, 9.0)[0] == pytest.approx(1.5, abs=1e-6)
    egg = shape(ELLIPSOID, (1.0, 2.0, 3.0), np.eye(3), np.zeros(3))
    for axis in range(3):
        there = shape(SPHERE, (0.1, 0.0, 0.0), np.eye(3), 7.0 * np.eye(3)[axis])
        assert distance(there, egg, 9.0)[0] == pytest.approx(7.0 - (axis + 1.0), abs=1e-6)


@pytest.mark.parametrize("gap", [0.01, 1.0, 7.0])
def test_no_distance_is_sought_beyond_the_greatest(gap: float) -> None:
    boxes = [shape(BOX, (1.0, 1.0, 1.0), np.eye(3), p) for p in ((0.0, 0.0, 2.0 + gap), (0.0, 0.0, 0.0))]
    assert distance(boxes[0], boxes[1], 3.5, 0.99 * gap)[0] == FAR
    assert distance(boxes[0], boxes[1], 3.5, 1.01 * gap)[0] == pytest.approx(gap)


def test_any_distance_below_one_that_is_enough_will_do() -> None:
    """Check that the result is at least the given distance."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        x, y = rng.standard_normal((2, 20, 3))
        x[:, 2] += 6.0
        one, other = polytope(x, np.eye(3), np.zeros(3)), polytope(y, np.eye(3), np.zeros(3))
        exact = least_distance(x, y)
        for enough in (0.5 * exact, 1.2 * exact, 3.0 * exact):
            found, a, b = distance(one, other, 6.0, enough=enough)
            assert exact - 1e-6 <= found <= max(exact + 1e-6, enough)
            assert np.linalg.norm(a - b) == pytest.approx(found)


def test_the_same_shape_twice_has_no_distance() -> None:
    rng = np.random.default_rng(0)
    mesh = polytope(rng.standard_normal((20, 3)), Rotation.random(rng=rng).as_matrix(), rng.standard_normal(3))
    assert distance(mesh, mesh, 5.0)[0] == 0.0


@pytest.mark.parametrize("kind", [SPHERE, CAPSULE, BOX, CYLINDER, ELLIPSOID, HULL])
def test_supports_are_farthest_points(kind: int) -> None:
    """Check that no point of a dense sample is farther along a direction; a support of two shapes is that of their
    difference.
    """
    rng = np.random.default_rng(kind)
    size, R, p = rng.uniform(0.2, 1.0, 3), Rotation.random(rng=rng).as_matrix(), rng.standard_normal(3)
    points = rng.standard_normal((20, 3))
    one = shape(kind, size, R, p, points if kind == HULL else None)
    u = rng.standard_normal((4000, 3))
    u /= np.linalg.norm(u, axis=1)[:, None]
    ring = np.column_stack([u[:, :2] / np.linalg.norm(u[:, :2], axis=1)[:, None] * size[0], np.sign(u[:, 2]) * size[1]])
    sample = {SPHERE: np.zeros((1, 3)), CAPSULE: np.outer([-size[1], size[1]], [0, 0, 1]), BOX: CUBE * size, CYLINDER: ring,
              ELLIPSOID: u * size, HULL: points}[kind] @ R.T + p  # fmt: skip
    other, supports = shape(BOX, (0.5, 0.5, 0.5), np.eye(3), np.zeros(3)), np.zeros((3, 9))
    for d in (*rng.standard_normal((10, 3)), *np.eye(3), *(-R.T)):
        x = np.array(farthest_point(one, d))
        most = (sample @ d).max()
        assert most - 1e-12 <= x @ d <= most + 0.02 * np.linalg.norm(d) * (kind in (CYLINDER, ELLIPSOID)) + 1e-12
        add_support(one, other, d, supports, 1)
        np.testing.assert_allclose(supports[1, 3:6], x)
        assert supports[1, 6:] @ d == pytest.approx(-0.5 * np.abs(d).sum())
        np.testing.assert_allclose(supports[1, :3], supports[1, 3:6] - supports[1, 6:])
