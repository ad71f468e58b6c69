"""Forward dynamics of mechanisms with loops: the cluster-based articulated-body algorithm (C-ABA, algorithm 1).

The handles o carry all bodies of a cluster. With the composite inertias of the cluster's bodies, including the articulated
inertias of the clusters on them, and the forces F that unit accelerations of its joints need at the handles,

    D = G^T H G,   U = F G,   u = tau - G^T (S^T p),   IA_o += I - U D^-1 U^T,   pA_o += p + U D^-1 u
    y'' = D^-1 (u - U^T a_o),   q'' = G y'' + g

where H, I and p are those of the cluster alone, and p includes the forces due to velocities and g. With h handles, IA_o is
6 h by 6 h. A joint outside all loops is a cluster by itself, for which this is the step of the articulated-body algorithm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.tree import INNER, Placements, Tree
from ...spatial import ZERO_ARTICULATED, ZERO_FORCE, ZERO_MOTION, ArticulatedInertia, Force, Motion, unit_motion
from .. import aba as tree_aba
from ..articulated import apparent_inertia, gain, joint_acceleration, with_joint
from ..contact.operational_space.dense_factors import dot, factorize, solve
from ..kinematics import (
    base_acceleration,
    external_forces,
    joint_transforms,
    rigid_inertia,
    velocity_products,
)
from .articulated import (
    Dyad,
    SharedInertia,
    apparent_cluster_inertia,
    lower_solved,
    passed_dyads,
    powers,
    without_dyads,
    wrenches_on_handles,
)
from .cluster_tree import Cluster, ClusterTree, unconstrained
from .counterparts import for_mechanism
from .crba import projected_block, unit_forces
from .maps import Map, maps, spanning_configuration, spanning_velocity


class ClusterPass(NamedTuple):
    """Quantities of each row of the tree that pass 2 reads and computes."""

    X: Any
    c: Any  # velocity-product accelerations
    IA: list[ArticulatedInertia]
    pA: list[Force]
    W: list[Force]
    d: list[Any]
    u: list[Any]
    shared: SharedInertia


class ClusterSolution(NamedTuple):
    """Quantities of a cluster that pass 3 needs: the factors of D = C diag(1 / reciprocal) C^T, U and u."""

    C: Any
    reciprocal: Any
    U: dict[int, list[Force]]  # for each handle
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
    tree = mech.tree
    qs = spanning_configuration(mech, q)
    X = joint_transforms(tree, qs)
    M = maps(mech, X, qs, v)
    vs = spanning_velocity(mech, M, v)
    w, A = single_bodies(tree, X, vs, external)
    solved: list[ClusterSolution | None] = [None] * len(mech.clusters)
    for number in range(len(mech.clusters) - 1, -1, -1):
        cluster = mech.clusters[number]
        if unconstrained(cluster):
            for k in range(len(cluster.rows) - 1, -1, -1):
                inward_row(tree, A, cluster.rows[k], tau[cluster.start + k])
        else:
            solved[number] = inward_cluster(mech, A, number, M[number], tau)
    return InwardPass(M, w, vs, A, solved)


def single_bodies(tree: Tree, X, vs, external):
    """Return the angular velocities of the rows, and the quantities of pass 2 for bodies without others on them."""
    n = len(tree.parent)
    w, c = velocity_products(tree, X, vs)
    A = ClusterPass(X, c, [ZERO_ARTICULATED] * n, [ZERO_FORCE] * n, [ZERO_FORCE] * n, [0.0] * n, [0.0] * n, SharedInertia())
    for j in range(n):
        if tree.last[j] == j:
            I = rigid_inertia(tree, j)
            A.IA[j] = I.articulated()
            A.pA[j] = I.gyroscopic(w[j]) - external[j]
    return w, A


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
    """Run a cluster's part of pass 2: add to the handles, and return the quantities for pass 3."""
    cluster, IA, pA = mech.clusters[number], A.IA, A.pA
    m = len(cluster.independent)
    I, f, biases, across, dyads = composite_bodies(mech, A, cluster, M)
    F, inside = unit_forces(mech, cluster, A.X, I, across)
    C, reciprocal = factorize(m, without_dyads(projected_block(cluster, M, inside), dyads))
    u = [tau[cluster.start + k] - dot([M.G[r][k] for r in cluster.rows], [biases[r] for r in cluster.rows]) for k in range(m)]
    for d in dyads:
        u = [x - (d.r * y) * d.s for x, y in zip(u, d.pull, strict=True)]
    U = wrenches_on_handles(cluster, M, F, dyads)
    several = len(cluster.handles) > 1
    y = lower_solved(C, u) if several else solve(m, C, reciprocal, u)
    E = {h: lower_solved(C, wrenches) for h, wrenches in U.items()}
    for h in cluster.handles:
        top = I.get(h, ZERO_ARTICULATED)
        IA[h] = IA[h] + (top if several else apparent_cluster_inertia(top, reciprocal, E[h]))
        pA[h] = pA[h] + f.get(h, ZERO_FORCE)
        for k in range(0 if several else m):
            pA[h] = pA[h] + y[k] * U[h][k]
    if several:
        dyads += [Dyad(r, {h: E[h][i] for h in E}, y[i]) for i, r in enumerate(reciprocal)]
    for d in A.shared.leave(dyads):
        for h, e in d.e.items():
            IA[h] = IA[h].minus_dyad(e, d.r * e)
            pA[h] = pA[h] + (d.r * d.s) * e
    return ClusterSolution(C, reciprocal, U, u)


def composite_bodies(mech: ClusterTree, A: ClusterPass, cluster: Cluster, M):
    """Return I, p, S^T p and blocks between bodies of a cluster, by rows, I and p of its handles, and dyads."""
    tree, X = mech.tree, A.X
    zeta: dict[int, Motion] = {}
    for j in cluster.rows:  # accelerations relative to the handles, without y''
        p = tree.parent[j]
        arriving = zeta[p] if p in zeta else ZERO_MOTION if p >= 0 else base_acceleration(tree)
        arriving = arriving if tree.kind[j] == INNER else X[j] @ arriving + A.c[j]
        zeta[j] = arriving + unit_motion(tree.axis[j], M.g[j])
    I = {j: A.IA[j] for j in cluster.rows}
    f = {j: A.pA[j] + A.IA[j] @ zeta[j] if tree.last[j] == j else A.pA[j] for j in cluster.rows}
    for j in cluster.rows:
        for l, B in A.shared.blocks(j).items():
            f[l] = f.get(l, ZERO_FORCE) + B @ zeta[j]
    biases, across = {}, {}
    for j in reversed(cluster.rows):
        across[j], own = A.shared.passed_blocks(tree, X, j)
        biases[j] = f[j].component(tree.axis[j]) + tree.armature[j] * M.g[j]
        p = tree.parent[j]
        if p < 0:
            continue
        moved = (I[j], f[j]) if tree.kind[j] == INNER else (X[j].inertia_to_parent(I[j]), X[j].force_to_parent(f[j]))
        I[p], f[p] = I.get(p, ZERO_ARTICULATED) + moved[0], f.get(p, ZERO_FORCE) + moved[1]
        if own is not None:
            I[p] = I[p] + own
    return I, f, biases, across, passed_dyads(mech, cluster, X, M, A.shared, zeta)


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
    if cluster.handles:
        u = [x - y for x, y in zip(u, powers(cluster, solved.U, a), strict=True)]
    y = solve(m, solved.C, solved.reciprocal, u)
    for k in range(m):
        result[cluster.start + k] = y[k]
    for j in cluster.rows:
        a[j] = arriving_acceleration(tree, X, c, a, j) + unit_motion(tree.axis[j], dot(M.G[j], y) + M.g[j])
