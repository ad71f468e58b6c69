"""A function of tables on many threads of a device: the tables' arrays on the device, and the kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....array_types import Array
from ... import sources
from ...function import CompiledFunction
from ...loops.kernel_tables import Layout, Table, arrays_of
from ...loops.kernels import MachineCall
from ...loops.memory_spans import MemorySpans, padded
from .code import Candidate, DeviceKernels, Kernels
from .driver import Device
from .kernel import ENTRY
from .loop_kernel import THREADS, emit_loop_kernel
from .target import NVIDIA


class NumberedCalls:
    """Straight-line functions that a loop calls on a device, by number, with the locations of their arguments and results."""

    def __init__(self) -> None:
        self.functions: list[CompiledFunction] = []
        self.pointers: list[Array] = []  # int64 arrays, one for each function
        self.arrays: list[Array] = []  # arrays of all functions

    def call(self, function: CompiledFunction | None, *arrays: Array) -> MachineCall:
        """Return a call of a function, or of None. Raises ValueError for a function that is not traced."""
        if function is None:
            return MachineCall(0, np.zeros(0, np.int64))
        function.device_code  # noqa: B018  # raises if there is none
        self.functions.append(function)
        self.arrays += arrays
        self.pointers.append(np.array([a.ctypes.data for a in arrays], np.int64))
        return MachineCall(len(self.functions), self.pointers[-1])


class DeviceLoop(DeviceKernels):
    """`function(own, shared, number)` as a kernel: `own` is each thread's own table, initialized with `content`.

    Arrays that are the same in `twin`, which was made like `content`, are shared by all threads. `calls` contains the functions
    that are called, and `layout` is that of shared tables.
    """

    def __init__(self, function: Callable[..., int], content: Any, twin: Any, calls: NumberedCalls, layout: Layout) -> None:
        super().__init__()
        self.function, self.calls = function, calls
        table = Table(content)
        self.layouts = table.layout, layout
        pairs = [(a, b.ctypes.data) for a, b in zip(arrays_of(content), arrays_of(twin), strict=True)]
        self._shared = MemorySpans(a for a, other in pairs if a.ctypes.data == other)
        own = MemorySpans([*(a for a, other in pairs if a.ctypes.data != other), *calls.arrays, *calls.pointers])
        head = padded(8 * table.layout.words)
        self._template = np.zeros((head + own.size) // 8, np.int64)
        own.put(self._template.view(np.uint8)[head:])
        self._template[: table.layout.words] = table.words
        inner, outer = [], []  # words that are addresses in the thread's own memory, and in shared memory
        for word in [
            *(at for _, _, at in table.layout.arrays()),
            *(w for x in calls.pointers for w in _words_of(x, own, head)),
        ]:
            address = int(self._template[word])
            place, other = own.place(address), self._shared.place(address)
            self._template[word] = 0  # an empty array
            if place is not None:
                self._template[word] = head + place
                inner.append(word)
            elif other is not None:
                self._template[word] = other
                outer.append(word)
        self._inner, self._outer = np.array(inner, np.int64), np.array(outer, np.int64)

    @property
    def own_bytes(self) -> int:
        """Size of a thread's memory in bytes."""
        return self._template.nbytes

    @property
    def identity(self) -> str:
        """Hash of everything that the kernel depends on, except the device and the engine."""
        classes = tuple(c for layout in self.layouts for c in layout.classes())
        called = [f.device_code.identity for f in self.calls.functions]
        what = sources.digest(self.function, classes), [layout.text() for layout in self.layouts], called
        return hashlib.sha256(repr(what).encode()).hexdigest()

    def module(self) -> str:
        """The kernel as LLVM IR."""
        return emit_loop_kernel(self.function, self.layouts, self.calls.functions, NVIDIA)

    def kernels(self, device: Device, precision: str) -> Kernels:
        """Return the only variant of the kernel."""
        return Kernels(device, ENTRY, [Candidate(self.module, THREADS, loops=True)], 1, "loop", self.identity)

    def run(self, device: Device, stream: int, content: Any, count: int, elsewhere: Sequence[tuple[Array, int]] = ()) -> None:
        """Call the function for numbers from 0 to count - 1, and wait: the arrays of the shared `content` receive its results.

        Arrays of `elsewhere` are only placeholders for memory at addresses on the device.
        """
        table, there = Table(content), {a.ctypes.data: address for a, address in elsewhere if a.nbytes}
        spans = MemorySpans(a for a in arrays_of(content) if a.ctypes.data not in there)
        ends = np.cumsum([padded(8 * table.layout.words), spans.size, self._shared.size, self._template.nbytes])
        sent = np.zeros(padded(int(ends[-1]) + self._inner.nbytes), np.uint8)
        memory = device.allocate(len(sent) + count * self._template.nbytes, stream)
        try:
            base = int(memory.handle)
            words = table.words
            for _, _, word in table.layout.arrays():
                address = int(words[word])
                place = spans.place(address)
                words[word] = there.get(address, 0 if place is None else base + int(ends[0]) + place)
            template = self._template.copy()
            template[self._outer] += base + int(ends[1])
            sent[: words.nbytes] = words.view(np.uint8)
            results = sent[ends[0] : ends[1]]
            spans.put(results)
            self._shared.put(sent[ends[1] : ends[2]])
            sent[ends[2] : ends[3]] = template.view(np.uint8)
            sent[ends[3] : ends[3] + self._inner.nbytes] = self._inner.view(np.uint8)
            device.copy(base, sent.ctypes.data, len(sent), stream)
            given = [count, base + int(ends[2]), len(template), base + int(ends[3]), len(self._inner), base + len(sent), base]
            self.kernel(device, "double").launch(device, stream, count, given)
            device.copy(results.ctypes.data, base + int(ends[0]), len(results), stream)
            device.synchronize(stream)
        finally:
            memory.close()
        spans.take(results)


def _words_of(array: Array, spans: MemorySpans, head: int) -> range:
    """Return the indices of the words of an array of addresses."""
    if not array.size:
        return range(0)
    place = spans.place(array.ctypes.data)
    assert place is not None
    return range((head + place) // 8, (head + place) // 8 + len(array))
