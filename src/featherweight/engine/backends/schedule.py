"""The order in which a trace's instructions are written.

Trace order runs along one limb at a time, each operation waiting for the one before. This order imitates a machine that
starts one instruction a cycle: it takes the earliest operation of the trace whose operands are ready, and so fills the
waits of one limb with work of the next, while staying as near to trace order, hence to short lives of values, as it can.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence


def schedule(nodes: Sequence[int], reads: Callable[[int], tuple[int, ...]], latency: Callable[[int], int]) -> list[int]:
    """Order `nodes`, given in an order that respects `reads` (the operands of a node), to hide `latency` cycles."""
    place = {i: k for k, i in enumerate(nodes)}
    readers: list[list[int]] = [[] for _ in nodes]
    waiting = [0] * len(nodes)  # operands not yet started
    for k, i in enumerate(nodes):
        for j in set(reads(i)):
            if j in place:
                readers[place[j]].append(k)
                waiting[k] += 1
    ready = [k for k, n in enumerate(waiting) if n == 0]
    pending: list[tuple[int, int]] = []  # (cycle in which the operands are there, place)
    available = [0] * len(nodes)
    order: list[int] = []
    cycle = 0
    while ready or pending:
        while pending and pending[0][0] <= cycle:
            heapq.heappush(ready, heapq.heappop(pending)[1])
        if not ready:
            cycle = pending[0][0]
            continue
        k = heapq.heappop(ready)
        order.append(nodes[k])
        finished = cycle + latency(nodes[k])
        for r in readers[k]:
            waiting[r] -= 1
            available[r] = max(available[r], finished)
            if waiting[r] == 0:
                heapq.heappush(pending, (available[r], r))
        cycle += 1
    return order
