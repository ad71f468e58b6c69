"""Tests of the division of a range into pieces for threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from children import holds_in_a_child
from engine.interrupted import computed_after_ctrl_c
from engine.kernels import swinging
from featherweight.engine import threads
from featherweight.engine.threads import LONGEST, share_out
from patience import PATIENCE


@pytest.mark.parametrize("grain", [1, 3, 1000])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 64, 1001])
def test_pieces_cover_the_range_once(n: int, count: int, grain: int) -> None:
    seen: list[int] = []
    lock = threading.Lock()

    def run(start: int, stop: int) -> None:
        with lock:
            seen.extend(range(start, stop))

    share_out(run, n, count, grain)
    assert sorted(seen) == list(range(n))


def test_an_error_in_any_thread_reaches_the_caller() -> None:
    def run(start: int, stop: int) -> None:
        if start > 0:
            raise ValueError("in a piece")

    with pytest.raises(ValueError, match="in a piece"):
        share_out(run, 100, 2)


def test_an_error_ends_all_threads_after_the_pieces_that_they_are_at(monkeypatch: pytest.MonkeyPatch) -> None:
    done, ended = [], threading.Event()

    class Watched(threads._Pieces):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if (name, value) == ("end", 0):
                ended.set()

    def run(start: int, stop: int) -> None:
        if start == 0:
            raise KeyboardInterrupt
        assert ended.wait(PATIENCE)
        done.append(start)

    monkeypatch.setattr(threads, "_Pieces", Watched)
    with pytest.raises(KeyboardInterrupt):
        share_out(run, 1000, 4)
    assert len(done) <= 3


def test_pieces_become_as_short_as_signals_need_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check by the test's clock that fifty states take as long as a piece may."""
    sizes: list[int] = []
    now = 0.0

    def run(start: int, stop: int) -> None:
        nonlocal now
        sizes.append(stop - start)
        now += (stop - start) * LONGEST / 50

    monkeypatch.setattr(threads, "time", SimpleNamespace(perf_counter=lambda: now))
    share_out(run, 400, 1, 10)
    assert sizes[0] == 10 and sum(sizes) == 400
    assert all(abs(size - 50) <= 1 for size in sizes[1:-1])


LARGE_BATCH = """
import atexit, sys, threading, time
sys.path.insert(0, sys.argv[1])
import numpy as np
from engine.kernels import expected, swinging
x = np.linspace(-3, 3, 400_000 * 12).reshape(-1, 12)
wanted = expected(x, x)

def check():
    if sys.argv[2] == "thread":
        threading.main_thread().join()
        time.sleep(0.2)
    assert np.allclose(swinging(12)(x, x, threads=4), wanted, atol=1e-13)
    print("computed")

atexit.register(check) if sys.argv[2] == "exit" else threading.Thread(target=check).start()
"""


@pytest.mark.parametrize("when", ["exit", "thread"])
def test_large_batches_when_the_interpreter_ends(when: str) -> None:
    command = [sys.executable, "-c", LARGE_BATCH, str(Path(__file__).parents[1]), when]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout, done.stderr) == ("computed\n", "")


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("execution", ["traced", "rolled"])
def test_ctrl_c_does_not_wait_for_a_batch(execution: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that it does not wait for a large part of a batch either."""
    f, x = swinging(12, execution), np.zeros((400_000, 12))
    f(x[:3], x[:3])
    for piece in range(3):
        assert computed_after_ctrl_c(f, x, count, piece, monkeypatch) <= len(x) / 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_has_threads_of_its_own_though_its_parents_are_at_work() -> None:
    working, forked = threading.Semaphore(0), threading.Event()

    def work(start: int, stop: int) -> None:
        working.release()
        assert forked.wait(PATIENCE)

    caller = threading.Thread(target=share_out, args=(work, 3, 3))
    caller.start()
    for _ in range(3):
        assert working.acquire(timeout=PATIENCE)

    def shares_out() -> bool:
        seen: list[int] = []
        share_out(lambda start, stop: seen.extend(range(start, stop)), 100, 3)
        return sorted(seen) == list(range(100))

    try:
        assert holds_in_a_child(shares_out)
    finally:
        forked.set()
        caller.join()


INTERRUPTED = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from engine.interrupted import interrupted_everywhere
from featherweight.engine.threads import share_out

at_work, seen = [], []

def run(start, stop):
    if threading.current_thread() is not threading.main_thread():
        at_work.append(start)
        sum(range(20_000))
        at_work.pop()
    seen.extend(range(start, stop))

for _ in interrupted_everywhere(lambda: share_out(run, 24, 3)):
    assert not at_work
    seen.clear()
    share_out(run, 24, 3)
    assert sorted(seen) == list(range(24))
print("works")
"""


def test_wherever_ctrl_c_strikes_threads_end_their_pieces_and_help_again() -> None:
    """Check also that the process ends, which would wait for a thread with a locked lock."""
    command = [sys.executable, "-c", INTERRUPTED, str(Path(__file__).parents[1])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "works\n", "")


def test_ctrl_c_waits_for_pieces_of_other_threads() -> None:
    """Check that they are done when the exception arrives, because they write to the results."""
    main, begun, ended = threading.get_ident(), threading.Event(), []

    def run(start: int, stop: int) -> None:
        if threading.get_ident() == main:
            assert begun.wait(PATIENCE)
            raise KeyboardInterrupt
        begun.set()
        time.sleep(0.05)
        ended.append(start)

    with pytest.raises(KeyboardInterrupt):
        share_out(run, 2, 2)
    assert ended


def test_a_call_leaves_nothing_with_the_threads_that_helped() -> None:
    class Held:
        """An object of a call."""

    held = Held()
    known = weakref.ref(held)
    share_out(lambda start, stop, held=held: None, 100, 3)  # type: ignore[misc]
    del held
    deadline = time.monotonic() + PATIENCE
    while known() is not None:
        assert time.monotonic() < deadline
