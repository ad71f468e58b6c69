"""The Jacobian of contacts: generalized forces of unit constraint forces; a row has entries for its supports only."""

from __future__ import annotations

from ....model.tree import INNER, Tree
from ....spatial import Force
from ...kinematics import joint_transforms
from ..contact_rows import ContactRows, wrench


def contact_jacobian(tree: Tree, contacts: ContactRows, q, J) -> None:
    """Write J, m by n: the generalized forces of unit constraint forces."""
    X = joint_transforms(tree, q)
    n, m = len(tree.parent), len(contacts.owner)
    for r in range(m):
        for i in range(n):
            J[r][i] = 0.0
        write_generalized_forces(tree, X, wrench(contacts, r), contacts.link[contacts.owner[r]], J[r], 0)


def write_generalized_forces(tree: Tree, X, Y: Force, i: int, row, begin: int) -> None:
    """Write the generalized forces of a force Y on the body of row i (-1 for the ground): entries from `begin` on."""
    while i >= 0:
        row[i - begin] = Y.component(tree.axis[i])
        if tree.parent[i] >= 0 and tree.kind[i] != INNER:
            Y = X[i].force_to_parent(Y)
        i = tree.parent[i]
