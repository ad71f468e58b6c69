"""A linker of WebAssembly object files into one module with its own memory, which programs load directly.

Our object files import only a memory and the stack pointer; their functions call each other and read constants. Numbers that
depend on other objects are listed as relocations, and padded to five bytes (WebAssembly's tool conventions, Linking.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from .wasm import needed_functions, read_number, read_text

T = TypeVar("T")

STACK = 65536  # bytes, from address zero: a stack overflow traps and overwrites nothing
PAGE = 65536
CUSTOM, TYPES, FUNCTIONS, MEMORY, GLOBALS, EXPORTS, CODE, DATA = 0, 1, 3, 5, 6, 7, 10, 11
I32, CONST, END = 0x7F, 0x41, 0x0B
SYMBOLS, SEGMENTS = 8, 5  # parts of the section "linking"
TO_FUNCTION, TO_ADDRESS, TO_SIGNED_ADDRESS, TO_WORD, TO_TYPE, TO_GLOBAL = 0, 3, 4, 5, 6, 7


class _Symbol(NamedTuple):
    kind: int  # 0 a function, 1 data, 2 a global
    name: str
    number: int  # of the function, or of the data's segment
    offset: int  # in that segment


class _Relocation(NamedTuple):
    kind: int
    at: int  # in the section
    to: int  # the number of a symbol, or of a type
    addend: int


class _Object(NamedTuple):
    """The parts of an object file that a module needs."""

    types: list[bytes]
    functions: list[int]  # types of the functions
    code: bytes
    data: bytes
    symbols: list[_Symbol]
    alignments: list[int]  # of the segments, in bytes
    relocations: dict[int, list[_Relocation]]  # of code and data


def link_wasm(objects: Sequence[bytes], symbols: Sequence[str]) -> bytes:
    """Return a module that exports `memory`, `__heap_base` (the first free address) and the named functions.

    Raises ValueError for data that is not such an object file, for undefined functions, and for symbols that no object defines.
    """
    read = [_object(data) for data in objects]
    types: list[bytes] = []
    functions: list[int] = []
    bodies: list[bytes] = []
    segments: list[bytes] = []
    defined: dict[str, int] = {}
    top = STACK
    for o in read:
        addresses = []
        for size, alignment in zip(map(len, _vector(o.data, _segment)), o.alignments, strict=True):
            addresses.append(-(-top // alignment) * alignment)
            top = addresses[-1] + size
        first = len(functions)
        defined |= {s.name: first + s.number for s in o.symbols if s.kind == 0}
        code, data = (_moved(o, section, first, len(types), addresses) for section in (CODE, DATA))
        bodies += _vector(code, _body)
        segments += [b"\0" + _constant(a) + _sized(s) for a, s in zip(addresses, _vector(data, _segment), strict=True)]
        functions += [len(types) + t for t in o.functions]
        types += o.types
    if missing := [s for s in symbols if s not in defined]:
        raise ValueError(f"no object has a function {missing[0]!r}")
    heap = -(-top // 64) * 64
    exports = [_text("memory") + b"\2\0", _text("__heap_base") + b"\3\1"]
    exports += [_text(s) + b"\0" + _leb(defined[s]) for s in symbols]
    sections = (
        (TYPES, types),
        (FUNCTIONS, [_leb(t) for t in functions]),
        (MEMORY, [b"\0" + _leb(-(-heap // PAGE))]),
        (GLOBALS, [bytes([I32, 1]) + _constant(STACK), bytes([I32, 0]) + _constant(heap)]),
        (EXPORTS, exports),
        (CODE, [_sized(b) for b in bodies]),
        (DATA, segments),
    )
    return b"\0asm\1\0\0\0" + b"".join(bytes([n]) + _sized(_leb(len(items)) + b"".join(items)) for n, items in sections)


def _moved(o: _Object, section: int, first: int, first_type: int, addresses: Sequence[int]) -> bytes:
    """Return a section with relocations applied."""
    moved = bytearray(o.code if section == CODE else o.data)
    for r in o.relocations.get(section, ()):
        symbol = o.symbols[r.to] if r.kind != TO_TYPE else None
        if symbol is None:
            value = first_type + r.to
        elif r.kind == TO_FUNCTION:
            value = first + symbol.number
        elif r.kind == TO_GLOBAL and symbol.name == "__stack_pointer":
            value = 0
        elif r.kind in (TO_ADDRESS, TO_SIGNED_ADDRESS, TO_WORD):
            value = addresses[symbol.number] + symbol.offset + r.addend
        else:
            raise ValueError(
                f"the built-in linker of WebAssembly does not support relocation {r.kind}, to {symbol.name!r}: "
                "link with wasm-ld"
            )
        padded = value.to_bytes(4, "little") if r.kind == TO_WORD else _padded(value)
        moved[r.at : r.at + len(padded)] = padded
    return bytes(moved)


def _object(data: bytes) -> _Object:
    if data[:8] != b"\0asm\1\0\0\0":
        raise ValueError("the built-in linker of WebAssembly needs object files; this is not one")
    if needed := needed_functions(data):
        raise ValueError(f"an object calls {needed[0]}, which the built-in linker of WebAssembly does not provide")
    found: dict[int, bytes] = {}
    custom: list[tuple[str, bytes]] = []
    order: list[int] = []
    for number, payload in _sections(data, 8):
        order.append(number)
        if number == CUSTOM:
            name, at = read_text(payload, 0)
            custom.append((name, payload[at:]))
        else:
            found[number] = payload
    named = dict(custom)
    if "linking" not in named:
        raise ValueError("the built-in linker of WebAssembly needs object files; this is a linked module")
    parts = dict(_sections(named["linking"], 1))
    relocations = dict(_relocations(order, payload) for name, payload in custom if name.startswith("reloc."))
    return _Object(
        _vector(found.get(TYPES, b"\0"), _type),
        _vector(found.get(FUNCTIONS, b"\0"), read_number),
        found.get(CODE, b"\0"),
        found.get(DATA, b"\0"),
        _vector(parts.get(SYMBOLS, b"\0"), _symbol),
        _vector(parts.get(SEGMENTS, b"\0"), _alignment),
        {section: some for section, some in relocations.items() if section in (CODE, DATA)},
    )


def _sections(data: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while at < len(data):
        number = data[at]
        size, at = read_number(data, at + 1)
        yield number, data[at : at + size]
        at += size


def _vector(payload: bytes, read: Callable[[bytes, int], tuple[T, int]], at: int = 0) -> list[T]:
    """Read a vector with its count at `at`; `read` returns an element and the next offset."""
    count, at = read_number(payload, at)
    found = []
    for _ in range(count):
        one, at = read(payload, at)
        found.append(one)
    return found


def _type(payload: bytes, at: int) -> tuple[bytes, int]:
    start = at
    for _ in ("arguments", "results"):
        size, at = read_number(payload, at + (at == start))
        at += size
    return payload[start:at], at


def _body(payload: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_number(payload, at)
    return payload[at : at + size], at + size


def _segment(payload: bytes, at: int) -> tuple[bytes, int]:
    """Read the bytes of a data segment, ignoring its address, which the linker chooses."""
    if payload[at : at + 2] != bytes([0, CONST]):
        raise ValueError("the built-in linker of WebAssembly supports only plain data segments: link the objects with wasm-ld")
    _, at = read_number(payload, at + 2)
    return _body(payload, at + 1)


def _symbol(payload: bytes, at: int) -> tuple[_Symbol, int]:
    kind = payload[at]
    flags, at = read_number(payload, at + 1)
    undefined, named = bool(flags & 0x10), bool(flags & 0x40)
    name, index, offset = "", 0, 0
    if kind == 1:
        name, at = read_text(payload, at)
        if undefined:
            raise ValueError(f"an object reads {name}, which the built-in linker of WebAssembly does not provide")
        index, at = read_number(payload, at)
        offset, at = read_number(payload, at)
        _, at = read_number(payload, at)
    else:
        index, at = read_number(payload, at)
        if kind != 3 and (named or not undefined):  # 3 is a section
            name, at = read_text(payload, at)
        elif kind == 2:  # an import without a name of its own here; there is only one
            name = "__stack_pointer"
    return _Symbol(kind, name, index, offset), at


def _alignment(payload: bytes, at: int) -> tuple[int, int]:
    _, at = read_text(payload, at)
    exponent, at = read_number(payload, at)
    _, at = read_number(payload, at)
    return 1 << exponent, at


def _relocation(payload: bytes, at: int) -> tuple[_Relocation, int]:
    kind = payload[at]
    place, at = read_number(payload, at + 1)
    index, at = read_number(payload, at)
    addend = 0
    if kind in (TO_ADDRESS, TO_SIGNED_ADDRESS, TO_WORD):
        addend, at = read_number(payload, at, signed=True)
    return _Relocation(kind, place, index, addend), at


def _relocations(order: Sequence[int], payload: bytes) -> tuple[int, list[_Relocation]]:
    section, at = read_number(payload, 0)
    return order[section], _vector(payload, _relocation, at)


def _leb(value: int) -> bytes:
    """Encode a nonnegative number in LEB128."""
    digits = []
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])


def _padded(value: int) -> bytes:
    """Encode in five bytes, which give the same number signed and unsigned below 2^31."""
    return bytes([*(value >> shift & 0x7F | 0x80 for shift in (0, 7, 14, 21)), value >> 28])


def _constant(value: int) -> bytes:
    """Return the constant expression of a number."""
    return bytes([CONST]) + _padded(value) + bytes([END])


def _sized(data: bytes) -> bytes:
    return _leb(len(data)) + data


def _text(text: str) -> bytes:
    return _sized(text.encode())
