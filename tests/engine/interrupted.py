"""Measurement of Ctrl-C during a batch by the number of states computed afterwards, because a busy machine makes all
times long.
"""

from __future__ import annotations

import signal
import threading
from typing import Any

import numpy as np
import pytest

from featherweight.engine import threads

SHORT = 1e-3  # [s] for a piece, so that a batch has many pieces on any machine


def _compute_for_ever(f: Any, x: np.ndarray[Any, Any], count: int) -> None:
    while True:
        f(x, x, out=x, threads=count)


def computed_after_ctrl_c(f: Any, x: np.ndarray[Any, Any], count: int, pieces: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the number of states that this thread computes after the signal, including those of the current piece.

    Another thread sends the signal after this one has begun `pieces` pieces and one more. `f` runs on `count` threads.
    """
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
