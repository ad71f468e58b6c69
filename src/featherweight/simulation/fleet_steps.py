"""Steps of a simulation and their derivatives within other kernels, which have states of their own and may restart robots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Matrix, Vector
from .derivatives.differences import StepDifferences, differentiate_whole_steps
from .derivatives.fleet_derivatives import DIFFERENCES, EQUATIONS, STAGES, new_slopes, way_of
from .derivatives.records import RobotSlopes
from .derivatives.runge_kutta import StagedSlopes, differentiate_staged_robots
from .derivatives.semi_implicit import StepSlopes, differentiate_robots
from .fleet import NO_INPUTS
from .fleet_loop import run
from .robot_tables import self_contained_stages
from .simulation import Simulation
from .smooth_motion import clear, copy
from .stage_records import UNTIL, WITH_CONTROL, WITH_FORCES, FleetArrays, RobotStages
from .step_status import TAKEN


class FleetSteps(NamedTuple):
    """The stages of one robot, fleets of several sizes, and derivatives of steps of the first fleet's first robot."""

    one: RobotStages
    fleets: list[FleetArrays]
    found: RobotSlopes  # of one robot
    deepest: float  # [m] overlap allowed after a restart
    equations: StepSlopes | None  # of semi-implicit steps
    stages: StagedSlopes | None  # of Runge-Kutta steps
    differences: StepDifferences | None  # of all others


def restart_robot(s: FleetSteps, many: FleetArrays, i: int, q: Vector, v: Vector) -> None:
    """Let robot i start at a state, without contacts of an earlier step."""
    states = many.states
    copy(q, states.q[i])
    copy(v, states.v[i])
    clear(states.act[i])
    clear(states.last_row[i])
    states.deepest[i] = s.deepest
    many.contacts.counts[i] = 0


def take_steps(s: FleetSteps, many: FleetArrays, i: int, count: int) -> bool:
    """Take steps of robot i under the inputs in the arrays; return whether all succeed."""
    many.states.taken[i], many.states.plan[UNTIL] = 0, count
    run(s.one, many, i)
    return many.states.status[i] == TAKEN


def differentiate(s: FleetSteps) -> Matrix:
    """Return the derivatives of the next step; they are NaN if it fails."""
    many, x, done = s.fleets[0], s.found, 0
    if s.equations is not None:
        done = differentiate_robots(s.one, s.equations, many, x, 0, 1)
    if s.stages is not None:
        done = differentiate_staged_robots(s.one, s.stages, many, x, 0, 1)
    if s.differences is not None:
        done = differentiate_whole_steps(s.one, s.differences, many, x, 0, 1)
    ends: Matrix = x.ends[0]
    if done == 0:
        for row in range(len(ends)):
            for column in range(ends.shape[1]):
                ends[row, column] = np.nan
    return ends


def fleet_steps(simulation: Simulation, robots: Sequence[int], with_controls: bool) -> tuple[FleetSteps, list[Any]]:
    """Return the steps of fleets of so many robots, under joint forces or controls, and objects to keep alive."""
    fleet = simulation._fleet
    model, contacts = fleet.model, fleet.contacts
    stages = self_contained_stages(model, contacts, fleet._new_stages())
    fleets = []
    for count in robots:
        arrays = fleet.new_arrays(fleet.layout.block(count), count)
        arrays.inputs.given[WITH_CONTROL], arrays.inputs.given[WITH_FORCES] = with_controls, False
        fleets.append(arrays._replace(states=arrays.states._replace(block=np.zeros(0))))  # which has no state over time to copy
    names = {EQUATIONS: "equations", STAGES: "stages", DIFFERENCES: "differences"}
    _, slopes_of = way = way_of(fleet, NO_INPUTS)
    table = stages.made_once(slopes_of, model, contacts)
    own_slopes = dict.fromkeys(names.values()) | {names[way]: table.content}
    steps = FleetSteps(stages.content, fleets, new_slopes(fleet, 1), float(model.deepest_start), **own_slopes)
    return steps, [*stages.kept.values(), *stages.kept_of_derivatives()]
