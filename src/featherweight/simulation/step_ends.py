"""Derivatives of the state after a step, from those of its acceleration.

A semi-implicit step moves by h u with the velocity u after it, in the axes of its start. Joints whose velocities do not commute
rotate by E = exp(h w); their velocities are given in the axes after the step (see `algorithms.integration.advance`).
"""

from __future__ import annotations

from math import cos, sin, sqrt
from typing import NamedTuple

from ..array_types import Matrix, Vector
from ..collision.triples import Triple, along, inner, outer, plus, times
from ..model.tree import FLOATING, PLANAR
from .acceleration_slopes import AccelerationSlopes, add_curved, write_acceleration_slopes
from .smooth_motion import clear
from .stage_records import RobotStages

SMALL_TURN = 0.3  # [rad] angle below which series are used


def write_velocity_rates(s: RobotStages, y: AccelerationSlopes) -> None:
    """Replace the rates of the acceleration by those of the velocity after a semi-implicit step, in the axes of its start."""
    n, h, at, x = len(y.after), s.numbers.step, y.at, y.numbers
    for i in range(n * at.width):
        x[at.rates + i] *= h
    for i in range(n):
        row = at.rates + i * at.width + at.stride
        clear(y.increment)
        y.increment[i] = 1.0
        x[row + i] += 1.0
        add_curved(s, y.increment, x[row : row + n])


def write_step_slopes(s: RobotStages, y: AccelerationSlopes, ends: Matrix) -> int:
    """Write the slopes (2 n + na, 3 n + na + nu) of the state after a semi-implicit step.

    Return as `write_acceleration_slopes` does.
    """
    at_limits = write_acceleration_slopes(s, y)
    write_velocity_rates(s, y)
    write_ends(s, y, ends)
    return at_limits


def write_ends(s: RobotStages, y: AccelerationSlopes, ends: Matrix) -> None:
    """Write the slopes of the state after a semi-implicit step, from those of its velocity."""
    n, h, u, na, at = len(y.after), s.numbers.step, s.step.after, len(s.state.act), y.at
    for i in range(n):
        copy_parts(y, at.rates + i * at.width, na, ends[n + i])
        for column in range(ends.shape[1]):
            ends[i, column] = h * ends[n + i, column]
        ends[i, i] += 1.0
    for j in range(na):
        copy_parts(y, at.acts + j * at.width, na, ends[2 * n + j])
    for k in range(len(s.joints.curved)):
        kind, i = s.joints.curved[k, 0], s.joints.curved[k, 1]
        if kind == PLANAR:
            turn_planar(h, u, i, ends)
        elif kind == FLOATING:
            turn_in_space(h, u, i + 3, ends)
            turn_floating(h, u, i, ends)
        else:
            turn_in_space(h, u, i, ends)


def copy_parts(y: AccelerationSlopes, row: int, na: int, target: Vector) -> None:
    """Copy a row of `numbers`, with parts for q, v, joint forces, and controls with activations, to a row of `ends`."""
    n, x, stride, controls = len(y.after), y.numbers, y.at.stride, len(y.bent) - na
    for k in range(n):
        target[k], target[n + k], target[2 * n + na + k] = x[row + k], x[row + stride + k], x[row + 2 * stride + k]
    for k in range(controls):
        target[3 * n + na + k] = x[row + 3 * stride + k]
    for k in range(na):
        target[2 * n + k] = x[row + 3 * stride + controls + k]


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


def unit_at(column: int, i: int) -> Triple:
    """Return the unit vector of a column among three from i on, or zero."""
    return 1.0 if column == i else 0.0, 1.0 if column == i + 1 else 0.0, 1.0 if column == i + 2 else 0.0


def read_three(ends: Matrix, i: int, column: int) -> Triple:
    """Return three numbers of a column."""
    return ends[i, column], ends[i + 1, column], ends[i + 2, column]


def put_three(x: Triple, ends: Matrix, i: int, column: int) -> None:
    """Write three numbers of a column."""
    ends[i, column], ends[i + 1, column], ends[i + 2, column] = x[0], x[1], x[2]


def turn_in_space(h: float, u: Vector, i: int, ends: Matrix) -> None:
    """Write the slopes of q exp(h w) of a rotation with the velocity w from row i on: Eᵀ dq + J h dw."""
    turn, n = turn_of(h, u, i), len(u)
    for column in range(ends.shape[1]):
        turning = times(h, read_three(ends, n + i, column))
        before = turned_by(turn.w, turn.a, turn.b, unit_at(column, i))
        put_three(plus(before, turned_by(turn.w, turn.b, turn.c, turning)), ends, i, column)


def turn_floating(h: float, u: Vector, i: int, ends: Matrix) -> None:
    """Write the slopes of a floating joint's position p + R h l, and of l in the axes after the step; l starts at row i."""
    turn, n, l = turn_of(h, u, i + 3), len(u), (u[i], u[i + 1], u[i + 2])
    after = turned_by(turn.w, turn.a, turn.b, l)
    for column in range(ends.shape[1]):
        rate, turning = read_three(ends, n + i, column), times(h, read_three(ends, n + i + 3, column))
        moved = plus(along(unit_at(column, i), h, rate), outer(unit_at(column, i + 3), times(h, l)))
        put_three(turned_by(turn.w, turn.a, turn.b, moved), ends, i, column)
        carried = outer(after, turned_by(turn.w, turn.b, turn.c, turning))
        put_three(plus(turned_by(turn.w, turn.a, turn.b, rate), carried), ends, n + i, column)


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
