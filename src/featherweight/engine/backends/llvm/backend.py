"""The traced execution: straight-line machine code by LLVM, for one state or many in lanes, on any number of threads."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ....array_types import Array
from ... import cache
from ...compilation_messages import reporting
from ...direct_calls import DirectCall
from ...forks import new_lock
from ...program import Program
from ...program_trace import ProgramTrace
from ...threads import processors, share_out
from ..host_arrays import HostArrays
from ..protocol import Batch, Watch
from ..result_memory import LARGE, RESULTS
from .entry_table import PRECISIONS, Entry, callable_by_entry
from .ir import Type
from .jit import Code, compile_object, host, load_object
from .loop import emit_loop
from .python_objects import ufunc_api
from .single import emit_interleaved, emit_single, emit_single_in_lanes

THREAD_GRAIN = 8_000_000  # operations worth another thread: about 200 µs, several times the time to wake it
LONGEST_CALL = 50_000_000  # operations of a call that is not split: Python handles no signals meanwhile
PIECE = 2048  # states of one call of a thread: calls need the GIL, and wait for it
MOST_AXES = 64  # greatest number of axes of a batch and of all core shapes that NumPy's ufuncs support


def compile(program: Program, traced: ProgramTrace) -> MachineCode:
    """Return machine code, compiled at the first call of each kind and cached on disk."""
    return MachineCode(program, traced)


class MachineCode(HostArrays):
    """A program as machine code: for one state, and for batches, in each precision."""

    def __init__(self, program: Program, traced: ProgramTrace) -> None:
        self.program, self._traced = program, traced
        self._entries: dict[str, Entry] = {}
        self._make_entry: Callable[[str], Entry]
        self._gufuncs: dict[str, Gufunc] = {}
        self._singles: dict[str, Code] = {}
        self._loops: dict[str, Code] = {}
        self._interleaved: dict[int, Code] = {}  # by number of lanes
        self._publishing = new_lock()  # guards an entry, and code registered with it

    def array(self, x: object, what: str) -> Array:
        a = super().array(x, what)
        return a.astype(np.float64) if a.dtype.kind == "f" and a.dtype.itemsize > 8 else a  # ufuncs do not round inputs

    # one state

    def entry(self, result_class: type | None, general: Callable[..., Any], watch: Watch | None = None) -> DirectCall | None:
        if not callable_by_entry(self.program):
            return None
        self._make_entry = lambda precision: Entry(self.program, precision, general, result_class, watch)
        entry = self._make_entry("double")
        with self._publishing:
            if "double" in self._singles:  # compiled for `address`
                entry.computes_one(self._singles["double"])
            self._entries["double"] = entry
        return entry.direct_call

    def _entry(self, precision: str) -> Entry | None:
        """Return the entry of a precision; that of single precision is made on first use."""
        if self._entries and precision not in self._entries:
            entry = self._make_entry(precision)
            if precision in self._singles:  # compiled for other libraries, before there was an entry
                entry.computes_one(self._singles[precision])
            self._entries[precision] = entry
            self._entries["double"].hands_on(self._entries[precision])
        return self._entries.get(precision)

    def _single(self, precision: str) -> Code:
        """Return the function for one state, and register it with the entry."""
        if precision not in self._singles:
            single = self._loaded("one state", lambda: self._emit_single(precision), "single", precision)
            with self._publishing:
                if entry := self._entry(precision):  # first, because other threads use code in the table immediately
                    entry.computes_one(single)
                self._singles[precision] = single
        return self._singles[precision]

    def _emit_single(self, precision: str) -> list[str]:
        lanes, fma = host().lanes(precision), host().fma
        in_lanes = self._traced.in_lanes(lanes)
        if in_lanes:
            return emit_single_in_lanes(in_lanes, Type(precision, lanes), fma)
        sizes = [r.size for r in self.program.outputs]
        return emit_single(self._traced.trace, sizes, Type(precision, 1), lanes, fma)

    @property
    def address(self) -> int | None:  # type: ignore[override]
        return self._single("double").address("single")

    def interleaved_address(self, lanes: int) -> int:
        """Return the address of the function for the states of `lanes` lanes (`single.emit_interleaved`)."""
        if lanes not in self._interleaved:
            type, sizes = Type("double", lanes), [r.size for r in self.program.outputs]
            self._interleaved[lanes] = self._loaded(
                "lanes", lambda: emit_interleaved(self._traced.trace, sizes, type, host().fma), "interleaved", lanes
            )
        return self._interleaved[lanes].address("interleaved")

    # many

    def run(
        self, arrays: Sequence[Array], batch: Batch, dtype: np.dtype[Any], out: Sequence[Array] | None, threads: int | None
    ) -> Sequence[Any]:
        precision = "float" if dtype == PRECISIONS["float"] else "double"
        if not batch and (entry := self._entry(precision)):
            self._single(precision)
            if entry.watched:  # it calls this method for states that it does not return
                made = self._without_ufunc(arrays, batch, dtype, out)
                return made if out is not None else [x if x.ndim else x[()] for x in made]
            results = entry.call(*(_plain(a, PRECISIONS[precision]) for a in arrays))
            results = results if len(self.program.outputs) > 1 else (results,)
            return _copied(results, out)
        if any(0 in shape for shape in self.program.shapes):
            return self._without_ufunc(arrays, batch, dtype, out)
        gufunc = self._gufunc(precision)
        if len(batch) + sum(len(r.shape) for r in self.program.outputs) > MOST_AXES:
            return self._without_ufunc(arrays, batch, dtype, out)
        states = math.prod(batch)
        parts = 1 if threads == 1 else self._shares(states, threads)
        if parts > 1 or states * self._work > LONGEST_CALL:
            apart = [a.copy() if any(_reaches_into_other_rows(a, o) for o in out or ()) else a for a in arrays]
            return self._in_pieces(gufunc, apart, batch, dtype, out, parts)
        if out is None and states * self._bytes >= LARGE:
            out = self._new_results(batch, dtype)
        results = gufunc(*arrays, out=None if out is None else tuple(out))
        return results if len(self.program.outputs) > 1 else (results,)

    def _new_results(self, batch: Batch, dtype: np.dtype[Any]) -> list[Array]:
        return [RESULTS.empty(batch + r.shape, np.dtype(dtype)) for r in self.program.outputs]

    def _without_ufunc(
        self, arrays: Sequence[Array], batch: Batch, dtype: np.dtype[Any], out: Sequence[Array] | None
    ) -> Sequence[Array]:
        """Compute one state after the other: NumPy has no ufuncs for arrays without elements, or with many axes."""
        code = self._single("float" if dtype == PRECISIONS["float"] else "double")
        one = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(code.address("single"))
        shapes = [batch + p.shape for p in self.program.inputs]
        rows = [np.array(np.broadcast_to(a, shape), dtype, order="C") for a, shape in zip(arrays, shapes, strict=True)]
        results = [np.empty(batch + r.shape, dtype) for r in self.program.outputs]
        for i in np.ndindex(batch):
            if one((ctypes.c_void_p * len(self.program.shapes))(*(x[(*i, ...)].ctypes.data for x in (*rows, *results)))):
                raise MemoryError(f"{self.program.name}: out of memory for the workspace of a state")
        return _copied(results, out)

    def _loop(self, precision: str) -> Code:
        """Return the loop of a gufunc for batches."""
        if precision not in self._loops:
            type, shapes, fma = Type(precision, host().lanes(precision)), self.program.shapes, host().fma
            self._loops[precision] = self._loaded(
                "batches", lambda: emit_loop(self._traced.trace, shapes, type, fma), "loop", precision
            )
        return self._loops[precision]

    def _loaded(self, states: str, emit: Callable[[], list[str]], symbol: str, variant: str | int) -> Code:
        """Return code from the cache, or from the modules that `emit` returns; `states` are named to users who wait."""

        def compiled() -> bytes:
            with reporting(f"{self.program.title} for {states}"):
                return compile_object(*emit())

        return load_object(cache.kept(compiled, "object", host(), self._traced.identity, symbol, variant), symbol)

    def code(self, precision: str, many: bool) -> Code:
        """Return code for compiled callers: with "single" for one state, or "loop" for many, as NumPy calls it."""
        return self._loop(precision) if many else self._single(precision)

    @property
    def identity(self) -> str:
        """Hash of everything that the code depends on, except the machine and the engine."""
        return self._traced.identity

    @property
    def states_of_thread(self) -> int:
        """Number of states worth another thread."""
        return -(-THREAD_GRAIN // max(self._work, 1))

    def _gufunc(self, precision: str) -> Gufunc:
        """Return the gufunc for batches, and register its loop with the entry."""
        gufunc = self._gufuncs.get(precision)
        if gufunc is None:
            code = self._loop(precision)
            gufunc = Gufunc(self.program, code, PRECISIONS[precision])
            if entry := self._entry(precision):
                entry.computes_many(code, min((2 * THREAD_GRAIN - 1) // max(self._work, 1), (LARGE - 1) // max(self._bytes, 1)))
            self._gufuncs[precision] = gufunc
        return gufunc

    @cached_property
    def _work(self) -> int:
        """Work for one state, in operations."""
        o = self._traced.operations
        return o.flops + 20 * (o.div + o.sqrt + o.trig)

    @cached_property
    def _bytes(self) -> int:
        """The size of the largest result of one state in bytes, in double precision."""
        return 8 * max(r.size for r in self.program.outputs)

    def _shares(self, states: int, threads: int | None) -> int:
        """Return the number of threads for a batch."""
        return max(1, min(processors() if threads is None else threads, states * self._work // THREAD_GRAIN, states))

    def _in_pieces(
        self, gufunc: Gufunc, arrays: Sequence[Array], batch: Batch, dtype: np.dtype[Any], out: Any, parts: int
    ) -> Sequence[Array]:
        """Split the longest batch axis; the pieces do not overlap, so threads write to separate memory."""
        results = self._new_results(batch, dtype) if out is None else out
        axis = max(range(len(batch)), key=lambda k: batch[k])
        shapes = [batch + p.shape for p in self.program.inputs]
        full = [a if a.shape == s else np.broadcast_to(a, s) for a, s in zip(arrays, shapes, strict=True)]

        def run(start: int, stop: int) -> None:
            piece = (slice(None),) * axis + (slice(start, stop),)
            gufunc(*(a[piece] for a in full), out=tuple(r[piece] for r in results))

        rows = math.prod(batch) // batch[axis]  # states per index
        what = f"{self.program.title}, {math.prod(batch)} states"
        share_out(run, batch[axis], parts, max(1, min(PIECE, LONGEST_CALL // max(self._work, 1)) // rows), what)
        return results


def _reaches_into_other_rows(a: Array, out: Array) -> bool:
    """Return whether an argument may overlap results of other states, so that pieces of a batch would conflict."""
    same = a.ctypes.data == out.ctypes.data and a.shape == out.shape and a.strides == out.strides
    return not same and np.may_share_memory(a, out)


def _copied(results: Sequence[Any], out: Sequence[Array] | None) -> Sequence[Any]:
    """Return the results, copied to the caller's arrays if given."""
    if out is None:
        return results
    for o, r in zip(out, results, strict=True):
        np.copyto(o, r, casting="same_kind")
    return out


def _plain(a: Array, dtype: np.dtype[Any]) -> Array:
    """Return a copy that the entry certainly accepts, so that it does not call the general call again."""
    copy = np.empty(a.shape, dtype)
    copy[...] = a
    return copy


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
