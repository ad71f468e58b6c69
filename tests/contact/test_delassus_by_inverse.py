"""The Delassus matrix of bodies that touch, from the inverse mass matrix, against products of whole matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featherweight.collision.detection import ContactPoints
from featherweight.contact.contact_problem import BodyDelassus
from featherweight.contact.delassus_by_inverse import InverseFactors, inverse_work, write_delassus_by_inverse

Array = np.ndarray[Any, np.dtype[Any]]


def touching(pairs: list[tuple[int, int]]) -> ContactPoints:
    """Contacts of pairs of bodies, -1 for the world."""
    k = len(pairs)
    a, b = (np.array([p[side] for p in pairs], np.int64) for side in (0, 1))
    return ContactPoints(np.arange(k), a, b, np.zeros((k, 3)), np.zeros((k, 3)), np.zeros(k))


def written(width: Array, pairs: list[tuple[int, int]], factors: InverseFactors) -> tuple[Array, Array]:
    """G, cut to its size, and where rows begin; all room holds something else before, and nothing beyond is written."""
    rows, nv = factors.J.shape[0] + len(factors.E), len(factors.Minv)
    delassus = BodyDelassus(np.full((rows + 2, rows + 2), 7.0), np.full(len(width) + 1, 99))
    work = inverse_work(len(width), rows, nv)
    work.rows.fill(np.nan)
    work.half.fill(np.nan)
    work.touched.fill(True)
    write_delassus_by_inverse(width, touching(pairs), factors, delassus, work)
    size = int(delassus.begin[-1]) + len(factors.E)
    assert (delassus.G[size:] == 7.0).all() and (delassus.G[:, size:] == 7.0).all()
    return delassus.G[:size, :size], delassus.begin


def random_factors(rng: np.random.Generator, width: Array, nv: int, joints: int, ratio: float = 10.0) -> InverseFactors:
    """Rows of which half the entries are zero; masses in a ratio."""
    m = int(width.sum())
    J = rng.standard_normal((m, nv)) * (rng.random((m, nv)) < 0.5)
    Q = np.linalg.qr(rng.standard_normal((nv, nv)))[0]
    Minv = Q @ np.diag(np.geomspace(1.0, ratio, nv)) @ Q.T
    return InverseFactors(J, 0.5 * (Minv + Minv.T), np.eye(nv)[rng.permutation(nv)[:joints]])


@pytest.mark.parametrize("ratio", [1.0, 1e8])
@pytest.mark.parametrize(
    ("pairs", "bodies"),
    [([(0, -1)], [0]), ([(2, 0), (0, 2)], [0, 2]), ([(3, -1), (1, 3), (3, 1)], [1, 3]), ([], []),
     ([(i, -1) for i in range(4)], [0, 1, 2, 3])],
)  # fmt: skip
def test_rows_of_bodies_that_touch_and_of_joints(pairs: list[tuple[int, int]], bodies: list[int], ratio: float) -> None:
    """Bodies have six rows, or three at their one point; those that touch nothing have none."""
    rng = np.random.default_rng(len(pairs))
    width = np.array([6, 3, 6, 3])
    factors = random_factors(rng, width, 9, 2, ratio)
    G, begin = written(width, pairs, factors)
    starts = np.cumsum([0, *width])
    rows = np.concatenate([*(factors.J[starts[b] : starts[b + 1]] for b in bodies), factors.E])
    np.testing.assert_allclose(G, rows @ factors.Minv @ rows.T, rtol=1e-12, atol=1e-13 * ratio)
    np.testing.assert_array_equal(G, G.T)
    sizes = [int(width[b]) if b in bodies else 0 for b in range(4)]
    assert begin.tolist() == np.cumsum([0, *sizes]).tolist()


def test_bodies_that_cannot_move_and_rows_that_say_the_same() -> None:
    """Zero rows and equal rows leave G singular, and are written all the same."""
    rng = np.random.default_rng(0)
    factors = random_factors(rng, np.array([6, 6]), 7, 0)
    factors.J[:6], factors.J[9:] = 0.0, factors.J[6:9]
    G, _ = written(np.array([6, 6]), [(0, 1)], factors)
    np.testing.assert_allclose(G, factors.J @ factors.Minv @ factors.J.T, atol=1e-13)
    assert np.linalg.matrix_rank(G) == 3 and not G[:6].any()


def test_joints_alone() -> None:
    factors = random_factors(np.random.default_rng(0), np.zeros(0, np.int64), 5, 3)
    G, begin = written(np.zeros(0, np.int64), [], factors)
    np.testing.assert_allclose(G, factors.E @ factors.Minv @ factors.E.T, atol=1e-14)
    assert begin.tolist() == [0]
