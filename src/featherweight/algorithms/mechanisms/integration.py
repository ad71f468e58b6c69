"""Steps along independent velocities, q exp(G v), along the tangent of loops; loops then open in the order of v²."""

from __future__ import annotations

from typing import Any

from ...model.tree import INNER
from .. import integration
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism
from .maps import spanning_configuration, spanning_velocity
from .spanning import mapped


@for_mechanism(integration.integrate)
def integrate(mech: ClusterTree, q, v, result) -> None:
    qs, M = mapped(mech, q)
    move_joints(mech, qs, spanning_velocity(mech, M, v), result)


def move_joints(mech: ClusterTree, qs, x, result) -> None:
    """Write the coordinates in q of joints that move by velocities of the spanning tree."""
    moved = [0.0] * len(qs)
    integration.integrate(mech.tree, qs, x, moved)
    write_coordinates(mech, moved, result)


@for_mechanism(integration.advance)
def advance(mech: ClusterTree, q, u, d, h, results) -> None:
    """Write the results of a step; origins of joints with independent velocities only move along straight lines."""
    qs, M = mapped(mech, q)
    write_advanced(mech, qs, spanning_velocity(mech, M, led(u, d, h)), (u, d, h), results)


def led(u, d, h) -> list[Any]:
    """Return h u + d."""
    return [h * x + y for x, y in zip(u, d, strict=True)]


def write_advanced(mech: ClusterTree, qs, x, step, results) -> None:
    """Write the results of `advance` for joints that move by velocities x of the spanning tree."""
    ahead, velocity = results
    u, d, h = step
    integration.carry(independent_kinds(mech), u, d, h, velocity)
    moved = [0.0] * len(qs)
    for r in range(len(x)):
        if is_independent(mech, r):
            integration.move_joint_straight(mech.tree, r, qs, x, moved)
        else:
            integration.move_joint(mech.tree, r, qs, x, moved)
    write_coordinates(mech, moved, ahead)


@for_mechanism(integration.difference)
def difference(mech: ClusterTree, q0, q1, result) -> None:
    """Write the independent velocities that move from q0 to q1 in a unit of time."""
    whole = [0.0] * len(mech.tree.parent)
    integration.difference(mech.tree, spanning_configuration(mech, q0), spanning_configuration(mech, q1), whole)
    for cluster in mech.clusters:
        for k, r in enumerate(cluster.independent):
            result[cluster.start + k] = whole[r]


def is_independent(mech: ClusterTree, r: int) -> bool:
    """Return whether no loop or coupling determines a velocity of the joint to which a row of the tree belongs."""
    independent = mech.clusters[mech.owner[r]].independent
    return all(i in independent for i in range(mech.tree.first[r], mech.tree.last[r] + 1))


def independent_kinds(mech: ClusterTree) -> list[int]:
    """Return the joint's kind at the first independent velocity of each joint that is independent as a whole."""
    rows = [r for cluster in mech.clusters for r in cluster.independent]
    return [mech.tree.kind[r] if is_independent(mech, r) else INNER for r in rows]


def write_coordinates(mech: ClusterTree, qs, q) -> None:
    """Write those of the spanning tree's coordinates that q contains into q."""
    for place, x in zip(mech.position, qs, strict=True):
        if place >= 0:
            q[place] = x
