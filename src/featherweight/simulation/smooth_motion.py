"""One step of smooth motion on the configuration manifold: x' = v, v' = a(q, v).

    semi-implicit Euler    v+ = v + h a(q, v),  q+ = q exp(h v+)                                               order 1
    Runge-Kutta 4          in coordinates u of q exp(u), u' = v + [u, v]/2 + [u, [u, v]]/12 (Munthe-Kaas 1998)   order 4
    implicit midpoint      v+ = v + h a(q exp(h v'/2), v') + g v',  v' = (v + v+)/2,  q+ = q exp(h v')            order 2

The midpoint rule's g, of order h³, makes the energy at the end equal to the energy at the start plus the work of the forces,
h v' . tau(q', v'), exactly: a discrete gradient (Gonzalez 1996) along the motion. The rule stays symmetric in time.

A simplified Newton iteration solves the midpoint rule's equations for v+. Damping d and stiffness k of joints and drives are
linear in v+ and part of its matrix: with the armature L = h/2 d + h²/4 k added to M,

    v+ <- v + h (M + L)⁻¹ (tau(q', v') - bias(q', v') + L ((v+ - v) - g v') / h) + g v'

has the same solution, and contracts for joints of any stiffness. Broyden's method with stored steps (Kelley 1995, section 7.3)
approximates the rest: drives at limits, velocity products, the curvature of potentials.

Functions of the robot are called at a configuration x and velocity w within the step (`StagePoint`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from typing import Any

import numpy as np

from ..array_types import Array, Matrix, Vector
from ..contact.impulses import greatest_of
from ..engine.loops.kernels import call_machine
from ..model.tree import FLOATING, SPHERICAL
from ..robot.tendons.lengths import write_lengths
from .forces.at_joints import ForcesAtJoints
from .forces.controllers import DrivesNow
from .forces.damped_lengths import subtract_response, write_directions
from .forces.drag import add_drag
from .forces.drive_inputs import next_activation, reanchor, shift_delayed, write_drive_inputs
from .forces.implicit_drives import MOST_ROUNDS, OF_LENGTH, ROUNDS_OF_ALL, begin_drives, judge_drives, write_driven
from .forces.laws import (
    BY_VELOCITY,
    GEAR,
    HIGH,
    LOW,
    Drives,
    Numbers,
    add_nonlinear_forces,
    coordinate_of_row,
    drive_armature,
    extent_of_row,
    force_of_spring,
    map_forces,
    nonlinear_spring_force,
    spread,
    spring_energy,
    stretch_of_row,
    write_row_forces,
)
from .stage_records import KEPT_STEPS, KINETIC, POTENTIAL, WITH_CONTROL, WITH_FORCES, RobotStages
from .step_status import DIVERGED, OPEN_LOOPS, TAKEN, UNSETTLED

SEMI_IMPLICIT, STAGED, RK4, MIDPOINT = range(4)  # the second is "rk4" with contacts in each stage
INTEGRATORS = {"semi-implicit": SEMI_IMPLICIT, "rk4": RK4, "midpoint": MIDPOINT}
MOST_CLOSINGS = 30  # greatest number of Newton steps that close loops; mostly two suffice
RUNGE_KUTTA_ROUNDS = 4
MIDPOINT_ITERATIONS = 100
ENERGY_ROUNDS = 30
ROUNDING = 4e-16  # relative rounding error of velocities and energies
SHRUNK = 0.9  # ratio of successive changes below which an iteration makes progress
STAGNANT = 1e-10, 3  # (change, iterations without progress) from which a change counts as a rounding error
AT_BEST = 1e-6, 10  # the same for amplified rounding errors: by stiffness over a short step, or an ill-conditioned mass matrix
LEAST_SLOPE = 1e-3  # slope of the equations along a step below which Broyden's method ignores the step
TURNING = 1e-8  # relative kinetic energy below which the mean velocity counts as zero
MOST_GAIN = 0.1  # bound of g: g is about (h w)² for a motion of frequency w


def middle_armature(forces: ForcesAtJoints, h: float, passive: bool, given: Mapping[str, Array] | None = None) -> Array:
    """Return L (..., n), the armature of all joints' rows that represents damping and stiffness in the midpoint rule.

    A joint has one armature for all its rows. Joints moved by loops have none: the ratio of their velocities to independent
    ones changes, so that an armature would cause forces of its own.

    `given` has damping and stiffness (..., n) and drives (..., 9, k) that replace the robot's.
    """
    given = given or {}
    damping, stiffness = (given.get(name, getattr(forces.springs, name)) for name in ("damping", "stiffness"))
    drives = given.get("drives", forces.drives.values)
    half = 0.5 * h
    shape = np.broadcast_shapes(damping.shape, stiffness.shape, (*drives.shape[:-2], damping.shape[-1]))
    L = np.zeros(shape)
    if passive:
        L += half * damping + half * half * stiffness
    of_drives = drive_armature(np.moveaxis(drives, -2, 0), half)
    for k, row in enumerate(forces.drives.row):
        L[..., row] += of_drives[..., k]
    L[..., forces.joint_rows :] = 0.0
    for whole, j in zip(forces.robot.model.joints, forces.robot.joints, strict=True):
        L[..., whole.v_slice] = L[..., whole.v_slice.start, None] if j.independent else 0.0
    return L


# vectors


def copy(source: Vector, target: Vector) -> None:
    for i in range(len(target)):
        target[i] = source[i]


def copy_rows(source: Matrix, target: Matrix) -> None:
    for i in range(len(target)):
        copy(source[i], target[i])


def clear(numbers: Vector) -> None:
    for i in range(len(numbers)):
        numbers[i] = 0.0


def clear_rows(rows: Matrix) -> None:
    for i in range(len(rows)):
        clear(rows[i])


def ordered_product(a: Vector, b: Vector) -> float:
    """Return the product of two vectors, summed in order."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


# forces at x and w


def be_at(s: RobotStages, q: Vector, v: Vector) -> None:
    copy(q, s.point.x)
    copy(v, s.point.w)


def write_row_velocity(s: RobotStages, v: Vector) -> None:
    """Write the velocities of all joints for independent ones, with the current S."""
    p = s.point
    alike = s.joints.driving.alike
    for r in range(alike):
        p.row_velocity[r] = v[r]
    for r in range(alike, len(p.row_velocity)):
        p.row_velocity[r] = ordered_product(p.S[r], v)


def write_mapped_force(s: RobotStages, force: Vector) -> None:
    """Map forces of all joints to independent ones."""
    map_forces(s.point.S, s.joints.driving.alike, s.point.row_force, force)


def write_rows(s: RobotStages) -> None:
    """Write S and lengths at x."""
    if not s.numbers.joined:
        return
    if s.calls.spanning.address != 0:
        call_machine(s.calls.spanning)
    if len(s.lengths.at) > 0:
        if len(s.lengths.placement) > 0:
            call_machine(s.calls.length_placement)
            call_machine(s.calls.length_jacobian)
        write_lengths(s.lengths, s.point.coordinates, s.point.S)


def write_inputs(s: RobotStages) -> None:
    """Write the inputs of drives from the controls, and rates of activations, with the current velocities of rows."""
    p = s.point
    copy(s.state.control, p.control)
    now = DrivesNow(p.control, p.act, p.coordinates, p.row_velocity, p.inputs, p.act_rate, p.slopes)
    write_drive_inputs(s.joints.laws, now)


def write_given(s: RobotStages) -> None:
    """Write the forces of the user, and of drives at x and w, within the joints' efforts; S is that at x."""
    p, d, within = s.point, s.joints.drives, s.joints.within
    write_tau(s)
    write_bounds(s)
    if not s.state.given[WITH_CONTROL]:
        for i in range(len(s.joints.compensating)):
            r = s.joints.driving.rows.row[i]
            p.given[i] += min(max(0.0, within[0, r]), within[1, r])
        return
    write_row_velocity(s, p.w)
    write_inputs(s)
    clear(p.row_force)
    write_row_forces(d, p.inputs, p.coordinates, p.row_velocity, p.law, p.row_force)
    spread(s.joints.driving.rows, p.S, p.row_force)
    for r in range(within.shape[1]):
        if s.numbers.drives_damp:
            s.joints.driving.at_effort[r] = 0.0 if within[0, r] < p.row_force[r] < within[1, r] else 1.0
        p.row_force[r] = min(max(p.row_force[r], within[0, r]), within[1, r])
    write_mapped_force(s, p.mapped_force)
    for i in range(len(p.given)):
        p.given[i] += p.mapped_force[i]


def write_tau(s: RobotStages) -> None:
    """Write the forces of the user, within the joints' efforts."""
    efforts = s.joints.efforts
    for i in range(len(s.point.given)):
        s.point.given[i] = min(max(s.state.tau[i], efforts[0, i]), efforts[1, i])


def write_bounds(s: RobotStages) -> None:
    """Write the bounds at x of the forces of drives without their share of gravity compensation.

    `add_springs` adds the compensation g of drives: clip(f + g) is g + clip(f) between bounds less g.
    """
    j = s.joints
    if len(j.compensating) == 0:
        return
    call_machine(s.calls.compensation)
    for i in range(len(j.compensating)):
        r, share = j.driving.rows.row[i], j.compensating[i] * j.compensation[i]
        j.within[0, r], j.within[1, r] = j.efforts[0, i] - share, j.efforts[1, i] - share


def add_springs(s: RobotStages, ahead: float) -> None:
    """Add gravity compensation, damping and springs at x and w to the load; springs act where w leads in `ahead` seconds."""
    p, springs, compensation = s.point, s.joints.springs, s.joints.compensation
    if len(compensation) > 0:
        call_machine(s.calls.compensation)
        for i in range(len(compensation)):
            p.load[i] += compensation[i]
    if len(springs.damping) == 0:
        return
    write_row_velocity(s, p.w)
    for r in range(len(springs.damping)):
        p.row_force[r] = force_of_spring(springs, r, p.coordinates[springs.at[r]], p.row_velocity[r], ahead)
    for k in range(len(springs.turning)):
        r = springs.turning[k]
        p.row_force[r] = force_of_spring(springs, r, coordinate_of_row(springs, p.x, r), p.row_velocity[r], ahead)
    late = s.numbers.step if ahead > 0.0 or s.numbers.settles else 0.0
    add_nonlinear_forces(springs, p.coordinates, p.row_velocity, (ahead, late), p.row_force, s.inertias.armature)
    write_mapped_force(s, p.mapped_force)
    for i in range(len(p.load)):
        p.load[i] += p.mapped_force[i]


def write_load(s: RobotStages, ahead: float) -> None:
    """Write all forces at joints at x and w; springs act where w leads in `ahead` seconds."""
    write_rows(s)
    write_load_at_rows(s, ahead)


def write_load_at_rows(s: RobotStages, ahead: float) -> None:
    """Write all forces at joints at x and w, with the current S and lengths."""
    write_given(s)
    copy(s.point.given, s.point.load)
    add_springs(s, ahead)


def call_dynamics(s: RobotStages) -> None:
    """Write the acceleration at x and w under the load."""
    fluid = len(s.drag.body) > 0
    if fluid:
        write_body_forces(s)
    if fluid or s.state.given[WITH_FORCES]:
        call_machine(s.calls.dynamics_external)
    else:
        call_machine(s.calls.dynamics)


def write_body_forces(s: RobotStages) -> None:
    """Write the forces of the user, and of a fluid at x and w, on bodies."""
    if s.state.given[WITH_FORCES]:
        copy_rows(s.state.external, s.touching.forces)
    else:
        clear_rows(s.touching.forces)
    if len(s.drag.body) > 0:
        call_machine(s.calls.drag_velocity)
        if len(s.drag.placement) > 0:
            call_machine(s.calls.drag_placement)
        add_drag(s.drag, s.touching.forces)


def accelerate(s: RobotStages, ahead: float) -> None:
    """Write the acceleration at x and w; springs act where w leads in `ahead` seconds."""
    write_load(s, ahead)
    call_dynamics(s)


def write_late_damping(s: RobotStages) -> None:
    """Write what represents dampers at the end of a step: armature of drives on joints, and damping along lengths."""
    p, springs, damped = s.point, s.joints.springs, s.joints.damped
    for k in range(len(damped.row)):
        r, d = damped.row[k], 0.0
        if len(springs.damping) > 0:
            d += springs.damping[r]
        for m in range(len(springs.nonlinear)):
            if springs.nonlinear[m] == r:
                speed = abs(p.row_velocity[r])
                d += speed * (2.0 * springs.poly[2, m] + 3.0 * speed * springs.poly[3, m])
        damped.damping[k] = damped.sign[k] * d
    if len(damped.row) > 0:
        write_directions(damped, p.S)
    if s.state.given[WITH_CONTROL] and (s.numbers.drives_damp or len(damped.row) > 0):
        add_damping_of_drives(s)


def add_damping_of_drives(s: RobotStages) -> None:
    """Add the damping of drives within their limits, and within those of their tendons and joints."""
    p, j, damped = s.point, s.joints, s.joints.damped
    d, work = j.drives, j.driving
    for k in range(len(d.row)):
        if not (d.values[LOW, k] < p.law[k] < d.values[HIGH, k]) or is_bounded(d, p.law, k):
            continue
        damping = -d.values[GEAR, k] * (d.values[GEAR, k] * d.values[BY_VELOCITY, k] + p.slopes[k])
        joint, r = work.joint[k], d.row[k]
        if joint == OF_LENGTH:
            for m in range(len(damped.row)):
                if damped.row[m] == r:
                    damped.damping[m] += damped.sign[m] * damping
        elif s.numbers.drives_damp and work.at_effort[r] == 0.0:
            s.inertias.armature[joint] += s.numbers.step * damping


def is_bounded(d: Drives, law: Vector, k: int) -> bool:
    """Return whether the drive's tendon bounds the sum of its drives' forces (see `bound_laws`)."""
    b = d.bound[k]
    if b < 0:
        return False
    total = 0.0
    for i in range(len(law)):
        total += law[i] if d.bound[i] == b else 0.0
    least, most = d.bounds[b, 0], d.bounds[b, 1]
    slack = ROUNDING * max(abs(least), abs(most))
    return total <= least + slack or total >= most - slack


def damp_lengths(s: RobotStages) -> None:
    """Let dampers along lengths act on the acceleration a with impulses: a' solves (A + sum of h d Pᵀ P) a' = A a.

    The responses to forces along P are differences of accelerations. Each term changes those of the next ones (Sherman and
    Morrison 1950).
    """
    step, x = s.step, s.joints.damped
    if len(x.row) == 0:
        return
    copy(step.pushed_load, x.load)
    copy(step.pushed, x.acceleration)
    for k in range(len(x.row)):
        P, response, d = x.direction[k], x.response[k], s.numbers.step * x.damping[k]
        x.share[k] = 0.0
        if d == 0.0:
            continue
        for i in range(len(P)):
            step.pushed_load[i] = x.load[i] + P[i]
        call_machine(s.calls.dynamics_pushed)
        for i in range(len(P)):
            response[i] = step.pushed[i] - x.acceleration[i]
        for j in range(k):
            subtract_response(x, j, response)
        x.share[k] = d / (1.0 + d * ordered_product(P, response))
    copy(x.load, step.pushed_load)
    copy(x.acceleration, step.pushed)
    for k in range(len(x.row)):
        subtract_response(x, k, step.pushed)


def accelerate_driven(s: RobotStages) -> None:
    """Write the acceleration at x and w of a semi-implicit step with drives that have stiffness or damping."""
    p, j = s.point, s.joints
    write_rows(s)
    write_row_velocity(s, p.w)
    write_inputs(s)
    write_bounds(s)
    begin_drives(j.drives, s.numbers.step, p.inputs, p.coordinates, p.row_velocity, j.driving)
    for k in range(MOST_ROUNDS):
        accelerate_with_known_drives(s)
        write_row_velocity(s, p.acceleration)
        if not judge_drives(j.drives, j.within, p.S, p.row_velocity, j.driving, k >= ROUNDS_OF_ALL):
            return


def accelerate_with_known_drives(s: RobotStages) -> None:
    """Write the acceleration at x and w with the drives in their current state."""
    p, work = s.point, s.joints.driving
    write_driven(s.joints.drives, s.joints.within, p.S, work, s.inertias.base_armature, s.inertias.armature)
    write_tau(s)
    for i in range(len(p.given)):
        p.given[i] += work.total[i]
    copy(p.given, p.load)
    add_springs(s, s.numbers.step)
    call_dynamics(s)


def accelerate_at_start(s: RobotStages) -> None:
    """Write the acceleration at x and w as at the start of a semi-implicit step, and the armature of dampers at its end."""
    if s.numbers.driven and s.state.given[WITH_CONTROL]:
        accelerate_driven(s)
    else:
        copy(s.inertias.base_armature, s.inertias.armature)
        accelerate(s, s.numbers.ahead)
    if s.numbers.settles:
        write_late_damping(s)


# energies


def energies(s: RobotStages, q: Vector, v: Vector) -> tuple[float, float]:
    """Return the kinetic energy, and that of gravity and springs [J]."""
    be_at(s, q, v)
    call_machine(s.calls.kinetic)
    call_machine(s.calls.potential)
    energy = s.step.energy
    if len(s.lengths.at) > 0:
        write_rows(s)
    return energy[KINETIC], energy[POTENTIAL] + spring_energy(s.joints.springs, s.point.coordinates)


# configurations


def close(s: RobotStages) -> int:
    """Close loops at x, and return a status."""
    numbers, x, loops = s.numbers, s.point.x, s.loops
    if not numbers.looped:
        return TAKEN
    for k in range(MOST_CLOSINGS):
        call_machine(s.calls.closing)
        widest = greatest_of(loops.residual)
        if k == 0:
            loops.opened[0] = widest
        if widest < numbers.closed_at:
            for y in loops.margins:
                if y < 0.0:
                    return OPEN_LOOPS
            return TAKEN
        copy(loops.closed, x)
    return OPEN_LOOPS


def go(s: RobotStages) -> int:
    """Move x from q along `increment`."""
    call_machine(s.calls.integrate)
    return close(s)


# integrators


def integrate_smoothly(s: RobotStages) -> int:
    """Write the velocity after the step, and load and acceleration at its start, to which impulses are added.

    "rk4" and "midpoint" also write `smooth`, the configuration that the velocity leads to.
    """
    p, step, kind = s.point, s.step, s.numbers.integrator
    be_at(s, s.state.q, s.state.v)
    copy(s.state.act, p.act)
    clear(p.act_rate)
    if kind <= STAGED:
        accelerate_at_start(s)
        copy(p.load, step.load)
        copy(p.acceleration, step.acceleration)
        write_next_activations(s)
        call_machine(s.calls.free_velocity)
        return TAKEN
    accelerate(s, 0.0)
    copy(p.load, step.load)
    copy(p.acceleration, step.acceleration)
    status = runge_kutta(s) if kind == RK4 else midpoint(s)
    if status != TAKEN:
        return status
    write_next_activations(s)
    be_at(s, s.state.q, s.state.v)  # impulses act at this state
    copy(s.state.act, p.act)
    write_load(s, 0.0)
    return TAKEN


def write_next_activations(s: RobotStages) -> None:
    """Write the activations after the step, with the current rates."""
    p = s.point
    for j in range(len(s.joints.laws.activations.drive)):
        s.step.act[j] = next_activation(s.joints.laws.activations, j, s.state.act[j], p.act_rate[j])
    shift_delayed(s.joints.laws, s.state.act, s.state.control, s.step.act)
    reanchor(s.joints.laws, s.step.act, p.coordinates)


def runge_kutta(s: RobotStages) -> int:
    """Take four stages from the acceleration at the start."""
    p, r, v = s.point, s.rounds, s.state.v
    clear(p.increment)
    clear(r.rates)
    clear(r.accelerations)
    clear(r.act_rates)
    for k in range(RUNGE_KUTTA_ROUNDS):
        if k > 0:
            accelerate(s, 0.0)
        write_curved_rate(s.joints.curved, p.increment, p.w, r.rate, r.once, r.twice)
        results = p.w, p.increment, r.rates, r.accelerations
        numbers = runge_kutta_numbers(s.numbers.step, k)
        runge_kutta_round(v, p.acceleration, r.rate, r.rates, r.accelerations, numbers, results)
        for j in range(len(p.act)):
            r.act_rates[j] += numbers[2] * p.act_rate[j]
            p.act[j] = s.state.act[j] + numbers[0] * p.act_rate[j] + numbers[1] * r.act_rates[j]
        status = go(s)
        if status != TAKEN:
            return status
    for j in range(len(p.act)):
        p.act_rate[j] = r.act_rates[j] / 6.0
    copy(p.x, s.step.smooth)
    copy(p.w, s.step.free)
    return TAKEN


def runge_kutta_numbers(h: float, k: int) -> tuple[float, float, float]:
    """Return (α, β, γ) of a stage, for `runge_kutta_round`."""
    if k == 3:
        return 0.0, h / 6.0, 1.0
    return (h if k == 2 else 0.5 * h), 0.0, (1.0 if k == 0 else 2.0)


def runge_kutta_round(w: Numbers, a: Numbers, k: Numbers, K: Numbers, A: Numbers, numbers: Numbers, results: Any) -> None:
    """Write velocity, increment and sums after a stage, from the velocity w at the step's start.

    A stage with numbers (α, β, γ) adds γ k and γ a to the sums K and A, and continues at α k + β K from the step's start: by
    half a step, half a step and a step along the rate it has found, and finally by a sixth of the step along the sum.
    """
    velocity, increment, rates, accelerations = results
    along, of_sum, weight = numbers[0], numbers[1], numbers[2]
    for i in range(len(w)):
        rates[i] = K[i] + weight * k[i]
        accelerations[i] = A[i] + weight * a[i]
        increment[i] = along * k[i] + of_sum * rates[i]
        velocity[i] = w[i] + (along * a[i] + of_sum * accelerations[i])


def write_curved_rate(joints: Any, u: Numbers, w: Numbers, rate: Numbers, once: Numbers, twice: Numbers) -> None:
    """Write u' = w + [u, w] / 2 + [u, [u, w]] / 12; `once` and `twice` are workspace for the brackets."""
    write_brackets(joints, u, w, once)
    write_brackets(joints, u, once, twice)
    for i in range(len(w)):
        rate[i] = w[i] + 0.5 * once[i] + twice[i] / 12.0


def write_curved_rates(joints: Any, u: Numbers, w: Numbers, rate: Numbers) -> None:
    """Write the rates of coordinates u, with its own workspace."""
    write_curved_rate(joints, u, w, rate, [0.0] * len(w), [0.0] * len(w))


def write_brackets(joints: Any, a: Numbers, b: Numbers, result: Numbers) -> None:
    """Write [a, b] joint by joint: that of SE(3), SO(3) and SE(2); zero for joints with one degree of freedom."""
    for i in range(len(result)):
        result[i] = 0.0
    for k in range(len(joints)):
        kind, s = joints[k][0], joints[k][1]
        if kind == SPHERICAL:
            add_cross(a, s, b, s, 1.0, result, s)
        elif kind == FLOATING:
            add_cross(a, s + 3, b, s, 1.0, result, s)
            add_cross(b, s + 3, a, s, -1.0, result, s)
            add_cross(a, s + 3, b, s + 3, 1.0, result, s + 3)
        else:
            result[s] = b[s + 2] * a[s + 1] - a[s + 2] * b[s + 1]
            result[s + 1] = a[s + 2] * b[s] - b[s + 2] * a[s]


def add_cross(a: Numbers, i: int, b: Numbers, j: int, sign: float, result: Numbers, k: int) -> None:
    """Add sign times the vector product of a[i:] and b[j:] to result[k:]."""
    result[k] = result[k] + sign * (a[i + 1] * b[j + 2] - a[i + 2] * b[j + 1])
    result[k + 1] = result[k + 1] + sign * (a[i + 2] * b[j] - a[i] * b[j + 2])
    result[k + 2] = result[k + 2] + sign * (a[i] * b[j + 1] - a[i + 1] * b[j])


def midpoint(s: RobotStages) -> int:
    p, m, step, h, v = s.point, s.midpoint, s.step, s.numbers.step, s.state.v
    n = len(v)
    kinetic_before, potential_before = energies(s, s.state.q, v)
    before = kinetic_before + potential_before
    after = step.free
    for i in range(n):
        after[i] = v[i] + h * step.acceleration[i]
    for j in range(len(p.act)):
        p.act[j] = s.state.act[j] + 0.5 * h * p.act_rate[j]
    gain, least, waited = 0.0, inf, 0
    step.gain[0] = 0.0
    for _ in range(ENERGY_ROUNDS):
        status = settle(s, gain)
        if status != TAKEN:
            return status
        power = power_at_middle(s)
        for i in range(n):
            p.increment[i] = h * m.half[i]
        status = go(s)
        if status != TAKEN:
            return status
        copy(p.x, step.smooth)
        kinetic, potential = energies(s, step.smooth, after)
        lacking = before + h * power - (kinetic + potential)
        worst = abs(lacking) / (kinetic + kinetic_before + (abs(potential) + abs(potential_before)) + 1e-300)
        waited = 0 if worst < SHRUNK * least else waited + 1
        least = min(least, worst)
        if has_settled(worst, waited) or waited >= STAGNANT[1]:
            return TAKEN
        copy(step.smooth, p.x)
        copy(m.half, p.w)
        call_machine(s.calls.kinetic)
        twice = 2.0 * step.energy[KINETIC]
        if is_a_way(twice, kinetic + kinetic_before, gain * twice + lacking):
            gain += lacking / twice
            step.gain[0] = gain
    return TAKEN


def has_settled(change: float, waited: int) -> bool:
    """Return whether an iteration has reached rounding errors, after `waited` iterations without a smaller change."""
    if change <= ROUNDING:
        return True
    return (change < STAGNANT[0] and waited >= STAGNANT[1]) or (change < AT_BEST[0] and waited >= AT_BEST[1])


def is_a_way(twice: float, kinetic: float, lacking: float) -> bool:
    """Return whether the missing energy can be added along the mean velocity; `twice` is twice the energy of that velocity.

    It cannot if a robot reverses or is at rest; the missing energy is then a rounding error.
    """
    return twice > TURNING * kinetic and abs(lacking) < MOST_GAIN * twice


def settle(s: RobotStages, gain: float) -> int:
    """Solve for the velocity `free` at the end for a given g, with `half` and the configuration `middle`."""
    p, m, h, v, after = s.point, s.midpoint, s.numbers.step, s.state.v, s.step.free
    n = len(v)
    scale = greatest_of(v) + greatest_of(after) + h * max(1.0, s.numbers.gravity)
    least, waited = inf, 0
    for k in range(MIDPOINT_ITERATIONS):
        for i in range(n):
            m.half[i] = 0.5 * (v[i] + after[i])
            p.increment[i] = 0.5 * h * m.half[i]
        status = go(s)
        if status != TAKEN:
            return status
        copy(m.half, p.w)
        accelerate_at_middle(s, gain)
        copy(p.coordinates, m.middle)
        change = 0.0
        for i in range(n):
            m.left[i] = v[i] + h * p.acceleration[i] + gain * m.half[i] - after[i]
            change = max(change, abs(m.left[i])) if m.left[i] == m.left[i] else nan
        change /= scale
        if not change < inf:
            return DIVERGED
        waited = 0 if change < SHRUNK * least else waited + 1
        least = min(least, change)
        ended = has_settled(change, waited)
        if not ended:
            learns = not (change < STAGNANT[0] or waited >= STAGNANT[1])
            write_quasi_newton_step(m.left, k % KEPT_STEPS, learns, m.steps, m.weights)
        for i in range(n):
            after[i] += m.left[i]
        if ended:
            for i in range(n):
                m.half[i] = 0.5 * (v[i] + after[i])
            return TAKEN
    return UNSETTLED


def accelerate_at_middle(s: RobotStages, gain: float) -> None:
    """Write the acceleration at x and w under the forces `acting` and `lag`; `lag` represents the armature L."""
    p, m, h, v = s.point, s.midpoint, s.numbers.step, s.state.v
    write_load(s, 0.0)
    copy(p.load, m.acting)
    if len(s.joints.middle_armature) > 0:
        for i in range(len(v)):
            p.mapped_force[i] = (s.step.free[i] - v[i] - gain * m.half[i]) / h
        write_row_velocity(s, p.mapped_force)
        for r in range(len(p.row_force)):
            p.row_force[r] = s.joints.middle_armature[r] * p.row_velocity[r]
        write_mapped_force(s, m.lag)
        for i in range(len(v)):
            p.load[i] += m.lag[i]
    call_dynamics(s)


def power_at_middle(s: RobotStages) -> float:
    """Return the power of forces other than gravity, its compensation and springs, after `accelerate_at_middle`."""
    p, m, springs = s.point, s.midpoint, s.joints.springs
    if s.state.given[WITH_FORCES]:
        be_at(s, m.middle, m.half)
        call_machine(s.calls.inverse_dynamics)
        for i in range(len(p.load)):
            m.acting[i] = p.load[i] - m.lag[i]
    write_row_velocity(s, m.half)
    power = ordered_product(m.acting, m.half)
    for i in range(len(s.joints.compensation)):
        power -= s.joints.compensation[i] * m.half[i]
    for r in range(len(springs.damping)):
        power += springs.stiffness[r] * stretch_of_row(springs, r, coordinate_of_row(springs, m.middle, r)) * p.row_velocity[r]
    for k in range(len(springs.nonlinear)):
        r, poly = springs.nonlinear[k], (springs.poly[0, k], springs.poly[1, k])
        stretched = stretch_of_row(springs, r, coordinate_of_row(springs, m.middle, r))
        power -= nonlinear_spring_force(poly, stretched, extent_of_row(springs, m.middle, r)) * p.row_velocity[r]
    return power


def write_quasi_newton_step(z: Vector, k: int, learns: bool, steps: Matrix, weights: Vector) -> None:
    """Write step k of Broyden's method in place of the residual z; `learns` says whether to use the last step."""
    for j in range(k - 1):
        part = ordered_product(steps[j], z) * weights[j]
        for i in range(len(z)):
            z[i] += steps[j + 1, i] * part
    if k > 0:
        slope = 1.0 - ordered_product(steps[k - 1], z) * weights[k - 1]
        if learns and slope > LEAST_SLOPE:
            for i in range(len(z)):
                z[i] /= slope
        else:
            weights[k - 1] = 0.0
    copy(z, steps[k])
    square = ordered_product(z, z)
    weights[k] = 1.0 / square if square > 0.0 else 0.0
