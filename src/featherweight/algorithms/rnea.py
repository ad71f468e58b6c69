"""Inverse dynamics: the recursive Newton-Euler algorithm (Featherstone 2008, section 5.3, table 5.1).

    pass 1   a_i = X a_p + c_i + S_i q''_i                      (velocities as in kinematics.py)
             f_i = I_i a_i + w_i x* I_i w_i - f_ext
    pass 2   tau_i = S_i^T f_i,  f_p += X^T f_i

Angular velocity and acceleration enter the body's force and its children's origins only as the matrix of its field of
accelerations, B_i = skew(alpha_i) + skew(w_i)^2 (Balafoutis, Patel and Misra 1988): o_i = R^T (o_p + B_p p). Where p has a
part d along the child's z axis, on which points of both bodies accelerate alike, that part is d B_i z instead.
"""

from __future__ import annotations

from ..model.tree import INNER, Placements, Tree
from ..spatial import IDENTITY3, ZERO3, ZERO_FORCE, Motion, Vec3, acceleration_field, unit_motion
from .kinematics import angular_velocities, base_acceleration, external_forces, joint_products, joint_transforms, rigid_inertia


def newton_euler(tree: Tree, q, v, qdd, external, tau) -> None:
    """Write the joint forces for accelerations `qdd` under `external`, one Force for each row, to `tau`."""
    X = joint_transforms(tree, q)
    f = body_forces(tree, X, v, qdd, base_acceleration(tree))
    for j in range(len(tree.parent)):
        f[j] = f[j] - external[j]
    for j in range(len(tree.parent) - 1, -1, -1):
        p = tree.parent[j]
        tau[j] = f[j].component(tree.axis[j]) + tree.armature[j] * qdd[j]
        if p >= 0:
            f[p] = f[p] + (f[j] if tree.kind[j] == INNER else X[j].force_to_parent(f[j]))


def body_forces(tree: Tree, X, v, qdd, base: Motion):
    """Return the force that each row's body needs, in its frame, on a ground that accelerates by `base`."""
    n = len(tree.parent)
    w, w_parent = angular_velocities(tree, X, v)
    _, B, o = body_accelerations(tree, X, w, joint_products(tree, w, w_parent, v), qdd, base)
    f = [ZERO_FORCE] * n
    for j in range(n):
        if tree.last[j] == j:
            f[j] = rigid_inertia(tree, j).rate(B[j], o[j])
    return f


def body_accelerations(tree: Tree, X, w, c, qdd, base: Motion):
    """Return alpha, B and o of the header for the last row of each joint, on a ground that accelerates by `base`.

    c comes from `joint_products`.
    """
    n = len(tree.parent)
    alpha = [ZERO3] * n
    o = [ZERO3] * n
    B = [IDENTITY3] * n
    for j in range(n):
        p = tree.parent[j]
        if tree.kind[j] == INNER:
            alpha[j] = alpha[p]
            o[j] = o[p]
        elif p >= 0:
            alpha[j] = X[j].rotate_to_child(alpha[p]) + c[j].ang
            away = X[j].p if tree.last[j] > j else X[j].base
            o[j] = X[j].rotate_to_child(o[p] + B[p] @ away) + c[j].lin
        else:
            alpha[j] = c[j].ang
            o[j] = X[j].rotate_to_child(base.lin) + c[j].lin
        s = unit_motion(tree.axis[j], qdd[j])
        alpha[j] = alpha[j] + s.ang
        o[j] = o[j] + s.lin
        if tree.last[j] == j:
            B[j] = acceleration_field(w[j], alpha[j])
            if p >= 0 and tree.first[j] == j:
                o[j] = o[j] + X[j].slide * Vec3(B[j].x.z, B[j].y.z, B[j].z.z)
    return alpha, B, o


def rnea(tree: Tree, bodies: Placements, q, v, qdd, forces, tau) -> None:
    """Write joint forces that produce the accelerations `qdd` while `forces` act on the bodies."""
    newton_euler(tree, q, v, qdd, external_forces(tree, bodies, forces), tau)


def bias_force(tree: Tree, q, v, tau) -> None:
    """Write Coriolis, centrifugal and gravity forces: inverse dynamics without accelerations."""
    n = len(tree.parent)
    newton_euler(tree, q, v, [0.0] * n, [ZERO_FORCE] * n, tau)


def gravity_force(tree: Tree, q, tau) -> None:
    """Write gravity forces: inverse dynamics at rest."""
    n = len(tree.parent)
    newton_euler(tree, q, [0.0] * n, [0.0] * n, [ZERO_FORCE] * n, tau)


def static_torque(tree: Tree, bodies: Placements, q, forces, tau) -> None:
    """Write joint forces that hold the robot still while `forces` act on the bodies."""
    n = len(tree.parent)
    rnea(tree, bodies, q, [0.0] * n, [0.0] * n, forces, tau)
