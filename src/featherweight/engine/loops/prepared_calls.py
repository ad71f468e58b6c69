"""Calls of compiled loops with fixed arguments: from Python, where ctypes then converts one argument, or by other loops."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import cache
from ..backends.llvm.ir import Function
from ..backends.llvm.jit import Code, compile_object, host, load_object
from .machine_calls import Kept, MachineCall


def prepared_call(run: Any, *arguments: int, kept: object = None) -> Callable[[], int]:
    """Return the call of a compiled loop with arguments, which returns the loop's whole number.

    It keeps `kept` alive, such as the tables at the addresses among the arguments, also while it runs.
    """
    call: Any
    if not hasattr(run, "argtypes"):  # a checked kernel, called through Python
        call = functools.partial(run, *arguments)
        call.kept = kept
        return call
    prepared, own = call_of_loop(run, *arguments)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(prepared.address)
    call = functools.partial(function, int(prepared.pointers.ctypes.data))
    call.kept = own, prepared, kept
    return call


def call_of_loop(run: Any, *arguments: int) -> Kept:
    """Return the call of a compiled loop by another one, and objects to keep alive.

    `pointers` of the call has the address of the loop, followed by the arguments, which may change.
    """
    words = np.array([ctypes.cast(run, ctypes.c_void_p).value, *arguments], np.int64)
    code = _caller(len(arguments))
    return MachineCall(code.address("call"), words), [run, code]


@functools.cache
def _caller(count: int) -> Code:
    """Return `i64 call(i64 words)`, which calls the function at the first word with the following words."""

    def compiled() -> bytes:
        f = Function("i64", "call", ["i64 %words"], linkage="external", attributes="nounwind")
        words = f.cast("inttoptr", "i64", "%words", "ptr")
        address, *arguments = (f.load("i64", words, k) for k in range(count + 1))
        function = f.cast("inttoptr", "i64", address, "ptr")
        f.ret("i64", f.value(f"call i64 {function}({', '.join(f'i64 {x}' for x in arguments)})"))
        return compile_object(str(f))

    return load_object(cache.kept(compiled, "prepared call", count, host()), "call")
