"""Which values registers hold, in a part of a plan.

LLVM's allocator works longest, and not best, where more values live than there are registers. So code is planned for the number
that there are: what is read last goes first (Belady 1966), to the stack unless it is in memory anyway. It is loaded again by a
volatile load, which LLVM does not merge with an earlier one or with the store, but which may still be part of an instruction.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence


class Registers:
    """The numbers of values of nodes, while nodes are computed one after the other, of which the k-th reads `reads[k]`.

    There are `most` registers; None is as many as one likes.
    """

    def __init__(self, reads: Sequence[Iterable[int]] = (), most: int | None = None) -> None:
        self.values: dict[int, int] = {}
        self.spread: dict[int, int] = {}  # scalars in all lanes
        self.most = most
        self._readers: dict[int, deque[int]] = defaultdict(deque)
        for k, nodes in enumerate(reads):
            for i in nodes:
                self._readers[i].append(k)

    def read(self, k: int, nodes: Iterable[int]) -> list[int]:
        """The k-th has been computed: let go of those of the nodes that none after it reads, and say which."""
        done = []
        for i in nodes:
            readers = self._readers[i]
            while readers and readers[0] <= k:
                readers.popleft()
            if not readers:
                self.values.pop(i, None)
                self.spread.pop(i, None)
                done.append(i)
        return done

    def let_go(self) -> Iterator[tuple[int, int]]:
        """Of what is read last, as long as there is too much; gives nodes that no register holds any more, with their values."""
        while self.most is not None and len(self.values) + len(self.spread) > self.most:
            i = max((*self.spread, *self.values), key=lambda i: self._readers[i][0])
            if self.spread.pop(i, None) is None:
                yield i, self.values.pop(i)
