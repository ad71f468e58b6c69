"""Interface of a back end: it compiles a program and its trace to an executable that runs on rows of arrays.

`CompiledFunction` handles names, shapes, broadcasting, dtypes and errors. The back end determines the location of arrays and
the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..direct_calls import DirectCall
from ..program import Program
from ..program_trace import ProgramTrace

Array = Any  # the back end's arrays, with shape, ndim and dtype
Batch = tuple[int, ...]


class Watch(NamedTuple):
    """The greatest strain, the last result, of states that an entry returns; the general call computes the others."""

    limit: float
    hidden: bool  # whether the strain is not returned


class Executable(Protocol):
    """An executable program."""

    def array(self, x: object, what: str) -> Array:
        """Return an argument as an array of this back end. Raises TypeError or ValueError; messages start with `what`."""

    def result(self, x: object, what: str) -> Array:
        """Return a caller's array for a result. Raises as `array` does, also if it cannot be written."""

    def overlap(self, a: Array, b: Array) -> bool:
        """Return whether two arrays share memory; True if a quick search does not decide."""

    def run(
        self, arrays: Sequence[Array], batch: Batch, dtype: np.dtype[Any], out: Sequence[Array] | None, threads: int | None
    ) -> Sequence[Array]:
        """Return the results, of shape (*batch, *core) each, for arguments that broadcast to batch; write to `out` if given."""

    def entry(self, result_class: type | None, general: Callable[..., Any], watch: Watch | None = None) -> DirectCall | None:
        """Return the code of faster calls, which pass calls that it does not support to `general`; None if there is none."""

    @property
    def address(self) -> int | None:
        """Return the address of machine code `int f(void **arguments)` for one state in double precision; or None.

        Results come last in `arguments`. The code returns 0. If it runs out of memory, it returns 1 and the results are NaN.
        """


class Backend(Protocol):
    """Interface of a back end's module."""

    def compile(self, program: Program, traced: ProgramTrace) -> Executable:
        """Return an executable for the program. Code that not every call needs is compiled when it is first called."""
