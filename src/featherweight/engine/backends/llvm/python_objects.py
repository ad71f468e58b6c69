"""How objects of CPython and NumPy lie in memory, checked once a process, and addresses of what their C interfaces offer."""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
from typing import Any, NamedTuple

import numpy as np
from numpy._core import _multiarray_umath as _umath  # type: ignore[attr-defined]

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_Table = ctypes.POINTER(ctypes.c_void_p)

HEADER = object.__basicsize__
TYPE = 8  # bytes from an object's address to its class
ITEMS_OF_TUPLE = tuple.__basicsize__
SIZE_OF_TUPLE, SIZE_OF_LIST, ITEMS_OF_LIST, VALUE_OF_FLOAT = HEADER, HEADER, HEADER + 8, HEADER
DATA, NDIM, DIMS, STRIDES, DESCR, FLAGS = HEADER, HEADER + 8, HEADER + 16, HEADER + 24, HEADER + 40, HEADER + 48
KIND_OF_DESCR, ORDER_OF_DESCR, NUMBER_OF_DESCR = HEADER + 8, HEADER + 10, HEADER + 12

CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400  # NumPy's flags
NUMBERS = {"float": np.dtype(np.float32).num, "double": np.dtype(np.float64).num}


def ufunc_api() -> Any:
    """NumPy's table of functions for ufuncs."""
    return ctypes.cast(_get_pointer(_umath._UFUNC_API, None), _Table)


def array_api() -> Any:
    """NumPy's table of functions for arrays."""
    return ctypes.cast(_get_pointer(_umath._ARRAY_API, None), _Table)


def _word(x: Any, offset: int) -> int:
    return ctypes.c_void_p.from_address(id(x) + offset).value or 0


@functools.cache
def layouts_known() -> bool:
    """Whether objects of this Python and this NumPy lie in memory as is said above."""
    if sysconfig.get_config_var("Py_GIL_DISABLED") or sys.implementation.name != "cpython" or HEADER != 16:
        return False
    a = np.zeros((3, 5))
    dims, strides = (ctypes.cast(_word(a, x), ctypes.POINTER(ctypes.c_ssize_t)) for x in (DIMS, STRIDES))
    flags = ctypes.c_int.from_address(id(a) + FLAGS).value
    pair, items = (a, dims), [a, dims]
    listed = ctypes.cast(_word(items, ITEMS_OF_LIST), _Table)
    return (
        _word(a, TYPE) == id(np.ndarray)
        and _word(a, DATA) == a.ctypes.data
        and ctypes.c_int.from_address(id(a) + NDIM).value == 2
        and (dims[0], dims[1], strides[0], strides[1]) == (3, 5, 40, 8)
        and _word(a, DESCR) == id(np.dtype(np.float64))
        and flags & (CONTIGUOUS | ALIGNED | WRITEABLE) == CONTIGUOUS | ALIGNED | WRITEABLE
        and all(_described(np.dtype(x)) == ("f", "=", np.dtype(x).num) for x in (np.float32, np.float64))
        and (_word(pair, SIZE_OF_TUPLE), _word(pair, ITEMS_OF_TUPLE), _word(pair, ITEMS_OF_TUPLE + 8)) == (2, id(a), id(dims))
        and (_word(items, SIZE_OF_LIST), listed[0], listed[1]) == (2, id(a), id(dims))
        and all(ctypes.c_double.from_address(id(x) + VALUE_OF_FLOAT).value == 0.5 for x in (0.5, np.float64(0.5)))
    )


def _described(dtype: np.dtype[Any]) -> tuple[str, str, int]:
    kind, order = (chr(ctypes.c_ubyte.from_address(id(dtype) + x).value) for x in (KIND_OF_DESCR, ORDER_OF_DESCR))
    return kind, order, ctypes.c_int.from_address(id(dtype) + NUMBER_OF_DESCR).value


class Interfaces(NamedTuple):
    """Addresses of objects and functions of this process, as compiled code calls them."""

    array_class: int
    list_class: int
    tuple_class: int
    float_class: int
    float64_class: int  # NumPy's scalar
    int_class: int
    new_array: int  # PyArray_New
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


@functools.cache
def interfaces() -> Interfaces:
    """Those of this process."""
    api = array_api()

    def python(name: str) -> int:
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0

    return Interfaces(
        id(np.ndarray), id(list), id(tuple), id(float), id(np.float64), id(int), api[93] or 0, api[76] or 0,
        python("PyObject_Vectorcall"), python("PyEval_SaveThread"), python("PyEval_RestoreThread"),
        python("PyLong_AsDouble"), python("PyErr_Occurred"), python("PyErr_Clear"), python("PyErr_NoMemory"),
        python("PyType_GenericAlloc"),
        python("Py_IncRef"), python("Py_DecRef"),
    )  # fmt: skip


def layout() -> tuple[Any, ...]:
    """What compiled code takes for granted of this Python and this NumPy."""
    return (sys.implementation.cache_tag, ITEMS_OF_TUPLE, np.__version__.split(".")[0])
