"""Motion in which nothing touches, by each integrator, compiled: what `integrators` does for many robots by NumPy.

Functions of the robot are called at a configuration x and velocity w within the step (see `robot_stages`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contact.impulses import greatest_of
from ..engine.loops.kernels import call_machine
from ..model.tree import FLOATING, SPHERICAL
from .forces import drive_force, spring_force
from .implicit_drives import MOST_ROUNDS, ROUNDS_OF_ALL, begin_drives, carry, judge_drives, write_driven
from .integrators import (
    ENERGY_ROUNDS,
    KEPT_STEPS,
    LEAST_SLOPE,
    MIDPOINT_ITERATIONS,
    SHRUNK,
    STAGNANT,
    has_settled,
    is_a_way,
)  # fmt: skip

SEMI_IMPLICIT, RK4, MIDPOINT = range(3)
MOST_CLOSINGS = 30  # Newton steps that close loops; two do mostly


def copy(source: Any, target: Any) -> None:
    for i in range(len(target)):
        target[i] = source[i]


def clear_rows(rows: Any) -> None:
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            rows[i, j] = 0.0


def write_row_velocity(stages: Any, v: Any) -> None:
    """The velocities of all joints for independent ones, with the S that is there."""
    m = stages.arrays
    if not stages.numbers.joined:
        copy(v, m.row_velocity)
        return
    for r in range(len(m.row_velocity)):
        total = 0.0
        for i in range(len(v)):
            total += m.S[r, i] * v[i]
        m.row_velocity[r] = total


def write_carried(stages: Any, force: Any) -> None:
    """Write forces of all joints as forces of the independent ones."""
    carry(stages.arrays.S, stages.arrays.row_force, force)


def write_given(stages: Any) -> None:
    """The forces of the user, and of drives at x and w, within the joints' efforts; S is that at x."""
    m, most, d = stages.arrays, stages.efforts, stages.drives
    for i in range(len(m.given)):
        m.given[i] = min(max(stages.tau[i], -most[i]), most[i])
    if not stages.given[0]:
        return
    write_row_velocity(stages, m.w)
    for r in range(len(m.row_force)):
        m.row_force[r] = 0.0
    for k in range(len(d.row)):
        x = d.values
        drive = x[0, k], x[1, k], x[2, k], x[3, k], x[4, k], x[5, k], x[6, k], x[7, k], x[8, k]
        m.row_force[d.row[k]] += drive_force(drive, stages.control[k], m.x[d.at[k]], m.row_velocity[d.row[k]])
    write_carried(stages, m.u)
    for i in range(len(m.given)):
        m.given[i] += min(max(m.u[i], -most[i]), most[i])


def add_springs(stages: Any, ahead: float) -> None:
    """Damping and springs at x and w to the load, the latter where w leads to in `ahead` seconds."""
    m, s = stages.arrays, stages.springs
    if len(s.damping) == 0:
        return
    write_row_velocity(stages, m.w)
    for r in range(len(s.damping)):
        m.row_force[r] = spring_force((s.damping[r], s.stiffness[r], s.rest[r]), m.x[s.at[r]], m.row_velocity[r], ahead)
    write_carried(stages, m.u)
    for i in range(len(m.load)):
        m.load[i] += m.u[i]


def spring_energy(springs: Any, q: Any) -> float:
    energy = 0.0
    for r in range(len(springs.damping)):
        stretched = q[springs.at[r]] - springs.rest[r]
        energy += 0.5 * springs.stiffness[r] * stretched * stretched
    return energy


def accelerate(stages: Any, drives_follow: bool, ahead: float) -> None:
    """The acceleration `accelerated` at x and w."""
    m, calls = stages.arrays, stages.calls
    if stages.numbers.joined:
        call_machine(calls.spanning)
    if drives_follow:
        write_given(stages)
    copy(m.given, m.load)
    add_springs(stages, ahead)
    call_machine(calls.dynamics_external if stages.given[1] else calls.dynamics)


def accelerate_driven(stages: Any) -> None:
    """The acceleration `accelerated` at x and w of a semi-implicit step with drives that have stiffness or damping."""
    m, d, work = stages.arrays, stages.drives, stages.driving
    if stages.numbers.joined:
        call_machine(stages.calls.spanning)
    write_row_velocity(stages, m.w)
    begin_drives(d, stages.numbers.step, stages.control, m.x, m.row_velocity, m.S, work)
    for k in range(MOST_ROUNDS):
        accelerate_held(stages)
        write_row_velocity(stages, m.accelerated)
        if not judge_drives(d, stages.efforts, m.S, m.row_velocity, work, k >= ROUNDS_OF_ALL):
            return


def accelerate_held(stages: Any) -> None:
    """The acceleration `accelerated` at x and w with the drives as they are held now."""
    m, most, work = stages.arrays, stages.efforts, stages.driving
    write_driven(stages.drives, most, m.S, work, stages.base_armature, stages.armature)
    for i in range(len(m.given)):
        m.given[i] = min(max(stages.tau[i], -most[i]), most[i]) + work.total[i]
    copy(m.given, m.load)
    add_springs(stages, stages.numbers.step)
    call_machine(stages.calls.dynamics_external if stages.given[1] else stages.calls.dynamics)


def be_at(stages: Any, q: Any, v: Any) -> None:
    copy(q, stages.arrays.x)
    copy(v, stages.arrays.w)


def close(stages: Any) -> None:
    """Close loops at x; NaN where they cannot be closed, so that the step is not taken."""
    numbers, x = stages.numbers, stages.arrays.x
    if not numbers.looped:
        return
    for k in range(MOST_CLOSINGS):
        call_machine(stages.calls.closing)
        widest = 0.0
        for y in stages.loops.residual:
            widest = max(widest, abs(y))
        if k == 0:
            stages.opened[0] = widest
        if widest < numbers.closed_at:
            for y in stages.loops.margins:
                if y < 0.0:
                    x[0] = np.nan
            return
        copy(stages.arrays.closed, x)
    x[0] = np.nan


def integrate_smoothly(stages: Any) -> None:
    """`free`, the velocity after the step, `smooth` and `increment`, where it leads, and what impulses are added to: load and
    acceleration, at the beginning of the step."""
    m, kind = stages.arrays, stages.numbers.integrator
    be_at(stages, stages.q, stages.v)
    if kind == SEMI_IMPLICIT:
        if stages.numbers.driven and stages.given[0]:
            accelerate_driven(stages)
        else:
            copy(stages.base_armature, stages.armature)
            accelerate(stages, True, stages.numbers.step)
        copy(m.accelerated, m.acceleration)
        call_machine(stages.calls.free_velocity)
        return
    accelerate(stages, True, 0.0)
    copy(m.accelerated, m.acceleration)
    if kind == RK4:
        runge_kutta(stages)
    else:
        midpoint(stages)
    be_at(stages, stages.q, stages.v)  # what impulses change is counted from here
    if stages.numbers.joined:
        call_machine(stages.calls.spanning)
    write_given(stages)
    copy(m.given, m.load)
    add_springs(stages, 0.0)


def go(stages: Any) -> None:
    """To x from q along `increment`."""
    m = stages.arrays
    copy(m.increment, m.u)
    call_machine(stages.calls.integrate)
    close(stages)


def runge_kutta(stages: Any) -> None:
    m, h, v = stages.arrays, stages.numbers.step, stages.v
    n = len(v)
    for i in range(n):
        m.increment[i], m.w[i] = 0.5 * h * v[i], v[i] + 0.5 * h * m.acceleration[i]
    write_curved_rate(stages, m.k2)
    go(stages)
    accelerate(stages, True, 0.0)
    copy(m.accelerated, m.a2)
    for i in range(n):
        m.increment[i], m.w[i] = 0.5 * h * m.k2[i], v[i] + 0.5 * h * m.a2[i]
    write_curved_rate(stages, m.k3)
    go(stages)
    accelerate(stages, True, 0.0)
    copy(m.accelerated, m.a3)
    for i in range(n):
        m.increment[i], m.w[i] = h * m.k3[i], v[i] + h * m.a3[i]
    write_curved_rate(stages, m.k4)
    go(stages)
    accelerate(stages, True, 0.0)
    for i in range(n):
        m.increment[i] = h / 6.0 * (v[i] + 2.0 * m.k2[i] + 2.0 * m.k3[i] + m.k4[i])
        m.free[i] = v[i] + h / 6.0 * (m.acceleration[i] + 2.0 * m.a2[i] + 2.0 * m.a3[i] + m.accelerated[i])
    go(stages)
    copy(m.x, m.smooth)


def write_curved_rate(stages: Any, rate: Any) -> None:
    """u' = w + [u, w] / 2 + [u, [u, w]] / 12 for the increment u and velocity w."""
    m = stages.arrays
    copy(m.w, rate)
    if len(stages.joints) == 0:
        return
    once, twice = m.half, m.twice
    bracket(stages.joints, m.increment, m.w, once)
    bracket(stages.joints, m.increment, once, twice)
    for i in range(len(rate)):
        rate[i] = rate[i] + 0.5 * once[i] + twice[i] / 12.0


def bracket(joints: Any, a: Any, b: Any, result: Any) -> None:
    """[a, b] joint by joint: that of SE(3), SO(3) and SE(2), zero on lines."""
    for i in range(len(result)):
        result[i] = 0.0
    for k in range(len(joints)):
        kind, s = joints[k, 0], joints[k, 1]
        if kind == SPHERICAL:
            add_cross(a, s, b, s, 1.0, result, s)
        elif kind == FLOATING:
            add_cross(a, s + 3, b, s, 1.0, result, s)
            add_cross(b, s + 3, a, s, -1.0, result, s)
            add_cross(a, s + 3, b, s + 3, 1.0, result, s + 3)
        else:
            result[s] = b[s + 2] * a[s + 1] - a[s + 2] * b[s + 1]
            result[s + 1] = a[s + 2] * b[s] - b[s + 2] * a[s]


def add_cross(a: Any, i: int, b: Any, j: int, sign: float, result: Any, k: int) -> None:
    result[k] += sign * (a[i + 1] * b[j + 2] - a[i + 2] * b[j + 1])
    result[k + 1] += sign * (a[i + 2] * b[j] - a[i] * b[j + 2])
    result[k + 2] += sign * (a[i] * b[j + 1] - a[i + 1] * b[j])


def midpoint(stages: Any) -> None:
    """As `integrators.midpoint`; NaN where it does not settle."""
    m, h, v = stages.arrays, stages.numbers.step, stages.v
    n = len(v)
    kinetic_before, potential_before = energies(stages, stages.q, v)
    before = kinetic_before + potential_before
    after = m.free
    for i in range(n):
        after[i] = v[i] + h * m.acceleration[i]
    gain, least, waited = 0.0, np.inf, 0
    for _ in range(ENERGY_ROUNDS):
        if not settle(stages, gain):
            after[0] = np.nan
            return
        power = power_at_middle(stages)
        for i in range(n):
            m.increment[i] = h * m.half[i]
        go(stages)
        copy(m.x, m.smooth)
        kinetic, potential = energies(stages, m.smooth, after)
        lacking = before + h * power - (kinetic + potential)
        worst = abs(lacking) / (kinetic + kinetic_before + (abs(potential) + abs(potential_before)) + 1e-300)
        waited = 0 if worst < SHRUNK * least else waited + 1
        least = min(least, worst)
        if has_settled(worst, waited) | (waited >= STAGNANT[1]):
            return
        copy(m.smooth, m.x)
        copy(m.half, m.w)
        call_machine(stages.calls.kinetic)
        twice = 2.0 * stages.energy[0]
        if is_a_way(twice, kinetic + kinetic_before, gain * twice + lacking):
            gain += lacking / twice


def energies(stages: Any, q: Any, v: Any) -> tuple[float, float]:
    """Kinetic energy, and that of gravity and springs."""
    be_at(stages, q, v)
    call_machine(stages.calls.kinetic)
    call_machine(stages.calls.potential)
    return stages.energy[0], stages.energy[1] + spring_energy(stages.springs, stages.arrays.x)


def accelerate_at_middle(stages: Any, gain: float) -> None:
    """As `Stepper.at_middle`: `accelerated` at x and w under the forces `acting`, and `lag`, which stand for the armature L."""
    m, h, v = stages.arrays, stages.numbers.step, stages.v
    if stages.numbers.joined:
        call_machine(stages.calls.spanning)
    write_given(stages)
    copy(m.given, m.load)
    add_springs(stages, 0.0)
    copy(m.load, m.acting)
    if len(stages.middle_armature) > 0:
        for i in range(len(v)):
            m.u[i] = (m.free[i] - v[i] - gain * m.half[i]) / h
        write_row_velocity(stages, m.u)
        for r in range(len(m.row_force)):
            m.row_force[r] = stages.middle_armature[r] * m.row_velocity[r]
        write_carried(stages, m.lag)
        for i in range(len(v)):
            m.load[i] += m.lag[i]
    call_machine(stages.calls.dynamics_external if stages.given[1] else stages.calls.dynamics)


def power_at_middle(stages: Any) -> float:
    """Of forces other than gravity and springs, at the middle of the step, for what `accelerate_at_middle` has left."""
    m, s = stages.arrays, stages.springs
    if stages.given[1]:
        be_at(stages, m.middle, m.half)
        call_machine(stages.calls.inverse_dynamics)
        for i in range(len(m.load)):
            m.acting[i] = m.load[i] - m.lag[i]
    write_row_velocity(stages, m.half)
    power = 0.0
    for i in range(len(m.load)):
        power += m.acting[i] * m.half[i]
    for r in range(len(s.damping)):
        power += s.stiffness[r] * (m.middle[s.at[r]] - s.rest[r]) * m.row_velocity[r]
    return power


def settle(stages: Any, gain: float) -> bool:
    """As `integrators.settled`: the velocity `free` at the end for a gain, with `half` and the configuration `middle`."""
    m, h, v, after = stages.arrays, stages.numbers.step, stages.v, stages.arrays.free
    n = len(v)
    scale = greatest_of(v) + greatest_of(after) + h * max(1.0, stages.numbers.gravity)
    least, waited = np.inf, 0
    for k in range(MIDPOINT_ITERATIONS):
        for i in range(n):
            m.half[i] = 0.5 * (v[i] + after[i])
            m.increment[i] = 0.5 * h * m.half[i]
        go(stages)
        copy(m.x, m.middle)
        copy(m.half, m.w)
        accelerate_at_middle(stages, gain)
        change = 0.0
        for i in range(n):
            m.left[i] = v[i] + h * m.accelerated[i] + gain * m.half[i] - after[i]
            change = max(change, abs(m.left[i]))
        change /= scale
        if not change < np.inf:
            return False
        waited = 0 if change < SHRUNK * least else waited + 1
        least = min(least, change)
        ended = has_settled(change, waited)
        if not ended:
            learns = not ((change < STAGNANT[0]) | (waited >= STAGNANT[1]))
            write_quasi_newton_step(m.left, k % KEPT_STEPS, learns, m.steps, m.weights)
        for i in range(n):
            after[i] += m.left[i]
        if ended:
            for i in range(n):
                m.half[i] = 0.5 * (v[i] + after[i])
            return True
    return False


def write_quasi_newton_step(z: Any, k: int, learns: bool, steps: Any, weights: Any) -> None:
    """As `integrators.QuasiNewton.next`, in place: from what is left to step k."""
    for j in range(k - 1):
        part = ordered_product(steps[j], z) * weights[j]
        for i in range(len(z)):
            z[i] += steps[j + 1, i] * part
    if k > 0:
        slope = 1.0 - ordered_product(steps[k - 1], z) * weights[k - 1]
        if learns & (slope > LEAST_SLOPE):
            for i in range(len(z)):
                z[i] /= slope
        else:
            weights[k - 1] = 0.0
    copy(z, steps[k])
    square = ordered_product(z, z)
    weights[k] = 1.0 / square if square > 0.0 else 0.0


def ordered_product(a: Any, b: Any) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total
