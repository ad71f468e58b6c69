"""Locks that are free in a forked child, which has none of its parent's other threads, and inherits the locks they hold."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Iterator
from weakref import WeakSet

_locks: WeakSet[threading.Lock] = WeakSet()


def new_lock() -> threading.Lock:
    """Return a lock that a forked child finds free, whichever thread of its parent holds it."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def _free_locks() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # as Python does with its own
    for cached in _locked_properties():
        cached.lock = threading.RLock()  # type: ignore[attr-defined]


def _locked_properties() -> Iterator[functools.cached_property[object]]:
    """Yield the cached properties of this package if they have locks, as in Python 3.11."""
    if sys.version_info >= (3, 12):
        return
    package = __name__.partition(".")[0]
    for module in [x for name, x in sys.modules.items() if name.partition(".")[0] == package]:
        for kind in [x for x in vars(module).values() if isinstance(x, type)]:
            yield from (x for x in vars(kind).values() if isinstance(x, functools.cached_property))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)
