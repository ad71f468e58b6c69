"""The parts of a robot, and the limits of its joints as vectors: coordinates in the order of q, others in that of v."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algorithms.mechanisms.cluster_tree import Follower
from ..model.model import Model, ModelFrame, ModelSensor, MovingBody, MovingJoint
from ..model.servos import Range
from ..model.types import Actuator, Camera, Coupling, Shape, controls_of
from ..names import Named, choose_from, listed, missing_attribute
from .left_out_at_joints import LIMITS_WITHOUT_ROOM, left_out_at_joints

Array = np.ndarray[Any, np.dtype[Any]]
Bounds = tuple[tuple[float, ...], tuple[float, ...]]

EQUAL_LIMITS = "equal lower and upper limits, which simulations ignore"  # in a report


class Proportion(NamedTuple):
    """The coordinate of a row of the tree is `slope` times that of a leader, and an offset."""

    row: int
    leader: int
    slope: float
    offset: float


class ModelView:
    """A model, as users see it."""

    def __init__(self, model: Model) -> None:
        self.model = model

    if not TYPE_CHECKING:  # type checkers would take every attribute to be there
        __getattr__ = missing_attribute

    # the model

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def nq(self) -> int:
        """Length of a configuration."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return self.model.nv

    @cached_property
    def joints(self) -> Named[MovingJoint]:
        """Moving joints, with the slices of q and v that are theirs: `joints[0]` or `joints["elbow"]`."""
        return Named(self.model.joints)

    @property
    def clusters(self) -> tuple[tuple[str, ...], ...]:
        """The names of joints that loops and couplings let move together only: each by itself, where there are none."""
        return tuple((joint.name,) for joint in self.joints)

    @cached_property
    def bodies(self) -> Named[MovingBody]:
        """Moving bodies; links that are fixed to one another are one body."""
        return Named(self.model.bodies)

    @cached_property
    def frames(self) -> Named[ModelFrame]:
        """Named frames: every link of the file, and what else it names."""
        return Named(self.model.frames)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Shapes that the file draws or lets touch, on moving bodies or the ground (None), in their frames of the file."""
        return self.model.shapes

    @cached_property
    def cameras(self) -> Named[Camera]:
        """The file's cameras: `cameras[0]` or `cameras["side"]`."""
        return Named(self.model.cameras)

    @property
    def _loop_ends(self) -> tuple[tuple[str | None, str | None], ...]:
        """The moving bodies that each loop joins, None for the ground."""
        return ()

    def joint(self, name: str) -> MovingJoint:
        """The moving joint of that name. Raises ValueError where there is none."""
        found: MovingJoint = _named(name, self.joints, f"{self.name} has no moving joint")
        return found

    def body(self, name: str) -> MovingBody:
        """The moving body of that name, or the one that a link of that name is fixed to.

        Raises ValueError for a name that is none, and for links that are fixed to the ground.
        """
        links = {link: body for body in self.bodies for link in body.links}
        return links[name] if name in links else _named(name, self.bodies, f"{self.name} has no moving body")

    @property
    def actuators(self) -> tuple[Actuator, ...]:
        """Drives on joints, in the order of the file."""
        return self.model.actuators

    @property
    def controls(self) -> dict[str, Range]:
        """Names of the controls of the actuators, in their order, with the least and greatest value of each."""
        return controls_of(self.model.actuators)

    @cached_property
    def sensors(self) -> Named[ModelSensor]:
        """Sensors of the file in its order, with their `slice` of what `Simulation.sensors` gives: `sensors["imu_gyro"]`."""
        return Named(self.model.sensors)

    @property
    def mass(self) -> float:
        """Total mass of the moving bodies [kg]."""
        return self.model.mass

    @property
    def gravity(self) -> tuple[float, float, float]:
        """In the world [m/s²]."""
        g = self.model.tree.gravity
        return (g[0], g[1], g[2])

    @property
    def _couplings(self) -> tuple[Coupling, ...]:
        """The description's."""
        return ()

    @property
    def left_out_at_joints(self) -> Mapping[str, tuple[str, ...]]:
        """Names of joints and actuators whose springs, limits or forces no simulation computes, by kind."""
        acting = self.actuators, self.model.tendons, bool(self.model.carried)
        left_out = left_out_at_joints(self.model.joints, self.joints, self.clusters, *acting)
        held = self._limits_with_followers[1]
        names = tuple(j.name for j in self.model.joints if j.v_slice.start in held)
        return {**left_out, LIMITS_WITHOUT_ROOM: names} if names else left_out

    def report(self) -> dict[str, str]:
        """Return by kind what the file holds that nothing here uses, and limits that simulations ignore."""
        unused = {**dict(self.model.unused), **{kind: listed(names) for kind, names in self.left_out_at_joints.items()}}
        if equal := [j.name for j in self.model.joints if j.lower == j.upper]:
            unused[EQUAL_LIMITS] = listed(equal)
        return unused

    @property
    def closed(self) -> bool:
        """Whether the robot has loops or couplings."""
        return False

    # limits

    @cached_property
    def lower(self) -> Array:
        """The least coordinates (nq) [rad, m], in the order of q; -inf where a joint has no limit, or several coordinates.

        A joint that others follow in proportion keeps their limits, too.
        """
        return _read_only(self._coordinate_limits[0])

    @cached_property
    def upper(self) -> Array:
        """The greatest coordinates (nq) [rad, m], as `lower`."""
        return _read_only(self._coordinate_limits[1])

    @cached_property
    def velocity_limit(self) -> Array:
        """The greatest velocities (nv) [rad/s, m/s], in the order of v; infinite where the file has none, or 0.

        A joint that others follow in proportion keeps their limits, too. Nothing cuts velocities to these.
        """
        return _read_only(self._velocity_limits())

    @cached_property
    def effort_limit(self) -> Array:
        """The greatest joint forces (nv) [N m, N], in the order of v; infinite where the file has none, or 0.

        Simulations cut joint forces to these.
        """
        return _read_only(self._of_independent(self.row_maximum("effort")))

    @cached_property
    def effort_bounds(self) -> tuple[Array, Array]:
        """The least and the greatest joint forces (nv) [N m, N] that simulations cut to, in the order of v."""
        ends = np.array([j.efforts for j in self.model.joints for _ in range(j.type.nv)], dtype=float).reshape(-1, 2).T
        return _read_only(-self._of_independent(-ends[0])), _read_only(self._of_independent(ends[1]))

    def row_limits(self) -> Bounds:
        """Lower and upper limits [rad, m] of the tree's rows (n,); infinite ones for joints of several degrees of freedom.

        A joint that others follow in proportion keeps their limits, too.
        """
        return self._limits_with_followers[0]

    @cached_property
    def _limits_with_followers(self) -> tuple[Bounds, tuple[int, ...]]:
        """`row_limits`, and the rows of joints that follow one other in proportion, and whose limits are left out because they
        would leave their leader no room: files often have limits of followers that nobody has looked at."""
        held = []
        lower, upper = [-math.inf] * self.model.nv, [math.inf] * self.model.nv
        for j in self.model.joints:
            if j.type.nv == 1:
                lower[j.v_slice.start], upper[j.v_slice.start] = j.lower, j.upper
        for row, leader, slope, offset in self.proportions():
            ends = sorted(((lower[row] - offset) / slope, (upper[row] - offset) / slope))
            both = max(lower[leader], ends[0]), min(upper[leader], ends[1])
            if both[0] < both[1]:
                lower[leader], upper[leader] = both
            elif both != (lower[leader], upper[leader]):
                held.append(row)
        return (tuple(lower), tuple(upper)), tuple(held)

    @cached_property
    def _coordinate_limits(self) -> tuple[Array, Array]:
        by_row = self.row_limits()
        lower, upper = np.full(self.nq, -np.inf), np.full(self.nq, np.inf)
        for j in self.joints:
            row = self.model.joints[j.index].v_slice.start
            if j.type.nv == 1:
                lower[j.q_slice], upper[j.q_slice] = by_row[0][row], by_row[1][row]
        return lower, upper

    def _velocity_limits(self) -> Array:
        most = self.row_maximum("velocity")
        for row, leader, slope, _ in self.proportions():
            most[leader] = min(most[leader], most[row] / abs(slope))
        return self._of_independent(most)

    def row_maximum(self, what: str) -> Array:
        """The greatest "effort" or "velocity" (n,) of each row of the tree; infinite where the file has none, or 0, by which
        files mean that they do not know it.
        """
        values = np.array([getattr(j, what) for j in self.model.joints for _ in range(j.type.nv)], dtype=float)
        return np.where(values > 0.0, values, np.inf)

    def _of_independent(self, by_row: Array) -> Array:
        """Return the values (nv) of the independent rows, of values of all rows of the tree."""
        own = np.full(self.nv, np.inf)
        for whole, j in zip(self.model.joints, self.joints, strict=True):
            if j.v_slice.stop > j.v_slice.start:
                own[j.v_slice] = by_row[whole.v_slice][: j.v_slice.stop - j.v_slice.start]
        return own

    def followers(self) -> list[Follower]:
        """Return the joints that follow others by a coupling: leaders that follow others come first."""
        return []

    def proportions(self) -> list[Proportion]:
        """Joints that follow one other in proportion: those first whose leaders follow others."""
        followers = [f for f in reversed(self.followers()) if len(f.terms) == 1]
        found = [(f, leader, slope, curvature) for f in followers for leader, (slope, *curvature) in f.terms]
        return [Proportion(f.row, leader, slope, f.offset) for f, leader, slope, curvature in found if slope and not curvature]


def _named(name: str, things: Sequence[Any], problem: str) -> Any:
    for x in things:
        if x.name == name:
            return x
    raise ValueError(f"{problem} {choose_from(name, [x.name for x in things])}")


def _read_only(x: Array) -> Array:
    x.flags.writeable = False
    return x
