"""Tests of contacts of pairs of shapes against exact ones: in plain Python, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from contact_pairs import PAIRS, PlacedShape, TouchingPair, Type, greatest_gap, random_rotation, random_shape, support_gap

EXACT = 1e-8  # [m] for shapes of about one metre: closed forms and polytopes
ITERATED = 1e-4  # error of support gaps along normals of curved shapes, which converge more slowly than distances
NEAR = 2e-6  # error for curved shapes nearer than 1e-5 of their size, which count as touching
CURVED = {Type.CYLINDER, Type.ELLIPSOID}


def at_gap(pair: TouchingPair, gap: float, rng: np.random.Generator) -> tuple[PlacedShape, PlacedShape]:
    """Return the shapes in random attitudes, moved along the normal of their contact to a given gap."""
    one, other = (PlacedShape(s, random_rotation(rng), np.zeros(3)) for s in pair.shapes)
    d = rng.normal(size=(1, 3))
    d = other.R[None, :, 2] if other.shape.type is Type.PLANE else d / np.linalg.norm(d)
    p = d[0] * (0.1 - float(support_gap(one, other, d)[0]))
    found = pair.contacts((one.R, p), (other.R, other.p), np.inf)
    k = found.gaps.argmin()
    return one._replace(p=p - found.normals[k] * (found.gaps[k] - gap)), other


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_contacts_lie_on_both_shapes_and_their_gap_is_the_distance(a: Type, b: Type) -> None:
    """Check points on both shapes at the gap, and planes across the normal that touch both: the distance can be neither less
    nor greater.

    If shapes overlap, no tested direction separates them by less.
    """
    rng = np.random.default_rng(7)
    iterated = bool({a, b} & CURVED) and Type.PLANE not in (a, b) and Type.SPHERE not in (a, b)
    tolerance, near = (ITERATED, NEAR) if iterated else (EXACT, 1e-7)
    for gap in (0.05, 1e-3, 1e-6, 0.0, -1e-6, -1e-3, -0.05) * 2:
        pair = TouchingPair(random_shape(a, "a", rng), random_shape(b, "b", rng))
        one, other = at_gap(pair, gap, rng)
        found = pair.contacts((one.R, one.p), (other.R, other.p), np.inf)
        k = found.gaps.argmin()
        np.testing.assert_allclose(np.linalg.norm(found.normals, axis=1), 1.0, rtol=0.0, atol=1e-12)
        assert float(support_gap(one, other, found.normals[k : k + 1])[0]) == pytest.approx(found.gaps[k], abs=tolerance)
        if gap > 0.0:
            assert found.gaps[k] == pytest.approx(gap, abs=near)
        else:
            assert greatest_gap(one, other, rng, 100) < found.gaps[k] + 1e-7
        for x, n, g in zip(*found, strict=True):
            part = 1.0 if b is Type.PLANE else 0.5  # points are on planes, and otherwise midway
            assert one.outside(x + part * g * n) < near
            assert other.outside(x - (1.0 - part) * g * n) < near


@pytest.mark.parametrize("kind", [Type.BOX, Type.CYLINDER, Type.MESH])
@pytest.mark.parametrize("gap", [1e-4, 0.0, -1e-6, -1e-3])
def test_what_stands_on_a_box_touches_it_around_its_middle(kind: Type, gap: float) -> None:
    """Check that at least three points have the same gap and surround the middle of the face."""
    corners = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])
    sizes = {Type.BOX: (0.2, 0.2, 0.2), Type.CYLINDER: (0.1, 0.2), Type.MESH: (1.0, 1.0, 1.0)}
    above = TouchingPair.shape(kind, "a", sizes[kind], corners if kind is Type.MESH else None)
    below = TouchingPair.shape(Type.BOX, "b", (1.0, 1.0, 0.2))
    first, second = (above, below) if kind in (Type.BOX,) else (below, above)
    pair = TouchingPair(first, second)
    c, s = np.cos(0.3), np.sin(0.3)
    up = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), np.array([0.05, 0.02, 0.2 + gap])
    still = np.eye(3), np.zeros(3)
    found = pair.contacts(up, still, 1e-3) if first is above else pair.contacts(still, up, 1e-3)
    assert len(found.gaps) >= 3
    np.testing.assert_allclose(found.gaps, gap, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(np.abs(found.normals[:, 2]), 1.0, rtol=0.0, atol=1e-9)
    around = np.sort(np.arctan2(found.points[:, 1] - 0.02, found.points[:, 0] - 0.05))
    assert np.diff([*around, around[0] + 2.0 * np.pi]).max() < np.pi - 0.1
