"""Articulated inertias of clusters, and the propagation of wrenches past them (Chignoli et al., sections VII and VIII).

A cluster has U, the wrenches on its output body for its unit accelerations, and D = C diag(p) C^T. A wrench Y against the
motion of its bodies gives t = -G^T S^T Y, and X^T Y + U D^-1 t is passed to the output body. A row outside all loops has W and
d.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.tree import INNER
from ...spatial import ZERO_ARTICULATED, ZERO_FORCE, ZERO_MOTION, Force, Motion, unit_motion
from ..articulated import apparent_inertia, gain, joint_acceleration, with_joint
from ..contact.operational_space.dense_factors import factorize, solve
from ..kinematics import joint_transforms, rigid_inertia
from .cluster_tree import ClusterTree, unconstrained
from .crba import cluster_force, projected_block, unit_forces
from .maps import Map, dot, maps, spanning_configuration


class ArticulatedClusters(NamedTuple):
    """The articulated quantities of all rows and clusters."""

    mech: ClusterTree
    X: Any
    maps: list[Map | None]
    W: dict[int, Force]
    d: dict[int, Any]
    C: dict[int, Any]  # for each cluster
    reciprocal: dict[int, Any]
    U: dict[int, list[Force]]


def articulated_clusters(mech: ClusterTree, q) -> ArticulatedClusters:
    A, IA = before_articulation(mech, q)
    for number in range(len(mech.clusters) - 1, -1, -1):
        if unconstrained(mech.clusters[number]):
            for j in reversed(mech.clusters[number].rows):
                articulate_row(A, IA, j)
        else:
            articulate_cluster(A, IA, number)
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


def articulate_cluster(A: ArticulatedClusters, IA, number: int) -> None:
    """Articulate all rows of a cluster."""
    tree, cluster = A.mech.tree, A.mech.clusters[number]
    m, o = len(cluster.independent), cluster.output
    for j in reversed(cluster.rows):
        p = tree.parent[j]
        if p >= 0:
            IA[p] = IA[p] + (IA[j] if tree.kind[j] == INNER else A.X[j].inertia_to_parent(IA[j]))
    F, inside = unit_forces(A.mech, cluster, A.X, IA)
    A.C[number], A.reciprocal[number] = factorize(m, projected_block(cluster, A.maps[number], inside))
    A.U[number] = [cluster_force(A.maps[number], cluster, F, k) for k in range(m)]
    if o >= 0:
        IA[o] = apparent_cluster_inertia(m, IA[o], A.C[number], A.reciprocal[number], A.U[number])


def apparent_cluster_inertia(m: int, I, C, reciprocal, U):
    """Return I - U D^-1 U^T."""
    E = list(U)  # U C^-T
    for i in range(m):
        for j in range(i):
            E[i] = E[i] - C[i][j] * E[j]
        I = I.minus_dyad(E[i], reciprocal[i] * E[i])
    return I


def propagate_force_row(A: ArticulatedClusters, j: int, Y: Force, tau=0.0):
    """Return u, and the wrench on the parent, for Y on a row outside all loops."""
    tree = A.mech.tree
    u = tau - Y.component(tree.axis[j])
    moved = Y + u * A.W[j]
    return u, moved if tree.kind[j] == INNER or tree.parent[j] < 0 else A.X[j].force_to_parent(moved)


def propagate_force_cluster(A: ArticulatedClusters, number: int, Y: dict[int, Force], tau=None):
    """Return C^-1 t, and the wrench on the output body, for wrenches Y on bodies of a cluster."""
    tree, cluster = A.mech.tree, A.mech.clusters[number]
    m = len(cluster.independent)
    carried, push, top = dict(Y), {}, ZERO_FORCE
    for j in reversed(cluster.rows):
        f = carried.get(j, ZERO_FORCE)
        push[j] = f.component(tree.axis[j])
        p = tree.parent[j]
        moved = f if tree.kind[j] == INNER or p < 0 else A.X[j].force_to_parent(f)
        if p == cluster.output:
            top = top + moved
        else:
            carried[p] = carried.get(p, ZERO_FORCE) + moved
    G = map_of(A, number).G
    against = [push[r] for r in cluster.rows]
    t = [(0.0 if tau is None else tau[k]) - dot([G[r][k] for r in cluster.rows], against) for k in range(m)]
    C = A.C[number]
    for i in range(m):
        for j in range(i):
            t[i] = t[i] - C[i][j] * t[j]
    y = [a * b for a, b in zip(t, A.reciprocal[number], strict=True)]
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            y[i] = y[i] - C[j][i] * y[j]
    for k in range(m):
        top = top + y[k] * A.U[number][k]
    return t, top


def propagate_motion_row(A: ArticulatedClusters, j: int, u, a: Motion) -> Motion:
    """Return the acceleration of a row for u and that of its parent."""
    tree = A.mech.tree
    arriving = a if tree.kind[j] == INNER else A.X[j] @ a
    return with_joint(tree, j, A.W[j], A.d[j] * u, arriving)


def propagate_motion_cluster(A: ArticulatedClusters, number: int, t, a: Motion) -> dict[int, Motion]:
    """Return the accelerations of a cluster's rows for C^-1 t and the acceleration of the output body."""
    return cluster_motion(A, number, cluster_rates(A, number, t, a), a)


def cluster_rates(A: ArticulatedClusters, number: int, t, a: Motion) -> list[Any]:
    """Return the independent accelerations of a cluster for C^-1 t and the acceleration of the output body."""
    m, C, reciprocal = len(A.mech.clusters[number].independent), A.C[number], A.reciprocal[number]
    w = solve(m, C, reciprocal, [A.U[number][k].power(a) for k in range(m)])
    y = [x * r for x, r in zip(t, reciprocal, strict=True)]
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            y[i] = y[i] - C[j][i] * y[j]
    return [x - z for x, z in zip(y, w, strict=True)]


def cluster_motion(A: ArticulatedClusters, number: int, rates, a: Motion) -> dict[int, Motion]:
    """Return the accelerations of a cluster's rows for the independent ones and the acceleration of the output body."""
    tree = A.mech.tree
    accelerations: dict[int, Motion] = {}
    for j in A.mech.clusters[number].rows:
        p = tree.parent[j]
        arriving = accelerations.get(p, a)
        arriving = arriving if tree.kind[j] == INNER else A.X[j] @ arriving
        accelerations[j] = arriving + unit_motion(tree.axis[j], dot(map_of(A, number).G[j], rates))
    return accelerations


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
            if cluster.output >= 0:
                Y[cluster.output] = Y[cluster.output] + onward
    return u


def responses(A: ArticulatedClusters, u, result) -> list[Motion]:
    """Write the independent accelerations for u, without velocities and gravity; return the accelerations of the rows."""
    mech, tree = A.mech, A.mech.tree
    a = [ZERO_MOTION] * len(tree.parent)
    for number, cluster in enumerate(mech.clusters):
        carried = a[cluster.output] if cluster.output >= 0 else ZERO_MOTION
        if unconstrained(cluster):
            for k, j in enumerate(cluster.rows):
                p = tree.parent[j]
                arriving = a[p] if p >= 0 else ZERO_MOTION
                arriving = arriving if tree.kind[j] == INNER else A.X[j] @ arriving
                result[cluster.start + k] = joint_acceleration(tree, j, A.W[j], A.d[j] * u[number][k], arriving)
                a[j] = with_joint(tree, j, A.W[j], A.d[j] * u[number][k], arriving)
        else:
            rates = cluster_rates(A, number, u[number], carried)
            for k, x in enumerate(rates):
                result[cluster.start + k] = x
            for j, motion in cluster_motion(A, number, rates, carried).items():
                a[j] = motion
    return a
