"""Interfaces of device code that can be launched for rows of arrays of states, and that describes these arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ...program import CoreShape, Input, Output
from .driver import Device


class Signature(Protocol):
    """The name and the arrays of a function, as in `Program`."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> tuple[Input, ...]: ...

    @property
    def outputs(self) -> tuple[Output, ...]: ...

    @property
    def shapes(self) -> tuple[CoreShape, ...]:
        """Core shapes of inputs and outputs."""


class Launchable(Protocol):
    """Code for devices."""

    @property
    def program(self) -> Signature:
        """Name and arrays of the function that the code computes."""

    def launch(self, device: Device, stream: int, dtype: np.dtype[Any], states: int, rows: Sequence[tuple[int, int]]) -> None:
        """Start to compute states. Each argument and result has the address of its first row, and a row stride in elements."""
