"""The joint-space inertia matrix: the composite-rigid-body algorithm (Featherstone 2008, section 6.2, table 6.2).

    F = Ic_i S_i,   H_ii = S_i^T F,   then up the tree:  F = X^T F,  H_ij = S_j^T F      (Ic as in composite.py)

Only the pairs on one path to the ground are not zero; both triangles are written.
"""

from __future__ import annotations

from ..model.tree import Tree
from .composite import composite_inertias
from .kinematics import joint_transforms


def crba(tree: Tree, q, H) -> None:
    """Write the inertia matrix to `H`, n by n."""
    n = len(tree.parent)
    X = joint_transforms(tree, q)
    Ic = composite_inertias(tree, X)
    for j in range(n):
        for k in range(n):
            H[j][k] = 0.0

    for j in range(n - 1, -1, -1):
        F = Ic[j].column(tree.axis[j])
        H[j][j] = F.component(tree.axis[j]) + tree.armature[j]
        i = j
        while tree.parent[i] >= 0:
            F = X[i].force_to_parent(F)
            i = tree.parent[i]
            H[i][j] = F.component(tree.axis[i])
            H[j][i] = H[i][j]
