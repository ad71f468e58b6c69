"""Equations of Newton's method for compliant contacts, by articulated bodies.

Contacts push bodies by wrenches that change with the bodies' motion, at the rate -K (6 x 6, symmetric, for each body), and
limits and dry friction of joints by forces that change at the rate -D. A step of Newton's method then solves

    (M + sum J_b^T K_b J_b + D) x = sum J_b^T w_b + f

for wrenches w on bodies and forces f at joints. K_b is added to the inertia of its body, and D to the armature of its joint, so
one pass of the articulated-body algorithm solves the equations of any number of contacts with the ground. (Sathya and
Carpentier 2024 do the same for equality constraints.)
"""

from __future__ import annotations

from ...model.tree import INNER, Placements, Tree
from ...spatial import ZERO_ARTICULATED, ZERO_FORCE, ArticulatedInertia, Force
from ...spatial.vectors import Mat3, Sym3, Vec3
from ..articulated import apparent_inertia, gain, joint_forces, responses
from ..frames import write_vec3
from ..kinematics import joint_transforms, mat3, rigid_inertia, vec3


def contact_factor(tree: Tree, bodies: Placements, rows, q, K, D, factor) -> None:
    """Write W and d of all articulated bodies (n, 7), with K (bodies, 6, 6) and D (rows,) at some rows of the tree.

    K maps the (linear, angular) motion of a body, in its axes and at its origin, to a wrench; its upper triangle is read.
    """
    stiff = with_stiffness(tree, rows, D)
    W, d = stiff_inertias(stiff, joint_transforms(tree, q), stiffness_of_rows(tree, bodies, K))
    for j in range(len(tree.parent)):
        write_vec3(W[j].ang, factor[j], 0)
        write_vec3(W[j].lin, factor[j], 3)
        factor[j][6] = d[j]


def contact_response(tree: Tree, bodies: Placements, rows, q, factor, wrench, force, result) -> None:
    """Write the motion (bodies, 6) and the speeds of `rows` under wrenches on bodies and forces at rows, by the factor."""
    motion, speed = result
    n, X = len(tree.parent), joint_transforms(tree, q)
    W = [Force(Vec3(*(factor[j][i] for i in range(3))), Vec3(*(factor[j][i] for i in range(3, 6)))) for j in range(n)]
    stiff = with_stiffness(tree, rows, [factor[j][6] for j in rows])  # only which rows have an armature matters here
    tau, Y, x = [0.0] * n, [ZERO_FORCE] * n, [0.0] * n
    for k in range(len(rows)):
        tau[rows[k]] = force[k]
    for k in range(len(bodies.row)):
        R, p = mat3(bodies.rotation, k), vec3(bodies.translation, k)
        lin, ang = (R @ Vec3(*(0.0 - wrench[k][i] for i in part)) for part in (range(3), range(3, 6)))
        Y[bodies.row[k]] = Force(ang + p.cross(lin), lin)
    u = joint_forces(stiff, X, W, tau, Y)
    a = responses(stiff, X, W, [factor[j][6] for j in range(n)], u, x)
    for k in range(len(rows)):
        speed[k] = x[rows[k]]
    for k in range(len(bodies.row)):
        back, p, m = mat3(bodies.rotation, k).transpose(), vec3(bodies.translation, k), a[bodies.row[k]]
        write_vec3(back @ (m.lin + m.ang.cross(p)), motion[k], 0)
        write_vec3(back @ m.ang, motion[k], 3)


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


def stiff_inertias(tree: Tree, X, stiffness):
    """Return W and d of `articulated` for bodies that also resist by their stiffness."""
    n = len(tree.parent)
    IA, W, d = list(stiffness), [ZERO_FORCE] * n, [0.0] * n
    for j in range(n - 1, -1, -1):
        p = tree.parent[j]
        if tree.last[j] == j:
            IA[j] = IA[j] + rigid_inertia(tree, j).articulated()
        U = IA[j].column(tree.axis[j])
        d[j] = 1.0 / (U.component(tree.axis[j]) + tree.armature[j])
        W[j] = gain(tree, U, d[j], j)
        if p >= 0:
            Ia = apparent_inertia(tree, IA[j], U, W[j], j)
            IA[p] = IA[p] + (Ia if tree.kind[j] == INNER else X[j].inertia_to_parent(Ia))
    return W, d
