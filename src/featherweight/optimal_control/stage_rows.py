"""Rows of the terms of one stage as programs, with their first and second derivatives.

If the step of a knot is free, rows of costs are multiplied by its root s, so that their squares are in proportion to the step:
R = s r, with the derivatives s r_x and r, and the second derivatives s r_xx, r_x and 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import knots as kernels
from ..algorithms.inverse_kinematics.task_rows import TaskList, weighted_errors
from ..engine.derivative_program import JacobianProgram, PullbackProgram
from ..engine.differentiation import is_zero
from ..engine.graph import Expression, Graph
from ..engine.program import ComposedProgram, Input, KernelProgram, Output, Program, RenamedProgram, nested
from ..robot.inverse_kinematics.tasks import TargetSlot, task_list
from .spans import ROOT, Span, System
from .terms import PARAMETERS, PLACEMENTS, Added, Picked, Residual, WholeQuantity, for_rows, quantities

A_SLOPES = ("da_dq", "da_dv", "da_dtau")
FORCE_SLOPES = ("df_dq", "df_dv", "df_dtau")
BY_STEP = f"dahead_d{ROOT}", f"dvelocity_d{ROOT}", f"drows_d{ROOT}"


class RowPart(NamedTuple):
    """Rows of one kind: the quantities by which they have derivatives, their program, and the program of derivatives."""

    name: str  # of the rows
    size: int
    by: tuple[str, ...]
    value: Program
    slopes: JacobianProgram
    exact: bool  # whether second derivatives are needed


class StageRows:
    """The rows of the knots of a span, or of the end (None).

    `terms` are those of tasks, whose targets have `slots`, and then others, whose parameters begin at `first` by name. `force`
    is the number of contact forces.
    """

    def __init__(
        self,
        system: System,
        span: Span | None,
        slots: Sequence[TargetSlot],
        terms: Sequence[Added],
        first: Mapping[str, int],
        force: int,
    ) -> None:
        self.system, self.slots, self.terms, self.force = system, slots, terms, force
        self.free = span is not None and span.free
        self.armature = system.armature and not (span and span.impact)
        parts = [self._tasks()] if slots else []
        self.parts = [*parts, *(self._part(k, x, first.get(x.name, 0)) for k, x in enumerate(terms[len(slots) :]))]
        self.size = sum(part.size for part in self.parts)

    # rows

    @cached_property
    def _task_list(self) -> TaskList:
        return task_list(self.system.robot, self.slots)

    def task_rows(self) -> list[int]:
        """Return the number of rows of each task; rows of weight zero are left out."""
        return [sum(w > 0.0 for w in spec.weight) for spec in self._task_list.every] if self.slots else []

    def sizes_of_terms(self) -> list[int]:
        """Return the number of rows of each task, and of each other term."""
        return [*self.task_rows(), *(part.size for part in self.parts[len(self.slots) > 0 :])]

    def _of_rows(self, one: Any) -> tuple[Any, ...]:
        """Return a function of terms for each row."""
        return tuple(y for x, size in zip(self.terms, self.sizes_of_terms(), strict=True) for y in [one(x)] * size)

    @property
    def _scaled(self) -> tuple[bool, ...]:
        """The rows that the root of a free step scales: True for those of costs."""
        return self._of_rows(lambda x: not x.constraint)

    def _tasks(self) -> RowPart:
        """Return the rows of all tasks; their derivatives are the exact ones, including logarithms."""
        robot, sizes, tasks = self.system.robot, self.task_rows(), self.terms[: len(self.slots)]
        inputs = (self.system.q, Input(PARAMETERS, (self.system.parameters,)))
        rows = Output("tasks", (sum(sizes),))
        program = robot.bind(rows.name, weighted_errors, inputs, (rows,), (self._task_list,)).program
        return self._made(program, ("q",), tasks, sizes)

    def _part(self, k: int, added: Added, first: int) -> RowPart:
        """Return the rows of a term whose parameters begin at `first`."""
        n, m, name, term = self.system.robot.nv, len(self.system.drives), f"rows_{k}", added.term
        sizes = {"v": n, "u": m, "tau": n, "a": n, "force": self.force}
        inputs = {"q": self.system.q, **{x: Input(x, (size,)) for x, size in sizes.items()}}
        if isinstance(term, WholeQuantity):
            size = sizes[term.quantity]
            term = Picked(term.name, (term.quantity,), kernels.picked, (tuple(range(size)),), size)
        if self.armature:
            inputs["tau"] = Input(kernels.FELT, (n,))
        by, size, frames, placements = quantities(term), term.size, tuple(term.frames), f"{PLACEMENTS}_{k}"
        given: list[Input] = [inputs[x] for x in by]
        if frames:
            given = [x for x in given if x.name != "q" or (isinstance(term, Residual) and "q" in term.arguments)]
            given.insert(0, Input(placements, (len(frames), 4, 4)))
        if isinstance(term, Residual):
            if term.parameters:
                given.append(Input(PARAMETERS, (self.system.parameters,)))
            names = tuple("tau" if x.name == kernels.FELT else x.name for x in given)
            kernel, constants = of_function(term, first, names, placements if frames else ""), ()
        else:
            kernel, constants = term.kernel, term.constants
        program: Program = KernelProgram(name, kernel, constants, tuple(given), (Output(name, (size,)),))
        if frames:
            placed = self.system.robot.frame_placement(frames).program
            renamed = RenamedProgram(placed, ((placed.outputs[0].name, placements),))
            program = ComposedProgram(name, (renamed, program), (name,))
        return self._made(program, tuple(inputs[y].name for y in by), (added,), (size,))

    def _made(self, program: Program, by: Sequence[str], terms: Sequence[Added], sizes: Sequence[int]) -> RowPart:
        """Return the part for a program of the rows of terms, which have so many rows each."""
        [rows] = program.outputs
        if self.free:  # a cost with a width is the square of another row
            widths = [
                math.inf if x.constraint else for_rows(x.name, "width", x.high, n) for x, n in zip(terms, sizes, strict=True)
            ]
            every = tuple(float(d) for x, n in zip(widths, sizes, strict=True) for d in np.broadcast_to(x, n))
            if min(every, default=math.inf) < math.inf:
                huber = KernelProgram("huber", kernels.huber_rows, (every,), (Input(*rows[:2]),), (rows,))
                program = ComposedProgram(rows.name, (program, huber), (rows.name,))
        by = tuple(x.name for x in program.inputs if x.name in by)
        return RowPart(rows.name, rows.size, by, program, JacobianProgram(program, "", by), any(x.exact for x in terms))

    @property
    def values(self) -> tuple[Program, ...]:
        """Programs of all parts, and one that gathers their rows."""
        sizes, inputs = tuple(part.size for part in self.parts), tuple(Input(part.name, (part.size,)) for part in self.parts)
        gather = KernelProgram("rows", kernels.gathered, (sizes,), inputs, (Output("rows", (self.size,)),))
        rows = Input("rows", (self.size,))
        scaled = KernelProgram("scaled", kernels.scaled_rows, (self._scaled,), (Input(ROOT, ()), rows), gather.outputs)
        return (*(part.value for part in self.parts), gather, *[scaled][: self.free])

    # derivatives

    @cached_property
    def slopes(self) -> tuple[Program, ...]:
        """Programs of J of all rows by (dq, dv, du), or by (dq, dv, step, du)."""
        n, m = self.system.robot.nv, len(self.system.drives)
        by = tuple(part.by for part in self.parts)
        given = [Input(y.name, y.shape) for part in self.parts for y in part.slopes.outputs]
        for name, names, size in (("a", A_SLOPES, n), ("force", FORCE_SLOPES, self.force)):
            if kernels.depends(by, name):
                given += [Input(x, (size, n)) for x in names]
        constants = (by, self.system.drives, n)
        output = Output("own_slopes" if self.system.free else "row_slopes", (self.size, 2 * n + m))
        program = KernelProgram("row_slopes", kernels.row_slopes, constants, tuple(given), (output,))
        programs = (*(part.slopes for part in self.parts), program)
        if not self.system.free:
            return programs
        free = (Input(ROOT, ()), Input(BY_STEP[2], (self.size,))) if self.free else ()
        scaled = self._scaled if self.free else (False,) * self.size
        whole = Output("row_slopes", (self.size, 2 * n + 1 + m))
        arguments = (Input(*output[:2]), *free)
        return *programs, KernelProgram("with_step", kernels.with_column_of_step, (scaled, 2 * n), arguments, (whole,))

    @cached_property
    def second(self) -> tuple[Program, ...]:
        """Programs of the second derivatives of the sum of exact rows, each times its "bend"; nothing without such rows.

        They are derivatives by (dq, dv, du), or by (dq, dv, step, du).
        """
        n, width = self.system.robot.nv, 2 * self.system.robot.nv + len(self.system.drives)
        programs, given, first = list[Program](), list[Input](), 0
        bend = Input("scaled_bend" if self.free else "bend", (self.size,))
        for part in self.parts:
            if part.exact:
                bar, own = Output(f"{part.name}_bar", (part.size,)), tuple(range(first, first + part.size))
                programs.append(KernelProgram(bar.name, kernels.picked, (own,), (bend,), (bar,)))
                bars = tuple(f"{x}_bar" for x in part.by)
                gradient = ComposedProgram("gradient", (PullbackProgram(part.value),), bars)
                second = JacobianProgram(gradient, "", part.by)
                names = [f"{part.name}_{y.name}" for y in second.outputs]
                programs.append(RenamedProgram(second, tuple(zip((y.name for y in second.outputs), names, strict=True))))
                given += [Input(name, y.shape) for name, y in zip(names, second.outputs, strict=True)]
            first += part.size
        if not given:
            return ()
        constants = tuple(part.by for part in self.parts if part.exact), self.system.blocks, self.system.drives, n
        whole = Output("second_derivatives", (width, width))
        programs.append(KernelProgram(whole.name, kernels.second_derivatives, constants, tuple(given), (whole,)))
        if self.free:
            given = [Input(ROOT, ()), Input("bend", (self.size,))]
            programs.insert(
                0, KernelProgram(bend.name, kernels.scaled_rows, (self._scaled,), tuple(given), (Output(*bend[:2]),))
            )
        if self.system.free:
            scaled = self._of_rows(lambda x: self.free and x.exact and not x.constraint)
            given = [Input(*whole[:2]), Input("own_slopes", (self.size, width)), Input("bend", (self.size,))]
            whole = Output(whole.name, (width + 1, width + 1))
            programs.append(KernelProgram(whole.name, kernels.second_with_step, (scaled, 2 * n), tuple(given), (whole,)))
        return tuple(programs)

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of the entries in the lower triangle of the cost's Hessian that may be nonzero.

        Derivatives of the dynamics count as nonzero, so that no trace is needed here.
        """
        found = set()
        if self.parts:
            for used in nonzero_columns(self.slopes):
                found |= {(a, b) for a in used for b in used if b <= a}
        if self.second:
            found |= {(i, j) for i, used in enumerate(nonzero_columns((*self.slopes, *self.second))) for j in used if j <= i}
        return tuple(sorted(found))


def nonzero_columns(programs: tuple[Program, ...]) -> list[list[int]]:
    """Return the columns that may be nonzero in each row of the matrix that the last of several programs computes."""
    [matrix] = programs[-1].outputs
    program = ComposedProgram("pattern", programs, (matrix.name,))
    g = Graph(None)
    entries = program.flat(*([g.input(k, i) for i in range(x.size)] for k, x in enumerate(program.inputs)))
    return [
        [j for j, x in enumerate(row) if isinstance(x, Expression) or not is_zero(x)] for row in nested(entries, matrix.shape)
    ]


def of_function(term: Residual, first: int, given: tuple[str, ...], placements: str) -> Callable[..., None]:
    """Return a kernel of a user's function with these quantities as arguments; its parameters begin at `first`."""
    function, order, count = term.function, term.arguments, term.parameters
    size, name = term.size, term.called

    def kernel(*arrays: Any) -> None:
        *values, rows = arrays
        known = dict(zip(given, values, strict=True))
        if placements:
            known[PLACEMENTS] = known[placements]
        if count:
            known[PARAMETERS] = known[PARAMETERS][first : first + count]
        results = function(*(known[x] for x in order))
        if not isinstance(results, Iterable):
            raise TypeError(
                f"Residual {name!r}: its function must return a list of {size} numbers; got {type(results).__name__}"
            )
        results = list(results)
        if len(results) != size:
            raise ValueError(f"Residual {name!r}: its function returns {len(results)} numbers, but size is {size}")
        for i, x in enumerate(results):
            rows[i] = x

    return kernel
