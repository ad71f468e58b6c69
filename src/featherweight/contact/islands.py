"""Islands: contacts that share no body, directly or through other contacts, form separate problems.

A pile has several islands, and few of them are hard for the solver. B of an island has only its own groups of rows and
branches; the numbers Y stay in place. The contacts of one robot mostly form one island.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Integers, Vector
from ..engine.loops.kernels import as_matrix
from .factors.row_factor import FactorSizes, RowFactor, RowFactorWork, planned_factor, row_factor_work, sort_by_numbers
from .laws import Problem


class Islands(NamedTuple):
    """Workspace for islands of problems with at most m unknowns, and the problem of one island."""

    parent: Integers  # (branches,) a branch of the same island, or itself
    number: Integers  # (branches,) island of each root branch, later the number in the island
    group_begin: Integers  # (m + 1,) start of each island's groups in `groups`
    groups: Integers  # (m,)
    block_begin: Integers  # (m + 1,) start of each island's blocks in `blocks`
    blocks: Integers  # (m,)
    island: Integers  # (m,) island of each group or block
    local: Integers  # (m,) number of each group in its island
    pairs: Integers  # (m,) number of each pair of bodies in its island
    f: Vector  # (m,) impulses of an island
    b: Vector  # (m,)
    mu: Vector  # (m,)
    R: Vector  # (m,)
    lower: Vector  # (m,)
    upper: Vector  # (m,)
    pair: Integers  # (m,)
    factor: RowFactorWork


def islands_work(size: int, sizes: FactorSizes) -> Islands:
    """Return workspace for problems of `size` unknowns; the system provides memory as it is used."""
    parent, number = np.empty((2, sizes.branches), np.int64)
    group_begin, block_begin = np.empty((2, size + 1), np.int64)
    groups, blocks, island, local, pairs, pair = np.empty((6, size), np.int64)
    f, b, mu, R, lower, upper = np.empty((6, size))
    return Islands(
        parent, number, group_begin, groups, block_begin, blocks, island, local, pairs, f, b, mu, R, lower, upper, pair,
        row_factor_work(size, sizes._replace(numbers=0, width=0)),
    )  # fmt: skip


def find_islands(B: RowFactor, work: Islands) -> int:
    """Sort groups and blocks by islands; return the number of islands. B has at most as many groups as blocks."""
    parent, number, groups = work.parent, work.number, len(B.width)
    for a in range(B.plan.branches):
        parent[a], number[a] = a, -1
    for g in range(groups):
        if B.member_begin[g] < B.member_begin[g + 1]:
            for x in range(B.run_begin[g] + 1, B.run_begin[g + 1]):
                parent[root_of(B.branch[x], parent)] = root_of(B.branch[x - 1], parent)
    count = 0
    for g in range(groups):
        work.island[g] = -1
        if B.member_begin[g] < B.member_begin[g + 1]:
            if B.run_begin[g] == B.run_begin[g + 1]:  # no branch: nothing moves
                work.island[g] = count
                count += 1
                continue
            root = root_of(B.branch[B.run_begin[g]], parent)
            if number[root] < 0:
                number[root] = count
                count += 1
            work.island[g] = number[root]
    sort_by_numbers(work.island[:groups], count, work.group_begin, work.groups)
    if count > 1:
        for c in range(len(B.group)):
            work.local[c] = work.island[B.group[c]]
        sort_by_numbers(work.local[: len(B.group)], count, work.block_begin, work.blocks)
    return count


def root_of(a: int, parent: Integers) -> int:
    """Return the branch that represents its island, and shorten the path to it."""
    while parent[a] != a:
        parent[a] = parent[parent[a]]
        a = parent[a]
    return a


def problem_of_island(problem: Problem, island: int, f: Vector, work: Islands) -> Problem:
    """Return the problem of an island, and write its initial impulses from f."""
    k, first, stop = len(problem.mu), work.block_begin[island], work.block_begin[island + 1]
    for x in range(work.group_begin[island], work.group_begin[island + 1]):
        work.pairs[work.groups[x]] = -1
    contacts, at, pairs = 0, 0, 0
    for x in range(first, stop):
        c = work.blocks[x]
        lines, i = (3, 3 * c) if c < k else (1, 2 * k + c)
        for l in range(lines):
            work.b[at + l], work.f[at + l], work.R[at + l] = problem.b[i + l], f[i + l], problem.R[i + l]
        at += lines
        if c < k:
            group = problem.B.group[c]
            if work.pairs[group] < 0:
                work.pairs[group] = pairs
                pairs += 1
            work.mu[contacts], work.pair[contacts] = problem.mu[c], work.pairs[group]
            contacts += 1
        else:
            work.lower[x - first - contacts], work.upper[x - first - contacts] = problem.lower[c - k], problem.upper[c - k]
    rows, none = stop - first - contacts, as_matrix(work.f, 0, 0)
    paired = contacts if len(problem.pair) == k else 0
    return Problem(
        none, work.b[:at], work.mu[:contacts], work.lower[:rows], work.upper[:rows], problem.pyramid,
        factor_of_island(problem.B, island, work), work.R[:at], work.pair[:paired],
    )  # fmt: skip


def factor_of_island(B: RowFactor, island: int, work: Islands) -> RowFactor:
    """Return the factor of an island; the numbers of its equations replace those of B."""
    target, plan, first, stop = work.factor, work.factor.plan, work.group_begin[island], work.group_begin[island + 1]
    for x in range(first, stop):
        g = work.groups[x]
        for y in range(B.run_begin[g], B.run_begin[g + 1]):
            work.number[B.branch[y]] = -1
    branches, size, runs = 0, 0, 0
    for x in range(first, stop):
        g = work.groups[x]
        work.local[g] = x - first
        target.begin[x - first], target.rows[x - first], target.width[x - first] = (
            B.begin[g],
            B.rows[g],
            B.width[g],
        )
        target.run_begin[x - first] = runs
        for y in range(B.run_begin[g], B.run_begin[g + 1]):
            a = B.branch[y]
            if work.number[a] < 0:
                work.number[a] = branches
                plan.first[branches], plan.size[branches] = size, B.plan.size[a]
                size += B.plan.size[a]
                branches += 1
            target.branch[runs], target.column[runs] = work.number[a], B.column[y]
            runs += 1
    groups, blocks = stop - first, work.block_begin[island + 1] - work.block_begin[island]
    target.run_begin[groups] = runs
    for x in range(blocks):
        c = work.blocks[work.block_begin[island] + x]
        target.at[x], target.group[x] = B.at[c], work.local[B.group[c]]
    factor = planned_factor(target, blocks, groups, size, branches, B.plan.end - B.plan.numbers)
    return factor._replace(values=B.values, ends=B.ends)


def give_back_island(problem: Problem, island: int, work: Islands, f: Vector) -> None:
    """Copy the impulses of an island to those of all islands."""
    k, at = len(problem.mu), 0
    for x in range(work.block_begin[island], work.block_begin[island + 1]):
        c = work.blocks[x]
        lines, i = (3, 3 * c) if c < k else (1, 2 * k + c)
        for l in range(lines):
            f[i + l] = work.f[at + l]
        at += lines
