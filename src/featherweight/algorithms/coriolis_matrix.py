"""The Coriolis matrix C: C q' are the velocity-dependent forces, and M' = C + C^T (Echeandia and Wensing 2021).

    C_ij = S_i^T (Ic_j S_j' + N_j w_j)        C_ji = (Ic_j S_j)^T S_i' + (N_j^T S_j)^T w_i        i above j

with S_j' = v_j x S_j. Particles m at r have no Coriolis forces in coordinates r, so their C is the sum of m dr/dq_i .
(dr/dq_j)'. Of their B_j S_j (equation 24), N_j x = sum of [r x; 1] m x x r' (`spatial.Coriolis`) remains, which the angular
part of S_j determines. With quasi-velocities, of free-flyers and balls, the axes S_j move with the body. With rates of
coordinates as velocities, C is the matrix of Christoffel symbols. Velocities are relative to points of parents, as in
inverse_dynamics_derivatives.py; the constant inertia of rotors adds nothing.
"""

from __future__ import annotations

from ..model.tree import Tree
from ..spatial import ZERO_FORCE, ZERO_MOTION, Motion, unit_motion
from .idsva import axes_in_root, composites_in_root
from .inverse_dynamics_derivatives import composites, own_linear_velocities, point_velocities
from .kinematics import angular_velocities, clear, joint_transforms


def coriolis_matrix(tree: Tree, q, v, C) -> None:
    """Write C, n by n."""
    n = len(tree.parent)
    clear(C)
    X = joint_transforms(tree, q)
    w, _ = angular_velocities(tree, X, v)
    slip = own_linear_velocities(tree, v)
    u = point_velocities(tree, X, w, slip)
    Ic, N = composites(tree, X, w, slip, u)
    turned = [ZERO_MOTION] * n
    for j in range(n):
        s = unit_motion(tree.axis[j], 1.0)
        turning = w[tree.last[j]]
        turned[j] = Motion(turning.cross(s.ang), turning.cross(s.lin) + slip[tree.first[j]].cross(s.ang))
    for j in range(n):
        b = tree.last[j]
        column = Ic[b] @ turned[j] + N[b] @ unit_motion(tree.axis[j], 1.0).ang
        row = Ic[b].column(tree.axis[j])
        bend = N[b].of_component(tree.axis[j])
        at = tree.first[j]
        for i in range(at, b + 1):
            C[i][j] = column.component(tree.axis[i])
        while tree.parent[at] >= 0:
            column = X[at].force_to_parent(column)
            row = X[at].force_to_parent(row)
            bend = X[at].rotate_to_parent(bend) + u[at].cross(row.lin)
            last = tree.parent[at]
            at = tree.first[last]
            for i in range(at, last + 1):
                C[i][j] = column.component(tree.axis[i])
                C[j][i] = row.power(turned[i]) + bend.dot(unit_motion(tree.axis[i], 1.0).ang)


def coriolis_matrix_in_root(tree: Tree, q, v, C) -> None:
    """Write C with all spatial vectors in the axes and about the origin of the root's body, as in idsva.py."""
    n = len(tree.parent)
    clear(C)
    R, o, S = axes_in_root(tree, joint_transforms(tree, q))
    u = [ZERO_MOTION] * n
    turned = [ZERO_MOTION] * n
    for j in range(n):
        p = tree.parent[j]
        u[j] = v[j] * S[j] if p < 0 else u[p] + v[j] * S[j]
    for j in range(n):
        turned[j] = u[tree.last[j]].cross(S[j])
    Ic, N, _ = composites_in_root(tree, R, o, u, [ZERO_MOTION] * n, [ZERO_FORCE] * n)
    for j in range(n):
        b = tree.last[j]
        column = Ic[b] @ turned[j] + N[b] @ S[j].ang
        row = Ic[b] @ S[j]
        bend = N[b].onto(S[j])
        for i in range(tree.first[j], b + 1):
            C[i][j] = column.power(S[i])
        i = tree.parent[tree.first[j]]
        while i >= 0:
            C[i][j] = column.power(S[i])
            C[j][i] = row.power(turned[i]) + bend.dot(S[i].ang)
            i = tree.parent[i]
