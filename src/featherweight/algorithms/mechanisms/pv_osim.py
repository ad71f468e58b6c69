"""PV-OSIM on clusters: all wrenches to the ground, one symmetric update a cluster.

After Sathya, Decré and Swevers (2023), algorithm 1, as Chignoli et al. say that it could be (section VIII).
"""

from __future__ import annotations

from ...spatial import ZERO_FORCE
from ..contact.constraint_rows import Rows, loads
from ..contact.contact_rows import clear, mirror
from ..contact.operational_space.recursive import pv_osim_rows
from .articulated import articulated_clusters, pass_cluster, pass_row
from .cluster_tree import Mechanism, free
from .registry import for_mechanism
from .row_jacobian import entries_of_functions


@for_mechanism(pv_osim_rows)
def pv_osim(mech: Mechanism, rows: Rows, q, D) -> None:
    """Write J M^-1 J^T for rows of any kind."""
    A = articulated_clusters(mech, q)
    m = len(rows.K)
    Y = [{i: ZERO_FORCE - f for i, f in enumerate(row)} for row in loads(mech.tree, rows, A.X)]
    tau = entries_of_functions(mech, rows, q)
    clear(m, D)
    for number in range(len(mech.clusters) - 1, -1, -1):
        cluster = mech.clusters[number]
        if free(cluster):
            for k in range(len(cluster.rows) - 1, -1, -1):
                j, p = cluster.rows[k], mech.tree.parent[cluster.rows[k]]
                u = [0.0] * m
                for r in range(m):
                    u[r], onward = pass_row(A, j, Y[r][j], tau[r][cluster.start + k])
                    if p >= 0:
                        Y[r][p] = Y[r][p] + onward
                add_pairs(D, u, A.d[j])
            continue
        halves = []
        mine = slice(cluster.start, cluster.start + len(cluster.independent))
        for r in range(m):
            t, onward = pass_cluster(A, number, {j: Y[r][j] for j in cluster.rows}, tau[r][mine])
            halves.append(t)
            if cluster.output >= 0:
                Y[r][cluster.output] = Y[r][cluster.output] + onward
        for k, reciprocal in enumerate(A.reciprocal[number]):
            add_pairs(D, [t[k] for t in halves], reciprocal)
    mirror(m, D)


def add_pairs(D, u, d) -> None:
    """D + u d u^T, lower triangle."""
    for r in range(len(u)):
        du = d * u[r]
        for s in range(r + 1):
            D[r][s] = D[r][s] + du * u[s]
