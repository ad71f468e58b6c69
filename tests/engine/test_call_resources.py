"""Tests that calls of compiled functions do not leak and access only their own memory, also in threads, forks and pickles."""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from children import holds_in_a_child
from engine.guard import guarded
from engine.kernels import SEVERAL, arguments, assert_same, outs, swinging
from featherweight.engine.function import CompiledFunction

N = 4
RNG = np.random.default_rng(0)
HUGE = 10**400


@pytest.fixture(scope="module")
def one() -> CompiledFunction:
    return swinging(N)


@pytest.fixture(scope="module")
def many() -> CompiledFunction:
    return CompiledFunction(SEVERAL, "traced")


def calls(f: CompiledFunction[Any]) -> dict[str, Callable[[], Any]]:
    """Return a call for each path through the entry."""
    x, s, A = arguments()
    X, S, AA = arguments((4,))
    single, batch = outs(), outs((4,))
    x4, s4, A4 = arguments((), np.float32)
    listed, strided = x.tolist(), np.zeros(6)[::2]
    scalar, whole = float(s), 10**6
    return {
        "one": lambda: f(x, s, A),
        "by name": lambda: f(A=A, x=x, s=s),
        "out": lambda: f(x, s, A, out=single),
        "single precision": lambda: f(x4, s4, A4),
        "mixed precision": lambda: f(x4, s, A4),
        "list": lambda: f(listed, scalar, A),
        "whole numbers": lambda: f([whole, whole + 1, 3], whole, A),
        "strided": lambda: f(strided, s, A),
        "batch": lambda: f(X, S, AA),
        "batch with one": lambda: f(X, s, A),
        "batch out": lambda: f(X, S, AA, out=batch),
        "general": lambda: f(x, s, A, threads=1),
    }


def failures(f: CompiledFunction[Any]) -> dict[str, Callable[[], Any]]:
    x, s, A = arguments()
    wrong = (np.zeros(()), np.zeros(4), np.zeros((3, 2)))
    return {
        "huge": lambda: f([1.0, 2.0, HUGE], s, A),
        "huge number": lambda: f(x, HUGE, A),
        "shape": lambda: f(x[:2], s, A),
        "name": lambda: f(x, s, B=A),
        "wrong out": lambda: f(x, s, A, out=wrong),
        "string": lambda: f(x, "s", A),
    }


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("kind", [*calls(swinging(1)), *failures(swinging(1))])
def test_no_call_leaks(kind: str, many: CompiledFunction[Any]) -> None:
    times = 100_000 if kind in calls(many) and kind != "general" else 10_000  # calls through Python take longer
    call = (calls(many) | failures(many))[kind]

    def repeat(n: int) -> None:
        for _ in range(n):
            try:
                call()
            except (TypeError, ValueError):
                continue

    repeat(times // 10)
    gc.collect()
    blocks, memory = sys.getallocatedblocks(), resident()
    repeat(times)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 500  # one object per call would be many more
    assert resident() - memory < 16 * times + 1_000_000  # the least that malloc gives is 16 bytes


def test_references_are_as_many_as_before(many: CompiledFunction[Any]) -> None:
    x, s, A = arguments()
    listed, whole, out = x.tolist(), 123_456_789, outs()
    seen = [x, s, A, listed, listed[0], whole, out, *out, np.dtype(np.float64), np.dtype(np.float32), type(many(x, s, A))]
    every = [*calls(many).values(), *failures(many).values()]
    every += [lambda: many(x, s, A), lambda: many(listed, whole, A, out=out), lambda: many(A=A, s=s, x=listed)]
    every += [lambda: many(x[None], s, A), lambda: many(x, s, A[None]), lambda: many(x, whole, A, out=listed)]

    def repeat(times: int) -> list[int]:
        for _ in range(times):
            for call in every:
                with contextlib.suppress(TypeError, ValueError):
                    call()
        gc.collect()
        return [sys.getrefcount(o) for o in seen]

    before = repeat(1)
    after = repeat(50)
    assert after == before


def test_results_are_held_by_their_tuple_only(many: CompiledFunction[Any]) -> None:
    result = many(*arguments())
    plain = np.empty(1), np.empty(1), np.empty(1)  # counts of Python itself differ between versions
    held, expected = ((sys.getrefcount(x), [sys.getrefcount(x[k]) for k in range(3)]) for x in (result, plain))
    assert held == expected
    assert gc.is_tracked(result)
    of_class = sys.getrefcount(type(result))
    more = [many(*arguments()) for _ in range(50)]
    of_class_then = sys.getrefcount(type(result))
    assert of_class_then == of_class + len(more)


def test_results_live_on_their_own(many: CompiledFunction[Any]) -> None:
    wanted = [np.array(r) for r in many(*arguments())]
    kept = [many(*arguments()) for _ in range(200)]
    gc.collect()
    again = pickle.loads(pickle.dumps(kept[7]))
    del kept[::2]
    gc.collect()
    for result in (*kept, again):
        assert_same(result, wanted)
    assert type(again) is type(kept[0]) and again._fields == ("total", "y", "B") and again.y is again[1]
    total, y, _ = again
    assert isinstance(total, np.float64) and hash(total) == hash(float(total))
    y[:] = 0.0  # the caller owns results
    assert kept[0].y is not y and again._replace(y=1).y == 1
    circle = many(*arguments())
    assert set(map(id, gc.get_referents(circle))) >= {id(circle.y), id(circle.B)}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
def test_without_memory_for_the_results_an_error_is_raised() -> None:
    resource = pytest.importorskip("resource")
    f: CompiledFunction[Any] = CompiledFunction(SEVERAL, "traced")
    f(*arguments((2,)))

    def raises_an_error() -> bool:
        x = np.broadcast_to(0.0, (40_000_000, 3))
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (size + 200_000_000, -1))
        try:
            f(x, 0.0, np.zeros((2, 3)), threads=1)
        except MemoryError:
            np.testing.assert_array_equal(f(*arguments()).y, f(*arguments((1,))).y[0] * 0 + f(*arguments()).y)
            return True
        return False

    assert holds_in_a_child(raises_an_error)


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("batch", [(), (1,), (2,), (7,), (8,), (9,), (17,), (3, 3)])
def test_nothing_outside_the_arrays_is_touched(
    batch: tuple[int, ...], dtype: type, at_end: bool, many: CompiledFunction[Any]
) -> None:
    args = arguments(batch, dtype)
    wanted = many(*args)
    results = tuple(guarded(r, at_end) for r in outs(batch, dtype))
    assert_same(many(*(guarded(a, at_end) for a in args), out=results), wanted)
    # with strides; the last element ends at the page
    spread = [guarded(np.repeat(a, 2, axis=-1) if a.ndim else a, at_end) for a in args]
    strided = [a[..., (1 if at_end else 0) :: 2] if a.ndim > len(batch) or k != 1 else a for k, a in enumerate(spread)]
    if batch:
        strided[1] = guarded(args[1], at_end)
    assert_same(many(*strided), wanted)
    assert_same(many(guarded(args[0], at_end)[..., ::-1], *args[1:]), many(args[0][..., ::-1].copy(), *args[1:]))


@pytest.mark.parametrize("execution", ["traced", "rolled"])
def test_threads_of_the_caller_may_race_from_the_first_call_on(execution: str) -> None:
    args, batch = arguments(), arguments((50,))
    reference = CompiledFunction(SEVERAL, "traced")
    wanted, wanted_batch, loaded = reference(*args), reference(*batch), reference(*args, load=np.ones(3))
    for _ in range(3):
        f = CompiledFunction(SEVERAL, execution)
        barrier = threading.Barrier(8)
        wrong: list[BaseException] = []

        def work(
            f: CompiledFunction[Any] = f, barrier: threading.Barrier = barrier, wrong: list[BaseException] = wrong
        ) -> None:
            try:
                barrier.wait()
                for _ in range(30):
                    for given, right in (
                        (f(*args), wanted), (f(*batch), wanted_batch), (f(*batch, threads=2), wanted_batch),
                        (f(*args, load=np.ones(3)), loaded),
                    ):  # fmt: skip
                        for a, b in zip(given, right, strict=True):
                            np.testing.assert_allclose(a, b, rtol=0, atol=0 if execution == "traced" else 1e-13)
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside threads
def test_a_forked_child_goes_on(one: CompiledFunction[Any]) -> None:
    x = RNG.standard_normal((30_000, N))
    wanted = one(x, x, threads=4)
    assert holds_in_a_child(lambda: np.array_equal(one(x, x, threads=4), wanted) and np.array_equal(one(x[0], x[0]), wanted[0]))


@pytest.mark.parametrize("execution", ["traced", "interpreted", "rolled"])
def test_pickles_are_the_function_before_and_after_its_first_call(execution: str) -> None:
    f = CompiledFunction(SEVERAL, execution)
    before = pickle.loads(pickle.dumps(f))
    wanted = f(*arguments())
    after = pickle.loads(pickle.dumps(f))
    loaded = f(*arguments(), load=np.ones(3))
    for again in (before, after, pickle.loads(pickle.dumps(after)), f.copy()):
        assert isinstance(again, CompiledFunction) and again.execution == execution and str(again.program) == str(f.program)
        assert_same(again(*arguments()), wanted)
        assert_same(again(*arguments(), load=np.ones(3)), loaded)
    given = pickle.loads(pickle.dumps(f.variant("load")))
    assert_same(given(*arguments(), np.ones(3)), loaded)


def test_functions_that_are_gone_leave_the_others(many: CompiledFunction[Any]) -> None:
    wanted = many(*arguments())
    for _ in range(5):
        CompiledFunction(SEVERAL, "traced")(*arguments())
        gc.collect()
    assert_same(many(*arguments()), wanted)
