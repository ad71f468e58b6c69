"""Tests of iterations that remove the slip of friction: the minimum over friction, with fixed normal impulses."""

from __future__ import annotations

import numpy as np
import pytest

from contact.convex_problems import convex_problem
from featherweight.contact.compliant.no_slip import hold_still, still_work, write_most
from featherweight.contact.laws import CONES, PYRAMIDS
from featherweight.engine.loops.kernels import compiled

hold_compiled = compiled(hold_still)


@pytest.mark.parametrize("seed", range(20))
def test_friction_is_the_minimum_within_its_cones(seed: int) -> None:
    """Check that inside the cone the velocity is zero, and that on the cone it opposes friction, in units of f_j / mu_j."""
    x = convex_problem(seed, CONES, 1 + seed % 4, seed % 3, turning=0.7, spread=0.2)
    k, p, work = len(x.problem.mu), x.problem, still_work(len(x.problem.b))
    A, edge = x.A + 0.2 * np.diag(np.diag(x.A)), 0
    problem = p._replace(A=A + np.diag(p.R), rounds=3000)
    f = np.zeros(len(problem.b))
    f[0 : 3 * k : 3] = np.random.default_rng(seed).uniform(0.1, 3.0, k) * (np.arange(k) != 2)
    normal = f[0 : 3 * k : 3].copy()
    hold_compiled(problem, f, x.own, work)
    np.testing.assert_array_equal(f[0 : 3 * k : 3], normal)
    u = A @ f + problem.b
    for c in range(k):
        rows, mu = x.rows(c)
        y, slope = f[rows] / mu, mu * u[rows]
        length, scale = np.linalg.norm(y), max(1.0, np.abs(mu * problem.b[rows]).max(initial=0.0))
        assert length <= normal[c] * (1.0 + 1e-10)
        if length < normal[c] * (1.0 - 1e-6):
            np.testing.assert_allclose(slope, 0.0, atol=1e-7 * scale)
        elif normal[c] > 0.0:
            np.testing.assert_allclose(slope, -np.linalg.norm(slope) * y / length, atol=1e-6 * scale)
            edge += 1
    first = 3 * k + 3 * problem.turning
    for i in range(first, len(f)):
        low, high = problem.lower[i - 3 * k], problem.upper[i - 3 * k]
        assert low <= f[i] <= high
        assert abs(u[i]) < 1e-7 * np.abs(problem.b).max() or f[i] == (low if u[i] > 0.0 else high)
    assert edge > 0 or k < 3


@pytest.mark.parametrize("seed", range(10))
def test_friction_of_pyramids_is_bounded_by_the_impulses_along_edges(seed: int) -> None:
    """Check bounds against the impulses along edges at the velocities of the solution; none without friction."""
    x = convex_problem(seed, PYRAMIDS, 6, 2, turning=0.5)
    f, _, _ = x.solve(np.zeros(len(x.problem.b)), 1e-12)
    u, most = x.A @ f + x.problem.b, np.full(len(f), np.nan)
    write_most(x.own, f, most)
    for c, mu in enumerate(x.problem.mu):
        rows, friction = x.rows(c)
        edges = 2 * (len(rows) or 2)
        pushes = np.maximum(-(u[3 * c] + np.outer([1.0, -1.0], friction * u[rows])) / (edges * x.problem.R[3 * c]), 0.0)
        np.testing.assert_allclose(most[rows], friction * pushes.sum(axis=0), atol=1e-6)
        if mu == 0.0:
            np.testing.assert_array_equal(most[3 * c + 1 : 3 * c + 3], 0.0)
