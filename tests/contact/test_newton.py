"""Newton's method for contact impulses: its residual, the derivative, single steps, and where they lead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime, nnls

from featherweight.contact.laws import Problem
from featherweight.contact.newton import (
    NewtonWork,
    newton_work,
    order_unknowns,
    project_all,
    solve_by_newton,
    write_newton_step,
    write_product_with,
    write_residual,
    write_rho,
)

Array = np.ndarray[Any, np.dtype[Any]]
FRICTION = pytest.mark.parametrize("pyramid", [False, True], ids=["cone", "pyramid"])


def random_problem(rng: np.random.Generator, k: int, n: int, rank: int, pyramid: bool = False) -> Problem:
    """k contacts, some without friction, and n rows with bounds: limits, dry friction, and some that can have no impulse."""
    m = 3 * k + n
    J = rng.standard_normal((m, rank)) * 10.0 ** rng.uniform(-1.0, 1.0, (m, 1))
    lower = rng.choice([0.0, -0.1, -np.inf], n)
    upper = np.where(lower == 0.0, rng.choice([0.0, np.inf], n), -lower)
    b = J @ rng.standard_normal(rank)
    return Problem(J @ J.T, b, rng.choice([0.0, 0.3, 1.0], k), lower, upper, pyramid)


def residual_of(p: Problem, f: Array, work: NewtonWork | None = None) -> Array:
    work = work or newton_work(len(f))
    write_rho(p.A, len(p.mu), work.rho)
    worst = write_residual(p, f, work.rho, work.residual, work.slope)
    residual = work.residual[: len(f)].copy()
    assert worst == np.abs(residual).max(initial=0.0)
    return residual


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 8, 11])
def test_products_with_a_matrix(size: int) -> None:
    rng = np.random.default_rng(size)
    A, f, product = rng.standard_normal((size, size)), rng.standard_normal(size), np.full(size + 1, 7.0)
    write_product_with(A, f, product[:size])
    np.testing.assert_allclose(product[:size], A @ f, rtol=1e-13, atol=1e-14)
    assert product[size] == 7.0


def test_rho_is_the_greatest_of_a_contacts_diagonal_and_one_where_nothing_moves() -> None:
    rho = np.zeros(8)
    write_rho(np.diag([1.0, 5.0, 2.0, 0.0, 0.0, 0.0, 3.0, 0.0]), 2, rho)
    np.testing.assert_array_equal(rho, [5.0, 5.0, 5.0, 1.0, 1.0, 1.0, 3.0, 1.0])


def step_back(p: Problem, f: Array) -> tuple[Array, Array]:
    """The residual of f and its derivative, by numbers."""
    slope = approx_fprime(f, lambda x: residual_of(p, x), 1e-7 * max(1.0, float(np.abs(f).max())))
    return residual_of(p, f), np.asarray(slope)


@FRICTION
@pytest.mark.parametrize("seed", range(8))
def test_a_step_solves_the_linear_equations_of_the_derivative(seed: int, pyramid: bool) -> None:
    """The derivative is taken by differences; contacts are open, stick and slide, and rows are at their bounds and between."""
    rng = np.random.default_rng(seed)
    p = random_problem(rng, k=4, n=4, rank=20, pyramid=pyramid)
    f, work = rng.standard_normal(16) * 10.0 / np.diag(p.A), newton_work(20)
    residual, slope = step_back(p, f)
    residual_of(p, f, work)
    write_newton_step(p.A, 4, work)
    step = work.step[:16]
    assert np.linalg.matrix_rank(slope) == 16
    assert (np.abs(slope @ step - residual) <= 1e-5 * (np.abs(slope) @ np.abs(step))).all()


def test_equations_with_a_symmetric_part_come_first() -> None:
    """Rows that stick and normals lead, rows that slide follow; open contacts have their step at once."""
    work = newton_work(9)
    work.slope[:] = 0.0
    work.slope[0] = np.eye(3)  # sticks
    work.slope[1] = [[1.0, 0.0, 0.0], [0.3, 0.5, 0.1], [0.2, 0.1, 0.4]]  # slides; the third is open
    work.rho[:], work.residual[:] = 2.0, 6.0
    assert order_unknowns(9, 3, work) == (6, 4)
    assert work.unknowns[:4].tolist() == [0, 1, 2, 3] and sorted(work.unknowns[4:6]) == [4, 5]
    np.testing.assert_array_equal(work.step[:9], [0.0] * 6 + [3.0] * 3)


@FRICTION
@pytest.mark.parametrize("rank", [3, 6, 30])
def test_where_all_sticks_a_step_or_two_solve_it(rank: int, pyramid: bool) -> None:
    """The problem is linear there: velocities are zero, as those of least squares, also where impulses are not unique."""
    rng = np.random.default_rng(rank)
    k = 8
    J = rng.standard_normal((3 * k, rank))
    f = np.tile([1.0, 0.0, 0.0], k) + 0.05 * rng.standard_normal(3 * k)
    p = Problem(J @ J.T, -J @ (J.T @ f), np.full(k, 1.0), pyramid=pyramid)
    found = f + 0.05 * rng.standard_normal(3 * k)
    left, steps = solve_by_newton(p, found, 1e-7, 8, newton_work(3 * k))
    assert left <= 1e-7 and steps <= 2
    np.testing.assert_allclose(J.T @ found, np.linalg.lstsq(J, -p.b, rcond=None)[0], atol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_limits_are_solved_as_non_negative_least_squares(seed: int) -> None:
    """min |Jᵀ f + v|² / 2 over f >= 0."""
    rng = np.random.default_rng(seed)
    n, rank = 12, 9
    J, v = rng.standard_normal((n, rank)), rng.standard_normal(rank)
    none = np.zeros(0)
    p, f = Problem(J @ J.T, J @ v, none, np.zeros(n), np.full(n, np.inf)), np.zeros(n)
    left, steps = solve_by_newton(p, f, 1e-9, 40, newton_work(n))
    assert left <= 1e-9 and steps < 40
    expected, _ = nnls(J.T, -v, maxiter=1000)
    np.testing.assert_allclose(J.T @ f, J.T @ expected, atol=1e-7)


@FRICTION
def test_the_residual_is_zero_for_what_obeys_the_laws_alone(pyramid: bool) -> None:
    """Impulses and velocities of each kind of contact and row, made by hand; any change of one of them shows."""
    mu = 0.5
    slide = np.array([mu, mu]) if pyramid else mu * np.array([0.6, 0.8])
    contacts = [
        ([0.0, 0.0, 0.0], [1.0, -2.0, 3.0]),  # open
        ([1.0, 0.3, -0.2], [0.0, 0.0, 0.0]),  # sticks
        ([2.0, *(2.0 * slide)], [0.0, -3.0, -3.0 if pyramid else -4.0]),  # slides
    ]
    rows = [
        (0.0, 0.0, np.inf, 2.0),
        (1.0, 0.0, np.inf, 0.0),
        (0.1, -0.1, 0.1, -1.0),
        (-0.1, -0.1, 0.1, 1.0),
        (0.0, -0.1, 0.1, 0.0),
    ]
    f = np.array([*np.concatenate([c[0] for c in contacts]), *(r[0] for r in rows)])
    u = np.array([*np.concatenate([c[1] for c in contacts]), *(r[3] for r in rows)])
    J = np.random.default_rng(0).standard_normal((14, 14))
    A = J @ J.T
    p = Problem(A, u - A @ f, np.full(3, mu), np.array([r[1] for r in rows]), np.array([r[2] for r in rows]), pyramid)
    assert np.abs(residual_of(p, f)).max() < 1e-13 * np.abs(A).max()
    for i in range(14):
        for d in (0.01, -0.01):
            assert np.abs(residual_of(p, f + d * np.eye(14)[i])).max() > 1e-4


def test_impulses_that_rounding_left_outside_are_projected() -> None:
    p = Problem(np.eye(7), np.zeros(7), np.array([0.5, 0.0]), np.array([-1.0]), np.array([2.0]))
    f = np.array([1.0, 3.0, 4.0, 1.0, 1e-17, 0.0, 2.5])
    project_all(p, f, np.zeros((len(p.mu), 3, 3)))
    np.testing.assert_allclose(f, [1.0, 0.3, 0.4, 1.0, 0.0, 0.0, 2.0])


def test_it_says_how_many_steps_it_took_and_what_is_left() -> None:
    p, f = Problem(np.eye(3), np.array([-1.0, 0.0, 0.0]), np.array([0.5])), np.array([1.0, 0.0, 0.0])
    assert solve_by_newton(p, f, 1e-12, 8, newton_work(3)) == (0.0, 0)
    left, steps = solve_by_newton(p, np.zeros(3), 1e-12, 0, newton_work(3))
    assert (left, steps) == (1.0, 0)
    assert solve_by_newton(Problem(np.zeros((0, 0)), np.zeros(0), np.zeros(0)), np.zeros(0), 1e-12, 8, newton_work(0)) == (
        0.0,
        0,
    )
