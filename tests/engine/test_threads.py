"""Pieces of a range, each to one thread."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from featherweight.engine import threads
from featherweight.engine.threads import LONGEST, share_out


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


def test_an_error_ends_all_threads_after_the_pieces_that_they_are_at() -> None:
    done = []

    def run(start: int, stop: int) -> None:
        if start == 0:
            raise KeyboardInterrupt
        time.sleep(0.01)
        done.append(start)

    with pytest.raises(KeyboardInterrupt):
        share_out(run, 1000, 4)
    assert len(done) < 10


def test_pieces_become_as_short_as_signals_need_them() -> None:
    sizes: list[int] = []

    def run(start: int, stop: int) -> None:
        sizes.append(stop - start)
        time.sleep((stop - start) * LONGEST / 50)

    share_out(run, 400, 1, 10)
    assert sizes[0] == 10 and max(sizes) <= 75  # what is measured is not exact
    assert sum(sizes) == 400


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
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("computed\n", "")


CTRL_C = """
import os, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
import numpy as np
from engine.kernels import swinging
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for processes in the background
f, sent = swinging(12, sys.argv[2]), []
x = np.zeros((int(sys.argv[4]), 12))
f(x[:3], x[:3])

def press():
    time.sleep(0.3)
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press).start()
try:
    while True:
        f(x, x, threads=int(sys.argv[3]), out=x)
except KeyboardInterrupt:
    print(time.perf_counter() - sent[0])
"""


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("execution", "states"), [("traced", 8_000_000), ("rolled", 2_000_000)])
def test_ctrl_c_does_not_wait_for_a_batch(execution: str, states: int, count: int) -> None:
    """The batch alone takes a second and more."""
    command = [sys.executable, "-c", CTRL_C, str(Path(__file__).parents[1]), execution, str(count), str(states)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert float(done.stdout) < 0.5  # some 0.05 s on a machine that does nothing else


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_has_threads_of_its_own_though_its_parents_were_starting() -> None:
    share_out(lambda start, stop: None, 100, 2)
    with threads._lock:
        child = os.fork()
        if child == 0:
            seen: list[int] = []
            share_out(lambda start, stop: seen.extend(range(start, stop)), 100, 3)
            os._exit(sorted(seen) != list(range(100)))
    assert os.waitpid(child, 0)[1] == 0
