"""Traces of programs, made on demand, and the facts that the cache stores about them."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

from . import cache
from .compilation_messages import report_if_long, reporting
from .graph import BudgetExceeded
from .jacobian_trace import JacobianTrace
from .operations import Operations
from .program import Program
from .trace import Trace, count, trace

NODE_BUDGET = 250_000  # greatest number of nodes of a trace; larger functions keep their loops


class ProgramTrace:
    """A program's trace and its counts. A `bounded` trace stops at the node budget."""

    def __init__(self, program: Program, bounded: bool) -> None:
        self.program = program
        self._bounded = bounded

    @cached_property
    def identity(self) -> str:
        """Hash of everything that code of the trace depends on, except the machine and the engine."""
        return hashlib.sha256(repr(self.program.identity()).encode()).hexdigest()

    @cached_property
    def trace(self) -> Trace:
        """The trace. Raises BudgetExceeded for a bounded trace that is too large."""
        return self._made(NODE_BUDGET if self._bounded else None)

    def _made(self, budget: int | None) -> Trace:
        with reporting(self.program.title):
            made = trace(self.program.flat, [a.size for a in self.program.inputs], budget)
            self._nodes = len(made.graph)  # derivatives add nodes later
            report_if_long()
            return made

    def in_lanes(self, lanes: int) -> JacobianTrace | None:
        """Return a trace of one state in vectors with `lanes` lanes, if it is faster than scalar code; otherwise None."""
        return self.program.in_lanes(lanes, vars(self).get("trace"))

    @cached_property
    def operations(self) -> Operations:
        """Exact counts for one state, from the whole trace, however large."""
        facts = self._facts
        return Operations(*facts["operations"]) if "operations" in facts else count(self._made(None))

    @property
    def too_large(self) -> bool:
        """Return whether the trace exceeds the node budget."""
        return "operations" not in self._facts

    def within(self, budget: int) -> bool:
        """Return whether the trace has at most `budget` nodes, without tracing further than that.

        The answer does not depend on whether the whole trace has been made before, in this process or another.
        """
        if "_facts" not in vars(self) and budget < NODE_BUDGET:
            facts = self._known(budget)
            if "operations" not in facts:
                return False
            vars(self)["_facts"] = facts
        return not self.too_large and self._facts["nodes"] <= budget

    @cached_property
    def _facts(self) -> dict[str, Any]:
        return self._known(NODE_BUDGET)

    def _known(self, budget: int) -> dict[str, Any]:
        """Return cached facts: the counts and the number of nodes, or that the trace exceeds a budget."""
        name = cache.key("facts with nodes", self.identity, NODE_BUDGET)
        kept = cache.read(name)
        if kept is not None and ("operations" in kept[0] or kept[0]["beyond"] >= budget):
            return kept[0]
        try:
            made = self.trace if self._bounded and budget >= NODE_BUDGET else self._made(budget)
            facts: dict[str, Any] = {"operations": count(made), "nodes": self._nodes}
        except BudgetExceeded:
            facts = {"beyond": budget}
        cache.write(name, facts, b"")
        return facts
