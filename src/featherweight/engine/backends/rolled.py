"""Kernels with their loops kept, jitted by Numba: one compilation serves every model.

Numba is taught what a kernel uses by following the names in its code: functions of the same package become jitable, and
the operators and methods of named tuples become overloads.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import overload, overload_method, register_jitable

from ..program import Program

_OPERATORS = {"__add__": operator.add, "__sub__": operator.sub, "__matmul__": operator.matmul}
_methods: dict[str, dict[type, Callable[..., Any]]] = {}  # name -> class -> jitable
_taught: set[Any] = set()


def rolled_kernel(program: Program) -> Callable[[list[np.ndarray[Any, Any]], np.ndarray[Any, Any]], None]:
    """A function of arrays (states, *core) and of the result, which it fills; it runs without the GIL."""
    kernel = program.kernel
    run = _driver(kernel, len(program.constants), len(program.inputs))
    constants = [_as_arrays(c) for c in program.constants]

    def call(arrays: list[np.ndarray[Any, Any]], result: np.ndarray[Any, Any]) -> None:
        rows = [np.require(a, requirements=("C", "W")) for a in arrays]
        run(*constants, *rows, result.reshape(-1, *program.kernel_output))

    return call


def _as_arrays(constant: Any) -> Any:
    """Nested tuples as arrays, in the named tuple that held them."""
    if hasattr(constant, "_fields"):
        return type(constant)(*(_as_arrays(c) for c in constant))
    return np.array(constant) if isinstance(constant, tuple) else constant


@functools.cache
def _driver(kernel: Callable[..., None], constants: int, inputs: int) -> Callable[..., None]:
    """The kernel over the rows of its arguments, jitted."""
    _teach(kernel)
    fixed = [f"c{k}" for k in range(constants)]
    rows = [f"a{k}" for k in range(inputs)]
    source = (
        f"def run({', '.join([*fixed, *rows, 'out'])}):\n"
        f"    for i in range(len(out)):\n"
        f"        kernel({', '.join([*fixed, *(f'{r}[i]' for r in rows), 'out[i]'])})\n"
    )
    namespace: dict[str, Any] = {"kernel": kernel}
    exec(source, namespace)
    run: Callable[..., None] = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})(namespace["run"])
    return run


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
    table[cls] = register_jitable(forceinline=True)(method)
    _follow(method)
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
