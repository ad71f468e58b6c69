"""Named tuples of the results of functions that have several."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any

from ..summaries import summary


@cache
def result_class(name: str, fields: tuple[str, ...]) -> type:
    """Return a class of named tuples for several results, which can be pickled."""
    base: Any = namedtuple(name, fields)  # type: ignore[misc]  # its fields are known when the function is

    def reduce(self: tuple[Any, ...]) -> tuple[Any, ...]:
        return _result, (name, fields, tuple(self))

    return type(name, (base,), {"__slots__": (), "__reduce__": reduce, "__repr__": summary, "__module__": __name__})


def _result(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """Return a named tuple from its pickle."""
    return result_class(name, fields)(*values)
