"""Centroidal momentum of mechanisms: that of the spanning tree at q' = G y', q'' = G y'' + g."""

from __future__ import annotations

from .. import centroidal as of_tree
from .. import centroidal_rates as tree_rates
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism, takes_mechanism
from .maps import spanning_acceleration, spanning_configuration
from .spanning import center_of_mass_jacobian, expanded, mapped, write_rows, zero_rows


@for_mechanism(of_tree.centroidal_map)
def centroidal_map(mech: ClusterTree, q, A) -> None:
    """Write A_G G."""
    qs, M = mapped(mech, q)
    whole = zero_rows(mech, 6)
    of_tree.centroidal_map(mech.tree, qs, whole)
    write_rows(mech, M, whole, A)


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


@for_mechanism(of_tree.centroidal_inertia)
def centroidal_inertia(mech: ClusterTree, q, inertia) -> None:
    of_tree.centroidal_inertia(mech.tree, spanning_configuration(mech, q), inertia)


@for_mechanism(of_tree.centroidal_momentum)
def centroidal_momentum(mech: ClusterTree, q, v, momentum) -> None:
    qs, vs, _ = expanded(mech, q, v)
    of_tree.centroidal_momentum(mech.tree, qs, vs, momentum)


@for_mechanism(of_tree.center_of_mass_velocity)
def center_of_mass_velocity(mech: ClusterTree, q, v, velocity) -> None:
    qs, vs, _ = expanded(mech, q, v)
    of_tree.center_of_mass_velocity(mech.tree, qs, vs, velocity)


@for_mechanism(tree_rates.centroidal_momentum_rate)
def centroidal_momentum_rate(mech: ClusterTree, q, v, a, rate) -> None:
    qs, vs, M = expanded(mech, q, v)
    tree_rates.centroidal_momentum_rate(mech.tree, qs, vs, spanning_acceleration(mech, M, a), rate)


@for_mechanism(tree_rates.centroidal_bias)
def centroidal_bias(mech: ClusterTree, q, v, bias) -> None:
    centroidal_momentum_rate(mech, q, v, [0.0] * len(mech.parent), bias)


@for_mechanism(tree_rates.center_of_mass_acceleration)
def center_of_mass_acceleration(mech: ClusterTree, q, v, a, acceleration) -> None:
    qs, vs, M = expanded(mech, q, v)
    tree_rates.center_of_mass_acceleration(mech.tree, qs, vs, spanning_acceleration(mech, M, a), acceleration)


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
