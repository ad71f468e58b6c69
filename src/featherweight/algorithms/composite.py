"""Composite rigid bodies: the inertia of all bodies that a row carries, with joints locked (Featherstone 2008, equation 6.13).

Ic_i = I_i + sum over children of X^T Ic X
"""

from __future__ import annotations

from ..model.tree import INNER, Tree
from ..spatial import ZERO_RIGID
from .kinematics import rigid_inertia


def composite_inertias(tree: Tree, X):
    """Return Ic of each row, in its own frame."""
    n = len(tree.parent)
    Ic = [ZERO_RIGID] * n
    for j in range(n):
        if tree.last[j] == j:
            Ic[j] = rigid_inertia(tree, j)
    for j in range(n - 1, -1, -1):
        p = tree.parent[j]
        if p >= 0:
            Ic[p] = Ic[p] + (Ic[j] if tree.kind[j] == INNER else X[j].inertia_to_parent(Ic[j]))
    return Ic
