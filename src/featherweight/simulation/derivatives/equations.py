"""Matrices of derivatives of the acceleration in one vector, and the elimination of the equations for them."""

from __future__ import annotations

from typing import NamedTuple

from ...array_types import Vector
from ...contact.compliant.answers import DIRECTIONS
from ...contact.factors.branches import padded
from ...engine.loops.kernels import LANES, TILE, subtract_multiples, subtract_product

BLOCK = 4  # rows that are eliminated together


class Places(NamedTuple):
    """Places of matrices in one vector, whose rows are processed with vector instructions.

    Results of functions have rows of n numbers. Other rows have `stride` numbers, or `width` with parts for q, v, joint forces,
    and controls with activations, each of `stride` numbers but the last. Numbers after the n-th of a row have no meaning.
    """

    stride: int
    width: int
    solved: int  # numbers of a row of `rates` that are solved for; `write_controls` writes the others
    rates: int  # (stride, width) of the acceleration with impulses; finally, of the velocity after the step
    struck: int  # (n, width) of the acceleration before dampers act, if they act after impulses
    matrix: int  # (stride, stride) matrix to solve with, of which the lower triangle is enough if it is symmetric
    by_q: int  # (n, n) derivatives of inverse dynamics, and the mass matrix
    by_v: int
    mass: int
    by_q_free: int  # (n, n) `by_q` at the acceleration without impulses, if forces are differentiated by differences
    differences: int  # (n, width) of the acceleration without impulses, if forces have no other derivatives
    late: int  # (n, width) of the armature of dampers
    acts: int  # (na, width) of activations and delays after the step
    arms: int  # (joint rows, n) derivatives by q of the velocities of lengths that limits and equalities bound
    pulls: int  # (n, stride) derivatives by q of their joint forces at constant impulses
    drifts: int  # (joint rows, 2 stride) of their accelerations at constant velocity, by q and v
    spread: int  # (rows, n) the map S from velocities to those of all joints, if it is not the identity
    swept: int  # (rows, n) derivative of S v by q
    mapped: int  # (n, n) derivative of Sᵀ f by q, for forces f of rows
    swept_after: int  # (rows, n) `swept` at w
    mapped_after: int  # (n, n) `mapped` for the impulses of limits and dry friction
    jacobian: int  # (bodies that may touch, 6, n) of their velocities
    turned: int  # (bodies, 6, n) derivatives of these velocities by q, at w
    turned_before: int  # (bodies, 6, n) at v
    straight: int  # (12, stride) rows J of the velocities of two bodies, times factors
    felt: int  # (12, 2 stride) derivatives by q and v of the wrenches of contacts on two bodies
    seen: int  # (3, 2 stride) derivatives by q and v of the velocities y of one contact, or of a joint row
    opening: int  # (1, stride) derivative of the gap of a row by q
    gains: int  # (stride, stride) multiples of rows that eliminate the matrix, if contacts are rigid
    kept: int  # (3 rigid contacts + joint rows, stride) J of all rigid contacts, and of joint rows
    moved: int  # (3 rigid contacts + joint rows, width) derivatives of their impulses, then corrections of these
    passing: int  # (3, width) those of one contact, or of its velocities
    change: int  # (stride, width) correction of `rates`
    product: int  # (1, width) of a cotangent and the derivatives
    cotangent: int  # (1, stride) of the acceleration
    column: int  # (stride, LANES) right-hand sides of one equation
    moved_column: int  # (stride, LANES)
    answering: int  # (3 rigid contacts + joint rows,) cotangents of impulses
    size: int  # of the vector


class Sizes(NamedTuple):
    """Numbers that determine the sizes of matrices."""

    n: int
    nu: int
    na: int  # activations and delays
    bodies: int  # that may touch
    mapped_rows: int  # joint rows and lengths, if these have a map S and their forces are linear
    lengths: int  # rows in the contact problem, if forces are differentiated by differences
    contacts: int  # that are rigid
    joint_rows: int
    rigid: bool
    at_joints: bool  # whether the force of each control is at one joint


def places(x: Sizes) -> Places:
    """Return the places of matrices of these sizes."""
    n, na, bodies, rows = x.n, x.na, x.bodies, x.mapped_rows
    stride, differs = padded(n), x.lengths >= 0
    rigid, kept = x.rigid, 3 * x.contacts + x.joint_rows
    width = 3 * stride + padded(x.nu + na + int(rigid))  # with a column for the probe of `rigid_contacts`
    square, whole, moving = n * n, stride * stride, bodies * DIRECTIONS * n
    sizes = {
        "rates": stride * width, "struck": n * width, "matrix": whole, "by_q": square, "by_v": square, "mass": square,
        "by_q_free": square * differs, "jacobian": moving, "turned": moving, "turned_before": moving,
        "straight": 2 * DIRECTIONS * stride, "felt": 4 * DIRECTIONS * stride, "seen": 6 * stride, "opening": stride,
        "gains": whole * rigid, "kept": kept * stride, "moved": kept * width,
        "passing": 3 * width * rigid, "change": stride * width * rigid,
        "product": width, "cotangent": stride, "column": LANES * stride, "moved_column": LANES * stride,
        "answering": kept,
        "spread": rows * n, "swept": rows * n, "mapped": square if rows else 0,
        "swept_after": rows * n, "mapped_after": square * (rows > 0),
        "differences": n * width * differs, "late": n * width * differs, "acts": na * width * differs,
        "arms": x.lengths * n * differs,
        "pulls": n * stride * differs, "drifts": x.lengths * 2 * stride * differs,
    }  # fmt: skip
    at, size = {}, 0
    for name in Places._fields[3:-1]:
        at[name], size = size, size + padded(sizes[name])
    solved = 3 * stride if x.at_joints and not rigid else width
    return Places(stride, width, solved, **at, size=size + LANES)


def add_product(x: Vector, target: int, factors: tuple[int, int], source: tuple[int, int], length: int) -> None:
    """Add the product of a row of factors and rows of a matrix; both are given by their place, and number or distance."""
    (first, count), (rows, stride) = factors, source
    whole = count // BLOCK * BLOCK
    for j in range(0, whole, BLOCK):
        a, b, c, d = x[first + j], x[first + j + 1], x[first + j + 2], x[first + j + 3]
        if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
            subtract_multiples(x, target, rows + j * stride, stride, length, (-a, -b, -c, -d))
    for j in range(whole, count):
        subtract_multiples(x, target, rows + j * stride, stride, length, (-x[first + j],))


def subtract_tiles(
    x: Vector, target: tuple[int, int], source: tuple[int, int], factors: tuple[int, int, int], sizes: tuple[int, int, int]
) -> None:  # fmt: skip
    """Subtract a product of matrices as `subtract_product` does, without the blocks of factors that are zero."""
    (into, stride), (begin, step), (at, across, along), (rows, length, count) = target, source, factors, sizes
    for i in range(0, rows, TILE):
        some = min(TILE, rows - i)
        for k in range(0, count, TILE):
            terms, own = min(TILE, count - k), at + i * across + k * along
            if has_entries(x, (own, across, along), (some, terms)):
                places = (into + i * stride, stride), (begin + k * step, step)
                subtract_product(x, places[0], places[1], (own, across, along), (some, length, terms))


def has_entries(x: Vector, factors: tuple[int, int, int], sizes: tuple[int, int]) -> bool:
    """Return whether some number of a matrix, with the distances to the next row and column, is not zero."""
    (at, across, along), (rows, columns) = factors, sizes
    for i in range(rows):
        for k in range(columns):
            if x[at + i * across + k * along] != 0.0:
                return True
    return False


def factorize(x: Vector, n: int, at: Places) -> None:
    """Replace a symmetric matrix by its factor Lᵀ D L (Featherstone 2008, section 6.5), with the inverse of D on the diagonal.

    Rows are eliminated in blocks of four, from the leaves to the root.
    """
    H, stride = at.matrix, at.stride
    for block in range(n, 0, -BLOCK):
        first = max(block - BLOCK, 0)
        for i in range(block - 1, first - 1, -1):
            row = H + i * stride
            x[row + i] = 1.0 / x[row + i]
            for j in range(first, i):
                subtract_multiples(x, H + j * stride, row, stride, padded(j + 1), (x[row + i] * x[row + j],))
        for j in range(first):  # all blocks below others are whole
            at_row = H + first * stride
            a, b = gain_of(x, at_row, first, j), gain_of(x, at_row + stride, first + 1, j)
            c, d = gain_of(x, at_row + 2 * stride, first + 2, j), gain_of(x, at_row + 3 * stride, first + 3, j)
            if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                subtract_multiples(x, H + j * stride, at_row, stride, padded(j + 1), (a, b, c, d))
    divide_rows(x, n, at)


def divide_rows(x: Vector, n: int, at: Places) -> None:
    """Multiply the rows left of the diagonal by the number on it."""
    for i in range(n):
        row = at.matrix + i * at.stride
        for j in range(i):
            x[row + j] *= x[row + i]


def solve_for_rates(x: Vector, n: int, at: Places) -> None:
    """Replace the rates R by H⁻¹ R, with the factor of the matrix H, which replaces H."""
    L, stride, R, width, solved = at.matrix, at.stride, at.rates, at.width, at.solved
    factorize(x, n, at)
    for block in range(n, 0, -TILE):
        first = max(block - TILE, 0)
        for j in range(block - 2, first - 1, -1):
            below = R + (j + 1) * width, width
            factors = L + (j + 1) * stride + j, 0, stride
            subtract_product(x, (R + j * width, width), below, factors, (1, solved, block - 1 - j))
        factors = L + first * stride, 1, stride
        subtract_tiles(x, (R, width), (R + first * width, width), factors, (first, solved, block - first))
    substitute(x, n, at, R)


def substitute(x: Vector, n: int, at: Places, R: int) -> None:
    """Replace the rows at R by L⁻¹ D⁻¹ R, with the inverse of D on the diagonal of the matrix and L left of it."""
    L, stride, width, solved = at.matrix, at.stride, at.width, at.solved
    for first in range(0, n, TILE):
        some = min(TILE, n - first)
        for i in range(first, first + some):
            unit = x[L + i * stride + i]
            for j in range(solved):
                x[R + i * width + j] *= unit
        subtract_tiles(x, (R + first * width, width), (R, width), (L + first * stride, stride, 1), (some, solved, first))
        for i in range(first + 1, first + some):
            factors = L + i * stride + first, 0, 1
            subtract_product(x, (R + i * width, width), (R + first * width, width), factors, (1, solved, i - first))


def gain_of(x: Vector, row: int, i: int, j: int) -> float:
    """Return number j of row i, which starts at a place, times the inverse of its pivot."""
    return x[row + j] * x[row + i]


def eliminate(x: Vector, n: int, at: Places) -> None:
    """Eliminate the matrix, which need not be symmetric, from the leaves to the root, without pivots.

    Its lower triangle remains as in `factorize`, and `gains` get the multiples of rows that are subtracted from those above
    them. Rows and columns are added until their number is `stride`.
    """
    H, stride, gains = at.matrix, at.stride, at.gains
    for i in range(stride):
        for j in range(n if i < n else 0, stride):
            x[H + i * stride + j] = 1.0 if i == j else 0.0
    for block in range(stride, 0, -BLOCK):
        first = block - BLOCK
        for i in range(block - 1, first - 1, -1):
            row = H + i * stride
            unit = 1.0 / x[row + i]
            for j in range(first, i):
                gain = unit * x[H + j * stride + i]
                subtract_multiples(x, H + j * stride, row, stride, padded(i), (gain,))
                x[gains + j * stride + i] = gain
            x[row + i] = unit
        at_row = H + first * stride
        for j in range(first):  # from all four rows, one after the other
            row, own = H + j * stride + first, gains + j * stride + first
            second, third, fourth = at_row + stride + first, at_row + 2 * stride + first, at_row + 3 * stride + first
            d = x[row + 3] * x[fourth + 3]
            c = (x[row + 2] - d * x[fourth + 2]) * x[third + 2]
            b = (x[row + 1] - d * x[fourth + 1] - c * x[third + 1]) * x[second + 1]
            a = (x[row] - d * x[fourth] - c * x[third] - b * x[second]) * x[at_row + first]
            if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                subtract_multiples(x, H + j * stride, at_row, stride, padded(first), (a, b, c, d))
            x[own], x[own + 1], x[own + 2], x[own + 3] = a, b, c, d
    divide_rows(x, stride, at)


def solve_by_gains(x: Vector, n: int, at: Places, R: int) -> None:
    """Replace the rows (stride, width) at R by solutions, with the eliminated matrix."""
    stride, width = at.stride, at.width
    for i in range(n * width, stride * width):
        x[R + i] = 0.0
    for block in range(stride, 0, -BLOCK):
        first = block - BLOCK
        for i in range(block - 1, first, -1):
            for j in range(first, i):
                subtract_multiples(x, R + j * width, R + i * width, width, width, (x[at.gains + j * stride + i],))
        for j in range(first):
            own = at.gains + j * stride + first
            a, b, c, d = x[own], x[own + 1], x[own + 2], x[own + 3]
            if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                subtract_multiples(x, R + j * width, R + first * width, width, width, (a, b, c, d))
    substitute(x, n, at, R)


def solve_transposed(x: Vector, n: int, at: Places, b: int, solution: int) -> None:
    """Write the solution (stride,) with the transposed eliminated matrix for b (stride,), which is overwritten."""
    H, stride, gains = at.matrix, at.stride, at.gains
    for i in range(n, stride):
        x[solution + i] = 0.0
    for i in range(n - 1, -1, -1):
        x[solution + i] = x[b + i] * x[H + i * stride + i]
        subtract_multiples(x, b, H + i * stride, 0, padded(i), (x[b + i],))
    for j in range(n):
        subtract_multiples(x, solution, gains + j * stride, 0, stride, (x[solution + j],))
