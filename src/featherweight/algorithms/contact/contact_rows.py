"""Constraints on bodies as the algorithms see them, and what all of them do.

Constraint row r is a unit force of the constraint, a wrench K_r^T in the frame of its end-effector's row of the tree. Rows of
an end-effector are consecutive. A wrench Y that row i passes to its parent leaves the acceleration u = -S^T Y times d at the
joint, and goes on as X^T (Y + u W), with W and d of the articulated inertias (the force propagator P of the papers).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.tree import INNER, Tree
from ...spatial import Force, Motion
from ..articulated import with_joint
from ..kinematics import force


class ContactRows(NamedTuple):
    """E end-effectors with m constraint rows, on a tree of n rows; nested tuples, or NumPy arrays (rolled)."""

    link: Any  # (E,) the row of the tree, -1 for the ground
    begin: Any  # (E + 1,) where an end-effector's constraint rows begin
    wrench: Any  # (m, 6) K^T: torque and force of each constraint row in the frame of its link
    owner: Any  # (m,) the end-effector of each constraint row
    meet: Any  # (E, E) the last row that carries both, -1 for the ground
    first: Any  # (n + 1,) where the constraint rows that a row of the tree carries begin in
    carried: Any  # their list


class Branches(NamedTuple):
    """Stretches between end-effectors and B branching rows, which are numbered in the order of the tree."""

    row: Any  # (B + 1,) the rows of the tree, and one that is none
    number: Any  # (n,) the number of row i, -1 if it is not among them
    above: Any  # (B + 1,) the number of the nearest one above, -1 for the ground
    end_above: Any  # (E,) for an end-effector
    meet: Any  # (E, E) the number of the last one that carries both
    first: Any  # (n + 1,) where the columns that a joint passes on begin in
    passing: Any  # their list: constraint rows, and from m + 6 k on the unit wrenches of branching row k
    earliest: Any  # (m + 6 B,) the first column that passes a joint with a column, or the column itself
    begin: Any  # (m + 6 B + 1,) where a column's products with these begin, in a list of them
    first_pair: Any  # (B + 2,) where what meets at branching row k begins in, and last what meets at the ground only
    pairs: Any  # their list: an end-effector, and the range of constraint rows, from its own on, that meet its own there
    first_range: Any  # (B + 1,) where the constraint rows that branching row k carries begin in
    ranges: Any  # their list, by ranges


class BranchedRows(NamedTuple):
    """Constraint rows, and where their paths to the ground meet."""

    contacts: ContactRows
    branches: Branches


def wrench(contacts: ContactRows, r: int) -> Force:
    """Constraint row r as a force."""
    return force(contacts.wrench, r)


def product(branches: Branches, r: int, s: int) -> int:
    """Where the product of columns r and s <= r is in the list."""
    return branches.begin[r] + s - branches.earliest[r]  # type: ignore[no-any-return]


def propagate_force(tree: Tree, X, W: Force, j: int, u, Y: Force) -> Force:
    """The wrench on the parent of row j, for Y on row j."""
    Y = Y + u * W
    return Y if tree.kind[j] == INNER else X[j].force_to_parent(Y)


def propagate_motion(tree: Tree, X, W: Force, j: int, a: Motion) -> Motion:
    """The acceleration of row j, free of forces of its own, for that of its parent (the motion propagator P^T)."""
    b = a if tree.kind[j] == INNER else X[j] @ a
    return with_joint(tree, j, W, 0.0, b)


def clear_matrix(m: int, D) -> None:
    for r in range(m):
        for s in range(m):
            D[r][s] = 0.0


def mirror_lower(m: int, D) -> None:
    """Copy what is below the diagonal above it."""
    for r in range(m):
        for s in range(r):
            D[s][r] = D[r][s]
