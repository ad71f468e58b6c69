"""The Coriolis matrix of a mechanism with loops: G^T (C G + M G'), with C and M of the spanning tree.

Its forces are those of the tree's velocities, G^T (C q' + M g), because g = G' y'. M' = C + C^T holds for (G^T M G)' as well.
"""

from __future__ import annotations

from .cluster_tree import ClusterTree
from .counterparts import takes_mechanism


@takes_mechanism
def projected_coriolis(mech: ClusterTree, C, M, G, G_dot, result) -> None:
    """Write the matrix, nv by nv."""
    n, m = len(mech.tree.parent), len(mech.parent)
    for k in range(m):
        forces = [0.0] * n
        for i in range(n):
            for j in range(n):
                forces[i] = forces[i] + C[i][j] * G[j][k] + M[i][j] * G_dot[j][k]
        for l in range(m):
            total = 0.0
            for i in range(n):
                total = total + G[i][l] * forces[i]
            result[l][k] = total
