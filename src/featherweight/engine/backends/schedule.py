"""The order of a trace's instructions, and the values that are in registers meanwhile.

Trace order follows one limb at a time, and each operation waits for the one before. The scheduler simulates a machine that
starts one instruction per cycle. It chooses the earliest operation of the trace whose operands are ready, and so fills the
waits of one limb with work of the next, while staying as close to trace order, and hence to short lifetimes of values, as
possible.

LLVM's allocator is slow and not optimal if more values are live than there are registers. Code is therefore planned for the
available number: the value that is read last is evicted first (Belady 1966), to the stack unless it is in memory anyway. A
volatile load brings it back. LLVM does not merge such a load with an earlier one or with the store, but it can still be part of
an instruction.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush


def schedule(nodes: Sequence[int], reads: Mapping[int, Sequence[int]], latencies: Sequence[int]) -> list[int]:
    """Order `nodes` to hide their latencies [cycles].

    The nodes are given in an order that respects `reads` (the operands of a node).
    """
    count = len(nodes)
    place = {i: k for k, i in enumerate(nodes)}
    readers: list[list[int]] = [[] for _ in nodes]
    waiting = [0] * count  # number of operands not yet started
    for k, i in enumerate(nodes):
        for j in reads[i]:
            p = place.get(j)
            if p is not None:
                readers[p].append(k)
                waiting[k] += 1
    ready = [k for k, n in enumerate(waiting) if n == 0]
    pending: list[int] = []  # cycle in which the operands are ready, times the number of nodes, plus the place
    available = [0] * count
    order: list[int] = []
    cycle = 0
    while ready or pending:
        while pending and pending[0] < (cycle + 1) * count:
            heappush(ready, heappop(pending) % count)
        if not ready:
            cycle = pending[0] // count
            continue
        k = heappop(ready)
        order.append(nodes[k])
        finished = cycle + latencies[k]
        for r in readers[k]:
            waiting[r] -= 1
            if available[r] < finished:
                available[r] = finished
            if waiting[r] == 0:
                heappush(pending, available[r] * count + r)
        cycle += 1
    return order


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

    def evict(self) -> list[tuple[int, int]]:
        """Evict values that are read last, while there are too many; return the evicted nodes with their values."""
        evicted = []
        while len(self.values) + len(self.spread) > self.most:
            i = max((*self.spread, *self.values), key=self._next.__getitem__)
            if self.spread.pop(i, None) is None:
                evicted.append((i, self.values.pop(i)))
        return evicted
