"""Tests of contacts that others make redundant, against linear programs and Qhull."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from featherweight.array_types import Array
from featherweight.collision.detection import ContactPoints
from featherweight.contact.contact_problem import write_axes
from featherweight.contact.patches import patch_work, reduce_patches
from featherweight.engine.loops.kernels import CompiledKernel, compiled

TOLERANCE = 1e-12  # [m]
FRICTION = 0.7
reduce_compiled = compiled(reduce_patches)
reduce_rounded = CompiledKernel(reduce_patches, fused=False)  # has the bits of plain Python
seeds = st.integers(0, 2**32 - 1)


def contacts_at(points: Any, gaps: Any = 0.0, normal: Any = (0.0, 0.0, 1.0), bodies: Any = (0, -1)) -> ContactPoints:
    """Return contacts of one patch or, if normals and bodies are arrays, of several."""
    points = np.array(points, float)
    n = len(points)
    a, b = np.broadcast_to(np.array(bodies, np.int64), (n, 2)).T.copy()
    normals = np.broadcast_to(np.asarray(normal, float), (n, 3)).copy()
    return ContactPoints(np.arange(n), a, b, points, normals, np.broadcast_to(np.asarray(gaps, float), n).copy())


def reduced(
    contacts: ContactPoints, friction: Any = FRICTION, restitution: Any = 0.0, reduce: Any = reduce_compiled
) -> tuple[Array, Array]:
    """Return the numbers of the kept and of the removed contacts. All fields are permuted alike and stably."""
    n = len(contacts.gap)
    after = deepcopy(contacts)
    mu, bounce = (np.broadcast_to(np.asarray(x, float), n).copy() for x in (friction, restitution))
    count = reduce(after, mu, bounce, TOLERANCE, patch_work(n))
    order = after.candidate
    assert sorted(order) == [*range(n)]
    assert (np.diff(order[:count]) > 0).all() and (np.diff(order[count:]) > 0).all()
    for before, field in zip(contacts, after, strict=True):
        np.testing.assert_array_equal(field, before[order])
    return order[:count].copy(), order[count:].copy()


def plane_of(contacts: ContactPoints) -> Array:
    """Return the points of contacts with one normal in its plane (n, 2)."""
    axes = np.zeros((3, 3))
    write_axes(contacts.normal[0], axes)
    return np.asarray((contacts.point - contacts.point.mean(axis=0)) @ axes[1:].T)


def least_slack(contacts: ContactPoints, stay: Array, p: int) -> float:
    """Return the least u + max(gap, 0) at p, over all affine u for which this value is not negative at the kept contacts."""
    place = plane_of(contacts)
    place = place / np.ptp(place, axis=0).max()
    gap = np.maximum(contacts.gap, 0.0)
    scale = max(gap.max(), 1.0)
    rows = np.column_stack([place, np.ones(len(place))])
    answer = linprog(
        rows[p], A_ub=-rows[stay], b_ub=gap[stay] / scale, bounds=(-1e6, 1e6),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )  # fmt: skip
    assert answer.status == 0
    return float(answer.fun * scale + gap[p])


def rays(contacts: ContactPoints, chosen: Array) -> Array:
    """Return wrenches (6, 4 n) of the edges of friction pyramids, about the mean of all points."""
    axes = np.zeros((3, 3))
    write_axes(contacts.normal[0], axes)
    n, t, s = axes
    arms = contacts.point - contacts.point.mean(axis=0)
    arms = arms / np.abs(arms).max()
    edges = [n + FRICTION * (i * t + j * s) for i in (-1, 1) for j in (-1, 1)]
    return np.array([[*e, *np.cross(arms[c], e)] for c in chosen for e in edges]).T


def assert_nothing_is_lost(rng: Any, contacts: ContactPoints, stay: Array, left: Array) -> None:
    """Check that kept contacts hold removed ones open; for contacts in a plane, that they exert all wrenches of the full
    set.
    """
    for p in left:
        assert least_slack(contacts, stay, p) >= -1e-8 * max(1.0, contacts.gap.max())
    if np.ptp(contacts.point @ contacts.normal[0]) < 1e-12 and (contacts.gap <= 0.0).all():
        every = rays(contacts, np.arange(len(contacts.gap)))
        few = rays(contacts, stay)
        for _ in range(3):
            wrench = every @ rng.exponential(size=every.shape[1]) ** 4
            answer = linprog(np.zeros(few.shape[1]), A_eq=few, b_eq=wrench, bounds=(0.0, None))
            assert answer.status == 0


def placed(rng: Any, places: Array, heights: Any = 0.0) -> ContactPoints:
    """Return contacts at points (n, 2) of a random plane in space, in random order."""
    R = Rotation.random(random_state=int(rng.integers(2**31))).as_matrix()
    points = np.column_stack([places, np.broadcast_to(heights, len(places))])[rng.permutation(len(places))]
    return contacts_at(points @ R.T + rng.standard_normal(3), normal=R[:, 2])


def grid(n: int, m: int, size: float = 0.1) -> Array:
    i, j = np.meshgrid(np.arange(n), np.arange(m), indexing="ij")
    return np.asarray(size * np.column_stack([i.ravel() / max(n - 1, 1), 0.5 * j.ravel() / max(m - 1, 1)]))


def ring(n: int, radius: float = 0.05) -> Array:
    angle = 2.0 * np.pi * np.arange(n) / n
    return np.asarray(radius * np.column_stack([np.cos(angle), np.sin(angle)]))


def disc(rng: Any, n: int) -> Array:
    return np.asarray(rng.uniform(0.0, 0.05, (n, 1)) * ring(n, 1.0))


def sole() -> Array:
    """Return fourteen points of a foot: a rectangle of 2 x 5 with rounded ends."""
    side = np.linspace(-0.05, 0.08, 5)
    ends = [[0.1, 0.015], [0.1, -0.015], [-0.07, 0.015], [-0.07, -0.015]]
    return np.array([*([x, 0.03] for x in side), *([x, -0.03] for x in side), *ends])


@settings(deadline=None, max_examples=80)
@given(seeds, st.integers(3, 60), st.sampled_from([0.0, 0.1]))
def test_points_within_the_hull_are_left_out_whatever_their_heights(seed: int, n: int, height: float) -> None:
    rng = np.random.default_rng(seed)
    places = rng.standard_normal((n, 2))
    contacts = placed(rng, places, height * rng.standard_normal(n))
    stay, left = reduced(contacts)
    np.testing.assert_array_equal(stay, np.sort(ConvexHull(plane_of(contacts)).vertices))
    assert_nothing_is_lost(rng, contacts, stay, left[:5])


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(2, 7), st.integers(2, 7))
def test_grids_keep_their_corners(seed: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    contacts = placed(rng, grid(n, m))
    stay, left = reduced(contacts)
    assert len(stay) == 4
    assert_nothing_is_lost(rng, contacts, stay, left[:5])


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(3, 40))
def test_lines_keep_their_ends(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    along = rng.standard_normal(2)
    contacts = placed(rng, np.outer(rng.uniform(-1.0, 1.0, n), along))
    stay, _ = reduced(contacts)
    place = plane_of(contacts) @ along
    assert {*stay} == {place.argmin(), place.argmax()} or len(stay) == 2


@pytest.mark.parametrize("n", [3, 4, 12, 100, 300])
def test_rings_stay(n: int) -> None:
    rng = np.random.default_rng(n)
    contacts = placed(rng, np.vstack([ring(n), disc(rng, n) * 0.5]))
    stay, _ = reduced(contacts)
    radius = np.linalg.norm(contacts.point - contacts.point[stay].mean(axis=0), axis=1)
    assert len(stay) == n
    np.testing.assert_allclose(radius[stay], 0.05, rtol=1e-12)


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(3, 30), st.sampled_from(["tilted", "rounded", "hollow", "random", "half"]))
def test_gaps_decide_within_the_hull(seed: int, n: int, kind: str) -> None:
    """Check that affine gaps leave only corners, and that contacts below the mean of their neighbours remain."""
    rng = np.random.default_rng(seed)
    contacts = placed(rng, 0.1 * rng.standard_normal((n, 2)))
    place = plane_of(contacts)
    slope = place @ rng.standard_normal(2) * 0.1
    gaps = {
        "tilted": slope - slope.min(),
        "rounded": (place**2).sum(axis=1),
        "hollow": 0.1 - (place**2).sum(axis=1),
        "random": 1e-3 * rng.uniform(0.0, 1.0, n),
        "half": slope,
    }[kind]
    contacts.gap[:] = gaps
    stay, left = reduced(contacts)
    corners = ConvexHull(place).vertices
    assert {*corners} <= {*stay}
    if kind in ("tilted", "hollow"):
        assert {*corners} == {*stay}
    if kind == "rounded":
        assert len(left) == 0
    if kind == "half":
        closed = np.flatnonzero(gaps <= 0.0)
        if len(closed) >= 3:
            assert not {*left} & {*corners} and not {*stay} & {*closed} - {*closed[ConvexHull(place[closed]).vertices]}
    assert_nothing_is_lost(rng, contacts, stay, left)


def test_random_places_in_different_patches_do_not_mix() -> None:
    """Check that interleaved patches of bodies, normals and surfaces are reduced as each is alone."""
    rng = np.random.default_rng(3)
    n = 120
    kind = rng.integers(0, 8, n)
    bodies = np.column_stack([kind % 2, np.where(kind // 2 % 2 == 0, -1, 5)])
    normals = np.where((kind // 4 % 2 == 0)[:, None], [0.0, 0.0, 1.0], [0.0, 0.6, 0.8])
    friction = rng.choice([0.5, 0.9], n)
    contacts = contacts_at(rng.standard_normal((n, 3)), 0.0, normals, bodies)
    stay, _ = reduced(contacts, friction)
    alone = []
    for k in range(8):
        for mu in (0.5, 0.9):
            chosen = np.flatnonzero((kind == k) & (friction == mu))
            part = contacts_at(contacts.point[chosen], 0.0, contacts.normal[chosen], bodies[chosen])
            alone += [*chosen[reduced(part)[0]]]
    assert len(alone) < n
    np.testing.assert_array_equal(stay, np.sort(alone))


def test_contacts_that_bounce_stay_and_are_nobodys_corners() -> None:
    points = np.column_stack([grid(3, 3), np.zeros(9)])
    bounce = np.zeros(9)
    bounce[[0, 4]] = 0.5
    stay, _ = reduced(contacts_at(points), restitution=bounce)
    np.testing.assert_array_equal(stay, [0, 1, 2, 3, 4, 6, 8])


def test_of_contacts_at_one_place_the_first_or_the_lowest_stays() -> None:
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    points = np.vstack([square, square + 1e-14, square])
    np.testing.assert_array_equal(reduced(contacts_at(points))[0], [0, 1, 2, 3])
    gaps = np.full(12, 1e-3)
    gaps[6] = 0.0
    np.testing.assert_array_equal(reduced(contacts_at(points, gaps))[0], [0, 1, 3, 6])
    np.testing.assert_array_equal(reduced(contacts_at(np.zeros((5, 3))))[0], [0])


def test_two_contacts_of_a_patch_stay() -> None:
    for n in range(3):
        assert len(reduced(contacts_at(np.zeros((n, 3))))[0]) == n
    assert len(reduced(contacts_at(np.zeros((4, 3)), bodies=[(0, -1), (1, -1), (0, -1), (1, -1)]))[0]) == 4


@settings(deadline=None, max_examples=40)
@given(seeds)
def test_the_same_contacts_stay_whatever_rounding_does(seed: int) -> None:
    """Check a foot at rest: its points change by rounding, gaps by less than the tolerance."""
    rng = np.random.default_rng(seed)
    feet = [np.column_stack([s, np.zeros(len(s))]) for s in (grid(5, 3), sole(), np.vstack([grid(3, 3), ring(8)]))]
    for foot in feet:
        turned = foot @ Rotation.from_euler("z", rng.uniform(0.0, 6.3)).as_matrix().T
        expected, _ = reduced(contacts_at(turned))
        for _ in range(3):
            noisy = turned + 1e-15 * rng.standard_normal(foot.shape) + 1e-3 * rng.standard_normal(3)
            gaps = rng.uniform(-4e-13, 4e-13, len(foot))  # some differ by less than the tolerance
            np.testing.assert_array_equal(reduced(contacts_at(noisy, gaps))[0], expected)


def test_feet_of_a_humanoid() -> None:
    """Check two feet of fourteen points: with eight corners each, or with all points as corners, such as ends of capsules."""
    ends = [(0.05, 0.026), (0.1, 0.026), (-0.044, 0.018), (0.123, 0.018), (-0.052, 0.01), (0.13, 0.01)]
    capsules = np.array([*ends, *((x, -y) for x, y in ends), (-0.054, 0.0), (0.132, 0.0)])
    for places, corners in ((sole(), 8), (capsules, 14)):
        feet = np.vstack([np.column_stack([places, np.zeros(14)]) + np.array([0.0, y, 0.0]) for y in (-0.1, 0.1)])
        stay, _ = reduced(contacts_at(feet, bodies=[(k // 14, -1) for k in range(28)]))
        assert len(stay) == 2 * corners


def test_what_overlaps_deeper_than_the_corners_stays() -> None:
    """Check a contact that a displacement that separates the corners does not separate."""
    points = np.column_stack([grid(3, 3), np.zeros(9)])
    gaps = np.full(9, -1e-3)
    gaps[4] = -1.001e-3
    np.testing.assert_array_equal(reduced(contacts_at(points, gaps))[0], [0, 2, 4, 6, 8])


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(0, 40))
def test_compiled_and_plain_python_agree(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    place = np.column_stack([rng.integers(0, 5, (n, 2)) * 0.01, rng.uniform(0.0, 0.01, n)])
    normals = np.where(rng.random((n, 1)) < 0.8, [0.0, 0.0, 1.0], [0.0, 0.6, 0.8])
    gaps = rng.choice([0.0, -1e-3, 1e-3, 2e-3], n)
    contacts = contacts_at(place, gaps, normals, np.column_stack([rng.integers(0, 2, n), np.full(n, -1)]))
    bounce = rng.choice([0.0, 0.0, 0.0, 0.5], n)
    plain = reduced(contacts, restitution=bounce, reduce=reduce_patches)
    for other in (reduce_compiled, reduce_rounded):
        np.testing.assert_array_equal(plain[0], reduced(contacts, restitution=bounce, reduce=other)[0])
