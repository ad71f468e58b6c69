"""A range shared by threads that release the GIL, in pieces so short that Ctrl-C does not wait for long."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

SHARES = 4  # of the range for each thread: one that wakes late, or is slowed, does less
LONGEST = 0.05  # seconds that a piece is to take: between pieces Python sees signals

_executor: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_out(run: Callable[[int, int], None], n: int, threads: int, grain: int = 1) -> None:
    """Call `run(start, stop)` for pieces that make up range(n), on `threads` threads, this one included.

    Pieces are not smaller than `grain`, unless threads would have nothing to do or a piece would take longer than `LONGEST`, as
    far as those before it tell. Where the process or the system gives no more threads, those that are there do the work. An
    error, or Ctrl-C, ends all threads after the pieces that they are at.
    """
    pieces = _Pieces(run, n, threads, grain)
    helpers: list[Future[None]] = []
    with suppress(RuntimeError):  # no more threads, or none any more at the interpreter's exit
        while len(helpers) < threads - 1 and n > 1:
            helpers.append(_pool().submit(pieces.work))
    try:
        pieces.work()
    finally:
        pieces.end = 0
        for helper in helpers:
            if not helper.cancel():
                helper.result()


class _Pieces:
    """Remaining part of a range, from which threads take pieces."""

    def __init__(self, run: Callable[[int, int], None], n: int, threads: int, grain: int) -> None:
        self.run, self.start, self.end = run, 0, n
        share = n if threads == 1 else n // (threads * SHARES)
        self.largest = max(share, min(grain, -(-n // threads)), 1)
        self.size = min(self.largest, grain)
        self.lock = threading.Lock()

    def work(self) -> None:
        """Run pieces until none are left, or one fails."""
        try:
            while (piece := self._taken()) is not None:
                begun = time.perf_counter()
                self.run(*piece)
                self._fit(piece[1] - piece[0], time.perf_counter() - begun)
        except BaseException:
            self.end = 0
            raise

    def _taken(self) -> tuple[int, int] | None:
        with self.lock:
            start = self.start
            if start >= self.end:
                return None
            self.start = stop = min(start + self.size, self.end)
            return start, stop

    def _fit(self, count: int, seconds: float) -> None:
        """Make pieces as long as they may be, by the time that the last one took."""
        fitting = int(count * LONGEST / seconds) if seconds > 0 else self.largest
        self.size = max(1, min(self.largest, fitting))


def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # it cannot be imported any more at the interpreter's exit

    global _executor
    with _lock:
        if _executor is None:
            _executor = ThreadPoolExecutor(32, thread_name_prefix="featherweight")
        return _executor


def _forget_threads() -> None:
    """In a forked child, which has none of its parent's threads, and perhaps their locks."""
    global _executor, _lock
    _executor, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
