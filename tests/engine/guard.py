"""Arrays that end, or begin, at inaccessible memory."""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Any

import numpy as np
import pytest

PROT_NONE, PROT_READ, PROT_WRITE = 0, 1, 2


def guarded(values: np.ndarray[Any, Any], at_end: bool = True) -> np.ndarray[Any, Any]:
    """Return a copy of `values` whose last (or first) byte is next to a page without access: one step outside kills the
    process.
    """
    if sys.platform == "win32":
        pytest.skip("needs mprotect")
    libc, page = ctypes.CDLL(None, use_errno=True), mmap.PAGESIZE
    inside = -(-max(1, values.nbytes) // page) * page
    area = mmap.mmap(-1, inside + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    for guard in (start, start + page + inside):
        assert libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), PROT_NONE) == 0
    offset = page + (inside - values.nbytes if at_end else 0)
    array = np.frombuffer(area, values.dtype, values.size, offset).reshape(values.shape)
    array[...] = values
    return array
