"""Tests of contacts of cubes, as boxes and as hulls, at crossing edges: points of nearly parallel faces are contacts too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contact_pairs import PlacedShape, TouchingPair, Type, support_gap
from scipy.spatial.transform import Rotation

from featherweight.array_types import Array
from featherweight.collision.face_clipping import MOST_POINTS

EDGE = 0.2  # [m]
HALF = 0.5 * EDGE
CORNERS = np.array([[x, y, z] for x in (-HALF, HALF) for y in (-HALF, HALF) for z in (-HALF, HALF)])
EXACT = 1e-9  # [m] closed forms and polytopes
REACH = 6e-3  # [m] more than the rise of a face that is tilted by 0.02 rad


def pair_of(kinds: str) -> TouchingPair:
    """Return two cubes; a hull has the corners of a cube."""
    one, other = (
        TouchingPair.shape(Type.BOX, name, (EDGE,) * 3)
        if kind == "box"
        else TouchingPair.shape(Type.MESH, name, (1.0, 1.0, 1.0), CORNERS)
        for kind, name in zip(kinds.split(" on "), "ab", strict=True)
    )
    return TouchingPair(one, other)


KINDS = pytest.mark.parametrize("kinds", ["box on box", "hull on hull", "box on hull"])


def distance(one: PlacedShape, other: PlacedShape) -> tuple[float, Array, bool]:
    """Return the greatest gap along the axes that may separate two cubes, its direction, and whether that is across two
    edges.
    """
    faces, edges = np.vstack([one.R.T, other.R.T]), np.cross(one.R.T[:, None], other.R.T[None]).reshape(9, 3)
    size = np.linalg.norm(edges, axis=1)
    axes = np.vstack([faces, edges[size > 1e-6] / size[size > 1e-6, None]])
    gaps = support_gap(one, other, np.vstack([axes, -axes]))
    best = int(gaps.argmax())
    return float(gaps[best]), np.vstack([axes, -axes])[best], best % len(axes) >= 6


def at_gap(pair: TouchingPair, R: Array, Q: Array, aside: Any, gap: float) -> tuple[PlacedShape, PlacedShape, bool]:
    """Return the first cube above the second, rotated by R and Q and moved along the normal of their contact to a given gap."""
    one, other = PlacedShape(pair.shapes[0], R, np.array([*aside, 2.0 * EDGE])), PlacedShape(pair.shapes[1], Q, np.zeros(3))
    for _ in range(20):
        found, n, crossing = distance(one, other)
        one = one._replace(p=one.p - n * (found - gap))
    assert distance(one, other)[0] == pytest.approx(gap, abs=1e-12)
    return one, other, crossing


def turned_and_tilted(about: float, turn: float = 0.3, tilt: float = 0.02) -> Array:
    """Return the rotation about the vertical, then a tilt about a horizontal axis at an angle [rad] to x."""
    axis = np.array([np.cos(about), np.sin(about), 0.0])
    return np.asarray((Rotation.from_rotvec(tilt * axis) * Rotation.from_rotvec([0.0, 0.0, turn])).as_matrix())


def widest_gap_around(points: Array, middle: Any) -> float:
    """Return the widest angle [rad] between neighbours, seen from the middle along z."""
    around = np.sort(np.arctan2(points[:, 1] - middle[1], points[:, 0] - middle[0]))
    return float(np.diff([*around, around[0] + 2.0 * np.pi]).max())


@KINDS
@pytest.mark.parametrize("gap", [1e-4, 0.0, -1e-6, -1e-3])
@pytest.mark.parametrize("about", [0.15, 0.2, 1.72, 3.3, -1.37])
def test_cubes_on_one_another_touch_around_their_middle_where_edges_cross(about: float, gap: float, kinds: str) -> None:
    """Check that the crossing is the deepest contact, with the distance of the cubes, and that all others are points of
    faces.
    """
    pair = pair_of(kinds)
    one, other, crossing = at_gap(pair, turned_and_tilted(about), np.eye(3), (0.01, -0.02), gap)
    assert crossing
    found = pair.contacts((one.R, one.p), (other.R, other.p), REACH)
    assert len(found.gaps) >= 5
    assert found.gaps.min() == pytest.approx(gap, abs=EXACT)
    deepest = found.gaps.argmin()
    assert support_gap(one, other, found.normals[deepest : deepest + 1])[0] == pytest.approx(gap, abs=EXACT)
    assert widest_gap_around(found.points, 0.5 * (one.p + other.p)) < 1.7
    axes = np.vstack([one.R.T, other.R.T])
    nearest = axes[np.abs(axes @ found.normals[deepest]).argmax()]  # normal of the face nearest to parallel
    np.testing.assert_allclose(np.delete(found.normals, deepest, axis=0) @ nearest, 1.0, rtol=0.0, atol=1e-12)
    for x, n, g in zip(*found, strict=True):
        assert n[2] > np.cos(0.03)
        assert one.outside(x + 0.5 * g * n) < EXACT
        assert other.outside(x - 0.5 * g * n) < EXACT
    numbers = pair.work.found[: len(found.gaps), 7].tolist()
    assert len(set(numbers)) == len(numbers) and max(numbers) == MOST_POINTS


@KINDS
@pytest.mark.parametrize("gap", [1e-4, -1e-6, -1e-3])
def test_cubes_that_cross_at_45_degrees_touch_once(gap: float, kinds: str) -> None:
    """Check that each cube stands on an edge, so that no faces are nearly parallel."""
    pair = pair_of(kinds)
    R, Q = (Rotation.from_rotvec(0.25 * np.pi * axis).as_matrix() for axis in np.eye(3)[:2])
    one, other, crossing = at_gap(pair, R, Q, (0.02, 0.03), gap)
    assert crossing
    found = pair.contacts((one.R, one.p), (other.R, other.p), REACH)
    np.testing.assert_allclose(found.gaps, [gap], rtol=0.0, atol=EXACT)
    np.testing.assert_allclose(found.points, [[0.0, 0.03, other.p[2] + np.sqrt(2.0) * HALF + 0.5 * gap]], atol=EXACT)
    np.testing.assert_allclose(found.normals, [[0.0, 0.0, 1.0]], atol=1e-9)


@KINDS
@pytest.mark.parametrize("tilt", [0.02, 0.15, 0.17])
def test_faces_touch_that_are_within_a_tenth_of_a_radian_of_the_plane_of_the_crossing(tilt: float, kinds: str) -> None:
    """Check two tilted cubes; the face nearest to parallel counts."""
    pair, Q = pair_of(kinds), Rotation.from_rotvec([0.0, tilt, 0.0]).as_matrix()
    one, other, crossing = at_gap(pair, turned_and_tilted(0.0, 1.2, tilt), Q, (0.0, 0.0), -1e-4)
    angle = np.arccos(np.abs(np.vstack([one.R.T, other.R.T]) @ distance(one, other)[1]).max())
    assert crossing and abs(angle - 0.1) > 3e-3
    count = len(pair.contacts((one.R, one.p), (other.R, other.p), REACH).gaps)
    assert count >= 2 if angle < 0.1 else count == 1


@KINDS
def test_no_contact_is_deeper_than_the_cubes(kinds: str) -> None:
    """Check cubes above each other at random places.

    The overlap along face normals is sometimes larger, but the contacts are not.
    """
    rng, pair, crossings, deeper = np.random.default_rng(0), pair_of(kinds), 0, 0
    for _ in range(80):
        R = turned_and_tilted(rng.uniform(0.0, 6.3), rng.uniform(0.1, 1.4), rng.uniform(0.0, 0.09))
        aside, gap = 1.1 * EDGE * rng.uniform(-1.0, 1.0, 2), rng.choice([1e-4, -1e-4, -1e-3, -5e-3])
        one, other, crossing = at_gap(pair, R, np.eye(3), aside, gap)
        found = pair.contacts((one.R, one.p), (other.R, other.p), REACH)
        if gap < 0.0 or crossing:
            assert found.gaps.min() == pytest.approx(gap, abs=EXACT)
        if crossing:
            crossings += 1
            along = support_gap(one, other, found.normals)
            deeper += (along < gap - 1e-5).any()
    assert crossings > 20 and deeper > 3
