"""The stages of a step for one robot, compiled by Numba: many steps without Python in between.

Semi-implicit Euler with contacts, of a robot without loops whose functions are machine code of their own
(`CompiledFunction.address`), called by address. A step that these stages cannot take (something that is not finite, deep
overlap, a solver that does not converge) is left to `Stepper`, which takes it or says what is wrong.

Arrays have a leading axis of one, as for `Stepper`: both call the same compiled functions for contacts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..robot.robot import Robot
from .compiling import by_reference, compiled, jitable, rounded_alike
from .contact.contact_model import ContactModel
from .contact.contact_problem import BodyDelassus
from .contact.contact_solver import (
    ContactState,
    add_joint_forces,
    forget,
    keep_impulses,
    resolve_robots,
    solver_workspace,
    write_displacement,
    write_external_forces,
)  # fmt: skip
from .contact.contact_stage import ContactStage
from .contact.delassus_by_inverse import InverseFactors, inverse_work, write_delassus_of_robots
from .contact.detection import find_contacts_of_robots
from .contact.joint_rows import write_active, write_gaps, write_speeds
from .energy_guard import SLOW, excess_energy, greatest_work
from .forces import Springs, spring_force
from .step import take_step

Array = np.ndarray[Any, np.dtype[Any]]

jitable(take_step), rounded_alike(spring_force), jitable(excess_energy), jitable(greatest_work)


@intrinsic  # type: ignore[untyped-decorator]
def call_address(context: Any, address: Any, arguments: Any) -> Any:
    """Call `void f(double **arguments)` at an address, with an address of an array of pointers."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        function = builder.inttoptr(values[0], ir.FunctionType(ir.VoidType(), [pointer]).as_pointer())
        builder.call(function, [builder.inttoptr(values[1], pointer)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


class MachineCall(NamedTuple):
    """A function with the arrays that it reads and writes, which must live as long; none at address 0."""

    address: int | None
    pointers: Any  # int64, of the arrays


class RobotStages(NamedTuple):
    """One robot, as what `step.take_step` needs.

    Compiled methods count a reference to each array of a field that they name, and so the fields are many small ones.
    """

    q: Any
    v: Any
    tau: Any  # of the user
    load: Any  # with damping and springs
    acceleration: Any
    free: Any  # velocity, where nothing touches
    forces: Any  # (1, bodies, 6), of impulses on bodies
    pushed_load: Any  # with impulses at joints
    pushed_acceleration: Any
    after: Any  # velocity, in the axes of the start
    displacement: Any
    ahead: Any  # q after the step
    end: Any  # velocity, in the axes of the end
    no_displacement: Any
    straight: Any  # q after the step, had nothing been parted
    straight_end: Any  # velocity there
    kinetic: Any  # (2, 1) [J], before and after the step
    potential: Any
    least_energy: float  # [J]
    bounces: Any  # bool, whether any surface does
    h: Any  # (1,) [s]
    springs: Any  # Springs
    spheres: Any  # detection.Spheres
    width: Any  # this and the next four: ContactModel
    friction: Any
    restitution: Any
    rows: Any
    settings: Any
    contacts: Any  # ContactPoints
    counts: Any  # (1,) int, of contacts
    kinematics: Any  # ContactKinematics
    impulses: Any  # ContactImpulses
    report: Any  # SolverReport
    of_bodies: Any  # BodyDelassus of bodies that may touch
    with_rows: Any  # BodyDelassus, and of joint rows
    begin: Any  # in place of theirs, where M⁻¹ gives G of the bodies that touch
    factors: Any  # InverseFactors
    factors_of_bodies: Any  # InverseFactors without joint rows
    workspace: Any  # SolverWorkspace
    inverse_work: Any  # InverseWork
    bodies: Any  # numbers of those that may touch
    dofs: Any  # of joints with limits or friction
    near: Any  # (1,) bool, whether joint rows count
    one: Any  # (1,) int, the number of the robot
    max_penetration: float  # [m]
    dynamics: Any  # MachineCalls
    pushed_dynamics: Any
    free_velocity: Any
    pushed_velocity: Any
    advance: Any
    advance_straight: Any
    kinetic_before: Any
    kinetic_after: Any
    potential_before: Any
    potential_straight: Any
    placement: Any
    velocity: Any
    velocity_before: Any
    body_delassus: Any  # of bodies that may touch
    delassus_with_rows: Any  # and of joint rows
    jacobian: Any  # of bodies that may touch
    inverse: Any  # of the mass matrix

    def move_freely(self) -> None:
        s, q, v, load = self.springs, self.q[0], self.v[0], self.load[0]
        for i in range(len(v)):
            spring = s.damping[i], s.stiffness[i], s.rest[i]
            load[i] = self.tau[0, i] + spring_force(spring, q[s.at[i]], v[i], self.h[0])
            self.displacement[0, i] = 0.0
        call_machine(self.dynamics)
        call_machine(self.free_velocity)
        copy(self.free[0], self.after[0])

    def is_finite(self) -> bool:
        return all_finite(self.after[0])

    def detect(self) -> bool:
        write_gaps(self.rows, self.q, self.kinematics.gap)
        if len(self.bodies) == 0:
            return True
        call_machine(self.placement)
        contacts, counts, margin = self.contacts, self.counts, self.settings.margin
        find_contacts_of_robots(0, 1, self.spheres, self.kinematics.placement, margin, contacts, counts)
        deepest = 0.0
        for c in range(counts[0]):
            deepest = max(deepest, -contacts.gap[0, c])
        return deepest <= self.max_penetration

    def is_touched(self) -> bool:
        rows, k = self.rows, self.kinematics
        write_speeds(rows, self.free, k.speed)
        write_active(rows, k.gap, k.speed, self.settings, self.near)
        return self.near[0] or self.counts[0] > 0  # type: ignore[no-any-return]

    def resolve(self) -> bool:
        if len(self.bodies) > 0:
            call_machine(self.velocity)
            if self.bounces:
                call_machine(self.velocity_before)
                write_speeds(self.rows, self.v, self.kinematics.speed_before)
        report = self.report
        state = ContactState(self.contacts, self.counts, self.kinematics, self.impulses, report)
        model = ContactModel(self.width, self.friction, self.restitution, self.rows, self.settings)
        resolve_robots(0, 1, self.one, model, find_delassus(self), state, self.workspace)
        return report.residual[0] <= report.allowed[0]  # type: ignore[no-any-return]

    def overlaps(self) -> bool:
        return self.report.overlap[0]  # type: ignore[no-any-return]

    def part(self) -> None:
        impulses = self.impulses
        write_pushed_acceleration(self, impulses.push, impulses.joint_push)
        write_displacement(self.report.overlap, self.acceleration, self.pushed_acceleration, self.h[0], self.displacement)

    def apply_impulses(self) -> None:
        impulses = self.impulses
        write_pushed_acceleration(self, impulses.wrench, impulses.joint)
        call_machine(self.pushed_velocity)

    def forget_impulses(self) -> None:
        forget(self.one, self.impulses, self.report)

    def move(self) -> None:
        call_machine(self.advance)

    def is_sound(self) -> bool:
        if not all_finite(self.ahead[0]) or not all_finite(self.end[0]):
            return False
        h, farthest = self.h[0], 0.0
        for i in range(len(self.after[0])):
            farthest = max(farthest, h * abs(self.after[0, i]), abs(self.displacement[0, i]))
        if farthest <= SLOW:
            return True
        return excess(self) <= 0.0

    def arrive(self) -> None:
        copy(self.ahead[0], self.q[0])
        copy(self.end[0], self.v[0])
        keep_impulses(self.impulses)


@jitable
def call_machine(function: Any) -> None:
    call_address(function.address, function.pointers.ctypes.data)


@jitable
def all_finite(x: Any) -> bool:
    """One by one: the compiler may add numbers in any order, and knows that x - x is zero."""
    finite = True
    for y in x:
        finite &= abs(y) < np.inf
    return finite


@jitable
def excess(stages: Any) -> float:
    """`excess_energy` of the step."""
    call_machine(stages.advance_straight)
    call_machine(stages.kinetic_before)
    call_machine(stages.kinetic_after)
    call_machine(stages.potential_before)
    call_machine(stages.potential_straight)
    kinetic, potential, s = stages.kinetic, stages.potential, stages.springs
    springs_before = springs_after = work = 0.0
    for i in range(len(stages.v[0])):
        before, after = stages.q[0, s.at[i]] - s.rest[i], stages.straight[0, s.at[i]] - s.rest[i]
        springs_before += 0.5 * s.stiffness[i] * before * before
        springs_after += 0.5 * s.stiffness[i] * after * after
        work += greatest_work(stages.tau[0, i], stages.v[0, i], stages.end[0, i], stages.h[0])
    return excess_energy(  # type: ignore[no-any-return]
        (kinetic[0, 0], kinetic[1, 0]),
        (potential[0, 0] + springs_before, potential[1, 0] + springs_after),
        work, stages.least_energy,
    )  # fmt: skip


@jitable
def copy(source: Any, target: Any) -> None:
    for i in range(len(target)):
        target[i] = source[i]


@jitable
def find_delassus(stages: Any) -> Any:
    """G of the bodies that may touch, and of joint rows where they count; of those that touch where that is cheaper."""
    near = stages.near[0]
    if near and stages.delassus_with_rows.address != 0:
        call_machine(stages.delassus_with_rows)
        return stages.with_rows
    if not near and stages.body_delassus.address != 0:
        call_machine(stages.body_delassus)
        return stages.of_bodies
    if stages.jacobian.address != 0:
        call_machine(stages.jacobian)
    call_machine(stages.inverse)
    delassus = BodyDelassus(stages.with_rows.G, stages.begin)
    factors = stages.factors if near else stages.factors_of_bodies
    state = ContactState(stages.contacts, stages.counts, stages.kinematics, stages.impulses, stages.report)
    model = ContactModel(stages.width, stages.friction, stages.restitution, stages.rows, stages.settings)
    write_delassus_of_robots(0, 1, stages.one, model, state, factors, delassus, stages.inverse_work)
    return delassus


@jitable
def write_pushed_acceleration(stages: Any, wrench: Any, impulse: Any) -> None:
    """The acceleration with impulses on bodies and at joints spread over the step."""
    write_external_forces(stages.bodies, wrench, stages.h[0], stages.forces)
    copy(stages.load[0], stages.pushed_load[0])
    add_joint_forces(stages.dofs, impulse, stages.h[0], stages.pushed_load)
    call_machine(stages.pushed_dynamics)


Reference = by_reference(RobotStages)


@compiled
def take_steps(stages: Any, steps: int) -> int:
    """Take steps as far as these stages can; how many."""
    reference = Reference(*stages)
    for k in range(steps):
        if not take_step(reference):
            return k
    return steps


def robot_stages(
    moving: Robot,
    robot: Robot,
    contacts: ContactStage,
    springs: Springs | None,
    step: float,
    max_penetration: float,
    least_energy: float,
) -> RobotStages | None:
    """The stages of a robot's steps, if its functions are machine code; `contacts` has been reset for one.

    `moving` is the robot with the armature that meets springs and dampers at the step's end.
    """
    inertia, nv = contacts.inertia, moving.nv
    if contacts.shapes is not None or inertia.by_sets:
        return None
    arrays, delassus = _motion_arrays(moving, step), _delassus_arrays(moving, contacts)
    calls = _calls(moving, contacts, arrays, delassus) | _energy_calls(robot, arrays)
    if any(c.address is None for c in calls.values()):
        return None
    none, one = np.zeros(nv), np.zeros(1, np.int64)
    return RobotStages(
        **arrays, **delassus, **calls, **contacts.model._asdict(), **contacts.state._asdict(), spheres=contacts.spheres,
        springs=springs or Springs(none, none, none, np.zeros(nv, np.int64)), bodies=contacts.numbers,
        dofs=contacts.joint_dofs.astype(np.int64), near=np.zeros(1, bool), one=one, max_penetration=float(max_penetration),
        least_energy=float(least_energy), bounces=contacts.bounces,
        workspace=solver_workspace(len(contacts.names), len(contacts.rows.joint), delassus["with_rows"].G.shape[-1]),
        inverse_work=inverse_work(len(contacts.bodies), delassus["with_rows"].G.shape[-1], nv),
    )  # fmt: skip


def _delassus_arrays(robot: Robot, contacts: ContactStage) -> dict[str, Any]:
    inertia, nv = contacts.inertia, robot.nv
    size = int(inertia.begin[-1])

    def room(m: int) -> BodyDelassus:
        return BodyDelassus(np.zeros((1, m, m)), inertia.begin[None].copy())

    factors = InverseFactors(np.zeros((1, size, nv)), np.zeros((1, nv, nv)), inertia.of_joints(None))
    return {
        "of_bodies": room(size), "with_rows": room(size + len(contacts.joint_dofs)), "begin": inertia.begin[None].copy(),
        "factors": factors, "factors_of_bodies": factors._replace(E=np.zeros((1, 0, nv))),
    }  # fmt: skip


def _motion_arrays(robot: Robot, step: float) -> dict[str, Any]:
    names = (
        "v",
        "tau",
        "load",
        "acceleration",
        "free",
        "pushed_load",
        "pushed_acceleration",
        "after",
        "displacement",
        "end",
        "no_displacement",
        "straight_end",
    )
    arrays = {name: np.zeros((1, robot.nv)) for name in names}
    arrays |= {name: np.zeros((1, robot.nq)) for name in ("q", "ahead", "straight")}
    arrays |= {name: np.zeros((2, 1)) for name in ("kinetic", "potential")}
    return {**arrays, "forces": np.zeros((1, len(robot.bodies), 6)), "h": np.array([step])}


def _calls(robot: Robot, contacts: ContactStage, m: dict[str, Array], delassus: dict[str, Any]) -> dict[str, MachineCall]:
    """Addresses are None for functions that are no machine code of their own."""
    inertia, dynamics, k = contacts.inertia, robot.forward_dynamics, contacts.state.kinematics
    bodies, with_rows, factors = (delassus[name] for name in ("of_bodies", "with_rows", "factors"))
    q, v, h = m["q"], m["v"], m["h"]
    pushed = dynamics.variant("external_forces")
    jacobian = inertia.jacobian_function if contacts.bodies else None
    return {
        "dynamics": _machine_call(dynamics, q, v, m["load"], m["acceleration"]),
        "pushed_dynamics": _machine_call(pushed, q, v, m["pushed_load"], m["forces"], m["pushed_acceleration"]),
        "free_velocity": _machine_call(robot._free_velocity, v, m["acceleration"], h, m["free"]),
        "pushed_velocity": _machine_call(robot._free_velocity, v, m["pushed_acceleration"], h, m["after"]),
        "advance": _machine_call(robot._advance, q, m["after"], m["displacement"], h, m["ahead"], m["end"]),
        "advance_straight": _machine_call(
            robot._advance, q, m["after"], m["no_displacement"], h, m["straight"], m["straight_end"]
        ),
        "placement": _machine_call(contacts.body_placements, q, k.placement),
        "velocity": _machine_call(contacts.body_velocities, q, m["free"], k.velocity),
        "velocity_before": _machine_call(contacts.body_velocities, q, v, k.velocity_before),
        "body_delassus": _machine_call(inertia.function_of_bodies, q, bodies.G),
        "delassus_with_rows": _machine_call(inertia.function_of_all, q, with_rows.G),
        "jacobian": _machine_call(jacobian, q, factors.J),
        "inverse": _machine_call(robot.inverse_mass_matrix, q, factors.Minv),
    }


def _energy_calls(robot: Robot, m: dict[str, Array]) -> dict[str, MachineCall]:
    kinetic, potential = m["kinetic"], m["potential"]
    return {
        "kinetic_before": _machine_call(robot.kinetic_energy, m["q"], m["v"], kinetic[0]),
        "kinetic_after": _machine_call(robot.kinetic_energy, m["ahead"], m["end"], kinetic[1]),
        "potential_before": _machine_call(robot.potential_energy, m["q"], potential[0]),
        "potential_straight": _machine_call(robot.potential_energy, m["straight"], potential[1]),
    }


def _machine_call(function: Any, *arrays: Array) -> MachineCall:
    pointers = np.array([a.ctypes.data for a in arrays], np.int64)
    if function is None:
        return MachineCall(0, pointers)
    return MachineCall(function.address if function.execution == "traced" else None, pointers)
