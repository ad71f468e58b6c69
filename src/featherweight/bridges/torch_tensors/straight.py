"""Calls of one state with PyTorch's tensors at the overhead of a C extension, by DLPack's table of C functions.

`torch.Tensor.__dlpack_c_exchange_api__` (DLPack 1.3, `DLPackExchangeAPI` in dlpack.h) returns the address of a tensor's
elements and makes new tensors, without Python. The entry is a built-in function in LLVM IR. It accepts dense tensors with the
core shapes on the processor and returns the results. For any other argument it returns None, and its caller must examine the
arguments.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import torch

from ...engine import cache
from ...engine.backends.llvm.ir import Function, Type
from ...engine.backends.llvm.jit import Code, compile_optimized, host
from ...engine.backends.llvm.python_objects import ITEMS_OF_TUPLE, layout, layouts_known
from ...engine.function import CompiledFunction
from ...engine.program import CoreShape, Program

WORDS = (
    *("allocate", "to_object", "from_object", "kernel", "none"),
    *("PyEval_SaveThread", "PyEval_RestoreThread", "Py_IncRef", "Py_DecRef", "PyErr_Clear", "PyTuple_New"),
)
ALLOCATE, TO_OBJECT, FROM_OBJECT = 2, 4, 5  # words of DLPack's table
MAJOR_VERSION = 1  # DLPack's
DEVICE, NDIM, DTYPE, SHAPE, STRIDES, OFFSET, BYTES = 8, 16, 20, 24, 32, 40, 48  # offsets in DLPack's tensor, in bytes
TENSOR = 32  # offset of the tensor in a managed tensor, in bytes
PROCESSOR, REAL, ONE_LANE = 1, 2, 1 << 16
FASTCALL = 0x80
LOWEST = 32
"""Number of low bits. An address without higher bits may be the offset of a tensor without memory; the caller must check."""
PRECISIONS = {torch.float64: "double", torch.float32: "float"}

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_new_function = ctypes.pythonapi.PyCFunction_NewEx
_new_function.restype, _new_function.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]


class _Definition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("at", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


def straight_entry(function: CompiledFunction[Any], dtype: Any) -> Callable[..., Any] | None:
    """Return the entry for tensors of a dtype; None if PyTorch, Python or the function does not support it."""
    table = _exchange()
    if table is None or not layouts_known() or function.execution != "traced":
        return None
    if any(0 in shape for shape in function.program.shapes):
        return None
    precision = PRECISIONS[dtype]
    ir = emit_straight_entry(function.program, Type(precision, 1))
    kept = cache.kept(lambda: compile_optimized(ir), "torch", host(), layout(), ir)
    entry = Code(kept, "straight", "words")  # a separate copy, because each has its own words
    kernel = function.machine_code.code(precision, many=False)
    words = [table[ALLOCATE], table[TO_OBJECT], table[FROM_OBJECT], kernel.address("single"), id(None)]
    words += [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in WORDS[len(words) :]]
    ctypes.memmove(entry.address("words"), (ctypes.c_void_p * len(words))(*words), 8 * len(words))
    own = _Straight(function.name, entry, kernel)
    built_in: Callable[..., Any] = _new_function(ctypes.addressof(own.definition), own, None)
    return built_in


class _Straight:
    """The `self` of a built-in function. It owns the memory that the function reads, because Python releases `self` last."""

    def __init__(self, name: str, entry: Code, kernel: Code) -> None:
        self._keeps = entry, kernel
        self.definition = _Definition(name.encode(), entry.address("straight"), FASTCALL, None)


def _exchange() -> Any:
    """Return DLPack's table as words; None if PyTorch has none."""
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return None
    table = (ctypes.c_void_p * 6).from_address(_get_pointer(capsule, b"dlpack_exchange_api"))
    major = ctypes.c_uint32.from_address(ctypes.addressof(table)).value
    return table if major == MAJOR_VERSION and table[FROM_OBJECT] else None


def emit_straight_entry(program: Program, type: Type) -> str:
    """Return a module with `ptr @straight(ptr self, ptr args, i64 nargs)` and `@words`."""
    f = Function("ptr", "straight", ["ptr %self", "ptr %args", "i64 %nargs"], linkage="external")
    inputs, outputs = program.inputs, program.outputs
    n, m = len(inputs), len(outputs)
    data, results = f.slot("ptr", n + m), f.slot("ptr", m)
    tensor, managed = f.slot("i8", BYTES), f.slot("ptr")
    f.require(f.equal("%nargs", n), "other")
    for k, x in enumerate(inputs):
        f.store("ptr", _argument(f, k, x.shape, tensor, type), data, k)
    for j, y in enumerate(outputs):
        f.store("ptr", _result(f, j, len(y.shape), (tensor, managed, results), type), data, n + j)
    thread = f.call("ptr", _word(f, "PyEval_SaveThread"))
    failed = f.call("i32", _word(f, "kernel"), f"ptr {data}")
    f.call("void", _word(f, "PyEval_RestoreThread"), f"ptr {thread}")
    f.require(f.equal(failed, 0, "i32"), f"undo.{m}")
    if m == 1:
        f.ret("ptr", f.load("ptr", results))
    else:
        bundle = f.call("ptr", _word(f, "PyTuple_New"), f"i64 {m}")
        f.require(f.negation(f.equal(bundle, "null", "ptr")), f"undo.{m}")
        f.copy_bytes(f.at("i8", bundle, ITEMS_OF_TUPLE), results, str(8 * m))
        f.ret("ptr", bundle)
    for j in range(m, 0, -1):
        f.label(f"undo.{j}")
        f.call("void", _word(f, "Py_DecRef"), f"ptr {f.load('ptr', results, j - 1)}")
        f.jump(f"undo.{j - 1}")
    f.label("undo.0")
    f.jump("other")
    f.label("other")
    f.call("void", _word(f, "PyErr_Clear"))
    none = _word(f, "none")
    f.call("void", _word(f, "Py_IncRef"), f"ptr {none}")
    f.ret("ptr", none)
    shapes = [f"@shape.{j} = private constant {_numbers(y.shape)}" for j, y in enumerate(outputs)]
    ignored = "define internal void @ignored(ptr %context, ptr %kind, ptr %message) { ret void }"
    head = [f"@words = global [{len(WORDS)} x ptr] zeroinitializer", *shapes, ignored, *f.declarations]
    return "\n".join([*head, str(f), "attributes #0 = { nounwind }"])


def _argument(f: Function, k: int, shape: CoreShape, tensor: str, type: Type) -> str:
    """Emit code that finds the elements of a tensor, if they are contiguous and the tensor has the right type and shape."""
    asked = f.call("i32", _word(f, "from_object"), f"ptr {f.load('ptr', '%args', k)}", f"ptr {tensor}")
    f.require(f.equal(asked, 0, "i32"), "other")
    for offset, expected in ((DEVICE, PROCESSOR), (NDIM, len(shape)), (DTYPE, _dtype(type))):
        f.require(f.equal(f.field("i32", tensor, offset), expected, "i32"), "other")
    sizes, strides = f.field("ptr", tensor, SHAPE), f.field("ptr", tensor, STRIDES)
    if shape:
        f.require(f.negation(f.equal(strides, "null", "ptr")), "other")
    for d, size in enumerate(shape):
        f.require(f.equal(f.load("i64", sizes, d), size), "other")
        if size > 1:
            f.require(f.equal(f.load("i64", strides, d), math.prod(shape[d + 1 :])), "other")
    start = f.at("i8", f.field("ptr", tensor, 0), f.field("i64", tensor, OFFSET))
    place = f.cast("ptrtoint", "ptr", start, "i64")
    f.require(f.negation(f.equal(f.binary("lshr", "i64", place, LOWEST), 0)), "other")
    odd = f.binary("and", "i64", place, type.item_bytes - 1)
    f.require(f.equal(odd, 0), "other")
    return start


def _result(f: Function, j: int, rank: int, slots: tuple[str, str, str], type: Type) -> str:
    """Emit code that makes a new tensor and returns the address of its elements."""
    tensor, managed, results = slots
    f.clear_bytes(tensor, BYTES)
    for offset, value in ((DEVICE, PROCESSOR), (NDIM, rank), (DTYPE, _dtype(type))):
        f.store("i32", value, f.at("i8", tensor, offset))
    f.store("ptr", f"@shape.{j}", f.at("i8", tensor, SHAPE))
    made = f.call("i32", _word(f, "allocate"), f"ptr {tensor}", f"ptr {managed}", "ptr null", "ptr @ignored")
    f.require(f.equal(made, 0, "i32"), f"undo.{j}")
    new = f.at("i8", f.load("ptr", managed), TENSOR)
    start = f.at("i8", f.field("ptr", new, 0), f.field("i64", new, OFFSET))
    given = f.call("i32", _word(f, "to_object"), f"ptr {f.load('ptr', managed)}", f"ptr {f.at('ptr', results, j)}")
    f.require(f.equal(given, 0, "i32"), f"undo.{j}")
    return start


def _dtype(type: Type) -> int:
    """Return DLPack's data type: kind, bits, lanes."""
    return REAL | (8 * type.item_bytes) << 8 | ONE_LANE


def _numbers(shape: CoreShape) -> str:
    return f"[{len(shape)} x i64] [{', '.join(f'i64 {n}' for n in shape)}]"


def _word(f: Function, name: str) -> str:
    return f.load("ptr", "@words", WORDS.index(name))
