"""Tests of forces spread over patches: the same wrench, within Coulomb's cones, and never a greater norm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from featherweight.array_types import Array
from featherweight.collision.detection import ContactPoints
from featherweight.contact.contact_problem import write_axes
from featherweight.contact.patches import patch_work, reduce_patches
from featherweight.contact.spread_impulses import find_closed, spread_over_patches, spread_work
from featherweight.engine.loops.kernels import compiled

spread_as_machine_code, find_closed_as_machine_code = compiled(spread_over_patches), compiled(find_closed)


def contacts_at(points: Array, normal: Any = (0.0, 0.0, 1.0), body: Any = 0) -> ContactPoints:
    n = len(points)
    a = np.broadcast_to(np.asarray(body, np.int64), n).copy()
    normals = np.broadcast_to(np.asarray(normal, float), (n, 3)).copy()
    return ContactPoints(np.arange(n), a, np.full(n, -1), np.array(points, float), normals, np.zeros(n))


def spread(contacts: ContactPoints, force: Array, mu: float, pyramid: bool = False, closed: Any = True) -> Array:
    return spread_with(contacts, np.full(len(force), mu), np.zeros(len(force)), force, pyramid, closed)


def spread_with(
    contacts: ContactPoints, mu: Array, restitution: Array, force: Array, pyramid: bool = False, closed: Any = True
) -> Array:
    found, work = np.array(force, float), spread_work(len(force))
    work.closed[:] = closed
    spread_as_machine_code(contacts, mu, restitution, pyramid, found, work)
    return found


def wrench(points: Array, force: Array) -> Array:
    return np.concatenate([force.sum(axis=0), np.cross(points, force).sum(axis=0)])


def excess(contacts: ContactPoints, force: Array, mu: float, pyramid: bool) -> float:
    """Return the largest distance of a force from its cone [N]; pulling counts too."""
    worst = 0.0
    for n, f in zip(contacts.normal, force, strict=True):
        axes = np.zeros((3, 3))
        write_axes(n, axes)
        push, *slip = axes @ f
        friction = np.abs(slip).max() if pyramid else np.linalg.norm(slip)
        worst = max(worst, float(friction - mu * push), float(-push))
    return worst


def grid(n: int, m: int) -> Array:
    i, j = np.meshgrid(np.arange(n), np.arange(m), indexing="ij")
    return np.column_stack([0.1 * i.ravel(), 0.05 * j.ravel(), np.zeros(n * m)])


def forces_at_some(rng: Any, n: int, mu: float, pyramid: bool) -> Array:
    """Return forces of contacts, some of them open, some with friction at its bound; normals are z."""
    push = rng.exponential(1.0, n) * (rng.random(n) < 0.5)
    way = rng.uniform(-1.0, 1.0, (n, 2))
    most = np.abs(way).max(axis=1) if pyramid else np.linalg.norm(way, axis=1)
    bounded = mu * push * np.where(rng.random(n) < 0.3, 1.0, rng.random(n))
    return np.column_stack([way * (bounded / most)[:, None], push])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.booleans(), st.sampled_from(["plane", "line", "space", "grid"]))
def test_wrenches_cones_and_norms(seed: int, n: int, pyramid: bool, kind: str) -> None:
    rng = np.random.default_rng(seed)
    mu = float(rng.choice([0.0, 0.3, 1.0]))
    points = {
        "plane": np.column_stack([rng.standard_normal((n, 2)), np.zeros(n)]),
        "line": np.outer(rng.standard_normal(n), [1.0, 2.0, 0.0]),
        "space": rng.standard_normal((n, 3)),
        "grid": grid(n, 3)[:n],
    }[kind]
    contacts = contacts_at(points)
    force = forces_at_some(rng, n, mu, pyramid)
    found = spread(contacts, force, mu, pyramid)
    scale = max(force[:, 2].sum(), 1.0)
    np.testing.assert_allclose(
        wrench(points, found), wrench(points, force), atol=1e-12 * scale * max(1.0, np.abs(points).max())
    )
    assert excess(contacts, found, mu, pyramid) <= 1e-12 * scale
    assert np.linalg.norm(found) <= np.linalg.norm(force) * (1.0 + 1e-12)


@pytest.mark.parametrize("pyramid", [False, True])
@pytest.mark.parametrize("slide", [0.0, 0.2, 0.5])  # at 0.5 the patch slides
def test_a_load_in_the_middle_is_carried_alike(slide: float, pyramid: bool) -> None:
    """Check that the load of the corners of a grid is distributed equally over all points, also at the bound of friction."""
    R = Rotation.from_rotvec([0.3, -0.8, 0.5]).as_matrix()
    points = grid(5, 3)
    axes = np.zeros((3, 3))
    write_axes(R[:, 2], axes)
    carried = axes[0] + slide * axes[1]
    force = np.zeros((15, 3))
    force[[0, 14]], force[[2, 12]] = 2.0 * carried, 4.0 * carried
    found = spread(contacts_at(points @ R.T, R[:, 2]), force, 0.5, pyramid)
    np.testing.assert_allclose(found, np.tile(12.0 / 15.0 * carried, (15, 1)), atol=1e-12)


def test_a_load_off_the_middle_is_carried_by_an_affine_pressure() -> None:
    points = grid(5, 5)
    force = np.zeros((25, 3))
    force[[0, 4, 20, 24], 2] = 1.0, 1.0, 1.4, 1.4
    found = spread(contacts_at(points), force, 0.5)
    plane = np.column_stack([points[:, :2], np.ones(25)])
    np.testing.assert_allclose(plane @ np.linalg.lstsq(plane, found[:, 2], rcond=None)[0], found[:, 2], atol=1e-12)
    assert found[:, 2].min() > 0.1


def test_a_load_near_an_edge_lifts_nothing() -> None:
    """Check a load for which the affine pressure would pull at the other edge: points there carry nothing, and corners
    carry more.
    """
    points = grid(7, 5)
    force = np.zeros((35, 3))
    force[[0, 4, 30, 34], 2] = 1.0, 1.0, 9.0, 9.0
    found = spread(contacts_at(points), force, 0.5)
    assert found[:, 2].min() >= 0.0
    assert (found[:, 2] > 0.1).sum() >= 10
    np.testing.assert_allclose(wrench(points, found), wrench(points, force), atol=1e-12)


def test_open_contacts_and_other_patches_get_nothing() -> None:
    points = np.vstack([grid(3, 3), np.add(grid(3, 3), [1.0, 0.0, 0.0])])
    contacts = contacts_at(points, body=np.repeat([0, 1], 9))
    force = np.zeros((18, 3))
    force[[0, 2, 6, 8], 2] = 1.0
    closed = np.ones(18, bool)
    closed[4] = False
    found = spread(contacts, force, 0.5, closed=closed)
    np.testing.assert_array_equal(found[9:], 0.0)
    np.testing.assert_array_equal(found[4], 0.0)
    np.testing.assert_allclose(found[[0, 1, 2, 3, 5, 6, 7, 8], 2], 0.5, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 3], ids=["line", "plane"])
def test_contacts_left_out_are_closed_if_their_gap_is_the_one_that_others_imply(rows: int) -> None:
    """Check gaps that are affine functions of the place: no gap after the step, at contacts with and without impulse."""
    R, points = Rotation.from_rotvec([0.3, -0.8, 0.5]).as_matrix(), grid(4, rows)
    solved, count = 4 if rows > 1 else 2, len(points)
    corners = [0, rows - 1, count - rows, count - 1][:: 1 if rows > 1 else 2]
    order = [*corners, *(k for k in range(count) if k not in corners)]
    contacts = contacts_at(points[order] @ R.T, R[:, 2])
    contacts.gap[:] = 1e-4 + points[order] @ [2e-4, 3e-4, 0.0]
    contacts.gap[-1] += 1e-6
    force, work = np.zeros((count, 3)), spread_work(count)
    force[:solved] = R[:, 2]
    find_closed_as_machine_code(contacts, np.full(count, 0.5), np.zeros(count), force, solved, work)
    np.testing.assert_array_equal(work.closed, [True] * (count - 1) + [False])
    force[0] = 0.0  # this corner is open, and nothing is known of the others
    find_closed_as_machine_code(contacts, np.full(count, 0.5), np.zeros(count), force, solved, work)
    np.testing.assert_array_equal(work.closed, [False] + [True] * (solved - 1) + [False] * (count - solved))


def test_contacts_with_restitution_keep_their_forces() -> None:
    contacts, bounce = contacts_at(grid(3, 3)), np.zeros(9)
    bounce[0] = 0.5
    force = np.zeros((9, 3))
    force[[0, 2, 6, 8], 2] = 1.0
    found = spread_with(contacts, np.full(9, 0.5), bounce, force)
    assert found[0, 2] == 1.0
    assert found[4, 2] > 0.1


def test_forces_of_reduced_contacts_come_back() -> None:
    """Check that forces of the corners that `reduce_patches` keeps are distributed over all points, in its order."""
    contacts = contacts_at(grid(4, 4))
    stay = reduce_patches(contacts, np.full(16, 0.5), np.zeros(16), 1e-12, patch_work(16))
    assert stay == 4
    force = np.zeros((16, 3))
    force[:stay] = 0.1, 0.0, 4.0
    found = spread(contacts, force, 0.5)
    np.testing.assert_allclose(found, np.tile([0.025, 0.0, 1.0], (16, 1)), atol=1e-12)
