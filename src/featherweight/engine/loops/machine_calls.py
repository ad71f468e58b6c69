"""Calls of functions that are machine code already, by their addresses."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class MachineCall(NamedTuple):
    """A function's machine code, with the places of the arrays that it reads and writes; no function at address 0."""

    address: int
    pointers: Any  # int64


def machine_call(function: Any, *arrays: Array) -> MachineCall:
    """A call of a `CompiledFunction`, or of None. The arrays, and the function, must live as long."""
    return MachineCall(0 if function is None else function.address, np.array([a.ctypes.data for a in arrays], np.int64))


def call_machine(call: MachineCall) -> None:
    """Call `int f(double **arguments)` at the call's address; nothing at address 0."""
    if call.address != 0:
        _FUNCTION(call.address)(call.pointers.ctypes.data)
