"""Rotations E = exp(w) by a rotation vector w, their rates, and accelerations in the axes at the start of a step."""

from __future__ import annotations

from math import sin, sqrt
from typing import NamedTuple

from ..array_types import IntegerMatrix, Vector
from ..collision.triples import Triple, along, inner, outer
from ..model.tree import FLOATING, PLANAR

SMALL_TURN = 0.3  # [rad] angle below which series are used


class Turn(NamedTuple):
    """A rotation vector w, and numbers a, b and c: Eᵀ x = x - a w x x + b w x (w x x), and J has b and c instead of a and b.

    E = exp(w), and J w' is its angular velocity in the axes after the turn.
    """

    w: Triple
    a: float
    b: float
    c: float


def turn_of(w: Triple) -> Turn:
    """Return the rotation by a rotation vector."""
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


UNIT: Columns = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def columns_of(w: Triple, a: float, b: float) -> Columns:
    """Return the matrix of `turned_by`: Eᵀ for the numbers a and b of a `Turn`, E for -a and b, and J for b and c."""
    return turned_columns(w, a, b, UNIT)


def turned_columns(w: Triple, a: float, b: float, columns: Columns) -> Columns:
    """Return the product of the matrix of `turned_by` and another."""
    return turned_by(w, a, b, columns[0]), turned_by(w, a, b, columns[1]), turned_by(w, a, b, columns[2])


def crossed(a: Triple, columns: Columns) -> Columns:
    """Return the vector products of a and the columns."""
    return outer(a, columns[0]), outer(a, columns[1]), outer(a, columns[2])


class InverseJacobian(NamedTuple):
    """Numbers d and e = (dd/dt) / t, t = |w|: w' = x + w x x / 2 + d w x (w x x) at the angular velocity x after the turn."""

    d: float
    e: float


def inverse_jacobian(turn: Turn) -> InverseJacobian:
    """Return the inverse of J of a rotation."""
    square = inner(turn.w, turn.w)
    if square < SMALL_TURN * SMALL_TURN:
        d = 1.0 / 12.0 + square * (1.0 / 720.0 + square * (1.0 / 30240.0 + square * (1.0 / 1209600.0 + square / 47900160.0)))
        e = 1.0 / 360.0 + square * (1.0 / 7560.0 + square * (1.0 / 201600.0 + square / 5987520.0))
        return InverseJacobian(d, e)
    d = (1.0 - 0.5 * turn.a / turn.b) / square  # a is sin t / t, b is (1 - cos t) / t²
    return InverseJacobian(d, (0.5 * (1.0 / turn.b - turn.a / turn.b) / square - 2.0 * d) / square)


def rate_of_turn(turn: Turn, x: Triple) -> Triple:
    """Return the rate of a rotation vector at the angular velocity x after the turn."""
    return turned_by(turn.w, -0.5, inverse_jacobian(turn).d, x)


class JointMotion(NamedTuple):
    """Linear and angular parts of a vector of a joint whose velocities do not commute."""

    linear: Triple
    angular: Triple


def joint_motion(kind: int, i: int, v: Vector) -> JointMotion:
    """Return the parts of the vector v of the joint whose first row is i."""
    if kind == FLOATING:
        return JointMotion((v[i], v[i + 1], v[i + 2]), (v[i + 3], v[i + 4], v[i + 5]))
    if kind == PLANAR:
        return JointMotion((v[i], v[i + 1], 0.0), (0.0, 0.0, v[i + 2]))
    return JointMotion((0.0, 0.0, 0.0), (v[i], v[i + 1], v[i + 2]))


def write_fixed_acceleration(joints: IntegerMatrix, u: Vector, v: Vector, a: Vector, result: Vector) -> None:
    """Write the acceleration a at the velocity v with linear parts in the axes before the displacement u: E (a + w x v)."""
    for i in range(len(result)):
        result[i] = a[i]
    for k in range(len(joints)):
        kind, i = joints[k, 0], joints[k, 1]
        if kind in (FLOATING, PLANAR):
            at, rate = joint_motion(kind, i, v), joint_motion(kind, i, a)
            turn = turn_of(joint_motion(kind, i, u).angular)
            x = turned_by(turn.w, -turn.a, turn.b, along(rate.linear, 1.0, outer(at.angular, at.linear)))
            result[i], result[i + 1] = x[0], x[1]
            if kind == FLOATING:
                result[i + 2] = x[2]


def write_rates_of_turns(joints: IntegerMatrix, u: Vector, rate: Vector) -> None:
    """Replace angular velocities after the displacement u by the rates of its rotation vectors."""
    for k in range(len(joints)):
        kind, i = joints[k, 0], joints[k, 1]
        if kind != PLANAR:
            turned = rate_of_turn(turn_of(joint_motion(kind, i, u).angular), joint_motion(kind, i, rate).angular)
            at = i + 3 if kind == FLOATING else i
            rate[at], rate[at + 1], rate[at + 2] = turned[0], turned[1], turned[2]
