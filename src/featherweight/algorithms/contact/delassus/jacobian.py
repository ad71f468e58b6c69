"""The Jacobian of contacts: the generalized forces of unit constraint forces, which have entries for supports only."""

from __future__ import annotations

from ....model.tree import INNER, Tree
from ...kinematics import joint_transforms
from ..contact_rows import ContactRows, wrench


def contact_jacobian(tree: Tree, contacts: ContactRows, q, J) -> None:
    """Write J, m by n: the generalized forces of unit constraint forces."""
    X = joint_transforms(tree, q)
    n, m = len(tree.parent), len(contacts.owner)
    for r in range(m):
        for i in range(n):
            J[r][i] = 0.0
        i = contacts.link[contacts.owner[r]]
        Y = wrench(contacts, r)
        while i >= 0:
            J[r][i] = Y.component(tree.axis[i])
            if tree.parent[i] >= 0 and tree.kind[i] != INNER:
                Y = X[i].force_to_parent(Y)
            i = tree.parent[i]
