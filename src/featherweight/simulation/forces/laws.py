"""Laws of forces at joints: damping, springs, drives."""

from __future__ import annotations

from functools import partial
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Array, Integers, Matrix, Shared, Tensor, Vector
from ...engine.loops.kernels import CompiledKernel
from ...robot.tendons.lengths import rotation_vector, turn_from
from .controllers import DrivesNow
from .drive_inputs import DriveLaws, write_drive_inputs

Number = Any  # a float, an array of floats, or a traced expression
Numbers = Any  # a sequence or array of such numbers


NO_ROWS, NO_POLY, NO_TURNS = np.zeros(0, np.int64), np.zeros((4, 0)), np.zeros((0, 4))


class Springs(NamedTuple):
    """Damping and springs, by degree of freedom of all joints, and lengths."""

    damping: Vector
    stiffness: Vector
    rest: Shared[Vector]
    slack: Shared[Vector]  # length of the range from `rest` on in which the spring is at rest
    ahead: Shared[Vector]  # 1 if a semi-implicit step evaluates the spring at its end, 0 if at its start
    at: Shared[Integers]  # index of the coordinate of a spring
    quaternion: Shared[Integers]  # index in q of the quaternion of a ball or free joint with a spring; -1 for other joints
    axis: Shared[Integers]  # component of the rotation vector, or of a free joint's displacement; -1 for other joints
    turning: Shared[Integers]  # rows of such joints
    nonlinear: Shared[Integers] = NO_ROWS  # (m,) rows of nonlinear springs and dampers
    poly: Matrix = NO_POLY  # (4, m) their coefficients b and c of `Joint.stiffness_poly` and of `Joint.damping_poly`
    rest_turn: Shared[Matrix] = NO_TURNS  # (n, 4) quaternions where springs of rotations rest; no rows if all are zero
    nonlinear_joint: Shared[Integers] = NO_ROWS  # (m,) joint whose armature represents them in a step, or `NO_ARMATURE`


NO_ARMATURE = -1  # for lengths and joints with several degrees of freedom: evaluated at the start of a step


def coordinate_of_row(springs: Springs, q: Vector, r: int) -> float:
    """Return the coordinate of a row with a spring.

    For ball joints it is a component of the rotation vector in the child's frame.
    """
    i = springs.quaternion[r]
    if i < 0:
        return q[springs.at[r]]
    if len(springs.rest_turn) == 0:
        return rotation_vector(q, i)[springs.axis[r]]
    return rotation_vector(turn_from(springs.rest_turn[r], q, i), 0)[springs.axis[r]]


def stretch_of_row(springs: Springs, r: int, x: float) -> float:
    """Return the distance of a row's coordinate from the rest position of its spring."""
    return x - min(max(x, springs.rest[r]), springs.rest[r] + springs.slack[r])


def extent_of_row(springs: Springs, q: Vector, r: int) -> float:
    """Return the argument of the polynomial of a row's spring.

    It is the stretch; for ball and free joints, the norm of the vector of three stretches.
    """
    if springs.axis[r] < 0:
        return stretch_of_row(springs, r, coordinate_of_row(springs, q, r))
    first, square = r - springs.axis[r], 0.0
    for i in range(3):
        x = stretch_of_row(springs, first + i, coordinate_of_row(springs, q, first + i))
        square += x * x
    return sqrt(square)


GEAR, GAIN, BIAS, BY_POSITION, BY_VELOCITY, LEAST_CONTROL, MOST_CONTROL, LOW, HIGH = range(9)  # `values` of `Drives`


class Drives(NamedTuple):
    """Actuators: the row of the driven joint or length, the index of its coordinate, and the numbers of `drive_force`."""

    row: Shared[Integers]  # (k,)
    at: Shared[Integers]  # (k,)
    values: Matrix  # (9, k) gear, gain, bias (3), range of the control, range of the force
    bound: Shared[Integers]  # (k,) number of the tendon that bounds the sum of its drives' forces, -1 for none
    bounds: Shared[Matrix]  # (b, 2) bounds of these sums, of forces before their limits and gears


class DriveRows(NamedTuple):
    """The map from forces of drives to the rows of joints, whose sums are limited to the efforts."""

    joints: int  # number of rows of joints, which are the first rows
    row: Integers  # (nv,) row of each independent velocity
    length: Integers  # (m,) rows of tendons, for robots with joints that follow others
    joint: Integers  # (m,) rows of joints that are terms of these tendons
    arm: Vector  # (m,) coefficients of these terms
    efforts: Matrix  # (2, joints) lower and upper bounds of the sums


def spread(x: DriveRows, S: Matrix, row_force: Vector) -> None:
    """Map forces along lengths to the rows of joints, by the terms of tendons or by independent velocities."""
    for k in range(len(x.length)):
        row_force[x.joint[k]] += x.arm[k] * row_force[x.length[k]]
    for k in range(len(x.length)):
        row_force[x.length[k]] = 0.0
    for r in range(x.joints, len(row_force)):
        if row_force[r] != 0.0:
            for i in range(len(x.row)):
                row_force[x.row[i]] += S[r, i] * row_force[r]
            row_force[r] = 0.0


def map_forces(S: Matrix, alike: int, row_force: Vector, total: Vector) -> None:
    """Map forces of all rows to independent joints; the first `alike` rows are the independent ones."""
    for i in range(len(total)):
        total[i] = row_force[i] if alike > 0 else 0.0
    for r in range(alike, len(row_force)):
        force = row_force[r]
        if force != 0.0:
            for i in range(len(total)):
                total[i] += S[r, i] * force


def drive_law(drive: Numbers, u: Number, x: Number, v: Number, ahead: float) -> Number:
    """Return the force of a drive before limits and gear, for the control u, at a coordinate x with velocity v.

    Stiffness acts at the coordinate that v leads to in `ahead` seconds. The arguments are numbers or arrays.
    """
    gear, gain, b0, b1, b2, control_low, control_high, _, _ = drive
    force = gain * np.minimum(np.maximum(u, control_low), control_high) + b0
    return force + gear * (b1 * x + (b2 + ahead * np.minimum(b1, 0.0)) * v)


def drive_force(drive: Numbers, u: Number, x: Number, v: Number) -> Number:
    """Return the force at a joint's coordinate x with velocity v, for the control u; for numbers or arrays."""
    return drive[0] * np.minimum(np.maximum(drive_law(drive, u, x, v, 0.0), drive[7]), drive[8])


def write_row_forces(drives: Drives, control: Vector, x: Vector, rates: Vector, law: Vector, total: Vector) -> None:
    """Add the forces of drives to those of rows, for controls, at the coordinates x and velocities of all rows."""
    values = drives.values
    for k in range(len(drives.row)):
        row, at = drives.row[k], drives.at[k]
        drive = values[0, k], values[1, k], values[2, k], values[3, k], values[4, k], values[5, k], values[6, k], 0.0, 0.0
        law[k] = drive_law(drive, control[k], x[at], rates[row], 0.0)
    bound_laws(drives, law)
    for k in range(len(drives.row)):
        total[drives.row[k]] += values[0, k] * min(max(law[k], values[7, k]), values[8, k])


def bound_laws(drives: Drives, law: Vector) -> None:
    """Scale the forces of drives before limits and gears, so that their sum along a tendon is within its bounds."""
    for b in range(len(drives.bounds)):
        total = 0.0
        for k in range(len(law)):
            total += law[k] if drives.bound[k] == b else 0.0
        within = min(max(total, drives.bounds[b, 0]), drives.bounds[b, 1])
        for k in range(len(law)):
            if drives.bound[k] == b and total != within and total != 0.0:
                law[k] *= within / total


def drive_armature(drive: Numbers, step: float) -> Number:
    """Return the armature that represents stiffness and damping of a drive at the end of a step; for numbers or arrays."""
    gear, b1, b2 = drive[0], drive[3], drive[4]
    return gear * gear * (step * np.maximum(-b2, 0.0) + step * step * np.maximum(-b1, 0.0))


def spring_force(spring: Numbers, x: Number, v: Number, ahead: Number) -> Number:
    """Return the force of damping and a spring at a coordinate x, `ahead` seconds later at its velocity.

    Arguments are numbers or arrays.
    """
    damping, stiffness, rest = spring
    return -damping * v - stiffness * (x + ahead * v - rest)


def force_of_spring(springs: Springs, r: int, x: float, v: float, ahead: float) -> float:
    rest = min(max(x, springs.rest[r]), springs.rest[r] + springs.slack[r])
    spring = springs.damping[r], springs.stiffness[r], rest
    return spring_force(spring, x, v, ahead * springs.ahead[r])


def nonlinear_spring_force(poly: Numbers, x: Number, extent: Number) -> Number:
    """Return the force of a spring's nonlinear coefficients b, c at a stretch x: -x (b e + c e²); for numbers or arrays."""
    return -x * (extent * (poly[0] + extent * poly[1]))


def nonlinear_damper_force(poly: Numbers, v: Number) -> Number:
    """Return the force of a damper's nonlinear coefficients b, c: -v (b |v| + c v²); for numbers or arrays."""
    speed = np.maximum(v, -v)
    return -v * (speed * (poly[2] + speed * poly[3]))


def nonlinear_energy(poly: Numbers, x: Number, extent: Number) -> Number:
    """Return the energy [J] of a spring's nonlinear coefficients; for a ball joint, of one component. For numbers or arrays."""
    return x * x * (extent * (poly[0] / 3.0 + extent * (poly[1] / 4.0)))


def add_nonlinear_forces(
    springs: Springs, q: Vector, rates: Vector, ends: tuple[float, float], row_force: Vector, armature: Vector
) -> None:
    """Add forces of nonlinear coefficients at coordinates q and velocities of rows.

    A semi-implicit step includes their change over its length to first order, by armature as for linear ones: `ends` are the
    times [s] over which springs and dampers change. Negative slopes do not make this armature negative.
    """
    ahead, late = ends
    for k in range(len(springs.nonlinear)):
        r, j = springs.nonlinear[k], springs.nonlinear_joint[k]
        poly = springs.poly[0, k], springs.poly[1, k], springs.poly[2, k], springs.poly[3, k]
        v, x = rates[r], stretch_of_row(springs, r, coordinate_of_row(springs, q, r))
        extent, speed = extent_of_row(springs, q, r), abs(v)
        row_force[r] += nonlinear_spring_force(poly, x, extent) + nonlinear_damper_force(poly, v)
        if late > 0.0 and j != NO_ARMATURE and len(armature) > 0:
            stiffer = max(extent * (2.0 * poly[0] + 3.0 * extent * poly[1]), -springs.stiffness[r])
            damped = max(speed * (2.0 * poly[2] + 3.0 * speed * poly[3]), -springs.damping[r])
            row_force[r] -= ahead * v * stiffer
            armature[j] += late * damped + ahead * ahead * stiffer


def spring_energy(springs: Springs, q: Vector) -> float:
    energy = 0.0
    for r in range(len(springs.damping)):
        stretched = stretch_of_row(springs, r, coordinate_of_row(springs, q, r))
        energy += 0.5 * springs.stiffness[r] * stretched * stretched
    for k in range(len(springs.nonlinear)):
        r, poly = springs.nonlinear[k], (springs.poly[0, k], springs.poly[1, k])
        stretched = stretch_of_row(springs, r, coordinate_of_row(springs, q, r))
        energy += nonlinear_energy(poly, stretched, extent_of_row(springs, q, r))
    return energy


@partial(CompiledKernel, fused=False)
def write_spring_energies(springs: Springs, stiffness: Matrix, poly: Tensor, q: Matrix, energy: Vector) -> None:
    """Write energies (robots,) of springs at coordinates; robots have their own or the same stiffness and coefficients."""
    for i in range(len(q)):
        own = springs._replace(stiffness=stiffness[min(i, len(stiffness) - 1)], poly=poly[min(i, len(poly) - 1)])
        energy[i] = spring_energy(own, q[i])


@partial(CompiledKernel, fused=False)
def write_drive_forces(
    laws: DriveLaws, drives: Drives, values: Tensor, rows: DriveRows, S: Tensor, now: Any, work: Any, force: Matrix
) -> None:
    """Write joint forces (robots, nv) of drives within efforts, with numbers `values` (1 or robots, 9, drives)."""
    control, act, q, rates = now
    inputs, act_rate, law, row_force = work
    for i in range(len(q)):
        own = drives._replace(values=values[min(i, len(values) - 1)])
        write_drive_inputs(laws, DrivesNow(control[i], act[i], q[i], rates[i], inputs, act_rate, inputs[:0]))
        for r in range(len(row_force)):
            row_force[r] = 0.0
        write_row_forces(own, inputs, q[i], rates[i], law, row_force)
        spread(rows, S[i], row_force)
        for r in range(rows.joints):
            row_force[r] = min(max(row_force[r], rows.efforts[0, r]), rows.efforts[1, r])
        map_forces(S[i], 0 if S.shape[1] > 0 else rows.joints, row_force, force[i])


def ordered_sum(x: Array) -> Array:
    """Return sums (...) over the last axis, term by term: bitwise equal to a compiled loop, for any number of robots."""
    return np.asarray(np.cumsum(x, axis=-1)[..., -1]) if x.shape[-1] else np.zeros(x.shape[:-1])
