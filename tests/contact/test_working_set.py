"""Tests of working sets of contacts: their rows, the contacts that join them, and that they solve the whole problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contact.given_matrices import dense_factor, matrix_of, random_factor, with_factor_of
from contact.problem_families import FAMILIES, WITHOUT_SOLUTION, drawn
from featherweight.array_types import Array
from featherweight.contact import impulses
from featherweight.contact.factors.row_factor import sizes_of
from featherweight.contact.impulses import (
    FEWEST,
    TURNS,
    Solution,
    natural_residual,
    of_arrays,
    solve_in,
    solve_problem,
    solver_work,
)
from featherweight.contact.laws import Problem
from featherweight.contact.rigid.newton import write_rho
from featherweight.contact.working_set import (
    WorkingSet,
    begin_set,
    extend_set,
    give_back,
    list_chosen,
    problem_of_set,
    take_from,
    working_set,
)

FACTORED = pytest.mark.parametrize("factored", [False, True], ids=["matrix", "factor"])


def with_factor(p: Problem, compliance: float = 0.0) -> Problem:
    """Return the problem with A = J Jᵀ + R given by J, whose number of columns is the rank of A."""
    squares, V = np.linalg.eigh(p.A)
    kept = squares > 1e-13 * squares.max(initial=0.0)
    return with_factor_of(p, V[:, kept] * np.sqrt(squares[kept]), compliance)


def random_problem(rng: np.random.Generator, k: int, n: int, factored: bool) -> Problem:
    """Return random numbers as a problem; with a compliance if A is given by its factor."""
    J, m = rng.standard_normal((3 * k + n, 7)), 3 * k + n
    p = Problem(J @ J.T, rng.standard_normal(m), rng.random(k), -rng.random(n), rng.random(n), pair=np.arange(k))
    return with_factor_of(p, J, rng.random(m)) if factored else p


def chosen_set(k: int, n: int, chosen: list[int]) -> WorkingSet:
    """Return a set in a workspace that was filled with NaN."""
    work = working_set(3 * k + n)
    for room in (work.rho, work.f, work.b, work.mu, work.R, work.A):
        room.fill(np.nan)
    work.is_chosen[:] = np.isin(np.arange(len(work.is_chosen)), chosen)
    assert list_chosen(k, work) == len(chosen)
    return work


SETS = pytest.mark.parametrize(("k", "n", "chosen"), [(6, 3, [1, 2, 5]), (5, 0, [0, 4]), (5, 2, []), (3, 4, [0, 1, 2])])

# ---- rows of sets


@FACTORED
@SETS
def test_the_problem_of_a_set_has_its_rows_and_all_rows_with_bounds(k: int, n: int, chosen: list[int], factored: bool) -> None:
    p = random_problem(np.random.default_rng(k), k, n, factored)
    work = chosen_set(k, n, chosen)
    part, rows = problem_of_set(p, len(chosen), work), rows_of(k, n, chosen)
    assert part.factored == factored and len(part.pair) == 0
    np.testing.assert_allclose(matrix_of(part), matrix_of(p)[np.ix_(rows, rows)], rtol=0.0, atol=1e-13)
    np.testing.assert_array_equal(part.b, p.b[rows])
    np.testing.assert_array_equal(part.mu, p.mu[chosen])
    assert part.lower is p.lower and part.upper is p.upper


def rows_of(k: int, n: int, chosen: list[int]) -> list[int]:
    return [*(3 * c + i for c in chosen for i in range(3)), *range(3 * k, 3 * k + n)]


@SETS
def test_impulses_are_taken_and_given_back(k: int, n: int, chosen: list[int]) -> None:
    """Check that impulses of contacts outside the set are zero afterwards."""
    work, whole, rows = chosen_set(k, n, chosen), np.random.default_rng(k).random(3 * k + n), rows_of(k, n, chosen)
    given = whole.copy()
    take_from(whole, k, len(chosen), len(rows), work, work.f)
    np.testing.assert_array_equal(work.f[: len(rows)], given[rows])
    assert np.isnan(work.f[len(rows) :]).all()
    give_back(k, len(chosen), work, whole)
    np.testing.assert_array_equal(whole, np.where(np.isin(np.arange(3 * k + n), rows), given, 0.0))


# ---- joining contacts


def closing(speeds: list[float], pair: list[int], mu: Any = 0.5) -> Problem:
    """Return uncoupled contacts that close at these speeds; the only row with bounds has no effect."""
    k = len(speeds)
    b = np.r_[np.column_stack([-np.array(speeds), np.full((k, 2), 9.0)]).ravel(), 1.0]
    return Problem(np.eye(3 * k + 1), b, np.full(k, mu), np.zeros(1), np.ones(1), pair=np.array(pair))


def test_a_set_begins_with_impulses_and_the_fastest_of_each_pair() -> None:
    """Check that contacts that close by less than the tolerance do not join; impulses of others count."""
    p = closing([1.0, 2.0, 3.0, 0.5, 1e-9, -1.0, 2.5], [3, 3, 0, 0, 1, 5, 0])
    work, f = working_set(22), np.zeros(22)
    assert begin_set(p, f, 1e-6, p.b, work) == 2
    assert work.chosen[:2].tolist() == [1, 2]
    f[[9, 18]] = 0.7, 2.6
    assert begin_set(p, f, 1e-6, p.A @ f + p.b, work) == 4
    assert work.chosen[:4].tolist() == [1, 2, 3, 6]
    p.A[6, 9] = 10.0  # the impulse of the fourth contact opens the third
    assert begin_set(p, f, 1e-6, p.A @ f + p.b, work) == 3
    assert work.chosen[:3].tolist() == [1, 3, 6]


def test_one_contact_of_each_pair_joins_in_turn() -> None:
    p = closing([1.0, 2.0, 3.0, 0.5], [0, 0, 0, 2])
    work, joined = working_set(13), list[list[int]]()
    assert begin_set(p, np.zeros(13), 1e-6, p.b, work) == 2
    for _ in range(3):
        extend_set(p, 1e-6, p.b, work)
        joined.append(work.chosen[: list_chosen(4, work)].tolist())
    assert joined == [[1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]


@pytest.mark.parametrize("pyramid", [False, True], ids=["cone", "pyramid"])
@pytest.mark.parametrize("mu", [0.0, 0.5, 4.0])
def test_contacts_join_whose_residual_is_more_than_the_tolerance(mu: float, pyramid: bool) -> None:
    """Check residuals that are greater than the normal velocity, because of friction."""
    p, f = closing([0.3], [0], mu)._replace(pyramid=pyramid, lower=np.zeros(1)), np.zeros(4)
    residual = natural_residual(p, f)
    assert 0.3 <= residual <= 0.3 * max(1.0, mu)
    assert begin_set(p, f, 0.99 * residual, p.b, working_set(4)) == 1
    assert begin_set(p, f, 1.01 * 0.3 * max(1.0, mu), p.b, working_set(4)) == 0


# ---- solutions


def solved(p: Problem, tolerance: float) -> tuple[Solution, Array]:
    """Return the solution from zero, and whether contacts are in the set of the last iteration."""
    work = solver_work(len(p.b), sizes_of(p.B))
    solution = solve_in(of_arrays(p), np.zeros(len(p.b)), tolerance, work)
    return solution, work.few.is_chosen[: len(p.mu)]


def assert_solves(p: Problem, solution: Solution, tolerance: float) -> None:
    """Check that the residual of the whole problem is the reported one, to rounding, and at most the tolerance."""
    assert solution.residual <= tolerance
    rounding = 1e-15 * float((np.abs(matrix_of(p)) @ np.abs(solution.impulses)).max(initial=0.0) * len(p.b))
    assert natural_residual(p, solution.impulses) <= solution.residual + rounding


@FACTORED
@pytest.mark.parametrize("name", sorted(set(FAMILIES) - WITHOUT_SOLUTION))
def test_solutions_by_working_sets_solve_the_whole_problem(name: str, factored: bool) -> None:
    """Check random pairs."""
    for seed in range(12):
        p, rng = drawn(name, 101 + seed), np.random.default_rng(seed)
        k, tolerance = len(p.mu), 1e-8 * float(np.abs(p.b).max())
        p = (with_factor(p) if factored else p)._replace(pair=rng.integers(0, rng.integers(1, max(k, 1) + 1), k))
        assert_solves(p, solve_problem(p, np.zeros(len(p.b)), tolerance), tolerance)


@pytest.mark.parametrize("seed", range(8))
def test_factors_in_groups_have_their_sets_too(seed: int) -> None:
    """Check pairs that are groups of contacts; normals are independent, so that a solution exists."""
    rng, groups = np.random.default_rng(seed), [[0, 1], [2], [1, 3, 0], [3], [2, 1]]
    k, n = 15, 4
    B = random_factor(rng, [9, 8, 14, 11], groups, k, n)
    b, most = dense_factor(B, k) @ rng.standard_normal(42), rng.random(n)
    p = Problem(np.zeros((0, 0)), b, np.full(k, 0.4), -most, most, B=B, R=1e-3 * rng.random(len(b)), pair=B.group[:k].copy())
    tolerance = 1e-8 * float(np.abs(b).max())
    assert_solves(p, solve_problem(p, np.zeros(len(b)), tolerance), tolerance)


@FACTORED
@pytest.mark.parametrize("seed", range(4))
def test_contacts_outside_of_the_set_have_no_impulse(seed: int, factored: bool) -> None:
    """Check a body at rest on a grid, which needs few of its contacts."""
    p = FAMILIES["foot"][0](seed, 40, 0.3, "rest", "grid")
    p = (with_factor(p) if factored else p)._replace(pair=np.zeros(40, np.int64))
    tolerance = 1e-8 * float(np.abs(p.b).max())
    solution, inside = solved(p, tolerance)
    assert_solves(p, solution, tolerance)
    f = solution.impulses[:120].reshape(40, 3)
    assert 3 <= inside.sum() < 20 and (f[inside, 0] > 0.0).any()
    np.testing.assert_array_equal(f[~inside], 0.0)


class Recorder:
    """Replacement of `solve_alone` that records the number of contacts, their rho, and the result of each call."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: bool = False) -> None:
        self.sizes, self.starts, self.solutions, self.fails, self.alone = (
            list[int](),
            list[int](),
            list[Solution](),
            fails,
            impulses.solve_alone,
        )
        monkeypatch.setattr(impulses, "solve_alone", self)

    def __call__(self, problem: Problem, f: Array, tolerance: float, starts: int, work: Any) -> Solution:
        rho = np.empty(len(f))
        write_rho(problem, rho)
        np.testing.assert_array_equal(work.newton.rho[: len(f)], rho)
        solution = self.alone(problem, f, tolerance, starts, work)
        if self.fails and starts == 1:
            f[:] = 3.0
            solution = solution._replace(residual=np.inf)
        self.sizes.append(len(problem.mu))
        self.starts.append(starts)
        self.solutions.append(solution)
        return solution


def foot_of(contacts: int, paired: bool = True) -> tuple[Problem, float]:
    p = FAMILIES["foot"][0](1, contacts, 0.3, "rest", "grid")
    return p._replace(pair=np.zeros(contacts * paired, np.int64)), 1e-8 * float(np.abs(p.b).max())


def test_a_set_that_is_not_solved_gives_way_to_all_contacts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the result of the set is only a start."""
    called, (p, tolerance) = Recorder(monkeypatch, fails=True), foot_of(12)
    solution, _ = solved(p, tolerance)
    assert called.sizes == [1, 12] and called.starts[0] == 1 < called.starts[1]
    assert_solves(p, solution, tolerance)


def test_sets_grow_until_nothing_else_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that steps of all iterations count."""
    called, (p, tolerance) = Recorder(monkeypatch), foot_of(30)
    solution, _ = solved(p, tolerance)
    assert called.sizes == list(range(1, len(called.sizes) + 1)) and 2 < len(called.sizes) < TURNS
    assert solution.newton_steps == sum(s.newton_steps for s in called.solutions)
    assert solution.interior_steps == sum(s.interior_steps for s in called.solutions)


def test_turns_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check uncoupled contacts that all need an impulse, one of which joins in each iteration: the last iteration has all."""
    called, p = Recorder(monkeypatch), closing([1.0] * 40, [0] * 40, 0.0)
    solution, _ = solved(p, 1e-9)
    assert called.sizes == [*range(1, TURNS), 40]
    assert_solves(p, solution, 1e-9)


@pytest.mark.parametrize(("contacts", "paired"), [(FEWEST, True), (12, False), (0, True)])
def test_few_contacts_or_those_of_unknown_bodies_are_solved_at_once(
    contacts: int, paired: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    called, (p, tolerance) = Recorder(monkeypatch), foot_of(contacts, paired) if contacts else (closing([], []), 1e-9)
    solution, _ = solved(p, tolerance)
    assert called.sizes == [contacts] and called.starts[0] > 1
    assert_solves(p, solution, tolerance)
