"""Derivatives of inverse dynamics with all spatial vectors in one frame: IDSVA (Singh, Russell and Wensing, RA-L 2022).

The equations are those of inverse_dynamics_derivatives.py in the axes and about the origin of the root's body, so that nothing
is transformed on the way to the root and an entry is a scalar product. This is more expensive for each body and cheaper for
each pair of bodies. About one origin, the inertias of small bodies are added to their masses times squared distances; a few
digits are lost if the distances are large.
"""

from __future__ import annotations

from ..model.tree import INNER, Placements, Tree
from ..spatial import (
    IDENTITY3,
    ZERO3,
    ZERO_CORIOLIS,
    ZERO_FORCE,
    ZERO_MOTION,
    ZERO_RIGID,
    Force,
    Motion,
    coriolis_of_turning,
    unit_motion,
)
from .kinematics import base_acceleration, clear, external_forces, joint_transforms, rigid_inertia


def idsva(tree: Tree, bodies: Placements, q, v, qdd, forces, results) -> None:
    """Write dtau/dq, dtau/dv and dtau/da = M, n by n each."""
    dq, dv, M = results
    n = len(tree.parent)
    X = joint_transforms(tree, q)
    R, o, S = axes_in_root(tree, X)
    u, a, psi1, psi2, Sv = motions_in_root(tree, X, S, v, qdd)
    Ic, N, f = composites_in_root(tree, R, o, u, a, external_forces(tree, bodies, forces))
    clear(dq)
    clear(dv)
    clear(M)
    for j in range(n):
        b = tree.last[j]
        row = Ic[b] @ S[j]
        bend = N[b].onto(S[j])
        by_q = Ic[b] @ psi2[j] + N[b] @ (psi1[j] + psi1[j])
        by_v = Ic[b] @ Sv[j] + N[b] @ (S[j].ang + S[j].ang)
        for i in range(tree.first[j], b + 1):
            dq[i][j] = by_q.power(S[i])
            dv[i][j] = by_v.power(S[i])
            M[i][j] = row.power(S[i])
        M[j][j] = M[j][j] + tree.armature[j]
        by_q = by_q + S[j].cross_force(f[b])
        i = tree.parent[tree.first[j]]
        while i >= 0:
            dq[i][j] = by_q.power(S[i])
            dv[i][j] = by_v.power(S[i])
            M[i][j] = row.power(S[i])
            M[j][i] = M[i][j]
            dq[j][i] = row.power(psi2[i]) + bend.dot(psi1[i] + psi1[i])
            dv[j][i] = row.power(Sv[i]) + bend.dot(S[i].ang + S[i].ang)
            i = tree.parent[i]


def axes_in_root(tree: Tree, X):
    """Return each row's orientation, origin and motion axis, in the frame of its root's body."""
    n = len(tree.parent)
    R = [IDENTITY3] * n
    o = [ZERO3] * n
    S = [ZERO_MOTION] * n
    for j in range(n):
        p = tree.parent[j]
        if tree.kind[j] == INNER:
            R[j] = R[p]
            o[j] = o[p]
        elif p >= 0:
            R[j] = R[p].product(X[j].orientation())
            o[j] = o[p] + R[p] @ X[j].p
        s = unit_motion(tree.axis[j], 1.0)
        ang = R[j] @ s.ang
        S[j] = Motion(ang, R[j] @ s.lin + o[j].cross(ang))
    return R, o, S


def motions_in_root(tree: Tree, X, S, v, qdd):
    """Return velocities and accelerations of bodies at the last rows of joints, and psi1, psi2 and Sv of rows.

    psi1 is given by its angular part.
    """
    n = len(tree.parent)
    u = [ZERO_MOTION] * n
    a = [ZERO_MOTION] * n
    psi1 = [ZERO3] * n
    psi2 = [ZERO_MOTION] * n
    Sv = [ZERO_MOTION] * n
    for first in range(n):
        if tree.first[first] != first:
            continue
        p = tree.parent[first]
        b = tree.last[first]
        before = ZERO_MOTION
        pull = Motion(ZERO3, X[first].rotate_to_child(base_acceleration(tree).lin))
        if p >= 0:
            before = u[p]
            pull = a[p]
        u[b] = before
        for j in range(first, b + 1):
            u[b] = u[b] + v[j] * S[j]
        a[b] = pull
        for j in range(first, b + 1):
            turned = before.cross(S[j])
            psi1[j] = turned.ang
            psi2[j] = pull.cross(S[j]) + before.cross(turned)
            moved = u[b].cross(S[j])
            Sv[j] = turned + moved
            a[b] = a[b] + qdd[j] * S[j] + v[j] * moved
    return u, a, psi1, psi2, Sv


def composites_in_root(tree: Tree, R, o, u, a, external):
    """Return Ic, N and f of all bodies that a joint carries, at its last row."""
    n = len(tree.parent)
    Ic = [ZERO_RIGID] * n
    N = [ZERO_CORIOLIS] * n
    f = [ZERO_FORCE] * n
    for b in range(n - 1, -1, -1):
        if tree.last[b] == b:
            I = rigid_inertia(tree, b).rotate(R[b]).translate(o[b])
            applied = Force(R[b] @ external[b].ang, R[b] @ external[b].lin).translate(o[b])
            Ic[b] = Ic[b] + I
            N[b] = N[b] + coriolis_of_turning(I, u[b].ang).sped(I, u[b].lin)
            f[b] = f[b] + I @ a[b] + u[b].cross_force(I @ u[b]) - applied
            p = tree.parent[tree.first[b]]
            if p >= 0:
                Ic[p] = Ic[p] + Ic[b]
                N[p] = N[p] + N[b]
                f[p] = f[p] + f[b]
    return Ic, N, f
