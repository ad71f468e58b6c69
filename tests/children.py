"""Forked children of tests. They end: one that hangs or raises an error fails its test and never runs those that follow."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

HUNG = 120  # [s] after which a child is taken to wait for a lock forever


def started_child(check: Callable[[], bool], seconds: int = HUNG) -> int:
    """Start a forked child that calls a function, for so many seconds at most; return its number, for `holds`."""
    child = os.fork()
    if child == 0:
        failed = True
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            failed = not check()
        finally:
            os._exit(failed)
    return child


def holds(child: int) -> bool:
    """Return the value of a child's function; False if the child raises an error or hangs."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def holds_in_a_child(check: Callable[[], bool]) -> bool:
    """Return the value of a function in a forked child; False if the child raises an error or hangs."""
    return holds(started_child(check))
