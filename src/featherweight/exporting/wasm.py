"""A reader of WebAssembly object files that finds their undefined functions."""

from __future__ import annotations

IMPORTS, FUNCTION = 2, 0


def needed_functions(data: bytes) -> list[str]:
    """Return the functions that a module imports; the linker provides memory, tables and globals."""
    at, names = 8, []
    while at < len(data):
        section = data[at]
        size, at = read_number(data, at + 1)
        if section == IMPORTS:
            names = _imports(data, at)
        at += size
    return names


def _imports(data: bytes, at: int) -> list[str]:
    names = []
    count, at = read_number(data, at)
    for _ in range(count):
        _, at = read_text(data, at)
        name, at = read_text(data, at)
        kind, at = data[at], at + 1
        if kind == FUNCTION:
            names.append(name)
            _, at = read_number(data, at)
        elif kind == 3:  # a global: its type, and whether it changes
            at += 2
        else:
            at += kind == 1  # a table: the type of its elements, then limits as of memories
            limits, at = data[at], at + 1
            _, at = read_number(data, at)
            if limits & 1:
                _, at = read_number(data, at)
    return names


def read_text(data: bytes, at: int) -> tuple[str, int]:
    """Read a text with its length in front; return it and the next offset."""
    size, at = read_number(data, at)
    return data[at : at + size].decode(), at + size


def read_number(data: bytes, at: int, signed: bool = False) -> tuple[int, int]:
    """Read a number in LEB128; return it and the next offset."""
    value, shift = 0, 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value - (1 << shift if signed and byte & 0x40 else 0), at
