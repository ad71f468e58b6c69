"""Matrices of bodies, and factors of contact problems, for tests of the contact solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherweight.contact import row_factor
from featherweight.contact.branch_elimination import EliminationPlan, planned
from featherweight.contact.branches import Branches, branches_of, padded
from featherweight.contact.contact_problem import BodyDelassus
from featherweight.contact.inverse_factor import InverseFactors, inverse_work
from featherweight.contact.laws import Problem
from featherweight.contact.row_factor import RowFactor, RowFactorWork, couple_groups, factor_in, row_factor_work

Array = np.ndarray[Any, np.dtype[Any]]


def given_delassus(G: Array, begin: Any) -> BodyDelassus:
    """G of bodies whose rows begin so, without M⁻¹."""
    none, branches = np.zeros((0, 0)), one_branch(0)
    factors = InverseFactors(none, none, none, branches)
    return BodyDelassus(G, np.asarray(begin, np.int64), False, factors, inverse_work(np.zeros(1, np.int64), 0, branches))


# ---- branches


def branches_from(parent: Any) -> Branches:
    """The branches of velocities with these parents, of which J and M⁻¹ have all columns."""
    return branches_of(parent, [0] * len(parent))


def one_branch(nv: int) -> Branches:
    """A chain of so many velocities."""
    return branches_from(range(-1, nv - 1))


# ---- factors


def factor_of_one_branch(B: Array, k: int, work: RowFactorWork | None = None) -> RowFactor:
    """A dense matrix (m, size) as the factor of k contacts and m - 3 k rows."""
    m, size = B.shape
    values = np.zeros((m, padded(size)))
    values[:, :size] = B
    work = work or row_factor_work(max(m - 2 * k, 1), 0, 1, 1)
    return row_factor.factor_of_one_branch(k, m - 3 * k, size, values.ravel(), work)


def random_factor(rng: np.random.Generator, sizes: Any, groups: list[list[int]], k: int, n: int) -> RowFactor:
    """Random rows of k contacts and n rows, in turn of groups that have entries in these branches; zeros fill vectors."""
    first = np.cumsum([0, *sizes])
    work = row_factor_work(k + n, (3 * k + n) * sum(map(padded, sizes)), len(sizes), max(map(len, groups)))
    work.values[:] = 0.0
    work.plan.first[:], work.plan.size[:] = first[:-1], sizes
    for g, group in enumerate(groups[: k + n]):
        begin, width = work.run_begin[g], 0
        for x, a in enumerate(group, start=begin):
            work.branch[x], work.column[x] = a, width
            width += padded(sizes[a])
        work.run_begin[g + 1], work.width[g] = begin + len(group), width
    at = 0
    for c in range(k + n):
        work.group[c], work.at[c] = c % len(groups), at
        for _ in range(3 if c < k else 1):
            for a in groups[c % len(groups)]:
                work.values[at : at + sizes[a]] = rng.standard_normal(sizes[a])
                at += padded(sizes[a])
    count = min(len(groups), k + n)
    couple_groups(count, len(sizes), work)
    return factor_in(work, k + n, count, int(first[-1]), planned(len(sizes), work.plan))


def dense_factor(B: RowFactor, k: int) -> Array:
    """The factor of k contacts and further rows as a matrix (m, size)."""
    rows = []
    for c, g in enumerate(B.group):
        for l in range(3 if c < k else 1):
            row, at = np.zeros(B.size), B.at[c] + l * B.width[g]
            for x in range(B.run_begin[g], B.run_begin[g + 1]):
                first, size = B.plan.first[B.branch[x]], B.plan.size[B.branch[x]]
                row[first : first + size] = B.values[at + B.column[x] : at + B.column[x] + size]
            rows.append(row)
    return np.array(rows).reshape(len(rows), B.size)


def unknowns_of(plan: EliminationPlan, a: int) -> slice:
    """The unknowns of a branch."""
    return slice(int(plan.first[a]), int(plan.first[a] + plan.size[a]))


# ---- problems


def with_factor_of(p: Problem, J: Array, R: Any = 0.0) -> Problem:
    """The problem with A = J Jᵀ + R given by its factor J."""
    B = factor_of_one_branch(J, len(p.mu))
    return p._replace(A=np.zeros((0, 0)), B=B, R=np.broadcast_to(np.asarray(R, float), len(p.b)).copy())


def matrix_of(p: Problem) -> Array:
    """A, also where the problem has its factor."""
    if not p.factored:
        return p.A
    B = dense_factor(p.B, len(p.mu))
    return B @ B.T + np.diag(p.R)
