"""Tests of the handler for processors, called with frames as XLA makes them: it is machine code, and needs no XLA."""

from __future__ import annotations

import ctypes
import mmap
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridges.xla.call_frames import REFUSED, Module, Xla
from engine.kernels import SEVERAL, swinging
from featherweight.bridges.xla.host_handler import emit_handler
from featherweight.engine.backends.llvm.jit import host
from featherweight.engine.function import CompiledFunction

RNG = np.random.default_rng(7)
SWING = swinging(5)


def handler(f: CompiledFunction[Any], many: bool, of_thread: int = 1 << 40, precision: str = "double") -> Module:
    machine = f.machine_code
    code = machine.code(precision, many)
    words = code.address("loop" if many else "single"), of_thread
    return Module(emit_handler(f.program, precision, many, host().triple), words, code)


def states(f: CompiledFunction[Any], *batch: int, dtype: Any = np.float64) -> list[Any]:
    return [RNG.standard_normal((*batch, *x.shape)).astype(dtype) for x in f.program.inputs]


def rooms(f: CompiledFunction[Any], *batch: int, dtype: Any = np.float64) -> list[Any]:
    return [np.full((*batch, *y.shape), np.nan, dtype) for y in f.program.outputs]


def assert_computes(f: CompiledFunction[Any], results: list[Any], args: list[Any]) -> None:
    wanted = f(*args)
    for x, y in zip(results, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_array_equal(x, y)


SEVERAL_RESULTS = CompiledFunction(SEVERAL, "traced")


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("f", [SWING, SEVERAL_RESULTS], ids=lambda f: f.name)
def test_one_state_and_batches(f: CompiledFunction[Any], precision: str) -> None:
    dtype = np.float64 if precision == "double" else np.float32
    for batch in ((), (1,), (37,), (3, 5), (0, 4)):
        args, results = states(f, *batch, dtype=dtype), rooms(f, *batch, dtype=dtype)
        assert Xla().call(handler(f, bool(batch), precision=precision), args, results) is None
        assert_computes(f, results, args)


def test_an_argument_without_batch_axes_is_one_row_for_all() -> None:
    args, results = states(SWING, 100), rooms(SWING, 100)
    args[1] = args[1][0].copy()
    assert Xla().call(handler(SWING, True), args, results) is None
    assert_computes(SWING, results, args)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_large_batches_are_pieces_for_threads_which_may_come_late(threads: int) -> None:
    xla, module = Xla(threads), handler(SWING, True, of_thread=100)
    args, results = states(SWING, 1000), rooms(SWING, 1000)
    assert xla.call(module, args, results) is None
    assert_computes(SWING, results, args)  # the calling thread computed all: no other thread came
    assert len(xla.tasks) == threads - 1
    results[0][:] = 0.0
    xla.run_tasks()
    assert not results[0].any()  # none remained


def test_threads_that_come_at_once_compute() -> None:
    xla, module = Xla(threads=3, late=False), handler(SWING, True, of_thread=100)
    args, results = states(SWING, 1000), rooms(SWING, 1000)
    assert xla.call(module, args, results) is None
    assert_computes(SWING, results, args)


def test_threads_that_are_refused_are_not_waited_for() -> None:
    for refused in ("schedule", "count_threads"):
        xla, module = Xla(threads=3), handler(SWING, True, of_thread=100)
        xla.refuses.add(refused)
        args, results = states(SWING, 1000), rooms(SWING, 1000)
        assert xla.call(module, args, results) is None
        assert_computes(SWING, results, args)
        assert xla.dropped == [REFUSED] * (2 if refused == "schedule" else 1) and not xla.tasks


def test_without_memory_there_is_an_error() -> None:
    xla = Xla()
    kernel = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda arguments: 1)
    words = ctypes.cast(kernel, ctypes.c_void_p).value or 0, 0
    module = Module(emit_handler(SWING.program, "double", False, host().triple), words)
    assert xla.call(module, states(SWING), rooms(SWING)) == 1
    assert xla.errors == [(8, "no memory for the workspace of a batch")]


def test_it_says_its_version() -> None:
    for many in (False, True):
        module = handler(SWING, many)
        assert Xla().asks(module) == (0, 3, 0)
        assert Xla().asks(module, with_api=False) == (0, 1, 0)


def asked_for_huge_pages(address: int) -> bool:
    """Return whether the memory at an address is marked for huge pages (`man 5 proc`); the system decides whether to use
    them.
    """
    here = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if region := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            here = int(region[1], 16) <= address < int(region[2], 16)
        elif here and line.startswith("VmFlags:"):
            return "hg" in line.split()
    raise AssertionError("the address is in no region of this process")


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage/enabled").exists(), reason="the system has no huge pages")
def test_large_results_in_new_memory_ask_for_huge_pages() -> None:
    size = 8 << 20
    args = [np.ones((size // 40, 5)), RNG.standard_normal(5)]
    module = handler(SWING, True)
    with mmap.mmap(-1, 2 * size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        result = np.frombuffer(memory, np.float64, 5 * len(args[0])).reshape(-1, 5)
        middle = result[len(result) // 2 :].ctypes.data
        assert not asked_for_huge_pages(middle)
        assert Xla().call(module, args, [result]) is None
        assert asked_for_huge_pages(middle)
        np.testing.assert_array_equal(result[-3:], SWING(*args)[-3:])
        del result
