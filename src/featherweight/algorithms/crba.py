"""The joint-space inertia matrix: the composite-rigid-body algorithm (Featherstone 2008, section 6.2, table 6.2).

    Ic_p += X^T Ic_i X,   F = Ic_i S_i,   H_ii = S_i^T F,   then up the tree:  F = X^T F,  H_ij = S_j^T F

Only entries of pairs on one path to the ground are nonzero; both triangles are written. Ic, the inertia of all bodies that a
row carries with joints locked (equation 6.13), also serves other algorithms.
"""

from __future__ import annotations

from ..model.tree import INNER, Tree
from ..spatial import ZERO_RIGID
from .kinematics import clear, joint_transforms, rigid_inertia


def crba(tree: Tree, q, H) -> None:
    """Write the inertia matrix to `H`, n by n."""
    n = len(tree.parent)
    X = joint_transforms(tree, q)
    Ic = [ZERO_RIGID] * n
    clear(H)
    for j in range(n - 1, -1, -1):
        p = tree.parent[j]
        Ic[j] = Ic[j] + rigid_inertia(tree, j)
        if p >= 0:
            Ic[p] = Ic[p] + (Ic[j] if tree.kind[j] == INNER else X[j].inertia_to_parent(Ic[j]))
        F = Ic[j].column(tree.axis[j])
        H[j][j] = F.component(tree.axis[j]) + tree.armature[j]
        i = j
        while tree.parent[i] >= 0:
            F = X[i].force_to_parent(F)
            i = tree.parent[i]
            H[i][j] = F.component(tree.axis[i])
            H[j][i] = H[i][j]


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
