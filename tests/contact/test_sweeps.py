"""Projected Gauss-Seidel against convex solvers, and what each single step must do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize, nnls

from featherweight.contact.impulses import natural_residual
from featherweight.contact.laws import Problem
from featherweight.contact.sweeps import gauss_seidel_sweep, row_velocity, solve_by_sweeps, stick_or_slide

Array = np.ndarray[Any, np.dtype[Any]]
FRICTION = pytest.mark.parametrize("pyramid", [False, True], ids=["cone", "pyramid"])
NONE = np.zeros(0)


def of_rows(J: Array, v: Array, lower: Any, upper: Any) -> Problem:
    return Problem(J @ J.T, J @ v, NONE, np.broadcast_to(lower, len(J)).copy(), np.broadcast_to(upper, len(J)).copy())


def energy(p: Problem, f: Array) -> float:
    return float(0.5 * f @ p.A @ f + f @ p.b)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("rows", "rank"), [(6, 12), (10, 6)], ids=["independent", "redundant"])
def test_rows_with_bounds_are_least_squares_with_bounds(seed: int, rows: int, rank: int) -> None:
    """Velocities are unique; every sweep brings the energy down."""
    rng = np.random.default_rng(seed)
    J, v = rng.standard_normal((rows, rank)), rng.standard_normal(rank)
    p = of_rows(J, v, -rng.uniform(0.0, 0.2, rows), rng.choice([0.05, 10.0], rows))
    f, energies = np.zeros(rows), [0.0]
    for _ in range(30):
        gauss_seidel_sweep(p, f)
        energies.append(energy(p, f))
    assert (np.diff(energies) <= 1e-14).all()
    _, left = solve_by_sweeps(p, f, 5000, 1e-10)
    assert left <= 1e-10
    expected = lsq_linear(J.T, -v, (p.lower, p.upper), method="bvls", tol=1e-14).x
    np.testing.assert_allclose(J.T @ f, J.T @ expected, atol=1e-7)
    assert ((f >= p.lower) & (f <= p.upper)).all()


@pytest.mark.parametrize("seed", range(6))
def test_normals_without_friction_are_non_negative_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = 5
    J, v = rng.standard_normal((3 * k, 20)), rng.standard_normal(20)
    p = Problem(J @ J.T, J @ v, np.zeros(k))
    f = rng.random(3 * k)  # tangential impulses of contacts without friction go
    _, left = solve_by_sweeps(p, f, 5000, 1e-11)
    assert left <= 1e-11 and not f.reshape(k, 3)[:, 1:].any()
    np.testing.assert_allclose(f[::3], nnls(J[::3].T, -v)[0], atol=1e-8)


def positive(rng: np.random.Generator, ratio: float) -> Array:
    """A block of three rows, the eigenvalues of which have a ratio."""
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    A: Array = Q @ np.diag([1.0, ratio**0.5, ratio]) @ Q.T
    return 0.5 * (A + A.T)


@FRICTION
@pytest.mark.parametrize("ratio", [1.0, 30.0])
def test_friction_of_one_contact_takes_the_most_energy_that_it_may(pyramid: bool, ratio: float) -> None:
    """Repeated, it ends where scipy's least energy within the disk or square is, and sticks at once where it can."""
    rng = np.random.default_rng(4)
    sticks = 0
    for _ in range(12):
        p = Problem(positive(rng, ratio), 3.0 * rng.standard_normal(3), np.array([1.0]), pyramid=pyramid)
        most = rng.choice([0.0, 0.2, 5.0])
        f = np.array([1.0, 0.0, 0.0])
        free = np.linalg.solve(p.A[1:, 1:], -(p.b + p.A[:, 0])[1:])
        stick_or_slide(p, most, f, 0)
        if (np.abs(free).max() if pyramid else np.linalg.norm(free)) <= most:
            np.testing.assert_allclose(f[1:], free, atol=1e-12)
            sticks += 1
        for _ in range(3000):
            if stick_or_slide(p, most, f, 0) < 1e-14:
                break
        size = np.abs(f[1:]).max() if pyramid else np.linalg.norm(f[1:])
        assert size <= most * (1.0 + 1e-14)

        def left(t: Array, p: Problem = p) -> float:
            return energy(p, np.array([1.0, t[0], t[1]]))

        bounds = [(-most, most)] * 2
        disk = [] if pyramid else [{"type": "ineq", "fun": lambda t, most=most: most * most - t @ t}]
        best = minimize(left, 0.1 * most * np.ones(2), method="SLSQP", bounds=bounds, constraints=disk, options={"ftol": 1e-14})
        assert left(f[1:]) == pytest.approx(best.fun, abs=1e-7)
    assert sticks > 0


@FRICTION
def test_a_contact_alone_is_solved_by_coulombs_law(pyramid: bool) -> None:
    """The solution for a diagonal block is known: it stops, sticks or slides."""
    p = Problem(np.diag([2.0, 0.5, 0.5]), np.array([-4.0, 0.3, -0.4]), np.array([1.0]), pyramid=pyramid)
    f = np.zeros(3)
    assert gauss_seidel_sweep(p, f) == pytest.approx(4.0)
    np.testing.assert_allclose(f, [2.0, -0.6, 0.8])
    f = np.zeros(3)
    gauss_seidel_sweep(p._replace(mu=np.array([0.1])), f)
    np.testing.assert_allclose(f, [2.0, -0.2, 0.2] if pyramid else [2.0, -0.12, 0.16])
    gauss_seidel_sweep(p._replace(b=-p.b), f)
    np.testing.assert_allclose(f, 0.0)


@FRICTION
@pytest.mark.parametrize("seed", range(4))
def test_what_the_sweeps_leave_is_the_residual_that_newtons_method_measures(seed: int, pyramid: bool) -> None:
    """Up to the lengths of their steps: of contacts with friction, some redundant, and rows with bounds."""
    rng = np.random.default_rng(seed)
    k, n = 3, 3
    J = rng.standard_normal((3 * k + n, 9))
    v = rng.standard_normal(9)
    p = Problem(J @ J.T, J @ v, np.array([0.0, 0.2, 0.5]), np.full(n, -0.1), np.full(n, 0.1), pyramid)
    f = np.zeros(3 * k + n)
    _, left = solve_by_sweeps(p, f, 20000, 1e-9)
    assert left <= 1e-9
    assert natural_residual(p, f) <= 1e-8


def test_rows_that_nothing_can_move_keep_their_impulses() -> None:
    p = Problem(np.zeros((4, 4)), -np.ones(4), np.array([0.5]), np.array([-1.0]), np.array([1.0]))
    f = np.zeros(4)
    assert gauss_seidel_sweep(p, f) == 0.0
    np.testing.assert_array_equal(f, 0.0)


def test_masses_in_a_ratio_of_a_million_need_many_sweeps_and_say_so() -> None:
    """A heavy block on a light one; after a few sweeps the residual is not small, and is told."""
    J = np.array([[1.0, 0.0], [-1.0, 1.0]])
    A = J @ np.diag([1.0, 1e-6]) @ J.T
    p, f = Problem(A, np.array([-0.01, 0.0]), NONE, np.zeros(2), np.full(2, np.inf)), np.zeros(2)
    count, left = solve_by_sweeps(p, f, 10, 1e-12)
    assert count == 10 and left > 1e-12
    assert np.abs(p.A @ f + p.b).max() > 1e-12


def test_velocities_of_rows() -> None:
    rng = np.random.default_rng(0)
    p, f = Problem(rng.standard_normal((5, 5)), rng.standard_normal(5), NONE), rng.standard_normal(5)
    np.testing.assert_allclose([row_velocity(p, f, r) for r in range(5)], p.A @ f + p.b, rtol=1e-13)


def test_it_ends_at_once_where_the_impulses_are_right_and_where_numbers_are_none() -> None:
    p = of_rows(np.eye(2), np.array([-1.0, 1.0]), 0.0, np.inf)
    assert solve_by_sweeps(p, np.array([1.0, 0.0]), 50, 1e-12) == (1, 0.0)
    assert solve_by_sweeps(p._replace(b=np.full(2, np.nan)), np.zeros(2), 50, 1e-12)[0] == 1
