"""Reuse of memory for large results.

The system clears each page before a process gets it, which takes longer than computing many results. The memory of large
results is therefore kept for later ones. An array has a loan as its base, and so does each view of it. When the last of them is
freed, the loan returns its memory.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...array_types import Array

LARGE = 1 << 20  # least size in bytes of an array whose memory is kept
MOST_KEPT = 1 << 28  # greatest size in bytes of unused memory
WASTE = 1.25  # greatest ratio of the size of memory to that of its array
ALIGNMENT = 64  # bytes


class _Memory:
    """A block of memory, aligned to a cache line."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._whole = np.empty(size + ALIGNMENT, np.uint8)
        self.address = -(-self._whole.ctypes.data // ALIGNMENT) * ALIGNMENT


class _Loan:
    """Memory of an array, with the interface that NumPy requires."""

    def __init__(self, lender: ResultMemory, memory: _Memory, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self._lender, self._memory = lender, memory
        self.__array_interface__ = {
            "version": 3, "shape": tuple(shape), "typestr": dtype.str, "data": (memory.address, False),
        }  # fmt: skip

    def __del__(self) -> None:
        self._lender.take_back(self._memory)


class ResultMemory:
    """At most `most_kept` bytes of unused memory; the oldest is freed first.

    Loans end at any time, in any thread. There is no lock, because Python does not interrupt the operations on the queue.
    """

    def __init__(self, most_kept: int = MOST_KEPT) -> None:
        self._most_kept = most_kept
        self._free: deque[_Memory] = deque()

    @property
    def kept(self) -> int:
        """Bytes of unused memory."""
        return sum(memory.size for memory in tuple(self._free))

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Return an array as `np.empty` does; a large one uses kept memory if possible."""
        size = math.prod(shape) * dtype.itemsize
        if size < LARGE:
            return np.empty(shape, dtype)
        return np.asarray(_Loan(self, self._taken(size) or _Memory(size), shape, dtype))

    def _taken(self, size: int) -> _Memory | None:
        """Remove and return kept memory of this size, or little more."""
        fitting = [memory for memory in tuple(self._free) if size <= memory.size <= WASTE * size]
        for memory in sorted(fitting, key=lambda memory: memory.size):
            try:
                self._free.remove(memory)
            except ValueError:  # another thread took it
                continue
            return memory
        return None

    def take_back(self, memory: _Memory) -> None:
        """Keep memory that is no longer used."""
        self._free.append(memory)
        while self.kept > self._most_kept:
            try:
                self._free.popleft()
            except IndexError:  # another thread was faster
                return


RESULTS = ResultMemory()
"""Memory for the results of all functions."""
