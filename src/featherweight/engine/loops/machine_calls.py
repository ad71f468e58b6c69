"""Calls of functions that are machine code already, by their addresses."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from .kernel_tables import Woven

Array = np.ndarray[Any, np.dtype[Any]]
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class MachineCall(NamedTuple):
    """A function's machine code, with the places of the arrays that it reads and writes; no function at address 0."""

    address: int
    pointers: Any  # int64


def machine_call(function: Any, *arrays: Array) -> MachineCall:
    """A call of a `CompiledFunction`, or of None. The arrays, and the function, must live as long."""
    return MachineCall(0 if function is None else function.address, np.array([a.ctypes.data for a in arrays], np.int64))


def woven_call(function: Any, lanes: int, *arrays: Any) -> tuple[MachineCall, list[Any]]:
    """A call of a `CompiledFunction` for the states of some lanes, or of None, and what has to live as long.

    Arrays are woven; others are the same for all lanes.
    """
    if function is None:
        return MachineCall(0, np.zeros(1, np.int64)), []
    woven = [a if isinstance(a, Woven) else Woven.of(np.asarray(a), lanes) for a in arrays]
    pointers = np.array([a.array.ctypes.data for a in woven], np.int64)
    return MachineCall(function.woven_address(lanes), pointers), [function, woven]


def call_machine(call: MachineCall) -> None:
    """Call `int f(double **arguments)` at the call's address; nothing at address 0."""
    if call.address != 0:
        _FUNCTION(call.address)(call.pointers.ctypes.data)
