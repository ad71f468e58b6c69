"""What the engine compiles: a kernel, the constants it closes over, and the shapes of its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

Shape = tuple[int, ...]

COLUMN_BLOCK = 8  # parts of the columns of a matrix begin with multiples of this


class Argument(NamedTuple):
    """An array argument: its name and its core shape, without batch axes."""

    name: str
    shape: Shape

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Program:
    """`kernel(*constants, *inputs, output)` reads nested sequences of scalars and writes into `output`.

    The kernel is a plain function of a module. Constants are numbers, strings, and (nested, named) tuples of them.
    """

    name: str
    kernel: Callable[..., None]
    constants: tuple[Any, ...]
    inputs: tuple[Argument, ...]
    output: Argument
    doc: str = ""
    written: Shape | None = None  # the output's shape as the kernel writes it, if that has other axes of length one
    part: int | None = None  # which constant says what part of its columns, (first, stop), the kernel writes

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return (*self.inputs, self.output)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return tuple(a.shape for a in self.arguments)

    @property
    def kernel_output(self) -> Shape:
        """The output's shape as the kernel writes it; a number is written to an array of one."""
        return self.written or self.output.shape or (1,)

    def shares(self, count: int) -> list[Program]:
        """Programs that write `count` parts of the columns, each in the time of the others if column k takes k steps."""
        assert self.part is not None
        first, stop = self.constants[self.part]
        ends = [first + round((stop - first) * math.sqrt(k / count) / COLUMN_BLOCK) * COLUMN_BLOCK for k in range(count)]
        ends = sorted({*ends, stop})
        before, after = self.constants[: self.part], self.constants[self.part + 1 :]
        return [replace(self, constants=(*before, pair, *after)) for pair in pairwise(ends)]

    def identity(self) -> tuple[Any, ...]:
        """Everything that the compiled code follows from, but for the machine."""
        return (self.kernel.__module__, self.kernel.__qualname__, self.constants, self.shapes, self.written)

    def flat(self, *inputs: list[Any]) -> list[Any]:
        """The kernel from flat lists of scalars to the flat list of results."""
        output = nested([0.0] * self.output.size, self.kernel_output)
        arrays = [nested(list(x), a.shape) for x, a in zip(inputs, self.inputs, strict=True)]
        self.kernel(*self.constants, *arrays, output)
        return flattened(output)

    def rows(self, *arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The kernel in plain Python, on arrays of shape (batch, *core)."""
        batch = len(arrays[0])
        results = [self.flat(*([float(x) for x in a[i].ravel()] for a in arrays)) for i in range(batch)]
        return np.array(results, dtype=np.float64).reshape(batch, *self.output.shape)


def nested(flat: list[Any], shape: Shape) -> Any:
    """A flat list as nested lists of `shape`."""
    if not shape:
        return flat[0]
    if len(shape) == 1:
        return flat
    step = math.prod(shape[1:])
    return [nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def flattened(x: Any) -> list[Any]:
    """The scalars of nested lists."""
    if not isinstance(x, list):
        return [x]
    return [y for item in x for y in flattened(item)]
