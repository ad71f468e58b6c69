"""Which values registers hold, in a part of a plan.

LLVM's allocator works longest, and not best, where more values live than there are registers. So code is planned for the number
that there are: what is read last goes first (Belady 1966), to the stack unless it is in memory anyway. It is loaded again by a
volatile load, which LLVM does not merge with an earlier one or with the store, but which may still be part of an instruction.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence


class Registers:
    """The numbers of values of nodes, while nodes are computed one after the other, of which the k-th reads `reads[k]`.

    There are `most` registers.
    """

    def __init__(self, reads: Sequence[Iterable[int]] = (), most: int = sys.maxsize) -> None:
        self.values: dict[int, int] = {}
        self.spread: dict[int, int] = {}  # scalars in all lanes
        self.most = most
        self._readers: dict[int, list[int]] = {}  # of each node, the next one last
        for k in range(len(reads) - 1, -1, -1):
            for i in reads[k]:
                readers = self._readers.get(i)
                if readers is None:
                    self._readers[i] = [k]
                else:
                    readers.append(k)
        self._next = {i: readers[-1] for i, readers in self._readers.items()}

    def read(self, k: int, nodes: Iterable[int]) -> list[int]:
        """The k-th has been computed: let go of those of the nodes that none after it reads, and say which."""
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
        """Let go of what is read last, while there is too much; give the nodes that are held no more, with their values."""
        gone = []
        while len(self.values) + len(self.spread) > self.most:
            i = max((*self.spread, *self.values), key=self._next.__getitem__)
            if self.spread.pop(i, None) is None:
                gone.append((i, self.values.pop(i)))
        return gone
