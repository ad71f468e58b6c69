"""LTL-OSIM, the sparse factorization algorithm (Featherstone 2010).

M = L^T D L,   Y = J L^-1,   J M^-1 J^T = Y D^-1 Y^T        J and Y have entries for a constraint's supports only
"""

from __future__ import annotations

from ....model.tree import Tree
from ...crba import crba
from ...ltdl import ltdl_in_situ
from ..contact_rows import ContactRows, contact_jacobian, mirror_lower


def ltl(tree: Tree, contacts: ContactRows, q, D) -> None:
    """Write the Delassus matrix, by sparse factors."""
    n, m = len(tree.parent), len(contacts.owner)
    L = [[0.0] * n for _ in range(n)]
    J = [[0.0] * n for _ in range(m)]
    crba(tree, q, L)
    d = ltdl_in_situ(tree.parent, L)
    contact_jacobian(tree, contacts, q, J)
    for r in range(m):
        link = contacts.link[contacts.owner[r]]
        i = link
        while i >= 0:  # y L = row r of J
            j = tree.parent[i]
            while j >= 0:
                J[r][j] = J[r][j] - J[r][i] * L[i][j]
                j = tree.parent[j]
            i = tree.parent[i]
        Z = [0.0] * n
        i = link
        while i >= 0:
            Z[i] = J[r][i] * d[i]
            i = tree.parent[i]
        for s in range(r + 1):
            total = 0.0
            i = contacts.meet[contacts.owner[r]][contacts.owner[s]]
            while i >= 0:
                total = total + J[s][i] * Z[i]
                i = tree.parent[i]
            D[r][s] = total
    mirror_lower(m, D)
