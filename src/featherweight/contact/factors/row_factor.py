"""The factor B of a contact problem's matrix A = B Bᵀ + R, by groups of rows.

A *block* is the three rows of a contact, or the one row of a joint. Contacts of two bodies form a group with rows Y: for one or
two contacts, their own rows; for more, the six rows of the velocity of one body relative to the other. The rows of each contact
are then combinations E of these, so that a group contributes six rows, however many contacts it has:

    B = E Y        Bᵀ L B = Yᵀ (Eᵀ L E) Y

Rows of joints on one branch also form a group. Y has entries on the paths of the two bodies (`branches`). Only columns of those
branches are stored, each branch starting at a multiple of `LANES`. Numbers of the equations in velocities follow Y in the same
array.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Integers, Vector
from ...engine.loops.kernels import LANES, aligned_numbers
from .branch_elimination import (
    EliminationPlan,
    PlanWork,
    clear_couplings,
    couple,
    numbers_of,
    plan_work,
    planned,
    product_of_row,
    subtract_rows,
)
from .branches import padded

MOST_ROWS = 8  # greatest number of rows of Y in a group


class RowFactor(NamedTuple):
    """B, with `size` columns, and the plan for equations in these columns."""

    size: int
    values: Vector  # Y of all groups, the numbers of the plan, and workspace
    ends: Vector  # E of all blocks
    at: Integers  # (blocks,) start of each block's E in `ends`; -1 - r if its rows are those of Y from r on
    group: Integers  # (blocks,)
    members: Integers  # (blocks,) blocks by group
    member_begin: Integers  # (groups + 1,)
    begin: Integers  # (groups,) start of the rows of Y in `values`
    rows: Integers  # (groups,) number of rows of Y
    width: Integers  # (groups,) number of stored columns
    run_begin: Integers  # (groups + 1,) start of each group's branches in `branch` and `column`
    branch: Integers  # branches, in the numbering of the plan
    column: Integers  # start of each branch in a row
    plan: EliminationPlan

    @property
    def scratch(self) -> int:
        """Start of the workspace for products in `values`."""
        return self.plan.end + self.plan.numbers


class RowFactorWork(NamedTuple):
    """Workspace for factors."""

    values: Vector
    ends: Vector
    at: Integers
    group: Integers
    members: Integers
    member_begin: Integers
    begin: Integers
    rows: Integers
    width: Integers
    run_begin: Integers
    branch: Integers
    column: Integers
    plan: PlanWork
    first: Integers  # (blocks,) body or branch on one side of each group, -1 for the world
    second: Integers  # (blocks,) the same for the other side


class FactorSizes(NamedTuple):
    """Upper bounds of the sizes of factors."""

    columns: int  # columns of B
    padded: int  # columns of B, with padding
    width: int  # stored columns of a row
    numbers: int  # numbers of the equations in velocities
    branches: int
    runs: int  # branches of a group


def sizes_of_branches(sizes: Integers, width: int, runs: int) -> FactorSizes:
    """Return the bounds for branches of these sizes."""
    wide = sum(padded(int(n)) for n in sizes)
    return FactorSizes(int(sizes.sum()), wide, width, numbers_of(sizes), len(sizes), runs)


def sizes_of_one_branch(columns: int) -> FactorSizes:
    """Return the bounds for rows with entries in all columns."""
    return sizes_of_branches(np.array([columns], np.int64), padded(columns), 1)


def sizes_of(B: RowFactor) -> FactorSizes:
    """Return the sizes of a factor, for equations with it."""
    runs = int(np.diff(B.run_begin).max(initial=0))
    return sizes_of_branches(B.plan.size[: B.plan.branches], 0, runs)._replace(columns=B.size)


def row_factor_work(blocks: int, sizes: FactorSizes) -> RowFactorWork:
    """Return workspace for `blocks` blocks; the system provides memory as it is used."""
    at, group, members, begin, rows, width, first, second = np.zeros((8, blocks), np.int64)
    member_begin, run_begin = np.zeros((2, blocks + 1), np.int64)
    branch, column = np.empty((2, blocks * sizes.runs), np.int64)
    numbers = (MOST_ROWS * (blocks + 1) + 1) * sizes.width + sizes.numbers + MOST_ROWS * (MOST_ROWS + 3)
    numbers += sizes.columns + LANES * sizes.branches + blocks * MOST_ROWS * MOST_ROWS  # of `rigid.gauss_seidel`
    return RowFactorWork(
        aligned_numbers(numbers), np.empty(blocks * 3 * MOST_ROWS), at, group, members, member_begin, begin, rows, width,
        run_begin, branch, column, plan_work(sizes.branches), first, second,
    )  # fmt: skip


def factor_in(work: RowFactorWork, blocks: int, groups: int, size: int, plan: EliminationPlan) -> RowFactor:
    """Return the factor whose numbers and groups are written; this also writes `members`."""
    member_begin, members, group = work.member_begin, work.members, work.group
    sort_by_numbers(group[:blocks], groups, member_begin, members)
    return RowFactor(
        size, work.values, work.ends, work.at[:blocks], group[:blocks], members[:blocks], member_begin[: groups + 1],
        work.begin[:groups], work.rows[:groups], work.width[:groups], work.run_begin[: groups + 1], work.branch, work.column,
        plan,
    )  # fmt: skip


def sort_by_numbers(numbers: Integers, count: int, begin: Integers, order: Integers) -> None:
    """Write the positions of each of `count` numbers, in ascending order, and their starts; negative numbers are ignored."""
    for i in range(count + 1):
        begin[i] = 0
    for x in range(len(numbers)):
        if numbers[x] >= 0:
            begin[numbers[x] + 1] += 1
    for i in range(count):
        begin[i + 1] += begin[i]
    for x in range(len(numbers)):
        if numbers[x] >= 0:
            order[begin[numbers[x]]] = x
            begin[numbers[x]] += 1
    for i in range(count, 0, -1):
        begin[i] = begin[i - 1]
    begin[0] = 0


def planned_factor(work: RowFactorWork, blocks: int, groups: int, size: int, branches: int, numbers: int) -> RowFactor:
    """Return the factor of groups in `branches` branches, with the plan of its equations after the `numbers` of Y."""
    clear_couplings(branches, work.plan)
    for g in range(groups):
        for x in range(work.run_begin[g], work.run_begin[g + 1]):
            for y in range(work.run_begin[g], x):
                couple(branches, work.branch[x], work.branch[y], work.plan)
    return factor_in(work, blocks, groups, size, planned(branches, numbers, work.plan))


def begin_one_branch(groups: int, rank: int, work: RowFactorWork) -> None:
    """Write groups with entries in all columns."""
    for g in range(groups):
        work.width[g], work.run_begin[g], work.branch[g], work.column[g] = padded(rank), g, 0, 0
    work.run_begin[groups] = groups
    work.plan.first[0], work.plan.size[0] = 0, rank


def factor_of_matrix(k: int, n: int, rank: int, values: Vector, work: RowFactorWork) -> RowFactor:
    """Return the factor of k contacts and n rows from rows of `padded(rank)` values."""
    groups, width, left = 0, padded(rank), 0
    for c in range(k + n):
        lines = 3 if c < k else 1
        if c == k or left < lines:
            work.begin[groups], work.rows[groups] = (3 * c if c <= k else 2 * k + c) * width, 0
            left = MOST_ROWS
            groups += 1
        work.group[c], work.at[c] = groups - 1, -1 - work.rows[groups - 1]
        work.rows[groups - 1] += lines
        left -= lines
    for i in range((3 * k + n) * width):
        work.values[i] = values[i]
    begin_one_branch(groups, rank, work)
    return planned_factor(work, k + n, groups, rank, 1, (3 * k + n) * width)


def rows_of_factor(B: RowFactor, k: int, rows: Integers, work: RowFactorWork) -> RowFactor:
    """Return some rows of the factor of k contacts and further rows, each as a block."""
    for i in range(len(rows)):
        r = rows[i]
        c, l = (r // 3, r % 3) if r < 3 * k else (r - 2 * k, 0)
        work.group[i] = B.group[c]
        work.at[i] = B.at[c] + l * B.rows[B.group[c]] if B.at[c] >= 0 else B.at[c] - l
    return blocks_of_factor(B, len(rows), work)


def blocks_of_factor(B: RowFactor, blocks: int, work: RowFactorWork) -> RowFactor:
    """Return the factor of blocks whose groups and places in B are written, of as many blocks as B has groups."""
    part = factor_in(work, blocks, len(B.width), B.size, B.plan)
    return part._replace(
        values=B.values, ends=B.ends, begin=B.begin, rows=B.rows, width=B.width, run_begin=B.run_begin, branch=B.branch,
        column=B.column,
    )  # fmt: skip


def no_factor(work: RowFactorWork) -> RowFactor:
    """Return a factor without rows."""
    return factor_in(work, 0, 0, 0, planned(0, 0, work.plan))


NO_BRANCHES = FactorSizes(0, 0, 0, 0, 0, 0)
NONE = np.zeros(0, np.int64)
NO_ROWS = RowFactor(
    0, np.zeros(0), np.zeros(0), NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
    EliminationPlan(0, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 0, 0),
)  # fmt: skip


# ---- products


def write_transposed_product(B: RowFactor, k: int, f: Vector, w: Vector) -> None:
    """Write Bᵀ f for k contacts and further rows."""
    for j in range(B.size):
        w[j] = 0.0
    for g in range(len(B.width)):
        if add_ends(B, g, k, f):
            add_group(B, g, w)


def add_ends(B: RowFactor, g: int, k: int, f: Vector) -> bool:
    """Write -Eᵀ f of a group to the workspace for products; return whether any f is nonzero."""
    values, ends, scratch, rows = B.values, B.ends, B.scratch, B.rows[g]
    there = False
    for r in range(rows):
        values[scratch + r] = 0.0
    for x in range(B.member_begin[g], B.member_begin[g + 1]):
        c = B.members[x]
        at, row, lines = B.at[c], 3 * c if c < k else 2 * k + c, 3 if c < k else 1
        if at >= 0 and lines == 3:
            a, b, d = f[row], f[row + 1], f[row + 2]
            if a != 0.0 or b != 0.0 or d != 0.0:
                there = True
                for r in range(rows):
                    values[scratch + r] -= a * ends[at + r] + b * ends[at + rows + r] + d * ends[at + 2 * rows + r]
            continue
        for l in range(lines):
            factor = f[row + l]
            if factor != 0.0:
                there = True
                if at < 0:
                    values[scratch - 1 - at + l] = -factor
                else:
                    for r in range(rows):
                        values[scratch + r] -= factor * ends[at + r]
    return there


def add_group(B: RowFactor, g: int, w: Vector) -> None:
    """Add the products of Y with the result of `add_ends`."""
    values, plan, width, scratch = B.values, B.plan, B.width[g], B.scratch
    local = scratch + MOST_ROWS
    for j in range(width):
        values[local + j] = 0.0
    subtract_rows(values, local, B.begin[g], width, width, (scratch, 1, B.rows[g]))
    for x in range(B.run_begin[g], B.run_begin[g + 1]):
        a, column = B.branch[x], local + B.column[x]
        first = plan.first[a]
        for j in range(plan.size[a]):
            w[first + j] += values[column + j]


def write_product_of_factor(B: RowFactor, k: int, w: Vector, product: Vector) -> None:
    """Write B w for k contacts and further rows."""
    for g in range(len(B.width)):
        if B.member_begin[g] == B.member_begin[g + 1]:
            continue
        write_velocities(B, g, w)
        for x in range(B.member_begin[g], B.member_begin[g + 1]):
            c = B.members[x]
            for l in range(3 if c < k else 1):
                product[3 * c + l if c < k else 2 * k + c] = velocity_of(B, g, c, l)


def velocity_of(B: RowFactor, g: int, c: int, l: int) -> float:
    """Return a row of E y of a block of group g, for the y of `write_velocities`."""
    at, scratch, rows = B.at[c], B.scratch, B.rows[g]
    if at < 0:
        return B.values[scratch - 1 - at + l]
    total = 0.0
    for r in range(rows):
        total += B.ends[at + l * rows + r] * B.values[scratch + r]
    return total


def write_velocities(B: RowFactor, g: int, w: Vector) -> None:
    """Write Y w of a group to the workspace for products."""
    values, plan, width, scratch = B.values, B.plan, B.width[g], B.scratch
    local = scratch + MOST_ROWS
    for x in range(B.run_begin[g], B.run_begin[g + 1]):
        a, column = B.branch[x], local + B.column[x]
        first, size = plan.first[a], plan.size[a]
        for j in range(size):
            values[column + j] = w[first + j]
        for j in range(size, padded(size)):
            values[column + j] = 0.0
    for r in range(B.rows[g]):
        values[scratch + r] = product_of_row(values, B.begin[g] + r * width, values, local, width)


def write_column(B: RowFactor, c: int, l: int, scratch: Vector, at: int, stride: int) -> None:
    """Write the nonzero entries of one row of a block to a column of Bᵀ that starts at `at`."""
    g, values = B.group[c], B.values
    local = write_kept_columns(B, c, l)
    for x in range(B.run_begin[g], B.run_begin[g + 1]):
        a, column = B.branch[x], local + B.column[x]
        first = at + B.plan.first[a] * stride
        for j in range(B.plan.size[a]):
            scratch[first + j * stride] = values[column + j]


def write_kept_columns(B: RowFactor, c: int, l: int) -> int:
    """Return the position in `values` of one row of a block: in Y, or in the workspace for products, where it is written."""
    g, values, ends, scratch = B.group[c], B.values, B.ends, B.scratch
    at, rows, width = B.at[c], B.rows[g], B.width[g]
    if at < 0:
        return B.begin[g] + (l - 1 - at) * width
    local = scratch + MOST_ROWS
    for r in range(rows):
        values[scratch + r] = -ends[at + l * rows + r]
    for j in range(width):
        values[local + j] = 0.0
    subtract_rows(values, local, B.begin[g], width, width, (scratch, 1, rows))
    return local


def sum_of_squares(B: RowFactor, c: int, l: int) -> float:
    """Return the squared norm of one row of a block."""
    at = write_kept_columns(B, c, l)
    return product_of_row(B.values, at, B.values, at, B.width[B.group[c]])
