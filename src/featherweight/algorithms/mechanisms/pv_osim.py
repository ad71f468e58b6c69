"""PV-OSIM on clusters: all wrenches are propagated to the ground, with one symmetric update for each cluster.

The algorithm is that of Sathya, Decré and Swevers (2023), algorithm 1, extended to clusters as Chignoli et al. suggest
(section VIII).
"""

from __future__ import annotations

from ...spatial import ZERO_FORCE
from ..contact.constraint_rows import ConstraintRows, entries_of_functions, unit_wrenches
from ..contact.contact_rows import mirror_lower
from ..contact.operational_space.recursive import pv_osim_rows
from ..kinematics import clear
from .articulated import ArticulatedClusters, articulated_clusters, joint_forces
from .cluster_tree import ClusterTree, unconstrained
from .counterparts import for_mechanism


@for_mechanism(pv_osim_rows)
def pv_osim(mech: ClusterTree, rows: ConstraintRows, q, D) -> None:
    """Write J M^-1 J^T for rows of any kind."""
    A = articulated_clusters(mech, q)
    tau = entries_of_functions(rows, q, len(mech.parent))
    F = unit_wrenches(mech.tree, rows, A.X)
    u = [joint_forces(A, own, [ZERO_FORCE - f for f in on_rows]) for own, on_rows in zip(tau, F, strict=True)]
    write_products(A, u, D)


def write_products(A: ArticulatedClusters, u, D) -> None:
    """Write J M^-1 J^T, for u of unit forces of each constraint row."""
    clear(D)
    for number in range(len(A.mech.clusters) - 1, -1, -1):
        cluster = A.mech.clusters[number]
        if unconstrained(cluster):
            for k in range(len(cluster.rows) - 1, -1, -1):
                add_dyad(D, [x[number][k] for x in u], A.d[cluster.rows[k]])
        else:
            for k, reciprocal in enumerate(A.reciprocal[number]):
                add_dyad(D, [x[number][k] for x in u], reciprocal)
    mirror_lower(len(u), D)


def add_dyad(D, u, d) -> None:
    """Add d u u^T to the lower triangle of D."""
    for r in range(len(u)):
        du = d * u[r]
        for s in range(r + 1):
            D[r][s] = D[r][s] + du * u[s]
