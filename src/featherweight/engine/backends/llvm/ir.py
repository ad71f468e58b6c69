"""LLVM IR as text: machine types, and functions written line by line.

Creating LLVM's own builder objects takes longer than compiling a kernel, so functions are lists of lines. Writers use a
`Function`, which names values and labels, and has a method for each instruction.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

CACHE_LINE = 64  # bytes
SHORT = {"double": "f64", "float": "f32"}  # as in names of intrinsics


class Type(NamedTuple):
    """The machine type of the trace's scalars; or a vector of several lanes."""

    precision: str  # "double" or "float"; or an integer type, "i64"
    lanes: int

    @property
    def ir(self) -> str:
        return self.precision if self.lanes == 1 else f"<{self.lanes} x {self.precision}>"

    @property
    def mangled(self) -> str:
        short = SHORT.get(self.precision, self.precision)
        return short if self.lanes == 1 else f"v{self.lanes}{short}"

    @property
    def item_bytes(self) -> int:
        return 8 if self.precision == "double" else 4

    @property
    def bytes(self) -> int:
        """Size of all lanes in bytes, which is also their alignment."""
        return self.item_bytes * self.lanes

    def of(self, scalar: str) -> Type:
        """Return the type with the same number of lanes of another scalar."""
        return Type(scalar, self.lanes)

    def constant(self, value: float) -> str:
        """Return `value`, rounded to the precision, in every lane."""
        if self.precision == "float":
            value = struct.unpack("f", struct.pack("f", value))[0]
        floating = self.precision in SHORT
        text = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}" if floating else str(value)
        return text if self.lanes == 1 else f"splat ({self.precision} {text})"


class Vector(Type):
    """A machine type that stays a vector even with one lane, for shuffles and masked loads."""

    @property
    def ir(self) -> str:
        return f"<{self.lanes} x {self.precision}>"

    @property
    def mangled(self) -> str:
        return f"v{self.lanes}{SHORT[self.precision]}"

    def first(self, count: int) -> str:
        """Return the mask of the first `count` lanes."""
        bits = ", ".join("i1 true" if k < count else "i1 false" for k in range(self.lanes))
        return f"<{self.lanes} x i1> <{bits}>"


def pointer_type(space: int = 0) -> str:
    """Return the type of pointers to an address space of a device; 0 is the only one on processors."""
    return f"ptr addrspace({space})" if space else "ptr"


@functools.cache
def _intrinsic(name: str, T: str, mangled: str, count: int) -> tuple[str, str]:
    """Return the declaration of an LLVM intrinsic, and a call of it with arguments for %."""
    function, types = f"@llvm.{name}.{mangled}", ", ".join([T] * count)
    return f"declare {T} {function}({types})", f"call {T} {function}({', '.join([f'{T} %s'] * count)})"


class Function:
    """A function under construction, with its result type, its name, and its arguments with types: "ptr %x"."""

    def __init__(
        self, result: str, name: str, arguments: Sequence[str], linkage: str = "internal", attributes: str = "#0"
    ) -> None:
        self.name = name
        self._head = f"define {linkage} {result} @{name}({', '.join(arguments)}) {attributes} {{"
        self._lines: list[str] = []
        self._count = 0
        self.declarations: dict[str, None] = {}  # declarations that its module needs; an ordered set
        self.tables: list[str] = []  # its own tables, part of the module
        self.block = "start"  # the current block
        self.label("start")

    def __str__(self) -> str:
        return "\n".join([self._head, *self._lines, "}", *self.tables])

    def line(self, text: str) -> None:
        self._lines.append("  " + text)

    def fresh(self, wish: str = "t") -> str:
        """Return an unused name."""
        self._count += 1
        return f"{wish}.{self._count}"

    def value(self, text: str) -> str:
        """Write an instruction and return its value."""
        self._count += 1
        name = f"%t.{self._count}"
        self._lines.append(f"  {name} = {text}")
        return name

    def reserve(self) -> int:
        """Reserve a place for lines that are known later (`fill_in`); return its number."""
        self._lines.append("")
        return len(self._lines) - 1

    def fill_in(self, number: int, lines: Sequence[str]) -> None:
        """Write the lines of a reserved place."""
        self._lines[number] = "\n".join(lines)

    # blocks

    def label(self, name: str) -> str:
        self._lines.append(f"{name}:")
        self.block = name
        return name

    def jump(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str, odds: tuple[int, int] | None = None) -> None:
        """Branch to the first label if the condition holds, otherwise to the second; `odds` are branch weights."""
        hint = f', !prof !{{!"branch_weights", i32 {odds[0]}, i32 {odds[1]}}}' if odds else ""
        self.line(f"br i1 {condition}, label %{yes}, label %{no}{hint}")

    def require(self, condition: str, otherwise: str) -> None:
        """Continue if the condition holds, otherwise go to a label."""
        on = self.fresh("ok")
        self.branch(condition, on, otherwise)
        self.label(on)

    def return_if(self, condition: str, kind: str, value: str) -> None:
        """Return a value if the condition holds."""
        some, none = self.fresh("yes"), self.fresh("no")
        self.branch(condition, some, none)
        self.label(some)
        self.ret(kind, value)
        self.label(none)

    @contextmanager
    def unless(self, condition: str) -> Iterator[None]:
        """Write a block that runs if the condition does not hold."""
        some, after = self.fresh("no"), self.fresh("after")
        self.branch(condition, after, some)
        self.label(some)
        yield
        self.jump(after)
        self.label(after)

    @contextmanager
    def choice(self, condition: str) -> Iterator[tuple[AbstractContextManager[None], AbstractContextManager[None]]]:
        """Branch on a condition: `with f.choice(c) as (yes, no)`, then `with yes: ...` and `with no: ...`."""
        yes, no, after = self.fresh("yes"), self.fresh("no"), self.fresh("after")
        self.branch(condition, yes, no)

        @contextmanager
        def way(label: str) -> Iterator[None]:
            self.label(label)
            yield
            self.jump(after)

        yield way(yes), way(no)
        self.label(after)

    @contextmanager
    def loop(self, count: str | int, begin: str | int = 0, step: str | int = 1, metadata: str = "") -> Iterator[str]:
        """Write a loop over i64 indices from `begin` to before `count`, possibly empty; yield the index.

        A negative step must be a known number. `metadata` is that of the branch.
        """
        downward = isinstance(step, int) and step < 0
        if isinstance(begin, int) and isinstance(count, int) and (begin > count if downward else begin < count):
            with self.rounds(count, begin, step, metadata) as index:
                yield index
            return
        some, none = self.fresh("some"), self.fresh("none")
        self.branch(self.less(count, begin) if downward else self.less(begin, count), some, none)
        self.label(some)
        with self.rounds(count, begin, step, metadata) as index:
            yield index
        self.jump(none)
        self.label(none)

    @contextmanager
    def rounds(self, count: str | int, begin: str | int = 0, step: str | int = 1, metadata: str = "") -> Iterator[str]:
        """Write a loop with at least one iteration, without a test before the first."""
        body, done = self.fresh("body"), self.fresh("done")
        index, following, before = f"%{self.fresh('i')}", f"%{self.fresh('j')}", self.block
        self.jump(body)
        self.label(body)
        mark = len(self._lines)
        self.line("")  # for the phi, written when the last block of the body is known
        yield index
        self.line(f"{following} = add i64 {index}, {step}")
        downward = isinstance(step, int) and step < 0
        self.branch(self.less(count, following) if downward else self.less(following, count), body, done)
        self._lines[-1] += metadata
        self._lines[mark] = f"  {index} = phi i64 [ {begin}, %{before} ], [ {following}, %{self.block} ]"
        self.label(done)

    def phi(self, kind: str, *values: tuple[str | int, str]) -> str:
        """Return the value that belongs to the block from which this one was reached."""
        return self.value(f"phi {kind} " + ", ".join(f"[ {x}, %{block} ]" for x, block in values))

    def ret(self, kind: str = "void", value: str = "") -> None:
        self.line(f"ret {kind} {value}".rstrip())

    # memory

    def slot(self, kind: str, count: int = 1, align: int = 8) -> str:
        """Return memory on the stack; call this in the first block."""
        return self.value(f"alloca {kind}, i64 {count}, align {align}")

    def at(self, kind: str, pointer: str, index: str | int, space: int = 0) -> str:
        """Return the address of an element."""
        if index in (0, "0"):
            return pointer
        return self.value(f"getelementptr {kind}, {pointer_type(space)} {pointer}, i64 {index}")

    def load(
        self, kind: str, pointer: str, index: str | int = 0, align: int | None = None, volatile: bool = False, space: int = 0
    ) -> str:
        """Return an element, with its natural alignment by default."""
        hint = f", align {align}" if align else ""
        place = f"{pointer_type(space)} {self.at(kind, pointer, index, space)}"
        return self.value(f"load {'volatile ' * volatile}{kind}, {place}{hint}")

    def store(
        self, kind: str, value: str | int, pointer: str, index: str | int = 0, align: int | None = None, space: int = 0
    ) -> None:
        hint = f", align {align}" if align else ""
        self.line(f"store {kind} {value}, {pointer_type(space)} {self.at(kind, pointer, index, space)}{hint}")

    def field(self, kind: str, pointer: str, offset: int) -> str:
        """Return the value at `offset` bytes from a pointer."""
        return self.load(kind, self.at("i8", pointer, offset))

    def aligned(self, pointer: str) -> str:
        """Return the pointer, rounded up to the start of a cache line."""
        number = self.cast("ptrtoint", "ptr", pointer, "i64")
        return self.cast("inttoptr", "i64", self.binary("and", "i64", self.add(number, CACHE_LINE - 1), -CACHE_LINE), "ptr")

    def copy_bytes(self, to: str, source: str, count: str) -> None:
        self.declarations["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"] = None
        self.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {to}", f"ptr {source}", f"i64 {count}", "i1 false")

    def clear_bytes(self, at: str, count: str | int) -> None:
        """Write zero bytes; for floating-point numbers, positive zeros."""
        self.declarations["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"] = None
        self.call("void", "@llvm.memset.p0.i64", f"ptr {at}", "i8 0", f"i64 {count}", "i1 false")

    # arithmetic

    def binary(self, instruction: str, kind: str, a: str | int, b: str | int) -> str:
        return self.value(f"{instruction} {kind} {a}, {b}")

    def cast(self, instruction: str, kind: str, value: str, to: str) -> str:
        return self.value(f"{instruction} {kind} {value} to {to}")

    def add(self, a: str | int, b: str | int) -> str:
        return self.binary("add", "i64", a, b)

    def sub(self, a: str | int, b: str | int) -> str:
        return self.binary("sub", "i64", a, b)

    def mul(self, a: str | int, b: str | int) -> str:
        return self.binary("mul", "i64", a, b)

    def div(self, a: str | int, b: str | int) -> str:
        """Return the integer quotient of nonnegative numbers."""
        return self.binary("udiv", "i64", a, b)

    def equal(self, a: str | int, b: str | int, kind: str = "i64") -> str:
        return self.binary("icmp eq", kind, a, b)

    def less(self, a: str | int, b: str | int) -> str:
        return self.binary("icmp slt", "i64", a, b)

    def both(self, a: str, b: str) -> str:
        return self.binary("and", "i1", a, b)

    def either(self, a: str, b: str) -> str:
        return self.binary("or", "i1", a, b)

    def negation(self, a: str) -> str:
        """Return the negation of a condition."""
        return self.binary("xor", "i1", a, "true")

    def select(self, condition: str, yes: str | int, no: str | int, kind: str = "i64", conditions: str = "i1") -> str:
        return self.value(f"select {conditions} {condition}, {kind} {yes}, {kind} {no}")

    def least(self, a: str | int, b: str | int) -> str:
        return self.select(self.less(a, b), a, b)

    # vectors and pairs

    def insert(self, type: Type, vector: str, value: str, lane: int) -> str:
        return self.value(f"insertelement {type.ir} {vector}, {type.precision} {value}, i64 {lane}")

    def extract(self, type: Type, vector: str, lane: int) -> str:
        return self.value(f"extractelement {type.ir} {vector}, i64 {lane}")

    def shuffle(self, type: Type, a: str, b: str, picks: Sequence[int]) -> str:
        """Return the selected lanes of a and, with numbers continuing, of b; -1 selects an arbitrary value."""
        mask = f"<{len(picks)} x i32> <" + ", ".join(f"i32 {k}" if k >= 0 else "i32 poison" for k in picks) + ">"
        return self.value(f"shufflevector {type.ir} {a}, {type.ir} {b}, {mask}")

    def load_first(self, type: Vector, pointer: str, count: int) -> str:
        """Load `count` items into the first lanes, with zeros in the others; no other memory is accessed."""
        align, V = type.item_bytes, type.ir
        if count == type.lanes:
            return self.load(V, pointer, align=align)
        name = f"@llvm.masked.load.{type.mangled}.p0"  # with LLVM 20's form of the alignment, which later versions also accept
        self.declarations[f"declare {V} {name}(ptr, i32, <{type.lanes} x i1>, {V})"] = None
        return self.call(V, name, f"ptr {pointer}", f"i32 {align}", type.first(count), f"{V} zeroinitializer")

    def store_first(self, type: Vector, value: str, pointer: str, count: int) -> None:
        """Store the first lanes to `count` items of memory."""
        align, V = type.item_bytes, type.ir
        if count == type.lanes:
            self.store(V, value, pointer, align=align)
            return
        name = f"@llvm.masked.store.{type.mangled}.p0"
        self.declarations[f"declare void {name}({V}, ptr, i32, <{type.lanes} x i1>)"] = None
        self.call("void", name, f"{V} {value}", f"ptr {pointer}", f"i32 {align}", type.first(count))

    def pair(self, kind: str, a: str, b: str) -> str:
        """Return two values as one value of type { kind, kind }."""
        half = self.value(f"insertvalue {{ {kind}, {kind} }} poison, {kind} {a}, 0")
        return self.value(f"insertvalue {{ {kind}, {kind} }} {half}, {kind} {b}, 1")

    def member(self, kind: str, pair: str, k: int) -> str:
        """Return the first (0) or second (1) member of a pair."""
        return self.value(f"extractvalue {{ {kind}, {kind} }} {pair}, {k}")

    # calls

    def call(self, result: str, function: str, *arguments: str) -> str:
        """Write a call of "@name" or a pointer, arguments with types; return its value, or nothing for "void"."""
        text = f"call {result} {function}({', '.join(arguments)})"
        if result != "void":
            return self.value(text)
        self.line(text)
        return ""

    def intrinsic(self, name: str, type: Type, *arguments: str) -> str:
        """Call an LLVM intrinsic on numbers, all of one type."""
        declaration, call = _intrinsic(name, type.ir, type.mangled, len(arguments))
        self.declarations[declaration] = None
        return self.value(call % arguments)
