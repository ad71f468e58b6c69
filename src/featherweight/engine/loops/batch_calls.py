"""Calls of compiled functions for many states from kernels with loops, from rows of arrays to rows of arrays."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Array, IntegerMatrix, Integers
from .. import cache
from ..backends.llvm.ir import Function
from ..backends.llvm.jit import Code, compile_object, host, load_object
from .machine_calls import CodeAddress, MachineCall, call_machine

_LOOP = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)


class PythonBatch(NamedTuple):
    """A Python function of the index at which a call's states start and of their number, which has arrays of its own.

    If the function fails, `errors` gets the exception, and later calls do nothing: the caller raises it.
    """

    function: Callable[[int, int], None]
    errors: list[BaseException]


class BatchCalls(NamedTuple):
    """Several functions, with the arrays of each; states are rows."""

    caller: int  # address of the code that calls loops
    words: IntegerMatrix  # (functions, 5) the loop, and its arguments
    first: IntegerMatrix  # (functions, arrays) addresses
    advance: IntegerMatrix  # (functions, arrays) offset in bytes of a call's states per index
    begins: Integers  # (arrays,) addresses of the states of a call
    states: Integers  # (1,) number of states of a call
    failed: Integers  # (1,) number of calls without memory


def batch_calls(
    functions: Sequence[Any], arrays: Sequence[Sequence[Array]], fixed: Sequence[Array] = ()
) -> tuple[BatchCalls, list[Any]]:
    """Return calls of traced functions on arrays (float64), or of Python functions, and objects to keep alive.

    `arrays` has for each function its arguments and then its results, in order. The states of an array are along its first
    axis, and a call starts at one of them; or along its second axis, and a call processes all states at one index of the first.
    Calls always start at the first state of arrays in `fixed`.
    """
    most = max((*map(len, arrays), 1)) if functions else 0
    words, first, advance = (np.zeros((len(functions), n), np.int64) for n in (5, most, most))
    begins, count, failed = np.zeros(most, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)
    kept: list[Any] = [words, first, advance, begins, count, failed, *arrays]
    for k, (function, own) in enumerate(zip(functions, arrays, strict=True)):
        if isinstance(function, PythonBatch):
            advance[k, 0] = 1  # so that the first address is the index
            loop = _python_loop(function, begins, count)
            words[k, 0] = ctypes.cast(loop, ctypes.c_void_p).value or 0
            kept.append(loop)
            continue
        code = function.machine_code.code("double", True)
        cores = [len(shape) for shape in function.program.shapes]
        steps = [a.strides[a.ndim - core - 1] for a, core in zip(own, cores, strict=True)]
        steps += [s for a, core in zip(own, cores, strict=True) for s in a.strides[a.ndim - core :]]
        numbers = np.array(steps, np.int64)
        first[k, : len(own)] = [a.ctypes.data for a in own]
        advance[k, : len(own)] = [0 if any(a is b for b in fixed) else a.strides[0] for a in own]
        words[k] = code.address("loop"), begins.ctypes.data, count.ctypes.data, numbers.ctypes.data, failed.ctypes.data
        kept += [code, numbers, function]
    return BatchCalls(CodeAddress(_caller().address("call"), functions), words, first, advance, begins, count, failed), kept


def call_batch(calls: BatchCalls, function: int, begin: int, count: int) -> None:
    """Call a function on `count` states of its arrays, which start at the index `begin`."""
    for i in range(len(calls.begins)):
        calls.begins[i] = calls.first[function, i] + begin * calls.advance[function, i]
    calls.states[0] = count
    call_machine(MachineCall(calls.caller, calls.words[function]))


def _python_loop(batch: PythonBatch, begins: Integers, count: Integers) -> Any:
    """Return the machine code that calls a Python function."""

    def called(*_: int) -> None:
        if batch.errors:
            return
        try:
            batch.function(int(begins[0]), int(count[0]))
        except BaseException as error:  # Ctrl-C, too: nothing would see it beyond machine code
            batch.errors.append(error)

    return _LOOP(called)


@functools.cache
def _caller() -> Code:
    """Return `i32 call(ptr words)`, which calls the loop at the first word with the next four words."""

    def compiled() -> bytes:
        f = Function("i32", "call", ["ptr %words"], linkage="external", attributes="nounwind")
        loop, *arguments = (f.load("ptr", "%words", k) for k in range(5))
        f.call("void", loop, *(f"ptr {x}" for x in arguments))
        f.ret("i32", "0")
        return compile_object(str(f))

    return load_object(cache.kept(compiled, "batch call", host()), "call")
