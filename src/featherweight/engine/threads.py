"""Sharing of a range among threads that release the GIL, in pieces short enough for a prompt Ctrl-C.

Ctrl-C raises KeyboardInterrupt in the main thread after any call of a function. A lock that this thread has just acquired could
therefore stay locked, and block the threads that help it forever. They exchange pieces by queues instead, whose operations are
complete whenever Ctrl-C strikes.
"""

from __future__ import annotations

import _thread
import atexit
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from ..checks import NOTHING, argument, either, whole
from .progress import Progress

SHARES = 4  # pieces per thread, so that a late or slow thread does less
LONGEST = 0.05  # [s] target time of a piece: Python handles signals between pieces
MOST = 32  # threads that help


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


THREADS = either([whole(1), NOTHING]).worded("a whole number of at least 1, or None")


def check_threads(what: str, threads: object) -> None:
    """Raise ValueError unless a number of threads is None or a whole number of at least 1."""
    argument(f"{what}: threads", threads, THREADS)


def share_out(run: Callable[[int, int], None], n: int, threads: int, grain: int = 1, what: str = "") -> None:
    """Call `run(start, stop)` for pieces of range(n), on `threads` threads including this one.

    Pieces are at least `grain` long, unless threads would be idle or, by the times of earlier pieces, a piece would take longer
    than `LONGEST`. If the system provides fewer threads, these do all the work. An error, or Ctrl-C, stops each thread after
    its current piece; the call ends when all have stopped. With `what`, a description of the work, progress is reported.
    """
    with Progress(what, n) as progress:
        _share(_Pieces(run, n, threads, grain, progress), min(threads, n) - 1)


def _share(pieces: _Pieces, helpers: int) -> None:
    interrupt: BaseException | None = None
    try:
        if helpers > 0:
            _helpers.ask(pieces, helpers)
        pieces.work()
    finally:
        pieces.end = 0
        while True:
            try:
                while pieces.in_progress:
                    pieces.ended.get()
                break
            except BaseException as error:  # Ctrl-C: other threads still write results
                interrupt = error
        del pieces.run  # with the arrays of the call: a thread that comes late may still have the pieces
        if interrupt is not None:
            raise interrupt
    if pieces.errors:
        raise pieces.errors[0]


def fitting(count: int, seconds: float, most: int) -> int:
    """Return the length, from 1 to `most`, of a piece that takes `LONGEST`, if a piece of length `count` took some seconds."""
    return max(1, min(most, int(count * LONGEST / seconds))) if seconds > 0 else most


class _Pieces:
    """The rest of a range, from which threads take pieces, and the threads that help with it."""

    def __init__(self, run: Callable[[int, int], None], n: int, threads: int, grain: int, progress: Progress) -> None:
        self.run, self.end, self.progress = run, n, progress
        share = n if threads == 1 else n // (threads * SHARES)
        self.largest = max(share, min(grain, -(-n // threads)), 1)
        self.size = min(self.largest, grain)
        self.rest = deque((k, min(k + self.largest, n)) for k in range(0, n, self.largest))
        self.entered: deque[None] = deque()  # a mark for each thread that has begun to help,
        self.left: deque[None] = deque()  # and for each that has ended
        self.ended: SimpleQueue[None] = SimpleQueue()  # wakes the caller
        self.errors: deque[BaseException] = deque()

    def help(self) -> None:
        """Work in another thread than the caller's."""
        self.entered.append(None)  # before the thread looks at `end`: the caller sets `end`, and then looks at the marks
        try:
            self.work()
        except BaseException as error:
            self.errors.append(error)
        self.left.append(None)
        self.ended.put(None)

    @property
    def in_progress(self) -> bool:
        """Return whether another thread may be at a piece."""
        return len(self.left) < len(self.entered)

    def work(self) -> None:
        """Run pieces until none are left, or one fails."""
        try:
            while (piece := self._taken()) is not None:
                begun = time.perf_counter()
                self.run(*piece)
                self._fit(piece[1] - piece[0], time.perf_counter() - begun)
                self.progress.advance(piece[1] - piece[0])
        except BaseException:
            self.end = 0
            raise

    def _taken(self) -> tuple[int, int] | None:
        try:
            start, stop = self.rest.popleft()
        except IndexError:
            return None
        if not self.end:
            return None
        middle = start + self.size
        if middle < stop:
            self.rest.appendleft((middle, stop))
            return start, middle
        return start, stop

    def _fit(self, count: int, seconds: float) -> None:
        """Adapt the length of pieces to the time of the last one."""
        self.size = fitting(count, seconds, self.largest)


class _Helpers:
    """Threads that wait for calls to help with, and end with the process."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[_Pieces] = SimpleQueue()
        self.idle: deque[None] = deque()  # a mark for each thread that waits
        self.count = 0
        self.exiting = False

    def ask(self, pieces: _Pieces, count: int) -> None:
        """Let up to `count` threads help. They are started as needed, if the system provides them."""
        for _ in range(0 if self.exiting else min(count, MOST)):
            if len(self.idle) <= self.calls.qsize() and self.count < MOST:
                with suppress(RuntimeError):  # no more threads, or the interpreter is exiting
                    _thread.start_new_thread(self._serve, ())  # `threading.Thread` waits for its start, with a lock
                    self.count += 1
            if self.count:
                self.calls.put(pieces)

    def _serve(self) -> None:
        while True:
            self.idle.append(None)
            pieces = self.calls.get()
            self.idle.pop()
            pieces.help()
            del pieces  # with the arrays of the call

    def exit(self) -> None:
        """Leave all work to the threads that call, when the interpreter exits."""
        self.exiting = True


_helpers = _Helpers()
atexit.register(_helpers.exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _Helpers.__init__(_helpers))  # a child has none of its parent's threads
