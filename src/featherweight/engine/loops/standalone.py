"""Kernels that work without Python: their tables, and all that a caller reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Array
from .kernels import CompiledLoop
from .memory_spans import Overlaid

FINITE, POSITIVE, ANY = "finite", "positive", "any"


class Status(NamedTuple):
    """A number that a kernel returns, its name in capital letters, and words for users."""

    number: int
    name: str
    words: str


class Port(NamedTuple):
    """Numbers that a caller gives, or gets: elements of an array of the tables.

    `shape` is that of the caller's array. `picked` has, for each element of the table's array, its flat index there, or -1 for
    none; by default, both have the same elements. Numbers that are not `allowed` are refused.
    """

    name: str
    array: Array
    doc: str = ""
    shape: tuple[int, ...] | None = None
    picked: tuple[int, ...] | None = None
    allowed: str = FINITE

    @property
    def outer(self) -> tuple[int, ...]:
        """Shape of the caller's array."""
        return self.array.shape if self.shape is None else self.shape

    @property
    def whole(self) -> bool:
        """Return whether the numbers are whole numbers or truth values."""
        return self.array.dtype.kind in "ib"

    @property
    def places(self) -> tuple[int, ...]:
        """Flat indices of the caller's array, for each element of the table's array."""
        return tuple(range(self.array.size)) if self.picked is None else self.picked

    @property
    def defaults(self) -> Array:
        """The caller's numbers that the tables have, and zeros elsewhere."""
        made = np.zeros(self.outer, np.int64 if self.whole else np.float64)
        for k, place in enumerate(self.places):
            if place >= 0:
                made.reshape(-1)[place] = self.array.reshape(-1)[k]
        return made


@dataclass(frozen=True)
class StandaloneLoop:
    """A kernel with its tables, whose content is the state after a reset; nothing else may use these tables.

    `numbers` are the kernel's last arguments. The kernel returns the number of a `status`; results are valid for those in
    `valid`. `kept` has further arrays that called functions read or write. `overlaid` has sets of groups of arrays that are
    zero at the begin; the groups of a set share memory. `bounds` are the most iterations of loops, `names` lists of names, and
    `constants` arrays of numbers, for callers.
    """

    doc: str
    loop: CompiledLoop
    tables: tuple[Any, ...]
    numbers: tuple[int, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    status: tuple[Status, ...]
    valid: tuple[int, ...] = (0,)
    kept: Any = ()
    overlaid: Overlaid = ()
    bounds: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)
