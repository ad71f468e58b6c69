"""States in MuJoCo's order and frames, which Gymnasium's observations are made of.

A free joint has qpos = (x, y, z, qw, qx, qy, qz) and qvel = (linear velocity in the world, angular in the body) there, a ball
joint qpos = (qw, qx, qy, qz); here quaternions end with qw, and linear velocities are in the body (see `Robot`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.types import JointType
from ..robot.robot import Robot

Array = np.ndarray[Any, np.dtype[Any]]


class MujocoOrder:
    """Turns states q (..., nq), v (..., nv) of a robot into qpos, qvel of the same shapes, and back."""

    def __init__(self, robot: Robot) -> None:
        turning = [j for j in robot.joints if j.type in (JointType.FLOATING, JointType.SPHERICAL)]
        self._quaternions = [slice(j.q_slice.stop - 4, j.q_slice.stop) for j in turning]
        self._floating = [
            (rotation, slice(j.v_slice.start, j.v_slice.start + 3))
            for rotation, j in zip(self._quaternions, turning, strict=True)
            if j.type is JointType.FLOATING
        ]

    def out(self, q: Array, v: Array) -> tuple[Array, Array]:
        """qpos and qvel, arrays of their own."""
        qpos, qvel = q.copy(), v.copy()
        for rotation, linear in self._floating:
            qvel[..., linear] = rotated(q[..., rotation], v[..., linear])
        for rotation in self._quaternions:
            qpos[..., rotation] = np.roll(q[..., rotation], 1, axis=-1)
        return qpos, qvel

    def back(self, qpos: Array, qvel: Array) -> tuple[Array, Array]:
        """q and v, arrays of their own; quaternions are normalized."""
        q, v = qpos.copy(), qvel.copy()
        for rotation in self._quaternions:
            turn = np.roll(qpos[..., rotation], -1, axis=-1)
            q[..., rotation] = turn / np.linalg.norm(turn, axis=-1, keepdims=True)
        for rotation, linear in self._floating:
            inverse = q[..., rotation] * (-1.0, -1.0, -1.0, 1.0)
            v[..., linear] = rotated(inverse, qvel[..., linear])
        return q, v


def rotated(quaternion: Array, x: Array) -> Array:
    """Vectors x (..., 3) turned by unit quaternions (..., 4), (x, y, z, w)."""
    u, w = quaternion[..., :3], quaternion[..., 3:]
    t = 2.0 * np.cross(u, x)
    turned: Array = x + w * t + np.cross(u, t)
    return turned
