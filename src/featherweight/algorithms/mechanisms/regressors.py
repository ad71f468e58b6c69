"""Regressors of mechanisms with loops: those of the spanning tree at its velocities and accelerations.

Because tau = G^T tau_tree, Y = G^T Y_tree.
"""

from __future__ import annotations

from ...model.tree import Placements
from .. import regressors
from ..regressors import PARAMETERS, JointColumns
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism
from .maps import spanning_acceleration, write_projected
from .spanning import expanded

NO_JOINTS = JointColumns((), (), ())


@for_mechanism(regressors.inverse_dynamics_regressor)
def inverse_dynamics_regressor(mech: ClusterTree, bodies: Placements, q, v, a, Y) -> None:
    extended_regressor(mech, bodies, NO_JOINTS, q, v, a, Y)


@for_mechanism(regressors.extended_regressor)
def extended_regressor(mech: ClusterTree, bodies: Placements, joints: JointColumns, q, v, a, Y) -> None:
    """Write the regressor; friction and armature are those of all joints of the spanning tree."""
    tree = mech.tree
    qs, vs, M = expanded(mech, q, v)
    columns = PARAMETERS * len(bodies.row) + len(joints.kind)
    whole = [[0.0] * columns for _ in tree.parent]
    regressors.extended_regressor(tree, bodies, joints, qs, vs, spanning_acceleration(mech, M, a), whole)
    for k in range(columns):
        projected = [0.0] * len(mech.parent)
        write_projected(mech, M, [row[k] for row in whole], projected)
        for i in range(len(mech.parent)):
            Y[i][k] = projected[i]
