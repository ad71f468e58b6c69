"""The loop of a NumPy gufunc around a kernel, from rows of ordinary arrays to rows.

A batch is processed a few blocks of W states at a time. Each argument's rows are transposed in registers into lanes,
x[index][lane]; the kernel processes the blocks; results are transposed back. If elements of a row are not contiguous, or fewer
than W rows are left, they are copied one by one, and the last row fills the unused lanes. No memory outside the arrays is
accessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from ...operations import INPUT
from ...program import CoreShape
from ...trace import Trace, live_nodes
from ..repeated_columns import ColumnLoop, Rolled, Value, roll, split
from ..straight_plan import fused_products
from .emit import HOST, Kernel, KernelStyle, emit_kernel
from .ir import CACHE_LINE, Function, Type
from .tiles import Mover, Stream, into_lanes, out_of_lanes
from .trig import sincos_ir, sincos_name

BLOCKS = 8  # greatest number of blocks in one run of the kernel
FLOATING_POINT_FLAGS = 0x3F  # all of them, on every processor: NaN in arguments needs no warning
NEAR_BYTES = 6 << 20  # arrays up to this size stay in a fast cache
STREAMED_ROW = 1024  # least size in bytes of a row of large results that bypasses the caches
BLOCK_BYTES = 450_000  # greatest size of the workspace, which should stay in the second-level cache
MODULE_BYTES = 300_000  # target size of a module's IR
MOST_MODULES = 8
PREFETCH = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
DECLARATIONS = (
    "declare ptr @malloc(i64)",
    "declare void @free(ptr)",
    "declare i32 @feclearexcept(i32)",
    PREFETCH,
)


def emit_loop(t: Trace, shapes: Sequence[CoreShape], type: Type, fma: bool) -> list[str]:
    """Return modules with `void @loop(ptr args, ptr dims, ptr steps, ptr data)`, with NumPy's interface.

    `shapes` are the core shapes of the inputs and the outputs. Without memory for the workspace, the loop increments the number
    at `data`, and writes no results.
    """
    return _modules(t, shapes, type, fma, HOST, in_workspace=False)[0]


def emit_loop_in_workspace(
    t: Trace, shapes: Sequence[CoreShape], type: Type, fma: bool, style: KernelStyle
) -> tuple[list[str], int]:
    """Return the same loop without calls of a library, and the bytes of the workspace, whose address is then `data`."""
    return _modules(t, shapes, type, fma, style, in_workspace=True)


def _modules(
    t: Trace, shapes: Sequence[CoreShape], type: Type, fma: bool, style: KernelStyle, in_workspace: bool
) -> tuple[list[str], int]:
    fused = fused_products(t, {i: t.graph.operands(i) for i in t.live}) if fma else {}
    parted = split(t, fused)
    stages = (
        [_stage(parted.before, parted.rolled, fused, type, fma, replace(style, name=f"{style.name}.first"))] if parted else []
    )
    last, own = parted.second(stages[0].results.slots) if parted else (t, fused)
    stages.append(_stage(last, roll(last, _columns(shapes[len(t.inputs) :]), own), own, type, fma, style))
    inputs = _inputs(t, shapes, type)
    outputs = _outputs(stages[-1].results, shapes[len(t.inputs) :], type, len(t.inputs))
    movers: list[Mover] = [*inputs, *outputs]
    loop = _Loop(stages, inputs, outputs, type, in_workspace)
    functions = [*([] if in_workspace else [_fetch()]), *(f for m in movers for f in m.functions())]
    functions += [*(s.function() for s in loop.streams.values()), *loop.parts_on_all(), loop.written()]
    declarations = [
        *(() if in_workspace else DECLARATIONS),
        *(d for f in functions for d in f.declarations),
        *(t for m in movers for t in m.tables),
    ]
    kernels = [kernel for stage in stages for kernel in (stage.straight, *stage.bodies)]
    return assemble(kernels, type, declarations, [str(f) for f in functions], fma), loop.workspace_bytes


class _Stage(NamedTuple):
    """Straight-line code and the loops over columns after it. A second stage reads the results of the first."""

    straight: Kernel
    bodies: tuple[Kernel, ...]
    results: Results


def _stage(t: Trace, rolled: Rolled, fused: Mapping[int, int], type: Type, fma: bool, style: KernelStyle) -> _Stage:
    results = Results.of(t, rolled)
    straight = emit_kernel(results.straight(t), type, fma, style=style, fused=fused)
    styles = [replace(style, name=f"{style.name}.column{k}") for k in range(len(rolled.loops))]
    bodies = [emit_kernel(x.body, type, fma, style=own, fused=x.fused) for x, own in zip(rolled.loops, styles, strict=True)]
    return _Stage(straight, tuple(bodies), results)


def _columns(shapes: Sequence[CoreShape]) -> list[range]:
    """Return the elements of each column of all results with columns, numbered across results."""
    columns, begin = [], 0
    for shape in shapes:
        end = begin + math.prod(shape)
        if len(shape) > 1:
            columns += [range(begin + k, end, shape[-1]) for k in range(shape[-1])]
        begin = end
    return columns


def assemble(
    kernels: Sequence[Kernel], type: Type, declarations: Sequence[str], functions: Sequence[str], fma: bool
) -> list[str]:
    """Return modules of kernels, the functions around them, and the sines and cosines that they call.

    The first module has everything except parts of kernels.
    """
    texts = list(functions)
    of_kernels = [d for kernel in kernels for d in kernel.declarations]
    declared = dict.fromkeys([*of_kernels, *declarations])
    called: list[str] = []  # calls in all modules
    widths = sorted({width for kernel in kernels for width in kernel.sincos_lanes})
    for width in widths:
        sincos, wide = sincos_ir(type.precision, width, fma), Type(type.precision, width)
        declared |= dict.fromkeys(sincos.declarations)
        texts.append(sincos.definition)
        called.append(f"declare {{ {wide.ir}, {wide.ir} }} @{sincos_name(wide)}({wide.ir})")
    widest = max(type.lanes, *widths, 1)
    attributes = f'noinline nounwind "frame-pointer"="all" "prefer-vector-width"="{8 * widest * type.item_bytes}"'
    shares = _shares([part for kernel in kernels for part in kernel.definitions])
    elsewhere = [part.partition(" {")[0].replace("define hidden", "declare") for share in shares[1:] for part in share]
    elsewhere = [re.sub(r"%\w+|#0", "", head) for head in elsewhere]
    first = [*declared, *elsewhere, *shares[0], *texts]
    others = [[*dict.fromkeys(of_kernels), *called, *share] for share in shares[1:]]
    return ["\n".join([*lines, f"attributes #0 = {{ {attributes} }}"]) for lines in (first, *others)]


def _shares(definitions: Sequence[str]) -> list[list[str]]:
    """Return modules large enough for a compiler thread each."""
    count = max(1, min(MOST_MODULES, sum(map(len, definitions)) // MODULE_BYTES, len(definitions)))
    return [list(definitions[k * len(definitions) // count : (k + 1) * len(definitions) // count]) for k in range(count)]


class PlacedLoop(NamedTuple):
    """A loop over columns, and the first slots of its inputs and its results, column after column."""

    loop: ColumnLoop
    inputs: int
    results: int


class Results(NamedTuple):
    """The distinct values of all outputs, the value of each element, and the values that loops over columns read.

    Slots are those of `values`, of the results of loops, and of constants.
    """

    values: tuple[Value, ...]  # values of straight-line code: elements, shared values of loops, and inputs of their columns
    constants: tuple[float, ...]  # constants, written once
    slots: tuple[int, ...]  # slot of each element, output after output
    shared: int  # first slot of the shared values of loops
    loops: tuple[PlacedLoop, ...]
    first_constant: int  # first slot of constants

    @classmethod
    def of(cls, t: Trace, rolled: Rolled) -> Results:
        looped = {k for loop in rolled.loops for column in loop.results for k in column}
        computed = dict.fromkeys(x for k, x in enumerate(t.outputs) if isinstance(x, tuple) and k not in looped)
        values: list[Value] = [*computed, *((i, False) for i in rolled.shared)]
        first_inputs = []
        for loop in rolled.loops:
            first_inputs.append(len(values))
            values += [x for column in loop.inputs for x in column]
        slot_of: dict[int, int] = {}  # slots of elements that loops compute
        loops, end = [], len(values)
        for loop, inputs in zip(rolled.loops, first_inputs, strict=True):
            loops.append(PlacedLoop(loop, inputs, end))
            elements = [k for column in loop.results for k in column]
            slot_of |= zip(elements, range(end, end + len(elements)), strict=True)
            end += len(elements)
        constants = {repr(x): x for x in t.outputs if not isinstance(x, tuple)}  # by text: -0.0 is not 0.0
        place: dict[Any, int] = {x: k for k, x in enumerate(computed)} | {x: k for k, x in enumerate(constants, end)}
        slots = [slot_of[k] if k in slot_of else place[x if isinstance(x, tuple) else repr(x)] for k, x in enumerate(t.outputs)]
        return cls(tuple(values), tuple(constants.values()), tuple(slots), len(computed), tuple(loops), end)

    @property
    def size(self) -> int:
        """Total number of slots."""
        return self.first_constant + len(self.constants)

    def straight(self, t: Trace) -> Trace:
        """Return the trace of everything that is computed before loops."""
        live = live_nodes(t.graph, (x[0] for x in self.values if isinstance(x, tuple)))
        return t._replace(outputs=self.values, live=live)


def _inputs(t: Trace, shapes: Sequence[CoreShape], type: Type) -> list[Mover]:
    """Return movers of the rows of each input, for elements that the trace reads."""
    live: list[list[int]] = [[] for _ in t.inputs]
    for i in t.live:
        if t.graph.op[i] == INPUT:
            live[int(t.graph.a[i])].append(t.graph.b[i])
    return [into_lanes(type, shape, str(k), x) for k, (shape, x) in enumerate(zip(shapes, live, strict=False))]


def _outputs(results: Results, shapes: Sequence[CoreShape], type: Type, first: int) -> list[Mover]:
    """Return movers of the rows of each output, with tags numbered from `first` on."""
    ends = pairwise(accumulate(map(math.prod, shapes), initial=0))
    slots = [results.slots[begin:end] for begin, end in ends]
    constants = dict(enumerate(results.constants, results.first_constant))
    pairs = enumerate(zip(shapes, slots, strict=True))
    return [out_of_lanes(type, shape, str(first + k), x, constants) for k, (shape, x) in pairs]


class _Run(NamedTuple):
    """A part of straight-line code, or a loop over columns with its body, of a stage."""

    stage: int
    part: str
    loop: tuple[Kernel, PlacedLoop] | None


class _Argument(NamedTuple):
    """An argument or a result of the gufunc: the location of its rows in the loop."""

    mover: Mover
    first: str  # address of its first row
    step: str  # row stride in bytes
    strides: tuple[str, ...]  # stride along each axis in bytes
    adjacent: str  # whether a row's elements are contiguous
    array: int  # array of lanes for its rows
    stream: Stream | None  # writer of rows that bypasses the caches
    streamed: str  # whether to use it


class _Loop:
    """`void @loop(ptr args, ptr dims, ptr steps, ptr data)` under construction."""

    def __init__(
        self, stages: Sequence[_Stage], inputs: Sequence[Mover], outputs: Sequence[Mover], type: Type, in_workspace: bool
    ) -> None:
        self.stages, self.results, self.type, self.in_workspace = stages, stages[-1].results, type, in_workspace
        large = [] if in_workspace else [m for m in outputs if m.row_bytes >= STREAMED_ROW]
        self.streams = {m.tag: Stream(type, m.size, m.tag) for m in large}
        # numbers of vectors of a block in each array of lanes: of inputs, of the values of stages, and of a kernel's workspace
        workspace = max(kernel.workspace for stage in stages for kernel in (stage.straight, *stage.bodies))
        self.vectors = [*(m.size for m in inputs), *(stage.results.size for stage in stages), workspace]
        self.f = f = Function("void", "loop", ["ptr %args", "ptr %dims", "ptr %steps", "ptr %data"], linkage="external")
        self.states = f.load("i64", "%dims")
        arguments = self._arguments([*inputs, *outputs], len(inputs))
        self.inputs, self.outputs = arguments[: len(inputs)], arguments[len(inputs) :]

    def written(self) -> Function:
        """Process a few blocks of W states at a time: rows to lanes, the parts of the kernel, lanes to rows."""
        f = self.f
        heap = self._make_workspace()
        runs = self._runs()
        self._write_constants()
        with f.loop(self.states, step=f.mul(self.most, self.type.lanes)) as state:
            blocks = f.least(self._blocks(f.sub(self.states, state)), self.most)
            ahead = self._rows_after(state, blocks, len(runs))
            for k, run in enumerate(runs):  # each run on all blocks, so that its code is fetched once
                if run.part and 0 < k < len(runs) - 1:
                    self._run_on_all(run, blocks, ahead, k)
                    continue
                with f.rounds(blocks) as block:
                    if k == 0:
                        self._move_rows(self.inputs, state, block)
                    if run.part:
                        self._run(f, f"@{run.part}", self._arrays_of(run.stage), block)
                    else:
                        self._run_loop(run, block)
                    self._fetch_share(f, ahead, f.add(f.mul(blocks, k), block))
                    if k == len(runs) - 1:
                        self._move_rows(self.outputs, state, block)
        if self.streams:
            f.line("fence seq_cst")  # makes writes that bypass the caches visible before the call returns
        if not self.in_workspace:
            f.call("void", "@free", f"ptr {heap}")
            f.call("i32", "@feclearexcept", f"i32 {FLOATING_POINT_FLAGS}")
        f.ret()
        return f

    # before the loop

    def _arguments(self, movers: Sequence[Mover], inputs: int) -> list[_Argument]:
        """Read NumPy's steps: the outer one of each argument, then the inner ones of each in turn."""
        f, arguments, place = self.f, [], len(movers)
        for k, mover in enumerate(movers):
            first = f.load("ptr", f.at("i64", "%args", k), align=8)  # in a word of 8 bytes also on 32-bit processors
            step = f.load("i64", "%steps", k)
            strides = tuple(f.load("i64", "%steps", place + d) for d in range(len(mover.shape)))
            place += len(strides)
            adjacent, expected = "true", self.type.item_bytes
            for stride, length in zip(reversed(strides), reversed(mover.shape), strict=True):
                adjacent = f.both(adjacent, f.equal(stride, expected))
                expected *= length
            stream = self.streams.get(mover.tag)
            streamed = f.less(NEAR_BYTES, f.mul(self.states, mover.row_bytes)) if stream else "false"
            array = k if k < inputs else len(self.vectors) - 2  # all results come from the array of the last stage
            arguments.append(_Argument(mover, first, step, strides, adjacent, array, stream, streamed))
        return arguments

    def _blocks(self, states: str) -> str:
        """Return the number of blocks of some states."""
        return self.f.div(self.f.add(states, self.type.lanes - 1), self.type.lanes)

    def _make_workspace(self) -> str:
        """Allocate the arrays of lanes, and a buffer for rows that bypass the caches, as one block of memory to free later."""
        f, W = self.f, self.type.lanes
        block_bytes = max(1, sum(self.vectors)) * self.type.bytes
        most = max(1, min(BLOCKS, BLOCK_BYTES // block_bytes))  # number of blocks in one run of the kernel
        self.most = f.least(self._blocks(self.states), most)
        further = CACHE_LINE + W * max((s.row_bytes for s in self.streams.values()), default=0)
        self.workspace_bytes = most * block_bytes + further
        heap = "%data"
        if not self.in_workspace:
            heap = f.call("ptr", "@malloc", f"i64 {f.add(f.mul(self.most, block_bytes), further)}")
            f.branch(f.equal(heap, "null", "ptr"), "no.memory", "memory")
            f.label("no.memory")
            f.line("%before = atomicrmw add ptr %data, i64 1 monotonic")
            f.ret()
            f.label("memory")
        self.arrays = [f.aligned(heap)]
        for vectors in self.vectors:
            self.arrays.append(f.at(self.type.precision, self.arrays[-1], f.mul(self.most, vectors * W)))
        self.buffer = self.arrays.pop()
        return heap

    def _write_constants(self) -> None:
        """Write the constants among the results to all blocks."""
        f, first = self.f, self.results.first_constant
        if not self.results.constants:
            return
        with f.loop(self.most) as block:
            lanes = self._lanes(len(self.vectors) - 2, block)
            for k, x in enumerate(self.results.constants):
                f.store(self.type.ir, self.type.constant(x), lanes, first + k, self.type.bytes)

    # in the loop

    def _lanes(self, array: int, block: str) -> str:
        """Return the address of a block's lanes."""
        return self.f.at(self.type.precision, self.arrays[array], self.f.mul(block, self.vectors[array] * self.type.lanes))

    def _arrays_of(self, stage: int) -> list[str]:
        """Return the arrays that straight-line code of a stage reads and writes."""
        return [*self.arrays[: len(self.inputs) + stage + 1], self.arrays[-1]]

    def _run(self, f: Function, part: str, arrays: Sequence[str], block: str) -> None:
        """Call a part for the lanes of a block in the arrays of its stage."""
        sizes = [size * self.type.lanes for size in (*self.vectors[: len(arrays) - 1], self.vectors[-1])]
        places = [f.at(self.type.precision, array, f.mul(block, size)) for array, size in zip(arrays, sizes, strict=True)]
        f.call("void", part, *[f"ptr {place}" for place in places])

    def parts_on_all(self) -> Iterator[Function]:
        """Yield, for each stage, a function that runs a part on all blocks.

        There is one function for all parts, because LLVM is slow on a loop for each.
        """
        for stage in range(len(self.stages)):
            arrays = [f"%array{k}" for k in range(len(self.inputs) + stage + 2)]
            ahead = [(f"%from{k}", f"%share{k}") for k in range(self._fetched)]
            pointers = [f"ptr {x}" for x in (*arrays, *(begin for begin, _ in ahead))]
            shares = [f"i64 {x}" for _, x in ahead]
            f = Function("void", f"fw.all{stage}", ["ptr %part", "i64 %blocks", "i64 %number", *pointers, *shares])
            with f.rounds("%blocks") as block:
                self._run(f, "%part", arrays, block)
                self._fetch_share(f, ahead, f.add(f.mul("%blocks", "%number"), block))
            f.ret()
            yield f

    def _run_on_all(self, run: _Run, blocks: str, ahead: Sequence[tuple[str, str]], number: int) -> None:
        pointers = [f"ptr {x}" for x in (*self._arrays_of(run.stage), *(begin for begin, _ in ahead))]
        numbers = f"i64 {blocks}", f"i64 {number}"
        self.f.call("void", f"@fw.all{run.stage}", f"ptr @{run.part}", *numbers, *pointers, *(f"i64 {x}" for _, x in ahead))

    def _runs(self) -> list[_Run]:
        """Return the parts of straight-line code and then the loops over columns, stage after stage."""
        runs = []
        for k, (straight, bodies, results) in enumerate(self.stages):
            runs += [_Run(k, part, None) for part in straight.parts]
            runs += [_Run(k, "", (body, placed)) for body, placed in zip(bodies, results.loops, strict=True)]
        return runs

    def _run_loop(self, run: _Run, block: str) -> None:
        """Compute column after column, each by the parts of the body."""
        assert run.loop is not None
        f, (body, placed), n = self.f, run.loop, len(self.inputs) + run.stage
        arguments = [self._lanes(a, block) for a in range(n)]
        values, workspace = self._lanes(n, block), self._lanes(len(self.vectors) - 1, block)
        shared = f.at(self.type.ir, values, self.stages[run.stage].results.shared)
        with f.rounds(len(placed.loop.inputs)) as column:
            inputs = f.at(self.type.ir, values, f.add(f.mul(column, len(placed.loop.inputs[0])), placed.inputs))
            results = f.at(self.type.ir, values, f.add(f.mul(column, len(placed.loop.results[0])), placed.results))
            for part in body.parts:
                f.call("void", f"@{part}", *[f"ptr {x}" for x in (*arguments, shared, inputs, results, workspace)])

    def _move_rows(self, moved: Sequence[_Argument], state: str, block: str) -> None:
        """Move a block's rows of arguments to lanes, or of results from lanes: W rows at once, or element by element."""
        f, W = self.f, self.type.lanes
        row = f.add(state, f.mul(block, W))
        left = f.sub(self.states, row)
        full = f.binary("icmp sge", "i64", left, W)
        count = f.select(full, W, left)
        for a in moved:
            rows, lanes = f.at("i8", a.first, f.mul(row, a.step)), self._lanes(a.array, block)
            with f.choice(f.both(a.adjacent, full)) as (together, apart):
                with together:
                    self._turn(a, rows, lanes)
                with apart:
                    strides = [f"i64 {s}" for s in a.strides]
                    arguments = [f"ptr {rows}", f"i64 {a.step}", f"i64 {count}", *strides, f"ptr {lanes}"]
                    f.call("void", f"@{a.mover.copies}", *arguments)

    def _turn(self, a: _Argument, rows: str, lanes: str) -> None:
        """Transpose W rows. Whole rows of large results bypass the caches through a buffer."""
        f, turn = self.f, f"@{a.mover.turns}"
        if a.stream is None:
            f.call("void", turn, f"ptr {rows}", f"i64 {a.step}", f"ptr {lanes}")
            return
        with f.choice(a.streamed) as (past, into):
            with past:
                f.call("void", turn, f"ptr {self.buffer}", f"i64 {a.stream.row_bytes}", f"ptr {lanes}")
                f.call("void", f"@{a.stream.name}", f"ptr {rows}", f"i64 {a.step}", f"ptr {self.buffer}")
            with into:
                f.call("void", turn, f"ptr {rows}", f"i64 {a.step}", f"ptr {lanes}")

    # prefetching for the next blocks

    def _rows_after(self, state: str, blocks: str, stages: int) -> list[tuple[str, str]]:
        """Return the places of the rows after this group of blocks, and the bytes of them that each run of a stage prefetches.

        There are none if rows are not contiguous, or if all are in a near cache anyway, as those of a controller are.
        """
        f = self.f
        if self.in_workspace:
            return []
        calls, rows = f.mul(blocks, stages), f.mul(blocks, self.type.lanes)
        row = f.add(state, rows)
        left = f.sub(self.states, row)
        arguments = [*self.inputs, *self.outputs]
        all_bytes = f.mul(self.states, sum(a.mover.row_bytes for a in arguments))
        some = f.both(f.less(NEAR_BYTES, all_bytes), f.less(0, left))
        next_rows = f.least(left, rows)
        shares = []
        for a in arguments:
            dense, kept = f.equal(a.step, a.mover.row_bytes), f.negation(a.streamed)
            bytes = f.select(f.both(dense, f.both(some, kept)), f.mul(next_rows, a.mover.row_bytes), 0)
            shares.append((f.at("i8", a.first, f.mul(row, a.step)), f.div(bytes, calls)))
        return shares

    @property
    def _fetched(self) -> int:
        """The number of arrays of rows that are prefetched."""
        return 0 if self.in_workspace else len(self.inputs) + len(self.outputs)

    def _fetch_share(self, f: Function, ahead: Sequence[tuple[str, str]], call: str) -> None:
        """Prefetch the share of one call."""
        for begin, share in ahead:
            f.call("void", "@fw.fetch", f"ptr {f.at('i8', begin, f.mul(share, call))}", f"i64 {share}")


def _fetch() -> Function:
    """Return the function that prefetches memory, a cache line at a time."""
    f = Function("void", "fw.fetch", ["ptr %from", "i64 %bytes"])
    with f.loop("%bytes", step=CACHE_LINE) as i:
        f.call("void", "@llvm.prefetch.p0", f"ptr {f.at('i8', '%from', i)}", "i32 0", "i32 3", "i32 1")
    f.ret()
    return f
