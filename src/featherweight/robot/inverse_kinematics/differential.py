"""Differential inverse kinematics: the memory of `velocity_step` for the tasks of one robot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.inverse_kinematics import iteration
from ...algorithms.inverse_kinematics.task_rows import TaskList
from ...algorithms.mechanisms.cluster_tree import constraint_count, moving
from ...array_types import Array, Integers, Matrix, Vector
from ...engine.forks import new_lock
from ...engine.function import CompiledFunction
from ...engine.loops.kernels import CompiledLoop, MachineCall, Table, machine_call
from ...engine.loops.prepared_calls import prepared_call
from ...engine.loops.standalone import POSITIVE, Port, StandaloneLoop
from ...engine.program import Output, Program
from ...quadratic_programs.active_set import MOST_STEPS
from ...quadratic_programs.program import SOLVED, STEPS, Sizes, quadratic_program, statuses
from ..closed import ClosedRobot
from ..robot import Robot
from ..standalone_facts import limits_of, names_of
from .targets import target_ports
from .tasks import FrameTask, TargetSlot
from .velocity_step import DAMPING, DT, GAIN, VelocityStep, velocity_step

STEP = CompiledLoop(velocity_step, 1, what="differential inverse kinematics")


class VelocityProblem(NamedTuple):
    """The time of a step [s], the fraction of the errors that a step removes, damping, and velocity limits (nv) or a number."""

    dt: float
    gain: float
    damping: float
    speed: Array


class Differential:
    """Steps for the tasks of a robot; `program` turns a kernel into a program of q and flat targets.

    `spare`, if any, is the function of q and flat targets that `spare_distances` returns. Threads take turns.
    """

    def __init__(
        self,
        robot: Robot,
        tasks: TaskList,
        program: Callable[..., Program],
        spare: CompiledFunction[Any] | None = None,
    ) -> None:
        n = robot.model.nv
        clusters = robot._mechanism.clusters if isinstance(robot, ClosedRobot) else ()
        columns = sorted(r for c in clusters for r in moving(c)) if clusters else list(range(n))
        independent = [columns.index(r) for c in clusters for r in c.independent] if clusters else columns
        loops = sum(map(constraint_count, clusters))
        counts: dict[int, int] = {}
        for task in sorted(tasks.every, key=lambda task: task.level):
            counts[task.level] = counts.get(task.level, 0) + sum(w > 0.0 for w in task.weight)
        begin = np.cumsum([loops, *counts.values()]).astype(np.int64)
        rows = int(begin[-1])
        outputs = Output("jacobian", (rows, n)), Output("errors", (rows,))
        self.rows = CompiledFunction[Any](program(iteration.weighted_rows, (), outputs), "traced")
        q, targets = (np.zeros(x.size) for x in self.rows.program.inputs)
        jacobian, errors = np.zeros((rows, n)), np.zeros(rows)
        distances, lacking, slopes = distances_of(spare, q, targets, len(independent))
        sizes = Sizes(len(columns), rows - loops, len(columns), int(begin[-2]), len(lacking), 0)
        self._step = VelocityStep(
            machine_call(self.rows, q, targets, jacobian, errors), distances, q, targets, jacobian, errors, lacking, slopes,
            begin, np.array(columns, np.int64), np.array(independent, np.int64), *bounds_of(robot, columns),
            np.zeros(len(independent)), np.zeros(3), quadratic_program(sizes, np.zeros(0, np.int64)), np.zeros(len(columns)),
            np.zeros(len(independent)),
        )  # fmt: skip
        table = Table(self._step)
        table.kept = [spare]
        self._run = prepared_call(STEP.for_tables(table), table.address, 0, kept=table)
        self._lock = new_lock()

    def standalone(self, robot: Robot, slots: Sequence[TargetSlot]) -> StandaloneLoop:
        """Return the step with its inputs and results. Nothing else may use this object then."""
        w = self._step
        w.q[:], w.speed[:] = robot.neutral(), math.inf
        w.settings[:] = 1e-3, 1.0, 1e-6
        scalars = (("dt", DT, "[s] time of a step"), ("gain", GAIN, "fraction of the errors that a step removes"))
        settings = [Port(name, w.settings[k : k + 1], doc, (), (0,), POSITIVE) for name, k, doc in scalars]

        return StandaloneLoop(
            "Differential inverse kinematics: the velocity that moves q towards the targets.",
            STEP,
            (w,),
            (0,),
            (
                Port("q", w.q, "configuration"),
                *target_ports(robot, slots, w.targets),
                *settings,
                Port("damping", w.settings[DAMPING : DAMPING + 1], "weight of the squared velocity", (), (0,), POSITIVE),
                Port("speed", w.speed, "[rad/s, m/s] velocity limits, which may be infinite", allowed=POSITIVE),
            ),
            (Port("velocity", w.velocity, "velocity"),),
            statuses(
                "no velocity within limits keeps the loops closed and the distances", "no velocity keeps the loops closed"
            ),
            bounds={"MOST_STEPS_OF_THE_QUADRATIC_PROGRAM": MOST_STEPS},
            names=names_of(robot, [s.task.frame for s in slots if isinstance(s.task, FrameTask)]),
            constants=limits_of(robot),
        )

    def velocity(self, q: Array, targets: Array, problem: VelocityProblem) -> Vector:
        """Return v (nv). Raises ValueError if no velocity satisfies loops and limits."""
        w = self._step
        with self._lock:
            w.q[:], w.targets[:], w.speed[:] = q, targets, problem.speed
            w.settings[DT], w.settings[GAIN], w.settings[DAMPING] = problem.dt, problem.gain, problem.damping
            if self._run() == SOLVED:
                return w.velocity.copy()
            steps = w.program.counts[STEPS]
        raise ValueError(
            f"InverseKinematics: no velocity within limits keeps the loops closed and the distances (after {steps} steps of "
            "the quadratic program). The loops at q are too far open, or q violates limits by more than the velocity limits "
            "can correct in one step"
        )


def bounds_of(robot: Robot, columns: list[int]) -> tuple[Integers, Vector, Vector]:
    """Return the coordinates of rows of the tree, and their limits.

    Rows without limits have infinite ones, and an arbitrary coordinate.
    """
    lower, upper = robot.row_limits()
    place = {robot.model.joints[j.index].v_slice.start: j.q_slice.start for j in robot.joints if j.type.nv == 1}
    limited = np.array([r in place for r in columns])
    coordinates = np.array([place.get(r, 0) for r in columns], np.int64)
    return (
        coordinates,
        np.where(limited, np.array(lower)[columns], -math.inf),
        np.where(limited, np.array(upper)[columns], math.inf),
    )


def distances_of(spare: CompiledFunction[Any] | None, q: Vector, targets: Vector, n: int) -> tuple[MachineCall, Vector, Matrix]:
    """Return the call of the function of spare distances, which writes these distances (m) and their slopes (m, n)."""
    if spare is None:
        return machine_call(None), np.zeros(0), np.zeros((0, n))
    shapes = [x.shape for x in spare.program.outputs]
    ends = np.cumsum([0, *(shape[0] for shape in shapes[::2])]).tolist()
    distances, slopes = np.zeros(ends[-1]), np.zeros((ends[-1], n))
    parts = [array[a:b] for a, b in pairwise(ends) for array in (distances, slopes)]
    return machine_call(spare, q, targets, *parts), distances, slopes
