"""Derivatives of forward dynamics from those of inverse dynamics, by the sparse factors of the inertia matrix.

    da/dx = -M^-1 dtau/dx  at tau = ID(q, v, a)      (Carpentier and Mansard, RSS 2018, equation 12)

dtau/dx has entries for rows on one path only. M^-1 = N D^-1 N^T with N = L^-1: N^T stays on the path, and N follows it. A
displacement of the whole robot, or another linear velocity, changes only the acceleration of a floating root, so these columns
are written without a solution. An armature of the root breaks this symmetry, because gravity then accelerates more than the
mass that it acts on; the columns of such a root are solved for like the others.
"""

from __future__ import annotations

from ..model.tree import FLOATING, Tree
from ..spatial import ZERO3, Motion, unit_motion
from .articulated import without_armature
from .kinematics import base_acceleration, joint_transform
from .ltdl import back_substitute, invert_unit, ltdl_in_situ, on_pattern, product_with_transpose
from .mechanisms.counterparts import for_mechanism, takes_mechanism
from .mechanisms.maps import spanning_configuration


def accelerations_by_factors(tree: Tree, q, v, dtau_dq, dtau_dv, M, results) -> None:
    """Write da/dq, da/dv and da/dtau = M^-1, n by n each."""
    write_solutions(tree.parent, dtau_dq, dtau_dv, M, results)
    for j in range(len(tree.parent)):
        if is_free_root(tree, j):
            write_columns_of_free_root(tree, j, j, q, v, results)


def is_free_root(tree: Tree, j: int):
    """Return whether row j begins a floating joint on the ground whose six rows are known to have no armature."""
    free = tree.kind[j] == FLOATING and tree.parent[j] < 0
    for i in range(j, tree.last[j] + 1):
        free = free and without_armature(tree, i)
    return free


def write_solutions(parent, dtau_dq, dtau_dv, M, results) -> None:
    """Write -M^-1 dtau/dq, -M^-1 dtau/dv and M^-1."""
    by_q, by_v, inverse = results
    n = len(parent)
    L = on_pattern(parent, M)
    r = ltdl_in_situ(parent, L)
    N = [[0.0] * n for _ in range(n)]
    invert_unit(parent, L, N)
    for j in range(n):
        write_solution(parent, L, r, N, dtau_dq, j, by_q)
        write_solution(parent, L, r, N, dtau_dv, j, by_v)
    product_with_transpose(parent, N, r, inverse)


def write_solution(parent, L, r, N, B, j: int, result) -> None:
    """Write column j of -M^-1 B."""
    n = len(parent)
    x = [0.0] * n
    for i in range(n):
        x[i] = 0.0 - B[i][j]
    back_substitute(parent, L, x)
    for i in range(n):
        x[i] = x[i] * r[i]
    for i in range(n):
        total = x[i]
        k = parent[i]
        while k >= 0:
            total = total + N[i][k] * x[k]
            k = parent[k]
        result[i][j] = total


def write_columns_of_free_root(tree: Tree, row: int, at: int, q, v, results) -> None:
    """Write the columns for the root's position and rotation, and linear velocity; rows begin at `row`, velocities at `at`."""
    by_q, by_v, _ = results
    fall = joint_transform(tree, row, q).rotate_to_child(base_acceleration(tree).lin)
    w = ZERO3
    for j in range(6):
        w = w + unit_motion(tree.axis[row + j], v[at + j]).ang
    for j in range(6):
        s = unit_motion(tree.axis[row + j], 1.0)
        for i in range(len(by_q)):
            by_q[i][at + j] = 0.0
            if tree.axis[row + j] >= 3:
                by_v[i][at + j] = 0.0
        for i in range(6):
            k = tree.axis[row + i]
            if k >= 3:
                by_q[at + i][at + j] = Motion(ZERO3, s.ang.cross(fall)).component(k)
                if tree.axis[row + j] >= 3:
                    by_v[at + i][at + j] = Motion(ZERO3, s.lin.cross(w)).component(k)


@for_mechanism(accelerations_by_factors)
def accelerations_of_mechanism(mech, q, v, dtau_dq, dtau_dv, M, results) -> None:
    """Write the same derivatives for the independent velocities."""
    write_solutions(mech.parent, dtau_dq, dtau_dv, M, results)
    for cluster in mech.clusters:
        j = cluster.rows[0]
        if is_free_root(mech.tree, j) and len(cluster.independent) == len(cluster.rows) == 6:
            write_columns_of_free_root(mech.tree, j, cluster.start, spanning_configuration(mech, q), v, results)


# The second derivatives of w^T M q'' from those W of w^T ID, whose derivatives by x and a depend on q'' as well:
# ID(x, q''(x, tau)) = tau, so w^T M q''_xy = -(W_xy + W_xa q''_y + (W_ya q''_x)^T).


@takes_mechanism
def hessian_by_configuration(system, by_q, inverse, W_qq, W_qa, results) -> None:
    """Write the derivatives by q and q, and by q and tau."""
    qq, q_tau = results
    n = len(system.parent)
    for j in range(n):
        for k in range(n):
            qq[j][k] = 0.0 - W_qq[j][k] - dot(W_qa[j], by_q, k) - dot(W_qa[k], by_q, j)
            q_tau[j][k] = 0.0 - dot(W_qa[j], inverse, k)


@takes_mechanism
def hessian_by_velocity(system, by_v, W_qv, W_vv, W_qa, results) -> None:
    """Write the derivatives by q and v, and by v and v."""
    qv, vv = results
    n = len(system.parent)
    for j in range(n):
        for k in range(n):
            qv[j][k] = 0.0 - W_qv[j][k] - dot(W_qa[j], by_v, k)
            vv[j][k] = 0.0 - W_vv[j][k]


def dot(row, B, k: int):
    """Return a row times column k of B."""
    total = 0.0
    for i in range(len(row)):
        total = total + row[i] * B[i][k]
    return total


@takes_mechanism
def weighted(system, inverse, weights, result) -> None:
    """Write M^-1 weights."""
    for i in range(len(system.parent)):
        total = 0.0
        for j in range(len(system.parent)):
            total = total + inverse[i][j] * weights[j]
        result[i] = total
