"""Articulated inertias, which all recursions without the joint-space inertia matrix share (Featherstone 2008, table 7.1).

    U_i = IA_i S_i,  d_i = 1 / S_i^T U_i,  W_i = d_i U_i,  IA_p += X^T (IA_i - U_i W_i^T) X

An armature is added to S_i^T U_i. A wrench p on body i, against its motion, gives the force u = tau - S^T p at its joint; p +
W u is passed to the parent.
"""

from __future__ import annotations

from ..model.tree import INNER, Tree
from ..spatial import ZERO_ARTICULATED, ZERO_FORCE, ZERO_MOTION, ArticulatedInertia, Force, Motion, unit_motion
from .kinematics import rigid_inertia


def without_armature(tree: Tree, j: int):
    """Return whether row j's armature is known to be zero; an armature that is an argument is not."""
    return isinstance(tree.armature[j], (float, int)) and tree.armature[j] == 0.0


def gain(tree: Tree, U: Force, d, j: int):
    """Return W_j of the header."""
    W = d * U
    if without_armature(tree, j):
        return W.replaced(tree.axis[j], 1.0)  # d S^T U is 1, so p - (S^T p) W has an exact zero there
    return W


def apparent_inertia(tree: Tree, IA: ArticulatedInertia, U: Force, W: Force, j: int) -> ArticulatedInertia:
    """Return IA_j - U_j W_j^T of the header."""
    Ia = IA.minus_dyad(U, W)
    if without_armature(tree, j):
        return Ia.without(tree.axis[j])
    return Ia


def joint_acceleration(tree: Tree, j: int, W: Force, x, a: Motion):
    """Return x - W^T a, with x = d u, for a row with the acceleration a before that of its own joint."""
    k = tree.axis[j]
    return (x - W.replaced(k, 0.0).power(a)) - W.component(k) * a.component(k)


def with_joint(tree: Tree, j: int, W: Force, x, a: Motion) -> Motion:
    """Add the joint's own acceleration to a; the part of a along the axis cancels if W is one there."""
    k = tree.axis[j]
    if without_armature(tree, j):
        return a.replaced(k, x - W.replaced(k, 0.0).power(a))
    return a + unit_motion(k, joint_acceleration(tree, j, W, x, a))


def articulated_inertias(tree: Tree, X, stiffness=None):
    """Return W_i and d_i of the header for each row, in its own frame.

    `stiffness` (n,), if given, are articulated inertias in addition to those of the bodies.
    """
    n = len(tree.parent)
    IA = [ZERO_ARTICULATED] * n
    W = [ZERO_FORCE] * n
    d = [0.0] * n
    for j in range(n):
        if tree.last[j] == j:
            own = rigid_inertia(tree, j).articulated()
            IA[j] = own if stiffness is None else stiffness[j] + own
    for j in range(n - 1, -1, -1):
        p = tree.parent[j]
        U = IA[j].column(tree.axis[j])
        d[j] = 1.0 / (U.component(tree.axis[j]) + tree.armature[j])
        W[j] = gain(tree, U, d[j], j)
        if p >= 0:
            Ia = apparent_inertia(tree, IA[j], U, W[j], j)
            IA[p] = IA[p] + (Ia if tree.kind[j] == INNER else X[j].inertia_to_parent(Ia))
    return W, d


def joint_forces(tree: Tree, X, W, tau, Y):
    """Return u for the joint forces tau and the wrenches Y against the motion of the rows.

    Y of each row gets the wrenches that its children pass on.
    """
    n = len(tree.parent)
    u = [0.0] * n
    for i in range(n - 1, -1, -1):
        p = tree.parent[i]
        u[i] = tau[i] - Y[i].component(tree.axis[i])
        if p >= 0:
            passed = Y[i] + u[i] * W[i]
            Y[p] = Y[p] + (passed if tree.kind[i] == INNER else X[i].force_to_parent(passed))
    return u


def responses(tree: Tree, X, W, d, u, qdd):
    """Write the joint accelerations for u, without velocities and gravity; return the accelerations of the rows."""
    n = len(tree.parent)
    a = [ZERO_MOTION] * n
    for i in range(n):
        p = tree.parent[i]
        if p >= 0:
            a[i] = a[p] if tree.kind[i] == INNER else X[i] @ a[p]
        qdd[i] = joint_acceleration(tree, i, W[i], d[i] * u[i], a[i])
        a[i] = with_joint(tree, i, W[i], d[i] * u[i], a[i])
    return a
