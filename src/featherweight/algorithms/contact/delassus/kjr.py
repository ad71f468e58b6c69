"""The algorithm of Kreutz-Delgado, Jain and Rodriguez (1992), as arranged by Featherstone (2010).

Omega_i of a row follows from that of its parent, and Omega_ij of two rows from Omega_pj, one joint at a time:

    Omega_ii = P^T Omega_pp P + S d S^T,     Omega_ij = P^T Omega_pj      from the last row that carries both

There are no propagators over several joints, so the cost of every pair of end-effectors grows with the paths to both.
"""

from __future__ import annotations

from ....model.tree import INNER, Tree
from ....spatial import ZERO_MOBILITY, ZERO_MOTION, Force, Motion, Vec3, unit_motion
from ...articulated import articulated_inertias
from ...kinematics import clear, joint_transforms
from ..contact_rows import ContactRows, mirror_lower, propagate_motion, wrench


def kjr(tree: Tree, contacts: ContactRows, q, D) -> None:
    """Write the Delassus matrix."""
    n, m, E = len(tree.parent), len(contacts.owner), len(contacts.link)
    X = joint_transforms(tree, q)
    W, d = articulated_inertias(tree, X)
    O = mobilities_of_carriers(tree, contacts, X, W, d)
    clear(D)
    for r in range(m):
        link = contacts.link[contacts.owner[r]]
        if link >= 0:
            z = O[link].motion(wrench(contacts, r))
            for s in range(contacts.begin[contacts.owner[r]], r + 1):
                D[r][s] = wrench(contacts, s).power(z)
    for f in range(E):
        for c in range(n):
            if contacts.link[f] >= 0 and meets(contacts, f, c) == 1:
                M = sensitivities(tree, X, W, O[c], c, contacts.link[f])
                for s in range(contacts.begin[f], contacts.begin[f + 1]):
                    a = acceleration_by_symmetry(M, wrench(contacts, s))  # acceleration of row c
                    for e in range(f + 1, E):
                        if contacts.meet[e][f] == c:
                            b = propagate_motion_down(tree, X, W, a, c, contacts.link[e])
                            for r in range(contacts.begin[e], contacts.begin[e + 1]):
                                D[r][s] = wrench(contacts, r).power(b)
    mirror_lower(m, D)


def mobilities_of_carriers(tree: Tree, contacts: ContactRows, X, W, d):
    """Return Omega_ii of the rows that carry end-effectors."""
    n = len(tree.parent)
    O = [ZERO_MOBILITY] * n
    for i in range(n):
        if contacts.first[i] < contacts.first[i + 1]:
            p = tree.parent[i]
            if p >= 0:
                O[i] = O[p] if tree.kind[i] == INNER else X[i].mobility_to_child(O[p])
            s = unit_motion(tree.axis[i], 1.0)
            R = O[i].motion(W[i])
            g = (0.5 * (d[i] + W[i].power(R))) * s - R
            O[i] = O[i].plus_symmetric(s, g)
    return O


def meets(contacts: ContactRows, f: int, c: int) -> int:
    """Return whether a later end-effector's path meets that of f at row c."""
    for e in range(f + 1, len(contacts.link)):
        if contacts.meet[e][f] == c:
            return 1
    return 0


def propagate_motion_down(tree: Tree, X, W, a: Motion, c: int, link: int) -> Motion:
    """Return the acceleration of `link` for that of row c above it."""
    n = len(tree.parent)
    on_path = [0] * n
    i = link
    while i != c:
        on_path[i] = 1
        i = tree.parent[i]
    for i in range(c + 1, link + 1):
        if on_path[i] == 1:
            a = propagate_motion(tree, X, W[i], i, a)
    return a


def sensitivities(tree: Tree, X, W, O, c: int, link: int):
    """Return Omega of `link` and row c above it: the acceleration of `link` for each of six unit wrenches at row c."""
    M = [ZERO_MOTION] * 6
    for k in range(6):
        e = unit_motion(k, 1.0)
        M[k] = propagate_motion_down(tree, X, W, O.motion(Force(e.ang, e.lin)), c, link)
    return M


def acceleration_by_symmetry(M, f: Force) -> Motion:
    """Return the acceleration of row c for a wrench on the link, by symmetry."""
    ang = Vec3(f.power(M[0]), f.power(M[1]), f.power(M[2]))
    return Motion(ang, Vec3(f.power(M[3]), f.power(M[4]), f.power(M[5])))
