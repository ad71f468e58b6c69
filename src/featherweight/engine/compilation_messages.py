"""Messages to users who wait for compilations: records of the logger "featherweight".

A compilation first makes traces and plans. Writing the code and making machine code then takes about as long, or longer if LLVM
generates all of the code. The time of the first part, on this machine and under its load, therefore predicts the total. If the
prediction exceeds `PATIENCE`, a WARNING names the function that is compiled. Python shows warnings on standard error unless the
program has set up logging. Without the message the program would appear to hang; it appears once for each function on a
machine. An INFO record with the time follows a compilation that took longer than `LONG`. Nested compilations, as of all
functions of a simulation, count as one.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from collections.abc import Iterator
from typing import Self

from .cache_folder import log

LONG, PATIENCE = 1.0, 2.0  # [s] least times of compilations that are reported afterwards, and in advance
WHOLE = 2.5  # total time over that of traces and plans: 1.7 to 2.5 were measured with parts in assembly, up to 6 without


class Wait:
    """Code that a user waits for, compiled in one or several `with` blocks, with at most one message.

    The total is `whole` times the time before the first `report_if_long` that predicts a long wait. Meanwhile Python's cycle
    collector is off: traces are many objects without cycles, and collections would take a twentieth of the time.
    """

    def __init__(self, what: str, whole: float = WHOLE) -> None:
        self.what, self.whole = what, whole
        self.begun, self.reported = 0.0, False

    def __enter__(self) -> Self:
        if _now.depth == 0:
            _now.wait, self.begun, _now.collects = self, time.perf_counter(), gc.isenabled()
            if _now.collects:
                self._stop_collecting()
        _now.depth += 1
        return self

    def _stop_collecting(self) -> None:
        try:
            _without_collector.append(self)
            gc.disable()
        except BaseException:  # Ctrl-C, which would leave the collector off
            gc.enable()
            raise

    def __exit__(self, kind: object, *_: object) -> None:
        _now.depth -= 1
        if _now.depth == 0:
            _now.wait = None
            if _now.collects:
                gc.enable()
                _without_collector[:] = [x for x in _without_collector if x is not self]
            if kind is None:
                report_end(self.what, time.perf_counter() - self.begun)


_reported: set[str] = set()  # compilations that were reported in this process
_without_collector: list[Wait] = []  # compilations that have turned the collector off


class _Now(threading.local):
    """The outermost compilation of this thread, the depth of nested ones, and whether the collector is on again afterwards.

    Several threads may wait for the same code.
    """

    wait: Wait | None = None
    depth = 0
    collects = False


_now = _Now()


def _collect_again() -> None:
    """Turn the collector on in a forked child, if a thread of its parent has turned it off."""
    if _without_collector and _now.wait not in _without_collector:
        _without_collector.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_collect_again)


@contextlib.contextmanager
def reporting(what: str, how_long: str = "") -> Iterator[None]:
    """Report a compilation: immediately if `how_long` is given, otherwise when `report_if_long` predicts a long wait.

    A nested compilation is part of the outer one and is not reported.
    """
    with Wait(what) as wait:
        if how_long and _now.wait is wait:
            wait.reported = True
            report_begin(what, how_long)
        yield


def report_if_long() -> None:
    """Report the current compilation if it will take long. Call this before plans are written, and between traces."""
    wait = _now.wait
    if wait is None or wait.reported:
        return
    elapsed = time.perf_counter() - wait.begun
    if WHOLE * elapsed <= PATIENCE:
        return
    wait.reported, seconds = True, wait.whole * elapsed
    report_begin(wait.what, f"about {seconds:.1g} s" if seconds < 10.0 else f"about {round(seconds, -1):.0f} s")


def report_begin(what: str, how_long: str) -> None:
    """Report a compilation; one of the same name in this process is not said to be the only one on this machine."""
    log.warning(
        "featherweight: compiling %s%s: %s", what, " again" if what in _reported else ", once for this machine", how_long
    )
    _reported.add(what)


def report_end(what: str, seconds: float) -> None:
    if seconds >= LONG:
        log.info("featherweight: compiled %s in %.1f s", what, seconds)
