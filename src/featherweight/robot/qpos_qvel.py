"""Arrays in MuJoCo's order and frames, as fast as NumPy makes them: each step of an environment asks for some.

A free joint has qpos = (x, y, z, qw, qx, qy, qz) and qvel = (linear velocity in the world, angular in the body) there, a ball
joint qpos = (qw, qx, qy, qz); here quaternions end with qw, and linear velocities are in the body (see `Robot`). Coordinates of
hinges and slides are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..model.types import JointType
from .system import System

Array = np.ndarray[Any, np.dtype[Any]]

TURNING = (JointType.FLOATING, JointType.SPHERICAL)


class JointPlace(NamedTuple):
    """Where a joint's coordinates and velocities are, here and there."""

    type: JointType
    q: slice
    v: slice
    qpos: slice
    qvel: slice


class QposQvel:
    """Makes qpos and qvel of states q (..., nq), v (..., nv), in the same shapes, and these of those, as arrays of their own.

    Shapes are not checked (`MujocoOrder` does that), and what no place names stays where it is.
    """

    def __init__(self, nq: int, nv: int, places: Iterable[JointPlace]) -> None:
        from_q, from_v = np.arange(nq), np.arange(nv)
        self._quaternions: list[slice] = []
        self._floating: list[tuple[slice, slice, slice]] = []  # quaternions in q, linear velocities in v and in qvel
        for p in places:
            from_q[p.qpos], from_v[p.qvel] = range(nq)[p.q], range(nv)[p.v]
            if p.type in TURNING:
                rotation = slice(p.q.stop - 4, p.q.stop)
                x, y, z, w = range(nq)[rotation]
                from_q[p.qpos.stop - 4 : p.qpos.stop] = w, x, y, z
                self._quaternions.append(rotation)
                if p.type is JointType.FLOATING:
                    here, there = (slice(u.start, u.start + 3) for u in (p.v, p.qvel))
                    self._floating.append((rotation, here, there))
        self._from_q, self._from_qpos = given_order(from_q), given_order(np.argsort(from_q))
        self._from_v, self._from_qvel = given_order(from_v), given_order(np.argsort(from_v))

    @classmethod
    def in_own_order(cls, robot: System) -> QposQvel:
        """For joints in the robot's order."""
        same = (JointPlace(j.type, j.q_slice, j.v_slice, j.q_slice, j.v_slice) for j in robot.joints)
        return cls(robot.nq, robot.nv, same)

    def qpos(self, q: Array) -> Array:
        return in_order(q, self._from_q)

    def qvel(self, q: Array, v: Array) -> Array:
        qvel = in_order(v, self._from_v)
        for rotation, here, there in self._floating:
            qvel[..., there] = rotated(q[..., rotation], v[..., here])
        return qvel

    def q(self, qpos: Array) -> Array:
        """Quaternions are as long as they are there."""
        return in_order(qpos, self._from_qpos)

    def v(self, q: Array, qvel: Array) -> Array:
        v = in_order(qvel, self._from_qvel)
        for rotation, here, there in self._floating:
            inverse = q[..., rotation] * (-1.0, -1.0, -1.0, 1.0)
            v[..., here] = rotated(inverse, qvel[..., there])
        return v

    def back(self, qpos: Array, qvel: Array) -> tuple[Array, Array]:
        """q and v; quaternions are normalized."""
        q = self.q(qpos)
        for rotation in self._quaternions:
            q[..., rotation] /= np.linalg.norm(q[..., rotation], axis=-1, keepdims=True)
        return q, self.v(q, qvel)


def in_order(x: Array, order: Array | None) -> Array:
    """The last axis in another order, or None for the same."""
    return x.copy() if order is None else x[..., order]


def given_order(order: Array) -> Array | None:
    """None for the same, which is copied more quickly."""
    return None if (order == np.arange(len(order))).all() else order


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
