"""Numba, as the compiled parts of simulation use it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba
from numba import types
from numba.experimental import structref
from numba.extending import overload_method, register_jitable

F = TypeVar("F", bound=Callable[..., Any])


def jitable(function: F) -> F:
    """A function that compiled ones call, and is compiled as part of them; plain Python otherwise."""
    return register_jitable(function)  # type: ignore[no-any-return]


def rounded_alike(function: F) -> F:
    """As `jitable`, with each operation rounded by itself, so that NumPy has the same bits."""
    return register_jitable(fastmath=False)(function)  # type: ignore[no-any-return]


def compiled(function: F) -> F:
    """The function as machine code that runs without the GIL and is kept on disk, where there is a place for it."""
    options: dict[str, Any] = dict(nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
    try:
        dispatcher: F = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that can be written
        return numba.njit(**options)(function)  # type: ignore[no-any-return]
    # Numba compiles anew if the function's own file has changed; code of the others is part of it too
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = package_digest()
    return dispatcher


@functools.cache
def package_digest() -> str:
    """Hash of every file of this package."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def by_reference(kind: type) -> Any:
    """A class for compiled functions: `Reference(*x)` has the fields of a named tuple x, and its methods without arguments.

    It is passed on as one pointer, where Numba passes on each array of a named tuple by itself, and counts references to it.
    """

    @structref.register
    class ReferenceType(types.StructRef):  # type: ignore[misc]
        def preprocess_fields(self, fields: Any) -> Any:
            return tuple((name, types.unliteral(t)) for name, t in fields)

    class Reference:
        pass

    structref.define_attributes(ReferenceType)
    structref.define_constructor(Reference, ReferenceType, list(kind._fields))  # type: ignore[attr-defined]
    for name, method in vars(kind).items():
        if isinstance(method, FunctionType) and not name.startswith("_"):
            overload_method(ReferenceType, name)(_implementation(method))
    return Reference


def _implementation(method: Any) -> Callable[..., Any]:
    def typed(self):  # type: ignore[no-untyped-def]  # Numba compares its signature with the implementation's
        return method

    return typed
