"""The algorithms of a function, and the choice of the one with the fewest operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from .ambient_program import is_plain
from .compilation_messages import told
from .operations import Operations
from .program import Program
from .program_trace import NODE_BUDGET, ProgramTrace

LEAST_BUDGET = 2000  # nodes; smaller traces are always compared, because inputs and dead nodes are a large part of them
DIVISION = 8  # cost of a division or a root in multiplications


class Way(NamedTuple):
    """An algorithm of a function: its program, the execution that was requested for it, and its trace."""

    algorithm: str
    program: Program
    asked: str
    traced: ProgramTrace

    @classmethod
    def of(cls, program: Program, asked: str = "auto", algorithm: str = "") -> Way:
        """Return the way to run a program. Its algorithm is named after the first kernel by default."""
        name = algorithm or program.kernels[0].kernel.__name__
        return cls(name, program, asked, ProgramTrace(program, bounded=asked != "traced"))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the trace."""
        return Way.of, (self.program, self.asked, self.algorithm)

    @property
    def too_large(self) -> bool:
        """Return whether the trace exceeds the node budget."""
        return self.traced.too_large

    @property
    def execution(self) -> str:
        """The way in which the program runs: "traced", "rolled" or "interpreted"."""
        if self.asked != "auto":
            return self.asked
        return "rolled" if self.program.rollable and self.too_large else "traced"


class Ways(NamedTuple):
    """The algorithms of a function by name, and the name of the one that it uses."""

    every: Mapping[str, Way]
    algorithm: str

    @property
    def own(self) -> Way:
        """The algorithm that the function uses."""
        return self.every[self.algorithm]

    def derived(self, made: Callable[[Program], Program]) -> Ways:
        """Return the ways to a derivative, which `made` makes of each program.

        If an argument is on a manifold, the derivative uses the algorithm of the value, otherwise the cheapest. Raises
        ValueError if all traces are too large.
        """
        name, asked = self.own.program.name, self.own.asked
        how = "interpreted" if asked == "interpreted" else "traced"
        every = {n: Way.of(made(way.program), how, n) for n, way in self.every.items() if not way.too_large}
        if not every:
            raise ValueError(f"{name} is too large to be differentiated: its trace exceeds the node budget")
        if self.algorithm in every and not all(map(is_plain, self.own.program.inputs)):
            return Ways(every, self.algorithm)
        return Ways(every, cheapest_way(every))


def cost(o: Operations) -> int:
    """Return the cost by which algorithms are compared: a division or a root counts as `DIVISION` multiplications.

    Sines and cosines do not count: all algorithms have the same ones.
    """
    return o.flops + DIVISION * (o.div + o.sqrt)


def cheapest_way(ways: Mapping[str, Way]) -> str:
    """Return the name of the way with the lowest cost.

    Ways whose traces exceed the node budget, or far exceed the operations of a way before, are out. If all are, or if rolled
    execution was requested, it is the first. A single way is not traced.
    """
    first = next(iter(ways))
    if len(ways) == 1:
        return first
    costs: dict[str, int] = {}
    with told(f"{ways[first].program.title} (comparing {len(ways)} algorithms)"):
        for name, way in ways.items():
            budget = max(way.program.nodes_for(min(costs.values())), LEAST_BUDGET) if costs else NODE_BUDGET
            if way.asked != "rolled" and way.traced.within(budget):
                costs[name] = cost(way.traced.operations)
    return min(costs, key=costs.__getitem__) if costs else first
