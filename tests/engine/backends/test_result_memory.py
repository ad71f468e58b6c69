"""Tests of the memory of large results: its reuse, and its bound."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.engine.backends.result_memory import ALIGNMENT, LARGE, MOST_KEPT, RESULTS, ResultMemory

DOUBLE = np.dtype(np.float64)
N = LARGE // DOUBLE.itemsize


@pytest.fixture(autouse=True)
def cyclic_garbage_waits() -> Iterator[None]:
    """Keep arrays of other tests alive while a test compares addresses."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_memory_is_used_again_when_the_array_has_gone() -> None:
    memory = ResultMemory()
    x = memory.empty((N,), DOUBLE)
    address = x.ctypes.data
    assert address % ALIGNMENT == 0 and x.flags.c_contiguous and x.flags.writeable
    y = memory.empty((N,), DOUBLE)
    assert y.ctypes.data != address
    del x
    assert memory.kept == LARGE
    z = memory.empty((2, N // 2), DOUBLE)
    assert z.ctypes.data == address and z.shape == (2, N // 2) and memory.kept == 0


def test_a_view_keeps_the_memory() -> None:
    memory = ResultMemory()
    x = memory.empty((2, N), DOUBLE)
    x[:] = 1.0
    view = x[1, ::2].reshape(-1, 4)
    del x
    assert memory.kept == 0
    memory.empty((2, N), DOUBLE)[:] = 2.0
    assert (view == 1.0).all()
    del view
    assert memory.kept > 0


def test_other_objects_on_the_memory_keep_it() -> None:
    memory = ResultMemory()
    buffer = memory.empty((N,), DOUBLE).data
    assert memory.kept == 0
    del buffer
    assert memory.kept == LARGE


def test_small_arrays_are_numpys_own() -> None:
    assert ResultMemory().empty((N - 1,), DOUBLE).base is None


def test_what_is_kept_is_bounded() -> None:
    """Check that the memory that was freed first is dropped first, and that an array beyond the bound is not kept at all."""
    memory = ResultMemory(most_kept=3 * LARGE)
    arrays = [memory.empty((N,), DOUBLE) for _ in range(5)]
    addresses = [x.ctypes.data for x in arrays]
    while arrays:
        del arrays[0]
    assert memory.kept == 3 * LARGE
    assert memory.empty((N,), DOUBLE).ctypes.data in addresses[2:]
    large = memory.empty((4, N), DOUBLE)
    del large
    assert memory.kept <= 3 * LARGE


def test_memory_that_is_much_too_large_is_not_taken() -> None:
    memory = ResultMemory()
    x = memory.empty((2, N), DOUBLE)
    del x
    y = memory.empty((N,), DOUBLE)
    assert memory.kept == 2 * LARGE and y.nbytes == LARGE


def test_threads_never_share_memory() -> None:
    memory = ResultMemory()

    def use(k: int) -> bool:
        for _ in range(50):
            x = memory.empty((N,), DOUBLE)
            x[::4096] = k
            if not (x[::4096] == k).all():
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(use, range(4)))


def test_functions_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check one thread, several threads, and several results; arrays that the caller keeps do not change.

    The memory is empty at first, because other tests may have filled it.

    Threads release results some time after the call, so the test compares memory after calls on one thread.
    """
    monkeypatch.setattr(RESULTS, "_free", deque())
    robot = fw.build(fw.generators.chain(6))
    q = robot.random_configuration(rng=0, size=2 * LARGE // (8 * 36))
    first = robot.mass_matrix(q, threads=1)
    kept, address = first.copy(), first.ctypes.data
    second = robot.mass_matrix(q[::-1], threads=2)
    assert second.ctypes.data != address
    np.testing.assert_array_equal(first, kept)
    del first
    assert any(robot.mass_matrix(q, threads=1).ctypes.data == address for _ in range(2))
    v = np.ones((len(q), robot.nv))
    before = RESULTS.kept
    results: Any = robot.inverse_dynamics_derivatives(q, v, v, threads=1)
    addresses = {x.ctypes.data for x in results}
    del results
    assert before < RESULTS.kept <= MOST_KEPT
    again = robot.inverse_dynamics_derivatives(q, v, v, threads=1)
    assert {x.ctypes.data for x in again} == addresses
