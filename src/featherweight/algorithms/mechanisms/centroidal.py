"""Centroidal momentum of mechanisms: the map A_G G, and functions of it."""

from __future__ import annotations

from .. import centroidal as of_tree
from .. import centroidal_rates as tree_rates
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism, takes_mechanism
from .on_spanning_tree import center_of_mass_jacobian, centroidal_map, on_spanning_tree

centroidal_momentum_rate = on_spanning_tree(tree_rates.centroidal_momentum_rate)


@for_mechanism(of_tree.centroidal_momentum_by_map)
def centroidal_momentum_by_map(mech: ClusterTree, q, v, momentum) -> None:
    A = [[0.0] * len(mech.parent) for _ in range(6)]
    centroidal_map(mech, q, A)
    of_tree.write_product(A, v, momentum)


@for_mechanism(of_tree.center_of_mass_velocity_by_jacobian)
def center_of_mass_velocity_by_jacobian(mech: ClusterTree, q, v, velocity) -> None:
    J = [[0.0] * len(mech.parent) for _ in range(3)]
    center_of_mass_jacobian(mech, q, J)
    of_tree.write_product(J, v, velocity)


@for_mechanism(tree_rates.centroidal_bias)
def centroidal_bias(mech: ClusterTree, q, v, bias) -> None:
    centroidal_momentum_rate(mech, q, v, [0.0] * len(mech.parent), bias)


@takes_mechanism
def projected_map_rate(mech: ClusterTree, A, rate, G, G_dot, result) -> None:
    """Write A_G' G + A_G G'."""
    n, m = len(mech.tree.parent), len(mech.parent)
    for i in range(6):
        for k in range(m):
            total = 0.0
            for r in range(n):
                total = total + rate[i][r] * G[r][k] + A[i][r] * G_dot[r][k]
            result[i][k] = total
