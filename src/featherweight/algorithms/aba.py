"""Forward dynamics: the articulated-body algorithm (Featherstone 2008, section 7.3, table 7.1).

pass 1   w_i, c_i, pA_i = w_i x* I_i w_i - f_ext            (velocities as in kinematics.py)
pass 2   u_i = tau_i - S_i^T pA_i,  pA_p += X^T (pA_i + Ia c_i + W_i u_i)      (d_i, W_i, Ia as in articulated.py)
pass 3   a' = X a_p + c_i,  q''_i = d_i u_i - W_i^T a',  a_i = a' + S_i q''_i
"""

from __future__ import annotations

from ..model.tree import INNER, Placements, Tree
from ..spatial import ZERO_ARTICULATED, ZERO_FORCE, ZERO_MOTION
from .articulated import apparent_inertia, gain, joint_acceleration, with_joint
from .kinematics import (
    base_acceleration,
    external_forces,
    joint_transforms,
    rigid_inertia,
    velocity_products,
)


def aba(tree: Tree, bodies: Placements, q, v, tau, forces, qdd) -> None:
    """Write the accelerations under the joint forces `tau` and the `forces` on the bodies."""
    X = joint_transforms(tree, q)
    w, c = velocity_products(tree, X, v)
    W, d, u = articulated_bodies(tree, X, w, c, tau, external_forces(tree, bodies, forces))
    accelerations(tree, X, c, W, d, u, qdd)


def articulated_bodies(tree: Tree, X, w, c, tau, external):
    """Run pass 2: return W, d and u."""
    n = len(tree.parent)
    IA = [ZERO_ARTICULATED] * n
    pA = [ZERO_FORCE] * n
    W = [ZERO_FORCE] * n
    d = [0.0] * n
    u = [0.0] * n
    for j in range(n):
        if tree.last[j] == j:
            I = rigid_inertia(tree, j)
            IA[j] = I.articulated()
            pA[j] = I.gyroscopic(w[j]) - external[j]
    for j in range(n - 1, -1, -1):
        p = tree.parent[j]
        U = IA[j].column(tree.axis[j])
        d[j] = 1.0 / (U.component(tree.axis[j]) + tree.armature[j])
        W[j] = gain(tree, U, d[j], j)
        u[j] = tau[j] - pA[j].component(tree.axis[j])
        if p >= 0:
            Ia = apparent_inertia(tree, IA[j], U, W[j], j)
            pa = pA[j] + u[j] * W[j]
            if tree.first[j] == j:
                pa = pa + Ia @ c[j]
                IA[p] = IA[p] + X[j].inertia_to_parent(Ia)
                pA[p] = pA[p] + X[j].force_to_parent(pa)
            else:
                IA[p] = IA[p] + Ia
                pA[p] = pA[p] + pa
    return W, d, u


def accelerations(tree: Tree, X, c, W, d, u, qdd):
    """Run pass 3: write q'' and return a. The ground accelerates upwards in place of gravity."""
    n = len(tree.parent)
    a = [ZERO_MOTION] * n
    for j in range(n):
        p = tree.parent[j]
        if tree.kind[j] == INNER:
            a[j] = a[p]
        elif p >= 0:
            a[j] = X[j] @ a[p] + c[j]
        else:
            a[j] = X[j] @ base_acceleration(tree) + c[j]
        qdd[j] = joint_acceleration(tree, j, W[j], d[j] * u[j], a[j])
        a[j] = with_joint(tree, j, W[j], d[j] * u[j], a[j])
    return a
