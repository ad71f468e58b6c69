"""What a back end is: it takes a program and its trace, and gives something that runs rows of arrays.

`CompiledFunction` keeps the contract with callers (names, shapes, broadcasting, dtypes, errors); where arrays live and what
computes on them is the back end's.
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
        """Of machine code `int f(void **arguments)` for one state in double precision, the results last; or None.

        It returns 0, or 1 and NaN as results where memory ends.
        """


class Backend(Protocol):
    """A module that offers this."""

    def compile(self, program: Program, traced: Traced) -> Executable:
        """Something that runs the program. What need not be compiled for every call is compiled when it is first called."""
