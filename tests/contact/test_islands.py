"""Tests of islands of contact problems: contacts and rows that share bodies, the problem of each island, and solutions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from contact.given_matrices import dense_factor, matrix_of, random_factor
from featherweight.array_types import Array
from featherweight.contact.factors.branches import padded
from featherweight.contact.factors.row_factor import (
    NO_BRANCHES,
    NO_ROWS,
    RowFactor,
    blocks_of_factor,
    planned_factor,
    row_factor_work,
    sizes_of,
    sizes_of_branches,
)
from featherweight.contact.impulses import Solution, of_arrays, solve_in, solve_in_workspace, solver_work
from featherweight.contact.islands import Islands, find_islands, give_back_island, islands_work, problem_of_island
from featherweight.contact.laws import Problem

FRICTION = pytest.mark.parametrize("pyramid", [False, True], ids=["cone", "pyramid"])
SEEDS = pytest.mark.parametrize("seed", range(12))

# ---- problems of bodies, and combinations of them


def free_bodies(rng: np.random.Generator, bodies: int, groups: int) -> tuple[list[int], list[list[int]]]:
    """Return sizes of branches, and the branches of each group: the two touching bodies, or one and the ground; some
    groups have three.
    """
    count = np.minimum(rng.choice([1, 2, 3], groups, p=[0.4, 0.5, 0.1]), bodies)
    return rng.choice([6, 6, 3, 1, 9], bodies).tolist(), [rng.permutation(bodies)[:n].tolist() for n in count]


def problem_with(rng: np.random.Generator, B: RowFactor, k: int, n: int, pyramid: bool = False) -> Problem:
    """Return closing contacts and rows; with a compliance, so that impulses are unique if nothing slides."""
    b = dense_factor(B, k) @ rng.standard_normal(B.size)
    most = np.where(np.arange(n) % 3 == 2, np.inf, rng.random(n))
    lower = np.where(np.isinf(most), 0.0, -most)
    R = 1e-3 * rng.uniform(0.5, 1.0, len(b))
    return Problem(np.zeros((0, 0)), b, rng.uniform(0.1, 0.9, k), lower, most, pyramid, B, R, B.group[:k].copy())


def random_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    k, n, bodies = (int(rng.integers(*ends)) for ends in ((1, 20), (0, 12), (1, 12)))
    groups = int(rng.integers(1, min(k + n, 8) + 1))
    return problem_with(rng, random_factor(rng, *free_bodies(rng, bodies, groups), k, n), k, n)


def connected_problem(rng: np.random.Generator, k: int, n: int, pyramid: bool) -> Problem:
    """Return a chain of bodies, each of which touches the next."""
    bodies = int(rng.integers(1, min(k + n, 3) + 1))
    groups = [[i, i + 1] for i in range(bodies - 1)] + [[int(rng.integers(bodies))]]
    return problem_with(rng, random_factor(rng, rng.choice([6, 7], bodies).tolist(), groups, k, n), k, n, pyramid)


def shuffled(rng: np.random.Generator, counts: list[int]) -> list[tuple[int, int]]:
    """Return items of several parts in random order: the part, and the number in it, ascending within a part."""
    owner = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return [(int(p), int((owner[:i] == p).sum())) for i, p in enumerate(owner)]


def together(rng: np.random.Generator, parts: list[Problem]) -> tuple[Problem, list[Array]]:
    """Combine several problems, with branches, groups, contacts and rows mixed; return the rows of each part too."""
    factors = [p.B for p in parts]
    contacts, lines = [len(p.mu) for p in parts], [len(p.lower) for p in parts]
    blocks = shuffled(rng, contacts) + [(p, contacts[p] + j) for p, j in shuffled(rng, lines)]
    branches = shuffled(rng, [B.plan.branches for B in factors])
    groups = shuffled(rng, [len(B.width) for B in factors])
    sizes = np.array([factors[p].plan.size[a] for p, a in branches], np.int64)
    runs = max(int(np.diff(B.run_begin).max()) for B in factors)
    work = row_factor_work(len(blocks), sizes_of_branches(sizes, int(sum(map(padded, sizes))), runs))
    work.values[:], work.ends[:] = np.nan, np.nan
    work.plan.size[: len(sizes)], work.plan.first[: len(sizes)] = sizes, np.cumsum([0, *sizes])[:-1]
    at = end = run = 0
    for g, (p, old) in enumerate(groups):
        B = factors[p]
        numbers = B.rows[old] * B.width[old]
        work.begin[g], work.rows[g], work.width[g], work.run_begin[g] = at, B.rows[old], B.width[old], run
        work.values[at : at + numbers] = B.values[B.begin[old] : B.begin[old] + numbers]
        at += numbers
        for x in range(B.run_begin[old], B.run_begin[old + 1]):
            work.branch[run], work.column[run] = branches.index((p, B.branch[x])), B.column[x]
            run += 1
        work.run_begin[g + 1] = run
    rows: list[list[int]] = [[] for _ in parts]
    for c, (p, old) in enumerate(blocks):
        B, count = factors[p], 3 if c < sum(contacts) else 1
        work.group[c], work.at[c] = groups.index((p, B.group[old])), B.at[old]
        if B.at[old] >= 0:
            numbers = count * B.rows[B.group[old]]
            work.at[c], work.ends[end : end + numbers] = end, B.ends[B.at[old] : B.at[old] + numbers]
            end += numbers
        first = 3 * c if count == 3 else 2 * sum(contacts) + c
        rows[p] += range(first, first + count)
    factor = planned_factor(work, len(blocks), len(groups), int(sizes.sum()), len(sizes), at)
    k = sum(contacts)
    b, R = np.empty((2, 3 * k + sum(lines)))
    lower, upper, mu = np.empty(sum(lines)), np.empty(sum(lines)), np.empty(k)
    for p, part in enumerate(parts):
        own = [c for c, (q, _) in enumerate(blocks) if q == p]
        b[rows[p]], R[rows[p]] = part.b, part.R
        mu[own[: contacts[p]]] = part.mu
        lower[np.array(own[contacts[p] :], int) - k], upper[np.array(own[contacts[p] :], int) - k] = part.lower, part.upper
    pair = factor.group[:k].copy()
    return Problem(parts[0].A, b, mu, lower, upper, parts[0].pyramid, factor, R, pair), [np.array(x) for x in rows]


def room_of(p: Problem, more: int = 0) -> Islands:
    """Return a workspace that contained other numbers."""
    work = islands_work(len(p.b) + more, sizes_of(p.B))
    for room in (*work[:-1], *work.factor[:-3]):
        room.fill(7)
    return work


# ---- islands


def components(B: RowFactor) -> Array:
    """Return the component of each group, by SciPy."""
    edges = [(a, b) for g in range(len(B.width)) for a, b in combinations(B.branch[B.run_begin[g] : B.run_begin[g + 1]], 2)]
    one, other = np.array(edges, int).reshape(-1, 2).T
    count = B.plan.branches
    _, label = connected_components(coo_matrix((np.ones(len(edges)), (one, other)), (count, count)), directed=False)
    return np.array([label[B.branch[B.run_begin[g]]] for g in range(len(B.width))])


def numbered(labels: Array) -> list[int]:
    """Renumber components in the order of their first occurrence."""
    return [list(dict.fromkeys(labels)).index(x) for x in labels]


@pytest.mark.parametrize("seed", range(40))
def test_islands_are_the_components_of_bodies_that_touch(seed: int) -> None:
    """Check that groups and blocks are in ascending order in each island, and occur once."""
    p = random_problem(seed)
    B, work = p.B, room_of(p, 3)
    expected = numbered(components(B))
    count = find_islands(B, work)
    island = work.island[: len(B.width)].copy()
    assert island.tolist() == expected and count == max(expected) + 1
    for i in range(count):
        groups = work.groups[work.group_begin[i] : work.group_begin[i + 1]]
        assert groups.tolist() == np.flatnonzero(island == i).tolist() and len(groups) > 0
        if count > 1:
            blocks = work.blocks[work.block_begin[i] : work.block_begin[i + 1]]
            assert blocks.tolist() == np.flatnonzero(island[B.group] == i).tolist() and len(blocks) > 0
    assert work.group_begin[count] == len(B.width) and (count == 1 or work.block_begin[count] == len(B.group))


def test_random_problems_have_one_island_and_several() -> None:
    counts = [find_islands(p.B, room_of(p)) for p in map(random_problem, range(40))]
    assert counts.count(1) > 3 and counts.count(2) > 3 and max(counts) > 3


def test_without_contacts_there_is_no_island() -> None:
    assert find_islands(NO_ROWS, islands_work(0, NO_BRANCHES)) == 0


@SEEDS
def test_groups_without_members_are_no_islands(seed: int) -> None:
    """Check the factor of a part of the contacts, which has such groups; islands of other groups are numbered as without
    them.
    """
    rng = np.random.default_rng(seed)
    sizes, groups, k, n = [6] * 9, [[0, 1], [2], [3, 4], [5], [6, 7], [8], [1, 0]], 9, 5
    B = random_factor(rng, sizes, groups, k, n)
    chosen = np.flatnonzero(rng.random(k + n) < 0.3)
    part_work = row_factor_work(k + n, NO_BRANCHES)
    part_work.at[: len(chosen)], part_work.group[: len(chosen)] = B.at[chosen], B.group[chosen]
    part = blocks_of_factor(B, len(chosen), part_work)
    work = islands_work(3 * k + n, sizes_of(B))
    count = find_islands(part, work)
    with_members = np.isin(np.arange(len(groups)), part.group)
    assert (work.island[: len(groups)] == -1).tolist() == (~with_members).tolist()
    assert work.island[: len(groups)][with_members].tolist() == numbered(components(B)[with_members])
    assert count == len(set(components(B)[with_members]))


# ---- problems of islands


def row_numbers(p: Problem, blocks: Array) -> list[int]:
    k = len(p.mu)
    return [r for c in blocks for r in (range(3 * c, 3 * c + 3) if c < k else (2 * k + c,))]


@pytest.mark.parametrize("seed", range(40))
def test_the_problem_of_an_island_has_its_rows_of_all(seed: int) -> None:
    """Check that A is the block of A, that bounds are those of its rows, and that pairs of bodies are renumbered in the
    order of their contacts.
    """
    p = random_problem(seed)
    work, A, k = room_of(p), matrix_of(p), len(p.mu)
    f = np.random.default_rng(seed).standard_normal(len(p.b))
    given, count = f.copy(), find_islands(p.B, work)
    for island in range(count if count > 1 else 0):
        blocks = work.blocks[work.block_begin[island] : work.block_begin[island + 1]].copy()
        part, rows = problem_of_island(p, island, f, work), row_numbers(p, blocks)
        contacts, lines = blocks[blocks < k], blocks[blocks >= k] - k
        assert part.factored and part.B.size <= p.B.size and part.B.values is p.B.values
        np.testing.assert_allclose(matrix_of(part), A[np.ix_(rows, rows)], rtol=0.0, atol=1e-13 * np.abs(A).max())
        outside = np.setdiff1d(np.arange(len(p.b)), rows)
        np.testing.assert_allclose(A[np.ix_(np.array(rows), outside)], 0.0, atol=0.0)
        for found, whole in ((part.b, p.b), (work.f[: len(rows)], f), (part.R, p.R)):
            np.testing.assert_array_equal(found, whole[rows])
        for found, whole, numbers in ((part.mu, p.mu, contacts), (part.lower, p.lower, lines), (part.upper, p.upper, lines)):
            np.testing.assert_array_equal(found, whole[numbers])
        assert part.pair.tolist() == numbered(p.pair[contacts])
        assert part.pyramid == p.pyramid
        work.f[: len(rows)] += 1.0
        give_back_island(p, island, work, f)
        expected = given.copy()
        expected[rows] += 1.0
        np.testing.assert_array_equal(f, expected)
        f[:] = given


def test_where_pairs_are_unknown_islands_have_none() -> None:
    rng = np.random.default_rng(0)
    p = problem_with(rng, random_factor(rng, [6, 6], [[0], [1]], 4, 2), 4, 2)._replace(pair=np.zeros(0, np.int64))
    work = room_of(p)
    assert find_islands(p.B, work) == 2
    assert len(problem_of_island(p, 0, np.zeros(14), work).pair) == 0


def test_rows_of_joints_are_in_the_island_of_their_branch() -> None:
    """Check limits of a robot (branches 0 and 1) beside a body (2): its rows come last, those of the contacts first."""
    rng = np.random.default_rng(0)
    B = random_factor(rng, [3, 4, 6], [[0, 1], [2], [1]], 2, 4)  # contacts of groups 0 and 1; rows of groups 2, 0, 1, 2
    most = np.array([1.0, 2.0, 3.0, 4.0])
    b = np.arange(10.0)
    p = Problem(np.zeros((0, 0)), b, np.array([0.1, 0.2]), -most, most, B=B, R=np.zeros(10), pair=B.group[:2].copy())
    work = room_of(p)
    assert find_islands(B, work) == 2
    robot = problem_of_island(p, 0, b, work)
    assert robot.b.tolist() == [0.0, 1.0, 2.0, 6.0, 7.0, 9.0] and robot.upper.tolist() == [1.0, 2.0, 4.0]
    assert robot.mu.tolist() == [0.1] and robot.B.size == 7
    body = problem_of_island(p, 1, b, work)
    assert body.b.tolist() == [3.0, 4.0, 5.0, 8.0] and body.lower.tolist() == [-3.0] and body.B.size == 6


# ---- solutions


def mixed(seed: int, pyramid: bool) -> tuple[Problem, list[Problem], list[Array]]:
    """Return a problem of some islands, the islands alone, and their rows in it.

    One island has only joint rows, some have none.
    """
    rng = np.random.default_rng(seed)
    counts = [(int(rng.integers(1, 4)), 0), (int(rng.integers(5, 9)), int(rng.integers(0, 4))), (0, 3)]
    counts = [counts[i] for i in rng.permutation(3)][: int(rng.integers(2, 4))]
    parts = [connected_problem(rng, k, n, pyramid) for k, n in counts]
    whole, rows = together(rng, parts)
    return whole, parts, rows


def solved(p: Problem, start: Array, tolerance: float, as_compiled: bool) -> tuple[Array, Solution]:
    """Return impulses; the workspace is large enough for islands."""
    work = solver_work(len(start), sizes_of(p.B))
    if as_compiled:
        numbers = solve_in_workspace(of_arrays(p), start, tolerance, work)
        return work.best[: len(start)].copy(), Solution(work.best, *numbers)
    solution = solve_in(p, start, tolerance, work)
    return solution.impulses.copy(), solution


@FRICTION
@SEEDS
def test_parts_that_are_mixed_keep_their_matrices(seed: int, pyramid: bool) -> None:
    whole, parts, rows = mixed(seed, pyramid)
    A = np.zeros((len(whole.b), len(whole.b)))
    for part, r in zip(parts, rows, strict=True):
        A[np.ix_(r, r)] = matrix_of(part)
    np.testing.assert_allclose(matrix_of(whole), A, rtol=0.0, atol=1e-13 * np.abs(A).max())


@FRICTION
@pytest.mark.parametrize("as_compiled", [False, True], ids=["interpreted", "compiled"])
@SEEDS
def test_impulses_of_islands_are_those_of_each_alone(seed: int, as_compiled: bool, pyramid: bool) -> None:
    """Check that bits are equal. The residual and the number of steps are the largest over islands."""
    whole, parts, rows = mixed(seed, pyramid)
    rng = np.random.default_rng(seed)
    start = rng.standard_normal(len(whole.b)) * rng.integers(2)
    tolerance = 1e-8 * float(np.abs(whole.b).max())
    impulses, solution = solved(whole, start, tolerance, as_compiled)
    alone = [solved(part, start[r], tolerance, as_compiled) for part, r in zip(parts, rows, strict=True)]
    for (f, _), r in zip(alone, rows, strict=True):
        np.testing.assert_array_equal(impulses[r], f)
    assert solution.residual == max(s.residual for _, s in alone) <= tolerance
    assert solution.newton_steps == max(s.newton_steps for _, s in alone) > 0
    assert solution.interior_steps == max(s.interior_steps for _, s in alone)


def test_room_by_the_sizes_of_a_factor_has_room_for_islands() -> None:
    """Check the workspace of `solve_problem` and of benchmarks."""
    rng = np.random.default_rng(0)
    p = problem_with(rng, random_factor(rng, [6, 6], [[0], [1]], 4, 2), 4, 2)
    work = solver_work(len(p.b), sizes_of(p.B))
    assert solve_in(p, np.zeros(len(p.b)), 1e-8, work).residual <= 1e-8
