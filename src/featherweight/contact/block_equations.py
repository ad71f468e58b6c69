"""Linear equations (M + P A) x = r of a contact problem, with blocks M and P of each contact and row.

All steps of the solver have this form. Blocks of contacts are 3 x 3, and the row of the normal has no other entry than its
first; rows with bounds have one number. There are two ways to solve them:

- with the Delassus matrix A: elimination of as many unknowns as there are impulses that are not known beforehand;
- with A = B Bᵀ + R, where there are more impulses than the rank of A: with L = (M + P R)⁻¹ P, h = (M + P R)⁻¹ r and w = Bᵀ x,

      (1 + Bᵀ L B) w = Bᵀ h        x = h - L B w

  which is a system in velocities. It is symmetric where L is, that is, unless a contact slides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.loops.array_types import Integers, Matrix, Tensor, Vector
from ..engine.loops.kernels import LANES, subtract_multiples
from .elimination import BLOCK, room_for_equations, solve_partly_symmetric
from .laws import Problem


class BlockEquations(NamedTuple):
    """Equations of at most m unknowns, and room to solve them. Blocks of the k contacts come first, then those of rows."""

    M: Tensor  # (m, 3, 3)
    P: Tensor  # (m, 3, 3)
    right: Vector  # (m,) r
    step: Vector  # (m,) x
    matrix: Vector  # as `elimination` has it
    reciprocal: Vector  # (m,)
    solution: Vector  # (m,)
    sums: Vector  # (m,) Bᵀ times a vector
    unknowns: Integers  # (m + BLOCK,) rows of the unknowns


def block_equations(size: int) -> BlockEquations:
    """Room for so many unknowns."""
    right, step, reciprocal, solution, sums = np.empty((5, size))
    blocks = np.empty((2, size, 3, 3))
    unknowns = np.empty(size + BLOCK, np.int64)
    matrix = room_for_equations(size + BLOCK)
    return BlockEquations(blocks[0], blocks[1], right, step, matrix, reciprocal, solution, sums, unknowns)


def write_product(problem: Problem, f: Vector, equations: BlockEquations, product: Vector) -> None:
    """A f."""
    if not problem.factored:
        write_matrix_product(problem.A, f, product)
        return
    rank = problem.B.shape[1]
    sums = equations.sums[:rank]
    write_transposed_product(problem.B, f, sums)
    write_matrix_product(problem.B, sums, product)
    for i in range(len(f)):
        product[i] += problem.R[i] * f[i]


def copy_numbers(source: Vector, target: Vector) -> None:
    """Copy as many numbers as the target has."""
    for i in range(len(target)):
        target[i] = source[i]


def write_transposed_product(B: Matrix, f: Vector, sums: Vector) -> None:
    """Bᵀ f."""
    for j in range(len(sums)):
        sums[j] = 0.0
    for i in range(len(f)):
        if f[i] != 0.0:
            for j in range(len(sums)):
                sums[j] += f[i] * B[i, j]


def write_matrix_product(A: Matrix, f: Vector, product: Vector) -> None:
    """A f, four rows at a time."""
    m, n = len(product), len(f)
    for i in range(0, m - 3, 4):
        t = u = v = w = 0.0
        for j in range(n):
            t += A[i, j] * f[j]
            u += A[i + 1, j] * f[j]
            v += A[i + 2, j] * f[j]
            w += A[i + 3, j] * f[j]
        product[i], product[i + 1], product[i + 2], product[i + 3] = t, u, v, w
    for i in range(m // 4 * 4, m):
        t = 0.0
        for j in range(n):
            t += A[i, j] * f[j]
        product[i] = t


def write_step(problem: Problem, equations: BlockEquations) -> None:
    """Solve the equations for x, into `step`; M and P are overwritten where A is given by its factor."""
    if problem.factored:
        write_step_by_factor(problem, equations)
    else:
        write_step_by_matrix(problem.A, len(problem.mu), equations)


# ---- with the matrix


def write_step_by_matrix(A: Matrix, k: int, equations: BlockEquations) -> None:
    """Solve with the matrix A. Where P is zero the step is known; rows in which P is one make a symmetric matrix."""
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
    """Write which steps have to be solved for, first those in whose rows P is one: how many of all, and how many of these.

    Steps that are known are written.
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
    for x in range(last):  # they were put at the end, the last first
        unknowns[size + x] = unknowns[m - last + x]
    return size + last, size


def place_of(i: int, k: int) -> tuple[int, int]:
    """The block that has row i, and which of its rows."""
    return (i // 3, i % 3) if i < 3 * k else (i - 2 * k, 0)


def write_rows_of_unknowns(A: Matrix, k: int, size: int, symmetric: int, equations: BlockEquations) -> None:
    """(M + P A) x = r for the unknown steps; of the first `symmetric` rows the upper half."""
    matrix, unknowns, M, P, step = equations.matrix, equations.unknowns, equations.M, equations.P, equations.step
    m, stride, known = len(A), (size // LANES + 1) * LANES, equations.solution  # A times the steps that are known
    moves = False
    for i in range(m):
        known[i] = 0.0
        moves |= step[i] != 0.0
    if moves:
        write_matrix_product(A, step[:m], known[:m])
    for x in range(size):
        row, at = unknowns[x], x * stride
        c, i = place_of(row, k)
        first, width = (row - i, 3) if row < 3 * k else (row, 1)
        right = equations.right[row]
        if x < symmetric:
            for y in range(x // LANES * LANES, x):
                matrix[at + y] = 0.0
            for y in range(x, size):
                matrix[at + y] = A[row, unknowns[y]]
            matrix[at + x] += M[c, i, i]
            right -= known[row]
        else:
            for y in range(size):
                matrix[at + y] = 0.0
            for l in range(width):
                part = P[c, i, l]
                if part != 0.0:
                    for y in range(size):
                        matrix[at + y] += part * A[first + l, unknowns[y]]
                    right -= part * known[first + l]
            for y in range(size):
                l = unknowns[y] - first
                if 0 <= l < width:
                    matrix[at + y] += M[c, i, l]
        matrix[at + size] = right
        for y in range(size + 1, stride):
            matrix[at + y] = 0.0


# ---- with the factor


def write_step_by_factor(problem: Problem, equations: BlockEquations) -> None:
    """Solve with the factor B of A."""
    rank = problem.B.shape[1]
    symmetric = write_responses(problem, equations)
    write_system_of_velocities(problem, symmetric, equations)
    solve_partly_symmetric(equations.matrix, rank, rank if symmetric else 0, equations.reciprocal, equations.solution)
    subtract_responses(problem, equations.solution[:rank], equations)


def write_responses(problem: Problem, equations: BlockEquations) -> bool:
    """Write L over P, and h to `step`; whether all L are symmetric."""
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
    """Write the inverse of a matrix (3, 3) over it; its scale does not matter."""
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
    """A matrix (3, 3) times a vector."""
    return (
        M[0, 0] * x[0] + M[0, 1] * x[1] + M[0, 2] * x[2],
        M[1, 0] * x[0] + M[1, 1] * x[1] + M[1, 2] * x[2],
        M[2, 0] * x[0] + M[2, 1] * x[1] + M[2, 2] * x[2],
    )


def write_system_of_velocities(problem: Problem, symmetric: bool, equations: BlockEquations) -> None:
    """Write 1 + Bᵀ L B and Bᵀ h; of a symmetric matrix the upper half. `BLOCK` rows of B are added at a time."""
    B, matrix, L, h, rows = problem.B, equations.matrix, equations.P, equations.step, equations.unknowns
    k, m, size = len(problem.mu), len(problem.b), B.shape[1]
    stride = (size // LANES + 1) * LANES
    for i in range(size):
        for j in range(stride):
            matrix[i * stride + j] = 0.0
        matrix[i * stride + i] = 1.0
    ready, room = 0, size * stride
    for row in range(m):
        c, l = place_of(row, k)
        if not (h[row] != 0.0 or L[c, l, 0] != 0.0 or (row < 3 * k and (L[c, l, 1] != 0.0 or L[c, l, 2] != 0.0))):
            continue
        at = room + ready * stride
        if row >= 3 * k:
            for j in range(size):
                matrix[at + j] = L[c, 0, 0] * B[row, j]
        else:
            n = row - l
            for j in range(size):
                matrix[at + j] = L[c, l, 0] * B[n, j] + L[c, l, 1] * B[n + 1, j] + L[c, l, 2] * B[n + 2, j]
        matrix[at + size] = h[row]
        for j in range(size + 1, stride):
            matrix[at + j] = 0.0
        rows[ready] = row
        ready += 1
        if ready == BLOCK:
            add_rows_of_velocities(B, matrix, stride, symmetric, rows)
            ready = 0
    if ready > 0:
        for x in range(ready, BLOCK):
            rows[x] = 0
            for j in range(stride):
                matrix[room + x * stride + j] = 0.0
        add_rows_of_velocities(B, matrix, stride, symmetric, rows)


def add_rows_of_velocities(B: Matrix, matrix: Vector, stride: int, symmetric: bool, rows: Integers) -> None:
    """Add what `BLOCK` rows of B, times those of L B and h behind the matrix, come to."""
    size = B.shape[1]
    room = size * stride
    a, b, c, d = B[rows[0]], B[rows[1]], B[rows[2]], B[rows[3]]
    e, f, g, h = B[rows[4]], B[rows[5]], B[rows[6]], B[rows[7]]
    for i in range(size):
        begin = i // LANES * LANES if symmetric else 0
        factors = -a[i], -b[i], -c[i], -d[i], -e[i], -f[i], -g[i], -h[i]
        subtract_multiples(matrix, i * stride + begin, room + begin, stride, stride - begin, factors)


def subtract_responses(problem: Problem, w: Vector, equations: BlockEquations) -> None:
    """x = h - L B w, in place of h."""
    L, x, moved = equations.P, equations.step, equations.reciprocal
    k, m = len(problem.mu), len(problem.b)
    write_matrix_product(problem.B, w, moved[:m])
    for c in range(k):
        i = 3 * c
        first, second, third = times(L[c], (moved[i], moved[i + 1], moved[i + 2]))
        x[i] -= first
        x[i + 1] -= second
        x[i + 2] -= third
    for i in range(3 * k, m):
        x[i] -= L[i - 2 * k, 0, 0] * moved[i]
