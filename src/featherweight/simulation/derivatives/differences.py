"""Derivatives of steps by central differences of whole steps, for steps whose equations have no derivatives here.

Each difference starts from the same impulses, so that the solver of contacts takes the same way on both sides. Rigid contacts
and limits at rest, whose gap is zero or a tolerated overlap, keep their gaps: their derivatives are those of an overlap that
persists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Matrix, Vector
from ...contact.laws import RIGID
from ...contact.rigid.answers import EDGE_OF_GAPS
from ...engine.loops.kernels import CompiledLoop, MachineCall, Table, call_machine
from ..contact_stage import ContactStage
from ..fleet_loop import judge_inputs, load_inputs, load_robot, note_status
from ..robot_stages import detect, find_near, is_touched, move_freely
from ..robot_tables import StagesTable, bound_call
from ..smooth_motion import clear, close, copy
from ..stage_records import FOUND, RESIDUAL, WITH_CONTROL, FleetArrays, RobotStages
from ..step import end_step, try_step
from ..step_model import StepModel
from ..step_status import TAKEN
from .acceleration import NONSMOOTH, SMALL_STEP, bend_beyond_rounding, separates
from .records import RobotSlopes, begin_doubtful, multiply

AHEAD, BEHIND, HERE = range(3)
FINER = 0.1  # factor of the step of differences that tell a kink from a curve
TINY = 1e-300
UNSOLVED = 10.0  # change of velocities, in units of the solver's residual, that may be due to it
NOT_RESTING = 1e300


class StepDifferences(NamedTuple):
    """Arrays for differences of the steps of one robot."""

    increment: Vector  # (nv,)
    end: Vector  # (nq,) configuration after the step
    change: Vector  # (nv,) from it to the configuration after a step of a difference
    after: Matrix  # (3, 2 nv + na) states after the step: ahead, behind and here
    ends: Matrix  # (2 nv + na, 3 nv + na + nu) derivatives, for products with cotangents
    residual: Vector  # (3,) [m/s] of the solver in the steps of `after`
    resting: Vector  # (candidates,) gaps of rigid contacts at rest, or `NOT_RESTING`
    resting_rows: Vector  # (joint rows,) those of limits
    moved: MachineCall  # q, increment -> x
    difference: MachineCall  # end, ahead -> change


def differences_of(stages: StagesTable, model: StepModel, _: ContactStage) -> Table:
    """Return arrays for differences at the stages of one robot."""
    s, robot = stages.content, model.robot
    n, na, nu = robot.nv, len(s.state.act), len(s.state.control)
    increment, end, change = np.zeros(n), np.zeros(robot.nq), np.zeros(n)
    calls = (robot.step_functions.integrate, s.state.q, increment, s.point.x), (robot.difference, end, s.step.ahead, change)
    made = [bound_call(call, stages.errors) for call in calls]
    sizes = np.zeros((3, 2 * n + na)), np.zeros((2 * n + na, 3 * n + na + nu)), np.zeros(3)
    resting = np.zeros(len(s.touching.pair_of)), np.zeros(len(s.touching.model.rows.joint))
    table = Table(StepDifferences(increment, end, change, *sizes, *resting, *(call for call, _ in made)))
    table.kept = made
    return table


def differentiate_whole_steps(
    one: RobotStages, d: StepDifferences, many: FleetArrays, x: RobotSlopes, first: int, stop: int
) -> int:
    """Differentiate the next steps of robots first to stop; return the number of robots for which this succeeds."""
    done = 0
    for i in range(first, stop):
        done += differentiate_whole_step(one, d, many, x, i)
    return done


def differentiate_whole_step(one: RobotStages, d: StepDifferences, many: FleetArrays, x: RobotSlopes, i: int) -> int:
    """Write the derivatives of the next step of robot i. Return 1 on success."""
    for gaps in (d.resting, d.resting_rows):
        for k in range(len(gaps)):
            gaps[k] = NOT_RESTING
    status = step_along(one, d, many, i, 0, 0.0)
    if status != TAKEN:
        note_status(one, many, i, status)
        return 0
    n, ends = len(one.state.v), x.ends[i] if len(x.cotangents) == 0 else d.ends
    if one.touching.model.settings.law == RIGID:
        note_resting(one, d)
    copy(one.step.ahead, d.end)
    note_state(one, d, HERE)
    begin_doubtful(x, i)
    controls = 3 * n + len(one.state.act)
    for column in range(ends.shape[1]):
        if column >= controls and not many.inputs.given[WITH_CONTROL]:
            for row in range(ends.shape[0]):
                ends[row, column] = 0.0
            continue
        small, kink = SMALL_STEP, 0.0
        status = step_to_both_sides(one, d, many, i, column, small)
        if status == TAKEN:
            kink = relative_kink(d)
        if status == TAKEN and kink > NONSMOOTH:  # a kink remains at smaller distances, a curve does not
            small *= FINER
            status = step_to_both_sides(one, d, many, i, column, small)
        if status != TAKEN:
            note_status(one, many, i, status)
            return 0
        x.nonsmooth[i, column] = small < SMALL_STEP and relative_kink(d) > 0.5 * kink
        x.unsure[i] = 1 if x.nonsmooth[i, column] else x.unsure[i]
        write_column(d, ends, column, small, x.nonsmooth[i, column])
    if len(x.cotangents) > 0:
        multiply(ends, x.cotangents[i], x.products[i])
    return 1


def step_along(one: RobotStages, d: StepDifferences, many: FleetArrays, i: int, column: int, step: float) -> int:
    """Try the next step of robot i from a state, or with inputs, at a small distance; return the status."""
    n, s = len(one.state.v), one.state
    load_robot(one, many, i)
    load_inputs(one, many, i, 0)
    status = judge_inputs(one)
    if status != TAKEN:
        return status
    na = len(s.act)
    if column >= 3 * n + na:
        s.control[column - 3 * n - na] += step
    elif column >= 2 * n + na:
        s.tau[column - 2 * n - na] += step
    elif column >= 2 * n:
        s.act[column - 2 * n] += step
    elif column >= n:
        s.v[column - n] += step
    elif step != 0.0:
        clear(d.increment)
        d.increment[column] = step
        call_machine(d.moved)
        status = close(one)
        copy(one.point.x, s.q)
    if status != TAKEN or one.touching.model.settings.law != RIGID:
        return try_step(one) if status == TAKEN else status
    status = move_freely(one)
    if status == TAKEN:
        status = detect(one)
    if status != TAKEN:
        return status
    keep_resting(one, d)
    find_near(one)
    return end_step(one)


def note_resting(one: RobotStages, d: StepDifferences) -> None:
    """Note the gaps of rigid contacts and limits that rest in the step: all overlaps, unless a displacement separates them."""
    t, rows, edge = one.touching, one.touching.model.rows, EDGE_OF_GAPS * one.touching.model.settings.slop
    least = -edge if separates(one) else -NOT_RESTING
    for c in range(t.counts[FOUND]):
        if least <= t.contacts.gap[c] <= edge:
            d.resting[t.contacts.candidate[c]] = t.contacts.gap[c]
    for r in range(len(rows.joint)):
        if not rows.friction[r] and rows.holds[r] == 0 and least <= t.kinematics.gap[r] <= edge:
            d.resting_rows[r] = t.kinematics.gap[r]


def keep_resting(one: RobotStages, d: StepDifferences) -> None:
    """Restore the gaps of contacts and limits at rest."""
    t = one.touching
    for c in range(t.counts[FOUND]):
        if d.resting[t.contacts.candidate[c]] != NOT_RESTING:
            t.contacts.gap[c] = d.resting[t.contacts.candidate[c]]
    for r in range(len(d.resting_rows)):
        if d.resting_rows[r] != NOT_RESTING:
            t.kinematics.gap[r] = d.resting_rows[r]


def note_state(one: RobotStages, d: StepDifferences, side: int) -> None:
    """Write the state after a step, with its configuration as the change from `end`, and the solver's residual."""
    n, state = len(d.change), d.after[side]
    d.residual[side] = one.touching.report[RESIDUAL] if is_touched(one) else 0.0
    call_machine(d.difference)
    copy(d.change, state[:n])
    copy(one.step.end, state[n : 2 * n])
    copy(one.step.act, state[2 * n :])


def step_to_both_sides(one: RobotStages, d: StepDifferences, many: FleetArrays, i: int, column: int, step: float) -> int:
    """Write the states after steps from both sides of a state or input; return the status."""
    for side in range(2):
        status = step_along(one, d, many, i, column, step if side == AHEAD else -step)
        if status != TAKEN:
            return status
        note_state(one, d, side)
    return TAKEN


def relative_kink(d: StepDifferences) -> float:
    """Return the difference of the changes on both sides over their sum, or 0 if it may be due to the solver's residuals."""
    kink = forward = backward = 0.0
    residual = max(d.residual[HERE], d.residual[AHEAD], d.residual[BEHIND])
    for row in range(d.after.shape[1]):
        here, ahead, behind = d.after[HERE, row], d.after[AHEAD, row], d.after[BEHIND, row]
        kink = max(kink, bend_beyond_rounding(ahead, here, behind))
        forward, backward = max(forward, abs(ahead - here)), max(backward, abs(here - behind))
    return kink / max(forward + backward, TINY) if kink > UNSOLVED * residual else 0.0


def write_column(d: StepDifferences, ends: Matrix, column: int, step: float, has_kink: bool) -> None:
    """Write the derivatives along one direction, from differences over a step; at a kink, those of the steeper side."""
    forward = backward = 0.0
    for row in range(ends.shape[0]):
        forward = max(forward, abs(d.after[AHEAD, row] - d.after[HERE, row]))
        backward = max(backward, abs(d.after[HERE, row] - d.after[BEHIND, row]))
    for row in range(ends.shape[0]):
        change = 0.5 * (d.after[AHEAD, row] - d.after[BEHIND, row])
        if has_kink and forward >= backward:
            change = d.after[AHEAD, row] - d.after[HERE, row]
        elif has_kink:
            change = d.after[HERE, row] - d.after[BEHIND, row]
        ends[row, column] = change / step


DIFFERENTIATE_WHOLE_STEPS = CompiledLoop(differentiate_whole_steps, numbers=2, what="the derivatives of whole steps")
