"""The loop of a NumPy gufunc around a kernel: rows of ordinary arrays in, rows out.

A batch is taken some blocks of W states at a time. Each argument's rows are transposed in registers into lanes,
x[index][lane]; the kernel runs over the blocks; results are transposed back. Where elements of a row are not adjacent, or
where fewer than W rows are left, they are copied one by one and the last row fills the lanes that are left over, so
nothing outside the arrays is ever touched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ...operations import INPUT
from ...program import CoreShape
from ...trace import Trace
from .emit import Kernel, emit_kernel
from .ir import Type
from .tiles import Mover
from .trig import sincos_ir

BLOCKS = 8  # at most, in one run of the kernel
FLOATING_POINT_FLAGS = 0x3F  # all of them, on every processor: a NaN that comes in and goes out is not worth a warning
NEAR_BYTES = 6 << 20  # arrays up to this size stay in a cache that is fast enough
STREAMED_ROW = 1024  # bytes of a result's row from which on large results go past the caches
BLOCK_BYTES = 450_000  # of workspace, at most: they should stay in the second-level cache


def emit_loop(t: Trace, shapes: Sequence[CoreShape], type: Type, fma: bool) -> str:
    """A module with `void @loop(ptr args, ptr dims, ptr steps, ptr data)` as NumPy calls it.

    `shapes` are the core shapes of the inputs and the outputs.
    """
    results = Results.of(t)
    kernel = emit_kernel(t._replace(outputs=results.values), type, fma)
    module = _Module(t, results, kernel, type, shapes)
    body = module.loop()
    return assemble(kernel, type, module.declarations, [*module.functions, body], fma)


def assemble(kernel: Kernel, type: Type, declarations: Sequence[str], functions: Sequence[str], fma: bool) -> str:
    """A module of a kernel, the functions around it, and the sines and cosines that it calls."""
    texts = [kernel.definitions, *functions]
    declared = dict.fromkeys([*kernel.declarations, *declarations])
    widest = type.lanes
    for width in kernel.sincos_lanes:
        sincos = sincos_ir(type.precision, width, fma)
        declared |= dict.fromkeys(sincos.declarations)
        texts.append(sincos.definition.replace("@fw.sincos", f"@fw.sincos.{Type(type.precision, width).mangled}"))
        widest = max(widest, width)
    attributes = f'attributes #0 = {{ noinline nounwind "prefer-vector-width"="{8 * widest * type.item_bytes}" }}'
    return "\n".join([*declared, *texts, attributes])


class Results(NamedTuple):
    """The different values of all outputs, and which of them each element is."""

    values: tuple[tuple[int, bool] | float, ...]  # what the kernel computes
    constants: tuple[float, ...]  # what is written once
    slots: tuple[int, ...]  # for each element an index of `values` and `constants`, one after the other

    @classmethod
    def of(cls, t: Trace) -> Results:
        computed = dict.fromkeys(x for x in t.outputs if isinstance(x, tuple))
        constants = {repr(x): x for x in t.outputs if not isinstance(x, tuple)}  # by text: -0.0 is not 0.0
        place: dict[Any, int] = {x: k for k, x in enumerate([*computed, *constants])}
        slots = tuple(place[x if isinstance(x, tuple) else repr(x)] for x in t.outputs)
        return cls(tuple(computed), tuple(constants.values()), slots)


class _Module:
    def __init__(self, t: Trace, results: Results, kernel: Kernel, type: Type, shapes: Sequence[CoreShape]) -> None:
        self.kernel, self.type, self.shapes, self.results = kernel, type, list(shapes), results
        self.item, self.bytes = type.precision, type.item_bytes
        self.sizes = [math.prod(s) for s in shapes]
        self.inputs = n = len(t.inputs)
        self.outputs = range(n, len(shapes))
        self.lanes = [*self.sizes[:n], len(results.values) + len(results.constants)]  # vectors: of inputs, of all outputs
        first = [0, *accumulate(self.sizes[n:])]
        live: list[list[int]] = [[] for _ in shapes]
        for i in t.live:
            if t.graph.op[i] == INPUT:
                live[int(t.graph.a[i])].append(t.graph.b[i])
        self.movers = [
            Mover(type, size, str(k), k < n, live[k], results.slots[first[k - n] : first[k - n + 1]] if k >= n else ())
            for k, size in enumerate(self.sizes)
        ]
        self.functions: list[str] = []
        self.declarations = ["declare ptr @malloc(i64)", "declare void @free(ptr)", "declare i32 @feclearexcept(i32)"]
        self.declarations.append("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.streams = [k for k in self.outputs if self.sizes[k] * self.bytes >= STREAMED_ROW]
        self.row_bytes = max((self.movers[k].padded for k in self.streams), default=0)  # of a buffer's row
        begin = list(accumulate(map(len, shapes), initial=len(shapes)))
        # NumPy's steps: the outer one of each argument, then the inner ones of each in turn
        self.inner = [list(range(begin[k], begin[k] + len(shape))) for k, shape in enumerate(shapes)]

    def _header(self) -> list[str]:
        """Arguments, outer and inner strides, and whether the elements of each argument's rows are adjacent."""
        lines = [
            "define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %data) #0 {",
            "entry:",
            "  %n = load i64, ptr %dims",
        ]
        for k, shape in enumerate(self.shapes):
            lines += [
                f"  %pa{k} = getelementptr ptr, ptr %args, i64 {k}",
                f"  %base{k} = load ptr, ptr %pa{k}",
                f"  %ps{k} = getelementptr i64, ptr %steps, i64 {k}",
                f"  %step{k} = load i64, ptr %ps{k}",
                f"  %whole{k}.{len(shape)} = icmp eq i64 0, 0",
            ]
            expected = self.bytes
            for d in reversed(range(len(shape))):
                lines += [
                    f"  %pi{k}.{d} = getelementptr i64, ptr %steps, i64 {self.inner[k][d]}",
                    f"  %inner{k}.{d} = load i64, ptr %pi{k}.{d}",
                    f"  %fits{k}.{d} = icmp eq i64 %inner{k}.{d}, {expected}",
                    f"  %whole{k}.{d} = and i1 %whole{k}.{d + 1}, %fits{k}.{d}",
                ]
                expected *= shape[d]
        return lines

    def _strides(self, k: int) -> str:
        """The three inner strides and lengths of argument k, as arguments of @fw.copy."""
        rank = len(self.shapes[k])
        strides = ["0"] * (3 - rank) + [f"%inner{k}.{d}" for d in range(rank)]
        lengths = [1] * (3 - rank) + list(self.shapes[k])
        return ", ".join([f"i64 {s}" for s in strides] + [f"i64 {n}" for n in lengths])

    def loop(self) -> str:
        """BLOCKS blocks of W states at a time."""
        W, n = self.type.lanes, self.inputs
        sizes = [*self.lanes, self.kernel.workspace]
        per_block = max(1, sum(sizes)) * W * self.bytes
        blocks = max(1, min(BLOCKS, BLOCK_BYTES // per_block))
        lines = self._header()
        lines += [
            f"  %up = add i64 %n, {W - 1}",
            f"  %all = sdiv i64 %up, {W}",
            f"  %few = icmp slt i64 %all, {blocks}",
            f"  %cap = select i1 %few, i64 %all, i64 {blocks}",
            f"  %bytes0 = mul i64 %cap, {per_block}",
            f"  %bytes = add i64 %bytes0, {64 + self.row_bytes * W}",
            "  %heap = call ptr @malloc(i64 %bytes)",
            *aligned("%heap", "%ws.0"),
        ]
        for k, size in enumerate(sizes[:-1]):
            lines += [f"  %len{k} = mul i64 %cap, {size * W}"]
            lines += [f"  %ws.{k + 1} = getelementptr {self.item}, ptr %ws.{k}, i64 %len{k}"]
        if self.streams:
            lines += [f"  %rows.len = mul i64 %cap, {sizes[-1] * W}"]
            lines += [f"  %rows.out = getelementptr {self.item}, ptr %ws.{n + 1}, i64 %rows.len"]
        for k in self.streams:
            lines += [f"  %bytes.out{k} = mul i64 %n, {self.sizes[k] * self.bytes}"]
            lines += [f"  %streamed{k} = icmp sgt i64 %bytes.out{k}, {NEAR_BYTES}"]
        lines += self._constants()
        lines += ["  br label %head", "head:", "  %start = phi i64 [ 0, %ready ], [ %following, %done ]"]
        lines += ["  %more = icmp slt i64 %start, %n", "  br i1 %more, label %group, label %exit", "group:"]
        lines += [
            "  %left = sub i64 %n, %start",
            f"  %leftup = add i64 %left, {W - 1}",
            f"  %leftblocks = sdiv i64 %leftup, {W}",
            "  %fewer = icmp slt i64 %leftblocks, %cap",
            "  %now = select i1 %fewer, i64 %leftblocks, i64 %cap",
            *self._next_rows(),
            "  br label %part0.head",
        ]
        for k in range(len(self.kernel.parts)):
            lines += self._part(k)
        lines += [
            "done:",
            f"  %advance = mul i64 %now, {W}",
            "  %following = add i64 %start, %advance",
            "  br label %head",
        ]
        lines += [
            "exit:",
            *(["  fence seq_cst"] if self.streams else []),  # what went past the caches is there before the call returns
            "  call void @free(ptr %heap)",
            f"  call i32 @feclearexcept(i32 {FLOATING_POINT_FLAGS})",
            "  ret void",
            "}",
        ]
        self.functions.append(_FETCH)
        for mover in self.movers:
            self.functions += [mover.copy(), mover.turn()]
        self.functions += [self.movers[k].stream() for k in self.streams]
        self.declarations += [d for mover in self.movers for d in mover.declarations]
        return "\n".join(lines)

    def _constants(self) -> list[str]:
        """Write the constants of the result to their slots in all blocks."""
        W, V = self.type.lanes, self.type.ir
        lines = ["  br label %fill", "fill:", "  %fb = phi i64 [ 0, %entry ], [ %fb1, %fill ]"]
        lines += [f"  %fo = mul i64 %fb, {self.lanes[-1] * W}"]
        lines += [f"  %fp = getelementptr {self.item}, ptr %ws.{self.inputs}, i64 %fo"]
        for k, x in enumerate(self.results.constants):
            lines += [f"  %fq{k} = getelementptr {V}, ptr %fp, i64 {len(self.results.values) + k}"]
            lines += [f"  store {V} {self.type.constant(x)}, ptr %fq{k}, align {W * self.bytes}"]
        lines += ["  %fb1 = add i64 %fb, 1", "  %fmore = icmp slt i64 %fb1, %cap"]
        return [*lines, "  br i1 %fmore, label %fill, label %ready", "ready:"]

    def _part(self, k: int) -> list[str]:
        """One part over all blocks of the group, before the next part, so that its code is fetched once.

        Before the first part a block's rows are moved into lanes, after the last one out of them, and meanwhile a little
        of the memory that the next group wants is asked for.
        """
        W, n, parts = self.type.lanes, self.inputs, self.kernel.parts
        before = f"part{k - 1}.next" if k else "group"
        lines = [f"part{k}.head:", f"  %b{k} = phi i64 [ 0, %{before} ], [ %b{k}.next, %part{k}.next ]"]
        if k == 0:
            lines += self._move("load", "%b0", range(n), "part0.call")
        else:
            lines += [f"  br label %part{k}.call"]
        lines += [f"part{k}.call:"]
        for a, size in enumerate([*self.lanes, self.kernel.workspace]):
            lines += [f"  %o{k}.{a} = mul i64 %b{k}, {size * W}"]
            lines += [f"  %x{k}.{a} = getelementptr {self.item}, ptr %ws.{a}, i64 %o{k}.{a}"]
        passed = ", ".join(f"ptr %x{k}.{a}" for a in range(n + 2))
        lines += [f"  call void @{parts[k]}({passed})", f"  %call{k}.0 = mul i64 %now, {k}"]
        lines += [f"  %call{k} = add i64 %call{k}.0, %b{k}"]
        for a in range(len(self.shapes)):
            lines += [f"  %from{k}.{a} = mul i64 %share{a}, %call{k}"]
            lines += [f"  %at{k}.{a} = getelementptr i8, ptr %ahead{a}, i64 %from{k}.{a}"]
            lines += [f"  call void @fw.fetch(ptr %at{k}.{a}, i64 %share{a})"]
        last = k == len(parts) - 1
        lines += self._move("save", f"%b{k}", self.outputs, f"part{k}.next") if last else [f"  br label %part{k}.next"]
        lines += [f"part{k}.next:", f"  %b{k}.next = add i64 %b{k}, 1", f"  %b{k}.more = icmp slt i64 %b{k}.next, %now"]
        return [*lines, f"  br i1 %b{k}.more, label %part{k}.head, label %{'done' if last else f'part{k + 1}.head'}"]

    def _next_rows(self) -> list[str]:
        """Where the rows after those of this group lie, and how many bytes they are.

        None, so that nothing is asked for, where rows are not adjacent, or where all of them are near at hand anyway.
        """
        W = self.type.lanes
        lines = [f"  %calls = mul i64 %now, {len(self.kernel.parts)}"]
        lines += [f"  %done.rows = mul i64 %now, {W}", "  %then.row = add i64 %start, %done.rows"]
        lines += [f"  %then.all = mul i64 %n, {sum(self.sizes) * self.bytes}"]
        lines += [f"  %then.far = icmp sgt i64 %then.all, {NEAR_BYTES}"]
        lines += ["  %then.left = sub i64 %n, %then.row", "  %then.more = icmp sgt i64 %then.left, 0"]
        lines += ["  %then.some = and i1 %then.far, %then.more"]
        for k in self.streams:
            lines += [f"  %unstreamed{k} = xor i1 %streamed{k}, true"]
            lines += [f"  %then.fetched{k} = and i1 %then.some, %unstreamed{k}"]
        lines += ["  %then.fewer = icmp slt i64 %then.left, %done.rows"]
        lines += ["  %then.rows = select i1 %then.fewer, i64 %then.left, i64 %done.rows"]
        for k, size in enumerate(self.sizes):
            lines += [
                f"  %then.off{k} = mul i64 %then.row, %step{k}",
                f"  %ahead{k} = getelementptr i8, ptr %base{k}, i64 %then.off{k}",
                f"  %dense{k} = icmp eq i64 %step{k}, {size * self.bytes}",
                f"  %wanted{k} = and i1 %dense{k}, %then.{f'fetched{k}' if k in self.streams else 'some'}",
                f"  %then.bytes{k} = mul i64 %then.rows, {size * self.bytes}",
                f"  %span{k} = select i1 %wanted{k}, i64 %then.bytes{k}, i64 0",
                f"  %share{k} = udiv i64 %span{k}, %calls",
            ]
        return lines

    def _move(self, name: str, block: str, arguments: Sequence[int], then: str) -> list[str]:
        """Move a block's rows of the given arguments into lanes ("load"), or out of them ("save"), and go on at `then`."""
        W = self.type.lanes
        lines = [
            f"  %{name}.o = mul i64 {block}, {W}",
            f"  %{name}.row = add i64 %start, %{name}.o",
            f"  %{name}.left = sub i64 %n, %{name}.row",
            f"  %{name}.full = icmp sge i64 %{name}.left, {W}",
            f"  %{name}.rows = select i1 %{name}.full, i64 {W}, i64 %{name}.left",
            f"  br label %{name}.a{arguments[0]}",
        ]
        for k in arguments:
            lines += [
                f"{name}.a{k}:",
                f"  %{name}.off{k} = mul i64 %{name}.row, %step{k}",
                f"  %{name}.p{k} = getelementptr i8, ptr %base{k}, i64 %{name}.off{k}",
                f"  %{name}.l{k} = mul i64 {block}, {self.lanes[min(k, self.inputs)] * W}",
                f"  %{name}.w{k} = getelementptr {self.item}, ptr %ws.{min(k, self.inputs)}, i64 %{name}.l{k}",
                f"  %{name}.fast{k} = and i1 %whole{k}.0, %{name}.full",
                f"  br i1 %{name}.fast{k}, label %{name}.fast.{k}, label %{name}.slow.{k}",
                f"{name}.fast.{k}:",
                *self._turn(name, k),
                f"  br label %{name}.after{k}",
                f"{name}.slow.{k}:",
                f"  call void @fw.copy.{k}(ptr %{name}.p{k}, i64 %step{k}, i64 %{name}.rows, {self._strides(k)}, "
                f"ptr %{name}.w{k})",
                f"  br label %{name}.after{k}",
                f"{name}.after{k}:",
                f"  br label %{name}.a{k + 1}" if k != arguments[-1] else f"  br label %{then}",
            ]
        return lines

    def _turn(self, name: str, k: int) -> list[str]:
        """Call the transposition of argument k; large results go through whole rows past the caches."""
        there = f"call void @fw.turn.{k}(ptr %{name}.p{k}, i64 %step{k}, ptr %{name}.w{k})"
        if k not in self.streams:
            return [f"  {there}"]
        return [
            f"  br i1 %streamed{k}, label %stream{k}, label %keep{k}",
            f"stream{k}:",
            f"  call void @fw.turn.{k}(ptr %rows.out, i64 {self.movers[k].padded}, ptr %{name}.w{k})",
            f"  call void @fw.stream.{k}(ptr %{name}.p{k}, i64 %step{k}, ptr %rows.out)",
            f"  br label %{name}.after{k}",
            f"keep{k}:",
            f"  {there}",
        ]


_FETCH = """define internal void @fw.fetch(ptr %from, i64 %bytes) #0 {
entry:
  %some = icmp sgt i64 %bytes, 0
  br i1 %some, label %line, label %exit
line:
  %i = phi i64 [ 0, %entry ], [ %j, %line ]
  %p = getelementptr i8, ptr %from, i64 %i
  call void @llvm.prefetch.p0(ptr %p, i32 0, i32 3, i32 1)
  %j = add i64 %i, 64
  %more = icmp slt i64 %j, %bytes
  br i1 %more, label %line, label %exit
exit:
  ret void
}"""
"""Ask for memory, a cache line at a time."""


def aligned(pointer: str, name: str) -> list[str]:
    """`name` is `pointer` rounded up to a multiple of 64."""
    tag = name.replace("%", "").replace(".", "")
    return [
        f"  %{tag}.i = ptrtoint ptr {pointer} to i64",
        f"  %{tag}.u = add i64 %{tag}.i, 63",
        f"  %{tag}.m = and i64 %{tag}.u, -64",
        f"  {name} = inttoptr i64 %{tag}.m to ptr",
    ]
