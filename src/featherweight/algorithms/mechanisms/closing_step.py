"""A step of Newton's method towards closed loops, with fixed independent joints:

    K_d x = -phi      q' = q exp(x / sqrt(1 + 4 |x|^2))

The square root limits a cluster's step to half a unit if loops are far from closed. It changes the step in third order only,
so the method still converges quadratically.
"""

from __future__ import annotations

from typing import NamedTuple

from ...spatial import sqrt
from ..integration import move_joint
from .cluster_tree import Cluster, ClusterTree
from .counterparts import takes_mechanism
from .integration import write_coordinates
from .loop_constraints import cosines, poses, violations
from .maps import constraint_matrix, dot, of_rows, triangle
from .spanning import nearness_to_singularity, placed, write_all


class ClosedWithin(NamedTuple):
    """Tolerances within which loops count as closed."""

    solved: tuple[int, ...]  # numbers of the constraints that are closed up to rounding
    others: float  # tolerance of the others, which contradict those
    facing: float  # least cosine between axes that must point the same way


@takes_mechanism
def closing_step(mech: ClusterTree, within: ClosedWithin, q, results) -> None:
    """Write the configuration after a step, and measures of q.

    The measures are phi of the solved constraints; margins, none of which is negative if loops are closed; and the closeness
    to a singular configuration.
    """
    ahead, residual, margins, singularity = results
    qs, X = placed(mech, q)
    moved = list(qs)
    phi, facing, total = [], [], 0.0
    for cluster in mech.clusters:
        P = poses(mech.tree, cluster, X)
        violated = violations(mech.tree, cluster, P, qs)
        phi += violated
        facing += cosines(cluster, P)
        if cluster.dependent:
            K_d = of_rows(constraint_matrix(mech, cluster, P, qs), cluster.dependent)
            R = triangle(K_d, [[0.0 - violated[k]] for k in cluster.kept])
            total = total + nearness_to_singularity(K_d, R)
            move_dependent(mech, cluster, qs, [x for (x,) in R.solution()], moved)
    write_coordinates(mech, moved, ahead)
    write_all(residual, [phi[k] for k in within.solved])
    off = [within.others * within.others - phi[k] * phi[k] for k in range(len(phi)) if k not in within.solved]
    write_all(margins, off + [cosine - within.facing for cosine in facing])
    singularity[0] = total


def move_dependent(mech: ClusterTree, cluster: Cluster, qs, x, moved) -> None:
    """Write the coordinates of a cluster's dependent joints after a step x of their dependent rows."""
    scale = 1.0 / sqrt(1.0 + 4.0 * dot(x, x))
    step = [0.0] * len(mech.tree.parent)
    for r, y in zip(cluster.dependent, x, strict=True):
        step[r] = scale * y
    for j in sorted({mech.tree.first[r] for r in cluster.dependent}):
        move_joint(mech.tree, j, qs, step, moved)
