"""State of planning a function: its names, its statements so far, and its errors."""

from __future__ import annotations

import ast
import builtins
import math
from types import FunctionType
from typing import NoReturn, Protocol, TypeVar, overload

from .annotations import ItemsPattern, OneOf, Pattern, exact, fits
from .kernel_sources import error, local_names, named_values, tree_of
from .kernel_types import FLOAT, INT, Number, StaticType, TupleType, Type, type_of_static, unified
from .plan import (
    ArrayValue,
    Assign,
    Constant,
    Convert,
    FunctionPlan,
    Length,
    MakeTuple,
    NumberValue,
    Read,
    Statement,
    Static,
    TupleItem,
    TupleValue,
    Value,
    Variable,
    is_number,
    is_tuple,
)


class Restart(Exception):
    """Signal that the function must be planned again, because a variable has a wider type, or another one."""


class Clash:
    """A name with values of different types on different control-flow paths."""

    def __init__(self, *types: Type) -> None:
        self.types = types


T = TypeVar("T", bound=Type)
Names = dict[str, "Variable[Type] | Value | Clash"]  # by name: a Variable, or a value of StaticType


class Specializer(Protocol):
    """Interface of an object that plans functions for argument types."""

    fused: bool
    wraps: bool
    lanes: int

    def function(self, function: FunctionType, types: tuple[Type, ...]) -> FunctionPlan:
        """Return the plan of a function."""

    def place(self, file: str, line: int) -> int:
        """Return the number of a source line."""


class Knowledge:
    """Facts about a function's variables from earlier attempts to plan it."""

    def __init__(self) -> None:
        self.widths: dict[tuple[str, int], Type] = {}  # types of versions of names
        self.result: Type | None = None
        self.clashing: dict[tuple[tuple[int, int], str], Clash] = {}  # names at loop heads, by the line and column of the loop


class PlannedLoop:
    """A loop that is being planned: the names at its exits, and at the ends of iterations."""

    def __init__(self) -> None:
        self.left: list[Names | None] = []
        self.continued: list[Names | None] = []


class Planned:
    """The state of planning one function."""

    def __init__(self, specializer: Specializer, function: FunctionType, known: Knowledge) -> None:
        self.specializer, self.function, self.known = specializer, function, known
        self.tree = tree_of(function)
        self.line = self.tree.lineno
        self.statements: list[Statement] = []  # statements of the current block
        self.names: Names | None = {}  # None in unreachable code
        self.versions: dict[str, list[Variable[Type]]] = {}
        self.closure = named_values(function)
        self.result = known.result
        self.loops: list[PlannedLoop] = []
        self.count = 0

    def fail(self, what: str, node: ast.AST | None = None) -> NoReturn:
        raise error(self.function, getattr(node, "lineno", self.line), what)

    def place(self) -> int:
        """The number of the current source line."""
        return self.specializer.place(self.function.__code__.co_filename, self.line)

    # names

    def value_of(self, name: str) -> Value:
        """Return the value that a name has at this place in the function."""
        assert self.names is not None
        found = self.names.get(name)
        if isinstance(found, Variable):
            return Read(found)
        if isinstance(found, Clash):
            self.fail(f"{name!r} is {' or '.join(map(str, found.types))} here; use one name for one type")
        if found is not None:
            return found
        if name in self.closure:
            return Static(self.closure[name])
        code = self.function.__code__
        if (name in code.co_varnames or name in code.co_cellvars) and name in local_names(self.tree):
            self.fail(f"{name!r} may have no value here; set it on all ways to this line")
        if name in self.function.__globals__:
            return Static(self.function.__globals__[name])
        if hasattr(builtins, name):
            return Static(getattr(builtins, name))
        return self.fail(f"the name {name!r} is not defined")

    def variable(self, wish: str, type: T) -> Variable[T]:
        self.count += 1
        return Variable(wish, type, self.count)

    def assign(self, name: str, value: Value) -> None:
        """Bind a name to a value from here on."""
        assert self.names is not None
        value = self.solid(value)
        if isinstance(value.type, StaticType):
            self.names[name] = value
            return
        versions = self.versions.setdefault(name, [])
        for k, v in enumerate(versions):
            type = unified(v.type, value.type)
            if type is not None:
                if type != v.type:
                    self.known.widths[name, k] = type
                    raise Restart
                break
        else:
            wide = self.known.widths.get((name, len(versions)))
            type = value.type if wide is None else unified(wide, value.type)
            assert type is not None
            v = self.variable(name, type)
            versions.append(v)
        self.statements.append(Assign(v, self.converted(value, v.type)))
        self.names[name] = v

    # values

    def solid(self, value: Value) -> Value:
        """Return a value in memory, if it is a known number or a tuple of numbers."""
        if isinstance(value, Static):
            type = type_of_static(value.value)
            if isinstance(type, Number):
                return constant(value.value, type)
            if isinstance(type, TupleType):
                return MakeTuple(type, tuple(self.solid(Static(x)) for x in value.value))
        if isinstance(value, MakeTuple) and any(isinstance(x, Static) for x in value.items):
            items = tuple(map(self.solid, value.items))
            return MakeTuple(TupleType(tuple(x.type for x in items), value.type.kind), items)
        return value

    def converted(self, value: Value, type: Type) -> Value:
        """Return a value converted to another type, which `unified` accepts."""
        value = self.solid(value)
        if value.type == type:
            return value
        if isinstance(type, Number):
            return self.as_number(value, type)
        if isinstance(type, TupleType):
            items = tuple(self.converted(x, t) for x, t in zip(self.items(value), type.items, strict=True))
            return MakeTuple(type, items)
        return value

    def as_number(self, value: Value, type: Number) -> NumberValue:
        """Return a number converted to another type."""
        value = self.solid(value)
        if not is_number(value):
            self.fail(f"{value.type} where {type} is needed")
        if value.type == type:
            return value
        if isinstance(value, Constant) and (type != INT or math.isfinite(value.value)):
            return constant(value.value, type)
        return Convert(type, value, self.place() if value.type == FLOAT and type == INT else 0)

    def fitted(self, value: Value, pattern: Pattern | None) -> Value | None:
        """Return a value converted to its annotation, or None if it does not fit."""
        value = self.solid(value)
        if not fits(pattern, value.type):
            return None
        if isinstance(pattern, OneOf):
            pattern = exact(pattern, value.type)
        if isinstance(pattern, Number):
            return self.as_number(value, pattern)
        if not isinstance(pattern, ItemsPattern) or not is_tuple(value):
            return value
        patterns = pattern.items * len(value.type.items) if pattern.repeated else pattern.items
        if all(not isinstance(x, Number) or x == t for x, t in zip(patterns, value.type.items, strict=True)):
            return value
        items = tuple(x for x in map(self.fitted, self.items(value), patterns) if x is not None)
        return MakeTuple(TupleType(tuple(x.type for x in items), value.type.kind), items)

    @overload
    def bound(self, value: NumberValue, wish: str = ...) -> NumberValue: ...
    @overload
    def bound(self, value: ArrayValue, wish: str = ...) -> ArrayValue: ...
    @overload
    def bound(self, value: TupleValue, wish: str = ...) -> TupleValue: ...
    @overload
    def bound(self, value: Value, wish: str = ...) -> Value: ...
    def bound(self, value: Value, wish: str = "value") -> Value:
        """Store the value in a variable, so that it is evaluated once and here."""
        value = self.solid(value)
        if is_stable(value):
            return value
        if isinstance(value, MakeTuple):
            return MakeTuple(value.type, tuple(self.bound(x) for x in value.items))
        v = self.variable(wish, value.type)
        self.statements.append(Assign(v, value))
        return Read(v)

    def items(self, value: Value) -> tuple[Value, ...]:
        """Return the items of a tuple, which is evaluated once."""
        value = self.solid(value)
        if isinstance(value, MakeTuple):
            return value.items
        if not is_tuple(value):
            self.fail(f"the items of {value.type}")
        whole = self.bound(value)
        return tuple(item_of(whole, k) for k in range(len(whole.type.items)))

    def in_order(self, values: list[Value], marks: list[int]) -> list[Value]:
        """Return operands that keep their order if a later one needs statements.

        `marks` are lengths of the block after each.
        """
        block, last = self.statements, len(self.statements)
        for k in range(len(values) - 1, -1, -1):
            if marks[k] < last and not is_stable(values[k]):
                self.statements = []
                values[k] = self.bound(values[k])
                block[marks[k] : marks[k]] = self.statements
        self.statements = block
        return values


def constant(value: float, type: Number | None = None) -> Constant:
    """Return a known number in memory, converted to a type if one is given."""
    own = type or type_of_static(value)
    assert isinstance(own, Number)
    return Constant(own, {"bool": bool, "int": int, "float": float}[own.name](value))


def is_stable(value: Value) -> bool:
    """Return whether a value is the same, and costs nothing, wherever it is evaluated."""
    if isinstance(value, (Constant, Static, Read)):
        return True
    if isinstance(value, MakeTuple):
        return all(map(is_stable, value.items))
    if isinstance(value, TupleItem):
        return is_stable(value.whole)
    return isinstance(value, Length) and is_stable(value.array)


def item_of(value: TupleValue, number: int) -> Value:
    """Return one item of a stable tuple."""
    if isinstance(value, MakeTuple):
        return value.items[number]
    type = value.type.items[number]
    return Static(type.value) if isinstance(type, StaticType) else TupleItem(type, value, number)


def assigned_names(nodes: list[ast.stmt]) -> set[str]:
    """Return the names that statements set."""
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
