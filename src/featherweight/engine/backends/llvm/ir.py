"""LLVM IR as text: machine types, and functions written line by line.

LLVM's own builder objects cost more time than compiling a kernel does, so functions are lists of lines. Whoever writes one
takes a `Function`, which numbers values and labels, and asks it for instructions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple


class Type(NamedTuple):
    """The machine type that a scalar of the trace becomes."""

    precision: str  # "double" or "float"
    lanes: int

    @property
    def ir(self) -> str:
        return self.precision if self.lanes == 1 else f"<{self.lanes} x {self.precision}>"

    @property
    def mangled(self) -> str:
        bits = "f64" if self.precision == "double" else "f32"
        return bits if self.lanes == 1 else f"v{self.lanes}{bits}"

    @property
    def item_bytes(self) -> int:
        return 8 if self.precision == "double" else 4

    def constant(self, value: float) -> str:
        """`value`, rounded to the precision, in every lane."""
        if self.precision == "float":
            value = struct.unpack("f", struct.pack("f", value))[0]
        text = f"{self.precision} 0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        return text.split()[1] if self.lanes == 1 else f"splat ({text})"


class Function:
    """A function under construction. Values are named %0.1, %0.2, ..., or as the writer says; labels likewise."""

    def __init__(self, result: str, name: str, arguments: Sequence[str], internal: bool = True) -> None:
        linkage = "internal " if internal else ""
        self._head = f"define {linkage}{result} @{name}({', '.join(arguments)}) #0 {{"
        self._lines: list[str] = []
        self._count = 0
        self.block = "start"  # the block that is being written
        self.label("start")

    def __str__(self) -> str:
        return "\n".join([self._head, *self._lines, "}"])

    def line(self, text: str) -> None:
        self._lines.append("  " + text)

    def lines(self, texts: Sequence[str]) -> None:
        self._lines += texts

    def fresh(self, wish: str = "t") -> str:
        """A name that nothing has yet."""
        self._count += 1
        return f"{wish}.{self._count}"

    def value(self, text: str) -> str:
        """The value of an instruction."""
        name = f"%{self.fresh()}"
        self.line(f"{name} = {text}")
        return name

    # blocks

    def label(self, name: str) -> str:
        self._lines.append(f"{name}:")
        self.block = name
        return name

    def jump(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")

    def require(self, condition: str, otherwise: str) -> None:
        """Go on where the condition holds, at a label where it does not."""
        on = self.fresh("ok")
        self.branch(condition, on, otherwise)
        self.label(on)

    @contextmanager
    def loop(self, count: str, begin: str = "0") -> Iterator[str]:
        """The body of a loop over i64 indices from `begin` to `count` - 1, none where that is empty."""
        head, body, done = self.fresh("head"), self.fresh("body"), self.fresh("done")
        index, following, before = f"%{self.fresh('i')}", f"%{self.fresh('j')}", self.block
        self.jump(head)
        mark = len(self._lines)
        self.label(head)
        self.line("")  # the phi, when it is known which block the body ends in
        self.branch(self.value(f"icmp slt i64 {index}, {count}"), body, done)
        self.label(body)
        yield index
        self.line(f"{following} = add i64 {index}, 1")
        end = self.block
        self.jump(head)
        self._lines[mark + 1] = f"  {index} = phi i64 [ {begin}, %{before} ], [ {following}, %{end} ]"
        self.label(done)

    # memory

    def slot(self, kind: str, count: int = 1, align: int = 8) -> str:
        """Room on the stack, to be asked for in the first block."""
        return self.value(f"alloca {kind}, i64 {count}, align {align}")

    def at(self, kind: str, pointer: str, index: str | int) -> str:
        """The address of an element."""
        return pointer if index in (0, "0") else self.value(f"getelementptr {kind}, ptr {pointer}, i64 {index}")

    def load(self, kind: str, pointer: str, index: str | int = 0) -> str:
        return self.value(f"load {kind}, ptr {self.at(kind, pointer, index)}")

    def store(self, kind: str, value: str | int, pointer: str, index: str | int = 0) -> None:
        self.line(f"store {kind} {value}, ptr {self.at(kind, pointer, index)}")

    def field(self, kind: str, pointer: str, offset: int) -> str:
        """What lies that many bytes behind a pointer."""
        return self.load(kind, self.at("i8", pointer, offset))

    # arithmetic

    def add(self, a: str | int, b: str | int) -> str:
        return self.value(f"add i64 {a}, {b}")

    def mul(self, a: str | int, b: str | int) -> str:
        return self.value(f"mul i64 {a}, {b}")

    def equal(self, a: str | int, b: str | int, kind: str = "i64") -> str:
        return self.value(f"icmp eq {kind} {a}, {b}")

    def both(self, a: str, b: str) -> str:
        return self.value(f"and i1 {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.value(f"or i1 {a}, {b}")

    def aligned(self, pointer: str) -> str:
        """The pointer, rounded up to a multiple of 64."""
        number = self.value(f"ptrtoint ptr {pointer} to i64")
        return self.value(f"inttoptr i64 {self.value(f'and i64 {self.add(number, 63)}, -64')} to ptr")

    def call(self, result: str, function: str, *arguments: str) -> str:
        """The value of a call, of "@name" or a pointer; arguments with their types. Nothing if the result is "void"."""
        text = f"call {result} {function}({', '.join(arguments)})"
        if result != "void":
            return self.value(text)
        self.line(text)
        return ""
