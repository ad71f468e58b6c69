"""A function of tables on many threads of a device: the kernel, and the tables' arrays on the device.

The kernel has one thread for each number. The function is planned and written as for this machine. Its calls of machine code go
to functions of the same module, one for each straight-line function, by number. A thread first copies a template of its own
tables, and adds the address of the copy to the words that are addresses inside.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....array_types import Array
from ... import sources
from ...function import CompiledFunction
from ...loops.kernel_tables import Layout, Table, arrays_of
from ...loops.kernel_types import INT, TableType
from ...loops.kernel_writer import REAL
from ...loops.kernels import MachineCall
from ...loops.loop_writer import write_module
from ...loops.memory_spans import MemorySpans, padded
from ...loops.planner import Planner
from ..llvm.ir import Function, pointer_type
from ..llvm.trig import sincos_ir, sincos_name
from .code import Candidate, DeviceKernels, Kernels
from .driver import Device
from .emit_thread import NVIDIA, OF_FUNCTIONS, OUTLINED, OWN, SHARED, Target, emit_thread
from .kernel import ENTRY, memory_of_thread

THREADS = 32  # threads per block
DISPATCHER = "fw.dispatch"
PARAMETERS = ["i64 %states", "ptr %template", "i64 %words", "ptr %places", "i64 %addresses", "ptr %own", "ptr %shared_table"]
"""Number of threads; a thread's template, its words, the positions of addresses; the memory of all threads; the table."""


def emit_loop_kernel(
    function: Callable[..., int], layouts: tuple[Layout, Layout], calls: Sequence[CompiledFunction], target: Target
) -> str:
    """Return a module with the kernel, whose parameters are `PARAMETERS`.

    `function(own, shared, number)` takes a table of each thread, a table of all threads, and the thread's number. It calls the
    straight-line functions `calls` by their numbers, from 1 on.
    """
    planner = Planner(fused=True)
    planner.kernel(function, (*map(TableType, layouts), INT))  # type: ignore[arg-type]
    lines, kernel = write_module(planner.plan, True, True, dispatcher=DISPATCHER)
    declarations: dict[str, None] = dict.fromkeys(target.declarations)
    definitions = [str(_dispatcher(len(calls)))]
    for number, called in enumerate(calls, 1):
        further, texts = _straight(called, number, target)
        declarations |= dict.fromkeys(further)
        definitions += texts
    text = "\n".join(lines)
    if f"@{sincos_name(REAL)}(" in "".join(definitions) and f" @{sincos_name(REAL)}(double %x)" not in text:
        sincos = sincos_ir(REAL.precision, 1)
        declarations |= dict.fromkeys(sincos.declarations)
        definitions.append(sincos.definition)
    declared = {line for line in lines if "\n" not in line}
    definitions += [str(_preparing()), str(_computing(kernel)), str(_kernel(target))]
    head = [f'target triple = "{target.triple}"', *(d for d in declarations if d not in declared)]
    return "\n".join([*head, text, *definitions, OF_FUNCTIONS]).replace("define hidden", "define internal")


def _straight(f: CompiledFunction, number: int, target: Target) -> tuple[Sequence[str], Iterator[str]]:
    """Return declarations and definitions of a straight-line function, `void fw.callN(ptr arrays)`."""
    sizes = [y.size for y in f.program.outputs]
    arrays = len(f.program.inputs) + len(sizes)
    written = emit_thread(f.trace, REAL, sizes, [0] * arrays, True, f"fw.call{number}")
    g = Function("void", f"fw.call{number}", ["ptr %arrays"], attributes=OUTLINED)
    memory = memory_of_thread(g, max(written.workspace, 1) * REAL.bytes, True, target)
    pointers = [f"ptr {g.load('ptr', g.at('i64', '%arrays', k))}" for k in range(arrays)]
    for part in written.parts:
        g.call("void", f"@{part}", *pointers, f"{pointer_type(OWN)} {memory}")
    g.ret()
    return written.declarations, iter([*written.definitions, str(g)])


def _dispatcher(count: int) -> Function:
    """Return the function that calls one of the straight-line functions by its number; 0 calls none."""
    f = Function("void", DISPATCHER, ["i64 %number", "ptr %arrays"], attributes=OUTLINED)
    ways = " ".join(f"i64 {k}, label %call{k}" for k in range(1, count + 1))
    f.line(f"switch i64 %number, label %none [ {ways} ]")
    for k in range(1, count + 1):
        f.label(f"call{k}")
        f.call("void", f"@fw.call{k}", "ptr %arrays")
        f.ret()
    f.label("none")
    f.ret()
    return f


def _phase(name: str) -> tuple[Function, str, str]:
    """Return a function of one thread, in which surplus threads return; the thread's number, and its own memory."""
    f = Function(
        "void", name, ["i32 %thread", "i32 %block", f"{pointer_type(SHARED)} %shared", *PARAMETERS], attributes=OUTLINED
    )
    thread, block = (f.cast("zext", "i32", x, "i64") for x in ("%thread", "%block"))
    number = f.add(f.mul(block, THREADS), thread)
    beyond, there = f.fresh("beyond"), f.fresh("there")
    f.branch(f.less(number, "%states"), there, beyond)
    f.label(beyond)
    f.ret()
    f.label(there)
    return f, number, f.at("i64", "%own", f.mul(number, "%words"))


def _preparing() -> Function:
    """Return the function that copies the template.

    It is separate, so that words of tables are constant in the main function.
    """
    f, _, own = _phase("fw_prepare")
    with f.loop("%words") as k:
        f.store("i64", f.load("i64", "%template", k), own, k)
    begin = f.cast("ptrtoint", "ptr", own, "i64")
    with f.loop("%addresses") as k:
        place = f.load("i64", "%places", k)
        f.store("i64", f.add(f.load("i64", own, place), begin), own, place)
    f.ret()
    return f


def _computing(kernel: str) -> Function:
    f, number, own = _phase("fw_compute")
    f.call("i64", f"@{kernel}", f"ptr {own}", "ptr %shared_table", f"i64 {number}")
    f.ret()
    return f


def _kernel(target: Target) -> Function:
    """Write the function that the device starts."""
    f = Function("void", ENTRY, PARAMETERS, target.convention, OUTLINED)
    passed = [*(f"i32 {f.value(x)}" for x in (target.thread, target.block)), f"{pointer_type(SHARED)} null", *PARAMETERS]
    for phase in ("fw_prepare", "fw_compute"):
        f.call("void", f"@{phase}", *passed)
    f.ret()
    return f


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
