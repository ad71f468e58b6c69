"""Memory for large results, used again once nothing refers to them any more.

The system clears each page before a process gets it, which takes longer than to compute many a result. So the memory of large
results is kept for later ones: an array refers to a loan as its base, and so does each view of it; when the last of them goes,
the loan goes, and gives its memory back.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

LARGE = 1 << 20  # bytes of an array from which on memory is kept
MOST_KEPT = 1 << 28  # bytes of memory that is kept, and not in use
WASTE = 1.25  # times what is needed, that an array may occupy
ALIGNMENT = 64  # bytes


class _Memory:
    """Some bytes, aligned as a cache line."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._whole = np.empty(size + ALIGNMENT, np.uint8)
        self.address = -(-self._whole.ctypes.data // ALIGNMENT) * ALIGNMENT


class _Loan:
    """Memory of an array, as NumPy asks for it."""

    def __init__(self, lender: ResultMemory, memory: _Memory, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self._lender, self._memory = lender, memory
        self.__array_interface__ = {
            "version": 3, "shape": tuple(shape), "typestr": dtype.str, "data": (memory.address, False),
        }  # fmt: skip

    def __del__(self) -> None:
        self._lender.take_back(self._memory)


class ResultMemory:
    """Memory of at most `most_kept` bytes that is not in use; what was given back first is let go first.

    Loans end at any time, in any thread, so there is no lock: Python does not interrupt the operations on the queue.
    """

    def __init__(self, most_kept: int = MOST_KEPT) -> None:
        self._most_kept = most_kept
        self._free: deque[_Memory] = deque()

    @property
    def kept(self) -> int:
        """Bytes that are kept, and not in use."""
        return sum(memory.size for memory in tuple(self._free))

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """An array like that of `np.empty`; if it is large, in memory that was used before, where there is some."""
        size = math.prod(shape) * dtype.itemsize
        if size < LARGE:
            return np.empty(shape, dtype)
        return np.asarray(_Loan(self, self._taken(size) or _Memory(size), shape, dtype))

    def _taken(self, size: int) -> _Memory | None:
        """Memory of that size, or little more, that is kept no longer."""
        fitting = [memory for memory in tuple(self._free) if size <= memory.size <= WASTE * size]
        for memory in sorted(fitting, key=lambda memory: memory.size):
            try:
                self._free.remove(memory)
            except ValueError:  # another thread has it
                continue
            return memory
        return None

    def take_back(self, memory: _Memory) -> None:
        """Keep memory that is no longer in use."""
        self._free.append(memory)
        while self.kept > self._most_kept:
            try:
                self._free.popleft()
            except IndexError:  # another thread was quicker
                return


RESULTS = ResultMemory()
"""Memory for the results of all functions."""
