"""Functions and classes that check their arguments."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from ..names import ANY_KEYWORDS, misfit, public_signature, wrong_arguments
from ..summaries import described
from .hints import kinds_of
from .kinds import Kind, Refused

T = TypeVar("T")


def checked(thing: T) -> T:
    """Let a function, dataclass or named tuple check and convert its arguments by their type hints.

    A keyword that it does not take raises a TypeError that says which one is meant.
    """
    made: Any = thing
    if not isinstance(made, type):
        return _checking(made, None)
    entry = "__new__" if issubclass(made, tuple) else "__init__"
    methods = {entry: _checking(getattr(made, entry), made)} | ({"_replace": _replaced} if entry == "__new__" else {})
    for name, method in methods.items():
        setattr(made, name, method)
    described(made)
    return thing


def _replaced(self: Any, /, **changes: Any) -> Any:
    """Return a new object with other values of some fields."""
    return type(self)(**{**self._asdict(), **changes})


class Parameter(NamedTuple):
    """A parameter of a function that checks."""

    place: int
    name: str
    fits: frozenset[type]  # types that always fit
    default: Any
    kind: Kind | None


@functools.cache
def _parameters(key: tuple[Any, type | None]) -> tuple[tuple[Parameter, ...], dict[str, Parameter]]:
    """Return the parameters of a function by place and by name; a class has those that its fields say."""
    function, cls = key
    kinds, code = kinds_of(function, cls), function.__code__
    names, places = _names(code), code.co_varnames[: code.co_argcount]
    defaults = dict(zip(places[::-1], (function.__defaults__ or ())[::-1], strict=False)) | (function.__kwdefaults__ or {})
    made = [
        Parameter(k, name, kinds[name].fits if name in kinds else frozenset(), defaults.get(name, _NO_DEFAULT), kinds.get(name))
        for k, name in enumerate(names)
    ]
    return tuple(made[: len(places)]), {x.name: x for x in made}


_NO_DEFAULT = object()


def _names(code: types.CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _checking(function: Any, cls: type | None) -> Any:
    key = function, cls
    unchecked = int(_names(function.__code__)[:1] == ("self",))

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        given: Any = args
        if named or len(args) > unchecked:
            by_place, by_name = _parameters(key)
            several = args if len(args) > unchecked else ()
            for x, (place, name, fits, default, kind) in zip(several, by_place):  # noqa: B905  # may differ; strict is slow
                if kind is not None and type(x) not in fits and x is not default:
                    try:
                        y = kind.convert(x)
                    except Refused as refused:
                        raise _refusal(refused, kind, x, name, function, args, named) from None
                    if y is not x:
                        given = [*args] if given is args else given
                        given[place] = y
            for name, x in named.items():
                if name in by_name:
                    _, _, fits, default, kind = by_name[name]
                    if kind is not None and type(x) not in fits and x is not default:
                        try:
                            named[name] = kind.convert(x)
                        except Refused as refused:
                            raise _refusal(refused, kind, x, name, function, args, named) from None
                elif not function.__code__.co_flags & ANY_KEYWORDS:
                    raise wrong_arguments(function, args, named)
        try:
            return function(*given, **named)
        except TypeError:
            if misfit(function, args, named):
                raise wrong_arguments(function, args, named) from None
            raise

    return call


def _refusal(
    refused: Refused, kind: Kind, x: object, name: str, function: Any, args: tuple[Any, ...], named: Mapping[str, Any]
) -> Exception:
    """Return the error about an argument, which names the function or the part, such as "Joint 'elbow'"."""
    every = dict(zip(function.__code__.co_varnames, args, strict=False)) | dict(named)
    of_part = function.__name__ in ("__init__", "__new__") or function.__name__[0].isupper()
    known = [getattr(every.get(x), "name", every.get(x)) for x in ("name", "frame") if of_part and x != name]
    owner = " ".join([public_signature(function, args)[0], *[repr(x) for x in known if isinstance(x, str)][:1]])
    return kind.error(refused.message(f"{owner}: {name}", kind, x))
