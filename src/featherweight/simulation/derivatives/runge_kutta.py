"""Derivatives of a Runge-Kutta step with contacts: those of its four stages, combined as `step` combines these.

Rates are along all directions at once: q, v, joint forces and controls. The acceleration of a stage has the rates of its
equations (`acceleration`). Joints whose velocities do not commute are displaced by (l, w) from the start, with E = exp(w) and
l' = V, linear velocities in the axes of the start. In the axes of a stage, with velocities v = Eᵀ V and angular velocities r,

    dx = (Eᵀ (dl + dx0 x l), J dw + Eᵀ dx0)    dv = Eᵀ dV + v x J dw    dV' = E (da + dr x v + r x dv + J dw x (a + r x v))
    w' = r + w x r / 2 + d w x (w x r)

Products with a cotangent of the state after the step go back through the stages, from the last to the first, with vectors in
place of these matrices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Matrix, Tensor, Vector
from ...collision.triples import Triple, along, inner, outer, plus, times
from ...contact.factors.branches import padded
from ...engine.loops.kernels import CompiledLoop, Table, aligned_numbers, subtract_multiples, subtract_product
from ...model.tree import FLOATING, PLANAR
from ..contact_stage import ContactStage
from ..fleet_loop import judge_inputs, load_inputs, load_robot, note_status
from ..robot_tables import StagesTable
from ..smooth_motion import (
    RUNGE_KUTTA_ROUNDS,
    clear,
    copy,
    runge_kutta_numbers,
)
from ..stage_records import FleetArrays, RobotStages
from ..step import accelerate_touching, go_straight, take_stage
from ..step_model import StepModel
from ..step_status import TAKEN
from ..turns import (
    UNIT,
    Turn,
    columns_of,
    crossed,
    inverse_jacobian,
    joint_motion,
    turn_of,
    turned_columns,
)  # fmt: skip
from .acceleration import write_acceleration_slopes
from .after_step import OF_JOINT, put_block
from .records import AccelerationSlopes, RobotSlopes, begin_doubtful, note_doubtful
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
    factors: int  # (n, 2 n) negative derivatives of the acceleration by x and v, or (n,) a negative cotangent of it
    stages: int  # (stages, n, width) derivatives of the acceleration, with the places of `AccelerationSlopes`
    pulled: int  # (1, width) product of a cotangent of the acceleration and these
    joint: int  # rows of one joint
    size: int


def rate_places(n: int, columns: int, width: int) -> RatePlaces:
    """Return the places of matrices of these sizes."""
    stride = padded(columns)
    matrices = RatePlaces._fields[2:-5]
    at = {name: i * n * stride for i, name in enumerate(matrices)}
    factors = len(matrices) * n * stride
    stages = factors + padded(2 * n * n)
    pulled = stages + RUNGE_KUTTA_ROUNDS * n * width
    joint = pulled + padded(width)
    size = joint + OF_JOINT * stride
    return RatePlaces(stride, columns, **at, factors=factors, stages=stages, pulled=pulled, joint=joint, size=size)


class Turns(NamedTuple):
    """Derivatives (stages * curved joints, 6, 6) of a stage's results for joints whose velocities do not commute.

    V is the velocity with linear parts in the axes of the start.
    """

    acceleration_from_a: Tensor
    acceleration_from_v: Tensor
    acceleration_from_u: Tensor
    v_from_V: Tensor
    v_from_u: Tensor
    k_from_V: Tensor
    k_from_u: Tensor
    x_from_u: Tensor
    x_from_start: Tensor


class Cotangents(NamedTuple):
    """Cotangents (n,) of the quantities of a stage."""

    x: Vector
    v: Vector
    u: Vector
    k: Vector
    a: Vector
    rates: Vector
    accelerations: Vector


class StagedSlopes(NamedTuple):
    """Rates of the stages of one robot, and workspace."""

    of: AccelerationSlopes
    numbers: Vector
    at: RatePlaces
    turns: Turns
    bars: Cotangents
    increment: Vector  # (n,) of the stage
    acceleration: Vector  # (n,) of the stage, with impulses
    bar: Vector  # (6,) cotangent of a joint


def staged_slopes_of(stages: StagesTable, model: StepModel, contacts: ContactStage) -> Table:
    """Return arrays for the derivatives of staged steps at the stages of one robot."""
    of, s = stages.made_once(slopes_of, model, contacts), stages.content
    n = len(s.state.v)
    columns = 3 * n + len(s.state.act) + len(s.state.control)
    at, curved = rate_places(n, columns, of.content.of.at.width), RUNGE_KUTTA_ROUNDS * len(s.joints.curved)
    turns = Turns(*(np.zeros((curved, OF_JOINT, OF_JOINT)) for _ in Turns._fields))
    bars = Cotangents(*(np.zeros(n) for _ in Cotangents._fields))
    numbers, bar = aligned_numbers(at.size), np.zeros(OF_JOINT)
    table = Table(StagedSlopes(of.content.of, numbers, at, turns, bars, np.zeros(n), np.zeros(n), bar))
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
                pull_back_stages(one, y, x.cotangents[i], x.products[i])
            else:
                write_staged_ends(y, x.ends[i])
            done += 1
    return done


def differentiate_stages(s: RobotStages, y: StagedSlopes, x: RobotSlopes, i: int) -> int:
    """Write the rates of the state after the step; return the status of the stage that fails, or `TAKEN`."""
    r, state, whole, n, at = s.rounds, s.state, len(x.cotangents) == 0, len(y.increment), y.at
    copy(state.q, r.start_q)
    copy(state.v, r.start_v)
    copy(state.v, r.rate)
    clear(y.increment)
    clear(r.rates)
    clear(r.accelerations)
    if whole:
        begin_rates(y)
    for k in range(RUNGE_KUTTA_ROUNDS):
        status = accelerate_touching(s)
        if status != TAKEN:
            return status
        copy(s.step.pushed, y.acceleration)
        if write_acceleration_slopes(s, y.of) > 0:
            note_doubtful(s, y.of, x, i)
        write_turns_of_acceleration(s, y, k)
        if whole:
            write_acceleration_rates(y)
            fix_acceleration_rates(s, y, k)
        else:
            rates, size, stage = y.of.at.rates, n * y.of.at.width, at.stages + k * n * y.of.at.width
            copy(y.of.numbers[rates : rates + size], y.numbers[stage : stage + size])
        numbers = runge_kutta_numbers(s.numbers.step, k)
        take_stage(s, y.increment, y.acceleration, numbers)
        copy(y.increment, s.point.increment)
        status = go_straight(s)
        if status != TAKEN:
            return status
        write_turns_of_state(s, y, k)
        if whole:
            take_stage_of_rates(s, y, numbers, k)
    return TAKEN


def begin_rates(y: StagedSlopes) -> None:
    """Write the rates at the start of the step."""
    n, at = len(y.increment), y.at
    clear(y.numbers)
    for i in range(n):
        y.numbers[at.x + i * at.stride + i] = 1.0
        y.numbers[at.v + i * at.stride + n + i] = 1.0
        y.numbers[at.k + i * at.stride + n + i] = 1.0


def row_of_rates(y: StagedSlopes, place: int, i: int) -> Vector:
    """Return a row of a matrix."""
    first = place + i * y.at.stride
    row: Vector = y.numbers[first : first + y.at.columns]
    return row


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


def row_of_part(kind: int, first: int, part: int) -> int:
    """Return the row of a part (0 to 5, linear and angular) of the motion of a joint, or -1."""
    if kind == FLOATING:
        return first + part
    if kind == PLANAR:
        return first + part if part < 2 else first + 2 if part == 5 else -1
    return first + part - 3 if part >= 3 else -1


def write_turns_of_acceleration(s: RobotStages, y: StagedSlopes, k: int) -> None:
    """Write the derivatives of the acceleration, linear in the axes of the start, at stage k."""
    joints, turns = s.joints.curved, y.turns
    for joint in range(len(joints)):
        at, kind, first = k * len(joints) + joint, joints[joint, 0], joints[joint, 1]
        v, rate = joint_motion(kind, first, s.state.v), joint_motion(kind, first, y.acceleration)
        turn = turn_of(joint_motion(kind, first, y.increment).angular)
        w, a, b = turn.w, -turn.a, turn.b
        moved = along(rate.linear, 1.0, outer(v.angular, v.linear))
        put_block(columns_of(w, a, b), 0, 0, turns.acceleration_from_a[at])
        put_block(UNIT, 3, 3, turns.acceleration_from_a[at])
        put_block(turned_columns(w, a, b, crossed(v.angular, UNIT)), 0, 0, turns.acceleration_from_v[at])
        put_block(turned_columns(w, a, b, crossed(times(-1.0, v.linear), UNIT)), 0, 3, turns.acceleration_from_v[at])
        J = columns_of(w, turn.b, turn.c)
        put_block(turned_columns(w, a, b, crossed(times(-1.0, moved), J)), 0, 3, turns.acceleration_from_u[at])


def write_turns_of_state(s: RobotStages, y: StagedSlopes, k: int) -> None:
    """Write the derivatives of the configuration and velocity after stage k."""
    joints, turns = s.joints.curved, y.turns
    for joint in range(len(joints)):
        at, kind, first = k * len(joints) + joint, joints[joint, 0], joints[joint, 1]
        u, v = joint_motion(kind, first, y.increment), joint_motion(kind, first, s.state.v)
        turn = turn_of(u.angular)
        back, J = columns_of(turn.w, turn.a, turn.b), columns_of(turn.w, turn.b, turn.c)
        put_block(back, 0, 0, turns.v_from_V[at])
        put_block(UNIT, 3, 3, turns.v_from_V[at])
        put_block(crossed(v.linear, J), 0, 3, turns.v_from_u[at])
        put_block(UNIT, 0, 0, turns.k_from_V[at])
        put_block(columns_of(turn.w, -0.5, inverse_jacobian(turn).d), 3, 3, turns.k_from_V[at])
        change = (
            change_of_rate(turn, v.angular, UNIT[0]),
            change_of_rate(turn, v.angular, UNIT[1]),
            change_of_rate(turn, v.angular, UNIT[2]),
        )
        put_block(change, 3, 3, turns.k_from_u[at])
        put_block(back, 0, 0, turns.x_from_u[at])
        put_block(J, 3, 3, turns.x_from_u[at])
        put_block(back, 0, 0, turns.x_from_start[at])
        put_block(back, 3, 3, turns.x_from_start[at])
        lever = crossed(times(-1.0, u.linear), UNIT)
        put_block(turned_columns(turn.w, turn.a, turn.b, lever), 0, 3, turns.x_from_start[at])


def change_of_rate(turn: Turn, r: Triple, e: Triple) -> Triple:
    """Return the change of the rate of a rotation vector by a change e of it, at the angular velocity r."""
    numbers, once, aside = inverse_jacobian(turn), outer(turn.w, r), outer(e, r)
    change = along(times(0.5, aside), numbers.d, plus(outer(e, once), outer(turn.w, aside)))
    return along(change, numbers.e * inner(turn.w, e), outer(turn.w, once))


def begin_joint(y: StagedSlopes) -> None:
    """Set the rows of one joint to zero."""
    for i in range(OF_JOINT * y.at.stride):
        y.numbers[y.at.joint + i] = 0.0


def add_block(y: StagedSlopes, kind: int, first: int, block: Matrix, source: int) -> None:
    """Add the product of a block and the joint's rows of a matrix to the rows of one joint."""
    at, x = y.at, y.numbers
    for i in range(OF_JOINT):
        for e in range(OF_JOINT):
            row = row_of_part(kind, first, e)
            if row >= 0 and block[i, e] != 0.0:
                subtract_multiples(x, at.joint + i * at.stride, source + row * at.stride, 0, at.stride, (-block[i, e],))


def end_joint(y: StagedSlopes, kind: int, first: int, target: int) -> None:
    """Write the rows of one joint to those of a matrix."""
    at, x = y.at, y.numbers
    for i in range(OF_JOINT):
        row = row_of_part(kind, first, i)
        if row >= 0:
            subtract_multiples(x, target + row * at.stride, at.joint + i * at.stride, 0, at.stride, (-1.0,), True)


def fix_acceleration_rates(s: RobotStages, y: StagedSlopes, k: int) -> None:
    """Replace the rates of the acceleration of stage k by rates with linear parts in the axes of the start."""
    joints, t, at = s.joints.curved, y.turns, y.at
    for joint in range(len(joints)):
        of, kind, first = k * len(joints) + joint, joints[joint, 0], joints[joint, 1]
        begin_joint(y)
        add_block(y, kind, first, t.acceleration_from_a[of], at.a)
        add_block(y, kind, first, t.acceleration_from_v[of], at.v)
        add_block(y, kind, first, t.acceleration_from_u[of], at.u)
        end_joint(y, kind, first, at.a)


def take_stage_of_rates(s: RobotStages, y: StagedSlopes, numbers: tuple[float, float, float], k: int) -> None:
    """Move the rates of velocity, increment and sums by a stage, and write those of the state."""
    at, n, x = y.at, len(y.increment), y.numbers
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
    joints, t = s.joints.curved, y.turns
    for joint in range(len(joints)):
        of, kind, first = k * len(joints) + joint, joints[joint, 0], joints[joint, 1]
        begin_joint(y)
        add_block(y, kind, first, t.v_from_V[of], at.k)
        add_block(y, kind, first, t.v_from_u[of], at.u)
        end_joint(y, kind, first, at.v)
        begin_joint(y)
        add_block(y, kind, first, t.k_from_V[of], at.k)
        add_block(y, kind, first, t.k_from_u[of], at.u)
        end_joint(y, kind, first, at.k)
        begin_joint(y)
        add_block(y, kind, first, t.x_from_u[of], at.u)
        for i in range(OF_JOINT):
            for e in range(OF_JOINT):
                column = row_of_part(kind, first, e)
                if column >= 0:
                    x[at.joint + i * at.stride + column] += t.x_from_start[of, i, e]
        end_joint(y, kind, first, at.x)


def write_staged_ends(y: StagedSlopes, ends: Matrix) -> None:
    """Write the derivatives of the state after the step."""
    n, at = len(y.increment), y.at
    for i in range(n):
        copy(row_of_rates(y, at.x, i), ends[i])
        copy(row_of_rates(y, at.v, i), ends[n + i])


def pull_back_stages(s: RobotStages, y: StagedSlopes, cotangent: Vector, product: Vector) -> None:
    """Write the product of a cotangent of the state after the step and its derivatives, from the last stage to the first."""
    n, at, of, bars = len(y.increment), y.at, y.of.at, y.bars
    clear(product)
    clear(bars.u)
    clear(bars.k)
    clear(bars.rates)
    clear(bars.accelerations)
    copy(cotangent[:n], bars.x)
    copy(cotangent[n:], bars.v)
    for k in range(RUNGE_KUTTA_ROUNDS - 1, -1, -1):
        pull_back_state(s, y, k, product)
        step, of_sum, weight = runge_kutta_numbers(s.numbers.step, k)
        for i in range(n):
            product[n + i] += bars.k[i]
            bars.accelerations[i] += of_sum * bars.k[i]
            bars.rates[i] += of_sum * bars.u[i]
            bars.a[i] = step * bars.k[i] + weight * bars.accelerations[i]
            bars.k[i] = step * bars.u[i] + weight * bars.rates[i]
        pull_back_acceleration(s, y, k)
        for i in range(n):
            y.numbers[at.factors + i] = -bars.a[i]
        rows, sizes = at.stages + k * n * of.width, (1, of.width, n)
        subtract_product(y.numbers, (at.pulled, of.width), (rows, of.width), (at.factors, 0, 1), sizes, True)
        for i in range(n):
            bars.x[i] = y.numbers[at.pulled + i]
            bars.v[i] += y.numbers[at.pulled + of.stride + i]
            product[2 * n + i] += y.numbers[at.pulled + 2 * of.stride + i]
        for c in range(at.columns - 3 * n):
            product[3 * n + c] += y.numbers[at.pulled + 3 * of.stride + c]
    for i in range(n):
        product[i] += bars.x[i]
        product[n + i] += bars.v[i] + bars.k[i]


def add_transposed(y: StagedSlopes, kind: int, first: int, block: Matrix, target: Vector) -> None:
    """Add the product of a transposed block and the cotangent of a joint to the joint's part of a vector."""
    for e in range(OF_JOINT):
        row = row_of_part(kind, first, e)
        if row >= 0:
            for i in range(OF_JOINT):
                target[row] += block[i, e] * y.bar[i]


def take_bar(y: StagedSlopes, kind: int, first: int, source: Vector) -> None:
    """Move the joint's part of a vector to the cotangent of a joint."""
    for i in range(OF_JOINT):
        row = row_of_part(kind, first, i)
        y.bar[i] = source[row] if row >= 0 else 0.0
        if row >= 0:
            source[row] = 0.0


def pull_back_state(s: RobotStages, y: StagedSlopes, k: int, product: Vector) -> None:
    """Add cotangents of the increment, k and the configuration at the start, for those of the state after stage k."""
    joints, bars, t = s.joints.curved, y.bars, y.turns
    for joint in range(len(joints)):
        of, kind, first = k * len(joints) + joint, joints[joint, 0], joints[joint, 1]
        take_bar(y, kind, first, bars.k)
        add_transposed(y, kind, first, t.k_from_V[of], bars.k)
        add_transposed(y, kind, first, t.k_from_u[of], bars.u)
        take_bar(y, kind, first, bars.v)
        add_transposed(y, kind, first, t.v_from_V[of], bars.k)
        add_transposed(y, kind, first, t.v_from_u[of], bars.u)
        take_bar(y, kind, first, bars.x)
        add_transposed(y, kind, first, t.x_from_u[of], bars.u)
        add_transposed(y, kind, first, t.x_from_start[of], product)
    for i in range(len(y.increment)):
        bars.k[i] += bars.v[i]
        bars.u[i] += bars.x[i]
        product[i] += bars.x[i]


def pull_back_acceleration(s: RobotStages, y: StagedSlopes, k: int) -> None:
    """Write cotangents of the increment, velocity and acceleration of stage k, for those of k's acceleration."""
    joints, bars, t = s.joints.curved, y.bars, y.turns
    clear(bars.u)
    clear(bars.v)
    for joint in range(len(joints)):
        of, kind, first = k * len(joints) + joint, joints[joint, 0], joints[joint, 1]
        take_bar(y, kind, first, bars.a)
        add_transposed(y, kind, first, t.acceleration_from_a[of], bars.a)
        add_transposed(y, kind, first, t.acceleration_from_v[of], bars.v)
        add_transposed(y, kind, first, t.acceleration_from_u[of], bars.u)


DIFFERENTIATE_STAGES = CompiledLoop(differentiate_staged_robots, numbers=2, what="the derivatives of steps in stages")
