"""Annotations of kernels as patterns of types: numbers, arrays, named tuples, tuples of these and unions.

`array_types` has names for arrays. Other annotations, such as `Any` and protocols, are not checked.
"""

from __future__ import annotations

import types
import typing
from types import FunctionType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from .kernel_types import BOOL, FLOAT, INT, NONE, ArrayType, Number, StaticType, TableType, TupleType, Type


class ArrayPattern(NamedTuple):
    """An array of a data type with a number of axes; None for any."""

    dtype: str | None
    axes: int | None


class ItemsPattern(NamedTuple):
    """A tuple of items; a repeated pattern matches any number of items."""

    items: tuple[Any, ...]
    repeated: bool


class OneOf(NamedTuple):
    """Any of several patterns."""

    patterns: tuple[Any, ...]


Pattern = Number | StaticType | ArrayPattern | ItemsPattern | OneOf | type
NUMBERS: dict[Any, Number] = {bool: BOOL, int: INT, float: FLOAT, np.bool_: BOOL, np.int64: INT, np.float64: FLOAT}
_known: WeakKeyDictionary[Any, dict[str, Pattern]] = WeakKeyDictionary()


def patterns_of(function: FunctionType) -> dict[str, Pattern]:
    """Return the patterns of a function's parameters, and of its result as "return"; unchecked ones are left out."""
    if function not in _known:
        found = {name: pattern_of(_evaluated(x, function)) for name, x in function.__annotations__.items()}
        _known[function] = {name: x for name, x in found.items() if x is not None}
    return _known[function]


def pattern_named(text: str, function: FunctionType) -> Pattern | None:
    """Return the pattern of an annotation inside a function."""
    return pattern_of(_evaluated(text, function))


def _evaluated(annotation: object, function: FunctionType) -> Any:
    """Return an annotation, or Any if its names are unknown at run time."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, function.__globals__)
    except (NameError, AttributeError, TypeError):
        return Any


def pattern_of(annotation: object) -> Pattern | None:
    """Return the pattern that an annotation requires of a type; None if it requires nothing."""
    if annotation is None or annotation is type(None):
        return NONE
    if annotation in NUMBERS:
        return NUMBERS[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is np.ndarray:
        shape, dtype = args
        inner = typing.get_args(dtype)[0] if typing.get_args(dtype) else Any
        axes = None if typing.get_origin(shape) is not tuple or ... in typing.get_args(shape) else len(typing.get_args(shape))
        return ArrayPattern(np.dtype(inner).name if isinstance(inner, type) and issubclass(inner, np.generic) else None, axes)
    if annotation is np.ndarray:
        return ArrayPattern(None, None)
    if origin is tuple:
        repeated = len(args) == 2 and args[1] is ...
        items = tuple(pattern_of(x) for x in (args[:1] if repeated else args))
        return ItemsPattern(items, repeated)
    if origin in (typing.Union, types.UnionType):
        patterns = tuple(pattern_of(x) for x in args)
        return None if None in patterns else OneOf(patterns)
    if isinstance(annotation, type) and issubclass(annotation, tuple) and hasattr(annotation, "_fields"):
        return annotation
    return None


def fits(pattern: Pattern | None, type: Type) -> bool:
    """Return whether values of a type fit a pattern; truth values convert to ints, and ints to floats."""
    if pattern is None:
        return True
    if isinstance(pattern, Number):
        return isinstance(type, Number) and (type == pattern or (pattern, type) in ((FLOAT, INT), (FLOAT, BOOL), (INT, BOOL)))
    if isinstance(pattern, ArrayPattern):
        return isinstance(type, ArrayType) and pattern.dtype in (None, type.dtype) and pattern.axes in (None, type.axes)
    if isinstance(pattern, ItemsPattern):
        if not isinstance(type, TupleType):
            return False
        items = pattern.items * len(type.items) if pattern.repeated else pattern.items
        return len(items) == len(type.items) and all(map(fits, items, type.items))
    if isinstance(pattern, OneOf):
        return any(fits(x, type) for x in pattern.patterns)
    if isinstance(pattern, StaticType):
        return type == pattern
    kind = type.layout.kind if isinstance(type, TableType) else type.kind if isinstance(type, TupleType) else None
    return kind is not None and issubclass(kind, pattern)


def exact(pattern: OneOf, type: Type) -> Pattern | None:
    """Return the pattern of a union that a type fits, preferably one that needs no conversion; None if it fits none."""
    fitting = [x for x in pattern.patterns if fits(x, type)]
    return next((x for x in fitting if x == type), fitting[0] if fitting else None)


def words(pattern: Pattern | None) -> str:
    """Describe a pattern."""
    if pattern is None:
        return "anything"
    if isinstance(pattern, ArrayPattern):
        axes = "any axes" if pattern.axes is None else "1 axis" if pattern.axes == 1 else f"{pattern.axes} axes"
        return f"an array of {pattern.dtype or 'anything'} with {axes}"
    if isinstance(pattern, ItemsPattern):
        return f"({', '.join(map(words, pattern.items))}{', ...' * pattern.repeated})"
    if isinstance(pattern, OneOf):
        return " or ".join(map(words, pattern.patterns))
    return pattern.__name__ if isinstance(pattern, type) else str(pattern)


def remedy(pattern: Pattern | None, type: Type) -> str:
    """Return advice for the error message about a value that does not fit."""
    if pattern == INT and type == FLOAT:
        return "; convert it by int()"
    if isinstance(pattern, ArrayPattern) and isinstance(type, ArrayType) and pattern.dtype not in (None, type.dtype):
        return f"; convert it by .astype(numpy.{pattern.dtype})"
    return "; change the annotation or the argument"
