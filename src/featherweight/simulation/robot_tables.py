"""The stages of one robot as a table for compiled functions: its arrays, and the calls of its functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..array_types import Array
from ..collision.collision_scene import collision_work
from ..collision.detection import ContactPoints
from ..contact.contact_passes import PassWork, pass_work
from ..contact.contact_problem import BodyDelassus, ContactImpulses, ContactKinematics
from ..contact.contact_solver import solver_workspace
from ..contact.inverse_factor import inverse_factors, inverse_work
from ..contact.joint_rows import JointRows
from ..contact.laws import COULOMB
from ..contact.patches import patch_work
from ..engine.function import CompiledFunction
from ..engine.loops.kernels import Layout, MachineCall, Table, machine_call
from ..engine.loops.prepared_calls import prepared_call
from ..model.inertial_parameters import carried, uncarried
from ..model.types import JointType
from ..robot.dynamics_derivatives import analytic
from ..robot.robot import Robot
from ..robot.step_slopes import spanning_slopes, with_armature
from ..robot.tendons.lengths import no_lengths
from .acceleration_slopes import Paths, SlopeCalls, acceleration_slopes, matrix_at
from .adhesion import adhesion_of
from .contact_stage import ContactStage
from .drag import drag_parts
from .drive_inputs import DriveLaws
from .forces import Springs
from .forces_at_joints import ForcesAtJoints
from .implicit_drives import drive_work
from .load_slopes import SlopesOfStages
from .smooth_motion import INTEGRATORS, STAGED
from .stage_records import (
    FOUND,
    CallsOfRobot,
    ContactInertiaRecord,
    InertiaArguments,
    JointForces,
    LoopArrays,
    MidpointArrays,
    RobotNumbers,
    RobotStages,
    RungeKuttaArrays,
    StagePoint,
    StateAndInputs,
    StepArrays,
    TouchingRecord,
)  # fmt: skip
from .step_ends import WRITE_ENDS, WRITE_STAGE_SLOPES, WRITE_STEP_SLOPES, StepSlopes
from .step_model import StepModel

Call = tuple[Any, ...]  # a function, followed by the arrays that it reads and writes

NO_ROWS = np.zeros(0, np.int64)
NO_NUMBERS = np.zeros(0)
NO_SPRINGS = Springs(
    NO_NUMBERS, NO_NUMBERS, NO_NUMBERS, NO_NUMBERS, NO_NUMBERS, NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS
)  # fmt: skip
OF_ENERGY = ("kinetic", "potential")  # calls with the joints' own armature, without that of springs
OF_MASS = (
    "dynamics", "dynamics_external", "dynamics_pushed", "inverse_dynamics", "body_delassus", "delassus_with_rows",
    "inverse_factor", "contact_factor", "contact_matrix",
)  # fmt: skip
OF_STAGES = "dynamics", "dynamics_external", "inverse_dynamics"  # "rk4" calls these with the joints' own armature
OF_IMPULSES = "body_delassus", "delassus_with_rows", "inverse_factor", "contact_factor", "contact_matrix"
"""Steps of MuJoCo call these with the joints' own armature, too."""


class StagesTable(Table):
    """The stages of one robot, and errors of its Python functions."""

    content: RobotStages

    def __init__(
        self, content: RobotStages, calls: dict[str, Any], errors: list[BaseException], layout: Layout | None = None
    ) -> None:
        super().__init__(content, layout)
        self.kept, self.errors = calls, errors
        self._slopes_of_step: SlopesOfStep | None = None

    @cached_property
    def slopes(self) -> SlopesOfStages:
        """Slopes of the forces at joints at these stages."""
        return SlopesOfStages(self)

    def slopes_of_step(self, model: StepModel, contacts: ContactStage) -> SlopesOfStep:
        """Return the slopes of steps with compliant contacts at these stages."""
        if self._slopes_of_step is None:
            self._slopes_of_step = SlopesOfStep(model, contacts, self)
        return self._slopes_of_step


class SlopesOfStep:
    """The derivatives of a semi-implicit step of one robot. `write` returns how many names are doubtful."""

    def __init__(self, model: StepModel, contacts: ContactStage, stages: StagesTable) -> None:
        s, robot = stages.content, model.struck
        n, bodies, (first, moves) = robot.nv, len(s.touching.bodies), _paths(robot, contacts.numbers)
        joint = np.full(n, -1)
        for k, j in enumerate(j for j in robot.model.joints if j.type is not JointType.FLOATING):
            if not robot.closed:
                joint[j.v_slice] = k
        plain = model.has_linear_forces and not (robot.closed and contacts.convex)
        rows = model.forces.rows if robot.closed and plain else 0
        y = acceleration_slopes(s, Paths(joint, first, moves), rows, plain, contacts.convex)
        by_q, by_v, mass, carried = (matrix_at(y, place, n, n) for place in (y.at.by_q, y.at.by_v, y.at.mass, y.at.carried))
        spread, swept = (matrix_at(y, place, rows, n) for place in (y.at.spread, y.at.swept))
        turned, jacobian, before = (
            matrix_at(y, place, bodies, 6, n) for place in (y.at.turned, y.at.jacobian, y.at.turned_before)
        )
        q, v, parted = s.state.q, s.state.v, contacts.convex and not contacts.in_passes
        given = {"q": q, "v": v, "a": y.acceleration, "external_forces": y.forces, "armature": s.inertias.armature}

        def dynamics(moving: Robot, varies: bool) -> Call:
            function = analytic(moving.inverse_dynamics_derivatives).variant("external_forces")
            if varies:
                function = CompiledFunction(with_armature(moving, function.program), moving.execution)
            return function, *(given[x.name] for x in function.program.inputs), by_q, by_v, mass

        of_bodies = contacts.body_velocities.derivative("v") if bodies and contacts.convex else None
        motions = contacts.body_velocities.derivative("q") if of_bodies and robot.closed else None
        calls: dict[str, Call] = {
            "dynamics": dynamics(robot, model.driven),
            "settled": dynamics(model.moving, model.armature_varies) if model.settles else (None,),
            "struck": (
                robot.forward_dynamics.variant("external_forces") if parted else None, q, v, s.step.pushed_load,
                s.touching.forces, y.acceleration,
            ),
            "spanning": (spanning_slopes(robot) if rows else None, q, v, y.load.force, spread, swept, carried),
            "jacobian": (of_bodies, q, v, jacobian),
            "motions": (motions, q, y.after, turned),
            "motions_before": (motions, q, v, before),
            "moved": (None if plain else robot.step_functions.integrate, q, y.increment, s.point.x),
        }  # fmt: skip
        made = {name: _call(call, stages.errors) for name, call in calls.items()}
        self.content = y._replace(calls=SlopeCalls(**{name: call for name, (call, _) in made.items()}))
        self.ends = np.zeros((2 * n, 3 * n + len(s.state.control)))
        table = Table(StepSlopes(self.ends, self.content))
        self.contacts, self.forces, self.touching, self.kept = contacts, model.forces, s.touching, (table, made)
        self._tables = stages, table

    @cached_property
    def write(self) -> Callable[[], int]:
        """The call that evaluates them."""
        stages, table = self._tables
        return prepared_call(WRITE_STEP_SLOPES.for_tables(stages, table), stages.address, table.address, kept=self.kept)

    @cached_property
    def _stage(self) -> Callable[[], int]:
        stages, table = self._tables
        return prepared_call(WRITE_STAGE_SLOPES.for_tables(stages, table), stages.address, table.address, kept=self.kept)

    def write_stage(self, q: Array, v: Array) -> int:
        """Write the acceleration of a stage of "rk4" and its derivatives; return as `write` does, or -1."""
        state = self._tables[0].content.state
        start = state.q.copy(), state.v.copy()
        state.q[:], state.v[:] = q, v
        try:
            return self._stage()
        finally:
            state.q[:], state.v[:] = start

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
        room, rows = len(self.touching.contacts.gap), self.touching.model.rows
        names = []
        for i in np.flatnonzero(self.content.doubtful):
            if i < room:
                names.append(self.contacts.names[int(self.touching.contacts.candidate[i])])
            else:
                names.append(name_of_row(rows, int(i) - room, self.forces))
        return names


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


def new_stages(model: StepModel, contacts: ContactStage, room: int, inertias: bool) -> RobotStages:
    """Return the stages of a robot without functions, with room for contacts, and with or without its own inertias."""
    robot = model.robot
    forces = model.forces
    nq, nv, nu, rows, na = robot.nq, robot.nv, forces.nu, forces.rows, forces.states
    lengths = forces.lengths.table.lengths if forces.lengths else no_lengths(nv)
    count = len(lengths.at)
    base = np.array(model.moving.armature if inertias or model.armature_varies else ())
    springs = forces.springs if model.passive else NO_SPRINGS
    return RobotStages(
        numbers=_numbers(model, contacts),
        state=StateAndInputs.of_sizes(np.array(robot.neutral()), nv, nu, len(robot.bodies), na),
        point=StagePoint.of_sizes(nq, nv, rows, count, (nu, len(forces.parts), na), _joint_map(forces)),
        step=StepArrays.of_sizes(nq, nv, na),
        rounds=RungeKuttaArrays.of_sizes(nq, nv, na),
        midpoint=MidpointArrays.of_sizes(nq + count, nv),
        joints=JointForces(
            _copies(springs), _copies(forces.drives), drive_work(robot, forces),
            np.array(robot.effort_bounds), forces.drive_rows.efforts.copy(), model.forces.compensating.copy(),
            model.middle_armature.copy(), np.array(model.curved, np.int64).reshape(-1, 2), _laws(forces),
            np.zeros(nv if robot.model.carried else 0),
        ),
        inertias=InertiaArguments(np.zeros((len(robot.bodies) if inertias else 0, 10)), base, base.copy(), base.copy()),
        loops=_loops(model),
        touching=_touching(model, contacts, room),
        drag=drag_parts(robot.model.drag, [b.name for b in robot.bodies], robot.model.fluid),
        lengths=_copies(lengths),
        adhesion=adhesion_of(forces, contacts.touching.links, contacts.touching.scene.gap[contacts.touching.pairs]),
        calls=CallsOfRobot(*(MachineCall(0, np.zeros(0, np.int64)) for _ in CallsOfRobot._fields)),
    )  # fmt: skip


def stages_table(
    model: StepModel, contacts: ContactStage, stages: RobotStages, external: bool, layout: Layout | None = None
) -> StagesTable:
    """Return new stages with the functions of the robot, with or without forces of the user on bodies."""
    errors: list[BaseException] = []
    functions = calls_of_robot(model, contacts, stages, external)
    calls = {name: _call(call, errors) for name, call in functions.items()}
    calls["delassus_of_touching"] = _delassus_of_touching(contacts, stages, errors)
    calls["impulses_alone"] = machine_call(None), None
    made = CallsOfRobot(**{name: call for name, (call, _) in calls.items()})
    return StagesTable(stages._replace(calls=made), calls, errors, layout)


def calls_of_robot(model: StepModel, contacts: ContactStage, stages: RobotStages, external: bool) -> dict[str, Call]:
    """Return calls of the robot's functions by name, for these stages; calls that are never made have no function."""
    robot, inertias = model.robot, len(stages.inertias.parameters) > 0
    functions = _functions(model, stages, external) | _contact_functions(model, contacts, stages)
    of_stages = OF_STAGES if model.integrator == "rk4" or model.by_file else ()
    as_it_is = *OF_ENERGY, *of_stages, *(OF_IMPULSES if model.by_file else ())
    for name, call in functions.items():
        if robot.model.carried and name == "potential":
            continue
        if inertias and name in as_it_is:
            functions[name] = with_inertias(robot, call, stages.inertias.parameters, stages.inertias.own_armature)
        elif name in OF_MASS and name not in as_it_is and (inertias or model.armature_varies):
            functions[name] = with_inertias(model.moving, call, stages.inertias.parameters, stages.inertias.armature)
    return functions


def with_inertias(robot: Robot, call: Call, parameters: Array, armature: Array) -> Call:
    """Return a call of the function with armature, and any inertial parameters, as arguments, if it depends on them."""
    function, *arrays = call
    if function is None:
        return call
    parametric = robot.parametric(function, bodies=len(parameters) > 0)
    if parametric is function:
        return call
    given = iter(arrays)
    named = {"parameters": parameters, "armature": armature}
    inputs = [named[x.name] if x.name in named else next(given) for x in parametric.program.inputs]
    return parametric, *inputs, *given


# calls


def _call(call: Call, errors: list[BaseException]) -> tuple[MachineCall, Any]:
    """Return a call as machine code, and an object to keep alive; a function without machine code is called in Python."""
    function, *arrays = call
    if function is None or function.address is not None:
        return machine_call(function, *arrays), call
    inputs, outputs = arrays[: len(function.program.inputs)], arrays[len(function.program.inputs) :]

    def evaluate() -> None:
        results = function(*inputs, threads=1)
        for array, result in zip(outputs, results if len(outputs) > 1 else (results,), strict=True):
            array[...] = np.reshape(result, array.shape)

    return python_call(evaluate, outputs, errors)


def python_call(evaluate: Callable[[], None], outputs: list[Array], errors: list[BaseException]) -> tuple[MachineCall, Any]:
    """Return a call of a Python function without arguments, and an object to keep alive.

    If the function fails, its results are NaN, and `errors` gets the exception: no step uses these results.
    """

    def called(_: int) -> int:
        try:
            evaluate()
        except BaseException as error:
            errors.append(error)
            for array in outputs:
                array.fill(np.nan)
            return 1
        return 0

    code = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(called)
    address = ctypes.cast(code, ctypes.c_void_p).value or 0
    return MachineCall(address, np.zeros(1, np.int64)), code


def _delassus_of_touching(contacts: ContactStage, stages: RobotStages, errors: list[BaseException]) -> tuple[MachineCall, Any]:
    """Return the call of a Delassus matrix made for the touching bodies, or none."""
    inertia, t, q = contacts.inertia, stages.touching, stages.state.q
    if contacts.in_passes or not (inertia.by_sets and inertia.contacts):
        return MachineCall(0, np.zeros(1, np.int64)), None

    def evaluate() -> None:
        count = int(t.counts[FOUND])
        bodies = np.unique(np.concatenate([t.contacts.a[:count], t.contacts.b[:count]]))
        G, begin = inertia.of_set(q, bodies[bodies >= 0])
        t.inertia.of_sets.G[: len(G), : len(G)] = G
        t.inertia.of_sets.begin[:] = begin

    return python_call(evaluate, [t.inertia.of_sets.G], errors)


# records


def _copies(arrays: Any) -> Any:
    return type(arrays)(*(np.array(x, order="C") for x in arrays))


def _numbers(model: StepModel, contacts: ContactStage) -> RobotNumbers:
    robot = model.robot
    return RobotNumbers(
        integrator=STAGED if model.staged else INTEGRATORS[model.integrator],
        looped=model.looped,
        joined=model.forces.mapped,
        driven=model.driven,
        ahead=0.0 if model.by_file or model.staged else float(model.h),
        settles=model.settles,
        drives_damp=model.drives_damp,
        looks_back=contacts.looks_back,
        step=float(model.h),
        closed_at=float(robot.step_functions.closing_tolerance) if model.looped else 0.0,
        gravity=float(np.linalg.norm(robot.gravity)),
        least_energy=float(model.least_energy),
        max_penetration=float(model.max_penetration),
    )


def _laws(forces: ForcesAtJoints) -> DriveLaws:
    x = forces.laws
    activations, curves, controllers, delays = (_copies(y) for y in (x.activations, x.curves, x.controllers, x.delays))
    return DriveLaws(x.control.copy(), activations, curves, controllers, delays, x.row.copy(), x.at.copy())


def _joint_map(forces: ForcesAtJoints) -> Array:
    """Return the array of S, which each step writes; rows of joints of a tree are constant."""
    S = np.zeros((forces.rows if forces.mapped else 0, forces.robot.nv))
    if forces.mapped and not forces.robot.closed:
        S[: forces.joint_rows] = np.eye(forces.joint_rows)
    return S


def _loops(model: StepModel) -> LoopArrays:
    shapes: list[Any] = [(0,), (0,), (1,)]
    if model.looped:
        _, *outputs = model.robot.step_functions.closing_step.program.outputs  # type: ignore[union-attr]
        shapes = [x.shape or (1,) for x in outputs]
    residual, margins, singularity = (np.zeros(shape) for shape in shapes)
    return LoopArrays(residual, margins, singularity, np.zeros(model.robot.nq), np.zeros(1))


def _touching(step: StepModel, stage: ContactStage, room: int) -> TouchingRecord:
    model, inertia = stage.model, stage.inertia
    candidates, rows = len(stage.names), len(model.rows.joint)
    bodies, joints, size = len(stage.bodies), len(stage.joint_dofs), int(inertia.begin[-1])

    S = _joint_map(step.forces)[None] if step.forces.mapped else None  # each step overwrites it
    work = inverse_work(model.width, inertia.branches, room + rows)
    J, E = np.zeros((size, inertia.columns)), np.array(inertia.of_joints(S)[0], order="C")
    factors = inverse_factors(J, E, inertia.branches, work)

    def matrix(m: int, by_inverse: bool = False) -> BodyDelassus:
        return BodyDelassus(np.zeros((m, m)), inertia.begin.copy(), by_inverse, factors, work)

    return TouchingRecord(
        scene=stage.scene, pair_of=stage.touching.pairs.astype(np.int64),
        model=model._replace(
            friction=model.friction.copy(), restitution=model.restitution.copy(), width=model.width.copy(),
            rows=_copies(model.rows),
        ),
        contacts=ContactPoints(
            candidate=np.zeros(room, np.int64), a=np.zeros(room, np.int64), b=np.zeros(room, np.int64),
            point=np.zeros((room, 3)), normal=np.zeros((room, 3)), gap=np.zeros(room),
        ),
        counts=np.zeros(4, np.int64),
        kinematics=ContactKinematics(
            placement=np.zeros((bodies, 4, 4)), velocity=np.zeros((bodies, 6)), gap=np.zeros(rows), speed=np.zeros(rows),
            velocity_before=np.zeros((bodies, 6)), speed_before=np.zeros(rows),
        ),
        impulses=ContactImpulses.of_sizes(room, bodies, joints, candidates, rows, model.settings.turning),
        report=np.zeros(7), deepest=np.zeros(1),
        workspace=solver_workspace(
            room, rows, size + joints, inertia.branches, model.settings.cones != COULOMB
        ),
        collisions=collision_work(stage.scene),
        inertia=ContactInertiaRecord(
            matrix(size), matrix(size + joints), matrix(size if inertia.by_sets else 0), matrix(0, by_inverse=True)
        ),
        passes=_passes(stage, step.robot.nv, room) if stage.in_passes else pass_work(0, NO_ROWS, 0, 0, 0, False),
        bodies=stage.numbers, dofs=stage.joint_dofs.astype(np.int64), forces=np.zeros((len(step.robot.bodies), 6)),
        patches=patch_work(room),
    )  # fmt: skip


def _passes(stage: ContactStage, n: int, room: int) -> PassWork:
    """Return workspace for contacts that are solved in passes."""
    dofs, rows = stage.joint_dofs.astype(np.int64), len(stage.model.rows.joint)
    return pass_work(len(stage.bodies), dofs, n, room, rows, stage.coupling)


def _functions(model: StepModel, s: RobotStages, external: bool) -> dict[str, Call]:
    """Return calls for the robot's motion; calls that are never made have no function."""
    robot, moving, h = model.robot, model.moving, np.array(float(model.h))
    p, step, q, v, forces = s.point, s.step, s.state.q, s.state.v, s.touching.forces
    staged = robot if model.integrator == "rk4" or model.by_file else moving
    touching = bool(s.touching.bodies.size or s.touching.dofs.size or model.settles)
    pushed = moving.forward_dynamics.variant("external_forces") if touching else None
    forced = staged.forward_dynamics.variant("external_forces") if external else None
    smooth = model.integrator != "semi-implicit"
    to_free = robot.step_functions.free_velocity if model.staged or not smooth else None
    loops, lengths, weighing, carrying = s.loops, model.forces.lengths, robot, robot
    if robot.model.carried:
        weighing, carrying = (robot.with_weights_of(part(robot.model)) for part in (uncarried, carried))
    closing: Any = robot.step_functions.closing_step if model.looped else None
    names = [b.name for b in robot.bodies]
    return {
        "dynamics": (staged.forward_dynamics, p.x, p.w, p.load, p.acceleration),
        "dynamics_external": (forced, p.x, p.w, p.load, forces, p.acceleration),
        "dynamics_pushed": (pushed, p.x, p.w, step.pushed_load, forces, step.pushed),
        "inverse_dynamics": (staged.inverse_dynamics if external else None, p.x, p.w, p.acceleration, p.load),
        "free_velocity": (to_free, v, step.acceleration, h, step.free),
        "pushed_velocity": (None if smooth else robot.step_functions.free_velocity, v, step.pushed, h, step.after),
        "advance": (None if smooth else robot.step_functions.advance, q, step.after, step.displacement, h, p.x, step.end),
        "advance_straight": (
            None if smooth else robot.step_functions.advance,
            q,
            step.after,
            step.none,
            h,
            p.x,
            step.straight_end,
        ),
        "integrate": (robot.step_functions.integrate if smooth else None, q, p.increment, p.x),
        "closing": (closing, p.x, loops.closed, loops.residual, loops.margins, loops.singularity),
        "spanning": (robot.step_functions.spanning_map if robot.closed else None, p.x, p.S[: model.forces.joint_rows]),
        "length_placement": (lengths.placements if lengths else None, p.x, s.lengths.placement),
        "length_jacobian": (lengths.jacobians if lengths else None, p.x, s.lengths.jacobian),
        "length_bias": (lengths.biases if lengths else None, p.x, v, s.lengths.bent, s.lengths.bias),
        "kinetic": (robot.kinetic_energy, p.x, p.w, step.energy[:1]),
        "potential": (weighing.potential_energy, p.x, step.energy[1:]),
        "compensation": (carrying.gravity_force if robot.model.carried else None, p.x, s.joints.compensation),
        "drag_velocity": (robot.frame_velocity(names, "local") if len(s.drag.body) else None, p.x, p.w, s.drag.velocity),
        "drag_placement": (robot.frame_placement(names) if len(s.drag.placement) else None, p.x, s.drag.placement),
    }


def _contact_functions(model: StepModel, stage: ContactStage, s: RobotStages) -> dict[str, Call]:
    q, v, inertia, t = s.state.q, s.state.v, stage.inertia, s.touching
    k, factors = t.kinematics, t.inertia.by_inverse.factors
    by_inverse, bodies = inertia.takes_inverse, bool(stage.bodies)
    by_inverse, passes, in_passes = by_inverse and not stage.in_passes, t.passes, stage.pass_functions
    factor, response, matrix, loads, motions = in_passes or (None,) * 5
    inverse: CompiledFunction | None = inertia.inverse_factor(model.struck) if by_inverse else None
    return {
        "placement": (stage.body_placements, q, k.placement),
        "velocity": (stage.body_velocities, q, s.step.free, k.velocity),
        "velocity_before": (stage.body_velocities if stage.looks_back else None, q, v, k.velocity_before),
        "body_delassus": (
            None if inertia.by_sets or in_passes else inertia.function_of_bodies,
            q,
            t.inertia.of_bodies.G,
        ),
        "delassus_with_rows": (None if in_passes else inertia.function_of_all, q, t.inertia.with_rows.G),
        "jacobian": (inertia.jacobian_function if bodies and by_inverse else None, q, factors.J),
        "inverse_factor": (inverse, q, factors.C),
        "contact_factor": (factor, q, passes.stiffness, passes.stiffening, passes.factor),
        "contact_response": (response, q, passes.factor, passes.wrench, passes.force, passes.motion, passes.change),
        "contact_matrix": (matrix, q, passes.stiffness, passes.stiffening, passes.matrix),
        "contact_loads": (loads, q, passes.wrench, passes.force, passes.load),
        "contact_motions": (motions, q, passes.change, passes.motion),
    }
