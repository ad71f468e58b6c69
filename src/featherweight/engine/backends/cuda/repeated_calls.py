"""Calls that are as an earlier one, but for where the arrays lie: what that one found out about them holds again.

The checks of a first call take longer than a kernel for a thousand states.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .arrays import DeviceArray, Library, library_of_class
from .driver import Device


class Repeated(NamedTuple):
    """Facts that an earlier call found; arrays are the arguments, then the results."""

    library: Library
    device: Device
    dtype: np.dtype[Any]
    batch: tuple[int, ...]
    states: int
    steps: tuple[int, ...]  # elements from row to row of each array
    bytes: tuple[int, ...]  # from the first to behind the last element of each array
    inputs: int

    def rows(self, arrays: Sequence[Any]) -> list[tuple[int, int]] | None:
        """Return where the rows of arrays of the same layouts lie; None where a result's memory is another array's, too."""
        addresses = [self.library.address(x) for x in arrays]
        spans = [(begin, begin + size) for begin, size in zip(addresses, self.bytes, strict=False)]
        for k in range(self.inputs, len(spans)):
            begin, end = spans[k]
            if any(other[0] < end and begin < other[1] for other in spans[:k]):
                return None
        return list(zip(addresses, self.steps, strict=False))


class RepeatedCalls:
    """The layouts of earlier calls of one function."""

    MOST = 64  # layouts

    def __init__(self) -> None:
        self._calls: dict[Hashable, Repeated] = {}

    def find(self, args: Sequence[Any], results: Sequence[Any]) -> Repeated | None:
        """Return what is known of arguments, and of arrays for results if there are some."""
        if not self._calls:
            return None
        library = library_of_class(type(args[0]))
        return None if library is None else self._calls.get(_key(library, args, results))

    def keep(self, call: Repeated, args: Sequence[Any], results: Sequence[Any], views: Sequence[DeviceArray]) -> None:
        """Remember a call that took all arrays as they lie."""
        key = _key(call.library, args, results)
        if key is not None and all(step >= 0 for view in views for step in view.strides):
            if len(self._calls) >= self.MOST:
                self._calls.clear()
            self._calls[key] = call._replace(bytes=tuple(map(_reach, views)))


def _key(library: Library, args: Sequence[Any], results: Sequence[Any]) -> Hashable:
    """All layouts; None where one is not known, or is of another library."""
    layouts = []
    for x in (*args, *results):
        layout = library.layout(x) if library_of_class(type(x)) is library else None
        if layout is None:
            return None
        layouts.append(layout)
    return (library, len(results), *layouts)


def _reach(view: DeviceArray) -> int:
    """Bytes from the first to behind the last element."""
    if 0 in view.shape:
        return 0
    return view.dtype.itemsize + sum(step * (n - 1) for step, n in zip(view.strides, view.shape, strict=True))
