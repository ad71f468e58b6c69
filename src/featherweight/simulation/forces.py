"""Forces at joints: damping, springs, drives; and the rows for limits and dry friction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..model.types import Actuator
from ..robot.robot import Robot

Array = np.ndarray[Any, np.dtype[Any]]


class Springs(NamedTuple):
    """Damping and springs, by degree of freedom of all joints."""

    damping: Any
    stiffness: Any
    rest: Any
    at: Any  # the place of the coordinate in q, where there is a spring


class Drives(NamedTuple):
    """Actuators: the row of the joint that each drives, the place of its coordinate in q, and `drive_force`'s numbers."""

    row: Any  # (k,) int
    at: Any  # (k,) int
    values: Any  # (9, k) gear, gain, bias (3), least and greatest control, least and greatest force


def drive_force(drive: Any, u: Any, x: Any, v: Any) -> Any:
    """The force at a joint's coordinate x that moves at v, for the control u; of numbers or arrays."""
    gear, gain, b0, b1, b2, control_low, control_high, low, high = drive
    force = gain * np.minimum(np.maximum(u, control_low), control_high) + b0
    force = force + gear * (b1 * x + b2 * v)
    return gear * np.minimum(np.maximum(force, low), high)


def spring_force(spring: Any, x: Any, v: Any, ahead: float) -> Any:
    """Damping and a spring `ahead` seconds on from the coordinate x and its velocity; of numbers or arrays."""
    damping, stiffness, rest = spring
    return -damping * v - stiffness * (x + ahead * v - rest)


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
            for name in ("damping", "stiffness", "rest", "friction", "lower", "upper")
        }
        self.damping, self.friction, self.effort = each["damping"], each["friction"], robot._greatest("effort")
        self.at = np.full(rows, -1)  # where the coordinate of a row is in q, if it is one
        for whole, j in zip(robot.model.joints, robot.joints, strict=True):
            if whole.type.nq == 1 and j.q_slice.stop > j.q_slice.start:
                self.at[whole.v_slice.start] = j.q_slice.start
        self.stiffness = np.where(self.at >= 0, each["stiffness"], 0.0)
        self.rest = each["rest"]
        self.lower = np.where(self.at >= 0, each["lower"], -np.inf)
        self.upper = np.where(self.at >= 0, each["upper"], np.inf)
        self.left_out = self._left_out(each)
        self.smooth = bool(self.damping.any() or self.stiffness.any())
        self.springs = Springs(self.damping, self.stiffness, self.rest, np.maximum(self.at, 0))
        self._sprung = np.flatnonzero(self.stiffness)
        self.actuators = tuple(actuators)
        self.drives = self._of_actuators()

    def _left_out(self, each: dict[str, Array]) -> list[str]:
        """Springs and limits of joints that have no coordinate of their own."""
        bound = np.isfinite(each["lower"]) | np.isfinite(each["upper"])
        return sorted({self.names[r] for r in np.flatnonzero((self.at < 0) & ((each["stiffness"] != 0.0) | bound))})

    def _of_actuators(self) -> Drives:
        row = {name: r for r, name in reversed(list(enumerate(self.names)))}
        for a in self.actuators:
            if a.joint not in row or self.at[row[a.joint]] < 0:
                raise ValueError(f"actuator {a.name!r} is on {a.joint!r}, which is no joint with a coordinate of its own")
        rows = np.array([row[a.joint] for a in self.actuators], dtype=np.int64)
        numbers = [(a.gear, a.gain, *a.bias, *a.control, *a.force) for a in self.actuators]
        return Drives(rows, self.at[rows], np.array(numbers, dtype=float).reshape(len(numbers), 9).T.copy())

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

    def of_springs(self, q: Array, v: Array, ahead: float = 0.0) -> Array:
        """Forces (..., nv) of damping and springs, the latter at the coordinates that v leads to in `ahead` seconds."""
        S = self.map(q)
        rates = v if S is None else np.einsum("...rv,...v->...r", S, v)
        s = self.springs
        force: Array = spring_force((s.damping, s.stiffness, s.rest), q[..., s.at], rates, ahead)
        return force if S is None else np.einsum("...rv,...r->...v", S, force)

    def spring_energy(self, q: Array, stiffness: Array | None = None) -> Array:
        """Energy (...) [J] of the springs at q (..., nq), with their own stiffness or another one (..., n)."""
        r = self._sprung
        k = (self.stiffness if stiffness is None else stiffness)[..., r]
        energy: Array = 0.5 * (k * (self.coordinates(q, r) - self.rest[r]) ** 2).sum(axis=-1)
        return energy

    def of_drives(self, q: Array, v: Array, control: Array, values: Array | None = None) -> Array:
        """Joint forces (..., nv) of the actuators for controls (..., nu), by their numbers or others (robots, 9, nu)."""
        rows, S = self.drives.row, self.map(q)
        rates = v[..., rows] if S is None else np.einsum("...rv,...v->...r", S[..., rows, :], v)
        numbers = self.drives.values if values is None else np.moveaxis(values, 1, 0)
        force = drive_force(numbers, control, self.coordinates(q, rows), rates)
        total: Array = np.zeros((*np.broadcast_shapes(force.shape[:-1], v.shape[:-1]), self.robot.nv))
        if S is None:
            for k, r in enumerate(rows):  # two drives may share a joint
                total[..., r] += force[..., k]
            return total
        carried: Array = np.einsum("...rv,...r->...v", S[..., rows, :], force)
        return total + carried

    def limited(self, tau: Array) -> Array:
        """tau (..., nv) within the efforts of independent joints."""
        most = self.robot.effort_limit
        return np.minimum(np.maximum(tau, -most), most)

    def implicit_armature(self, step: float) -> dict[str, float]:
        """The armature with which a step meets damping and springs at its end: + h d + h² k."""
        more = step * self.damping + step * step * self.stiffness
        first = {j.name: j.v_slice.start for j in self.robot.model.joints}
        return {j.name: j.armature + float(more[first[j.name]]) for j in self.robot.model.joints if more[first[j.name]] > 0.0}
