"""The inverse of the joint-space inertia matrix (Drumwright 2012).

Column k of the inverse is the joint accelerations, free of gravity and velocities, for a unit force at joint k. All columns
share the articulated inertias:

    U_i = IA_i s_i,  d_i = 1 / s_i^T U_i,  W_i = d_i U_i,  IA_p += X^T (IA_i - U_i W_i^T) X

The force that joint k passes up, initially Y = W_k, causes u_ik = -s_i^T Y at joint i and continues as Y + u_ik W_i. The paper
(algorithm 1) then propagates each column's motions outwards to all joints. The two algorithms here compute entries directly:

    global   With O_i, the motion of body i for a force on it, computed in one pass from the root,
                 R_i = O_p W_i,  e_i = d_i + R_i^T W_i,  O_i = O_p + s_i g_i^T + g_i s_i^T,  g_i = e_i / 2 s_i - R_i
             the inverse is e_i on the diagonal, (R_i - e_i s_i)^T Y for the force Y from below joint i, and Y^T O_c Y' for
             two that meet at c. The cost is Theta(n^2). As the paper proposes, all bodies share the same axes, so nothing is
             rotated. The axes are the root's, so the result does not depend on the root's orientation. Origins are the bodies'
             own: with one origin for all, as in the paper, a step takes 23 operations instead of 29, but inertias of small
             bodies are added to masses times squared distances, and up to three digits of the inverse are lost.
    local    The u_ik are the factor L^-1 of the inverse L^-1 D^-1 L^-T, whose entries are sums over common ancestors.
             This takes fewer operations if paths are short.

The paper's line 5 omits Y itself, and its line 8 has delta for R; with the impulse R_ik counted as u_k, Y is the force on the
parent as in forward dynamics. In the expanded tree, joints with several degrees of freedom are no special case.
"""

from __future__ import annotations

from ..model.tree import INNER, Tree
from ..spatial import IDENTITY3, ZERO3, ZERO_ARTICULATED, ZERO_FORCE, ZERO_MOBILITY, ZERO_MOTION, Mat3, Motion, unit_motion
from .articulated import articulated_inertias, joint_forces, responses
from .columns import clear_block, columns, mirror_upper, propagate_columns, set_force, sweep_columns, write_mobility_products
from .kinematics import joint_transforms, rigid_inertia
from .ltdl import product_with_transpose


def orientations_from_roots(tree: Tree, X):
    """Return each row's axes, in the root's axes."""
    R = [IDENTITY3] * len(tree.parent)
    for j in range(len(tree.parent)):
        p = tree.parent[j]
        if tree.kind[j] == INNER:
            R[j] = R[p]
        elif p >= 0:
            A = R[p]
            R[j] = Mat3(X[j].rotate_to_child(A.x), X[j].rotate_to_child(A.y), X[j].rotate_to_child(A.z))
    return R


def turned_to_root(tree: Tree, X):
    """Return each row's axis s_i and inertia about its origin, and its origin relative to its parent's, in the root's axes."""
    n = len(tree.parent)
    R = orientations_from_roots(tree, X)
    s = [ZERO_MOTION] * n
    r = [ZERO3] * n
    I = [ZERO_ARTICULATED] * n
    for j in range(n):
        p = tree.parent[j]
        if p >= 0 and tree.kind[j] != INNER:
            r[j] = R[p] @ X[j].p
        axis = unit_motion(tree.axis[j], 1.0)
        s[j] = Motion(R[j] @ axis.ang, R[j] @ axis.lin)
        if tree.last[j] == j:
            I[j] = rigid_inertia(tree, j).rotate(R[j]).articulated()
    return s, r, I


def turned_articulated_inertias(tree: Tree, s, r, IA):
    """Return W_i and d_i of the header; the bodies' inertias IA become articulated ones."""
    n = len(tree.parent)
    W = [ZERO_FORCE] * n
    d = [0.0] * n
    for j in range(n - 1, -1, -1):
        p = tree.parent[j]
        U = IA[j] @ s[j]
        d[j] = 1.0 / (U.power(s[j]) + tree.armature[j])
        W[j] = d[j] * U
        if p >= 0:
            IA[p] = IA[p] + IA[j].minus_dyad(U, W[j]).translate(r[j])
    return W, d


def mobilities_on_root_axes(tree: Tree, s, r, W, d):
    """Return O_i, R_i and e_i of the header."""
    n = len(tree.parent)
    O = [ZERO_MOBILITY] * n
    R = [ZERO_MOTION] * n
    e = [0.0] * n
    for j in range(n):
        p = tree.parent[j]
        if p >= 0:
            O[j] = O[p].translate(r[j])
            R[j] = O[j].motion(W[j])
        e[j] = d[j] + W[j].power(R[j])
        g = (0.5 * e[j]) * s[j] - R[j]
        O[j] = O[j].plus_symmetric(s[j], g)
    return O, R, e


def inverse_global(tree: Tree, part, q, inverse) -> None:
    """Write columns part[0] to part[1] - 1 of the inverse above the diagonal, and the transposed entries.

    Rows are numbered depth first, so the descendants of a row are the range that follows it. A part begins with a block.
    """
    n = len(tree.parent)
    first = part[0]
    stop = part[1]
    X = joint_transforms(tree, q)
    s, r, IA = turned_to_root(tree, X)
    W, d = turned_articulated_inertias(tree, s, r, IA)
    O, R, e = mobilities_on_root_axes(tree, s, r, W, d)
    end, passing = spans(tree, first, stop)
    Y = columns(n)
    for i in range(stop - 1, -1, -1):
        below = min(end[i], stop)
        child = i + 1
        while child < below and end[child] < below:  # the next child is a sibling
            write_mobility_products(Y, inverse, O[i], child, end[child], max(end[child], first), below)
            child = end[child]
        if passing[i] == 1:
            propagate_columns(Y, s[i], W[i], r[i], i + 1, min(first, below))
        sweep_columns(Y, inverse[i], R[i] - e[i] * s[i], s[i], W[i], r[i], max(i + 1, first), below)
        if i >= first or passing[i] == 1:
            set_force(Y, i, W[i].translate(r[i]))
        if tree.parent[i] < 0:
            clear_block(inverse, i, end[i], max(end[i], first), stop)
    for i in range(first, stop):
        inverse[i][i] = e[i]
    mirror_upper(inverse, first, stop)


def spans(tree: Tree, first: int, stop: int):
    """Return the ends of each row's descendants, and whether columns before `first` pass the row to meet later columns."""
    n = len(tree.parent)
    end = [0] * n
    passing = [0] * n
    for j in range(n):
        end[j] = j + 1
    for j in range(n - 1, -1, -1):
        p = tree.parent[j]
        if p >= 0:
            end[p] = max(end[p], end[j])
    for j in range(n):
        p = tree.parent[j]
        if p >= 0:
            meets = end[j] < min(end[p], stop) and end[p] > first
            passing[j] = 1 if meets or passing[p] == 1 else 0
    return end, passing


def inverse_local(tree: Tree, q, inverse) -> None:
    """Write the inverse by the factors that unit forces build on their way to the root, in the frames of the bodies."""
    n = len(tree.parent)
    X = joint_transforms(tree, q)
    W, d = articulated_inertias(tree, X)
    u = [[0.0] * n for _ in range(n)]
    for k in range(n):
        u[k][k] = 1.0
        Y = W[k]
        i = k
        while tree.parent[i] >= 0:
            if tree.kind[i] != INNER:
                Y = X[i].force_to_parent(Y)
            i = tree.parent[i]
            u[k][i] = 0.0 - Y.component(tree.axis[i])
            Y = Y + u[k][i] * W[i]
    product_with_transpose(tree.parent, u, d, inverse)


def solve_mass_matrix(tree: Tree, q, B, result) -> None:
    """Write the inverse times B, both n by m."""
    n = len(tree.parent)
    X = joint_transforms(tree, q)
    W, d = articulated_inertias(tree, X)
    for c in range(len(B[0])):
        u = joint_forces(tree, X, W, [B[i][c] for i in range(n)], [ZERO_FORCE] * n)
        column = [0.0] * n
        responses(tree, X, W, d, u, column)
        for i in range(n):
            result[i][c] = column[i]
