"""NumPy generalized ufuncs around addresses of machine code, through NumPy's C API."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...program import Program
from .jit import Code
from .python_objects import ufunc_api

_from_function = ctypes.PYFUNCTYPE(  # PyUFunc_FromFuncAndDataAndSignature, entry 31 of the table
    ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int,
    ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p,
)(ufunc_api()[31])  # fmt: skip

_NO_IDENTITY = -1
MOST_ARRAYS = 64  # greatest number of arguments and results of a ufunc


class Gufunc:
    """A gufunc whose loop is machine code; all arguments have dtype `dtype`. It keeps alive the memory that NumPy refers to."""

    def __init__(self, program: Program, code: Code, dtype: np.dtype[Any]) -> None:
        count = len(program.inputs) + len(program.outputs)
        if count > MOST_ARRAYS:
            raise ValueError(f"{program.name} has {count} arguments and results; NumPy supports at most {MOST_ARRAYS}")
        self._without_memory = ctypes.c_int64(0)  # number of calls without memory, counted by the loop
        functions = (ctypes.c_void_p * 1)(code.address("loop"))
        data = (ctypes.c_void_p * 1)(ctypes.addressof(self._without_memory))
        types = (ctypes.c_char * count)(*[bytes([dtype.num])] * count)
        texts = (program.name.encode(), program.signature.encode())
        self._keeps = (code, functions, data, types, texts)
        self._ufunc: np.ufunc = _from_function(
            ctypes.addressof(functions), ctypes.addressof(data), ctypes.addressof(types), 1, len(program.inputs),
            len(program.outputs), _NO_IDENTITY, texts[0], b"", 0, texts[1],
        )  # fmt: skip

    def __call__(self, *arrays: Any, out: tuple[Any, ...] | None = None) -> Any:
        """Call the ufunc. Raises MemoryError if the loop's workspace cannot be allocated."""
        before = self._without_memory.value
        results = self._ufunc(*arrays) if out is None else self._ufunc(*arrays, out=out)
        if self._without_memory.value != before:
            raise MemoryError(f"{self._ufunc.__name__}: out of memory for the workspace of a batch")
        return results
