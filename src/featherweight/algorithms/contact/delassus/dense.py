"""The reference algorithm: dense Cholesky factors of the joint-space inertia matrix, without use of sparsity.

M = L L^T,   Y = L^-1 J^T,   J M^-1 J^T = Y^T Y
"""

from __future__ import annotations

from ....model.tree import Tree
from ....spatial import sqrt
from ...crba import crba
from ..contact_rows import ContactRows, mirror_lower
from .jacobian import contact_jacobian


def dense(tree: Tree, contacts: ContactRows, q, D) -> None:
    """Write the Delassus matrix, by dense Cholesky factors."""
    n, m = len(tree.parent), len(contacts.owner)
    J = [[0.0] * n for _ in range(m)]
    contact_jacobian(tree, contacts, q, J)
    by_cholesky(tree, q, J, D)


def by_cholesky(tree: Tree, q, J, D) -> None:
    """Write the Delassus matrix of the rows J, which are overwritten."""
    n, m = len(tree.parent), len(J)
    H = [[0.0] * n for _ in range(n)]
    crba(tree, q, H)
    for i in range(n):
        for j in range(i + 1):
            x = H[i][j]
            for k in range(j):
                x = x - H[i][k] * H[j][k]
            H[i][j] = sqrt(x) if i == j else x / H[j][j]
    for r in range(m):
        for i in range(n):
            x = J[r][i]
            for k in range(i):
                x = x - H[i][k] * J[r][k]
            J[r][i] = x / H[i][i]
        for s in range(r + 1):
            total = 0.0
            for i in range(n):
                total = total + J[r][i] * J[s][i]
            D[r][s] = total
    mirror_lower(m, D)
