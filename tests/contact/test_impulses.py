"""Tests of contact impulses against a convex solver (Clarabel), problems with known solutions, and Coulomb's law."""

from __future__ import annotations

from math import log
from typing import Any

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from contact.given_matrices import with_factor_of
from contact.problem_families import drawn
from featherweight.array_types import Array
from featherweight.contact import impulses
from featherweight.contact.impulses import LONG_PATH, of_arrays, solver_work
from featherweight.contact.laws import Problem
from featherweight.contact.rigid.newton import PATH_STEPS

TIGHT = 1e-10  # tolerance, relative to the greatest velocity
AGREE = 1e-6  # relative to the greatest velocity: energy to 1e-14 determines velocities to about its square root
SLIDING = 1e-4  # as above, with shifts: if friction is redundant too, Clarabel's energy is accurate to 1e-8
SEEDS = range(12)
FRICTION = pytest.mark.parametrize("pyramid", [False, True], ids=["cone", "pyramid"])


# ---- problems


def bodies(rng: np.random.Generator, n: int, contacts: int, masses: tuple[float, float] = (0.5, 5.0)) -> tuple[Array, Array]:
    """Return free bodies that touch the ground or each other at random points: J (3 contacts, 6n) and M⁻¹."""
    m = np.exp(rng.uniform(log(masses[0]), log(masses[1]), n))
    inverse = np.concatenate([np.r_[np.full(3, 1 / x), 1 / (x * rng.uniform(0.01, 0.04, 3))] for x in m])
    J = np.zeros((3 * contacts, 6 * n))
    for c in range(contacts):
        normal = rng.standard_normal(3) * 0.3 + [0, 0, 1]
        tangent = np.cross(normal, rng.standard_normal(3))
        R = np.array([x / np.linalg.norm(x) for x in (normal, tangent, np.cross(normal, tangent))])
        above, below = rng.choice(n + 1, 2, replace=False)
        for body, sign in ((above, 1.0), (below, -1.0)):
            if body < n:  # the ground is not a body
                x, y, z = rng.uniform(-0.3, 0.3, 3)
                across = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
                J[3 * c : 3 * c + 3, 6 * body : 6 * body + 6] = sign * R @ np.hstack([np.eye(3), across])
    return J, np.diag(inverse)


def impact(rng: np.random.Generator, mu: Any, pyramid: bool = False, n: int = 3, contacts: int = 6, **more: Any) -> Problem:
    """Return bodies that fall and slide at random velocities."""
    J, inverse = bodies(rng, n, contacts, **more)
    v = 0.3 * rng.standard_normal(6 * n) - np.tile([0, 0, 1, 0, 0, 0], n)
    return Problem(J @ inverse @ J.T, J @ v, np.broadcast_to(mu, contacts).copy(), pyramid=pyramid)


def box(mu: float, v: Any, copies: int = 1) -> Problem:
    """Return a box of 1 kg on its four corners, each repeated; the rank is 6."""
    J = []
    for x, y, z in [(i, j, -0.1) for i in (-0.2, 0.2) for j in (-0.15, 0.15)] * copies:
        across = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
        J.append(np.hstack([np.eye(3), across])[[2, 0, 1]])
    rows = np.concatenate(J)
    inverse = np.diag(1 / np.array([1, 1, 1, 0.01, 0.02, 0.02]))
    return Problem(rows @ inverse @ rows.T, rows @ np.asarray(v), np.full(len(J), mu))


def with_limits(rng: np.random.Generator, contacts: int = 4) -> Problem:
    """Return contacts, then limits of joints (impulses in one direction) and dry friction (bounded in both directions)."""
    n, rows = 3, 8
    J, inverse = bodies(rng, n, contacts)
    J = np.vstack([J, rng.standard_normal((rows, 6 * n))])
    most = rng.uniform(0.001, 0.1, rows)
    upper = np.where(np.arange(rows) % 2, most, np.inf)
    lower = np.where(np.arange(rows) % 2, -most, 0.0)
    return Problem(J @ inverse @ J.T, J @ rng.standard_normal(6 * n), np.full(contacts, 0.5), lower, upper)


# ---- checks


def unit(p: Problem) -> float:
    return float(np.abs(p.b).max())


def solved(p: Problem) -> tuple[Array, Array]:
    """Return impulses and velocities, after a check that the tolerance is met and that the solver reports this."""
    allowed = TIGHT * unit(p)
    solution = impulses.solve_problem(p, np.zeros(len(p.b)), allowed)
    rounding = 16.0 * np.finfo(float).eps * (np.abs(p.A) @ np.abs(solution.impulses)).max()
    left = impulses.natural_residual(p, solution.impulses)
    assert solution.residual == pytest.approx(left, rel=1e-3, abs=1e-3 * allowed + rounding)
    assert solution.residual <= max(allowed, min(rounding, 100.0 * allowed))  # mass ratios of 10⁶ round as much
    return solution.impulses, p.A @ solution.impulses + p.b


def convex_velocities(p: Problem, shift: Any = 0.0) -> Array:
    """Return the unique velocities of least energy by Clarabel; velocities and impulses are scaled for it."""
    k, m = len(p.mu), len(p.b)
    diagonal = np.diag(p.A).copy()
    diagonal[: 3 * k] = np.repeat(diagonal[: 3 * k].reshape(k, 3).max(axis=1), 3)
    D = 1 / np.sqrt(diagonal)
    positive: list[Array] = []  # rows g, h of g x + h >= 0
    cones: list[Array] = []
    e = np.eye(m + 1)[:, : m + 1]
    for i in range(k):
        normal, *tangents = e[3 * i : 3 * i + 3]
        if p.pyramid or p.mu[i] == 0.0:
            positive += [normal, *(p.mu[i] * normal + sign * t for t in tangents for sign in (1, -1))]
        else:
            cones += [p.mu[i] * normal, *tangents]
    for i, (low, high) in enumerate(zip(p.lower, p.upper, strict=True), start=3 * k):
        scale = D[i] * unit(p)
        positive += [e[i] - low / scale * e[m]] if np.isfinite(low) else []
        positive += [-e[i] + high / scale * e[m]] if np.isfinite(high) else []
    G = np.array(positive + cones)
    sets = [clarabel.NonnegativeConeT(len(positive))] * bool(positive) + [clarabel.SecondOrderConeT(3)] * (len(cones) // 3)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, 500
    settings.equilibrate_enable, settings.static_regularization_constant = False, 1e-12  # for accuracy
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-14
    P = sp.csc_matrix(np.triu(D[:, None] * p.A * D))
    solver = clarabel.DefaultSolver(P, D * (p.b + shift) / unit(p), sp.csc_matrix(-G[:, :m]), G[:, m], sets, settings)
    result = solver.solve()
    assert str(result.status) in ("Solved", "AlmostSolved")
    velocities: Array = p.A @ (D * unit(p) * np.array(result.x)) + p.b
    return velocities


def shifts(p: Problem, u: Array) -> Array:
    """Return the shifts mu |u_t| of normals; for a pyramid, mu (|u_t1| + |u_t2|)."""
    k = len(p.mu)
    s = np.zeros_like(u)
    s[: 3 * k : 3] = p.mu * np.linalg.norm(u[: 3 * k].reshape(k, 3)[:, 1:], ord=1 if p.pyramid else 2, axis=1)
    return s


def assert_coulomb(p: Problem, f: Array, u: Array) -> None:
    """Check Coulomb's law term by term, independently of the solver's residual."""
    k = len(p.mu)
    per_impulse = np.diag(p.A)[: 3 * k].reshape(k, 3).max(axis=1)  # velocity from a unit impulse
    small = 1e-7 * unit(p)
    exact = 10 * TIGHT * unit(p)
    F, U = per_impulse[:, None] * f[: 3 * k].reshape(k, 3), u[: 3 * k].reshape(k, 3)
    assert (F[:, 0] >= -exact).all() and (U[:, 0] >= -exact).all()
    assert (np.minimum(F[:, 0], U[:, 0]) <= exact).all()
    most = p.mu * F[:, 0]
    if p.pyramid:
        assert (np.abs(F[:, 1:]) <= most[:, None] + small).all()
        slides = np.abs(U[:, 1:]) > small
        np.testing.assert_allclose(F[:, 1:][slides], (-most[:, None] * np.sign(U[:, 1:]))[slides], rtol=0.0, atol=small)
    else:
        assert (np.hypot(F[:, 1], F[:, 2]) <= most + small).all()
        speed = np.hypot(U[:, 1], U[:, 2])
        slides = speed > 1e-4 * unit(p)  # below this, directions are rounding
        opposite = -most[slides, None] * U[slides, 1:] / speed[slides, None]
        np.testing.assert_allclose(F[slides, 1:], opposite, rtol=0.0, atol=1e-5 * unit(p))
    assert f @ u <= small * np.abs(f).sum()  # impulses do no work on the final velocities
    assert f @ p.b + 0.5 * f @ p.A @ f <= small * np.abs(f).sum()  # nor does the kinetic energy grow


# ---- problems for which Coulomb's law is convex


@pytest.mark.parametrize("seed", SEEDS)
def test_without_friction_velocities_are_those_of_least_energy(seed: int) -> None:
    p = impact(np.random.default_rng(seed), mu=0.0)
    f, u = solved(p)
    np.testing.assert_allclose(u, convex_velocities(p), rtol=0.0, atol=AGREE * unit(p))
    assert not f.reshape(-1, 3)[:, 1:].any()


@FRICTION
@pytest.mark.parametrize("seed", SEEDS)
def test_where_nothing_slides_velocities_are_those_of_least_energy(seed: int, pyramid: bool) -> None:
    """Check problems with impulses inside the cones, or zero with velocities inside the dual cones: the solution is known."""
    rng = np.random.default_rng(seed)
    p = impact(rng, 0.6, pyramid)
    k = len(p.mu)
    f, w = np.zeros((k, 3)), np.zeros((k, 3))
    sticks = rng.random(k) < 0.6
    f[:, 0], w[:, 0] = np.where(sticks, 1.0, 0.0), np.where(sticks, 0.0, 1.0)
    f[:, 1:], w[:, 1:] = (0.4 * rng.uniform(-1, 1, (k, 2)) * x[:, :1] for x in (f, w))
    p = p._replace(b=w.ravel() - p.A @ f.ravel())
    _, u = solved(p)
    np.testing.assert_allclose(u, w.ravel(), rtol=0.0, atol=1e-8 * unit(p))
    np.testing.assert_allclose(u, convex_velocities(p), rtol=0.0, atol=AGREE * unit(p))


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_with_bounds_are_a_quadratic_program(seed: int) -> None:
    p = with_limits(np.random.default_rng(seed), contacts=0)
    f, u = solved(p)
    assert ((f >= p.lower) & (f <= p.upper)).all()
    assert (f == p.lower).any() and ((f > p.lower) & (f < p.upper)).any()
    np.testing.assert_allclose(u, convex_velocities(p), rtol=0.0, atol=AGREE * unit(p))


# ---- sliding contacts


@FRICTION
@pytest.mark.parametrize("seed", SEEDS)
def test_contacts_obey_coulombs_law(seed: int, pyramid: bool) -> None:
    rng = np.random.default_rng(seed)
    p = impact(rng, rng.uniform(0.1, 1.0, 6), pyramid)
    assert_coulomb(p, *solved(p))


@FRICTION
@pytest.mark.parametrize("seed", SEEDS)
def test_velocities_are_those_of_least_energy_under_their_own_shift(seed: int, pyramid: bool) -> None:
    p = impact(np.random.default_rng(seed), 0.3, pyramid)
    _, u = solved(p)
    np.testing.assert_allclose(convex_velocities(p, shifts(p, u)), u, rtol=0.0, atol=SLIDING * unit(p))


@FRICTION
@pytest.mark.parametrize("seed", SEEDS)
def test_contacts_and_bounds_together(seed: int, pyramid: bool) -> None:
    p = with_limits(np.random.default_rng(seed))._replace(pyramid=pyramid)
    f, u = solved(p)
    assert_coulomb(p, f, u)
    np.testing.assert_allclose(convex_velocities(p, shifts(p, u)), u, rtol=0.0, atol=SLIDING * unit(p))


def test_a_sliding_block_does_not_take_off() -> None:
    """Check a block that the convex problem alone would lift at mu |u_t|."""
    mu, fall, speed = 0.5, 0.01, 1.0
    p = Problem(np.eye(3), np.array([-fall, speed, 0.0]), np.array([mu]))
    f, u = solved(p)
    np.testing.assert_allclose(f, [fall, -mu * fall, 0.0], rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(u, [0.0, speed - mu * fall, 0.0], rtol=0.0, atol=1e-10)
    assert convex_velocities(p)[0] > 0.3


# ---- compliance, and A by its factor


@FRICTION
@pytest.mark.parametrize("seed", SEEDS)
def test_a_compliance_is_part_of_the_velocities_with_the_matrix_and_with_its_factor(seed: int, pyramid: bool) -> None:
    """Check that u = A f + R f + b obeys the law.

    With R > 0 impulses are unique if nothing slides, and equal with matrix and factor.
    """
    rng = np.random.default_rng(seed)
    J = rng.standard_normal((21, 8))
    R = 10.0 ** rng.uniform(-3.0, 0.0, 21)
    p = Problem(J @ J.T + np.diag(R), J @ rng.standard_normal(8), np.full(6, 0.5), np.full(3, -0.1), np.full(3, 0.1), pyramid)
    f, u = solved(p)
    assert_coulomb(p, f, u)
    factored = with_factor_of(p, J, R)
    solution = impulses.solve_problem(factored, np.zeros(21), TIGHT * unit(p))
    assert solution.residual <= TIGHT * unit(p)
    g = solution.impulses
    assert impulses.natural_residual(p, g) <= 1.01 * TIGHT * unit(p)
    assert impulses.natural_residual(factored, g) == pytest.approx(impulses.natural_residual(p, g), abs=1e-13 * unit(p))
    assert_coulomb(p, g, J @ (J.T @ g) + R * g + p.b)


# ---- hard problems


@FRICTION
@pytest.mark.parametrize("copies", [1, 5])
@pytest.mark.parametrize(
    "v", [(0, 0, -1, 0, 0, 0), (1, 0.5, -1, 0, 0, 2), (0.1, 0, -0.1, 1, 3, 0)], ids=["rest", "slide", "tip"]
)
def test_redundant_contacts(v: tuple[float, ...], copies: int, pyramid: bool) -> None:
    p = box(0.4, v, copies)._replace(pyramid=pyramid)
    assert np.linalg.matrix_rank(p.A) == 6 < len(p.A)
    f, u = solved(p)
    assert_coulomb(p, f, u)
    np.testing.assert_allclose(convex_velocities(p, shifts(p, u)), u, rtol=0.0, atol=SLIDING * unit(p))


@FRICTION
@pytest.mark.parametrize("seed", SEEDS)
def test_mass_ratios_of_a_million(seed: int, pyramid: bool) -> None:
    p = impact(np.random.default_rng(seed), 0.5, pyramid, masses=(1e-3, 1e3))
    assert_coulomb(p, *solved(p))


def boxes(n: int, heavy: float) -> Problem:
    """Return boxes on one another's corners with a heavier box on top, nearly at rest after a step of free fall."""
    J = np.zeros((12 * n, 6 * n))
    for i in range(n):
        for c, (x, y) in enumerate((x, y) for x in (-0.2, 0.2) for y in (-0.15, 0.15)):
            for body, z, sign in ((i, -0.1, 1.0), (i - 1, 0.1, -1.0)):
                if body >= 0:
                    across = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
                    rows = np.hstack([np.eye(3), across])[[2, 0, 1]]
                    J[12 * i + 3 * c : 12 * i + 3 * c + 3, 6 * body : 6 * body + 6] = sign * rows
    mass = np.r_[np.ones(n - 1), heavy]
    inverse = np.concatenate([np.r_[np.ones(3), 100.0, 50.0, 50.0] / m for m in mass])
    v = 0.01 * np.random.default_rng(1).standard_normal(6 * n) + np.tile([0, 0, -0.02, 0, 0, 0], n)
    return Problem(J * inverse @ J.T, J @ v, np.full(4 * n, 0.5))


@FRICTION
@pytest.mark.parametrize(
    ("n", "heavy"),
    [(2, 1.0), (3, 1e3), (10, 1.0), (10, 1e3), (5, 1e6)],
)
def test_stacked_boxes(n: int, heavy: float, pyramid: bool) -> None:
    """Check boxes with mass ratios up to a million."""
    p = boxes(n, heavy)._replace(pyramid=pyramid)
    _, u = solved(p)
    np.testing.assert_allclose(convex_velocities(p, shifts(p, u)), u, rtol=0.0, atol=1e-4 * unit(p))


def test_where_it_fails_the_residual_is_that_of_the_impulses() -> None:
    p = boxes(5, 1e6)
    solution = impulses.solve_problem(p, np.zeros(len(p.b)), 1e-8 * unit(p))
    assert solution.residual == pytest.approx(impulses.natural_residual(p, solution.impulses), rel=1e-3)


def tower(heavy: float) -> Problem:
    """Return five blocks on one another with a heavier block on top, after a step of free fall; only normals have rows."""
    n = 5
    J = np.zeros((3 * n, 3 * n))
    for i in range(n):
        J[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = np.eye(3)
        if i:
            J[3 * i : 3 * i + 3, 3 * i - 3 : 3 * i] = -np.eye(3)
    inverse = 1 / np.repeat(np.r_[np.ones(n - 1), heavy], 3)
    return Problem(J * inverse @ J.T, J @ np.tile([-0.01, 0.001, 0.0], n), np.full(n, 0.5))


@FRICTION
@pytest.mark.parametrize("heavy", [1.0, 1e3, 1e6])
def test_a_heavy_block_on_a_tower(heavy: float, pyramid: bool) -> None:
    """Check that all blocks rest: u = 0, and contact i carries the weight above it."""
    p = tower(heavy)._replace(pyramid=pyramid)
    f, u = solved(p)
    np.testing.assert_allclose(u, 0.0, atol=1e-8 * unit(p))
    above = np.cumsum(np.r_[heavy, np.ones(4)])[::-1]
    np.testing.assert_allclose(f[::3], 0.01 * above, rtol=1e-4)


def test_a_contact_that_nothing_can_move_gets_no_impulse_that_is_not_a_number() -> None:
    p = box(0.4, (0, 0, -1, 0, 0, 0))
    A, b = np.zeros((15, 15)), np.zeros(15)
    A[:12, :12], b[:12] = p.A, p.b
    f, u = solved(Problem(A, b, np.full(5, 0.4)))
    assert np.isfinite(f).all()
    np.testing.assert_allclose(u, 0.0, atol=1e-9)


@FRICTION
def test_the_solution_is_a_fixed_point(pyramid: bool) -> None:
    p = impact(np.random.default_rng(0), 0.3, pyramid)
    f, _ = solved(p)
    again = impulses.solve_problem(p, f, 10 * TIGHT * unit(p))
    assert again.newton_steps == 0 and again.interior_steps == 0
    np.testing.assert_allclose(again.impulses, f, rtol=0.0, atol=1e-8 * np.abs(f).max())


def test_no_contacts_at_all() -> None:
    none = np.zeros(0)
    solution = impulses.solve_problem(Problem(np.zeros((0, 0)), none, none), none, 1e-9)
    assert len(solution.impulses) == 0 and solution.residual == 0.0


def test_the_residual_sees_what_is_wrong() -> None:
    """Check each kind of error, as a velocity."""
    p = Problem(np.eye(3), np.array([-1.0, 1.0, 0.0]), np.array([0.5]))
    right = np.array([1.0, -0.5, 0.0])
    assert impulses.natural_residual(p, right) < 1e-15
    for wrong in ([0.9, -0.45, 0.0], [1.1, -0.55, 0.0], [1.0, -0.4, 0.0], [1.0, -0.6, 0.0], [1.0, -0.4, 0.3], [-0.1, 0, 0]):
        assert impulses.natural_residual(p, np.array(wrong)) > 0.05


def arrays_in(record: Any) -> list[Array]:
    return [record] if isinstance(record, np.ndarray) else [x for field in record for x in arrays_in(field)]


def test_solutions_do_not_hang_on_what_was_in_their_room() -> None:
    """Check contacts and joint rows in a workspace that contained other numbers."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        k, n = rng.integers(0, 6), rng.integers(1, 6)
        m = int(3 * k + n)
        J = rng.standard_normal((m, m))
        given = Problem(J @ J.T, rng.standard_normal(m), np.full(k, 0.5), -np.ones(n), np.ones(n))
        found = []
        for filling in (0.0, 1.0, np.nan):
            work = solver_work(m + 10)
            for room in arrays_in(work):
                if room is not work.no_compliance and room.size:
                    room.fill(0 if room.dtype == np.int64 else filling)
            impulses.solve_in_workspace(of_arrays(given), np.zeros(m), 1e-10, work)
            found.append(work.best[:m].copy())
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])


# ---- starts


def far_start(p: Problem, seed: int) -> Array:
    """Return impulses of a tenth to a thousand times those of the problem, including pulling ones."""
    rng = np.random.default_rng(seed)
    size = float(np.abs(p.b).max() / p.A.diagonal().max() * 10.0 ** rng.uniform(-1.0, 3.0))
    return np.asarray(size * rng.standard_normal(len(p.b)))


@pytest.mark.parametrize("family", ["foot", "wedge", "heap", "chain with contacts", "random rank", "twins", "grasp", "patch"])
def test_a_bad_start_does_no_harm(family: str) -> None:
    for seed in range(8):
        p = of_arrays(drawn(family, seed))
        tolerance = 1e-8 * np.abs(p.b).max()
        assert impulses.solve_problem(p, far_start(p, seed), tolerance).residual <= tolerance


@pytest.mark.parametrize(("family", "seed"), [("heap", 41), ("chain with contacts", 55)])
def test_later_rounds_begin_from_another_place(family: str, seed: int) -> None:
    """Check a problem for which the first round, from the end of the path, leaves a tenth of the greatest velocity."""
    p = of_arrays(drawn(family, seed))
    tolerance = 1e-8 * np.abs(p.b).max()
    solution = impulses.solve_problem(p, far_start(p, seed), tolerance)
    assert solution.residual <= tolerance
    assert solution.newton_steps > 2 * PATH_STEPS + LONG_PATH  # the first path, the first round, and a further round
