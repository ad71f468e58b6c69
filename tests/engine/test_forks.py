"""Tests of children that fork while other threads of the process compile or report."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from children import holds_in_a_child
from engine.kernels import expected, swinging
from featherweight.engine import execution
from featherweight.engine.backends import backend
from featherweight.engine.backends.llvm import jit
from featherweight.engine.compilation_messages import Wait
from featherweight.engine.forks import new_lock
from featherweight.engine.progress import Progress
from patience import PATIENCE

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"),
    pytest.mark.usefixtures("nothing_else_compiles"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@contextmanager
def in_another_thread(work: Callable[[Callable[[], None]], object]) -> Iterator[None]:
    """Let another thread work until it calls the function that it gets, which waits for the end of the block."""
    there, end = threading.Event(), threading.Event()

    def wait() -> None:
        there.set()
        assert end.wait(PATIENCE)

    thread = threading.Thread(target=work, args=(wait,))
    thread.start()
    assert there.wait(PATIENCE)
    try:
        yield
    finally:
        end.set()
        thread.join()


def test_locks_are_free_in_a_child() -> None:
    lock = new_lock()

    def hold(wait: Callable[[], None]) -> None:
        with lock:
            wait()

    with in_another_thread(hold):
        assert holds_in_a_child(lambda: lock.acquire(timeout=1.0))
    assert not lock.locked()


def test_a_child_compiles_the_function_that_another_thread_was_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = swinging(5), np.linspace(-1.0, 1.0, 5)

    def first_call(wait: Callable[[], None]) -> None:
        def waiting(how: str) -> Any:
            wait()
            return backend(how)

        monkeypatch.setattr(execution, "backend", waiting)
        f(x, x)

    def works() -> bool:
        monkeypatch.undo()
        return np.allclose(f(x, x), expected(x, x))

    with in_another_thread(first_call):
        assert holds_in_a_child(works)


@pytest.mark.parametrize("lock", [lambda: jit._compilers.emitting, jit._lock_of_llvmlite])
def test_a_fork_waits_until_other_threads_have_left_llvm(lock: Callable[[], Any]) -> None:
    inside, order = threading.Event(), []

    def call() -> None:
        with lock():
            inside.set()
            time.sleep(0.05)
            order.append("left LLVM")

    thread = threading.Thread(target=call)
    thread.start()
    assert inside.wait(PATIENCE)
    assert holds_in_a_child(lambda: swinging(6)(np.ones(6), np.ones(6)) is not None)
    order.append("forked")
    thread.join()
    assert order == ["left LLVM", "forked"]
    again = threading.Thread(target=call)
    again.start()
    again.join(PATIENCE)
    assert len(order) == 3


def test_a_child_collects_garbage_though_another_thread_was_compiling() -> None:
    def compile(wait: Callable[[], None]) -> None:
        with Wait("something"):
            wait()

    with in_another_thread(compile):
        assert not gc.isenabled()
        assert holds_in_a_child(gc.isenabled)
    assert gc.isenabled()


def test_a_child_reports_its_progress_though_another_thread_was_reporting() -> None:
    def report(wait: Callable[[], None]) -> None:
        with Progress("something", 1):
            wait()

    def is_shown() -> bool:
        with Progress("something else", 1) as work:
            return work._is_shown

    with in_another_thread(report):
        assert not is_shown()
        assert holds_in_a_child(is_shown)
    assert is_shown()
