"""Jacobians and accelerations of frames of a mechanism with loops."""

from __future__ import annotations

from typing import Any

from .. import frames, relative_frames
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism
from .on_spanning_tree import on_spanning_tree
from .spanning import mapped, write_rows, zero_rows

frame_acceleration = on_spanning_tree(frames.frame_acceleration)
relative_acceleration = on_spanning_tree(relative_frames.relative_acceleration)


@for_mechanism(frames.frame_jacobian)
def frame_jacobian(mech: ClusterTree, placements, reference: int, q, J) -> None:
    """Write J G."""
    qs, M = mapped(mech, q)
    whole = zeros(mech, placements)
    frames.frame_jacobian(mech.tree, placements, reference, qs, whole)
    write_jacobians(mech, M, whole, J)


@for_mechanism(frames.frame_bias_acceleration)
def frame_bias_acceleration(mech: ClusterTree, placements, reference: int, q, v, result) -> None:
    frame_acceleration(mech, placements, frames.of_components(reference), q, v, [0.0] * len(mech.parent), result)


@for_mechanism(relative_frames.relative_jacobian)
def relative_jacobian(mech: ClusterTree, placements, other, reference: int, q, J) -> None:
    """Write J G."""
    qs, M = mapped(mech, q)
    whole = zeros(mech, placements)
    relative_frames.relative_jacobian(mech.tree, placements, other, reference, qs, whole)
    write_jacobians(mech, M, whole, J)


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
