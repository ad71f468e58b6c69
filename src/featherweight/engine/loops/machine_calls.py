"""Calls of existing machine code by address."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from .kernel_tables import Woven

Array = np.ndarray[Any, np.dtype[Any]]
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class MachineCall(NamedTuple):
    """A function's machine code, with the addresses of the arrays that it reads and writes; address 0 is no function."""

    address: int
    pointers: Any  # int64


def machine_call(function: Any, *arrays: Array) -> MachineCall:
    """Return a call of a `CompiledFunction`, or of None. Keep the arrays and the function alive."""
    return MachineCall(0 if function is None else function.address, np.array([a.ctypes.data for a in arrays], np.int64))


def woven_call(function: Any, lanes: int, *arrays: Any) -> tuple[MachineCall, list[Any]]:
    """Return a call of a `CompiledFunction` for the states of some lanes, or of None, and objects to keep alive.

    Woven arrays have separate numbers for each lane; all others are shared.
    """
    if function is None:
        return MachineCall(0, np.zeros(1, np.int64)), []
    woven = [a if isinstance(a, Woven) else Woven.of(np.asarray(a), lanes) for a in arrays]
    pointers = np.array([a.array.ctypes.data for a in woven], np.int64)
    return MachineCall(function.woven_address(lanes), pointers), [function, woven]


def call_machine(call: MachineCall) -> None:
    """Call `int f(double **arguments)` at the call's address; do nothing at address 0."""
    if call.address != 0:
        _FUNCTION(call.address)(call.pointers.ctypes.data)
