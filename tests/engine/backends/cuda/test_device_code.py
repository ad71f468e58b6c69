"""Tests of kernels on arrays of an emulated device: equal bits for any location of arrays; and errors."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import featherweight as fw
from engine.backends.cuda.host_device import Array, HostDevice, HostMemory, assert_same, computed, needs_fma, seen
from engine.kernels import SEVERAL, arguments, outs, swinging
from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import Input, KernelProgram, Output
from featherweight.model.generators import chain

pytestmark = [needs_fma, pytest.mark.usefixtures("device")]

RNG = np.random.default_rng(0)
PRECISIONS = [np.float64, np.float32]
SWING = swinging(5)
X, Y = RNG.standard_normal((2, 40, 5))
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_]


# rows


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_batches(dtype: type, device: HostDevice) -> None:
    for batch in ((), (0,), (1,), (31,), (32,), (33,), (100,), (2, 3, 4), (3, 0)):
        device.launches.clear()
        assert_same(SWING, *RNG.standard_normal((2, *batch, 5)).astype(dtype))
        assert [blocks for blocks, _, _ in device.launches] == ([-(-np.prod(batch) // 32)] if np.prod(batch) else [])


@pytest.mark.parametrize(
    ("x", "y", "copies"),
    [
        ((4, 5), (5,), 0),  # one row for all
        ((3, 4, 5), (1, 1, 5), 0),
        ((3, 4, 5), (4, 5), 1),
        ((3, 4, 5), (3, 1, 5), 1),
        ((3, 1, 5), (1, 4, 5), 2),
    ],
)
def test_leading_axes_broadcast(x: tuple[int, ...], y: tuple[int, ...], copies: int, device: HostDevice) -> None:
    assert_same(SWING, RNG.standard_normal(x), RNG.standard_normal(y))
    assert len(device.launches) == 1 + copies


def test_arrays_are_taken_as_they_lie(device: HostDevice) -> None:
    """Check that only arrays whose rows are not at equal distances are copied."""
    table, deep = RNG.standard_normal((40, 13)), RNG.standard_normal((2, 3, 4, 5))
    in_place = [(table[:, 1:6], table[:, 6:11]), (table[::-3, :5], table[::3, 5:10]), (deep[::-1, ::-1, ::-1], deep),
                (np.broadcast_to(X[0], (40, 5)), X)]  # fmt: skip
    for x, y in in_place:
        device.launches.clear()
        assert_same(SWING, x, y)
        assert len(device.launches) == 1
    unaligned: Any = np.ndarray((40, 5), np.float64, bytes(3) + X.tobytes(), 3)
    for x in (X[:, ::-1], table[:, :10:2], np.asfortranarray(X), unaligned, np.broadcast_to(X[:, :1], (40, 5))):
        device.launches.clear()
        assert_same(SWING, x, Y)
        assert len(device.launches) == 2
    assert_same(SWING, np.asfortranarray(deep), deep.transpose(2, 1, 0, 3).copy().transpose(2, 1, 0, 3))
    nine_axes = RNG.standard_normal((2,) * 9 + (5,)).transpose(8, 7, 6, 5, 4, 3, 2, 1, 0, 9)
    assert_same(SWING, nine_axes, nine_axes[::-1, 0])


def test_numbers_of_all_types() -> None:
    for dtype in (np.float16, *INTEGERS):
        x = (9.0 * np.abs(X)).astype(dtype)
        assert_same(SWING, x, Y)
        assert_same(SWING, x, Y.astype(np.float32))
    assert_same(SWING, np.full((2, 5), 2**64 - 1, np.uint64), np.full((2, 5), -(2**63)))
    assert_same(SWING, X.astype(np.float16), Y.astype(np.float16))


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4", np.longdouble, np.complex64])
def test_types_that_devices_do_not_know_are_refused(dtype: Any) -> None:
    if np.dtype(dtype) == np.float64:
        pytest.skip("here a long double is a double")
    with pytest.raises(
        TypeError, match=rf"swing: y has dtype {np.dtype(dtype)}, which devices do not .* convert it to float32"
    ):
        SWING(Array(X), Array(Y.astype(dtype)))
    if np.dtype(dtype).kind in "fc":
        with pytest.raises(TypeError, match=rf"swing: out has dtype {np.dtype(dtype)}, which devices do not support"):
            SWING(Array(X), Array(Y), out=Array(np.zeros((40, 5), dtype)))


def test_nan_and_large_angles_stay_in_their_state() -> None:
    for dtype, large in ((np.float64, 1e300), (np.float32, 1e38)):
        x, y = X.astype(dtype), Y.astype(dtype)
        x[7, 2], x[9], x[11, 1:], x[13] = np.nan, large, -1e30, np.inf
        assert_same(SWING, x, y)
        assert set(np.flatnonzero(np.isnan(computed(SWING, x, y)).any(axis=1))) == {7, 13}


def test_arguments_and_results_without_elements() -> None:
    """Check arrays with several axes, one of which is empty."""

    def kernel(x: Any, none: Any, results: Any) -> None:
        results[0][0] = x[0] + 1.0

    outputs = (Output("y", (1,)), Output("nothing", (2, 0)))
    f = CompiledFunction(KernelProgram("kernel", kernel, (), (Input("x", (1,)), Input("none", (0,))), outputs), "traced")
    for states in (3, 32, 40):
        y, nothing = f(Array(X[:1, :1].repeat(states, 0)), Array(np.zeros((states, 0))))
        assert (seen(y) == X[0, 0] + 1.0).all()
        assert nothing.shape == (states, 2, 0)


# arrays for results


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_results_in_arrays_of_the_caller_s(dtype: Any) -> None:
    wanted = SWING(X, Y).astype(dtype)
    table = np.zeros((80, 11), dtype)
    places = [np.zeros((40, 5), dtype), np.zeros((40, 5), dtype, "F"), np.zeros((40, 5), dtype)[::-1, ::-1], table[::2, 1:6]]
    for place in places:
        out = Array(place)
        given: Any = SWING(Array(X), Array(Y), out=out)
        assert given is out
        np.testing.assert_array_equal(place, wanted)
    table[::2, 1:6] = 0.0
    assert not table.any()


@pytest.mark.parametrize("shift", [0, 1])
def test_results_may_take_the_place_of_arguments(shift: int) -> None:
    rows = RNG.standard_normal((65, 5))
    x, out = rows[:64], rows[shift : 64 + shift]
    wanted = SWING(x.copy(), X[0])
    SWING(Array(x), Array(X[0]), out=Array(out))
    np.testing.assert_array_equal(out, wanted)
    table = RNG.standard_normal((40, 11))
    wanted = SWING(table[:, :5].copy(), Y)
    SWING(Array(table[:, :5]), Array(Y), out=Array(table[:, shift + 3 : shift + 8]))
    np.testing.assert_array_equal(table[:, shift + 3 : shift + 8], wanted)


def test_several_results() -> None:
    f, args = CompiledFunction(SEVERAL, "traced"), arguments((37,))
    assert_same(f, *args)
    assert_same(f, *args, load=args[0])
    table = np.zeros((37, 12))
    places = table[:, 0], table[:, 1:4], table[:, 5:11].reshape(37, 3, 2)
    out = tuple(map(Array, places))
    results = f(*map(Array, args), out=out)
    assert all(x is y for x, y in zip(results, out, strict=True))
    assert type(results) is type(f(*args))
    for place, wanted in zip(places, f(*args), strict=True):
        np.testing.assert_array_equal(place, wanted)
    assert not table[:, [4, 11]].any()


def bad_outs() -> list[tuple[Any, type[Exception], str]]:
    frozen = np.zeros((40, 5))
    frozen.flags.writeable = False
    return [
        (Array(np.zeros((40, 4))), ValueError, r"swing: out must be an array of shape \(40, 5\); got \(40, 4\)"),
        (Array(np.zeros(5)), ValueError, r"out must be an array of shape \(40, 5\); got \(5,\)"),
        (Array(np.zeros((40, 5), int)), TypeError, "out must hold floating-point numbers; got dtype int64"),
        (Array(frozen), ValueError, "out is read-only"),
        (Array(as_strided(np.zeros(5), (40, 5), (0, 8))), ValueError, "out has elements that share memory"),
        (Array(as_strided(np.zeros(99), (40, 5), (8, 8))), ValueError, "out has elements that share memory"),
        ((Array(np.zeros((40, 5))),), ValueError, "out must be an array on the device; got tuple"),
        ([Array(np.zeros((40, 5)))], ValueError, "out must be an array on the device; got list"),
        (np.zeros((40, 5)), TypeError, "x is on a device and out is not"),
    ]  # fmt: skip


@pytest.mark.parametrize(("out", "error", "message"), bad_outs())
def test_arrays_that_cannot_take_results_are_refused(out: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SWING(Array(X), Array(Y), out=out)


def test_tuples_that_cannot_take_results_are_refused() -> None:
    f, args, good = CompiledFunction(SEVERAL, "traced"), [Array(x) for x in arguments((9,))], [Array(x) for x in outs((9,))]
    shared = np.zeros((9, 3, 2))
    for out, error, message in (
        (good, ValueError, r"out must be a tuple of 3 arrays \(total, y, B\); got list"),
        (good[0], ValueError, r"out must be a tuple of 3 arrays \(total, y, B\); got Array"),
        ((None, *good[1:]), ValueError, "out for total must be an array on the device; got NoneType"),
        ((good[0], Array(shared[:, :, 0]), Array(shared)), ValueError, "the array for B overlaps with another of out"),
        ((*good[:2], shared), TypeError, "x is on a device and out is not"),
    ):
        with pytest.raises(error, match=message):
            f(*args, out=out)


# errors, and the state after them


def test_functions_that_are_not_traced_say_so() -> None:
    for execution in ("interpreted", "rolled"):
        with pytest.raises(
            ValueError, match=f"swing: only traced functions run on a device, and this one is asked to be {execution}"
        ):
            swinging(5, execution)(Array(X), Array(Y))


def test_functions_past_the_budget_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("featherweight.engine.program_trace.NODE_BUDGET", 100)
    f = fw.build(chain(5)).inverse_dynamics
    with pytest.raises(ValueError, match=r"inverse_dynamics: only traced functions run on a device, .* too large to be traced"):
        f(*map(Array, (X, Y, Y)))


def test_threads_are_of_this_machine() -> None:
    with pytest.raises(ValueError, match="swing: threads= is for this machine's processors; the arrays are on a device"):
        SWING(Array(X), Array(Y), threads=2)


def test_shapes_are_checked_as_on_this_machine() -> None:
    with pytest.raises(ValueError, match=r"swing: x must have shape \(\.\.\., 5\); got \(40, 4\)"):
        SWING(Array(X[:, :4]), Array(Y))
    with pytest.raises(ValueError, match=r"batch axes do not broadcast: x \(3, 5\), y \(40, 5\)"):
        SWING(Array(X[:3]), Array(Y))


def test_results_are_not_taken_for_numbers() -> None:
    y = SWING(Array(X), Array(Y))
    with pytest.raises(TypeError, match=r"an array on CUDA device 0 is not a NumPy array: copy it here, by torch\.from_dlpack"):
        np.asarray(y)
    with pytest.raises(TypeError, match=r"swing: x is on a device and y is not; move all arguments to the device, or none"):
        SWING(y, Y)
    with pytest.raises(TypeError, match=r"an array on CUDA device 0 is not a NumPy array"):
        SWING([y, y], Y)


def test_memory_is_given_back_when_a_launch_fails(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    launch, calls = HostDevice.launch, 0

    def fail(self: HostDevice, *args: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > allowed:
            raise RuntimeError("no more")
        launch(self, *args)

    monkeypatch.setattr(HostDevice, "launch", fail)
    for allowed in range(4):  # copies of two arguments, the kernel, a copy of the result
        calls = 0
        with pytest.raises(RuntimeError, match="no more"):
            SWING(Array(X[:, ::-1]), Array(Y[:, ::-1]), out=Array(np.zeros((40, 5))[:, ::-1]))
        assert len(device.asked) == min(allowed + 1, 3)
        device.asked.clear()
        assert not device.memory


def test_memory_is_given_back_when_there_is_no_more(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    allocate = device.allocate

    def fail(size: int, stream: int) -> HostMemory:
        if device.memory:
            raise MemoryError("no more")
        return allocate(size, stream)

    monkeypatch.setattr(device, "allocate", fail)
    with pytest.raises(MemoryError, match="no more"):
        SWING(Array(X[:, ::-1]), Array(Y[:, ::-1]), out=Array(np.zeros((40, 5))))
    assert not device.memory
    with suppress(MemoryError):
        SWING(Array(X[:, ::-1]), Array(Y[:, ::-1]))
