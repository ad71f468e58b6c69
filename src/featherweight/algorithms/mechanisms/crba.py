"""The inertia matrix of the independent velocities: the composite-rigid-body algorithm on clusters (C-CRBA).

H = G^T H_tree G, and G is applied as early as possible: the forces F that the independent accelerations of a cluster need are
passed to its handles as m columns, one for each independent velocity, instead of one for each joint.
"""

from __future__ import annotations

from typing import Any

from ...model.tree import INNER, Tree
from ...spatial import ZERO_FORCE, Force
from .. import crba as tree_crba
from ..kinematics import clear, joint_transforms
from .cluster_tree import Cluster, ClusterTree
from .counterparts import for_mechanism
from .maps import maps, spanning_configuration


@for_mechanism(tree_crba.crba)
def crba(mech: ClusterTree, q, H) -> None:
    """Write the inertia matrix."""
    tree = mech.tree
    qs = spanning_configuration(mech, q)
    X = joint_transforms(tree, qs)
    M = maps(mech, X, qs)
    I = tree_crba.composite_inertias(tree, X)
    clear(H)
    for number, cluster in enumerate(mech.clusters):
        F, inside = unit_forces(mech, cluster, X, I)
        write_block(cluster, M[number], inside, H)
        columns = [cluster_force(M[number], cluster, F, k) for k in range(len(cluster.independent))]
        for other in carrying(mech, cluster):
            rows: dict[int, list[Any]] = {}
            for i in reversed(other.rows):
                h = [pass_joint(tree, X, f, i) for f in columns]
                if any(x is not None for x in h):
                    rows[i] = [0.0 if x is None else x for x in h]
            write_coupling(mech, cluster, other, M, rows, H)


def carrying(mech: ClusterTree, cluster: Cluster):
    """Yield the clusters that carry a cluster, or are between those, towards the ground."""
    while cluster.handles:
        cluster = mech.clusters[mech.owner[cluster.output]]
        yield cluster


def pass_joint(tree: Tree, X, f: dict[int, Any], i: int):
    """Pass the force on row i, if there is any, to its parent; return the force of the joint, otherwise None."""
    own = f.pop(i, None)
    if own is None:
        return None
    p = tree.parent[i]
    if p >= 0:
        moved = own if tree.kind[i] == INNER else X[i].force_to_parent(own)
        f[p] = f[p] + moved if p in f else moved
    return own.component(tree.axis[i])


def unit_forces(mech: ClusterTree, cluster: Cluster, X, I, across=None):
    """Return, for each row, the forces on handles that its unit acceleration needs, and the inertia matrix inside.

    I are composite inertias; `across` are those between different bodies, by rows, if there are any.
    """
    tree = mech.tree
    F, inside = {}, {}
    for j in cluster.rows:
        f = {j: I[j].column(tree.axis[j])}
        if across:
            f |= {l: B.column(tree.axis[j]) for l, B in across[j].items()}
        for i in reversed(cluster.rows):
            if i in f:
                h = f[i].component(tree.axis[i])
                inside[j, i] = h + tree.armature[j] if i == j else h
                pass_joint(tree, X, f, i)
        F[j] = f
    return F, inside


def cluster_force(M, cluster: Cluster, F, k: int):
    """Return the forces on handles for independent velocity k."""
    if M is None:
        return dict(F[cluster.rows[k]])
    totals: dict[int, Force] = {}
    for r in cluster.rows:
        for h, f in F[r].items():
            totals[h] = totals.get(h, ZERO_FORCE) + M.G[r][k] * f
    return totals


def projected_block(cluster: Cluster, M, inside):
    """Return the lower triangle of G^T H G inside a cluster; `inside` has one of two symmetric entries."""
    m = len(cluster.independent)
    right = {r: [0.0] * m for r in cluster.rows}
    for (i, j), h in inside.items():
        for k in range(m):
            right[i][k] = right[i][k] + h * M.G[j][k]
            if i != j:
                right[j][k] = right[j][k] + h * M.G[i][k]
    block = [[0.0] * m for _ in range(m)]
    for a in range(m):
        for b in range(a + 1):
            for r in cluster.rows:
                block[a][b] = block[a][b] + M.G[r][a] * right[r][b]
    return block


def write_block(cluster: Cluster, M, inside, H) -> None:
    s = cluster.start
    if M is None:
        for (i, j), h in inside.items():
            a, b = cluster.rows.index(i), cluster.rows.index(j)
            H[s + a][s + b] = H[s + b][s + a] = h
        return
    block = projected_block(cluster, M, inside)
    for a in range(len(block)):
        for b in range(a + 1):
            H[s + a][s + b] = H[s + b][s + a] = block[a][b]


def write_coupling(mech: ClusterTree, cluster: Cluster, other: Cluster, M, rows, H) -> None:
    """Write entries between a cluster and one that carries it, from the joint forces `rows` there."""
    G = M[mech.owner[other.rows[0]]]
    for k in range(len(cluster.independent)):
        for l in range(len(other.independent)):
            total = 0.0
            for i, h in rows.items():
                total = total + ((1.0 if other.rows[l] == i else 0.0) if G is None else G.G[i][l]) * h[k]
            a, b = cluster.start + k, other.start + l
            H[a][b] = H[b][a] = total
