"""What a function is, so that code made of it can be told from code made of another: a hash of its call graph.

A kernel's name says nothing of its content, nor does its file: what it calls may lie in other files, or in none. So the
bytecode and constants of a kernel are hashed, and those of all that their names lead to: functions, classes and their methods,
modules' members, numbers. What comes with Python, NumPy and other packages' compiled code counts by name only. Line numbers
and file names do not count, nor does what is on disk: it is the code that is loaded which is hashed.

Tables of functions are not followed: they may be filled as modules are loaded. Where a kernel finds functions in one for
constants of a class, that class says which, by a static method `code`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any


def digest(kernel: Callable[..., Any], constants: tuple[Any, ...] = ()) -> str:
    """Hash of a function with all that it calls, and of the classes that its constants are of."""
    classes = sorted({c for x in constants for c in _classes(x)}, key=lambda c: (c.__module__, c.__qualname__))
    tables = [f for c in classes if hasattr(c, "code") for f in c.code()]
    return _digest(kernel, (*classes, *tables))


@functools.lru_cache(maxsize=4096)
def _digest(kernel: Callable[..., Any], more: tuple[Any, ...]) -> str:
    texts: dict[int, str] = {}
    waiting: list[Any] = [kernel, *more]
    ordered: list[str] = []
    while waiting:
        thing = waiting.pop()
        if id(thing) in texts:
            continue
        text, further = _described(thing)
        texts[id(thing)] = text
        ordered.append(text)
        waiting += reversed(further)
    return hashlib.sha256("\n".join(ordered).encode()).hexdigest()


def _classes(constant: Any) -> Iterator[type]:
    """The classes of named tuples inside a constant."""
    if isinstance(constant, tuple):
        if hasattr(constant, "_fields"):
            yield type(constant)
        for x in constant[:64]:  # long tuples are numbers
            yield from _classes(x)


def _described(thing: Any) -> tuple[str, list[Any]]:
    """A function or class in words, and what its names lead to."""
    if isinstance(thing, type):
        members = sorted(vars(thing).items())
        methods = [getattr(m, "__func__", m) for _, m in members]
        followed = [m for m in methods if isinstance(m, FunctionType) and m.__module__ == thing.__module__]
        return f"class {thing.__module__}.{thing.__qualname__} {getattr(thing, '_fields', ())}", followed
    if not isinstance(thing, FunctionType):
        return f"{type(thing).__qualname__} {getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', thing)}", []
    text = f"function {_code(thing.__code__)} {thing.__defaults__!r}"
    further: list[Any] = []
    for name in sorted(_names(thing.__code__)):
        if name in thing.__globals__:
            text += f"\n{name} = {_value(thing.__globals__[name], _names(thing.__code__), further)}"
    for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # of a name that has no value yet
            text += f"\n{name} = {_value(cell.cell_contents, set(), further)}"
    for attached in vars(thing).values():  # a stand-in for one of the executions
        _value(attached, set(), further)
    return text, further


def _value(x: Any, names: set[str], further: list[Any]) -> str:
    """What a global name stands for, in words; functions and classes of Python code go to `further`."""
    if isinstance(x, ModuleType):
        members = [(n, getattr(x, n)) for n in sorted(names) if hasattr(x, n)] if _followed(x.__name__) else []
        return f"module {x.__name__} " + "; ".join(f"{n} {_value(m, set(), further)}" for n, m in members)
    if isinstance(x, (FunctionType, type)):
        if _followed(x.__module__):
            further.append(x)
        return f"{x.__module__}.{x.__qualname__}"
    if isinstance(x, (tuple, list)):
        if hasattr(x, "_fields"):
            further.append(type(x))
        return f"{type(x).__name__} [{', '.join(_value(y, set(), further) for y in x)}]"
    if isinstance(x, dict) and all(isinstance(y, (int, float, str, tuple)) for y in (*x, *x.values())):
        return f"dict {[(_value(k, set(), further), _value(y, set(), further)) for k, y in x.items()]}"
    if isinstance(x, (int, float, str, bytes, type(None))):
        return repr(x)
    return f"{type(x).__module__}.{type(x).__qualname__}"


def _followed(module: str) -> bool:
    """Whether a module's code counts: not that of Python and of packages that come compiled."""
    return module.partition(".")[0] not in {"builtins", "math", "numpy", "typing", "operator", "collections", "abc", "numba"}


def _names(code: CodeType) -> set[str]:
    """The global names and attributes that code uses, that of inner functions included."""
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))


def _code(code: CodeType) -> str:
    """Bytecode and constants, without where they stood."""
    constants = [_code(c) if isinstance(c, CodeType) else _constant(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames} {code.co_freevars} {code.co_flags}"


def _constant(c: Any) -> str:
    return f"frozenset{sorted(map(repr, c))}" if isinstance(c, frozenset) else repr(c)
