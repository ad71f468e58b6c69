"""Kernels with their loops kept, jitted by Numba: one compilation serves every model.

Numba is taught what a kernel uses by following the names in its code: functions of the same package become jitable, and
the operators and methods of named tuples become overloads.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import overload, overload_method, register_jitable

from ..derivative_program import OneInLanes
from ..program import ComposedProgram, FusedProgram, KernelProgram, Program
from ..threads import processors, share_out
from ..traced import Traced
from ..waiting import told
from .host_arrays import Array, HostArrays
from .interpreted import delivered, rows_of

_OPERATORS = {"__add__": operator.add, "__sub__": operator.sub, "__matmul__": operator.matmul}
_methods: dict[str, dict[type, Callable[..., Any]]] = {}  # name -> class -> jitable
_taught: set[Any] = set()


COLUMN_GRAIN = 200_000  # entries of one matrix that are worth more than one thread


def compile(program: Program, traced: Traced) -> RolledLoops:
    """One compilation a kernel, whatever the model, at the first call."""
    return RolledLoops(program)


class RolledLoops(HostArrays):
    """The kernels of a program on rows of arrays, which threads share."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._compiled = False  # by Numba, at the first call
        self._shares: dict[int, list[Callable[..., None]]] = {}  # of columns, one a thread

    @cached_property
    def _run(self) -> Callable[[Sequence[Array], Sequence[Array]], None]:
        return rolled_program(self.program)

    def run(
        self, arrays: Sequence[Array], batch: tuple[int, ...], dtype: Any, out: Sequence[Array] | None, threads: int | None
    ) -> Sequence[Any]:
        if not self._compiled:
            with told(self.program.title):
                self._compiled = True
                return self.run(arrays, batch, dtype, out, threads)
        rows = rows_of(self.program, arrays, batch)
        shapes = [(len(rows[0]), *r.shape) for r in self.program.outputs]
        straight = out is not None and all(o.dtype == dtype == np.float64 and o.flags.c_contiguous for o in out)
        straight = straight and not any(np.may_share_memory(o, r) for o in out or () for r in rows)
        if straight and out is not None:
            results = [o.reshape(shape) for o, shape in zip(out, shapes, strict=True)]
        else:
            results = [np.empty(shape) for shape in shapes]
        self._fill(rows, results, 1 if threads == 1 else threads or processors())
        if straight and out is not None:
            return out
        return delivered(self.program.outputs, results, batch, dtype, out)

    def _fill(self, rows: list[Array], results: list[Array], threads: int) -> None:
        states, kernels = len(rows[0]), self.program.kernels
        if (
            len(kernels) == 1
            and kernels[0].part is not None
            and states < threads
            and kernels[0].results[0].size >= COLUMN_GRAIN
        ):
            if threads not in self._shares:
                self._shares[threads] = [rolled_program(p) for p in kernels[0].shares(threads)]
            shares = self._shares[threads]

            def run_shares(start: int, stop: int) -> None:
                for share in shares[start:stop]:
                    share(rows, results)

            share_out(run_shares, len(shares), len(shares))
            return
        run = self._run
        share_out(lambda i, j: run([a[i:j] for a in rows], [r[i:j] for r in results]), states, threads)


def rolled_program(program: Program) -> Callable[[Sequence[Array], Sequence[Array]], None]:
    """A function of arrays (states, *core) and of the results, which it fills; it runs without the GIL."""
    if isinstance(program, FusedProgram):
        return _one_after_the_other(program)
    if isinstance(program, ComposedProgram):
        return _handed_on(program)
    if isinstance(program, OneInLanes):
        return rolled_program(program.program)
    assert isinstance(program, KernelProgram)
    absent = tuple(k for k, a in enumerate(program.arguments) if not program.takes(a))
    run = _driver(program.kernel, len(program.constants), len(program.arguments), len(program.results), absent)
    constants = [_as_arrays(c) for c in program.constants]
    for constant in constants:
        _teach_constant(constant)
    zeros = {k: np.zeros((1, *program.arguments[k].shape)) for k in absent}

    def call(arrays: Sequence[Array], results: Sequence[Array]) -> None:
        given = iter(arrays)
        rows = [
            zeros[k] if k in zeros else np.require(next(given), requirements=("C", "W")) for k in range(len(program.arguments))
        ]
        run(*constants, *rows, *(r.reshape(len(r), *o.in_kernel) for r, o in zip(results, program.results, strict=True)))

    return call


def _one_after_the_other(program: FusedProgram) -> Callable[[Sequence[Array], Sequence[Array]], None]:
    """The parts of a fused program, which share nothing in this execution."""
    parts = [(rolled_program(p), [a.name for a in p.inputs], len(p.outputs)) for p in program.parts]

    def call(arrays: Sequence[Array], results: Sequence[Array]) -> None:
        by_name = {a.name: x for a, x in zip(program.inputs, arrays, strict=True)}
        begin = 0
        for part, names, count in parts:
            part([by_name[name] for name in names], results[begin : begin + count])
            begin += count

    return call


def _handed_on(program: ComposedProgram) -> Callable[[Sequence[Array], Sequence[Array]], None]:
    """The parts of a composed program, with arrays for what they hand on."""
    parts = [(rolled_program(p), [a.name for a in p.inputs], p.outputs) for p in program.parts]

    def call(arrays: Sequence[Array], results: Sequence[Array]) -> None:
        by_name = {a.name: x for a, x in zip(program.inputs, arrays, strict=True)}
        final = dict(zip(program.results, results, strict=True))
        for part, names, outputs in parts:
            made = {y.name: final.get(y.name, np.empty((len(arrays[0]), *y.shape))) for y in outputs}
            part([by_name[name] for name in names], list(made.values()))
            by_name |= made
            by_name |= {other: by_name[name] for name, other in program.also if name in by_name}

    return call


def _as_arrays(constant: Any) -> Any:
    """Nested tuples as arrays, in the named tuple that held them."""
    if hasattr(constant, "_fields"):
        return type(constant)(*(_as_arrays(c) for c in constant))
    return np.array(constant) if isinstance(constant, tuple) else constant


@functools.cache
def _driver(
    kernel: Callable[..., None], constants: int, arguments: int, results: int, absent: tuple[int, ...]
) -> Callable[..., None]:
    """The kernel over the rows of its arguments, jitted; those that are absent have one row for all."""
    _teach(kernel)
    fixed = [f"c{k}" for k in range(constants)]
    rows, outs = [f"a{k}" for k in range(arguments)], [f"out{k}" for k in range(results)]
    each = [f"a{k}[0]" if k in absent else f"a{k}[i]" for k in range(arguments)]
    result = "out0[i]" if results == 1 else f"({', '.join(f'{o}[i]' for o in outs)})"
    source = (
        f"def run({', '.join([*fixed, *rows, *outs])}):\n"
        f"    for i in range(len(out0)):\n"
        f"        kernel({', '.join([*fixed, *each, result])})\n"
    )
    namespace: dict[str, Any] = {"kernel": kernel}
    exec(source, namespace)
    run: Callable[..., None] = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})(namespace["run"])
    return run


def _teach_constant(constant: Any) -> None:
    """Make the classes of named tuples inside a constant known to Numba: their methods may be called."""
    if hasattr(constant, "_fields"):
        _teach(type(constant))
        for field in constant:
            _teach_constant(field)


def _teach(thing: Any) -> None:
    """Make a function, or the class of a named tuple, known to Numba, and all that it names."""
    if isinstance(thing, FunctionType):
        if thing in _taught:
            return
        _taught.add(thing)
        stand_in = getattr(thing, "rolled", None)  # where one source cannot serve all executions
        if stand_in is None:
            register_jitable(forceinline=True)(thing)
        else:
            overload(thing)(_by_first_argument(thing.__code__.co_argcount, lambda _: register_jitable(stand_in)))
        _follow(stand_in or thing)
    elif isinstance(thing, tuple) and hasattr(thing, "_fields"):
        _teach(type(thing))
    elif isinstance(thing, type) and issubclass(thing, tuple) and thing not in _taught:
        _taught.add(thing)
        for name, method in vars(thing).items():
            if isinstance(method, FunctionType) and (name in (*_OPERATORS, "__rmul__") or not name.startswith("_")):
                _teach_method(thing, name, method)


def _follow(function: FunctionType) -> None:
    """Teach what a function's code names, if it is of this package."""
    package = __name__.partition(".")[0]

    def names(code: CodeType) -> set[str]:
        return set(code.co_names).union(*(names(c) for c in code.co_consts if isinstance(c, CodeType)))

    for name in sorted(names(function.__code__)):
        thing = function.__globals__.get(name)
        module = getattr(thing if isinstance(thing, (FunctionType, type)) else type(thing), "__module__", "")
        if module.startswith(package):
            _teach(thing)


def _teach_method(cls: type, name: str, method: FunctionType) -> None:
    """One overload a name serves all classes: two overloads of one name would hide each other."""
    new = name not in _methods
    table = _methods.setdefault(name, {})
    stand_in = getattr(method, "rolled", method)
    table[cls] = register_jitable(forceinline=stand_in is method)(stand_in)
    _follow(stand_in)
    if not new:
        return

    def pick(t: Any) -> Callable[..., Any] | None:
        return table.get(getattr(t, "instance_class", None))  # type: ignore[arg-type]

    if name == "__rmul__":

        def scaled(s, a):  # type: ignore[no-untyped-def]  # Numba compares its signature with the implementation's
            scale = pick(a)
            if scale is None or not isinstance(s, types.Float):
                return None
            return lambda s, a: scale(a, s)

        overload(operator.mul)(scaled)
        return
    typed = _by_first_argument(method.__code__.co_argcount, pick)
    if name in _OPERATORS:
        overload(_OPERATORS[name])(typed)
    else:
        overload_method(types.BaseNamedTuple, name)(typed)


def _by_first_argument(count: int, pick: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of `count` arguments, as Numba wants it, that calls what `pick` finds for the first one's type."""
    arguments = ", ".join(f"a{k}" for k in range(count))
    namespace: dict[str, Any] = {"pick": pick}
    exec(
        f"def typed({arguments}):\n"
        f"    found = pick(a0)\n"
        f"    return None if found is None else (lambda {arguments}: found({arguments}))\n",
        namespace,
    )
    typed: Callable[..., Any] = namespace["typed"]
    return typed
