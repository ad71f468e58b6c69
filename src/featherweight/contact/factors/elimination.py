"""Linear equations of Newton's method, whose matrix is mostly symmetric.

    [ S  C ] [x]   [r]      S symmetric and positive definite: eliminated without pivots from its upper half alone,
    [ B  D ] [y] = [s]      S = Uᵀ D⁻¹ U; then D - B S⁻¹ C with pivots

Rows are stored `stride` numbers apart (a multiple of `LANES`), with the right-hand side as an additional column. Eight rows are
eliminated at a time: the rest subtracts eight multiples of rows in one pass through memory.
"""

from __future__ import annotations

from ...array_types import Vector
from ...engine.loops.kernels import LANES, subtract_multiples

BLOCK = 8  # rows at a time, as unrolled in `block_factors`


def stride_of(size: int) -> int:
    """Return the distance between rows for `size` unknowns."""
    return (size // LANES + 1) * LANES


def solve_partly_symmetric(matrix: Vector, size: int, symmetric: int, reciprocal: Vector, x: Vector) -> bool:
    """Write the solution x of `size` equations; the matrix is overwritten.

    Entries of the first `symmetric` rows below the diagonal are not read. Returns False if these rows are not positive
    definite. `reciprocal` is workspace of the size of x.
    """
    stride = (size // LANES + 1) * LANES
    if not eliminate_symmetric(matrix, size, symmetric, reciprocal):
        return False
    for k in range(symmetric, size):
        bring_up_pivot(matrix, stride, size, k)
        reciprocal[k] = 1.0 / matrix[k * stride + k]
        for i in range(k + 1, size):
            reduce_by_row(matrix, stride, k, i, matrix[i * stride + k] * reciprocal[k])
    for i in range(size - 1, -1, -1):
        row = i * stride
        total = matrix[row + size]
        for j in range(size - 1, i, -1):  # the last result comes last, so that the processor need not wait for it
            total -= matrix[row + j] * x[j]
        x[i] = total * reciprocal[i]
    return True


def eliminate_symmetric(matrix: Vector, size: int, symmetric: int, reciprocal: Vector) -> bool:
    """Eliminate symmetric rows: S = Uᵀ D⁻¹ U, with U in their upper half, and 1 / D.

    Returns False if S is not positive definite.
    """
    stride = (size // LANES + 1) * LANES
    for k in range(0, symmetric, BLOCK):
        count = min(BLOCK, symmetric - k)
        if not factor_rows(matrix, stride, k, count, reciprocal):
            return False
        if k + count < size:
            if count == BLOCK:
                reduce_by_block(matrix, stride, size, symmetric, k, reciprocal)
            else:
                for i in range(symmetric, size):
                    for p in range(k, k + count):
                        reduce_by_row(matrix, stride, p, i, matrix[i * stride + p] * reciprocal[p])
    return True


def factor_rows(matrix: Vector, stride: int, first: int, count: int, reciprocal: Vector) -> bool:
    """Eliminate some symmetric rows among themselves."""
    for p in range(first, first + count):
        pivot = matrix[p * stride + p]
        if not pivot > 0.0:
            return False
        reciprocal[p] = 1.0 / pivot
        for i in range(p + 1, first + count):
            reduce_by_row(matrix, stride, p, i, matrix[p * stride + i] * reciprocal[p])
    return True


def reduce_by_row(matrix: Vector, stride: int, p: int, i: int, factor: float) -> None:
    """Subtract `factor` times row p from row i, from the diagonal of the upper of them on."""
    if factor != 0.0:
        begin = min(p, i) // LANES * LANES
        subtract_multiples(matrix, i * stride + begin, p * stride + begin, stride, stride - begin, (factor,))


def reduce_by_block(matrix: Vector, stride: int, size: int, symmetric: int, k: int, reciprocal: Vector) -> None:
    """Subtract multiples of a block of symmetric rows from the rows below it."""
    source, r = k * stride, reciprocal
    for i in range(k + BLOCK, symmetric):
        begin, at = i // LANES * LANES, source + i
        factors = (
            matrix[at] * r[k], matrix[at + stride] * r[k + 1], matrix[at + 2 * stride] * r[k + 2],
            matrix[at + 3 * stride] * r[k + 3], matrix[at + 4 * stride] * r[k + 4], matrix[at + 5 * stride] * r[k + 5],
            matrix[at + 6 * stride] * r[k + 6], matrix[at + 7 * stride] * r[k + 7],
        )  # fmt: skip
        subtract_multiples(matrix, i * stride + begin, source + begin, stride, stride - begin, factors)
    for i in range(symmetric, size):
        at = i * stride + k
        for p in range(BLOCK):  # the multipliers, in place: each changes the later ones
            factor = matrix[at + p] * r[k + p]
            matrix[at + p] = factor
            for j in range(p + 1, BLOCK):
                matrix[at + j] -= factor * matrix[source + p * stride + k + j]
        begin = k + BLOCK
        factors = (
            matrix[at], matrix[at + 1], matrix[at + 2], matrix[at + 3], matrix[at + 4], matrix[at + 5], matrix[at + 6],
            matrix[at + 7],
        )  # fmt: skip
        subtract_multiples(matrix, i * stride + begin, source + begin, stride, stride - begin, factors)


def bring_up_pivot(matrix: Vector, stride: int, size: int, k: int) -> None:
    """Swap row k with the row below it that has the greatest entry in column k."""
    pivot = k
    for i in range(k + 1, size):
        if abs(matrix[i * stride + k]) > abs(matrix[pivot * stride + k]):
            pivot = i
    if pivot != k:
        for j in range(k, size + 1):
            a, b = k * stride + j, pivot * stride + j
            matrix[a], matrix[b] = matrix[b], matrix[a]


def numbers_of_equations(size: int) -> int:
    """Return the count of numbers of the matrix with its right-hand side."""
    return size * stride_of(size)
