"""Target accelerations of contacts under which errors decay (Baumgarte 1972)."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....model.tree import Placements, Tree
from ....spatial import ZERO3, Motion, Vec3
from ...frames import frame_poses, velocity_of_frame
from ...kinematics import force, joint_transforms, spatial_velocities


class FrameRows(NamedTuple):
    """Constraint rows on the (angular, linear) velocity of contact frames, in their axes."""

    K: Any  # (m, 6)
    begin: Any  # (E + 1,) first row of each frame


def stabilization(tree: Tree, frames: Placements, rows: FrameRows, q, v, wanted, gains, result) -> None:
    """Write -K (gains[0] error + gains[1] velocity) for each contact frame, given its desired homogeneous matrix."""
    X = joint_transforms(tree, q)
    R, o = frame_poses(tree, frames, X)
    u = spatial_velocities(tree, X, v)
    for g in range(len(frames.row)):
        T = wanted[g]
        E = R[g].transpose()
        away = E @ (o[g] - Vec3(T[0][3], T[1][3], T[2][3]))
        x, y, z = E @ Vec3(T[0][0], T[1][0], T[2][0]), E @ Vec3(T[0][1], T[1][1], T[2][1]), E @ Vec3(T[0][2], T[1][2], T[2][2])
        turned = 0.5 * Vec3(y.z - z.y, z.x - x.z, x.y - y.x)  # sine times axis of the rotation to the desired placement
        velocity = velocity_of_frame(frames, g, u)
        error = Motion(ZERO3 - turned, away)
        decay = gains[0] * error + gains[1] * velocity
        for r in range(rows.begin[g], rows.begin[g + 1]):
            result[r] = 0.0 - force(rows.K, r).power(decay)
