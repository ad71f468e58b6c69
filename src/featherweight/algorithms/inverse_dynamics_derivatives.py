"""Derivatives of inverse dynamics by configuration, velocity and acceleration, with respect to the rows' own motions.

The equations follow Carpentier and Mansard (RSS 2018) and Singh, Russell and Wensing (RA-L 2022, equations 25 to 32). When
joint j moves, all bodies that it carries move along, so only the motion of the parent changes as seen from there. With the
parent's velocity v_p and acceleration a_p (including gravity) at the joint, and f the forces of all bodies that the joint
carries,

    psi1 = v_p x S_j,   psi2 = a_p x S_j + v_p x psi1,   Sv = psi1 + v_j x S_j

    dtau_i/dq_j = S_i^T (Ic_j psi2 + N_j psi1 + S_j x* f_j)      dtau_i/dv_j = S_i^T (Ic_j Sv + N_j S_j)      i above j
    dtau_j/dq_i = (Ic_j S_j)^T psi2_i + (N_j^T S_j)^T psi1_i     dtau_j/dv_i = (Ic_j S_j)^T Sv_i + (N_j^T S_j)^T S_i

Ic are composite inertias. N_j x are the velocity-dependent forces when all bodies that joint j carries have the additional
velocity x and the acceleration x x v_i: with points that accelerate by 2 x x (their velocity), N_j is a map of 3 + 9 numbers
of the angular part of x alone (`spatial.Coriolis`). As in kinematics.py, velocities are taken in inertial frames that move
with points: here with the parent's point at the joint, so that v_p has no linear part.
"""

from __future__ import annotations

from ..model.tree import INNER, PRISMATIC, REVOLUTE, Placements, Tree
from ..spatial import (
    IDENTITY3,
    ZERO3,
    ZERO_CORIOLIS,
    ZERO_FORCE,
    ZERO_MOTION,
    ZERO_RIGID,
    Motion,
    Vec3,
    acceleration_field,
    coriolis_of_turning,
    unit_motion,
)
from .kinematics import (
    angular_velocities,
    base_acceleration,
    clear,
    external_forces,
    joint_products,
    joint_transforms,
    rigid_inertia,
)


def rnea_derivatives(tree: Tree, bodies: Placements, q, v, qdd, forces, results) -> None:
    """Write dtau/dq, dtau/dv and dtau/da = M, n by n each."""
    write_derivatives(tree, q, v, qdd, external_forces(tree, bodies, forces), results)


def write_derivatives(tree: Tree, q, v, qdd, external, results) -> None:
    """Write the derivatives under `external`, one Force for each row."""
    dq, dv, M = results
    n = len(tree.parent)
    clear(dq)
    clear(dv)
    clear(M)
    X = joint_transforms(tree, q)
    w, w_parent = angular_velocities(tree, X, v)
    slip = own_linear_velocities(tree, v)
    f, psi1, psi2, Sv = motions(tree, X, w, w_parent, v, qdd, slip)
    u = point_velocities(tree, X, w, slip)
    Ic, N = composites(tree, X, w, slip, u)
    for j in range(n - 1, -1, -1):
        p = tree.parent[j]
        f[j] = f[j] - external[j]
        if p >= 0:
            f[p] = f[p] + (f[j] if tree.kind[j] == INNER else X[j].force_to_parent(f[j]))
    for j in range(n):
        b = tree.last[j]
        s = unit_motion(tree.axis[j], 1.0)
        row = Ic[b].column(tree.axis[j])
        bend = N[b].of_component(tree.axis[j])
        by_q = Ic[b] @ psi2[j] + N[b] @ (psi1[j] + psi1[j])
        by_v = Ic[b] @ Sv[j] + N[b] @ (s.ang + s.ang)
        for i in range(tree.first[j], b + 1):
            k = tree.axis[i]
            dq[i][j] = by_q.component(k)
            dv[i][j] = by_v.component(k)
            M[i][j] = row.component(k)
        M[j][j] = M[j][j] + tree.armature[j]
        by_q = by_q + s.cross_force(f[b])
        at = tree.first[j]
        while tree.parent[at] >= 0:
            by_q = X[at].force_to_parent(by_q)
            by_v = X[at].force_to_parent(by_v)
            row = X[at].force_to_parent(row)
            bend = X[at].rotate_to_parent(bend) + u[at].cross(row.lin)
            last = tree.parent[at]
            at = tree.first[last]
            for i in range(at, last + 1):
                k = tree.axis[i]
                si = unit_motion(k, 1.0)
                dq[i][j] = by_q.component(k)
                dv[i][j] = by_v.component(k)
                M[i][j] = row.component(k)
                M[j][i] = M[i][j]
                dq[j][i] = row.power(psi2[i]) + bend.dot(psi1[i] + psi1[i])
                dv[j][i] = row.power(Sv[i]) + bend.dot(si.ang + si.ang)


def own_linear_velocities(tree: Tree, v):
    """Return, at the first row of each joint, the velocity of its body's origin due to the joint; zero at other rows."""
    slip = [ZERO3] * len(tree.parent)
    for j in range(len(tree.parent)):
        slip[tree.first[j]] = slip[tree.first[j]] + unit_motion(tree.axis[j], v[j]).lin
    return slip


def motions(tree: Tree, X, w, w_parent, v, qdd, slip):
    """Return the force of each body, and psi1 (angular part), psi2 and Sv of each row, in the frame of its joint's body."""
    n = len(tree.parent)
    c = joint_products(tree, w, w_parent, v)
    alpha = [ZERO3] * n
    o = [ZERO3] * n
    B = [IDENTITY3] * n
    f = [ZERO_FORCE] * n
    psi1 = [ZERO3] * n
    psi2 = [ZERO_MOTION] * n
    Sv = [ZERO_MOTION] * n
    for first in range(n):
        if tree.first[first] != first:
            continue
        p = tree.parent[first]
        b = tree.last[first]
        turning = ZERO3  # the parent's angular acceleration
        at = X[first].rotate_to_child(base_acceleration(tree).lin)  # the acceleration of the parent's point
        if p >= 0:
            turning = X[first].rotate_to_child(alpha[p])
            away = X[first].p if b > first else X[first].base
            at = X[first].rotate_to_child(o[p] + B[p] @ away)
        own = c[first]
        for j in range(first, b + 1):
            own = own + unit_motion(tree.axis[j], qdd[j])
        alpha[b] = turning + own.ang
        B[b] = acceleration_field(w[b], alpha[b])
        if p >= 0 and b == first:
            at = at + X[first].slide * Vec3(B[b].x.z, B[b].y.z, B[b].z.z)
        o[b] = at + own.lin
        f[b] = rigid_inertia(tree, b).rate(B[b], o[b])
        together = tree.kind[first] == REVOLUTE or tree.kind[first] == PRISMATIC
        field = (
            B[b] if together else acceleration_field(w_parent[first], turning)
        )  # both bodies accelerate equally along the axis
        both = w[b] + w_parent[first]
        for j in range(first, b + 1):
            s = unit_motion(tree.axis[j], 1.0)
            psi1[j] = w_parent[first].cross(s.ang)
            psi2[j] = Motion(field @ s.ang, field @ s.lin + at.cross(s.ang))
            Sv[j] = Motion(both.cross(s.ang), both.cross(s.lin) + slip[first].cross(s.ang))
    return f, psi1, psi2, Sv


def point_velocities(tree: Tree, X, w, slip):
    """Return, at first rows, the velocity of the parent's point at the joint, in the frame of the parent's joint."""
    u = [ZERO3] * len(tree.parent)
    for j in range(len(tree.parent)):
        p = tree.parent[j]
        if p >= 0 and tree.first[j] == j:
            u[j] = slip[tree.first[p]] + w[p].cross(X[j].p)
    return u


def composites(tree: Tree, X, w, slip, u):
    """Return Ic and N of the header at the last row of each joint."""
    n = len(tree.parent)
    Ic = [ZERO_RIGID] * n
    N = [ZERO_CORIOLIS] * n
    for j in range(n - 1, -1, -1):
        if tree.last[j] == j:
            first = tree.first[j]
            I = rigid_inertia(tree, j)
            Ic[j] = Ic[j] + I
            N[j] = N[j] + coriolis_of_turning(I, w[j]).sped(I, slip[first])
            p = tree.parent[first]
            if p >= 0:
                I = X[first].inertia_to_parent(Ic[j])
                Ic[p] = Ic[p] + I
                N[p] = N[p] + X[first].coriolis_to_parent(N[j], I, u[first])
    return Ic, N
