"""A small function to compile, and what it should give."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import Input, KernelProgram, Output
from featherweight.spatial import sincos


def swing(length: float, x: Any, y: Any, out: Any) -> None:
    """A kernel with some of everything; x and y have as many elements as out."""
    for i in range(len(out)):
        s, c = sincos(x[i])
        out[i] = length * s / (2.0 + c) - y[i] * x[i - 1]


def expected(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    result: np.ndarray[Any, Any] = 0.3 * np.sin(x) / (2.0 + np.cos(x)) - y * np.roll(x, 1, axis=-1)
    return result


def swinging(n: int, execution: str = "traced") -> CompiledFunction:
    arguments = (Input("x", (n,)), Input("y", (n,)))
    return CompiledFunction(KernelProgram("swing", swing, (0.3,), arguments, (Output("out", (n,)),)), execution)
