"""The factor B of a contact problem's matrix A = B Bᵀ + R, by groups of rows.

A *block* are the three rows of a contact, or the one row of a joint. Contacts of two bodies are a group, with rows Y: those of
one or two contacts themselves, or, of more, the six rows of the velocity of one body relative to the other. Then each
contact's rows are combinations E of these, so that what a group comes to is six rows, however many contacts it has:

    B = E Y        Bᵀ L B = Yᵀ (Eᵀ L E) Y

Rows of joints on one branch are a group, too. Y has entries on the paths of the two bodies (`branches`); only columns of those
branches are kept, each branch beginning at a multiple of `LANES`. Numbers of the equations in velocities follow Y in the
same array.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.loops.array_types import Integers, Vector
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

MOST_ROWS = 8  # of Y in a group


class RowFactor(NamedTuple):
    """B, with as many columns as `size`, and how equations in these columns are solved."""

    size: int
    values: Vector  # Y of all groups, the numbers of the plan, and room
    ends: Vector  # E of all blocks
    at: Integers  # (blocks,) where E of each block begins in `ends`; -1 - r if its rows are those of Y from r on
    group: Integers  # (blocks,)
    members: Integers  # (blocks,) blocks by group
    member_begin: Integers  # (groups + 1,)
    begin: Integers  # (groups,) where the rows of Y begin in `values`
    rows: Integers  # (groups,) of Y
    width: Integers  # (groups,) columns that are kept
    run_begin: Integers  # (groups + 1,) where the branches of each group begin in the next two
    branch: Integers  # branches, as the plan numbers them
    column: Integers  # where each begins in a row
    plan: EliminationPlan

    @property
    def room(self) -> int:
        """Where room for products begins in `values`."""
        return self.plan.end + self.plan.numbers


class RowFactorWork(NamedTuple):
    """Room for factors."""

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
    first: Integers  # (blocks,) of each group the body or branch of the one side, -1 of the world
    second: Integers  # (blocks,) and of the other


class FactorSizes(NamedTuple):
    """How large factors may be."""

    columns: int  # of B
    padded: int  # of B, with zeros that fill vectors
    width: int  # columns that are kept of a row at most
    numbers: int  # of equations in velocities
    branches: int
    runs: int  # branches of a group at most


def sizes_of_branches(sizes: Integers, width: int, runs: int) -> FactorSizes:
    """Return the most for branches of these sizes."""
    wide = sum(padded(int(n)) for n in sizes)
    return FactorSizes(int(sizes.sum()), wide, width, numbers_of(sizes), len(sizes), runs)


def sizes_of_one_branch(columns: int) -> FactorSizes:
    """Return the most for rows with entries in all columns."""
    return sizes_of_branches(np.array([columns], np.int64), padded(columns), 1)


def sizes_of(B: RowFactor) -> FactorSizes:
    """Return the sizes of a factor, for equations with it."""
    runs = int(np.diff(B.run_begin).max(initial=0))
    return sizes_of_branches(B.plan.size[: B.plan.branches], 0, runs)._replace(columns=B.size)


def row_factor_work(blocks: int, sizes: FactorSizes) -> RowFactorWork:
    """Room for so many blocks; memory is taken as it is used."""
    at, group, members, begin, rows, width, first, second = np.zeros((8, blocks), np.int64)
    member_begin, run_begin = np.zeros((2, blocks + 1), np.int64)
    branch, column = np.empty((2, blocks * sizes.runs), np.int64)
    numbers = (MOST_ROWS * (blocks + 1) + 1) * sizes.width + sizes.numbers + MOST_ROWS * (MOST_ROWS + 3)
    return RowFactorWork(
        np.empty(numbers), np.empty(blocks * 3 * MOST_ROWS), at, group, members, member_begin, begin, rows, width, run_begin,
        branch, column, plan_work(sizes.branches), first, second,
    )  # fmt: skip


def factor_in(work: RowFactorWork, blocks: int, groups: int, size: int, plan: EliminationPlan) -> RowFactor:
    """Return the factor whose numbers and groups are written; `members` follow here."""
    member_begin, members, group = work.member_begin, work.members, work.group
    sort_by_numbers(group[:blocks], groups, member_begin, members)
    return RowFactor(
        size, work.values, work.ends, work.at[:blocks], group[:blocks], members[:blocks], member_begin[: groups + 1],
        work.begin[:groups], work.rows[:groups], work.width[:groups], work.run_begin[: groups + 1], work.branch, work.column,
        plan,
    )  # fmt: skip


def sort_by_numbers(numbers: Integers, count: int, begin: Integers, order: Integers) -> None:
    """Write the places of each of `count` numbers, in ascending order, and where they begin; negative numbers are left out."""
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
    """Return the factor of groups in so many branches, and the plan of its equations behind the `numbers` of Y."""
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
    """Return the factor of blocks whose groups and places in B are written, in room for as many blocks as B has groups."""
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
    """Bᵀ f, of k contacts and further rows."""
    for j in range(B.size):
        w[j] = 0.0
    for g in range(len(B.width)):
        if add_ends(B, g, k, f):
            add_group(B, g, w)


def add_ends(B: RowFactor, g: int, k: int, f: Vector) -> bool:
    """Write -Eᵀ f of a group to the room for products; whether any f is not zero."""
    values, ends, room, rows = B.values, B.ends, B.room, B.rows[g]
    there = False
    for r in range(rows):
        values[room + r] = 0.0
    for x in range(B.member_begin[g], B.member_begin[g + 1]):
        c = B.members[x]
        at = B.at[c]
        for l in range(3 if c < k else 1):
            factor = f[3 * c + l if c < k else 2 * k + c]
            if factor != 0.0:
                there = True
                if at < 0:
                    values[room - 1 - at + l] = -factor
                else:
                    for r in range(rows):
                        values[room + r] -= factor * ends[at + l * rows + r]
    return there


def add_group(B: RowFactor, g: int, w: Vector) -> None:
    """Add the products of Y with what `add_ends` wrote."""
    values, plan, width, room = B.values, B.plan, B.width[g], B.room
    local = room + MOST_ROWS
    for j in range(width):
        values[local + j] = 0.0
    subtract_rows(values, local, B.begin[g], width, width, (room, 1, B.rows[g]))
    for x in range(B.run_begin[g], B.run_begin[g + 1]):
        a, column = B.branch[x], local + B.column[x]
        first = plan.first[a]
        for j in range(plan.size[a]):
            w[first + j] += values[column + j]


def write_product_of_factor(B: RowFactor, k: int, w: Vector, product: Vector) -> None:
    """B w, of k contacts and further rows."""
    for g in range(len(B.width)):
        if B.member_begin[g] == B.member_begin[g + 1]:
            continue
        write_velocities(B, g, w)
        for x in range(B.member_begin[g], B.member_begin[g + 1]):
            c = B.members[x]
            for l in range(3 if c < k else 1):
                product[3 * c + l if c < k else 2 * k + c] = velocity_of(B, g, c, l)


def velocity_of(B: RowFactor, g: int, c: int, l: int) -> float:
    """Return a row of E y of a block of group g, whose y `write_velocities` wrote."""
    at, room, rows = B.at[c], B.room, B.rows[g]
    if at < 0:
        return B.values[room - 1 - at + l]  # type: ignore[no-any-return]
    total = 0.0
    for r in range(rows):
        total += B.ends[at + l * rows + r] * B.values[room + r]
    return total


def write_velocities(B: RowFactor, g: int, w: Vector) -> None:
    """Write Y w of a group to the room for products."""
    values, plan, width, room = B.values, B.plan, B.width[g], B.room
    local = room + MOST_ROWS
    for x in range(B.run_begin[g], B.run_begin[g + 1]):
        a, column = B.branch[x], local + B.column[x]
        first, size = plan.first[a], plan.size[a]
        for j in range(size):
            values[column + j] = w[first + j]
        for j in range(size, padded(size)):
            values[column + j] = 0.0
    for r in range(B.rows[g]):
        values[room + r] = product_of_row(values, B.begin[g] + r * width, values, local, width)


def write_row(B: RowFactor, c: int, l: int, row: Vector) -> None:
    """Write one row of a block, with all columns."""
    g, values = B.group[c], B.values
    local = write_kept_columns(B, c, l)
    for j in range(B.size):
        row[j] = 0.0
    for x in range(B.run_begin[g], B.run_begin[g + 1]):
        a, column = B.branch[x], local + B.column[x]
        first = B.plan.first[a]
        for j in range(B.plan.size[a]):
            row[first + j] = values[column + j]


def write_kept_columns(B: RowFactor, c: int, l: int) -> int:
    """Return where one row of a block is in `values`: among Y, or in the room for products, where it is written."""
    g, values, ends, room = B.group[c], B.values, B.ends, B.room
    at, rows, width = B.at[c], B.rows[g], B.width[g]
    if at < 0:
        return B.begin[g] + (l - 1 - at) * width  # type: ignore[no-any-return]
    local = room + MOST_ROWS
    for r in range(rows):
        values[room + r] = -ends[at + l * rows + r]
    for j in range(width):
        values[local + j] = 0.0
    subtract_rows(values, local, B.begin[g], width, width, (room, 1, rows))
    return local


def sum_of_squares(B: RowFactor, c: int, l: int) -> float:
    """The square of one row of a block."""
    at = write_kept_columns(B, c, l)
    return product_of_row(B.values, at, B.values, at, B.width[B.group[c]])
