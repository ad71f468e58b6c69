"""Tests of iterations that remove the slip of friction: the minimum over friction, with fixed normal impulses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contact.test_turning_cones import drawn
from featherweight.contact.edges import edge_work, list_edges
from featherweight.contact.no_slip import hold_still, still_work, write_most
from featherweight.contact.turning_cones import row_of
from featherweight.engine.loops.kernels import compiled

Array = Any
hold_compiled = compiled(hold_still)


def rubbing_rows(k: int, c: int, work: Any) -> tuple[list[int], Array]:
    """Return the rows of a contact's friction with nonzero coefficients, and these coefficients."""
    mu = np.concatenate([[work.mu[c]] * 2, work.friction[c] if work.turning[c] >= 0 else []])
    rows = [row_of(c, l, k, work.turning) for l in range(1, 1 + len(mu))]
    return [row for row, x in zip(rows, mu, strict=True) if x > 0.0], mu[mu > 0.0]


@pytest.mark.parametrize("seed", range(20))
def test_friction_is_the_minimum_within_its_cones(seed: int) -> None:
    """Check that inside the cone the velocity is zero, and that on the cone it opposes friction, in units of f_j / mu_j."""
    problem, cones = drawn(seed, 1 + seed % 4, seed % 3, 0.2)
    k, work = len(problem.mu), still_work(len(problem.b))
    work.turning[:], work.friction[:] = cones.turning, cones.friction
    A, edge = problem.A - np.diag(problem.R) + 0.2 * np.diag(np.diag(problem.A)), 0
    problem = problem._replace(A=A + np.diag(problem.R), rounds=3000)
    f = np.zeros(len(problem.b))
    f[0 : 3 * k : 3] = np.random.default_rng(seed).uniform(0.1, 3.0, k) * (np.arange(k) != 2)
    normal = f[0 : 3 * k : 3].copy()
    hold_compiled(problem, f, False, work)
    np.testing.assert_array_equal(f[0 : 3 * k : 3], normal)
    u = A @ f + problem.b
    for c in range(k):
        given = type("Given", (), {"mu": problem.mu, "friction": work.friction, "turning": work.turning})
        rows, mu = rubbing_rows(k, c, given)
        y, slope = f[rows] / mu, mu * u[rows]
        length, scale = np.linalg.norm(y), max(1.0, np.abs(mu * problem.b[rows]).max())
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


def test_contacts_without_friction_get_none_from_pyramids() -> None:
    """Check that numbers of an earlier problem in the workspace have no effect."""
    problem, _ = drawn(0, 3, 0, 0.2)
    problem = problem._replace(mu=np.array([0.5, 0.0, 0.5]))
    edges, work = edge_work(12 + len(problem.b)), still_work(len(problem.b))
    edges.impulses[:], work.most[:] = 1.0, np.nan
    write_most(problem, list_edges(problem, edges), edges, work.most)
    np.testing.assert_array_equal(work.most[[1, 2, 4, 5, 7, 8]], [1.0, 1.0, 0.0, 0.0, 1.0, 1.0])
