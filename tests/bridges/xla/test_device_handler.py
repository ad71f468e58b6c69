"""Tests of the handler for CUDA devices, with stand-ins for XLA and for the driver; this machine emulates the device."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from bridges.xla.call_frames import REFUSED, Module, Xla
from engine.backends.cuda.host_device import HostDevice, needs_fma
from engine.kernels import SEVERAL, swinging
from featherweight.bridges.xla.device_handler import emit_device_handler
from featherweight.engine.backends.cuda.code import KernelRow, Loaded
from featherweight.engine.function import CompiledFunction

RNG = np.random.default_rng(8)
SWING, SEVERAL_RESULTS = swinging(5), CompiledFunction(SEVERAL, "traced")
KERNEL, CONTEXT, STREAM = 0x33, 0xC4, 0x57
PRECISIONS = {"double": np.float64, "float": np.float32}

Int, Pointer = ctypes.c_int, ctypes.c_void_p


class Launching:
    """The driver's functions as addresses; a launch computes on the host."""

    def __init__(self, device: HostDevice, kernel: Loaded) -> None:
        self.device, self.kernel = device, kernel
        self.told: list[tuple[Any, ...]] = []
        self.status = {"launch": 0, "push": 0}
        numbers = [Int] * 7
        self._kept = (
            ctypes.CFUNCTYPE(Int, Pointer, *numbers, Pointer, Pointer, Pointer)(self._launch),
            ctypes.CFUNCTYPE(Int, Pointer)(self._push),
            ctypes.CFUNCTYPE(Int, ctypes.POINTER(Pointer))(self._pop),
        )
        self.addresses = [ctypes.cast(f, Pointer).value or 0 for f in self._kept]

    def _push(self, context: int) -> int:
        self.told.append(("push", context))
        return self.status["push"]

    def _pop(self, context: Any) -> int:
        context[0] = CONTEXT
        self.told.append(("pop",))
        return 0

    def _launch(self, kernel: int, *given: Any) -> int:
        *grid, shared, stream, parameters, extra = given
        self.told.append(("launch", kernel, grid, shared, stream, parameters))
        if self.status["launch"]:
            return self.status["launch"]
        buffer_key, buffer, size_key, size, end = (ctypes.c_size_t * 5).from_address(extra)
        assert (buffer_key, size_key, end) == (1, 2, 0)
        arguments = ctypes.string_at(buffer, ctypes.c_size_t.from_address(size).value)
        words = [*np.frombuffer(arguments, np.int64)]
        self.device.launch(self.kernel.kernel, grid[0], grid[3], shared, stream, words)
        return 0


class Handled:
    """A function's handler with a table of two devices, the second of which has the kernel."""

    def __init__(self, f: CompiledFunction[Any], device: HostDevice, precision: str = "double") -> None:
        self.loaded = f.device_code.kernel(device, precision)  # type: ignore[arg-type]
        self.driver = Launching(device, self.loaded)
        row = KernelRow(KERNEL, CONTEXT, self.loaded.threads, self.loaded.shared_bytes)
        self._table = np.array([KernelRow(0, 0, 0, 0), row], np.uint64)
        ir = emit_device_handler(f.program.shapes, len(f.program.inputs))
        self.handler = Module(ir, (*self.driver.addresses, self._table.ctypes.data, len(self._table)))


def states(f: CompiledFunction[Any], *batch: int, dtype: Any = np.float64) -> tuple[list[Any], list[Any]]:
    """Return arguments, and memory for results."""
    args = [RNG.standard_normal((*batch, *x.shape)).astype(dtype) for x in f.program.inputs]
    return args, [np.full((*batch, *y.shape), np.nan, dtype) for y in f.program.outputs]


@needs_fma
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("f", [SWING, SEVERAL_RESULTS], ids=lambda f: f.name)
def test_kernels_begin_on_the_stream_with_what_the_frame_has(
    f: CompiledFunction[Any], precision: str, device: HostDevice
) -> None:
    handled, xla = Handled(f, device, precision), Xla(ordinal=1, stream=STREAM)
    for batch in ((), (1,), (33,), (3, 70)):
        args, results = states(f, *batch, dtype=PRECISIONS[precision])
        handled.driver.told.clear()
        assert xla.call(handled.handler, args, results) is None
        wanted = f(*args)
        for x, y in zip(results, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_array_equal(x, y)
        threads, shared = handled.loaded.threads, handled.loaded.shared_bytes
        grid = [-(-int(np.prod(batch)) // threads), 1, 1, threads, 1, 1]
        assert handled.driver.told == [("push", CONTEXT), ("launch", KERNEL, grid, shared, STREAM, None), ("pop",)]


@needs_fma
def test_an_argument_without_batch_axes_is_one_row_for_all(device: HostDevice) -> None:
    (x, y), results = states(SWING, 50)
    assert Xla(ordinal=1).call(Handled(SWING, device).handler, [x, y[0].copy()], results) is None
    np.testing.assert_array_equal(results[0], SWING(x, y[0]))


def test_without_states_nothing_begins(device: HostDevice) -> None:
    handled = Handled(SWING, device)
    assert Xla(ordinal=1).call(handled.handler, *states(SWING, 3, 0)) is None
    assert not handled.driver.told


def test_other_devices_than_those_of_the_table_are_refused(device: HostDevice) -> None:
    handled = Handled(SWING, device)
    for ordinal in (0, 2, -1):
        xla = Xla(ordinal=ordinal)
        assert xla.call(handled.handler, *states(SWING, 3)) == 1
        assert xla.errors == [(9, "a function of Featherweight's was compiled for other devices than this one")]
    assert not handled.driver.told


def test_errors_of_xla_are_handed_on(device: HostDevice) -> None:
    handled = Handled(SWING, device)
    for name in ("ordinal", "stream"):
        xla = Xla(ordinal=1)
        xla.refuses.add(name)
        assert xla.call(handled.handler, *states(SWING, 3)) == REFUSED
    assert not handled.driver.told


@pytest.mark.parametrize(("name", "after"), [("launch", ["push", "launch", "pop"]), ("push", ["push"])])
def test_errors_of_the_driver_are_told(name: str, after: list[str], device: HostDevice) -> None:
    handled, xla = Handled(SWING, device), Xla(ordinal=1)
    handled.driver.status[name] = 719
    assert xla.call(handled.handler, *states(SWING, 3)) == 1
    assert xla.errors == [(13, "a kernel of Featherweight's could not be launched: CUDA's driver says 719")]
    assert [told for told, *_ in handled.driver.told] == after


def test_it_says_its_version(device: HostDevice) -> None:
    assert Xla().asks(Handled(SWING, device).handler) == (0, 3, 0)
