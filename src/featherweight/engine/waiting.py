"""Messages to users who wait for code to be compiled: records of the logger "featherweight".

A compilation makes traces and plans first. To write them down and to make machine code then takes about as long; it takes
longer where LLVM generates all code. So the time of the first part, on this machine and under its load, tells how long the
user will wait. If that is more than `PATIENCE`, a WARNING says what is compiled: Python shows warnings on standard error where
a program has not set up logging. Without it the program looks as if it hangs, and it happens once for each function on a
machine. An INFO record with the time follows a compilation that took longer than `LONG`. Compilations within another one, as of
all that a simulation needs, are told as that one.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

from .cache_folder import log

LONG, PATIENCE = 1.0, 2.0  # [s]: of what is told when it is done, and before
WHOLE = 2.5  # times as long as traces and plans: 1.7 to 2.5 were measured with parts in assembly, up to 6 without


class Wait:
    """Code that a user waits for, compiled in one `with` block or in several: a message at the most.

    All takes `whole` times as long as what comes before the first `tell_if_long` that expects it to be long. Meanwhile Python
    does not look for cycles: traces are many objects without any, and looking takes a twentieth of the time.
    """

    def __init__(self, what: str, whole: float = WHOLE) -> None:
        self.what, self.whole = what, whole
        self.begun, self.said, self.collects = 0.0, False, False

    def __enter__(self) -> Self:
        if _now.depth == 0:
            _now.wait, self.begun, self.collects = self, time.perf_counter(), gc.isenabled()
            gc.disable()
        _now.depth += 1
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        _now.depth -= 1
        if _now.depth == 0:
            _now.wait = None
            if self.collects:
                gc.enable()
            if kind is None:
                tell_end(self.what, time.perf_counter() - self.begun)


class _Now(threading.local):
    """The outermost compilation of this thread, and how many are under way, each within the one before."""

    wait: Wait | None = None
    depth = 0


_now = _Now()


@contextlib.contextmanager
def told(what: str, how_long: str = "") -> Iterator[None]:
    """Tell that something is being compiled: at once if `how_long` is given, else at the first `tell_if_long` that expects it.

    A compilation within another one is part of it and is not told.
    """
    with Wait(what) as wait:
        if how_long and _now.wait is wait:
            wait.said = True
            tell_begin(what, how_long)
        yield


def tell_if_long() -> None:
    """Tell what is compiled, if it will take long: to be called before plans are written, and between traces."""
    wait = _now.wait
    if wait is None or wait.said:
        return
    elapsed = time.perf_counter() - wait.begun
    if WHOLE * elapsed <= PATIENCE:
        return
    wait.said, seconds = True, wait.whole * elapsed
    tell_begin(wait.what, f"about {seconds:.1g} s" if seconds < 10.0 else f"about {round(seconds, -1):.0f} s")


def tell_begin(what: str, how_long: str) -> None:
    log.warning("featherweight: compiling %s, once for this machine: %s", what, how_long)


def tell_end(what: str, seconds: float) -> None:
    if seconds >= LONG:
        log.info("featherweight: compiled %s in %.1f s", what, seconds)
