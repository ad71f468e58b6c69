"""Calls of compiled loops with fixed arguments, from Python or by other loops, and copies between their arrays and Python's."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Array, Booleans
from .. import cache
from ..backends.llvm.built_ins import MOST_AXES, built_in
from ..backends.llvm.ir import Function
from ..backends.llvm.jit import Code, compile_object, host, load_object
from ..backends.llvm.python_objects import layouts_known
from .machine_calls import Kept, MachineCall

DOUBLE = np.dtype(np.float64)


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
        """Write an argument if it is None, or an array of doubles with the right shape; return whether this is so."""
        if self.given is not None:
            self.given[0] = x is not None
        if x is None:
            if self.given is None:
                self.array.fill(0.0)
            return True
        shapes = {self.array.shape, self.array.shape[self.of_robots and len(self.array) == 1 :]}
        if type(x) is not np.ndarray or x.dtype != DOUBLE or x.shape not in shapes:
            return False
        self.array[...] = x
        return True


def writer(*goals: Goal) -> Callable[..., bool]:
    """Return a function of as many arguments, which copies them to the goals if it can do so at once.

    It returns whether all arguments are contiguous arrays of doubles with the shapes of the goals, or None. None clears the
    flag of a goal or, without a flag, writes zeros. Some goals may have been written if it returns False: convert the
    arguments, or raise an error.
    """
    if not layouts_known():
        return lambda *given: len(given) == len(goals) and all(goal.written(x) for goal, x in zip(goals, given, strict=True))
    return built_in("write_arrays", words_of_goals(goals), goals)


def writing_call(goals: Sequence[Goal], run: Any, *arguments: int, kept: object = None) -> Callable[..., bool]:
    """Return a function that writes its arguments, as that of `writer` does, and then calls a loop, as `prepared_call` does.

    It returns whether all arguments fit and the loop returns not 0.
    """
    if not hasattr(run, "argtypes") or not layouts_known():
        write, call = writer(*goals), prepared_call(run, *arguments, kept=kept)
        return lambda *given: write(*given) and call() != 0
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
