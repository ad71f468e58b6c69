"""Detection of arguments that are arrays on a device, and of their library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..host_arrays import TYPES
from .device_array import DeviceArray
from .libraries import NAMED, OTHERS, Library

__all__ = ["DeviceArray", "Library", "library_of", "library_of_class", "on_device"]

_libraries: WeakKeyDictionary[type, Library | None] = WeakKeyDictionary()


def on_device(x: object) -> bool:
    """Return whether an argument is an array on a device."""
    kind = type(x)
    if kind in TYPES:
        return False
    library = library_of_class(kind)
    return library is not None and library.on_device(x)


def library_of_class(kind: type) -> Library | None:
    """Return the library of a class of arrays, if they may be on a device."""
    if kind not in _libraries:
        _libraries[kind] = _find_library(kind)
    return _libraries[kind]


def _find_library(kind: type) -> Library | None:
    if issubclass(kind, (np.ndarray, np.generic, list, tuple, int, float, complex, str, bytes)):
        return None
    for module, attribute, library in NAMED:
        base = getattr(sys.modules.get(module), attribute, None)
        if base is not None and issubclass(kind, base):
            return library
    return OTHERS


def library_of(arrays: Sequence[Any], names: Sequence[str]) -> Library:
    """Return the library of all arrays of a call on a device. `names` are those of the arguments.

    Raises TypeError for arrays of several libraries, and ValueError for arrays on several devices.
    """
    libraries = [library_of_class(type(x)) or OTHERS for x in arrays]
    first = libraries[0]
    for library, name in zip(libraries, names, strict=True):
        if library is not first:
            raise TypeError(
                f"{names[0]} is an array of {first.title} and {name} one of {library.title}; use arrays of one library"
            )
    ordinals = [first.ordinal(x, name) for x, name in zip(arrays, names, strict=True)]
    for ordinal, name in zip(ordinals, names, strict=True):
        if ordinal != ordinals[0]:
            raise ValueError(f"{names[0]} is on CUDA device {ordinals[0]} and {name} on {ordinal}; use arrays on one device")
    return first
