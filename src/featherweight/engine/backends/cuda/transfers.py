"""NumPy's arrays through a device: a batch goes there in pieces, and one is computed while others are on their way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..host_arrays import Array, HostArrays
from .driver import Device

if TYPE_CHECKING:
    from .device_code import DeviceCode

PIECE_BYTES = 16 << 20  # of arguments and results: long enough for the bus, short enough to begin soon
LEAST_PIECE = 8192  # states
LANES = 3  # pieces under way: one comes, one is computed, one goes


class OnHost(HostArrays):
    """A program on NumPy's arrays, computed on a device."""

    def __init__(self, code: DeviceCode, device: Device) -> None:
        self.code, self.program, self.device = code, code.program, device

    def run(
        self, arrays: Sequence[Array], batch: tuple[int, ...], dtype: Any, out: Sequence[Array] | None, threads: int | None
    ) -> Sequence[Any]:
        if threads is not None:
            raise ValueError(f"{self.program.name}: threads are of this machine's processors; device= is another one")
        states, outputs = math.prod(batch), self.program.outputs
        rows = [self._rows(a, p.shape, batch, states) for a, p in zip(arrays, self.program.inputs, strict=True)]
        results = [np.empty((states, *r.shape), dtype) for r in outputs]
        if states:
            row_bytes = sum(map(math.prod, self.program.shapes)) * np.dtype(dtype).itemsize
            piece = min(states, max(LEAST_PIECE, PIECE_BYTES // max(row_bytes, 1)))
            self._run_pieces(rows, results, np.dtype(dtype), states, piece)
        shaped = [r.reshape(batch + o.shape) for r, o in zip(results, outputs, strict=True)]
        if out is None:
            return [r if r.ndim else r[()] for r in shaped]
        for o, r in zip(out, shaped, strict=True):
            np.copyto(o, r, casting="same_kind")
        return out

    @staticmethod
    def _rows(a: Array, core: tuple[int, ...], batch: tuple[int, ...], states: int) -> Array:
        """An argument as (states, *core); as (1, *core) where one row serves all."""
        if a.size == math.prod(core):
            return a.reshape(1, *core)
        return np.broadcast_to(a, batch + core).reshape(states, *core)

    def _run_pieces(
        self, rows: Sequence[Array], results: Sequence[Array], dtype: np.dtype[Any], states: int, piece: int
    ) -> None:
        lanes = [_Lane(self.code, self.device, dtype, piece) for _ in range(min(LANES, -(-states // piece)))]
        try:
            for number, start in enumerate(range(0, states, piece)):
                lane = lanes[number % len(lanes)]
                lane.finish()
                lane.begin(rows, results, start, min(start + piece, states))
        finally:
            for lane in lanes:
                lane.close()


class _Lane:
    """Memory for a piece, on both sides, and the stream that it takes."""

    def __init__(self, code: DeviceCode, device: Device, dtype: np.dtype[Any], piece: int) -> None:
        self.code, self.device, self.dtype = code, device, dtype
        self.stream = device.stream()
        self.host = [device.pinned(piece * math.prod(s) * dtype.itemsize) for s in code.program.shapes]
        self.there = [device.allocate(piece * math.prod(s) * dtype.itemsize, self.stream) for s in code.program.shapes]
        self.under_way: list[tuple[Array, Array]] = []  # where results arrive, and where they go

    def begin(self, rows: Sequence[Array], results: Sequence[Array], start: int, stop: int) -> None:
        """Send the arguments of some states, compute, and let the results come back."""
        program, words = self.code.program, []
        for k, (a, p) in enumerate(zip(rows, program.inputs, strict=True)):
            taken = a[start:stop] if len(a) > 1 else a
            here = self._here(k, taken.shape)
            np.copyto(here, taken, casting="same_kind" if taken.dtype.kind == "f" else "unsafe")
            self.device.to_device(self.there[k], self.host[k].pointer, here.nbytes, self.stream)
            words.append((self.there[k], p.size if len(a) > 1 else 0))
        first = len(rows)
        words += [(self.there[first + k], r.size) for k, r in enumerate(program.outputs)]
        self.code.launch(self.device, self.stream, self.dtype, stop - start, words)
        for k, result in enumerate(results, first):
            goal = result[start:stop]
            here = self._here(k, goal.shape)
            self.device.to_host(self.host[k].pointer, self.there[k], here.nbytes, self.stream)
            self.under_way.append((here, goal))

    def _here(self, k: int, shape: tuple[int, ...]) -> Array:
        """This machine's side of an argument or result."""
        return self.host[k].array[: math.prod(shape) * self.dtype.itemsize].view(self.dtype).reshape(shape)

    def finish(self) -> None:
        """Wait for what is under way, and put it where it belongs."""
        if self.under_way:
            self.device.synchronize(self.stream)
        for here, goal in self.under_way:
            goal[...] = here
        self.under_way.clear()

    def close(self) -> None:
        self.finish()
        for pointer in self.there:
            self.device.free(pointer, self.stream)
