"""The inverse of the joint-space inertia matrix in Theta(n^2) (Drumwright 2012, algorithm 1).

Column k of the inverse is the joint accelerations, free of gravity and velocities, for a unit force at joint k: a forward
dynamics that shares the articulated inertias, whose forces go up from k only, and whose motions go out only to rows up to
k, since the inverse is symmetric.

    U_i = IA_i S_i,  d_i = 1 / S_i^T U_i,  IA_p += X^T (IA_i - d_i U_i U_i^T) X
    up from k       u_k = 1,  Y = d_k U_k;  for i over its ancestors:  Y = X^T Y,  u_i = -S_i^T Y,  Y += d_i u_i U_i
    out             a' = X a_p,  q''_i = d_i (u_i - U_i^T a'),  a_i = a' + S_i q''_i

The paper's line 5 leaves out Y itself and line 8 has the opposite sign of Y for the impulse that it adds to the parent;
here Y is the force on the parent, counted as in forward dynamics. Multi-degree joints and a floating base need no case of
their own in the expanded tree.
"""

from __future__ import annotations

from ..model.tree import INNER, Tree
from ..spatial import ZERO_ARTICULATED, ZERO_FORCE, ZERO_MOTION, unit_motion
from .kinematics import joint_transforms, rigid_inertia


def articulated_inertias(tree: Tree, X):
    """For each row d_i U_i and d_i of the header."""
    n = len(tree.parent)
    IA = [ZERO_ARTICULATED] * n
    W = [ZERO_FORCE] * n
    d = [0.0] * n
    for j in range(n - 1, -1, -1):
        if tree.last[j] == j:
            IA[j] = IA[j] + rigid_inertia(tree, j).articulated()
        p = tree.parent[j]
        k = tree.axis[j]
        U = IA[j].column(k)
        d[j] = 1.0 / (U.component(k) + tree.armature[j])
        W[j] = d[j] * U
        if p >= 0:
            Ia = IA[j].minus_dyad(U, W[j])
            if tree.armature[j] == 0.0:
                Ia = Ia.without(k)
            IA[p] = IA[p] + (Ia if tree.kind[j] == INNER else X[j].articulated_to_parent(Ia))
    return W, d


def inverse_mass_matrix(tree: Tree, q, inverse) -> None:
    """Write the inverse, n by n."""
    n = len(tree.parent)
    X = joint_transforms(tree, q)
    W, d = articulated_inertias(tree, X)
    for k in range(n):
        u = [0.0] * n
        u[k] = 1.0
        Y = W[k]
        i = k
        while tree.parent[i] >= 0:
            if tree.kind[i] != INNER:
                Y = X[i].force_to_parent(Y)
            i = tree.parent[i]
            u[i] = 0.0 - Y.component(tree.axis[i])
            Y = Y + u[i] * W[i]
        a = [ZERO_MOTION] * n
        for i in range(k + 1):
            p = tree.parent[i]
            if p >= 0:
                a[i] = a[p] if tree.kind[i] == INNER else X[i] @ a[p]
            qdd = d[i] * u[i] - W[i].power(a[i])
            a[i] = a[i] + unit_motion(tree.axis[i], qdd)
            inverse[i][k] = qdd
            inverse[k][i] = qdd


def solve_mass_matrix(tree: Tree, q, B, result) -> None:
    """Write the inverse times B, both n by m."""
    n = len(tree.parent)
    X = joint_transforms(tree, q)
    W, d = articulated_inertias(tree, X)
    for c in range(len(B[0])):
        u = [0.0] * n
        Y = [ZERO_FORCE] * n
        for i in range(n - 1, -1, -1):
            p = tree.parent[i]
            u[i] = B[i][c] - Y[i].component(tree.axis[i])
            if p >= 0:
                pushed = Y[i] + u[i] * W[i]
                Y[p] = Y[p] + (pushed if tree.kind[i] == INNER else X[i].force_to_parent(pushed))
        a = [ZERO_MOTION] * n
        for i in range(n):
            p = tree.parent[i]
            if p >= 0:
                a[i] = a[p] if tree.kind[i] == INNER else X[i] @ a[p]
            qdd = d[i] * u[i] - W[i].power(a[i])
            a[i] = a[i] + unit_motion(tree.axis[i], qdd)
            result[i][c] = qdd
