"""Types of values in compiled kernels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .kernel_tables import Layout, LayoutList


class Number(NamedTuple):
    """A 64-bit whole number, a 64-bit floating-point number, or a truth value."""

    name: str

    def __str__(self) -> str:
        return self.name


BOOL, INT, FLOAT = Number("bool"), Number("int"), Number("float")
RANK = {BOOL: 0, INT: 1, FLOAT: 2}  # a number may be converted to a higher rank


class ArrayType(NamedTuple):
    """A C-contiguous array; or a list made by a kernel, whose elements may be tuples of numbers, one word for each number."""

    dtype: Any  # NumPy's name, or a TupleType
    axes: int
    interleaved: bool = False  # interleaved arrays of several lanes

    def __str__(self) -> str:
        axes = f"{self.axes} {'axis' if self.axes == 1 else 'axes'}"
        return f"{'interleaved ' * self.interleaved}array of {self.dtype} with {axes}"

    def part(self, indices: int) -> ArrayType:
        """Return the type of the part at this number of leading indices."""
        return self._replace(axes=self.axes - indices)

    @property
    def item(self) -> Any:
        """The type of an element after it is read."""
        if isinstance(self.dtype, TupleType):
            return self.dtype
        return BOOL if self.dtype == "bool" else FLOAT if self.dtype.startswith("float") else INT


class TupleType(NamedTuple):
    """A tuple, or a named tuple of class `kind`."""

    items: tuple[Type, ...]
    kind: Any = None  # the class of a named tuple

    def __str__(self) -> str:
        return f"{self.kind.__name__ if self.kind else ''}({', '.join(map(str, self.items))})"


class TableType:
    """A table of a layout."""

    __slots__ = ("_hash", "_text", "layout")

    def __init__(self, layout: Layout) -> None:
        self.layout, self._text = layout, layout.text()
        self._hash = hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableType) and self._hash == other._hash and self._text == other._text

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"table of {self.layout.kind.__name__}"


class TableListType(NamedTuple):
    """Several tables of one layout."""

    item: TableType
    length: int

    @classmethod
    def of(cls, layout: LayoutList) -> TableListType:
        """Return the type of tables of a layout."""
        return cls(TableType(layout.each), layout.count)

    def __str__(self) -> str:
        return f"list of {self.length} {self.item}"


class StaticType:
    """Type of a value that is known at compilation and needs no memory: None, a function, a class, a string or a module."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticType) and same_static(self.value, other.value)

    def __hash__(self) -> int:
        return hash(self.value) if isinstance(self.value, str) else id(self.value)

    def __str__(self) -> str:
        return "None" if self.value is None else f"the constant {getattr(self.value, '__qualname__', repr(self.value))}"


Type = Number | ArrayType | TupleType | TableType | TableListType | StaticType
NONE = StaticType(None)


def named_tuples(types: Iterable[Type]) -> tuple[type, ...]:
    """Return the classes of named tuples in types."""
    found: set[type] = set()
    for t in types:
        if isinstance(t, TupleType):
            found |= {*named_tuples(t.items), *([t.kind] if t.kind else [])}
    return tuple(sorted(found, key=repr))


def dtype_of(item: Type) -> str | Type:
    """Return the element type of an array whose items have a type."""
    return {BOOL: "bool", INT: "int64", FLOAT: "float64"}[item] if isinstance(item, Number) else item


def same_static(a: object, b: object) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, (str, int, float)) and a == b)


def unified(a: Type, b: Type) -> Type | None:
    """Return the common type of two types, to which values of both convert; None if there is none."""
    if a == b:
        return a
    if isinstance(a, Number) and isinstance(b, Number):
        return a if RANK[a] > RANK[b] else b
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.items) == len(b.items):
        items = tuple(z for x, y in zip(a.items, b.items, strict=True) if (z := unified(x, y)) is not None)
        if len(items) == len(a.items) and (a.kind is b.kind or a.kind is None or b.kind is None):
            return TupleType(items, a.kind if a.kind is b.kind else None)
    return None


def type_of_static(value: object) -> Type:
    """Return the type of a known value, when it is in memory."""
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, (int, np.integer)):
        return INT
    if isinstance(value, (float, np.floating)):
        return FLOAT
    if isinstance(value, tuple):
        return TupleType(tuple(map(type_of_static, value)), type(value) if hasattr(value, "_fields") else None)
    return StaticType(value)


def type_of(value: object) -> Type:
    """Return the type of an argument."""
    if isinstance(value, np.ndarray):
        return ArrayType(value.dtype.name, value.ndim)
    if isinstance(value, tuple):
        return TupleType(tuple(map(type_of, value)), type(value) if hasattr(value, "_fields") else None)
    return type_of_static(value)
