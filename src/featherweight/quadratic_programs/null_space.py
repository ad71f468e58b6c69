"""Equalities of a quadratic program: x = x_p + Z y, and the Hessian for y (Nocedal and Wright 2006, section 16.2).

Eᵀ = Q R      by reflections; Z are the columns of Q beyond the rank       x_p = Q (R⁻ᵀ e, 0)
Zᵀ (AᵀA + D) Z = U ᵀU         J = Z U⁻¹
"""

from __future__ import annotations

from math import sqrt

from ..engine.loops.kernels import LANES, subtract_product, sum_of_products
from .program import COSTS, EQUALITIES, RANK, QuadraticProgram

DEPENDENT = 1e-10  # length of a row of E outside those before, relative to its own
CONSISTENT = 1e-7  # difference of the right-hand sides of dependent rows, relative to their size
SMALLEST = 1e-14  # pivot of the Hessian


def add_equalities(p: QuadraticProgram, begin: int) -> bool:
    """Reflect the rows of E from `begin` on; return whether dependent rows are consistent."""
    x, consistent = p.numbers, True
    for i in range(begin, p.counts[EQUALITIES]):
        row, rank = p.equalities + i * p.wide, p.counts[RANK]
        size = sqrt(sum_of_products(x, row, x, row, p.wide))
        for k in range(rank):
            reflect(p, p.equalities + k * p.wide, row)
        tail, rest = 0.0, p.right[i]
        for k in range(rank):
            rest -= x[row + k] * p.known[k]
        for k in range(rank, p.n):
            tail += x[row + k] * x[row + k]
        tail = sqrt(tail)
        if tail <= DEPENDENT * size or rank == p.n:
            consistent = consistent and abs(rest) <= CONSISTENT * (1.0 + abs(p.right[i]))
            continue
        end = -tail if x[row + rank] > 0.0 else tail
        p.known[rank] = rest / end
        write_reflection(p, row, rank, end)
        into = p.equalities + rank * p.wide
        if into != row:
            for k in range(p.wide):
                x[into + k] = x[row + k]
        p.counts[RANK] += 1
    return consistent


def write_reflection(p: QuadraticProgram, row: int, first: int, end: float) -> None:
    """Replace a row by the v, of length √2, whose reflection 1 - v vᵀ turns its part from `first` on into (end, 0 ...)."""
    x = p.numbers
    for k in range(first):
        x[row + k] = 0.0
    x[row + first] -= end
    scale = sqrt(2.0 / sum_of_products(x, row, x, row, p.wide))
    for k in range(first, p.n):
        x[row + k] *= scale


def reflect(p: QuadraticProgram, v: int, row: int) -> None:
    """Reflect one row."""
    x = p.numbers
    part = sum_of_products(x, v, x, row, p.wide)
    for k in range(p.n):
        x[row + k] -= part * x[v + k]


def write_null_space(p: QuadraticProgram) -> None:
    """Write the basis Z and the particular solution."""
    x, n, rank = p.numbers, p.n, p.counts[RANK]
    size = n - rank
    long = (size + LANES - 1) // LANES * LANES
    for i in range(n):
        for j in range(p.wide):
            x[p.basis + i * p.wide + j] = 0.0
        x[p.particular + i] = p.known[i] if i < rank else 0.0
        if i >= rank:
            x[p.basis + i * p.wide + i - rank] = 1.0
    for k in range(rank - 1, -1, -1):
        v = p.equalities + k * p.wide
        reflect(p, v, p.particular)
        if size > 0:
            subtract_product(x, (p.work, p.wide), (p.basis, p.wide), (v, 0, 1), (1, long, n), True)
            for j in range(long):
                x[p.work + j] = -x[p.work + j]
            subtract_product(x, (p.basis, p.wide), (p.work, 0), (v, 1, 0), (n, long, 1))


def write_hessian(p: QuadraticProgram) -> None:
    """Write the Cholesky factor of the Hessian for y, and J."""
    x, n, wide, rows = p.numbers, p.n, p.wide, p.counts[COSTS]
    size = n - p.counts[RANK]
    long = (size + LANES - 1) // LANES * LANES
    for i in range(n):
        scale, at = sqrt(p.diagonal[i]), i * wide
        for j in range(long):
            x[p.stacked + at + j] = scale * x[p.basis + at + j]
    subtract_product(x, (p.stacked + n * wide, wide), (p.basis, wide), (p.costs, wide, 1), (rows, long, p.columns), True)
    for i in range(0, size, LANES):
        count = min(LANES, size - i)
        subtract_product(
            x,
            (p.factor + i * wide + i, wide),
            (p.stacked + i, wide),
            (p.stacked + i, 1, wide),
            (count, long - i, n + rows),
            True,
        )
    for i in range(size):
        row, first = p.factor + i * wide, i // LANES * LANES
        for j in range(first, long):
            x[row + j] = -x[row + j]
        if i > 0:
            subtract_product(x, (row + first, wide), (p.factor + first, wide), (p.factor + i, 0, wide), (1, long - first, i))
        p.reciprocal[i] = 1.0 / sqrt(max(x[row + i], SMALLEST))
        for j in range(first, long):
            x[row + j] *= p.reciprocal[i]
    p.squares[0] = 0.0
    for i in range(size):
        row = p.inverse + i * wide
        for k in range(n):
            x[row + k] = x[p.basis + k * wide + i]
        if i > 0:
            subtract_product(x, (row, wide), (p.inverse, wide), (p.factor + i, 0, wide), (1, wide, i))
        for k in range(n):
            x[row + k] *= p.reciprocal[i]
        p.squares[0] += sum_of_products(x, row, x, row, wide)


def write_minimum(p: QuadraticProgram) -> None:
    """Write the minimum under the equalities to x."""
    x, n = p.numbers, p.n
    write_descent(p, p.particular)
    for i in range(n):
        x[p.x + i] = x[p.particular + i]
    for j in range(n - p.counts[RANK]):
        row = p.inverse + j * p.wide
        part = sum_of_products(x, row, x, p.normal, p.wide)
        for k in range(n):
            x[p.x + k] += part * x[row + k]


def write_descent(p: QuadraticProgram, at: int) -> None:
    """Write the negative gradient of the cost at the x at a place to the memory of a normal."""
    x = p.numbers
    for k in range(p.n):
        x[p.normal + k] = p.diagonal[k] * (p.center[k] - x[at + k])
    for r in range(p.counts[COSTS]):
        row = p.costs + r * p.wide
        missing = p.target[r] - sum_of_products(x, row, x, at, p.wide)
        for k in range(p.columns):
            x[p.normal + k] += missing * x[row + k]
