"""Simulation steps in plain Python, and in any compilation of the same source.

The loop receives tables by address. To run in Python, it gets named tuples of the arrays at these addresses.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from featherweight.engine.loops.kernels import CompiledLoop, Layout
from featherweight.simulation import fleet, robot_tables
from featherweight.simulation.fleet_loop import work_on_robots


def record_at(layout: Layout, address: int) -> Any:
    """Return the named tuple of a table at an address; its arrays view that memory."""
    words = (ctypes.c_int64 * layout.words).from_address(address)
    fields: list[Any] = []
    for _, inner, at in layout.fields:
        if isinstance(inner, Layout):
            fields.append(record_at(inner, address + 8 * at))
        elif isinstance(inner, tuple):
            name, axes = inner
            shape = [words[at + 1 + k] for k in range(axes)]
            fields.append(array_at(words[at], np.dtype(name), shape))
        elif inner is None:
            fields.append(None)
        else:
            number = struct.unpack("<d", struct.pack("<q", words[at]))[0] if inner == "float" else words[at]
            fields.append({"bool": bool, "int": int, "float": float}[inner](number))
    return layout.kind(*fields)


def array_at(address: int, dtype: np.dtype[Any], shape: list[int]) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the C-contiguous array at an address."""
    size = int(np.prod(shape)) * dtype.itemsize
    if size == 0:
        return np.zeros(shape, dtype)
    return np.frombuffer(memoryview((ctypes.c_char * size).from_address(address)), dtype).reshape(shape)


class PlainLoop:
    """A function of tables and integers with the interface of `CompiledLoop`, run by Python."""

    def __init__(self, function: Callable[..., int]) -> None:
        self.function, self.calls = function, 0

    def for_layouts(self, *layouts: Layout) -> Callable[..., int]:
        """Return the function of addresses of tables of these layouts, and of the numbers."""

        def run(*words: int) -> int:
            self.calls += 1
            contents = [record_at(layout, address) for layout, address in zip(layouts, words, strict=False)]
            with np.errstate(all="ignore"):  # infinity and NaN without warnings, as in machine code
                return int(self.function(*contents, *words[len(layouts) :]))

        return run


ROUNDED = CompiledLoop(work_on_robots, numbers=3, fused=False)
"""Machine code in which each operation is rounded, as in Python."""

CHECKED = CompiledLoop(work_on_robots, numbers=3)
"""Machine code with a check of each index; first used with FEATHERWEIGHT_CHECKED=1."""


@contextmanager
def steps_by(loop: Any) -> Iterator[None]:
    """Run steps and contact queries of simulations by this loop inside the context, with the contact solver in it."""
    with patch.object(fleet, "WORK_ON_ROBOTS", loop), patch.object(robot_tables, "is_checked", lambda: True):
        yield


@contextmanager
def plain_python() -> Iterator[PlainLoop]:
    """Run steps and contact queries of simulations in plain Python inside the context."""
    loop = PlainLoop(work_on_robots)
    with steps_by(loop):
        yield loop
    assert loop.calls > 0, "nothing ran as plain Python"
