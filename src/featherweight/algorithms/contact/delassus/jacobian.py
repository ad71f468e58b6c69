"""The Jacobian of contacts: generalized forces of unit constraint forces; a row has entries for its supports only.

The Jacobian of a forest (trees that share only the ground, with consecutive rows) is stored without the zeros of other trees:
J[r][i - begin] is the entry of column i, if the tree of row r begins at `begin`. Therefore a free body among a hundred others
costs no more than a single one.
"""

from __future__ import annotations

from itertools import pairwise

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


def contact_jacobians(tree: Tree, contacts: ContactRows, trees: tuple[int, ...], q, J) -> None:
    """Write the Jacobian of contacts, each of which is on one tree."""
    X = joint_transforms(tree, q)
    begin_of = [begin for begin, stop in pairwise(trees) for _ in range(begin, stop)]
    for r in range(len(contacts.owner)):
        link = contacts.link[contacts.owner[r]]
        write_generalized_forces(tree, X, wrench(contacts, r), link, J[r], begin_of[link])
