"""Forward dynamics: the articulated-body algorithm (Featherstone 2008, section 7.3, table 7.1).

pass 1   w_i, c_i, pA_i = w_i x* I_i w_i - f_ext            (velocities as in kinematics.py)
pass 2   U_i = IA_i S_i,  d_i = 1 / S_i^T U_i,  W_i = d_i U_i,  u_i = tau_i - S_i^T pA_i
         IA_p += X^T (IA_i - U_i W_i^T) X,  pA_p += X^T (pA_i + Ia c_i + W_i u_i)
pass 3   a' = X a_p + c_i,  q''_i = d_i u_i - W_i^T a',  a_i = a' + S_i q''_i
"""

from __future__ import annotations

from ..model.tree import INNER, Placements, Tree
from ..spatial import ZERO_ARTICULATED, ZERO_FORCE, ZERO_MOTION, unit_motion
from .kinematics import (
    angular_velocities,
    base_acceleration,
    external_forces,
    joint_transforms,
    rigid_inertia,
    velocity_products,
)


def articulated_body(tree: Tree, q, v, tau, external, qdd) -> None:
    """Write the accelerations that `tau` and `external`, one Force a row, give to `qdd`."""
    n = len(tree.parent)
    X = joint_transforms(tree, q)
    w, carried = angular_velocities(tree, X, v)
    c = velocity_products(tree, X, w, carried, v)
    IA = [ZERO_ARTICULATED] * n
    pA = [ZERO_FORCE] * n
    W = [ZERO_FORCE] * n
    d = [0.0] * n
    u = [0.0] * n
    a = [ZERO_MOTION] * n

    for j in range(n):
        if tree.last[j] == j:
            I = rigid_inertia(tree, j)
            IA[j] = I.articulated()
            pA[j] = I.gyroscopic(w[j]) - external[j]

    for j in range(n - 1, -1, -1):
        p = tree.parent[j]
        k = tree.axis[j]
        U = IA[j].column(k)
        d[j] = 1.0 / (U.component(k) + tree.armature[j])
        W[j] = d[j] * U
        if tree.armature[j] == 0.0:
            W[j] = W[j].replaced(k, 1.0)  # it is d S^T U
        u[j] = tau[j] - pA[j].component(k)
        if p >= 0:
            Ia = IA[j].minus_dyad(U, W[j])
            if tree.armature[j] == 0.0:
                Ia = Ia.without(k)
            pa = pA[j] + u[j] * W[j]
            if tree.first[j] == j:
                pa = pa + Ia @ c[j]
                IA[p] = IA[p] + X[j].articulated_to_parent(Ia)
                pA[p] = pA[p] + X[j].force_to_parent(pa)
            else:
                IA[p] = IA[p] + Ia
                pA[p] = pA[p] + pa

    for j in range(n):
        p = tree.parent[j]
        if tree.kind[j] == INNER:
            a[j] = a[p]
        elif p >= 0:
            a[j] = X[j] @ a[p] + c[j]
        else:
            a[j] = X[j] @ base_acceleration(tree) + c[j]
        qdd[j] = d[j] * u[j] - W[j].power(a[j])
        a[j] = a[j] + unit_motion(tree.axis[j], qdd[j])


def aba(tree: Tree, q, v, tau, qdd) -> None:
    """Accelerations that the joint forces `tau` give."""
    articulated_body(tree, q, v, tau, [ZERO_FORCE] * len(tree.parent), qdd)


def aba_external(tree: Tree, bodies: Placements, q, v, tau, forces, qdd) -> None:
    """Accelerations that the joint forces `tau` give while `forces` act on the bodies."""
    articulated_body(tree, q, v, tau, external_forces(tree, bodies, forces), qdd)
