"""Hash of a function's call graph, so that cached code is used only for the function from which it was compiled.

The name of a kernel does not determine its content, and neither does its file: the functions that it calls may be in other
files, or in none. The hash therefore covers the bytecode and constants of a kernel and of everything that its names refer to:
functions with their defaults and closures, classes with their bases, methods and attributes, members of modules, numbers and
arrays. Functions and classes of Python and NumPy count by name only. Line numbers and file names do not count, nor do files on
disk: the hash is of the loaded code. It is computed each time, because modules can be reloaded.

Tables of functions (dictionaries and sets) are not followed, because they may be filled while modules are loaded. If kernels
look up functions for constants of a class, that class names the functions by a static method `code`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import operator
import sys
from collections.abc import Callable, Iterator
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

EMPTY = CellType()
MOST_DIGESTS = 64  # kept hashes of a kernel with different classes of constants, which they keep alive
NOT_FOLLOWED = sys.stdlib_module_names | {"numpy", "llvmlite"}


def digest(kernel: Callable[..., Any], constants: tuple[Any, ...] = ()) -> str:
    """Return the hash of a function with all that it calls, and of the classes of its constants.

    A hash is cached while all objects that it depends on are the same.
    """
    classes = sorted({c for x in constants for c in _classes(x)}, key=lambda c: (c.__module__, c.__qualname__))
    looked_up = [f for c in classes if hasattr(c, "code") for f in c.code()]
    others = *looked_up, *reversed(classes)
    made = _digests.setdefault(kernel, {}) if isinstance(kernel, FunctionType) else {}
    if others in made and all(_same(kernel if thing is None else thing, parts) for thing, parts in made[others][0]):
        return made[others][1]
    seen: set[int] = set()
    waiting: list[Any] = [*others, kernel]  # the kernel is first in the hash, because others may call it
    ordered: list[str] = []
    found: list[tuple[Any, tuple[Any, ...]]] = []
    while waiting:
        thing = waiting.pop()
        if id(thing) not in seen:
            seen.add(id(thing))
            parts, text, further = _known_or_described(thing)
            ordered.append(text)
            found.append((None if thing is kernel else thing, parts))
            waiting += reversed(further)
    result = hashlib.sha256("\n".join(ordered).encode()).hexdigest()
    if all(parts for _, parts in found):
        if len(made) >= MOST_DIGESTS:
            made.clear()
        made[others] = (found, result)
    return result


def _classes(constant: object) -> Iterator[type]:
    """Yield the classes of named tuples inside a constant, or the constant itself if it is a class."""
    if isinstance(constant, type):
        yield constant
    if isinstance(constant, tuple):
        if hasattr(constant, "_fields"):
            yield type(constant)
        for x in constant[:64]:  # long tuples contain only numbers
            yield from _classes(x)


UNCHANGING = (
    FunctionType, BuiltinFunctionType, CodeType, type, property, staticmethod, classmethod, bool, int, float, complex, str,
    bytes, type(None), WrapperDescriptorType, MethodDescriptorType, MemberDescriptorType, GetSetDescriptorType,
    type(functools.cache(len)),
    type(NamedTuple("Pair", [("first", int)]).first),  # type: ignore[attr-defined]  # what reads a field
)  # fmt: skip
"""Classes whose objects are immutable, except for functions and classes, which are checked separately."""

NOT_DESCRIBED = {  # attributes of classes that kernels do not run
    "__annotations__", "__annotations_cache__", "__annotate__", "__annotate_func__", "__classdictcell__", "__orig_bases__",
    "_field_defaults",
}  # fmt: skip

_known: WeakKeyDictionary[Any, tuple[tuple[Any, ...], str, list[Any]]] = WeakKeyDictionary()  # with their dependencies
_digests: WeakKeyDictionary[Any, dict[tuple[Any, ...], tuple[list[tuple[Any, tuple[Any, ...]]], str]]] = WeakKeyDictionary()


def _known_or_described(thing: object) -> tuple[tuple[Any, ...], str, list[Any]]:
    """Return the parts of a function, class or object, its description as text, and the objects that its names refer to.

    A description is cached while the objects that it depends on are the same, if these cannot change: robots are many, kernels
    few. Otherwise no parts are returned.
    """
    known = _known.get(thing) if isinstance(thing, FunctionType | type) else None
    if known and _same(thing, known[0]):
        return known
    further: list[Any] = []
    text, parts = _described(thing, further), _parts(thing)
    if not parts or not all(map(_unchanging, parts)):
        return (), text, further
    _known[thing] = (parts, text, further)
    return _known[thing]


def _same(thing: object, parts: tuple[Any, ...]) -> bool:
    """Return whether the parts of a function or class are still these objects."""
    now = _parts(thing)
    return len(now) == len(parts) and all(map(operator.is_, now, parts))


def _parts(thing: object) -> tuple[Any, ...]:
    """Return the objects that the description of a function or a class depends on; none for other things."""
    if isinstance(thing, FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ if cell != EMPTY] if thing.__closure__ else ()
        names, attached = _names(thing.__code__), vars(thing)
        named = [*map(thing.__globals__.get, names), *cells]
        members = [m for x in named if type(x) is ModuleType for m in _members(x, names)]
        return (thing.__code__, thing.__defaults__, thing.__kwdefaults__, *named, *members, *attached, *attached.values())
    if isinstance(thing, type):
        own = {name: x for name, x in vars(thing).items() if name not in NOT_DESCRIBED}
        return (*thing.__bases__, *own, *own.values())
    return ()


def _members(module: ModuleType, names: frozenset[str]) -> Iterator[Any]:
    """Yield the members with these names of a module, and of modules in it."""
    for name in names if _followed(module.__name__) else ():
        x = getattr(module, name, None)
        yield x
        if type(x) is ModuleType:
            yield from _members(x, names - {name})


def _unchanging(x: object) -> bool:
    if isinstance(x, tuple):
        return all(map(_unchanging, x))
    return type(x) in UNCHANGING or isinstance(x, type | ModuleType) or _is_table(x)


def _is_table(x: object) -> bool:
    return isinstance(x, dict | set | frozenset) and any(isinstance(y, FunctionType) for y in x)


def _described(thing: object, further: list[Any]) -> str:
    """Describe a function, class or object as text, and append the objects that its names refer to to `further`."""
    if isinstance(thing, FunctionType):
        return _function(thing, further)
    if not isinstance(thing, type):
        slots = [name for c in type(thing).__mro__ for name in getattr(c, "__slots__", ()) if hasattr(thing, name)]
        state = getattr(thing, "__dict__", {}) | {name: getattr(thing, name) for name in slots}
        return f"object {_value(state, further)}"
    text = f"class {thing.__module__}.{thing.__qualname__} {getattr(thing, '_fields', ())}"
    for base in thing.__bases__:
        text += f"\n{_value(base, further)}"
    for name, member in sorted(vars(thing).items()):
        methods = [getattr(member, x, None) for x in ("__func__", "fget", "fset", "func")]
        methods = [m for m in (member, *methods) if isinstance(m, FunctionType)]
        if name not in NOT_DESCRIBED and (methods or not name.startswith("__")):
            text += f"\n{name} = {_value(methods or member, further)}"
    return text


def _function(f: FunctionType, further: list[Any]) -> str:
    names = _names(f.__code__)
    text = f"function {_code(f.__code__)} {_value(f.__defaults__, further)} {_value(f.__kwdefaults__, further)}"
    for name in sorted(names):
        if name in f.__globals__:
            text += f"\n{name} = {_value(f.__globals__[name], further, names)}"
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # the name has no value yet
            text += f"\n{name} = {_value(cell.cell_contents, further, names)}"
    for name, attached in sorted(vars(f).items()):  # a replacement for one of the executions
        text += f"\n{name} = {_value(attached, further)}"
    return text


def _value(x: object, further: list[Any], names: frozenset[str] = frozenset()) -> str:
    """Describe a value as text; append functions and classes of Python code, and their objects, to `further`."""
    if isinstance(x, ModuleType):
        members = [(n, getattr(x, n)) for n in sorted(names) if hasattr(x, n)] if _followed(x.__name__) else []
        return f"module {x.__name__} " + "; ".join(f"{n} {_value(m, further, names - {n})}" for n, m in members)
    if isinstance(x, (FunctionType, type)):
        if _followed(x.__module__):
            further.append(x)
        return f"{x.__module__}.{x.__qualname__}"
    if isinstance(x, (tuple, list)):
        if hasattr(x, "_fields"):
            further.append(type(x))
        return f"{type(x).__name__} [{', '.join(_value(y, further) for y in x)}]"
    if _is_table(x):
        return f"{type(x).__name__} of functions"
    if isinstance(x, dict):
        return f"dict {[(_value(k, further), _value(y, further)) for k, y in x.items()]}"
    if isinstance(x, (set, frozenset)):
        return f"{type(x).__name__} {sorted(_value(y, further) for y in x)}"
    return _object(x, further)


def _object(x: object, further: list[Any]) -> str:
    """Describe a number, a string, an array, a callable, or an object of any other class."""
    named = f"{type(x).__module__}.{type(x).__qualname__}"
    if isinstance(x, np.ndarray):
        return _value(x.tolist(), further) if x.dtype.hasobject else f"{named} {x.dtype} {x.shape} {x.tobytes().hex()}"
    if isinstance(x, MethodType):
        return f"{named} {_value(x.__func__, further)} {_value(x.__self__, further)}"
    if isinstance(x, functools.partial):
        return f"{named} {_value((x.func, x.args, x.keywords), further)}"
    if hasattr(x, "__wrapped__"):  # functools.cache and similar wrappers
        return f"{named} {_value(x.__wrapped__, further)}"
    if _followed(type(x).__module__):
        further += [type(x), x]
        return named
    words = repr(x)
    return named if words.startswith("<") or " at 0x" in words else f"{named} {words}"


@functools.cache
def _followed(module: str | None) -> bool:
    """Return whether a module's code counts; that of Python and of compiled packages does not."""
    return (module or "").partition(".")[0] not in NOT_FOLLOWED


@functools.lru_cache(maxsize=4096)
def _names(code: CodeType) -> frozenset[str]:
    """Return the global names and attributes that code uses, including inner functions."""
    own = (n for n in code.co_names if not n.startswith("@"))  # names with @ come from pytest's rewritten assertions
    return frozenset(own).union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))


@functools.lru_cache(maxsize=4096)
def _code(code: CodeType) -> str:
    """Return bytecode and constants, without source positions."""
    constants = [_constant(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames} {code.co_freevars} {code.co_flags}"


def _constant(c: object) -> str:
    if isinstance(c, CodeType):
        return _code(c)
    return f"frozenset{sorted(map(repr, c))}" if isinstance(c, frozenset) else repr(c)
