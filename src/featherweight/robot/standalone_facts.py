"""Names and limits of a robot, for callers of kernels that run without Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..array_types import Array
from .robot import Robot


def names_of(robot: Robot, frames: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return the names of joints that have coordinates, in the order of q, and of frames in use."""
    joints = tuple(j.name for j in robot.joints if j.q_slice.stop > j.q_slice.start)
    return {"joint_names": joints} | ({"frame_names": tuple(frames)} if frames else {})


def limits_of(robot: Robot) -> dict[str, Array]:
    """Return the limits of q (nq), v (nv) and joint forces (2, nv), and the first place of each joint in q and in v."""
    return {
        "lower": robot.lower,
        "upper": robot.upper,
        "velocity_limit": robot.velocity_limit,
        "effort_bounds": np.stack(robot.effort_bounds),
    }
