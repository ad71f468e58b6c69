"""The plan of a straight-line kernel: the steps that compute a trace, in order, and where values lie meanwhile.

`straight_planner` makes a plan; a writer walks over its parts and spells each step in a language: LLVM IR (`llvm.emit`, also
for threads of devices), C (`exporting.c_source`). A writer decides nothing that changes a bit of the results.

Values have numbers. A node's value has the number of the node, also when it is loaded again; negations, scalars in all lanes
and vectors under construction have numbers beyond those of the nodes. A constant is an operand without a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Operand = int | float | tuple[float, ...]
"""The number of a value; or a constant, in all lanes if the step is wide; or a constant for each lane."""


class LoadStep(NamedTuple):
    """Read a value from memory; `again` says that the same part had it before."""

    value: int
    array: str  # an argument ("in0"), the workspace ("ws"), or a room ("room0")
    index: int
    again: bool
    wide: bool  # here and below: a vector with a direction in each lane


class StoreStep(NamedTuple):
    """Write a value to memory."""

    array: str  # a result ("out0"), the workspace, or a room
    index: int
    operand: Operand
    wide: bool


class StoreLanesStep(NamedTuple):
    """Write some lanes of a vector to adjacent elements, in this order."""

    array: str
    index: int
    operand: Operand
    lanes: tuple[int, ...]


class OperationStep(NamedTuple):
    """Compute a node by its operation. The operand of a sine or cosine is the angle of a `SincosStep` before it."""

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
    """Put a scalar into all lanes."""

    value: int
    scalar: Operand


class InsertStep(NamedTuple):
    """Put a scalar into one lane of a vector; None is the vector of zeros."""

    value: int
    vector: int | None
    scalar: Operand
    lane: int


class SincosStep(NamedTuple):
    """Compute the sine and the cosine of a value."""

    angle: int


class SincosGroupStep(NamedTuple):
    """Compute the sines and cosines of as many angles as a plan has lanes: the sines go to the workspace from `slot` on, the
    cosines behind them."""

    angles: Operand
    slot: int


class RoomStep(NamedTuple):
    """Get memory for one value, an array of the name `room`, that this part has for itself."""

    room: str
    wide: bool


class ClearStep(NamedTuple):
    """Write zeros to the first elements of an array."""

    array: str
    count: int


Step = (
    LoadStep | StoreStep | StoreLanesStep | OperationStep | FmaStep | NegateStep | SpreadStep | InsertStep | SincosStep
    | SincosGroupStep | RoomStep | ClearStep
)  # fmt: skip


class PlanPart(NamedTuple):
    """Steps that become one function. Parts are called in their order; values go from one to others in the workspace."""

    title: str  # "zeros", "turns", a number, or "rest"
    steps: tuple[Step, ...]

    @property
    def numbered(self) -> bool:
        """Whether it is a piece of the trace, and not what comes before or after."""
        return self.title.isdecimal()

    @property
    def rooms(self) -> int:
        return sum(type(s) is RoomStep for s in self.steps)


@dataclass(frozen=True)
class StraightPlan:
    """All parts of a kernel."""

    arguments: int
    results: int  # arrays that it writes
    lanes: int  # of the vectors in it; 1 if there are none
    parts: tuple[PlanPart, ...]
    workspace: int  # scalars that parts hand on; a vector takes as many as it has lanes

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays that each part is given, rooms left out, in order."""
        return (*(f"in{k}" for k in range(self.arguments)), *(f"out{k}" for k in range(self.results)), "ws")

    @property
    def rooms(self) -> int:
        """The most rooms of one part."""
        return max(part.rooms for part in self.parts)

    @property
    def cut(self) -> bool:
        """Whether the trace is more than one part."""
        return sum(part.numbered for part in self.parts) > 1


@dataclass(frozen=True)
class PlanOptions:
    """What a planner may choose."""

    fma: bool  # whether products are fused into sums
    part: int  # nodes of a part
    long: int = 1 << 62  # where there are so many nodes in all,
    part_of_long: int = 0  # nodes of a part
    ordered: bool = True  # whether to fill waits for results with other work; else nodes stay in trace order
    registers: int | None = None  # values that are held at once; others go to memory. None: the compiler decides
    lanes: int = 1  # angles of which sines are computed together
    few_zeros: int = 1 << 62  # results that are zero are written one by one, if there are no more of them
