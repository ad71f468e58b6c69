"""NumPy arrays on a device: a batch is transferred in pieces, with transfers and computations overlapping."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from ....array_types import Array
from ..host_arrays import HostArrays
from ..interpreted import delivered
from ..protocol import Batch
from .code import Launchable
from .driver import Device

PIECE_BYTES = 16 << 20  # target size of a piece's arguments and results: large enough for the bus, small enough to start soon
LEAST_PIECE = 8192  # least number of states of a piece, to keep the device busy
MOST_BYTES = 256 << 20  # greatest size of a piece, however few states that is
KEPT_BYTES = 64 << 20  # greatest size of host memory that a lane keeps for later calls
ALIGNMENT = 256  # bytes
LANES = 3  # pieces in flight: one is sent, one is computed, one returns


class OnHost(HostArrays):
    """A program on NumPy arrays, computed on a device."""

    def __init__(self, code: Launchable, device: Device) -> None:
        self.code, self.program, self.device = code, code.program, device

    def run(
        self, arrays: Sequence[Array], batch: Batch, dtype: np.dtype[Any], out: Sequence[Array] | None, threads: int | None
    ) -> Sequence[Any]:
        if threads is not None:
            raise ValueError(f"{self.program.name}: threads= is for this machine's processors; device= names a device")
        states, outputs = math.prod(batch), self.program.outputs
        rows = [self._rows(a, p.shape, batch, states) for a, p in zip(arrays, self.program.inputs, strict=True)]
        results = [np.empty((states, *r.shape), dtype) for r in outputs]
        if states:
            row_bytes = sum(map(math.prod, self.program.shapes)) * np.dtype(dtype).itemsize
            least, most = PIECE_BYTES // max(row_bytes, 1), MOST_BYTES // max(row_bytes, 1)
            piece = min(states, max(least, min(LEAST_PIECE, most), 1))
            self._run_pieces(rows, results, np.dtype(dtype), states, piece)
        return delivered(outputs, results, batch, dtype, out)

    @staticmethod
    def _rows(a: Array, core: tuple[int, ...], batch: Batch, states: int) -> Array:
        """Return an argument as (states, *core); as (1, *core) if one row serves all states."""
        if a.size == math.prod(core):
            return a.reshape(1, *core)
        return np.broadcast_to(a, batch + core).reshape(states, *core)

    def _run_pieces(
        self, rows: Sequence[Array], results: Sequence[Array], dtype: np.dtype[Any], states: int, piece: int
    ) -> None:
        lanes: list[_Lane] = []
        with ExitStack() as open_lanes:
            for number, start in enumerate(range(0, states, piece)):
                if number < LANES:
                    lanes.append(open_lanes.enter_context(_lane(self.code, self.device, dtype, piece)))
                lane = lanes[number % LANES]
                lane.finish()
                lane.begin(rows, results, start, min(start + piece, states))
            for lane in lanes:
                lane.finish()


@contextmanager
def _lane(code: Launchable, device: Device, dtype: np.dtype[Any], piece: int) -> Iterator[_Lane]:
    """Yield a lane. Its stream and host memory, which are slow to get, are kept for later calls."""
    size = sum(padded(piece * math.prod(shape) * dtype.itemsize) for shape in code.program.shapes)
    idle: list[tuple[int, Any]] = vars(device).setdefault("idle_lanes", [])
    stream, memory = idle.pop() if idle else (device.stream(), None)
    try:
        if memory is None or memory.size < size:
            memory = device.pinned(size)
        there = device.allocate(size, stream)
        try:
            yield _Lane(code, device, dtype, stream, memory, there)
        finally:
            try:
                device.synchronize(stream)  # after an error, work in flight still uses both sides
            finally:
                there.close()
    finally:
        idle.append((stream, memory if memory is not None and memory.size <= KEPT_BYTES else None))


def padded(size: int) -> int:
    """Return the size of an array, padded for the next one."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class _Lane:
    """Memory for a piece, on both sides, and its stream."""

    def __init__(self, code: Launchable, device: Device, dtype: np.dtype[Any], stream: int, memory: Any, there: Any) -> None:
        self.code, self.device, self.dtype, self.stream = code, device, dtype, stream
        self.pinned, self.here, self.there = memory, int(memory.handle), int(there.handle)
        self.bytes = np.ctypeslib.as_array((ctypes.c_uint8 * memory.size).from_address(self.here))
        self.under_way: list[tuple[Array, Array]] = []  # (buffer, destination) of results in flight
        self.used = 0  # bytes

    def begin(self, rows: Sequence[Array], results: Sequence[Array], start: int, stop: int) -> None:
        """Send the arguments of some states, start the computation, and the transfer of the results."""
        program, words = self.code.program, []
        self.used = 0
        for a, p in zip(rows, program.inputs, strict=True):
            taken = a[start:stop] if len(a) > 1 else a
            here, offset = self._next(taken.shape)
            np.copyto(here, taken, casting="same_kind" if taken.dtype.kind == "f" else "unsafe")
            self.device.copy(self.there + offset, self.here + offset, here.nbytes, self.stream)
            words.append((self.there + offset, p.size if len(a) > 1 else 0))
        coming = []
        for result, r in zip(results, program.outputs, strict=True):
            here, offset = self._next(result[start:stop].shape)
            words.append((self.there + offset, r.size))
            coming.append((here, offset))
        self.code.launch(self.device, self.stream, self.dtype, stop - start, words)
        for (here, offset), result in zip(coming, results, strict=True):
            self.device.copy(self.here + offset, self.there + offset, here.nbytes, self.stream)
            self.under_way.append((here, result[start:stop]))

    def _next(self, shape: tuple[int, ...]) -> tuple[Array, int]:
        """Return the host side of the next argument or result, and its offset in bytes on both sides."""
        offset, size = self.used, math.prod(shape) * self.dtype.itemsize
        self.used += padded(size)
        return self.bytes[offset : offset + size].view(self.dtype).reshape(shape), offset

    def finish(self) -> None:
        """Wait for work in flight, and copy results to their destinations."""
        if self.under_way:
            self.device.synchronize(self.stream)
        for here, goal in self.under_way:
            goal[...] = here
        self.under_way.clear()
