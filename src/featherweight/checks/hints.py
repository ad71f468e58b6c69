"""The kinds of arguments that type hints stand for."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from inspect import get_annotations
from typing import Annotated, Any, ForwardRef, Union, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike

from .kinds import (
    FUNCTION,
    NAME,
    NOTHING,
    PATH,
    SWITCH,
    Kind,
    dict_of,
    either,
    list_of,
    member_of,
    object_of,
    tuple_of,
)
from .numeric_kinds import (
    ARRAY,
    NUMBER,
    WHOLE,
    numbers,
    rows_of_numbers,
)

CHECKED_LATER = "checked later"
"""Mark of `Annotated` for a parameter that the function itself checks."""


_OF_CLASSES = {bool: SWITCH, int: WHOLE, float: NUMBER, str: NAME, type(None): NOTHING}
_ARRAY_HINTS = frozenset(get_args(ArrayLike))


def kind_of(hint: Any) -> Kind | None:
    """Return the kind of a type hint; None for one that says nothing that a check could use."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kinds = [x for x in hint.__metadata__ if isinstance(x, Kind)]
        return kinds[0] if kinds else None if CHECKED_LATER in hint.__metadata__ else kind_of(args[0])
    if origin in (Union, types.UnionType):
        return _kind_of_union(set(args), [x for x in args if x is not Any])
    if origin is np.ndarray:
        return ARRAY
    if origin is tuple:
        return _kind_of_tuple(args)
    if origin in (Iterable, Sequence, Collection, list):
        item = kind_of(args[0])
        return list_of(item) if item else None
    if origin in (Mapping, dict):
        return dict_of(*map(kind_of, args))
    if origin is Callable or hint is Callable:
        return FUNCTION
    hint = origin if isinstance(origin, type) else hint
    if not isinstance(hint, type) or hint in (Any, object) or getattr(hint, "_is_protocol", False):
        return None
    if hint in _OF_CLASSES:
        return _OF_CLASSES[hint]
    return member_of(hint) if issubclass(hint, Enum) else object_of(hint)


def _kind_of_union(every: set[Any], args: list[Any]) -> Kind | None:
    kinds: list[Kind | None] = []
    if every >= _ARRAY_HINTS:
        kinds, args = [ARRAY], [x for x in args if x not in _ARRAY_HINTS]
    elif any(get_origin(x) is os.PathLike for x in args) and str in args:
        kinds, args = [PATH], [x for x in args if x is not str and get_origin(x) is not os.PathLike]
    kinds += map(kind_of, sorted(args, key=lambda x: x is type(None)))
    known = [kind for kind in kinds if kind]
    return either(known) if len(known) == len(kinds) and known else None


def _kind_of_tuple(args: tuple[Any, ...]) -> Kind | None:
    if not args:
        return None
    if args[-1] is Ellipsis:
        item = kind_of(args[0])
        return numbers() if args[0] is float else list_of(item) if item else None
    if all(x is float for x in args):
        return numbers(len(args))
    if len({*args}) == 1 and {*get_args(args[0])} == {float}:
        return rows_of_numbers(len(args), len(get_args(args[0])))
    items = [kind_of(x) for x in args]
    known = [kind for kind in items if kind]
    return tuple_of(*known) if len(known) == len(items) else None


def kinds_of(function: Any, cls: type | None) -> dict[str, Kind]:
    """Return the kinds of the parameters of a function, or of the fields of a class, by name."""
    owners = [function] if cls is None else [c for c in cls.__mro__[::-1] if c.__module__ in sys.modules]
    kinds = {}
    for owner in owners:
        space = getattr(owner, "__globals__", None) or vars(sys.modules[owner.__module__])
        for name, said in get_annotations(owner).items():
            if name != "return" and (kind := kind_of(_resolved(said, space))):
                kinds[name] = kind
    return kinds


def _resolved(hint: Any, space: dict[str, Any]) -> Any:
    """Return the object that a type hint stands for; Any if a name of it is for type checkers only."""
    text = hint.__forward_arg__ if isinstance(hint, ForwardRef) else hint
    if not isinstance(text, str):
        return text
    try:
        return eval(text, space)  # hints of this package's own source code
    except (NameError, TypeError):
        return Any
