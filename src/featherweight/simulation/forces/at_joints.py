"""Forces of joints' own properties, tendons and drives, as records made from a robot and its actuators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from ...array_types import Array, Matrix, Vector
from ...model.types import Actuator, JointType
from ...robot.left_out_at_joints import OF_JOINTS
from ...robot.robot import Robot
from .controllers import parts_of
from .drive_inputs import OF_MUSCLE, DriveLaws, is_curved, laws_of
from .laws import (
    BY_VELOCITY,
    NO_ARMATURE,
    NO_TURNS,
    DriveRows,
    Drives,
    Springs,
    ordered_sum,
    write_drive_forces,
    write_spring_energies,
)
from .rows import ForceRows, force_rows, independent_rows

TURNING = JointType.SPHERICAL, JointType.FLOATING


@dataclass(frozen=True, eq=False)
class ForcesAtJoints(ForceRows):
    """Forces along rows, by damping and springs, dry friction, limits and drives."""

    springs: Springs
    friction: Vector  # (rows,)
    lower: Vector  # (rows,) limits
    upper: Vector
    drives: Drives
    drive_rows: DriveRows
    laws: DriveLaws
    compensating: Vector  # (nv,) 1 where a drive compensates gravity within bounds, else 0; (0,) without such drives

    @cached_property
    def smooth(self) -> bool:
        s = self.springs
        return bool(s.damping.any() or s.stiffness.any() or len(s.nonlinear))

    @property
    def turning_springs(self) -> bool:
        return len(self.springs.turning) > 0

    @cached_property
    def plain(self) -> bool:
        """Return whether forces are linear: those of drives at joints with their own coordinates, and of springs and dampers
        there or along lengths that are linear in coordinates.
        """
        curved = len(self.laws.curves.drive) or len(self.laws.controllers.drive) or self.states or self.sticky
        if self.lengths is None:
            return not curved
        at_joints = not self.robot.closed and (self.drives.row < self.joint_rows).all()
        return bool(at_joints and self.lengths.table.is_linear and not curved)

    @property
    def na(self) -> int:
        return len(self.laws.activations.drive)

    @cached_property
    def states(self) -> int:
        """Number of activations and states of delays."""
        return self.na + int(self.laws.delays.samples.sum())

    @cached_property
    def damps(self) -> Array:
        """Return whether the force of each drive depends on its velocity."""
        found, curves = self.drives.values[BY_VELOCITY] != 0.0, self.laws.curves
        for drive, kind, values in zip(curves.drive, curves.kind, curves.values, strict=True):
            found[drive] = kind == OF_MUSCLE or bool(values[3] or values[6])
        return found

    @cached_property
    def damped_lengths(self) -> list[int]:
        """Rows of tendons and frames with dampers, or with drives whose forces depend on velocities."""
        dampers = np.concatenate([np.flatnonzero(self.springs.damping), self.springs.nonlinear])
        rows = {*dampers.tolist(), *self.drives.row[self.damps].tolist()}
        return sorted(int(r) for r in rows if r >= self.joint_rows)

    @property
    def left_out(self) -> list[str]:
        return sorted({name for kind in OF_JOINTS for name in self.robot.left_out_at_joints.get(kind, ())})

    def softness(self, of: str) -> list[Any]:
        """Return the softness of "limit" or "dry_friction" of joints and lengths."""
        return [getattr(x, f"{of}_softness") for x in self.owners]

    def spring_energy(self, q: Array, stiffness: Array | None = None, poly: Array | None = None) -> Array:
        """Return the energy (...) [J] of the springs at q (..., nq).

        `stiffness` (robots, rows) and the nonlinear coefficients `poly` (robots, 4, m) default to the robot's.
        """
        x, s = self.all_coordinates(q), self.springs
        k, b = s.stiffness[None] if stiffness is None else stiffness, s.poly[None] if poly is None else poly
        energy = np.zeros(q.shape[:-1])
        write_spring_energies(s, k, b, np.ascontiguousarray(x).reshape(energy.size, x.shape[-1]), energy.reshape(-1))
        return energy

    def of_drives(
        self, q: Array, v: Array, control: Array, values: Array | None = None, activation: Array | None = None
    ) -> Array:
        """Return joint forces (..., nv) of the actuators for controls (..., nu), within the joints' efforts.

        `values` (robots, 9, drives) default to the robot's numbers, and activations (..., na) to zero.
        """
        S = self.map(q)
        rates = v if S is None else ordered_sum(S * v[..., None, :])
        given = control, np.zeros(self.states) if activation is None else activation, self.all_coordinates(q), rates
        batch = np.broadcast_shapes(q.shape[:-1], *(x.shape[:-1] for x in given))
        many, nv = math.prod(batch), self.robot.nv
        now = tuple(np.array(np.broadcast_to(x, (*batch, x.shape[-1])), np.float64).reshape(many, x.shape[-1]) for x in given)
        S = np.zeros((*batch, 0, nv)) if S is None else np.broadcast_to(S, (*batch, *S.shape[-2:]))
        numbers = self.drives.values[None] if values is None else np.ascontiguousarray(values)
        work = tuple(np.zeros(n) for n in (len(self.parts), self.states, len(self.parts), self.rows))
        force, S = np.zeros((many, nv)), np.ascontiguousarray(S).reshape(many, *S.shape[-2:])
        write_drive_forces(self.laws, self.drives, numbers, self.drive_rows, S, now, work, force)
        return force.reshape(*batch, nv)

    def implicit_armature(self, step: float, springs: bool = True) -> dict[str, float]:
        """Return the armature that represents damping, and springs, at the end of a step: + h d + h² k."""
        more = step * self.springs.damping + step * step * self.springs.stiffness * springs
        first = {j.name: j.v_slice.start for j in self.robot.model.joints}
        return {j.name: j.armature + float(more[first[j.name]]) for j in self.robot.model.joints if more[first[j.name]] > 0.0}


def forces_at_joints(robot: Robot, actuators: Iterable[Actuator], step: float = 0.0) -> ForcesAtJoints:
    """Return the forces of a robot with actuators, whose delays count steps [s]."""
    x = force_rows(robot, actuators)
    lower, upper = limits_of(x)
    drives = drives_of(x)
    laws = laws_of(x.actuators, drives.values[0], drives.row, drives.at, step)
    return ForcesAtJoints(
        **{f.name: getattr(x, f.name) for f in fields(x)},
        springs=springs_of(x), friction=x.moved_to_places(x.each("dry_friction")), lower=lower, upper=upper, drives=drives,
        drive_rows=drive_rows_of(x), laws=laws, compensating=compensating(robot),
    )  # fmt: skip


def limits_of(x: ForceRows) -> tuple[Vector, Vector]:
    """Return the lower and upper limits (rows,) of rows with coordinates; those of followers are limits of their leaders."""
    own, joints = x.at >= 0, x.joint_rows
    own[[p.row for p in x.robot.proportions() if p.row not in x.on_leaders]] = False
    lower, upper = np.full(x.rows, -np.inf), np.full(x.rows, np.inf)
    for goal, of_joints, name in zip((lower, upper), x.robot.row_limits(), ("lower", "upper"), strict=True):
        of_lengths = [getattr(t, name) for t in (*x.tendons, *x.balls)]
        goal[: joints + len(of_lengths)] = [*of_joints, *of_lengths]
    return np.where(own, lower, -np.inf), np.where(own, upper, np.inf)


# springs


def springs_of(x: ForceRows) -> Springs:
    damping, stiffness, poly = x.each("damping"), x.moved_to_places(x.each("stiffness")), x.moved_to_places(poly_of_rows(x))
    slack, ahead = np.zeros(x.rows), np.where(np.arange(x.rows) < x.joint_rows, 1.0, 0.0)
    rest = np.array([*(j.rest for j in x.joint_of_row), *[0.0] * (x.rows - x.joint_rows)], float)
    for r, t in enumerate(x.tendons, x.joint_rows):
        rest[r], slack[r] = t.rest[0], t.rest[1] - t.rest[0]
    for (rows, _), j in zip(x.rows_of_places(), x.free, strict=True):
        rest[rows], ahead[j.v_slice] = j.rest_pose[:3] or 0.0, 0.0
    move_to_leaders(x, stiffness, rest)
    quaternion, axis = quaternions_of(x, stiffness + np.abs(poly[:2]).sum(axis=0))
    measured = (x.at >= 0) | (quaternion >= 0)
    stiffness[~measured] = poly[:2, ~measured] = 0.0
    nonlinear = np.flatnonzero(poly.any(axis=0))
    return Springs(
        damping, stiffness, rest, slack, ahead, np.maximum(x.at, 0), quaternion, axis, np.flatnonzero(quaternion >= 0),
        nonlinear, poly[:, nonlinear].copy(), rest_turns(x), joints_with_armature(x)[nonlinear],
    )  # fmt: skip


def poly_of_rows(x: ForceRows) -> Matrix:
    owners: list[Any] = [*x.joint_of_row, *x.tendons]
    values = [(*y.stiffness_poly, *y.damping_poly) for y in owners]
    return np.array([*values, *[(0.0,) * 4] * (x.rows - len(values))]).reshape(-1, 4).T.copy()


def move_to_leaders(x: ForceRows, k: Vector, rest: Vector) -> None:
    """Move the springs of joints that follow another in proportion to the leaders.

    1/2 k (s x + o - r)² becomes 1/2 k s² (x - (r - o) / s)². Two springs on one coordinate are one spring, up to a constant
    energy.
    """
    for row, leader, slope, offset in x.robot.proportions():
        if k[row] and row in x.on_leaders:
            more = k[row] * slope * slope
            rest[leader] = (k[leader] * rest[leader] + more * (rest[row] - offset) / slope) / (k[leader] + more)
            k[leader] += more
            k[row] = 0.0


def quaternions_of(x: ForceRows, springs: Vector) -> tuple[Array, Array]:
    """Return indices of quaternions of ball and free joints with springs, by rows (n,), and components of vectors."""
    quaternion, axis = np.full(x.rows, -1), np.full(x.rows, -1)
    for whole, j in zip(x.robot.model.joints, x.robot.joints, strict=True):
        rows = slice(whole.v_slice.stop - 3, whole.v_slice.stop)
        if whole.type in TURNING and j.q_slice.stop > j.q_slice.start and springs[rows.start] > 0.0:
            quaternion[rows], axis[rows] = j.q_slice.stop - 4, np.arange(3)
    for rows, _ in x.rows_of_places():
        axis[rows] = np.arange(3)
    return quaternion, axis


def rest_turns(x: ForceRows) -> Matrix:
    """Return the quaternions (n, 4) at which springs of rotations are at rest, unless all are at zero."""
    turns = np.tile([0.0, 0.0, 0.0, 1.0], (x.rows, 1))
    for j in x.free:
        if j.rest_pose:
            turns[j.v_slice] = np.array(j.rest_pose[3:]) / np.linalg.norm(j.rest_pose[3:])
    return turns if (turns != (0.0, 0.0, 0.0, 1.0)).any() else NO_TURNS


def joints_with_armature(x: ForceRows) -> Array:
    """Return the index of each row's joint among those with armature (n,), for joints with one degree of freedom."""
    joint = np.full(x.rows, NO_ARMATURE)
    for k, j in enumerate(j for j in x.robot.model.joints if j.type is not JointType.FLOATING):
        if j.type.nv == 1:
            joint[j.v_slice.start] = k
    return joint


# drives


def drives_of(x: ForceRows) -> Drives:
    """Return the drives on the rows of their joints, tendons and frames.

    A drive on a joint that follows another in proportion acts on the leader, with a different gear.
    """
    row = {j.name: j.v_slice.start for j in reversed(x.robot.model.joints)}
    tendons = {t.name: r for r, t in enumerate(x.tendons, x.joint_rows)}
    frames = itertools.count(x.joint_rows + len(x.tendons) + len(x.balls) + 3 * len(x.free))
    leaders = {p.row: p for p in x.robot.proportions()}
    places, numbers = [], []
    for a, whole in ((part, owner) for owner in x.actuators for part in parts_of(owner)):
        gear, b0, g0 = a.gear, a.bias[0], a.gain
        if a.adhesion is not None:  # has no row: see `adhesion`
            places.append(0)
            numbers.append((0.0, a.gain, a.bias[0], 0.0, 0.0, *a.control, *a.force))
            continue
        if a.at is not None:
            r = next(frames)
        elif a.tendon is not None:
            r = tendons.get(a.tendon, -1)
        else:
            r = row.get(a.joint or "", -1)
            while r in leaders and x.at[r] < 0:
                _, r, slope, offset = leaders[r]
                gear, b0, g0 = gear * slope, b0 + a.bias[1] * gear * offset, g0 + a.slopes[0] * gear * offset
        if r < 0 or x.at[r] < 0:
            problem = "which is neither a joint with one coordinate nor a tendon"
            remedy = "use one of " + ", ".join(dict.fromkeys(x.names[k] for k in np.flatnonzero(x.at >= 0)))
            raise ValueError(f"actuator {a.name!r} is on {a.tendon or a.joint!r}, {problem}; {remedy}")
        places.append(r)
        linear = (g0, b0, *a.bias[1:]) if not is_curved(whole) else (1.0, 0.0, 0.0, 0.0)
        control = a.control if not is_curved(whole) and a.activation is None else (-np.inf, np.inf)
        numbers.append((gear, *linear, *control, *a.force))
    rows, values = np.array(places, dtype=np.int64), np.array(numbers, dtype=float).reshape(len(numbers), 9).T.copy()
    bounds = {t.name: t.force for t in x.tendons if np.isfinite(t.force).any()}
    numbers_of = {name: b for b, name in enumerate(bounds)}
    bound = [numbers_of.get(a.tendon or "", -1) if part == 0 else -1 for a in x.actuators for part in range(len(parts_of(a)))]
    bounded = np.array([*bounds.values()], float).reshape(-1, 2)
    return Drives(rows, np.maximum(x.at[rows], 0), values, np.array(bound, np.int64), bounded)


def drive_rows_of(x: ForceRows) -> DriveRows:
    robot = x.robot
    row = {j.name: j.v_slice.start for j in reversed(robot.model.joints)}
    pulled = {a.tendon for a in x.actuators} if robot.closed else set()
    terms = [
        (r, row[name], arm)
        for r, t in enumerate(x.tendons, x.joint_rows)
        for name, arm in t.terms
        if t.name in pulled and not t.path
    ]
    efforts = np.array([j.efforts for j in robot.model.joints for _ in range(j.type.nv)], float).reshape(-1, 2)
    length, joint = (np.array([term[i] for term in terms], np.int64) for i in range(2))
    arms = np.array([arm for _, _, arm in terms], float)
    return DriveRows(x.joint_rows, independent_rows(robot), length, joint, arms, efforts.T.copy())


def compensating(robot: Robot) -> Vector:
    """Return 1 for each independent velocity (nv,) whose drive compensates gravity within bounds, else 0.

    The array is empty if there is no such drive.
    """
    own = np.zeros(robot.nv)
    for whole, j in zip(robot.model.joints, robot.joints, strict=True):
        own[j.v_slice] = whole.drive_compensates
    own *= np.isfinite(robot.effort_bounds).any(axis=0)
    return own if robot.model.weight_compensated and own.any() else np.zeros(0)
