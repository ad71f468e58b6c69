"""NumPy's arrays, as back ends take them that compute on this machine's processors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

TYPES = frozenset({np.ndarray, np.float64, np.float32, float, int, bool, list, tuple, type(None)})
"""What is surely no array on a device."""

OVERLAP_WORK = 1000  # steps of NumPy's search for an element that two arrays share: columns of one table share none


class HostArrays:
    """What such back ends have in common."""

    address: int | None = None

    def array(self, x: Any, what: str) -> Array:
        if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
            raise ValueError(f"{what} has masked elements; fill them with numbers")
        try:
            return np.asarray(x)
        except ValueError as error:  # nested lists of unlike lengths
            raise ValueError(f"{what} is not an array of numbers: {error}") from None

    def result(self, x: Any, what: str) -> Array:
        if not isinstance(x, np.ndarray):
            raise ValueError(f"{what} must be an array; got {type(x).__name__}")
        if isinstance(x, np.ma.MaskedArray):
            raise TypeError(f"{what} must be an array without a mask")
        if not x.flags.writeable:
            raise ValueError(f"{what} is read-only")
        return x

    def overlap(self, a: Array, b: Array) -> bool:
        return may_overlap(a, b)

    def entry(self, name: str, result_class: type | None, general: Callable[..., Any]) -> Any:
        return None


def may_overlap(a: Array, b: Array) -> bool:
    """Whether two arrays share an element, as far as that is quickly found."""
    return np.may_share_memory(a, b, OVERLAP_WORK)  # type: ignore[arg-type]
