"""Matrices of a forest (trees that share only the ground), stored as their nonzero blocks.

Rows of a tree are consecutive. A matrix whose columns are rows of the forest is stored with the columns of each row's own tree
only, from the tree's first on: J[r][i - begin] is the entry of column i. Without the zeros, a free body among a hundred others
costs no more than a single one.
"""

from __future__ import annotations

from itertools import pairwise

from ..model.tree import Tree
from .contact.contact_rows import ContactRows, wrench
from .contact.delassus.jacobian import write_generalized_forces
from .kinematics import joint_transforms


def contact_jacobians(tree: Tree, contacts: ContactRows, trees: tuple[int, ...], q, J) -> None:
    """Write the Jacobian of contacts, each of which is on one tree."""
    X = joint_transforms(tree, q)
    begin_of = [begin for begin, stop in pairwise(trees) for _ in range(begin, stop)]
    for r in range(len(contacts.owner)):
        link = contacts.link[contacts.owner[r]]
        write_generalized_forces(tree, X, wrench(contacts, r), link, J[r], begin_of[link])
