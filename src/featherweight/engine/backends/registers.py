"""Allocation of values to registers in a part of a plan.

LLVM's allocator is slow and not optimal if more values are live than there are registers. Code is therefore planned for the
available number: the value that is read last is evicted first (Belady 1966), to the stack unless it is in memory anyway. A
volatile load brings it back. LLVM does not merge such a load with an earlier one or with the store, but it can still be part of
an instruction.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence


class Registers:
    """The values in registers while nodes are computed in sequence; the k-th node reads `reads[k]`.

    There are `most` registers.
    """

    def __init__(self, reads: Sequence[Iterable[int]] = (), most: int = sys.maxsize) -> None:
        self.values: dict[int, int] = {}
        self.spread: dict[int, int] = {}  # scalars broadcast to all lanes
        self.most = most
        self._readers: dict[int, list[int]] = {}  # readers of each node, the next one last
        for k in range(len(reads) - 1, -1, -1):
            for i in reads[k]:
                readers = self._readers.get(i)
                if readers is None:
                    self._readers[i] = [k]
                else:
                    readers.append(k)
        self._next = {i: readers[-1] for i, readers in self._readers.items()}

    def read(self, k: int, nodes: Iterable[int]) -> list[int]:
        """After the k-th node, drop the given nodes that no later node reads, and return them."""
        done = []
        for i in nodes:
            if self._next.get(i, 0) > k:
                continue
            readers = self._readers.get(i)
            while readers and readers[-1] <= k:
                readers.pop()
            if readers:
                self._next[i] = readers[-1]
            else:
                self.values.pop(i, None)
                self.spread.pop(i, None)
                done.append(i)
        return done

    def let_go(self) -> list[tuple[int, int]]:
        """Evict values that are read last, while there are too many; return the evicted nodes with their values."""
        gone = []
        while len(self.values) + len(self.spread) > self.most:
            i = max((*self.spread, *self.values), key=self._next.__getitem__)
            if self.spread.pop(i, None) is None:
                gone.append((i, self.values.pop(i)))
        return gone
