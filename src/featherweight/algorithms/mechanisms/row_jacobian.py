"""Constraint rows in the independent velocities of a mechanism with loops: J of the spanning tree times G, and (J G)' v."""

from __future__ import annotations

from typing import Any

from ...spatial import unit_motion
from ..contact import constraint_rows
from ..contact.constraint_rows import (
    ConstraintRows,
    add_entry_accelerations,
    row_accelerations,
    unit_wrenches,
    write_entries,
    write_joint_forces_of,
)
from ..contact.operational_space import constrained_derivatives
from ..integration import configuration_rate
from ..kinematics import (
    accelerations_of_velocities,
    joint_transforms,
    spatial_velocities,
    velocity_products,
)
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism
from .maps import maps, spanning_acceleration, write_projected
from .spanning import expanded, placed


@for_mechanism(constraint_rows.row_jacobian)
def row_jacobian(mech: ClusterTree, rows: ConstraintRows, q, J) -> None:
    """Write J G, m by nv."""
    tree, n = mech.tree, len(mech.tree.parent)
    qs, X = placed(mech, q)
    M = maps(mech, X, qs)
    for F, out in zip(unit_wrenches(tree, rows, X), J, strict=True):
        whole = [0.0] * n
        write_joint_forces_of(tree, X, F, whole)
        write_projected(mech, M, whole, out)
    write_entries(rows.entries, q, J)


@for_mechanism(constraint_rows.row_bias_acceleration)
def row_bias_acceleration(mech: ClusterTree, rows: ConstraintRows, q, v) -> list[Any]:
    """Return (J G)' v."""
    result = [0.0] * len(rows.K)
    row_motion(mech, rows, q, v, [0.0] * len(mech.parent), result)
    return result


@for_mechanism(constrained_derivatives.row_motion)
def row_motion(mech: ClusterTree, rows: ConstraintRows, q, v, a, result) -> None:
    """Write J G a + (J G)' v."""
    tree = mech.tree
    qs, vs, M = expanded(mech, q, v)
    accelerations = spanning_acceleration(mech, M, a)
    X = joint_transforms(tree, qs)
    w, c = velocity_products(tree, X, vs)
    for j in range(len(c)):
        c[j] = c[j] + unit_motion(tree.axis[j], accelerations[j])
    moved = accelerations_of_velocities(tree, X, c)
    b: list[Any] = row_accelerations(tree, rows, X, w, spatial_velocities(tree, X, vs), moved)
    rate = configuration_rate(tree, qs, vs)
    add_entry_accelerations(rows.entries, q, [rate[k] for k in chosen(mech)], v, b)
    constrained_derivatives.add_entry_products(rows, q, a, b)
    for r, x in enumerate(b):
        result[r] = x


@for_mechanism(constrained_derivatives.row_forces)
def row_forces(mech: ClusterTree, rows: ConstraintRows, q, f, tau) -> None:
    """Write (J G)^T f."""
    tree = mech.tree
    qs, X = placed(mech, q)
    whole = [0.0] * len(tree.parent)
    write_joint_forces_of(tree, X, constrained_derivatives.wrenches_of_rows(tree, rows, X, f), whole)
    write_projected(mech, maps(mech, X, qs), whole, tau)
    constrained_derivatives.add_entry_forces(rows, q, f, tau)


def chosen(mech: ClusterTree) -> list[int]:
    """Return the coordinates of the spanning tree that q contains, in its order."""
    return [k for k, place in enumerate(mech.position) if place >= 0]
