"""Regressors of inverse dynamics and energies, which are linear in the inertias of bodies (Atkeson, An and Hollerbach 1986).

The parameters of a body, in its frame of the file, are

    m,  h = m c,  Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the frame's origin

If the origin accelerates by o and other points by o + B r (rnea.py), the force and the torque about the origin are

    f = m o + B h          n = h x o + I alpha + w x I w

so the columns of a body are four wrenches and six couples. Rows of the joints on its path are their powers S_j^T A_i. All of
them are in the axes and about the origin of the root's body, where a joint's axis is computed once and a free-flyer's axes are
the unit vectors. All other entries are zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..model.tree import Placements, Tree
from ..spatial import ZERO3, Force, Mat3, Vec3, acceleration_field, sqrt
from .frames import frame_poses
from .idsva import axes_in_root
from .kinematics import (
    angular_velocities,
    base_acceleration,
    clear,
    joint_products,
    joint_transforms,
    mat3,
    spatial_velocities,
    vec3,
)
from .rnea import body_accelerations

PARAMETERS = 10  # number of parameters of a body
VISCOUS, COULOMB, ARMATURE = range(3)
STILL = 1e-30  # squared velocity below which dry friction fades


class JointColumns(NamedTuple):
    """Columns for m parameters of joints."""

    kind: Any  # (m,) int, VISCOUS, COULOMB or ARMATURE
    first: Any  # (m,) int, the first row of the joint
    stop: Any  # (m,) int, the row after its last


def inverse_dynamics_regressor(tree: Tree, bodies: Placements, q, v, qdd, Y) -> None:
    """Write Y (n, 10 bodies), for which Y times the parameters of all bodies is their part of the joint forces."""
    clear(Y)
    write_regressor(tree, bodies, q, v, qdd, Y)


def extended_regressor(tree: Tree, bodies: Placements, joints: JointColumns, q, v, qdd, Y) -> None:
    """Write Y, and columns for joints: forces that are v, the sign of v, and q'' times a parameter."""
    begin = PARAMETERS * len(bodies.row)
    clear(Y)
    write_regressor(tree, bodies, q, v, qdd, Y)
    for c in range(len(joints.kind)):
        for j in range(joints.first[c], joints.stop[c]):
            Y[j][begin + c] = force_of_joint(joints.kind[c], v[j], qdd[j])


def force_of_joint(kind: int, v, a):
    if kind == VISCOUS:
        return v
    if kind == COULOMB:
        return v / sqrt(v * v + STILL)
    return a


def write_regressor(tree: Tree, bodies: Placements, q, v, qdd, Y) -> None:
    """Write the nonzero entries of bodies."""
    X = joint_transforms(tree, q)
    w, w_parent = angular_velocities(tree, X, v)
    alpha, B, o = body_accelerations(tree, X, w, joint_products(tree, w, w_parent, v), qdd, base_acceleration(tree))
    R, p, S = axes_in_root(tree, X)
    for k in range(len(bodies.row)):
        j = bodies.row[k]
        own, at = mat3(bodies.rotation, k), vec3(bodies.translation, k)
        T = own.transpose()
        turning, rate = T @ w[j], T @ alpha[j]
        axes = R[j].product(own)
        wrenches = force_columns(acceleration_field(turning, rate), T @ (o[j] + B[j] @ at), axes, p[j] + R[j] @ at)
        couples = inertia_columns(turning, rate, axes)
        while j >= 0:
            row = Y[j]
            for c in range(4):
                row[PARAMETERS * k + c] = wrenches[c].power(S[j])
            for c in range(6):
                row[PARAMETERS * k + 4 + c] = couples[c].dot(S[j].ang)
            j = tree.parent[j]


def force_columns(B: Mat3, o: Vec3, R: Mat3, p: Vec3):
    """Return the wrenches of m and h of a body with axes R at p, about the origin there."""
    T = B.transpose()
    return (
        Force(ZERO3, R @ o).translate(p),
        Force(R @ Vec3(0.0, 0.0 - o.z, o.y), R @ T.x).translate(p),
        Force(R @ Vec3(o.z, 0.0, 0.0 - o.x), R @ T.y).translate(p),
        Force(R @ Vec3(0.0 - o.y, o.x, 0.0), R @ T.z).translate(p),
    )


def inertia_columns(w: Vec3, alpha: Vec3, R: Mat3):
    """Return the couples of Ixx, Ixy, Iyy, Ixz, Iyz, Izz of a body with axes R: I alpha + w x I w for unit entries of I."""
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    return (
        R @ Vec3(alpha.x, xz, 0.0 - xy),
        R @ Vec3(alpha.y - xz, alpha.x + yz, xx - yy),
        R @ Vec3(0.0 - yz, alpha.y, xy),
        R @ Vec3(alpha.z + xy, zz - xx, alpha.x - yz),
        R @ Vec3(yy - zz, alpha.z - xy, alpha.y + xz),
        R @ Vec3(yz, 0.0 - xz, alpha.z),
    )


def kinetic_energy_regressor(tree: Tree, bodies: Placements, q, v, y) -> None:
    """Write the row y (10 bodies), for which y times the parameters is the bodies' kinetic energy."""
    u = spatial_velocities(tree, joint_transforms(tree, q), v)
    for k in range(len(bodies.row)):
        m = u[bodies.row[k]]
        T = mat3(bodies.rotation, k).transpose()
        w = T @ m.ang
        o = T @ (m.lin + m.ang.cross(vec3(bodies.translation, k)))
        swept = o.cross(w)
        at = PARAMETERS * k
        y[at] = 0.5 * o.dot(o)
        y[at + 1], y[at + 2], y[at + 3] = swept.x, swept.y, swept.z
        y[at + 4], y[at + 6], y[at + 9] = 0.5 * (w.x * w.x), 0.5 * (w.y * w.y), 0.5 * (w.z * w.z)
        y[at + 5], y[at + 7], y[at + 8] = w.x * w.y, w.x * w.z, w.y * w.z


def potential_energy_regressor(tree: Tree, bodies: Placements, q, y) -> None:
    """Write the row y (10 bodies), for which y times the parameters is the potential energy."""
    R, o = frame_poses(tree, bodies, joint_transforms(tree, q))
    g = tree.gravity
    up = Vec3(0.0 - g[0], 0.0 - g[1], 0.0 - g[2])
    for k in range(len(bodies.row)):
        at = PARAMETERS * k
        turned = R[k].transpose() @ up
        y[at] = up.dot(o[k])
        y[at + 1], y[at + 2], y[at + 3] = turned.x, turned.y, turned.z
        for c in range(4, PARAMETERS):
            y[at + c] = 0.0
