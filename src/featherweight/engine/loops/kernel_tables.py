"""Tables: nested named tuples of arrays and numbers as words at an address, for compiled kernels.

In a kernel, a table has the fields and the methods of its named tuple.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from struct import Struct
from typing import Any

import numpy as np

from ...array_types import Array

LINE = 64  # bytes of a cache line
NAMES = {np.dtype(x): x for x in ("float64", "int64", "bool")}  # NumPy takes microseconds for a name


class Interleaved:
    """Interleaved arrays of several lanes: for each element, the numbers of all lanes, on the last axis of `array`."""

    def __init__(self, array: Array) -> None:
        self.array = array

    @classmethod
    def of(cls, array: Array, lanes: int) -> Interleaved:
        """Return the same array for each lane, padded for vector reads."""
        interleaved = aligned(np.repeat(array[..., None], lanes, axis=-1))
        return cls(interleaved)

    def __getitem__(self, key: Any) -> Interleaved:
        """Return a part by leading indices, for each lane."""
        return Interleaved(self.array[key])

    def __len__(self) -> int:
        return len(self.array)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one lane's array."""
        *shape, _ = self.array.shape
        return tuple(shape)


def aligned(array: Array) -> Array:
    """Return a copy that starts at a cache line, with a readable line after its end."""
    memory = aligned_numbers(-(-array.nbytes // 8) + LINE // 8).view(np.uint8)
    copy = memory[: array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def aligned_numbers(count: int) -> Array:
    """Return zeros (count,), float64, that start at a cache line: a vector of 64 bytes is then in one line."""
    memory = np.zeros(count + LINE // 8)
    begin = -memory.ctypes.data % LINE // 8
    return memory[begin : begin + count]


class Layout:
    """Layout of a table without its numbers: the kind and the first word of each field of a named tuple.

    A field is an array (data type and number of axes), a number (its type), a named tuple of those, a list of named tuples of
    one layout, or None. Compiled kernels leave out code that depends on a field that is None.
    """

    def __init__(self, kind: type, example: Any) -> None:
        self.kind, self.fields, words = kind, [], 0
        for name, x in zip(kind._fields, example, strict=True):  # type: ignore[attr-defined]
            if isinstance(x, tuple):
                inner: Any = Layout(type(x), x)
                size = inner.words
            elif isinstance(x, list):
                inner = LayoutList(x)
                size = inner.words
            elif isinstance(x, np.ndarray):
                inner, size = (NAMES.get(x.dtype) or x.dtype.name, x.ndim), 1 + x.ndim
            elif isinstance(x, Interleaved):
                inner, size = (x.array.dtype.name, len(x.shape), True), 1 + len(x.shape)
            else:
                inner = number_name(x)
                if inner is None and x is not None:
                    raise TypeError(
                        f"{kind.__name__}.{name}: a table may contain arrays, numbers, tables and None, not {type(x).__name__}"
                    )
                size = 0 if x is None else 1
            self.fields.append((name, inner, words))
            words += size
        self.words = words
        self._text = ""

    def text(self) -> str:
        """The whole layout as text."""
        if not self._text:
            inner = (f"{name}: {x.text() if isinstance(x, Layout | LayoutList) else x}" for name, x, _ in self.fields)
            self._text = f"{self.kind.__module__}.{self.kind.__qualname__}({', '.join(inner)})"
        return self._text

    def arrays(self, outer: str = "", begin: int = 0) -> Iterator[tuple[str, Any, int]]:
        """Yield name, kind and first word, the address, of each array; "inner.x" is the array x of a nested named tuple."""
        for name, inner, at in self.fields:
            if isinstance(inner, Layout | LayoutList):
                yield from inner.arrays(f"{outer}{name}.", begin + at)
            elif isinstance(inner, tuple):
                yield outer + name, inner, begin + at

    def classes(self) -> Iterator[type]:
        """Yield the classes of the named tuple and of nested ones."""
        yield self.kind
        for _, inner, _ in self.fields:
            if isinstance(inner, Layout | LayoutList):
                yield from inner.classes()


class LayoutList:
    """Layout of several tables of one layout, one after the other."""

    def __init__(self, examples: Sequence[Any]) -> None:
        self.each, self.count = Layout(type(examples[0]), examples[0]), len(examples)
        self.words = self.count * self.each.words
        if any(Layout(type(x), x).text() != self.each.text() for x in examples):
            raise TypeError(f"tables of a list must have one layout; those of {self.each.kind.__name__} differ")

    def text(self) -> str:
        """The whole layout as text."""
        return f"{self.count} of {self.each.text()}"

    def arrays(self, outer: str = "", begin: int = 0) -> Iterator[tuple[str, Any, int]]:
        """Yield the arrays as `Layout.arrays` does; "2.x" is the array x of the table with index 2."""
        for k in range(self.count):
            yield from self.each.arrays(f"{outer}{k}.", begin + k * self.each.words)

    def classes(self) -> Iterator[type]:
        """Yield the classes of a table's named tuple and of nested ones."""
        return self.each.classes()


class Table:
    """A named tuple of C-contiguous arrays and numbers, at an address; `layout`, if it is known, is not made again.

    Elements of the arrays may change, their addresses do not.
    """

    def __init__(self, content: Any, layout: Layout | None = None) -> None:
        self.content, self.layout = content, layout or Layout(type(content), content)
        words = list(words_of_value(content))
        self._own_words = np.array(words, np.int64)
        self._words = self._own_words.copy()
        assert len(words) == self.layout.words
        self.address = int(self._words.ctypes.data)
        self.kept: Any = None  # objects to keep alive

    @property
    def words(self) -> Array:
        """Return a copy of the words, int64."""
        return self._words.copy()

    def point(self, name: str, array: Array) -> None:
        """Replace an array, by its name in `Layout.arrays`, by another one of its kind; keep it alive as long as it is read."""
        write, at, kind, axes = self._places[name]
        if array.dtype != kind or array.ndim != axes or not array.flags.c_contiguous:
            raise ValueError(f"{name} must be C-contiguous, {kind} with {axes} axes; got {array.dtype} with {array.ndim}")
        write(self._words, at, address_of(array), *array.shape)

    def point_back(self) -> None:
        """Return to the arrays of the content."""
        self._words[:] = self._own_words

    @cached_property
    def _places(self) -> dict[str, tuple[Callable[..., None], int, np.dtype[Any], int]]:
        """Function that writes address and shape, first byte, data type and number of axes of each array, by name."""
        arrays = [(name, kind[0], kind[1], at) for name, kind, at in self.layout.arrays()]
        return {name: (Struct(f"={1 + n}q").pack_into, 8 * at, np.dtype(kind), n) for name, kind, n, at in arrays}


def address_of(array: Array) -> int:
    """Return the address of a C-contiguous array, in a third of the time of NumPy's attributes if it is writable."""
    try:
        memory: Any = array  # which NumPy does not declare as a buffer before Python 3.12
        return ctypes.addressof(ctypes.c_char.from_buffer(memory))
    except (TypeError, ValueError):  # read-only, or empty
        return int(array.ctypes.data)


def number_name(x: object) -> str | None:
    """Return "bool", "int" or "float"; None for an object that is not a number."""
    if isinstance(x, (bool, np.bool_)):
        return "bool"
    if isinstance(x, (int, np.integer)):
        return "int"
    return "float" if isinstance(x, (float, np.floating)) else None


def arrays_of(content: Iterable[object]) -> Iterator[Array]:
    """Yield the arrays of a named tuple and of nested ones."""
    for x in content:
        if isinstance(x, tuple | list):
            yield from arrays_of(x)
        elif isinstance(x, np.ndarray):
            yield x


def words_of_value(value: Any) -> Iterator[int]:
    """Yield a value as words; keep its arrays alive. Values that are known at compilation, such as strings, have none."""
    if isinstance(value, tuple | list):
        for x in value:
            yield from words_of_value(x)
    elif isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise ValueError("arrays of a table must be C-contiguous")
        yield address_of(value)
        yield from value.shape
    elif isinstance(value, Interleaved):
        yield value.array.ctypes.data
        yield from value.shape
    elif isinstance(value, float | np.floating):
        yield struct.unpack("<q", struct.pack("<d", value))[0]
    elif number_name(value):
        yield int(value)
