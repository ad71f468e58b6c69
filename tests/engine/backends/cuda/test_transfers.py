"""Tests of NumPy arrays on an emulated device: pieces, lanes and remainders."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from engine.backends.cuda.host_device import Array, HostDevice, needs_fma
from engine.kernels import SEVERAL, arguments, assert_same, outs, swinging
from featherweight.engine.backends.cuda import transfers
from featherweight.engine.function import CompiledFunction

pytestmark = needs_fma

SWING = swinging(5)
X, Y = np.random.default_rng(0).standard_normal((2, 70, 5))
ROW = 3 * 5 * 8  # bytes


@pytest.fixture(autouse=True)
def pieces(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> HostDevice:
    """Set the size of pieces to eight states."""
    monkeypatch.setattr(transfers, "PIECE_BYTES", 8 * ROW)
    monkeypatch.setattr(transfers, "LEAST_PIECE", 1)
    return device


def there(x: Any, y: Any, **named: Any) -> Any:
    return SWING(x, y, device="cuda", **named)


def test_batches_go_in_pieces(device: HostDevice) -> None:
    for states, launches in ((0, 0), (1, 1), (8, 1), (9, 2), (70, 9)):
        device.launches.clear()
        y = there(X[:states], Y[:states])
        assert (y.dtype, y.shape, len(device.launches)) == (np.float64, (states, 5), launches)
        np.testing.assert_array_equal(y, SWING(X[:states], Y[:states]))
    assert len({stream for _, _, stream in device.launches}) == transfers.LANES


def test_arguments_of_all_kinds() -> None:
    deep = np.random.default_rng(1).standard_normal((3, 4, 7, 5))
    single = X.astype(np.float32)
    for x, y in (
        (X, Y[0]), (X[0], Y), (X[0], Y[0]), (deep, deep[:, :1, ::-1]), (deep[:, :, :1], deep[0]), (X[:, ::-1], Y.astype(">f8")),
        (single, single), (single, Y), (single.astype(np.float16), single),
        ((9 * X).astype(int), Y), (X > 0, single), (X.tolist(), Y[0].tolist()),
    ):  # fmt: skip
        result, wanted = there(x, y), SWING(x, y)
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(result, wanted)


def test_several_results_and_one_state() -> None:
    f: CompiledFunction[Any] = CompiledFunction(SEVERAL, "traced")
    for batch in ((), (20,)):
        args = arguments(batch)
        assert_same(f(*args, device="cuda:0"), f(*args))
        assert_same(f(*args, load=args[0], device="cuda"), f(*args, load=args[0]))
    assert isinstance(f(*arguments(), device="cuda").total, np.float64)
    out = outs((20,), np.float32)
    results = f(*args, device="cuda", out=out)
    assert all(x is y for x, y in zip(results, out, strict=True))
    for x, y in zip(out, f(*args), strict=True):
        np.testing.assert_array_equal(x, y.astype(np.float32))


def test_results_in_arrays_of_the_caller_s() -> None:
    wanted, table = SWING(X, Y), np.zeros((140, 9), np.float32)
    assert there(X, Y, out=table[::2, 2:7]).base is table
    np.testing.assert_array_equal(table[::2, 2:7], wanted.astype(np.float32))
    assert not table[1::2].any()
    rows = np.vstack([X, X[:1]])
    there(rows[:-1], Y, out=rows[1:])
    np.testing.assert_array_equal(rows[1:], wanted)


def test_what_may_be_wrong_is_named() -> None:
    for name in ("gpu", "cuda:", "cuda:-1", "CUDA", "", 0):
        with pytest.raises(ValueError, match=f'swing: device must be "cpu", "cuda" or "cuda:N"; got {name!r}'):
            SWING(X, Y, device=name)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"swing: threads= is for this machine's processors; device= names a device"):
        there(X, Y, threads=2)
    with pytest.raises(ValueError, match=r"swing: only traced functions .* asked to be interpreted"):
        swinging(5, "interpreted")(X, Y, device="cuda")
    for args, argument in ((((X, Array(Y))), "y"), ((Array(X), Y), "x")):
        with pytest.raises(TypeError, match=f"swing: {argument} is on a device and . is not; move all arguments"):
            there(*args)
    for name in ("cpu", "cuda:3"):
        with pytest.raises(ValueError, match=f"swing: x is on CUDA device 0; got device='{name}'"):
            SWING(Array(X), Array(Y), device=name)
    np.testing.assert_array_equal(SWING(X, Y, device="cpu", threads=2), SWING(X, Y))


def test_a_piece_is_bounded_in_bytes(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "LEAST_PIECE", 1000)
    for most, launches in ((100 * ROW, 1), (35 * ROW, 2), (1, 70)):
        monkeypatch.setattr(transfers, "MOST_BYTES", most)
        monkeypatch.setattr(transfers, "PIECE_BYTES", 1)
        device.launches.clear()
        np.testing.assert_array_equal(there(X, Y), SWING(X, Y))
        assert len(device.launches) == launches


def test_streams_and_memory_of_this_machine_are_used_again(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned: list[int] = []
    make = device.pinned

    def noted(size: int) -> Any:
        pinned.append(size)
        return make(size)

    monkeypatch.setattr(device, "pinned", noted)
    for _ in range(3):
        there(X, Y)
        there(X[:20].astype(np.float32), Y[:20].astype(np.float32))
    assert (next(device.streams), len(pinned)) == (100 + transfers.LANES, transfers.LANES)
    monkeypatch.setattr(transfers, "KEPT_BYTES", 0)
    there(X, Y)
    there(X, Y)
    assert len(pinned) == 2 * transfers.LANES


def test_threads_have_lanes_of_their_own() -> None:
    wanted, wrong = SWING(X, Y), []

    def work() -> None:
        for _ in range(3):
            if (there(X, Y) != wanted).any():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("call", ["allocate", "pinned", "copy", "launch", "synchronize"])
@pytest.mark.parametrize("allowed", [0, 1, 4])
def test_nothing_is_left_when_a_call_fails(
    call: str, allowed: int, device: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that neither memory nor a stream remains, and that the next call works."""
    there(X[:1], Y[:1])
    do, calls = getattr(device, call), 0

    def fail(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > allowed:
            raise MemoryError("no more")
        return do(*args)

    monkeypatch.setattr(transfers, "KEPT_BYTES", 0)
    with monkeypatch.context() as patch:
        patch.setattr(device, call, fail)
        if call in ("allocate", "pinned") and allowed == 4:
            there(X, Y)
        else:
            with pytest.raises(MemoryError, match="no more"):
                there(X, Y)
    assert not device.memory
    np.testing.assert_array_equal(there(X, Y), SWING(X, Y))
    assert next(device.streams) <= 100 + transfers.LANES
