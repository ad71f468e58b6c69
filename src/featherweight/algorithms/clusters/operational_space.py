"""Operational space of mechanisms with loops, for contacts and rows of other kinds, in the independent velocities.

J is that of the spanning tree times G. The recursion of PV-OSIM on clusters: a wrench Y against the motion of the bodies of a
cluster leaves t = -G^T S^T Y, adds t^T D^-1 t to the diagonal, and goes on to the output body as Y + U D^-1 t.
"""

from __future__ import annotations

from ...model.tree import INNER
from ...spatial import ZERO_ARTICULATED, ZERO_FORCE, Motion, unit_motion
from ..articulated import freed, released
from ..kinematics import (
    angular_velocities,
    joint_transforms,
    rigid_inertia,
    spatial_velocities,
    velocity_products,
)
from ..operational_space import joint_space as by_factors
from ..operational_space.dense import factorize, invert, solve_dependent
from ..operational_space.joint_space import divide, divide_transposed, write_products, write_projector
from ..operational_space.reduction import Reduction, gathered, spread_out
from ..operational_space.rows import Rows, bias_accelerations, jacobian, loads
from .aba import without
from .crba import combined, forces, projected_block
from .joint_space import in_situ
from .maps import dot, maps, spanning_configuration
from .mechanism import Mechanism, free
from .rnea import bias_force
from .spanning import expanded, write_row


def row_jacobian(mech: Mechanism, rows: Rows, q, J) -> None:
    """Write J G, m by nv."""
    qs = spanning_configuration(mech, q)
    X = joint_transforms(mech.tree, qs)
    whole = [[0.0] * len(mech.tree.parent) for _ in rows.K]
    jacobian(mech.tree, rows, X, qs, whole)
    M = maps(mech, X, qs)
    for row, out in zip(whole, J, strict=True):
        write_row(mech, M, row, out)


def factors(mech: Mechanism, q):
    """L, and the reciprocals of D."""
    L = in_situ(mech, q)
    return L, [1.0 / L[i][i] for i in range(len(L))]


def halves(mech: Mechanism, rows: Rows, q, L):
    """Y = J L^-1, and J."""
    J = [[0.0] * len(mech.parent) for _ in rows.K]
    row_jacobian(mech, rows, q, J)
    Y = [list(row) for row in J]
    for y in Y:
        divide_transposed(mech.parent, L, y)
    return Y, J


def ltl(mech: Mechanism, rows: Rows, q, D) -> None:
    """Write J M^-1 J^T by sparse factors."""
    L, d = factors(mech, q)
    Y, _ = halves(mech, rows, q, L)
    write_products(len(mech.parent), len(rows.K), Y, d, D)


def pv_osim(mech: Mechanism, rows: Rows, q, D) -> None:
    """Write J M^-1 J^T by the recursion of the header."""
    tree, n, m = mech.tree, len(mech.tree.parent), len(rows.K)
    qs = spanning_configuration(mech, q)
    X = joint_transforms(tree, qs)
    M = maps(mech, X, qs)
    Y = [[ZERO_FORCE - f for f in row] for row in loads(tree, rows, X)]
    IA = [rigid_inertia(tree, j).articulated() if tree.last[j] == j else ZERO_ARTICULATED for j in range(n)]
    for r in range(m):
        for s in range(m):
            D[r][s] = 0.0
    for number in range(len(mech.clusters) - 1, -1, -1):
        cluster = mech.clusters[number]
        if free(cluster):
            for j in reversed(cluster.rows):
                pass_joint(tree, X, IA, Y, D, j)
        else:
            pass_cluster(mech, number, M[number], X, IA, Y, D)
    for r in range(m):
        for s in range(r):
            D[s][r] = D[r][s]


def pass_joint(tree, X, IA, Y, D, j: int) -> None:
    """One row of the tree."""
    p, k = tree.parent[j], tree.axis[j]
    U = IA[j].column(k)
    d = 1.0 / (U.component(k) + tree.armature[j])
    W = released(tree, U, d, j)
    if p >= 0:
        Ia = freed(tree, IA[j], U, W, j)
        IA[p] = IA[p] + (Ia if tree.kind[j] == INNER else X[j].articulated_to_parent(Ia))
    u = [0.0 - row[j].component(k) for row in Y]
    add_pairs(D, u, d)
    if p >= 0:
        for row, x in zip(Y, u, strict=True):
            moved = row[j] + x * W
            row[p] = row[p] + (moved if tree.kind[j] == INNER else X[j].force_to_parent(moved))


def add_pairs(D, u, d) -> None:
    """D + u d u^T, lower triangle."""
    for r in range(len(u)):
        du = d * u[r]
        for s in range(r + 1):
            D[r][s] = D[r][s] + du * u[s]


def pass_cluster(mech: Mechanism, number: int, M, X, IA, Y, D) -> None:
    """All rows of a cluster."""
    tree, cluster = mech.tree, mech.clusters[number]
    m, o = len(cluster.independent), cluster.output
    composite = {}
    for j in reversed(cluster.rows):
        composite[j] = IA[j]
        p = tree.parent[j]
        if p >= 0:
            IA[p] = IA[p] + (IA[j] if tree.kind[j] == INNER else X[j].articulated_to_parent(IA[j]))
    F, inside = forces(mech, cluster, X, composite)
    C, reciprocal = factorize(m, projected_block(cluster, M, inside))
    U = [combined(M, cluster, F, k) for k in range(m)]
    if o >= 0:
        IA[o] = without(m, IA[o], C, reciprocal, U)
    halves_of_rows = []
    for row in Y:
        push = {}
        for j in reversed(cluster.rows):
            push[j] = row[j].component(tree.axis[j])
            p = tree.parent[j]
            if p >= 0:
                row[p] = row[p] + (row[j] if tree.kind[j] == INNER else X[j].force_to_parent(row[j]))
        t = [0.0 - dot([M.G[r][k] for r in cluster.rows], [push[r] for r in cluster.rows]) for k in range(m)]
        for i in range(m):
            for j in range(i):
                t[i] = t[i] - C[i][j] * t[j]
        halves_of_rows.append(t)
    for k in range(m):
        add_pairs(D, [t[k] for t in halves_of_rows], reciprocal[k])
    if o >= 0:
        for row, t in zip(Y, halves_of_rows, strict=True):
            y = [a * b for a, b in zip(t, reciprocal, strict=True)]
            for i in range(m - 1, -1, -1):
                for j in range(i + 1, m):
                    y[i] = y[i] - C[j][i] * y[j]
            for k in range(m):
                row[o] = row[o] + y[k] * U[k]


def inertia(mech: Mechanism, rows: Rows, q, result) -> None:
    """Write (J M^-1 J^T)^-1."""
    ltl(mech, rows, q, result)
    invert(len(rows.K), result)


def apply(mech: Mechanism, rows: Rows, q, x, y) -> None:
    """Write J M^-1 J^T x without the matrix."""
    n = len(mech.parent)
    L, d = factors(mech, q)
    J = [[0.0] * n for _ in rows.K]
    row_jacobian(mech, rows, q, J)
    z = [dot([row[i] for row in J], x) for i in range(n)]
    divide_transposed(mech.parent, L, z)
    z = [a * b for a, b in zip(d, z, strict=True)]
    divide(mech.parent, L, z)
    for r, row in enumerate(J):
        y[r] = dot(row, z)


def accelerations(mech: Mechanism, rows: Rows, Y, d, z, q, v):
    """J y'' + (J G)' v without forces of constraints, from z of `free_halves`."""
    tree = mech.tree
    qs, vs, M = expanded(mech, q, v)
    X = joint_transforms(tree, qs)
    w, carried = angular_velocities(tree, X, vs)
    c = velocity_products(tree, X, w, carried, vs)
    g = {r: x for map in M if map is not None for r, x in map.g.items()}
    a: list[Motion] = []
    for j in range(len(tree.parent)):
        p = tree.parent[j]
        own = c[j] + unit_motion(tree.axis[j], g.get(j, 0.0))
        a.append(X[j] @ a[p] + own if p >= 0 else own)
    b = bias_accelerations(tree, rows, X, w, spatial_velocities(tree, X, vs), a, qs, vs)
    dz = [x * y for x, y in zip(d, z, strict=True)]
    return [x + dot(row, dz) for x, row in zip(b, Y, strict=True)]


def free_halves(mech: Mechanism, L, q, v, tau):
    """L^-T (tau - c - g)."""
    z = [0.0] * len(mech.parent)
    bias_force(mech, q, v, z)
    z = [t - x for t, x in zip(tau, z, strict=True)]
    divide_transposed(mech.parent, L, z)
    return z


def bias(mech: Mechanism, rows: Rows, q, v, beta) -> None:
    """Write J' v - J M^-1 (c + g)."""
    L, d = factors(mech, q)
    Y, _ = halves(mech, rows, q, L)
    z = free_halves(mech, L, q, v, [0.0] * len(mech.parent))
    for r, x in enumerate(accelerations(mech, rows, Y, d, z, q, v)):
        beta[r] = x


def consistent_inverse(mech: Mechanism, rows: Rows, q, result) -> None:
    """Write M^-1 J^T (J M^-1 J^T)^-1, nv by m."""
    L, d = factors(mech, q)
    Y, _ = halves(mech, rows, q, L)
    by_factors.write_consistent_inverse(mech, rows, L, d, Y, result)


def null_space_projector(mech: Mechanism, rows: Rows, q, N) -> None:
    """Write 1 - M^-1 J^T (J M^-1 J^T)^-1 J."""
    n, m = len(mech.parent), len(rows.K)
    inverse = [[0.0] * m for _ in range(n)]
    consistent_inverse(mech, rows, q, inverse)
    J = [[0.0] * n for _ in range(m)]
    row_jacobian(mech, rows, q, J)
    write_projector(n, m, inverse, J, N)


def constrained(mech: Mechanism, rows: Rows, reduction: Reduction, q, v, tau, result) -> None:
    """Accelerations and forces of constraints that hold still."""
    constrained_to(mech, rows, reduction, q, v, tau, [0.0] * len(reduction.spread), result)


def constrained_to(mech: Mechanism, rows: Rows, reduction: Reduction, q, v, tau, target, result) -> None:
    """y'' with J y'' + J' v = target, the forces, and how strained they are: M y'' + c + g = tau + J^T f."""
    n, m = len(mech.parent), len(rows.K)
    L, d = factors(mech, q)
    Y, _ = halves(mech, rows, q, L)
    z = free_halves(mech, L, q, v, tau)
    b = accelerations(mech, rows, Y, d, z, q, v)
    D = [[0.0] * m for _ in range(m)]
    write_products(n, m, Y, d, D)
    aim = gathered(reduction, target)
    f, strain = solve_dependent(m, D, [x - y for x, y in zip(aim, b, strict=True)], reduction.dependent)
    z = [d[i] * (z[i] + dot([row[i] for row in Y], f)) for i in range(n)]
    divide(mech.parent, L, z)
    for i in range(n):
        result[i] = z[i]
    spread_out(reduction, f, result, n)
    result[n + len(reduction.spread)] = strain
