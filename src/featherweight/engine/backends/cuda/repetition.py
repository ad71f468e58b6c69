"""What a kernel does that computes many steps of a state, which each leads to the next: programs, and the arrays they share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ...program import Program


class Stage(NamedTuple):
    """A program in a step: its arguments and results are the step's arrays of these names.

    Unless it is `fused`, products and sums are rounded one by one, as NumPy does.
    """

    program: Program
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    fused: bool = True


class StepInput(NamedTuple):
    """An array that is given for each step, and is taken within these bounds; infinite ones where there are none."""

    name: str
    low: tuple[float, ...]
    high: tuple[float, ...]


class ConstantTable(NamedTuple):
    """An array of constants: one row, or one for each round of a step."""

    name: str
    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Repetition:
    """A step from `state` to `state`: the stages `first`, and then those of `again`, so many `rounds`.

    What a round reads before it has written it is of the round before, or of `first`. Raises ValueError for stages that read
    what is not there, and for a name that is written twice.
    """

    name: str
    state: tuple[str, ...]
    inputs: tuple[StepInput, ...]
    tables: tuple[ConstantTable, ...]
    first: tuple[Stage, ...]
    again: tuple[Stage, ...]
    rounds: int = 1

    def __post_init__(self) -> None:
        known = {*self.state, *(x.name for x in self.inputs), *(x.name for x in self.tables)}
        fixed = known - {*self.state}
        for part, reads_alone in ((self.first, True), (self.again, False)):
            written = set(fixed)
            for stage in part:
                self._check(stage, known, written, reads_alone)
                known |= {*stage.writes}
                written |= {*stage.writes}
        if unread := {x.name for x in self.inputs} - {*self.sizes}:
            raise ValueError(f"{self.name}: no stage reads {min(unread)}")
        if any(len(x.rows) not in (1, self.rounds) for x in self.tables):
            raise ValueError(f"{self.name}: a table has one row, or {self.rounds}, one for each round")
        if any(self.sizes[x.name] != len(x.low) or len(x.low) != len(x.high) for x in self.inputs):
            raise ValueError(f"{self.name}: bounds have as many numbers as the input that they are of")

    def _check(self, stage: Stage, known: set[str], written: set[str], reads_alone: bool) -> None:
        name = f"{self.name}: {stage.program.name}"
        if missing := {*stage.reads} - known:
            raise ValueError(f"{name} reads {min(missing)}, which nothing has written")
        if twice := written & {*stage.writes}:
            raise ValueError(f"{name} writes {min(twice)}, which is written already")
        if reads_alone and (same := {*stage.reads} & {*stage.writes}):
            raise ValueError(f"{name} writes {min(same)}, which it reads")

    @property
    def stages(self) -> tuple[Stage, ...]:
        return *self.first, *self.again

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Scalars in each array. Raises ValueError where stages do not agree."""
        sizes: dict[str, int] = {}
        for stage in self.stages:
            for name, shape in zip((*stage.reads, *stage.writes), stage.program.shapes, strict=True):
                size = math.prod(shape)
                if sizes.setdefault(name, size) != size:
                    raise ValueError(f"{self.name}: {name} has {sizes[name]} numbers, and {size} in {stage.program.name}")
        return sizes

    @cached_property
    def carried(self) -> frozenset[str]:
        """What rounds hand on to the next: there are two of each, one that is read and one that is written."""
        written: set[str] = set()
        early: set[str] = set()
        for stage in self.again:
            early |= {*stage.reads} - written
            written |= {*stage.writes}
        return frozenset(early & written)

    @cached_property
    def own(self) -> tuple[str, ...]:
        """The arrays in a thread's own memory."""
        tables = {x.name for x in self.tables}
        return tuple(name for name in self.sizes if name not in tables)

    def identity(self) -> tuple[Any, ...]:
        """Everything that code follows from, but for the machine and the engine."""
        stages = [[(s.program.identity(), s.reads, s.writes, s.fused) for s in part] for part in (self.first, self.again)]
        return self.state, self.inputs, self.tables, stages, self.rounds


def numbers_of(x: Iterable[Any]) -> tuple[float, ...]:
    """As bounds and tables have them."""
    return tuple(map(float, x))


def written_before(stages: Sequence[Stage], k: int) -> frozenset[str]:
    """What the stages before the k-th have written."""
    return frozenset(name for stage in stages[:k] for name in stage.writes)
