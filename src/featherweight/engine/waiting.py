"""What users are told while they wait for code to be compiled: records of the logger "featherweight".

A compilation makes traces and their IR first, and LLVM then takes about twice as long. So the time of the first part, on this
machine and under its load, tells how long the user will wait. If that is more than `PATIENCE`, a WARNING says what is compiled:
Python shows warnings on standard error where a program has not set up logging. Without it the program looks as if it hangs, and
it happens once for each function on a machine. An INFO record with the time follows a compilation that took longer than `LONG`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from .cache_folder import log

LONG, PATIENCE = 1.0, 2.0  # [s]: of what is told when it is done, and before
WHOLE = 3.0  # times as long as what comes before LLVM: 1.7 to 4.5 were measured


class _Now(threading.local):
    """The compilations of this thread, when each began, and whether it was told; none at first."""

    what, begun, said = "", 0.0, False


_now = _Now()


@contextlib.contextmanager
def told(what: str, how_long: str = "") -> Iterator[None]:
    """Tell that something is being compiled: at once if `how_long` is given, else at the first `tell_if_long` that expects it.

    A compilation within another one is part of it and is not told.
    """
    if _now.what:
        yield
        return
    _now.what, _now.begun, _now.said = what, time.perf_counter(), bool(how_long)
    if how_long:
        tell_begin(what, how_long)
    try:
        yield
    finally:
        _now.what = ""
    tell_end(what, time.perf_counter() - _now.begun)


def tell_if_long(times: float = WHOLE) -> None:
    """Tell what is compiled, if it will take long: to be called before LLVM begins, and between traces.

    All is expected to take so many times as long as what is done.
    """
    whole = times * (time.perf_counter() - _now.begun)
    if _now.what and not _now.said and whole > PATIENCE:
        _now.said = True
        tell_begin(_now.what, f"about {whole:.1g} s" if whole < 10.0 else f"about {round(whole, -1):.0f} s")


def tell_begin(what: str, how_long: str) -> None:
    log.warning("featherweight: compiling %s, once for this machine: %s", what, how_long)


def tell_end(what: str, seconds: float) -> None:
    if seconds >= LONG:
        log.info("featherweight: compiled %s in %.1f s", what, seconds)
