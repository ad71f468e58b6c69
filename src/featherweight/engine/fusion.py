"""Fusion of several compiled functions into one."""

from __future__ import annotations

import itertools
import keyword
import math
from collections.abc import Mapping, Sequence
from typing import Any

from .execution import cost
from .function import CompiledFunction
from .graph import BudgetExceeded, Expression, Graph
from .operations import Operations
from .program import FusedProgram, Program
from .program_trace import NODE_BUDGET
from .trace import live_nodes

MOST_CHOICES = 64  # up to this many combinations of algorithms are all compared; otherwise one function after the other


def together(functions: Sequence[CompiledFunction[Any]], named: Mapping[str, CompiledFunction[Any]]) -> CompiledFunction[Any]:
    """Return one function with the results of all functions, named after the functions or by keywords."""
    every = (*functions, *named.values())
    if not every:
        raise ValueError("together needs at least one function; got none")
    for f in every:
        if not isinstance(f, CompiledFunction):
            raise TypeError(f"together takes functions of a robot, such as robot.mass_matrix; got {type(f).__name__}")
    for name in named:
        if name.startswith("_") or keyword.iskeyword(name):
            raise ValueError(
                f"together: a result cannot be named {name!r}; choose a name that is not a Python keyword and does not start "
                "with an underscore"
            )
    executions = {f.own.asked for f in every}
    chosen = [f.program for f in _cheapest_choice(every)]
    doc = "; ".join(f"{f.name}: {(f.program.doc or '').partition(chr(10))[0]}" for f in every)
    names = _names(every, [None] * len(functions) + list(named))
    program = FusedProgram("together", tuple(chosen), names, doc, tuple(f.program for f in every))
    return CompiledFunction(program, executions.pop() if len(executions) == 1 else "auto", "together")


def _names(functions: Sequence[CompiledFunction[Any]], asked: Sequence[str | None]) -> tuple[tuple[str, ...], ...]:
    """Return the names of each function's results.

    A single result has the name asked for, or the function's name. Several results keep their own names, after the name asked
    for as a prefix. A suffix _2, _3, ... resolves duplicates.
    """
    single = [name for f, name in zip(functions, asked, strict=True) if name and len(f.program.outputs) == 1]
    taken: set[str] = set(single)

    def new(wish: str) -> str:
        name = next(n for n in itertools.chain([wish], (f"{wish}_{k}" for k in itertools.count(2))) if n not in taken)
        taken.add(name)
        return name

    names = []
    for f, name in zip(functions, asked, strict=True):
        outputs = f.program.outputs
        prefix = f"{name}_" if name else ""
        names.append(tuple(new(prefix + r.name) for r in outputs) if len(outputs) > 1 else (name or new(f.name),))
    return tuple(names)


def _cheapest_choice(functions: Sequence[CompiledFunction[Any]]) -> list[CompiledFunction[Any]]:
    """Choose an algorithm for each function, so that all of them together take the fewest operations."""
    if all(len(f.alternatives) == 1 for f in functions) or any(f.execution == "rolled" for f in functions):
        return list(functions)
    alternatives = [[g for g in f.alternatives.values() if not g.too_large] or [f] for f in functions]
    try:
        costs = _Costs([[g.program for g in group] for group in alternatives])
    except BudgetExceeded:
        return list(functions)
    if math.prod(map(len, alternatives)) <= MOST_CHOICES:
        best = min(itertools.product(*map(range, map(len, alternatives))), key=costs.of)
        return [group[k] for group, k in zip(alternatives, best, strict=True)]
    best = tuple(group.index(f) for group, f in zip(alternatives, functions, strict=True))
    while True:
        before = best
        for i, group in enumerate(alternatives):
            best = min(((*best[:i], k, *best[i + 1 :]) for k in range(len(group))), key=costs.of)
        if costs.of(best) == costs.of(before):
            return [group[k] for group, k in zip(alternatives, before, strict=True)]


class _Costs:
    """Costs of combinations of algorithms, counted in one graph of all algorithms."""

    def __init__(self, alternatives: Sequence[Sequence[Program]]) -> None:
        self._graph = g = Graph(4 * NODE_BUDGET)
        arguments = list(dict.fromkeys((a.name, a.size) for group in alternatives for p in group for a in p.inputs))
        inputs = {name: [g.input(k, i) for i in range(size)] for k, (name, size) in enumerate(arguments)}
        self._outputs = [
            [{x.node for x in p.flat(*(inputs[a.name] for a in p.inputs)) if isinstance(x, Expression)} for p in group]
            for group in alternatives
        ]
        self._known: dict[tuple[int, ...], int] = {}

    def of(self, choice: tuple[int, ...]) -> int:
        """Return the cost of a combination: one alternative for each function, by number."""
        if choice not in self._known:
            outputs = set().union(*(group[k] for group, k in zip(self._outputs, choice, strict=True)))
            live = live_nodes(self._graph, outputs)
            self._known[choice] = cost(Operations.of([self._graph.op[i] for i in live]))
        return self._known[choice]
