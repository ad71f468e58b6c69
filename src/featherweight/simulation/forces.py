"""Forces at joints: damping, springs, drives; and the rows for limits and dry friction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import cos, pi, sin, sqrt
from typing import Any, NamedTuple

import numpy as np

from ..engine.loops.array_types import Integers, Matrix, Tensor, Vector
from ..engine.loops.kernels import CompiledKernel
from ..model.types import Actuator, JointType
from ..robot.left_out_at_joints import DRIVES_OF_FOLLOWERS, OF_JOINTS
from ..robot.robot import Robot

Array = np.ndarray[Any, np.dtype[Any]]
Number = Any  # a float, an array of floats, or an expression that is traced
Numbers = Any  # a sequence or array of such numbers


class Springs(NamedTuple):
    """Damping and springs, by degree of freedom of all joints."""

    damping: Vector
    stiffness: Vector
    rest: Vector
    at: Integers  # the place of the coordinate in q, where there is a spring
    quaternion: Integers  # the place of the joint's quaternion in q, where a ball joint has a spring; -1 elsewhere
    axis: Integers  # and which component of its rotation vector the coordinate is
    turning: Integers  # the rows of such joints


TURNS = 6  # of Newton's method for an angle


def coordinate_of_row(springs: Springs, q: Vector, r: int) -> float:
    """Return the coordinate of a row with a spring: of ball joints a component of the rotation vector in the child's frame."""
    i = springs.quaternion[r]
    if i < 0:
        return q[springs.at[r]]  # type: ignore[no-any-return]
    x, y, z, w = q[i], q[i + 1], q[i + 2], q[i + 3]
    s, sign = sqrt(x * x + y * y + z * z), 1.0 if w >= 0.0 else -1.0
    if s == 0.0:
        return 0.0
    w = sign * w
    half = s if s < w else 0.5 * pi - w  # of the angle whose sine and cosine are s and w
    for _ in range(TURNS):
        half += s * cos(half) - w * sin(half)
    return 2.0 * half / s * sign * q[i + springs.axis[r]]  # type: ignore[no-any-return]


class Drives(NamedTuple):
    """Actuators: the row of the joint that each drives, the place of its coordinate in q, and `drive_force`'s numbers."""

    row: Integers  # (k,)
    at: Integers  # (k,)
    values: Matrix  # (9, k) gear, gain, bias (3), least and greatest control, least and greatest force


def drive_law(drive: Numbers, u: Number, x: Number, v: Number, ahead: float) -> Number:
    """The force of a drive before its limits and its gear, for the control u, at a joint's coordinate x that moves at v.

    Stiffness acts where v leads to in `ahead` seconds. The arguments are numbers or arrays.
    """
    gear, gain, b0, b1, b2, control_low, control_high, _, _ = drive
    force = gain * np.minimum(np.maximum(u, control_low), control_high) + b0
    return force + gear * (b1 * x + (b2 + ahead * np.minimum(b1, 0.0)) * v)


def drive_force(drive: Numbers, u: Number, x: Number, v: Number) -> Number:
    """The force at a joint's coordinate x that moves at v, for the control u; of numbers or arrays."""
    return drive[0] * np.minimum(np.maximum(drive_law(drive, u, x, v, 0.0), drive[7]), drive[8])


@partial(CompiledKernel, fused=False)
def add_drive_forces(
    row: Integers, at: Integers, values: Tensor, q: Matrix, rates: Matrix, control: Matrix, total: Matrix
) -> None:
    """Add forces of drives to total (robots, rows); their numbers are values (1 or robots, 9, drives)."""
    for i in range(len(q)):
        x = values[i if len(values) > 1 else 0]
        for k in range(len(row)):
            drive = x[0, k], x[1, k], x[2, k], x[3, k], x[4, k], x[5, k], x[6, k], x[7, k], x[8, k]
            total[i, row[k]] += drive_force(drive, control[i, k], q[i, at[k]], rates[i, row[k]])


def drive_armature(drive: Numbers, step: float) -> Number:
    """The armature with which a step meets stiffness and damping of a drive at its end; of numbers or arrays."""
    gear, b1, b2 = drive[0], drive[3], drive[4]
    return gear * gear * (step * np.maximum(-b2, 0.0) + step * step * np.maximum(-b1, 0.0))


def spring_force(spring: Numbers, x: Number, v: Number, ahead: float) -> Number:
    """Damping and a spring `ahead` seconds on from the coordinate x and its velocity; of numbers or arrays."""
    damping, stiffness, rest = spring
    return -damping * v - stiffness * (x + ahead * v - rest)


def ordered_sum(x: Array) -> Array:
    """Sums (...) over the last axis, term by term: the bits of a compiled loop, however many robots there are."""
    return np.asarray(np.cumsum(x, axis=-1)[..., -1]) if x.shape[-1] else np.zeros(x.shape[:-1])


class ForcesAtJoints:
    """What joints' own properties do, by the n rows (degrees of freedom) of all joints in `robot.model.joints`.

    In a robot with loops or couplings, all joints have them, and S(q) (n, nv), the velocities of all joints for those of the
    independent ones, carries forces to the latter: tau = Sᵀ of the joints' forces.
    """

    def __init__(self, robot: Robot, actuators: Sequence[Actuator]) -> None:
        self.robot = robot
        rows = len(robot.model.tree.parent)
        self.names = [j.name for j in robot.model.joints for _ in range(j.type.nv)]
        each: dict[str, Array] = {
            name: np.array([getattr(j, name) for j in robot.model.joints for _ in range(j.type.nv)], dtype=float)
            for name in ("damping", "stiffness", "rest", "friction")
        }
        self.damping, self.friction, self.effort = each["damping"], each["friction"], robot.row_maximum("effort")
        self.at = np.full(rows, -1)  # where the coordinate of a row is in q, if it is one
        for whole, j in zip(robot.model.joints, robot.joints, strict=True):
            if whole.type.nq == 1 and j.q_slice.stop > j.q_slice.start:
                self.at[whole.v_slice.start] = j.q_slice.start
        self._carry_springs(each)
        quaternion, axis = self._of_balls(each["stiffness"])
        self.stiffness, self.rest = np.where((self.at >= 0) | (quaternion >= 0), each["stiffness"], 0.0), each["rest"]
        lower, upper = robot.row_limits()
        self.lower, self.upper = np.where(self.at >= 0, lower, -np.inf), np.where(self.at >= 0, upper, np.inf)
        self.left_out = sorted({name for kind in OF_JOINTS for name in robot.left_out_at_joints.get(kind, ())})
        self.smooth = bool(self.damping.any() or self.stiffness.any())
        at, turning = np.maximum(self.at, 0), np.flatnonzero(quaternion >= 0)
        self.springs = Springs(self.damping, self.stiffness, self.rest, at, quaternion, axis, turning)
        self.turning_springs = len(turning) > 0
        self._sprung = np.flatnonzero(self.stiffness)
        self.actuators = tuple(actuators)
        self.drives = self._of_actuators()

    def _of_balls(self, stiffness: Array) -> tuple[Array, Array]:
        """Return the places of quaternions of ball joints with springs, by rows (n,), and components of rotation vectors."""
        quaternion, axis = np.full(len(stiffness), -1), np.zeros(len(stiffness), np.int64)
        for whole, j in zip(self.robot.model.joints, self.robot.joints, strict=True):
            rows = whole.v_slice
            if whole.type is JointType.SPHERICAL and j.q_slice.stop > j.q_slice.start and stiffness[rows.start] > 0.0:
                quaternion[rows], axis[rows] = j.q_slice.start, np.arange(3)
        return quaternion, axis

    def _carry_springs(self, each: dict[str, Array]) -> None:
        """Put the springs of joints that follow one other in proportion on the leaders: 1/2 k (s x + o - r)² is there
        1/2 k s² (x - (r - o) / s)². Two springs on one coordinate are one, but for a constant energy."""
        k, rest = each["stiffness"], each["rest"]
        for row, leader, slope, offset in self.robot.proportions():
            if k[row]:
                more = k[row] * slope * slope
                rest[leader] = (k[leader] * rest[leader] + more * (rest[row] - offset) / slope) / (k[leader] + more)
                k[leader] += more
                k[row] = 0.0

    def _of_actuators(self) -> Drives:
        """On the rows of their joints; a drive on a joint that follows one other in proportion is on the leader's, by a longer
        lever. One of the file's whose joint has no such leader drives nothing: `left_out_at_joints` names it."""
        row = {name: r for r, name in reversed(list(enumerate(self.names)))}
        leaders = {p.row: p for p in self.robot.proportions()}
        idle = self.robot.left_out_at_joints.get(DRIVES_OF_FOLLOWERS, ())
        places, numbers = [], []
        for a in self.actuators:
            r, gear, b0 = row.get(a.joint, -1), a.gear, a.bias[0]
            while r in leaders and self.at[r] < 0:
                _, r, slope, offset = leaders[r]
                gear, b0 = gear * slope, b0 + a.bias[1] * gear * offset
            if r < 0 or self.at[r] < 0:
                if a.name not in idle or a not in self.robot.actuators:
                    problem = "which is no joint with a coordinate of its own, nor one that follows such a joint in proportion"
                    remedy = "put it on one of " + ", ".join(self.names[k] for k in np.flatnonzero(self.at >= 0))
                    raise ValueError(f"actuator {a.name!r} is on {a.joint!r}, {problem}; {remedy}")
                gear = 0.0
            places.append(r)
            numbers.append((gear, a.gain, b0, *a.bias[1:], *a.control, *a.force))
        rows = np.array(places, dtype=np.int64)
        return Drives(rows, np.maximum(self.at[rows], 0), np.array(numbers, dtype=float).reshape(len(numbers), 9).T.copy())

    @property
    def nu(self) -> int:
        """Number of controls."""
        return len(self.actuators)

    def map(self, q: Array) -> Array | None:
        """S(q) (..., n, nv); None for the identity."""
        if not self.robot.closed:
            return None
        velocities = self.robot.spanning_velocity(q[..., None, :], np.eye(self.robot.nv))  # type: ignore[attr-defined]
        return np.asarray(np.swapaxes(velocities, -1, -2))

    def coordinates(self, q: Array, rows: Array) -> Array:
        """The coordinates (..., rows) of some rows."""
        coordinates: Array = q[..., self.at[rows]]
        return coordinates

    def coordinates_of_rows(self, q: Array) -> Array:
        """The coordinates (..., n) of all rows that springs may act on (see `coordinate_of_row`)."""
        coordinates: Array = q[..., self.springs.at]
        if self.turning_springs:
            flat, turned = q.reshape(-1, q.shape[-1]), coordinates.reshape(-1, coordinates.shape[-1])
            for r in np.flatnonzero(self.springs.quaternion >= 0):
                turned[:, r] = [coordinate_of_row(self.springs, x, int(r)) for x in flat]
        return coordinates

    def of_springs(self, q: Array, v: Array, ahead: float = 0.0) -> Array:
        """Forces (..., nv) of damping and springs, the latter at the coordinates that v leads to in `ahead` seconds."""
        S = self.map(q)
        rates = v if S is None else ordered_sum(S * v[..., None, :])
        s = self.springs
        force: Array = spring_force((s.damping, s.stiffness, s.rest), self.coordinates_of_rows(q), rates, ahead)
        return force if S is None else ordered_sum(np.swapaxes(S, -1, -2) * force[..., None, :])

    def spring_energy(self, q: Array, stiffness: Array | None = None) -> Array:
        """Energy (...) [J] of the springs at q (..., nq), with their own stiffness or another one (..., n)."""
        r = self._sprung
        k = (self.stiffness if stiffness is None else stiffness)[..., r]
        stretched = self.coordinates_of_rows(q)[..., r] - self.rest[r]
        return ordered_sum(0.5 * k * stretched * stretched)

    def of_drives(self, q: Array, v: Array, control: Array, values: Array | None = None) -> Array:
        """Joint forces (..., nv) of the actuators for controls (..., nu), by their numbers or others (robots, 9, nu)."""
        S, batch = self.map(q), q.shape[:-1]
        rates = v if S is None else ordered_sum(S * v[..., None, :])
        if not rates.shape[:-1] == control.shape[:-1] == batch:
            batch = np.broadcast_shapes(batch, rates.shape[:-1], control.shape[:-1])
            q, rates, control = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q, rates, control))
        of_rows = np.zeros((*batch, rates.shape[-1]))
        rows = int(np.prod(batch))
        x, w, u = (np.ascontiguousarray(x, np.float64).reshape(rows, x.shape[-1]) for x in (q, rates, control))
        numbers = self.drives.values[None] if values is None else np.ascontiguousarray(values)
        add_drive_forces(self.drives.row, self.drives.at, numbers, x, w, u, of_rows.reshape(rows, rates.shape[-1]))
        return of_rows if S is None else ordered_sum(np.swapaxes(S, -1, -2) * of_rows[..., None, :])

    def limited(self, tau: Array) -> Array:
        """tau (..., nv) within the efforts of independent joints."""
        most = self.robot.effort_limit
        return np.minimum(np.maximum(tau, -most), most)

    def implicit_armature(self, step: float) -> dict[str, float]:
        """The armature with which a step meets damping and springs at its end: + h d + h² k."""
        more = step * self.damping + step * step * self.stiffness
        first = {j.name: j.v_slice.start for j in self.robot.model.joints}
        return {j.name: j.armature + float(more[first[j.name]]) for j in self.robot.model.joints if more[first[j.name]] > 0.0}
