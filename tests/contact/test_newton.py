"""Tests of Newton's method for contact impulses: residual, derivative, single steps, full steps and steps along a path."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import approx_fprime, lsq_linear, nnls

from contact.given_matrices import matrix_of, with_factor_of
from contact.problem_families import drawn
from featherweight.array_types import Array
from featherweight.contact.impulses import natural_residual, of_arrays
from featherweight.contact.laws import Problem
from featherweight.contact.rigid import newton
from featherweight.contact.rigid.newton import (
    AT_ONCE,
    BEYOND,
    GAIN,
    NewtonWork,
    newton_work,
    part_of_contact,
    part_to,
    part_to_change,
    project_all,
    solve_along_path,
    solve_by_newton,
    write_newton_step,
    write_residual,
    write_rho,
)
from featherweight.engine.loops.kernels import compiled

PROXIMAL = 1e-5
whole_steps, path_steps = compiled(solve_by_newton), compiled(solve_along_path)
FRICTION = pytest.mark.parametrize("pyramid", [False, True], ids=["cone", "pyramid"])


def random_problem(rng: np.random.Generator, k: int, n: int, rank: int, pyramid: bool = False) -> Problem:
    """Return k contacts, some without friction, and n rows with bounds: limits, dry friction, and rows without impulse."""
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
    """Return the residual of f and its derivative, by numbers."""
    slope = approx_fprime(f, lambda x: residual_of(p, x), 1e-7 * max(1.0, float(np.abs(f).max())))
    return residual_of(p, f), np.asarray(slope)


def derivative_of_projection(work: NewtonWork, k: int, n: int) -> Array:
    """Return P' as one matrix, for k contacts and n rows."""
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
    """Check the derivative by differences: contacts are open, stick and slide, and rows are at their bounds and between."""
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
    """Check linear problems: velocities are zero, as with least squares, even if impulses are not unique."""
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
    """Check min |Jᵀ f + v|² / 2 over f >= 0."""
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
    """Check impulses and velocities, set by hand, of each kind of contact and row; any change of a value must be detected."""
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


@pytest.mark.parametrize("method", ["whole steps", "along a path"])
def test_it_says_how_many_steps_it_took_and_what_is_left(method: str) -> None:
    def solve(p: Problem, f: Array, most: int) -> tuple[float, int]:
        _, _, work = begun(p)
        if method == "along a path":
            return solve_along_path(p, f, 1e-12, most, work)
        return solve_by_newton(p, f, 1e-12, most, PROXIMAL, work)

    p, none = Problem(np.eye(3), np.array([-1.0, 0.0, 0.0]), np.array([0.5])), np.zeros(0)
    assert solve(p, np.array([1.0, 0.0, 0.0]), 8) == (0.0, 0)
    assert solve(p, np.zeros(3), 0) == (1.0, 0)
    assert solve(Problem(np.zeros((0, 0)), none, none), none, 8) == (0.0, 0)


def begun(p: Problem) -> tuple[Array, float, NewtonWork]:
    """Return impulses of zero, a tolerance, and a workspace with rho."""
    work = newton_work(len(p.b))
    write_rho(p, work.rho)
    return np.zeros(len(p.b)), 1e-8 * float(np.abs(p.b).max(initial=1e-300)), work


class Visits:
    """Replacement of `write_newton_step` that records the start of each step and the final residual."""

    def __init__(self, p: Problem, work: NewtonWork, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work, self.m = work, len(p.b)
        self.f, self.velocity, self.residual, self.step = list[Array](), list[Array](), list[Array](), list[Array]()
        monkeypatch.setattr(newton, "write_newton_step", self)

    def __call__(self, problem: Problem, proximal: float, work: NewtonWork) -> None:
        self.note()
        write_newton_step(problem, proximal, work)
        self.step.append(work.equations.step[: self.m].copy())

    def note(self) -> None:
        for visits, room in (
            (self.f, self.work.last),
            (self.velocity, self.work.velocity),
            (self.residual, self.work.equations.right),
        ):
            visits.append(room[: self.m].copy())

    @property
    def greatest(self) -> Array:
        """Return the greatest entries of the residual."""
        return np.array([np.abs(r).max() for r in self.residual])


@pytest.mark.parametrize("gain", [0.1, 0.5, np.inf])
@pytest.mark.parametrize(("name", "seed"), [("heap", 1), ("grasp", 1), ("random rank", 41)])
def test_whole_steps_end_after_one_that_leaves_more_than_the_gain(
    name: str, seed: int, gain: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that each earlier step left at most that part, and that the best impulses are kept."""
    p = of_arrays(drawn(name, seed))
    f, tolerance, work = begun(p)
    visits = Visits(p, work, monkeypatch)
    left, steps = solve_by_newton(p, f, tolerance, 12, 1e-6, work, gain)
    visits.note()
    residuals = visits.greatest
    gains = residuals[1:] / residuals[:-1]
    assert steps == len(visits.step) == len(gains) and left == residuals.min()
    assert (gains[:-1] <= gain).all()
    assert steps == 12 or left <= tolerance or gains[-1] > gain
    assert natural_residual(p, f) == pytest.approx(left, rel=1e-6)
    assert gain < np.inf or steps > 3


# ---- changes of states


MU = (0.0, 1e-3, 0.3, 1.0, 10.0)


def state_of_contact(aim: Array, mu: float, pyramid: bool) -> Array:
    """Return the states of one contact for aims (3, n): 0 open; then sticking and sliding, for a pyramid by sides."""
    n, x, y = aim
    if pyramid:
        sides = [np.where(np.abs(t) <= mu * n, 0, np.where(t > 0.0, 1, 2)) for t in (x, y)]
        touching = 1 + sides[0] + 3 * sides[1]
    else:
        touching = np.where(np.hypot(x, y) <= mu * n, 1, 2) if mu > 0.0 else np.ones(len(n))
    return np.where(n > 0.0, touching, 0).astype(int)


def state_of_row(aim: Array, lower: float, upper: float) -> Array:
    """Return 0 at the lower bound, 1 between, 2 at the upper one."""
    return np.where(aim < lower, 0, np.where(aim > upper, 2, 1))


def aims_along_step(f: Array, work: NewtonWork, parts: Array) -> Array:
    """Return f - u/rho (m, n) after parts of the step."""
    m = len(f)
    aim = f - work.velocity[:m] / work.rho[:m]
    return np.asarray(aim[:, None] + (work.tried[:m] / work.rho[:m] - work.equations.step[:m])[:, None] * parts)


def put_step(rng: np.random.Generator, rho: Array, work: NewtonWork) -> Array:
    """Return random impulses, and set random velocities and changes in the workspace; some changes are zero."""
    m = len(rho)
    work.rho[:m], work.velocity[:m], work.tried[:m] = rho, rng.standard_normal(m), rng.standard_normal(m)
    work.equations.step[:m] = rng.standard_normal(m) * rng.choice([0.0, 1.0], m, p=[0.2, 0.8])
    work.tried[:m] *= rng.choice([0.0, 1.0], m, p=[0.2, 0.8])
    f: Array = rng.standard_normal(m)
    return f


@FRICTION
@pytest.mark.parametrize("mu", MU)
def test_a_contact_keeps_its_state_up_to_the_part_that_is_found_and_has_another_one_after(mu: float, pyramid: bool) -> None:
    """Check against a dense search. Without friction, a pyramid's sides have no meaning, and may count or not."""
    rng, work, changed = np.random.default_rng(0), newton_work(3), 0
    for _ in range(300):
        f = put_step(rng, np.full(3, rng.uniform(0.2, 5.0)), work)
        f[1:] *= max(min(mu, 1.0), 0.1)
        p = Problem(np.zeros((3, 3)), np.zeros(3), np.array([mu]), pyramid=pyramid)
        part = part_of_contact(p, f, 0, work)
        assert part > 0.0
        before = np.r_[1e-9 * min(part, 1.0), np.linspace(0.0, min(part, 50.0), 2000)[1:-1], min(part, 1e6) * (1.0 - 1e-9)]
        states = state_of_contact(aims_along_step(f, work, before), mu, pyramid and mu > 0.0)
        assert (states == states[0]).all()
        if part < np.inf:
            changed += 1
            ends = state_of_contact(aims_along_step(f, work, part * np.array([1.0 - 1e-9, 1.0 + 1e-9])), mu, pyramid)
            assert ends[0] != ends[1]
    assert 100 < changed < 300


@FRICTION
@pytest.mark.parametrize("seed", range(12))
def test_a_step_ends_where_the_first_contact_or_row_changes_its_state(seed: int, pyramid: bool) -> None:
    """Check that only this contact or row has another state just beyond, and none before."""
    rng, found = np.random.default_rng(seed), 0
    for _ in range(20):
        k, n = int(rng.integers(0, 4)), int(rng.integers(0, 5))
        m, work = 3 * k + n, newton_work(3 * k + n)
        f = put_step(rng, np.r_[np.repeat(rng.uniform(0.2, 5.0, k), 3), rng.uniform(0.2, 5.0, n)], work)
        scale = rng.choice([0.1, 1.0])
        work.tried[:m] *= scale
        work.equations.step[:m] *= scale
        lower = rng.choice([0.0, -0.3, -np.inf], n)
        upper = np.where(lower == 0.0, rng.choice([0.1, np.inf], n), rng.choice([0.3, np.inf], n))
        p = Problem(np.zeros((m, m)), np.zeros(m), rng.choice(MU[1:], k), lower, upper, pyramid)
        part, which = part_to_change(p, f, -1, work)
        end = part if which >= 0 else 1.0
        before = np.linspace(0.0, max(end - 2.0 * BEYOND * (1.0 + end), 0.0), 2000)
        aims = aims_along_step(f, work, np.r_[before, end])
        states = [state_of_contact(aims[3 * c : 3 * c + 3], p.mu[c], pyramid) for c in range(k)]
        states += [state_of_row(aims[3 * k + j], p.lower[j], p.upper[j]) for j in range(n)]
        for c, state in enumerate(states):
            assert (state[:-1] == state[0]).all()
            assert (state[-1] != state[0]) == (c == which)
        assert (which >= 0) == (part != 1.0)
        found += which >= 0
    assert 3 < found < 20


def rows_that_change_after(parts: list[float]) -> tuple[Problem, Array, NewtonWork]:
    """Return rows at their lower bounds, zero, that change after these parts of a step."""
    n = len(parts)
    p, work = Problem(np.eye(n), np.zeros(n), np.zeros(0), np.zeros(n), np.full(n, np.inf)), newton_work(n)
    work.rho[:n], work.velocity[:n], work.tried[:n], work.equations.step[:n] = 1.0, 0.0, 0.0, 1.0
    return p, np.array(parts), work


def test_what_changed_before_does_not_change_back_at_once() -> None:
    """Check a change within `AT_ONCE` of a step; then the third change ends the step."""
    soon = 0.1 * AT_ONCE
    p, f, work = rows_that_change_after([0.6, soon, 0.4, 0.2, 3.0])
    for before, part, which in ((-1, soon, 1), (3, soon, 1), (1, 0.4, 2)):
        found, changed = part_to_change(p, f, before, work)
        assert changed == which and found == pytest.approx(part, rel=1e-8, abs=1e-8) and found > part
    p, f, work = rows_that_change_after([2.0 * AT_ONCE, 0.5, 0.7])
    assert part_to_change(p, f, 0, work)[1] == 0
    p, f, work = rows_that_change_after([soon, 0.5, 1.5])
    assert part_to_change(p, f, 0, work) == (1.0, -1)


def test_parts_of_ways() -> None:
    """Check that crossings behind the start, and remainders of rounding, are never found."""
    assert part_to(1.0, 4.0) == 0.25 and part_to(-1.0, -4.0) == 0.25 and part_to(8.0, 4.0) == 2.0
    assert part_to(1.0, -4.0) == part_to(1.0, 0.0) == part_to(0.0, 1.0) == part_to(0.0, 0.0) == np.inf
    assert part_to(1e-13, 1.0) == part_to(np.inf, 1.0) == np.inf


# ---- along a path


def piecewise_linear(seed: int, kind: str) -> Problem:
    """Return a positive definite problem without changes of sliding directions: rows with bounds, no friction, or pyramids."""
    rng = np.random.default_rng(seed)
    k, n = {"limits": (0, 9), "bounds": (0, 9), "no friction": (4, 4), "pyramid": (4, 4)}[kind]
    m = 3 * k + n
    J = rng.standard_normal((m, m))
    lower = np.zeros(n) if kind == "limits" else rng.choice([0.0, -0.1, -np.inf], n)
    upper = np.full(n, np.inf) if kind == "limits" else np.where(lower == 0.0, rng.choice([0.1, np.inf], n), 0.1)
    mu = np.full(k, 0.5 if kind == "pyramid" else 0.0)
    return Problem(J @ J.T + 0.3 * np.eye(m), 3.0 * rng.standard_normal(m), mu, lower, upper, kind == "pyramid")


def expected_impulses(p: Problem) -> Array:
    """Return the impulses of least energy without friction, by SciPy, for normals and rows."""
    k, m = len(p.mu), len(p.b)
    rows = np.r_[np.arange(0, 3 * k, 3), np.arange(3 * k, m)]
    J = np.linalg.cholesky(p.A[np.ix_(rows, rows)])
    v = np.linalg.solve(J, p.b[rows])
    lower, upper = np.r_[np.zeros(k), p.lower], np.r_[np.full(k, np.inf), p.upper]
    f = np.zeros(m)
    if not lower.any() and np.isinf(upper).all():
        f[rows], _ = nnls(J.T, -v, maxiter=1000)
    else:
        f[rows] = lsq_linear(J.T, -v, (lower, upper), method="bvls", tol=1e-15).x
    return f


@pytest.mark.parametrize("kind", ["limits", "bounds", "no friction", "pyramid"])
def test_a_part_of_a_step_takes_that_part_of_the_residual(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check up to the proximal term. Otherwise the step is full, and leaves at most `GAIN` or changes no state."""
    in_parts, parts = 0, list[float]()

    def part_found(problem: Problem, f: Array, before: int, work: NewtonWork) -> tuple[float, int]:
        found = part_to_change(problem, f, before, work)
        parts.append(found[0])
        return found

    monkeypatch.setattr(newton, "part_to_change", part_found)
    for seed in range(12):
        p = piecewise_linear(seed, kind)
        f, tolerance, work = begun(p)
        visits = Visits(p, work, monkeypatch)
        parts.clear()
        left, steps = solve_along_path(p, f, tolerance, 100, work)
        visits.note()
        assert left <= tolerance and steps == len(parts) < 50
        for i, part in enumerate(parts):
            step, residual, after = visits.step[i], visits.residual[i], visits.residual[i + 1]
            taken = float((visits.f[i] - visits.f[i + 1]) @ step / (step @ step))
            small = 1e-5 * np.abs(residual).max()
            if part < 1.0 and abs(taken - 1.0) > 1e-6:
                in_parts += 1
                assert taken == pytest.approx(part, rel=1e-6)
                np.testing.assert_allclose(after, (1.0 - part) * residual, rtol=0.0, atol=small)
            else:
                assert taken == pytest.approx(1.0)
                assert part == 1.0 or np.abs(after).max() <= GAIN * np.abs(residual).max()
    assert in_parts >= 3


@pytest.mark.parametrize("kind", ["limits", "bounds", "no friction"])
@pytest.mark.parametrize("seed", range(12))
def test_a_path_ends_after_finitely_many_steps_at_the_impulses_of_least_energy(seed: int, kind: str) -> None:
    """Check that the last step is linear, so that the result is exact up to rounding and the proximal term, also from
    random impulses.
    """
    p = of_arrays(piecewise_linear(seed, kind))
    for start in (np.zeros(len(p.b)), np.random.default_rng(seed).standard_normal(len(p.b))):
        _, tolerance, work = begun(p)
        f = start.copy()
        left, steps = path_steps(p, f, tolerance, 100, work)
        assert left <= tolerance and steps < 50
        np.testing.assert_allclose(f, expected_impulses(p), rtol=0.0, atol=1e-7)


@FRICTION
@pytest.mark.parametrize("factored", [False, True], ids=["matrix", "factor"])
@pytest.mark.parametrize(("name", "seed"), [("heap", 21), ("random rank", 41), ("dry friction", 27), ("twins", 51)])
def test_velocities_along_a_path_are_those_of_the_impulses(
    name: str, seed: int, factored: bool, pyramid: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check velocities, which are updated from step to step; the tolerance is relative to the largest impulses and steps.

    With a factor of A, their change is that of the equations' solution, to rounding divided by the proximal term.
    """
    p = of_arrays(drawn(name, seed)._replace(pyramid=pyramid))
    A = p.A
    if factored:
        J = np.linalg.cholesky(A + 1e-9 * np.trace(A) * np.eye(len(A)))
        p, A = of_arrays(with_factor_of(p, J)), J @ J.T
    f, tolerance, work = begun(p)
    visits = Visits(p, work, monkeypatch)
    _, steps = solve_along_path(p, f, tolerance, 12, work)
    visits.note()
    assert steps > 3
    largest, size = np.zeros(len(f)), np.abs(p.b)
    for x, u, step in zip(visits.f, visits.velocity, [*visits.step, np.zeros(len(f))], strict=True):
        np.testing.assert_array_less(
            np.abs(A @ x + p.b - u), (1e-8 if factored else 1e-13) * (size + np.abs(A) @ largest).max()
        )
        largest = np.maximum(largest, np.maximum(np.abs(x), np.abs(step)))


CYCLES = [
    ("patch", 21), ("patch", 77), ("wedge", 98), ("twins", 51), ("pinch", 67), ("grasp", 1), ("stack", 27), ("heap", 1),
    ("heap", 98), ("chain with contacts", 78), ("dry friction", 27), ("random rank", 41), ("random rank", 43),
]  # fmt: skip


@pytest.mark.parametrize(("name", "seed"), CYCLES)
def test_paths_solve_problems_on_which_whole_steps_cycle(name: str, seed: int) -> None:
    """Check problems on which full steps cycle with a proximal term of 1e-6."""
    p = of_arrays(drawn(name, seed))
    f, tolerance, work = begun(p)
    left, steps = whole_steps(p, f, tolerance, 200, 1e-6, work, np.inf)
    assert left > tolerance and steps == 200
    f, tolerance, work = begun(p)
    left, steps = path_steps(p, f, tolerance, 40, work)
    assert left <= tolerance and 0 < steps < 40
    assert natural_residual(p, f) <= 1.001 * tolerance


@pytest.mark.parametrize("factored", [False, True], ids=["matrix", "factor"])
@pytest.mark.parametrize("name", ["patch", "random rank", "dry friction", "squeezed"])
@pytest.mark.parametrize("seed", range(4))
def test_paths_keep_the_best_impulses_that_they_meet(seed: int, name: str, factored: bool) -> None:
    """Check that the residual is that of the impulses, and that above the tolerance it never grows with the number of steps.

    This also holds without a solution. Below the tolerance, rounding decides which step is the last.
    """
    p = of_arrays(drawn(name, seed))
    if factored:
        p = of_arrays(with_factor_of(p, np.linalg.cholesky(p.A + 1e-9 * np.trace(p.A) * np.eye(len(p.b)))))
    start, last = 1e-2 * np.random.default_rng(seed).standard_normal(len(p.b)), np.inf
    for most in (0, 1, 2, 3, 5, 8):
        _, tolerance, work = begun(p)
        f = start.copy()
        left, steps = path_steps(p, f, tolerance, most, work)
        assert steps <= most and (left <= tolerance or steps == most)
        rounding = 16.0 * np.finfo(float).eps * (np.abs(matrix_of(p)) @ np.abs(f)).max()
        assert left == pytest.approx(natural_residual(p, f), rel=1e-6, abs=1e-3 * tolerance + rounding)
        if most == 0:
            np.testing.assert_array_equal(f, start)
        assert left <= max(last * (1.0 + 1e-6), tolerance)
        last = left
