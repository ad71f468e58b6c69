"""Ctrl-C in tests: at each point of a call, and during a batch.

Its delay in a batch is the number of states that are computed afterwards, because a busy machine makes all times long.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from featherweight.engine import threads

SHORT = 1e-3  # [s] for a piece, so that a batch has many pieces on any machine


def interrupted_everywhere(call: Callable[[], object], stride: int = 1) -> Iterator[int]:
    """Interrupt one call after the other, each at a later point, until one ends before its point; yield after each of them.

    Points are a `stride` apart. Python handles signals where a function of Python begins, and where one of C has returned: a
    profiling function, which raises KeyboardInterrupt here, runs at the same points.
    """
    left, point = 0, 1 - stride
    while left <= 0:
        point += stride
        left = point

        def press(frame: object, event: str, argument: object) -> None:
            nonlocal left
            left -= event in ("call", "c_return")
            if left == 0:
                raise KeyboardInterrupt  # also ends the profiling

        before = sys.getprofile()
        try:
            sys.setprofile(press)
            call()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(before)
        yield point
    assert point > 1


def _compute_for_ever(f: Any, x: np.ndarray[Any, Any], count: int) -> None:
    while True:
        f(x, x, out=x, threads=count)


def computed_after_ctrl_c(f: Any, x: np.ndarray[Any, Any], count: int, pieces: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the number of states that this thread computes after the signal, including those of the current piece.

    Another thread sends the signal after this one has begun `pieces` pieces and one more. `f` runs on `count` threads. No
    cycles are collected meanwhile: a finalizer of an object of other tests, as of machine code, would swallow the exception.
    """
    gc.collect()
    gc.disable()
    try:
        return _computed_after_ctrl_c(f, x, count, pieces, monkeypatch)
    finally:
        gc.enable()


def _computed_after_ctrl_c(f: Any, x: np.ndarray[Any, Any], count: int, pieces: int, monkeypatch: pytest.MonkeyPatch) -> int:
    here, taken = threading.get_ident(), threads._Pieces._taken
    begun, sent = threading.Event(), threading.Event()
    sizes: list[int] = []  # of the piece before the signal, and of all after it
    left = pieces

    def watched(self: threads._Pieces) -> tuple[int, int] | None:
        nonlocal left
        piece = taken(self)
        if piece is not None and threading.get_ident() == here:
            if not sent.is_set():
                sizes.clear()
            sizes.append(piece[1] - piece[0])
            left -= 1
            if left < 0:
                begun.set()
        return piece

    def press() -> None:
        begun.wait()
        signal.raise_signal(signal.SIGINT)  # os.kill would end a process on Windows
        sent.set()

    with monkeypatch.context() as patch:
        patch.setattr(threads, "LONGEST", SHORT)
        patch.setattr(threads._Pieces, "_taken", watched)
        thread = threading.Thread(target=press, daemon=True)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            _compute_for_ever(f, x, count)
        thread.join()
    return sum(sizes)
