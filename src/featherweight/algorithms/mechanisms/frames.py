"""Accelerations of frames of a mechanism with loops."""

from __future__ import annotations

from .. import frames, relative_frames
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism
from .on_spanning_tree import on_spanning_tree

frame_acceleration = on_spanning_tree(frames.frame_acceleration)
relative_acceleration = on_spanning_tree(relative_frames.relative_acceleration)


@for_mechanism(frames.frame_bias_acceleration)
def frame_bias_acceleration(mech: ClusterTree, placements, reference: int, q, v, result) -> None:
    frame_acceleration(mech, placements, frames.of_components(reference), q, v, [0.0] * len(mech.parent), result)


@for_mechanism(relative_frames.relative_bias_acceleration)
def relative_bias_acceleration(mech: ClusterTree, placements, other, reference: int, q, v, result) -> None:
    still = [0.0] * len(mech.parent)
    relative_acceleration(mech, placements, other, frames.of_components(reference), q, v, still, result)
