"""Articulated inertias of clusters, and the propagation of wrenches past them (Chignoli et al., sections VII and VIII).

A cluster has U, the wrenches on its handles for its unit accelerations, and D = C diag(p) C^T. A wrench Y against the motion
of its bodies gives t = -G^T S^T Y, and X^T Y + U D^-1 t is passed to the handles. A row outside all loops has W and d.

A cluster with h handles leaves an inertia of 6 h by 6 h on them, in which U D^-1 U^T couples the handles. The few dyads of this
product stay apart until all of their wrenches are on one body. If too many come together, blocks of 6 by 6 replace them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.tree import INNER, Tree
from ...spatial import (
    ZERO_ARTICULATED,
    ZERO_CROSS,
    ZERO_FORCE,
    ZERO_MOTION,
    ArticulatedInertia,
    CrossInertia,
    Force,
    Motion,
    unit_motion,
)
from ..articulated import apparent_inertia, gain, joint_acceleration, with_joint
from ..contact.operational_space.dense_factors import dot, factorize, solve
from ..kinematics import joint_transforms, rigid_inertia
from .cluster_tree import Cluster, ClusterTree, unconstrained
from .crba import cluster_force, pass_joint, projected_block, unit_forces
from .maps import Map, maps, spanning_configuration

DYADS = 8
"""The most dyads that stay apart on the handles of a cluster; blocks between bodies replace more of them."""


class Dyad(NamedTuple):
    """The inertia -r e e^T, and the force r s e, for a wrench e on several bodies, by their rows."""

    r: Any
    e: dict[int, Force]
    s: Any = 0.0
    pull: tuple[Any, ...] = ()  # G^T S^T e of the cluster that it has passed last


class SharedInertia:
    """The inertia that couples different bodies, by their rows: dyads, and blocks.

    A block is the map from the motion of one body to the force on another.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, dict[int, CrossInertia]] = {}
        self._dyads: list[Dyad] = []

    def blocks(self, j: int) -> dict[int, CrossInertia]:
        """Return the forces on other rows for the motion of row j."""
        return self._blocks.get(j, {})

    def passed_blocks(self, tree: Tree, X, j: int):
        """Pass the blocks of row j to its parent; return them, and the inertia that they add to the parent's own."""
        across = self._blocks.pop(j, {})
        p, own = tree.parent[j], None
        for l, B in across.items():
            del self._blocks[l][j]
            if p < 0:
                continue
            moved = B if tree.kind[j] == INNER else X[j].cross_inertia_to_parent(B)
            if l == p:
                own = moved.folded()
            else:
                self._add(l, p, moved)
        return across, own

    def taken_dyads(self, cluster: Cluster) -> list[Dyad]:
        """Return the dyads on bodies of a cluster, and forget them."""
        rows = set(cluster.rows)
        taken = [d for d in self._dyads if not rows.isdisjoint(d.e)]
        self._dyads = [d for d in self._dyads if rows.isdisjoint(d.e)]
        return taken

    def leave(self, dyads: list[Dyad]) -> list[Dyad]:
        """Leave dyads on the handles of a cluster.

        Return the dyads whose parts on single bodies belong to the inertias of these bodies.
        """
        several = [d for d in dyads if len(d.e) > 1]
        if len(several) <= DYADS:
            self._dyads += several
            return [d for d in dyads if len(d.e) == 1]
        for d in several:
            for k, (h, f) in enumerate(d.e.items()):
                for other, g in list(d.e.items())[:k]:
                    self._add(h, other, ZERO_CROSS.plus_dyad(f, (0.0 - d.r) * g))
        return dyads

    def _add(self, l: int, j: int, B: CrossInertia) -> None:
        """Add the map from motions of row j to forces on row l, and its transpose."""
        for a, b, block in ((l, j, B), (j, l, B.transpose())):
            own = self._blocks.setdefault(b, {})
            own[a] = own[a] + block if a in own else block


def passed_dyads(mech: ClusterTree, cluster: Cluster, X, M, shared: SharedInertia, a: dict[int, Motion]) -> list[Dyad]:
    """Return the dyads on bodies of a cluster with their wrenches on the handles.

    For accelerations a of the bodies, by rows, s becomes s - e^T a.
    """
    dyads = []
    for d in shared.taken_dyads(cluster):
        e, s = dict(d.e), d.s
        for j in e:
            s = s - e[j].power(a[j]) if j in a else s
        component = [pass_joint(mech.tree, X, e, j) for j in reversed(cluster.rows)]
        against = [0.0 if x is None else x for x in reversed(component)]
        pull = tuple(dot([M.G[r][k] for r in cluster.rows], against) for k in range(len(cluster.independent)))
        dyads.append(Dyad(d.r, e, s, pull))
    return dyads


class ArticulatedClusters(NamedTuple):
    """The articulated quantities of all rows and clusters."""

    mech: ClusterTree
    X: Any
    maps: list[Map | None]
    W: dict[int, Force]
    d: dict[int, Any]
    C: dict[int, Any]  # for each cluster
    reciprocal: dict[int, Any]
    U: dict[int, dict[int, list[Force]]]  # for each handle of each cluster


def articulated_clusters(mech: ClusterTree, q) -> ArticulatedClusters:
    A, IA = before_articulation(mech, q)
    shared = SharedInertia()
    for number in range(len(mech.clusters) - 1, -1, -1):
        if unconstrained(mech.clusters[number]):
            for j in reversed(mech.clusters[number].rows):
                articulate_row(A, IA, j)
        else:
            articulate_cluster(A, IA, shared, number)
    return A


def before_articulation(mech: ClusterTree, q) -> tuple[ArticulatedClusters, list[Any]]:
    """Return transforms and maps, without articulated quantities yet, and the inertia of each row."""
    tree, n = mech.tree, len(mech.tree.parent)
    qs = spanning_configuration(mech, q)
    X = joint_transforms(tree, qs)
    A = ArticulatedClusters(mech, X, maps(mech, X, qs), {}, {}, {}, {}, {})
    return A, [rigid_inertia(tree, j).articulated() if tree.last[j] == j else ZERO_ARTICULATED for j in range(n)]


def map_of(A: ArticulatedClusters, number: int) -> Map:
    """Return the map of a cluster that has one."""
    M = A.maps[number]
    assert M is not None
    return M


def articulate_row(A: ArticulatedClusters, IA, j: int) -> None:
    """Articulate one row of the tree."""
    tree = A.mech.tree
    p, k = tree.parent[j], tree.axis[j]
    U = IA[j].column(k)
    A.d[j] = 1.0 / (U.component(k) + tree.armature[j])
    A.W[j] = gain(tree, U, A.d[j], j)
    if p >= 0:
        Ia = apparent_inertia(tree, IA[j], U, A.W[j], j)
        IA[p] = IA[p] + (Ia if tree.kind[j] == INNER else A.X[j].inertia_to_parent(Ia))


def articulate_cluster(A: ArticulatedClusters, IA, shared: SharedInertia, number: int) -> None:
    """Articulate all rows of a cluster."""
    tree, cluster = A.mech.tree, A.mech.clusters[number]
    across = {}
    for j in reversed(cluster.rows):
        p = tree.parent[j]
        across[j], own = shared.passed_blocks(tree, A.X, j)
        if p >= 0:
            IA[p] = IA[p] + (IA[j] if tree.kind[j] == INNER else A.X[j].inertia_to_parent(IA[j]))
        if own is not None:
            IA[p] = IA[p] + own
    dyads = passed_dyads(A.mech, cluster, A.X, A.maps[number], shared, {})
    F, inside = unit_forces(A.mech, cluster, A.X, IA, across)
    D = without_dyads(projected_block(cluster, A.maps[number], inside), dyads)
    A.C[number], A.reciprocal[number] = factorize(len(D), D)
    A.U[number] = wrenches_on_handles(cluster, A.maps[number], F, dyads)
    E = {h: lower_solved(A.C[number], U) for h, U in A.U[number].items()}
    if len(E) > 1:
        dyads += [Dyad(r, {h: E[h][i] for h in E}) for i, r in enumerate(A.reciprocal[number])]
    else:
        for h in E:
            IA[h] = apparent_cluster_inertia(IA[h], A.reciprocal[number], E[h])
    for d in shared.leave(dyads):
        for h, e in d.e.items():
            IA[h] = IA[h].minus_dyad(e, d.r * e)


def without_dyads(D: list[list[Any]], dyads: list[Dyad]) -> list[list[Any]]:
    """Return the lower triangle of D with the inertia of dyads that have passed the cluster."""
    D = [list(row) for row in D]
    for d in dyads:
        for i, row in enumerate(D):
            for j in range(i + 1):
                row[j] = row[j] - (d.r * d.pull[i]) * d.pull[j]
    return D


def wrenches_on_handles(cluster: Cluster, M, F, dyads: list[Dyad]) -> dict[int, list[Force]]:
    """Return U of each handle, one wrench for each independent velocity."""
    forces = [cluster_force(M, cluster, F, k) for k in range(len(cluster.independent))]
    U = {h: [f.get(h, ZERO_FORCE) for f in forces] for h in cluster.handles}
    for d in dyads:
        for h, f in d.e.items():
            U[h] = [u - (d.r * x) * f for u, x in zip(U[h], d.pull, strict=True)]
    return U


def lower_solved(C, b: list[Any]) -> list[Any]:
    """Return C^-1 b, for numbers or wrenches b."""
    x = list(b)
    for i in range(len(x)):
        for j in range(i):
            x[i] = x[i] - C[i][j] * x[j]
    return x


def apparent_cluster_inertia(I: ArticulatedInertia, reciprocal, E: list[Force]) -> ArticulatedInertia:
    """Return I - U D^-1 U^T, for E = U C^-T, which is `lower_solved` of U."""
    for r, e in zip(reciprocal, E, strict=True):
        I = I.minus_dyad(e, r * e)
    return I


def propagate_force_row(A: ArticulatedClusters, j: int, Y: Force, tau=0.0):
    """Return u, and the wrench on the parent, for Y on a row outside all loops."""
    tree = A.mech.tree
    u = tau - Y.component(tree.axis[j])
    moved = Y + u * A.W[j]
    return u, moved if tree.kind[j] == INNER or tree.parent[j] < 0 else A.X[j].force_to_parent(moved)


def propagate_force_cluster(A: ArticulatedClusters, number: int, Y: dict[int, Force], tau=None):
    """Return C^-1 t, and the wrenches on the handles, for wrenches Y on bodies of a cluster."""
    tree, cluster = A.mech.tree, A.mech.clusters[number]
    m = len(cluster.independent)
    forces, component = dict(Y), {}
    onward = dict.fromkeys(cluster.handles, ZERO_FORCE)
    for j in reversed(cluster.rows):
        f = forces.get(j, ZERO_FORCE)
        component[j] = f.component(tree.axis[j])
        p = tree.parent[j]
        if p < 0:
            continue
        moved = f if tree.kind[j] == INNER else A.X[j].force_to_parent(f)
        if p in onward:
            onward[p] = onward[p] + moved
        else:
            forces[p] = forces.get(p, ZERO_FORCE) + moved
    G = map_of(A, number).G
    against = [component[r] for r in cluster.rows]
    t = [(0.0 if tau is None else tau[k]) - dot([G[r][k] for r in cluster.rows], against) for k in range(m)]
    C = A.C[number]
    t = lower_solved(C, t)
    y = [a * b for a, b in zip(t, A.reciprocal[number], strict=True)]
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            y[i] = y[i] - C[j][i] * y[j]
    for h in onward:
        for k in range(m):
            onward[h] = onward[h] + y[k] * A.U[number][h][k]
    return t, onward


def propagate_motion_row(A: ArticulatedClusters, j: int, u, a: Motion) -> Motion:
    """Return the acceleration of a row for u and that of its parent."""
    tree = A.mech.tree
    arriving = a if tree.kind[j] == INNER else A.X[j] @ a
    return with_joint(tree, j, A.W[j], A.d[j] * u, arriving)


def propagate_motion_cluster(A: ArticulatedClusters, number: int, t, a) -> dict[int, Motion]:
    """Return the accelerations of a cluster's rows for C^-1 t and those of its handles, by rows."""
    return cluster_motion(A, number, cluster_rates(A, number, t, a), a)


def cluster_rates(A: ArticulatedClusters, number: int, t, a) -> list[Any]:
    """Return the independent accelerations of a cluster for C^-1 t and the accelerations of its handles, by rows."""
    cluster, C, reciprocal = A.mech.clusters[number], A.C[number], A.reciprocal[number]
    m = len(cluster.independent)
    w = solve(m, C, reciprocal, powers(cluster, A.U[number], a))
    y = [x * r for x, r in zip(t, reciprocal, strict=True)]
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            y[i] = y[i] - C[j][i] * y[j]
    return [x - z for x, z in zip(y, w, strict=True)]


def cluster_motion(A: ArticulatedClusters, number: int, rates, a) -> dict[int, Motion]:
    """Return the accelerations of a cluster's rows for the independent ones and those of its handles, by rows."""
    tree = A.mech.tree
    accelerations: dict[int, Motion] = {}
    for j in A.mech.clusters[number].rows:
        p = tree.parent[j]
        arriving = accelerations[p] if p in accelerations else a[p] if p >= 0 else ZERO_MOTION
        arriving = arriving if tree.kind[j] == INNER else A.X[j] @ arriving
        accelerations[j] = arriving + unit_motion(tree.axis[j], dot(map_of(A, number).G[j], rates))
    return accelerations


def powers(cluster: Cluster, U: dict[int, list[Force]], a) -> list[Any]:
    """Return U^T a for the accelerations of handles, one for each independent velocity."""
    total = [0.0] * len(cluster.independent)
    for h, wrenches in U.items():
        total = [x + f.power(a[h]) for x, f in zip(total, wrenches, strict=True)]
    return total


# Passes over all clusters, as joint_forces and responses of articulated.py for trees


def joint_forces(A: ArticulatedClusters, tau, Y) -> list[list[Any]]:
    """Return u of the rows of each cluster, C^-1 t for a cluster with loops, for joint forces and wrenches Y on the rows.

    Y of each row gets the wrenches that its children pass on.
    """
    mech = A.mech
    u: list[list[Any]] = [[] for _ in mech.clusters]
    for number in range(len(mech.clusters) - 1, -1, -1):
        cluster = mech.clusters[number]
        own = tau[cluster.start : cluster.start + len(cluster.independent)]
        if unconstrained(cluster):
            u[number] = [0.0] * len(own)
            for k in range(len(own) - 1, -1, -1):
                j, p = cluster.rows[k], mech.tree.parent[cluster.rows[k]]
                u[number][k], onward = propagate_force_row(A, j, Y[j], own[k])
                if p >= 0:
                    Y[p] = Y[p] + onward
        else:
            u[number], onward = propagate_force_cluster(A, number, {j: Y[j] for j in cluster.rows}, own)
            for h, f in onward.items():
                Y[h] = Y[h] + f
    return u


def responses(A: ArticulatedClusters, u, result) -> list[Motion]:
    """Write the independent accelerations for u, without velocities and gravity; return the accelerations of the rows."""
    mech, tree = A.mech, A.mech.tree
    a = [ZERO_MOTION] * len(tree.parent)
    for number, cluster in enumerate(mech.clusters):
        if unconstrained(cluster):
            for k, j in enumerate(cluster.rows):
                p = tree.parent[j]
                arriving = a[p] if p >= 0 else ZERO_MOTION
                arriving = arriving if tree.kind[j] == INNER else A.X[j] @ arriving
                result[cluster.start + k] = joint_acceleration(tree, j, A.W[j], A.d[j] * u[number][k], arriving)
                a[j] = with_joint(tree, j, A.W[j], A.d[j] * u[number][k], arriving)
        else:
            rates = cluster_rates(A, number, u[number], a)
            for k, x in enumerate(rates):
                result[cluster.start + k] = x
            for j, motion in cluster_motion(A, number, rates, a).items():
                a[j] = motion
    return a
