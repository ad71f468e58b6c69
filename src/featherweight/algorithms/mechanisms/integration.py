"""Steps along independent velocities, q exp(G v): as far as loops do not bend them, which they then open by the order of v²."""

from __future__ import annotations

from ...model.tree import INNER
from .. import integration
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism
from .maps import spanning_velocity
from .spanning import mapped


@for_mechanism(integration.integrate)
def integrate(mech: ClusterTree, q, v, result) -> None:
    qs, M = mapped(mech, q)
    moved = [0.0] * len(qs)
    integration.integrate(mech.tree, qs, spanning_velocity(mech, M, v), moved)
    write_coordinates(mech, moved, result)


@for_mechanism(integration.advance)
def advance(mech: ClusterTree, q, u, d, h, results) -> None:
    """Origins of joints that loops leave all their velocities move straight on."""
    ahead, velocity = results
    turning = independent_kinds(mech)
    integration.carry(turning, u, d, h, velocity)
    qs, M = mapped(mech, q)
    x = spanning_velocity(mech, M, [h * u[i] + d[i] for i in range(len(turning))])
    moved = [0.0] * len(qs)
    for cluster in mech.clusters:
        for r in cluster.rows:
            if is_independent(mech, r):
                integration.move_joint_straight(mech.tree, r, qs, x, moved)
            else:
                integration.move_joint(mech.tree, r, qs, x, moved)
    write_coordinates(mech, moved, ahead)


def is_independent(mech: ClusterTree, r: int) -> bool:
    """Whether no loop or coupling determines a velocity of the joint that a row of the tree belongs to."""
    independent = mech.clusters[mech.owner[r]].independent
    return all(i in independent for i in range(mech.tree.first[r], mech.tree.last[r] + 1))


def independent_kinds(mech: ClusterTree) -> list[int]:
    """For each independent velocity the kind of its joint, at the first row of one that is independent as a whole."""
    rows = [r for cluster in mech.clusters for r in cluster.independent]
    return [mech.tree.kind[r] if is_independent(mech, r) else INNER for r in rows]


def write_coordinates(mech: ClusterTree, qs, q) -> None:
    """Of the spanning tree's coordinates, write those that q has."""
    for place, x in zip(mech.position, qs, strict=True):
        if place >= 0:
            q[place] = x
