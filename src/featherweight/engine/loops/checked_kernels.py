"""Checked kernels: with FEATHERWEIGHT_CHECKED=1 each index, range, length and conversion is checked.

The first violation ends the kernel and its callers, without further effects, and Python raises an exception with the file, the
line and the values. A kernel writes the kind of violation, the line number and the values to a record.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Sequence

from .views import LANES

VARIABLE = "FEATHERWEIGHT_CHECKED"
RECORD_WORDS = 5
INDEX, RANGE, SHAPE, COPY, CONVERSION, DIVISION, LENGTH = range(1, 8)  # kinds of violations
Record = ctypes.c_int64 * RECORD_WORDS

MESSAGES: dict[int, tuple[type[Exception], Callable[..., str]]] = {
    INDEX: (IndexError, lambda k, n, _: f"index {k} of {n}"),
    RANGE: (IndexError, lambda a, b, n: f"the range {a}:{b} of {n}"),
    SHAPE: (ValueError, lambda m, k, n: f"{n} numbers as a matrix of {m} rows and {k} columns"),
    COPY: (ValueError, lambda n, m, _: f"an axis of length {n} written to one of length {m}"),
    CONVERSION: (ValueError, lambda x, *_: f"{struct.unpack('<d', struct.pack('<q', x))[0]} as a whole number"),
    DIVISION: (ValueError, lambda a, *_: f"{a} divided by zero"),
    LENGTH: (ValueError, lambda n, *_: f"a length of {n}, which is not a multiple of {LANES}"),
}  # fmt: skip


def is_checked() -> bool:
    """Return whether kernels compiled from now on are checked."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def raise_violation(record: Sequence[int], places: Sequence[tuple[str, int]]) -> None:
    """Raise the exception of a record, if it contains a violation."""
    kind, where, *values = record
    if kind:
        exception, words = MESSAGES[kind]
        file, line = places[where]
        raise exception(f"{file}:{line}: {words(*values)}")
