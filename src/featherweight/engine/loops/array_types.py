"""Types of arrays of compiled functions, by data type and number of axes."""

from __future__ import annotations

from typing import Any

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
