"""Routines to export: compiled functions under names that C accepts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..engine.function import CompiledFunction
from ..engine.jacobian_trace import JacobianTrace
from ..engine.program import Input, Output
from ..engine.trace import Trace
from .c_names import RESERVED, check_distinct, check_name


class Routine(NamedTuple):
    """A function with a name in C, as a trace from arguments to results."""

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    trace: Trace
    in_lanes: Callable[[int], JacobianTrace | None]
    doc: str = ""

    @property
    def c_names(self) -> list[str]:
        """C names of arguments and results: distinct regardless of case, and different from keywords and local variables."""
        names: list[str] = []
        for own in [*(x.name for x in self.inputs), *(y.name for y in self.outputs)]:
            name = re.sub(r"\W|^(?=\d)", "_", own, flags=re.ASCII)
            local = re.fullmatch(r"[stc]\d+|w", name)
            name = f"{name}_" if local or name in RESERVED else name
            while name.upper() in map(str.upper, names):
                name += "_out"
            names.append(name)
        return names

    @property
    def defined(self) -> list[str]:
        """Global names in its header and its object file."""
        macros = [*(f"{n}_SIZE" for n in self.c_names), "WORKSPACE_BYTES"]
        return [self.name, f"{self.name}_workspace_bytes", *(f"{self.name}_{m}".upper() for m in macros)]


def routines(
    functions: CompiledFunction[Any] | Iterable[CompiledFunction[Any]] | Mapping[str, CompiledFunction[Any]], prefix: str = ""
) -> list[Routine]:
    """Return functions as routines.

    Raises as `named_functions` does, and ValueError for functions that are too large, and for names that collide with generated
    ones.
    """
    made = [_routine(name, f) for name, f in named_functions(functions, prefix)]
    check_distinct({r.name: r.defined for r in made})
    return made


def named_functions(
    functions: CompiledFunction[Any] | Iterable[CompiledFunction[Any]] | Mapping[str, CompiledFunction[Any]], prefix: str = ""
) -> list[tuple[str, CompiledFunction[Any]]]:
    """Return functions with their names; the default is their own names.

    Raises TypeError for other objects, and ValueError for names that are taken or invalid in C.
    """
    if isinstance(functions, CompiledFunction) or not isinstance(functions, Iterable) or isinstance(functions, str | bytes):
        functions = [functions]
    pairs = list(functions.items()) if isinstance(functions, Mapping) else [(getattr(f, "name", ""), f) for f in functions]
    if not pairs:
        raise ValueError("export: give at least one function")
    named: dict[str, CompiledFunction[Any]] = {}
    for own, f in pairs:
        if not isinstance(f, CompiledFunction):
            what = f" for {own!r}" if own else ""
            raise TypeError(
                f"export: functions must be compiled functions, such as robot.forward_dynamics; got {type(f).__name__}{what}"
            )
        name = check_name(prefix + own, "the function")
        if name in named:
            raise ValueError(f"export: two functions are called {name!r}: give them as a dict of names and functions")
        named[name] = f
    return list(named.items())


def _routine(name: str, f: CompiledFunction[Any]) -> Routine:
    if f.too_large:
        raise ValueError(f"export: {f.name} is too large to be traced, so it cannot be exported")
    p = f.program
    empty = [x.name for x in p.inputs if x.size == 0] + [y.name for y in p.outputs if y.size == 0]
    if empty:
        raise ValueError(f"export: {f.name} has {empty[0]} without elements, but C has no empty arrays")
    return Routine(name, p.inputs, p.outputs, f.trace, p.in_lanes, f.__doc__ or "")
