"""A small function to compile, and its expected results."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import Input, KernelProgram, Output
from featherweight.spatial import sincos


def swing(length: float, x: Any, y: Any, out: Any) -> None:
    """Write results by most constructs of kernels; x and y have as many elements as out."""
    for i in range(len(out)):
        s, c = sincos(x[i])
        out[i] = length * s / (2.0 + c) - y[i] * x[i - 1]


def expected(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    result: np.ndarray[Any, Any] = 0.3 * np.sin(x) / (2.0 + np.cos(x)) - y * np.roll(x, 1, axis=-1)
    return result


def swinging(n: int, execution: str = "traced") -> CompiledFunction:
    arguments = (Input("x", (n,)), Input("y", (n,)))
    return CompiledFunction(KernelProgram("swing", swing, (0.3,), arguments, (Output("out", (n,)),)), execution)


def several(x: Any, s: Any, A: Any, load: Any, results: Any) -> None:
    """Compute results of all ranks up to two from arguments of all ranks up to two, one of them optional."""
    total, y, B = results
    t = 0.0
    for i in range(3):
        sine, cosine = sincos(x[i])
        y[i] = sine * s + load[i]
        t = t + cosine * s
        for j in range(2):
            B[i][j] = A[j][i] * x[i] + s / 3.0
    total[0] = t


SEVERAL = KernelProgram(
    "several", several, (), (Input("x", (3,)), Input("s", ()), Input("A", (2, 3)), Input("load", (3,), optional=True)),
    (Output("total", ()), Output("y", (3,)), Output("B", (3, 2))),
)  # fmt: skip


def arguments(batch: tuple[int, ...] = (), dtype: Any = np.float64) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(1)
    shapes = ((3,), (), (2, 3))
    x, s, A = (rng.standard_normal(batch + shape).astype(dtype) for shape in shapes)
    return x, s, A


def outs(batch: tuple[int, ...] = (), dtype: Any = np.float64) -> tuple[Any, ...]:
    return tuple(np.full(batch + shape, -99, dtype) for shape in ((), (3,), (3, 2)))


def assert_same(results: Any, wanted: Any) -> None:
    for a, b in zip(results, wanted, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)
