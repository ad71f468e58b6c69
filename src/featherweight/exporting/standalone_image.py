"""The memory of a standalone kernel as one block: the content after a reset, and the words that are addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Integers
from ..engine.loops.kernel_tables import Layout, LayoutList, Table, arrays_of
from ..engine.loops.machine_calls import CodeAddress, MachineCall
from ..engine.loops.memory_spans import MemorySpans, padded
from ..engine.loops.prepared_calls import BatchCalls
from ..engine.loops.standalone import StandaloneLoop

LINE = 64  # bytes: the alignment of arrays
HEAD = LINE  # bytes before the tables: the mark of a workspace that is ready
GAP = 4  # zeros that are stored with their neighbours
LEAST = 8  # words of a copy; more than a gap, so that runs and copies do not overlap
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of hashes


class Copy(NamedTuple):
    """Words to write: their place in the block, the first source word, and their number."""

    to: int
    source: int
    size: int


class PackedWords(NamedTuple):
    """Copies `constants` from `words`, then, in order and word by word, copies `repeats` from the block itself."""

    words: list[int]
    constants: list[Copy]
    repeats: list[Copy]


class Code(NamedTuple):
    """Code of a function: for one state, or for a batch; or, without a function, the caller of batches."""

    function: Any
    many: bool


class Image:
    """The block: `content` in bytes, and `packed`; `pointers` by the offsets of words, and `codes` by the offsets of words.

    A pointer is an offset in the block; `scratch` stands for memory that functions share, at the end of the block.
    """

    scratch = -1

    def __init__(self, exported: StandaloneLoop) -> None:
        tables = [Table(content) for content in exported.tables]
        self.layouts = [t.layout for t in tables]
        self.pointers: dict[int, int] = {}
        self.codes: dict[int, Code] = {}
        self._size = HEAD
        self.tables = [self._new(8 * t.layout.words) for t in tables]
        arrays = [a for content in exported.tables for a in arrays_of(content)]
        self._spans = MemorySpans([*arrays, *map(whole_array, arrays_in(exported.kept))], LINE, exported.overlaid)
        self._first = self._new(self._spans.size)
        self._blocks: list[tuple[int, Array]] = []
        self._stale: list[Array] = []  # arrays of addresses that nobody reads
        for at, table in zip(self.tables, tables, strict=True):
            words = table.words
            for _, (_, axes), word in table.layout.arrays():
                size = int(np.prod(words[word + 1 : word + 1 + axes]))
                words[word] = self._point(at + 8 * word, int(words[word]), size > 0)
            for begin, call in calls_of(table.layout, table.content):
                self._relocate(at + 8 * begin, words[begin:], call)
            self._blocks.append((at, words))
        self.content = self._written()
        self.packed = packed_words(np.frombuffer(self.content, np.int64))

    def place(self, array: Array) -> int:
        """Return the offset of an array."""
        found = self._spans.place(array.ctypes.data) if array.size else 0
        if found is None:
            raise LookupError("export: a port is not among the arrays of the tables")
        return self._first + found

    def _new(self, size: int) -> int:
        at = self._size
        self._size += padded(size, LINE)
        return at

    def _point(self, at: int, address: int, there: bool = True) -> int:
        """Note that the word at an offset is an address; return the word of the content, which is 0."""
        place = self._spans.place(address) if there else None
        if place is None and there:
            raise LookupError("export: a table points to memory that is not an array of the tables")
        if place is not None:
            self.pointers[at] = self._first + place
        return 0

    def _relocate(self, at: int, words: Array, call: MachineCall | BatchCalls) -> None:
        """Replace the code and the arrays of a call, whose words begin at an offset."""
        if isinstance(call, BatchCalls):
            self._relocate_batch(at, words, call)
            return
        if call.address == 0:
            return
        function = function_of(call)
        self._stale.append(call.pointers)
        block = self._new(8 * len(call.pointers) + 8)
        sizes = [x.size for x in (*function.program.inputs, *function.program.outputs)]
        for k, (address, size) in enumerate(zip(call.pointers.tolist(), sizes, strict=True)):
            self._point(block + 8 * k, address, size > 0)
        self.pointers[block + 8 * len(call.pointers)] = self.scratch
        self.pointers[at + 8], words[0] = block, 0
        self.codes[at] = Code(function, False)

    def _relocate_batch(self, at: int, words: Array, call: BatchCalls) -> None:
        place = {name: self.pointers.get(at + 8 * k, 0) for name, k in (("words", 1), ("first", 4))}
        words[0] = 0
        functions = functions_of(call)
        self.codes[at] = Code(None, True)
        self._stale.append(call.begins)
        for k, function in enumerate(functions):
            shapes = function.program.shapes
            row, first = place["words"] + 40 * k, place["first"] + 8 * call.first.shape[1] * k
            self.codes[row] = Code(function, True)
            self._point(row + 8, int(call.words[k, 1]))
            self._point(row + 16, int(call.words[k, 2]))
            count = sum(1 + len(shape) for shape in shapes)
            numbers = np.array((ctypes.c_int64 * count).from_address(int(call.words[k, 3])), np.int64)
            block = self._new(8 * count)
            self._blocks.append((block, numbers))
            self.pointers[row + 24], self.pointers[row + 32] = block, self.scratch
            for j in range(len(shapes)):
                self._point(first + 8 * j, int(call.first[k, j]))

    def _written(self) -> bytes:
        """Return the content, with 0 in place of addresses."""
        memory = np.zeros(self._size, np.uint8)
        self._spans.put(memory[self._first :])
        for stale in self._stale:
            begin = self.place(stale)
            memory[begin : begin + stale.nbytes] = 0
        for at, words in self._blocks:
            memory[at : at + words.nbytes] = words.view(np.uint8)
        words = memory.view(np.int64)
        for at in (*self.pointers, *self.codes):
            words[at // 8] = 0
        return memory.tobytes()


def function_of(call: MachineCall) -> Any:
    """Return the function of a call. Raises NotImplementedError for one that runs in Python."""
    return _compiled(call.address)[0]


def functions_of(calls: BatchCalls) -> Sequence[Any]:
    """Return the functions of calls for several states. Raises NotImplementedError for one that runs in Python."""
    return _compiled(calls.caller)


def _compiled(address: int) -> Sequence[Any]:
    functions = address.functions if isinstance(address, CodeAddress) else [None]
    if not all(hasattr(f, "program") for f in functions):
        raise NotImplementedError(
            "export: a function that runs in Python cannot leave it: functions of a robot with execution='interpreted' (build "
            "it with 'auto'), contacts of a robot with execution='rolled', and a function as delassus of ContactOptions"
        )
    return functions


def calls_of(layout: Layout, content: Any, begin: int = 0) -> Iterator[tuple[int, Any]]:
    """Yield the calls of functions in a table, with their first words."""
    for (_, inner, at), x in zip(layout.fields, content, strict=True):
        if isinstance(x, MachineCall | BatchCalls):
            yield begin + at, x
        elif isinstance(inner, Layout):
            yield from calls_of(inner, x, begin + at)
        elif isinstance(inner, LayoutList):
            for k, table in enumerate(x):
                yield from calls_of(inner.each, table, begin + at + k * inner.each.words)


def arrays_in(kept: Any) -> Iterator[Array]:
    """Yield the arrays in nested lists, tuples and dictionaries."""
    if isinstance(kept, np.ndarray):
        yield kept
    elif isinstance(kept, dict):
        yield from arrays_in([*kept.values()])
    elif isinstance(kept, list | tuple):
        for x in kept:
            yield from arrays_in(x)


def whole_array(array: Array) -> Array:
    """Return an array, or the one of which it is a part if its own elements are not contiguous."""
    while not array.flags.c_contiguous and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def packed_words(words: Integers) -> PackedWords:
    """Return the words of a block of zeros as few constants: runs of constants, and copies of words that precede them.

    This is the method of Lempel and Ziv (1977) with words for letters. Windows of a plan have equal constants, as have knots.
    """
    earlier, nonzero = _earlier(words), np.flatnonzero(words)
    repeats: list[Copy] = []
    runs: list[tuple[int, int]] = []
    k = 0
    while k < len(nonzero):
        at = int(nonzero[k])
        count = _equal(words, int(earlier[at]), at) if earlier[at] >= 0 else 0
        if count >= LEAST:
            repeats.append(Copy(at, int(earlier[at]), count))
            k = int(np.searchsorted(nonzero, at + count))
            continue
        if runs and at - runs[-1][1] <= GAP:
            runs[-1] = runs[-1][0], at + 1
        else:
            runs.append((at, at + 1))
        k += 1
    constants, stored = list[Copy](), list[int]()
    for begin, end in runs:
        constants.append(Copy(begin, len(stored), end - begin))
        stored += words[begin:end].tolist()
    return PackedWords(stored, constants, repeats)


def _earlier(words: Integers) -> Integers:
    """Return, for each word, the last place before it where the words of a copy have the same hash; -1 if there is none."""
    n = max(0, len(words) - LEAST + 1)
    hashes = np.zeros(n, np.uint64)
    for k in range(LEAST):
        hashes = hashes * FACTOR + words[k : k + n].view(np.uint64) + np.uint64(k)
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    earlier = np.full(len(words), -1)
    earlier[order[same + 1]] = order[same]
    return earlier


def _equal(words: Integers, first: int, second: int) -> int:
    """Return how many words from two places on are equal; the first place precedes the second."""
    count, ahead = 0, LEAST
    while second + count < len(words):
        a, b = words[first + count :][:ahead], words[second + count :][:ahead]
        different = np.flatnonzero(a[: len(b)] != b)
        if len(different):
            return count + int(different[0])
        count, ahead = count + len(b), 2 * ahead
    return count
