"""Inverse dynamics of mechanisms with loops: the cluster-based recursive Newton-Euler algorithm (C-RNEA, section VI).

S_k of a cluster is the product of the motion subspaces of its joints with G, so S_k^T f is G^T times the joint forces of the
spanning tree (equation 29), and accelerations are those of q'' = G y'' + g: the recursion itself is that of the tree.
"""

from __future__ import annotations

from ...model.tree import Placements
from ...spatial import ZERO_FORCE
from .. import rnea as tree_rnea
from ..kinematics import external_forces
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism, takes_mechanism
from .loop_constraints import poses
from .maps import (
    constraint_matrix,
    slopes,
    solve_square,
    spanning_acceleration,
    write_projected,
)
from .spanning import expanded, mapped, placed, write_all


@for_mechanism(tree_rnea.rnea)
def rnea(mech: ClusterTree, bodies: Placements, q, v, a, forces, tau) -> None:
    """Write the independent joint forces that produce the independent accelerations `a` while `forces` act on the bodies."""
    newton_euler(mech, q, v, a, external_forces(mech.tree, bodies, forces), tau)


def newton_euler(mech: ClusterTree, q, v, a, external, tau) -> None:
    """Run the recursion, with one external Force for each row of the tree."""
    M, forces = spanning_forces(mech, q, v, a, external)
    write_projected(mech, M, forces, tau)


def spanning_forces(mech: ClusterTree, q, v, a, external):
    """Return the maps, and joint forces of the spanning tree."""
    qs, vs, M = expanded(mech, q, v)
    forces = [0.0] * len(mech.tree.parent)
    tree_rnea.newton_euler(mech.tree, qs, vs, spanning_acceleration(mech, M, a), external, forces)
    return M, forces


@takes_mechanism
def spanning_torque(mech: ClusterTree, q, v, a, forces) -> None:
    """Write joint forces of the spanning tree, of drives and constraints together, for independent accelerations `a`."""
    write_all(forces, spanning_forces(mech, q, v, a, [ZERO_FORCE] * len(mech.tree.parent))[1])


@takes_mechanism
def loop_forces(mech: ClusterTree, q, v, a, result) -> None:
    """Write K_d^-T times the forces that loops exert at dependent joints, including those of their followers."""
    tree = mech.tree
    _, forces = spanning_forces(mech, q, v, a, [ZERO_FORCE] * len(tree.parent))
    qs, X = placed(mech, q)
    begin = 0
    for cluster in mech.clusters:
        for f in reversed(cluster.followers):
            for row, slope, _ in slopes(mech, f, qs):
                forces[row] = forces[row] + slope * forces[f.row]
        if cluster.dependent:
            K = constraint_matrix(mech, cluster, poses(tree, cluster, X), qs)
            transposed = [[row[r] for row in K] for r in cluster.dependent]
            solved = solve_square(transposed, [[forces[r]] for r in cluster.dependent])
            for k, x in enumerate(solved):
                result[begin + k] = x[0]
            begin += len(solved)


@for_mechanism(tree_rnea.bias_force)
def bias_force(mech: ClusterTree, q, v, tau) -> None:
    """Write Coriolis, centrifugal and gravity forces: inverse dynamics without independent accelerations."""
    newton_euler(mech, q, v, [0.0] * len(mech.parent), [ZERO_FORCE] * len(mech.tree.parent), tau)


@for_mechanism(tree_rnea.gravity_force)
def gravity_force(mech: ClusterTree, q, tau) -> None:
    """Write gravity forces: inverse dynamics at rest."""
    bias_force(mech, q, [0.0] * len(mech.parent), tau)


@takes_mechanism
def expansion(mech: ClusterTree, q, v, a, results) -> None:
    """Write configuration, velocities and accelerations of the spanning tree."""
    qs, vs, M = expanded(mech, q, v)
    for result, values in zip(results, (qs, vs, spanning_acceleration(mech, M, a)), strict=True):
        write_all(result, values)


@takes_mechanism
def projection(mech: ClusterTree, q, forces, tau) -> None:
    """Write G^T times joint forces of the spanning tree."""
    _, M = mapped(mech, q)
    write_projected(mech, M, forces, tau)


@for_mechanism(tree_rnea.static_torque)
def static_torque(mech: ClusterTree, bodies: Placements, q, forces, tau) -> None:
    """Write independent joint forces that hold the robot still while `forces` act on the bodies."""
    n = len(mech.parent)
    rnea(mech, bodies, q, [0.0] * n, [0.0] * n, forces, tau)
