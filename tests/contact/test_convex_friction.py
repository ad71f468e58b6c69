"""Tests of friction of convex problems as in MuJoCo: cones, and pyramids by their edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from contact.given_matrices import with_factor_of
from featherweight.array_types import Array
from featherweight.contact.edges import MOST_EDGES
from featherweight.contact.impulses import natural_residual, of_arrays, solve_in_room, solve_problem, solver_work
from featherweight.contact.laws import CONES, PYRAMIDS, Problem, project_on_cone


@pytest.mark.parametrize("mu", [0.0, 0.1, 0.7, 3.0])
def test_impulses_are_projected_on_the_nearest_of_a_cone(mu: float) -> None:
    """Check points inside, outside, and nearest to the apex; the derivative agrees with finite differences."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        aim = rng.standard_normal(3) * [2.0, 1.0, 1.0]
        found, slope = aim.copy(), np.empty((3, 3))
        project_on_cone(found, mu, 0, slope)
        left = found - aim  # in the dual cone, and perpendicular to the projection (Moreau 1962)
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
    """Return compliant contacts with a singular matrix, and rows with bounds."""
    rng = np.random.default_rng(seed)
    m = 3 * contacts + rows
    B = rng.standard_normal((m, max(m // 2, 1)))
    R = np.repeat(10.0 ** rng.uniform(-4, 0, contacts + rows), [3] * contacts + [1] * rows)
    mu = rng.choice([0.0, 0.3, 1.0, 2.0], contacts)
    for c in range(contacts):  # compliance of friction, as in a pyramid whose edges all push
        R[3 * c + 1 : 3 * c + 3] *= 2.0 / mu[c] ** 2 if mu[c] else 1.0
    A = B @ B.T + np.diag(R)
    lower = -rng.uniform(0, 1, rows)
    return Problem(A, rng.standard_normal(m), mu, lower, lower + rng.uniform(0, 2, rows), R=R, cones=cones)


@pytest.mark.parametrize("seed", range(20))
def test_impulses_of_cones_obey_their_conditions(seed: int) -> None:
    """Check that f is in the cone, u in the dual cone, and both are perpendicular: the solution of the convex problem,
    from any start.
    """
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


def directions(p: Problem, turning: Array, friction: Array) -> tuple[Array, Array]:
    """Return E, whose columns are those of edges and then of rows, and the compliance of each."""
    k, m = len(p.mu), len(p.b)
    columns, yielding = [], []
    for c, mu in enumerate(p.mu):
        bounded = [(3 * c + 1, mu), (3 * c + 2, mu)]
        if turning[c] >= 0:
            first = 3 * (k + turning[c])
            bounded += [(first + l, most) for l, most in enumerate(friction[c]) if most]
        for row, most in bounded:
            for part in (most, -most):
                edge = np.zeros(m)
                edge[3 * c] += 1.0
                edge[row] += part
                columns.append(edge)
                yielding.append(2 * len(bounded) * p.R[3 * c])
    rows = range(3 * k + 3 * int(np.sum(turning >= 0)), m)
    E = np.column_stack([*columns, *(np.eye(m)[i] for i in rows)])
    return E, np.array([*yielding, *(p.R[i] for i in rows)])


def with_turning(p: Problem, seed: int) -> tuple[Problem, Array, Array]:
    """Return the same problem, in which the rows of two contacts are the turning rows of the first ones."""
    rng, k = np.random.default_rng(seed), len(p.mu) - 2
    friction = np.zeros((k, 3))
    friction[:2] = rng.uniform(0.1, 0.5, (2, 3))
    friction[1, 1:] = 0.0
    lower = np.concatenate([np.zeros(6), p.lower])
    upper, turning = np.concatenate([lower[:6], p.upper]), np.array([0, 1, *(-1,) * (k - 2)])
    return p._replace(mu=p.mu[:k], lower=lower, upper=upper), turning, friction


@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_impulses_of_pyramids_are_those_of_their_edges(seed: int, turns: bool) -> None:
    """Check the minimum of the energy over impulses of the edges, by bounded least squares (Stark and Parker 1995)."""
    p = convex_problem(seed, PYRAMIDS)
    turning, friction = np.full(len(p.mu), -1), np.zeros((len(p.mu), 3))
    if turns:
        p, turning, friction = with_turning(p, seed)
    (E, yielding), rows = directions(p, turning, friction), 3
    A, b = E.T @ (p.A - np.diag(p.R)) @ E + np.diag(yielding), E.T @ p.b
    low, high = np.zeros(len(b)), np.full(len(b), np.inf)
    low[-rows:], high[-rows:] = p.lower[-rows:], p.upper[-rows:]
    L = np.linalg.cholesky(A)
    x = lsq_linear(L.T, -np.linalg.solve(L, b), (low, high), method="bvls", tol=1e-14).x
    work = solver_work(len(p.b), edges=MOST_EDGES * len(p.mu) + len(p.b))
    work.edges.turning[: len(turning)], work.edges.turning_friction[: len(turning)] = turning, friction
    residual, _, _ = solve_in_room(of_arrays(p), np.random.default_rng(seed).standard_normal(len(p.b)), 1e-10, work)
    assert residual < 1e-9
    np.testing.assert_allclose(work.best[: len(p.b)], E @ x, atol=1e-6)


@pytest.mark.parametrize("stiffness", [1.0, 4.0])
@pytest.mark.parametrize("seed", range(20))
def test_pyramids_by_the_factor_of_the_matrix_have_the_impulses_of_their_edges(seed: int, stiffness: float) -> None:
    """Check that Newton's method in velocities finds them from any start, for compliant and for nearly rigid contacts."""
    p = convex_problem(seed, PYRAMIDS)
    squares, vectors = np.linalg.eigh(p.A - np.diag(p.R))
    J, R = vectors * np.sqrt(np.maximum(squares, 0.0)), p.R / stiffness
    whole, by_factor = p._replace(A=J @ J.T + np.diag(R), R=R), with_factor_of(p, J, R)
    m = len(p.b)
    start = np.random.default_rng(seed).standard_normal(m)
    expected = solve_problem(whole, start, 1e-11).impulses[:m].copy()
    for begin in (start, np.zeros(m), expected):
        found = solve_problem(by_factor, begin, 1e-8)
        assert found.residual < 1e-8 and found.newton_steps < 50
        np.testing.assert_allclose(found.impulses[:m], expected, atol=1e-6 * stiffness)
    assert solve_problem(by_factor, found.impulses[:m].copy(), 1e-7).newton_steps == 0
