"""Tests that the solver solves all problems of the families that have a solution, by the definition of Coulomb's law."""

from __future__ import annotations

from collections.abc import Iterator

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from contact.problem_families import FAMILIES, FEW, NEEDED, RATIOS, WITHOUT_SOLUTION, drawn, generate, grasp, squeezed
from featherweight.array_types import Array
from featherweight.contact.impulses import Solution, natural_residual, solve_problem
from featherweight.contact.laws import Problem

TOLERANCE = 1e-8  # relative to the greatest velocity, as in a simulation
AGREE = 1e-6  # relative to the greatest velocity: Clarabel's energy determines velocities to about the square root of 1e-14
SOLVABLE = [name for name in FAMILIES if name not in WITHOUT_SOLUTION]
DRAWS = 6  # problems of each family


def solved(p: Problem, start: Array | None = None) -> Solution:
    """Return the solution from a start, or from zero, after a check of the tolerance."""
    solution = solve_problem(p, np.zeros(len(p.b)) if start is None else start, TOLERANCE * unit(p))
    assert np.isfinite(solution.impulses).all()
    assert natural_residual(p, solution.impulses) <= TOLERANCE * unit(p)
    return solution


def unit(p: Problem) -> float:
    return float(np.abs(p.b).max())


# ---- the definition of Coulomb's law


def broken(p: Problem, f: Array) -> Iterator[tuple[str, float]]:
    """Yield the violation of each part of the law, as velocities [m/s].

    Impulses are converted to velocities by the greatest diagonal entry of A for a contact, as in the natural residual. If that
    is r, the power of friction differs from the greatest possible, mu f_n |u_t|, by at most 2 mu f_n r + |u_t| r.
    """
    k, u = len(p.mu), p.A @ f + p.b
    per_impulse = np.maximum(np.diag(p.A)[: 3 * k].reshape(k, 3).max(axis=1), 1e-300)
    F, U = per_impulse[:, None] * f[: 3 * k].reshape(k, 3), u[: 3 * k].reshape(k, 3)
    most = p.mu * F[:, 0]
    yield "bodies are pushed, not pulled", greatest(-F[:, 0])
    yield "bodies do not approach each other", greatest(-U[:, 0])
    yield "there is an impulse only where nothing parts", greatest(np.minimum(F[:, 0], U[:, 0]))
    if p.pyramid:
        friction, sliding, power = np.abs(F[:, 1:]), np.abs(U[:, 1:]), F[:, 1:] * U[:, 1:]
        most = most[:, None]
    else:
        friction, sliding = np.hypot(F[:, 1], F[:, 2]), np.hypot(U[:, 1], U[:, 2])
        power = (F[:, 1:] * U[:, 1:]).sum(axis=1)
    yield "friction is in the cone", greatest(friction - most)
    yield "friction opposes sliding", greatest((power + most * sliding) / np.maximum(2.0 * most + sliding, 1e-300))
    low, high, at = f[3 * k :] - p.lower, p.upper - f[3 * k :], np.diag(p.A)[3 * k :]
    yield "rows are within their bounds", greatest(-at * np.minimum(low, high))
    yield "a row moves up only at its lower bound", greatest(np.minimum(u[3 * k :], at * low))
    yield "a row moves down only at its upper bound", greatest(np.minimum(-u[3 * k :], at * high))


def greatest(x: Array) -> float:
    return float(x.max(initial=0.0))


def assert_law(p: Problem, f: Array) -> None:
    for part, left in broken(p, f):
        assert left <= 3.0 * TOLERANCE * unit(p), part


@pytest.mark.parametrize("seed", range(DRAWS))
@pytest.mark.parametrize("name", SOLVABLE)
def test_a_problem_with_a_solution_is_solved_by_coulombs_law(name: str, seed: int) -> None:
    p = drawn(name, seed)
    assert_law(p, solved(p).impulses)


@pytest.mark.parametrize("seed", range(DRAWS))
@pytest.mark.parametrize("name", FAMILIES)
def test_the_residual_is_that_of_the_impulses(name: str, seed: int) -> None:
    p = drawn(name, seed)
    solution = solve_problem(p, np.zeros(len(p.b)), TOLERANCE * unit(p))
    rounding = 16.0 * np.finfo(float).eps * (np.abs(p.A) @ np.abs(solution.impulses)).max()
    small = 1e-3 * TOLERANCE * unit(p) + rounding
    assert solution.residual == pytest.approx(natural_residual(p, solution.impulses), rel=1e-3, abs=small)


@pytest.mark.parametrize("name", [name for name in SOLVABLE if name != "still"])
def test_a_problem_is_solved_from_any_start(name: str) -> None:
    """Check starts with the magnitude of the solution, which may be outside the cones."""
    p = drawn(name, 0)
    size = unit(p) / max(np.diag(p.A).max(), 1e-300)
    solved(p, 10.0 * size * np.random.default_rng(0).standard_normal(len(p.b)))


def test_the_law_is_seen_to_be_broken() -> None:
    """Check a block that slides on the ground: an impulse that is wrong by a tenth violates each part of the law."""
    p = Problem(np.eye(3), np.array([-1.0, 2.0, 0.0]), np.array([0.5]))
    assert_law(p, np.array([1.0, -0.5, 0.0]))
    for wrong in ([0.9, -0.45, 0.0], [1.1, -0.55, 0.0], [1.0, -0.6, 0.0], [1.0, -0.4, 0.0], [1.0, 0.5, 0.0], [1.0, -0.4, 0.3]):
        with pytest.raises(AssertionError):
            assert_law(p, np.array(wrong))
    rows = Problem(np.eye(2), np.array([-1.0, 3.0]), np.zeros(0), np.array([0.0, -2.0]), np.array([np.inf, 2.0]))
    assert_law(rows, np.array([1.0, -2.0]))
    for wrong in ([0.9, -2.0], [1.1, -2.0], [1.0, -1.9], [1.0, -2.1]):
        with pytest.raises(AssertionError):
            assert_law(rows, np.array(wrong))


# ---- known velocities


def least_energy_velocities(p: Problem) -> Array:
    """Return velocities of least energy by Clarabel: those of Coulomb's law without friction, or if all contacts stick."""
    k, m = len(p.mu), len(p.b)
    scale = 1.0 / np.sqrt(np.r_[np.repeat(np.diag(p.A)[: 3 * k].reshape(k, 3).max(axis=1), 3), np.diag(p.A)[3 * k :]])
    e = np.eye(m)
    normals, tangents = e[: 3 * k : 3], np.delete(e[: 3 * k], np.s_[::3], axis=0)
    lower, upper = p.lower / (scale[3 * k :] * unit(p)), p.upper / (scale[3 * k :] * unit(p))
    rows = e[3 * k :]
    low, high = np.isfinite(lower), np.isfinite(upper)
    G = [normals, rows[low], -rows[high]]
    h = np.r_[np.zeros(k), -lower[low], upper[high]]
    sets = [clarabel.NonnegativeConeT(len(h))]
    if p.mu.any():
        assert not p.pyramid
        coefficients = np.repeat(p.mu, 3)[:, None]
        coefficients = np.where(np.arange(3 * k)[:, None] % 3 == 0, coefficients, 1.0)
        G, h = [*G, coefficients * e[: 3 * k]], np.r_[h, np.zeros(3 * k)]
        sets += [clarabel.SecondOrderConeT(3)] * k
    else:
        G, h = [tangents, *G], np.r_[np.zeros(2 * k), h]
        sets = [clarabel.ZeroConeT(2 * k), *sets] if k else sets
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, 500
    settings.equilibrate_enable, settings.static_regularization_constant = False, 1e-12  # for accuracy
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-14
    P = sp.csc_matrix(np.triu(scale[:, None] * p.A * scale))
    solver = clarabel.DefaultSolver(P, scale * p.b / unit(p), sp.csc_matrix(-np.concatenate(G)), h, sets, settings)
    result = solver.solve()
    assert str(result.status) in ("Solved", "AlmostSolved")
    velocities: Array = p.A @ (scale * unit(p) * np.array(result.x)) + p.b
    return velocities


WITHOUT_FRICTION = ["foot", "wedge", "twins", "heap", "chain with contacts", "chain with limits", "dry friction", "random rank"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", WITHOUT_FRICTION)
def test_without_friction_velocities_are_those_of_least_energy(name: str, seed: int) -> None:
    p = drawn(name, seed)
    p = p._replace(mu=np.zeros(len(p.mu)))
    u = p.A @ solved(p).impulses + p.b
    np.testing.assert_allclose(u, least_energy_velocities(p), rtol=0.0, atol=AGREE * unit(p))


@pytest.mark.parametrize("needed", NEEDED)
@pytest.mark.parametrize("contacts", FEW)
@pytest.mark.parametrize("fingers", [2, 3, 4, 5])
def test_a_block_in_a_grasp_that_can_hold_it_rests(fingers: int, contacts: int, needed: float) -> None:
    p = grasp(0, fingers, contacts, 0.5, needed)
    u = p.A @ solved(p).impulses + p.b
    np.testing.assert_allclose(u, 0.0, atol=10.0 * TOLERANCE * unit(p))
    np.testing.assert_allclose(least_energy_velocities(p), 0.0, atol=AGREE * unit(p))


def test_a_block_in_a_grasp_that_cannot_hold_it_falls() -> None:
    p = grasp(0, 3, 4, 0.5, 1.2)
    u = p.A @ solved(p).impulses + p.b
    assert np.abs(u).max() > 1e-3 * unit(p)


# ---- problems without a solution


@pytest.mark.parametrize("pyramid", [False, True], ids=["cone", "pyramid"])
@pytest.mark.parametrize("mu", [0.0, 0.5, 10.0])
@pytest.mark.parametrize("contacts", FEW)
def test_without_a_solution_the_solver_ends_and_says_what_is_left(contacts: int, mu: float, pyramid: bool) -> None:
    p = squeezed(0, contacts, mu)._replace(pyramid=pyramid)
    solution = solve_problem(p, np.zeros(len(p.b)), TOLERANCE * unit(p))
    assert np.isfinite(solution.impulses).all()
    assert solution.residual == pytest.approx(natural_residual(p, solution.impulses), rel=1e-3)
    assert solution.residual > 0.1 * unit(p)


# ---- the families


def test_families_are_what_seeds_make_of_them() -> None:
    first, second = (list(generate(2 * len(FAMILIES), seed=5)) for _ in range(2))
    assert {name for name, _ in first} == {*FAMILIES}
    for (name, p), (other, same) in zip(first, second, strict=True):
        assert name == other
        np.testing.assert_array_equal(p.A, same.A)
        assert not np.array_equal(p.b, drawn(name, 1234).b) or name == "still"


@pytest.mark.parametrize("name", FAMILIES)
def test_matrices_are_symmetric_and_positive_semidefinite(name: str) -> None:
    for seed in range(4):
        p = drawn(name, seed)
        assert len(p.b) == len(p.A) == 3 * len(p.mu) + len(p.lower)
        assert np.isfinite(p.A).all() and np.isfinite(p.b).all()
        np.testing.assert_array_equal(p.A, p.A.T)
        assert np.linalg.eigvalsh(p.A).min() >= -1e-12 * np.abs(p.A).max()


def test_redundant_contacts_have_the_rank_of_their_bodies() -> None:
    for name, most in {"foot": 6, "patch": 6, "wedge": 6, "twins": 6, "pinch": 18}.items():
        assert np.linalg.matrix_rank(drawn(name, 3).A, hermitian=True) <= most
    assert RATIOS[-1] == 1e6
