"""The base class of robots: the model's parts and limits, its configuration space, and the binding of kernels to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..algorithms import integration
from ..algorithms.mechanisms.cluster_tree import Follower
from ..array_types import Array, Matrix, Vector
from ..checks import SeedOrNone, Size, check_labels, checked, real_array, shown
from ..engine.function import CompiledFunction, require_execution
from ..engine.program import Input, KernelProgram, Output, Program
from ..model import configuration
from ..model.configuration import Coordinates, Joints, UnseededConfigurations
from ..model.inertial_parameters import NAMES, inertial_parameters
from ..model.model import Model, ModelFrame, ModelSensor, MovingBody, MovingJoint, Placed
from ..model.placement import chained
from ..model.servos import Range
from ..model.topology import Topology
from ..model.tree import Placements
from ..model.types import (
    START,
    WORLD,
    Actuator,
    AnyFrame,
    Camera,
    Coupling,
    Frame,
    JointType,
    Pose,
    Shape,
    Tendon,
    controls_of,
)
from ..names import Named, NamedValues, SuggestsNames, UnknownNameError, choose_from, knows_keywords, listed
from ..summaries import Several, VisibleMessage, described
from .arguments import Argument, Configuration, Velocity
from .inertia_reading import reads_masses
from .kept_objects import KeptObjects
from .left_out_at_joints import CONFLICTING_LIMITS, left_out_at_joints
from .reference_configurations import ReferenceConfigurations

T = TypeVar("T")

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
LOOP_TOLERANCE = 1e-4  # [m, rad] largest misclosure of loops: files have six digits, and loops tens of joints
CONTRADICTING = "loops that contradict each other"  # a key of reports


@described
class Proportion(NamedTuple):
    """A row of the tree whose coordinate is `slope` times the leader's coordinate plus `offset`."""

    row: int
    leader: int
    slope: float
    offset: float


class NotDefinedError(VisibleMessage, ValueError):
    """The robot does not define the function; for example, a robot without mass has no centre of mass."""

    needs: tuple[str, str] | None = None  # the robot's name and the description of what it lacks

    @classmethod
    def lacking(cls, what: str, robot: str, need: str) -> NotDefinedError:
        """Return the error for a function that needs what the robot lacks."""
        error = cls(f"{robot}: {what} needs {need}")
        error.needs = robot, need
        return error


def rows_of(q: npt.ArrayLike) -> Array:
    """Return configurations (..., nq) as contiguous rows (states, nq) of double precision, also for nq = 0."""
    q = np.ascontiguousarray(q, np.float64)
    return q.reshape(math.prod(q.shape[:-1]), q.shape[-1])


class System(SuggestsNames):
    """A model, its public attributes, and the binding of kernels to it as functions."""

    def __init__(self, model: Model, execution: str = "auto") -> None:
        require_execution(execution)
        self.model = model
        self.execution = execution
        self._cache = KeptObjects()
        self._frame_functions = KeptObjects()  # by name, frame, reference and other frame

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
        """Inertial parameters (nbodies, 10) of `bodies`, each with all links fixed to it.

        They are m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz: c is the centre of mass and I the rotational inertia about the
        origin, in the body's frame of the file (Pinocchio's `toDynamicParameters`). Regressors take the flattened array, one
        body after the other.

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
        acting = self.actuators, self.model.tendons, bool(self.model.weight_compensated)
        left_out = left_out_at_joints(self.model.joints, self.joints, self.clusters, *acting)
        ignored = self._limits_with_followers[1]
        names = tuple(j.name for j in self.model.joints if j.v_slice.start in ignored)
        return {**left_out, CONFLICTING_LIMITS: names} if names else left_out

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
        ignored = []
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
                ignored.append(row)
        return (tuple(lower), tuple(upper)), tuple(ignored)

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

    # the configuration space

    @cached_property
    def _coordinates(self) -> Joints:
        return Joints(Coordinates(j.type, j.q_slice, j.v_slice, j.lower, j.upper) for j in self.joints)

    def neutral(self) -> Vector:
        """Return the neutral configuration (nq,): zero coordinates and identity rotations.

        `start()` returns the initial configuration of an MJCF file. It differs in free joints, which `neutral()` places at the
        world's origin and `start()` where the file places their bodies, and in hinges and slides with a `ref`, which are at
        zero here and at `ref` there.

            q = robot.neutral()
        """
        return self._neutral.copy()

    @cached_property
    def _neutral(self) -> Vector:
        return configuration.neutral(self._coordinates, self.nq)

    @checked
    def start(self, *, within_limits: bool = True) -> Vector:
        """Return the initial configuration (nq,) of the robot's file: "qpos0" of MJCF, or `neutral()` for other formats.

        Joints that exceed their limits there are moved to the limits, and loops are closed again where possible.
        `within_limits=False` leaves them where the file has them.

            q = robot.start()
        """
        return self._kept(("start", within_limits), lambda: self._start(within_limits)).copy()

    def _start(self, within_limits: bool) -> Vector:
        q = None
        if START in self.configurations:
            with suppress(ValueError):  # loops that cannot be closed
                q = np.array(self.configurations[START])
        q = self.neutral() if q is None else q
        return self._within_limits(q) if within_limits else q

    def _within_limits(self, q: Vector) -> Vector:
        """Return q (nq,) with joints beyond their limits at the limits."""
        equal = self.lower == self.upper
        low, high = np.where(equal, -np.inf, self.lower), np.where(equal, np.inf, self.upper)
        return np.clip(q, low, high)

    @checked
    def random_configuration(self, *, rng: SeedOrNone = None, size: Size = None) -> Array:
        """Return random configurations (*size, nq), uniform within limits; a single one (nq,) without `size`.

        `rng` is a seed or a generator; without it, each call draws other numbers. Joints without limits take angles in ±pi and
        lengths in ±1 m.

            q = robot.random_configuration(rng=0)  # the same numbers in each call
            many = robot.random_configuration(size=1000)  # (1000, nq), others in each call
        """
        if rng is None and size is None:
            return self._unseeded.drawn()
        return configuration.random_configuration(self._coordinates, self.nq, rng, size)

    @cached_property
    def _unseeded(self) -> UnseededConfigurations:
        return UnseededConfigurations(self._coordinates, self.nq)

    @cached_property
    def configurations(self) -> ReferenceConfigurations:
        """Named configurations (nq,) of the file, read-only.

        They are the group states of SRDF, and the keyframes and "qpos0" (the initial configuration) of MJCF. Joints that a
        configuration does not name are at zero.

        If a configuration opens loops by more than rounding, `close` closes them near it; the independent joints keep their
        values if possible. An unknown name raises KeyError; loops that cannot be closed raise ValueError.
        """
        return ReferenceConfigurations(self.model, self.joints, self._fillings(), self._closed_near)

    def _fillings(self) -> tuple[Callable[[], Vector], ...]:
        """Return functions for configurations (nq,) that give values to joints that a configuration does not name."""
        return (self.neutral,)

    def _closed_near(self, name: str, q: Vector) -> Vector:
        """Return the named configuration, which the file gives as q, with its loops closed."""
        return q

    def _take_model(self, model: Model) -> None:
        """Take a model that differs only in its shapes."""
        self.model = model

    # how functions are made

    @property
    def _system(self) -> Any:
        """The tree that kernels read, or the mechanism if the robot has loops."""
        return self.model.tree

    @property
    def _traced_execution(self) -> str:
        """The execution of programs that cannot be rolled."""
        return "interpreted" if self.execution == "interpreted" else "traced"

    def execution_of(self, program: Program) -> str:
        """Return the robot's execution, or the execution of programs that cannot be rolled if this is one."""
        return self.execution if program.rollable else self._traced_execution

    @property
    def parent(self) -> tuple[int, ...]:
        """The parent of each row of the expanded tree, which determines the sparsity of the mass matrix."""
        return tuple(self.model.tree.parent)

    @property
    def _topology(self) -> Topology:
        """The tree along which contact wrenches are propagated."""
        return self.model.topology

    def _kernel(self, kernel: Callable[..., None]) -> Callable[..., None]:
        """Return the kernel for this kind of robot that corresponds to a kernel for trees."""
        return kernel

    def _kept(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return the object that `make` makes for a key, such as a function and the frames that it is for; it is made once.

        For frames that users create, it is made again after many others (`KeptObjects`).
        """
        with suppress(KeyError):
            kept: T = self._cache[key]
            return kept
        made = make()
        self._cache.keep(key, made)
        return made

    def bind(
        self,
        name: str,
        kernel: Callable[..., None],
        inputs: Sequence[Argument],
        outputs: Sequence[Output],
        constants: tuple[Any, ...] = (),
        *,
        doc: str | None = "",
        algorithm: str = "",
        part: int | None = None,
    ) -> CompiledFunction[Any]:
        """Return a kernel for trees as a compiled function of this system.

        The kernel's arguments are the system, `constants`, the inputs and the outputs. An input is a `Configuration`, a
        `Velocity` or an `Input` of any shape. `part` is that of `KernelProgram`.
        """
        program = KernelProgram(
            name,
            self._kernel(kernel),
            (self._system, *constants),
            tuple(map(self.input, inputs)),
            tuple(outputs),
            doc or "",
            part=part,
            owner=self.name,
        )
        self.require_masses_of(program)
        return CompiledFunction(program, self.execution, algorithm)

    def require_motion(self, what: str) -> None:
        """Raise NotDefinedError, a ValueError, if no joint moves."""
        if not self.model.joints:
            need = 'a joint that moves; load a flying robot with base="floating"'
            raise NotDefinedError.lacking(what, self.name, need)

    def require_dynamics(self, what: str) -> None:
        """Raise NotDefinedError, a ValueError, if no joint moves, or if joints move links without moving any mass."""
        self.require_motion(what)
        if self.model.massless:
            need = (
                f"the masses of all moving links; these have none: {listed(self.model.massless)}. "
                "Give them an <inertial> in the file, or inertias by featherweight.read(path).with_inertias(...)"
            )
            raise NotDefinedError.lacking(what, self.name, need)

    def require_masses_of(self, program: KernelProgram) -> None:
        """Raise NotDefinedError for a kernel that reads masses, if joints move links without moving any mass."""
        if self.model.massless and reads_masses(program):
            self.require_dynamics(program.name)

    def _checked(self, name: str, x: object, n: int) -> Array:
        """Return numbers (..., n) in double precision. Raises ValueError for another length."""
        if type(x) is not np.ndarray and name in self._labels:
            check_labels(f"{self.name}: {name}", x, self._labels[name])
        array = real_array(f"{self.name}: {name}", x)
        if array.shape[-1:] != (n,):
            raise ValueError(f"{self.name}: {name} must have shape (..., {n}); got {array.shape}")
        return array

    def _require_own(self, function: CompiledFunction[Any]) -> None:
        """Raise ValueError for a function of another robot, and TypeError for an object that is not a function of a robot."""
        if not isinstance(function, CompiledFunction):
            raise TypeError(f"{self.name}: expected a function of a robot, such as robot.mass_matrix; got {shown(function)}")
        kernels = function.program.kernels
        for system in (kernel.constants[0] for kernel in kernels if kernel.constants):
            if isinstance(system, type(self._system)) and system != self._system:
                raise ValueError(f"{function.name} is a function of another robot than {self.name!r}")

    def input(self, x: Argument) -> Input:
        """Return an argument with the sizes of this robot."""
        if isinstance(x, Configuration):
            return Input(x.name, (self.nq,), rate=self._rate, labels=self.labels("q"))
        return Input(x.name, (self.nv,), labels=self.labels("v")) if isinstance(x, Velocity) else x

    def labels(self, of: str) -> tuple[str, ...]:
        """Return the names of joints with one number in "q" or "v", at its place; "" at the places of other joints."""
        return self._labels[of]

    @cached_property
    def _labels(self) -> dict[str, tuple[str, ...]]:
        made: dict[str, list[str]] = {"q": [""] * self.nq, "v": [""] * self.nv}
        for j in self.joints:
            for of, place in (("q", j.q_slice), ("v", j.v_slice)):
                if place.stop - place.start == 1:
                    made[of][place.start] = j.name
        return {of: tuple(names) for of, names in made.items()}

    @cached_property
    def _rate(self) -> Program:
        """Program for the rate of change of a configuration with a velocity."""
        inputs, kernel = (Input("q", (self.nq,)), Input("v", (self.nv,))), self._kernel(integration.write_configuration_rate)
        return KernelProgram("configuration_rate", kernel, (self._system,), inputs, (Output("rate", (self.nq,)),))

    def configuration_result(self, name: str) -> Output:
        """Return an output that is a configuration; its derivatives are velocities in its tangent space."""
        inputs = Input("q", (self.nq,)), Input("rate", (self.nq,))
        kernel, result = self._kernel(integration.configuration_velocity), Output("v", (self.nv,))
        along = KernelProgram("configuration_velocity", kernel, (self._system,), inputs, (result,))
        return Output(name, (self.nq,), along=along)

    @knows_keywords
    def frame(self, frame: AnyFrame) -> ModelFrame:
        """Return a named frame, or a `Frame` that you create, on the moving body that carries it.

        "world" is the ground, unless the robot has a frame of this name. Raises ValueError for an unknown name, for a frame on
        an unknown link, and for a placement that is not a rigid motion.

            robot.frame("hand").body  # the moving body that carries the frame
        """
        return self._found(frame)[0]

    def _placed(self, frame: AnyFrame) -> Placed:
        """Return the row of the tree that carries a frame, and the frame's pose on it. Raises as `frame` does."""
        return self._found(frame)[1]

    def placements(self, frames: Sequence[AnyFrame]) -> Placements:
        """Return the placements of frames on the rows of the tree, for kernels. Raises as `frame` does."""
        return placements([self._placed(frame) for frame in frames])

    def _found(self, frame: AnyFrame) -> tuple[ModelFrame, Placed]:
        named = self._named_frames
        if isinstance(frame, Frame):
            if frame.body not in named:
                raise UnknownNameError(
                    f"frame {frame.name!r}: {self.name} has no link {choose_from(frame.body, self._frame_names)}"
                )
            link, at = named[frame.body]
            pose = Pose.of(frame.placement, f"placement of frame {frame.name!r}")
            return ModelFrame(frame.name, link.body, chained(link.placement, pose)), Placed(at.row, chained(at.pose, pose))
        if not isinstance(frame, str):
            raise TypeError(f"{self.name}: a frame is a name or a featherweight.Frame; got {shown(frame)}")
        if frame not in named:
            raise UnknownNameError(f"{self.name} has no frame {choose_from(frame, self._frame_names)}")
        return named[frame]

    @property
    def _frame_names(self) -> list[str]:
        return [f.name for f in self.frames]

    @cached_property
    def _named_frames(self) -> dict[str | None, tuple[ModelFrame, Placed]]:
        every = zip(self.model.frames, self.model.placed_frames, strict=True)
        ground = ModelFrame(WORLD, None, Pose()), Placed(-1, Pose())
        return {None: ground, WORLD: ground} | {frame.name: (frame, placed) for frame, placed in every}


def placements(placed: Sequence[Placed]) -> Placements:
    """Return the placements of frames on the rows of the tree, for kernels."""
    return Placements(tuple(p.row for p in placed), tuple(p.pose.R for p in placed), tuple(p.pose.p for p in placed))


def body_placements(robot: System) -> Placements:
    """Return the placements of the bodies' frames of the file, for kernels."""
    return placements(robot.model.placed_bodies)


def _named(name: str, things: Sequence[Any], problem: str) -> Any:
    for x in things:
        if x.name == name:
            return x
    raise UnknownNameError(f"{problem} {choose_from(name, [x.name for x in things])}")


def _read_only(x: Vector) -> Vector:
    x.flags.writeable = False
    return x
