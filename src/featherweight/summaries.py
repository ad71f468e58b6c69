"""Short texts of large objects: what `print` and a Python shell show of results, tables and lists."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
K = TypeVar("K")

NUMBERS = 12  # that are shown of an array; of a larger one, its shape and range
SEARCHED = 10_000_000  # numbers whose range is found in a few hundredths of a second
FIELD, LIST = 80, 1500  # characters of a field, and of the names in a list


CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""Characters by which text controls a terminal, or changes the direction of text; without tabs and ends of lines."""


def visible(text: str) -> str:
    """Return text for a terminal: control characters, which names in files may contain, become escapes as in `repr`."""
    return CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


class VisibleMessage(Exception):
    """An exception or a warning whose message is `visible`."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(visible(x) if isinstance(x, str) else x for x in args))


def summary(x: object) -> str:
    """Return the class of a named tuple or dataclass, and its fields in a few words: "<Plan: q (31, 9) from -1 to 2>".

    Fields of dataclasses that are empty or have their default are left out.
    """
    said = ", ".join(f"{name} {_words(value)}" for name, value in _fields(x))
    return visible(f"<{type(x).__name__}{': ' if said else ''}{said}>")


def summarized(cls: type[T]) -> type[T]:
    """Give a named tuple or dataclass `summary` as its text."""
    cls.__repr__ = summary  # type: ignore[method-assign]
    return described(cls)


FIELD_LINE = re.compile(r"^    (\w+): ([^=#\n]+?)(?: = [^#\n]*)?(?:  # (.*))?$", re.MULTILINE)


def described(cls: type[T]) -> type[T]:
    """Give the fields of a named tuple the comments of their lines as texts, which `help` shows, or else their types."""
    names = getattr(cls, "_fields", ()) if issubclass(cls, tuple) else ()
    if names:
        source = _source(cls.__module__)
        begin = source.find(f"\nclass {cls.__name__}(")
        for name, kind, comment in FIELD_LINE.findall(source[begin : source.find("\n\n\n", begin)] if begin >= 0 else ""):
            if name in names:
                getattr(cls, name).__doc__ = comment or kind
    return cls


@lru_cache(maxsize=8)
def _source(module: str) -> str:
    """Return the source of a module that is being imported; nothing for one without a file."""
    try:
        return Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8")
    except OSError:
        return ""


class Several(tuple[T, ...]):
    """A tuple whose text has the number of its items and the first names."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _names(self)


class SeveralListed(list[T]):
    """A list with such a text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _names(self)


class SeveralByName(dict[str, K]):
    """A dictionary with such a text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _names(self, list(self.values()))


def _fields(x: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(x, "_fields"):
        yield from zip(x._fields, x, strict=True)
        return
    for f in sorted(fields(x), key=lambda f: f.kw_only is True):  # as in the signature
        value = getattr(x, f.name)
        empty = value is None or (isinstance(value, (tuple, list, dict, str)) and not value)
        default = f.default is not MISSING and type(value) is type(f.default) and value == f.default
        if f.repr and not empty and not default:
            yield f.name, value


def _names(x: Any, kinds: Any = None) -> str:
    """The number of items, their class, and as many of their names as fit."""
    classes = {type(item).__name__ for item in (x if kinds is None else kinds)}
    shown, length = [], 0
    for item in x:
        shown.append((_words(item) if hasattr(item, "shape") else str(getattr(item, "name", item)))[:FIELD])
        length += len(shown[-1]) + 2
        if length > LIST:
            shown[-1] = "..."
            break
    return visible(f"<{len(x)} {classes.pop() if len(classes) == 1 else 'items'}{': ' if shown else ''}{', '.join(shown)}>")


def _words(x: Any) -> str:
    if isinstance(getattr(x, "shape", None), tuple) and x.shape:
        return _array(x)
    if isinstance(x, (float, np.floating)):
        return f"{x:.6g}"
    if isinstance(x, (tuple, list, dict, set, frozenset)) and not hasattr(x, "_fields") and len(x) > NUMBERS:
        return f"of {len(x)}"
    said = repr(x)
    return said if len(said) <= FIELD else f"{said[:FIELD]}..."


def _array(x: Any) -> str:
    """The numbers of a small array; the shape of others, and the range of numbers."""
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiub" or x.size > SEARCHED:
        return f"{tuple(x.shape)}"
    if x.size <= NUMBERS:
        return " ".join(np.array2string(np.asarray(x), precision=4).split())
    if x.dtype == bool:
        return f"{x.shape}, {int(x.sum())} of {x.size} true"
    finite = x[np.isfinite(x)]
    span = f" from {finite.min():.4g} to {finite.max():.4g}" if finite.size else ""
    return f"{x.shape}{span}" + (f", {x.size - finite.size} not finite" if finite.size < x.size else "")
