"""The stages of one robot, as a table for compiled functions: its arrays, and its functions' calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..collision.collision_scene import collision_work
from ..collision.detection import ContactPoints
from ..contact.contact_problem import BodyDelassus, ContactImpulses, ContactKinematics
from ..contact.contact_solver import solver_workspace
from ..contact.delassus_by_inverse import InverseFactors, inverse_work
from ..model.expansion import CURVED
from ..robot.robot import Robot
from .contact_stage import ContactStage
from .forces import ForcesAtJoints, Springs
from .implicit_drives import drive_work
from .integrators import KEPT_STEPS
from .machine_code import Table, machine_call
from .robot_stages import RobotStages
from .smooth_motion import MIDPOINT, RK4, SEMI_IMPLICIT
from .stage_arrays import CallsOfRobot, LoopArrays, MotionArrays, RobotNumbers

Array = np.ndarray[Any, np.dtype[Any]]
Call = tuple[Any, ...]  # a function, and the arrays that it reads and writes

NO_SPRINGS = Springs(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
OF_ENERGY = ("kinetic", "potential")  # calls that depend on inertias: without, and with what meets springs at the step's end
OF_MASS = (
    "dynamics", "dynamics_external", "dynamics_pushed", "inverse_dynamics", "body_delassus", "delassus_with_rows",
    "inverse_matrix",
)  # fmt: skip
OF_STAGES = "dynamics", "dynamics_external", "inverse_dynamics"  # which "rk4" calls for the robot as it is
INTEGRATOR = {"semi-implicit": SEMI_IMPLICIT, "rk4": RK4, "midpoint": MIDPOINT}
CONFIGURATIONS = ("x", "smooth", "ahead", "straight", "middle", "closed")


def stages_table(stepper: Any, contacts: ContactStage, room: int, external: bool, inertias: bool) -> Table:
    """The stages of a `Stepper`'s robot, with room for so many contacts, and forces of the user on bodies or without."""
    robot = stepper.robot
    m = _motion(robot)
    arrays = _inputs(robot, stepper.forces) | _contact_arrays(stepper.moving, contacts, room)
    energy, loops = np.zeros(2), _loops(robot, stepper.looped)
    functions = _functions(stepper, m, arrays, energy, loops, external)
    functions |= _contact_calls(stepper, contacts, m, arrays)
    base = np.array(stepper.moving.armature if inertias or stepper.driven else ())
    parameters = np.zeros((len(robot.bodies) if inertias else 0, 10))
    armature, own = base.copy(), base.copy()
    as_it_is = (*OF_ENERGY, *OF_STAGES) if stepper.integrator == "rk4" else OF_ENERGY
    for name, call in functions.items():
        if inertias and name in as_it_is:
            functions[name] = with_inertias(robot, call, parameters, own)
        elif name in OF_MASS and (inertias or stepper.driven):
            functions[name] = with_inertias(stepper.moving, call, parameters, armature)
    calls = CallsOfRobot(**{name: machine_call(*call) for name, call in functions.items()})
    springs = stepper.forces.springs if stepper.passive else NO_SPRINGS
    stages = RobotStages(
        **arrays, numbers=_numbers(stepper, contacts), arrays=m, calls=calls, springs=_copies(springs),
        drives=_copies(stepper.forces.drives), driving=drive_work(robot, stepper.forces.drives),
        middle_armature=stepper.middle_armature.copy(),
        efforts=robot.effort_limit.copy(), joints=_curved(robot), energy=energy, loops=loops, opened=np.zeros(1),
        parameters=parameters, base_armature=base, armature=armature, own_armature=own,
    )  # fmt: skip
    table = Table(stages)
    table.kept = list(functions.values())  # code and arrays live as long
    return table


def with_inertias(robot: Robot, call: Call, parameters: Array, armature: Array) -> Call:
    """A call of the function of armature, and of inertial parameters if there are any, if it depends on them."""
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


def _copies(arrays: Any) -> Any:
    return type(arrays)(*(np.array(x, order="C") for x in arrays))


def _numbers(stepper: Any, contacts: ContactStage) -> RobotNumbers:
    robot = stepper.robot
    return RobotNumbers(
        integrator=INTEGRATOR[stepper.integrator],
        looped=stepper.looped,
        joined=bool(robot.closed),
        driven=stepper.driven,
        looks_back=contacts.looks_back,
        step=float(stepper.h),
        closed_at=float(robot.step_functions.closing_tolerance) if stepper.looped else 0.0,
        gravity=float(np.linalg.norm(robot.gravity)),
        least_energy=float(stepper.least_energy),
        max_penetration=float(stepper.max_penetration),
    )


def _motion(robot: Robot) -> MotionArrays:
    n = len(robot.model.tree.parent)
    arrays = {name: np.zeros(robot.nq if name in CONFIGURATIONS else robot.nv) for name in MotionArrays._fields}
    arrays |= {"row_velocity": np.zeros(n), "row_force": np.zeros(n), "S": np.zeros((n if robot.closed else 0, robot.nv))}
    arrays |= {"steps": np.zeros((KEPT_STEPS, robot.nv)), "weights": np.zeros(KEPT_STEPS)}
    return MotionArrays(**arrays)


def _loops(robot: Robot, looped: bool) -> LoopArrays:
    if not looped:
        return LoopArrays(np.zeros(0), np.zeros(0), np.zeros(1))
    _, *shapes = robot.step_functions.closing_step.program.outputs  # type: ignore[union-attr]
    return LoopArrays(*(np.zeros(x.shape or (1,)) for x in shapes))


def _inputs(robot: Robot, forces: ForcesAtJoints) -> dict[str, Any]:
    bodies = len(robot.bodies)
    return {
        "q": robot.neutral(), "v": np.zeros(robot.nv), "tau": np.zeros(robot.nv), "control": np.zeros(forces.nu),
        "external": np.zeros((bodies, 6)), "forces": np.zeros((bodies, 6)), "given": np.zeros(2, bool),
    }  # fmt: skip


def _curved(robot: Robot) -> Array:
    """Joints whose velocities do not commute; in a loop, rows that move by themselves are no group."""
    whole = [j for j in robot.joints if j.type in CURVED and j.v_slice.stop - j.v_slice.start == j.type.nv]
    return np.array([(CURVED[j.type], j.v_slice.start) for j in whole], np.int64).reshape(-1, 2)


def _contact_arrays(robot: Robot, contacts: ContactStage, room: int) -> dict[str, Any]:
    model, inertia, nv = contacts.model, contacts.inertia, robot.nv
    candidates, rows = len(contacts.names), len(model.rows.joint)
    bodies, joints, size = len(contacts.bodies), len(contacts.joint_dofs), int(inertia.begin[-1])

    def matrix(m: int) -> BodyDelassus:
        return BodyDelassus(np.zeros((m, m)), inertia.begin.copy())

    S = np.zeros((1, len(robot.model.tree.parent), nv)) if robot.closed else None  # that of each step is written there
    factors = InverseFactors(np.zeros((size, nv)), np.zeros((nv, nv)), np.array(inertia.of_joints(S)[0], order="C"))
    return {
        **_copied(model._asdict()),
        "scene": contacts.scene,
        "contacts": ContactPoints(
            candidate=np.zeros(room, np.int64), a=np.zeros(room, np.int64), b=np.zeros(room, np.int64),
            point=np.zeros((room, 3)), normal=np.zeros((room, 3)), gap=np.zeros(room),
        ),
        "count": np.zeros(2, np.int64),
        "kinematics": ContactKinematics(
            placement=np.zeros((bodies, 4, 4)), velocity=np.zeros((bodies, 6)), gap=np.zeros(rows), speed=np.zeros(rows),
            velocity_before=np.zeros((bodies, 6)), speed_before=np.zeros(rows),
        ),
        "impulses": ContactImpulses(
            force=np.zeros((room, 3)), wrench=np.zeros((bodies, 6)), joint=np.zeros(joints), push=np.zeros((bodies, 6)),
            joint_push=np.zeros(joints), impact=np.zeros((bodies, 6)), joint_impact=np.zeros(joints),
            last_force=np.zeros((candidates, 3)), last_row=np.zeros(rows),
            next_force=np.zeros((candidates, 3)), next_row=np.zeros(rows),
        ),
        "report": np.zeros(5),
        "workspace": solver_workspace(room, rows, size + joints),
        "inverse_work": inverse_work(bodies, size + joints, nv),
        "collisions": collision_work(contacts.scene),
        "of_bodies": matrix(size), "with_rows": matrix(size + joints), "begin": inertia.begin.copy(),
        "factors": factors, "factors_of_bodies": factors._replace(E=np.zeros((0, nv))),
        "bodies": contacts.numbers, "dofs": contacts.joint_dofs.astype(np.int64),
    }  # fmt: skip


def _copied(fields: dict[str, Any]) -> dict[str, Any]:
    """Arrays of a table's own: of robots that differ, each has others in them."""
    return {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in fields.items()}


def _functions(
    stepper: Any, m: MotionArrays, a: dict[str, Any], energy: Array, loops: LoopArrays, external: bool
) -> dict[str, Call]:
    """The calls of `CallsOfRobot`; those that are never made have no function."""
    robot, moving, h = stepper.robot, stepper.moving, np.array(float(stepper.h))
    q, v, forces = a["q"], a["v"], a["forces"]
    staged = robot if stepper.integrator == "rk4" else moving
    touching = bool(a["bodies"].size or a["dofs"].size)
    pushed = moving.forward_dynamics.variant("external_forces") if touching else None
    forced = staged.forward_dynamics.variant("external_forces") if external else None
    smooth = stepper.integrator != "semi-implicit"
    return {
        "dynamics": (staged.forward_dynamics, m.x, m.w, m.load, m.accelerated),
        "dynamics_external": (forced, m.x, m.w, m.load, forces, m.accelerated),
        "dynamics_pushed": (pushed, m.x, m.w, m.pushed_load, forces, m.pushed),
        "inverse_dynamics": (staged.inverse_dynamics if external else None, m.x, m.w, m.accelerated, m.load),
        "free_velocity": (None if smooth else robot.step_functions.free_velocity, v, m.acceleration, h, m.free),
        "pushed_velocity": (None if smooth else robot.step_functions.free_velocity, v, m.pushed, h, m.after),
        "advance": (None if smooth else robot.step_functions.advance, q, m.after, m.displacement, h, m.x, m.end),
        "advance_straight": (None if smooth else robot.step_functions.advance, q, m.after, m.none, h, m.x, m.straight_end),
        "integrate": (robot.step_functions.integrate if smooth else None, q, m.u, m.x),
        "closing": (robot.step_functions.closing_step if stepper.looped else None, m.x, m.closed, *loops),
        "spanning": (robot.step_functions.spanning_map if robot.closed else None, m.x, m.S),
        "kinetic": (robot.kinetic_energy, m.x, m.w, energy[:1]),
        "potential": (robot.potential_energy, m.x, energy[1:]),
    }


def _contact_calls(stepper: Any, contacts: ContactStage, m: MotionArrays, a: dict[str, Any]) -> dict[str, Call]:
    q = a["q"]
    inertia, k, factors = contacts.inertia, a["kinematics"], a["factors"]
    by_inverse, bodies = inertia.takes_inverse, bool(contacts.bodies)
    return {
        "placement": (contacts.body_placements, q, k.placement),
        "velocity": (contacts.body_velocities, q, m.free, k.velocity),
        "velocity_before": (contacts.body_velocities if contacts.looks_back else None, q, a["v"], k.velocity_before),
        "body_delassus": (inertia.function_of_bodies, q, a["of_bodies"].G),
        "delassus_with_rows": (inertia.function_of_all, q, a["with_rows"].G),
        "jacobian": (inertia.jacobian_function if bodies and by_inverse else None, q, factors.J),
        "inverse_matrix": (stepper.moving.inverse_mass_matrix if by_inverse else None, q, factors.Minv),
    }
