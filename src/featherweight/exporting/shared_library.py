"""Shared libraries of object files without dependencies: a small linker for Linux, or else a system linker.

The file has three parts in memory: read-only data (headers, tables of symbols, constants), code, and the dynamic section, which
loaders write to. Addresses within the code are relative to it, so the loader relocates nothing.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .elf import ALLOCATED, EXECUTABLE, FUNCTION, GLOBAL, OBJECT, WRITABLE, Elf, Symbol
from .export_targets import ExportTarget

PAGE = 0x10000  # largest page size of AArch64; pages of x86-64 are smaller
HASH, STRINGS, SYMBOLS, STRINGS_SIZE, SYMBOL_SIZE, NAME = 4, 5, 6, 10, 11, 14
LINKED = {"x86-64": 0x3E, "AArch64": 0xB7}
_OWN = ("x86_64", "aarch64")  # these processors in LLVM's notation


class _Placed(NamedTuple):
    """A section with its address, which is the same in memory and in the file."""

    name: str
    type: int
    flags: int
    at: int
    data: bytes
    link: int = 0
    entry: int = 0
    align: int = 8


def link(objects: Sequence[bytes], name: str) -> bytes:
    """Return a shared library of object files for x86-64 or AArch64 that exports their global functions and constants.

    Raises ValueError for other machines, and for objects with undefined symbols or writable memory.
    """
    files = [Elf(data) for data in objects]
    machines = {f.machine for f in files}
    if len(machines) != 1 or not machines <= {*LINKED}:
        given = ", ".join(machines)
        raise ValueError(f"the built-in linker supports {' and '.join(LINKED)}; these objects are for {given}")
    return _Linker(files, name).library()


class _Linker:
    def __init__(self, files: Sequence[Elf], name: str) -> None:
        self.files, self.name, self.machine = files, name, files[0].machine
        for f in files:
            if f.undefined:
                raise ValueError(f"objects of a shared library must define all symbols; these need {', '.join(f.undefined)}")
            if any(s.flags & ALLOCATED and s.flags & WRITABLE and s.size for s in f.sections):
                raise ValueError("objects of a shared library must not have writable memory")
        self.exported = [(k, s) for k, f in enumerate(files) for s in f.symbols if _is_exported(s)]
        self.names = b"\0" + b"".join(s.name.encode() + b"\0" for _, s in self.exported) + name.encode() + b"\0"

    def library(self) -> bytes:
        hash_table = self._hash_table()
        at = 64 + 5 * 56
        tables = []
        for title, type, size, data, entry in (
            (".hash", 5, len(hash_table), hash_table, 4),
            (".dynsym", 11, 24 * (1 + len(self.exported)), b"", 24),
            (".dynstr", 3, len(self.names), self.names, 0),
        ):
            at = _up(at, 8)
            tables.append(_Placed(title, type, ALLOCATED, at, data or bytes(size), entry=entry))
            at += size
        self.addresses: dict[tuple[int, int], int] = {}
        constants, at = self._place(at, executable=False)
        code_at = _up(at, PAGE)
        code, at = self._place(code_at, executable=True)
        data_at = _up(at, PAGE)
        symbols = self._dynamic_symbols(code_at, len(tables) + (1 if constants else 0) + 1)
        tables[1] = tables[1]._replace(data=symbols, link=3)
        tables[0] = tables[0]._replace(link=2)
        dynamic = self._dynamic(*tables)
        placed = [*tables]
        if constants:
            placed.append(_Placed(".rodata", 1, ALLOCATED, min(constants), _joined(constants), align=64))
        placed.append(_Placed(".text", 1, ALLOCATED | EXECUTABLE, code_at, _joined(code), align=64))
        placed.append(_Placed(".dynamic", 6, ALLOCATED | WRITABLE, data_at, dynamic, link=3, entry=16))
        return self._file(placed, code_at, data_at)

    def _place(self, at: int, executable: bool) -> tuple[dict[int, bytes], int]:
        """Return sections by their addresses, from `at` on, and the next free address."""
        placed: dict[int, bytes] = {}
        for k, f in enumerate(self.files):
            for number, s in enumerate(f.sections):
                if s.flags & ALLOCATED and s.size and bool(s.flags & EXECUTABLE) == executable:
                    at = _up(at, max(s.align, 1))
                    self.addresses[k, number] = at
                    placed[at] = f.content(s)
                    at += s.size
        if executable:
            placed = {start: self._relocated(start, data) for start, data in placed.items()}
        return placed, at

    def _relocated(self, start: int, data: bytes) -> bytes:
        """Return the bytes of a section with all relocations applied."""
        [(k, number)] = [place for place, address in self.addresses.items() if address == start]
        f = self.files[k]
        symbols, patched = f.symbols, bytearray(data)
        for r in f.relocations:
            if r.section == number:
                s = symbols[r.symbol]
                target = self.addresses[k, s.section] + s.value + r.addend
                patch = _PATCHES[self.machine].get(r.type)
                if patch is None:
                    raise ValueError(f"no rule for relocations of type {r.type} on {self.machine}")
                patch(patched, r.offset, target, start + r.offset)
        return bytes(patched)

    def _dynamic_symbols(self, code_at: int, text: int) -> bytes:
        table = bytearray(24)
        for k, s in self.exported:
            value = self.addresses[k, s.section] + s.value
            at = self.names.index(b"\0" + s.name.encode() + b"\0") + 1
            table += struct.pack("<IBBHQQ", at, GLOBAL << 4 | s.type, 0, text, value, s.size)
        return bytes(table)

    def _hash_table(self) -> bytes:
        """Return the hash table in the format of the System V ABI, with one chain entry for each bucket."""
        count = 1 + len(self.exported)
        buckets, chains = [0] * count, [0] * count
        for k, (_, s) in enumerate(self.exported, 1):
            bucket = _hash(s.name) % count
            chains[k], buckets[bucket] = buckets[bucket], k
        return struct.pack(f"<{2 + 2 * count}I", count, count, *buckets, *chains)

    def _dynamic(self, hashes: _Placed, symbols: _Placed, names: _Placed) -> bytes:
        own_name = self.names.index(b"\0" + self.name.encode() + b"\0") + 1
        entries = [
            *((NAME, own_name), (HASH, hashes.at), (STRINGS, names.at), (SYMBOLS, symbols.at)),
            *((STRINGS_SIZE, len(self.names)), (SYMBOL_SIZE, 24), (0, 0)),
        ]
        return b"".join(struct.pack("<QQ", *entry) for entry in entries)

    def _file(self, placed: Sequence[_Placed], code_at: int, data_at: int) -> bytes:
        dynamic, text = placed[-1], placed[-2]
        read_end = placed[-3].at + len(placed[-3].data)
        segments = [
            (1, 4, 0, read_end, PAGE),
            (1, 5, code_at, len(text.data), PAGE),
            (1, 6, data_at, len(dynamic.data), PAGE),
            (2, 6, data_at, len(dynamic.data), 8),
            (0x6474E551, 6, 0, 0, 16),  # the stack is not executable
        ]
        titles = b"\0" + b"".join(p.name.encode() + b"\0" for p in placed) + b".shstrtab\0"
        titles_at = data_at + len(dynamic.data)
        sections_at = _up(titles_at + len(titles), 8)
        head = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)
        counts = (64, 56, len(segments), 64, len(placed) + 2, len(placed) + 1)
        head += struct.pack("<HHIQQQIHHHHHH", 3, LINKED[self.machine], 1, 0, 64, sections_at, 0, *counts)
        head += b"".join(struct.pack("<IIQQQQQQ", t, f, at, at, at, n, n, align) for t, f, at, n, align in segments)
        file = bytearray(sections_at)
        file[: len(head)] = head
        for p in placed:
            file[p.at : p.at + len(p.data)] = p.data
        file[titles_at : titles_at + len(titles)] = titles
        file += bytes(64)
        for p in placed:
            title = titles.index(b"\0" + p.name.encode() + b"\0") + 1
            first = 1 if p.name == ".dynsym" else 0  # index of the first global symbol
            file += struct.pack("<IIQQQQIIQQ", title, p.type, p.flags, p.at, p.at, len(p.data), p.link, first, p.align, p.entry)
        title = titles.index(b"\0.shstrtab\0") + 1
        file += struct.pack("<IIQQQQIIQQ", title, 3, 0, 0, titles_at, len(titles), 0, 0, 1, 0)
        return bytes(file)


def _is_exported(s: Symbol) -> bool:
    return s.binding == GLOBAL and s.section > 0 and s.visibility == 0 and s.type in (OBJECT, FUNCTION)


def _joined(pieces: Mapping[int, bytes]) -> bytes:
    """Concatenate pieces at their addresses, with zeros between them."""
    first = min(pieces)
    data = bytearray()
    for at, piece in pieces.items():
        data += bytes(at - first - len(data)) + piece
    return bytes(data)


def _up(at: int, align: int) -> int:
    return -(-at // align) * align


def _hash(name: str) -> int:
    h = 0
    for letter in name.encode():
        h = (h << 4) + letter
        g = h & 0xF0000000
        h = (h ^ g >> 24) & ~g & 0xFFFFFFFF
    return h


# relocations of the code at an offset, whose address is `place`, to an address

_Patch = Callable[[bytearray, int, int, int], None]


def _relative(code: bytearray, at: int, target: int, place: int) -> None:
    struct.pack_into("<i", code, at, target - place)


def _bits(shift: int, width: int, scale: int = 0, page: bool = False) -> _Patch:
    """Return the patch of a field of an AArch64 instruction: the offset in a page, or the distance, in units of 2^scale."""

    def patch(code: bytearray, at: int, target: int, place: int) -> None:
        (word,) = struct.unpack_from("<I", code, at)
        value = (target & 0xFFF if page else target - place) >> scale
        mask = (1 << width) - 1
        struct.pack_into("<I", code, at, word & ~(mask << shift) | (value & mask) << shift)

    return patch


def _page_distance(code: bytearray, at: int, target: int, place: int) -> None:
    (word,) = struct.unpack_from("<I", code, at)
    pages = (target >> 12) - (place >> 12)
    struct.pack_into("<I", code, at, word & ~(3 << 29 | 0x7FFFF << 5) | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5)


_PATCHES: dict[str, dict[int, _Patch]] = {
    "x86-64": {2: _relative, 4: _relative},
    "AArch64": {
        261: _relative,
        275: _page_distance,
        **{277 + k: _bits(10, 12, scale, page=True) for k, scale in ((0, 0), (1, 0), (7, 1), (8, 2), (9, 3), (22, 4))},
        **dict.fromkeys((282, 283), _bits(0, 26, 2)),
    },
}


# targets


def shared_suffix(target: ExportTarget) -> str:
    """Return the suffix of the file names of shared libraries."""
    return ".dylib" if _is_mac(target) else ".so"


def links_itself(target: ExportTarget) -> bool:
    """Return whether the small linker supports a target."""
    return "linux" in target.triple and target.triple.partition("-")[0] in _OWN


def link_shared(objects: Sequence[bytes], name: str, target: ExportTarget) -> bytes:
    """Return a shared library for a target.

    Raises ValueError for a target without shared libraries, or if no linker for it is installed.
    """
    arch = target.triple.partition("-")[0]
    if links_itself(target):
        return link(objects, name)
    if "-none-" in target.triple:
        raise ValueError(f"target {target.name} has no shared libraries: export a static library or objects")
    for command in _commands(target, arch, name):
        if shutil.which(command[0]):
            return _run(command, objects)
    tried = ", ".join(command[0] for command in _commands(target, arch, name))
    raise ValueError(
        f"target {target.name}: a shared library needs a linker for {target.triple}, but none of {tried} is installed; "
        "install one, or export a static library and link it on the target"
    )


def _commands(target: ExportTarget, arch: str, name: str) -> list[list[str]]:
    if _is_mac(target):
        return [["cc", "-dynamiclib", "-install_name", f"@rpath/{name}"]]
    gnu = "arm-linux-gnueabihf" if arch.startswith("arm") else f"{arch}-linux-gnu"
    return [[linker, "-shared", "-soname", name] for linker in ("ld.lld", f"{gnu}-ld")]


def _is_mac(target: ExportTarget) -> bool:
    return "apple" in target.triple


def _run(command: Sequence[str], objects: Sequence[bytes]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{k}.o") for k in range(len(objects))]
        for path, data in zip(paths, objects, strict=True):
            path.write_bytes(data)
        out = Path(folder, "out")
        done = subprocess.run([*command, "-o", out, *paths], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed to link: {done.stderr.strip()}")
        return out.read_bytes()
