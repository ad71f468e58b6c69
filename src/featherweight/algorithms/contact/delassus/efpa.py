"""The extended-force-propagator algorithm (Wensing, Featherstone and Orin 2012, table I).

inward    K_p = K_i P^T for the wrenches of every end-effector, stored at each row
outward   (Omega_i K_i^T) = P^T (Omega_p K_p^T) + S d S^T K_i^T: each row's acceleration for a unit of each constraint
blocks    K_e (Omega K_f^T) at the last row that carries both
"""

from __future__ import annotations

from ....model.tree import Tree
from ....spatial import ZERO_FORCE, ZERO_MOTION, unit_motion
from ...articulated import articulated_inertias
from ...kinematics import clear, joint_transforms
from ..contact_rows import ContactRows, mirror_lower, propagate_force, propagate_motion, wrench


def efpa(tree: Tree, contacts: ContactRows, q, D) -> None:
    """Write the Delassus matrix."""
    n, m = len(tree.parent), len(contacts.owner)
    X = joint_transforms(tree, q)
    W, d = articulated_inertias(tree, X)
    K = [[ZERO_FORCE for _ in range(m)] for _ in range(n)]
    a = [[ZERO_MOTION for _ in range(m)] for _ in range(n)]  # Omega K^T
    for r in range(m):
        link = contacts.link[contacts.owner[r]]
        if link >= 0:
            K[link][r] = wrench(contacts, r)
    for i in range(n - 1, -1, -1):
        p = tree.parent[i]
        if p >= 0:
            for b in range(contacts.first[i], contacts.first[i + 1]):
                r = contacts.supported[b]
                K[p][r] = propagate_force(tree, X, W[i], i, 0.0 - K[i][r].component(tree.axis[i]), K[i][r])
    for i in range(n):
        k = tree.axis[i]
        p = tree.parent[i]
        for b in range(contacts.first[i], contacts.first[i + 1]):
            r = contacts.supported[b]
            arriving = propagate_motion(tree, X, W[i], i, a[p][r]) if p >= 0 else ZERO_MOTION
            a[i][r] = arriving + unit_motion(k, d[i] * K[i][r].component(k))
    clear(D)
    for r in range(m):
        for s in range(r + 1):
            c = contacts.meet[contacts.owner[r]][contacts.owner[s]]
            if c >= 0:
                D[r][s] = K[c][r].power(a[c][s])
    mirror_lower(m, D)
