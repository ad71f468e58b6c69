"""Tests of face clipping against half planes and Qhull, and of the choice among many points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from featherweight.array_types import Array
from featherweight.collision.face_clipping import MOST_POINTS, clipped_faces, put_face_points, spread, write_box_face

UP = (0.0, 0.0, 1.0)


def polygon(n: int, radius: float = 1.0, at: Any = (0.0, 0.0), turned: float = 0.0, height: float = 0.0) -> Array:
    """Return a regular polygon, counter-clockwise about z."""
    angle = turned + 2.0 * np.pi * np.arange(n) / n
    ring = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1) + at
    return np.column_stack([ring, np.full(n, height)])


def clipped(reference: Array, incident: Array, normal: Any = UP) -> Array:
    polygons = np.full((3, 40, 3), np.nan)
    polygons[0, : len(reference)], polygons[1, : len(incident)] = reference, incident
    source, count = clipped_faces(polygons, len(reference), len(incident), normal)
    return polygons[source, :count].copy()


def half_planes(corners: Array) -> tuple[Array, Array]:
    """Return A x <= b of a polygon in the plane."""
    side = np.roll(corners, -1, axis=0)[:, :2] - corners[:, :2]
    A = np.column_stack([side[:, 1], -side[:, 0]])
    return A, (A * corners[:, :2]).sum(axis=1)


def common_reach(one: Array, other: Array, d: Array) -> float | None:
    """Return the extent of the intersection of two polygons along a direction, or None without an intersection."""
    (A, a), (B, b) = half_planes(one), half_planes(other)
    answer = linprog(-d, np.vstack([A, B]), np.concatenate([a, b]), bounds=(None, None))
    return -float(answer.fun) if answer.status == 0 else None


@pytest.mark.parametrize("seed", range(12))
def test_what_is_left_is_the_common_part(seed: int) -> None:
    """Check that the result has the extent of a linear program along every direction, and the tilt of the incident face."""
    rng = np.random.default_rng(seed)
    one = polygon(int(rng.integers(3, 8)), 1.0, turned=rng.uniform(0.0, 6.0))
    flat = polygon(int(rng.integers(3, 8)), rng.uniform(0.2, 1.5), 0.7 * rng.standard_normal(2), rng.uniform(0.0, 6.0))
    tilt = rng.uniform(-0.3, 0.3, 2)
    other = flat + np.outer(flat[:, :2] @ tilt, UP)
    found = clipped(one, other)
    for d in rng.standard_normal((8, 2)):
        reach = common_reach(one, flat, d)
        if reach is None:
            assert len(found) == 0
        else:
            assert (found[:, :2] @ d).max() == pytest.approx(reach, abs=1e-8)
    np.testing.assert_allclose(found[:, 2], found[:, :2] @ tilt, atol=1e-12)
    if len(found) > 2:
        turn = np.cross(np.roll(found, -1, 0) - found, np.roll(found, -2, 0) - np.roll(found, -1, 0))[:, 2]
        assert (turn >= -1e-9).all()  # convex, with the same orientation


SQUARE = polygon(4, np.sqrt(2.0), turned=np.pi / 4.0)  # from -1 to 1


@pytest.mark.parametrize(
    ("incident", "expected"),
    [
        (SQUARE, SQUARE),  # the same face
        (0.5 * SQUARE, 0.5 * SQUARE),  # inside
        (3.0 * SQUARE, SQUARE),  # outside
        (np.add(SQUARE, [2.0, 0.0, 0.0]), [[1, -1, 0], [1, 1, 0]]),  # with a common edge
        (np.add(SQUARE, [2.0, 2.0, 0.0]), [[1, 1, 0]]),  # with a common corner
        (np.add(SQUARE, [2.001, 0.0, 0.0]), np.zeros((0, 3))),  # beside
        (np.array([[-3.0, 0.5, 0.2], [3.0, 0.5, 0.2]]), [[-1, 0.5, 0.2], [1, 0.5, 0.2]]),  # a crossing segment
        (np.array([[0.0, 0.0, 0.1], [3.0, 0.0, 0.1]]), [[0, 0, 0.1], [1, 0, 0.1]]),  # a segment that ends inside
        (np.array([[2.0, 0.0, 0.0], [3.0, 0.0, 0.0]]), np.zeros((0, 3))),  # a segment outside
        (np.array([[0.3, 0.4, 5.0]]), [[0.3, 0.4, 5.0]]),  # a point
        (np.array([[1.0 + 1e-6, 0.0, 0.0]]), np.zeros((0, 3))),  # a point outside
        (np.array([[1.0 + 1e-10, 0.0, 0.0]]), [[1, 0, 0]]),  # a point on the side, to rounding
        (np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1e-9, 0.0]]), [[-1, 0, 0], [1, 0, 0], [1, 1e-9, 0]]),  # a sliver
    ],
)
def test_faces_that_touch_in_whole_in_part_or_hardly(incident: Array, expected: Any) -> None:
    """Check points; coincident points count once here, because clipping may return them twice, but not for segments and
    points.
    """
    found = clipped(SQUARE, np.asarray(incident, float))
    expected = np.asarray(expected, float).reshape(-1, 3)
    assert (len(found) == 0) == (len(expected) == 0)
    assert len(incident) > 2 or len(found) == len(expected)
    for x in found:
        assert np.linalg.norm(expected - x, axis=1).min() < 1e-8
    for x in expected:
        assert np.linalg.norm(found - x, axis=1).min() < 1e-8


@pytest.mark.parametrize("k", range(3))
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_face_of_a_box_turns_left_about_its_outward_normal(k: int, sign: float) -> None:
    rng = np.random.default_rng(k)
    R, p, H, corners = Rotation.random(rng=rng).as_matrix(), rng.standard_normal(3), rng.random(3) + 0.1, np.empty((4, 3))
    assert write_box_face(np.concatenate([R.ravel(), p]), H, k, sign, corners) == 4
    local = (corners - p) @ R
    np.testing.assert_allclose(np.abs(local), np.tile(H, (4, 1)))
    np.testing.assert_allclose(local[:, k], sign * H[k])
    sides = np.roll(local, -1, axis=0) - local
    turn = np.cross(sides, np.roll(sides, -1, axis=0))
    assert (turn[:, k] * sign > 0.0).all()
    np.testing.assert_allclose(np.delete(turn, k, axis=1), 0.0, atol=1e-12)


def put(reference: Array, incident: Array, sign: float, reach: float) -> Array:
    polygons, found = np.full((3, 60, 3), np.nan), np.full((60, 8), np.nan)
    polygons[0, : len(reference)], polygons[1, : len(incident)] = reference, incident
    count = put_face_points(polygons, len(reference), len(incident), UP, sign, reach, found)
    return found[:count]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_contacts_lie_midway_and_their_gaps_are_along_the_reference(sign: float) -> None:
    incident = 0.5 * SQUARE + np.outer(0.1 * SQUARE[:, 0], UP)  # height from -0.1 to 0.1
    found = put(SQUARE, incident, sign, 0.05)
    assert len(found) == 2  # the upper two are out of reach
    np.testing.assert_allclose(found[:, 6], -0.1)
    np.testing.assert_allclose(found[:, 3:6], np.tile([0.0, 0.0, sign], (2, 1)))
    np.testing.assert_allclose(found[:, 2], -0.05)
    assert found[:, 7].tolist() == [0.0, 1.0]
    assert len(put(SQUARE, incident, sign, 0.2)) == 4


def test_of_many_points_the_deepest_and_the_outermost_are_kept() -> None:
    """Check a round face with thirty corners, of which at most eight stay, which span the area of an octagon."""
    face = polygon(30, 0.9, height=-0.01)
    face[11, 2] -= 1e-3
    found = put(polygon(40, 2.0), face, 1.0, 1.0)
    assert 4 <= len(found) <= MOST_POINTS and len({tuple(x) for x in found[:, :3]}) == len(found)
    assert found[:, 6].min() == pytest.approx(-0.011)
    assert ConvexHull(found[:, :2]).volume > 0.75 * ConvexHull(face[:, :2]).volume


def test_the_points_that_are_kept_are_the_deepest_if_the_body_is_turned_a_little() -> None:
    rng = np.random.default_rng(0)
    points, chosen = np.column_stack([rng.standard_normal((25, 2)), 1e-3 * rng.standard_normal(25)]), np.full((30, 3), np.nan)
    kept = spread(points, 25, UP, np.zeros(3), chosen)
    assert kept <= MOST_POINTS
    rows = {tuple(x) for x in points}
    assert all(tuple(x) in rows for x in chosen[:kept]) and len({tuple(x) for x in chosen[:kept]}) == kept
    np.testing.assert_array_equal(chosen[0], points[points[:, 2].argmin()])
    hull = set(ConvexHull(points[:, :2]).vertices)
    far = [x for x in chosen[1:kept] if int(np.flatnonzero((points == x).all(axis=1))[0]) in hull]
    assert len(far) >= kept - 2
