"""Derivatives of a Runge-Kutta step with contacts: those of its four stages, combined as `step` combines these.

Rates are along all directions at once: q, v, joint forces and controls. The acceleration of a stage has the rates of its
equations (`acceleration_slopes`); coordinates u of joints whose velocities do not commute have u' = w + [u, w]/2 +
[u, [u, w]]/12, which is of second order in u and linear in w, so that differences over one are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Matrix, Vector
from ..contact.branches import padded
from ..engine.loops.kernels import CompiledLoop, Table, aligned_numbers, subtract_multiples, subtract_product
from ..model.tree import FLOATING
from .acceleration_slopes import write_acceleration_slopes
from .contact_stage import ContactStage
from .fleet_loop import judge_inputs, load_inputs, load_robot, note_status
from .robot_tables import StagesTable
from .slope_records import AccelerationSlopes, RobotSlopes, begin_doubtful, note_doubtful
from .smooth_motion import (
    RUNGE_KUTTA_ROUNDS,
    clear,
    copy,
    go,
    runge_kutta_numbers,
    runge_kutta_round,
    write_brackets,
    write_curved_rate,
)
from .stage_records import FleetArrays, RobotStages
from .step import accelerate_touching
from .step_model import StepModel
from .step_slopes import slopes_of
from .step_status import TAKEN

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
    factors: int  # (n, 2 n) negative derivatives of the acceleration by x and v, or (2 n,) a negative cotangent
    product: int  # (1, columns) of a cotangent and the derivatives
    size: int


def rate_places(n: int, columns: int) -> RatePlaces:
    """Return the places of matrices of these sizes."""
    stride = padded(columns)
    matrices = RatePlaces._fields[2:-3]
    at = {name: i * n * stride for i, name in enumerate(matrices)}
    factors = len(matrices) * n * stride
    product = factors + padded(2 * n * n)
    return RatePlaces(stride, columns, **at, factors=factors, product=product, size=product + stride)


class StagedSlopes(NamedTuple):
    """Rates of the stages of one robot, and workspace."""

    of: AccelerationSlopes
    numbers: Vector
    at: RatePlaces
    increment: Vector  # (n,) of the stage
    acceleration: Vector  # (n,) of the stage, with impulses
    probe: Matrix  # (3, n) arguments and results of differences


def staged_slopes_of(stages: StagesTable, model: StepModel, contacts: ContactStage) -> Table:
    """Return arrays for the derivatives of staged steps at the stages of one robot."""
    of, s = stages.made_once(slopes_of, model, contacts), stages.content
    n = len(s.state.v)
    columns = 3 * n + len(s.state.act) + len(s.state.control)
    at, probe = rate_places(n, columns), np.zeros((3, n))
    table = Table(StagedSlopes(of.content.of, aligned_numbers(at.size), at, np.zeros(n), np.zeros(n), probe))
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
                write_staged_product(y, x.cotangents[i], x.products[i])
            else:
                write_staged_ends(y, x.ends[i])
            done += 1
    return done


def differentiate_stages(s: RobotStages, y: StagedSlopes, x: RobotSlopes, i: int) -> int:
    """Write the rates of the state after the step; return the status of the stage that fails, or `TAKEN`."""
    r, state = s.rounds, s.state
    copy(state.q, r.start_q)
    copy(state.v, r.start_v)
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
        write_rates_of_increment(s, y)
        take_stage(s, y, k)
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


def write_rates_of_increment(s: RobotStages, y: StagedSlopes) -> None:
    """Write the rates of the increment's rate."""
    joints, n, at, r = s.joints.curved, len(y.increment), y.at, s.rounds
    subtract_multiples(y.numbers, at.k, at.v, 0, n * at.stride, (-1.0,), True)
    for joint in range(len(joints)):
        first = joints[joint, 1]
        size = 6 if joints[joint, 0] == FLOATING else 3
        for i in range(first, first + size):
            for c in range(at.stride):
                y.numbers[at.k + i * at.stride + c] = 0.0
        for e in range(first, first + size):
            for side in range(2):
                copy(y.increment, y.probe[2])
                y.probe[2, e] += 1.0 if side == 0 else -1.0
                write_curved_rate(joints, y.probe[2], s.state.v, y.probe[side], r.once, r.twice)
            for i in range(first, first + size):
                factor = 0.5 * (y.probe[0, i] - y.probe[1, i])
                subtract_multiples(y.numbers, at.k + i * at.stride, at.u + e * at.stride, 0, at.stride, (-factor,))
            clear(y.probe[2])
            y.probe[2, e] = 1.0
            write_curved_rate(joints, y.increment, y.probe[2], y.probe[0], r.once, r.twice)
            for i in range(first, first + size):
                subtract_multiples(y.numbers, at.k + i * at.stride, at.v + e * at.stride, 0, at.stride, (-y.probe[0, i],))


def take_stage(s: RobotStages, y: StagedSlopes, k: int) -> None:
    """Move velocity, increment and sums by a stage, and their rates; then return to the configuration at the start."""
    r, p, at, n = s.rounds, s.point, y.at, len(y.increment)
    numbers = runge_kutta_numbers(s.numbers.step, k)
    write_curved_rate(s.joints.curved, y.increment, s.state.v, r.rate, r.once, r.twice)
    runge_kutta_round(
        r.start_v, y.acceleration, r.rate, r.rates, r.accelerations, numbers, (p.w, y.increment, r.rates, r.accelerations)
    )
    along, of_sum, weight = numbers
    x, size = y.numbers, n * at.stride
    subtract_multiples(x, at.rates, at.k, 0, size, (-weight,))
    subtract_multiples(x, at.accelerations, at.a, 0, size, (-weight,))
    subtract_multiples(x, at.u, at.k, size, size, (-along, -of_sum), True)  # sums follow their terms
    subtract_multiples(x, at.v, at.a, size, size, (-along, -of_sum), True)
    for i in range(n):
        x[at.v + i * at.stride + n + i] += 1.0
    copy(p.w, s.state.v)
    copy(r.start_q, s.state.q)
    write_rates_of_configuration(s, y)


def write_rates_of_configuration(s: RobotStages, y: StagedSlopes) -> None:
    """Write the rates of q exp(u) at the increment u from the start: exp(-ad) dq + (1 - exp(-ad))/ad du with ad = [u, .]."""
    joints, n, at = s.joints.curved, len(y.increment), y.at
    subtract_multiples(y.numbers, at.x, at.u, 0, n * at.stride, (-1.0,), True)
    for i in range(n):
        y.numbers[at.x + i * at.stride + i] += 1.0
    for joint in range(len(joints)):
        first = joints[joint, 1]
        size = 6 if joints[joint, 0] == FLOATING else 3
        for i in range(first, first + size):
            for c in range(at.stride):
                y.numbers[at.x + i * at.stride + c] = 0.0
        for e in range(first, first + size):
            write_column_of_exponential(s, y, first, first + size, e)
            for i in range(first, first + size):
                row = at.x + i * at.stride
                subtract_multiples(y.numbers, row, at.u + e * at.stride, 0, at.stride, (-y.probe[0, i],))
                y.numbers[row + e] += (1.0 if i == e else 0.0) - y.probe[1, i]


def write_column_of_exponential(s: RobotStages, y: StagedSlopes, first: int, stop: int, e: int) -> None:
    """Write column e of J = (1 - exp(-ad))/ad, by its series, and of ad J, for a joint with the rows from `first` to `stop`."""
    joints, term, bracket, k, greatest = s.joints.curved, y.probe[2], y.probe[1], 1, 1.0
    clear(y.probe[0])
    clear(term)
    term[e] = 1.0
    while greatest > LEAST_TERM:
        greatest = 0.0
        for i in range(first, stop):
            y.probe[0, i] += term[i]
        write_brackets(joints, y.increment, term, bracket)
        k += 1
        for i in range(first, stop):
            term[i] = -bracket[i] / k
            greatest = max(greatest, abs(term[i]))
    write_brackets(joints, y.increment, y.probe[0], bracket)


def write_staged_ends(y: StagedSlopes, ends: Matrix) -> None:
    """Write the derivatives of the state after the step."""
    n, at = len(y.increment), y.at
    for i in range(n):
        copy(row_of_rates(y, at.x, i), ends[i])
        copy(row_of_rates(y, at.v, i), ends[n + i])


def write_staged_product(y: StagedSlopes, cotangent: Vector, product: Vector) -> None:
    """Write the product of a cotangent of the state after the step and its derivatives."""
    n, at = len(y.increment), y.at
    for i in range(2 * n):
        y.numbers[at.factors + i] = -cotangent[i]
    sizes = 1, at.stride, 2 * n
    subtract_product(y.numbers, (at.product, at.stride), (at.x, at.stride), (at.factors, 0, 1), sizes, True)
    copy(row_of_rates(y, at.product, 0), product)


DIFFERENTIATE_STAGES = CompiledLoop(differentiate_staged_robots, numbers=2, what="the derivatives of steps in stages")
