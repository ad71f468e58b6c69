"""Rows of costs and equalities, and strict priorities: what one cost reaches is an equality of the next ones.

(de Lasa, Mordatch and Hertzmann 2010; Escande, Mansard and Wieber 2014)
"""

from __future__ import annotations

from math import sqrt

from ..engine.loops.kernels import sum_of_products
from .program import COSTS, EQUALITIES, LIMITS, RANK, STEPS, QuadraticProgram


def begin_program(p: QuadraticProgram) -> None:
    """Remove all rows."""
    p.counts[RANK], p.counts[COSTS], p.counts[EQUALITIES], p.counts[LIMITS], p.counts[STEPS] = 0, 0, 0, 0, 0


def next_equality(p: QuadraticProgram, right: float) -> int:
    """Return the place of a new row of equalities, which is zero."""
    at = p.equalities + p.counts[EQUALITIES] * p.wide
    write_zeros(p, at)
    p.right[p.counts[EQUALITIES]], p.scale[p.counts[EQUALITIES]] = right, 0.0
    p.counts[EQUALITIES] += 1
    return at


def next_limit(p: QuadraticProgram, least: float, most: float) -> int:
    """Return the place of a new row of limits, which is zero."""
    at = p.limits + p.counts[LIMITS] * p.wide
    write_zeros(p, at)
    p.least[p.counts[LIMITS]], p.most[p.counts[LIMITS]] = least, most
    p.counts[LIMITS] += 1
    return at


def next_cost(p: QuadraticProgram) -> int:
    """Return the place of the next row of A, which is zero; the row counts when its caller has written it."""
    at = p.costs + p.counts[COSTS] * p.wide
    write_zeros(p, at)
    return at


def write_zeros(p: QuadraticProgram, at: int) -> None:
    """Write a row of zeros."""
    for k in range(p.wide):
        p.numbers[at + k] = 0.0


def keep_costs(p: QuadraticProgram) -> None:
    """Make equalities of what the rows of A have reached."""
    x, longest = p.numbers, 0.0
    for r in range(p.counts[COSTS]):
        row = p.costs + r * p.wide
        longest = max(longest, sum_of_products(x, row, x, row, p.wide))
    longest = sqrt(longest)
    for r in range(p.counts[COSTS]):
        row = p.costs + r * p.wide
        at = next_equality(p, sum_of_products(x, row, x, p.x, p.wide))
        p.scale[p.counts[EQUALITIES] - 1] = longest
        for j in range(p.columns):
            x[at + j] = x[row + j]
