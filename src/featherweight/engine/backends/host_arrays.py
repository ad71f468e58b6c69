"""NumPy arrays for back ends that compute on this machine's processors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...array_types import Array
from ...checks import shown
from ..direct_calls import DirectCall
from .protocol import Watch

TYPES = frozenset({np.ndarray, np.float64, np.float32, float, int, bool, list, tuple, type(None)})
"""Types whose objects are never arrays on a device."""

HOST = {1: "the processor", 3: "CUDA's pinned memory", 11: "ROCm's pinned memory"}
"""DLPack's numbers of devices whose memory this machine's processors can read, and which NumPy accepts."""

OVERLAP_WORK = 1000  # bound of NumPy's search for an element that two arrays share: columns of one table share none


class HostArrays:
    """Common methods of back ends that compute on this machine's processors."""

    address: int | None = None

    def array(self, x: object, what: str) -> Array:
        if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
            raise ValueError(f"{what} has masked elements; fill them with numbers")
        try:
            array = np.asarray(x) if type(x) in TYPES or not _offers_dlpack_only(x) else _by_dlpack(x, what)
        except ValueError:
            raise ValueError(f"{what} must be an array of real numbers, with rows of one length; got {shown(x)}") from None
        except Exception as error:  # another library's error, which does not name the argument
            error.add_note(f"It was given as {what}.")
            raise
        if array.ndim == 0 and array.dtype.kind == "O" and not isinstance(x, int):
            raise TypeError(f"{what} must be an array of real numbers, or convertible to one by NumPy; got {shown(x)}")
        return array

    def result(self, x: object, what: str) -> Array:
        if not isinstance(x, np.ndarray):
            raise ValueError(f"{what} must be an array; got {type(x).__name__}")
        if isinstance(x, np.ma.MaskedArray):
            raise TypeError(f"{what} must be an array without a mask")
        if not x.flags.writeable:
            raise ValueError(f"{what} is read-only")
        return x

    def overlap(self, a: Array, b: Array) -> bool:
        return may_overlap(a, b)

    def entry(self, result_class: type | None, general: Callable[..., Any], watch: Watch | None = None) -> DirectCall | None:
        return None


def _offers_dlpack_only(x: object) -> bool:
    """Return whether an array offers NumPy nothing but DLPack, so that NumPy would treat it as one object."""
    ways = ("__array__", "__array_interface__", "__array_struct__", "__buffer__")
    return hasattr(x, "__dlpack__") and not any(hasattr(x, way) for way in ways)


def _by_dlpack(x: Any, what: str) -> Array:
    kind, number = x.__dlpack_device__()
    if int(kind) not in HOST:
        raise TypeError(
            f"{what} is on a device (DLPack's kind {int(kind)}, number {number}); copy it to the processor's memory"
        )
    try:
        return np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError) as error:  # elements that NumPy does not support
        raise TypeError(f"{what} cannot be imported by DLPack: {error}") from None


def may_overlap(a: Array, b: Array) -> bool:
    """Return whether two arrays share an element; True if a quick search does not decide."""
    return np.may_share_memory(a, b, OVERLAP_WORK)  # type: ignore[arg-type]
