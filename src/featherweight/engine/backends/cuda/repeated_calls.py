"""Calls that differ from an earlier one only in the addresses of arrays: the results of its checks are reused.

The checks of a first call take longer than a kernel for a thousand states.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .arrays import DeviceArray, Library, library_of_class
from .driver import Device


class Repeated(NamedTuple):
    """Results of the checks of an earlier call; arrays are the arguments, then the results."""

    library: Library
    device: Device
    dtype: np.dtype[Any]
    batch: tuple[int, ...]
    states: int
    steps: tuple[int, ...]  # row stride of each array in elements
    bytes: tuple[int, ...]  # extent of each array
    inputs: int

    def rows(self, arrays: Sequence[Any]) -> list[tuple[int, int]] | None:
        """Return the rows of arrays with the same layouts; None if a result shares memory with another array."""
        addresses = [self.library.address(x) for x in arrays]
        spans = [(begin, begin + size) for begin, size in zip(addresses, self.bytes, strict=False)]
        for k in range(self.inputs, len(spans)):
            begin, end = spans[k]
            if any(other[0] < end and begin < other[1] for other in spans[:k]):
                return None
        return list(zip(addresses, self.steps, strict=False))


class RepeatedCalls:
    """The layouts of earlier calls of one function."""

    MOST = 64  # greatest number of layouts

    def __init__(self) -> None:
        self._calls: dict[Hashable, Repeated] = {}

    def find(self, args: Sequence[Any], results: Sequence[Any]) -> Repeated | None:
        """Return the stored results for arguments, and for arrays of results if given."""
        if not self._calls:
            return None
        library = library_of_class(type(args[0]))
        return None if library is None else self._calls.get(_key(library, args, results))

    def keep(self, call: Repeated, args: Sequence[Any], results: Sequence[Any], views: Sequence[DeviceArray]) -> None:
        """Store a call that used all arrays in place."""
        key = _key(call.library, args, results)
        if key is not None and all(step >= 0 for view in views for step in view.strides):
            if len(self._calls) >= self.MOST:
                self._calls.clear()
            self._calls[key] = call._replace(bytes=tuple(map(_reach, views)))


def _key(library: Library, args: Sequence[Any], results: Sequence[Any]) -> Hashable:
    """Return all layouts; None if one is unknown, or belongs to another library."""
    layouts = []
    for x in (*args, *results):
        layout = library.layout(x) if library_of_class(type(x)) is library else None
        if layout is None:
            return None
        layouts.append(layout)
    return (library, len(results), *layouts)


def _reach(view: DeviceArray) -> int:
    """Return the bytes from the first element to the end of the last."""
    if 0 in view.shape:
        return 0
    return view.dtype.itemsize + sum(step * (n - 1) for step, n in zip(view.strides, view.shape, strict=True))
