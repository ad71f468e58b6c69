"""Fast conversion between states and MuJoCo's qpos and qvel, which environments call in each step.

In MuJoCo, a free joint has qpos = (x, y, z, qw, qx, qy, qz) and qvel = (linear velocity in the world, angular velocity in the
body), and a ball joint has qpos = (qw, qx, qy, qz). In Featherweight, quaternions end with qw, and linear velocities are in
the body's frame (see `Robot`). Coordinates of hinges and slides are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from ..array_types import Array, IntegerMatrix, Integers, Matrix, Vector
from ..engine.loops.kernels import CompiledKernel
from ..model.types import JointType
from .system import System

TURNING = (JointType.FLOATING, JointType.SPHERICAL)


class JointPlace(NamedTuple):
    """The indices of a joint's coordinates and velocities, in the robot and in MuJoCo."""

    type: JointType
    q: slice
    v: slice
    qpos: slice
    qvel: slice


class OrderArrays(NamedTuple):
    """The index in q and v of each number of qpos and qvel, and the free joints (k, 3) as `turn` takes them."""

    from_q: Integers  # (nq,)
    from_v: Integers  # (nv,)
    floating: IntegerMatrix


class QposQvel:
    """Converts states q (..., nq), v (..., nv) to qpos and qvel of the same shapes, and back, as new arrays.

    Shapes are not checked (`MujocoOrder` checks them). Entries that belong to no joint keep their index.
    """

    def __init__(self, nq: int, nv: int, places: Iterable[JointPlace]) -> None:
        self._nq, self._nv = nq, nv
        from_q, from_v = np.arange(nq), np.arange(nv)
        self._quaternions: list[slice] = []
        floating: list[tuple[int, int, int]] = []
        for p in places:
            from_q[p.qpos], from_v[p.qvel] = range(nq)[p.q], range(nv)[p.v]
            if p.type in TURNING:
                rotation = slice(p.q.stop - 4, p.q.stop)
                x, y, z, w = range(nq)[rotation]
                from_q[p.qpos.stop - 4 : p.qpos.stop] = w, x, y, z
                self._quaternions.append(rotation)
                if p.type is JointType.FLOATING:
                    floating.append((rotation.start, p.v.start, p.qvel.start))
        self._floating = np.array(floating, np.int64).reshape(-1, 3)  # quaternions in q, linear velocities in v, in qvel
        self._floating_back = self._floating[:, [0, 2, 1]].copy()
        self._from_q, self._from_qpos = given_order(from_q), given_order(np.argsort(from_q))
        self._from_v, self._from_qvel = given_order(from_v), given_order(np.argsort(from_v))

    @classmethod
    def in_own_order(cls, robot: System) -> QposQvel:
        """Return the conversion for joints in the robot's order."""
        same = (JointPlace(j.type, j.q_slice, j.v_slice, j.q_slice, j.v_slice) for j in robot.joints)
        return cls(robot.nq, robot.nv, same)

    def arrays(self) -> OrderArrays:
        """Return the index arrays for kernels."""
        from_q, from_v = self._from_q, self._from_v
        q = np.arange(self._nq) if from_q is None else from_q
        return OrderArrays(
            q.astype(np.int64), (np.arange(self._nv) if from_v is None else from_v).astype(np.int64), self._floating
        )

    def qpos(self, q: Array) -> Array:
        return in_order(q, self._from_q)

    def qvel(self, q: Array, v: Array) -> Array:
        return self._turned(q, in_order(v, self._from_v), v, self._floating, 1.0)

    def q(self, qpos: Array) -> Array:
        """Return q; quaternions keep their length."""
        return in_order(qpos, self._from_qpos)

    def v(self, q: Array, qvel: Array) -> Array:
        return self._turned(q, in_order(qvel, self._from_qvel), qvel, self._floating_back, -1.0)

    def _turned(self, q: Array, result: Array, given: Array, places: IntegerMatrix, way: float) -> Array:
        """Return `result` with linear velocities of free joints rotated into the world (`way` 1) or into the bodies (-1)."""
        if not len(places):
            return result
        turn(rows(q), rows(given), places, way, rows(result))
        return result

    def back(self, qpos: Array, qvel: Array) -> tuple[Array, Array]:
        """Return q and v; quaternions are normalized."""
        q = self.q(qpos)
        for rotation in self._quaternions:
            q[..., rotation] /= np.linalg.norm(q[..., rotation], axis=-1, keepdims=True)
        return q, self.v(q, qvel)


def in_order(x: Array, order: Integers | None) -> Array:
    """Return the last axis in another order; None keeps the order."""
    return np.array(x, np.float64, order="C") if order is None else np.take(np.asarray(x, np.float64), order, axis=-1)


def rows(x: Array) -> Matrix:
    """Return all states, one in each row, for kernels: a view if the arrays are contiguous."""
    if x.ndim == 2 and x.dtype == np.float64 and x.flags.c_contiguous:
        return x
    return np.ascontiguousarray(x, np.float64).reshape(-1, x.shape[-1])


def given_order(order: Integers) -> Integers | None:
    """Return None for the identity order, which is copied faster."""
    return None if (order == np.arange(len(order))).all() else order


@partial(CompiledKernel, fused=False)  # bitwise equal to NumPy
def turn(q: Matrix, given: Matrix, places: IntegerMatrix, way: float, result: Matrix) -> None:
    """Rotate vectors of `given` (rows, n) by unit quaternions (x, y, z, w) of q (rows, m), or by their inverses (`way` -1).

    A place holds the first index of the quaternion, of the vector, and of the vector in result (rows, n).
    """
    for i in range(len(q)):
        turn_one(q[i], given[i], places, way, result[i])


def turn_one(q: Vector, given: Vector, places: IntegerMatrix, way: float, result: Vector) -> None:
    """Rotate the vectors of one state, as `turn` does."""
    for k in range(len(places)):
        rotation, start, to = places[k, 0], places[k, 1], places[k, 2]
        a, b, c = way * q[rotation], way * q[rotation + 1], way * q[rotation + 2]
        w = q[rotation + 3]
        x, y, z = given[start], given[start + 1], given[start + 2]
        tx, ty, tz = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
        result[to] = x + w * tx + (b * tz - c * ty)
        result[to + 1] = y + w * ty + (c * tx - a * tz)
        result[to + 2] = z + w * tz + (a * ty - b * tx)


def write_qpos(order: OrderArrays, q: Vector, qpos: Vector) -> None:
    """Write qpos of one state."""
    for k in range(len(qpos)):
        qpos[k] = q[order.from_q[k]]


def write_qvel(order: OrderArrays, q: Vector, v: Vector, qvel: Vector) -> None:
    """Write qvel of one state."""
    for k in range(len(qvel)):
        qvel[k] = v[order.from_v[k]]
    turn_one(q, v, order.floating, 1.0, qvel)
