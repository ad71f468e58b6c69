"""The cluster-based extended-force-propagator algorithm (C-EFPA, section VIII; equations 62 and 67).

inward    each contact's wrenches pass cluster joints, and are kept where they arrive at a body
outward   accelerations of the rows on the way for a unit of each constraint
blocks    the wrenches of one contact times the accelerations for another, at the last cluster that carries both
"""

from __future__ import annotations

from typing import Any

from ...spatial import ZERO_FORCE, ZERO_MOTION
from ..contact.contact_rows import Contacts, clear, mirror, wrench
from ..contact.delassus import efpa as tree_efpa
from .articulated import Articulated, answer_cluster, answer_row, articulated_clusters, pass_cluster, pass_row
from .cluster_tree import Mechanism, free
from .registry import for_mechanism


@for_mechanism(tree_efpa.efpa)
def efpa(mech: Mechanism, contacts: Contacts, q, D) -> None:
    """Write J M^-1 J^T."""
    m = len(contacts.owner)
    A = articulated_clusters(mech, q)
    inward = [arrivals(A, contacts.link[contacts.owner[r]], ZERO_FORCE - wrench(contacts, r)) for r in range(m)]
    outward = [answers(A, contacts.link[contacts.owner[r]], inward[r][1]) for r in range(m)]
    clear(m, D)
    for r in range(m):
        for s in range(r + 1):
            number = last_of_both(mech, contacts.link[contacts.owner[r]], contacts.link[contacts.owner[s]])
            if number >= 0:
                body, Y = inward[r][0][number]
                D[r][s] = 0.0 - Y.power(outward[s][body])
    mirror(m, D)


def arrivals(A: Articulated, link: int, Y):
    """For each cluster on the way to the ground the body that a wrench arrives at, and the wrench; and what it leaves.

    That is u by rows, and C^-1 t by clusters, whose keys are (number,).
    """
    mech = A.mech
    arriving: dict[int, Any] = {}
    left: dict[Any, Any] = {}
    while link >= 0:
        number = mech.owner[link]
        cluster = mech.clusters[number]
        arriving[number] = (link, Y)
        if free(cluster):
            while link >= 0 and mech.owner[link] == number:
                left[link], Y = pass_row(A, link, Y)
                link = mech.tree.parent[link]
        else:
            left[(number,)], Y = pass_cluster(A, number, {link: Y})
            link = cluster.output
    return arriving, left


def answers(A: Articulated, link: int, left):
    """The accelerations of the rows on the way to a link."""
    mech = A.mech
    a = {-1: ZERO_MOTION}
    for number in way(mech, link):
        cluster = mech.clusters[number]
        if free(cluster):
            for j in cluster.rows:
                a[j] = answer_row(A, j, left.get(j, 0.0), a[mech.tree.parent[j]])
        else:
            a |= answer_cluster(A, number, left[(number,)], a[cluster.output])
    return a


def way(mech: Mechanism, link: int) -> list[int]:
    """The clusters that carry a link, from the ground on."""
    numbers: list[int] = []
    while link >= 0:
        numbers.append(mech.owner[link])
        link = mech.clusters[mech.owner[link]].output
    return numbers[::-1]


def last_of_both(mech: Mechanism, a: int, b: int) -> int:
    """The last cluster that carries both links, -1 if there is none."""
    both = set(way(mech, a)) & set(way(mech, b))
    return max(both, default=-1)
