"""Built-in functions around the entry: the table of a function, and the code that all share."""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import cache
from ...program import Program
from .arguments_of_calls import MOST_RANK, RECORD, ROOM, STACK_BYTES, WORDS
from .entry import emit_entries
from .jit import compile_optimized, host, load_object
from .python_objects import interfaces, layout, layouts_known

PRECISIONS: dict[str, np.dtype[Any]] = {"double": np.dtype(np.float64), "float": np.dtype(np.float32)}


@functools.cache
def entries() -> dict[str, int]:
    """The addresses of the entry for each precision."""
    code = cache.kept(lambda: compile_optimized(emit_entries()), "entries", host(), layout())
    table, *addresses = load_object(code, "interfaces", *(f"entry.{p}" for p in PRECISIONS))
    words = interfaces()
    ctypes.memmove(table, (ctypes.c_void_p * len(words))(*words), 8 * len(words))
    return dict(zip(PRECISIONS, addresses, strict=True))


def callable_by_entry(program: Program) -> bool:
    """Whether the entry can call a program at all."""
    shapes = program.shapes
    return layouts_known() and len(shapes) <= ROOM and all(len(shape) <= MOST_RANK for shape in shapes)


class Entry:
    """A built-in function for calls of a program in one precision, `call`; `general` answers what it does not."""

    def __init__(self, program: Program, precision: str, general: Callable[..., Any], result_class: type | None) -> None:
        dtype, shapes = PRECISIONS[precision], program.shapes
        names = [sys.intern(a.name) for a in program.inputs] + [sys.intern("out")]
        first_name = len(WORDS) + len(RECORD) * len(shapes)
        self._table = np.zeros(first_name + len(names), np.uint64)
        self._refers_to: list[Any] = [general, dtype, result_class, names]
        offset = 0
        for k, shape in enumerate(shapes):
            begin, size = len(WORDS) + k * len(RECORD), math.prod(shape) * dtype.itemsize
            record = (len(shape), size, offset, *shape)
            self._table[begin : begin + len(record)] = record
            offset += 64 * -(-size // 64) * (k < len(program.inputs))
        self._table[first_name:] = [id(name) for name in names]
        self._set("general", id(general))
        self._set("descr", id(dtype))
        self._set("result_class", 0 if result_class is None else id(result_class))
        self._set("inputs", len(program.inputs))
        self._set("outputs", len(program.outputs))
        self._set("gathers", int(offset <= STACK_BYTES))
        self._set("records", self._table.ctypes.data + 8 * len(WORDS))
        self._set("names", self._table.ctypes.data + 8 * first_name)
        self.call = _built_in(program.name, entries()[precision], self._table, self)

    def _set(self, word: str, value: int) -> None:
        self._table[WORDS.index(word)] = value

    def computes_one(self, address: int) -> None:
        """`void f(ptr arguments)` at that address computes one state."""
        self._set("single", address)

    def computes_many(self, address: int, most: int) -> None:
        """The loop of a ufunc at that address computes a batch, of so many states on one thread."""
        self._set("most_states", most)
        self._set("loop", address)

    def hands_on(self, other: Entry) -> None:
        """Arguments that are all of the other precision go to another entry, which lives as long as this one."""
        self._refers_to.append(other)
        self._set("other", id(other._table))


def _built_in(name: str, address: int, table: Any, keeps: Any) -> Any:
    """A built-in function whose `self` is a table; it keeps alive what that refers to."""

    class MethodDefinition(ctypes.Structure):
        _fields_ = (
            ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
        )  # fmt: skip

    fastcall_with_keywords = 0x82
    definition = MethodDefinition(name.encode(), address, fastcall_with_keywords, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))  # for ever: functions read it when they go, at exit the last
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    return new(ctypes.addressof(definition), table, keeps)
