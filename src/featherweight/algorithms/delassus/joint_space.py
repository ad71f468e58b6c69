"""The Delassus matrix through the joint-space inertia matrix: LTL-OSIM (Featherstone 2010), and dense for comparison.

M = L^T D L,   Y = J L^-1,   J M^-1 J^T = Y D^-1 Y^T        J and Y have entries for a constraint's supports only
"""

from __future__ import annotations

from ...model.tree import INNER, Tree
from ...spatial import sqrt
from ..crba import crba
from ..kinematics import joint_transforms
from ..ltdl import ltdl_in_situ
from .contacts import Contacts, mirror, wrench


def jacobian(tree: Tree, contacts: Contacts, X, J) -> None:
    """Write K J, m by n: the generalized forces of unit constraint forces."""
    n, m = len(tree.parent), len(contacts.owner)
    for r in range(m):
        for i in range(n):
            J[r][i] = 0.0
        i = contacts.link[contacts.owner[r]]
        Y = wrench(contacts, r)
        while i >= 0:
            J[r][i] = Y.component(tree.axis[i])
            if tree.parent[i] >= 0 and tree.kind[i] != INNER:
                Y = X[i].force_to_parent(Y)
            i = tree.parent[i]


def contact_jacobian(tree: Tree, contacts: Contacts, q, J) -> None:
    """Write the contact Jacobian, m by n."""
    jacobian(tree, contacts, joint_transforms(tree, q), J)


def ltl(tree: Tree, contacts: Contacts, q, D) -> None:
    """Write the Delassus matrix, by sparse factors."""
    n, m = len(tree.parent), len(contacts.owner)
    L = [[0.0] * n for _ in range(n)]
    J = [[0.0] * n for _ in range(m)]
    d = [0.0] * n
    crba(tree, q, L)
    ltdl_in_situ(tree.parent, L)
    jacobian(tree, contacts, joint_transforms(tree, q), J)
    for i in range(n):
        d[i] = 1.0 / L[i][i]
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
    mirror(m, D)


def dense(tree: Tree, contacts: Contacts, q, D) -> None:
    """Write the Delassus matrix, by Cholesky's factors of the full inertia matrix."""
    n, m = len(tree.parent), len(contacts.owner)
    J = [[0.0] * n for _ in range(m)]
    jacobian(tree, contacts, joint_transforms(tree, q), J)
    by_cholesky(tree, q, J, D)


def by_cholesky(tree: Tree, q, J, D) -> None:
    """Write the Delassus matrix of the rows J, of which nothing is left."""
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
    mirror(m, D)
