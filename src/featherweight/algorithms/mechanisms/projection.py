"""Forward dynamics of mechanisms with loops by projection, without clusters (Chignoli et al. 2023, section II-D).

(G^T H G) y'' = G^T (tau - c - H g)      H and c of the spanning tree, dense Cholesky; tau of the independent joints
"""

from __future__ import annotations

from ...model.tree import Placements
from ..contact.operational_space.dense_factors import dot, factorize, solve
from ..crba import crba
from ..kinematics import external_forces
from ..rnea import newton_euler
from .cluster_tree import ClusterTree
from .counterparts import takes_mechanism
from .spanning import expanded


def whole_tree(mech: ClusterTree, q, v, external):
    """Return the tree's configuration, maps, inertia matrix and bias force."""
    tree, n = mech.tree, len(mech.tree.parent)
    qs, vs, M = expanded(mech, q, v)
    H = [[0.0] * n for _ in range(n)]
    crba(tree, qs, H)
    bias = [0.0] * n
    newton_euler(tree, qs, vs, [0.0] * n, external, bias)
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
