"""Frames of a mechanism with loops: frames of the spanning tree, whose joints move by q' = G y' and q'' = G y'' + g."""

from __future__ import annotations

from typing import Any

from .. import frames, relative_frames
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism
from .maps import spanning_acceleration, spanning_configuration
from .spanning import expanded, mapped, write_rows, zero_rows


@for_mechanism(frames.frame_placement)
def frame_placement(mech: ClusterTree, placements, q, result) -> None:
    frames.frame_placement(mech.tree, placements, spanning_configuration(mech, q), result)


@for_mechanism(frames.placement_rows)
def placement_rows(mech: ClusterTree, placements, q, result) -> None:
    frames.placement_rows(mech.tree, placements, spanning_configuration(mech, q), result)


@for_mechanism(frames.joint_jacobian)
def joint_jacobian(mech: ClusterTree, q, J) -> None:
    """Write the joint Jacobian (6, n) of the spanning tree."""
    frames.joint_jacobian(mech.tree, spanning_configuration(mech, q), J)


@for_mechanism(frames.frame_jacobian)
def frame_jacobian(mech: ClusterTree, placements, reference: int, q, J) -> None:
    """Write J G."""
    qs, M = mapped(mech, q)
    whole = zeros(mech, placements)
    frames.frame_jacobian(mech.tree, placements, reference, qs, whole)
    write_jacobians(mech, M, whole, J)


@for_mechanism(frames.frame_velocity)
def frame_velocity(mech: ClusterTree, placements, reference: int, q, v, result) -> None:
    qs, vs, _ = expanded(mech, q, v)
    frames.frame_velocity(mech.tree, placements, reference, qs, vs, result)


@for_mechanism(frames.frame_acceleration)
def frame_acceleration(mech: ClusterTree, placements, written: frames.Written, q, v, a, result) -> None:
    qs, vs, M = expanded(mech, q, v)
    moved = spanning_acceleration(mech, M, a)
    frames.frame_acceleration(mech.tree, placements, written, qs, vs, moved, result)


@for_mechanism(frames.frame_bias_acceleration)
def frame_bias_acceleration(mech: ClusterTree, placements, reference: int, q, v, result) -> None:
    frame_acceleration(mech, placements, frames.of_components(reference), q, v, [0.0] * len(mech.parent), result)


@for_mechanism(relative_frames.joint_jacobian_rate)
def joint_jacobian_rate(mech: ClusterTree, q, v, J) -> None:
    """Write the time derivative (6, n) of the joint Jacobian of the spanning tree."""
    qs, vs, _ = expanded(mech, q, v)
    relative_frames.joint_jacobian_rate(mech.tree, qs, vs, J)


@for_mechanism(relative_frames.relative_placement)
def relative_placement(mech: ClusterTree, placements, other, q, result) -> None:
    relative_frames.relative_placement(mech.tree, placements, other, spanning_configuration(mech, q), result)


@for_mechanism(relative_frames.relative_jacobian)
def relative_jacobian(mech: ClusterTree, placements, other, reference: int, q, J) -> None:
    """Write J G."""
    qs, M = mapped(mech, q)
    whole = zeros(mech, placements)
    relative_frames.relative_jacobian(mech.tree, placements, other, reference, qs, whole)
    write_jacobians(mech, M, whole, J)


@for_mechanism(relative_frames.relative_velocity)
def relative_velocity(mech: ClusterTree, placements, other, reference: int, q, v, result) -> None:
    qs, vs, _ = expanded(mech, q, v)
    relative_frames.relative_velocity(mech.tree, placements, other, reference, qs, vs, result)


@for_mechanism(relative_frames.relative_acceleration)
def relative_acceleration(mech: ClusterTree, placements, other, written: frames.Written, q, v, a, result) -> None:
    qs, vs, M = expanded(mech, q, v)
    moved = spanning_acceleration(mech, M, a)
    relative_frames.relative_acceleration(mech.tree, placements, other, written, qs, vs, moved, result)


@for_mechanism(relative_frames.relative_bias_acceleration)
def relative_bias_acceleration(mech: ClusterTree, placements, other, reference: int, q, v, result) -> None:
    still = [0.0] * len(mech.parent)
    relative_acceleration(mech, placements, other, frames.of_components(reference), q, v, still, result)


def zeros(mech: ClusterTree, placements) -> list[Any]:
    """Return zeros for a Jacobian of each frame, of the spanning tree."""
    return [zero_rows(mech, 6) for _ in placements.row]


def write_jacobians(mech: ClusterTree, M, whole, J) -> None:
    """Write Jacobians of the spanning tree times G."""
    for k in range(len(whole)):
        write_rows(mech, M, whole[k], J[k])
