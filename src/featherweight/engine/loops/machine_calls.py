"""Calls of existing machine code by address."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from ...array_types import Array
from .kernel_tables import Interleaved

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class CodeAddress(int):
    """The address of machine code, with the functions to which it belongs, so that code for other machines can replace it."""

    functions: tuple[MachineFunction, ...]

    def __new__(cls, address: int, functions: Sequence[MachineFunction]) -> Self:
        """Return an address of the code of some functions."""
        made = super().__new__(cls, address)
        made.functions = tuple(functions)
        return made


class MachineCall(NamedTuple):
    """A function's machine code, with the addresses of the arrays that it reads and writes; address 0 means no function."""

    address: int
    pointers: Any  # int64


class MachineFunction(Protocol):
    """A function with machine code, such as a `CompiledFunction`."""

    @property
    def address(self) -> int | None:
        """The address of the code for one state; None for interpreted functions."""

    def interleaved_address(self, lanes: int) -> int | None:
        """Return the address of the code for the states of some lanes; None for interpreted functions."""


Kept = tuple[MachineCall, list[Any]]  # a call, and objects to keep alive


def machine_call(function: MachineFunction | None, *arrays: Array) -> MachineCall:
    """Return a call of a `CompiledFunction`, or of None. Keep the arrays and the function alive."""
    address = 0 if function is None else _required(function.address)
    known = CodeAddress(address, () if function is None else (function,))
    return MachineCall(known, np.array([a.ctypes.data for a in arrays], np.int64))


def interleaved_call(function: MachineFunction | None, lanes: int, *arrays: Array | Interleaved) -> Kept:
    """Return a call of a `CompiledFunction` for the states of some lanes, or of None, and objects to keep alive.

    Interleaved arrays have separate numbers for each lane; all others are shared.
    """
    if function is None:
        return MachineCall(0, np.zeros(1, np.int64)), []
    interleaved = [a if isinstance(a, Interleaved) else Interleaved.of(np.asarray(a), lanes) for a in arrays]
    pointers = np.array([a.array.ctypes.data for a in interleaved], np.int64)
    return MachineCall(_required(function.interleaved_address(lanes)), pointers), [function, interleaved]


def _required(address: int | None) -> int:
    if address is None:
        raise ValueError("functions with execution='interpreted' have no machine code; load the robot with execution='auto'")
    return address


def call_machine(call: MachineCall) -> None:
    """Call `int f(double **arguments)` at the call's address; do nothing at address 0."""
    if call.address != 0:
        _FUNCTION(call.address)(call.pointers.ctypes.data)
