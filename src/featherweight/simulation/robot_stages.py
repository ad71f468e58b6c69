"""The stages of a step for one robot, as compiled functions see them: all integrators, drives, loops, contacts.

Everything lies in arrays whose places do not change, and functions of the robot are machine code of their own
(`CompiledFunction.address`), called by address with places they were given once. A step that these stages cannot take
(something that is not finite, deep overlap, loops that do not close, a solver that does not converge) is left to `Stepper`,
which takes it or says what is wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..collision.detection import ContactPoints, find_contacts
from ..contact.contact_model import ContactModel
from ..contact.contact_problem import BodyDelassus
from ..contact.contact_solver import MOST_PUSHED, keep_impulses, resolve
from ..contact.delassus_by_inverse import write_delassus_by_inverse
from ..contact.impulses import greatest_of
from ..contact.joint_rows import BEYOND, any_active, comes_back, farthest_beyond, write_row_gaps, write_row_speeds
from ..engine.loops.kernels import call_machine
from .energy_guard import FARTHEST, SLOW, excess_energy, greatest_work, mean_work
from .implicit_drives import ROUNDS_OF_ALL, judge_drives
from .smooth_motion import (
    RK4,
    SEMI_IMPLICIT,
    accelerate_held,
    be_at,
    clear_rows,
    close,
    copy,
    energies,
    integrate_smoothly,
    write_given,
    write_row_velocity,
)  # fmt: skip


class RobotStages(NamedTuple):
    """One robot, as what `step.take_step` needs."""

    q: Any
    v: Any
    tau: Any  # of the user
    control: Any
    external: Any  # (bodies, 6) forces of the user
    given: Any  # (2,) bool, whether there are controls, and forces on bodies
    numbers: Any  # RobotNumbers
    arrays: Any  # MotionArrays
    calls: Any  # CallsOfRobot
    springs: Any  # Springs
    drives: Any  # Drives
    middle_armature: Any  # (n,) by which "rk4" and "midpoint" meet damping and stiffness; (0,) where there are none
    efforts: Any  # (nv,)
    joints: Any  # (k, 2) int, floating, spherical and planar joints: kind and first row
    forces: Any  # (bodies, 6), on all bodies
    energy: Any  # (2,) [J] kinetic and potential, as functions give them
    loops: Any  # LoopArrays
    opened: Any  # (1,) the greatest of them, before loops were closed
    scene: Any  # CollisionScene
    width: Any  # this and the next four: ContactModel
    friction: Any
    restitution: Any
    rows: Any
    settings: Any
    contacts: Any  # ContactPoints
    count: Any  # (2,) int: contacts, -1 where there was no room; whether joint rows count
    kinematics: Any  # ContactKinematics
    impulses: Any  # ContactImpulses
    report: Any  # (5,) numbers of SolverReport
    workspace: Any  # SolverWorkspace
    inverse_work: Any  # InverseWork
    collisions: Any  # CollisionWork
    of_bodies: Any  # BodyDelassus of bodies that may touch
    with_rows: Any  # BodyDelassus, and of joint rows
    begin: Any  # in place of theirs, where M⁻¹ gives G of the bodies that touch
    factors: Any  # InverseFactors
    factors_of_bodies: Any  # InverseFactors without joint rows
    bodies: Any  # numbers of those that may touch
    dofs: Any  # of joints with limits or friction
    parameters: Any  # (bodies, 10), where functions of the robot take them
    base_armature: Any  # (k,) with what meets damping and springs at the step's end
    armature: Any  # (k,) with what meets drives too
    own_armature: Any  # (k,)
    driving: Any  # DriveWork

    def move_freely(self) -> None:
        m = self.arrays
        for i in range(len(m.displacement)):
            m.displacement[i] = 0.0
        integrate_smoothly(self)
        copy(m.free, m.after)

    def is_finite(self) -> bool:
        return all_finite(self.arrays.after)

    def detect(self) -> bool:
        write_row_gaps(self.rows, self.q, self.kinematics.gap)
        self.count[0] = 0
        if len(self.bodies) == 0:
            return True
        calls, contacts = self.calls, self.contacts
        call_machine(calls.placement)
        call_machine(calls.velocity)
        count = find_contacts(
            self.scene, self.kinematics.placement, self.kinematics.velocity, self.settings, contacts, self.collisions
        )
        self.count[0] = count
        deepest = 0.0
        for c in range(count):
            deepest = max(deepest, -contacts.gap[c])
        return count >= 0 and deepest <= self.numbers.max_penetration

    def is_touched(self) -> bool:
        if len(self.rows.joint) == 0:
            return self.count[0] > 0  # type: ignore[no-any-return]
        find_near(self)
        return self.count[1] > 0 or self.count[0] > 0  # type: ignore[no-any-return]

    def resolve(self) -> bool:
        m, calls, k = self.arrays, self.calls, self.kinematics
        write_unpushed_acceleration(self)
        if self.numbers.looks_back:
            if len(self.bodies) > 0:
                call_machine(calls.velocity_before)
            write_row_velocity(self, self.v)
            write_row_speeds(self.rows, m.row_velocity, k.speed_before)
        contacts = first_contacts(self.contacts, self.count[0])
        model = ContactModel(self.width, self.friction, self.restitution, self.rows, self.settings)
        done = resolve(model, contacts, k, delassus_of(self, contacts), self.impulses, self.workspace)
        for _ in range(ROUNDS_OF_ALL):
            if not done.residual <= done.allowed or not drives_pass(self):
                break
            done = resolve(model, contacts, k, delassus_of(self, contacts), self.impulses, self.workspace)
        report = self.report
        report[0], report[1], report[2], report[3] = done.residual, done.allowed, done.sweeps, done.newton_steps
        report[4] = done.parting
        return done.residual <= done.allowed  # type: ignore[no-any-return]

    def overlaps(self) -> bool:
        return self.report[4] > 0.0  # type: ignore[no-any-return]

    def part(self) -> None:
        m, h = self.arrays, self.numbers.step
        write_pushed_acceleration(self, self.impulses.push, self.impulses.joint_push)
        for i in range(len(m.displacement)):
            m.displacement[i] = h * (m.pushed[i] - m.unpushed[i])
        write_row_velocity(self, m.displacement)
        shrink = min(1.0, self.report[4] / max(greatest_of(m.row_velocity), 1e-300))
        for i in range(len(m.displacement)):
            m.displacement[i] *= shrink

    def apply_impulses(self) -> None:
        m, h, impulses = self.arrays, self.numbers.step, self.impulses
        if self.numbers.integrator != SEMI_IMPLICIT:
            write_struck(self)
        write_pushed_acceleration(self, impulses.wrench, impulses.joint)
        if self.numbers.integrator == SEMI_IMPLICIT:
            call_machine(self.calls.pushed_velocity)
            return
        for i in range(len(m.after)):
            m.after[i] = m.free[i] + h * (m.pushed[i] - m.unpushed[i])

    def forget_impulses(self) -> None:
        clear_impulses(self.impulses)
        for k in range(5):
            self.report[k] = 0.0

    def move(self) -> None:
        m = self.arrays
        if self.numbers.integrator != SEMI_IMPLICIT:
            copy(m.after, m.end)
        write_arrival(self, True)
        copy(m.x, m.ahead)

    def limits_are_attainable(self) -> bool:
        m, rows, gap, parting = self.arrays, self.rows, self.kinematics.gap, self.report[4]
        if not (self.numbers.looped and 0.0 < parting != MOST_PUSHED):
            return True
        worst = farthest_beyond(rows, gap)
        if gap[worst] >= -BEYOND:
            return True
        sign, at = rows.sign[worst], rows.at[worst]
        write_row_velocity(self, m.displacement)
        expected = sign * m.row_velocity[rows.dof[worst]]
        write_arrival(self, False)
        return comes_back(sign * (m.ahead[at] - m.x[at]), expected, parting)

    def is_sound(self) -> bool:
        m, h = self.arrays, self.numbers.step
        if not all_finite(m.ahead) or not all_finite(m.end):
            return False
        farthest = 0.0
        for i in range(len(m.after)):
            farthest = max(farthest, h * abs(m.after[i]), abs(m.displacement[i]))
        if farthest <= SLOW:
            return True
        if farthest > FARTHEST:
            return False
        return excess(self) <= 0.0

    def arrive(self) -> None:
        copy(self.arrays.ahead, self.q)
        copy(self.arrays.end, self.v)
        keep_impulses(self.impulses)


def drives_pass(stages: Any) -> bool:
    """Whether the impulses take drives past their limits or back; `free` is then the velocity with drives as held now."""
    if not stages.numbers.driven or not stages.given[0]:
        return False
    m, calls = stages.arrays, stages.calls
    write_pushed_acceleration(stages, stages.impulses.wrench, stages.impulses.joint)
    write_row_velocity(stages, m.pushed)
    if not judge_drives(stages.drives, stages.efforts, m.S, m.row_velocity, stages.driving, False):
        return False
    if stages.given[1]:
        copy_rows(stages.external, stages.forces)
    be_at(stages, stages.q, stages.v)
    accelerate_held(stages)
    copy(m.accelerated, m.acceleration)
    copy(m.accelerated, m.unpushed)
    call_machine(calls.free_velocity)
    copy(m.free, m.after)
    if len(stages.bodies) > 0:
        call_machine(calls.velocity)
    find_near(stages)
    return True


def find_near(stages: Any) -> None:
    """Whether joints with limits or dry friction count at `free`."""
    k = stages.kinematics
    write_row_velocity(stages, stages.arrays.free)
    write_row_speeds(stages.rows, stages.arrays.row_velocity, k.speed)
    stages.count[1] = any_active(stages.rows, k.gap, k.speed, stages.settings)


def copy_rows(source: Any, target: Any) -> None:
    for i in range(len(target)):
        copy(source[i], target[i])


def clear_impulses(impulses: Any) -> None:
    clear_rows(impulses.wrench)
    clear_rows(impulses.next_force)
    for i in range(len(impulses.joint)):
        impulses.joint[i] = 0.0
    for i in range(len(impulses.next_row)):
        impulses.next_row[i] = 0.0


def all_finite(x: Any) -> bool:
    """One by one: the compiler may add numbers in any order, and knows that x - x is zero."""
    finite = True
    for y in x:
        finite &= abs(y) < np.inf
    return finite


def first_contacts(contacts: Any, k: int) -> Any:
    """Those that there are."""
    c = contacts
    return ContactPoints(c.candidate[:k], c.a[:k], c.b[:k], c.point[:k], c.normal[:k], c.gap[:k])


def delassus_of(stages: Any, contacts: Any) -> Any:
    """G of the bodies that may touch, and of joint rows where they count; of those that touch where that is cheaper."""
    calls, near = stages.calls, stages.count[1] > 0
    if near and calls.delassus_with_rows.address != 0:
        call_machine(calls.delassus_with_rows)
        return BodyDelassus(stages.with_rows.G, stages.with_rows.begin)
    if not near and calls.body_delassus.address != 0:
        call_machine(calls.body_delassus)
        return BodyDelassus(stages.of_bodies.G, stages.of_bodies.begin)
    if calls.jacobian.address != 0:
        call_machine(calls.jacobian)
    call_machine(calls.inverse_matrix)
    delassus = BodyDelassus(stages.with_rows.G, stages.begin)
    own, S = stages.factors, stages.arrays.S
    if near and stages.numbers.joined:
        for k in range(len(stages.dofs)):
            copy(S[stages.dofs[k]], own.E[k])
    factors = own if near else stages.factors_of_bodies
    write_delassus_by_inverse(stages.width, contacts, factors, delassus, stages.inverse_work)
    return delassus


def write_unpushed_acceleration(stages: Any) -> None:
    """That of the beginning of the step; with the armature by which impulses are met, which stages of "rk4" have not."""
    m = stages.arrays
    copy(m.acceleration, m.unpushed)
    if stages.numbers.integrator != RK4 or len(stages.middle_armature) == 0:
        return
    for body in range(len(stages.forces)):
        for j in range(6):
            stages.forces[body, j] = stages.external[body, j] if stages.given[1] else 0.0
    copy(m.load, m.pushed_load)
    call_machine(stages.calls.dynamics_pushed)
    copy(m.pushed, m.unpushed)


def write_pushed_acceleration(stages: Any, wrench: Any, impulse: Any) -> None:
    """The acceleration with impulses on bodies and at joints spread over the step."""
    m, h, forces, dofs = stages.arrays, stages.numbers.step, stages.forces, stages.dofs
    external = stages.given[1]
    for k in range(len(stages.bodies)):
        body = stages.bodies[k]
        for j in range(6):
            forces[body, j] = wrench[k, j] / h + (stages.external[body, j] if external else 0.0)
    copy(m.load, m.pushed_load)
    if stages.numbers.joined:
        for k in range(len(dofs)):
            for i in range(len(m.pushed_load)):
                m.pushed_load[i] += m.S[dofs[k], i] * impulse[k] / h
    else:
        for k in range(len(dofs)):
            m.pushed_load[dofs[k]] += impulse[k] / h
    call_machine(stages.calls.dynamics_pushed)


def write_struck(stages: Any) -> None:
    """What impacts at the beginning of the step change of the velocity."""
    m, h, impulses = stages.arrays, stages.numbers.step, stages.impulses
    impact = False
    for i in range(len(m.struck)):
        m.struck[i] = 0.0
    for j in range(len(impulses.impact)):
        for k in range(6):
            impact |= impulses.impact[j, k] != 0.0
    for x in impulses.joint_impact:
        impact |= x != 0.0
    if impact:
        write_pushed_acceleration(stages, impulses.impact, impulses.joint_impact)
        for i in range(len(m.struck)):
            m.struck[i] = h * (m.pushed[i] - m.unpushed[i])


def write_arrival(stages: Any, parted: bool) -> None:
    """Where the velocity leads, with the displacement or without: to `x`, with loops closed, and the velocity there.

    By "rk4" and "midpoint" what is pushed moves at the mean of the velocities after impacts and at the end, which is zero for
    what is at rest.
    """
    m, calls, numbers = stages.arrays, stages.calls, stages.numbers
    if numbers.integrator == SEMI_IMPLICIT:
        call_machine(calls.advance if parted else calls.advance_straight)
        close(stages)
        return
    untouched = True
    for i in range(len(m.u)):
        moved = m.displacement[i] if parted else 0.0
        untouched &= m.after[i] == m.free[i] and moved == 0.0
        m.u[i] = 0.5 * numbers.step * (stages.v[i] + m.struck[i] + m.after[i]) + moved
    if untouched:
        copy(m.smooth, m.x)
        return
    call_machine(calls.integrate)
    close(stages)


def excess(stages: Any) -> float:
    """`excess_energy` of the step; bodies stay where they are where to part them would speed them up."""
    m = stages.arrays
    kinetic_before, potential_before = energies(stages, stages.q, stages.v)
    work = greatest_work_from(stages)
    kinetic, potential = energies(stages, m.ahead, m.end)
    if is_parted(stages):
        write_arrival(stages, False)
        copy(m.x, m.straight)
        if stages.numbers.integrator != SEMI_IMPLICIT:
            copy(m.end, m.straight_end)
        straight, potential = energies(stages, m.straight, m.straight_end)
        if not excess_of(stages, kinetic_before, kinetic, potential_before, potential, work) <= 0.0:
            copy(m.straight, m.ahead)
            copy(m.straight_end, m.end)
            kinetic = straight
    return excess_of(stages, kinetic_before, kinetic, potential_before, potential, work)


def excess_of(
    stages: Any, kinetic: float, kinetic_after: float, potential: float, potential_after: float, work: float
) -> float:
    energies = (kinetic, kinetic_after), (potential, potential_after)
    return excess_energy(energies[0], energies[1], work, stages.numbers.least_energy)  # type: ignore[no-any-return]


def is_parted(stages: Any) -> bool:
    parted = False
    for x in stages.arrays.displacement:
        parted |= x != 0.0
    return parted


def greatest_work_from(stages: Any) -> float:
    """The most that forces of users and drives may have done in the step [J]."""
    m, h = stages.arrays, stages.numbers.step
    be_at(stages, m.ahead, m.end)
    copy(m.given, m.acting)  # those at the beginning
    if stages.numbers.integrator != SEMI_IMPLICIT or stages.numbers.driven:
        write_given(stages)
    if stages.numbers.driven:
        copy(m.given, m.acting)  # forces at the beginning would be far greater than those that act
    work = 0.0
    for i in range(len(m.given)):
        at_ends = greatest_work(m.given[i], stages.v[i], m.end[i], h)
        work += max(at_ends, mean_work((m.acting[i], m.given[i]), stages.v[i], m.end[i], h))
    if not stages.given[1]:
        return work
    be_at(stages, stages.q, stages.v)  # what forces on bodies come to at joints
    copy(m.acceleration, m.accelerated)
    copy(m.load, m.k2)
    call_machine(stages.calls.inverse_dynamics)
    for i in range(len(m.given)):
        work += greatest_work(m.load[i] - m.k2[i], stages.v[i], m.end[i], h)
    return work
