"""Costs in the notation of the papers, from counts of traced functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import compared
from compared import candidate

from featherweight.algorithms import crba_ltdl
from featherweight.algorithms import ltdl as kernels
from featherweight.algorithms.contact.delassus import ltl
from featherweight.algorithms.kinematics import twisted
from featherweight.engine.function import CompiledFunction
from featherweight.engine.graph import Graph
from featherweight.engine.operations import ADD, DIV, MUL, SUB, Operations
from featherweight.engine.trace import count, trace
from featherweight.model.tree import REVOLUTE, Tree
from featherweight.robot import factorization
from featherweight.robot.robot import Robot
from featherweight.spatial import rotation_from_quaternion, sincos


@dataclass(frozen=True)
class Cost:
    """Multiplications and additions."""

    m: int
    a: int

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.m + other.m, self.a + other.a)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.m - other.m, self.a - other.a)

    def __rmul__(self, times: int) -> Cost:
        return Cost(times * self.m, times * self.a)

    def __str__(self) -> str:
        return f"{self.m:,}m + {self.a:,}a" if self.m or self.a else "0"


def cost(operations: Operations) -> Cost:
    """Return a cost in which divisions count as multiplications, and sines and cosines do not count."""
    return Cost(operations.mul + operations.div, operations.add)


def rotation_cost(function: CompiledFunction[Any]) -> Cost:
    """Return the cost of the base's rotation matrix in a function of a floating-base robot.

    The papers assume that rotation matrices are given; our functions start from a quaternion. The entries are computed again
    from the quaternion in the function's own graph, where equal expressions are one node: the live nodes among them are the
    cost.
    """
    program = function.program
    t = trace(program.flat, [a.size for a in program.inputs])
    R = rotation_from_quaternion(*(t.graph.input(0, i) for i in range(3, 7)))
    entries = needed(t.graph, [entry.node for row in R for entry in row])
    return cost_of_nodes(t.graph, entries.intersection(t.live))


def turn_cost(function: CompiledFunction[Any], tree: Tree) -> Cost:
    """Return the cost of adding constants to joint angles, by their sines and cosines, in a function of a robot.

    The papers assume that sines and cosines are given.
    """
    program = function.program
    t = trace(program.flat, [a.size for a in program.inputs])
    turned: list[Any] = []
    for kind, k, (_, _, twist) in zip(tree.kind, tree.q_index, tree.turns, strict=True):
        if kind == REVOLUTE and 0.0 not in twist:
            s, c = sincos(t.graph.input(0, k))
            turned += twisted(c, s, twist)  # type: ignore[no-untyped-call]
    return cost_of_nodes(t.graph, needed(t.graph, [x.node for x in turned]).intersection(t.live))


def needed(graph: Graph, nodes: Iterable[int]) -> set[int]:
    """Return the given nodes and all nodes that they depend on."""
    waiting, found = list(nodes), set()
    while waiting:
        i = waiting.pop()
        if i not in found:
            found.add(i)
            waiting += graph.operands(i)
    return found


def cost_of_nodes(graph: Graph, nodes: Iterable[int]) -> Cost:
    operations = [graph.op[i] for i in nodes]
    n = operations.count
    return Cost(n(MUL) + n(DIV), n(ADD) + n(SUB))


def factorization_operations(parent: Sequence[int], unit: bool) -> Operations:
    """Return operations of `featherweight.ltdl` for a unit diagonal, else of `ltl`, for a given matrix."""
    return factorization.factors_function(kernels.ltdl if unit else kernels.ltl, tuple(parent)).operations


def ltdl_with_divisions_in_situ(parent: Sequence[int], H: Any) -> None:
    """Factorize as in the paper, with a division for each entry; the library computes one reciprocal for each row."""
    for k in range(len(parent) - 1, -1, -1):
        i = parent[k]
        while i >= 0:
            a = H[k][i] / H[k][k]
            j = i
            while j >= 0:
                H[i][j] = H[i][j] - H[k][j] * a
                j = parent[j]
            H[k][i] = a
            i = parent[i]


def operations_with_divisions(function: CompiledFunction[Any]) -> Operations:
    """Return operations of a function if sparse factors had a division for each entry, as in the papers."""

    def factorize(parent: Sequence[int], H: Any) -> list[Any]:
        ltdl_with_divisions_in_situ(parent, H)
        return [1.0 / H[i][i] for i in range(len(parent))]

    program = function.program
    with ExitStack() as stack:
        for module in (crba_ltdl, ltl, compared):
            stack.enter_context(patch.object(module, "ltdl_in_situ", factorize))
        return count(trace(program.flat, [a.size for a in program.inputs]))


def product_operations(kernel: Callable[..., None], parent: Sequence[int], unit: bool) -> Operations:
    """Return operations of the product or solution of a vector with sparse factors."""
    return factorization.pattern_of(tuple(parent)).products[kernel, unit].operations


def dynamics(robot: Robot) -> dict[str, CompiledFunction[Any]]:
    """Return the functions that the papers count, by algorithm."""
    forward = robot.forward_dynamics
    return {
        "CRBA": robot.mass_matrix,
        "RNEA": robot.inverse_dynamics,
        "ABA": candidate(forward, "aba"),
        "by CRBA": candidate(forward, "crba-ltdl"),
    }
