"""PV-OSIMr on clusters (Sathya, Decré and Swevers 2023, algorithm 3, on the tree of clusters).

Each body's parent is the last body that all forces on its cluster pass: the handle if there is one. Where paths meet at a body,
six unit wrenches replace all wrenches that arrive there. Paths that pass a cluster at different bodies meet in D of that
cluster, and arrive at its handles side by side. Omega of a body whose joint is on the ground, outside all loops,
stays in factors, as on trees, unless paths pass this body side by side.
"""

from __future__ import annotations

from ...spatial import ZERO_FORCE, ZERO_MOTION, Force, unit_motion
from ..contact.contact_rows import Branches, ContactRows, mirror_lower, product, wrench
from ..contact.delassus import pv_osimr as tree_pv_osimr
from ..contact.delassus.pv_osimr import (
    add_mobility_of_base,
    base_product,
    is_on_base,
    mobilities_at_branches,
    write_base_accelerations,
)
from .articulated import ArticulatedClusters, articulated_clusters, propagate_force_cluster, propagate_force_row
from .cluster_tree import ClusterTree, forces_pass, unconstrained
from .counterparts import for_mechanism


@for_mechanism(tree_pv_osimr.pv_osimr)
def pv_osimr(mech: ClusterTree, contacts: ContactRows, branches: Branches, q, D) -> None:
    """Write J M^-1 J^T."""
    by_branches(articulated_clusters(mech, q), contacts, branches, D)


def by_branches(A: ArticulatedClusters, contacts: ContactRows, branches: Branches, D) -> None:
    """Run the algorithm with given articulated inertias."""
    m, E = len(contacts.owner), len(contacts.link)
    branches = any_two_may_meet(branches)
    mech = A.mech
    bases = bases_of(mech, branches)
    Y, G = propagators(A, contacts, branches, bases)
    U = [[0.0] * 6 for _ in range(m)]
    for k, p in enumerate(branches.above):
        if p >= 0 and branches.row[p] in bases:
            add_mobility_of_base(mech.tree, branches, A.W, A.d, m + 6 * k, branches.row[p], Y, G)
    O = mobilities_at_branches(branches, m, Y, G)
    K = at_branches(contacts, branches, Y)
    for c, i in enumerate(branches.row):
        if i in bases:
            for r in range(m):
                if K[c][r] is not ZERO_FORCE:
                    write_base_accelerations(mech.tree, A.W, i, K[c][r], U[r])
    for e in range(E):
        for f in range(e + 1):
            c = branches.meet[e][f]
            base = c >= 0 and branches.row[c] in bases
            for s in range(contacts.begin[f], contacts.begin[f + 1]):
                z = O[c].motion(K[c][s]) if c >= 0 and not base else ZERO_MOTION
                columns = columns_below(branches, m, K, s, f, c)
                for r in range(max(s, contacts.begin[e]), contacts.begin[e + 1]):
                    D[r][s] = stretch_products(branches, G, columns_below(branches, m, K, r, e, c), columns)
                    if base:
                        D[r][s] = D[r][s] + base_product(mech.tree, A.d, branches.row[c], U[s], U[r])
                    elif c >= 0:
                        D[r][s] = D[r][s] + K[c][r].power(z)
    mirror_lower(m, D)


def bases_of(mech: ClusterTree, branches: Branches) -> set[int]:
    """Return the branching rows of joints on the ground, outside loops and couplings, where all columns end that pass.

    A column of a cluster whose first row has a lower number than its handle passes the handle without ending there.
    """
    on_ground = {i for i in branches.row if i >= 0 and is_on_base(mech.tree, i) and unconstrained(mech.clusters[mech.owner[i]])}
    return {i for i in on_ground if rows_acting_on(mech, i) <= descendants(forces_pass(mech), i)}


def rows_acting_on(mech: ClusterTree, i: int) -> set[int]:
    """Return row i and the rows whose forces reach its body."""
    found = {i}
    for cluster in mech.clusters:
        if unconstrained(cluster):
            for r in cluster.rows:
                if mech.tree.parent[r] in found:
                    found.add(r)
        elif not found.isdisjoint(cluster.handles):
            found.update(cluster.rows)
    return found


def descendants(parent: list[int], i: int) -> set[int]:
    """Return row i and its descendants, for parents with lower numbers."""
    found = {i}
    for r in range(i + 1, len(parent)):
        if parent[r] in found:
            found.add(r)
    return found


def any_two_may_meet(branches: Branches) -> Branches:
    """Return the branches with room for the products of all columns.

    The tree of bodies does not tell which columns pass a cluster together.
    """
    count = len(branches.earliest)
    return branches._replace(earliest=(0,) * count, begin=tuple(r * (r + 1) // 2 for r in range(count + 1)))


def at_branches(contacts: ContactRows, branches: Branches, Y):
    """Return the wrenches of end-effectors at all branching rows above them."""
    m, B = len(contacts.owner), len(branches.row) - 1
    K = [[ZERO_FORCE for _ in range(m)] for _ in range(B + 1)]
    for r in range(m):
        c = branches.end_above[contacts.owner[r]]
        if c >= 0:
            K[c][r] = Y[r]
            while branches.above[c] >= 0:
                K[branches.above[c]][r] = propagated(Y, m + 6 * c, K[c][r])
                c = branches.above[c]
    return K


def propagated(Y, k: int, f: Force) -> Force:
    """Return P f for the propagator whose columns are Y[k] to Y[k + 5]."""
    n, l = f.ang, f.lin
    sum: Force = (n.x * Y[k] + n.y * Y[k + 1] + n.z * Y[k + 2]) + (l.x * Y[k + 3] + l.y * Y[k + 4] + l.z * Y[k + 5])
    return sum


def columns_below(branches: Branches, m: int, K, r: int, e: int, c: int):
    """Return the columns that represent constraint row r, below branching body c: (number, coefficient)."""
    columns = [(r, 1.0)]
    b = branches.end_above[e]
    while b not in (c, -1):
        f = K[b][r]
        columns += [(m + 6 * b + k, x) for k, x in enumerate((*f.ang, *f.lin))]
        b = branches.above[b]
    return columns


def stretch_products(branches: Branches, G, one, other):
    """Return the part of D that two constraint rows share in clusters that their columns pass at different bodies."""
    total = 0.0
    for i, x in one:
        for j, y in other:
            total = total + (x * G[product(branches, max(i, j), min(i, j))]) * y
    return total


def propagators(A: ArticulatedClusters, contacts: ContactRows, branches: Branches, bases: set[int]):
    """Return wrenches that represent constraints, each at the branching body where it ends, and products.

    The products are those of the wrenches over branches.
    """
    mech = A.mech
    m = len(contacts.owner)
    columns = m + 6 * (len(branches.row) - 1)
    Y: list[dict[int, Force]] = [{} for _ in range(columns)]  # wrenches on bodies, by rows
    end = [branches.end_above[contacts.owner[r]] for r in range(m)] + [k for k in branches.above[:-1] for _ in range(6)]
    G = [0.0] * branches.begin[columns]
    for r in range(m):
        Y[r] = {contacts.link[contacts.owner[r]]: ZERO_FORCE - wrench(contacts, r)}
    done = [ZERO_FORCE] * columns
    for number in range(len(mech.clusters) - 1, -1, -1):
        cluster = mech.clusters[number]
        for body in cluster.rows:
            if branches.number[body] >= 0:
                for c in range(columns):
                    if end[c] == branches.number[body] and body in Y[c]:
                        done[c] = Y[c].pop(body)
                for k in range(0 if body in bases else 6):
                    e = unit_motion(k, -1.0)
                    Y[m + 6 * branches.number[body] + k] = {body: Force(e.ang, e.lin)}
        if unconstrained(cluster):
            for j in reversed(cluster.rows):
                u = {c: propagate_column(A, j, Y[c]) for c in range(columns) if j in Y[c]}
                add_dyad_to_products(branches, G, u, A.d[j])
        else:
            own = set(cluster.rows)
            t = {c: propagate_columns(A, number, Y[c]) for c in range(columns) if not own.isdisjoint(Y[c])}
            for k, reciprocal in enumerate(A.reciprocal[number]):
                add_dyad_to_products(branches, G, {c: x[k] for c, x in t.items()}, reciprocal)
    return [ZERO_FORCE - f for f in done], G


def propagate_column(A: ArticulatedClusters, j: int, Y: dict[int, Force]):
    """Return u of a column at row j, from which the column passes to the parent."""
    u, onward = propagate_force_row(A, j, Y.pop(j))
    add_wrench(Y, A.mech.tree.parent[j], onward)
    return u


def propagate_columns(A: ArticulatedClusters, number: int, Y: dict[int, Force]):
    """Return C^-1 t of a column at a cluster, from which the column passes to the handles."""
    t, onward = propagate_force_cluster(A, number, {j: Y.pop(j) for j in A.mech.clusters[number].rows if j in Y})
    for h, f in onward.items():
        add_wrench(Y, h, f)
    return t


def add_wrench(Y: dict[int, Force], j: int, f: Force) -> None:
    """Add a wrench on row j."""
    Y[j] = Y[j] + f if j in Y else f


def add_dyad_to_products(branches: Branches, G, u, d) -> None:
    """Add d u u^T to the lower triangle of G, for columns u."""
    for r, x in u.items():
        dx = d * x
        for s, y in u.items():
            if s <= r:
                at = product(branches, r, s)
                G[at] = G[at] + dx * y
