"""PV-OSIM (Sathya, Decré and Swevers, algorithm 1): wrenches propagated to the ground, one symmetric update per joint.

K_p = K_i P^T,   L_p = L_i + K_i S d S^T K_i^T       over all constraints that row i carries
"""

from __future__ import annotations

from ....model.tree import Tree
from ...articulated import articulated_inertias
from ...kinematics import clear, joint_transforms
from ..contact_rows import ContactRows, mirror_lower, propagate_force, wrench


def pv_osim(tree: Tree, contacts: ContactRows, q, D) -> None:
    """Write the Delassus matrix."""
    X = joint_transforms(tree, q)
    W, d = articulated_inertias(tree, X)
    by_pairs(tree, contacts, X, W, d, D)


def by_pairs(tree: Tree, contacts: ContactRows, X, W, d, D) -> None:
    """Run the recursion with given articulated inertias."""
    n, m = len(tree.parent), len(contacts.owner)
    Y = [wrench(contacts, r) for r in range(m)]
    u = [0.0] * m
    clear(D)
    for i in range(n - 1, -1, -1):
        for a in range(contacts.first[i], contacts.first[i + 1]):
            r = contacts.supported[a]
            u[r] = 0.0 - Y[r].component(tree.axis[i])
            du = d[i] * u[r]
            for b in range(contacts.first[i], a + 1):
                s = contacts.supported[b]
                D[r][s] = D[r][s] + du * u[s]
            if tree.parent[i] >= 0:
                Y[r] = propagate_force(tree, X, W[i], i, u[r], Y[r])
    mirror_lower(m, D)
