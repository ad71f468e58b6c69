"""Names and addresses of compiled functions, for Linux's `perf`: with FEATHERWEIGHT_PERF=1, loaded code adds them to its map.

    FEATHERWEIGHT_PERF=1 perf record python script.py
    perf report --sort symbol

`perf` reads /tmp/perf-PID.map. Short functions have no lines of their own, because the compiler inlines them.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

WANTED = bool(os.environ.get("FEATHERWEIGHT_PERF"))
ELF = b"\x7fELF"
SYMBOLS, FUNCTION = 2, 2  # the type of a section with symbols, and that of a symbol
SECTION, SYMBOL = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")


class FunctionPlace(NamedTuple):
    """A function of an object file: its section, and its place there in bytes."""

    name: str
    section: int
    begin: int
    size: int


def functions_of(elf: bytes) -> Iterator[FunctionPlace]:
    """Yield the functions of a 64-bit ELF object."""
    table, size, count = struct.unpack_from("<Q", elf, 0x28)[0], *struct.unpack_from("<HH", elf, 0x3A)
    sections = [SECTION.unpack_from(elf, table + k * size) for k in range(count)]
    for _, kind, _, _, begin, length, link, *_ in sections:
        names = sections[link][4]
        for name, info, _, section, place, code in SYMBOL.iter_unpack(elf[begin : begin + length]) if kind == SYMBOLS else ():
            if info & 15 == FUNCTION and code:
                at = names + name
                yield FunctionPlace(elf[at : elf.index(b"\0", at)].decode(), section, place, code)


def map_functions(object_code: bytes, addresses: Mapping[str, int]) -> None:
    """Add the functions of an object, some of whose symbols are at these addresses, to the map of this process."""
    functions = [*functions_of(object_code)] if object_code.startswith(ELF) else []
    begins = {f.section: addresses[f.name] - f.begin for f in functions if f.name in addresses}
    lines = [f"{begins[f.section] + f.begin:x} {f.size:x} {f.name}\n" for f in functions if f.section in begins]
    with Path(f"/tmp/perf-{os.getpid()}.map").open("a") as file:
        file.writelines(lines)
