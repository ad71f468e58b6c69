"""Tests of calls from kernels with loops for many states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from featherweight.engine.loops.kernels import CompiledLoop, Table
from featherweight.engine.loops.prepared_calls import BatchCalls, PythonBatch, batch_calls, call_batch


class Called(NamedTuple):
    """Calls of a kernel."""

    calls: BatchCalls


def call_both(c: Called, begin: int, count: int) -> int:
    """Call two functions."""
    call_batch(c.calls, 0, begin, count)
    call_batch(c.calls, 1, begin + 1, count)
    return 0


CALL_BOTH = CompiledLoop(call_both, 2)


def test_a_kernel_calls_python_functions_until_one_fails() -> None:
    errors: list[BaseException] = []
    seen: list[tuple[str, int, int]] = []

    def first(begin: int, count: int) -> None:
        seen.append(("first", begin, count))

    def second(begin: int, count: int) -> None:
        seen.append(("second", begin, count))
        if count > 4:
            raise KeyboardInterrupt

    calls, _kept = batch_calls([PythonBatch(first, errors), PythonBatch(second, errors)], [[], []])
    table = Table(Called(calls))
    run = CALL_BOTH.for_tables(table)
    for begin, count in ((0, 3), (7, 5), (1, 1)):
        run(table.address, begin, count)
    assert seen == [("first", 0, 3), ("second", 1, 3), ("first", 7, 5), ("second", 8, 5)]
    with pytest.raises(KeyboardInterrupt):
        raise errors[0]


def test_no_functions_have_no_arrays() -> None:
    calls, _ = batch_calls([], [])
    assert calls.words.shape == (0, 5) and len(calls.begins) == 0 and calls.first.dtype == np.int64
