"""Calls of compiled loops with fixed arguments, from Python or by other loops, and copies between their arrays and Python's.

Kernels with loops call compiled functions for many states (`BatchCalls`), from rows of arrays to rows of arrays.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Array, Booleans, IntegerMatrix, Integers
from .. import cache
from ..backends.llvm.built_ins import MOST_AXES, built_in
from ..backends.llvm.ir import Function
from ..backends.llvm.jit import Code, compile_object, host, load_object
from ..backends.llvm.python_objects import layouts_known
from .machine_calls import CodeAddress, Kept, MachineCall, call_machine

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


def prepared_call(run: Any, *arguments: int, kept: object = None, brief: bool = False) -> Callable[[], int]:
    """Return the call of a compiled loop with arguments, which returns the loop's whole number.

    It keeps `kept` alive, such as the tables at the addresses among the arguments, also while it runs. Other threads wait for
    the end of a `brief` call, which takes less than a few microseconds.
    """
    call: Any
    if not hasattr(run, "argtypes"):  # a checked kernel, called through Python
        call = functools.partial(run, *arguments)
        call.kept = kept
        return call
    prepared, own = call_of_loop(run, *arguments)
    words = int(prepared.pointers.ctypes.data)
    if layouts_known():
        return built_in("call_loop", (prepared.address, words, int(brief)), own, prepared, kept)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(prepared.address)
    call = functools.partial(function, words)
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


class Goal(NamedTuple):
    """An array that arguments overwrite, and a flag (1,) that says whether there was an argument.

    With `of_robots`, the first axis is that of robots. An argument for one robot may omit it.
    """

    array: Array
    given: Booleans | None = None
    of_robots: bool = False

    def written(self, x: Any) -> bool:
        """Write an argument if it is None, or an array of float64 or float32 with the right shape; return whether it was."""
        if self.given is not None:
            self.given[0] = x is not None
        if x is None:
            if self.given is None:
                self.array.fill(0.0)
            return True
        shapes = {self.array.shape, self.array.shape[self.of_robots and len(self.array) == 1 :]}
        if type(x) is not np.ndarray or x.dtype not in (DOUBLE, SINGLE) or x.shape not in shapes:
            return False
        self.array[...] = x
        return True


def writer(*goals: Goal) -> Callable[..., bool]:
    """Return a function of as many arguments, which copies them to the goals if it can do so at once.

    It returns whether all arguments are arrays of float64 or float32 with the shapes of the goals, or None. None clears the
    flag of a goal or, without a flag, writes zeros. Some goals may have been written if it returns False: convert the
    arguments, or raise an error.
    """
    if not layouts_known():
        return lambda *given: len(given) == len(goals) and all(goal.written(x) for goal, x in zip(goals, given, strict=True))
    return built_in("write_arrays", words_of_goals(goals), goals)


def writing_call(goals: Sequence[Goal], run: Any, *arguments: int, kept: object = None) -> Callable[..., int | None]:
    """Return a function that writes its arguments, as that of `writer` does, and then calls a loop, as `prepared_call` does.

    It returns the loop's whole number, or None if the arguments do not fit: the loop is then not called.
    """
    if not hasattr(run, "argtypes") or not layouts_known():
        write, call = writer(*goals), prepared_call(run, *arguments, kept=kept)
        return lambda *given: call() if write(*given) else None
    prepared, own = call_of_loop(run, *arguments)
    words = [prepared.address, int(prepared.pointers.ctypes.data), 0, *words_of_goals(goals)]
    return built_in("write_and_call", words, goals, own, prepared, kept)


def words_of_goals(goals: Sequence[Goal]) -> list[int]:
    """Return the number of goals, and the words of each."""
    words = [len(goals)]
    for x, given, of_robots in goals:
        robots, core = (len(x), x.shape[1:]) if of_robots else (0, x.shape)
        assert x.dtype == DOUBLE and x.flags.c_contiguous and len(core) <= MOST_AXES
        flag = 0 if given is None else given.ctypes.data
        words += [x.ctypes.data, x.nbytes, flag, robots, len(core), *core, *[0] * (MOST_AXES - len(core))]
    return words


class Result(NamedTuple):
    """A contiguous array that a reader copies, or numbers (k,) for which it lists `names`.

    `used` (1,) is the number of its first rows that count, if that varies.
    """

    array: Array
    used: Array | None = None
    read_only: bool = False
    names: list[Any] | None = None

    def read(self) -> Any:
        """Return a copy, or a list of names."""
        rows = self.array if self.used is None else self.array[: self.used[0]]
        if self.names is not None:
            return [self.names[k] for k in rows.tolist()]
        copied = rows.copy()
        copied.flags.writeable = not self.read_only
        return copied


def reader(*results: Result, result_class: Any = None, run: Any = None, arguments: Sequence[int] = ()) -> Callable[[], Any]:
    """Return a function that returns copies of arrays as they are then: of one, or of several in a named tuple.

    A loop, which must be brief, writes the arrays first: `run` with arguments. The function returns None if the loop returns 0.
    """
    checked = run is not None and not hasattr(run, "argtypes")  # called through Python
    if checked or not layouts_known():
        call = prepared_call(run, *arguments) if run is not None else lambda: 1

        def read() -> Any:
            if call() == 0:
                return None
            return results[0].read() if result_class is None else result_class(*(x.read() for x in results))

        return read
    loop, own = (MachineCall(0, np.zeros(1, np.int64)), []) if run is None else call_of_loop(run, *arguments)
    words = [id(result_class) if result_class else 0, len(results), loop.address, int(loop.pointers.ctypes.data)]
    for x, used, read_only, names in results:
        assert x.flags.c_contiguous and 0 < x.ndim <= MOST_AXES and not x.dtype.hasobject
        row = math.prod(x.shape[1:]) * x.itemsize
        at = 0 if used is None else used.ctypes.data
        words += [x.ctypes.data, id(names) if names is not None else 0, at, id(x.dtype), row, int(read_only)]
        words += [x.ndim, *x.shape, *[0] * (MOST_AXES - x.ndim)]
    return built_in("read_arrays", words, results, result_class, loop, own, [x.array.dtype for x in results])


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
    return BatchCalls(CodeAddress(_caller(4).address("call"), functions), words, first, advance, begins, count, failed), kept


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
