"""Objects that one thread at a time may use, such as simulations: their calls write to memory that the object keeps.

Meanwhile a call in a second thread raises RuntimeError. A lock that waits would hide a mistake: the calls of two threads would
follow each other in an accidental order.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Concatenate, NoReturn, ParamSpec, Protocol, TypeVar

from ..names import keywords_of, keywords_of_today


class Use:
    """The use of an object by one thread, which may nest its calls. `what` names the object, and `remedy` says what to do.

    A call begins and ends its use in this way, which Ctrl-C cannot interrupt between `acquire` and `release`:

        try:
            if not use.lock.acquire(False):
                use.refuse()
            ...
        finally:
            with suppress(RuntimeError):  # a refused call has acquired nothing
                use.lock.release()
    """

    __slots__ = "lock", "remedy", "what"

    def __init__(self, what: str, remedy: str) -> None:
        self.what, self.remedy, self.lock = what, remedy, threading.RLock()

    def __reduce__(self) -> tuple[object, ...]:
        """Return the use of a copy of the object, which no thread uses yet."""
        return Use, (self.what, self.remedy)

    def refuse(self) -> NoReturn:
        """Raise RuntimeError."""
        more = "or hold a lock of your own during its calls"
        raise RuntimeError(f"{self.what} is in use by another thread; {self.remedy}, {more}")


class Used(Protocol):
    """An object that one thread at a time may use."""

    _use: Use


S = TypeVar("S", bound=Used)
P = ParamSpec("P")
R = TypeVar("R")


def exclusive(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return the method, which raises RuntimeError while another thread is in such a method of the same object.

    A TypeError for a keyword that the method does not take says which one is meant, as with `knows_keywords`.
    """
    known = keywords_of(method)

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **named: P.kwargs) -> R:
        if named and known is not None and not named.keys() <= known:
            return call(self, *args, **keywords_of_today(method, (self, *args), named))
        use = self._use
        lock = use.lock
        try:
            if not lock.acquire(False):
                use.refuse()
            return method(self, *args, **named)
        finally:
            try:  # noqa: SIM105  # faster than `suppress`, and Ctrl-C cannot strike before the lock is free
                lock.release()
            except RuntimeError:  # refused
                pass

    return call
