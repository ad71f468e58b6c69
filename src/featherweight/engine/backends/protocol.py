"""Interface of a back end: it compiles a program and its trace to an executable that runs on rows of arrays.

`CompiledFunction` keeps the contract with callers (names, shapes, broadcasting, dtypes, errors). The back end decides where
arrays live and what computes on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..program import Program
from ..traced import Traced

Array = Any  # of the back end: it has shape, ndim and dtype
Batch = tuple[int, ...]


class Executable(Protocol):
    """A program, ready to run."""

    def array(self, x: Any, what: str) -> Array:
        """An argument as an array where this back end computes. Raises TypeError or ValueError, which begin with `what`."""

    def result(self, x: Any, what: str) -> Array:
        """A caller's array for a result; raises likewise where it cannot be written."""

    def overlap(self, a: Array, b: Array) -> bool:
        """Whether two arrays share memory, as far as that is quickly found."""

    def run(
        self, arrays: Sequence[Array], batch: Batch, dtype: Any, out: Sequence[Array] | None, threads: int | None
    ) -> Sequence[Array]:
        """The results, of shape (*batch, *core) each, of arguments that broadcast to that; in `out` where it is given."""

    def entry(self, name: str, result_class: type | None, general: Callable[..., Any]) -> Any:
        """A quicker way to call the function, which hands to `general` what it does not take; None if there is none."""

    @property
    def address(self) -> int | None:
        """Address of machine code `int f(void **arguments)` for one state in double precision, the results last; or None.

        The code returns 0. If it runs out of memory, it returns 1 and the results are NaN.
        """


class Backend(Protocol):
    """A module that offers this."""

    def compile(self, program: Program, traced: Traced) -> Executable:
        """Return an executable for the program. Code that not every call needs is compiled when it is first called."""
