"""The trace of a program, made when it is asked for, and what is known of it without making it."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

from . import cache
from .graph import BudgetExceeded
from .lane_trace import LaneTrace
from .operations import Operations
from .program import Program
from .trace import Trace, count, trace
from .waiting import tell_if_long, told

NODE_BUDGET = 250_000  # nodes of a trace, beyond which loops stay loops


class Traced:
    """A program's trace and its counts. `bounded` traces stop at the budget of nodes."""

    def __init__(self, program: Program, bounded: bool) -> None:
        self.program = program
        self._bounded = bounded

    @cached_property
    def identity(self) -> str:
        """Hash of what code made of the trace follows from, but for the machine and the engine."""
        return hashlib.sha256(repr(self.program.identity()).encode()).hexdigest()

    @cached_property
    def trace(self) -> Trace:
        """Raises BudgetExceeded for a bounded one that is too large."""
        return self._made(NODE_BUDGET if self._bounded else None)

    def _made(self, budget: int | None) -> Trace:
        with told(self.program.title):
            made = trace(self.program.flat, [a.size for a in self.program.inputs], budget)
            tell_if_long()
            return made

    def in_lanes(self, lanes: int) -> LaneTrace | None:
        """Return a trace of one state in vectors of so many lanes, where that is quicker than scalar by scalar."""
        return self.program.in_lanes(lanes, vars(self).get("trace"))

    @cached_property
    def operations(self) -> Operations:
        """Exact counts for one state, of the whole trace however large."""
        facts = self._facts
        return Operations(*facts["operations"]) if "operations" in facts else count(self._made(None))

    @property
    def too_large(self) -> bool:
        """Whether the trace goes past the budget."""
        return "operations" not in self._facts

    def within(self, budget: int) -> bool:
        """Whether the trace stays within a budget of nodes, which is found out without going past it."""
        if "_facts" in vars(self) or budget >= NODE_BUDGET:
            return not self.too_large
        facts = self._known(budget)
        if "operations" in facts:
            vars(self)["_facts"] = facts
        return "operations" in facts

    @cached_property
    def _facts(self) -> dict[str, Any]:
        return self._known(NODE_BUDGET)

    def _known(self, budget: int) -> dict[str, Any]:
        """Kept on disk: the counts, or that there are more nodes than a budget has."""
        name = cache.key("facts", self.identity, NODE_BUDGET)
        kept = cache.read(name)
        if kept is not None and ("operations" in kept[0] or kept[0]["beyond"] >= budget):
            return kept[0]
        try:
            made = self.trace if self._bounded and budget >= NODE_BUDGET else self._made(budget)
            facts: dict[str, Any] = {"operations": count(made)}
        except BudgetExceeded:
            facts = {"beyond": budget}
        cache.write(name, facts, b"")
        return facts
