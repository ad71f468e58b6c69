"""Linear equations (M + P A) x = r of a contact problem, with blocks M and P for each contact and row.

All steps of the solver have this form. Blocks of contacts are 3 x 3; the row of the normal has only its first entry. Rows with
bounds are scalars. There are two ways to solve the equations:

- with the Delassus matrix A, by elimination of the impulses that are not known in advance;
- with A = B Bᵀ + R, if that is cheaper: with L = (M + P R)⁻¹ P, h = (M + P R)⁻¹ r and w = Bᵀ x,

      (1 + Bᵀ L B) w = Bᵀ h        x = h - L B w

  This is a system in velocities, with zeros for velocities that are not coupled (`branch_elimination`). It is symmetric if L
  is, that is, unless a contact slides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from ...array_types import Integers, Matrix, Tensor, Vector
from ...engine.loops.kernels import LANES, aligned_numbers, subtract_product
from ..laws import Problem
from .branch_elimination import clear_matrix, factor_branches, place_of_branch, solve_by_branches
from .branches import padded
from .elimination import numbers_of_equations, solve_partly_symmetric
from .row_factor import (
    MOST_ROWS,
    NO_BRANCHES,
    FactorSizes,
    RowFactor,
    write_product_of_factor,
    write_transposed_product,
)

Inner = TypeVar("Inner")


class BlockEquations(NamedTuple):
    """Equations with at most m unknowns, and their workspace. Blocks of the k contacts come first, then those of rows.

    B has at most n columns.
    """

    M: Tensor  # (m, 3, 3)
    P: Tensor  # (m, 3, 3)
    right: Vector  # (m,) r
    step: Vector  # (m,) x
    moved: Vector  # (m,) B times a vector
    matrix: Vector  # layout of `elimination`
    reciprocal: Vector  # (max(m, n),)
    solution: Vector  # (max(m, n),)
    sums: Vector  # (max(m, padded columns of B),) Bᵀ times a vector
    unknowns: Integers  # (max(m, n),) rows of the unknowns, or of pivots


def block_equations(size: int, factor: FactorSizes = NO_BRANCHES) -> BlockEquations:
    """Return workspace for `size` unknowns, by A or by B, including the case that B is computed from A."""
    most = max(size, factor.columns)
    right, step, moved = np.empty((3, size))
    reciprocal, solution = np.empty((2, most))
    sums = aligned_numbers(max(padded(size), factor.padded, factor.columns))
    blocks = np.empty((2, size, 3, 3))
    matrix, unknowns = aligned_numbers(numbers_of_equations(size)), np.empty(most, np.int64)
    return BlockEquations(blocks[0], blocks[1], right, step, moved, matrix, reciprocal, solution, sums, unknowns)


def write_product(problem: Problem, f: Vector, equations: BlockEquations, product: Vector) -> None:
    """Write A f."""
    if not problem.factored:
        write_symmetric_product(problem.A, f, product)
        return
    k = len(problem.mu)
    write_transposed_product(problem.B, k, f, equations.sums)
    write_product_of_factor(problem.B, k, equations.sums, product)
    for i in range(len(f)):
        product[i] += problem.R[i] * f[i]


def copy_numbers(source: Vector, target: Vector) -> None:
    """Copy as many numbers as the target has."""
    for i in range(len(target)):
        target[i] = source[i]


def write_symmetric_product(A: Matrix, f: Vector, product: Vector) -> None:
    """Write A f for a symmetric matrix by adding multiples of its rows, four at a time after the first ones."""
    m = len(product)
    first = m % 4
    if first == 1:
        for j in range(m):
            product[j] = f[0] * A[0, j]
    elif first == 2:
        for j in range(m):
            product[j] = f[0] * A[0, j] + f[1] * A[1, j]
    elif first == 3:
        for j in range(m):
            product[j] = f[0] * A[0, j] + f[1] * A[1, j] + f[2] * A[2, j]
    else:
        for j in range(m):
            product[j] = 0.0
    for i in range(first, m, 4):
        t, u, v, w = f[i], f[i + 1], f[i + 2], f[i + 3]
        for j in range(m):
            product[j] += t * A[i, j] + u * A[i + 1, j] + v * A[i + 2, j] + w * A[i + 3, j]


def write_step(problem: Problem, equations: BlockEquations) -> None:
    """Solve the equations for x, into `step`; M and P are overwritten if A is given by its factor."""
    if problem.factored:
        write_step_by_factor(problem, equations)
    else:
        write_step_by_matrix(problem.A, len(problem.mu), equations)


def write_change_of_step(problem: Problem, equations: BlockEquations, change: Vector) -> None:
    """Write A x for the solution x of `write_step`; with a factor of A, it is already there except for R."""
    if not problem.factored:
        write_symmetric_product(problem.A, equations.step[: len(change)], change)
        return
    for i in range(len(change)):
        change[i] = equations.moved[i] + problem.R[i] * equations.step[i]


# ---- with the matrix


def write_step_by_matrix(A: Matrix, k: int, equations: BlockEquations) -> None:
    """Solve with the matrix A. If P is zero, the step is known; rows in which P is one form a symmetric matrix."""
    unknowns, step = equations.unknowns, equations.step
    size, symmetric = order_unknowns(len(A), k, equations)
    if size == 0:
        return
    write_rows_of_unknowns(A, k, size, symmetric, equations)
    if not solve_partly_symmetric(equations.matrix, size, symmetric, equations.reciprocal, equations.solution):
        write_rows_of_unknowns(A, k, size, 0, equations)
        solve_partly_symmetric(equations.matrix, size, 0, equations.reciprocal, equations.solution)
    for x in range(size):
        step[unknowns[x]] = equations.solution[x]


def order_unknowns(m: int, k: int, equations: BlockEquations) -> tuple[int, int]:
    """Write the unknown steps, first those in whose rows P is one; return the number of all, and of the first ones.

    Known steps are written as well.
    """
    P, M, unknowns, step = equations.P, equations.M, equations.unknowns, equations.step
    last = size = 0
    for i in range(m):
        c, l = place_of(i, k)
        first, second, third = P[c, l, 0], P[c, l, 1], P[c, l, 2]
        step[i] = 0.0
        if P[c, l, l] == 1.0 and abs(first) + abs(second) + abs(third) == 1.0:
            unknowns[size] = i
            size += 1
        elif first == 0.0 and second == 0.0 and third == 0.0:
            step[i] = equations.right[i] / M[c, l, l]
        else:
            last += 1
            unknowns[m - last] = i
    for x in range(last):  # they are at the end, in reverse order
        unknowns[size + x] = unknowns[m - last + x]
    return size + last, size


def place_of(i: int, k: int) -> tuple[int, int]:
    """Return the block that contains row i, and the index of the row in the block."""
    return (i // 3, i % 3) if i < 3 * k else (i - 2 * k, 0)


def write_rows_of_unknowns(A: Matrix, contacts: int, size: int, symmetric: int, equations: BlockEquations) -> None:
    """Write (M + P A) x = r for the unknown steps; for the first `symmetric` rows, only the upper half."""
    matrix, unknowns, M, P, step = equations.matrix, equations.unknowns, equations.M, equations.P, equations.step
    m, stride, known = len(A), (size // LANES + 1) * LANES, equations.solution  # `known` is A times the known steps
    moves = False
    for i in range(m):
        known[i] = 0.0
        moves |= step[i] != 0.0
    if moves:
        write_symmetric_product(A, step[:m], known[:m])
    for x in range(size):
        row, at = unknowns[x], x * stride
        c, i = place_of(row, contacts)
        first, width = (row - i, 3) if row < 3 * contacts else (row, 1)
        right = equations.right[row]
        if x < symmetric:
            for y in range(x // LANES * LANES, x):
                matrix[at + y] = 0.0
            for y in range(x, size):
                matrix[at + y] = A[row, unknowns[y]]
            matrix[at + x] += M[c, i, i]
            right -= known[row]
        elif width == 3:
            k, l, n = P[c, i, 0], P[c, i, 1], P[c, i, 2]
            for y in range(size):
                u = unknowns[y]
                matrix[at + y] = k * A[first, u] + l * A[first + 1, u] + n * A[first + 2, u]
                if first <= u < first + 3:
                    matrix[at + y] += M[c, i, u - first]
            right -= k * known[first] + l * known[first + 1] + n * known[first + 2]
        else:
            part = P[c, 0, 0]
            for y in range(size):
                matrix[at + y] = part * A[row, unknowns[y]] + (M[c, 0, 0] if unknowns[y] == row else 0.0)
            right -= part * known[row]
        matrix[at + size] = right
        for y in range(size + 1, stride):
            matrix[at + y] = 0.0


# ---- with the factor


def write_step_by_factor(problem: Problem, equations: BlockEquations) -> None:
    """Solve with the factor B of A."""
    B, w = problem.B, equations.solution
    symmetric = write_responses(problem, equations)
    write_system_of_velocities(problem, symmetric, equations)
    factor_system(B, symmetric, equations)
    write_transposed_product(B, len(problem.mu), equations.step, w)
    solve_system(B, w, equations)
    subtract_responses(problem, w, equations)


def factor_system(B: RowFactor, symmetric: bool, equations: BlockEquations) -> None:
    """Replace the system of velocities by its factors."""
    factor_branches(B.values, B.plan, symmetric, equations.unknowns, equations.reciprocal)


def solve_system(B: RowFactor, w: Vector, equations: BlockEquations) -> None:
    """Solve for a right-hand side w, in place, by the factors of `factor_system`."""
    solve_by_branches(B.values, B.plan, equations.unknowns, equations.reciprocal, w, equations.sums)


def write_responses(problem: Problem, equations: BlockEquations) -> bool:
    """Write L in place of P, and h to `step`; return whether all L are symmetric."""
    M, P, r, h, R = equations.M, equations.P, equations.right, equations.step, problem.R
    k, m = len(problem.mu), len(problem.b)
    symmetric = True
    for c in range(k):
        i = 3 * c
        for a in range(3):
            for b in range(3):
                M[c, a, b] += P[c, a, b] * R[i + b]
        write_inverse(M[c])
        h[i], h[i + 1], h[i + 2] = times(M[c], (r[i], r[i + 1], r[i + 2]))
        for b in range(3):
            first, second, third = times(M[c], (P[c, 0, b], P[c, 1, b], P[c, 2, b]))
            P[c, 0, b], P[c, 1, b], P[c, 2, b] = first, second, third
        symmetric = symmetric and P[c, 1, 0] == P[c, 0, 1] and P[c, 2, 0] == P[c, 0, 2] and P[c, 1, 2] == P[c, 2, 1]
    for i in range(3 * k, m):
        c = i - 2 * k
        normal = 1.0 / (M[c, 0, 0] + P[c, 0, 0] * R[i])
        P[c, 0, 0] *= normal
        h[i] = r[i] * normal
    return symmetric


def write_inverse(M: Matrix) -> None:
    """Invert a matrix (3, 3) in place; its scale does not matter."""
    unit = 1.0 / max(abs(M[0, 0]), abs(M[1, 1]), abs(M[2, 2]))
    a, b, c = unit * M[0, 0], unit * M[0, 1], unit * M[0, 2]
    d, e, f = unit * M[1, 0], unit * M[1, 1], unit * M[1, 2]
    g, h, i = unit * M[2, 0], unit * M[2, 1], unit * M[2, 2]
    x, y, z = e * i - f * h, f * g - d * i, d * h - e * g
    scale = unit / (a * x + b * y + c * z)
    M[0, 0], M[0, 1], M[0, 2] = scale * x, scale * (c * h - b * i), scale * (b * f - c * e)
    M[1, 0], M[1, 1], M[1, 2] = scale * y, scale * (a * i - c * g), scale * (c * d - a * f)
    M[2, 0], M[2, 1], M[2, 2] = scale * z, scale * (b * g - a * h), scale * (a * e - b * d)


def times(M: Matrix, x: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return a matrix (3, 3) times a vector."""
    return (
        M[0, 0] * x[0] + M[0, 1] * x[1] + M[0, 2] * x[2],
        M[1, 0] * x[0] + M[1, 1] * x[1] + M[1, 2] * x[2],
        M[2, 0] * x[0] + M[2, 1] * x[1] + M[2, 2] * x[2],
    )


def write_system_of_velocities(problem: Problem, symmetric: bool, equations: BlockEquations) -> None:
    """Write 1 + Bᵀ L B; for a symmetric matrix, only the upper half."""
    write_system(problem.B, write_inner, InnerBlocks(problem.B, len(problem.mu), equations.P), symmetric)


class InnerBlocks(NamedTuple):
    """B of k contacts and further rows, and the L of its blocks."""

    B: RowFactor
    k: int
    L: Tensor


def write_system(B: RowFactor, write_inner: Callable[[Inner, int], bool], inner: Inner, symmetric: bool) -> None:
    """Write 1 + Bᵀ L B.

    `write_inner` writes Eᵀ L E of a group to the workspace for products, and returns whether any L is nonzero.
    """
    values, plan = B.values, B.plan
    clear_matrix(values, plan, symmetric)
    panel = B.scratch + MOST_ROWS * MOST_ROWS  # -Eᵀ L E Y
    for g in range(len(B.width)):
        rows, width, begin = B.rows[g], B.width[g], B.begin[g]
        if not write_inner(inner, g):
            continue
        subtract_product(values, (panel, width), (begin, width), (B.scratch, rows, 1), (rows, width, rows), True)
        for x in range(B.run_begin[g], B.run_begin[g + 1]):
            add_rows_of_branch(B, g, x, panel, symmetric)


def add_rows_of_branch(B: RowFactor, g: int, x: int, panel: int, symmetric: bool) -> None:
    """Add Yᵀ Eᵀ L E Y of a group to the rows of one of its branches; -Eᵀ L E Y is in the panel."""
    values, plan, rows, width, begin = B.values, B.plan, B.rows[g], B.width[g], B.begin[g]
    a, own, stop = B.branch[x], begin + B.column[x], B.run_begin[g + 1]
    stride, y = plan.stride[a], B.run_begin[g]
    while y < stop:  # branches that are adjacent in both form one run
        b = B.branch[y]
        if plan.position[b] < plan.position[a]:
            y += 1
            continue
        place, column, length = place_of_branch(plan, a, b), B.column[y], padded(plan.size[b])
        y += 1
        while (
            y < stop
            and plan.position[B.branch[y]] > plan.position[a]
            and place_of_branch(plan, a, B.branch[y]) == place + length
        ):
            length += padded(plan.size[B.branch[y]])
            y += 1
        upper_alone = padded(plan.size[a]) if place == 0 else 0
        for r in range(0, plan.size[a], LANES):  # symmetric blocks leave out vectors below the diagonal
            skipped = r if symmetric and place == 0 else 0
            row, source = plan.offset[a] + r * stride + place + skipped, panel + column + skipped
            sizes = min(LANES, plan.size[a] - r), length - skipped, rows
            subtract_product(values, (row, stride), (source, width), (own + r, 1, width), sizes)
        if not symmetric and length > upper_alone:
            row, source = plan.numbers + plan.offset[a] + place + upper_alone, begin + column + upper_alone
            factors = panel + B.column[x], 1, width
            subtract_product(values, (row, stride), (source, width), factors, (plan.size[a], length - upper_alone, rows))


def write_inner(blocks: InnerBlocks, g: int) -> bool:
    """Write Eᵀ L E of a group to the workspace for products; return whether any L is nonzero."""
    B, k, L, there = blocks.B, blocks.k, blocks.L, False
    clear_inner(B, g)
    for x in range(B.member_begin[g], B.member_begin[g + 1]):
        c = B.members[x]
        if (c < k and not is_open(L[c])) or (c >= k and L[c, 0, 0] != 0.0):
            there = True
            add_inner(B, g, c, 3 if c < k else 1, L[c])
    return there


def clear_inner(B: RowFactor, g: int) -> None:
    """Set the workspace for Eᵀ L E of a group to zero."""
    for r in range(B.rows[g] * B.rows[g]):
        B.values[B.scratch + r] = 0.0


def add_inner(B: RowFactor, g: int, c: int, lines: int, L: Matrix) -> None:
    """Add Eᵀ L E of a block with one or three rows."""
    values, scratch, rows, at = B.values, B.scratch, B.rows[g], B.at[c]
    if at < 0:
        corner = scratch - (1 + at) * (rows + 1)
        for i in range(lines):
            for j in range(lines):
                values[corner + i * rows + j] += L[i, j]
    elif lines == 3:
        add_inner_of_contact(B, at, rows, L)
    else:
        for i in range(rows):
            for j in range(rows):
                values[scratch + i * rows + j] += B.ends[at + i] * L[0, 0] * B.ends[at + j]


def is_open(L: Matrix) -> bool:
    """Return whether the impulses of a contact do not change."""
    total = 0.0
    for i in range(3):
        total += abs(L[i, 0]) + abs(L[i, 1]) + abs(L[i, 2])
    return total == 0.0


def add_inner_of_contact(B: RowFactor, at: int, rows: int, L: Matrix) -> None:
    """Add Eᵀ L E of a contact."""
    values, ends, scratch = B.values, B.ends, B.scratch
    for j in range(rows):
        x, y, z = ends[at + j], ends[at + rows + j], ends[at + 2 * rows + j]
        first, second, third = times(L, (x, y, z))
        for i in range(rows):
            values[scratch + i * rows + j] += (
                ends[at + i] * first + ends[at + rows + i] * second + ends[at + 2 * rows + i] * third
            )


def subtract_responses(problem: Problem, w: Vector, equations: BlockEquations) -> None:
    """Write x = h - L B w in place of h."""
    L, x, moved = equations.P, equations.step, equations.moved
    k, m = len(problem.mu), len(problem.b)
    write_product_of_factor(problem.B, k, w, moved)
    for c in range(k):
        i = 3 * c
        first, second, third = times(L[c], (moved[i], moved[i + 1], moved[i + 2]))
        x[i] -= first
        x[i + 1] -= second
        x[i + 2] -= third
    for i in range(3 * k, m):
        x[i] -= L[i - 2 * k, 0, 0] * moved[i]
