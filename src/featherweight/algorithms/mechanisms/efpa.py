"""The cluster-based extended-force-propagator algorithm (C-EFPA, section VIII; equations 62 and 67).

inward    each contact's wrenches pass cluster joints, and are stored where they arrive at bodies
outward   accelerations of the rows on the way for a unit of each constraint
blocks    the wrenches of one contact times the accelerations for another, at the last cluster that carries both
"""

from __future__ import annotations

from typing import Any

from ...spatial import ZERO_FORCE, ZERO_MOTION
from ..contact.contact_rows import ContactRows, mirror_lower, wrench
from ..contact.delassus import efpa as tree_efpa
from ..kinematics import clear
from .articulated import (
    ArticulatedClusters,
    articulated_clusters,
    propagate_force_cluster,
    propagate_force_row,
    propagate_motion_cluster,
    propagate_motion_row,
)
from .cluster_tree import ClusterTree, unconstrained
from .counterparts import for_mechanism


@for_mechanism(tree_efpa.efpa)
def efpa(mech: ClusterTree, contacts: ContactRows, q, D) -> None:
    """Write J M^-1 J^T."""
    m = len(contacts.owner)
    A = articulated_clusters(mech, q)
    inward = [propagate_inward(A, contacts.link[contacts.owner[r]], ZERO_FORCE - wrench(contacts, r)) for r in range(m)]
    outward = [propagate_outward(A, contacts.link[contacts.owner[r]], inward[r][1]) for r in range(m)]
    clear(D)
    for r in range(m):
        for s in range(r + 1):
            number = last_common_cluster(mech, contacts.link[contacts.owner[r]], contacts.link[contacts.owner[s]])
            if number >= 0:
                total = 0.0
                for body, Y in inward[r][0][number].items():
                    total = total + Y.power(outward[s][body])
                D[r][s] = 0.0 - total
    mirror_lower(m, D)


def propagate_inward(A: ArticulatedClusters, link: int, Y):
    """Return the wrenches on bodies, by rows, when they arrive at each cluster on the way to the ground; and u.

    u is given by rows, and C^-1 t by clusters, whose keys are (number,).
    """
    mech = A.mech
    arriving: dict[int, dict[int, Any]] = {}
    u: dict[Any, Any] = {}
    at = {link: Y}
    for number in reversed(carrying_clusters(mech, link)):
        cluster = mech.clusters[number]
        arriving[number] = dict(at)
        if unconstrained(cluster):
            for j in reversed(cluster.rows):
                if j in at:
                    u[j], Y = propagate_force_row(A, j, at.pop(j))
                    p = mech.tree.parent[j]
                    at[p] = at[p] + Y if p in at else Y
        else:
            own = {j: at.pop(j) for j in cluster.rows if j in at}
            u[(number,)], onward = propagate_force_cluster(A, number, own)
            for h, Y in onward.items():
                at[h] = at[h] + Y if h in at else Y
    return arriving, u


def propagate_outward(A: ArticulatedClusters, link: int, u):
    """Return the accelerations of the rows on the way to a link."""
    mech = A.mech
    a = {-1: ZERO_MOTION}
    for number in carrying_clusters(mech, link):
        cluster = mech.clusters[number]
        if unconstrained(cluster):
            for j in cluster.rows:
                a[j] = propagate_motion_row(A, j, u.get(j, 0.0), a[mech.tree.parent[j]])
        else:
            a |= propagate_motion_cluster(A, number, u[(number,)], a)
    return a


def carrying_clusters(mech: ClusterTree, link: int) -> list[int]:
    """Return the clusters that carry a link, starting from the ground."""
    numbers: list[int] = []
    while link >= 0:
        numbers.append(mech.owner[link])
        link = mech.clusters[mech.owner[link]].output
    return numbers[::-1]


def last_common_cluster(mech: ClusterTree, a: int, b: int) -> int:
    """Return the last cluster that carries both links, -1 if there is none."""
    both = set(carrying_clusters(mech, a)) & set(carrying_clusters(mech, b))
    return max(both, default=-1)
