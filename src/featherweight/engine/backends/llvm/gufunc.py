"""NumPy generalized ufuncs around addresses of machine code, through NumPy's C API."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...program import Program
from .python_objects import ufunc_api

_from_function = ctypes.PYFUNCTYPE(  # PyUFunc_FromFuncAndDataAndSignature, entry 31 of the table
    ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int,
    ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p,
)(ufunc_api()[31])  # fmt: skip

_NO_IDENTITY = -1
MOST_ARRAYS = 64  # arguments and results that a ufunc may have
_kept: list[Any] = []  # NumPy keeps the addresses of these tables and never frees them


def make_gufunc(program: Program, address: int, dtype: np.dtype[Any]) -> np.ufunc:
    """A gufunc whose loop is the machine code at `address`; all arguments are of `dtype`."""
    count = len(program.inputs) + len(program.outputs)
    if count > MOST_ARRAYS:
        raise ValueError(f"{program.name} has {count} arguments and results; NumPy takes {MOST_ARRAYS} at most")
    functions = (ctypes.c_void_p * 1)(address)
    data = (ctypes.c_void_p * 1)()
    types = (ctypes.c_char * count)(*[bytes([dtype.num])] * count)
    texts = (program.name.encode(), program.signature.encode())
    _kept.append((functions, data, types, texts))
    ufunc: np.ufunc = _from_function(
        ctypes.addressof(functions), ctypes.addressof(data), ctypes.addressof(types), 1, len(program.inputs),
        len(program.outputs), _NO_IDENTITY, texts[0], b"", 0, texts[1],
    )  # fmt: skip
    return ufunc
