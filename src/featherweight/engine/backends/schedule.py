"""The order of a trace's instructions.

Trace order follows one limb at a time, and each operation waits for the one before. The scheduler simulates a machine that
starts one instruction per cycle. It chooses the earliest operation of the trace whose operands are ready, and so fills the
waits of one limb with work of the next, while staying as close to trace order, and hence to short lifetimes of values, as
possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
