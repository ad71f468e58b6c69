"""Sharing of a range among threads that release the GIL, in pieces short enough for a prompt Ctrl-C."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ..checks import NOTHING, argument, either, whole
from .progress import Progress

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

SHARES = 4  # pieces per thread, so that a late or slow thread does less
LONGEST = 0.05  # [s] target time of a piece: Python handles signals between pieces

_executor: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


THREADS = either([whole(1), NOTHING])._replace(wanted="a whole number of at least 1, or None")


def check_threads(what: str, threads: object) -> None:
    """Raise ValueError unless a number of threads is None or a whole number of at least 1."""
    argument(f"{what}: threads", threads, THREADS)


def share_out(run: Callable[[int, int], None], n: int, threads: int, grain: int = 1, what: str = "") -> None:
    """Call `run(start, stop)` for pieces of range(n), on `threads` threads including this one.

    Pieces are at least `grain` long, unless threads would be idle or, by the times of earlier pieces, a piece would take longer
    than `LONGEST`. If the system provides fewer threads, these do all the work. An error, or Ctrl-C, stops each thread after
    its current piece. With `what`, a description of the work, progress is reported.
    """
    with Progress(what, n) as progress:
        _share(_Pieces(run, n, threads, grain, progress), n, threads)


def _share(pieces: _Pieces, n: int, threads: int) -> None:
    helpers: list[Future[None]] = []
    with suppress(RuntimeError):  # no more threads, or the interpreter is exiting
        while len(helpers) < threads - 1 and n > 1:
            helpers.append(_pool().submit(pieces.work))
    try:
        pieces.work()
    finally:
        pieces.end = 0
        for helper in helpers:
            if not helper.cancel():
                helper.result()


def fitting(count: int, seconds: float, most: int) -> int:
    """Return the length, from 1 to `most`, of a piece that takes `LONGEST`, if a piece of length `count` took some seconds."""
    return max(1, min(most, int(count * LONGEST / seconds))) if seconds > 0 else most


class _Pieces:
    """The rest of a range, from which threads take pieces."""

    def __init__(self, run: Callable[[int, int], None], n: int, threads: int, grain: int, progress: Progress) -> None:
        self.run, self.start, self.end, self.progress = run, 0, n, progress
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
                with self.lock:
                    self.progress.advance(piece[1] - piece[0])
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
        """Adapt the length of pieces to the time of the last one."""
        self.size = fitting(count, seconds, self.largest)


def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # importing fails while the interpreter exits

    global _executor
    with _lock:
        if _executor is None:
            _executor = ThreadPoolExecutor(32, thread_name_prefix="featherweight")
        return _executor


def _forget_threads() -> None:
    """Forget the threads in a forked child, which has none of its parent's threads, and possibly their locks."""
    global _executor, _lock
    _executor, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
