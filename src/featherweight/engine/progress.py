"""Progress of long work: after a second, records of the logger "featherweight", and a bar in a terminal or a notebook.

Records have the level INFO: the first after `FIRST` seconds, then one every `AGAIN` seconds. The bar is on standard error,
replaces itself and disappears at the end; a level of the logger above WARNING turns it off. Work that is part of other work, or
runs beside it in other threads, is silent.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Self, TypeVar

from .cache_folder import log
from .forks import new_lock

T = TypeVar("T")

FIRST, AGAIN, REDRAWN = 1.0, 10.0, 0.1  # [s] until work is long, between records, and between bars
CELLS = 30  # of the bar

clock = time.monotonic
_lock = new_lock()
_shown: weakref.ref[Progress] | None = None  # the work that reports, if any; interrupted work disappears by itself


class Progress:
    """Work of `total` parts in a `with` block; `advance` counts those that are done. Nothing is reported without a name.

    Ctrl-C may strike before `__exit__` begins, and a kept error keeps the work. The next work of the thread therefore takes its
    place, unless the function with the block still runs.
    """

    _block: FrameType | None = None  # the function with the `with` block, while it is shown

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done = what, total, 0
        self._begun = clock()
        self._due, self._record_due, self._drawn = self._begun + FIRST, 0.0, False

    def __enter__(self) -> Self:
        global _shown
        shown = None if _shown is None else _shown()
        if self.what and (shown is None or shown._is_abandoned):
            self._block, self._thread = sys._getframe(1), threading.get_ident()
            _shown = weakref.ref(self)
        return self

    def __exit__(self, *_: object) -> None:
        global _shown
        if self._is_shown:
            _shown, self._block = None, None
            if self._drawn:
                with _lock:
                    _write("\r" + " " * (_width() - 1) + "\r")

    @property
    def _is_shown(self) -> bool:
        return _shown is not None and _shown() is self

    @property
    def _is_abandoned(self) -> bool:
        """Return whether the block of this work has ended without `__exit__`, as far as its own thread can see."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame is not self._block:
            frame = frame.f_back
        return frame is None and self._thread == threading.get_ident()

    def advance(self, parts: int = 1) -> None:
        """Count parts as done, and report when it is time."""
        self.done += parts
        if clock() < self._due:
            return
        with _lock:
            if self._is_shown and clock() >= self._due:
                self._report(clock())

    def counting(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items, and count those that the caller is through with."""
        for item in items:
            yield item
            self.advance()

    def _report(self, now: float) -> None:
        share = min(self.done / self.total, 1.0) if self.total else 1.0
        left = (now - self._begun) * (1.0 - share) / share if share else 0.0
        text = f"{100.0 * share:.0f} %" + (f", about {left:.{1 if left < 10.0 else 0}f} s left" if share else "")
        if now >= self._record_due:
            self._record_due = now + AGAIN
            log.info("featherweight: %s: %s", self.what, text)
        if _draws():
            filled = round(CELLS * share)
            line = f"{self.what} [{'#' * filled}{'.' * (CELLS - filled)}] {text}"
            _write("\r" + line[: _width() - 1].ljust(_width() - 1))
            self._drawn = True
        self._due = now + REDRAWN


def _forget() -> None:
    """Forget the work of the parent's other threads, in a forked child."""
    global _shown
    _shown = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _draws() -> bool:
    """Return whether somebody sees a bar: standard error is a terminal, or belongs to a notebook."""
    seen = getattr(sys.stderr, "isatty", bool)() or "ipykernel" in sys.modules
    return seen and log.isEnabledFor(logging.WARNING)


def _width() -> int:
    return shutil.get_terminal_size().columns


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
