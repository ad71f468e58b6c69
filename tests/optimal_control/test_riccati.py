"""Tests of the backward pass against products of whole matrices and LAPACK's solver."""

from __future__ import annotations

import numpy as np
import pytest

from featherweight.array_types import Array
from featherweight.contact.factors.branches import padded
from featherweight.engine.loops.kernels import compiled
from featherweight.optimal_control.riccati import KnotSlopes, Riccati, add_gap, begin_value, riccati, step_back

H, KNOTS = 0.1, 4
CASES = {
    "one control": (1, 1, []), "underactuated": (3, 2, []), "arm": (7, 7, []), "floating": (9, 4, [(0, 6)]),
    "two balls": (11, 8, [(0, 6), (7, 3)]), "wide": (18, 12, [(0, 6)]),
}  # fmt: skip


@compiled
def passed_back(r: Riccati, knot: KnotSlopes, gap: Array, damping: float, feedback: Array, k: Array) -> bool:
    add_gap(r, gap)
    return step_back(r, knot, damping, feedback, k)


def lower(matrix: Array) -> tuple[Array, Array]:
    """Return the entries of the lower triangle, and their positions."""
    places = np.array([(a, b) for a in range(len(matrix)) for b in range(a + 1)])
    return matrix[places[:, 0], places[:, 1]], places


def semidefinite(rng: np.random.Generator, n: int) -> Array:
    x = rng.normal(size=(n, n))
    return x @ x.T


@pytest.mark.parametrize("damping", [0.0, 0.7])
@pytest.mark.parametrize(("case", "apart"), [*((case, False) for case in CASES), ("arm", True), ("underactuated", True)])
def test_feedback_and_value_are_those_of_whole_matrices(case: str, damping: float, apart: bool) -> None:
    """Check displacements that follow from the velocity ahead, or are `apart`, functions of their own."""
    n, m, blocks = CASES[case]
    rows = 2 * n if apart else n
    rng, width = np.random.default_rng(n), 2 * n + m
    r = riccati(n, m, rows, blocks)
    V, g = semidefinite(rng, 2 * n), rng.normal(size=2 * n)
    begin_value(r, np.append(g, np.zeros(m)), *lower(V))
    promised = np.zeros(2)
    for _ in range(KNOTS):
        D, A, S, curved = rng.normal(size=(rows, width)), np.eye(n), H * np.eye(n), list[float]()
        for first, size in blocks:
            own = slice(first, first + size)
            A[own, own], S[own, own] = rng.normal(size=(2, size, size))
            curved += [*A[own, own].ravel(), *S[own, own].ravel()]
        cost, slope, gap = semidefinite(rng, width), rng.normal(size=width), rng.normal(size=2 * n)
        r.numbers[: rows * r.long].reshape(rows, r.long)[:, :width] = D
        feedback, k = np.zeros(2 * n * padded(m)), np.zeros(m)
        entries, places = lower(cost)
        assert passed_back(r, KnotSlopes(0, np.array(curved), slope, entries, places, H), gap, damping, feedback, k)
        promised[1] += gap @ g + 0.5 * gap @ V @ gap
        moved = np.hstack([A, np.zeros((n, n + m))])
        F = np.vstack([moved + (D[:n] if apart else S @ D), D[-n:]])
        Q, q = cost + F.T @ V @ F, slope + F.T @ (g + V @ gap)
        own = slice(2 * n, None)
        solved = -np.linalg.solve(Q[own, own] + damping * np.eye(m), np.column_stack([Q[own, : 2 * n], q[own]]))
        scale = abs(solved).max()
        np.testing.assert_allclose(-feedback.reshape(2 * n, -1)[:, :m].T, solved[:, :-1], rtol=0, atol=1e-9 * scale)
        np.testing.assert_allclose(k, solved[:, -1], rtol=0, atol=1e-9 * scale)
        promised[0] += 0.5 * q[own] @ solved[:, -1]
        V, g = Q[: 2 * n, : 2 * n] + Q[: 2 * n, own] @ solved[:, :-1], q[: 2 * n] + Q[: 2 * n, own] @ solved[:, -1]
        found = r.numbers[r.value : r.value + 2 * n * r.wide].reshape(2 * n, r.wide)[:, : 2 * n]
        np.testing.assert_allclose(found, V, rtol=0, atol=1e-9 * abs(V).max())
        np.testing.assert_allclose(r.slope[: 2 * n], g, rtol=0, atol=1e-9 * abs(g).max())
    np.testing.assert_allclose(r.promised, promised, rtol=1e-8)


def test_a_cost_that_is_not_convex_in_the_controls_is_found_out() -> None:
    n, m = 2, 2
    r = riccati(n, m, n, [])
    begin_value(r, np.zeros(2 * n + m), *lower(np.zeros((4, 4))))
    cost = np.diag([1.0, 1.0, 1.0, 1.0, 1.0, -0.5])
    entries, places = lower(cost)
    knot = KnotSlopes(0, np.zeros(0), np.zeros(6), entries, places, H)
    feedback, k = np.zeros(2 * n * padded(m)), np.zeros(m)
    assert not passed_back(r, knot, np.zeros(4), 0.0, feedback, k)
    assert passed_back(r, knot, np.zeros(4), 1.0, feedback, k)
