"""Tests of elimination by branches, against numpy.linalg.solve of whole matrices."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from contact.given_matrices import branches_from, unknowns_of
from featherweight.array_types import Array
from featherweight.contact.factors.branch_elimination import (
    EliminationPlan,
    clear_couplings,
    clear_matrix,
    couple,
    factor_branches,
    multiplications,
    numbers_of,
    place_of_branch,
    plan_work,
    planned,
    solve_by_branches,
)
from featherweight.contact.factors.branches import padded
from featherweight.engine.loops.kernels import CompiledKernel, compiled

Pairs = Iterable[tuple[int, int]]
factor, solve = compiled(factor_branches), compiled(solve_by_branches)
GRAPHS: dict[str, tuple[list[int], list[tuple[int, int]]]] = {
    "none": ([], []),
    **{f"one of {n}": ([n], []) for n in (1, 2, 7, 8, 9, 16, 17, 35, 100)},
    "apart": ([3, 9, 6], []),
    "chain": ([6] * 7, list(pairwise(range(7)))),
    "ring": ([6, 1, 8, 3, 6, 9], [*pairwise(range(6)), (5, 0)]),
    "star": ([6, 3, 3, 7, 12, 1], [(0, i) for i in range(1, 6)]),
    "clique": ([6, 6, 9, 1, 6], list(combinations(range(5), 2))),
    "grid": ([6] * 12, [*((i, i + 1) for i in range(11) if i % 4 < 3), *((i, i + 4) for i in range(8))]),
}


def graph(name: str, seed: int = 0) -> tuple[list[int], list[tuple[int, int]]]:
    """Return sizes of branches and coupled pairs, by name or at random."""
    if name in GRAPHS:
        return GRAPHS[name]
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 13))
    return rng.integers(1, 21, n).tolist(), [x for x in combinations(range(n), 2) if rng.random() < 2.0 / n]


START = 5  # numbers before those of the matrix


def plan_of(sizes: list[int], pairs: Pairs) -> EliminationPlan:
    """Return a plan in workspace for more branches, which contained something else."""
    n, work = len(sizes), plan_work(len(sizes) + 2)
    for room in work:
        room.fill(1)
    work.size[:n], work.first[:n] = sizes, np.cumsum([0, *sizes])[:-1]
    clear_couplings(n, work)
    for a, b in pairs:
        couple(n, a, b, work)
    return planned(n, START, work)


def random_matrix(rng: np.random.Generator, plan: EliminationPlan, pairs: Pairs, symmetric: bool) -> Array:
    """Return entries of coupled branches; a symmetric matrix is positive definite, with scales of 10⁶ from row to row."""
    n = int(plan.size[: plan.branches].sum())
    M = np.zeros((n, n))
    for a, b in [*pairs, *((i, i) for i in range(plan.branches))]:
        x, y = unknowns_of(plan, a), unknowns_of(plan, b)
        M[x, y], M[y, x] = rng.standard_normal(M[x, y].shape), rng.standard_normal(M[y, x].shape)
    if symmetric:
        M += M.T
        M += np.diag(0.1 + np.abs(M).sum(axis=1))
        scale = 10.0 ** rng.uniform(-3.0, 3.0, n)
        M = scale[:, None] * M * scale
    return M


def stored(M: Array, plan: EliminationPlan, symmetric: bool) -> Array:
    """Return the matrix as elimination stores it; entries of a symmetric matrix that are not read are NaN."""
    numbers = np.full(plan.end + plan.numbers + 3, np.nan)
    clear_matrix(numbers, plan, symmetric)
    for a in range(plan.branches):
        for b in range(plan.branches):
            if plan.position[b] < plan.position[a] or (a != b and not M[unknowns_of(plan, a), unknowns_of(plan, b)].any()):
                continue
            upper, lower = M[unknowns_of(plan, a), unknowns_of(plan, b)], M[unknowns_of(plan, b), unknowns_of(plan, a)].T
            for i, row in enumerate(upper):
                at = plan.offset[a] + i * plan.stride[a] + place_of_branch(plan, a, b)
                numbers[at : at + len(row)] = row
                if symmetric and a == b:
                    numbers[at : at + i] = 0.0  # below the diagonal
                if not symmetric and a != b:
                    numbers[plan.numbers + at : plan.numbers + at + len(row)] = lower[i]
    return numbers


def solved(M: Array, plan: EliminationPlan, symmetric: bool, rights: Array, kernels: Any = (factor, solve)) -> Array:
    n, (eliminate, substitute) = len(M), kernels
    numbers, pivots, reciprocal = stored(M, plan, symmetric), np.full(n, -1), np.full(n, np.nan)
    eliminate(numbers, plan, symmetric, pivots, reciprocal)
    assert np.isnan(numbers[:START]).all() and np.isnan(numbers[plan.end + plan.numbers :]).all()
    x, room = np.array(rights), np.full(sum(padded(int(s)) for s in plan.size[: plan.branches]), np.nan)
    for row in x:
        substitute(numbers, plan, pivots, reciprocal, row, room)
    return x


CASES = pytest.mark.parametrize(("name", "seed"), [*((name, 0) for name in GRAPHS), *(("random", s) for s in range(20))])


@CASES
@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "not symmetric"])
def test_solutions_are_those_of_the_whole_matrix(name: str, seed: int, symmetric: bool) -> None:
    """Check that factors solve several right sides. Errors are relative to the units of each row."""
    sizes, pairs = graph(name, seed)
    rng, plan = np.random.default_rng(seed), plan_of(sizes, pairs)
    M = random_matrix(rng, plan, pairs, symmetric)
    if not symmetric:
        M += 2.0 * np.diag(np.sqrt(len(M)) * rng.choice([-1.0, 1.0], len(M)))  # leading blocks are regular
    unit = np.sqrt(np.abs(np.diag(M)))
    expected = rng.standard_normal((3, len(M)))
    x = solved(M, plan, symmetric, expected / unit @ M.T)
    scaled = M / unit[:, None] / unit
    np.testing.assert_allclose(x * unit, expected, rtol=0.0, atol=1e-13 * max(10.0, np.linalg.cond(scaled) if len(M) else 0.0))
    if len(M):
        np.testing.assert_allclose(x * unit, np.linalg.solve(scaled, (expected @ scaled.T).T).T, rtol=0.0, atol=1e-9)


@CASES
def test_plans_name_each_branch_once_and_those_that_it_is_coupled_with(name: str, seed: int) -> None:
    """Check that branches are in order, at places that do not overlap, and that elimination of a branch couples its
    neighbours.
    """
    sizes, pairs = graph(name, seed)
    plan, coupled = plan_of(sizes, pairs), {frozenset(x) for x in pairs}
    order, end = plan.order[: plan.branches].tolist(), START
    assert sorted(order) == list(range(len(sizes))) and plan.position[order].tolist() == list(range(len(sizes)))
    for turn, a in enumerate(order):
        later = plan.later[plan.begin[turn] : plan.begin[turn + 1]].tolist()
        assert later == [b for b in order[turn + 1 :] if frozenset((a, b)) in coupled]
        coupled |= {frozenset(x) for x in combinations(later, 2)}
        columns = np.cumsum([0, *(padded(sizes[b]) for b in (a, *later))]).tolist()
        assert [place_of_branch(plan, a, b) for b in (a, *later)] == columns[:-1]
        assert (plan.stride[a], plan.offset[a]) == (columns[-1], end)
        end += sizes[a] * columns[-1]
    assert plan.end == end and plan.numbers == end - START and 2 * plan.numbers <= numbers_of(np.array(sizes, int))
    assert multiplications(plan) == sum(sizes[a] * int(plan.stride[a]) ** 2 for a in order)


def test_the_branch_with_the_fewest_unknowns_beside_it_comes_first() -> None:
    """Check that unknowns count, not branches: two small neighbours come before one large neighbour."""
    plan = plan_of([6, 1, 1, 9, 2], [(0, 1), (0, 2), (1, 2), (0, 3), (3, 4)])
    assert set(plan.order[:2]) == {1, 2}
    star = plan_of([1, 6, 6, 6, 6], [(0, i) for i in range(1, 5)])
    assert set(star.order[:3]) < {1, 2, 3, 4}


@pytest.mark.parametrize("seed", range(8))
def test_nothing_fills_in_on_trees(seed: int) -> None:
    """Check branches of a robot, coupled along the paths of bodies: leaves come before their trunk."""
    rng, n = np.random.default_rng(seed), 40
    parent = [-1, *(max(int(i - rng.choice([1, 2, 7], p=[0.7, 0.2, 0.1])), -1) for i in range(1, n))]
    branches = branches_from(parent)
    paths = [branches.path[i:j].tolist() for i, j in zip(branches.begin[:-1], branches.begin[1:], strict=True)]
    plan = plan_of(np.diff(branches.first).tolist(), {pair for path in paths for pair in combinations(path, 2)})
    assert plan.numbers == sum(np.diff(branches.first) * branches.width) and len(paths) > 5
    for b, path in enumerate(paths):
        turn = plan.position[b]
        assert plan.later[plan.begin[turn] : plan.begin[turn + 1]].tolist() == path[-2::-1]


@pytest.mark.parametrize("name", ["one of 2", "one of 9", "one of 35", "chain", "star", "clique"])
def test_pivots_are_taken_where_they_must_be(name: str) -> None:
    """Check branches with zeros or tiny numbers on their diagonals."""
    sizes, pairs = GRAPHS[name]
    rng, plan = np.random.default_rng(1), plan_of([max(n, 2) for n in sizes], pairs)
    M = random_matrix(rng, plan, pairs, symmetric=False)
    for a in range(plan.branches):
        x = unknowns_of(plan, a)
        own = np.roll(np.diag(10.0 + rng.random(plan.size[a])), 1, axis=0) + 0.1 * M[x, x]
        own[np.diag_indices(len(own))] = rng.choice([0.0, 1e-20], len(own))
        M[x, x] = own * 3.0 * len(M)
    expected = rng.standard_normal((2, len(M)))
    np.testing.assert_allclose(solved(M, plan, False, expected @ M.T), expected, rtol=0.0, atol=1e-11)


def test_zeros_that_fill_vectors_stay_zero() -> None:
    """Check that numbers beyond a branch do not enter the next one when whole vectors are added."""
    sizes, pairs = GRAPHS["grid"]
    plan = plan_of(sizes, pairs)
    M = random_matrix(np.random.default_rng(0), plan, pairs, symmetric=True)
    numbers, n = stored(M, plan, True), len(M)
    factor(numbers, plan, True, np.empty(n, np.int64), np.empty(n))
    for a in range(plan.branches):
        rows = numbers[plan.offset[a] :][: plan.size[a] * plan.stride[a]].reshape(plan.size[a], plan.stride[a])
        assert not rows.reshape(plan.size[a], -1, 8)[:, :, 6:].any()


@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "not symmetric"])
@pytest.mark.parametrize("name", ["one of 1", "one of 9", "one of 35", "ring", "star", "grid", "random"])
def test_machine_code_gives_the_bits_of_python(name: str, symmetric: bool) -> None:
    """Check that bits are equal if each operation is rounded separately; fused operations differ by rounding."""
    sizes, pairs = graph(name, 3)
    rng, plan = np.random.default_rng(3), plan_of(sizes, pairs)
    M = random_matrix(rng, plan, pairs, symmetric) + 9.0 * np.eye(sum(sizes))
    right = rng.standard_normal((1, len(M)))
    rounded = [CompiledKernel(f, fused=False) for f in (factor_branches, solve_by_branches)]
    plain = solved(M, plan, symmetric, right, [factor_branches, solve_by_branches])
    np.testing.assert_array_equal(solved(M, plan, symmetric, right, rounded), plain)
    np.testing.assert_allclose(solved(M, plan, symmetric, right), plain, rtol=0.0, atol=1e-9 * np.abs(plain).max())
