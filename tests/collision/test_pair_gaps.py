"""Tests of distances of pairs of shapes of every kind: proofs, symmetry, rigid motions, coal, and height fields."""

from __future__ import annotations

from typing import Any

import coal
import numpy as np
import pytest
from coal_shapes import coal_geometry
from contact_pairs import PAIRS, PlacedShape, Type, random_rotation, random_shape, support_gap
from measured_pairs import MeasuredPair, PairDistances
from scipy.spatial.transform import Rotation

from featherweight import Shape
from featherweight.array_types import Array

CURVED = {Type.CYLINDER, Type.ELLIPSOID}
EXACT = 1e-9  # relative to the shapes' size: the greatest error of polytope depths, and of distances of curved shapes
COAL = 2e-6  # [m] error of coal for curved shapes
STATES = 40  # for each pair of shapes


def random_placements(one: Shape, other: Shape, rng: np.random.Generator, scale: float = 1.0) -> Array:
    """Return placements of the bodies (STATES, 2, 4, 4): up to 0.3 apart, up to 0.2 overlapping, and nearly touching."""
    T = np.tile(np.eye(4), (STATES, 2, 1, 1))
    for i in range(STATES):
        a, b = (PlacedShape(s, random_rotation(rng), np.zeros(3)) for s in (one, other))
        d = b.R[None, :, 2] if other.type is Type.PLANE else rng.normal(size=(1, 3))
        d = d / np.linalg.norm(d)
        gap = scale * (rng.uniform(-0.2, 0.3), rng.uniform(-1e-3, 1e-3))[i % 2]
        T[i, 0, :3, :3], T[i, 1, :3, :3] = a.R, b.R
        T[i, 0, :3, 3] = d[0] * (gap - float(support_gap(a, b, d)[0]))
    return T


def placed_pair(one: Shape, other: Shape, T: Array) -> tuple[PlacedShape, PlacedShape]:
    """Return both shapes at the placements (2, 4, 4) of their bodies."""
    return PlacedShape(one, T[0, :3, :3], T[0, :3, 3]), PlacedShape(other, T[1, :3, :3], T[1, :3, 3])


def check_proof(one: Shape, other: Shape, T: Array, found: PairDistances, scale: float, support: float) -> None:
    """Check that points on both shapes are as far apart as the planes across the normal that touch the shapes.

    So the distance of separate shapes can be neither less nor greater, and overlapping shapes separate after this distance
    along the normal.
    """
    for i in range(len(T)):
        a, b = placed_pair(one, other, T[i])
        distance, n, (x, y) = found.distance[i], found.normal[i], found.points[i]
        assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(y - x, distance * n, rtol=0.0, atol=1e-9 * scale)
        assert a.outside(x) < EXACT * scale and b.outside(y) < EXACT * scale
        assert float(support_gap(a, b, -n[None])[0]) == pytest.approx(distance, abs=support * scale)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_distances_are_proven_by_their_points_and_normals(a: Type, b: Type, scale: float) -> None:
    """Check proofs.

    Along normals of curved shapes the error of the support is of the order of the normal's, which converges as the root.
    """
    rng = np.random.default_rng(5)
    support = 3e-5 if {a, b} & CURVED and Type.PLANE not in (a, b) and Type.SPHERE not in (a, b) else EXACT
    for _ in range(3):
        pair = MeasuredPair(random_shape(a, "a", rng, scale), random_shape(b, "b", rng, scale))
        T = random_placements(*pair.shapes, rng, scale)
        found = pair.distances(T)
        assert (found.distance > 0.0).any() and (found.distance < 0.0).any()
        check_proof(*pair.shapes, T, found, scale, support)


@pytest.mark.parametrize(("a", "b"), [p for p in PAIRS if {*p} & CURVED and p[0] is not Type.SPHERE and p[1] is not Type.PLANE])
def test_distances_of_curved_shapes_cannot_be_improved(a: Type, b: Type) -> None:
    """Check that the greatest support gap near the normal is the distance."""
    rng = np.random.default_rng(6)
    pair = MeasuredPair(random_shape(a, "a", rng), random_shape(b, "b", rng))
    T = random_placements(*pair.shapes, rng)
    found = pair.distances(T)
    for i in np.flatnonzero(found.distance > 1e-3)[:8]:
        one, other = placed_pair(*pair.shapes, T[i])
        n, width = -found.normal[i], 1e-3
        most = float(support_gap(one, other, n[None])[0])
        while width > 1e-12:
            tried = n + width * rng.normal(size=(40, 3))
            tried /= np.linalg.norm(tried, axis=1)[:, None]
            gaps = support_gap(one, other, tried)
            if gaps.max() > most:
                n, most = tried[gaps.argmax()], float(gaps.max())
            else:
                width *= 0.5
        assert found.distance[i] == pytest.approx(most, abs=EXACT)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_small_gaps_are_found(a: Type, b: Type) -> None:
    """Check shapes moved together along their normal; flat and thin simplices have a unique nearest point."""
    rng = np.random.default_rng(2)
    for _ in range(5):
        pair = MeasuredPair(random_shape(a, "a", rng), random_shape(b, "b", rng))
        T = random_placements(*pair.shapes, rng)
        found = pair.distances(T)
        for gap in (1e-4, 1e-5, 1e-6):
            near = T[found.distance > 0.01]
            apart = found.distance[found.distance > 0.01, None]
            near[:, 0, :3, 3] += found.normal[found.distance > 0.01] * (apart - gap)
            np.testing.assert_allclose(pair.distances(near).distance, gap, rtol=0.0, atol=10 * EXACT)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_the_order_of_the_shapes_turns_the_normal_around(a: Type, b: Type) -> None:
    rng = np.random.default_rng(7)
    one, other = random_shape(a, "a", rng), random_shape(b, "b", rng)
    T = random_placements(one, other, rng)
    here, there = MeasuredPair(one, other).distances(T), MeasuredPair(other, one).distances(T[:, ::-1])
    np.testing.assert_allclose(there.distance, here.distance, rtol=0.0, atol=EXACT)
    if a is not b:  # otherwise the same algorithm gets the shapes in another order, and finds another of several nearest points
        np.testing.assert_array_equal(there.points[:, ::-1], here.points)
        np.testing.assert_array_equal(there.normal, -here.normal)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_rigid_motions_change_no_distance(a: Type, b: Type) -> None:
    rng = np.random.default_rng(8)
    pair = MeasuredPair(random_shape(a, "a", rng), random_shape(b, "b", rng))
    T = random_placements(*pair.shapes, rng)
    moved = np.tile(np.eye(4), (STATES, 1, 1, 1))
    moved[:, 0, :3, :3], moved[:, 0, :3, 3] = Rotation.random(STATES, rng=rng).as_matrix(), rng.uniform(-3.0, 3.0, (STATES, 3))
    here, there = pair.distances(T), pair.distances(moved @ T)
    np.testing.assert_allclose(there.distance, here.distance, rtol=0.0, atol=2 * EXACT)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_what_touches_within_a_margin_is_as_near(a: Type, b: Type) -> None:
    rng = np.random.default_rng(9)
    pair = MeasuredPair(random_shape(a, "a", rng), random_shape(b, "b", rng))
    T = random_placements(*pair.shapes, rng)
    distance = pair.distances(T).distance
    for margin in (0.0, 1e-3, 0.1):
        sure = np.abs(distance - margin) > 2 * EXACT
        np.testing.assert_array_equal(pair.touching(T, margin)[sure], distance[sure] <= margin)
        near = pair.distances(T, margin).distance
        np.testing.assert_array_equal(near[sure], np.where(distance <= margin, distance, np.inf)[sure])


def coal_distances(shapes: tuple[Any, Any], T: Array) -> Array:
    """Return coal's distances of geometries at placements (n, 2, 4, 4)."""
    request, distances = coal.DistanceRequest(), []
    for placements in T:
        poses = [coal.Transform3s(P[:3, :3], P[:3, 3]) for P in placements]
        distances.append(coal.distance(shapes[0], poses[0], shapes[1], poses[1], request, coal.DistanceResult()))
    return np.array(distances)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_distances_are_coals(a: Type, b: Type) -> None:
    """Check distances. For curved shapes, coal iterates to 1e-6 m, and its depths have errors of up to 1e-5."""
    rng = np.random.default_rng(10)
    pair = MeasuredPair(random_shape(a, "a", rng), random_shape(b, "b", rng))
    T = random_placements(*pair.shapes, rng)
    found = pair.distances(T).distance
    expected = coal_distances((coal_geometry(pair.shapes[0]), coal_geometry(pair.shapes[1])), T)
    apart, iterated = expected > 1e-3, bool({a, b} & CURVED)
    assert apart.any()
    np.testing.assert_allclose(found[apart], expected[apart], rtol=0.0, atol=COAL if iterated else 1e-9)
    np.testing.assert_allclose(found[~apart], expected[~apart], rtol=0.0, atol=2e-5)


# --- height fields


def hills(rng: np.random.Generator) -> Shape:
    heights = rng.uniform(-0.1, 0.3, (6, 5))
    return Shape("hills", None, Type.HEIGHTFIELD, (1.0, 0.8, 0.2), heights=heights)


def prisms_of(field: Shape) -> list[Any]:
    """Return both prisms of each cell as geometries of coal."""
    x, y = (np.linspace(-0.5 * s, 0.5 * s, n) for s, n in zip(field.size[:2], field.heights.shape, strict=True))
    found = []
    for i in range(len(x) - 1):
        for j in range(len(y) - 1):
            for corners in (((i, j), (i + 1, j + 1), (i, j + 1)), ((i, j), (i + 1, j + 1), (i + 1, j))):
                top = np.array([(x[k], y[l], field.heights[k, l]) for k, l in corners])
                points = np.concatenate([top, top * [1.0, 1.0, 0.0] - [0.0, 0.0, field.size[2]]])
                found.append(coal_geometry(Shape("prism", "b", Type.MESH, (1.0, 1.0, 1.0), vertices=points)))
    return found


@pytest.mark.parametrize("kind", [Type.SPHERE, Type.CAPSULE, Type.BOX, Type.CYLINDER, Type.ELLIPSOID, Type.MESH])
def test_distances_to_height_fields_are_those_to_the_nearest_prism(kind: Type) -> None:
    rng = np.random.default_rng(11)
    field, shape = hills(rng), random_shape(kind, "a", rng, 0.3)
    pair, geometry, prisms = MeasuredPair(shape, field), coal_geometry(shape), prisms_of(field)
    T = np.tile(np.eye(4), (30, 2, 1, 1))
    T[:, 0, :3, :3] = Rotation.random(30, rng=rng).as_matrix()
    T[:, 0, :3, 3] = rng.uniform([-0.9, -0.8, -0.5], [0.9, 0.8, 0.7], (30, 3))
    whole = np.tile(np.eye(4), (30, 1, 1, 1))
    whole[:, 0, :3, :3], whole[:, 0, :3, 3] = Rotation.random(30, rng=rng).as_matrix(), rng.uniform(-1.0, 1.0, (30, 3))
    expected = np.min([coal_distances((geometry, prism), T) for prism in prisms], axis=0)
    found = pair.distances(whole @ T)
    assert (expected > 0.01).any() and (expected < -0.01).any()
    np.testing.assert_allclose(found.distance, expected, rtol=0.0, atol=2e-5)
    np.testing.assert_allclose(
        found.points[:, 1] - found.points[:, 0], found.distance[:, None] * found.normal, rtol=0.0, atol=1e-9
    )
    sure = np.abs(expected) > 1e-4
    np.testing.assert_array_equal(pair.touching(whole @ T)[sure], expected[sure] < 0.0)
    near = pair.distances(whole @ T, 0.1).distance
    np.testing.assert_array_equal(near, np.where(found.distance <= 0.1, found.distance, np.inf))
    swapped = MeasuredPair(field, shape).distances((whole @ T)[:, ::-1])
    np.testing.assert_array_equal(swapped.distance, found.distance)
    np.testing.assert_array_equal(swapped.normal, -found.normal)
