"""Rows of ordinary arrays into lanes, x[index][lane], and back: W x W tiles transposed in registers.

Of an argument, tiles that the kernel does not read are left where they are. Of a result, the kernel leaves each value once,
in a slot; a table says which slot each element comes from, so that symmetric entries and constants cost it nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .ir import Type


class _Vector(Type):
    """A machine type that stays a vector when it has one lane."""

    @property
    def ir(self) -> str:
        return f"<{self.lanes} x {self.precision}>"

    @property
    def mangled(self) -> str:
        return f"v{self.lanes}{'f64' if self.precision == 'double' else 'f32'}"


class Mover:
    """Functions, with names that end in `tag`, that move W rows of `size` adjacent elements between memory and lanes.

    Into lanes (`gather`), but for tiles without one of the `live` elements; or out of them, element k from slot `slots[k]`.
    What the functions need to be declared is in `declarations`.
    """

    def __init__(self, type: Type, size: int, tag: str, gather: bool, live: Iterable[int], slots: Sequence[int]) -> None:
        self.type, self.size, self.tag, self.gather = type, size, tag, gather
        self.item, self.bytes = type.precision, type.item_bytes
        self.padded = -(-size * self.bytes // 64) * 64  # bytes of a row that begins a cache line
        W = type.lanes
        wanted = {k // W for k in live}
        tiles = [t * W for t in range(size // W) if not gather or t in wanted]
        self.tiles = tiles
        self.tables: dict[str, Sequence[int]] = {}
        if gather and len(tiles) < size // W:
            self.tables["tiles"] = tiles
        if not gather and list(slots) != list(range(size)):
            self.tables["slots"] = slots
        self.declarations = [
            f"@fw.{name}.{tag} = internal constant [{len(x)} x i64] [{', '.join(f'i64 {i}' for i in x)}]"
            for name, x in self.tables.items()
            if x
        ]

    def stream(self) -> str:
        """Write W rows from a buffer: the part that is whole cache lines without reading what was there before."""
        self.declarations.append("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        size, T = self.size, self.item
        V, step = f"<{64 // self.bytes} x {T}>", 64 // self.bytes
        return f"""define internal void @fw.stream.{self.tag}(ptr %out, i64 %step, ptr %buffer) #0 {{
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

    def copy(self) -> str:
        """Move rows element by element, any strides; when gathering, the last row fills the spare lanes."""
        W, T = self.type.lanes, self.item
        lanes = W if self.gather else "%rows"
        move = (
            [f"  %v = load {T}, ptr %p3", f"  store {T} %v, ptr %w"]
            if self.gather
            else [f"  %v = load {T}, ptr %w", f"  store {T} %v, ptr %p3"]
        )
        lines = [
            f"define internal void @fw.copy.{self.tag}(ptr %rowp, i64 %step, i64 %rows, i64 %s0, i64 %s1, i64 %s2, "
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
            *self._slot("%k", "%slot"),
            f"  %kw = mul i64 %slot, {W}", "  %kl = add i64 %kw, %lane", f"  %w = getelementptr {T}, ptr %lanes, i64 %kl",
            *move,
            "  %k3 = add i64 %k, 1",
            "  %m1 = add i64 %m, 1", "  %c3 = icmp slt i64 %m1, %n2", "  br i1 %c3, label %l3, label %e2",
            "e2:", "  %j1 = add i64 %j, 1", "  %c2 = icmp slt i64 %j1, %n1", "  br i1 %c2, label %l2, label %e1",
            "e1:", "  %i1 = add i64 %i, 1", "  %c1 = icmp slt i64 %i1, %n0", "  br i1 %c1, label %l1, label %e0",
            "e0:", "  %lane1 = add i64 %lane, 1", f"  %c0 = icmp slt i64 %lane1, {lanes}", "  br i1 %c0, label %l0, label %x",
            "x:", "  ret void", "}",
        ]  # fmt: skip
        return "\n".join(lines)

    def turn(self) -> str:
        """W whole rows into lanes, or back: W x W tiles transposed in registers, then what is left.

        A few columns go one by one. More are a tile that overlaps the one before, or that is masked where n < W.
        """
        W, n = self.type.lanes, self.size
        full, tail = divmod(n, W)
        lines = [f"define internal void @fw.turn.{self.tag}(ptr %rows, i64 %step, ptr %lanes) #0 {{", "entry:"]
        for r in range(W):
            lines += [f"  %o{r} = mul i64 %step, {r}", f"  %r{r} = getelementptr i8, ptr %rows, i64 %o{r}"]
        lines += ["  br label %" + ("tile" if self.tiles else "tail")]
        if self.tiles:
            lines += ["tile:", "  %t = phi i64 [ 0, %entry ], [ %t1, %tile ]"]
            lines += self._looked_up("tiles", "%t", "%c") if "tiles" in self.tables else [f"  %c = mul i64 %t, {W}"]
            lines += self._tile("f", "%c", W)
            lines += [
                "  %t1 = add i64 %t, 1",
                f"  %go = icmp slt i64 %t1, {len(self.tiles)}",
                "  br i1 %go, label %tile, label %tail",
            ]
        lines += ["tail:"]
        if tail <= W // 4:
            for column in range(full * W, n):
                lines += self._column(column)
        elif full:
            lines += self._tile("m", str(n - W), W)
        else:
            lines += self._tile("m", "0", tail)
            half = _Vector(self.item, W // 2)
            mask = f"<{half.lanes} x i1>"
            self.declarations += [
                f"declare {half.ir} @llvm.masked.load.{half.mangled}.p0(ptr, {mask}, {half.ir})",
                f"declare void @llvm.masked.store.{half.mangled}.p0({half.ir}, ptr, {mask})",
            ]
        return "\n".join([*lines, "  ret void", "}"])

    def _looked_up(self, table: str, index: str, name: str) -> list[str]:
        """`name` is an entry of a table."""
        return [
            f"  {name}.p = getelementptr i64, ptr @fw.{table}.{self.tag}, i64 {index}",
            f"  {name} = load i64, ptr {name}.p",
        ]

    def _slot(self, element: str, name: str) -> list[str]:
        """`name` is where the lanes of an element lie."""
        return self._looked_up("slots", element, name) if "slots" in self.tables else [f"  {name} = add i64 {element}, 0"]

    def _column(self, column: int) -> list[str]:
        """One column of W rows, element by element."""
        W, V, T = self.type.lanes, self.type.ir, self.item
        tag = f"c{column}"
        lines = self._slot(str(column), f"%{tag}s")
        lines += [f"  %{tag}l = getelementptr {V}, ptr %lanes, i64 %{tag}s"]
        lines += [f"  %{tag}p{r} = getelementptr {T}, ptr %r{r}, i64 {column}" for r in range(W)]
        if self.gather:
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

    def _tile(self, tag: str, column: str, width: int) -> list[str]:
        """Transpose the tile of W rows and `width` columns that starts at `column`."""
        W, V, T = self.type.lanes, self.type.ir, self.item
        lines = [f"  %{tag}p{r} = getelementptr {T}, ptr %r{r}, i64 {column}" for r in range(W)]
        for r in range(width):
            lines += [f"  %{tag}e{r} = add i64 {column}, {r}", *self._slot(f"%{tag}e{r}", f"%{tag}s{r}")]
            lines += [f"  %{tag}q{r} = getelementptr {V}, ptr %lanes, i64 %{tag}s{r}"]
        if self.gather:
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
