"""A function of q as a list of operations, and its derivative along a motion: each operation carries a value and a rate."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....spatial import sincos, sqrt
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
