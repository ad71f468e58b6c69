"""Many steps in one launch: a `Repetition` as kernels, and a call of them as what runs on arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...program import CoreShape, Input, Output
from ...traced import Traced
from ..llvm.ir import Type
from .code import Candidate, DeviceKernels, Kernels
from .device_code import PRECISIONS
from .driver import Device
from .emit_repetition import THREADS, emit_repetition
from .kernel import ENTRY
from .repetition import Repetition
from .target import NVIDIA


class CallShapes(NamedTuple):
    """Of a call: what `Program` says of its arrays."""

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]

    @property
    def shapes(self) -> tuple[CoreShape, ...]:
        return (*(x.shape for x in self.inputs), *(y.shape for y in self.outputs))


class RepeatedCode(DeviceKernels):
    """A repetition as kernels, in each precision, on each device, compiled at the first launch there and kept on disk."""

    def __init__(self, repetition: Repetition) -> None:
        super().__init__()
        self.repetition = repetition

    @cached_property
    def _traced(self) -> list[Traced]:
        return [Traced(stage.program, bounded=False) for stage in self.repetition.stages]

    def kernels(self, device: Device, precision: str) -> Kernels:
        identity = hashlib.sha256(repr(self.repetition.identity()).encode()).hexdigest()
        candidates = [self._candidate(Type(precision, 1), keeps) for keeps in (True, False)]
        return Kernels(device, ENTRY, candidates, len(candidates), "repeated", identity, precision)

    def _candidate(self, type: Type, keeps: bool) -> Candidate:
        """Registers are left to the assembler, or not."""
        return Candidate(
            lambda: emit_repetition(self.repetition, [t.trace for t in self._traced], type, keeps, NVIDIA), THREADS
        )

    def call(self, given: Sequence[str], steps: int, every: int) -> RepeatedCall:
        """So many steps, of which one state in `every` is a result; `given` are the names of arrays that are arguments."""
        return RepeatedCall(self, tuple(given), steps, every)


class RepeatedCall:
    """A repetition for a number of steps: arguments are arrays of the state, and of inputs (steps, n); what is not given is 0.

    Results are the arrays of the state, (1 + steps // every, n): the first states, and one in `every` after them.
    """

    def __init__(self, code: RepeatedCode, given: tuple[str, ...], steps: int, every: int) -> None:
        self.code, self.kept, self.every = code, steps // every, every
        r = code.repetition
        self._names = [*r.state, *(x.name for x in r.inputs)]
        self._given = [name for name in self._names if name in given]
        shapes = {name: (r.sizes[name],) if name in r.state else (steps, r.sizes[name]) for name in self._names}
        inputs = tuple(Input(name, shapes[name]) for name in self._given)
        self.program = CallShapes(r.name, inputs, tuple(Output(x, (1 + self.kept, r.sizes[x])) for x in r.state))

    def launch(self, device: Device, stream: int, dtype: np.dtype[Any], states: int, rows: Sequence[tuple[int, int]]) -> None:
        """Begin to compute states. Each argument and result has the address of its first row, and elements from row to row."""
        given = dict(zip(self._given, rows, strict=False))
        all_rows = [*(given.get(name, (0, 0)) for name in self._names), *rows[len(self._given) :]]
        words = [states, self.kept, self.every, *(word for row in all_rows for word in row)]
        self.code.kernel(device, PRECISIONS[dtype]).launch(device, stream, states, words)
