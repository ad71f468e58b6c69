"""Matrices of a forest (trees that share only the ground), stored as their nonzero blocks.

Rows of a tree are consecutive. A matrix whose columns are rows of the forest is stored with the columns of each row's own tree
only, from the tree's first on: J[r][i - begin] is the entry of column i. Without the zeros, a free body among a hundred others
costs no more than a single one.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from ..model.tree import Tree
from .contact.contact_rows import ContactRows, wrench
from .contact.delassus.jacobian import write_generalized_forces
from .crba_ltdl import inverse_by_factors
from .inverse import inverse_global, inverse_local
from .kinematics import joint_transforms


def tree_between(tree: Tree, begin: int, stop: int) -> Tree:
    """Return a tree of a forest, given its first row and the row after its last."""
    own = Tree(*(field if field is tree.gravity else field[begin:stop] for field in tree))
    return own._replace(
        parent=[p - begin if p >= 0 else -1 for p in own.parent],
        first=[j - begin for j in own.first],
        last=[j - begin for j in own.last],
        q_index=[k - own.q_index[0] for k in own.q_index],
    )


def write_inverses(tree: Tree, trees: tuple[int, ...], q, inverse, write: Callable[..., None]) -> None:
    """Write the inverse inertia matrix of each tree by an algorithm for one; `trees` are those of `Topology.trees`."""
    places = [*tree.q_index, len(q)]
    for begin, stop in pairwise(trees):
        write(tree_between(tree, begin, stop), q[places[begin] : places[stop]], inverse[begin:stop])


def inverses_global(tree: Tree, trees: tuple[int, ...], q, inverse) -> None:
    """Write the inverse inertia matrices by `inverse_global`."""
    write_inverses(tree, trees, q, inverse, lambda own, x, matrix: inverse_global(own, (0, len(matrix)), x, matrix))


def inverses_local(tree: Tree, trees: tuple[int, ...], q, inverse) -> None:
    """Write the inverse inertia matrices by `inverse_local`."""
    write_inverses(tree, trees, q, inverse, inverse_local)


def inverses_by_factors(tree: Tree, trees: tuple[int, ...], q, inverse) -> None:
    """Write the inverse inertia matrices by `inverse_by_factors`."""
    write_inverses(tree, trees, q, inverse, inverse_by_factors)


def contact_jacobians(tree: Tree, contacts: ContactRows, trees: tuple[int, ...], q, J) -> None:
    """Write the Jacobian of contacts, each of which is on one tree."""
    X = joint_transforms(tree, q)
    begin_of = [begin for begin, stop in pairwise(trees) for _ in range(begin, stop)]
    for r in range(len(contacts.owner)):
        link = contacts.link[contacts.owner[r]]
        write_generalized_forces(tree, X, wrench(contacts, r), link, J[r], begin_of[link])
