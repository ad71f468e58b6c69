"""Names and limits of a robot, for callers of kernels that run without Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..array_types import Array
from ..model.types import Frame
from .robot import Robot


def names_of(robot: Robot, frames: Sequence[str | Frame] = ()) -> dict[str, tuple[str, ...]]:
    """Return the names of joints that have coordinates, in the order of q, and of frames in use."""
    joints = tuple(j.name for j in robot.joints if j.q_slice.stop > j.q_slice.start)
    return {"joint_names": joints, "frame_names": tuple(f if isinstance(f, str) else f.name for f in frames)}


def limits_of(robot: Robot) -> dict[str, Array]:
    """Return the limits of q (nq) and v (nv), and the least and greatest joint forces (2, nv)."""
    return {
        "lower": robot.lower,
        "upper": robot.upper,
        "velocity_limit": robot.velocity_limit,
        "effort_bounds": np.stack(robot.effort_bounds),
    }
