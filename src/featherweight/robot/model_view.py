"""The parts of a robot and the limits of its joints, as vectors in the order of q or v."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algorithms.mechanisms.cluster_tree import Follower
from ..array_types import Matrix, Vector
from ..checks import checked
from ..model.inertial_parameters import NAMES, inertial_parameters
from ..model.model import Model, ModelFrame, ModelSensor, MovingBody, MovingJoint
from ..model.servos import Range
from ..model.types import Actuator, Camera, Coupling, JointType, Shape, Tendon, controls_of
from ..names import Named, NamedValues, SuggestsNames, UnknownNameError, choose_from, knows_keywords, listed
from ..summaries import Several, described
from .left_out_at_joints import LIMITS_WITHOUT_ROOM, left_out_at_joints

Bounds = tuple[tuple[float, ...], tuple[float, ...]]

ASSIGNED = {
    "gravity": "give it to featherweight.load(path, gravity=...)",
    "armature": "with_armature(...) returns another robot",
    "inertial_parameters": "with_inertial_parameters(...) returns another robot",
    "shapes": "with_obstacles(...) returns the robot among more shapes",
    **dict.fromkeys(("lower", "upper"), "build it of a description: read(path).with_joint(name, limits=(lower, upper))"),
    "effort_limit": "build it of a description: read(path).with_joint(name, effort=...)",
    "velocity_limit": "build it of a description: read(path).with_joint(name, velocity=...)",
}
"""What to do in place of an assignment to an attribute."""

WITHOUT_MASS = "moving links without mass, so that functions of masses are not defined"  # a key of reports
EQUAL_LIMITS = "equal lower and upper limits, which simulations ignore"  # a key of reports


@described
class Proportion(NamedTuple):
    """A row of the tree whose coordinate is `slope` times the leader's coordinate plus `offset`."""

    row: int
    leader: int
    slope: float
    offset: float


class ModelView(SuggestsNames):
    """The public attributes of a model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, x: Any) -> None:
            if isinstance(getattr(type(self), name, None), property | cached_property) and not name.startswith("_"):
                how = ASSIGNED.get(
                    name, "change its description (featherweight.read, Description.with_joint, ...) and build it"
                )
                raise AttributeError(
                    f"{name!r} of a robot cannot be assigned, because a robot does not change; {how}", name=name
                )
            object.__setattr__(self, name, x)

    # the model

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def nq(self) -> int:
        """The length of a configuration."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return self.model.nv

    @cached_property
    def joints(self) -> Named[MovingJoint]:
        """Moving joints, with their slices of q and v: `joints[0]` or `joints["elbow"]`."""
        return Named(self.model.joints)

    @property
    def clusters(self) -> tuple[tuple[str, ...], ...]:
        """Groups of joints, by name, that loops and couplings connect. Without any, each group has one joint."""
        return Several((joint.name,) for joint in self.joints)

    @cached_property
    def bodies(self) -> Named[MovingBody]:
        """Moving bodies. Links that fixed joints connect are one body."""
        return Named(self.model.bodies)

    @cached_property
    def frames(self) -> Named[ModelFrame]:
        """Named frames: every link of the file and every other frame that the file names."""
        return Named(self.model.frames)

    @cached_property
    def shapes(self) -> Named[Shape]:
        """Visual and collision shapes of the file, on moving bodies or on the ground (None), in their frames of the file."""
        return Named(self.model.shapes)

    @cached_property
    def cameras(self) -> Named[Camera]:
        """Cameras of the file: `cameras[0]` or `cameras["side"]`."""
        return Named(self.model.cameras)

    @property
    def _loop_ends(self) -> tuple[tuple[str | None, str | None], ...]:
        """The moving bodies that each loop connects; None is the ground."""
        return ()

    @checked
    def joint(self, name: str) -> MovingJoint:
        """Return the moving joint of this name. Raises ValueError for an unknown name.

        For example:

            robot.joint("elbow").v_slice  # the place of its velocity in v
        """
        found: MovingJoint = _named(name, self.joints, f"{self.name} has no moving joint")
        return found

    @checked
    def body(self, name: str) -> MovingBody:
        """Return the moving body of this name, or the body that contains the link of this name.

        Raises ValueError for an unknown name and for links that are fixed to the ground.

            robot.body("hand").mass  # [kg], of all links fixed to the hand
        """
        links = {link: body for body in self.bodies for link in body.links}
        return links[name] if name in links else _named(name, self.bodies, f"{self.name} has no moving body")

    @cached_property
    def tendons(self) -> Named[Tendon]:
        """Tendons of the file. Points of their paths are on moving bodies, in the frames of the file of these bodies."""
        return Named(self.model.tendons)

    @cached_property
    def actuators(self) -> Named[Actuator]:
        """Actuators of the joints, in the order of the file."""
        return Named(self.model.actuators)

    @property
    def controls(self) -> dict[str, Range]:
        """The minimum and maximum of each control of the actuators, by name, in the order of the actuators."""
        return NamedValues(controls_of(self.model.actuators))

    @cached_property
    def sensors(self) -> Named[ModelSensor]:
        """Sensors in the order of the file, with their `slice` of the array `Simulation.sensors`: `sensors["imu_gyro"]`."""
        return Named(self.model.sensors)

    @property
    def mass(self) -> float:
        """The total mass of the moving bodies [kg]."""
        return self.model.mass

    @property
    def gravity(self) -> tuple[float, float, float]:
        """The acceleration of gravity in the world [m/s²]."""
        g = self.model.tree.gravity
        return (g[0], g[1], g[2])

    @property
    def inertial_parameters(self) -> Matrix:
        """(nbodies, 10): m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz of each of `bodies`, including all links fixed to it.

        c is the centre of mass and I the rotational inertia about the origin, in the body's frame of the file (Pinocchio's
        `toDynamicParameters`). Regressors take the flattened array, one body after the other.

            heavier = robot.with_inertial_parameters(1.1 * robot.inertial_parameters)
        """
        return inertial_parameters(self.model)

    @property
    def inertial_parameter_names(self) -> tuple[str, ...]:
        """(10 nbodies) names of the flattened parameters: "forearm.m", "forearm.mx", ..., "forearm.Izz", ..."""
        return Several(f"{body.name}.{name}" for body in self.bodies for name in NAMES)

    @property
    def armature(self) -> Vector:
        """Reflected inertias [kg m², kg] of all joints except floating joints, in their order."""
        return np.array([j.armature for j in self.joints if j.type is not JointType.FLOATING])

    @property
    def _couplings(self) -> tuple[Coupling, ...]:
        """The couplings of the description."""
        return ()

    @property
    def left_out_at_joints(self) -> Mapping[str, tuple[str, ...]]:
        """Names of joints and actuators whose springs, limits or forces simulations ignore, by kind."""
        acting = self.actuators, self.model.tendons, bool(self.model.carried)
        left_out = left_out_at_joints(self.model.joints, self.joints, self.clusters, *acting)
        held = self._limits_with_followers[1]
        names = tuple(j.name for j in self.model.joints if j.v_slice.start in held)
        return {**left_out, LIMITS_WITHOUT_ROOM: names} if names else left_out

    @knows_keywords
    def report(self) -> dict[str, str]:
        """Return the contents of the file that the library does not use, and the limits that simulations ignore, by kind.

        For example:

            for what, names in robot.report().items():
                print(what, names)
        """
        unused = {**dict(self.model.unused), **{kind: listed(names) for kind, names in self.left_out_at_joints.items()}}
        if equal := [j.name for j in self.model.joints if j.lower == j.upper]:
            unused[EQUAL_LIMITS] = listed(equal)
        if self.model.massless:
            unused[WITHOUT_MASS] = listed(self.model.massless)
        return unused

    @property
    def closed(self) -> bool:
        """True if the robot has loops or couplings."""
        return False

    # limits

    @cached_property
    def lower(self) -> Vector:
        """The lower limits of the coordinates (nq) [rad, m], in the order of q.

        They are -inf for joints without limits and for joints with several coordinates. If other joints follow a joint in
        proportion, its limits include theirs.

            q = np.clip(q, robot.lower, robot.upper)  # of a robot without quaternions
        """
        return _read_only(self._coordinate_limits[0])

    @cached_property
    def upper(self) -> Vector:
        """The upper limits of the coordinates (nq) [rad, m]; see `lower`."""
        return _read_only(self._coordinate_limits[1])

    @cached_property
    def velocity_limit(self) -> Vector:
        """The velocity limits (nv) [rad/s, m/s], in the order of v; infinite where the file gives none or 0.

        If other joints follow a joint in proportion, its limit includes theirs. The library does not enforce these limits.

            fast = abs(v) > robot.velocity_limit  # (nv,)
        """
        return _read_only(self._velocity_limits())

    @cached_property
    def effort_limit(self) -> Vector:
        """The limits of the joint forces (nv) [N m, N], in the order of v; infinite where the file gives none or 0.

        Simulations clip joint forces to these limits.

            tau = np.clip(tau, -robot.effort_limit, robot.effort_limit)
        """
        return _read_only(self._of_independent(self.row_maximum("effort")))

    @cached_property
    def effort_bounds(self) -> tuple[Vector, Vector]:
        """The least and the greatest joint forces (nv) [N m, N], in the order of v. Simulations clip joint forces to them."""
        ends = np.array([j.efforts for j in self.model.joints for _ in range(j.type.nv)], dtype=float).reshape(-1, 2).T
        return _read_only(-self._of_independent(-ends[0])), _read_only(self._of_independent(ends[1]))

    def row_limits(self) -> Bounds:
        """Return the lower and upper limits [rad, m] of the tree's rows (n,).

        They are infinite for joints with several degrees of freedom. If other joints follow a joint in proportion, its limits
        include theirs.
        """
        return self._limits_with_followers[0]

    @cached_property
    def _limits_with_followers(self) -> tuple[Bounds, tuple[int, ...]]:
        """The result of `row_limits`, and the rows of followers whose limits are ignored.

        Limits of a follower are ignored if they would leave its leader no range of motion. Many files have unchecked limits at
        followers.
        """
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
    def _coordinate_limits(self) -> tuple[Vector, Vector]:
        by_row = self.row_limits()
        lower, upper = np.full(self.nq, -np.inf), np.full(self.nq, np.inf)
        for j in self.joints:
            row = self.model.joints[j.index].v_slice.start
            if j.type.nv == 1:
                lower[j.q_slice], upper[j.q_slice] = by_row[0][row], by_row[1][row]
        return lower, upper

    def _velocity_limits(self) -> Vector:
        most = self.row_maximum("velocity")
        for row, leader, slope, _ in self.proportions():
            most[leader] = min(most[leader], most[row] / abs(slope))
        return self._of_independent(most)

    def row_maximum(self, what: str) -> Vector:
        """Return the greatest "effort" or "velocity" (n,) of each row of the tree; infinite where the file gives none or 0.

        Files write 0 for an unknown limit.
        """
        values = np.array([getattr(j, what) for j in self.model.joints for _ in range(j.type.nv)], dtype=float)
        return np.where(values > 0.0, values, np.inf)

    def _of_independent(self, by_row: Vector) -> Vector:
        """Select the values (nv) of the independent rows from the values of all rows of the tree."""
        own = np.full(self.nv, np.inf)
        for whole, j in zip(self.model.joints, self.joints, strict=True):
            if j.v_slice.stop > j.v_slice.start:
                own[j.v_slice] = by_row[whole.v_slice][: j.v_slice.stop - j.v_slice.start]
        return own

    def followers(self) -> list[Follower]:
        """Return the joints that follow others by a coupling. A leader that is itself a follower comes before its followers."""
        return []

    def proportions(self) -> list[Proportion]:
        """Return the joints that follow one other joint in proportion.

        A joint comes before its leader if the leader is a follower.
        """
        followers = [f for f in reversed(self.followers()) if len(f.terms) == 1]
        found = [(f, leader, slope, curvature) for f in followers for leader, (slope, *curvature) in f.terms]
        return [Proportion(f.row, leader, slope, f.offset) for f, leader, slope, curvature in found if slope and not curvature]


def _named(name: str, things: Sequence[Any], problem: str) -> Any:
    for x in things:
        if x.name == name:
            return x
    raise UnknownNameError(f"{problem} {choose_from(name, [x.name for x in things])}")


def _read_only(x: Vector) -> Vector:
    x.flags.writeable = False
    return x
