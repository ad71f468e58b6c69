"""Types of NumPy arrays in annotations, by data type and number of axes.

Type checkers follow the number of axes through `np.zeros((n, 3))`, `.T`, `.copy()` and `.reshape(...)`. Results of indexing,
`@`, `np.stack` and most functions of two arrays have any number of axes for them, and fit every annotation.

`Array` stands for arrays of any type and any number of axes, such as results of functions whose leading axes broadcast. The
compiler of kernels checks arguments against the other types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Tensor = np.ndarray[tuple[int, int, int], np.dtype[np.float64]]
Tensor4 = np.ndarray[tuple[int, int, int, int], np.dtype[np.float64]]
Integers = np.ndarray[tuple[int], np.dtype[np.int64]]
IntegerMatrix = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Booleans = np.ndarray[tuple[int], np.dtype[np.bool_]]
BooleanMatrix = np.ndarray[tuple[int, int], np.dtype[np.bool_]]

Numbers = Array | Sequence[float] | Sequence[Sequence[float]]
"""A state, or many, of arguments of functions."""

T = TypeVar("T")
SHARED = "shared"
Shared = Annotated[T, SHARED]
"""A field of a robot's records that all robots share: no step writes it, or only one robot at a time uses it."""
