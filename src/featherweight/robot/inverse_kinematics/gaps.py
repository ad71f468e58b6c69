"""Programs of clearance tasks: how far distances fall short, with their slopes, as entries of the kernels' targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...engine.derivative_program import JacobianProgram
from ...engine.function import CompiledFunction
from ...engine.program import ComposedProgram, Input, KernelProgram, Output, Program, RenamedProgram
from ...spatial import sqrt
from ..robot import Robot
from .tasks import ClearanceTask, TargetSlot

SHARP = 1e-30  # [m²] under square roots, so that they have derivatives


def with_gaps(robot: Robot, slots: Sequence[TargetSlot], program: Program) -> Program:
    """Return a program of q and users' targets, given one that also has the entries of clearance tasks among its targets."""
    tasks = _clearances(slots)
    if not tasks:
        return program
    targets, before = Input("targets", (slots[-1].end,)), list[Program]()
    for k, (first, task) in enumerate(tasks):
        before += _with_slopes(robot, first, task, targets, f"gap_{k}", _shortfall)
    parts = [Input(y.name, y.shape) for p in before for y in p.outputs]
    size = targets.size + sum(x.size for x in parts)
    gather = KernelProgram("aims", _gathered, (), (targets, *parts), (Output("aims", (size,)),))
    whole = (*before, gather, RenamedProgram(program, (("targets", "aims"),)))
    names = tuple(y.name for y in program.outputs)
    return ComposedProgram(program.name, whole, names, program.doc, first=("q", "targets"))


def spare_distances(robot: Robot, slots: Sequence[TargetSlot]) -> CompiledFunction[Any] | None:
    """Return the traced function of q and targets whose results are distances beyond those required (m), and slopes (m, nv)."""
    tasks = _clearances(slots)
    if not tasks:
        return None
    targets, parts = Input("targets", (slots[-1].end,)), list[Program]()
    for k, (first, task) in enumerate(tasks):
        parts += _with_slopes(robot, first, task, targets, f"spare_{k}", _spare, task.term.size)
    names = tuple(y.name for p in parts for y in p.outputs)
    program = ComposedProgram("spare_distances", tuple(parts), names, first=("q", "targets"))
    return CompiledFunction(program, "traced")


def _clearances(slots: Sequence[TargetSlot]) -> list[tuple[int, ClearanceTask]]:
    """Return the clearance tasks, with the beginning of the target of each."""
    return [(slot.begin, slot.task) for slot in slots if isinstance(slot.task, ClearanceTask)]


def _with_slopes(
    robot: Robot, first: int, task: ClearanceTask, targets: Input, name: str, write: Callable[..., None], *shape: int
) -> list[Program]:
    """Return two programs: what `write` makes of the spare distances of a task, and its derivative by q."""
    function, count, least = task.term.function, task.term.parameters, task.distance

    def kernel(placements: Any, targets: Any, result: Any) -> None:
        distances = function(placements, targets[first : first + count]) if count else function(placements)
        write([x - least for x in distances], result)

    placed = robot.frame_placement(list(task.term.frames)).program
    placements = Input(f"placements_of_{name}", placed.outputs[0].shape)
    rows = KernelProgram(name, kernel, (), (placements, targets), (Output(name, shape),))
    renamed = RenamedProgram(placed, ((placed.outputs[0].name, placements.name),))
    whole = ComposedProgram(name, (renamed, rows), (name,), first=("q", "targets"))
    return [whole, JacobianProgram(whole, "", ("q",))]


def _spare(distances: list[Any], result: Any) -> None:
    for i, x in enumerate(distances):
        result[i] = x


def _shortfall(distances: list[Any], result: Any) -> None:
    """Write the norm of what distances are too small by."""
    squares = SHARP
    for x in distances:
        short = 0.5 * (sqrt(x * x + SHARP) - x)
        squares = squares + short * short
    result[0] = sqrt(squares)


def _gathered(targets: Any, *rest: Any) -> None:
    """Write the targets, and the gap and the slopes of each task."""
    *parts, aims = rest
    numbers = [*targets]
    for gap, slopes in zip(parts[::2], parts[1::2], strict=True):
        numbers += [gap[0] if isinstance(gap, list) else gap, *slopes]
    for i, x in enumerate(numbers):
        aims[i] = x
