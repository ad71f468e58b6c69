"""MuJoCo's vectors, quaternions and flags as values of this package."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Matrix, Pose, as_vector


def snap(x: float) -> float:
    """Zero and ±1 where rounding missed them by a few last places: quaternions never give them exactly."""
    nearest = float(round(x))
    return nearest if abs(x - nearest) < 1e-14 else x


def as_rotation(quaternion: Any) -> Matrix:
    """Rotation matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = (float(value) for value in quaternion)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    a, b, c = ((snap(row[0]), snap(row[1]), snap(row[2])) for row in rows)
    return (a, b, c)


def as_pose(position: Any, quaternion: Any) -> Pose:
    """A frame by its origin and a unit quaternion (w, x, y, z)."""
    return Pose(as_rotation(quaternion), as_vector(position))


def first_controls(model: Any) -> Any:
    """For each actuator the number of its first control, by which `ctrl`, `ctrlrange` and `ctrllimited` are indexed.

    From MuJoCo 4 on an actuator may have several controls; before, each has one, and MuJoCo has no field of it.
    """
    return getattr(model, "actuator_ctrladr", np.arange(model.nu))


CONSTRAINTS = ("CONTACT", "EQUALITY", "FRICTIONLOSS", "LIMIT")  # what the flag `constraint` turns off together


def disabled(mujoco: Any, option: Any, what: str) -> bool:
    """Whether the <flag> of an <option> turns this off; what MuJoCo's version does not know is on."""
    names = (what, "CONSTRAINT") if what in CONSTRAINTS else (what,)
    return any(option.disableflags & int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}", 0)) for name in names)
