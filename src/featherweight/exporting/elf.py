"""A reader of ELF files, for checking and linking object code that LLVM wrote."""

from __future__ import annotations

import struct
from typing import NamedTuple

MACHINES = {0x3E: "x86-64", 0xB7: "AArch64", 0x28: "Arm", 0xF3: "RISC-V"}
ALLOCATED, WRITABLE, EXECUTABLE = 0x2, 0x1, 0x4
GLOBAL = 1
OBJECT, FUNCTION = 1, 2  # types of symbols


class Section(NamedTuple):
    """A section of an object file."""

    name: str
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class Symbol(NamedTuple):
    """A named location in a section; in section 0, a symbol that another file must define."""

    name: str
    type: int
    binding: int
    visibility: int
    section: int
    value: int
    size: int


class Relocation(NamedTuple):
    """A location that needs the address of a symbol."""

    section: int
    offset: int
    type: int
    symbol: int
    addend: int


class Elf:
    """An object file, little-endian, 32-bit or 64-bit. Raises ValueError for other files."""

    def __init__(self, data: bytes) -> None:
        if data[:4] != b"\x7fELF" or data[5] != 1:
            raise ValueError("not a little-endian ELF file")
        self.data, self.wide = data, data[4] == 2
        head = struct.unpack_from("<HHIQQQIHHHHHH" if self.wide else "<HHIIIIIHHHHHH", data, 16)
        self.type, self.machine, self.flags = head[0], MACHINES.get(head[1], hex(head[1])), head[6]
        start, size, count, names = head[5], head[10], head[11], head[12]
        raw = [struct.unpack_from("<IIQQQQIIQQ" if self.wide else "<10I", data, start + k * size) for k in range(count)]
        texts = raw[names][4]
        self.sections = [Section(self._text(texts + r[0]), r[1], r[2], *r[4:]) for r in raw]

    def _text(self, at: int) -> str:
        return self.data[at : self.data.index(b"\0", at)].decode()

    def content(self, section: Section) -> bytes:
        """Return the bytes of a section; zeros if the file stores none."""
        return bytes(section.size) if section.type == 8 else self.data[section.offset : section.offset + section.size]

    @property
    def symbols(self) -> list[Symbol]:
        """Return symbols visible to linkers; for shared libraries, symbols visible to loaders."""
        tables = [s for s in self.sections if s.type == (11 if self.type == 3 else 2)]
        return [self._symbol(t, at) for t in tables for at in range(t.offset, t.offset + t.size, t.entry)]

    def _symbol(self, table: Section, at: int) -> Symbol:
        if self.wide:
            name, info, other, section, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
        else:
            name, value, size, info, other, section = struct.unpack_from("<IIIBBH", self.data, at)
        text = self._text(self.sections[table.link].offset + name)
        return Symbol(text, info & 15, info >> 4, other & 3, section, value, size)

    @property
    def undefined(self) -> list[str]:
        """Return the names of undefined symbols."""
        return sorted({s.name for s in self.symbols if s.section == 0 and s.name})

    @property
    def defined(self) -> list[str]:
        """Return the names of defined symbols."""
        return [s.name for s in self.symbols if s.binding == GLOBAL and s.section and s.visibility in (0, 3)]

    @property
    def relocations(self) -> list[Relocation]:
        """Return relocations with addends in the loaded sections."""
        found = []
        for table in self.sections:
            if table.type == 4 and self.sections[table.info].flags & ALLOCATED:
                for at in range(table.offset, table.offset + table.size, table.entry):
                    offset, info, addend = struct.unpack_from("<QQq", self.data, at)
                    found.append(Relocation(table.info, offset, info & 0xFFFFFFFF, info >> 32, addend))
        return found
