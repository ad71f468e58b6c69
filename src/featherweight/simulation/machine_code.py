"""Loops of a simulation as machine code of their own: compiled by Numba once, kept on disk, and called without Numba.

A function of *tables* is compiled to `int f(table, ..., int, ...)`. A table is a named tuple of arrays and numbers laid out as
words in one array, the address of which is passed: in compiled code it has the fields of the named tuple, and its methods.
Compiled functions may neither allocate nor raise, and so need nothing of Numba's runtime: its LLVM IR becomes object code of
this package's own cache, and a second process loads that without importing Numba.
"""

from __future__ import annotations

import functools
import hashlib
import struct
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

OF_COMPILED = ("energy_guard", "forces", "integrators", "machine_code", "scene", "step", "table_types", "intrinsics", "views")

Array = np.ndarray[Any, np.dtype[Any]]


class Layout:
    """What a table holds, without the numbers: for each field of a named tuple its kind, and the word at which it begins.

    Fields are arrays (data type and number of axes), numbers (their type), named tuples of those, or None: what depends on them
    is then left out of compiled functions.
    """

    def __init__(self, kind: type, example: Any) -> None:
        self.kind, self.fields, words = kind, [], 0
        for name, x in zip(kind._fields, example, strict=True):  # type: ignore[attr-defined]
            if isinstance(x, tuple):
                inner: Any = Layout(type(x), x)
                size = inner.words
            elif isinstance(x, np.ndarray):
                inner, size = (x.dtype.name, x.ndim), 1 + x.ndim
            else:
                inner, size = type(x).__name__, 0 if x is None else 1
            self.fields.append((name, inner, words))
            words += size
        self.words = words

    def text(self) -> str:
        """All of it, in words."""
        inner = (f"{name}: {x.text() if isinstance(x, Layout) else x}" for name, x, _ in self.fields)
        return f"{self.kind.__name__}({', '.join(inner)})"


class Table:
    """A named tuple of C-contiguous arrays and numbers, at an address. What the arrays hold may change, not where they are."""

    def __init__(self, content: Any) -> None:
        self.content, self.layout = content, Layout(type(content), content)
        words = list(_words(content))
        self._words = np.array(words, np.int64)
        assert len(words) == self.layout.words
        self.address = int(self._words.ctypes.data)
        self.kept: Any = None  # what has to live as long

    def point(self, name: str, array: Array) -> None:
        """Let a field be another array of its kind, which must live as long as it is read."""
        at, kind, axes = self._places[name]
        if array.dtype != kind or array.ndim != axes or not array.flags.c_contiguous:
            raise ValueError(f"{name} must be C-contiguous, {kind} with {axes} axes; got {array.dtype} with {array.ndim}")
        self._words[at : at + 1 + axes] = array.__array_interface__["data"][0], *array.shape

    @cached_property
    def _places(self) -> dict[str, tuple[int, np.dtype[Any], int]]:
        """Of fields that are arrays: their first words, data types and numbers of axes."""
        fields = [(name, kind, at) for name, kind, at in self.layout.fields if isinstance(kind, tuple)]
        return {name: (at, np.dtype(kind[0]), kind[1]) for name, kind, at in fields}


def _words(content: Any) -> Iterator[int]:
    for x in content:
        if isinstance(x, tuple):
            yield from _words(x)
        elif isinstance(x, np.ndarray):
            if not x.flags.c_contiguous:
                raise ValueError("arrays of a table must be C-contiguous")
            yield x.ctypes.data
            yield from x.shape
        elif x is None:
            continue
        elif isinstance(x, float):
            yield struct.unpack("<q", struct.pack("<d", x))[0]
        else:
            yield int(x)


class MachineCall(NamedTuple):
    """A function's machine code, with the places of the arrays that it reads and writes; no function at address 0."""

    address: int
    pointers: Any  # int64


def machine_call(function: Any, *arrays: Array) -> MachineCall:
    """A call of a `CompiledFunction`, or of None. The arrays, and the function, must live as long."""
    return MachineCall(0 if function is None else function.address, np.array([a.ctypes.data for a in arrays], np.int64))


def call_address(address: int, arguments: Any) -> int:
    """In compiled functions: `int f(double **arguments)` at an address."""
    raise NotImplementedError


@functools.cache
def package_digest() -> str:
    """Hash of every file of this package that has functions which are compiled, or says how they are."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for file in sorted(f for room in ("collision", "contact", "simulation") for f in (package / room).rglob("*.py")):
        text = file.read_bytes()
        if b"jitable" in text or b"rounded_alike" in text or file.stem in OF_COMPILED:
            digest.update(text)
    return digest.hexdigest()
