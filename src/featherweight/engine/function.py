"""Compiled functions: what users call like a NumPy gufunc."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from . import cache
from .backends.llvm import entry
from .backends.llvm.gufunc import make_gufunc, signature
from .backends.llvm.jit import compile_object, host, load_object
from .backends.llvm.loop import emit_loop
from .program import Program
from .threads import processors, share_out
from .trace import BudgetExceeded, Operations, Trace, count, trace

Array = np.ndarray[Any, np.dtype[Any]]

NODE_BUDGET = 250_000  # nodes of a trace, beyond which loops stay loops
THREAD_GRAIN = 8_000_000  # operations that are worth another thread: some 200 µs, several times what it takes to wake
PIECE = 2048  # states of one call of a thread: calls need the GIL, and wait for it
COLUMN_GRAIN = 200_000  # entries of one matrix that are worth more than one thread
EXECUTIONS = ("auto", "traced", "rolled", "interpreted")

_DOUBLE = np.dtype(np.float64)
_SINGLE = np.dtype(np.float32)


class CompiledFunction:
    """A function of arrays, compiled for one robot at its first call and kept on disk.

    Called like a NumPy gufunc: leading axes broadcast, results are float32 if every argument is and float64 otherwise,
    `out=` takes the result. `threads=` says how many threads share a large batch (all processors by default). The GIL
    is released while it computes. NaN in a state gives NaN in that state's results and nowhere else.

    Raises TypeError for a wrong number or name of arguments and ValueError for a wrong shape, naming the argument.
    """

    def __init__(
        self, program: Program, execution: str = "auto", options: dict[str, Program] | None = None, algorithm: str = ""
    ) -> None:
        if execution not in EXECUTIONS:
            raise ValueError(f"execution must be one of {', '.join(EXECUTIONS)}; got {execution!r}")
        self.program = program
        self.algorithm = algorithm or program.kernel.__name__
        self._asked = execution
        self._options = options or {}
        self._variants: dict[str, CompiledFunction] = {}
        self._candidates: dict[str, CompiledFunction] = {}
        self._ufuncs: dict[str, np.ufunc] = {}
        self._shares_of_columns: dict[int, list[Callable[[list[Array], Array], None]]] = {}
        self.__doc__ = program.doc or CompiledFunction.__doc__

    # what it is

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def signature(self) -> str:
        """Core shapes, as NumPy writes them."""
        return signature(self.program.shapes)

    @cached_property
    def operations(self) -> Operations:
        """Exact counts for one state, from the trace that is compiled."""
        facts = self._facts
        if "operations" in facts:
            return Operations(*facts["operations"])
        return count(trace(self.program.flat, [a.size for a in self.program.inputs]))

    @cached_property
    def execution(self) -> str:
        """ "traced", "rolled" or "interpreted": how it runs."""
        if self._asked != "auto":
            return self._asked
        return "rolled" if self.too_large else "traced"

    @property
    def too_large(self) -> bool:
        """Whether its trace goes past the node budget, which only a function that is to be traced may do."""
        return bool(self._facts.get("too large"))

    def variant(self, option: str) -> CompiledFunction:
        """The function with a further argument, which is also used when that argument is given in a call."""
        if option not in self._variants:
            if option not in self._options:
                raise TypeError(f"{self._call_text()} has no argument {option!r}")
            self._variants[option] = CompiledFunction(self._options[option], self._asked, None, self.algorithm)
        return self._variants[option]

    def copy(self) -> CompiledFunction:
        """The same function, not compiled yet."""
        return CompiledFunction(self.program, self._asked, self._options, self.algorithm)

    @property
    def candidates(self) -> dict[str, Operations]:
        """Operation counts of the algorithms that were compared, this one's included, by name."""
        return {name: f.operations for name, f in self._candidates.items()}

    def __repr__(self) -> str:
        return f"<CompiledFunction {self.name}{self.signature}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, ([f._recipe for f in self._candidates.values()] or [self._recipe],)

    @property
    def _recipe(self) -> tuple[Program, str, dict[str, Program], str]:
        return self.program, self._asked, self._options, self.algorithm

    # calling it

    def __call__(self, *args: Any, out: Array | None = None, threads: int | None = None, **named: Any) -> Any:
        algorithm = named.pop("algorithm", None)
        if algorithm is not None and algorithm != self.algorithm:
            if algorithm not in self._candidates:
                known = ", ".join(self._candidates or (self.algorithm,))
                raise ValueError(f"{self.name}: algorithm must be one of {known}; got {algorithm!r}")
            return self._candidates[algorithm](*args, out=out, threads=threads, **named)
        for option in self._options:
            value = named.pop(option, None)
            if value is not None:
                return self.variant(option)(*args, out=out, threads=threads, **named, **{option: value})
        return self._general(self._bound(args, named), out, threads)

    def _general(self, args: tuple[Any, ...], out: Array | None, threads: int | None) -> Any:
        if threads is not None and threads < 1:
            raise ValueError(f"{self.name}: threads must be at least 1; got {threads}")
        arrays = [a if a.__class__ is np.ndarray else np.asarray(a) for a in args]
        batch = self._checked(arrays, out)
        dtype = _SINGLE if all(a.dtype.kind == "f" and a.itemsize <= 4 for a in arrays) else _DOUBLE
        if self.execution != "traced":
            return self._by_rows(arrays, batch, dtype, out, threads)
        if not batch and dtype is _DOUBLE and out is None and entry.usable():
            return self._entry(*map(_plain, arrays))
        ufunc = self._ufunc(dtype)
        parts = 1 if threads == 1 else self._shares(math.prod(batch), threads)
        if parts == 1 or (out is not None and any(np.may_share_memory(out, a) for a in arrays)):
            return ufunc(*arrays) if out is None else ufunc(*arrays, out=out)
        return self._threaded(ufunc, arrays, batch, dtype, out, parts)

    def _shares(self, states: int, threads: int | None) -> int:
        """Threads that share a batch."""
        o = self.operations
        work = states * (o.flops + 20 * (o.div + o.sqrt + o.trig))
        return max(1, min(processors() if threads is None else threads, work // THREAD_GRAIN, states))

    def _threaded(
        self, ufunc: np.ufunc, arrays: list[Array], batch: tuple[int, ...], dtype: np.dtype[Any], out: Any, parts: int
    ) -> Array:
        """Cut the longest batch axis; its pieces do not overlap, so neither do the threads' writes."""
        inputs, core = self.program.inputs, self.program.output.shape
        result = np.empty(batch + core, dtype) if out is None else out
        axis = max(range(len(batch)), key=lambda k: batch[k])
        shapes = [batch + p.shape for p in inputs]
        full = [a if a.shape == s else np.broadcast_to(a, s) for a, s in zip(arrays, shapes, strict=True)]

        def run(start: int, stop: int) -> None:
            piece = (slice(None),) * axis + (slice(start, stop),)
            ufunc(*(a[piece] for a in full), out=result[piece])

        share_out(run, batch[axis], parts, PIECE)
        return result

    def _by_rows(self, arrays: list[Array], batch: Any, dtype: np.dtype[Any], out: Any, threads: int | None) -> Any:
        """Executions that take arrays of shape (states, *core)."""
        core = self.program.output.shape
        rows = [
            np.broadcast_to(a, batch + p.shape).reshape(-1, *p.shape).astype(np.float64, copy=False)
            for a, p in zip(arrays, self.program.inputs, strict=True)
        ]
        if self.execution == "interpreted":
            result = self.program.rows(*rows)
        else:
            shape = (len(rows[0]), *core)
            straight = out is not None and out.dtype == _DOUBLE and out.flags.c_contiguous
            straight = straight and not any(np.may_share_memory(out, r) for r in rows)
            result = out.reshape(shape) if straight else np.empty(shape)
            self._rolled_rows(rows, result, 1 if threads == 1 else threads or processors())
            if straight:
                return out
        shaped = result.reshape(batch + core).astype(dtype, copy=False)
        if out is None:
            return shaped if batch + core else shaped[()]
        np.copyto(out, shaped, casting="same_kind")
        return out

    def _rolled_rows(self, rows: list[Array], result: Array, threads: int) -> None:
        run = self._rolled
        if self.program.part is not None and len(rows[0]) < threads and result[0].size >= COLUMN_GRAIN:
            shares = self._column_shares(threads)

            def run_shares(start: int, stop: int) -> None:
                for share in shares[start:stop]:
                    share(rows, result)

            share_out(run_shares, len(shares), len(shares))
            return
        share_out(lambda i, j: run([a[i:j] for a in rows], result[i:j]), len(result), threads)

    # compiling it

    @cached_property
    def _facts(self) -> dict[str, Any]:
        """What is known of the trace without making it: counts, or that it is too large."""
        name = cache.key("facts", self.program.identity(), NODE_BUDGET)
        found = cache.read(name)
        if found is not None:
            return found[0]
        try:
            facts: dict[str, Any] = {"operations": count(self._trace)}
        except BudgetExceeded:
            facts = {"too large": True}
        cache.write(name, facts, b"")
        return facts

    @cached_property
    def _trace(self) -> Trace:
        budget = None if self._asked == "traced" else NODE_BUDGET
        return trace(self.program.flat, [a.size for a in self.program.inputs], budget)

    @cached_property
    def _entry(self) -> Any:
        """The built-in function for one float64 state.

        Python looks for `__call__` in an object's class: from here on this object is the only one of its own class, whose
        `__call__` is the built-in function itself.
        """
        address, table, _ = self._single
        general = CompiledFunction.__call__.__get__(self)
        made = entry.make_entry(self.name, address, table, general)
        self.__class__ = type("CompiledFunction", (CompiledFunction,), {"__call__": made, "__module__": __name__})
        return made

    @cached_property
    def _single(self) -> tuple[int, int, int]:
        """Addresses of what computes one float64 state: the entry, its table, and the bare function."""
        h = host()
        code = self._object("entry", lambda: entry.emit_entry(self._trace, self.program.shapes, h.lanes("double"), h.fma))
        at, table, direct = load_object(code, "entry", "table", "direct")
        return at, table, direct

    @property
    def address(self) -> int | None:
        """Of the machine code `void f(double **arguments)` for one state, the result last, for callers that are compiled
        too (Numba, C through ctypes); they may drop the GIL. None for a function that is not traced."""
        return self._single[2] if self.execution == "traced" else None

    @cached_property
    def _rolled(self) -> Callable[[list[Array], Array], None]:
        """The kernel on rows, by Numba."""
        try:
            from .backends.rolled import rolled_kernel
        except ImportError:
            reason = "was asked for" if self._asked == "rolled" else "is needed for a robot of this size"
            raise ImportError(
                f"{self.name}: the rolled execution {reason}, and it needs Numba: pip install 'featherweight[rolled]'"
            ) from None
        return rolled_kernel(self.program)

    def _column_shares(self, threads: int) -> list[Callable[[list[Array], Array], None]]:
        """Kernels for parts of the columns, one a thread."""
        from .backends.rolled import rolled_kernel

        if threads not in self._shares_of_columns:
            self._shares_of_columns[threads] = [rolled_kernel(p) for p in self.program.shares(threads)]
        return self._shares_of_columns[threads]

    def _ufunc(self, dtype: np.dtype[Any]) -> np.ufunc:
        """The gufunc for batches."""
        precision = "float" if dtype == _SINGLE else "double"
        ufunc = self._ufuncs.get(precision)
        if ufunc is None:
            h = host()
            shapes, lanes = self.program.shapes, h.lanes(precision)
            code = self._object(precision, lambda: emit_loop(self._trace, shapes, precision, lanes, h.fma))
            [address] = load_object(code, "loop")
            ufunc = self._ufuncs[precision] = make_gufunc(self.name, address, shapes, dtype)
        return ufunc

    def _object(self, what: str, ir: Callable[[], str]) -> bytes:
        """Object code from the cache, or compiled and put there."""
        name = cache.key("object", self.program.identity(), host(), what)
        found = cache.read(name)
        if found is not None:
            return found[1]
        code = compile_object(ir())
        cache.write(name, {}, code)
        return code

    # what may be wrong

    def _bound(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Positional and named arguments in order."""
        names = [a.name for a in self.program.inputs]
        missing = names[len(args) :]
        if len(args) > len(names) or set(missing) != set(named):
            given = [*names[: len(args)], *named] if len(args) <= len(names) else f"{len(args)} arguments"
            raise TypeError(f"{self._call_text()} takes {', '.join(names)}; got {given}")
        return (*args, *(named[n] for n in missing))

    def _call_text(self) -> str:
        return f"{self.name}({', '.join(a.name for a in self.program.inputs)})"

    def _checked(self, arrays: list[Array], out: Any) -> tuple[int, ...]:
        """The batch axes; raises an error that names the argument at fault, if one is."""
        batch: tuple[int, ...] | None = None
        for a, (name, core) in zip(arrays, self.program.inputs, strict=True):
            if a.dtype is not _DOUBLE and a.dtype.kind not in "fiub":
                raise TypeError(f"{self.name}: {name} must hold real numbers; got dtype {a.dtype}")
            axes = a.ndim - len(core)
            if axes < 0 or a.shape[axes:] != core:
                expected = ", ".join(["...", *map(str, core)])
                raise ValueError(f"{self.name}: {name} must have shape ({expected}); got {a.shape}")
            if batch is None:
                batch = a.shape[:axes]
            elif batch != a.shape[:axes]:
                batch = self._broadcast(arrays, batch, a.shape[:axes])
        assert batch is not None
        expected_out = batch + self.program.output.shape
        if out is not None and (not isinstance(out, np.ndarray) or out.shape != expected_out):
            got = out.shape if isinstance(out, np.ndarray) else type(out).__name__
            raise ValueError(f"{self.name}: out must be an array of shape {expected_out}; got {got}")
        return batch

    def _broadcast(self, arrays: list[Array], a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        try:
            return np.broadcast_shapes(a, b)
        except ValueError:
            shapes = ", ".join(f"{p.name} {x.shape}" for x, p in zip(arrays, self.program.inputs, strict=True))
            raise ValueError(f"{self.name}: batch axes do not broadcast: {shapes}") from None


DIVISION = 8  # multiplications that a division or a root takes the time of


def cheapest(candidates: dict[str, CompiledFunction]) -> CompiledFunction:
    """The candidate with the fewest operations; it answers for the others where a call insists on one of them.

    Divisions and roots count `DIVISION` times; sines and cosines, which are the same in all, not at all. Candidates whose
    trace goes past the node budget are out, unless all are, or loops were asked for: then the first is taken.
    """

    def cost(f: CompiledFunction) -> int:
        o = f.operations
        return o.flops + DIVISION * (o.div + o.sqrt)

    countable = {name: f for name, f in candidates.items() if f._asked != "rolled" and not f.too_large}
    costs = {name: cost(f) for name, f in countable.items()}
    chosen = candidates[min(costs, key=costs.__getitem__) if costs else next(iter(candidates))]
    for other, f in candidates.items():
        f.algorithm = other
    chosen._candidates = candidates
    return chosen


def _rebuilt(recipes: list[tuple[Program, str, dict[str, Program], str]]) -> CompiledFunction:
    """A function from its pickle."""
    functions = {recipe[3]: CompiledFunction(*recipe) for recipe in recipes}
    return cheapest(functions) if len(functions) > 1 else next(iter(functions.values()))


def _plain(a: Array) -> Array:
    """A copy that the entry takes without fail: it must not come back here."""
    copy = np.empty(a.shape, _DOUBLE)
    copy[...] = a
    return copy
