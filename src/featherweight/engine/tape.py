"""Tapes: functions recorded once as lists of operations, which run on scalars of any kind, in any execution.

A tape is a constant that kernels evaluate. Functions given by the user reach kernels in this form.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import Any, NamedTuple

from .graph import Expression, Graph
from .operations import CONSTANT, INPUT, OPERATIONS


class Tape(NamedTuple):
    """Operations in a computable order, and the outputs among them."""

    op: Any  # (k,) numbers of the table of operations
    value: Any  # (k,) values of constants
    a: Any  # (k,) first operand, or index of an input
    b: Any  # (k,) second operand
    node: Any  # (outputs,) an output is `scale` times the result of operation `node`
    scale: Any  # (outputs,)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs for a list of inputs."""
        x: list[Any] = []
        for op, value, a, b in zip(self.op, self.value, self.a, self.b, strict=True):
            if op == INPUT:
                x.append(inputs[a])
            elif op == CONSTANT:
                x.append(value)
            else:
                operation = OPERATIONS[op]
                x.append(operation.value(*(x[a], x[b])[: operation.arity]))
        return [scale * x[node] for node, scale in zip(self.node, self.scale, strict=True)]


def _run_by_branches() -> Any:
    """Return `Tape.run` as a kernel with loops: without a table of functions, with a branch for each operation of the table."""
    namespace: dict[str, Any] = {}
    lines = ["def run(tape, inputs):", "    x = [0.0] * len(tape.op)", "    for k in range(len(tape.op)):"]
    lines += ["        op, a, b = tape.op[k], tape.a[k], tape.b[k]"]
    lines += [f"        if op == {INPUT}:", "            x[k] = inputs[a]"]
    lines += [f"        elif op == {CONSTANT}:", "            x[k] = tape.value[k]"]
    for number, operation in enumerate(OPERATIONS):
        if operation.arity:
            namespace[operation.name] = operation.value
            operands = ", ".join(("x[a]", "x[b]")[: operation.arity])
            lines += [f"        elif op == {number}:", f"            x[k] = {operation.name}({operands})"]
    lines += ["    return [tape.scale[e] * x[tape.node[e]] for e in range(len(tape.node))]"]
    file, source = f"<branches of {__name__}>", "\n".join(lines)
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file  # compilers read sources here
    exec(compile(source, file, "exec"), namespace)
    namespace["run"].__module__ = __name__
    return namespace["run"]


Tape.run.rolled = _run_by_branches()  # type: ignore[attr-defined]


def record(outputs: Sequence[Any]) -> Tape:
    """Record the operations of expressions; inputs are numbered as in their graphs' first argument."""
    op, value, first, second = [CONSTANT], [1.0], [0], [0]  # the first operation is the constant 1; numbers are multiples of it
    known: dict[int, dict[int, int]] = {}  # for each graph, the positions of its nodes
    node, scale = [], []
    for x in outputs:
        if not isinstance(x, Expression):
            node.append(0)
            scale.append(float(x))
            continue
        at = known.setdefault(id(x.graph), {})
        for i in _needed(x.graph, x.node, at):
            at[i] = len(op)
            operands = x.graph.operands(i)
            op.append(x.graph.op[i])
            value.append(float(x.graph.a[i]) if x.graph.op[i] == CONSTANT else 0.0)
            first.append(x.graph.b[i] if x.graph.op[i] == INPUT else at[operands[0]] if operands else 0)
            second.append(at[operands[1]] if len(operands) > 1 else 0)
        node.append(at[x.node])
        scale.append(-1.0 if x.negative else 1.0)
    return Tape(tuple(op), tuple(value), tuple(first), tuple(second), tuple(node), tuple(scale))


def _needed(g: Graph, node: int, known: dict[int, int]) -> list[int]:
    """Return the nodes from which a node is computed, including itself, except known ones."""
    nodes, waiting = set(), [node]
    while waiting:
        i = waiting.pop()
        if i not in nodes and i not in known:
            nodes.add(i)
            waiting += g.operands(i)
    return sorted(nodes)
