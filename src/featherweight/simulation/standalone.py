"""A step of a simulation as a kernel for programs without Python."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Integers, Vector
from ..engine.loops.kernels import CompiledLoop
from ..engine.loops.standalone import Port, StandaloneLoop, Status
from ..robot.standalone_facts import limits_of, names_of
from .fleet import Fleet
from .fleet_loop import run
from .robot_tables import self_contained_stages
from .smooth_motion import copy
from .stage_records import WITH_CONTROL, WITH_FORCES, FleetArrays, RobotStages
from .step_status import NAMES, WORDS


class Put(NamedTuple):
    """A state from which a step starts in place of the last one, if `there` is 1."""

    there: Integers  # (1,)
    q: Vector  # (nq,)
    v: Vector
    deepest: Vector  # (1,) overlap that is then allowed


def take_one_step(one: RobotStages, many: FleetArrays, put: Put) -> int:
    """Take a step of the only robot; return its status. After a failure, the state is unchanged."""
    if put.there[0] > 0:
        copy(put.q, many.states.q[0])
        copy(put.v, many.states.v[0])
        many.states.deepest[0] = put.deepest[0]
    many.states.taken[0] = 0
    run(one, many, 0)
    return many.states.status[0]


STEP = CompiledLoop(take_one_step, 0, what="the time step of a simulation that runs without Python")


def standalone_step(fleet: Fleet) -> StandaloneLoop:
    """Return the step of the only robot of a fleet from its state; nothing else uses this fleet."""
    model, arrays, robot = fleet.model, fleet.arrays, fleet.model.robot
    stages = self_contained_stages(model, fleet.contacts, fleet._new_stages())
    arrays = arrays._replace(states=arrays.states._replace(block=np.zeros(0)))  # which has no state over time to copy
    states, contacts, inputs = arrays.states, arrays.contacts, arrays.inputs
    inputs.given[WITH_CONTROL], inputs.given[WITH_FORCES] = model.forces.nu > 0, False
    for x in (inputs.tau, inputs.control, inputs.external):
        x.fill(0.0)
    put = Put(np.zeros(1, np.int64), states.q[0].copy(), states.v[0].copy(), np.array([model.deepest_start]))
    given = [
        Port("put", put.there, "1 to start this step from q and v; 0 to go on from the last step, without them", ()),
        Port("q", put.q, "configuration"),
        Port("v", put.v, "velocity"),
        Port("tau", inputs.tau, "joint forces", (robot.nv,)),
        Port("control", inputs.control, "controls of the actuators", (model.forces.nu,)),
    ]
    touched = "impulses of contacts on the bodies that may touch, (linear, angular), in the bodies' order"
    moved = [
        Port("q", states.q, "configuration", (robot.nq,)),
        Port("v", states.v, "velocity", (robot.nv,)),
        Port("steps", states.steps, "number of steps since the reset", ()),
        Port("contacts", contacts.counts, "number of contacts", ()),
        Port("wrenches", contacts.wrench, touched, contacts.wrench.shape[1:]),
    ]
    return StandaloneLoop(
        f"A step of a simulation of {model.h:g} s, with its contacts.",
        STEP,
        (stages.content, arrays, put),
        (),
        tuple(given),
        tuple(moved),
        tuple(Status(number, name, WORDS[number]) for number, name in NAMES.items()),
        kept=[*stages.kept.values()],
        names=names_of(robot) | {"touching_bodies": [robot.bodies[k].name for k in fleet.contacts.numbers]},
        constants=limits_of(robot) | {"time_step": np.array([model.h])},
    )
