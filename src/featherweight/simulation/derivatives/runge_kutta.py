"""Derivatives of a Runge-Kutta step with contacts: those of its four stages, combined as `step` combines these.

Rates are along all directions at once: q, v, joint forces and controls. The acceleration of a stage has the rates of its
equations (`acceleration`); coordinates u of joints whose velocities do not commute have u' = w + [u, w]/2 +
[u, [u, w]]/12, which is of second order in u and linear in w, so that differences over one are exact. Products with a cotangent
of the state after the step go back through the stages, from the last to the first, with vectors in place of these matrices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Matrix, Tensor, Vector
from ...contact.factors.branches import padded
from ...engine.loops.kernels import CompiledLoop, Table, aligned_numbers, subtract_multiples, subtract_product
from ...model.tree import FLOATING
from ..contact_stage import ContactStage
from ..fleet_loop import judge_inputs, load_inputs, load_robot, note_status
from ..robot_tables import StagesTable
from ..smooth_motion import (
    RUNGE_KUTTA_ROUNDS,
    clear,
    copy,
    go,
    runge_kutta_numbers,
    runge_kutta_round,
    write_brackets,
    write_curved_rate,
)
from ..stage_records import FleetArrays, RobotStages
from ..step import accelerate_touching
from ..step_model import StepModel
from ..step_status import TAKEN
from .acceleration import write_acceleration_slopes
from .after_step import OF_JOINT
from .records import AccelerationSlopes, RobotSlopes, begin_doubtful, note_doubtful
from .semi_implicit import slopes_of

LEAST_TERM = 1e-18  # of a series, relative to its first


class RatePlaces(NamedTuple):
    """Places of matrices (n, columns) in one vector, with rows of `stride` numbers."""

    stride: int
    columns: int
    x: int  # rates of the stage's configuration
    v: int  # of its velocity
    u: int  # of the increment from the start
    k: int  # of the rate of the increment
    rates: int  # sums of k over stages
    a: int  # of the acceleration
    accelerations: int  # sums of a over stages
    factors: int  # (n, 2 n) negative derivatives of the acceleration by x and v, or (n,) a negative cotangent of it
    stages: int  # (stages, n, width) derivatives of the acceleration, with the places of `AccelerationSlopes`
    pulled: int  # (1, width) product of a cotangent of the acceleration and these
    size: int


def rate_places(n: int, columns: int, width: int) -> RatePlaces:
    """Return the places of matrices of these sizes."""
    stride = padded(columns)
    matrices = RatePlaces._fields[2:-4]
    at = {name: i * n * stride for i, name in enumerate(matrices)}
    factors = len(matrices) * n * stride
    stages = factors + padded(2 * n * n)
    pulled = stages + RUNGE_KUTTA_ROUNDS * n * width
    return RatePlaces(stride, columns, **at, factors=factors, stages=stages, pulled=pulled, size=pulled + width)


class Turns(NamedTuple):
    """Derivatives (stages * curved joints, 6, 6) for joints whose velocities do not commute."""

    by_increment: Tensor  # of the increment's rate
    by_velocity: Tensor
    ahead: Tensor  # of the next configuration by the next increment
    from_start: Tensor  # and by the configuration at the start


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
    probe: Matrix  # (3, n) arguments and results of differences


def staged_slopes_of(stages: StagesTable, model: StepModel, contacts: ContactStage) -> Table:
    """Return arrays for the derivatives of staged steps at the stages of one robot."""
    of, s = stages.made_once(slopes_of, model, contacts), stages.content
    n = len(s.state.v)
    columns = 3 * n + len(s.state.act) + len(s.state.control)
    at, curved = rate_places(n, columns, of.content.of.at.width), RUNGE_KUTTA_ROUNDS * len(s.joints.curved)
    turns = Turns(*(np.zeros((curved, OF_JOINT, OF_JOINT)) for _ in Turns._fields))
    bars = Cotangents(*(np.zeros(n) for _ in Cotangents._fields))
    numbers, probe = aligned_numbers(at.size), np.zeros((3, n))
    table = Table(StagedSlopes(of.content.of, numbers, at, turns, bars, np.zeros(n), np.zeros(n), probe))
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
        write_turns_of_rate(s, y, k)
        if whole:
            write_acceleration_rates(y)
            write_rates_of_increment(s, y, k)
        else:
            rates, size, stage = y.of.at.rates, n * y.of.at.width, at.stages + k * n * y.of.at.width
            copy(y.of.numbers[rates : rates + size], y.numbers[stage : stage + size])
        take_stage(s, y, k)
        write_turns_of_configuration(s, y, k)
        if whole:
            take_stage_of_rates(s, y, k)
        copy(y.increment, s.point.increment)
        status = go(s)
        if status != TAKEN:
            return status
        copy(s.point.x, state.q)
    return TAKEN


def begin_rates(y: StagedSlopes) -> None:
    """Write the rates at the start of the step."""
    n, at = len(y.increment), y.at
    clear(y.numbers)
    for i in range(n):
        y.numbers[at.x + i * at.stride + i] = 1.0
        y.numbers[at.v + i * at.stride + n + i] = 1.0


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


def write_turns_of_rate(s: RobotStages, y: StagedSlopes, k: int) -> None:
    """Write the derivatives of the increment's rate of joints whose velocities do not commute, at stage k."""
    joints, r, turns = s.joints.curved, s.rounds, y.turns
    for joint in range(len(joints)):
        at, first, stop = k * len(joints) + joint, joints[joint, 1], end_of_joint(s, joint)
        one, u, v, once, twice = joints[joint : joint + 1], y.increment[:stop], s.state.v[:stop], r.once[:stop], r.twice[:stop]
        a, b, moved = y.probe[0, :stop], y.probe[1, :stop], y.probe[2, :stop]
        by_u, by_v = turns.by_increment[at], turns.by_velocity[at]
        for e in range(first, stop):
            copy(u, moved)
            moved[e] += 1.0
            write_curved_rate(one, moved, v, a, once, twice)
            moved[e] -= 2.0
            write_curved_rate(one, moved, v, b, once, twice)
            for i in range(first, stop):
                by_u[i - first, e - first] = 0.5 * (a[i] - b[i])
            clear(moved)
            moved[e] = 1.0
            write_curved_rate(one, u, moved, a, once, twice)
            for i in range(first, stop):
                by_v[i - first, e - first] = a[i]


def end_of_joint(s: RobotStages, joint: int) -> int:
    """Return the row after those of a joint whose velocities do not commute."""
    first: int = s.joints.curved[joint, 1]
    return first + (6 if s.joints.curved[joint, 0] == FLOATING else 3)


def write_rates_of_increment(s: RobotStages, y: StagedSlopes, k: int) -> None:
    """Write the rates of the increment's rate."""
    joints, n, at, turns = s.joints.curved, len(y.increment), y.at, y.turns
    subtract_multiples(y.numbers, at.k, at.v, 0, n * at.stride, (-1.0,), True)
    for joint in range(len(joints)):
        of, first, stop = k * len(joints) + joint, joints[joint, 1], end_of_joint(s, joint)
        for i in range(first, stop):
            row, begin = at.k + i * at.stride, True
            for e in range(first, stop):
                by_u, by_v = turns.by_increment[of, i - first, e - first], turns.by_velocity[of, i - first, e - first]
                u, v = at.u + e * at.stride, at.v + e * at.stride
                if begin:
                    subtract_multiples(y.numbers, row, u, v - u, at.stride, (-by_u, -by_v), True)
                else:
                    subtract_multiples(y.numbers, row, u, v - u, at.stride, (-by_u, -by_v))
                begin = False


def take_stage(s: RobotStages, y: StagedSlopes, k: int) -> None:
    """Move velocity, increment and sums by a stage; then return to the configuration at the start."""
    r, p = s.rounds, s.point
    numbers = runge_kutta_numbers(s.numbers.step, k)
    write_curved_rate(s.joints.curved, y.increment, s.state.v, r.rate, r.once, r.twice)
    runge_kutta_round(
        r.start_v, y.acceleration, r.rate, r.rates, r.accelerations, numbers, (p.w, y.increment, r.rates, r.accelerations)
    )
    copy(p.w, s.state.v)
    copy(r.start_q, s.state.q)


def take_stage_of_rates(s: RobotStages, y: StagedSlopes, k: int) -> None:
    """Move the rates of velocity, increment and sums by a stage, and write those of the configuration."""
    at, n, x = y.at, len(y.increment), y.numbers
    along, of_sum, weight = runge_kutta_numbers(s.numbers.step, k)
    size = n * at.stride
    subtract_multiples(x, at.rates, at.k, 0, size, (-weight,))
    subtract_multiples(x, at.accelerations, at.a, 0, size, (-weight,))
    subtract_multiples(x, at.u, at.k, size, size, (-along, -of_sum), True)  # sums follow their terms
    subtract_multiples(x, at.v, at.a, size, size, (-along, -of_sum), True)
    for i in range(n):
        x[at.v + i * at.stride + n + i] += 1.0
    write_rates_of_configuration(s, y, k)


def write_turns_of_configuration(s: RobotStages, y: StagedSlopes, k: int) -> None:
    """Write the derivatives of q exp(u) at the increment u from the start: (1 - exp(-ad))/ad and exp(-ad), with ad = [u, .]."""
    joints = s.joints.curved
    for joint in range(len(joints)):
        at, first, stop = k * len(joints) + joint, joints[joint, 1], end_of_joint(s, joint)
        for e in range(first, stop):
            write_column_of_exponential(s, y, joint, e)
            for i in range(first, stop):
                y.turns.ahead[at, i - first, e - first] = y.probe[0, i]
                y.turns.from_start[at, i - first, e - first] = (1.0 if i == e else 0.0) - y.probe[1, i]


def write_rates_of_configuration(s: RobotStages, y: StagedSlopes, k: int) -> None:
    """Write the rates of q exp(u)."""
    joints, n, at = s.joints.curved, len(y.increment), y.at
    subtract_multiples(y.numbers, at.x, at.u, 0, n * at.stride, (-1.0,), True)
    for i in range(n):
        y.numbers[at.x + i * at.stride + i] += 1.0
    for joint in range(len(joints)):
        of, first, stop = k * len(joints) + joint, joints[joint, 1], end_of_joint(s, joint)
        for i in range(first, stop):
            row = at.x + i * at.stride
            for c in range(at.stride):
                y.numbers[row + c] = 0.0
            for e in range(first, stop):
                factor = -y.turns.ahead[of, i - first, e - first]
                subtract_multiples(y.numbers, row, at.u + e * at.stride, 0, at.stride, (factor,))
                y.numbers[row + e] += y.turns.from_start[of, i - first, e - first]


def write_column_of_exponential(s: RobotStages, y: StagedSlopes, joint: int, e: int) -> None:
    """Write column e of J = (1 - exp(-ad))/ad of a joint, by its series, and of ad J."""
    one, first, stop = s.joints.curved[joint : joint + 1], s.joints.curved[joint, 1], end_of_joint(s, joint)
    total, bracket, term, u, k, greatest = y.probe[0, :stop], y.probe[1, :stop], y.probe[2, :stop], y.increment[:stop], 1, 1.0
    clear(total)
    clear(term)
    term[e] = 1.0
    while greatest > LEAST_TERM:
        greatest = 0.0
        for i in range(first, stop):
            total[i] += term[i]
        write_brackets(one, u, term, bracket)
        k += 1
        for i in range(first, stop):
            term[i] = -bracket[i] / k
            greatest = max(greatest, abs(term[i]))
    write_brackets(one, u, total, bracket)


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
    clear(bars.rates)
    clear(bars.accelerations)
    copy(cotangent[:n], bars.x)
    copy(cotangent[n:], bars.v)
    for k in range(RUNGE_KUTTA_ROUNDS - 1, -1, -1):
        pull_back_configuration(s, y, k, product)
        along, of_sum, weight = runge_kutta_numbers(s.numbers.step, k)
        for i in range(n):
            product[n + i] += bars.v[i]
            bars.accelerations[i] += of_sum * bars.v[i]
            bars.rates[i] += of_sum * bars.u[i]
            bars.a[i] = along * bars.v[i] + weight * bars.accelerations[i]
            bars.k[i] = along * bars.u[i] + weight * bars.rates[i]
            y.numbers[at.factors + i] = -bars.a[i]
        pull_back_rate(s, y, k)
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
        product[n + i] += bars.v[i]


def pull_back_configuration(s: RobotStages, y: StagedSlopes, k: int, product: Vector) -> None:
    """Add cotangents of the increment and of the configuration at the start, for those of the configuration after stage k."""
    joints, bars = s.joints.curved, y.bars
    for i in range(len(y.increment)):
        bars.u[i] += bars.x[i]
        product[i] += bars.x[i]
    for joint in range(len(joints)):
        at, first, stop = k * len(joints) + joint, joints[joint, 1], end_of_joint(s, joint)
        for e in range(first, stop):
            bars.u[e] -= bars.x[e]
            product[e] -= bars.x[e]
            for i in range(first, stop):
                bars.u[e] += y.turns.ahead[at, i - first, e - first] * bars.x[i]
                product[e] += y.turns.from_start[at, i - first, e - first] * bars.x[i]


def pull_back_rate(s: RobotStages, y: StagedSlopes, k: int) -> None:
    """Write cotangents of the increment and velocity of stage k, for those of the increment's rate."""
    joints, bars = s.joints.curved, y.bars
    clear(bars.u)
    copy(bars.k, bars.v)
    for joint in range(len(joints)):
        at, first, stop = k * len(joints) + joint, joints[joint, 1], end_of_joint(s, joint)
        for e in range(first, stop):
            bars.v[e] = 0.0
            for i in range(first, stop):
                bars.u[e] += y.turns.by_increment[at, i - first, e - first] * bars.k[i]
                bars.v[e] += y.turns.by_velocity[at, i - first, e - first] * bars.k[i]


DIFFERENTIATE_STAGES = CompiledLoop(differentiate_staged_robots, numbers=2, what="the derivatives of steps in stages")
