"""Numba, as the compiled parts of simulation use it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The function as machine code that runs without the GIL and is kept on disk, where there is a place for it."""
    options: dict[str, Any] = dict(nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
    try:
        made: F = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that can be written
        return numba.njit(**options)(function)  # type: ignore[no-any-return]
    # Numba compiles anew if the function's own file has changed; code of the others is part of it too
    kept: Any = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if hasattr(kept, "_source_stamp"):
        kept._source_stamp = digest()
    return made


@functools.cache
def digest() -> str:
    """Hash of every file of this package."""
    found = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        found.update(file.read_bytes())
    return found.hexdigest()
