"""The factor B of a contact problem's matrix A = B Bᵀ + R, by groups of rows that have entries in the same branches.

A *block* are the three rows of a contact, or the one row of a joint. Blocks of a group have entries on the paths of the same
two bodies (`branches`), or all have entries in all columns: then there is one branch. Only columns of those branches are kept,
each branch beginning at a multiple of `LANES`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.loops.array_types import Integers, Vector
from .branch_elimination import EliminationPlan, PlanWork, clear_couplings, couple, plan_work, planned
from .branches import padded


class RowFactor(NamedTuple):
    """B, with as many columns as `size`, and how equations in these columns are solved."""

    size: int
    values: Vector  # rows, one after the other
    at: Integers  # (blocks,) where the first row of each block begins in `values`
    group: Integers  # (blocks,)
    members: Integers  # (blocks,) blocks by group
    member_begin: Integers  # (groups + 1,)
    width: Integers  # (groups,) columns that are kept
    run_begin: Integers  # (groups + 1,) where the branches of each group begin in the next two
    branch: Integers  # branches, as the plan numbers them
    column: Integers  # where each begins in a row
    plan: EliminationPlan


class RowFactorWork(NamedTuple):
    """Room for factors."""

    values: Vector
    at: Integers
    group: Integers
    members: Integers
    member_begin: Integers
    width: Integers
    run_begin: Integers
    branch: Integers
    column: Integers
    plan: PlanWork
    first: Integers  # (blocks,) of each group the branch of the one body, -1 of the world
    second: Integers  # (blocks,) and of the other


def row_factor_work(blocks: int, numbers: int, branches: int, runs: int) -> RowFactorWork:
    """Room for so many blocks with so many numbers, of which each group has entries in so many branches (`runs`) at most."""
    at, group, members, width, first, second = np.zeros((6, blocks), np.int64)
    member_begin, run_begin = np.zeros((2, blocks + 1), np.int64)
    branch, column = np.empty((2, blocks * runs), np.int64)
    return RowFactorWork(
        np.empty(numbers), at, group, members, member_begin, width, run_begin, branch, column, plan_work(branches), first, second
    )  # fmt: skip


def factor_in(work: RowFactorWork, blocks: int, groups: int, size: int, plan: EliminationPlan) -> RowFactor:
    """Return the factor whose numbers and groups are written; `members` follow here."""
    member_begin, members, group = work.member_begin, work.members, work.group
    for g in range(groups + 1):
        member_begin[g] = 0
    for c in range(blocks):
        member_begin[group[c] + 1] += 1
    for g in range(groups):
        member_begin[g + 1] += member_begin[g]
    for c in range(blocks):
        members[member_begin[group[c]]] = c
        member_begin[group[c]] += 1
    for g in range(groups, 0, -1):
        member_begin[g] = member_begin[g - 1]
    member_begin[0] = 0
    return RowFactor(
        size, work.values, work.at[:blocks], group[:blocks], members[:blocks], member_begin[: groups + 1], work.width[:groups],
        work.run_begin[: groups + 1], work.branch, work.column, plan,
    )  # fmt: skip


def factor_of_one_branch(k: int, n: int, rank: int, values: Vector, work: RowFactorWork) -> RowFactor:
    """Return the factor of k contacts and n rows with entries in all columns: rows of `padded(rank)` values."""
    stride = padded(rank)
    for c in range(k + n):
        work.at[c] = (3 * c if c < k else 2 * k + c) * stride
        work.group[c] = 0
    work.width[0], work.run_begin[0], work.run_begin[1], work.branch[0], work.column[0] = stride, 0, 1, 0, 0
    work.plan.first[0], work.plan.size[0] = 0, rank
    clear_couplings(1, work.plan)
    factor = factor_in(work, k + n, 1, rank, planned(1, work.plan))
    return factor._replace(values=values)


def rows_of_factor(B: RowFactor, k: int, rows: Integers, work: RowFactorWork) -> RowFactor:
    """Return some rows of the factor of k contacts and further rows, each as a block."""
    for i in range(len(rows)):
        r = rows[i]
        c, l = (r // 3, r % 3) if r < 3 * k else (r - 2 * k, 0)
        work.group[i] = B.group[c]
        work.at[i] = B.at[c] + l * B.width[B.group[c]]
    return blocks_of_factor(B, len(rows), work)


def blocks_of_factor(B: RowFactor, blocks: int, work: RowFactorWork) -> RowFactor:
    """Return the factor of blocks whose groups and places in B are written."""
    part = factor_in(work, blocks, len(B.width), B.size, B.plan)
    return part._replace(values=B.values, width=B.width, run_begin=B.run_begin, branch=B.branch, column=B.column)


def no_factor(work: RowFactorWork) -> RowFactor:
    """Return a factor without rows."""
    w = work.plan
    plan = EliminationPlan(0, w.first, w.size, w.order, w.position, w.begin, w.later, w.place, w.stride, w.offset, 0)
    return factor_in(work, 0, 0, 0, plan)


NO_ROWS = no_factor(row_factor_work(0, 0, 0, 0))


def couple_groups(groups: int, count: int, work: RowFactorWork) -> None:
    """Couple the branches of each group, of `count` that take part."""
    clear_couplings(count, work.plan)
    for g in range(groups):
        for x in range(work.run_begin[g], work.run_begin[g + 1]):
            for y in range(work.run_begin[g], x):
                couple(count, work.branch[x], work.branch[y], work.plan)


# ---- products


def write_row(B: RowFactor, c: int, l: int, factor: float, w: Vector) -> None:
    """Write a multiple of one row of a block to its places in w."""
    g, plan = B.group[c], B.plan
    at = B.at[c] + l * B.width[g]
    for x in range(B.run_begin[g], B.run_begin[g + 1]):
        a, row = B.branch[x], at + B.column[x]
        for j in range(plan.size[a]):
            w[plan.first[a] + j] = factor * B.values[row + j]


def add_multiples(B: RowFactor, c: int, f: tuple[float, float, float], rows: int, w: Vector) -> None:
    """Add f times the rows of a block, of which there are one or three, to w."""
    g, values, plan = B.group[c], B.values, B.plan
    at, width = B.at[c], B.width[g]
    for x in range(B.run_begin[g], B.run_begin[g + 1]):
        a, row = B.branch[x], at + B.column[x]
        first = plan.first[a]
        if rows == 1:
            for j in range(plan.size[a]):
                w[first + j] += f[0] * values[row + j]
        else:
            for j in range(plan.size[a]):
                w[first + j] += f[0] * values[row + j] + f[1] * values[row + width + j] + f[2] * values[row + 2 * width + j]


def products(B: RowFactor, c: int, rows: int, w: Vector) -> tuple[float, float, float]:
    """The products of the rows of a block with w; of one row the first of them."""
    g, values, plan = B.group[c], B.values, B.plan
    at, width = B.at[c], B.width[g]
    s = t = u = 0.0
    for x in range(B.run_begin[g], B.run_begin[g + 1]):
        a, row = B.branch[x], at + B.column[x]
        first = plan.first[a]
        if rows == 1:
            for j in range(plan.size[a]):
                s += values[row + j] * w[first + j]
        else:
            for j in range(plan.size[a]):
                y = w[first + j]
                s += values[row + j] * y
                t += values[row + width + j] * y
                u += values[row + 2 * width + j] * y
    return s, t, u


def write_transposed_product(B: RowFactor, k: int, f: Vector, w: Vector) -> None:
    """Bᵀ f, of k contacts and further rows."""
    for j in range(B.size):
        w[j] = 0.0
    for c in range(len(B.at)):
        if c < k:
            x, y, z = f[3 * c], f[3 * c + 1], f[3 * c + 2]
            if x != 0.0 or y != 0.0 or z != 0.0:
                add_multiples(B, c, (x, y, z), 3, w)
        elif f[2 * k + c] != 0.0:
            add_multiples(B, c, (f[2 * k + c], 0.0, 0.0), 1, w)


def write_product_of_factor(B: RowFactor, k: int, w: Vector, product: Vector) -> None:
    """B w, of k contacts and further rows."""
    for c in range(len(B.at)):
        if c < k:
            product[3 * c], product[3 * c + 1], product[3 * c + 2] = products(B, c, 3, w)
        else:
            product[2 * k + c], _, _ = products(B, c, 1, w)


def sum_of_squares(B: RowFactor, c: int, l: int) -> float:
    """The square of one row of a block."""
    width = B.width[B.group[c]]
    at = B.at[c] + l * width
    total = 0.0
    for j in range(width):
        total += B.values[at + j] * B.values[at + j]
    return total
