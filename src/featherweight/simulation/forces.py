"""Forces at joints: damping, springs, drives; and the rows for limits and dry friction."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property, partial
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Integers, Matrix, Shared, Tensor, Vector
from ..engine.loops.kernels import CompiledKernel
from ..model.types import Actuator, JointType, Tendon
from ..robot.left_out_at_joints import OF_JOINTS, sprung
from ..robot.robot import Robot
from ..robot.system import System
from ..robot.tendons.length_functions import LengthFunctions
from ..robot.tendons.lengths import rotation_vector, turn_from
from ..robot.tendons.tendon_table import length_table
from .controllers import DrivesNow, parts_of
from .drive_inputs import DriveLaws, is_curved, laws_of, write_drive_inputs

Number = Any  # a float, an array of floats, or a traced expression
Numbers = Any  # a sequence or array of such numbers


NO_ROWS, NO_BENDS, NO_TURNS = np.zeros(0, np.int64), np.zeros((4, 0)), np.zeros((0, 4))


class Springs(NamedTuple):
    """Damping and springs, by degree of freedom of all joints, and lengths."""

    damping: Vector
    stiffness: Vector
    rest: Shared[Vector]
    slack: Shared[Vector]  # length of the range from `rest` on in which the spring is at rest
    ahead: Shared[Vector]  # 1 if a semi-implicit step evaluates the spring at its end, 0 if at its start
    at: Shared[Integers]  # index of the coordinate of a spring
    quaternion: Shared[Integers]  # index in q of the quaternion of a ball or free joint with a spring; -1 for other joints
    axis: Shared[
        Integers
    ]  # component of the rotation vector, or of a free joint's displacement, for such joints; -1 for others
    turning: Shared[Integers]  # rows of such joints
    bent: Shared[Integers] = NO_ROWS  # (m,) rows of nonlinear springs and dampers
    bends: Matrix = NO_BENDS  # (4, m) their coefficients b and c of `Joint.stiffness_poly` and of `Joint.damping_poly`
    rest_turn: Shared[Matrix] = (
        NO_TURNS  # (n, 4) quaternions at which springs of rotations are at rest, or no rows where all are at zero
    )
    bent_joint: Shared[Integers] = (
        NO_ROWS  # (m,) joint whose armature represents them in a semi-implicit step, or `NO_ARMATURE`
    )


TURNING = JointType.SPHERICAL, JointType.FLOATING
NO_ARMATURE = -1  # for lengths and joints with several degrees of freedom: evaluated at the start of a step


def coordinate_of_row(springs: Springs, q: Vector, r: int) -> float:
    """Return the coordinate of a row with a spring.

    For ball joints it is a component of the rotation vector in the child's frame.
    """
    i = springs.quaternion[r]
    if i < 0:
        return q[springs.at[r]]  # type: ignore[no-any-return]
    if len(springs.rest_turn) == 0:
        return rotation_vector(q, i)[springs.axis[r]]
    return rotation_vector(turn_from(springs.rest_turn[r], q, i), 0)[springs.axis[r]]


def stretch_of_row(springs: Springs, r: int, x: float) -> float:
    """Return the distance of a row's coordinate from the rest position of its spring."""
    return x - min(max(x, springs.rest[r]), springs.rest[r] + springs.slack[r])  # type: ignore[no-any-return]


def extent_of_row(springs: Springs, q: Vector, r: int) -> float:
    """Return the argument of the polynomial of a row's spring.

    It is the stretch; for ball and free joints, the norm of the vector of three stretches.
    """
    if springs.axis[r] < 0:
        return stretch_of_row(springs, r, coordinate_of_row(springs, q, r))
    first, square = r - springs.axis[r], 0.0
    for i in range(3):
        x = stretch_of_row(springs, first + i, coordinate_of_row(springs, q, first + i))
        square += x * x
    return sqrt(square)


class Drives(NamedTuple):
    """Actuators: the row of the driven joint or length, the index of its coordinate, and the numbers of `drive_force`."""

    row: Shared[Integers]  # (k,)
    at: Shared[Integers]  # (k,)
    values: Matrix  # (9, k) gear, gain, bias (3), range of the control, range of the force
    bound: Shared[Integers]  # (k,) number of the tendon that bounds the sum of its drives' forces, -1 for none
    bounds: Shared[Matrix]  # (b, 2) bounds of these sums, of forces before their limits and gears


class DriveRows(NamedTuple):
    """The map from forces of drives to the rows of joints, whose sums are limited to the efforts."""

    joints: int  # number of rows of joints, which are the first rows
    row: Integers  # (nv,) row of each independent velocity
    length: Integers  # (m,) rows of tendons, for robots with joints that follow others
    joint: Integers  # (m,) rows of joints that are terms of these tendons
    arm: Vector  # (m,) coefficients of these terms
    efforts: Matrix  # (2, joints) lower and upper bounds of the sums


def spread(x: DriveRows, S: Matrix, row_force: Vector) -> None:
    """Map forces along lengths to the rows of joints, by the terms of tendons or by independent velocities."""
    for k in range(len(x.length)):
        row_force[x.joint[k]] += x.arm[k] * row_force[x.length[k]]
    for k in range(len(x.length)):
        row_force[x.length[k]] = 0.0
    for r in range(x.joints, len(row_force)):
        if row_force[r] != 0.0:
            for i in range(len(x.row)):
                row_force[x.row[i]] += S[r, i] * row_force[r]
            row_force[r] = 0.0


def drive_law(drive: Numbers, u: Number, x: Number, v: Number, ahead: float) -> Number:
    """Return the force of a drive before limits and gear, for the control u, at a coordinate x with velocity v.

    Stiffness acts at the coordinate that v leads to in `ahead` seconds. The arguments are numbers or arrays.
    """
    gear, gain, b0, b1, b2, control_low, control_high, _, _ = drive
    force = gain * np.minimum(np.maximum(u, control_low), control_high) + b0
    return force + gear * (b1 * x + (b2 + ahead * np.minimum(b1, 0.0)) * v)


def drive_force(drive: Numbers, u: Number, x: Number, v: Number) -> Number:
    """Return the force at a joint's coordinate x with velocity v, for the control u; for numbers or arrays."""
    return drive[0] * np.minimum(np.maximum(drive_law(drive, u, x, v, 0.0), drive[7]), drive[8])


def write_row_forces(drives: Drives, control: Vector, x: Vector, rates: Vector, law: Vector, total: Vector) -> None:
    """Add the forces of drives to those of rows, for controls, at the coordinates x and velocities of all rows."""
    values = drives.values
    for k in range(len(drives.row)):
        row, at = drives.row[k], drives.at[k]
        drive = values[0, k], values[1, k], values[2, k], values[3, k], values[4, k], values[5, k], values[6, k], 0.0, 0.0
        law[k] = drive_law(drive, control[k], x[at], rates[row], 0.0)
    bound_laws(drives, law)
    for k in range(len(drives.row)):
        total[drives.row[k]] += values[0, k] * min(max(law[k], values[7, k]), values[8, k])


@partial(CompiledKernel, fused=False)
def add_drive_forces(
    drives: Drives, values: Tensor, q: Matrix, rates: Matrix, control: Matrix, law: Vector, total: Matrix
) -> None:
    """Add forces of drives to total (robots, rows); the drives have numbers `values` (1 or robots, 9, drives)."""
    for i in range(len(q)):
        own = drives._replace(values=values[i if len(values) > 1 else 0])
        write_row_forces(own, control[i], q[i], rates[i], law, total[i])


@partial(CompiledKernel, fused=False)
def write_inputs_of_many(
    laws: DriveLaws, control: Matrix, act: Matrix, q: Matrix, rates: Matrix, inputs: Matrix, act_rate: Matrix
) -> None:
    """Write the inputs of the linear laws (robots, drives); see `write_drive_inputs`."""
    for i in range(len(inputs)):
        write_drive_inputs(laws, DrivesNow(control[i], act[i], q[i], rates[i], inputs[i], act_rate[i]))


def _numbered(names: Sequence[str]) -> Array:
    """Return a number for each name, in the order of first occurrence."""
    order = list(dict.fromkeys(names))
    return np.array([order.index(name) for name in names], np.int64)


def is_bent(x: Any) -> bool:
    """Return whether the spring or the damper of a joint or tendon is nonlinear."""
    return any(x.stiffness_poly) or any(x.damping_poly)


def acts(t: Tendon, actuators: Sequence[Actuator]) -> bool:
    """Return whether forces act along a tendon."""
    own = t.stiffness or t.damping or t.friction or np.isfinite([t.lower, t.upper]).any() or is_bent(t)
    return bool(own) or any(a.tendon == t.name for a in actuators)


def bound_laws(drives: Drives, law: Vector) -> None:
    """Scale the forces of drives before limits and gears, so that their sum along a tendon is within its bounds."""
    for b in range(len(drives.bounds)):
        total = 0.0
        for k in range(len(law)):
            total += law[k] if drives.bound[k] == b else 0.0
        within = min(max(total, drives.bounds[b, 0]), drives.bounds[b, 1])
        for k in range(len(law)):
            if drives.bound[k] == b and total != within and total != 0.0:
                law[k] *= within / total


def drive_armature(drive: Numbers, step: float) -> Number:
    """Return the armature that represents stiffness and damping of a drive at the end of a step; for numbers or arrays."""
    gear, b1, b2 = drive[0], drive[3], drive[4]
    return gear * gear * (step * np.maximum(-b2, 0.0) + step * step * np.maximum(-b1, 0.0))


def spring_force(spring: Numbers, x: Number, v: Number, ahead: Number) -> Number:
    """Return the force of damping and a spring at a coordinate x, `ahead` seconds later at its velocity.

    Arguments are numbers or arrays.
    """
    damping, stiffness, rest = spring
    return -damping * v - stiffness * (x + ahead * v - rest)


def force_of_spring(springs: Springs, r: int, x: float, v: float, ahead: float) -> float:
    """Return `spring_force` of a row."""
    rest = min(max(x, springs.rest[r]), springs.rest[r] + springs.slack[r])
    spring = springs.damping[r], springs.stiffness[r], rest
    return spring_force(spring, x, v, ahead * springs.ahead[r])  # type: ignore[no-any-return]


def bent_spring_force(bend: Numbers, x: Number, extent: Number) -> Number:
    """Return the force of a spring's nonlinear coefficients b, c at a stretch x: -x (b e + c e²); for numbers or arrays."""
    return -x * (extent * (bend[0] + extent * bend[1]))


def bent_damper_force(bend: Numbers, v: Number) -> Number:
    """Return the force of a damper's nonlinear coefficients b, c: -v (b |v| + c v²); for numbers or arrays."""
    speed = np.maximum(v, -v)
    return -v * (speed * (bend[2] + speed * bend[3]))


def bent_energy(bend: Numbers, x: Number, extent: Number) -> Number:
    """Return the energy [J] of a spring's nonlinear coefficients; for a ball joint, of one component. For numbers or arrays."""
    return x * x * (extent * (bend[0] / 3.0 + extent * (bend[1] / 4.0)))


def add_bent_forces(springs: Springs, q: Vector, rates: Vector, ahead: float, row_force: Vector, armature: Vector) -> None:
    """Add forces of nonlinear coefficients at coordinates q and velocities of rows.

    A semi-implicit step includes their change over its length, `ahead`, to first order, by armature as for linear ones.
    Negative slopes do not make this armature negative.
    """
    for k in range(len(springs.bent)):
        r, j = springs.bent[k], springs.bent_joint[k]
        bend = springs.bends[0, k], springs.bends[1, k], springs.bends[2, k], springs.bends[3, k]
        v, x = rates[r], stretch_of_row(springs, r, coordinate_of_row(springs, q, r))
        extent, speed = extent_of_row(springs, q, r), abs(v)
        row_force[r] += bent_spring_force(bend, x, extent) + bent_damper_force(bend, v)
        if ahead > 0.0 and j != NO_ARMATURE and len(armature) > 0:
            stiffer = max(extent * (2.0 * bend[0] + 3.0 * extent * bend[1]), -springs.stiffness[r])
            damped = max(speed * (2.0 * bend[2] + 3.0 * speed * bend[3]), -springs.damping[r])
            row_force[r] -= ahead * v * stiffer
            armature[j] += ahead * damped + ahead * ahead * stiffer


def ordered_sum(x: Array) -> Array:
    """Return sums (...) over the last axis, term by term: bitwise equal to a compiled loop, for any number of robots."""
    return np.asarray(np.cumsum(x, axis=-1)[..., -1]) if x.shape[-1] else np.zeros(x.shape[:-1])


class ForcesAtJoints:
    """Forces of joints' own properties, tendons and drives.

    Forces act along n rows (degrees of freedom) of all joints in `robot.model.joints`, followed by rows of `lengths`: tendons,
    limited angles of ball joints, positions of free joints, and drives at frames. S(q) (rows, nv) maps independent velocities
    to the velocities of all rows, and forces back: tau = Sᵀ times the rows' forces. A tree without lengths has no S.
    Coordinates are q, followed by those of joints that follow others nonlinearly, and lengths.
    """

    def __init__(self, robot: Robot, actuators: Sequence[Actuator], step: float = 0.0) -> None:
        self.robot, self.actuators = robot, tuple(actuators)
        self.parts = tuple(part for a in self.actuators for part in parts_of(a))  # the part for each drive of `drives`
        self.tendons = tuple(t for t in robot.model.tendons if acts(t, self.actuators))
        self.balls = tuple(j for j in robot.model.joints if j.type is JointType.SPHERICAL and j.upper < np.inf)
        floating = [j for j in robot.model.joints if j.type is JointType.FLOATING]
        self.free = tuple(j for j in floating if j.friction or any(j.damping_poly) or sprung(j))
        self.joint_rows = len(robot.model.tree.parent)
        self.lengths = self._lengths()
        of_joints = [j for j in robot.model.joints for _ in range(j.type.nv)]
        at_frames = [a.name for a in self.parts if a.at is not None]
        self.held_rows = self.lengths.table.held if self.lengths else ()
        owners = [x.name for x in self.held_rows]
        self.held = np.concatenate([np.full(self.rows - len(owners), -1), _numbered(owners)])
        tied = [x.name for x in robot.model.held_lengths for side in (x.tie.first, x.tie.second) if side]
        others = [*at_frames, *tied, *owners]
        limited: list[Any] = [*self.tendons, *self.balls]  # lengths
        placed = [j for j in self.free for _ in range(3)]
        self.names = [*(x.name for x in (*of_joints, *limited, *placed)), *others]
        each: dict[str, Array] = {name: self._each(of_joints, name) for name in ("damping", "stiffness", "friction")}
        each["rest"], slack = self._each(of_joints, "rest"), np.zeros(self.rows)
        for r, t in enumerate(self.tendons, self.joint_rows):
            each["rest"][r], slack[r] = t.rest[0], t.rest[1] - t.rest[0]
        further = self._further(of_joints)
        for (rows, moving), j in zip(self.rows_of_places(), self.free, strict=True):
            for x in (each["friction"], each["stiffness"], *further):
                x[rows], x[moving] = x[moving], 0.0
            each["rest"][rows] = j.rest_pose[:3] or 0.0
        self.damping, self.friction = each["damping"], each["friction"]
        self.at = self._places()
        self.compensating = self._compensating()
        self._carry_springs(each)
        quaternion, axis = self._of_balls(each["stiffness"] + np.abs(further[:2]).sum(axis=0))
        measured = (self.at >= 0) | (quaternion >= 0)
        self.stiffness, self.rest = np.where(measured, each["stiffness"], 0.0), each["rest"]
        further[:2, ~measured] = 0.0
        bent = np.flatnonzero(further.any(axis=0))
        lower, upper = (
            np.concatenate([x, [getattr(t, name) for t in limited], np.full(len(placed) + len(others), none)])
            for x, name, none in zip(robot.row_limits(), ("lower", "upper"), (-np.inf, np.inf), strict=True)
        )
        own = self.at >= 0
        own[[p.row for p in robot.proportions() if self._stays(p.row)]] = False  # the leaders carry their forces
        self.lower, self.upper = np.where(own, lower, -np.inf), np.where(own, upper, np.inf)
        softness = [[getattr(x, f"{k}_softness") for x in (*of_joints, *limited, *placed)] for k in ("limit", "friction")]
        self.limit_softness, self.friction_softness = softness
        self.left_out = sorted({name for kind in OF_JOINTS for name in robot.left_out_at_joints.get(kind, ())})
        self.smooth = bool(self.damping.any() or self.stiffness.any() or len(bent))
        at, turning = np.maximum(self.at, 0), np.flatnonzero(quaternion >= 0)
        ahead = np.where(np.arange(self.rows) < self.joint_rows, 1.0, 0.0)
        for j in self.free:
            ahead[j.v_slice] = 0.0
        bends = bent, further[:, bent].copy(), self._rest_turns(), self._joints_with_armature()[bent]
        self.springs = Springs(self.damping, self.stiffness, self.rest, slack, ahead, at, quaternion, axis, turning, *bends)
        self.turning_springs = len(turning) > 0
        self._sprung = np.flatnonzero(self.stiffness)
        self.drives = self._of_actuators()
        self.drive_rows = self._drive_rows()
        self.laws = laws_of(self.actuators, self.drives.values[0], self.drives.row, self.drives.at, step)

    def _lengths(self) -> LengthFunctions | None:
        """Return the functions of all lengths, or None.

        Lengths are tendons, limited angles of ball joints, positions of free joints with springs, dry friction or nonlinear
        dampers, drives at frames, and joints that follow others nonlinearly and have forces.
        """
        robot = self.robot
        driven = {a.joint for a in self.actuators}
        carried = {p.row for p in robot.proportions() if not self._stays(p.row)}
        asked = {
            j.v_slice.start
            for j in robot.model.joints
            if sprung(j) or np.isfinite([j.lower, j.upper]).any() or j.name in driven
        }
        asked |= {p.leader for p in robot.proportions() if p.row in asked}
        followers = {f.row for f in robot.followers()} & asked - carried
        forces = [a.at for a in self.parts if a.at is not None]
        held = robot.model.held_loops or robot.model.held_couplings or robot.model.held_lengths
        if not (self.tendons or self.balls or self.free or forces or followers or held):
            return None
        return LengthFunctions(robot, length_table(robot, self.tendons, forces, followers, self.balls, self.free))

    def _stays(self, row: int) -> bool:
        """Return whether springs and drives of a joint that follows another in proportion act on its own coordinate.

        If one of the two springs is nonlinear, their sum is not a polynomial of the same kind; and an effort limits the drives
        of each joint separately.
        """
        bent = {j.v_slice.start for j in self.robot.model.joints if any(j.stiffness_poly)}
        driven = {a.joint for a in self.actuators}
        acted = any(j.v_slice.start == row and j.name in driven for j in self.robot.model.joints)
        if acted:
            bent |= {j.v_slice.start for j in self.robot.model.joints if np.isfinite(j.efforts).any()}
        return any(p.row == row and not bent.isdisjoint((row, p.leader)) for p in self.robot.proportions())

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.joint_rows + (self.lengths.table.extra if self.lengths else 0)

    @property
    def alike(self) -> int:
        """Number of leading rows that are independent velocities."""
        return 0 if self.robot.closed else self.joint_rows

    @property
    def mapped(self) -> bool:
        """Return whether S exists."""
        return bool(self.robot.closed) or self.lengths is not None

    @property
    def plain(self) -> bool:
        """Return whether all forces act at joints with their own coordinates, by linear laws; other forces have no
        derivatives.
        """
        curved = len(self.laws.curves.drive) or len(self.laws.controllers.drive)
        return self.lengths is None and not self.states and not curved and not self.sticky

    @property
    def sticky(self) -> list[int]:
        """Numbers of the drives with adhesion."""
        return [k for k, a in enumerate(self.parts) if a.adhesion is not None]

    @property
    def na(self) -> int:
        """Number of activations."""
        return len(self.laws.activations.drive)

    @property
    def states(self) -> int:
        """Number of activations and states of delays."""
        return self.na + int(self.laws.delays.samples.sum())

    def moved_by(self, rows: Sequence[int]) -> dict[int, list[int]]:
        """Return, for some rows of lengths, the velocities that may change them."""
        x = self.lengths
        if x is None or not rows:
            return {}
        q = System.random_configuration(self.robot, 0)  # loops may be open: the zeros are the same
        _, S = x.evaluate(q)
        moves: Array = np.asarray(S != 0.0)
        if x.jacobians is not None:
            moving: Array = np.asarray(np.any(x.jacobians(q), axis=1))  # (bodies, nv)
            for i, row in enumerate(x.table.lengths.row):
                if x.table.lengths.own[i]:
                    moves[row] |= moving[x.table.bodies_of(i)].any(axis=0)
        return {row: np.flatnonzero(moves[row]).tolist() for row in rows}

    def rows_of_places(self) -> list[tuple[slice, slice]]:
        """Return rows of the positions of free joints, and the rows of the same joints along the axes of their bodies.

        Forces that differ by axis belong to the former rows.
        """
        first = self.joint_rows + len(self.tendons) + len(self.balls)
        starts = [(first + 3 * k, j.v_slice.start) for k, j in enumerate(self.free)]
        return [(slice(r, r + 3), slice(v, v + 3)) for r, v in starts]

    def _each(self, of_joints: Sequence[object], name: str) -> Array:
        """Return a number for each row."""
        values = [float(getattr(j, name)) for j in of_joints]
        if name != "rest":
            values += [float(getattr(t, name)) for t in self.tendons]
        return np.array([*values, *[0.0] * (self.rows - len(values))])

    def _compensating(self) -> Array:
        """Return 1 for each independent velocity (nv,) whose drive compensates gravity within bounds, else 0.

        The array is empty if there is no such drive.
        """
        robot = self.robot
        own = np.zeros(robot.nv)
        for whole, j in zip(robot.model.joints, robot.joints, strict=True):
            own[j.v_slice] = whole.drive_compensates
        own *= np.isfinite(robot.effort_bounds).any(axis=0)
        return own if robot.model.carried and own.any() else np.zeros(0)

    def _further(self, of_joints: Sequence[Any]) -> Array:
        """Return nonlinear coefficients (4, rows) of springs and dampers."""
        values = [(*x.stiffness_poly, *x.damping_poly) for x in (*of_joints, *self.tendons)]
        return np.array([*values, *[(0.0,) * 4] * (self.rows - len(values))]).reshape(-1, 4).T.copy()

    def _joints_with_armature(self) -> Array:
        """Return the index of each row's joint among those with armature (n,), for joints with one degree of freedom."""
        joint = np.full(self.rows, NO_ARMATURE)
        for k, j in enumerate(j for j in self.robot.model.joints if j.type is not JointType.FLOATING):
            if j.type.nv == 1:
                joint[j.v_slice.start] = k
        return joint

    def _places(self) -> Array:
        """Return the index of the coordinate of each row, -1 if there is none."""
        if self.lengths is not None:
            x = self.lengths.table
            extra = np.arange(x.extra) + len(x.lengths.at) - x.extra + self.robot.nq
            return np.concatenate([x.joint_at, extra])
        at = np.full(self.joint_rows, -1)
        for whole, j in zip(self.robot.model.joints, self.robot.joints, strict=True):
            if whole.type.nq == 1 and j.q_slice.stop > j.q_slice.start:
                at[whole.v_slice.start] = j.q_slice.start
        return at

    def _of_balls(self, springs: Array) -> tuple[Array, Array]:
        """Return indices of quaternions of ball and free joints with springs, by rows (n,), and components of vectors."""
        quaternion, axis = np.full(len(springs), -1), np.full(len(springs), -1)
        for whole, j in zip(self.robot.model.joints, self.robot.joints, strict=True):
            rows = slice(whole.v_slice.stop - 3, whole.v_slice.stop)
            if whole.type in TURNING and j.q_slice.stop > j.q_slice.start and springs[rows.start] > 0.0:
                quaternion[rows], axis[rows] = j.q_slice.stop - 4, np.arange(3)
        for rows, _ in self.rows_of_places():
            axis[rows] = np.arange(3)
        return quaternion, axis

    def _rest_turns(self) -> Array:
        """Return the quaternions (n, 4) at which springs of rotations are at rest, unless all are at zero."""
        turns = np.tile([0.0, 0.0, 0.0, 1.0], (self.rows, 1))
        for j in self.free:
            if j.rest_pose:
                turns[j.v_slice] = np.array(j.rest_pose[3:]) / np.linalg.norm(j.rest_pose[3:])
        return turns if (turns != (0.0, 0.0, 0.0, 1.0)).any() else NO_TURNS

    def _carry_springs(self, each: dict[str, Array]) -> None:
        """Move the springs of joints that follow another in proportion to the leaders.

        1/2 k (s x + o - r)² becomes 1/2 k s² (x - (r - o) / s)². Two springs on one coordinate are one spring, up to a constant
        energy.
        """
        k, rest = each["stiffness"], each["rest"]
        for row, leader, slope, offset in self.robot.proportions():
            if k[row] and not self._stays(row):
                more = k[row] * slope * slope
                rest[leader] = (k[leader] * rest[leader] + more * (rest[row] - offset) / slope) / (k[leader] + more)
                k[leader] += more
                k[row] = 0.0

    def _of_actuators(self) -> Drives:
        """Return the drives on the rows of their joints, tendons and frames.

        A drive on a joint that follows another in proportion acts on the leader, with a different gear.
        """
        row = {j.name: j.v_slice.start for j in reversed(self.robot.model.joints)}
        tendons = {t.name: r for r, t in enumerate(self.tendons, self.joint_rows)}
        frames = itertools.count(self.joint_rows + len(self.tendons) + len(self.balls) + 3 * len(self.free))
        leaders = {p.row: p for p in self.robot.proportions()}
        places, numbers = [], []
        for a, whole in ((part, x) for x in self.actuators for part in parts_of(x)):
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
                while r in leaders and self.at[r] < 0:
                    _, r, slope, offset = leaders[r]
                    gear, b0, g0 = gear * slope, b0 + a.bias[1] * gear * offset, g0 + a.slopes[0] * gear * offset
            if r < 0 or self.at[r] < 0:
                problem = "which is neither a joint with one coordinate nor a tendon"
                remedy = "use one of " + ", ".join(dict.fromkeys(self.names[k] for k in np.flatnonzero(self.at >= 0)))
                raise ValueError(f"actuator {a.name!r} is on {a.tendon or a.joint!r}, {problem}; {remedy}")
            places.append(r)
            linear = (g0, b0, *a.bias[1:]) if not is_curved(whole) else (1.0, 0.0, 0.0, 0.0)
            control = a.control if not is_curved(whole) and a.activation is None else (-np.inf, np.inf)
            numbers.append((gear, *linear, *control, *a.force))
        rows, values = np.array(places, dtype=np.int64), np.array(numbers, dtype=float).reshape(len(numbers), 9).T.copy()
        bounds = {t.name: t.force for t in self.tendons if np.isfinite(t.force).any()}
        numbers_of = {name: b for b, name in enumerate(bounds)}
        bound = [
            numbers_of.get(a.tendon or "", -1) if part == 0 else -1 for a in self.actuators for part in range(len(parts_of(a)))
        ]
        bounded = np.array([*bounds.values()], float).reshape(-1, 2)
        return Drives(rows, np.maximum(self.at[rows], 0), values, np.array(bound, np.int64), bounded)

    def _drive_rows(self) -> DriveRows:
        robot = self.robot
        own = [
            range(whole.v_slice.start, whole.v_slice.stop)[: j.v_slice.stop - j.v_slice.start]
            for whole, j in zip(robot.model.joints, robot.joints, strict=True)
        ]
        row = {j.name: j.v_slice.start for j in reversed(robot.model.joints)}
        pulled = {a.tendon for a in self.actuators} if robot.closed else set()
        terms = [
            (r, row[name], arm)
            for r, t in enumerate(self.tendons, self.joint_rows)
            for name, arm in t.terms
            if t.name in pulled and not t.path
        ]
        efforts = np.array([j.efforts for j in robot.model.joints for _ in range(j.type.nv)], float).reshape(-1, 2)
        length, joint = (np.array([x[i] for x in terms], np.int64) for i in range(2))
        arms = np.array([arm for _, _, arm in terms], float)
        return DriveRows(self.joint_rows, np.array([*itertools.chain(*own)], np.int64), length, joint, arms, efforts.T.copy())

    @property
    def owner(self) -> Array:
        """Number of the actuator of each drive."""
        return np.repeat(np.arange(len(self.actuators)), [len(parts_of(a)) for a in self.actuators])

    @cached_property
    def nu(self) -> int:
        """Number of controls."""
        return sum(len(a.controls) for a in self.actuators)

    def map(self, q: Array) -> Array | None:
        """Return S(q) (..., rows, nv); None for the identity."""
        if self.lengths is not None:
            return self.lengths.evaluate(q)[1]
        if not self.robot.closed:
            return None
        velocities = self.robot.spanning_velocity(q[..., None, :], np.eye(self.robot.nv))  # type: ignore[attr-defined]
        return np.asarray(np.swapaxes(velocities, -1, -2))

    def all_coordinates(self, q: Array) -> Array:
        """Return the coordinates q (..., nq), followed by those of lengths."""
        return q if self.lengths is None else self.lengths.evaluate(q)[0]

    def coordinates(self, q: Array, rows: Array) -> Array:
        """Return the coordinates (..., rows) of some rows."""
        coordinates: Array = self.all_coordinates(q)[..., self.at[rows]]
        return coordinates

    def coordinates_of_rows(self, q: Array) -> Array:
        """Return the coordinates (..., rows) of all rows that springs may act on (see `coordinate_of_row`)."""
        coordinates: Array = self.all_coordinates(q)[..., self.springs.at]
        if self.turning_springs:
            flat, turned = q.reshape(-1, q.shape[-1]), coordinates.reshape(-1, coordinates.shape[-1])
            for r in np.flatnonzero(self.springs.quaternion >= 0):
                turned[:, r] = [coordinate_of_row(self.springs, x, int(r)) for x in flat]
        return coordinates

    def of_springs(self, q: Array, v: Array, ahead: float = 0.0) -> Array:
        """Return forces (..., nv) of damping and springs; springs act at the coordinates that v leads to in `ahead` seconds."""
        S = self.map(q)
        rates = v if S is None else ordered_sum(S * v[..., None, :])
        s, x = self.springs, self.coordinates_of_rows(q)
        rest = np.minimum(np.maximum(x, s.rest), s.rest + s.slack)
        force: Array = spring_force((s.damping, s.stiffness, rest), x, rates, ahead * s.ahead)
        for r, bend in zip(s.bent, s.bends.T, strict=True):
            spring = bent_spring_force(bend, (x - rest)[..., r], self._extents(x - rest, r))
            force[..., r] += spring + bent_damper_force(bend, rates[..., r])
        return force if S is None else ordered_sum(np.swapaxes(S, -1, -2) * force[..., None, :])

    def _extents(self, stretched: Array, row: Any) -> Array:
        """Return `extent_of_row` (...) for the stretches (..., rows) of all rows."""
        first, whole = int(row - self.springs.axis[row]), self.springs.axis[row] >= 0
        return np.asarray(np.linalg.norm(stretched[..., first : first + 3], axis=-1) if whole else stretched[..., row])

    def spring_energy(self, q: Array, stiffness: Array | None = None, bends: Array | None = None) -> Array:
        """Return the energy (...) [J] of the springs at q (..., nq).

        `stiffness` (..., rows) and the nonlinear coefficients `bends` (..., 4, m) default to the robot's.
        """
        r, s = self._sprung, self.springs
        k = (self.stiffness if stiffness is None else stiffness)[..., r]
        x = self.coordinates_of_rows(q)
        stretched = x - np.minimum(np.maximum(x, s.rest), s.rest + s.slack)
        energy = ordered_sum(0.5 * k * stretched[..., r] * stretched[..., r])
        for row, bend in zip(s.bent, np.moveaxis(s.bends if bends is None else bends, -1, 0), strict=True):
            energy = energy + bent_energy(bend.T, stretched[..., row], self._extents(stretched, row))
        return energy

    def drive_inputs(self, x: Array, rates: Array, control: Array, activation: Array) -> Array:
        """Return inputs (robots, drives) for controls (robots, nu) and activations (robots, na).

        x and `rates` (robots, rows) are coordinates and velocities of all rows.
        """
        if self.plain:
            return control
        inputs = np.zeros((len(control), len(self.parts)))
        u, a, x, rates = (np.array(y, np.float64, order="C") for y in (control, activation, x, rates))
        write_inputs_of_many(self.laws, u, a, x, rates, inputs, np.zeros(a.shape))
        return inputs

    def of_drives(
        self, q: Array, v: Array, control: Array, values: Array | None = None, activation: Array | None = None
    ) -> Array:
        """Return joint forces (..., nv) of the actuators for controls (..., nu), within the joints' efforts.

        `values` (robots, 9, drives) default to the robot's numbers, and activations (..., na) to zero.
        """
        S, batch = self.map(q), q.shape[:-1]
        rates = v if S is None else ordered_sum(S * v[..., None, :])
        act = np.zeros((*batch, self.states)) if activation is None else activation
        q = self.all_coordinates(q)
        given = (q, rates, control, act)
        if any(x.shape[:-1] != batch for x in given):
            batch = np.broadcast_shapes(*(x.shape[:-1] for x in given))
            given = tuple(np.broadcast_to(x, (*batch, x.shape[-1])) for x in given)  # type: ignore[assignment]
        of_rows = np.zeros((*batch, rates.shape[-1]))
        many = int(np.prod(batch))
        x, w, u, a = (np.ascontiguousarray(x, np.float64).reshape(many, x.shape[-1]) for x in given)
        numbers = self.drives.values[None] if values is None else np.ascontiguousarray(values)
        u = self.drive_inputs(x, w, u, a)
        flat = of_rows.reshape(many, rates.shape[-1])
        add_drive_forces(self.drives, numbers, x, w, u, np.zeros(len(self.parts)), flat)
        to, n = self.drive_rows, self.joint_rows
        if S is not None:
            for length, joint, arm in zip(to.length, to.joint, to.arm, strict=True):
                of_rows[..., joint] += arm * of_rows[..., length]
            of_rows[..., to.length] = 0.0
            of_rows[..., to.row] += ordered_sum(np.swapaxes(S[..., n:, :], -1, -2) * of_rows[..., None, n:])
        force = np.minimum(np.maximum(of_rows[..., :n], to.efforts[0]), to.efforts[1])
        return force if S is None else ordered_sum(np.swapaxes(S[..., :n, :], -1, -2) * force[..., None, :])

    def limited(self, tau: Array) -> Array:
        """Return tau (..., nv) clipped to the efforts of independent joints."""
        least, most = self.robot.effort_bounds
        return np.minimum(np.maximum(tau, least), most)

    def implicit_armature(self, step: float) -> dict[str, float]:
        """Return the armature that represents damping and springs at the end of a step: + h d + h² k."""
        more = step * self.damping + step * step * self.stiffness
        first = {j.name: j.v_slice.start for j in self.robot.model.joints}
        return {j.name: j.armature + float(more[first[j.name]]) for j in self.robot.model.joints if more[first[j.name]] > 0.0}
