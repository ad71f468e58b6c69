"""One problem: attempts, one after the other, until one is solved, as a kernel with loops.

Attempts end and become cautious by the rules of batches in `attempts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Array, Integers, Matrix, Vector
from ...engine.function import CompiledFunction
from ...engine.loops.kernels import CompiledLoop, MachineCall, Table, call_machine, machine_call
from ...engine.loops.standalone import Port, StandaloneLoop, Status
from ..robot import Robot
from ..standalone_facts import limits_of, names_of
from .attempts import HASTY, LEAST, LESS, MORE, MOST, POLISHED, POLISHING, STALLED, TO_AND_FRO, YOUNG, AttemptLimits
from .targets import target_ports
from .tasks import FrameTask, TargetSlot

MEASURES = ("miss", "left", "cost", "step")  # see `InverseKinematics.iteration`
MISS, LEFT, COST, STEP = range(len(MEASURES))
CAUTION, SMALLEST = range(2)  # of `numbers`: the factor of the damping, and the cost of `best`
LONGEST, ATTEMPTS, ITERATIONS, RESTARTS = range(4)  # of `counts`: two limits and two results
CONVERGED, NOT_CONVERGED, UNFINISHED = range(3)  # status


class OneProblem(NamedTuple):
    """All data of a search."""

    iterate: MachineCall  # reads q, targets and caution; writes ahead and measures
    task_errors: MachineCall  # reads best and targets; writes errors
    rest: float  # squared step of an attempt at rest
    lower: Vector  # (nq,)
    upper: Vector
    initial: Matrix  # (attempts of a call, nq) initial configurations
    free: Integers  # coordinates that all attempts take from the first row of these
    targets: Vector
    q: Vector  # (nq,)
    ahead: Vector  # (nq,) q after a step
    last: Vector  # (nq,) the last step
    best: Vector  # (nq,) the result
    errors: Vector  # (k,) errors of the result
    measures: Vector
    numbers: Vector
    counts: Integers


def solve_one(w: OneProblem, begin: int, end: int) -> int:
    """Run the attempts from `begin` on and before `end`, each from a row of `initial`, until one is solved; return a status.

    After the last attempt, the errors of the best one are reduced to a local minimum.
    """
    if begin == 0:
        w.counts[ITERATIONS], w.numbers[SMALLEST] = 0, inf
        write_within(w, w.initial[0], w.best)
    for k in range(begin, end):
        write_initial(w, k - begin)
        w.counts[RESTARTS] = k
        if attempt(w):
            write_result(w)
            return CONVERGED
        keep_smaller(w)
    if end < w.counts[ATTEMPTS]:
        return UNFINISHED
    solved = polish(w)
    write_result(w)
    return CONVERGED if solved else NOT_CONVERGED


def write_within(w: OneProblem, q: Vector, into: Vector) -> None:
    """Copy q with its coordinates clipped to their limits."""
    for i in range(len(q)):
        into[i] = min(max(q[i], w.lower[i]), w.upper[i])


def write_initial(w: OneProblem, row: int) -> None:
    """Write the q at which an attempt starts."""
    for i in range(len(w.free)):
        w.initial[row, w.free[i]] = w.initial[0, w.free[i]]
    write_within(w, w.initial[row], w.q)


def attempt(w: OneProblem) -> bool:
    """Run one attempt from q; return whether the last q is a solution."""
    w.numbers[CAUTION], count = 1.0, 0
    while True:
        call_machine(w.iterate)
        count += 1
        w.counts[ITERATIONS] += 1
        kept, move = w.measures[MISS] <= 1.0, w.measures[STEP]
        if w.rest < inf and count >= HASTY:
            adapt_caution(w, count > HASTY, LEAST if kept else 1.0)
        if kept and move <= w.rest:
            w.best[:] = w.q
            return True
        if not kept and count >= YOUNG and not move >= STALLED * w.measures[LEFT]:
            return False
        if count >= w.counts[LONGEST]:
            return False
        w.q[:] = w.ahead


def adapt_caution(w: OneProblem, has_last: bool, least: float) -> None:
    """Store the step from q to ahead; if it goes back by much of the last one, increase the caution, else decrease it."""
    turned, size = 0.0, 0.0
    for i in range(len(w.q)):
        step = w.ahead[i] - w.q[i]
        turned += step * w.last[i]
        size += w.last[i] * w.last[i]
        w.last[i] = step
    if has_last and turned < -TO_AND_FRO * size:
        w.numbers[CAUTION] = min(MORE * w.numbers[CAUTION], MOST)
    elif has_last:
        w.numbers[CAUTION] = max(LESS * w.numbers[CAUTION], least)


def keep_smaller(w: OneProblem) -> bool:
    """Store q as the best one if it has the smallest cost so far; return whether it has."""
    smaller = w.measures[COST] < w.numbers[SMALLEST]
    if smaller:
        w.numbers[SMALLEST] = w.measures[COST]
        w.best[:] = w.q
    return smaller


def polish(w: OneProblem) -> bool:
    """Reduce the errors of the best q by further iterations; return whether the result is a solution."""
    w.q[:] = w.best
    w.numbers[CAUTION], w.numbers[SMALLEST] = 1.0, inf
    solved = False
    for count in range(POLISHING):
        call_machine(w.iterate)
        adapt_caution(w, count > 0, LEAST)
        if keep_smaller(w):
            solved = w.measures[MISS] <= 1.0 and w.measures[STEP] <= w.rest
        if not w.measures[STEP] > POLISHED:
            break
        w.q[:] = w.ahead
    return solved


def write_result(w: OneProblem) -> None:
    """Clip the best q to its limits, and compute its errors."""
    write_within(w, w.best, w.best)
    call_machine(w.task_errors)


SOLVE = CompiledLoop(solve_one, 2, what="inverse kinematics of one problem")


class OneSearch:
    """The memory of a search, for the functions `iteration` and `errors` of a solver; one thread at a time may use it.

    `initial` are the initial configurations of the attempts of one call, whose `free` coordinates are those of the first row.
    """

    def __init__(
        self,
        functions: tuple[CompiledFunction[Any], CompiledFunction[Any]],
        limits: tuple[Vector, Vector],
        rest: float,
        initial: Matrix,
        free: Integers,
    ) -> None:
        iteration, errors = (f if f.address else CompiledFunction[Any](f.program, "traced") for f in functions)
        q, targets, *_ = (np.zeros(x.size) for x in iteration.program.inputs)
        ahead, best, found = np.zeros_like(q), np.zeros_like(q), np.zeros(errors.program.outputs[0].size)
        measures, numbers = np.zeros(len(MEASURES)), np.ones(2)
        each = (measures[k : k + 1] for k in range(len(MEASURES)))
        self.work = OneProblem(
            machine_call(iteration, q, targets, numbers[CAUTION : CAUTION + 1], ahead, *each),
            machine_call(errors, best, targets, found), rest, *limits, initial, free, targets, q, ahead, np.zeros_like(q),
            best, found, measures, numbers, np.zeros(4, np.int64),
        )  # fmt: skip
        self._table = Table(self.work)
        self._run = SOLVE.for_tables(self._table)

    def begin(self, targets: Array, limits: AttemptLimits) -> None:
        """Write the targets and the limits of a search."""
        self.work.targets[:] = targets
        self.work.counts[LONGEST], self.work.counts[ATTEMPTS] = limits.longest, limits.attempts

    def attempt(self, k: int, q: Array) -> int:
        """Run the attempt k from q; return its status."""
        self.work.initial[0] = q
        return self._run(self._table.address, k, k + 1)

    def standalone(self, robot: Robot, slots: Sequence[TargetSlot], limits: AttemptLimits) -> StandaloneLoop:
        """Return the search with its inputs and results. Nothing else may use this object then."""
        w = self.work
        w.counts[LONGEST], w.counts[ATTEMPTS] = limits.longest, limits.attempts
        w.initial[0] = robot.neutral()
        first = Port("q0", w.initial[0], "initial configuration, which is clipped to the limits")
        counted = (("iterations", ITERATIONS, "iterations of all attempts"), ("restarts", RESTARTS, "attempts after the first"))
        return StandaloneLoop(
            "Inverse kinematics: a configuration that solves the tasks within joint limits. The first attempt starts from q0, "
            "the others from configurations that the export drew.",
            SOLVE,
            (w,),
            (0, limits.attempts),
            (first, *target_ports(robot, slots, w.targets)),
            (
                Port("q", w.best, "configuration"),
                Port("errors", w.errors, "errors at q of the tasks, in their order, [m] and [rad]; a pose has two"),
                *(Port(name, w.counts[k : k + 1], doc, (), (0,)) for name, k, doc in counted),
            ),
            (
                Status(CONVERGED, "CONVERGED", "q satisfies all tolerances"),
                Status(NOT_CONVERGED, "NOT_CONVERGED", "no attempt satisfied all tolerances; q has the smallest errors found"),
            ),
            valid=(CONVERGED, NOT_CONVERGED),
            bounds={
                "MOST_ATTEMPTS": limits.attempts,
                "MOST_ITERATIONS_OF_AN_ATTEMPT": limits.longest,
                "MOST_ITERATIONS_AFTER_THE_LAST_ATTEMPT": POLISHING,
            },
            names=names_of(robot, [s.task.frame for s in slots if isinstance(s.task, FrameTask)]),
            constants=limits_of(robot),
        )
