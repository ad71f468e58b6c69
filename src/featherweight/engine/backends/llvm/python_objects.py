"""Memory layouts of objects of CPython and NumPy, checked once per process, and addresses from their C interfaces."""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy._core import _multiarray_umath as _umath  # type: ignore[attr-defined]

from ....array_types import Array

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_Table = ctypes.POINTER(ctypes.c_void_p)

HEADER = object.__basicsize__
TYPE = 8  # offset of an object's class in bytes
ITEMS_OF_TUPLE = tuple.__basicsize__
SIZE_OF_TUPLE, SIZE_OF_LIST, ITEMS_OF_LIST, VALUE_OF_FLOAT = HEADER, HEADER, HEADER + 8, HEADER
DATA, NDIM, DIMS, STRIDES, DESCR, FLAGS = HEADER, HEADER + 8, HEADER + 16, HEADER + 24, HEADER + 40, HEADER + 48
KIND_OF_DESCR, ORDER_OF_DESCR, NUMBER_OF_DESCR = HEADER + 8, HEADER + 10, HEADER + 12

DATA_OF_CALLED = HEADER + 8  # the second word of an object that is called directly

CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400  # NumPy's flags
NUMBERS = {"float": np.dtype(np.float32).num, "double": np.dtype(np.float64).num}


def ufunc_api() -> Any:
    """Return NumPy's table of functions for ufuncs."""
    return ctypes.cast(_get_pointer(_umath._UFUNC_API, None), _Table)


def array_api() -> Any:
    """Return NumPy's table of functions for arrays."""
    return ctypes.cast(_get_pointer(_umath._ARRAY_API, None), _Table)


def _word(x: object, offset: int) -> int:
    return ctypes.c_void_p.from_address(id(x) + offset).value or 0


@functools.cache
def layouts_known() -> bool:
    """Return whether objects of this Python and this NumPy have the expected layouts.

    If not, the general call computes everything.
    """
    return not layout_difference()


def layout_difference() -> str:
    """Describe the first difference from the expected layouts; "" if there is none.

    The text names what differs, where, the actual and the expected value.
    """
    if sysconfig.get_config_var("Py_GIL_DISABLED") or sys.implementation.name != "cpython" or HEADER != 16:
        return "this Python is none of CPython's with a lock, on 64 bits"
    for what, place, seen, wanted in _facts():
        if seen != wanted:
            return f"{what}: at {place} there is {seen}, and it should be {wanted}"
    return ""


def _facts() -> Iterator[tuple[str, int, Any, Any]]:
    """Yield facts about layouts: a name, the byte or the entry of a table, the value that is there, and the expected value.

    A pointer comes before the data that it points to: a caller that stops at a difference follows no wrong pointer.
    """
    yield "NumPy's ABI", 0, ctypes.CFUNCTYPE(ctypes.c_uint)(array_api()[0])() >> 24, 2
    a = np.zeros((3, 5))
    yield "class of an array", TYPE, _word(a, TYPE), id(np.ndarray)
    yield "data of an array", DATA, _word(a, DATA), a.ctypes.data
    yield "number of axes", NDIM, _integer(a, NDIM), 2
    yield "strides, behind the shape", STRIDES, _word(a, STRIDES), _word(a, DIMS) + 8 * a.ndim
    axes = [ctypes.cast(_word(a, x), ctypes.POINTER(ctypes.c_ssize_t)) for x in (DIMS, STRIDES)]
    for what, place, axis, wanted in zip(("shape", "strides"), (DIMS, STRIDES), axes, (a.shape, a.strides), strict=True):
        yield what, place, (axis[0], axis[1]), wanted
    yield "dtype of an array", DESCR, _word(a, DESCR), id(np.dtype(np.float64))
    for what, bit, without in (
        ("contiguous", CONTIGUOUS, a.T), ("aligned", ALIGNED, _unaligned()), ("writeable", WRITEABLE, _read_only(a)),
    ):  # fmt: skip
        yield f"flag {what}", FLAGS, (_integer(a, FLAGS) & bit, _integer(without, FLAGS) & bit), (bit, 0)
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        yield f"kind of {dtype}", KIND_OF_DESCR, _letter(dtype, KIND_OF_DESCR), "f"
        yield f"order of {dtype}", ORDER_OF_DESCR, _letter(dtype, ORDER_OF_DESCR), "="
        yield f"number of {dtype}", NUMBER_OF_DESCR, _integer(dtype, NUMBER_OF_DESCR), dtype.num
    pair, items = (a, axes), [a, axes]
    yield "size of a tuple", SIZE_OF_TUPLE, _word(pair, SIZE_OF_TUPLE), 2
    for k, item in enumerate(pair):
        yield "items of a tuple", ITEMS_OF_TUPLE, _word(pair, ITEMS_OF_TUPLE + 8 * k), id(item)
    yield "size of a list", SIZE_OF_LIST, _word(items, SIZE_OF_LIST), 2
    members = ctypes.cast(_word(items, ITEMS_OF_LIST), _Table)
    yield "items of a list", ITEMS_OF_LIST, (members[0], members[1]), (id(a), id(axes))
    for x in (0.5, np.float64(0.5)):
        yield f"value of a {type(x).__name__}", VALUE_OF_FLOAT, ctypes.c_double.from_address(id(x) + VALUE_OF_FLOAT).value, 0.5


def _unaligned() -> Array:
    return np.zeros(9, np.uint8)[1:].view(np.float64)


def _read_only(a: Array) -> Array:
    view = a.view()
    view.flags.writeable = False
    return view


def _integer(x: object, offset: int) -> int:
    return ctypes.c_int.from_address(id(x) + offset).value


def _letter(x: object, offset: int) -> str:
    return chr(ctypes.c_ubyte.from_address(id(x) + offset).value)


class Interfaces(NamedTuple):
    """Addresses of objects and functions of this process, for compiled code."""

    array_class: int
    list_class: int
    tuple_class: int
    float_class: int
    float64_class: int  # NumPy's scalar
    int_class: int
    new_array: int  # PyArray_NewFromDescr
    array_or_scalar: int  # PyArray_Return
    vectorcall: int  # PyObject_Vectorcall
    save_thread: int
    restore_thread: int
    int_as_double: int
    error_occurred: int
    error_clear: int
    no_memory: int  # PyErr_NoMemory
    allocate: int  # PyType_GenericAlloc
    increment: int  # Py_IncRef
    decrement: int  # Py_DecRef
    none: int
    double: int  # NumPy's float64
    single: int  # NumPy's float32
    new_list: int  # PyList_New
    int_of_number: int  # PyLong_FromLongLong
    bool_of_number: int  # PyBool_FromLong
    thread_state: int  # PyThreadState_Get


@functools.cache
def interfaces() -> Interfaces:
    """Return the interfaces of this process."""
    api = array_api()

    def python(name: str) -> int:
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0

    return Interfaces(
        id(np.ndarray), id(list), id(tuple), id(float), id(np.float64), id(int), api[94] or 0, api[76] or 0,
        python("PyObject_Vectorcall"), python("PyEval_SaveThread"), python("PyEval_RestoreThread"),
        python("PyLong_AsDouble"), python("PyErr_Occurred"), python("PyErr_Clear"), python("PyErr_NoMemory"),
        python("PyType_GenericAlloc"),
        python("Py_IncRef"), python("Py_DecRef"), id(None), id(np.dtype(np.float64)), id(np.dtype(np.float32)),
        python("PyList_New"), python("PyLong_FromLongLong"), python("PyBool_FromLong"), python("PyThreadState_Get"),
    )  # fmt: skip


def provide_interfaces(code: Any) -> None:
    """Write the interfaces of this process to the symbol `interfaces` of loaded machine code."""
    words = interfaces()
    ctypes.memmove(code.address("interfaces"), (ctypes.c_void_p * len(words))(*words), 8 * len(words))


DEFINITION = ("name", "function", "flags", "doc")  # PyMethodDef, in words

new_function = ctypes.pythonapi.PyCFunction_NewEx  # of the address of a definition, `self`, and another object to keep
new_function.restype, new_function.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]


def layout() -> tuple[Any, ...]:
    """Return the properties of this Python and this NumPy on which compiled code depends."""
    return (sys.implementation.cache_tag, ITEMS_OF_TUPLE, np.__version__.split(".")[0])
