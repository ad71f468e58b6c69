"""Constraints on bodies as data of the algorithms, their Jacobian, and common functions.

Constraint row r is a unit force of the constraint, a wrench K_r^T in the frame of its end-effector's row of the tree. Rows of
an end-effector are consecutive. A wrench Y that row i passes to its parent causes the acceleration u = -S^T Y times d at the
joint, and continues as X^T (Y + u W), with W and d of the articulated inertias (the force propagator P of the papers).

The Jacobian has the generalized forces of unit constraint forces; a row has entries for its supports only. That of a forest
(trees that share only the ground, with consecutive rows) is stored without the zeros of other trees: J[r][i - begin] is the
entry of column i, if the tree of row r begins at `begin`. Therefore a free body among a hundred others costs no more than a
single one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from ...model.tree import INNER, Tree
from ...spatial import Force, Motion
from ..articulated import with_joint
from ..kinematics import clear, force, joint_transforms


class ContactRows(NamedTuple):
    """E end-effectors with m constraint rows, on a tree of n rows, as nested tuples or NumPy arrays (rolled execution)."""

    link: Any  # (E,) the row of the tree, -1 for the ground
    begin: Any  # (E + 1,) first constraint row of each end-effector
    wrench: Any  # (m, 6) K^T: torque and force of each constraint row in the frame of its link
    owner: Any  # (m,) the end-effector of each constraint row
    meet: Any  # (E, E) the last row that carries both, -1 for the ground
    first: Any  # (n + 1,) for each row of the tree, the start of the constraint rows that it carries in
    supported: Any  # their list


class Branches(NamedTuple):
    """The branches between end-effectors and B branching rows, which are numbered in the order of the tree."""

    row: Any  # (B + 1,) the rows of the tree, and a placeholder
    number: Any  # (n,) the number of row i, -1 if it is not a branching row
    above: Any  # (B + 1,) the number of the nearest branching row above, -1 for the ground
    end_above: Any  # (E,) the same for an end-effector
    meet: Any  # (E, E) the number of the last branching row that carries both
    first: Any  # (n + 1,) for each joint, the start of the columns that it passes on in
    passing: Any  # their list: constraint rows, and from m + 6 k on the unit wrenches of branching row k
    earliest: Any  # (m + 6 B,) the first column that passes a joint together with each column, or the column itself
    begin: Any  # (m + 6 B + 1,) start of a column's products with these, in the list of products
    first_pair: Any  # (B + 2,) start of the pairs that meet at branching row k, and finally at the ground, in
    pairs: Any  # their list: an end-effector, and the range of constraint rows, from its own on, that meet it there
    first_range: Any  # (B + 1,) start of the constraint rows that branching row k carries in
    ranges: Any  # their list, by ranges


class BranchedRows(NamedTuple):
    """Constraint rows, and the branching rows where their paths to the ground meet."""

    contacts: ContactRows
    branches: Branches


def wrench(contacts: ContactRows, r: int) -> Force:
    """Return constraint row r as a force."""
    return force(contacts.wrench, r)


def product(branches: Branches, r: int, s: int) -> int:
    """Return the index of the product of columns r and s <= r in the list."""
    return branches.begin[r] + s - branches.earliest[r]


def propagate_force(tree: Tree, X, W: Force, j: int, u, Y: Force) -> Force:
    """Return the wrench on the parent of row j, for Y on row j."""
    Y = Y + u * W
    return Y if tree.kind[j] == INNER else X[j].force_to_parent(Y)


def propagate_motion(tree: Tree, X, W: Force, j: int, a: Motion) -> Motion:
    """Return the acceleration of row j without own forces, for that of its parent (the motion propagator P^T)."""
    b = a if tree.kind[j] == INNER else X[j] @ a
    return with_joint(tree, j, W, 0.0, b)


def mirror_lower(m: int, D) -> None:
    """Copy the entries below the diagonal above it."""
    for r in range(m):
        for s in range(r):
            D[s][r] = D[r][s]


def contact_jacobian(tree: Tree, contacts: ContactRows, q, J) -> None:
    """Write J, m by n: the generalized forces of unit constraint forces."""
    X = joint_transforms(tree, q)
    m = len(contacts.owner)
    clear(J)
    for r in range(m):
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
