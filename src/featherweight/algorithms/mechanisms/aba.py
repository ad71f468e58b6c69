"""Forward dynamics of mechanisms with loops: the cluster-based articulated-body algorithm (C-ABA, algorithm 1).

One body, the output body o, carries all bodies of a cluster. With the composite inertias of the cluster's bodies, including
the articulated inertias of the clusters on them, and the forces F that unit accelerations of its joints need at o,

    D = G^T H G,   U = F G,   u = tau - G^T (S^T p),   IA_o += I - U D^-1 U^T,   pA_o += p + U D^-1 u
    y'' = D^-1 (u - U^T a_o),   q'' = G y'' + g

where H, I and p are those of the cluster alone, and p includes the forces due to velocities and g. A joint outside all loops
is a cluster by itself, for which this is the step of the articulated-body algorithm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.tree import INNER, Placements, Tree
from ...spatial import ZERO_ARTICULATED, ZERO_FORCE, ZERO_MOTION, ArticulatedInertia, Force, Motion, unit_motion
from .. import aba as tree_aba
from ..articulated import apparent_inertia, gain, joint_acceleration, with_joint
from ..contact.operational_space.dense_factors import factorize, solve
from ..kinematics import (
    angular_velocities,
    base_acceleration,
    external_forces,
    joint_transforms,
    rigid_inertia,
    velocity_products,
)
from .articulated import apparent_cluster_inertia
from .cluster_tree import ClusterTree, unconstrained
from .counterparts import for_mechanism
from .crba import cluster_force, projected_block, unit_forces
from .maps import Map, dot, maps, spanning_configuration, spanning_velocity


class ClusterPass(NamedTuple):
    """Quantities of each row of the tree that pass 2 reads and computes."""

    X: Any
    c: Any  # velocity-product accelerations
    IA: list[ArticulatedInertia]
    pA: list[Force]
    W: list[Force]
    d: list[Any]
    u: list[Any]


class ClusterSolution(NamedTuple):
    """Quantities of a cluster that pass 3 needs: the factors of D = C diag(1 / reciprocal) C^T, U and u."""

    C: Any
    reciprocal: Any
    U: list[Force]
    u: list[Any]


class InwardPass(NamedTuple):
    """The results of passes 1 and 2, from which pass 3 continues outwards."""

    maps: list[Map | None]
    w: Any  # angular velocities of the rows
    v: Any  # velocities of all joints
    rows: ClusterPass
    solved: list[ClusterSolution | None]  # None for clusters whose rows move independently


@for_mechanism(tree_aba.aba)
def aba(mech: ClusterTree, bodies: Placements, q, v, tau, forces, result) -> None:
    """Write the independent accelerations under the independent joint forces `tau` and the `forces` on the bodies."""
    accelerations(mech, inward_pass(mech, q, v, tau, external_forces(mech.tree, bodies, forces)), result)


def inward_pass(mech: ClusterTree, q, v, tau, external) -> InwardPass:
    """Run passes 1 and 2, with one external Force for each row of the tree."""
    tree, n = mech.tree, len(mech.tree.parent)
    qs = spanning_configuration(mech, q)
    X = joint_transforms(tree, qs)
    M = maps(mech, X, qs, v)
    vs = spanning_velocity(mech, M, v)
    w, carried = angular_velocities(tree, X, vs)
    c = velocity_products(tree, X, w, carried, vs)
    A = ClusterPass(X, c, [ZERO_ARTICULATED] * n, [ZERO_FORCE] * n, [ZERO_FORCE] * n, [0.0] * n, [0.0] * n)
    solved: list[ClusterSolution | None] = [None] * len(mech.clusters)
    for j in range(n):
        if tree.last[j] == j:
            I = rigid_inertia(tree, j)
            A.IA[j] = I.articulated()
            A.pA[j] = I.gyroscopic(w[j]) - external[j]
    for number in range(len(mech.clusters) - 1, -1, -1):
        cluster = mech.clusters[number]
        if unconstrained(cluster):
            for k in range(len(cluster.rows) - 1, -1, -1):
                inward_row(tree, A, cluster.rows[k], tau[cluster.start + k])
        else:
            solved[number] = inward_cluster(mech, A, number, M[number], tau)
    return InwardPass(M, w, vs, A, solved)


def accelerations(mech: ClusterTree, inward: InwardPass, result) -> list[Motion]:
    """Run pass 3: write the independent accelerations; return those of the rows. The ground accelerates upwards."""
    tree, A = mech.tree, inward.rows
    X, c = A.X, A.c
    a = [ZERO_MOTION] * len(tree.parent)
    for number, cluster in enumerate(mech.clusters):
        if unconstrained(cluster):
            for k, j in enumerate(cluster.rows):
                arriving = arriving_acceleration(tree, X, c, a, j)
                x = A.d[j] * A.u[j]
                result[cluster.start + k] = joint_acceleration(tree, j, A.W[j], x, arriving)
                a[j] = with_joint(tree, j, A.W[j], x, arriving)
        else:
            outward_cluster(mech, number, inward.maps[number], X, c, inward.solved[number], a, result)
    return a


def inward_row(tree: Tree, A: ClusterPass, j: int, tau) -> None:
    """Run one row of pass 2 of the articulated-body algorithm.

    aba.py has no such function, because it would slow rolled loops down.
    """
    p, k = tree.parent[j], tree.axis[j]
    U = A.IA[j].column(k)
    A.d[j] = 1.0 / (U.component(k) + tree.armature[j])
    A.W[j] = gain(tree, U, A.d[j], j)
    A.u[j] = tau - A.pA[j].component(k)
    if p < 0:
        return
    Ia = apparent_inertia(tree, A.IA[j], U, A.W[j], j)
    pa = A.pA[j] + A.u[j] * A.W[j]
    if tree.first[j] == j:
        pa = pa + Ia @ A.c[j]
        A.IA[p] = A.IA[p] + A.X[j].inertia_to_parent(Ia)
        A.pA[p] = A.pA[p] + A.X[j].force_to_parent(pa)
    else:
        A.IA[p] = A.IA[p] + Ia
        A.pA[p] = A.pA[p] + pa


def inward_cluster(mech: ClusterTree, A: ClusterPass, number: int, M, tau) -> ClusterSolution:
    """Run a cluster's part of pass 2: add to the output body, and return the quantities for pass 3."""
    tree, cluster = mech.tree, mech.clusters[number]
    X, c, IA, pA = A.X, A.c, A.IA, A.pA
    m, o = len(cluster.independent), cluster.output
    zeta: dict[int, Motion] = {}
    resting = ZERO_MOTION if o >= 0 else base_acceleration(tree)
    for j in cluster.rows:  # accelerations relative to the output body, without y''
        arriving = zeta.get(tree.parent[j], resting)
        arriving = arriving if tree.kind[j] == INNER else X[j] @ arriving + c[j]
        zeta[j] = arriving + unit_motion(tree.axis[j], M.g[j])
    biases = {}
    sums = {j: (IA[j], pA[j] + IA[j] @ zeta[j] if tree.last[j] == j else pA[j]) for j in cluster.rows}
    top = (ZERO_ARTICULATED, ZERO_FORCE)
    composite = {}
    for j in reversed(cluster.rows):
        I, f = sums[j]
        composite[j] = I
        biases[j] = f.component(tree.axis[j]) + tree.armature[j] * M.g[j]
        p = tree.parent[j]
        if p == o and o < 0:
            continue
        moved = (I, f) if tree.kind[j] == INNER else (X[j].inertia_to_parent(I), X[j].force_to_parent(f))
        if p == o:
            top = (top[0] + moved[0], top[1] + moved[1])
        else:
            sums[p] = (sums[p][0] + moved[0], sums[p][1] + moved[1])
    F, inside = unit_forces(mech, cluster, X, composite)
    C, reciprocal = factorize(m, projected_block(cluster, M, inside))
    u = [tau[cluster.start + k] - dot([M.G[r][k] for r in cluster.rows], [biases[r] for r in cluster.rows]) for k in range(m)]
    U = [cluster_force(M, cluster, F, k) for k in range(m)]
    y = solve(m, C, reciprocal, u)
    if o >= 0:
        IA[o] = IA[o] + apparent_cluster_inertia(m, top[0], C, reciprocal, U)
        pA[o] = pA[o] + top[1]
        for k in range(m):
            pA[o] = pA[o] + y[k] * U[k]
    return ClusterSolution(C, reciprocal, U, u)


def arriving_acceleration(tree, X, c, a, j: int):
    """Return the acceleration of row j without that of its own joint."""
    p = tree.parent[j]
    if tree.kind[j] == INNER:
        return a[p]
    return X[j] @ (a[p] if p >= 0 else base_acceleration(tree)) + c[j]


def outward_cluster(mech: ClusterTree, number: int, M, X, c, solved, a, result) -> None:
    """Run a cluster's part of pass 3."""
    tree, cluster = mech.tree, mech.clusters[number]
    u = solved.u
    m = len(cluster.independent)
    if cluster.output >= 0:
        u = [u[k] - solved.U[k].power(a[cluster.output]) for k in range(m)]
    y = solve(m, solved.C, solved.reciprocal, u)
    for k in range(m):
        result[cluster.start + k] = y[k]
    for j in cluster.rows:
        a[j] = arriving_acceleration(tree, X, c, a, j) + unit_motion(tree.axis[j], dot(M.G[j], y) + M.g[j])
