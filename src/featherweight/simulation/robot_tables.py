"""The stages of one robot as a table for compiled functions: its arrays, and the calls of its functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ..array_types import Array
from ..collision.collision_scene import collision_work
from ..collision.detection import ContactPoints
from ..contact.compliant.contact_passes import PassWork, pass_work, subtrees
from ..contact.contact_problem import BodyDelassus, ContactImpulses, ContactKinematics
from ..contact.contact_solver import solver_workspace
from ..contact.factors.inverse_factor import inverse_factors, inverse_work
from ..contact.laws import COULOMB
from ..contact.patches import patch_work
from ..engine.function import CompiledFunction
from ..engine.loops.kernels import Layout, MachineCall, Table, is_checked, machine_call
from ..engine.loops.prepared_calls import call_of_loop
from ..model.inertial_parameters import only_compensated, without_compensated
from ..robot.robot import Robot
from ..robot.tendons.lengths import no_lengths
from .contact_stage import ContactStage
from .forces.adhesion import adhesion_of
from .forces.at_joints import ForcesAtJoints
from .forces.damped_lengths import damped_lengths
from .forces.drag import drag_parts
from .forces.drive_inputs import DriveLaws
from .forces.implicit_drives import drive_work
from .forces.laws import Springs
from .robot_stages import SOLVE_BY_DELASSUS, SOLVE_IN_PASSES
from .smooth_motion import INTEGRATORS, STAGED
from .stage_records import (
    FOUND,
    KEPT_STEPS,
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
    zeros_of,
)  # fmt: skip
from .step_model import StepModel

Call = tuple[Any, ...]  # a function, followed by the arrays that it reads and writes

NO_ROWS = np.zeros(0, np.int64)
OF_ENERGY = ("kinetic", "potential")  # calls with the joints' own armature, without that of springs
OF_STAGES = "dynamics", "dynamics_external", "inverse_dynamics"  # "rk4" calls these with the joints' own armature
OF_IMPULSES = "body_delassus", "delassus_with_rows", "inverse_factor", "contact_factor", "contact_response", "contact_matrix"
"""Steps of MuJoCo call these with the joints' own armature, too."""
OF_MASS = *OF_STAGES, *OF_IMPULSES, "dynamics_pushed"


class StagesTable(Table):
    """The stages of one robot, and errors of its Python functions."""

    content: RobotStages

    def __init__(
        self, content: RobotStages, calls: dict[str, Any], errors: list[BaseException], layout: Layout | None = None
    ) -> None:
        super().__init__(content, layout)
        solver = content.calls.solver
        if solver is not None and solver.address != 0:
            solver.pointers[1] = self.address
        self.kept, self.errors = calls, errors
        self._derived: dict[object, Any] = {}

    def made_once(self, make: Callable[..., Table], *arguments: Any) -> Table:
        """Return the arrays for derivatives that a function makes of these stages and arguments, which are kept."""
        if make not in self._derived:
            self._derived[make] = make(self, *arguments)
        made: Table = self._derived[make]
        return made

    def kept_of_derivatives(self) -> list[Any]:
        """Return the objects that the arrays for derivatives keep alive."""
        return [made.kept for made in self._derived.values()]


def new_stages(model: StepModel, contacts: ContactStage, capacity: int, inertias: bool) -> RobotStages:
    """Return the stages of a robot without functions, for so many contacts, and with or without its own inertias."""
    robot = model.robot
    forces = model.forces
    nq, nv, nu, rows, na = robot.nq, robot.nv, forces.nu, forces.rows, forces.states
    lengths = forces.lengths.table.lengths if forces.lengths else no_lengths(nv)
    count = len(lengths.at)
    base = np.array(model.moving.armature if inertias or model.armature_varies else ())
    empty: list[Any] = [x[:0] for x in forces.springs[:9]]
    springs = forces.springs if model.passive else Springs(*empty)
    state = zeros_of(StateAndInputs, nv, control=nu, external=(len(robot.bodies), 6), act=na)
    of_rows, of_drives = dict.fromkeys(("row_velocity", "row_force"), rows), dict.fromkeys(("inputs", "law"), len(forces.parts))
    of_drives["slopes"] = len(forces.parts) if model.settles else 0
    point = zeros_of(StagePoint, nv, coordinates=nq + count, control=nu, act=na, act_rate=na, **of_rows, **of_drives)
    stages = RobotStages(
        numbers=_numbers(model, contacts),
        state=state._replace(q=np.array(robot.neutral()), given=np.zeros(2, bool)),
        point=point._replace(x=point.coordinates[:nq], S=_joint_map(forces)),
        step=zeros_of(StepArrays, nv, smooth=nq, ahead=nq, straight=nq, energy=2, gain=1, act=na),
        rounds=zeros_of(RungeKuttaArrays, nv, act_rates=na, start_q=nq, start_act=na),
        midpoint=zeros_of(MidpointArrays, nv, middle=nq + count, steps=(KEPT_STEPS, nv), weights=KEPT_STEPS),
        joints=JointForces(
            _copies(springs), _copies(forces.drives), drive_work(robot, forces),
            np.array(robot.effort_bounds), forces.drive_rows.efforts.copy(), model.forces.compensating.copy(),
            model.middle_armature.copy(), np.array(model.curved, np.int64).reshape(-1, 2), _laws(forces),
            np.zeros(nv if robot.model.weight_compensated else 0), damped_lengths(robot, forces, model.damped_lengths),
            model.free_bodies._replace(slopes=model.free_bodies.slopes.copy()),
        ),
        inertias=InertiaArguments(np.zeros((len(robot.bodies) if inertias else 0, 10)), base, base.copy(), base.copy()),
        loops=_loops(model),
        touching=_touching(model, contacts, capacity),
        drag=drag_parts(robot.model.drag, [b.name for b in robot.bodies], robot.model.fluid),
        lengths=_copies(lengths),
        adhesion=adhesion_of(forces, contacts.touching.links, contacts.touching.scene.gap[contacts.touching.pairs]),
        calls=CallsOfRobot(*(MachineCall(0, np.zeros(0, np.int64)) for _ in CallsOfRobot._fields)),
    )  # fmt: skip
    return with_solver_compiled_in(stages) if is_checked() else stages


def with_solver_compiled_in(stages: RobotStages) -> RobotStages:
    """Return stages for loops that contain the contact solvers, which are otherwise compiled apart, when a robot needs one."""
    return stages._replace(calls=stages.calls._replace(solver=None))


def self_contained_stages(model: StepModel, contacts: ContactStage, stages: RobotStages) -> StagesTable:
    """Return the stages of one robot with all functions and the contact solvers compiled in, for loops that leave Python."""
    own = with_solver_compiled_in(stages)
    return stages_table(model, contacts, own, model.in_fluid or bool(model.forces.sticky))


def stages_table(
    model: StepModel, contacts: ContactStage, stages: RobotStages, external: bool, layout: Layout | None = None
) -> StagesTable:
    """Return new stages with the functions of the robot, with or without forces of the user on bodies."""
    errors: list[BaseException] = []
    functions = calls_of_robot(model, contacts, stages, external)
    calls: dict[str, tuple[Any, Any]] = {name: bound_call(call, errors) for name, call in functions.items()}
    calls["delassus_of_touching"] = _delassus_of_touching(contacts, stages, errors)
    calls["impulses_alone"] = machine_call(None), None
    calls["solver"] = stages.calls.solver, None
    if stages.calls.solver is not None and contacts.touches:
        layout = layout or Layout(RobotStages, stages)
        solver = SOLVE_IN_PASSES if contacts.in_passes else SOLVE_BY_DELASSUS
        calls["solver"] = call_of_loop(solver.for_layouts(layout), 0)  # the table writes its address
    made = CallsOfRobot(**{name: call for name, (call, _) in calls.items()})
    return StagesTable(stages._replace(calls=made), calls, errors, layout)


def calls_of_robot(model: StepModel, contacts: ContactStage, stages: RobotStages, external: bool) -> dict[str, Call]:
    """Return calls of the robot's functions by name, for these stages; calls that are never made have no function."""
    robot, inertias = model.robot, len(stages.inertias.parameters) > 0
    functions = _functions(model, stages, external) | _contact_functions(model, contacts, stages)
    of_stages = OF_STAGES if model.integrator == "rk4" or model.by_file else ()
    as_it_is = *OF_ENERGY, *of_stages, *(OF_IMPULSES if model.by_file else ())
    for name, call in functions.items():
        if robot.model.weight_compensated and name == "potential":
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


def bound_call(call: Call, errors: list[BaseException]) -> tuple[MachineCall, Any]:
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


def _touching(step: StepModel, stage: ContactStage, capacity: int) -> TouchingRecord:
    model, inertia = stage.model, stage.inertia
    candidates, rows = len(stage.names), len(model.rows.joint)
    bodies, joints, size = len(stage.bodies), len(stage.joint_dofs), int(inertia.begin[-1])

    S = _joint_map(step.forces)[None] if step.forces.mapped else None  # each step overwrites it
    work = inverse_work(model.width, inertia.branches, capacity + rows)
    J, E = np.zeros((size, inertia.columns)), np.array(inertia.of_joints(S)[0], order="C")
    factors = inverse_factors(J, E, inertia.branches, work)

    def matrix(m: int, by_inverse: bool = False) -> BodyDelassus:
        return BodyDelassus(np.zeros((m, m)), inertia.begin.copy(), by_inverse, factors, work)

    return TouchingRecord(
        scene=stage.scene._replace(size=stage.scene.size.copy(), radius=stage.scene.radius.copy()),
        pair_of=stage.touching.pairs.astype(np.int64),
        model=model._replace(
            friction=model.friction.copy(), restitution=model.restitution.copy(), width=model.width.copy(),
            rows=_copies(model.rows), yielding=model.yielding.copy(), yielding_rows=model.yielding_rows.copy(),
        ),
        contacts=ContactPoints(
            candidate=np.zeros(capacity, np.int64), a=np.zeros(capacity, np.int64), b=np.zeros(capacity, np.int64),
            point=np.zeros((capacity, 3)), normal=np.zeros((capacity, 3)), gap=np.zeros(capacity),
        ),
        counts=np.zeros(5, np.int64),
        kinematics=ContactKinematics(
            placement=np.zeros((bodies, 4, 4)), velocity=np.zeros((bodies, 6)), gap=np.zeros(rows), speed=np.zeros(rows),
            velocity_before=np.zeros((bodies, 6)), speed_before=np.zeros(rows),
        ),
        impulses=ContactImpulses.of_sizes(capacity, bodies, joints, candidates, rows, model.settings.turning),
        report=np.zeros(7), deepest=np.zeros(1),
        workspace=solver_workspace(
            capacity, rows, size + joints, inertia.branches, model.settings.cones != COULOMB
        ),
        collisions=collision_work(stage.scene),
        inertia=ContactInertiaRecord(
            matrix(size), matrix(size + joints), matrix(size if inertia.by_sets else 0), matrix(0, by_inverse=True)
        ),
        passes=_passes(stage, capacity) if stage.in_passes else pass_work(subtrees((), ()), NO_ROWS, 0, 0, False),
        bodies=stage.numbers, dofs=stage.joint_dofs.astype(np.int64), forces=np.zeros((len(step.robot.bodies), 6)),
        patches=patch_work(capacity),
    )  # fmt: skip


def _passes(stage: ContactStage, capacity: int) -> PassWork:
    dofs, rows = stage.joint_dofs.astype(np.int64), len(stage.model.rows.joint)
    return pass_work(stage.subtrees, dofs, capacity, rows, stage.coupling)


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
    if robot.model.weight_compensated:
        weighing, carrying = (robot.with_weights_of(part(robot.model)) for part in (without_compensated, only_compensated))
    closing: Any = robot.step_functions.closing_step if model.looped else None
    names = [b.name for b in robot.bodies]
    going = None if smooth else robot.step_functions.advance
    advance: Call = going, q, step.after, step.displacement, h, p.x, step.end
    if model.staged:
        advance = robot.step_functions.advance, q, s.rounds.rate, p.increment, np.array(0.0), p.x, v
    return {
        "dynamics": (staged.forward_dynamics, p.x, p.w, p.load, p.acceleration),
        "dynamics_external": (forced, p.x, p.w, p.load, forces, p.acceleration),
        "dynamics_pushed": (pushed, p.x, p.w, step.pushed_load, forces, step.pushed),
        "inverse_dynamics": (staged.inverse_dynamics if external else None, p.x, p.w, p.acceleration, p.load),
        "free_velocity": (to_free, v, step.acceleration, h, step.free),
        "pushed_velocity": (None if smooth else robot.step_functions.free_velocity, v, step.pushed, h, step.after),
        "advance": advance,
        "advance_straight": (going, q, step.after, step.none, h, p.x, step.straight_end),
        "integrate": (robot.step_functions.integrate if smooth else None, q, p.increment, p.x),
        "closing": (closing, p.x, loops.closed, loops.residual, loops.margins, loops.singularity),
        "spanning": (robot.step_functions.spanning_map if robot.closed else None, p.x, p.S[: model.forces.joint_rows]),
        "length_placement": (lengths.placements if lengths else None, p.x, s.lengths.placement),
        "length_jacobian": (lengths.jacobians if lengths else None, p.x, s.lengths.jacobian),
        "length_bias": (lengths.biases if lengths else None, p.x, v, s.lengths.bias_acceleration, s.lengths.bias),
        "kinetic": (robot.kinetic_energy, p.x, p.w, step.energy[:1]),
        "potential": (weighing.potential_energy, p.x, step.energy[1:]),
        "compensation": (carrying.gravity_force if robot.model.weight_compensated else None, p.x, s.joints.compensation),
        "drag_velocity": (robot.frame_velocity(names, "local") if len(s.drag.body) else None, p.x, p.w, s.drag.velocity),
        "drag_placement": (robot.frame_placement(names) if len(s.drag.placement) else None, p.x, s.drag.placement),
    }


def _contact_functions(model: StepModel, stage: ContactStage, s: RobotStages) -> dict[str, Call]:
    q, v, inertia, t = s.state.q, s.state.v, stage.inertia, s.touching
    k, factors = t.kinematics, t.inertia.by_inverse.factors
    by_inverse, bodies = inertia.takes_inverse, bool(stage.bodies)
    by_inverse, passes, in_passes = by_inverse and not stage.in_passes, t.passes, stage.pass_functions
    factor, response, matrix, loads, motions, axes = in_passes or (None,) * 6
    inverse: CompiledFunction | None = inertia.inverse_factor(model.struck) if by_inverse else None
    return {
        "placement": (stage.body_placements, q, k.placement),
        "velocity": (stage.body_velocities, q, s.step.free, k.velocity),
        "velocity_before": (stage.body_velocities if stage.looks_back else None, q, v, k.velocity_before),
        "body_delassus": (None if inertia.by_sets or in_passes else inertia.function_of_bodies, q, t.inertia.of_bodies.G),
        "delassus_with_rows": (None if in_passes else inertia.function_of_all, q, t.inertia.with_rows.G),
        "jacobian": (inertia.jacobian_function if bodies and by_inverse else None, q, factors.J),
        "inverse_factor": (inverse, q, factors.C),
        "contact_factor": (factor, q, passes.stiffness, passes.stiffening, passes.factor),
        "contact_response": (response, q, passes.factor, passes.wrench, passes.force, passes.motion, passes.direction),
        "contact_matrix": (matrix, q, passes.stiffness, passes.stiffening, passes.matrix),
        "contact_loads": (loads, q, passes.wrench, passes.force, passes.load),
        "contact_motions": (motions, q, passes.direction, passes.coupled_motion),
        "contact_axes": (axes, q, *passes.axes),
    }
