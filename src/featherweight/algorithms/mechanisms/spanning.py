"""Functions of the spanning tree's motion alone: energies, and misclosures of loops."""

from __future__ import annotations

from .. import integration
from ..contact import constraint_rows
from ..contact.operational_space.dense_factors import dot
from ..kinematics import joint_transforms
from .cluster_tree import ClusterTree, constraint_count, moving
from .counterparts import for_mechanism, takes_mechanism
from .loop_constraints import cosines, poses, violations
from .maps import TINY, Triangle, constraint_matrix, maps, of_rows, spanning_configuration, spanning_velocity, triangle


def expanded(mech: ClusterTree, q, v):
    """Return q, v, and maps of the spanning tree."""
    qs, X = placed(mech, q)
    M = maps(mech, X, qs, v)
    return qs, spanning_velocity(mech, M, v), M


def mapped(mech: ClusterTree, q):
    """Return the configuration of the spanning tree, and maps without g."""
    qs, X = placed(mech, q)
    return qs, maps(mech, X, qs)


@takes_mechanism
def velocity(mech: ClusterTree, q, v, result) -> None:
    """Write the velocities of all joints of the spanning tree."""
    _, M = mapped(mech, q)
    write_all(result, spanning_velocity(mech, M, v))


@takes_mechanism
def motion(mech: ClusterTree, q, v, results) -> None:
    """Write configuration and velocities of the spanning tree."""
    qs, vs, _ = expanded(mech, q, v)
    write_all(results[0], qs)
    write_all(results[1], vs)


@takes_mechanism
def velocity_matrix(mech: ClusterTree, q, G) -> None:
    """Write G (n, nv)."""
    _, M = mapped(mech, q)
    for k in range(len(mech.parent)):
        unit = [1.0 if i == k else 0.0 for i in range(len(mech.parent))]
        for r, x in enumerate(spanning_velocity(mech, M, unit)):
            G[r][k] = x


@for_mechanism(integration.write_configuration_rate)
def write_configuration_rate(mech: ClusterTree, q, v, rate) -> None:
    """Write the rate of the coordinates in q, at the spanning tree's velocity G v."""
    qs, vs, _ = expanded(mech, q, v)
    whole = integration.configuration_rate(mech.tree, qs, vs)
    for k, place in enumerate(mech.position):
        if place >= 0:
            rate[place] = whole[k]


@for_mechanism(integration.configuration_velocity)
def configuration_velocity(mech: ClusterTree, q, rate, v) -> None:
    """Write the velocities of independent joints; coordinates that q does not contain count as zero."""
    qs, rates = ([x[place] if place >= 0 else 0.0 for place in mech.position] for x in (q, rate))
    whole = [0.0] * len(mech.tree.parent)
    integration.configuration_velocity(mech.tree, qs, rates, whole)
    for cluster in mech.clusters:
        for k, r in enumerate(cluster.independent):
            v[cluster.start + k] = whole[r]


@takes_mechanism
def residual(mech: ClusterTree, q, result) -> None:
    """Write all constraints of loops."""
    qs, X = placed(mech, q)
    write_all(
        result, [x for cluster in mech.clusters for x in violations(mech.tree, cluster, poses(mech.tree, cluster, X), qs)]
    )


@takes_mechanism
def facing(mech: ClusterTree, q, result) -> None:
    """Write cosines between axes of loops that must point the same way."""
    _, X = placed(mech, q)
    write_all(result, [x for cluster in mech.clusters for x in cosines(cluster, poses(mech.tree, cluster, X))])


def placed(mech: ClusterTree, q):
    """Return the configuration of the spanning tree, and its joint transforms."""
    qs = spanning_configuration(mech, q)
    return qs, joint_transforms(mech.tree, qs)


def write_all(result, values) -> None:
    for i, x in enumerate(values):
        result[i] = x


@takes_mechanism
def closing_matrix(mech: ClusterTree, q, K) -> None:
    """Write K of all loops, including dependent rows, for all rows of the tree; zero for rows that a coupling determines."""
    qs, X = placed(mech, q)
    k = 0
    for cluster in mech.clusters:
        own = set(moving(cluster))
        every = cluster._replace(kept=tuple(range(constraint_count(cluster))))
        for entries in constraint_matrix(mech, every, poses(mech.tree, cluster, X), qs):
            for r in range(len(mech.tree.parent)):
                K[k][r] = entries[r] if r in own else 0.0
            k += 1


@takes_mechanism
def singularity(mech: ClusterTree, q, result) -> None:
    """Write the sum over loops of |K_d|^2 / R_kk^2, for the triangular factor R of K_d."""
    qs, X = placed(mech, q)
    total = 0.0
    for cluster in mech.clusters:
        if cluster.dependent:
            K_d = of_rows(constraint_matrix(mech, cluster, poses(mech.tree, cluster, X), qs), cluster.dependent)
            total = total + nearness_to_singularity(K_d, triangle(K_d, [[] for _ in K_d]))
    result[0] = total


def nearness_to_singularity(K_d, R: Triangle):
    """Return the sum of |K_d|^2 / R_kk^2."""
    size = 0.0
    for row in K_d:
        size = size + dot(row, row)
    total = 0.0
    for pivot in R.diagonal():
        total = total + size / (pivot * pivot + TINY * TINY)
    return total


@for_mechanism(constraint_rows.stabilization)
def stabilization(mech: ClusterTree, placements, rows, q, v, wanted, gains, result) -> None:
    qs, vs, _ = expanded(mech, q, v)
    constraint_rows.stabilization(mech.tree, placements, rows, qs, vs, wanted, gains, result)
