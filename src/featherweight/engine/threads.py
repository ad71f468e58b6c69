"""A range shared by threads that release the GIL."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

PIECES = 4  # a thread's share at most, so that one that wakes late, or is slowed, does less

_lock = threading.Lock()
_executors: dict[int, ThreadPoolExecutor] = {}  # by process: a forked child starts its own threads


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_out(run: Callable[[int, int], None], n: int, threads: int, grain: int = 1) -> None:
    """Call `run(start, stop)` for pieces that make up range(n), on `threads` threads, this one included.

    Pieces are not smaller than `grain`, unless threads would have nothing to do.
    """
    if threads == 1 or n <= 1:
        run(0, n)
        return
    size = max(n // (threads * PIECES), min(grain, -(-n // threads)), 1)
    starts = iter(range(0, n, size))

    def work() -> None:
        for start in starts:  # the iterator hands each piece to one thread
            run(start, min(start + size, n))

    helpers = [_pool().submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        for helper in helpers:
            helper.result()


def _pool() -> ThreadPoolExecutor:
    with _lock:
        pool = _executors.get(os.getpid())
        if pool is None:
            pool = _executors[os.getpid()] = ThreadPoolExecutor(32, thread_name_prefix="featherweight")
        return pool
