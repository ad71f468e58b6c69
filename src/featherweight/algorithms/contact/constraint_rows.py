"""Constraint rows of any kind: their Jacobian J, J' v, and targets of contacts under which errors decay (Baumgarte 1972).

A group of rows measures the velocity (angular, linear) of a point, or a sum over several points, in the axes of a body or of
the world. A row is K times this velocity:

    J v  = K (s; t)                       s, t = sum of weight R_A^T (w_i; v_i + w_i x p)      over points p on bodies i
    J' v = K (s' - w_A x s; t' - w_A x t)     with accelerations for s', t', because the axes A rotate with w_A

A contact is a group with one point, the origin of its body, in the body's own axes. Other rows have entries of J that are
functions of q, on a tape.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.tree import INNER, Placements, Tree
from ...spatial import IDENTITY3, ZERO3, ZERO_FORCE, ZERO_MOTION, Force, Motion, Vec3
from ..frames import frame_poses, velocity_of_frame, world_poses
from ..integration import configuration_rate
from ..kinematics import (
    accelerations_of_velocities,
    force,
    joint_transforms,
    mat3,
    spatial_velocities,
    vec3,
    velocity_products,
)


class FunctionEntries(NamedTuple):
    """Entries of J that are functions of q, on tapes: objects whose method `run` maps a list of numbers to a list."""

    entry_row: Any  # (e,)
    entry_column: Any  # (e,)
    values: Any  # the entries, as functions of q
    rates: Any  # their rates, as functions of q followed by the rate of q


class ConstraintRows(NamedTuple):
    """m rows in G groups with T points."""

    K: Any  # (m, 6) torque and force of each row in the axes of its group
    start: Any  # (G,) range of rows of each group
    stop: Any  # (G,)
    axes: Any  # (G,) row of the tree that carries the axes, -1 for the world
    turned: Any  # (G, 3, 3) the group's axes relative to those
    first: Any  # (G + 1,) first point of each group
    link: Any  # (T,) row of the tree that carries the point, -1 for the ground
    point: Any  # (T, 3) [m]
    weight: Any  # (T,)
    entries: FunctionEntries
    of_masses: bool  # True if points and weights are those of the bodies' masses


def rotation_between(rows: ConstraintRows, R, g: int, t: int):
    """Return the axes of group g relative to those of the body of its point t."""
    own = mat3(rows.turned, g)
    A, i = rows.axes[g], rows.link[t]
    if i == A:
        return own
    carrier = R[A] if A >= 0 else IDENTITY3
    return R[i].transpose().product(carrier.product(own))


def unit_wrenches(tree: Tree, rows: ConstraintRows, X):
    """Return the wrenches of unit forces of all rows, on each row of the tree."""
    n, m = len(tree.parent), len(rows.K)
    R, _ = world_poses(tree, X)
    F = [[ZERO_FORCE for _ in range(n)] for _ in range(m)]
    for g in range(len(rows.start)):
        for t in range(rows.first[g], rows.first[g + 1]):
            i = rows.link[t]
            if i >= 0:
                E = rotation_between(rows, R, g, t)
                for r in range(rows.start[g], rows.stop[g]):
                    K = force(rows.K, r)
                    lin = rows.weight[t] * (E @ K.lin)
                    F[r][i] = F[r][i] + Force(rows.weight[t] * (E @ K.ang) + vec3(rows.point, t).cross(lin), lin)
    return F


def row_jacobian(tree: Tree, rows: ConstraintRows, q, J) -> None:
    """Write J, m by n: the generalized forces of unit forces of the rows."""
    X = joint_transforms(tree, q)
    F = unit_wrenches(tree, rows, X)
    for r in range(len(rows.K)):
        write_joint_forces_of(tree, X, F[r], J[r])
    write_entries(rows.entries, q, J)


def write_joint_forces_of(tree: Tree, X, F, tau) -> None:
    """Write the joint forces that are equivalent to wrenches F on the rows of the tree, which are passed to the parents."""
    for i in range(len(tree.parent) - 1, -1, -1):
        tau[i] = F[i].component(tree.axis[i])
        p = tree.parent[i]
        if p >= 0:
            F[p] = F[p] + (F[i] if tree.kind[i] == INNER else X[i].force_to_parent(F[i]))


def write_entries(entries: FunctionEntries, q, J) -> None:
    """Add the entries of J that are functions of q."""
    x = entries.values.run(q)
    for e in range(len(entries.entry_row)):
        r, i = entries.entry_row[e], entries.entry_column[e]
        J[r][i] = J[r][i] + x[e]


def entries_of_functions(rows: ConstraintRows, q, n: int):
    """Return the part of J from the user's functions, m by n."""
    J = [[0.0] * n for _ in rows.K]
    write_entries(rows.entries, q, J)
    return J


def add_entry_accelerations(entries: FunctionEntries, q, rate, v, b) -> None:
    """Add the terms of J' v from entries that are functions of q, given the rate of q."""
    n = len(q)
    both = [0.0] * (2 * n)
    for k in range(n):
        both[k] = q[k]
        both[n + k] = rate[k]
    dx = entries.rates.run(both)
    for e in range(len(entries.entry_row)):
        b[entries.entry_row[e]] = b[entries.entry_row[e]] + dx[e] * v[entries.entry_column[e]]


def row_bias_acceleration(tree: Tree, rows: ConstraintRows, q, v):
    """Return J' v of all rows."""
    X = joint_transforms(tree, q)
    w, c = velocity_products(tree, X, v)
    b = row_accelerations(tree, rows, X, w, spatial_velocities(tree, X, v), accelerations_of_velocities(tree, X, c))
    add_entry_accelerations(rows.entries, q, configuration_rate(tree, q, v), v, b)
    return b


def row_accelerations(tree: Tree, rows: ConstraintRows, X, w, u, a):
    """Return J' v of rows on bodies, given angular velocities w, velocities u, and accelerations a of bodies without q''."""
    m = len(rows.K)
    R, _ = world_poses(tree, X)
    b = [0.0] * m
    for g in range(len(rows.start)):
        velocity, acceleration = ZERO_MOTION, ZERO_MOTION
        turning = ZERO3
        if rows.axes[g] >= 0:
            turning = mat3(rows.turned, g).transpose() @ w[rows.axes[g]]
        for t in range(rows.first[g], rows.first[g + 1]):
            i = rows.link[t]
            if i >= 0:
                E = rotation_between(rows, R, g, t).transpose()
                at = vec3(rows.point, t)
                lin = a[i].lin + a[i].ang.cross(at) + w[i].cross(w[i].cross(at))
                velocity = velocity + rows.weight[t] * Motion(E @ w[i], E @ (u[i].lin + w[i].cross(at)))
                acceleration = acceleration + rows.weight[t] * Motion(E @ a[i].ang, E @ lin)
        rate = Motion(acceleration.ang - turning.cross(velocity.ang), acceleration.lin - turning.cross(velocity.lin))
        for r in range(rows.start[g], rows.stop[g]):
            b[r] = force(rows.K, r).power(rate)
    return b


class FrameRows(NamedTuple):
    """Constraint rows on the (angular, linear) velocity of contact frames, in their axes."""

    K: Any  # (m, 6)
    begin: Any  # (E + 1,) first row of each frame


def stabilization(tree: Tree, frames: Placements, rows: FrameRows, q, v, wanted, gains, result) -> None:
    """Write -K (gains[0] error + gains[1] velocity) for each contact frame, given its desired homogeneous matrix."""
    X = joint_transforms(tree, q)
    R, o = frame_poses(tree, frames, X)
    u = spatial_velocities(tree, X, v)
    for g in range(len(frames.row)):
        T = wanted[g]
        E = R[g].transpose()
        away = E @ (o[g] - Vec3(T[0][3], T[1][3], T[2][3]))
        x, y, z = E @ Vec3(T[0][0], T[1][0], T[2][0]), E @ Vec3(T[0][1], T[1][1], T[2][1]), E @ Vec3(T[0][2], T[1][2], T[2][2])
        turned = 0.5 * Vec3(y.z - z.y, z.x - x.z, x.y - y.x)  # sine times axis of the rotation to the desired placement
        velocity = velocity_of_frame(frames, g, u)
        error = Motion(ZERO3 - turned, away)
        decay = gains[0] * error + gains[1] * velocity
        for r in range(rows.begin[g], rows.begin[g + 1]):
            result[r] = 0.0 - force(rows.K, r).power(decay)
