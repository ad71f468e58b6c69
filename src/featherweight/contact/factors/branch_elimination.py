"""Elimination of unknowns that form branches, few of which are coupled.

The matrix has entries only between branches that some group of rows couples, and where elimination fills in. Branches are
eliminated in minimum-degree order: the next branch is the one with the fewest unknowns in itself and the branches currently
coupled with it. The leaves of a robot come before its trunk, without fill-in, and bodies of a pile from the outside in. Each
branch has

    upper   its own rows of the matrix, with columns of itself and of the later branches coupled with it
    lower   the entries of those branches in its columns, transposed, in the same layout; not read for a symmetric matrix

Columns of a branch start at multiples of `LANES`, so that rows are added in whole vectors. Pivots are chosen within a branch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Booleans, Integers, Vector
from ...engine.loops.kernels import LANES, subtract_multiples, subtract_product, sum_of_products
from .branches import padded

BLOCK = 8  # rows at a time


class EliminationPlan(NamedTuple):
    """The order of elimination, and the positions of all numbers."""

    branches: int  # number of branches
    first: Integers  # (branches,) first unknown of each branch
    size: Integers  # (branches,) number of unknowns
    order: Integers  # (branches,) branches in the order of elimination
    position: Integers  # (branches,) position of each branch in that order
    begin: Integers  # (branches + 1,) start of each branch's coupled branches in `later`
    later: Integers  # branches in the order of elimination
    place: Integers  # start column of each entry of `later` in the rows of the branch
    stride: Integers  # (branches,) number of columns of the rows of each branch
    offset: Integers  # (branches,) start of its rows in the matrix
    end: int  # start of the lower part in the matrix, which has as many `numbers` as the upper part
    numbers: int


class PlanWork(NamedTuple):
    """Workspace for plans of at most n branches."""

    first: Integers  # (n,)
    size: Integers
    order: Integers
    position: Integers
    begin: Integers  # (n + 1,)
    later: Integers  # (n (n - 1) / 2,)
    place: Integers
    stride: Integers
    offset: Integers
    degree: Integers  # (n,) number of unknowns of each branch and its coupled branches
    coupled: Booleans  # (n n,)


def plan_work(branches: int) -> PlanWork:
    """Return workspace for `branches` branches; the system provides memory as it is used."""
    n, pairs = branches, branches * (branches + 1) // 2
    first, size, order, position, stride, offset, degree = np.empty((7, n), np.int64)
    later, place = np.empty((2, pairs), np.int64)
    begin, coupled = np.empty(n + 1, np.int64), np.empty(n * n, bool)
    return PlanWork(first, size, order, position, begin, later, place, stride, offset, degree, coupled)


def numbers_of(sizes: Integers) -> int:
    """Return an upper bound of the count of numbers in the upper and lower parts, for branches of these sizes."""
    return 2 * int(sizes.sum()) * int(sum(padded(int(n)) for n in sizes))


def clear_couplings(count: int, work: PlanWork) -> None:
    """Remove all couplings."""
    for i in range(count * count):
        work.coupled[i] = False


def couple(count: int, a: int, b: int, work: PlanWork) -> None:
    """Register that rows have entries for both branches."""
    work.coupled[a * count + b] = work.coupled[b * count + a] = True


def planned(count: int, start: int, work: PlanWork) -> EliminationPlan:
    """Return the plan for branches with written sizes and couplings; numbers start at `start`."""
    size, degree, position, coupled = work.size, work.degree, work.position, work.coupled
    for a in range(count):
        position[a], degree[a] = -1, size[a]
        for b in range(count):
            if b != a and coupled[a * count + b]:
                degree[a] += size[b]
    written = 0
    for a in range(count):
        work.order[a] = a  # those that are left come after the chosen ones, in ascending order
    for turn in range(count):
        place = turn
        for x in range(turn + 1, count):
            if degree[work.order[x]] <= degree[work.order[place]]:
                place = x
        chosen = work.order[place]
        for x in range(place, turn, -1):
            work.order[x] = work.order[x - 1]
        position[chosen], work.order[turn], work.begin[turn] = turn, chosen, written
        for x in range(turn + 1, count):
            a = work.order[x]
            if coupled[chosen * count + a]:
                work.later[written] = a
                written += 1
                degree[a] -= size[chosen]
        for x in range(work.begin[turn], written):
            for y in range(work.begin[turn], x):
                fill_in(count, work.later[x], work.later[y], work)
    work.begin[count] = written
    end = start
    for turn in range(count):
        a = work.order[turn]
        sort_later(work.begin[turn], work.begin[turn + 1], work)
        column = padded(size[a])
        for x in range(work.begin[turn], work.begin[turn + 1]):
            work.place[x] = column
            column += padded(size[work.later[x]])
        work.stride[a], work.offset[a] = column, end
        end += size[a] * column
    return EliminationPlan(
        count, work.first, size, work.order, position, work.begin, work.later, work.place, work.stride, work.offset, end,
        end - start,
    )  # fmt: skip


def fill_in(count: int, a: int, b: int, work: PlanWork) -> None:
    """Couple two branches that were both coupled with an eliminated one."""
    if not work.coupled[a * count + b]:
        couple(count, a, b, work)
        work.degree[a] += work.size[b]
        work.degree[b] += work.size[a]


def sort_later(begin: int, stop: int, work: PlanWork) -> None:
    """Sort branches by their positions (insertion sort)."""
    later, position = work.later, work.position
    for x in range(begin + 1, stop):
        a, y = later[x], x
        while y > begin and position[later[y - 1]] > position[a]:
            later[y] = later[y - 1]
            y -= 1
        later[y] = a


def place_of_branch(plan: EliminationPlan, a: int, b: int) -> int:
    """Return the start column of branch b in the rows of a, which precedes it or is the same."""
    if a == b:
        return 0
    x = plan.begin[plan.position[a]]
    while plan.later[x] != b:
        x += 1
    return plan.place[x]


def multiplications(plan: EliminationPlan) -> int:
    """Return the approximate number of multiplications of an elimination, including the zeros that pad vectors."""
    total = 0
    for a in range(plan.branches):
        total += plan.size[a] * plan.stride[a] * plan.stride[a]
    return total


# ---- numbers


def subtract_rows(matrix: Vector, target: int, source: int, stride: int, length: int, factors: tuple[int, int, int]) -> None:
    """Subtract multiples of rows.

    `factors` are the position of the first factor in the matrix, their distance and their count.
    """
    at, step, count = factors
    done = 0
    while count - done >= BLOCK:
        x = at + done * step
        eight = (
            matrix[x], matrix[x + step], matrix[x + 2 * step], matrix[x + 3 * step],
            matrix[x + 4 * step], matrix[x + 5 * step], matrix[x + 6 * step], matrix[x + 7 * step],
        )  # fmt: skip
        subtract_multiples(matrix, target, source + done * stride, stride, length, eight)
        done += BLOCK
    if count - done == 6:
        x = at + done * step
        six = (
            matrix[x], matrix[x + step], matrix[x + 2 * step], matrix[x + 3 * step], matrix[x + 4 * step], matrix[x + 5 * step]
        )  # fmt: skip
        subtract_multiples(matrix, target, source + done * stride, stride, length, six)
        return
    if count - done >= 4:
        x = at + done * step
        four = matrix[x], matrix[x + step], matrix[x + 2 * step], matrix[x + 3 * step]
        subtract_multiples(matrix, target, source + done * stride, stride, length, four)
        done += 4
    if count - done >= 2:
        x = at + done * step
        subtract_multiples(matrix, target, source + done * stride, stride, length, (matrix[x], matrix[x + step]))
        done += 2
    if count > done:
        subtract_multiples(matrix, target, source + done * stride, stride, length, (matrix[at + done * step],))


def clear_matrix(matrix: Vector, plan: EliminationPlan, symmetric: bool) -> None:
    """Write the identity matrix."""
    for a in range(plan.branches):
        begin, count = plan.offset[a], plan.size[a] * plan.stride[a]
        for i in range(begin, begin + count):
            matrix[i] = 0.0
        if not symmetric:
            for i in range(plan.numbers + begin, plan.numbers + begin + count):
                matrix[i] = 0.0
        for i in range(plan.size[a]):
            matrix[begin + i * plan.stride[a] + i] = 1.0


def factor_branches(matrix: Vector, plan: EliminationPlan, symmetric: bool, pivots: Integers, reciprocal: Vector) -> None:
    """Replace the matrix by its factors; for a symmetric, positive definite one, only the upper half is read.

    `pivots` and `reciprocal` have as many elements as there are unknowns.
    """
    for turn in range(plan.branches):
        a = plan.order[turn]
        at, stride, n, first = plan.offset[a], plan.stride[a], plan.size[a], plan.first[a]
        begin = padded(n)
        if symmetric:
            factor_symmetric_rows(matrix, at, stride, n, first, pivots, reciprocal)
            for p in range(n):
                for j in range(begin, stride):
                    matrix[plan.numbers + at + p * stride + j] = reciprocal[first + p] * matrix[at + p * stride + j]
        else:
            factor_rows(matrix, at, stride, n, first, pivots, reciprocal)
            if begin < stride:
                divide_lower(matrix, at, plan.numbers + at, stride, n, first, reciprocal)
        reduce_later(matrix, plan, a, symmetric)


def factor_symmetric_rows(
    matrix: Vector, at: int, stride: int, n: int, first: int, pivots: Integers, reciprocal: Vector
) -> None:
    """Eliminate the rows of a branch among themselves, without pivots; multipliers are written below the diagonal."""
    for k in range(0, n, BLOCK):
        stop = min(k + BLOCK, n)
        for p in range(k, stop):
            row = at + p * stride
            pivots[first + p], reciprocal[first + p] = p, 1.0 / matrix[row + p]
            for i in range(p + 1, stop):
                factor = matrix[row + i] * reciprocal[first + p]
                if factor != 0.0:
                    subtract_multiples(matrix, at + i * stride + k, row + k, stride, stride - k, (factor,))
        for i in range(k + 1, n):
            for p in range(k, min(i, stop)):
                matrix[at + i * stride + p] = matrix[at + p * stride + i] * reciprocal[first + p]
        for i in range(stop, n):
            begin, row = i // LANES * LANES, at + i * stride
            source, length = at + k * stride + begin, stride - begin
            subtract_rows(matrix, row + begin, source, stride, length, (row + k, 1, BLOCK))


def factor_rows(matrix: Vector, at: int, stride: int, n: int, first: int, pivots: Integers, reciprocal: Vector) -> None:
    """Eliminate the rows of a branch among themselves, with pivots; multipliers are written below the diagonal."""
    for k in range(0, n, BLOCK):
        stop = min(k + BLOCK, n)
        for p in range(k, stop):
            pivot = p
            for i in range(p + 1, n):
                if abs(matrix[at + i * stride + p]) > abs(matrix[at + pivot * stride + p]):
                    pivot = i
            row, other = at + p * stride, at + pivot * stride
            pivots[first + p] = pivot
            if pivot != p:
                for j in range(stride):
                    matrix[row + j], matrix[other + j] = matrix[other + j], matrix[row + j]
            reciprocal[first + p] = 1.0 / matrix[row + p]
            for i in range(p + 1, n):
                below = at + i * stride
                factor = matrix[below + p] * reciprocal[first + p]
                matrix[below + p] = factor
                for j in range(p + 1, stop):
                    matrix[below + j] -= factor * matrix[row + j]
        begin = k + BLOCK
        if begin < stride:
            for i in range(k + 1, n):
                row = at + i * stride
                subtract_rows(
                    matrix, row + begin, at + k * stride + begin, stride, stride - begin, (row + k, 1, min(i, stop) - k)
                )


def divide_lower(matrix: Vector, at: int, lower: int, stride: int, n: int, first: int, reciprocal: Vector) -> None:
    """Replace the lower part of a branch by the multipliers for later rows, transposed."""
    begin = padded(n)
    for p in range(n):
        row = lower + p * stride + begin
        subtract_rows(matrix, row, lower + begin, stride, stride - begin, (at + p, stride, p))
        for j in range(stride - begin):
            matrix[row + j] *= reciprocal[first + p]


def reduce_later(matrix: Vector, plan: EliminationPlan, a: int, symmetric: bool) -> None:
    """Subtract multiples of the rows of a branch from the branches coupled with it."""
    upper, stride, n = plan.offset[a], plan.stride[a], plan.size[a]
    lower = plan.numbers + upper
    begin, stop = plan.begin[plan.position[a]], plan.begin[plan.position[a] + 1]
    for x in range(begin, stop):
        b, column = plan.later[x], plan.place[x]
        target, wide = plan.offset[b], plan.stride[b]
        y, seek = x, plan.begin[plan.position[b]]
        while y < stop:  # branches that are adjacent in both rows form one run
            source, into = plan.place[y], 0
            if y > x:
                while plan.later[seek] != plan.later[y]:
                    seek += 1
                into = plan.place[seek]
            length = padded(plan.size[plan.later[y]])
            y += 1
            ahead = seek if into == 0 else seek + 1
            while y < stop and ahead < plan.begin[plan.position[b] + 1] and plan.later[ahead] == plan.later[y]:
                length += padded(plan.size[plan.later[y]])
                y, ahead = y + 1, ahead + 1
            seek = ahead
            own = padded(plan.size[b]) if into == 0 else 0  # columns that only the upper part has
            factors = lower + column, 1, stride
            subtract_product(matrix, (target + into, wide), (upper + source, stride), factors, (plan.size[b], length, n))
            if not symmetric and length > own:
                row, factors = plan.numbers + target + into + own, (upper + column, 1, stride)
                sizes = plan.size[b], length - own, n
                subtract_product(matrix, (row, wide), (lower + source + own, stride), factors, sizes)


def solve_by_branches(
    matrix: Vector, plan: EliminationPlan, pivots: Integers, reciprocal: Vector, x: Vector, scratch: Vector
) -> None:
    """Solve for a right-hand side x, in place, by the factors of `factor_branches`; `scratch` is workspace like x, padded."""
    for turn in range(plan.branches):
        a = plan.order[turn]
        at, stride, n, first = plan.offset[a], plan.stride[a], plan.size[a], plan.first[a]
        for p in range(n):
            q = pivots[first + p]
            if q != p:
                x[first + p], x[first + q] = x[first + q], x[first + p]
        for p in range(1, n):
            x[first + p] -= product_of_row(matrix, at + p * stride, x, first, p)
        for y in range(plan.begin[turn], plan.begin[turn + 1]):
            b = plan.later[y]
            row, into = plan.numbers + at + plan.place[y], plan.first[b]
            for p in range(n):
                factor = x[first + p]
                for j in range(plan.size[b]):
                    x[into + j] -= factor * matrix[row + p * stride + j]
    for turn in range(plan.branches - 1, -1, -1):
        a = plan.order[turn]
        at, stride, n, first = plan.offset[a], plan.stride[a], plan.size[a], plan.first[a]
        column = padded(n)
        for y in range(plan.begin[turn], plan.begin[turn + 1]):
            b = plan.later[y]
            for j in range(plan.size[b]):
                scratch[column + j] = x[plan.first[b] + j]
            for j in range(plan.size[b], padded(plan.size[b])):
                scratch[column + j] = 0.0
            column += padded(plan.size[b])
        for p in range(n - 1, -1, -1):
            row = at + p * stride
            total = x[first + p] - product_of_row(matrix, row + p + 1, x, first + p + 1, n - p - 1)
            begin = padded(n)
            total -= product_of_row(matrix, row + begin, scratch, begin, stride - begin)
            x[first + p] = total * reciprocal[first + p]


def product_of_row(matrix: Vector, at: int, x: Vector, begin: int, count: int) -> float:
    """Return the product of `count` numbers of the matrix with those of a vector."""
    whole = count // LANES * LANES
    total = sum_of_products(matrix, at, x, begin, whole)
    for j in range(whole, count):
        total += matrix[at + j] * x[begin + j]
    return total
