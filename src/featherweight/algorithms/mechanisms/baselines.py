"""Forward dynamics of mechanisms with loops by methods without clusters (Chignoli et al., section II-D).

    projection     (G^T H G) y'' = G^T (tau - c - H g)           H and c of the spanning tree, dense Cholesky
    multipliers    H q'' - K^T f = tau - c,  K q'' = k           by the sparse factors of H and the dense matrix K H^-1 K^T

Joint forces tau are those of the independent joints; K has a row for each joint that is not independent.
"""

from __future__ import annotations

from ...model.tree import Placements
from ..contact.constraint_rows import ConstraintRows
from ..contact.operational_space.by_factors import dense_rows
from ..contact.operational_space.dense_factors import factorize, solve
from ..crba import crba
from ..kinematics import external_forces, joint_transforms
from ..ltdl import back_substitute, forward_substitute, ltdl_in_situ
from ..rnea import newton_euler
from .cluster_tree import ClusterTree, unconstrained
from .counterparts import for_mechanism, takes_mechanism
from .loop_constraints import poses
from .maps import constraint_matrix, dot, maps, slopes, spanning_configuration, spanning_velocity
from .row_jacobian import row_jacobian


def whole_tree(mech: ClusterTree, q, v, external):
    """Return the tree's configuration, maps, inertia matrix and bias force."""
    tree, n = mech.tree, len(mech.tree.parent)
    qs = spanning_configuration(mech, q)
    M = maps(mech, joint_transforms(tree, qs), qs, v)
    H = [[0.0] * n for _ in range(n)]
    crba(tree, qs, H)
    bias = [0.0] * n
    newton_euler(tree, qs, spanning_velocity(mech, M, v), [0.0] * n, external, bias)
    return qs, M, H, bias


@takes_mechanism
def projection(mech: ClusterTree, bodies: Placements, q, v, tau, forces, result) -> None:
    """Write the independent accelerations under `tau` and the `forces` on the bodies."""
    n, m = len(mech.tree.parent), len(mech.parent)
    _, M, H, bias = whole_tree(mech, q, v, external_forces(mech.tree, bodies, forces))
    A, columns = projected(mech, M, H)
    g = [0.0] * n
    for map in M:
        if map is not None:
            for r, x in map.g.items():
                g[r] = x
    rest = [0.0 - (bias[i] + dot(H[i], g)) for i in range(n)]
    C, reciprocal = factorize(m, A)
    y = solve(m, C, reciprocal, [tau[k] + dot(columns[k], rest) for k in range(m)])
    for k in range(m):
        result[k] = y[k]


@for_mechanism(dense_rows)
def projected_delassus(mech: ClusterTree, rows: ConstraintRows, q, D) -> None:
    """Write J G (G^T H G)^-1 G^T J^T, for the Jacobian J of the tree, by dense factors."""
    n, m, count = len(mech.tree.parent), len(mech.parent), len(rows.K)
    qs = spanning_configuration(mech, q)
    M = maps(mech, joint_transforms(mech.tree, qs), qs)
    H = [[0.0] * n for _ in range(n)]
    crba(mech.tree, qs, H)
    A, _ = projected(mech, M, H)
    J = [[0.0] * m for _ in range(count)]
    row_jacobian(mech, rows, q, J)
    C, reciprocal = factorize(m, A)
    for r in range(count):
        x = solve(m, C, reciprocal, J[r])
        for s in range(r + 1):
            D[r][s] = D[s][r] = dot(J[s], x)


def projected(mech: ClusterTree, M, H):
    """Return the lower triangle of G^T H G, and the columns of G."""
    n, m = len(H), len(mech.parent)
    columns = [[0.0] * n for _ in range(m)]
    for cluster, map in zip(mech.clusters, M, strict=True):
        for i, r in enumerate(cluster.rows):
            for k in range(len(cluster.independent)):
                columns[cluster.start + k][r] = (1.0 if i == k else 0.0) if map is None else map.G[r][k]
    moved = [[dot(H[i], column) for i in range(n)] for column in columns]
    return [[dot(columns[k], moved[l]) if l <= k else 0.0 for l in range(m)] for k in range(m)], columns


@takes_mechanism
def multipliers(mech: ClusterTree, bodies: Placements, q, v, tau, forces, result) -> None:
    """Write the independent accelerations under `tau` and the `forces` on the bodies."""
    tree, n = mech.tree, len(mech.tree.parent)
    qs, M, H, bias = whole_tree(mech, q, v, external_forces(tree, bodies, forces))
    K, k = spanning_constraints(mech, qs, M, v)
    z = [0.0 - b for b in bias]
    for cluster in mech.clusters:
        for i, r in enumerate(cluster.independent):
            z[r] = z[r] + tau[cluster.start + i]
    d = ltdl_in_situ(tree.parent, H)
    back_substitute(tree.parent, H, z)
    for row in K:
        back_substitute(tree.parent, H, row)
    scaled = [[x * y for x, y in zip(row, d, strict=True)] for row in K]
    D = [[dot(scaled[i], K[j]) if j <= i else 0.0 for j in range(len(K))] for i in range(len(K))]
    C, reciprocal = factorize(len(K), D)
    f = solve(len(K), C, reciprocal, [k[i] - dot(scaled[i], z) for i in range(len(K))])
    for i in range(n):
        z[i] = d[i] * (z[i] + dot([row[i] for row in K], f))
    forward_substitute(tree.parent, H, z)
    for cluster in mech.clusters:
        for i, r in enumerate(cluster.independent):
            result[cluster.start + i] = z[r]


def spanning_constraints(mech: ClusterTree, qs, M, v):
    """Return K on all rows of the tree and k: the rows of loops, and one row for each follower."""
    n = len(mech.tree.parent)
    X = joint_transforms(mech.tree, qs)
    K, k = [], []
    for cluster, map in zip(mech.clusters, M, strict=True):
        if unconstrained(cluster):
            continue
        y = v[cluster.start : cluster.start + len(cluster.independent)]
        rates = {r: dot(map.G[r], y) for r in cluster.rows}
        for f in cluster.followers:
            row = [0.0] * n
            row[f.row] = 1.0
            bend = 0.0
            for r, slope, second in slopes(mech, f, qs):
                row[r] = row[r] - slope
                bend = bend + second * (rates[r] * rates[r])
            K.append(row)
            k.append(bend)
        if cluster.dependent:
            for entries in constraint_matrix(mech, cluster, poses(mech.tree, cluster, X), qs):
                row = [0.0] * n
                for r in (*cluster.independent, *cluster.dependent):
                    row[r] = entries[r]
                K.append(row)
                k.append(dot([entries[r] for r in cluster.dependent], [map.g[r] for r in cluster.dependent]))
    return K, k
