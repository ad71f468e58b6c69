"""The interpreted execution: kernels in plain Python, one state after the other. It is the reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...array_types import Array
from ..program import Output, Program
from ..program_trace import ProgramTrace
from .host_arrays import HostArrays
from .protocol import Batch


def compile(program: Program, traced: ProgramTrace) -> PlainPython:
    """Return an executable without compiling anything."""
    return PlainPython(program)


class PlainPython(HostArrays):
    """An interpreted program. If results and arguments overlap, all results are computed before they are written."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(
        self, arrays: Sequence[Array], batch: Batch, dtype: np.dtype[Any], out: Sequence[Array] | None, threads: int | None
    ) -> Sequence[Any]:
        rows = rows_of(self.program, arrays, batch)
        states = [self._state([a[i].ravel() for a in rows]) for i in range(len(rows[0]))]
        flat = np.array(states, dtype=np.float64).reshape(len(rows[0]), sum(r.size for r in self.program.outputs))
        ends = np.cumsum([r.size for r in self.program.outputs])[:-1]
        return delivered(self.program.outputs, np.split(flat, ends, axis=1), batch, dtype, out)

    def _state(self, inputs: Sequence[Array]) -> list[Any]:
        """Return the results of one state."""
        try:
            return self.program.flat(*(x.tolist() for x in inputs))
        except ZeroDivisionError:  # NumPy's numbers give infinity or NaN instead, as machine code does
            with np.errstate(all="ignore"):
                return self.program.flat(*(list(x) for x in inputs))


def rows_of(program: Program, arrays: Sequence[Array], batch: Batch) -> list[Array]:
    """Return arguments as float64 arrays (states, *core)."""
    return [
        np.broadcast_to(a, batch + p.shape).reshape(math.prod(batch), *p.shape).astype(np.float64, copy=False)
        for a, p in zip(arrays, program.inputs, strict=True)
    ]


def delivered(
    outputs: Sequence[Output], results: Sequence[Array], batch: Batch, dtype: np.dtype[Any], out: Sequence[Array] | None
) -> Sequence[Any]:
    """Return concatenated results of all states as arrays (*batch, *core) of `dtype`, or write them to `out`."""
    with np.errstate(over="ignore"):  # single precision overflows to infinity, as in computations in single precision
        shaped = [r.reshape(batch + output.shape).astype(dtype, copy=False) for r, output in zip(results, outputs, strict=True)]
    if out is None:
        return [r if r.ndim else r[()] for r in shaped]
    for o, r in zip(out, shaped, strict=True):
        np.copyto(o, r, casting="same_kind")
    return out
