"""The rows along which forces at joints act: degrees of freedom of all joints, followed by lengths."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...array_types import Array
from ...model.model import MovingJoint
from ...model.types import Actuator, JointType, Tendon
from ...robot.robot import Robot
from ...robot.system import System
from ...robot.tendons.length_functions import LengthFunctions
from ...robot.tendons.tendon_table import length_table
from .controllers import parts_of

UNMOVED = 1e-12  # greatest entry of S of a length that no joint changes


@dataclass(frozen=True, eq=False)
class ForceRows:
    """The rows of forces of a robot with actuators.

    There are n rows (degrees of freedom) of all joints in `robot.model.joints`, followed by rows of `lengths`: tendons, limited
    angles of ball joints, positions of free joints, and drives at frames. S(q) (rows, nv) maps independent velocities to the
    velocities of all rows, and forces back: tau = Sᵀ times the rows' forces. A tree without lengths has no S. Coordinates are
    q, followed by those of joints that follow others nonlinearly, and lengths.
    """

    robot: Robot
    actuators: tuple[Actuator, ...]
    parts: tuple[Actuator, ...]  # the part of an actuator for each drive
    tendons: tuple[Tendon, ...]  # along which forces act
    balls: tuple[MovingJoint, ...]  # joints with limited angles
    free: tuple[MovingJoint, ...]  # joints with springs, dry friction or nonlinear dampers
    on_leaders: frozenset[int]  # rows of joints that follow another in proportion, whose springs and drives act on the leader
    lengths: LengthFunctions | None

    @cached_property
    def joint_rows(self) -> int:
        return len(self.robot.model.tree.parent)

    @cached_property
    def rows(self) -> int:
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
    def compliant_rows(self) -> Sequence[Any]:
        """Compliant equalities, which hold the last rows."""
        return self.lengths.table.compliant if self.lengths else ()

    @cached_property
    def equality_of_row(self) -> Array:
        """The number (rows,) of the equality that holds each row, -1 for none."""
        names = [x.name for x in self.compliant_rows]
        order = {name: k for k, name in enumerate(dict.fromkeys(names))}
        return np.array([*[-1] * (self.rows - len(names)), *(order[name] for name in names)], np.int64)

    @cached_property
    def owners(self) -> list[Any]:
        """The joints and tendons of the leading rows, and the joints of rows of positions."""
        placed = [j for j in self.free for _ in range(3)]
        return [*self.joint_of_row, *self.tendons, *self.balls, *placed]

    @cached_property
    def joint_of_row(self) -> list[MovingJoint]:
        return [j for j in self.robot.model.joints for _ in range(j.type.nv)]

    @cached_property
    def names(self) -> list[str]:
        at_frames = [a.name for a in self.parts if a.at is not None]
        tied = [x.name for x in self.robot.model.compliant_lengths for side in (x.tie.first, x.tie.second) if side]
        return [*(x.name for x in self.owners), *at_frames, *tied, *(x.name for x in self.compliant_rows)]

    @cached_property
    def at(self) -> Array:
        """The index of the coordinate of each row, -1 if there is none."""
        if self.lengths is not None:
            x = self.lengths.table
            extra = np.arange(x.extra) + len(x.lengths.at) - x.extra + self.robot.nq
            return np.concatenate([x.joint_at, extra])
        at = np.full(self.joint_rows, -1)
        for whole, j in zip(self.robot.model.joints, self.robot.joints, strict=True):
            if whole.type.nq == 1 and j.q_slice.stop > j.q_slice.start:
                at[whole.v_slice.start] = j.q_slice.start
        return at

    @property
    def owner(self) -> Array:
        """Number of the actuator of each drive."""
        return np.repeat(np.arange(len(self.actuators)), [len(parts_of(a)) for a in self.actuators])

    @cached_property
    def nu(self) -> int:
        return sum(len(a.controls) for a in self.actuators)

    @property
    def sticky(self) -> list[int]:
        """Numbers of the drives with adhesion."""
        return [k for k, a in enumerate(self.parts) if a.adhesion is not None]

    def rows_of_places(self) -> list[tuple[slice, slice]]:
        """Return rows of the positions of free joints, and the rows of the same joints along the axes of their bodies.

        Forces that differ by axis belong to the former rows.
        """
        first = self.joint_rows + len(self.tendons) + len(self.balls)
        starts = [(first + 3 * k, j.v_slice.start) for k, j in enumerate(self.free)]
        return [(slice(r, r + 3), slice(v, v + 3)) for r, v in starts]

    def each(self, name: str) -> Array:
        """Return a number of joints and tendons for each row, 0 for other rows."""
        values = [float(getattr(x, name)) for x in (*self.joint_of_row, *self.tendons)]
        return np.array([*values, *[0.0] * (self.rows - len(values))])

    def moved_to_places(self, x: Array) -> Array:
        """Return numbers (..., rows) with those of free joints at the rows of positions."""
        for rows, moving in self.rows_of_places():
            x[..., rows], x[..., moving] = x[..., moving], 0.0
        return x

    def moved_by(self, rows: Sequence[int]) -> dict[int, list[int]]:
        """Return, for some rows of lengths, the velocities that may change them."""
        x = self.lengths
        if x is None or not rows:
            return {}
        q = System.random_configuration(self.robot, rng=0)  # loops may be open: the zeros are the same
        _, S = x.evaluate(q)
        moves: Array = np.asarray(S != 0.0)
        if x.jacobians is not None:
            moving: Array = np.asarray(np.any(x.jacobians(q), axis=1))  # (bodies, nv)
            for i, row in enumerate(x.table.lengths.row):
                if x.table.lengths.own[i]:
                    moves[row] |= moving[x.table.bodies_of(i)].any(axis=0)
        return {row: np.flatnonzero(moves[row]).tolist() for row in rows}

    @cached_property
    def constant(self) -> Array:
        """Mark the rows (rows,) of lengths that no joint changes, at a configuration without symmetry."""
        moves = np.ones(self.rows, bool)
        if self.lengths is not None:
            _, S = self.lengths.evaluate(System.random_configuration(self.robot, rng=0))
            moves = np.abs(S).max(axis=1, initial=0.0) > UNMOVED
        return ~moves

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


def force_rows(robot: Robot, actuators: Iterable[Actuator]) -> ForceRows:
    """Return the rows along which forces act.

    Lengths are tendons, limited angles of ball joints, positions of free joints with springs, dry friction or nonlinear
    dampers, drives at frames, and joints that follow others nonlinearly and have forces.
    """
    joints, actuators = robot.model.joints, tuple(actuators)
    parts = tuple(part for a in actuators for part in parts_of(a))
    tendons = tuple(t for t in robot.model.tendons if acts(t, actuators))
    balls = tuple(j for j in joints if j.type is JointType.SPHERICAL and j.upper < np.inf)
    floating = (j for j in joints if j.type is JointType.FLOATING)
    free = tuple(j for j in floating if j.dry_friction or any(j.damping_poly) or j.has_spring)
    driven, on_leaders = {a.joint for a in actuators}, rows_on_leaders(robot, actuators)
    asked = {j.v_slice.start for j in joints if j.has_spring or np.isfinite([j.lower, j.upper]).any() or j.name in driven}
    asked |= {p.leader for p in robot.proportions() if p.row in asked}
    followers = {f.row for f in robot.followers()} & asked - on_leaders
    at_frames = [a.at for a in parts if a.at is not None]
    compliant = robot.model.compliant_loops or robot.model.compliant_couplings or robot.model.compliant_lengths
    lengths = None
    if tendons or balls or free or at_frames or followers or compliant:
        lengths = LengthFunctions(robot, length_table(robot, tendons, at_frames, followers, balls, free))
    return ForceRows(robot, actuators, parts, tendons, balls, free, on_leaders, lengths)


def rows_on_leaders(robot: Robot, actuators: Iterable[Actuator]) -> frozenset[int]:
    """Return rows of joints that follow another in proportion, whose springs and drives act on the coordinate of the leader.

    If one of the two springs is nonlinear, their sum is not a polynomial of the same kind; and an effort limits the drives of
    each joint separately. Forces of such joints act on their own coordinates.
    """
    driven = {a.joint for a in actuators}
    nonlinear = {j.v_slice.start for j in robot.model.joints if any(j.stiffness_poly)}
    limited = {j.v_slice.start for j in robot.model.joints if np.isfinite(j.efforts).any()}
    acted = {j.v_slice.start for j in robot.model.joints if j.name in driven}
    apart = {
        p.row
        for p in robot.proportions()
        if not (nonlinear | limited if p.row in acted else nonlinear).isdisjoint((p.row, p.leader))
    }
    return frozenset(p.row for p in robot.proportions()) - apart


def acts(t: Tendon, actuators: Iterable[Actuator]) -> bool:
    own = t.stiffness or t.damping or t.dry_friction or np.isfinite([t.lower, t.upper]).any() or t.is_nonlinear
    return bool(own) or any(a.tendon == t.name for a in actuators)


def independent_rows(robot: Robot) -> Array:
    """Return the row (nv,) of each independent velocity."""
    own = [
        range(whole.v_slice.start, whole.v_slice.stop)[: j.v_slice.stop - j.v_slice.start]
        for whole, j in zip(robot.model.joints, robot.joints, strict=True)
    ]
    return np.array([*itertools.chain(*own)], np.int64)
