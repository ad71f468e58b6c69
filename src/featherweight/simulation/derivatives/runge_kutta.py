"""Derivatives of a Runge-Kutta step with contacts: those of its four stages, combined as `step` combines these.

Rates are along all directions at once: q, v, joint forces and controls. The acceleration of a stage has the rates of its
equations (`acceleration`). Joints whose velocities do not commute are displaced by (l, w) from the start, with E = exp(w) and
l' = V, linear velocities in the axes of the start. In the axes of a stage, with velocities v = Eᵀ V and angular velocities r,

    dx = (Eᵀ (dl + dx0 x l), J dw + Eᵀ dx0)    dv = Eᵀ dV + v x J dw    dV' = E (da + dr x v + r x dv + J dw x (a + r x v))
    w' = r + w x r / 2 + d w x (w x r)

Products with a cotangent of the state after the step are products with these matrices: going back through the stages with
vectors saves less than a third of the time, most of which belongs to the derivatives of the four accelerations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Matrix, Vector
from ...collision.triples import Triple, along, component, inner, outer, plus, times
from ...contact.factors.branches import padded
from ...engine.loops.kernels import CompiledLoop, Table, aligned_numbers, subtract_multiples, subtract_product
from ...model.tree import FLOATING, PLANAR
from ..contact_stage import ContactStage
from ..fleet_loop import judge_inputs, load_inputs, load_robot, note_status
from ..robot_tables import StagesTable
from ..smooth_motion import RUNGE_KUTTA_ROUNDS, clear, copy, copy_rows, runge_kutta_numbers
from ..stage_records import FleetArrays, RobotStages
from ..step import accelerate_touching, go_straight, take_stage
from ..step_model import StepModel
from ..step_status import TAKEN
from ..turns import (
    UNIT,
    Columns,
    Turn,
    columns_of,
    crossed,
    inverse_jacobian,
    joint_motion,
    turn_of,
    turned_columns,
)  # fmt: skip
from .acceleration import write_acceleration_slopes
from .after_step import OF_JOINT
from .records import AccelerationSlopes, RobotSlopes, begin_doubtful, multiply, note_doubtful
from .semi_implicit import slopes_of


class RatePlaces(NamedTuple):
    """Places of matrices (n, columns) in one vector, with rows of `stride` numbers."""

    stride: int
    columns: int
    x: int  # rates of the stage's configuration
    v: int  # of its velocity
    u: int  # of the increment from the start
    k: int  # of the velocity, linear in the axes of the start, then of the rate of the increment
    rates: int  # sums of k over stages
    a: int  # of the acceleration, then linear in the axes of the start
    accelerations: int  # sums of a over stages
    factors: int  # (n, 2 n) negative derivatives of the acceleration by x and v
    joint: int  # rows of one joint
    size: int


def rate_places(n: int, columns: int) -> RatePlaces:
    """Return the places of matrices of these sizes."""
    stride = padded(columns)
    matrices = RatePlaces._fields[2:-3]
    at = {name: i * n * stride for i, name in enumerate(matrices)}
    factors = len(matrices) * n * stride
    joint = factors + padded(2 * n * n)
    return RatePlaces(stride, columns, **at, factors=factors, joint=joint, size=joint + OF_JOINT * stride)


class StagedSlopes(NamedTuple):
    """Rates of the stages of one robot, and workspace."""

    of: AccelerationSlopes
    numbers: Vector
    at: RatePlaces
    ends: Matrix  # (2 n, stride) rates of configuration and velocity, finally after the step
    increment: Vector  # (n,) of the stage
    acceleration: Vector  # (n,) of the stage, with impulses


def staged_slopes_of(stages: StagesTable, model: StepModel, contacts: ContactStage) -> Table:
    """Return arrays for the derivatives of staged steps at the stages of one robot."""
    of, s = stages.made_once(slopes_of, model, contacts), stages.content
    n = len(s.state.v)
    at = rate_places(n, 3 * n + len(s.state.act) + len(s.state.control))
    numbers = aligned_numbers(at.size)
    ends = numbers[: 2 * n * at.stride].reshape(2 * n, at.stride)  # `x` and `v`
    table = Table(StagedSlopes(of.content.of, numbers, at, ends, np.zeros(n), np.zeros(n)))
    table.kept = of
    return table


def differentiate_staged_robots(
    one: RobotStages, y: StagedSlopes, many: FleetArrays, x: RobotSlopes, first: int, stop: int
) -> int:
    """Differentiate the next steps of robots first to stop; return the number of robots for which this succeeds."""
    done = 0
    for i in range(first, stop):
        load_robot(one, many, i)
        load_inputs(one, many, i, 0)
        begin_doubtful(x, i)
        status = judge_inputs(one)
        if status == TAKEN:
            status = differentiate_stages(one, y, x, i)
        note_status(one, many, i, status)
        if status == TAKEN:
            if len(x.cotangents) > 0:
                multiply(y.ends, x.cotangents[i], x.products[i])
            else:
                copy_rows(y.ends, x.ends[i])
            done += 1
    return done


def differentiate_stages(s: RobotStages, y: StagedSlopes, x: RobotSlopes, i: int) -> int:
    """Write the rates of the state after the step; return the status of the stage that fails, or `TAKEN`."""
    r, state = s.rounds, s.state
    copy(state.q, r.start_q)
    copy(state.v, r.start_v)
    copy(state.v, r.rate)
    clear(y.increment)
    clear(r.rates)
    clear(r.accelerations)
    begin_rates(y)
    for k in range(RUNGE_KUTTA_ROUNDS):
        status = accelerate_touching(s)
        if status != TAKEN:
            return status
        copy(s.step.pushed, y.acceleration)
        if write_acceleration_slopes(s, y.of) > 0:
            note_doubtful(s, y.of, x, i)
        write_acceleration_rates(y)
        fix_acceleration_rates(s, y)
        numbers = runge_kutta_numbers(s.numbers.step, k)
        take_stage(s, y.increment, y.acceleration, numbers)
        copy(y.increment, s.point.increment)
        status = go_straight(s)
        if status != TAKEN:
            return status
        take_stage_of_rates(s, y, numbers)
    return TAKEN


def begin_rates(y: StagedSlopes) -> None:
    """Write the rates at the start of the step."""
    n, at = len(y.increment), y.at
    clear(y.numbers)
    for i in range(n):
        y.numbers[at.x + i * at.stride + i] = 1.0
        y.numbers[at.v + i * at.stride + n + i] = 1.0
        y.numbers[at.k + i * at.stride + n + i] = 1.0


def write_acceleration_rates(y: StagedSlopes) -> None:
    """Write the rates of the acceleration of a stage, from those of its state, and of joint forces and controls."""
    n, at, of, x = len(y.increment), y.at, y.of.at, y.of.numbers
    for i in range(n):
        row, factors = of.rates + i * of.width, at.factors + 2 * n * i
        for j in range(n):
            y.numbers[factors + j], y.numbers[factors + n + j] = -x[row + j], -x[row + of.stride + j]
    sizes = n, at.stride, 2 * n
    subtract_product(y.numbers, (at.a, at.stride), (at.x, at.stride), (at.factors, 2 * n, 1), sizes, True)
    for i in range(n):
        a, row = at.a + i * at.stride, of.rates + i * of.width
        for j in range(n):
            y.numbers[a + 2 * n + j] += x[row + 2 * of.stride + j]
        for k in range(at.columns - 3 * n):
            y.numbers[a + 3 * n + k] += x[row + 3 * of.stride + k]


Place = tuple[int, int]
"""Kind and first row of a joint."""

LINEAR, ANGULAR, BY_ANGULAR = (0, 0), (3, 3), (0, 3)
"""First rows and columns of parts of a matrix (6, 6); the last one is linear by angular."""


def row_of_part(joint: Place, part: int) -> int:
    """Return the row of a component (0 to 5, linear and angular) of the motion of a joint, or -1."""
    kind, first = joint
    if kind == FLOATING:
        return first + part
    if kind == PLANAR:
        return first + part if part < 2 else first + 2 if part == 5 else -1
    return first + part - 3 if part >= 3 else -1


def change_of_rate(turn: Turn, r: Triple, e: Triple) -> Triple:
    """Return the change of the rate of a rotation vector by a change e of it, at the angular velocity r."""
    numbers, once, aside = inverse_jacobian(turn), outer(turn.w, r), outer(e, r)
    change = along(times(0.5, aside), numbers.d, plus(outer(e, once), outer(turn.w, aside)))
    return along(change, numbers.e * inner(turn.w, e), outer(turn.w, once))


def begin_joint(y: StagedSlopes) -> None:
    """Set the rows of one joint to zero."""
    for i in range(OF_JOINT * y.at.stride):
        y.numbers[y.at.joint + i] = 0.0


def add_block(y: StagedSlopes, joint: Place, columns: Columns, parts: tuple[int, int], source: int) -> None:
    """Add the product of a matrix (3, 3) and a part of the joint's rows of a matrix to a part of the rows of one joint."""
    at, x, (a, b, c), (part, of) = y.at, y.numbers, columns, parts
    for i in range(3):
        factors = component(a, i), component(b, i), component(c, i)
        for e in range(3):
            row, factor = row_of_part(joint, of + e), component(factors, e)
            if row >= 0 and factor != 0.0:
                subtract_multiples(x, at.joint + (part + i) * at.stride, source + row * at.stride, 0, at.stride, (-factor,))


def add_start(y: StagedSlopes, joint: Place, columns: Columns, parts: tuple[int, int]) -> None:
    """Add a matrix (3, 3) to the derivatives of a part of one joint by a part of its configuration at the start."""
    at, (a, b, c), (part, of) = y.at, columns, parts
    for i in range(3):
        factors = component(a, i), component(b, i), component(c, i)
        for e in range(3):
            column = row_of_part(joint, of + e)
            if column >= 0:
                y.numbers[at.joint + (part + i) * at.stride + column] += component(factors, e)


def end_joint(y: StagedSlopes, joint: Place, target: int) -> None:
    """Write the rows of one joint to those of a matrix."""
    at, x = y.at, y.numbers
    for i in range(OF_JOINT):
        row = row_of_part(joint, i)
        if row >= 0:
            subtract_multiples(x, target + row * at.stride, at.joint + i * at.stride, 0, at.stride, (-1.0,), True)


def fix_acceleration_rates(s: RobotStages, y: StagedSlopes) -> None:
    """Replace the rates of the acceleration of a stage by rates with linear parts in the axes of the start."""
    joints, at = s.joints.curved, y.at
    for k in range(len(joints)):
        kind, first = joint = joints[k, 0], joints[k, 1]
        v, rate = joint_motion(kind, first, s.state.v), joint_motion(kind, first, y.acceleration)
        turn = turn_of(joint_motion(kind, first, y.increment).angular)
        w, a, b = turn.w, -turn.a, turn.b
        moved = along(rate.linear, 1.0, outer(v.angular, v.linear))
        back = crossed(times(-1.0, v.linear), UNIT)
        begin_joint(y)
        add_block(y, joint, columns_of(w, a, b), LINEAR, at.a)
        add_block(y, joint, UNIT, ANGULAR, at.a)
        add_block(y, joint, turned_columns(w, a, b, crossed(v.angular, UNIT)), LINEAR, at.v)
        add_block(y, joint, turned_columns(w, a, b, back), BY_ANGULAR, at.v)
        moving = crossed(times(-1.0, moved), columns_of(w, turn.b, turn.c))
        add_block(y, joint, turned_columns(w, a, b, moving), BY_ANGULAR, at.u)
        end_joint(y, joint, at.a)


def take_stage_of_rates(s: RobotStages, y: StagedSlopes, numbers: tuple[float, float, float]) -> None:
    """Move the rates of velocity, increment and sums by a stage, and write those of the state."""
    at, n, x, joints = y.at, len(y.increment), y.numbers, s.joints.curved
    step, of_sum, weight = numbers
    size = n * at.stride
    subtract_multiples(x, at.rates, at.k, 0, size, (-weight,))
    subtract_multiples(x, at.accelerations, at.a, 0, size, (-weight,))
    subtract_multiples(x, at.u, at.k, size, size, (-step, -of_sum), True)  # sums follow their terms
    subtract_multiples(x, at.k, at.a, size, size, (-step, -of_sum), True)
    subtract_multiples(x, at.v, at.k, 0, size, (-1.0,), True)
    subtract_multiples(x, at.x, at.u, 0, size, (-1.0,), True)
    for i in range(n):
        x[at.k + i * at.stride + n + i] += 1.0
        x[at.v + i * at.stride + n + i] += 1.0
        x[at.x + i * at.stride + i] += 1.0
    for k in range(len(joints)):
        kind, first = joint = joints[k, 0], joints[k, 1]
        u, v = joint_motion(kind, first, y.increment), joint_motion(kind, first, s.state.v)
        turn = turn_of(u.angular)
        back, J = columns_of(turn.w, turn.a, turn.b), columns_of(turn.w, turn.b, turn.c)
        begin_joint(y)
        add_block(y, joint, back, LINEAR, at.k)
        add_block(y, joint, UNIT, ANGULAR, at.k)
        add_block(y, joint, crossed(v.linear, J), BY_ANGULAR, at.u)
        end_joint(y, joint, at.v)
        begin_joint(y)
        add_block(y, joint, UNIT, LINEAR, at.k)
        add_block(y, joint, columns_of(turn.w, -0.5, inverse_jacobian(turn).d), ANGULAR, at.k)
        r = v.angular
        change = change_of_rate(turn, r, UNIT[0]), change_of_rate(turn, r, UNIT[1]), change_of_rate(turn, r, UNIT[2])
        add_block(y, joint, change, ANGULAR, at.u)
        end_joint(y, joint, at.k)
        begin_joint(y)
        add_block(y, joint, back, LINEAR, at.u)
        add_block(y, joint, J, ANGULAR, at.u)
        add_start(y, joint, back, LINEAR)
        add_start(y, joint, back, ANGULAR)
        lever = turned_columns(turn.w, turn.a, turn.b, crossed(times(-1.0, u.linear), UNIT))
        add_start(y, joint, lever, BY_ANGULAR)
        end_joint(y, joint, at.x)


DIFFERENTIATE_STAGES = CompiledLoop(differentiate_staged_robots, numbers=2, what="the derivatives of steps in stages")
