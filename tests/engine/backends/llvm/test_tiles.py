"""Tests of results with elements that are equal for all states: constants are written directly, at any position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import Input, KernelProgram, Output

LENGTHS = (3, 0, 1, 7, 8, 15, 31, 32, 33, 64, 100, 203)  # numbers of zeros between other elements


def gaps(x: Any, y: Any) -> None:
    """Write a row of products and constants, negative zeros among them, between zeros."""
    k = 0
    for i, length in enumerate(LENGTHS):
        for _ in range(length):
            y[k] = 0.0
            k += 1
        y[k] = x[i % 3] * x[1] if i % 2 else (-0.0, 2.5, 1e-300)[i % 3]
        k += 1
    for _ in range(50):
        y[k] = -0.0
        k += 1


SIZE = sum(LENGTHS) + len(LENGTHS) + 50


@pytest.fixture(scope="module")
def function() -> CompiledFunction:
    return CompiledFunction(KernelProgram("gaps", gaps, (), (Input("x", (3,)),), (Output("y", (SIZE,)),)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("states", [1, 7, 8, 16, 40])
def test_constants_are_written_bit_by_bit(function: CompiledFunction[Any], dtype: Any, states: int) -> None:
    """Check signs of zeros too; nothing else is written, in rows or elements with gaps between them."""
    x = np.random.default_rng(states).standard_normal((states, 3)).astype(dtype)
    expected = np.zeros((states, SIZE), dtype)
    for row, y in zip(x, expected, strict=True):
        gaps(row, y)
    for step, stride, offset in ((1, 1, 0), (1, 1, 1), (2, 1, 0), (1, 2, 0)):
        whole = np.full((step * states + 1, stride * SIZE + 3), np.nan, dtype)
        out = whole[: step * states : step, offset : offset + stride * SIZE : stride]
        function(x, out=out)
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(np.signbit(out), np.signbit(expected))
        out[...] = np.nan
        assert np.isnan(whole).all()
