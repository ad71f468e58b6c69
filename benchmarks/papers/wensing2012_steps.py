"""Wensing, Featherstone and Orin (2012): costs of the steps of the algorithms.

The functions of the library run once on symbolic scalars. Each operation belongs to the step that first creates it; calls of
helper functions mark the start of a step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import cache
from itertools import combinations
from types import ModuleType
from typing import Any
from unittest.mock import patch

from costs import Cost, cost_of_nodes, needed
from wensing2012_mechanisms import Mechanism, function

from featherweight.algorithms.articulated import articulated_inertias
from featherweight.algorithms.contact.contact_rows import contact_jacobian
from featherweight.algorithms.contact.delassus import efpa, kjr, ltl, pv_osim
from featherweight.engine.function import CompiledFunction
from featherweight.engine.graph import Expression, Graph
from featherweight.engine.trace import Trace, trace
from featherweight.model.tree import INNER

ON_BASE = ", base"
STEPS = ("inertias", "factors", "inward", "outward", "diagonal blocks", "other blocks")
articulated = sys.modules[articulated_inertias.__module__]

Label = Callable[..., str]  # the step of a call, from its arguments
Hook = tuple[ModuleType, str, Label | None, str]  # a helper, the step that starts with its call, and the step after it


def _on_row(step: str, argument: int) -> Label:
    """Return a label that separates the rows of a floating base; `argument` is the place of the row in the call."""
    return lambda *a: step + ON_BASE if _of_base(a[0], a[argument]) else step


def _of_base(tree: Any, row: int) -> bool:
    return bool(tree.kind[tree.last[row]] == INNER and tree.first[row] == 0)


def _step(name: str) -> Label:
    return lambda *a: name


def _recursive(module: ModuleType, *others: Hook) -> tuple[Hook, ...]:
    transforms: Hook = (module, "joint_transforms", _step("inertias"), "")
    return (
        transforms,
        (articulated, "gain", _on_row("inertias", 3), ""),
        (module, "clear", _step("blocks"), ""),
        *others,
    )


HOOKS: dict[str, tuple[Hook, ...]] = {
    "efpa": _recursive(
        efpa,
        (efpa, "propagate_force", _on_row("inward", 3), "outward" + ON_BASE),
        (efpa, "propagate_motion", _on_row("outward", 3), ""),
    ),
    "kjr": _recursive(kjr, (kjr, "mobilities_of_carriers", _step("outward"), "")),
    "ltl": (
        (ltl, "crba", _step("inertias"), ""),
        (ltl, "ltdl_in_situ", _step("factors"), ""),
        (ltl, "contact_jacobian", _step("inward"), "factors times Jacobian"),
    ),
    "pv-osim": _recursive(pv_osim, (pv_osim, "propagate_force", _on_row("inward", 3), "blocks")),
}


@cache
def steps(mechanism: Mechanism, ends: tuple[int, ...], algorithm: str) -> dict[str, Cost]:
    """Return costs of the steps of an algorithm, separately for the base."""
    made = function(mechanism, ends, algorithm)
    t, labels, J = _labelled(made, HOOKS[algorithm])
    nodes: dict[str, set[int]] = {}
    for i in t.live:
        nodes.setdefault(labels[i], set()).add(i)
    if algorithm == "ltl":
        rest = nodes.pop("factors times Jacobian")
        factored = rest & needed(t.graph, [x.node for row in J for x in row if isinstance(x, Expression)])
        nodes["outward"], nodes["blocks"] = factored, rest - factored
    blocks = nodes.pop("blocks")
    diagonal = blocks & needed(t.graph, _diagonal(made, t))
    nodes["diagonal blocks"], nodes["other blocks"] = diagonal, blocks - diagonal
    return {step: cost_of_nodes(t.graph, found) for step, found in nodes.items()}


def merged(costs: dict[str, Cost]) -> dict[str, Cost]:
    """Return the costs with the base's part added to the steps."""
    return {step: costs.get(step, Cost(0, 0)) + costs.get(step + ON_BASE, Cost(0, 0)) for step in STEPS}


def _diagonal(made: CompiledFunction[Any], t: Trace) -> list[int]:
    """Return the nodes of the entries of diagonal blocks."""
    owner = made.program.kernels[0].constants[1].owner
    pairs = ((r, s) for r in range(len(owner)) for s in range(len(owner)))
    return [x[0] for (r, s), x in zip(pairs, t.outputs, strict=True) if owner[r] == owner[s] and isinstance(x, tuple)]


def _labelled(made: CompiledFunction[Any], hooks: Iterable[Hook]) -> tuple[Trace, list[str], Any]:
    """Return a function's trace, the step of each node, and the final array of the Jacobian, if there is one."""
    begins: list[tuple[int, str]] = [(0, "inertias")]
    seen: list[Any] = [None]

    def run(*inputs: list[Expression]) -> list[Any]:
        graph = inputs[0][0].graph
        with ExitStack() as stack:
            for module, name, before, after in hooks:
                stack.enter_context(patch.object(module, name, hooked(getattr(module, name), graph, before, after)))
            return made.program.flat(*inputs)

    def hooked(helper: Callable[..., Any], graph: Graph, before: Label | None, after: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if before is not None:
                begins.append((len(graph), before(*arguments)))
            result = helper(*arguments)
            if after:
                begins.append((len(graph), after))
            if helper is contact_jacobian:
                seen[0] = arguments[-1]
            return result

        return call

    t = trace(run, [a.size for a in made.program.inputs])
    ends = [*(start for start, _ in begins[1:]), len(t.graph)]
    labels = [step for (start, step), end in zip(begins, ends, strict=True) for _ in range(start, end)]
    return t, labels, seen[0]


def total(costs: dict[str, Cost]) -> int:
    return sum(c.m + c.a for c in costs.values())


def without_jacobian(mechanism: Mechanism, ends: tuple[int, ...]) -> int:
    """Return flops of "ltl" without those of the Jacobian."""
    costs = steps(mechanism, ends, "ltl")
    return total(costs) - total({"": costs["inward"]})


@cache
def pairs_alone(mechanism: Mechanism, ends: tuple[int, ...]) -> int:
    """Return flops of "kjr" if each pair of end-effectors paid for both paths from their common ancestor."""
    costs = {step: c for step, c in steps(mechanism, ends, "kjr").items() if step != "other blocks"}
    pairs = (steps(mechanism, pair, "kjr")["other blocks"] for pair in combinations(ends, 2))
    return total(costs) + sum(c.m + c.a for c in pairs)
