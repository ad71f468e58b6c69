"""The memory of arrays as one block, in which addresses become offsets."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from ...array_types import Array

GRAIN = 16  # alignment of arrays in bytes


Overlaid = Sequence[Sequence[Sequence[Array]]]  # sets of alternatives, which are groups of arrays


class MemorySpans:
    """The memory of several arrays, which may overlap, and its layout in one block elsewhere.

    There, alternatives share memory: groups of arrays of which only one is in use at a time.
    """

    def __init__(self, arrays: Iterable[Array], grain: int = GRAIN, overlaid: Overlaid = ()) -> None:
        self._arrays = [a for a in arrays if a.nbytes]  # kept alive
        spans: list[tuple[int, int]] = []
        for begin, end in sorted((a.ctypes.data, a.ctypes.data + a.nbytes) for a in self._arrays):
            if spans and begin < spans[-1][1]:
                spans[-1] = spans[-1][0], max(end, spans[-1][1])
            else:
                spans.append((begin, end))
        self._begins, self._ends = [b for b, _ in spans], [e for _, e in spans]
        found: dict[int, int] = {}
        self.size = 0
        for alternatives in overlaid:
            ends = [self._put_after(self.size, group, found, grain) for group in alternatives]
            self.size = max((self.size, *ends))
        self.size = self._put_after(self.size, self._arrays, found, grain)
        self._places = [found[k] for k in range(len(spans))]

    def _put_after(self, at: int, arrays: Iterable[Array], found: dict[int, int], grain: int) -> int:
        """Note the places, from an offset on, of the spans of arrays that have none; return where they end."""
        for a in arrays:  # in their own order, so that equal arrays have equal places, wherever they are
            k = bisect_right(self._begins, a.ctypes.data) - 1
            if k >= 0 and a.ctypes.data < self._ends[k] and k not in found:
                found[k] = at
                at += padded(self._ends[k] - self._begins[k], grain)
        return at

    def place(self, address: int) -> int | None:
        """Return the offset that corresponds to an address of this machine; None if it is in none of the arrays."""
        k = bisect_right(self._begins, address) - 1
        return None if k < 0 or address >= self._ends[k] else self._places[k] + address - self._begins[k]

    def put(self, memory: Array) -> None:
        """Copy the arrays' content to a block with this layout."""
        for begin, end, place in zip(self._begins, self._ends, self._places, strict=True):
            ctypes.memmove(memory.ctypes.data + place, begin, end - begin)

    def take(self, memory: Array) -> None:
        """Copy the content of such a block to the arrays."""
        for begin, end, place in zip(self._begins, self._ends, self._places, strict=True):
            ctypes.memmove(begin, memory.ctypes.data + place, end - begin)


def padded(size: int, grain: int = GRAIN) -> int:
    """Return a size in bytes, padded for the next item."""
    return -(-size // grain) * grain
