"""Derivatives of the state after a step, from those of its acceleration.

A semi-implicit step moves by h u with the velocity u after it, in the axes of its start. Joints whose velocities do not commute
rotate by E = exp(h w); their velocities are given in the axes after the step (see `algorithms.integration.advance`).
"""

from __future__ import annotations

from math import cos, sin, sqrt
from typing import NamedTuple

from ..array_types import Matrix, Vector
from ..collision.triples import Triple, along, component, inner, outer
from ..engine.loops.kernels import subtract_multiples
from ..model.tree import FLOATING, PLANAR
from .acceleration_slopes import write_acceleration_slopes
from .slope_records import AccelerationSlopes
from .smooth_motion import clear, copy
from .stage_records import RobotStages
from .touching_slopes import add_curved

SMALL_TURN = 0.3  # [rad] angle below which series are used


def write_velocity_rates(s: RobotStages, y: AccelerationSlopes) -> None:
    """Replace the rates of the acceleration by those of the velocity after a semi-implicit step, in the axes of its start."""
    n, h, at, x = len(y.after), s.numbers.step, y.at, y.numbers
    for i in range(n * at.width):
        x[at.rates + i] *= h
    for i in range(n):
        x[at.rates + i * at.width + at.stride + i] += 1.0
    clear(y.increment)
    for k in range(len(s.joints.curved)):
        first = s.joints.curved[k, 1]
        for i in range(first, first + (6 if s.joints.curved[k, 0] == FLOATING else 3)):
            row = at.rates + i * at.width + at.stride
            y.increment[i] = 1.0
            add_curved(s, y.increment, x[row : row + n])
            y.increment[i] = 0.0


def write_step_slopes(s: RobotStages, y: AccelerationSlopes, ends: Matrix) -> int:
    """Write the slopes (2 n + na, 3 n + na + nu) of the state after a semi-implicit step.

    Return as `write_acceleration_slopes` does.
    """
    at_limits = write_acceleration_slopes(s, y)
    write_velocity_rates(s, y)
    write_ends(s, y, ends)
    return at_limits


def write_ends(s: RobotStages, y: AccelerationSlopes, ends: Matrix) -> None:
    """Write the slopes of the state after a semi-implicit step, from those of its velocity.

    Rows of positions and of velocities that rotate are combinations of rows, computed in `rates` and in the workspace `struck`.
    """
    n, h, u, na, at, x, joints = len(y.after), s.numbers.step, s.step.after, len(s.state.act), y.at, y.numbers, s.joints.curved
    for i in range(n):
        subtract_multiples(x, at.struck + i * at.width, at.rates + i * at.width, 0, at.width, (-h,), True)
    for k in range(len(joints)):
        kind, i = joints[k, 0], joints[k, 1]
        if kind == FLOATING:
            move_floating(h, u, i, y)
        elif kind != PLANAR:
            move_turning(turn_of(h, u, i), h, i, y)
    for i in range(n):
        copy_parts(y, at.struck + i * at.width, na, ends[i])
        copy_parts(y, at.rates + i * at.width, na, ends[n + i])
        ends[i, i] += 1.0
    for j in range(na):
        copy_parts(y, at.acts + j * at.width, na, ends[2 * n + j])
    for k in range(len(joints)):
        kind, i = joints[k, 0], joints[k, 1]
        if kind == PLANAR:
            turn_planar(h, u, i, ends)
        else:
            turn_start(h, u, i, ends, kind == FLOATING)


def copy_parts(y: AccelerationSlopes, row: int, na: int, target: Vector) -> None:
    """Copy a row of `numbers`, with parts for q, v, joint forces, and controls with activations, to a row of `ends`."""
    n, x, stride, controls = len(y.after), y.numbers, y.at.stride, len(y.bent) - na
    by_v, by_tau, by_control = row + stride, row + 2 * stride, row + 3 * stride
    copy(x[row : row + n], target[:n])
    copy(x[by_v : by_v + n], target[n : 2 * n])
    copy(x[by_control + controls : by_control + controls + na], target[2 * n : 2 * n + na])
    copy(x[by_tau : by_tau + n], target[2 * n + na : 3 * n + na])
    copy(x[by_control : by_control + controls], target[3 * n + na :])


class Turn(NamedTuple):
    """A rotation vector w, and numbers a, b and c: Eᵀ x = x - a w x x + b w x (w x x), and J has b and c instead of a and b.

    E = exp(w), and J w' is its angular velocity in the axes after the turn.
    """

    w: Triple
    a: float
    b: float
    c: float


def turn_of(h: float, u: Vector, i: int) -> Turn:
    """Return the rotation by the angular velocity u[i : i + 3] in a step."""
    w = h * u[i], h * u[i + 1], h * u[i + 2]
    square = inner(w, w)
    angle = sqrt(square)
    if angle < SMALL_TURN:
        c = (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0 * (1.0 - square / 110.0)))) / 6.0
        half = 1.0 - square / 24.0 * (1.0 - square / 80.0 * (1.0 - square / 168.0))  # sine of half the angle
        return Turn(w, 1.0 - square * c, 0.5 * half * half, c)
    half = sin(0.5 * angle) / angle
    return Turn(w, sin(angle) / angle, 2.0 * half * half, (angle - sin(angle)) / (angle * square))


def turned_by(w: Triple, a: float, b: float, x: Triple) -> Triple:
    """Return x - a w x x + b w x (w x x)."""
    once = outer(w, x)
    return along(along(x, -a, once), b, outer(w, once))


Columns = tuple[Triple, Triple, Triple]
"""The columns of a matrix (3, 3)."""


def columns_of(w: Triple, a: float, b: float) -> Columns:
    """Return the matrix of `turned_by`: Eᵀ for the numbers a and b of a `Turn`, and J for b and c."""
    return turned_by(w, a, b, (1.0, 0.0, 0.0)), turned_by(w, a, b, (0.0, 1.0, 0.0)), turned_by(w, a, b, (0.0, 0.0, 1.0))


def combine(y: AccelerationSlopes, target: int, rows: int, columns: Columns, factor: float, begin: bool) -> None:
    """Add the product of a matrix and three rows, times a factor, to three rows; or write it."""
    (a, b, c), width = columns, y.at.width
    for i in range(3):
        factors = -factor * component(a, i), -factor * component(b, i), -factor * component(c, i)
        if begin:
            subtract_multiples(y.numbers, target + i * width, rows, width, width, factors, True)
        else:
            subtract_multiples(y.numbers, target + i * width, rows, width, width, factors)


def move_turning(turn: Turn, h: float, i: int, y: AccelerationSlopes) -> None:
    """Write the rows J h dw of a rotation with the velocity w from row i on."""
    combine(y, y.at.struck + i * y.at.width, y.at.rates + i * y.at.width, columns_of(turn.w, turn.b, turn.c), h, True)


def move_floating(h: float, u: Vector, i: int, y: AccelerationSlopes) -> None:
    """Write the rows of a floating joint's position p + R h l, and of l in the axes after the step; l starts at row i."""
    turn, l, at = turn_of(h, u, i + 3), (u[i], u[i + 1], u[i + 2]), y.at
    position, linear, angular = at.struck + i * at.width, at.rates + i * at.width, at.rates + (i + 3) * at.width
    move_turning(turn, h, i + 3, y)
    after, (a, b, c) = turned_by(turn.w, turn.a, turn.b, l), columns_of(turn.w, turn.b, turn.c)
    carried = outer(after, a), outer(after, b), outer(after, c)
    combine(y, position, linear, columns_of(turn.w, turn.a, turn.b), 1.0, True)
    for j in range(3):
        subtract_multiples(y.numbers, linear + j * at.width, position + j * at.width, 0, at.width, (-1.0,), True)
    for j in range(3 * at.width):
        y.numbers[position + j] *= h
    combine(y, linear, angular, carried, h, False)


def turn_start(h: float, u: Vector, i: int, ends: Matrix, floats: bool) -> None:
    """Write the slopes of positions by those of the start, Eᵀ dq, over the ones on the diagonal."""
    first = i + 3 if floats else i
    turn = turn_of(h, u, first)
    columns = columns_of(turn.w, turn.a, turn.b)
    add_block(columns, first, first, ends)
    if floats:
        add_block(columns, i, i, ends)
        l = h * u[i], h * u[i + 1], h * u[i + 2]
        a, b, c = outer((1.0, 0.0, 0.0), l), outer((0.0, 1.0, 0.0), l), outer((0.0, 0.0, 1.0), l)
        w, s, t = turn.w, turn.a, turn.b
        add_block((turned_by(w, s, t, a), turned_by(w, s, t, b), turned_by(w, s, t, c)), i, i + 3, ends)


def add_block(columns: Columns, i: int, j: int, ends: Matrix) -> None:
    """Add a matrix (3, 3) at row i and column j, instead of the ones on the diagonal."""
    a, b, c = columns
    for r in range(3):
        ends[i + r, j] += component(a, r)
        ends[i + r, j + 1] += component(b, r)
        ends[i + r, j + 2] += component(c, r)
        if i == j:
            ends[i + r, j + r] -= 1.0


def turn_planar(h: float, u: Vector, i: int, ends: Matrix) -> None:
    """Do the same for a planar joint, with one angle."""
    n, c, s = len(u), cos(h * u[i + 2]), sin(h * u[i + 2])
    x, y = c * u[i] + s * u[i + 1], c * u[i + 1] - s * u[i]
    for column in range(ends.shape[1]):
        p, q, turning = ends[n + i, column], ends[n + i + 1, column], h * ends[n + i + 2, column]
        before = h if column == i + 2 else 0.0
        dx = (1.0 if column == i else 0.0) - before * u[i + 1] + h * p
        dy = (1.0 if column == i + 1 else 0.0) + before * u[i] + h * q
        ends[i, column], ends[i + 1, column] = c * dx + s * dy, c * dy - s * dx
        ends[n + i, column], ends[n + i + 1, column] = c * p + s * q + turning * y, c * q - s * p - turning * x
