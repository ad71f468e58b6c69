"""Friction of convex problems, as MuJoCo has it: cones, and pyramids by their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from featherweight.contact.edges import EDGES, part_of_edge
from featherweight.contact.impulses import natural_residual, solve_problem
from featherweight.contact.laws import CONES, PYRAMIDS, Problem, project_on_cone

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.mark.parametrize("mu", [0.0, 0.1, 0.7, 3.0])
def test_impulses_are_projected_on_the_nearest_of_a_cone(mu: float) -> None:
    """Inside, outside, and where the nearest is none; the derivative is that by differences."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        aim = rng.standard_normal(3) * [2.0, 1.0, 1.0]
        found, slope = aim.copy(), np.empty((3, 3))
        project_on_cone(found, mu, 0, slope)
        left = found - aim  # in the dual cone, and perpendicular to what was found (Moreau 1962)
        assert np.hypot(*found[1:]) <= mu * found[0] + 1e-12 and found[0] >= 0.0
        assert left[0] >= mu * np.hypot(*left[1:]) - 1e-12 and abs(left @ found) < 1e-12
        for j in range(3):
            ends = []
            for way in (1e-6, -1e-6):
                x = aim.copy()
                x[j] += way
                project_on_cone(x, mu, 0, np.empty((3, 3)))
                ends.append(x)
            np.testing.assert_allclose(slope[:, j], (ends[0] - ends[1]) / 2e-6, atol=1e-6)


def convex_problem(seed: int, cones: int, contacts: int = 6, rows: int = 3) -> Problem:
    """Contacts that yield, of a matrix without full rank, and rows with bounds."""
    rng = np.random.default_rng(seed)
    m = 3 * contacts + rows
    B = rng.standard_normal((m, max(m // 2, 1)))
    R = np.repeat(10.0 ** rng.uniform(-4, 0, contacts + rows), [3] * contacts + [1] * rows)
    mu = rng.choice([0.0, 0.3, 1.0, 2.0], contacts)
    for c in range(contacts):  # of friction, as pyramids have it whose edges all push
        R[3 * c + 1 : 3 * c + 3] *= 2.0 / mu[c] ** 2 if mu[c] else 1.0
    A = B @ B.T + np.diag(R)
    lower = -rng.uniform(0, 1, rows)
    return Problem(A, rng.standard_normal(m), mu, lower, lower + rng.uniform(0, 2, rows), R=R, cones=cones)


@pytest.mark.parametrize("seed", range(20))
def test_impulses_of_cones_obey_their_conditions(seed: int) -> None:
    """f in the cone, u in its dual one, and they are perpendicular: the solution of the convex problem, from any start."""
    p = convex_problem(seed, CONES)
    starts = np.random.default_rng(seed).standard_normal((2, len(p.b)))
    found = [solve_problem(p, x, 1e-10).impulses.copy() for x in (*starts, np.zeros(len(p.b)))]
    for f in found:
        np.testing.assert_allclose(f, found[0], atol=1e-7)
        assert natural_residual(p, f) < 1e-9
        u = p.A @ f + p.b
        for c, mu in enumerate(p.mu):
            normal, friction = f[3 * c], np.hypot(*f[3 * c + 1 : 3 * c + 3])
            assert friction <= mu * normal + 1e-9
            assert u[3 * c] >= mu * np.hypot(*u[3 * c + 1 : 3 * c + 3]) - 1e-8
            assert abs(u[3 * c : 3 * c + 3] @ f[3 * c : 3 * c + 3]) < 1e-8


def edges_of(p: Problem) -> Array:
    """E, whose columns are those of edges and then of rows."""
    k, m = len(p.mu), len(p.b)
    E = np.zeros((m, m + k))
    for c, mu in enumerate(p.mu):
        for e in range(EDGES):
            l, part = part_of_edge(e, mu)
            E[3 * c, EDGES * c + e], E[3 * c + l, EDGES * c + e] = 1.0, E[3 * c + l, EDGES * c + e] + part
    E[3 * k :, EDGES * k :] = np.eye(m - 3 * k)
    return E


@pytest.mark.parametrize("seed", range(20))
def test_impulses_of_pyramids_are_those_of_their_edges(seed: int) -> None:
    """The minimum of the energy of the edges' impulses, by bounded least squares (Stark and Parker 1995)."""
    p = convex_problem(seed, PYRAMIDS)
    k, E = len(p.mu), edges_of(p)
    yielding = np.concatenate([np.repeat(4.0 * p.R[: 3 * k : 3], EDGES), p.R[3 * k :]])
    A, b = E.T @ (p.A - np.diag(p.R)) @ E + np.diag(yielding), E.T @ p.b
    low = np.concatenate([np.zeros(EDGES * k), p.lower])
    high = np.concatenate([np.full(EDGES * k, np.inf), p.upper])
    L = np.linalg.cholesky(A)
    x = lsq_linear(L.T, -np.linalg.solve(L, b), (low, high), method="bvls", tol=1e-14).x
    solution = solve_problem(p, np.random.default_rng(seed).standard_normal(len(p.b)), 1e-10)
    assert solution.residual < 1e-9
    np.testing.assert_allclose(solution.impulses[: len(p.b)], E @ x, atol=1e-6)
