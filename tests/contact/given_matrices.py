"""Matrices of bodies, and factors of contact problems, for tests of the contact solver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from featherweight.array_types import Array
from featherweight.contact.contact_problem import BodyDelassus
from featherweight.contact.factors.branch_elimination import EliminationPlan
from featherweight.contact.factors.branches import BranchPaths, branches_of, padded
from featherweight.contact.factors.inverse_factor import InverseFactors, InverseWork, inverse_factors, inverse_work
from featherweight.contact.factors.row_factor import (
    MOST_ROWS,
    RowFactor,
    RowFactorWork,
    begin_one_branch,
    factor_of_matrix,
    planned_factor,
    row_factor_work,
    sizes_of_branches,
    sizes_of_one_branch,
)
from featherweight.contact.laws import Problem
from featherweight.engine.loops.kernels import LANES


def given_delassus(G: Array, begin: Any) -> BodyDelassus:
    """Return G of bodies with these first rows, without M⁻¹."""
    none, branches = np.zeros((0, 0)), one_branch(0)
    factors = InverseFactors(none, none, none, branches)
    return BodyDelassus(G, np.asarray(begin, np.int64), False, factors, inverse_work(np.zeros(0, np.int64), branches, 0))


# ---- branches


def branches_from(parent: Any) -> BranchPaths:
    """Return the branches of velocities with these parents; J and M⁻¹ have all of their columns."""
    return branches_of(parent, [0] * len(parent))


def one_branch(nv: int) -> BranchPaths:
    """Return a chain of velocities as a single branch."""
    return branches_from(range(-1, nv - 1))


def factor_on_paths(C: Array, branches: BranchPaths) -> Array:
    """Return the entries of a lower triangular C (nv, nv) in the layout of the branches."""
    placed = np.zeros((len(C), int(branches.width.max(initial=0))))
    for b in range(len(branches.width)):
        own = slice(branches.first[b], branches.first[b + 1])
        for x in range(branches.begin[b], branches.begin[b + 1]):
            first, stop = branches.first[branches.path[x] : branches.path[x] + 2]
            placed[own, branches.spot[x] : branches.spot[x] + stop - first] = C[own, first:stop]
    return placed


def factors_in(work: InverseWork, J: Array, Minv: Array, E: Array, branches: BranchPaths) -> InverseFactors:
    """Return J, and C from LAPACK in the workspace."""
    factors = inverse_factors(J, E, branches, work)
    factors.C[:] = factor_on_paths(np.linalg.cholesky(Minv), branches)
    return factors


# ---- factors


def factor_of_rows(B: Array, k: int, work: RowFactorWork | None = None) -> RowFactor:
    """Return a dense matrix (m, size) as the factor of k contacts and m - 3 k rows."""
    m, size = B.shape
    values = np.zeros((m, padded(size)))
    values[:, :size] = B
    return factor_of_matrix(k, m - 3 * k, size, values.ravel(), work or row_factor_work(m - 2 * k, sizes_of_one_branch(size)))


def factor_of_blocks(B: Array, k: int, groups: list[list[int]]) -> RowFactor:
    """Return a dense matrix (m, size) as the factor of k contacts and further rows, with these groups of blocks."""
    (m, size), width, at = B.shape, padded(B.shape[1]), 0
    work = row_factor_work(m - 2 * k, sizes_of_one_branch(size))
    for g, group in enumerate(groups):
        work.begin[g], work.rows[g] = at * width, 0
        for c in group:
            work.group[c], work.at[c] = g, -1 - work.rows[g]
            rows = B[3 * c : 3 * c + 3] if c < k else B[2 * k + c : 2 * k + c + 1]
            work.rows[g] += len(rows)
            for row in rows:
                work.values[at * width : (at + 1) * width] = np.r_[row, [0.0] * (width - size)]
                at += 1
    begin_one_branch(len(groups), size, work)
    return planned_factor(work, m - 2 * k, len(groups), size, 1, at * width)


def random_factor(rng: np.random.Generator, sizes: Any, groups: list[list[int]], k: int, n: int) -> RowFactor:
    """Return random Y of groups with entries in these branches, and E of k contacts and n rows, which belong to groups in turn.

    In every second group, blocks have their own rows in Y, as far as there is memory. Zeros fill vectors, and all other memory
    is NaN.
    """
    first, wide = np.cumsum([0, *sizes]), sum(map(padded, sizes))
    work = row_factor_work(max(k + n, len(groups)), sizes_of_branches(np.array(sizes), wide, max(map(len, groups))))
    work.values[:], work.ends[:] = np.nan, np.nan
    work.plan.first[:], work.plan.size[:] = first[:-1], sizes
    at, lines = 0, [3] * k + [1] * n
    own = [g % 2 == 1 and 0 < sum(lines[g :: len(groups)]) <= MOST_ROWS for g in range(len(groups))]
    for g, group in enumerate(groups):
        begin, width = work.run_begin[g], 0
        for x, a in enumerate(group, start=begin):
            work.branch[x], work.column[x] = a, width
            width += padded(sizes[a])
        work.run_begin[g + 1], work.width[g] = begin + len(group), width
        work.begin[g], work.rows[g] = at, sum(lines[g :: len(groups)]) if own[g] else rng.integers(1, MOST_ROWS + 1)
        for _ in range(work.rows[g]):
            for a in group:
                work.values[at : at + padded(sizes[a])] = np.r_[rng.standard_normal(sizes[a]), [0.0] * (-sizes[a] % LANES)]
                at += padded(sizes[a])
    end = 0
    for c in range(k + n):
        g = work.group[c] = c % len(groups)
        if own[g]:
            work.at[c] = -1 - sum(lines[g : c : len(groups)])
        else:
            count = lines[c] * work.rows[g]
            work.at[c], work.ends[end : end + count] = end, rng.standard_normal(count)
            end += count
    return planned_factor(work, k + n, len(groups), int(first[-1]), len(sizes), at)


def dense_factor(B: RowFactor, k: int) -> Array:
    """Return the factor of k contacts and further rows as a matrix (m, size)."""
    blocks = [np.zeros((0, B.size))]
    for c, g in enumerate(B.group):
        rows, width = B.rows[g], B.width[g]
        kept, Y = B.values[B.begin[g] :][: rows * width].reshape(rows, width), np.zeros((rows, B.size))
        for x in range(B.run_begin[g], B.run_begin[g + 1]):
            unknowns, column = unknowns_of(B.plan, B.branch[x]), B.column[x]
            Y[:, unknowns] = kept[:, column : column + B.plan.size[B.branch[x]]]
        at, lines = B.at[c], 3 if c < k else 1
        blocks.append(B.ends[at:][: lines * rows].reshape(lines, rows) @ Y if at >= 0 else Y[-1 - at :][:lines])
    return np.concatenate(blocks)


def unknowns_of(plan: EliminationPlan, a: int) -> slice:
    """Return the unknowns of a branch."""
    return slice(int(plan.first[a]), int(plan.first[a] + plan.size[a]))


# ---- problems


def with_factor_of(p: Problem, J: Array, R: Any = 0.0) -> Problem:
    """Return the problem with A = J Jᵀ + R given by its factor J."""
    B = factor_of_rows(J, len(p.mu))
    return p._replace(A=np.zeros((0, 0)), B=B, R=np.broadcast_to(np.asarray(R, float), len(p.b)).copy())


def matrix_of(p: Problem) -> Array:
    """Return A, also if the problem has its factor."""
    if not p.factored:
        return p.A
    B = dense_factor(p.B, len(p.mu))
    return B @ B.T + np.diag(p.R)


def path_of(parent: Sequence[int], i: int) -> list[int]:
    """Return the velocities from the ground to i."""
    return [*path_of(parent, parent[i]), i] if i >= 0 else []
