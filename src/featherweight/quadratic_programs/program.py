"""Memory of a dense quadratic program, shared by the kernels of this room.

    minimize     ½ |A x - b|² + ½ Σ d_i (x_i - x̄_i)²
    subject to   E x = e,      lower <= x <= upper,      least <= C x <= most,      |(x_k, x_k+1)| <= μ x_k+2 of each cone

Rows of matrices have the length `wide`, a multiple of `LANES`, in one array of numbers, because products of matrices are
computed there (`engine.loops.views`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Integers, Matrix, Vector
from ..engine.loops.kernels import LANES, aligned_numbers
from ..engine.loops.standalone import Status

SOLVED, INFEASIBLE, INCONSISTENT, ITERATIONS = range(4)  # status; INCONSISTENT: no x satisfies the equalities
BOUND, ROW, CONE = range(3)  # kinds of inequalities


def statuses(infeasible: str, inconsistent: str) -> tuple[Status, ...]:
    """Return the statuses of a controller's program, given what two of them mean for its users."""
    return (
        Status(SOLVED, "SOLVED", "solved"),
        Status(INFEASIBLE, "INFEASIBLE", infeasible),
        Status(INCONSISTENT, "INCONSISTENT", inconsistent),
        Status(ITERATIONS, "TOO_MANY_STEPS", "the quadratic program took too many steps"),
    )


class Sizes(NamedTuple):
    """Capacities: variables, rows of A, those of its columns that are not zero, rows of E and C, and cones."""

    variables: int
    costs: int
    columns: int
    equalities: int
    limits: int
    cones: int


class ActiveSet(NamedTuple):
    """Inequalities n·x >= c that hold with equality, and their multipliers."""

    kind: Integers  # (variables + 1,)
    which: Integers  # number of the variable, the row or the cone
    side: Vector  # 1 for a lower bound, -1 for an upper bound
    cosine: Vector  # direction of the tangent plane of a cone
    sine: Vector
    multiplier: Vector
    size: Integers  # (1,)


class QuadraticProgram(NamedTuple):
    """The data of a program, and the memory of its solver. Matrices are numbers from a place on, with rows of length `wide`."""

    n: int
    wide: int
    columns: int
    numbers: Vector
    costs: int  # place of A
    equalities: int  # place of E, then of the reflections by which Q of Eᵀ = Q R is a product
    limits: int  # place of C
    basis: int  # (n, n - rank) a basis of the vectors with E x = 0
    stacked: int  # rows of the cost in this basis
    factor: int  # its Cholesky factor, then R of the active inequalities
    inverse: int  # Jᵀ (n - rank, n), with J Jᵀ the inverse of the Hessian for E x = 0
    x: int  # (n,)
    particular: int  # (n,)
    normal: int  # (n,) of one inequality
    step: int  # (n,)
    d: int  # (n,) Jᵀ normal
    work: int  # (n,)
    target: Vector  # (rows,) b
    diagonal: Vector  # (n,) d
    center: Vector  # (n,) x̄
    right: Vector  # (equalities,) e
    scale: Vector  # (equalities,) length of the longest row of the same kind, or zero: what is small beside it is zero
    rest: Vector  # (equalities,) e without what earlier rows determine
    length: Vector  # (equalities,) of the rows, or `scale` if it is longer
    outside: Vector  # (equalities,) square of the part of a row outside earlier ones, relative to `length`
    lower: Vector  # (n,)
    upper: Vector  # (n,)
    least: Vector  # (limits,)
    most: Vector  # (limits,)
    friction: Vector  # (cones,) μ of the planes; negative: no cone
    edges: Matrix  # (k, 2) directions of the planes of a pyramid, or (0, 2) for cones
    cone: Integers  # (cones,) first variable of each
    product: Vector  # (limits,) C x
    ratio: Vector  # (n,) rates of the multipliers
    reciprocal: Vector  # (n,)
    known: Vector  # (n,) Qᵀ x of equalities
    squares: Vector  # (1,) the sum of squares of J
    active: ActiveSet
    before: ActiveSet  # where the search begins
    counts: Integers  # see below


RANK, COSTS, EQUALITIES, LIMITS, STEPS, BLOCKING_KIND, BLOCKING_INDEX = range(7)


def active_set(n: int) -> ActiveSet:
    """Return an empty set of at most n inequalities, and one that is tried."""
    kind, which = np.zeros((2, n + 1), np.int64)
    side, cosine, sine, multiplier = np.zeros((4, n + 1))
    return ActiveSet(kind, which, side, cosine, sine, multiplier, np.zeros(1, np.int64))


def quadratic_program(sizes: Sizes, cone: Integers, edges: int = 0) -> QuadraticProgram:
    """Return memory for programs up to these sizes, without limits.

    `cone` has the first variable of each cone. With `edges`, pyramids with so many planes replace cones.
    """
    n = sizes.variables
    wide = -(-n // LANES) * LANES
    heights = (sizes.costs, sizes.equalities, sizes.limits, n, n + sizes.costs, n, n, *[1] * 6)
    turns = 2.0 * np.pi * np.arange(edges)[:, None] / max(edges, 1)
    places = np.cumsum([0, *(h * wide for h in heights)]).tolist()
    matrices, vectors = places[:7], places[7:-1]
    costs, equalities, limits, basis, stacked, factor, inverse = matrices
    x, particular, normal, step, d, work = vectors
    ratio, reciprocal, known = np.zeros((3, n))
    right, scale, rest, length, outside = np.zeros((5, sizes.equalities))
    return QuadraticProgram(
        n, wide, sizes.columns, aligned_numbers(places[-1] + LANES), costs, equalities, limits, basis, stacked, factor, inverse,
        x, particular, normal, step, d, work,
        np.zeros(sizes.costs), np.zeros(n), np.zeros(n),
        right, scale, rest, length, outside, np.full(n, -np.inf), np.full(n, np.inf),
        np.full(sizes.limits, -np.inf), np.full(sizes.limits, np.inf), np.zeros(sizes.cones),
        np.hstack([np.cos(turns), np.sin(turns)]), cone, np.zeros(sizes.limits), ratio, reciprocal, known, np.zeros(1),
        active_set(n), active_set(n), np.zeros(7, np.int64),
    )  # fmt: skip
