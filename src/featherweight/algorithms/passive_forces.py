"""Forces of dampers and linear springs at joints, and the armature that represents them at the end of a step h.

    tau = -d v - k (x + h v - x0)      I = h d + h² k

At the acceleration a, tau - I a is the force at the end of the step: -d v' - k (x + h v' - x0) with v' = v + h a. With h = 0
it is the force at the beginning.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..spatial import log_so3, quaternion_at
from .contact.operational_space.dense_factors import is_zero


class Spring(NamedTuple):
    """A linear spring on the coordinate of a joint, or on the components of a ball joint's rotation vector."""

    velocity: int  # number of the joint's first velocity
    position: int  # number of its first coordinate
    ball: bool
    stiffness: float  # [N/m, N m/rad]
    rest: float  # [m, rad]


def damper_forces(damping: tuple[float, ...], v, forces) -> None:
    """Write the forces of dampers."""
    for i, d in enumerate(damping):
        if d != 0.0:
            forces[i] = -(d * v[i])


def spring_forces(springs: tuple[Spring, ...], q, v, *others: Any) -> None:
    """Write the forces of springs at the coordinates that v leads to in a time h, if it is given."""
    *step, forces = others
    for s in springs:
        at = log_so3(quaternion_at(q, s.position).normalized()) if s.ball else (q[s.position],)
        for i, x in enumerate(at, s.velocity):
            ahead = x - s.rest
            for h in step:
                ahead = ahead + h * v[i]
            forces[i] = -(s.stiffness * ahead)


def holding_forces(springs: tuple[Spring, ...], q, gravity, *others: Any) -> None:
    """Write the forces that hold a robot at rest against gravity, springs, and a compensation of gravity if there is one."""
    *compensation, forces = others
    spring_forces(springs, q, gravity, forces)
    for i, x in enumerate(gravity):
        total = forces[i]
        for part in compensation:
            total = total + part[i]
        forces[i] = x - total


def armature_at_end(joints: tuple[tuple[float, float, float], ...], h, armature) -> None:
    """Write the armatures of joints with own armatures, damping and stiffness (each), for a step h."""
    for i, (own, damping, stiffness) in enumerate(joints):
        armature[i] = own + h * (damping + h * stiffness)


def summed(*parts_and_result: Any) -> None:
    """Write a sum of vectors."""
    first, *parts, result = parts_and_result
    for i, total in enumerate(first):
        for part in parts:
            total = total + part[i]
        result[i] = total


def slopes_through_load(by: tuple[int, ...], *given: Any) -> None:
    """Write derivatives of quantities by q, v and tau, for a load tau + f(q, v).

    Given are the derivatives of f by q (0) and v (1), as far as it depends on them, and those of each quantity by q, v and the
    load.
    """
    *slopes, results = given
    of_load, slopes = slopes[: len(by)], slopes[len(by) :]
    for k, matrix in enumerate(slopes):
        for i, row in enumerate(matrix):
            results[k][i][:] = row
    for k in range(0, len(slopes), 3):
        for place, load_slopes in zip(by, of_load, strict=True):
            for row, result in zip(slopes[k + 2], results[k + place], strict=True):
                for x, load_row in zip(row, load_slopes, strict=True):
                    for j, y in enumerate(load_row):
                        if not is_zero(y):
                            result[j] = result[j] + x * y
