"""NumPy generalized ufuncs around addresses of machine code, through NumPy's C API."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath as _umath  # type: ignore[attr-defined]

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_Table = ctypes.POINTER(ctypes.c_void_p)
_ufunc_api = ctypes.cast(_get_pointer(_umath._UFUNC_API, None), _Table)
_from_function = ctypes.PYFUNCTYPE(  # PyUFunc_FromFuncAndDataAndSignature, entry 31 of the table
    ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int,
    ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p,
)(_ufunc_api[31])  # fmt: skip


def array_api() -> Any:
    """NumPy's table of array functions."""
    return ctypes.cast(_get_pointer(_umath._ARRAY_API, None), _Table)


_NO_IDENTITY = -1
_kept: list[Any] = []  # NumPy keeps the addresses of these tables and never frees them

Shape = tuple[int, ...]


def signature(shapes: Sequence[Shape]) -> str:
    """The gufunc signature of functions from arrays of all but the last of `shapes` to the last: "(39),(38)->(38)"."""
    cores = [f"({','.join(map(str, s))})" for s in shapes]
    return f"{','.join(cores[:-1])}->{cores[-1]}"


def make_gufunc(name: str, address: int, shapes: Sequence[Shape], dtype: np.dtype[Any]) -> np.ufunc:
    """A gufunc whose loop is the machine code at `address`; all arguments are of `dtype`."""
    functions = (ctypes.c_void_p * 1)(address)
    data = (ctypes.c_void_p * 1)()
    types = (ctypes.c_char * len(shapes))(*[bytes([dtype.num])] * len(shapes))
    texts = (name.encode(), signature(shapes).encode())
    _kept.append((functions, data, types, texts))
    ufunc: np.ufunc = _from_function(
        ctypes.addressof(functions), ctypes.addressof(data), ctypes.addressof(types), 1, len(shapes) - 1, 1,
        _NO_IDENTITY, texts[0], b"", 0, texts[1],
    )  # fmt: skip
    return ufunc
