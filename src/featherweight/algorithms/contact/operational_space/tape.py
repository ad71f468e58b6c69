"""A function of q as a list of operations, and its derivative along a motion: each operation carries a value and a rate."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....model.tree import FLOATING, INNER, PLANAR, SPHERICAL, Tree
from ....spatial import Vec3, rotation_from_quaternion, sincos, sqrt
from ...tape import ADD, CONSTANT, COS, DIV, INPUT, MUL, SIN, SQRT, SUB


class Tape(NamedTuple):
    """Operations in order, and which of them are entries of a matrix."""

    op: Any  # (k,) as in algorithms/tape.py
    value: Any  # (k,) of a constant
    a: Any  # (k,) the first operand, or the index of an input
    b: Any  # (k,) the second
    entry_row: Any  # (e,) an entry of the matrix is scale times what operation `node` gives
    entry_column: Any  # (e,)
    node: Any  # (e,)
    scale: Any  # (e,)


def evaluate(tape: Tape, q, rate):
    """What each operation gives, and its rate of change while q changes at `rate`."""
    x = [0.0] * len(tape.op)
    dx = [0.0] * len(tape.op)
    for k in range(len(tape.op)):
        op = tape.op[k]
        i = tape.a[k]
        j = tape.b[k]
        if op == INPUT:
            x[k] = q[i]
            dx[k] = rate[i]
        elif op == CONSTANT:
            x[k] = tape.value[k]
        elif op == ADD:
            x[k] = x[i] + x[j]
            dx[k] = dx[i] + dx[j]
        elif op == SUB:
            x[k] = x[i] - x[j]
            dx[k] = dx[i] - dx[j]
        elif op == MUL:
            x[k] = x[i] * x[j]
            dx[k] = dx[i] * x[j] + x[i] * dx[j]
        elif op == DIV:
            x[k] = x[i] / x[j]
            dx[k] = (dx[i] - x[k] * dx[j]) / x[j]
        elif op == SQRT:
            x[k] = sqrt(x[i])
            dx[k] = 0.5 * dx[i] / x[k]
        elif op == SIN:
            s, c = sincos(x[i])
            x[k] = s
            dx[k] = c * dx[i]
        elif op == COS:
            s, c = sincos(x[i])
            x[k] = c
            dx[k] = 0.0 - s * dx[i]
    return x, dx


def configuration_rate(tree: Tree, q, v):
    """The rate of change of q at the velocity v."""
    rate = [0.0] * len(q)
    for j in range(len(tree.parent)):
        k = tree.q_index[j]
        kind = tree.kind[j]
        if kind == PLANAR:
            c, s = q[k + 2], q[k + 3]
            rate[k] = c * v[j] - s * v[j + 1]
            rate[k + 1] = s * v[j] + c * v[j + 1]
            rate[k + 2] = 0.0 - s * v[j + 2]
            rate[k + 3] = c * v[j + 2]
        elif kind == SPHERICAL:
            turn(q, k, Vec3(v[j], v[j + 1], v[j + 2]), rate)
        elif kind == FLOATING:
            R = rotation_from_quaternion(q[k + 3], q[k + 4], q[k + 5], q[k + 6])
            moved = R @ Vec3(v[j], v[j + 1], v[j + 2])
            rate[k] = moved.x
            rate[k + 1] = moved.y
            rate[k + 2] = moved.z
            turn(q, k + 3, Vec3(v[j + 3], v[j + 4], v[j + 5]), rate)
        elif kind != INNER:
            rate[k] = v[j]
    return rate


def turn(q, k: int, w: Vec3, rate) -> None:
    """The rate of the quaternion (x, y, z, w) that begins at k, for an angular velocity in the body's frame."""
    e = Vec3(q[k], q[k + 1], q[k + 2])
    out = q[k + 3] * w + e.cross(w)
    rate[k] = 0.5 * out.x
    rate[k + 1] = 0.5 * out.y
    rate[k + 2] = 0.5 * out.z
    rate[k + 3] = 0.0 - 0.5 * e.dot(w)
