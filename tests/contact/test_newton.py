"""Newton's method for contact impulses: its residual, the derivative, single steps, and where they lead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import approx_fprime, nnls

from contact.given_matrices import with_factor_of
from contact.problem_families import drawn
from featherweight.contact import newton
from featherweight.contact.impulses import natural_residual, of_arrays
from featherweight.contact.laws import Problem
from featherweight.contact.newton import (
    FIRST_DAMPING,
    LEAST_DAMPING,
    LESS_DAMPING,
    MORE_DAMPING,
    MOST_DAMPING,
    PROXIMAL,
    NewtonWork,
    newton_work,
    project_all,
    solve_by_damped_newton,
    solve_by_newton,
    write_newton_step,
    write_residual,
    write_rho,
)
from featherweight.engine.loops.kernels import compiled

Array = np.ndarray[Any, np.dtype[Any]]
whole_steps, damped_steps = compiled(solve_by_newton), compiled(solve_by_damped_newton)
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
    write_rho(p, work.rho)
    worst = write_residual(p, f, work)
    residual = work.equations.right[: len(f)].copy()
    assert worst == np.abs(residual).max(initial=0.0)
    return residual


def test_rho_is_the_greatest_of_a_contacts_diagonal_and_one_where_nothing_moves() -> None:
    rho = np.zeros(8)
    A = np.diag([1.0, 5.0, 2.0, 0.0, 0.0, 0.0, 3.0, 0.0])
    p = Problem(A, np.zeros(8), np.zeros(2), np.zeros(2), np.zeros(2))
    write_rho(p, rho)
    np.testing.assert_array_equal(rho, [5.0, 5.0, 5.0, 1.0, 1.0, 1.0, 3.0, 1.0])
    rho[:] = np.nan
    write_rho(with_factor_of(p, 0.5**0.5 * np.sqrt(A), 0.5 * np.diag(A)), rho)
    np.testing.assert_allclose(rho, [5.0, 5.0, 5.0, 1.0, 1.0, 1.0, 3.0, 1.0], rtol=1e-15)


def step_back(p: Problem, f: Array) -> tuple[Array, Array]:
    """The residual of f and its derivative, by numbers."""
    slope = approx_fprime(f, lambda x: residual_of(p, x), 1e-7 * max(1.0, float(np.abs(f).max())))
    return residual_of(p, f), np.asarray(slope)


def derivative_of_projection(work: NewtonWork, k: int, n: int) -> Array:
    """P' as one matrix, for k contacts and n rows."""
    blocks = work.equations.P
    return np.asarray(block_diag(*blocks[:k], *(blocks[c, :1, :1] for c in range(k, k + n))))


def rho_of(p: Problem) -> Array:
    rho = np.empty(len(p.b))
    write_rho(p, rho)
    return rho


@FRICTION
@pytest.mark.parametrize("factored", [False, True], ids=["matrix", "factor"])
@pytest.mark.parametrize("seed", range(8))
def test_a_step_solves_the_linear_equations_of_the_derivative(seed: int, pyramid: bool, factored: bool) -> None:
    """The derivative is taken by differences; contacts are open, stick and slide, and rows are at their bounds and between."""
    rng = np.random.default_rng(seed)
    p = random_problem(rng, k=4, n=4, rank=20, pyramid=pyramid)
    p = with_factor_of(p, np.linalg.cholesky(p.A)) if factored else p
    f, work = rng.standard_normal(16) * 10.0 / rho_of(p), newton_work(20)
    residual, slope = step_back(p, f)
    residual_of(p, f, work)
    slope += PROXIMAL * derivative_of_projection(work, 4, 4) * rho_of(p)[:, None]
    write_newton_step(p, PROXIMAL, work)
    step = work.equations.step[:16].copy()
    assert np.linalg.matrix_rank(slope) == 16
    assert (np.abs(slope @ step - residual) <= 1e-5 * (np.abs(slope) @ np.abs(step))).all()


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
    work = newton_work(3 * k)
    write_rho(p, work.rho)
    left, steps = solve_by_newton(p, found, 1e-7, 8, PROXIMAL, work)
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
    work = newton_work(n)
    write_rho(p, work.rho)
    left, steps = solve_by_newton(p, f, 1e-9, 40, PROXIMAL, work)
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
    work = newton_work(3)
    write_rho(p, work.rho)
    assert solve_by_newton(p, f, 1e-12, 8, PROXIMAL, work) == (0.0, 0)
    left, steps = solve_by_newton(p, np.zeros(3), 1e-12, 0, PROXIMAL, work)
    assert (left, steps) == (1.0, 0)
    assert solve_by_newton(
        Problem(np.zeros((0, 0)), np.zeros(0), np.zeros(0)), np.zeros(0), 1e-12, 8, PROXIMAL, newton_work(0)
    ) == (
        0.0,
        0,
    )


# ---- damped steps

CYCLES = (("random rank", 28), ("dry friction", 27), ("grasp", 1), ("patch", 10), ("heap", 4))


def begun(p: Problem) -> tuple[Array, float, NewtonWork]:
    """Impulses of zero, a tolerance, and room with rho."""
    work = newton_work(len(p.b))
    write_rho(p, work.rho)
    return np.zeros(len(p.b)), 1e-8 * float(np.abs(p.b).max()), work


@pytest.mark.parametrize(("name", "seed"), CYCLES)
def test_damped_steps_solve_problems_on_which_whole_steps_cycle(name: str, seed: int) -> None:
    """Whole steps end nowhere with a proximal term of 1e-6."""
    p = of_arrays(drawn(name, seed))
    f, tolerance, work = begun(p)
    left, steps = whole_steps(p, f, tolerance, 200, 1e-6, work, 1000)
    assert left > tolerance and steps == 200
    f, tolerance, work = begun(p)
    left, steps = damped_steps(p, f, tolerance, 40, work)
    assert left <= tolerance and 0 < steps < 40
    assert natural_residual(p, f) <= tolerance


@pytest.mark.parametrize("factored", [False, True], ids=["matrix", "factor"])
@pytest.mark.parametrize("name", ["patch", "random rank", "dry friction", "squeezed"])
@pytest.mark.parametrize("seed", range(4))
def test_damped_steps_keep_the_best_that_they_meet(seed: int, name: str, factored: bool) -> None:
    """The residual is that of the impulses, and never grows with the number of steps; also where there is no solution."""
    p = of_arrays(drawn(name, seed))
    if factored:
        p = of_arrays(with_factor_of(p, np.linalg.cholesky(p.A + 1e-9 * np.trace(p.A) * np.eye(len(p.b)))))
    start, last = 1e-2 * np.random.default_rng(seed).standard_normal(len(p.b)), np.inf
    for most in (0, 1, 2, 3, 5, 8):
        _, tolerance, work = begun(p)
        f = start.copy()
        left, steps = damped_steps(p, f, tolerance, most, work)
        assert steps <= most and (left <= tolerance or steps == most)
        assert left == pytest.approx(natural_residual(p, f), rel=1e-6)
        if most == 0:
            np.testing.assert_array_equal(f, start)
        assert left <= last
        last = left


@pytest.mark.parametrize(("name", "seed"), [("random rank", 13), ("patch", 3), ("squeezed", 0), ("squeezed", 5)])
def test_damping_grows_after_steps_that_gain_nothing(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """These are taken back but at the most damping; each step counts once."""
    p = drawn(name, seed)
    f, tolerance, work = begun(p)
    at, damping, residuals = list[Array](), list[float](), list[float]()

    def step(problem: Problem, proximal: float, work: NewtonWork) -> None:
        at.append(work.last[: len(f)].copy())
        damping.append(proximal)
        residuals.append(float(np.abs(work.equations.right[: len(f)]).max()))
        write_newton_step(problem, proximal, work)

    monkeypatch.setattr(newton, "write_newton_step", step)
    left, steps = solve_by_damped_newton(p, f, tolerance, 20, work)
    assert steps == len(damping) and damping[0] == FIRST_DAMPING and left <= min(residuals)
    for i in range(steps - 1):
        taken, gained = bool((at[i + 1] != at[i]).any()), residuals[i + 1] < residuals[i]
        assert taken == (gained or damping[i] == MOST_DAMPING)
        grown = damping[i] if taken and not gained else min(MORE_DAMPING * damping[i], MOST_DAMPING)
        assert damping[i + 1] == (max(LESS_DAMPING * damping[i], LEAST_DAMPING) if gained else grown)


def test_damped_steps_end_where_the_tolerance_is_reached() -> None:
    p, f = Problem(np.eye(3), np.array([-1.0, 0.0, 0.0]), np.array([0.5])), np.array([1.0, 0.0, 0.0])
    _, _, work = begun(p)
    assert solve_by_damped_newton(p, f, 1e-12, 8, work) == (0.0, 0)
    assert solve_by_damped_newton(p, np.zeros(3), 1e-12, 0, work) == (1.0, 0)
    none = np.zeros(0)
    assert solve_by_damped_newton(Problem(np.zeros((0, 0)), none, none), none, 1e-12, 8, newton_work(0)) == (0.0, 0)
