"""PV-OSIM on clusters: all wrenches are propagated to the ground, with one symmetric update for each cluster.

The algorithm is that of Sathya, Decré and Swevers (2023), algorithm 1, extended to clusters as Chignoli et al. suggest
(section VIII).
"""

from __future__ import annotations

from ...spatial import ZERO_FORCE
from ..contact.constraint_rows import ConstraintRows, entries_of_functions, unit_wrenches
from ..contact.contact_rows import clear_matrix, mirror_lower
from ..contact.operational_space.recursive import pv_osim_rows
from .articulated import articulated_clusters, propagate_force_cluster, propagate_force_row
from .cluster_tree import ClusterTree, unconstrained
from .counterparts import for_mechanism


@for_mechanism(pv_osim_rows)
def pv_osim(mech: ClusterTree, rows: ConstraintRows, q, D) -> None:
    """Write J M^-1 J^T for rows of any kind."""
    A = articulated_clusters(mech, q)
    m = len(rows.K)
    Y = [{i: ZERO_FORCE - f for i, f in enumerate(row)} for row in unit_wrenches(mech.tree, rows, A.X)]
    tau = entries_of_functions(rows, q, len(mech.parent))
    clear_matrix(m, D)
    for number in range(len(mech.clusters) - 1, -1, -1):
        cluster = mech.clusters[number]
        if unconstrained(cluster):
            for k in range(len(cluster.rows) - 1, -1, -1):
                j, p = cluster.rows[k], mech.tree.parent[cluster.rows[k]]
                u = [0.0] * m
                for r in range(m):
                    u[r], onward = propagate_force_row(A, j, Y[r][j], tau[r][cluster.start + k])
                    if p >= 0:
                        Y[r][p] = Y[r][p] + onward
                add_dyad(D, u, A.d[j])
            continue
        t = []
        own = slice(cluster.start, cluster.start + len(cluster.independent))
        for r in range(m):
            t_r, onward = propagate_force_cluster(A, number, {j: Y[r][j] for j in cluster.rows}, tau[r][own])
            t.append(t_r)
            for h, f in onward.items():
                Y[r][h] = Y[r][h] + f
        for k, reciprocal in enumerate(A.reciprocal[number]):
            add_dyad(D, [t_r[k] for t_r in t], reciprocal)
    mirror_lower(m, D)


def add_dyad(D, u, d) -> None:
    """Add d u u^T to the lower triangle of D."""
    for r in range(len(u)):
        du = d * u[r]
        for s in range(r + 1):
            D[r][s] = D[r][s] + du * u[s]
