"""Derivatives of the semi-implicit steps of many robots: the loop over robots, and the arrays and functions of one thread.

Each robot tries its step, whose results the derivatives need (see `acceleration`). Products with cotangents of the state
after the step solve for one product instead of all directions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Array
from ...engine.function import CompiledFunction
from ...engine.loops.kernels import CompiledLoop, Table
from ...model.types import JointType
from ...robot.dynamics_derivatives import analytic
from ...robot.parametric import with_armature_as_argument
from ...robot.robot import Robot
from ...robot.spanning_motion import spanning_slopes
from ..contact_stage import ContactStage
from ..fleet_loop import attempt
from ..robot_stages import is_touched
from ..robot_tables import Call, StagesTable, bound_call, with_inertias
from ..smooth_motion import copy
from ..stage_records import FleetArrays, RobotStages
from ..step_model import StepModel
from .acceleration import are_covered
from .after_step import compare_states, write_step_product, write_step_slopes
from .differences import StepDifferences, differences_of, differentiate_whole_step
from .records import (
    AccelerationSlopes,
    Paths,
    RobotSlopes,
    SlopeCalls,
    acceleration_slopes,
    begin_doubtful,
    matrix_at,
    note_doubtful,
)

# ---- the loop


class StepSlopes(NamedTuple):
    """Arrays for the slopes of a step."""

    of: AccelerationSlopes
    differences: StepDifferences


def differentiate_robots(one: RobotStages, y: StepSlopes, many: FleetArrays, x: RobotSlopes, first: int, stop: int) -> int:
    """Differentiate the next steps of robots first to stop, or multiply the derivatives by cotangents.

    Rigid contacts that the equations do not cover are differentiated by differences of whole steps. Return the number of robots
    for which this succeeds.
    """
    done = 0
    for i in range(first, stop):
        if attempt(one, many, i) == 0:
            continue
        copy(one.touching.impulses.next_row, x.impulses[i])
        if y.of.is_rigid and not are_covered(one):
            done += differentiate_whole_step(one, y.differences, many, x, i)
            continue
        done += 1
        if len(x.cotangents) > 0:
            write_step_product(one, y.of, x.cotangents[i], x.products[i])
        else:
            begin_doubtful(x, i)
            at_limits = write_step_slopes(one, y.of, x.ends[i])
            if y.of.is_rigid and is_touched(one):
                at_limits += compare_states(one, y.of, x.ends[i], y.differences.ends)
            if at_limits > 0:
                note_doubtful(one, y.of, x, i)
    return done


DIFFERENTIATE = CompiledLoop(differentiate_robots, numbers=2, what="the derivatives of steps")


# ---- one thread


def slopes_of(stages: StagesTable, model: StepModel, contacts: ContactStage) -> Table:
    """Return arrays for the derivatives of a semi-implicit step at the stages of one robot."""
    s, robot, rigid = stages.content, model.struck, not contacts.convex
    n, bodies, (first, moves) = robot.nv, len(s.touching.bodies), _paths(robot, contacts.numbers)
    joint = np.full(n, -1)
    for k, j in enumerate(j for j in robot.model.joints if j.type is not JointType.FLOATING):
        if not robot.closed:
            joint[j.v_slice] = k
    plain = model.has_linear_forces and not (robot.closed and contacts.convex and s.touching.model.rows.holds.any())
    rows = model.forces.rows if model.forces.mapped and plain else 0
    varies = model.in_fluid or robot.model.weight_compensated or model.drives_damp or model.nonlinear
    varies = varies or bool(model.damped_lengths)
    y = acceleration_slopes(s, Paths(joint, first, moves), rows, plain, rigid, not varies)
    by_q, by_v, mass, mapped = (matrix_at(y, place, n, n) for place in (y.at.by_q, y.at.by_v, y.at.mass, y.at.mapped))
    late = rows if robot.closed else 0
    spread, swept = (matrix_at(y, place, rows, n) for place in (y.at.spread, y.at.swept))
    swept_after, mapped_after = matrix_at(y, y.at.swept_after, late, n), matrix_at(y, y.at.mapped_after, n, n)
    turned, jacobian, before = (matrix_at(y, place, bodies, 6, n) for place in (y.at.turned, y.at.jacobian, y.at.turned_before))
    q, v, parted = s.state.q, s.state.v, contacts.convex and not contacts.in_passes
    given = {"q": q, "v": v, "a": y.acceleration, "external_forces": y.forces, "armature": s.inertias.armature}

    differ, struck_armature = len(s.inertias.parameters) > 0, s.inertias.armature
    if model.struck is model.robot:
        struck_armature = s.inertias.own_armature

    def dynamics(moving: Robot, varies: bool, armature: Array) -> Call:
        function = analytic(moving.inverse_dynamics_derivatives).variant("external_forces")
        if varies and not differ:
            function = CompiledFunction(with_armature_as_argument(moving, function.program), moving.execution)
        return own(moving, (function, *(given[x.name] for x in function.program.inputs), by_q, by_v, mass), armature)

    def own(moving: Robot, call: Call, armature: Array) -> Call:
        return with_inertias(moving, call, s.inertias.parameters, armature) if differ else call

    of_bodies = contacts.body_velocities.derivative("v") if bodies else None
    motions = contacts.body_velocities.derivative("q") if of_bodies and robot.closed else None
    before_too, spanning = None if rigid else motions, spanning_slopes(robot) if rows and robot.closed else None
    calls: dict[str, Call] = {
        "dynamics": dynamics(robot, model.driven, struck_armature),
        "settled": dynamics(model.moving, model.armature_varies, s.inertias.armature) if model.settles else (None,),
        "struck": own(robot, (
            robot.forward_dynamics.variant("external_forces") if parted else None, q, v, s.step.pushed_load,
            s.touching.forces, y.acceleration,
        ), struck_armature),
        "spanning": (spanning, q, v, y.load.force, spread, swept, mapped),
        "spanning_after": (spanning, q, y.after, y.pushes, spread, swept_after, mapped_after),
        "jacobian": (of_bodies, q, v, jacobian),
        "motions": (motions, q, y.after, turned),
        "motions_before": (before_too, q, v, before),
        "moved": (None if plain else robot.step_functions.integrate, q, y.increment, s.point.x),
    }  # fmt: skip
    made = {name: bound_call(call, stages.errors) for name, call in calls.items()}
    whole = stages.made_once(differences_of, model, contacts)
    table = Table(StepSlopes(y._replace(calls=SlopeCalls(**{name: call for name, (call, _) in made.items()})), whole.content))
    table.kept = whole, made
    return table


def _paths(robot: Robot, bodies: Array) -> tuple[Array, Array]:
    """Return the first row of the joint of each velocity, and which velocities (bodies, nv) of a tree move bodies."""
    first, moves = np.zeros(robot.nv, np.int64), np.zeros((len(bodies), robot.nv), bool)
    for joint in robot.joints:
        first[joint.v_slice] = joint.v_slice.start
    for k, body in enumerate(bodies if not robot.closed else ()):
        row = robot.model.placed_bodies[body].row
        while row >= 0:
            moves[k, row], row = True, robot.parent[row]
    return first, moves
