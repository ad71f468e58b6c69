"""PV-OSIMr (Sathya, Decré and Swevers, algorithm 3): where paths meet, six unit wrenches stand for all constraints below.

Backward over the joints, between one branching row (or end-effector) D and the next one above it,
    P_D = P_i P_D,   Omega_D = Omega_D + P_D^T S d S^T P_D                                              (16, 17)
forward over branching rows      Omega_i = Omega_i + P_i^T Omega_A(i) P_i                               (18)
backward again, from each end-effector to the branching rows above      K_A(j) = K_j P_j^T              (19)
and the blocks are K_e Omega_cca K_f^T, with what lies below the first branching row on the diagonal.   (13)

With fewer branching rows than the tree has (those above one of them are among them too), more columns pass a joint side by
side and pairs of them meet below the first branching row, as in PV-OSIM, which has none.
"""

from __future__ import annotations

from ...model.tree import Tree
from ...spatial import ZERO_FORCE, ZERO_MOBILITY, ZERO_MOTION, Force, mobility, unit_motion
from ..articulated import articulated_inertias
from ..kinematics import joint_transforms
from .contacts import Branches, Contacts, mirror, passed_on, wrench


def pv_osimr(tree: Tree, contacts: Contacts, branches: Branches, q, D) -> None:
    """Write the Delassus matrix."""
    X = joint_transforms(tree, q)
    W, d = articulated_inertias(tree, X)
    by_branches(tree, contacts, branches, X, W, d, D)


def by_branches(tree: Tree, contacts: Contacts, branches: Branches, X, W, d, D) -> None:
    """The recursion, with the articulated inertias given."""
    Y, G = propagators(tree, contacts, branches, X, W, d)
    m, E = len(contacts.owner), len(contacts.link)
    O = mobilities(branches, m, Y, G)
    K = at_branches(contacts, branches, Y)
    for e in range(E):
        for f in range(e + 1):
            c = branches.meet[e][f]
            for s in range(contacts.begin[f], contacts.begin[f + 1]):
                z = O[c].motion(K[c][s]) if c >= 0 else ZERO_MOTION
                for r in range(max(s, contacts.begin[e]), contacts.begin[e + 1]):
                    D[r][s] = G[r][s] + K[c][r].power(z) if c >= 0 else G[r][s]
    mirror(m, D)


def propagators(tree: Tree, contacts: Contacts, branches: Branches, X, W, d):
    """Columns of P, each at the branching row where it ends, and the lower triangle of Omega of stretches."""
    m = len(contacts.owner)
    columns = m + 6 * (len(branches.row) - 1)
    Y = [ZERO_FORCE for _ in range(columns)]
    G = [[0.0] * columns for _ in range(columns)]
    u = [0.0] * columns
    for r in range(m):
        Y[r] = wrench(contacts, r)
    for i in range(len(tree.parent) - 1, -1, -1):
        if branches.number[i] >= 0:
            for k in range(6):
                e = unit_motion(k, 1.0)
                Y[m + 6 * branches.number[i] + k] = Force(e.ang, e.lin)
        for a in range(branches.first[i], branches.first[i + 1]):
            r = branches.passing[a]
            u[r] = 0.0 - Y[r].component(tree.axis[i])
            du = d[i] * u[r]
            for b in range(branches.first[i], a + 1):
                s = branches.passing[b]
                G[r][s] = G[r][s] + du * u[s]
            if tree.parent[i] >= 0:
                Y[r] = passed_on(tree, X, W[i], i, u[r], Y[r])
    return Y, G


def mobilities(branches: Branches, m: int, Y, G):
    """Omega of the branching rows, with the ground held."""
    B = len(branches.row) - 1
    O = [ZERO_MOBILITY] * (B + 1)
    for i in range(B):
        k = m + 6 * i
        p = branches.above[i]
        if p >= 0:
            for a in range(6):
                z = O[p].motion(Y[k + a])
                for b in range(a + 1):
                    G[k + a][k + b] = G[k + a][k + b] + Y[k + b].power(z)
        O[i] = mobility(G, k)
    return O


def at_branches(contacts: Contacts, branches: Branches, Y):
    """The wrenches of end-effectors at all branching rows above them."""
    m, B = len(contacts.owner), len(branches.row) - 1
    K = [[ZERO_FORCE for _ in range(m)] for _ in range(B + 1)]
    for r in range(m):
        c = branches.end_above[contacts.owner[r]]
        if c >= 0:
            K[c][r] = Y[r]
            while branches.above[c] >= 0:
                K[branches.above[c]][r] = combined(Y, m + 6 * c, K[c][r])
                c = branches.above[c]
    return K


def combined(Y, k: int, f: Force) -> Force:
    """P f for the propagator whose columns are Y[k] to Y[k + 5]."""
    n, l = f.ang, f.lin
    sum: Force = (n.x * Y[k] + n.y * Y[k + 1] + n.z * Y[k + 2]) + (l.x * Y[k + 3] + l.y * Y[k + 4] + l.z * Y[k + 5])
    return sum
