"""Gyroscopic and damping forces of free bodies at the end of a step, as in steps of MuJoCo.

A free body is one with a floating joint, and with no joints on it. With the acceleration a = (l, α) at the start of a step,
where l is the classical acceleration of its origin, and the mass m, first moment m r and inertia I about the origin, all in
the axes of the body, the acceleration a' of the step solves

    (M + h d + h C) a' = M a        M = (m, -m r×; m r×, I)

with the damping d of the joint and the derivative C of the forces m w × (w × r) and torques w × I w by the velocity w
(MuJoCo's documentation, chapter Computation, section Numerical integration). Only the integrators "implicit" and "implicitfast"
of files have C. The robot's functions solve this without C, with the damping as an armature, for spatial accelerations:
they lack the force h d w × v. Elimination of l' leaves three equations for α'.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Integers, Matrix, Shared, Vector
from ...collision.triples import Triple, along, inner, minus, outer, plus, times
from ...engine.loops.kernels import subtract_multiples
from ...model.types import JointType
from ...robot.robot import Robot

ZERO = (0.0, 0.0, 0.0)
OF_BODY = 6  # velocities of a floating joint


class FreeBodies(NamedTuple):
    """Bodies of this kind of one robot; may be empty."""

    row: Shared[Integers]  # (k,) first velocity
    body: Shared[Integers]  # (k,) number of the body
    parameters: Matrix  # (k, 10) inertial parameters
    gyroscopic: bool  # whether C is not left out
    slopes: Matrix  # (6, 12) workspace: derivatives of a' - a by a and v


class FreeBody(NamedTuple):
    """One of them in a step."""

    mass: float  # m + h d
    moment: Triple  # m r
    inertia: tuple[Triple, Triple, Triple]  # I + h d
    w: Triple  # angular velocity
    damping: float  # h d
    gyroscopic: float  # h, or zero without C


def free_bodies(robot: Robot, damping: Vector, gyroscopic: bool) -> FreeBodies:
    """Return the free bodies of a robot whose motion has late forces, by the damping of all rows."""
    found = []
    for j in robot.model.joints if not robot.closed else ():
        rows = range(j.v_slice.start, j.v_slice.stop)
        alone = j.type is JointType.FLOATING and not robot.model.topology.children[rows[-1]]
        if alone and (gyroscopic or damping[rows.start] > 0.0):
            found.append((rows.start, next(k for k, b in enumerate(robot.model.placed_bodies) if b.row in rows)))
    row, body = (np.array([x[i] for x in found], np.int64) for i in range(2))
    return FreeBodies(row, body, robot.inertial_parameters[body], gyroscopic, np.zeros((OF_BODY, 2 * OF_BODY)))


def free_body(x: FreeBodies, k: int, own: Matrix, damping: Vector, v: Vector, h: float) -> FreeBody:
    """Return a free body at velocities v; `own` are the inertial parameters of a robot that differs, or has no rows."""
    p, i = own[x.body[k]] if len(own) > 0 else x.parameters[k], x.row[k]
    d = h * damping[i] if len(damping) > 0 else 0.0
    inertia = (p[4] + d, p[5], p[7]), (p[5], p[6] + d, p[8]), (p[7], p[8], p[9] + d)
    w = v[i + 3], v[i + 4], v[i + 5]
    return FreeBody(p[0] + d, (p[1], p[2], p[3]), inertia, w, d, h if x.gyroscopic else 0.0)


def inertia_times(b: FreeBody, x: Triple) -> Triple:
    """Return I x."""
    return inner(b.inertia[0], x), inner(b.inertia[1], x), inner(b.inertia[2], x)


def late_force(b: FreeBody, w: Triple, x: Triple) -> Triple:
    """Return the force of C with the velocity w, for an angular acceleration x, times h; it is symmetric in w and x."""
    return times(b.gyroscopic, plus(outer(x, outer(w, b.moment)), outer(w, outer(x, b.moment))))


def late_torque(b: FreeBody, w: Triple, x: Triple) -> Triple:
    """Return the torque likewise."""
    return times(b.gyroscopic, plus(outer(w, inertia_times(b, x)), outer(x, inertia_times(b, w))))


def left_side(b: FreeBody, x: Triple) -> Triple:
    """Return K x, the left side of the equations for the angular acceleration."""
    torque = plus(inertia_times(b, x), late_torque(b, b.w, x))
    return along(torque, 1.0 / b.mass, outer(b.moment, minus(outer(b.moment, x), late_force(b, b.w, x))))


class Accelerations(NamedTuple):
    """A linear and an angular acceleration."""

    linear: Triple
    angular: Triple


def with_late_forces(b: FreeBody, a: Accelerations, more: Accelerations) -> Accelerations:
    """Return a' for an acceleration a and `more` force and torque on the left side."""
    S = b.moment
    first = minus(minus(times(b.mass, a.linear), outer(S, a.angular)), more.linear)
    second = minus(plus(outer(S, a.linear), inertia_times(b, a.angular)), more.angular)
    right = along(second, -1.0 / b.mass, outer(S, first))
    one, two, three = left_side(b, (1.0, 0.0, 0.0)), left_side(b, (0.0, 1.0, 0.0)), left_side(b, (0.0, 0.0, 1.0))
    across = outer(two, three)
    scale = 1.0 / inner(one, across)
    angular = scale * inner(right, across), scale * inner(one, outer(right, three)), scale * inner(one, outer(two, right))
    force = minus(plus(first, outer(S, angular)), late_force(b, b.w, angular))
    return Accelerations(times(1.0 / b.mass, force), angular)


def settle_free_bodies(x: FreeBodies, own: Matrix, damping: Vector, v: Vector, h: float, acceleration: Vector) -> None:
    """Let the late forces of free bodies act on an acceleration (nv,), at velocities v (nv,)."""
    for k in range(len(x.row)):
        b, i = free_body(x, k, own, damping, v, h), x.row[k]
        turning = outer(b.w, (v[i], v[i + 1], v[i + 2]))  # of the classical acceleration
        linear = plus((acceleration[i], acceleration[i + 1], acceleration[i + 2]), turning)
        angular = acceleration[i + 3], acceleration[i + 4], acceleration[i + 5]
        y = with_late_forces(b, Accelerations(linear, angular), Accelerations(times(b.damping, turning), ZERO))
        put(minus(y.linear, turning), acceleration, i)
        put(y.angular, acceleration, i + 3)


def put(x: Triple, target: Vector, i: int) -> None:
    target[i], target[i + 1], target[i + 2] = x[0], x[1], x[2]


def write_slopes_of_body(x: FreeBodies, b: FreeBody, i: int, v: Vector, after: Vector) -> None:
    """Write the derivatives of a' - a of the body with velocities from row i on, by a and v; `after` has a'."""
    moved = v[i], v[i + 1], v[i + 2]
    angular = after[i + 3], after[i + 4], after[i + 5]
    for j in range(2 * OF_BODY):
        one = (1.0 if j % 3 == 0 else 0.0), (1.0 if j % 3 == 1 else 0.0), (1.0 if j % 3 == 2 else 0.0)
        linear, turning, force, torque = ZERO, ZERO, ZERO, ZERO
        if j < 3:
            linear = one
        elif j < 6:
            turning = one
        elif j < 9:
            linear = outer(b.w, one)
            force = times(b.damping, linear)
        else:
            linear, torque = outer(one, moved), late_torque(b, one, angular)
            force = along(late_force(b, one, angular), b.damping, linear)
        y = with_late_forces(b, Accelerations(linear, turning), Accelerations(force, torque))
        first, second = minus(y.linear, linear), minus(y.angular, turning)
        for row in range(3):
            x.slopes[row, j], x.slopes[row + 3, j] = first[row], second[row]


def turn_rates(x: FreeBodies, i: int, numbers: Vector, rates: int, width: int, by_v: int, before: int) -> None:
    """Add the rates of a' - a to those of a, whose rows i to i + 5 begin at `rates`; `before` is the place of a copy."""
    for j in range(OF_BODY * width):
        numbers[before + j] = numbers[rates + i * width + j]
    for r in range(OF_BODY):
        row = rates + (i + r) * width
        for j in range(OF_BODY):
            subtract_multiples(numbers, row, before + j * width, 0, width, (-x.slopes[r, j],))
            numbers[row + by_v + i + j] += x.slopes[r, OF_BODY + j]


def turn_cotangent(x: FreeBodies, i: int, numbers: Vector, column: int, width: int, product: int) -> None:
    """Add the cotangents of a' to those of a, in a column with rows of a width, and to the product by v."""
    for j in range(OF_BODY):
        of_a, of_v = 0.0, 0.0
        for r in range(OF_BODY):
            cotangent = numbers[column + (i + r) * width]
            of_a, of_v = of_a + x.slopes[r, j] * cotangent, of_v + x.slopes[r, OF_BODY + j] * cotangent
        numbers[product + i + j] += of_v
        x.slopes[0, j] = of_a  # row 0 has been read for this column
    for j in range(OF_BODY):
        numbers[column + (i + j) * width] += x.slopes[0, j]
