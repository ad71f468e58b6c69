"""The loop of a NumPy gufunc around a kernel: rows of ordinary arrays in, rows out.

A batch is taken some blocks of W states at a time. Each argument's rows are transposed in registers into lanes,
x[index][lane]; the kernel runs over the blocks; results are transposed back. Where elements of a row are not adjacent, or
where fewer than W rows are left, they are copied one by one and the last row fills the lanes that are left over, so
nothing outside the arrays is ever touched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .emit import Kernel, Type, emit_kernel
from .trace import Trace
from .trig import sincos_ir

Shape = tuple[int, ...]

BLOCKS = 8  # at most, in one run of the kernel
FLOATING_POINT_FLAGS = 0x3F  # all of them, on every processor: a NaN that comes in and goes out is not worth a warning
NEAR_BYTES = 6 << 20  # arrays up to this size stay in a cache that is fast enough
STREAMED_ROW = 1024  # bytes of a result's row from which on large results go past the caches
BLOCK_BYTES = 450_000  # of workspace, at most: they should stay in the second-level cache


def emit_loop(t: Trace, shapes: Sequence[Shape], precision: str, lanes: int, fma: bool) -> str:
    """A module with `void @loop(ptr args, ptr dims, ptr steps, ptr data)` as NumPy calls it.

    `shapes` are the core shapes of the inputs and the output.
    """
    type = Type(precision, lanes)
    kernel = emit_kernel(t, type, fma)
    module = _Module(kernel, type, shapes)
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


class _Vector(Type):
    """A machine type that stays a vector when it has one lane."""

    @property
    def ir(self) -> str:
        return f"<{self.lanes} x {self.precision}>"

    @property
    def mangled(self) -> str:
        return f"v{self.lanes}{'f64' if self.precision == 'double' else 'f32'}"


class _Module:
    def __init__(self, kernel: Kernel, type: Type, shapes: Sequence[Shape]) -> None:
        self.kernel, self.type, self.shapes = kernel, type, list(shapes)
        self.item, self.bytes = type.precision, type.item_bytes
        self.sizes = [math.prod(s) for s in shapes]
        self.functions: list[str] = []
        self.declarations = ["declare ptr @malloc(i64)", "declare void @free(ptr)", "declare i32 @feclearexcept(i32)"]
        self.declarations.append("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        self.declarations.append("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.streams = self.sizes[-1] * self.bytes >= STREAMED_ROW
        self.padded = -(-self.sizes[-1] * self.bytes // 64) * 64  # a row of the result that starts a cache line
        first = len(shapes)  # NumPy's steps: the outer one of each argument, then the inner ones of each in turn
        self.inner: list[list[int]] = []
        for shape in shapes:
            self.inner.append(list(range(first, first + len(shape))))
            first += len(shape)

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
        W, last = self.type.lanes, len(self.shapes) - 1
        sizes = [*self.sizes, self.kernel.workspace]
        per_block = max(1, sum(sizes)) * W * self.bytes
        blocks = max(1, min(BLOCKS, BLOCK_BYTES // per_block))
        lines = self._header()
        lines += [
            f"  %up = add i64 %n, {W - 1}",
            f"  %all = sdiv i64 %up, {W}",
            f"  %few = icmp slt i64 %all, {blocks}",
            f"  %cap = select i1 %few, i64 %all, i64 {blocks}",
            f"  %bytes0 = mul i64 %cap, {per_block}",
            f"  %bytes = add i64 %bytes0, {64 + (self.padded * W if self.streams else 0)}",
            "  %heap = call ptr @malloc(i64 %bytes)",
            *aligned("%heap", "%ws.0"),
        ]
        for k, size in enumerate(sizes[:-1]):
            lines += [f"  %len{k} = mul i64 %cap, {size * W}"]
            lines += [f"  %ws.{k + 1} = getelementptr {self.item}, ptr %ws.{k}, i64 %len{k}"]
        if self.streams:
            lines += [f"  %rows.len = mul i64 %cap, {sizes[-1] * W}"]
            lines += [f"  %rows.out = getelementptr {self.item}, ptr %ws.{last + 1}, i64 %rows.len"]
            lines += [f"  %out.bytes = mul i64 %n, {self.sizes[last] * self.bytes}"]
            lines += [f"  %streamed = icmp sgt i64 %out.bytes, {NEAR_BYTES}"]
        lines += ["  br label %head", "head:", "  %start = phi i64 [ 0, %entry ], [ %following, %done ]"]
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
        self.functions.append(self._copy("in", gather=True))
        self.functions.append(self._copy("out", gather=False))
        for k in range(last):
            self.functions.append(self._turned(k, gather=True))
        self.functions.append(self._turned(last, gather=False))
        if self.streams:
            self.functions.append(self._stream())
        return "\n".join(lines)

    def _part(self, k: int) -> list[str]:
        """One part over all blocks of the group, before the next part, so that its code is fetched once.

        Before the first part a block's rows are moved into lanes, after the last one out of them, and meanwhile a little
        of the memory that the next group wants is asked for.
        """
        W, end, parts = self.type.lanes, len(self.shapes) - 1, self.kernel.parts
        before = f"part{k - 1}.next" if k else "group"
        lines = [f"part{k}.head:", f"  %b{k} = phi i64 [ 0, %{before} ], [ %b{k}.next, %part{k}.next ]"]
        if k == 0:
            lines += self._move("load", "%b0", range(end), "part0.call")
        else:
            lines += [f"  br label %part{k}.call"]
        lines += [f"part{k}.call:"]
        for a, size in enumerate([*self.sizes, self.kernel.workspace]):
            lines += [f"  %o{k}.{a} = mul i64 %b{k}, {size * W}"]
            lines += [f"  %x{k}.{a} = getelementptr {self.item}, ptr %ws.{a}, i64 %o{k}.{a}"]
        passed = ", ".join(f"ptr %x{k}.{a}" for a in range(end + 2))
        lines += [f"  call void @{parts[k]}({passed})", f"  %call{k}.0 = mul i64 %now, {k}"]
        lines += [f"  %call{k} = add i64 %call{k}.0, %b{k}"]
        for a in range(end + 1):
            lines += [f"  %from{k}.{a} = mul i64 %share{a}, %call{k}"]
            lines += [f"  %at{k}.{a} = getelementptr i8, ptr %ahead{a}, i64 %from{k}.{a}"]
            lines += [f"  call void @fw.fetch(ptr %at{k}.{a}, i64 %share{a})"]
        last = k == len(parts) - 1
        lines += self._move("save", f"%b{k}", [end], f"part{k}.next") if last else [f"  br label %part{k}.next"]
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
        if self.streams:
            lines += ["  %unstreamed = xor i1 %streamed, true", "  %then.fetched = and i1 %then.some, %unstreamed"]
        lines += ["  %then.fewer = icmp slt i64 %then.left, %done.rows"]
        lines += ["  %then.rows = select i1 %then.fewer, i64 %then.left, i64 %done.rows"]
        for k, size in enumerate(self.sizes):
            lines += [
                f"  %then.off{k} = mul i64 %then.row, %step{k}",
                f"  %ahead{k} = getelementptr i8, ptr %base{k}, i64 %then.off{k}",
                f"  %dense{k} = icmp eq i64 %step{k}, {size * self.bytes}",
                f"  %wanted{k} = and i1 %dense{k}, %then.{'fetched' if self.streams and k == len(self.sizes) - 1 else 'some'}",
                f"  %then.bytes{k} = mul i64 %then.rows, {size * self.bytes}",
                f"  %span{k} = select i1 %wanted{k}, i64 %then.bytes{k}, i64 0",
                f"  %share{k} = udiv i64 %span{k}, %calls",
            ]
        return lines

    def _move(self, name: str, block: str, arguments: Sequence[int], then: str) -> list[str]:
        """Move a block's rows of the given arguments into lanes ("load"), or out of them ("save"), and go on at `then`."""
        W = self.type.lanes
        direction = "in" if name == "load" else "out"
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
                f"  %{name}.l{k} = mul i64 {block}, {self.sizes[k] * W}",
                f"  %{name}.w{k} = getelementptr {self.item}, ptr %ws.{k}, i64 %{name}.l{k}",
                f"  %{name}.fast{k} = and i1 %whole{k}.0, %{name}.full",
                f"  br i1 %{name}.fast{k}, label %{name}.fast.{k}, label %{name}.slow.{k}",
                f"{name}.fast.{k}:",
                *self._turn(name, k),
                f"  br label %{name}.after{k}",
                f"{name}.slow.{k}:",
                f"  call void @fw.copy.{direction}(ptr %{name}.p{k}, i64 %step{k}, i64 %{name}.rows, {self._strides(k)}, "
                f"ptr %{name}.w{k})",
                f"  br label %{name}.after{k}",
                f"{name}.after{k}:",
                f"  br label %{name}.a{k + 1}" if k != arguments[-1] else f"  br label %{then}",
            ]
        return lines

    def _turn(self, name: str, k: int) -> list[str]:
        """Call the transposition of argument k; large results go through whole rows past the caches."""
        there = f"call void @fw.turn{k}(ptr %{name}.p{k}, i64 %step{k}, ptr %{name}.w{k})"
        if name == "load" or not self.streams:
            return [f"  {there}"]
        return [
            "  br i1 %streamed, label %stream, label %keep",
            "stream:",
            f"  call void @fw.turn{k}(ptr %rows.out, i64 {self.padded}, ptr %{name}.w{k})",
            f"  call void @fw.stream(ptr %{name}.p{k}, i64 %step{k}, ptr %rows.out)",
            f"  br label %{name}.after{k}",
            "keep:",
            f"  {there}",
        ]

    def _stream(self) -> str:
        """Write W rows from a buffer: the part that is whole cache lines without reading what was there before."""
        size, T = self.sizes[-1], self.item
        V, step = f"<{64 // self.bytes} x {T}>", 64 // self.bytes
        return f"""define internal void @fw.stream(ptr %out, i64 %step, ptr %buffer) #0 {{
entry:
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r1, %next ]
  %o = mul i64 %r, %step
  %to = getelementptr i8, ptr %out, i64 %o
  %b = mul i64 %r, {self.padded}
  %from = getelementptr i8, ptr %buffer, i64 %b
  %address = ptrtoint ptr %to to i64
  %up = sub i64 0, %address
  %short = and i64 %up, 63
  %head = udiv i64 %short, {self.bytes}
  %left = sub i64 {size}, %head
  %lines = udiv i64 %left, {step}
  %body = mul i64 %lines, {step}
  %tail = add i64 %head, %body
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %short, i1 false)
  br label %line
line:
  %i = phi i64 [ %head, %row ], [ %i1, %line ]
  %f = getelementptr {T}, ptr %from, i64 %i
  %t = getelementptr {T}, ptr %to, i64 %i
  %x = load {V}, ptr %f, align {self.bytes}
  store {V} %x, ptr %t, align 64, !nontemporal !{{i32 1}}
  %i1 = add i64 %i, {step}
  %more = icmp slt i64 %i1, %tail
  br i1 %more, label %line, label %next
next:
  %rest = sub i64 {size}, %tail
  %rest.bytes = mul i64 %rest, {self.bytes}
  %f1 = getelementptr {T}, ptr %from, i64 %tail
  %t1 = getelementptr {T}, ptr %to, i64 %tail
  call void @llvm.memcpy.p0.p0.i64(ptr %t1, ptr %f1, i64 %rest.bytes, i1 false)
  %r1 = add i64 %r, 1
  %again = icmp slt i64 %r1, {self.type.lanes}
  br i1 %again, label %row, label %exit
exit:
  ret void
}}"""

    def _copy(self, name: str, gather: bool) -> str:
        """Move rows element by element, any strides; when gathering, the last row fills the spare lanes."""
        W, T = self.type.lanes, self.item
        lanes = W if gather else "%rows"
        move = (
            [f"  %v = load {T}, ptr %p3", f"  store {T} %v, ptr %w"]
            if gather
            else [f"  %v = load {T}, ptr %w", f"  store {T} %v, ptr %p3"]
        )
        lines = [
            f"define internal void @fw.copy.{name}(ptr %rowp, i64 %step, i64 %rows, i64 %s0, i64 %s1, i64 %s2, "
            "i64 %n0, i64 %n1, i64 %n2, ptr %lanes) #0 {",
            "entry:",
            "  %lastrow = sub i64 %rows, 1",
            "  br label %l0",
            "l0:", "  %lane = phi i64 [ 0, %entry ], [ %lane1, %e0 ]",
            "  %inside = icmp slt i64 %lane, %lastrow",
            "  %r = select i1 %inside, i64 %lane, i64 %lastrow",
            "  %o0 = mul i64 %r, %step", "  %p0 = getelementptr i8, ptr %rowp, i64 %o0", "  br label %l1",
            "l1:", "  %i = phi i64 [ 0, %l0 ], [ %i1, %e1 ]", "  %k1 = phi i64 [ 0, %l0 ], [ %k3, %e1 ]",
            "  %o1 = mul i64 %i, %s0", "  %p1 = getelementptr i8, ptr %p0, i64 %o1", "  br label %l2",
            "l2:", "  %j = phi i64 [ 0, %l1 ], [ %j1, %e2 ]", "  %k2 = phi i64 [ %k1, %l1 ], [ %k3, %e2 ]",
            "  %o2 = mul i64 %j, %s1", "  %p2 = getelementptr i8, ptr %p1, i64 %o2", "  br label %l3",
            "l3:", "  %m = phi i64 [ 0, %l2 ], [ %m1, %l3 ]", "  %k = phi i64 [ %k2, %l2 ], [ %k3, %l3 ]",
            "  %o3 = mul i64 %m, %s2", "  %p3 = getelementptr i8, ptr %p2, i64 %o3",
            f"  %kw = mul i64 %k, {W}", "  %kl = add i64 %kw, %lane", f"  %w = getelementptr {T}, ptr %lanes, i64 %kl",
            *move,
            "  %k3 = add i64 %k, 1",
            "  %m1 = add i64 %m, 1", "  %c3 = icmp slt i64 %m1, %n2", "  br i1 %c3, label %l3, label %e2",
            "e2:", "  %j1 = add i64 %j, 1", "  %c2 = icmp slt i64 %j1, %n1", "  br i1 %c2, label %l2, label %e1",
            "e1:", "  %i1 = add i64 %i, 1", "  %c1 = icmp slt i64 %i1, %n0", "  br i1 %c1, label %l1, label %e0",
            "e0:", "  %lane1 = add i64 %lane, 1", f"  %c0 = icmp slt i64 %lane1, {lanes}", "  br i1 %c0, label %l0, label %x",
            "x:", "  ret void", "}",
        ]  # fmt: skip
        return "\n".join(lines)

    def _turned(self, k: int, gather: bool) -> str:
        """W whole rows of argument k into lanes, or back: W x W tiles transposed in registers, then what is left.

        A few columns go one by one. More are a tile that overlaps the one before, or that is masked where n < W.
        """
        W, n = self.type.lanes, self.sizes[k]
        full, tail = divmod(n, W)
        lines = [f"define internal void @fw.turn{k}(ptr %rows, i64 %step, ptr %lanes) #0 {{", "entry:"]
        for r in range(W):
            lines += [f"  %o{r} = mul i64 %step, {r}", f"  %r{r} = getelementptr i8, ptr %rows, i64 %o{r}"]
        lines += ["  br label %" + ("tile" if full else "tail")]
        if full:
            lines += ["tile:", "  %t = phi i64 [ 0, %entry ], [ %t1, %tile ]", f"  %c = mul i64 %t, {W}"]
            lines += self._tile("f", "%c", W, gather)
            lines += [
                "  %t1 = add i64 %t, 1",
                f"  %go = icmp slt i64 %t1, {full}",
                "  br i1 %go, label %tile, label %tail",
            ]
        lines += ["tail:"]
        if tail <= W // 4:
            for column in range(full * W, n):
                lines += self._column(column, gather)
        elif full:
            lines += self._tile("m", str(n - W), W, gather)
        else:
            lines += self._tile("m", "0", tail, gather)
            half = _Vector(self.item, W // 2)
            mask = f"<{half.lanes} x i1>"
            self.declarations += [
                f"declare {half.ir} @llvm.masked.load.{half.mangled}.p0(ptr, {mask}, {half.ir})",
                f"declare void @llvm.masked.store.{half.mangled}.p0({half.ir}, ptr, {mask})",
            ]
        return "\n".join([*lines, "  ret void", "}"])

    def _column(self, column: int, gather: bool) -> list[str]:
        """One column of W rows, element by element."""
        W, V, T = self.type.lanes, self.type.ir, self.item
        tag = f"c{column}"
        lines = [f"  %{tag}l = getelementptr {V}, ptr %lanes, i64 {column}"]
        lines += [f"  %{tag}p{r} = getelementptr {T}, ptr %r{r}, i64 {column}" for r in range(W)]
        if gather:
            vector = "poison"
            for r in range(W):
                lines.append(f"  %{tag}x{r} = load {T}, ptr %{tag}p{r}, align {self.bytes}")
                lines.append(f"  %{tag}v{r} = insertelement {V} {vector}, {T} %{tag}x{r}, i64 {r}")
                vector = f"%{tag}v{r}"
            return [*lines, f"  store {V} {vector}, ptr %{tag}l, align {W * self.bytes}"]
        lines.append(f"  %{tag}v = load {V}, ptr %{tag}l, align {W * self.bytes}")
        for r in range(W):
            lines.append(f"  %{tag}x{r} = extractelement {V} %{tag}v, i64 {r}")
            lines.append(f"  store {T} %{tag}x{r}, ptr %{tag}p{r}, align {self.bytes}")
        return lines

    def _tile(self, tag: str, column: str, width: int, gather: bool) -> list[str]:
        """Transpose the tile of W rows and `width` columns that starts at `column`."""
        W, V, T = self.type.lanes, self.type.ir, self.item
        lines = [f"  %{tag}w = mul i64 {column}, {W}", f"  %{tag}l = getelementptr {T}, ptr %lanes, i64 %{tag}w"]
        lines += [f"  %{tag}p{r} = getelementptr {T}, ptr %r{r}, i64 {column}" for r in range(W)]
        lines += [f"  %{tag}q{r} = getelementptr {V}, ptr %{tag}l, i64 {r}" for r in range(width)]
        if gather:
            names = self._load_quarters(lines, tag, width)
            names = _exchange(lines, names, False, V, tag)
            lines += [f"  store {V} {names[r]}, ptr %{tag}q{r}, align {W * self.bytes}" for r in range(width)]
        else:
            lines += [f"  %{tag}a{r} = load {V}, ptr %{tag}q{r}, align {W * self.bytes}" for r in range(width)]
            names = [f"%{tag}a{r}" if r < width else "poison" for r in range(W)]
            names = _exchange(lines, names, True, V, tag)
            self._store_quarters(lines, names, tag, width)
        return lines

    def _halves(self, width: int) -> list[tuple[int, int, str]]:
        """Columns of a half tile: where they start, how many there are, and the mask that says so."""
        H = self.type.lanes // 2
        counts = (min(width, H), max(0, width - H))
        return [(h * H, n, f"<{H} x i1> <{_bits(n, H)}>") for h, n in enumerate(counts)]

    def _load_quarters(self, lines: list[str], tag: str, width: int) -> list[str]:
        """The first exchange of the transposition, done by loading half rows: row i beside row i + W/2."""
        W, T, H = self.type.lanes, self.item, self.type.lanes // 2
        half = _Vector(T, H)
        names = [""] * W
        both = f"<{W} x i32> <" + ", ".join(f"i32 {k}" for k in range(W)) + ">"
        for h, (start, n, mask) in enumerate(self._halves(width)):
            for r in range(W):
                name, address = f"%{tag}h{h}.{r}", f"%{tag}d{h}.{r}"
                lines.append(f"  {address} = getelementptr {T}, ptr %{tag}p{r}, i64 {start}")
                if n == H:
                    lines.append(f"  {name} = load {half.ir}, ptr {address}, align {self.bytes}")
                elif n:
                    call = f"call {half.ir} @llvm.masked.load.{half.mangled}.p0(ptr align {self.bytes} {address}, "
                    lines.append(f"  {name} = {call}{mask}, {half.ir} zeroinitializer)")
            for i in range(H):
                names[h * H + i] = f"%{tag}b{h}.{i}" if n else "zeroinitializer"
                if n:
                    pair = f"{half.ir} %{tag}h{h}.{i}, {half.ir} %{tag}h{h}.{i + H}"
                    lines.append(f"  {names[h * H + i]} = shufflevector {pair}, {both}")
        return names

    def _store_quarters(self, lines: list[str], names: list[str], tag: str, width: int) -> None:
        """The last exchange of the transposition, done by storing half vectors."""
        W, T, V, H = self.type.lanes, self.item, self.type.ir, self.type.lanes // 2
        half = _Vector(T, H)
        for h, (start, n, mask) in enumerate(self._halves(width)):
            for r in range(W):
                if not n:
                    continue
                source, name, address = names[h * H + r % H], f"%{tag}h{h}.{r}", f"%{tag}d{h}.{r}"
                picks = ", ".join(f"i32 {k + (r // H) * H}" for k in range(H))
                lines.append(f"  {name} = shufflevector {V} {source}, {V} poison, <{H} x i32> <{picks}>")
                lines.append(f"  {address} = getelementptr {T}, ptr %{tag}p{r}, i64 {start}")
                if n == H:
                    lines.append(f"  store {half.ir} {name}, ptr {address}, align {self.bytes}")
                else:
                    call = f"call void @llvm.masked.store.{half.mangled}.p0({half.ir} {name}, "
                    lines.append(f"  {call}ptr align {self.bytes} {address}, {mask})")


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


def _bits(n: int, of: int) -> str:
    """The first n of a mask's lanes."""
    return ", ".join("i1 true" if k < n else "i1 false" for k in range(of))


def _exchange(lines: list[str], names: list[str], up: bool, V: str, tag: str) -> list[str]:
    """The steps of a transposition that swap blocks of 1 to W/4 lanes between vectors, or down again (Eklundh 1972)."""
    W = len(names)
    distances = [1 << k for k in range(W.bit_length() - 2)]
    for d in distances if up else reversed(distances):
        new = list(names)
        for i in (i for i in range(W) if not i & d):
            low = [lane if not lane & d else W + lane - d for lane in range(W)]
            high = [lane + d if not lane & d else W + lane for lane in range(W)]
            for row, picks in ((i, low), (i + d, high)):
                new[row] = f"%{tag}x{d}.{row}"
                mask = f"<{W} x i32> <" + ", ".join(f"i32 {p}" for p in picks) + ">"
                lines.append(f"  {new[row]} = shufflevector {V} {names[i]}, {V} {names[i + d]}, {mask}")
        names = new
    return names


def aligned(pointer: str, name: str) -> list[str]:
    """`name` is `pointer` rounded up to a multiple of 64."""
    tag = name.replace("%", "").replace(".", "")
    return [
        f"  %{tag}.i = ptrtoint ptr {pointer} to i64",
        f"  %{tag}.u = add i64 %{tag}.i, 63",
        f"  %{tag}.m = and i64 %{tag}.u, -64",
        f"  {name} = inttoptr i64 %{tag}.m to ptr",
    ]
