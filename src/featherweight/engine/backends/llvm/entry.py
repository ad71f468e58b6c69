"""One state at a time, called from Python at the price of a C extension.

A gufunc costs more than the dynamics of a small robot. So the scalar kernel gets an entry of its own: a built-in Python
function, written in LLVM IR, that reads NumPy's arrays where they lie if every argument is a float64 array of the right
shape with adjacent elements, makes the result and releases the GIL around the kernel. Anything else it hands to the
general call. Addresses of this process are kept in a table that is filled when the code is loaded, so the code can be
kept on disk.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
import sysconfig
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...trace import Trace
from .emit import Kernel, Type, emit_kernel
from .gufunc import array_api
from .loop import Shape, aligned, assemble

STACK_BYTES = 32_768  # a workspace lies on the stack up to here
WRITEABLE, READABLE = 0x501, 0x101  # NumPy's flags: C order, aligned (, writeable)

_HEADER = object.__basicsize__
_DATA, _NDIM, _DIMS, _DESCR, _FLAGS = _HEADER, _HEADER + 8, _HEADER + 16, _HEADER + 40, _HEADER + 48
_TABLE = ("array type", "float64", "new array", "array to scalar", "vectorcall", "save thread", "restore thread", "out")


@functools.cache
def usable() -> bool:
    """Whether arrays of this NumPy and this Python lie in memory as the entry expects."""
    if sysconfig.get_config_var("Py_GIL_DISABLED") or sys.implementation.name != "cpython" or _HEADER != 16:
        return False
    a = np.zeros((3, 5))

    def word(offset: int) -> int:
        return ctypes.c_void_p.from_address(id(a) + offset).value or 0

    dims = ctypes.cast(word(_DIMS), ctypes.POINTER(ctypes.c_ssize_t))
    flags = ctypes.c_int.from_address(id(a) + _FLAGS).value
    return (
        word(_DATA) == a.ctypes.data
        and ctypes.c_int.from_address(id(a) + _NDIM).value == 2
        and (dims[0], dims[1]) == (3, 5)
        and word(_DESCR) == id(np.dtype(np.float64))
        and flags & WRITEABLE == WRITEABLE
    )


@functools.cache
def _addresses() -> tuple[int, ...]:
    """What `_TABLE` names, in this process."""
    api = array_api()

    def python(name: str) -> int:
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0

    return (
        id(np.ndarray), id(np.dtype(np.float64)), api[93] or 0, api[76] or 0,  # PyArray_New, PyArray_Return
        python("PyObject_Vectorcall"), python("PyEval_SaveThread"), python("PyEval_RestoreThread"), id(sys.intern("out")),
    )  # fmt: skip


def make_entry(name: str, address: int, table: int, general: Callable[..., Any]) -> Any:
    """A built-in function around the entry at `address`; `general` answers the calls that it does not."""
    ctypes.memmove(table, (ctypes.c_void_p * len(_TABLE))(*_addresses()), 8 * len(_TABLE))

    class MethodDefinition(ctypes.Structure):
        _fields_ = (
            ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
        )  # fmt: skip

    fastcall_with_keywords = 0x82
    definition = MethodDefinition(name.encode(), address, fastcall_with_keywords, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))  # for ever: functions read it when they go, at exit the last
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.addressof(definition), general, None)


def emit_entry(t: Trace, shapes: Sequence[Shape], group: int, fma: bool) -> str:
    """A module with `ptr @entry(ptr self, ptr args, i64 nargs, ptr kwnames)` and its `@table`, and `void @direct(ptr args)`
    on an array of pointers to the arguments, for callers that are compiled too.

    Sines and cosines of inputs are computed `group` at a time.
    """
    type = Type("double", 1)
    kernel = emit_kernel(t, type, fma, group)
    declarations = ["declare ptr @malloc(i64)", "declare void @free(ptr)"]
    return assemble(kernel, type, declarations, [_entry(shapes, kernel), _direct(len(shapes), kernel)], fma)


def _direct(count: int, kernel: Kernel) -> str:
    text = _Text()
    for k in range(count):
        text.argument(k)
    text.run(kernel, [f"ptr %a{k}" for k in range(count)])
    text.line("ret void")
    return "\n".join(["define void @direct(ptr %args) #0 {", "start:", *text.lines, "}"])


def _entry(shapes: Sequence[Shape], kernel: Kernel) -> str:
    *inputs, output = shapes
    n = len(inputs)
    text = _Text()
    for i, name in enumerate(_TABLE):
        text.line(f"%{name.replace(' ', '_')}_at = getelementptr ptr, ptr @table, i64 {i}")
        text.line(f"%{name.replace(' ', '_')} = load ptr, ptr %{name.replace(' ', '_')}_at")
    text.require(f"icmp eq i64 %nargs, {n}")
    for k, shape in enumerate(inputs):
        text.argument(k)
        text.check_array(f"%a{k}", shape, READABLE)
    text.line("%plain = icmp eq ptr %kwnames, null")
    text.line("br i1 %plain, label %make, label %named")
    text.label("named")  # a tuple of names: its length follows its header
    text.line(f"%names = load i64, ptr {text.field('%kwnames', _HEADER)}")
    text.require("icmp eq i64 %names, 1")
    text.line(f"%name = load ptr, ptr {text.field('%kwnames', _HEADER + 8)}")
    text.require("icmp eq ptr %name, %out")
    text.argument(n)
    text.check_array(f"%a{n}", output, WRITEABLE)
    begin = text.number(f"%a{n}", _DATA)
    end = text.value(f"add i64 {begin}, {8 * math.prod(output)}")
    for k, shape in enumerate(inputs):  # a result that overlaps an argument is NumPy's business
        other = text.number(f"%a{k}", _DATA)
        other_end = text.value(f"add i64 {other}, {8 * math.prod(shape)}")
        before, after = text.value(f"icmp ule i64 {end}, {other}"), text.value(f"icmp ule i64 {other_end}, {begin}")
        text.require(f"or i1 {before}, {after}")
    text.line(f"%count = load i64, ptr %a{n}")
    text.line("%counted = add i64 %count, 1")
    text.line(f"store i64 %counted, ptr %a{n}")
    text.line("br label %run")
    text.label("make")
    rank = len(output)
    text.line(
        f"%made = call ptr %new_array(ptr %array_type, i32 {rank}, ptr @shape, i32 12, ptr null, ptr null, i32 0, i32 0, "
        "ptr null)"
    )
    text.line("%failed = icmp eq ptr %made, null")
    text.line("br i1 %failed, label %none, label %run")
    text.label("none")
    text.line("ret ptr null")
    text.label("run")
    text.line(f"%result = phi ptr [ %a{n}, %{text.before_run} ], [ %made, %make ]")
    data = [f"ptr {text.pointer(f'%a{k}', _DATA)}" for k in range(n)] + [f"ptr {text.pointer('%result', _DATA)}"]
    text.line("%thread = call ptr %save_thread()")
    text.run(kernel, data)
    text.line("call void %restore_thread(ptr %thread)")
    if rank == 0:
        text.line("br i1 %plain, label %scalar, label %array")
        text.label("scalar")
        text.line("%number = call ptr %array_to_scalar(ptr %result)")
        text.line("ret ptr %number")
        text.label("array")
    text.line("ret ptr %result")
    text.label("general")
    text.line("%answer = call ptr %vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)")
    text.line("ret ptr %answer")
    dims = ", ".join(f"i64 {d}" for d in output) or "i64 0"
    return "\n".join(
        [
            f"@table = global [{len(_TABLE)} x ptr] zeroinitializer",
            f"@shape = internal constant [{max(1, rank)} x i64] [{dims}]",
            "define ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) #0 {",
            "start:",
            *text.lines,
            "}",
        ]
    )


class _Text:
    """Lines of the entry; a requirement that fails leads to the general call."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.blocks = 0
        self.before_run = ""

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def value(self, text: str) -> str:
        name = f"%t{len(self.lines)}"
        self.line(f"{name} = {text}")
        return name

    def field(self, pointer: str, offset: int) -> str:
        return self.value(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def pointer(self, pointer: str, offset: int) -> str:
        return self.value(f"load ptr, ptr {self.field(pointer, offset)}")

    def number(self, pointer: str, offset: int, kind: str = "i64") -> str:
        return self.value(f"load {kind}, ptr {self.field(pointer, offset)}")

    def require(self, condition: str) -> None:
        holds = self.value(condition)
        self.blocks += 1
        self.before_run = f"ok{self.blocks}"
        self.line(f"br i1 {holds}, label %{self.before_run}, label %general")
        self.label(self.before_run)

    def argument(self, k: int) -> None:
        at = self.value(f"getelementptr ptr, ptr %args, i64 {k}")
        self.line(f"%a{k} = load ptr, ptr {at}")

    def run(self, kernel: Kernel, data: list[str]) -> None:
        """The kernel on arrays, with its workspace."""
        size = 8 * kernel.workspace + 64
        stack = size <= STACK_BYTES
        self.line(f"%heap = {f'alloca i8, i64 {size}, align 64' if stack else f'call ptr @malloc(i64 {size})'}")
        self.lines += aligned("%heap", "%ws")
        for part in kernel.parts:
            self.line(f"call void @{part}({', '.join(data)}, ptr %ws)")
        if not stack:
            self.line("call void @free(ptr %heap)")

    def check_array(self, array: str, shape: Shape, flags: int) -> None:
        """A float64 ndarray of exactly this shape with these flags."""
        self.require(f"icmp eq ptr {self.pointer(array, 8)}, %array_type")
        self.require(f"icmp eq ptr {self.pointer(array, _DESCR)}, %float64")
        self.require(f"icmp eq i32 {self.number(array, _NDIM, 'i32')}, {len(shape)}")
        set_flags = self.value(f"and i32 {self.number(array, _FLAGS, 'i32')}, {flags}")
        self.require(f"icmp eq i32 {set_flags}, {flags}")
        if shape:
            dims = self.pointer(array, _DIMS)
            for i, d in enumerate(shape):
                at = self.value(f"getelementptr i64, ptr {dims}, i64 {i}")
                self.require(f"icmp eq i64 {self.value(f'load i64, ptr {at}')}, {d}")
