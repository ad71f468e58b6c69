"""A function as a list of operations that has been recorded once, and runs on scalars of any kind.

Operations are numbered as OPERATIONS are. Each has a value if it is a constant, and the numbers of its operands, or of an
input.
"""

from __future__ import annotations

from typing import Any

from ..spatial import sincos, sqrt

OPERATIONS = ("input", "constant", "add", "sub", "mul", "div", "sqrt", "sin", "cos")
INPUT, CONSTANT, ADD, SUB, MUL, DIV, SQRT, SIN, COS = range(9)


def run(program, inputs) -> list[Any]:
    """The outputs."""
    x: list[Any] = []
    for op, value, a, b in zip(program.op, program.value, program.a, program.b, strict=True):
        if op == INPUT:
            x.append(inputs[a])
        elif op == CONSTANT:
            x.append(value)
        elif op == ADD:
            x.append(x[a] + x[b])
        elif op == SUB:
            x.append(x[a] - x[b])
        elif op == MUL:
            x.append(x[a] * x[b])
        elif op == DIV:
            x.append(x[a] / x[b])
        elif op == SQRT:
            x.append(sqrt(x[a]))
        else:
            x.append(sincos(x[a])[op - SIN])
    return [scale * x[node] for node, scale in zip(program.node, program.scale, strict=True)]
