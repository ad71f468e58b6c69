"""Which values registers hold, in a function of a kernel.

LLVM's allocator works longest, and not best, where more values live than there are registers. So code is written for the number
that there are: what is read last goes first (Belady 1966), to the stack unless it is in memory anyway. It is loaded again by a
volatile load, which LLVM does not merge with an earlier one or with the store, but which may still be part of an instruction.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence

SPARE = 4  # registers for what an instruction loads, and for addresses in memory that LLVM finds


def registers(vector_bytes: int) -> int:
    """Of processors whose vectors are so large; those with SSE alone have fewer, and LLVM sees to it."""
    return (16 if vector_bytes == 32 else 32) - SPARE


class Registers:
    """The values of nodes by name, while instructions are written, of which the k-th reads the nodes `reads[k]`."""

    def __init__(self, reads: Sequence[Iterable[int]] = (), most: int = 32) -> None:
        self.names: dict[int, str] = {}
        self.spread: dict[int, str] = {}  # scalars in all lanes
        self.loaded: set[int] = set()  # nodes that were loaded, or stored to the stack
        self.most = most
        self._readers: dict[int, deque[int]] = defaultdict(deque)
        for k, nodes in enumerate(reads):
            for i in nodes:
                self._readers[i].append(k)

    def read(self, k: int, nodes: Iterable[int]) -> list[int]:
        """Instruction k has been written: let go of those of the nodes that no instruction after it reads, and say which."""
        done = []
        for i in nodes:
            readers = self._readers[i]
            while readers and readers[0] <= k:
                readers.popleft()
            if not readers:
                self.names.pop(i, None)
                self.spread.pop(i, None)
                done.append(i)
        return done

    def let_go(self) -> Iterator[tuple[int, str]]:
        """Of what is read last, as long as there is too much; gives nodes that no register holds any more, with their names."""
        while len(self.names) + len(self.spread) > self.most:
            i = max((*self.spread, *self.names), key=lambda i: self._readers[i][0])
            if self.spread.pop(i, None) is None:
                yield i, self.names.pop(i)
