"""PV-OSIMr (Sathya, Decré and Swevers, algorithm 3): where paths meet, six unit wrenches replace all constraints below.

    Backward over the joints, between one branching row (or end-effector) D and the next one above it:
        P_D = P_i P_D,   Omega_D = Omega_D + P_D^T S d S^T P_D                                          (16, 17)
    Forward over branching rows:      Omega_i = Omega_i + P_i^T Omega_A(i) P_i                           (18)
    Backward from each end-effector to the branching rows above:      K_A(j) = K_j P_j^T                 (19)
    The blocks are K_e Omega_cca K_f^T, plus the part below the first branching row on the diagonal.     (13)

If a branching row belongs to a joint on the ground, such as a floating base, Omega stays in factors: the accelerations u at the
rows of this joint, for wrenches at its body, replace six unit wrenches, and K_e Omega K_f^T is the sum of d u_e u_f. The
articulated inertia of the base is factorized in any case.

With a subset of the tree's branching rows (closed under going up), more columns pass a joint side by side. Pairs of them then
meet below the first branching row, as in PV-OSIM, which has no branching rows.
"""

from __future__ import annotations

from ....model.tree import Tree
from ....spatial import ZERO_FORCE, ZERO_MOBILITY, Force, mobility, unit_motion
from ...articulated import articulated_inertias
from ...columns import clear_block, column_force, columns, mirror_upper, set_force, transform_columns, write_mobility_products
from ...kinematics import joint_transforms
from ..contact_rows import Branches, ContactRows, product, propagate_force, wrench


def pv_osimr(tree: Tree, contacts: ContactRows, branches: Branches, q, D) -> None:
    """Write the Delassus matrix."""
    X = joint_transforms(tree, q)
    W, d = articulated_inertias(tree, X)
    by_branches(tree, contacts, branches, X, W, d, D)


def by_branches(tree: Tree, contacts: ContactRows, branches: Branches, X, W, d, D) -> None:
    """Run the recursion with given articulated inertias. D is filled above the diagonal, each pair where it meets."""
    m, B = len(contacts.owner), len(branches.row) - 1
    Y, G = propagators(tree, contacts, branches, X, W, d)
    U = [[0.0] * 6 for _ in range(m)]
    for k in range(B):
        if branches.above[k] >= 0 and is_on_base(tree, branches.row[branches.above[k]]):
            add_mobility_of_base(tree, branches, W, d, m + 6 * k, branches.row[branches.above[k]], Y, G)
    O = mobilities_at_branches(branches, m, Y, G)
    K = columns(m)
    for r in range(m):
        set_force(K, r, Y[r])
    for k in range(B, -1, -1):
        base = k < B and is_on_base(tree, branches.row[k])
        if base:
            for x in range(branches.first_range[k], branches.first_range[k + 1]):
                for r in range(branches.ranges[x][0], branches.ranges[x][1]):
                    write_base_accelerations(tree, W, branches.row[k], column_force(K, r), U[r])
        for x in range(branches.first_pair[k], branches.first_pair[k + 1]):
            f, begin, stop = branches.pairs[x]
            for s in range(contacts.begin[f], contacts.begin[f + 1]):
                if base:
                    for r in range(max(s, begin), stop):
                        D[s][r] = base_product(tree, d, branches.row[k], U[s], U[r])
                elif k < B:
                    write_mobility_products(K, D, O[k], s, s + 1, max(s, begin), stop)
                else:
                    clear_block(D, s, s + 1, max(s, begin), stop)
        if k < B and branches.above[k] >= 0:
            for x in range(branches.first_range[k], branches.first_range[k + 1]):
                transform_columns(K, Y, m + 6 * k, branches.ranges[x][0], branches.ranges[x][1])
    for r in range(m):
        for s in range(branches.earliest[r], r + 1):
            D[s][r] = D[s][r] + G[product(branches, r, s)]
    mirror_upper(D, 0, m)


def propagators(tree: Tree, contacts: ContactRows, branches: Branches, X, W, d):
    """Return columns of P, each at the branching row where it ends, and Omega of branches: products of columns side by side."""
    m = len(contacts.owner)
    count = len(branches.earliest)
    Y = [ZERO_FORCE for _ in range(count)]
    G = [0.0] * branches.begin[count]
    u = [0.0] * count
    for r in range(m):
        Y[r] = wrench(contacts, r)
    for i in range(len(tree.parent) - 1, -1, -1):
        if is_on_base(tree, i) and branches.number[tree.last[i]] >= 0:
            continue
        if branches.number[i] >= 0:
            for k in range(6):
                e = unit_motion(k, 1.0)
                Y[m + 6 * branches.number[i] + k] = Force(e.ang, e.lin)
        for a in range(branches.first[i], branches.first[i + 1]):
            r = branches.passing[a]
            at = product(branches, r, 0)
            u[r] = 0.0 - Y[r].component(tree.axis[i])
            du = d[i] * u[r]
            for b in range(branches.first[i], a + 1):
                s = branches.passing[b]
                G[at + s] = G[at + s] + du * u[s]
            if tree.parent[i] >= 0:
                Y[r] = propagate_force(tree, X, W[i], i, u[r], Y[r])
    return Y, G


def is_on_base(tree: Tree, i: int) -> bool:
    """Return whether row i belongs to a joint on the ground."""
    return tree.parent[tree.first[i]] < 0


def write_base_accelerations(tree: Tree, W, i: int, Y: Force, u) -> None:
    """Write the accelerations of the rows of a joint on the ground, without d, for a wrench on its body, that of row i."""
    for j in range(i, tree.first[i] - 1, -1):
        u[j - tree.first[i]] = 0.0 - Y.component(tree.axis[j])
        Y = Y + u[j - tree.first[i]] * W[j]


def base_product(tree: Tree, d, i: int, u, v):
    """Return the sum of d u v over the rows of a joint on the ground, whose body is that of row i."""
    total = 0.0
    for j in range(i, tree.first[i] - 1, -1):
        total = total + (d[j] * u[j - tree.first[i]]) * v[j - tree.first[i]]
    return total


def add_mobility_of_base(tree: Tree, branches: Branches, W, d, k: int, i: int, Y, G) -> None:
    """Add P^T Omega P to the products of the six columns from k on, which arrive at the body of row i, on a base."""
    U = [[0.0] * 6 for _ in range(6)]
    for a in range(6):
        write_base_accelerations(tree, W, i, Y[k + a], U[a])
        for b in range(a + 1):
            x = product(branches, k + a, k + b)
            G[x] = G[x] + base_product(tree, d, i, U[a], U[b])


def mobilities_at_branches(branches: Branches, m: int, Y, G):
    """Return Omega of the branching rows, with the ground fixed; zero on bases, if their products are elsewhere."""
    B = len(branches.row) - 1
    O = [ZERO_MOBILITY] * (B + 1)
    for i in range(B):
        k = m + 6 * i
        p = branches.above[i]
        if p >= 0:
            for a in range(6):
                z = O[p].motion(Y[k + a])
                for b in range(a + 1):
                    x = product(branches, k + a, k + b)
                    G[x] = G[x] + Y[k + b].power(z)
        O[i] = mobility(G, branches.begin, k)
    return O
