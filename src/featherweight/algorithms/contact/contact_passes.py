"""Equations of Newton's method for compliant contacts, by articulated bodies.

Contacts push bodies by wrenches that change with the bodies' motion, at the rate -K (6 x 6, symmetric, for each body), and
limits and dry friction of joints by forces that change at the rate -D. A step of Newton's method then solves

    (M + sum J_b^T K_b J_b + D) x = sum J_b^T w_b + f

for wrenches w on bodies and forces f at joints. K_b is added to the inertia of its body, and D to the armature of its joint, so
one pass of the articulated-body algorithm solves the equations of any number of contacts with the ground. (Sathya and
Carpentier 2024 do the same for equality constraints.) Contacts between two moving bodies couple all joints between them. Then
the matrix is written by the composite-rigid-body algorithm, which takes the same K and D.
"""

from __future__ import annotations

from ...model.tree import INNER, Placements, Tree
from ...spatial import ZERO_ARTICULATED, ArticulatedInertia, Force
from ...spatial.vectors import Mat3, Sym3, Vec3
from ..articulated import articulated_inertias, joint_forces, responses
from ..frames import carried_velocity, write_motion, write_vec3
from ..kinematics import external_forces, joint_transforms, mat3, rigid_inertia, vec3


def contact_factor(tree: Tree, bodies: Placements, rows, q, K, D, factor) -> None:
    """Write W and d of all articulated bodies (n, 7), with K (bodies, 6, 6) and D (rows,) at some rows of the tree.

    K maps the (linear, angular) motion of a body, in its axes and at its origin, to a wrench; its upper triangle is read.
    """
    stiff = with_stiffness(tree, rows, D)
    W, d = articulated_inertias(stiff, joint_transforms(tree, q), stiffness_of_rows(tree, bodies, K))
    for j in range(len(tree.parent)):
        write_vec3(W[j].ang, factor[j], 0)
        write_vec3(W[j].lin, factor[j], 3)
        factor[j][6] = d[j]


def contact_response(tree: Tree, bodies: Placements, rows, q, factor, wrench, force, results) -> None:
    """Write the motion (bodies, 6) and the joint velocities x (n,) under wrenches on bodies and joint forces (n,)."""
    motion, x = results
    n, X = len(tree.parent), joint_transforms(tree, q)
    W = [Force(Vec3(*(factor[j][i] for i in range(3))), Vec3(*(factor[j][i] for i in range(3, 6)))) for j in range(n)]
    d = [factor[j][6] for j in range(n)]
    stiff = with_stiffness(tree, rows, [d[j] for j in rows])  # only which rows have an armature matters here
    u = joint_forces(stiff, X, W, force, loads_of_rows(tree, bodies, wrench))
    a = responses(stiff, X, W, d, u, x)
    for k in range(len(bodies.row)):
        write_motion(carried_velocity(bodies, k, a), motion[k])


def contact_matrix(tree: Tree, bodies: Placements, rows, q, K, D, H) -> None:
    """Write M + sum J_b^T K_b J_b + D (n, at least n), by the composite-rigid-body algorithm; zeros above the diagonal."""
    n, X = len(tree.parent), joint_transforms(tree, q)
    stiff = with_stiffness(tree, rows, D)
    Ic = stiffness_of_rows(tree, bodies, K)
    for j in range(n):
        for k in range(len(H[j])):
            H[j][k] = 0.0
    for j in range(n - 1, -1, -1):
        p = tree.parent[j]
        if tree.last[j] == j:
            Ic[j] = Ic[j] + rigid_inertia(tree, j).articulated()
        if p >= 0:
            Ic[p] = Ic[p] + (Ic[j] if tree.kind[j] == INNER else X[j].inertia_to_parent(Ic[j]))
        F = Ic[j].column(tree.axis[j])
        H[j][j] = F.component(tree.axis[j]) + stiff.armature[j]
        i = j
        while tree.parent[i] >= 0:
            F = F if tree.kind[i] == INNER else X[i].force_to_parent(F)
            i = tree.parent[i]
            H[j][i] = F.component(tree.axis[i])


def contact_loads(tree: Tree, bodies: Placements, q, wrench, force, load) -> None:
    """Write the joint forces (n,) of wrenches on bodies, in addition to joint forces (n,)."""
    X = joint_transforms(tree, q)
    Y = loads_of_rows(tree, bodies, wrench)
    for j in range(len(tree.parent) - 1, -1, -1):
        p = tree.parent[j]
        load[j] = force[j] - Y[j].component(tree.axis[j])
        if p >= 0:
            Y[p] = Y[p] + (Y[j] if tree.kind[j] == INNER else X[j].force_to_parent(Y[j]))


# ---- loads and stiffness in the frames of rows


def loads_of_rows(tree: Tree, bodies: Placements, wrench):
    """Return wrenches against the motion of rows."""
    return external_forces(tree, bodies, [[0.0 - wrench[k][i] for i in range(6)] for k in range(len(bodies.row))])


def with_stiffness(tree: Tree, rows, D) -> Tree:
    """Return the tree with D added to the armature of some rows."""
    armature = list(tree.armature)
    for k in range(len(rows)):
        armature[rows[k]] = armature[rows[k]] + D[k]
    return tree._replace(armature=armature)


def stiffness_of_rows(tree: Tree, bodies: Placements, K):
    """Return K of each row of the tree, in its frame."""
    stiffness = [ZERO_ARTICULATED] * len(tree.parent)
    for k in range(len(bodies.row)):
        k00, k01, k02, k03, k04, k05 = (K[k][0][j] for j in range(6))
        k11, k12, k13, k14, k15 = (K[k][1][j] for j in range(1, 6))
        k22, k23, k24, k25 = (K[k][2][j] for j in range(2, 6))
        k33, k34, k35, k44, k45, k55 = K[k][3][3], K[k][3][4], K[k][3][5], K[k][4][4], K[k][4][5], K[k][5][5]
        cross = Mat3(Vec3(k03, k13, k23), Vec3(k04, k14, k24), Vec3(k05, k15, k25))  # from linear motion to torque
        of_body = ArticulatedInertia(Sym3(k33, k34, k35, k44, k45, k55), cross, Sym3(k00, k01, k02, k11, k12, k22))
        stiffness[bodies.row[k]] = of_body.rotate(mat3(bodies.rotation, k)).translate(vec3(bodies.translation, k))
    return stiffness
