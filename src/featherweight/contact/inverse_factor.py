"""The factor B of a contact problem's matrix, A = B Bᵀ, by the inverse mass matrix.

With M⁻¹ = C Cᵀ, C lower triangular (Cholesky's method), and the rows J that contacts see, B = J C. Row i of C has entries for
the degrees of freedom that carry it only, so that B has J's.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..collision.detection import ContactPoints, body_of
from ..engine.loops.array_types import Booleans, Integers, Matrix, Tensor4, Vector
from ..engine.loops.kernels import LANES
from .contact_model import ContactModel
from .elimination import eliminate_symmetric, room_for_equations


class InverseFactors(NamedTuple):
    """J and M⁻¹.

    Trees that share only the ground have degrees of freedom of their own. Rows of J and M⁻¹ have entries for those of their own
    tree only, in the columns from `column` on; columns of other trees are not read, and need not be there.
    """

    J: Matrix  # (m, columns), rows of all bodies that may touch, one body after the other
    Minv: Matrix  # (nv, columns)
    E: Matrix  # (rows, nv), rows of joints, or none
    first: Integers  # (trees + 1,) the degree of freedom at which each tree begins, and their number
    column: Integers  # (trees,)


class InverseWork(NamedTuple):
    """Room for C, and for rows of one contact."""

    C: Matrix  # (nv, widest tree)
    matrix: Vector  # as `elimination` has it
    reciprocal: Vector  # (widest tree,)
    needed: Booleans  # (trees,)
    source: Integers  # (bodies + 1,) the rows of J at which those of each body begin
    rows: Matrix  # (6, widest tree)


def inverse_work(widths: Integers, nv: int, trees: int, widest: int) -> InverseWork:
    """Room for bodies with so many rows, on trees with at most so many degrees of freedom."""
    source = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    return InverseWork(
        np.empty((nv, widest)),
        room_for_equations(widest),
        np.empty(widest),
        np.empty(trees, bool),
        source,
        np.empty((6, widest)),
    )


def write_inverse_factor(
    model: ContactModel, contacts: ContactPoints, active: Integers, factors: InverseFactors, work: InverseWork
) -> None:
    """Write C for the trees that contacts and joint rows move."""
    needed, first = work.needed, factors.first
    for t in range(len(needed)):
        needed[t] = False
    for c in range(len(contacts.gap)):
        for s in range(2):
            body = body_of(contacts, c, s)
            if body >= 0:
                needed[model.tree[body]] = True
    for r in active:
        needed[model.joint_tree[model.rows.joint[r]]] = True
    for t in range(len(needed)):
        if needed[t]:
            write_factor_of_tree(factors.Minv, first[t], first[t + 1] - first[t], factors.column[t], work)


def write_factor_of_tree(Minv: Matrix, first: int, size: int, column: int, work: InverseWork) -> None:
    """Write C of one tree; NaN where M⁻¹ is not positive definite."""
    matrix, reciprocal, C = work.matrix, work.reciprocal, work.C
    stride = (size // LANES + 1) * LANES
    for i in range(size):
        for j in range(size):
            matrix[i * stride + j] = Minv[first + i, column + j]
        for j in range(size, stride):
            matrix[i * stride + j] = 0.0
    definite = eliminate_symmetric(matrix, size, size, reciprocal)
    for j in range(size):
        scale = sqrt(reciprocal[j]) if definite else np.nan
        for i in range(j, size):
            C[first + i, j] = scale * matrix[j * stride + i]
        for i in range(j):
            C[first + i, j] = 0.0


def add_rows_by_inverse(
    rows: Tensor4, c: int, s: int, body: int, model: ContactModel, factors: InverseFactors, work: InverseWork, B: Matrix
) -> None:
    """Add what a contact sees of a body to its three rows of B."""
    J, three, source, width, t = factors.J, work.rows, work.source[body], model.width[body], model.tree[body]
    first, column = factors.first[t], factors.column[t]
    size = factors.first[t + 1] - first
    for i in range(3):
        for j in range(size):
            three[i, j] = 0.0
        for row in range(width):
            part = rows[c, s, i, row]
            for j in range(size):
                three[i, j] += part * J[source + row, column + j]
    C = work.C
    for k in range(size):
        x, y, z = three[0, k], three[1, k], three[2, k]
        if x != 0.0 or y != 0.0 or z != 0.0:
            for j in range(k + 1):
                part = C[first + k, j]
                B[0, first + j] += x * part
                B[1, first + j] += y * part
                B[2, first + j] += z * part


def write_body_row_by_inverse(
    body: int, i: int, model: ContactModel, factors: InverseFactors, work: InverseWork, row: Vector
) -> None:
    """Write J C for one of the rows of a body."""
    t = model.tree[body]
    write_row_times_factor(factors.J[work.source[body] + i], factors.column[t], 1.0, factors, (t, work.C), row)


def write_joint_row_by_inverse(
    joint: int, sign: float, model: ContactModel, factors: InverseFactors, work: InverseWork, row: Vector
) -> None:
    """Write a row of B for a joint with a limit or dry friction."""
    t = model.joint_tree[joint]
    write_row_times_factor(factors.E[joint], factors.first[t], sign, factors, (t, work.C), row)


def write_row_times_factor(
    source: Vector, column: int, sign: float, factors: InverseFactors, tree: tuple[int, Matrix], row: Vector
) -> None:
    """Write a row of one tree, whose entries begin at a column of `source`, times C; `tree` is its number and C."""
    t, C = tree
    first = factors.first[t]
    for j in range(len(row)):
        row[j] = 0.0
    for k in range(factors.first[t + 1] - first):
        part = sign * source[column + k]
        if part != 0.0:
            for j in range(k + 1):
                row[first + j] += part * C[first + k, j]
