"""Built-in functions around the entry: the table of a function, and the code that all functions share."""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import cache
from ...direct_calls import DirectCall
from ...program import Program
from ..protocol import Watch
from .entry import emit_entry
from .entry_arguments import MOST_RANK, RECORD, ROOM, STACK_BYTES, WORDS
from .jit import Code, compile_optimized, host, load_object
from .python_objects import DEFINITION, layout, layouts_known, new_function, provide_interfaces

BRIEF = 8192  # bytes of machine code that runs within about the time in which the GIL is released and taken again
FASTCALL_WITH_KEYWORDS = 0x82
PRECISIONS: dict[str, np.dtype[Any]] = {"double": np.dtype(np.float64), "float": np.dtype(np.float32)}


@functools.cache
def _entry_of(precision: str) -> Code:
    """Return the entry of a precision, which stays loaded."""
    kept = cache.kept(lambda: compile_optimized(emit_entry(precision)), "entry", precision, host(), layout())
    code = load_object(kept, "interfaces", "entry", "called")
    provide_interfaces(code)
    return code


def callable_by_entry(program: Program) -> bool:
    """Return whether the entry supports a program."""
    shapes = program.shapes
    return layouts_known() and len(shapes) <= ROOM and all(len(shape) <= MOST_RANK for shape in shapes)


class Entry:
    """A built-in function for calls of a program in one precision, `call`; `general` handles all other calls.

    Its `self` is the table, which also contains its definition: a function reads the definition when it is freed, and frees its
    `self` after that.
    """

    def __init__(
        self,
        program: Program,
        precision: str,
        general: Callable[..., Any],
        result_class: type | None,
        watch: Watch | None = None,
    ) -> None:
        dtype, shapes, self._code = PRECISIONS[precision], program.shapes, _entry_of(precision)
        names = [sys.intern(a.name) for a in program.inputs] + [sys.intern("out")]
        first_name = len(WORDS) + len(RECORD) * len(shapes)
        definition, title = first_name + len(names), program.name.encode() + b"\0"
        self._table = np.zeros(definition + len(DEFINITION) - (-len(title) // 8), np.uint64)
        self._refers_to: list[Any] = [general, dtype, result_class, names]
        offset = 0
        for k, shape in enumerate(shapes):
            begin, size = len(WORDS) + k * len(RECORD), math.prod(shape) * dtype.itemsize
            record = (len(shape), size, offset, *shape)
            self._table[begin : begin + len(record)] = record
            offset += 64 * -(-size // 64) * (k < len(program.inputs))
        self._table[first_name:definition] = [id(name) for name in names]
        self._set("general", id(general))
        self._set("descr", id(dtype))
        self._set("result_class", 0 if result_class is None else id(result_class))
        self._set("inputs", len(program.inputs))
        self._set("outputs", len(program.outputs))
        self._set("gathers", int(offset <= STACK_BYTES))
        self.watched = watch is not None
        if watch is not None:
            self._set("watched", 1)
            self._set("hidden", int(watch.hidden))
            self._table[WORDS.index("limit")] = np.float64(watch.limit).view(np.uint64)
        self._set("records", self._table.ctypes.data + 8 * len(WORDS))
        self._set("names", self._table.ctypes.data + 8 * first_name)
        at = self._table.ctypes.data + 8 * definition
        self._table[definition : definition + len(DEFINITION)] = (
            at + 8 * len(DEFINITION), self._code.address("entry"), FASTCALL_WITH_KEYWORDS, 0,
        )  # fmt: skip
        ctypes.memmove(at + 8 * len(DEFINITION), title, len(title))
        self.call = new_function(at, self._table, self)
        self.direct_call = DirectCall(self._code.address("called"), id(self._table), self)

    def _set(self, word: str, value: int) -> None:
        self._table[WORDS.index(word)] = value

    def computes_one(self, code: Code) -> None:
        """Register `i32 single(ptr arguments)`, which computes one state."""
        self._refers_to.append(code)
        self._set("brief", int(code.size <= BRIEF))
        self._set("single", code.address("single"))

    def computes_many(self, code: Code, most: int) -> None:
        """Register the loop of a ufunc for batches of at most `most` states on one thread."""
        self._refers_to.append(code)
        self._set("most_states", most)
        self._set("loop", code.address("loop"))

    def hands_on(self, other: Entry) -> None:
        """Register the entry for calls with all arguments in the other precision; it lives as long as this one."""
        self._refers_to.append(other)
        self._set("entry_of_other", other._code.address("entry"))
        self._set("other", id(other._table))
