"""The steps of a straight-line kernel, as a plan lists them and writers express them.

Values have numbers. A node's value has the number of the node, also when it is loaded again. Negations, broadcast scalars and
vectors under construction have larger numbers. A constant is an operand without a number.

Arrays are arguments ("in0"), results ("out0"), the workspace ("ws") and spills ("spill0"). A step is wide if its values are
vectors with a direction in each lane.
"""

from __future__ import annotations

from typing import NamedTuple

Operand = int | float | tuple[float, ...]
"""The number of a value; or a constant, in all lanes if the step is wide; or a constant for each lane."""


class LoadStep(NamedTuple):
    """Read a value from memory; `again` means that the same part had it before."""

    value: int
    array: str
    element: int
    again: bool
    wide: bool


class StoreStep(NamedTuple):
    """Write a value to memory."""

    array: str
    element: int
    operand: Operand
    wide: bool


class StoreLanesStep(NamedTuple):
    """Write some lanes of a vector to adjacent elements, in this order."""

    array: str
    element: int
    operand: Operand
    lanes: tuple[int, ...]


class OperationStep(NamedTuple):
    """Compute a node by its operation. The operand of a sine or cosine is the angle of an earlier `SincosStep`."""

    value: int
    op: int
    operands: tuple[Operand, ...]
    wide: bool


class FmaStep(NamedTuple):
    """Compute a b + c, rounded once."""

    value: int
    a: Operand
    b: Operand
    c: Operand
    wide: bool


class NegateStep(NamedTuple):
    value: int
    operand: Operand
    wide: bool


class SpreadStep(NamedTuple):
    """Broadcast a scalar to all lanes."""

    value: int
    scalar: Operand


class InsertStep(NamedTuple):
    """Write a scalar to one lane of a vector; None is the zero vector."""

    value: int
    vector: int | None
    scalar: Operand
    lane: int


class SincosStep(NamedTuple):
    """Compute the sine and the cosine of a value."""

    angle: int


class SincosGroupStep(NamedTuple):
    """Write sines and cosines of a vector of angles to the workspace: sines from a slot on, then cosines."""

    angles: Operand
    slot: int


class SpillStep(NamedTuple):
    """Get memory for one value, private to this part."""

    spill: str
    wide: bool


class ClearStep(NamedTuple):
    """Write zeros to the first elements of an array, or to all."""

    array: str
    elements: int


Step = (
    LoadStep | StoreStep | StoreLanesStep | OperationStep | FmaStep | NegateStep | SpreadStep | InsertStep | SincosStep
    | SincosGroupStep | SpillStep | ClearStep
)  # fmt: skip
