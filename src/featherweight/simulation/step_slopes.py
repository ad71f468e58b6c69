"""Derivatives of the steps of many robots: the compiled loop over robots, and the arrays and functions of one thread.

Each robot tries its step, whose results the derivatives need (see `acceleration_slopes`). The loop multiplies by cotangents of
the state after the step if there are any, so that the matrices of many robots need no memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..array_types import Array, BooleanMatrix, Booleans, IntegerMatrix, Integers, Matrix, Tensor, Vector
from ..contact.joint_rows import JointRows
from ..contact.laws import RIGID
from ..engine.function import CompiledFunction
from ..engine.loops.kernels import CompiledLoop, Table
from ..engine.loops.prepared_calls import prepared_call
from ..model.types import JointType
from ..robot.dynamics_derivatives import analytic
from ..robot.robot import Robot
from ..robot.step_slopes import spanning_slopes, with_armature
from .acceleration_slopes import (
    CONVEX,
    HELD,
    NO_LAW,
    AccelerationSlopes,
    Paths,
    SlopeCalls,
    acceleration_slopes,
    are_covered,
    matrix_at,
)
from .contact_stage import ContactStage
from .fleet_loop import attempt
from .forces_at_joints import ForcesAtJoints
from .robot_tables import Call, StagesTable, bound_call, with_inertias
from .smooth_motion import clear
from .stage_records import FOUND, FleetArrays, RobotStages
from .step_ends import WRITE_ENDS, WRITE_STEP_SLOPES, StepSlopes, write_step_slopes
from .step_model import StepModel

# ---- the loop


class RobotSlopes(NamedTuple):
    """Derivatives of the steps of many robots, and what is doubtful about them."""

    ends: Tensor  # (robots, 2 nv + na, 3 nv + na + nu), or (1, ...) for products with cotangents only
    cotangents: Matrix  # (robots, 2 nv + na) of the state after the step, or (0, ..)
    products: Matrix  # (robots, 3 nv + na + nu) of the state before, joint forces and controls
    unsure: Integers  # (robots,) 1 for robots with doubtful names
    left: Booleans  # (robots,) whether these derivatives do not cover the contacts or joint rows (see `are_covered`)
    candidates: IntegerMatrix  # (robots, contacts) those of contacts at the boundary between two states, then -1
    rows: BooleanMatrix  # (robots, joint rows) whether a row is at the boundary between two states
    limits: Matrix  # (robots, values that limits bound) 1 at a limit, see `StepModel.limits`
    bent: BooleanMatrix  # (robots, 3 nv + na + nu) whether the step bends along a direction


def differentiate_robots(one: RobotStages, y: StepSlopes, many: FleetArrays, x: RobotSlopes, first: int, stop: int) -> int:
    """Differentiate the next steps of robots first to stop; return the number of robots for which this succeeds."""
    done = 0
    for i in range(first, stop):
        begin_doubtful(x, i)
        if attempt(one, many, i) == 1:
            done += 1
            x.left[i] = not are_covered(one, y.of)
            if x.left[i]:
                continue
            ends = x.ends[i] if len(x.cotangents) == 0 else y.ends
            if write_step_slopes(one, y.of, ends) > 0:
                note_doubtful(one, y.of, x, i)
            if len(x.cotangents) > 0:
                multiply(ends, x.cotangents[i], x.products[i])
    return done


def begin_doubtful(x: RobotSlopes, i: int) -> None:
    """Forget what is doubtful about robot i."""
    x.unsure[i], x.left[i] = 0, False
    for c in range(x.candidates.shape[1]):
        x.candidates[i, c] = -1
    for r in range(x.rows.shape[1]):
        x.rows[i, r] = False
    clear(x.limits[i])
    for k in range(x.bent.shape[1]):
        x.bent[i, k] = False


def note_doubtful(one: RobotStages, y: AccelerationSlopes, x: RobotSlopes, i: int) -> None:
    """Note what is doubtful about the acceleration of robot i, next to what is known already."""
    t, n, na, controls = one.touching, len(y.after), len(one.state.act), len(one.state.control)
    room, known = x.candidates.shape[1], 0
    x.unsure[i] = 1
    for c in range(t.counts[FOUND]):
        if y.doubtful[c]:
            while known < room - 1 and x.candidates[i, known] >= 0:
                known += 1
            x.candidates[i, known] = t.contacts.candidate[c]
    for r in range(x.rows.shape[1]):
        x.rows[i, r] = x.rows[i, r] or y.doubtful[room + r]
    for k in range(x.limits.shape[1]):
        x.limits[i, k] = max(x.limits[i, k], y.load.ends[k])
    for k in range(len(y.bent)):
        place = 3 * n + na + k if k < controls else 2 * n + k - controls
        x.bent[i, place] = x.bent[i, place] or y.bent[k]


def multiply(ends: Matrix, cotangent: Vector, product: Vector) -> None:
    """Write the product of a transposed matrix and a vector."""
    clear(product)
    for row in range(len(cotangent)):
        for column in range(len(product)):
            product[column] += ends[row, column] * cotangent[row]


DIFFERENTIATE = CompiledLoop(differentiate_robots, numbers=2, what="the derivatives of steps")


# ---- one thread


def slopes_of(stages: StagesTable, model: StepModel, contacts: ContactStage) -> SlopesOfStep:
    """Return the derivatives of steps at these stages, which are made once."""
    if SlopesOfStep not in stages.derived:
        law = CONVEX if contacts.convex else HELD if contacts.settings.law == RIGID else NO_LAW
        stages.derived[SlopesOfStep] = SlopesOfStep(model, contacts, stages, law)
    made: SlopesOfStep = stages.derived[SlopesOfStep]
    return made


def free_slopes_of(stages: StagesTable, model: StepModel, contacts: ContactStage) -> SlopesOfStep:
    """Return the derivatives of steps without contacts and joint rows at these stages, which are made once."""
    if free_slopes_of not in stages.derived:
        stages.derived[free_slopes_of] = SlopesOfStep(model, contacts, stages, NO_LAW)
    made: SlopesOfStep = stages.derived[free_slopes_of]
    return made


class SlopesOfStep:
    """The derivatives of a semi-implicit step of one robot. `write` returns how many names are doubtful.

    `law` is that of contacts and joint rows: `NO_LAW` if these are left out, `CONVEX` or `HELD`.
    """

    def __init__(self, model: StepModel, contacts: ContactStage, stages: StagesTable, law: int) -> None:
        s, robot = stages.content, model.struck
        n, bodies, (first, moves) = robot.nv, len(s.touching.bodies), _paths(robot, contacts.numbers)
        joint = np.full(n, -1)
        for k, j in enumerate(j for j in robot.model.joints if j.type is not JointType.FLOATING):
            if not robot.closed:
                joint[j.v_slice] = k
        plain = model.has_linear_forces and not (robot.closed and contacts.convex)
        rows = model.forces.rows if robot.closed and plain else 0
        y = acceleration_slopes(s, Paths(joint, first, moves), rows, plain, law)
        by_q, by_v, mass, carried = (matrix_at(y, place, n, n) for place in (y.at.by_q, y.at.by_v, y.at.mass, y.at.carried))
        late = rows if law == HELD else 0
        spread, swept = (matrix_at(y, place, rows, n) for place in (y.at.spread, y.at.swept))
        swept_after, carried_after = matrix_at(y, y.at.swept_after, late, n), matrix_at(y, y.at.carried_after, n, n)
        turned, jacobian, before = (
            matrix_at(y, place, bodies, 6, n) for place in (y.at.turned, y.at.jacobian, y.at.turned_before)
        )
        q, v, parted = s.state.q, s.state.v, contacts.convex and not contacts.in_passes
        given = {"q": q, "v": v, "a": y.acceleration, "external_forces": y.forces, "armature": s.inertias.armature}

        differ, struck_armature = len(s.inertias.parameters) > 0, s.inertias.armature
        if model.struck is model.robot:
            struck_armature = s.inertias.own_armature

        def dynamics(moving: Robot, varies: bool, armature: Array) -> Call:
            function = analytic(moving.inverse_dynamics_derivatives).variant("external_forces")
            if varies and not differ:
                function = CompiledFunction(with_armature(moving, function.program), moving.execution)
            return own(moving, (function, *(given[x.name] for x in function.program.inputs), by_q, by_v, mass), armature)

        def own(moving: Robot, call: Call, armature: Array) -> Call:
            return with_inertias(moving, call, s.inertias.parameters, armature) if differ else call

        of_bodies = contacts.body_velocities.derivative("v") if bodies and law != NO_LAW else None
        motions = contacts.body_velocities.derivative("q") if of_bodies and robot.closed else None
        before_too, spanning = motions if law == CONVEX else None, spanning_slopes(robot) if rows else None
        calls: dict[str, Call] = {
            "dynamics": dynamics(robot, model.driven, struck_armature),
            "settled": dynamics(model.moving, model.armature_varies, s.inertias.armature) if model.settles else (None,),
            "struck": own(robot, (
                robot.forward_dynamics.variant("external_forces") if parted else None, q, v, s.step.pushed_load,
                s.touching.forces, y.acceleration,
            ), struck_armature),
            "spanning": (spanning, q, v, y.load.force, spread, swept, carried),
            "spanning_after": (spanning if law == HELD else None, q, y.after, y.pushes, spread, swept_after, carried_after),
            "jacobian": (of_bodies, q, v, jacobian),
            "motions": (motions, q, y.after, turned),
            "motions_before": (before_too, q, v, before),
            "moved": (None if plain else robot.step_functions.integrate, q, y.increment, s.point.x),
        }  # fmt: skip
        made = {name: bound_call(call, stages.errors) for name, call in calls.items()}
        self.content = y._replace(calls=SlopeCalls(**{name: call for name, (call, _) in made.items()}))
        na = len(s.state.act)
        self.ends = np.zeros((2 * n + na, 3 * n + na + len(s.state.control)))
        table = Table(StepSlopes(self.ends, self.content))
        self.contacts, self.forces, self.touching, self.kept = contacts, model.forces, s.touching, (table, made)
        self._tables, self.address, self.layout = (stages, table), table.address, table.layout

    @cached_property
    def write(self) -> Callable[[], int]:
        """The call that evaluates them."""
        stages, table = self._tables
        return prepared_call(WRITE_STEP_SLOPES.for_tables(stages, table), stages.address, table.address, kept=self.kept)

    @cached_property
    def _ends(self) -> Callable[[], int]:
        stages, table = self._tables
        return prepared_call(WRITE_ENDS.for_tables(stages, table), stages.address, table.address, kept=self.kept)

    def ends_of(self, velocity: Array) -> Array:
        """Return the derivatives (2 nv, 3 nv + nu) of the state after the step, from those of its velocity."""
        n = len(self.content.after)
        for part, own in zip(self.parts, np.split(velocity, [n, 2 * n, 3 * n], axis=1), strict=True):
            part[:] = own
        self._ends()
        return self.ends

    def velocity(self) -> Array:
        """Return the derivatives (nv, 3 nv + nu) of the velocity after the step, in the axes of its start."""
        return np.hstack(self.parts)

    @property
    def parts(self) -> list[Array]:
        """Views of the derivatives of velocity or acceleration by q, v, joint forces and controls."""
        y = self.content
        n, nu, at = len(y.after), len(self._tables[0].content.state.control), y.at
        whole = matrix_at(y, at.rates, n, at.width)
        return [whole[:, k * at.stride : k * at.stride + size] for k, size in enumerate((n, n, n, nu))]

    def doubtful(self) -> list[str]:
        """Return the names of contacts, joint limits and dry friction at the boundary between two states."""
        t, marked = self.touching, self.content.doubtful
        room = len(t.contacts.candidate)
        return names_of(self.contacts, self.forces, t.contacts.candidate[marked[:room]], marked[room:])


def names_of(contacts: ContactStage, forces: ForcesAtJoints, candidates: Array, rows: Array) -> list[str]:
    """Return the names of contacts, and of marked joint rows."""
    names = [contacts.names[int(c)] for c in candidates if c >= 0]
    return names + [name_of_row(contacts.rows, int(r), forces) for r in np.flatnonzero(rows)]


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


def name_of_row(rows: JointRows, r: int, forces: ForcesAtJoints) -> str:
    """Return the name of a row of a joint."""
    return f"the {'dry friction' if rows.friction[r] else 'limit'} of joint {forces.names[rows.dof[r]]!r}"
