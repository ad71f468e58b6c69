"""Knots that are steps of a simulation, within the solver of programs without Python: `simulated_steps` without its threads.

A fleet of one robot moves along the horizon, and one of several robots takes the trials of a knot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..array_types import Integers, Matrix, Vector
from ..contact.factors.block_equations import copy_numbers
from ..simulation.fleet_steps import FleetSteps, differentiate, fleet_steps, restart_robot, take_steps
from ..simulation.simulation import Simulation
from ..simulation.stage_records import FleetArrays
from .riccati import Riccati


class SimulatedHorizon(NamedTuple):
    """The steps of knots, and memory for their derivatives."""

    steps: FleetSteps  # fleets of one robot, and of as many as there are trials
    every: int  # steps of a knot
    driven: Integers  # (nu,) velocities whose forces the controls are; none for actuators
    slopes: Matrix  # (2 nv, 2 nv + nu) of the steps of a knot
    before: Matrix  # the same without the last step


def simulated_horizon(
    simulation: Simulation, every: int, driven: list[int] | None, trials: int
) -> tuple[SimulatedHorizon, list[Any]]:
    """Return the steps of a simulation as knots, and objects to keep alive."""
    steps, kept = fleet_steps(simulation, (1, trials), driven is None)
    n, m = simulation.robot.nv, simulation.forces.nu if driven is None else len(driven)
    slopes, before = np.zeros((2, 2 * n, 2 * n + m))
    return SimulatedHorizon(steps, every, np.array(driven or (), np.int64), slopes, before), kept


def look_ahead(x: SimulatedHorizon, q: Matrix, v: Matrix, u: Matrix, ahead: Matrix, velocity: Matrix) -> None:
    """Write the states after all knots of a motion."""
    for k in range(len(u)):
        one = k + 1
        move(x, x.steps.fleets[0], k == 0, q[k:one], v[k:one], u[k:one], ahead[k:one], velocity[k:one])


def roll_out(x: SimulatedHorizon, q: Matrix, v: Matrix, u: Matrix) -> None:
    """Write the motion from its first state under controls."""
    for k in range(len(u)):
        one, two = k + 1, k + 2
        move(x, x.steps.fleets[0], k == 0, q[k:one], v[k:one], u[k:one], q[one:two], v[one:two])


def move(
    x: SimulatedHorizon, many: FleetArrays, start: bool, q: Matrix, v: Matrix, u: Matrix, ahead: Matrix, velocity: Matrix
) -> None:
    """Write the states of robots after a knot; NaN for robots whose step fails, and for those that come as NaN.

    Robots that come with the states of the last call go on, with the contacts of its last step.
    """
    restarts = start
    for i in range(len(q)):
        restarts = restarts or not (is_lost(q[i], v[i]) or (same(many.states.q[i], q[i]) and same(many.states.v[i], v[i])))
    for i in range(len(q)):
        done = False
        if not is_lost(q[i], v[i]):
            if restarts:
                restart_robot(x.steps, many, i, q[i], v[i])
            write_inputs(x, many, i, u[i])
            done = take_steps(x.steps, many, i, x.every)
        for j in range(q.shape[1]):
            ahead[i, j] = many.states.q[i, j] if done else np.nan
        for j in range(v.shape[1]):
            velocity[i, j] = many.states.v[i, j] if done else np.nan


def write_inputs(x: SimulatedHorizon, many: FleetArrays, i: int, u: Vector) -> None:
    """Set the inputs of robot i."""
    if len(x.driven) == 0:
        copy_numbers(u, many.inputs.control[i, 0])
    for j in range(len(x.driven)):
        many.inputs.tau[i, 0, x.driven[j]] = u[j]


def is_lost(q: Vector, v: Vector) -> bool:
    """Return whether a state has a number that is none."""
    return not (same(q, q) and same(v, v))


def same(a: Vector, b: Vector) -> bool:
    """Return whether all numbers are equal."""
    alike = True
    for i in range(len(a)):
        alike = alike and a[i] == b[i]
    return alike


def write_knot_slopes(x: SimulatedHorizon, q: Vector, v: Vector, u: Vector, r: Riccati, number: int) -> None:
    """Write D of a knot with a number among those whose derivatives are known, from products of those of its steps."""
    many, n = x.steps.fleets[0], len(v)
    restart_robot(x.steps, many, 0, q, v)
    write_inputs(x, many, 0, u)
    write_step_slopes(x, differentiate(x.steps), n)
    for _ in range(1, x.every):
        take_steps(x.steps, many, 0, 1)
        x.before[:] = x.slopes
        write_step_slopes(x, differentiate(x.steps), n)
        multiply_slopes(x, n)
    for i in range(2 * n):
        begin = (number * r.rows + i) * r.long
        for j in range(x.slopes.shape[1]):
            r.numbers[begin + j] = x.slopes[i, j]
        if i < n:
            r.numbers[begin + i] -= 1.0


def write_step_slopes(x: SimulatedHorizon, ends: Matrix, n: int) -> None:
    """Write the derivatives of one step by its state and its controls."""
    for i in range(2 * n):
        for j in range(2 * n):
            x.slopes[i, j] = ends[i, j]
        for j in range(x.slopes.shape[1] - 2 * n):
            x.slopes[i, 2 * n + j] = ends[i, 2 * n + x.driven[j] if len(x.driven) > 0 else 3 * n + j]


def multiply_slopes(x: SimulatedHorizon, n: int) -> None:
    """Replace the derivatives A and B of the last step by A A_before and A B_before + B."""
    for i in range(2 * n):
        row = x.steps.found.ends[0, i]
        for j in range(x.slopes.shape[1]):
            total = x.slopes[i, j] if j >= 2 * n else 0.0
            for k in range(2 * n):
                total += row[k] * x.before[k, j]
            x.slopes[i, j] = total
