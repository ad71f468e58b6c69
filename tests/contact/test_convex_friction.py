"""Tests of Newton's method for convex problems as in MuJoCo: the minimum over all contacts, with cones or pyramids."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from contact.convex_problems import ConvexProblem, convex_problem
from featherweight.array_types import Array
from featherweight.contact.compliant.answers import write_answer
from featherweight.contact.laws import CONES, PYRAMIDS

EDGES = 10  # greatest number of edges of a pyramid


def certificate(x: ConvexProblem, f: Array) -> float:
    """Return the violation of the conditions of the minimum [m/s]: impulses in their cones, velocities in the dual ones,
    and zero products.

    Those of pyramids hold for nearly rigid contacts, because compliances are those of edges.
    """
    p, worst, (norm, dual) = x.problem, 0.0, (2, 2) if x.problem.cones == CONES else (1, np.inf)
    k, u = len(p.mu), x.A @ f + p.R * f + p.b
    for c in range(k):
        (rows, mu), normal = x.rows(c), f[3 * c]
        if rows:
            worst = max(worst, float(np.linalg.norm(f[rows] / mu, norm) - normal) * x.A[3 * c, 3 * c])
        worst = max(worst, float(np.linalg.norm(mu * u[rows], dual) if rows else 0.0) - u[3 * c])
        if normal > 0.0:
            worst = max(worst, abs(normal * u[3 * c] + f[rows] @ u[rows]) / normal)
    for i in range(3 * (k + p.turning), len(f)):
        low, high = p.lower[i - 3 * k], p.upper[i - 3 * k]
        assert low <= f[i] <= high
        worst = max(worst, u[i] if f[i] > low else 0.0, -u[i] if f[i] < high else 0.0)
    return worst


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
def test_impulses_of_cones_obey_their_conditions(spread: float) -> None:
    """Check many contacts, from any start, and inertias that differ by up to six powers of ten."""
    for seed in range(60):
        x = convex_problem(seed, CONES, 1 + seed % 9, seed % 5, turning=0.7 * (seed % 2), spread=spread)
        starts = np.random.default_rng(seed).standard_normal((2, len(x.problem.b)))
        for start in (*starts, np.zeros(len(x.problem.b))):
            f, residual, steps = x.solve(start, 1e-9)
            assert residual <= 1e-9 and steps <= (20 if spread else 60)
            assert certificate(x, f) <= 1e-6


@pytest.mark.parametrize(("cones", "stiffness"), [(CONES, 1e2), (CONES, 1e4), (CONES, 1e6), (PYRAMIDS, 1e6)])
@pytest.mark.parametrize("turning", [0.0, 0.5])
def test_nearly_rigid_contacts_take_more_steps(turning: float, cones: int, stiffness: float) -> None:
    """Check compliances down to 1e-10 of inverse inertias, to which problems with more compliance lead."""
    for seed in range(10):
        x = convex_problem(seed, cones, 6, 3, turning=turning, stiffness=stiffness)
        for start in (np.random.default_rng(seed).standard_normal(len(x.problem.b)), np.zeros(len(x.problem.b))):
            f, residual, steps = x.solve(start, 1e-8)
            assert residual <= 1e-8 and steps < 150
            of_edges = EDGES * np.abs(x.problem.R * f).max() if cones == PYRAMIDS else 0.0
            assert certificate(x, f) <= 1e-6 + of_edges


def directions(x: ConvexProblem) -> tuple[Array, Array]:
    """Return E, whose columns are those of edges and then of rows, and the compliance of each."""
    p, columns, yielding = x.problem, [], []
    k, m = len(p.mu), len(p.b)
    for c in range(k):
        bounded = [(row, mu) for row, mu in zip(*x.rows(c), strict=True)]
        bounded += [] if p.mu[c] else [(3 * c + 1, 0.0), (3 * c + 2, 0.0)]
        for row, most in bounded:
            for part in (most, -most):
                edge = np.zeros(m)
                edge[3 * c] += 1.0
                edge[row] += part
                columns.append(edge)
                yielding.append(2 * len(bounded) * p.R[3 * c])
    rows = range(3 * (k + p.turning), m)
    E = np.column_stack([*columns, *(np.eye(m)[i] for i in rows)])
    return E, np.array([*yielding, *(p.R[i] for i in rows)])


@pytest.mark.parametrize("stiffness", [1.0, 4.0])
@pytest.mark.parametrize("turning", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(20))
def test_impulses_of_pyramids_are_those_of_their_edges(seed: int, turning: float, stiffness: float) -> None:
    """Check the minimum of the energy over impulses of the edges, by bounded least squares (Stark and Parker 1995)."""
    x = convex_problem(seed, PYRAMIDS, 6, 3, turning=turning, stiffness=stiffness)
    (E, yielding), rows, p = directions(x), 3, x.problem
    A, b = E.T @ x.A @ E + np.diag(yielding), E.T @ p.b
    low, high = np.zeros(len(b)), np.full(len(b), np.inf)
    low[-rows:], high[-rows:] = p.lower[-rows:], p.upper[-rows:]
    L = np.linalg.cholesky(A)
    expected = E @ lsq_linear(L.T, -np.linalg.solve(L, b), (low, high), method="bvls", tol=1e-14).x
    for start in (np.random.default_rng(seed).standard_normal(len(p.b)), np.zeros(len(p.b)), expected):
        f, residual, steps = x.solve(start, 1e-8)
        assert residual <= 1e-8 and steps < 50
        np.testing.assert_allclose(f, expected, atol=1e-6 * stiffness)


@pytest.mark.parametrize("cones", [CONES, PYRAMIDS])
@pytest.mark.parametrize("seed", range(8))
def test_derivatives_are_those_of_the_answers(seed: int, cones: int) -> None:
    own = convex_problem(seed, cones, 1, 0, turning=0.7).own
    m, rng = len(own.R), np.random.default_rng(seed)
    for _ in range(10):
        v, f, G = 2.0 * rng.standard_normal(m), np.zeros(m), np.zeros((6, 6))
        v[0] -= 1.0
        write_answer(own, v, 0, f, G)
        for j in range(m):
            ends, e = np.zeros((2, m)), np.zeros(m)
            e[j] = 1e-6
            write_answer(own, v + e, 0, ends[0], np.zeros((6, 6)))
            write_answer(own, v - e, 0, ends[1], np.zeros((6, 6)))
            np.testing.assert_allclose(-(ends[0] - ends[1]) / 2e-6, G[:m, j], atol=1e-5 * max(1.0, np.abs(G).max()))
