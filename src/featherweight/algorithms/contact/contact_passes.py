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
from ...spatial import ZERO_ARTICULATED, ZERO_FORCE, ArticulatedInertia, Force, unit_motion
from ...spatial.vectors import Mat3, Sym3, Vec3
from ..articulated import articulated_inertias, joint_forces, responses
from ..frames import velocity_of_frame, world_poses, write_motion, write_vec3
from ..kinematics import clear, external_forces, joint_transforms, mat3, rigid_inertia, vec3


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
    W = [ZERO_FORCE] * n
    d, some = [0.0] * n, [0.0] * len(rows)
    for j in range(n):
        W[j] = Force(Vec3(factor[j][0], factor[j][1], factor[j][2]), Vec3(factor[j][3], factor[j][4], factor[j][5]))
        d[j] = factor[j][6]
    for k in range(len(rows)):
        some[k] = d[rows[k]]  # only which rows have an armature matters here
    stiff = with_stiffness(tree, rows, some)
    u = joint_forces(stiff, X, W, force, loads_of_rows(tree, bodies, wrench))
    a = responses(stiff, X, W, d, u, x)
    for k in range(len(bodies.row)):
        write_motion(velocity_of_frame(bodies, k, a), motion[k])


def contact_matrix(tree: Tree, bodies: Placements, rows, q, K, D, H) -> None:
    """Write M + sum J_b^T K_b J_b + D (n, at least n), by the composite-rigid-body algorithm; zeros above the diagonal."""
    n, X = len(tree.parent), joint_transforms(tree, q)
    stiff = with_stiffness(tree, rows, D)
    Ic = stiffness_of_rows(tree, bodies, K)
    clear(H)
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


def contact_axes(tree: Tree, q, axes) -> None:
    """Write the linear and angular motions (n, 3) of joints at the origins of their frames, and these (n, 3), in the world."""
    linear, angular, place = axes
    R, o = world_poses(tree, joint_transforms(tree, q))
    for j in range(len(tree.parent)):
        s = unit_motion(tree.axis[j], 1.0)
        write_vec3(R[j] @ s.lin, linear[j], 0)
        write_vec3(R[j] @ s.ang, angular[j], 0)
        write_vec3(o[j], place[j], 0)


# ---- loads and stiffness in the frames of rows


def loads_of_rows(tree: Tree, bodies: Placements, wrench):
    """Return wrenches against the motion of rows."""
    Y = external_forces(tree, bodies, wrench)
    for k in range(len(bodies.row)):
        Y[bodies.row[k]] = ZERO_FORCE - Y[bodies.row[k]]
    return Y


def with_stiffness(tree: Tree, rows, D) -> Tree:
    """Return the tree with D added to the armature of some rows."""
    armature = [0.0] * len(tree.parent)
    for j in range(len(tree.parent)):
        armature[j] = tree.armature[j]
    for k in range(len(rows)):
        armature[rows[k]] = armature[rows[k]] + D[k]
    return tree._replace(armature=armature)


def stiffness_of_rows(tree: Tree, bodies: Placements, K):
    """Return K of each row of the tree, in its frame."""
    stiffness = [ZERO_ARTICULATED] * len(tree.parent)
    for k in range(len(bodies.row)):
        u, v, w, x, y, z = K[k][0], K[k][1], K[k][2], K[k][3], K[k][4], K[k][5]
        cross = Mat3(Vec3(u[3], v[3], w[3]), Vec3(u[4], v[4], w[4]), Vec3(u[5], v[5], w[5]))  # from linear motion to torque
        linear, angular = Sym3(u[0], u[1], u[2], v[1], v[2], w[2]), Sym3(x[3], x[4], x[5], y[4], y[5], z[5])
        of_body = ArticulatedInertia(angular, cross, linear)
        stiffness[bodies.row[k]] = of_body.rotate(mat3(bodies.rotation, k)).translate(vec3(bodies.translation, k))
    return stiffness
