"""Planning of Python functions: each function once for each set of argument types."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from . import list_expressions  # noqa: F401  # registers the planning of lists
from .expressions import called, expression
from .kernel_sources import error, parameters_of
from .kernel_types import NONE, StaticType, Type
from .plan import FunctionPlan, Plan, Read, Return, Static, Value
from .planning_state import Knowledge, Planned, Restart
from .statements import block, leave_function
from .variable_scopes import separated

MOST_ATTEMPTS = 100  # greatest number of attempts for a function; each widens a variable


class Planner:
    """Plans functions, and those that they call.

    With `fused`, products in sums are rounded with them (see `arithmetic`). With `wraps`, negative indices count from the end;
    without, only negative constants do. `lanes` is the number of robots that are computed side by side.
    """

    def __init__(self, fused: bool, wraps: bool = False, lanes: int = 1) -> None:
        self.fused, self.wraps, self.lanes = fused, wraps, lanes
        self.plan = Plan([], [("", 0)])
        self._known: dict[Any, FunctionPlan] = {}
        self._open: set[Any] = set()
        self._places: dict[tuple[str, int], int] = {}

    def place(self, file: str, line: int) -> int:
        """Return the number of a source line."""
        number = self._places.setdefault((file, line), len(self.plan.places))
        if number == len(self.plan.places):
            self.plan.places.append((file, line))
        return number

    def function(self, function: FunctionType, types: tuple[Type, ...]) -> FunctionPlan:
        """Return the plan of a function for arguments of given types, with all callees. Raises KernelError."""
        unwrapped: Any = inspect.unwrap(function)
        key = unwrapped, types
        if key in self._known:
            return self._known[key]
        if key in self._open:
            raise error(unwrapped, unwrapped.__code__.co_firstlineno, "recursion is not supported; write a loop")
        self._open.add(key)
        plan = self._planned(unwrapped, types)
        self._open.remove(key)
        self._known[key] = plan
        self.plan.functions.append(plan)
        return plan

    def kernel(self, function: FunctionType, types: tuple[Type, ...]) -> FunctionPlan:
        """Return the plan of a function that Python calls, for arguments of given types, which its annotations may convert."""
        unwrapped: Any = inspect.unwrap(function)
        p = Planned(self, unwrapped, Knowledge())
        given = [p.variable(name, type) for name, type in zip(parameters_of(p.tree), types, strict=True)]
        values: list[Value] = [Static(v.type.value) if isinstance(v.type, StaticType) else Read(v) for v in given]
        result = called(p, unwrapped, values)
        plan = FunctionPlan(
            "kernel", [v for v in given if not isinstance(v.type, StaticType)], result.type, [*p.statements, Return(result)]
        )
        self.plan.functions.append(plan)
        return plan

    def _planned(self, function: FunctionType, types: tuple[Type, ...]) -> FunctionPlan:
        known = Knowledge()
        for _ in range(MOST_ATTEMPTS):
            p = Planned(self, function, known)
            try:
                return _attempt(p, types)
            except Restart:
                continue
        raise error(
            function,
            function.__code__.co_firstlineno,
            "the types of variables do not converge; convert them by float()",
        )


def _attempt(p: Planned, types: tuple[Type, ...]) -> FunctionPlan:
    names = parameters_of(p.tree)
    given = [p.variable(name, type) for name, type in zip(names, types, strict=True)]
    for name, v in zip(names, given, strict=True):
        p.assign(name, Static(v.type.value) if isinstance(v.type, StaticType) else Read(v))
    if isinstance(p.tree.body, list):
        block(p, p.tree.body)
    else:
        leave_function(p, expression(p, p.tree.body))
    if p.names is not None:
        if p.result not in (None, NONE):
            p.fail(f"the function may end without a value, and returns {p.result} elsewhere; return one at its end")
        p.result = NONE
        p.statements.append(Return(Static(None)))
    assert p.result is not None
    kept = [v for v in given if not isinstance(v.type, StaticType)]
    body = separated(kept, p.statements, p.variable)
    return FunctionPlan(p.function.__name__, kept, p.result, body, p.function)
