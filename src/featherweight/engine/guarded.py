"""Programs that find out where their results are inaccurate or their arguments invalid, and calls that act upon it.

The first program of a guarded program is straight code without branches, like all traces; it also estimates the loss of
accuracy, the *strain*. Where this is too large, calls compute the state by a second program with branches. Calls of a checked
program raise an error for invalid arguments. Other users of a program (derivatives, exports, devices, bridges to other
libraries) have the first program only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from ..array_types import Array
from ..checks import warn_caller
from .backends.protocol import Executable, Watch
from .execution import Execution
from .program import ComposedProgram, FusedProgram, KernelProgram, Program, WrappedProgram


@dataclass(frozen=True)
class WatchedProgram(WrappedProgram):
    """A program whose calls act upon a number that they compute beside its results; traces have the program alone."""

    program: Program

    @property
    def traceable(self) -> Program:
        return self.program

    @abstractmethod
    def calls(self, asked: str, algorithm: str) -> WatchedCalls:
        """Return the calls of a function with this program."""


@dataclass(frozen=True)
class GuardedProgram(WatchedProgram):
    """A program, and how calls find and mend its inaccurate results."""

    watched: Program  # its last result is the strain; the others are those of the program, or the others and the strain are
    careful: KernelProgram | ComposedProgram  # the program's results but the strain, and then the rank
    limit: float  # greatest strain
    rank: int  # rank in general position
    warning: str
    with_branches: tuple[str, ...]  # names of the parts of the careful program that cannot be traced

    @property
    def rollable(self) -> bool:
        return self.watched.rollable

    def given(self, option: str) -> Program:  # type: ignore[override]
        """Return the program with an optional input added, with its guard if the careful program knows the input."""
        program = self.program.given(option)
        if option not in self.careful.options:
            return program
        watched, careful = self.watched.given(option), self.careful.given(option)
        return replace(self, program=program, watched=watched, careful=careful)

    def in_lanes(self, lanes: int, own: Any = None) -> Any:
        return self.program.in_lanes(lanes, own)

    def calls(self, asked: str, algorithm: str) -> GuardedCalls:
        return GuardedCalls(self, asked, algorithm)


@dataclass(frozen=True)
class CheckedProgram(WatchedProgram):
    """A program that refuses invalid arguments. Derivatives, exports, devices and bridges do not check."""

    error: KernelProgram  # of the same arguments; its result measures how invalid they are
    limit: float  # error from which arguments are refused
    refuse: Callable[..., None]  # takes the function's name and, by name, its arguments as arrays; raises ValueError

    def calls(self, asked: str, algorithm: str) -> CheckedCalls:
        return CheckedCalls(self, asked, algorithm)


class WatchedCalls(ABC):
    """Calls of a watched program."""

    def __init__(self, watched: Program, watch: Watch, asked: str, algorithm: str) -> None:
        self.watched, self.watch, self.asked = Execution(watched, asked, algorithm), watch, asked

    def __call__(
        self,
        args: tuple[Any, ...],
        out: Any = None,
        threads: int | None = None,
        device: str | None = None,
        begin: Callable[[Executable], None] | None = None,
    ) -> tuple[Any, ...]:
        """Return the results and the watched number for the arguments in order."""
        return self.answered(args, self.watched(*args, out=out, threads=threads, device=device, begin=begin))

    @abstractmethod
    def answered(self, args: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the results, after what the watched number requires. Results on devices are returned unchecked."""


class CheckedCalls(WatchedCalls):
    """Calls of a checked program, which raise ValueError for invalid arguments."""

    def __init__(self, program: CheckedProgram, asked: str, algorithm: str) -> None:
        self.program = program
        names = tuple(y.name for y in program.outputs), tuple(y.name for y in program.error.outputs)
        watched = FusedProgram(program.name, (program.program, program.error), names)
        super().__init__(watched, Watch(program.limit, True), asked, algorithm)

    def answered(self, args: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
        error = results[-1]
        if isinstance(error, float | np.floating | np.ndarray) and np.any(error >= self.program.limit):
            arrays = map(np.asarray, args)
            self.program.refuse(self.program.name, **{x.name: a for x, a in zip(self.program.inputs, arrays, strict=True)})
        return results


class GuardedCalls(WatchedCalls):
    """Calls of a guarded program. Strains are infinite where the rank is lower than in general position, with a warning."""

    def __init__(self, program: GuardedProgram, asked: str, algorithm: str) -> None:
        self.program = program
        hidden = len(program.watched.outputs) > len(program.outputs)
        super().__init__(program.watched, Watch(program.limit, hidden), asked, algorithm)

    def answered(self, args: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
        strain = results[-1]
        if isinstance(strain, float | np.floating):
            return self._again(args, results) if strain >= self.program.limit else results
        if isinstance(strain, np.ndarray) and (strain >= self.program.limit).any():
            self._some_again(args, results)
        return results

    def _again(self, args: Sequence[Any], results: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the results of one state, computed in float64 as those of a batch."""
        *better, rank = self._careful([np.asarray(x, dtype=np.float64) for x in args])
        better = [np.asarray(new, dtype=np.asarray(own).dtype)[()] for own, new in zip(results, better, strict=False)]
        strain = results[-1]
        if rank < self.program.rank:
            strain = math.inf
            self._warn(())
        own_class: Any = type(results)
        return cast("tuple[Any, ...]", own_class(*better, strain))

    def _some_again(self, args: Sequence[Any], results: tuple[Any, ...]) -> None:
        """Write the results of some states of a batch, or of one state in given arrays."""
        strain: Array = results[-1]
        where = strain >= self.program.limit
        arrays = [np.asarray(x, dtype=np.float64) for x in args]
        whole = [np.broadcast_to(x, (*where.shape, *a.shape)) for x, a in zip(arrays, self.program.inputs, strict=True)]
        *better, rank = self._careful([x[where] for x in whole])
        for own, new in zip(results, better, strict=False):
            own[where] = new
        lower = rank < self.program.rank
        if lower.any():
            strain[where] = np.where(lower, np.inf, strain[where])
            self._warn(tuple(map(int, np.argwhere(where)[int(np.argmax(lower))])))

    def _careful(self, args: Sequence[Any]) -> list[Any]:
        """Return the results of the careful program, part by part: its parts have branches, or are traced."""
        known = dict(zip((x.name for x in self.program.inputs), args, strict=True))
        for part, run in self._parts:
            made = run(*(known[x.name] for x in part.inputs))
            known |= dict(zip((y.name for y in part.outputs), made if len(part.outputs) > 1 else (made,), strict=True))
            known |= {other: known[name] for name, other in self._also if name in known}
        return [known[y.name] for y in self.program.careful.outputs]

    @cached_property
    def _also(self) -> tuple[tuple[str, str], ...]:
        careful = self.program.careful
        return careful.also if isinstance(careful, ComposedProgram) else ()

    @cached_property
    def _parts(self) -> list[tuple[Program, Execution]]:
        careful = self.program.careful
        parts = careful.parts if isinstance(careful, ComposedProgram) else (careful,)
        return [(part, Execution(part, self._execution_of(part))) for part in parts]

    def _execution_of(self, part: Program) -> str:
        if self.asked == "interpreted":
            return self.asked
        return "rolled" if part.name in self.program.with_branches else "auto"

    def _warn(self, state: tuple[int, ...]) -> None:
        at = f" at state {state}" if state else ""
        warn_caller(f"{self.program.title}{at}: {self.program.warning}", RuntimeWarning)
