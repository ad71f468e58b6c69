"""Restarts of one robot at states that need no other look: one compiled call checks a state and writes it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..array_types import Integers, Matrix, Vector
from ..engine.loops.kernels import CompiledLoop, MachineCall, Table, call_machine, machine_call
from ..engine.loops.prepared_calls import Goal, prepared_call, writer
from ..robot.checked_states import rotations_of
from .arguments import EXACT
from .array_access import converted
from .plant import CLOSED, Plant
from .robot_stages import all_finite
from .smooth_motion import clear, copy
from .stage_records import FleetArrays
from .starts import LimitsOfStarts


class Restart(NamedTuple):
    """A given state, and what it is compared with."""

    q: Vector  # (nq,)
    v: Vector  # (nv,)
    time: Vector  # (1,) [s]
    turn: Integers  # (k,) first coordinates of quaternions, and of cosine and sine
    size: Integers  # (k,) 4 or 2
    limits: LimitsOfStarts
    deepest: Vector  # (1,) [m] overlap allowed in the first step
    start_q: Matrix  # (1, nq) the last state that was accepted
    start_v: Matrix  # (1, nv)
    residual: Vector  # (rows,) [m, sines of angles] of loops
    solved: Integers  # numbers of the rows that can be zero
    loops: MachineCall  # q -> residual


def restart(x: Restart, many: FleetArrays) -> int:
    """Start at the given state. Return 0, with no change, for a state that is wrong, is to be mended, or needs a warning."""
    if not (is_usual(x) and all_finite(x.q) and all_finite(x.v) and all_finite(x.time)):
        return 0
    states = many.states
    clear(states.block)
    copy(x.q, states.q[0])
    copy(x.v, states.v[0])
    copy(x.q, x.start_q[0])
    copy(x.v, x.start_v[0])
    states.set_time[0], states.deepest[0] = x.time[0], x.deepest[0]
    if len(states.before_q) > 0:  # the robot has taken no step from here
        forget(states.before_q[0])
        forget(states.before_v[0])
    return 1


def is_usual(x: Restart) -> bool:
    """Return whether loops are closed, joints within limits, and rotations of unit length, and not like those of MuJoCo."""
    usual = True
    call_machine(x.loops)
    for k in range(len(x.solved)):
        usual = usual and abs(x.residual[x.solved[k]]) <= CLOSED
    for k in range(len(x.turn)):
        begin, square = x.turn[k], 0.0
        for i in range(begin, begin + x.size[k]):
            square += x.q[i] * x.q[i]
        usual = usual and abs(square - 1.0) <= EXACT and not (x.size[k] == 4 and x.q[begin] == 1.0)
    limits = x.limits
    for k in range(len(limits.at)):
        q = x.q[limits.at[k]]
        usual = usual and not max(limits.low[k] - q, q - limits.high[k]) > limits.far[k]
    return usual


def forget(x: Vector) -> None:
    for i in range(len(x)):
        x[i] = np.nan


RESTART = CompiledLoop(restart, 0, what="resets of simulations")


class Restarts:
    """Resets of the only robot of a fleet, whose states are in the table `many`."""

    def __init__(self, plant: Plant, many: Table) -> None:
        robot, turns = plant.robot, [(s.start, s.stop - s.start) for _, s in rotations_of(plant.robot)]
        first, size = np.array(turns, np.int64).reshape(-1, 2).T.copy()
        q, loops, solved = np.zeros(robot.nq), None, np.zeros(0, np.int64)
        residual = np.zeros(0)
        if plant.model.looped:
            closed: Any = robot
            loops, residual = closed.residual, np.zeros(closed.residual.program.outputs[0].shape)
            solved = closed.step_functions.solved.astype(np.int64)
        self.x = x = Restart(
            q, np.zeros(robot.nv), np.zeros(1), first, size, plant.limits_of_starts,
            np.array([plant.model.deepest_start]), np.zeros((1, robot.nq)), np.zeros((1, robot.nv)), residual, solved,
            machine_call(loops, q, residual),
        )  # fmt: skip
        table = Table(x)
        run: Any = RESTART.for_tables(table, many)
        self.run = prepared_call(run, table.address, many.address, kept=(table, many), brief=True)
        self._goals = Goal(x.q), Goal(x.v)
        self._write = writer(*self._goals)
        self._default, self.start = plant.start, (x.start_q, x.start_v)

    def give(self, q: Any, v: Any) -> bool:
        """Write a state of any types, the default start and zero for None; return whether it fits."""
        q = self._default if q is None else q
        return self._write(q, v) or self._write(*map(converted, self._goals, (q, v)))
