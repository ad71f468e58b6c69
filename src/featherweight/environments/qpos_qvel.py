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


class QposQvel:
    """Makes qpos and qvel of a robot's states q (..., nq), v (..., nv), in the same shapes, and these of those."""

    def __init__(self, robot: Robot) -> None:
        turning = [j for j in robot.joints if j.type in (JointType.FLOATING, JointType.SPHERICAL)]
        self._out, self._back = np.arange(robot.nq), np.arange(robot.nq)
        for j in turning:
            x, y, z, w = range(j.q_slice.stop - 4, j.q_slice.stop)
            self._out[x : w + 1], self._back[x : w + 1] = (w, x, y, z), (y, z, w, x)
        self._quaternions = [slice(j.q_slice.stop - 4, j.q_slice.stop) for j in turning]
        self._floating = [
            (rotation, slice(j.v_slice.start, j.v_slice.start + 3))
            for rotation, j in zip(self._quaternions, turning, strict=True)
            if j.type is JointType.FLOATING
        ]

    def qpos(self, q: Array) -> Array:
        """An array of its own."""
        qpos: Array = q[..., self._out]
        return qpos

    def qvel(self, q: Array, v: Array) -> Array:
        """An array of its own."""
        qvel = v.copy()
        for rotation, linear in self._floating:
            qvel[..., linear] = rotated(q[..., rotation], v[..., linear])
        return qvel

    def back(self, qpos: Array, qvel: Array) -> tuple[Array, Array]:
        """q and v, arrays of their own; quaternions are normalized."""
        q, v = qpos[..., self._back], qvel.copy()
        for rotation in self._quaternions:
            q[..., rotation] /= np.linalg.norm(q[..., rotation], axis=-1, keepdims=True)
        for rotation, linear in self._floating:
            inverse = q[..., rotation] * (-1.0, -1.0, -1.0, 1.0)
            v[..., linear] = rotated(inverse, qvel[..., linear])
        return q, v


def rotated(quaternion: Array, x: Array) -> Array:
    """Vectors x (..., 3) turned by unit quaternions (..., 4), (x, y, z, w)."""
    u, w = quaternion[..., :3], quaternion[..., 3:]
    t = 2.0 * cross(u, x)
    turned: Array = x + w * t + cross(u, t)
    return turned


def cross(a: Array, b: Array) -> Array:
    """Of vectors (..., 3); for few of them NumPy's own takes ten times as long."""
    ax, ay, az, bx, by, bz = (x[..., i] for x in (a, b) for i in range(3))
    product = np.empty(a.shape)
    product[..., 0], product[..., 1], product[..., 2] = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    return product
