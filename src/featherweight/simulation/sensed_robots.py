"""What sensors see of robots at two instants: the present one, and the beginning of the last step, with its accelerations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..algorithms.mechanisms import spanning
from ..engine.function import CompiledFunction
from ..engine.program import Output
from ..model.gravity_compensation import carried
from ..model.model import CarriedPart, ModelSensor
from ..model.types import WORLD, Frame, FrameForce, JointType, Pose, SensorKind
from ..robot.collision.shape_rays import RayPart, ShapeRays, ray_part
from ..robot.robot import Robot
from ..robot.tendons.length_functions import LengthFunctions
from ..robot.tendons.tendon_table import length_table
from .contact_stage import ContactStage
from .fleet import Fleet
from .forces import ForcesAtJoints, drive_armature, drive_law
from .scene import Ground
from .scene_building import ground_part
from .step_model import StepModel

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")

NEXT, PREVIOUS = np.array((1, 2, 0)), np.array((2, 0, 1))
GROUND_FRAME = Frame(WORLD, None)


class Group(NamedTuple):
    """Sensors of one kind, their frames by number, and the columns (sensors, dim) of their readings."""

    kind: SensorKind
    sensors: tuple[ModelSensor, ...]
    frame: Array  # (sensors,) int; 0 is the ground
    reference: Array
    columns: Array


class PartInertias(NamedTuple):
    """Masses (robots or 1, parts), first moments (.., parts, 3) and inertias (.., parts, 3, 3) about bodies' origins."""

    mass: Array
    moment: Array
    inertia: Array

    @classmethod
    def of_parameters(cls, parameters: Array) -> PartInertias:
        """Return those of inertial parameters (..., 10)."""
        inertia = parameters[..., [[4, 5, 7], [5, 6, 8], [7, 8, 9]]]
        return cls(parameters[..., 0], parameters[..., 1:4], inertia)


class Probes:
    """The frames of a robot that its sensors need, and compiled functions of them."""

    def __init__(self, robot: Robot, ground: Ground | None) -> None:
        self.robot, self.ground, sensors = robot, ground, robot.sensors
        frames = [x for s in sensors for x in (s.frame, s.reference) if x is not None]
        bodies = [b for s in sensors for p in s.parts if (b := p.body) is not None]
        self.frames = tuple(dict.fromkeys((GROUND_FRAME, *frames, *(Frame(b, b) for b in bodies))))
        self.number = {frame: k for k, frame in enumerate(self.frames)}
        self.number_of_body = {b: self.number[Frame(b, b)] for b in bodies}
        self.links = {None, *(link for b in robot.bodies for link in b.links), *robot.model.shape_links}
        self.body_number = {b.name: k for k, b in enumerate(robot.bodies)}
        kinds = dict.fromkeys(s.kind for s in sensors)
        self.groups = [self._group(kind, tuple(s for s in sensors if s.kind is kind)) for kind in kinds]
        self.names = {s.name: s.slice for s in reversed(sensors)}
        self.names = {s.name: self.names[s.name] for s in sensors}
        self._inertias: dict[tuple[CarriedPart, ...], PartInertias] = {}
        self._lengths: dict[FrameForce, LengthFunctions] = {}
        self.queries: dict[Any, Any] = {}  # distances of shapes, by their pairs
        self.size = sensors[-1].slice.stop if sensors else 0

    def _group(self, kind: SensorKind, sensors: tuple[ModelSensor, ...]) -> Group:
        frame, reference = (
            np.array([0 if x is None else self.number[x] for x in frames], np.int64)
            for frames in ((s.frame for s in sensors), (s.reference for s in sensors))
        )
        return Group(kind, sensors, frame, reference, np.array([range(s.slice.start, s.slice.stop) for s in sensors]))

    def length_of(self, force: FrameForce) -> LengthFunctions:
        """Return the length that a force at a frame acts along."""
        if force not in self._lengths:
            self._lengths[force] = LengthFunctions(self.robot, length_table(self.robot, (), [force]))
        return self._lengths[force]

    @cached_property
    def placement(self) -> CompiledFunction:
        return self.robot.frame_placement(self.frames)

    @cached_property
    def velocity(self) -> CompiledFunction:
        return self.robot.frame_velocity(self.frames)

    @cached_property
    def acceleration(self) -> CompiledFunction:
        return self.robot.frame_classical_acceleration(self.frames)

    @cached_property
    def all_joints(self) -> CompiledFunction[Any] | None:
        """Coordinates and velocities of all joints, of q and v; None where they are the same."""
        if not self.robot.closed:
            return None
        model = self.robot.model
        outputs = Output("spanning_q", (model.nq,)), Output("spanning_v", (model.nv,))
        return self.robot.bind("spanning_motion", spanning.motion, ("q", "v"), outputs)

    @cached_property
    def rays(self) -> ShapeRays:
        """All shapes that can be seen, and the ground."""
        robot = self.robot
        shapes = zip(robot.shapes, robot.model.shape_links, strict=True)
        parts = [ray_part(s, link) for s, link in shapes if s.color is None or s.color[3] > 0.0]
        if self.ground is not None:
            part = ground_part(self.ground)
            pose = Pose.of(part.placement, "the ground")
            parts.append(RayPart(part.kind, None, None, pose, field=part.field))
        return ShapeRays(robot, parts)

    def inertias(self, parts: tuple[CarriedPart, ...]) -> PartInertias:
        """Return the inertias (1, parts) of the robot."""
        if parts not in self._inertias:
            own = self.robot.inertial_parameters  # those of the file, or of `with_inertial_parameters`
            whole = [p.whole and p.body is not None for p in parts]
            rows = [own[self.body_number[str(p.body)]] if w else _parameters(p) for p, w in zip(parts, whole, strict=True)]
            self._inertias[parts] = PartInertias.of_parameters(np.array(rows).reshape(1, -1, 10))
        return self._inertias[parts]

    def part_frames(self, parts: Iterable[CarriedPart]) -> Array:
        """Return the numbers (parts,) of the frames of parts' bodies."""
        return np.array([0 if p.body is None else self.number_of_body[p.body] for p in parts], np.int64)


class Instant:
    """Robots at an instant: q (robots, nq), v (robots, nv), and a (robots, nv) for accelerations."""

    def __init__(self, probes: Probes, q: Array, v: Array, a: Array | None = None) -> None:
        self.probes, self.q, self.v, self.a = probes, q, v, a

    @cached_property
    def placement(self) -> Array:
        """(robots, frames, 4, 4) in the world."""
        return np.asarray(self.probes.placement(self.q))

    @cached_property
    def velocity(self) -> Array:
        """(robots, frames, 6) linear, of origins, and angular, in the world's axes."""
        return np.asarray(self.probes.velocity(self.q, self.v))

    @cached_property
    def acceleration(self) -> Array:
        """(robots, frames, 6) linear, of origins as points, and angular, in the world's axes; gravity is not in it."""
        a = np.zeros_like(self.v) if self.a is None else self.a
        return np.asarray(self.probes.acceleration(self.q, self.v, a))

    @cached_property
    def joints(self) -> tuple[Array, Array]:
        """Coordinates (robots, n) and velocities (robots, n) of all joints."""
        function = self.probes.all_joints
        return (self.q, self.v) if function is None else tuple(map(np.asarray, function(self.q, self.v)))  # type: ignore[return-value]

    def rotation(self, frames: Array) -> Array:
        """(robots, k, 3, 3) of some frames."""
        return np.asarray(self.placement[..., :3, :3][:, frames])

    def origin(self, frames: Array) -> Array:
        """(robots, k, 3) [m] of some frames."""
        return np.asarray(self.placement[..., :3, 3][:, frames])

    def seen_from(self, frames: Array, x: Array) -> Array:
        """Return vectors (robots, k, 3) of the world in the axes of frames."""
        return np.asarray(np.einsum("...ji,...j->...i", self.rotation(frames), x))


def _mapped(S: Array | None, v: Array) -> Array:
    """Velocities of all rows for independent ones."""
    return v if S is None else np.asarray(np.einsum("...ij,...j->...i", S, v))


class SensedRobots:
    """Robots of a simulation as their sensors see them: `now`, and `then`, at the beginning of the last step."""

    def __init__(
        self, probes: Probes, model: StepModel, stage: ContactStage, fleet: Fleet, forces: ForcesAtJoints, time: float
    ) -> None:
        self.probes, self.model, self.stage, self.fleet, self.forces = probes, model, stage, fleet, forces
        self.robot: Robot = model.robot
        self.time, self.step = time, float(model.h)
        self.now = Instant(probes, fleet.q, fleet.v)
        self.gravity = np.array(self.robot.gravity)
        self._kept: dict[Hashable, Any] = {}

    @property
    def robots(self) -> int:
        return len(self.fleet.q)

    def kept(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what several sensors need, computed once."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]  # type: ignore[no-any-return]

    # the last step

    @cached_property
    def rested(self) -> Array:
        """Booleans (robots,): whether a robot has taken no step from where it is."""
        return np.asarray(np.isnan(self.fleet.before_last_step()[1]).any(axis=1))

    @cached_property
    def then(self) -> Instant:
        """The beginning of the last step, with its mean acceleration: that at which the velocity changed, impulses included.

        Robots that have taken no step are held still where they are now.
        """
        (q0, v0), q1, v1 = self.fleet.before_last_step(), self.fleet.q, self.fleet.v
        rested = self.rested[:, None]
        q0, v0 = np.where(rested, q1, q0), np.where(rested, 0.0, v0)
        a = (v1 - v0) / self.step
        if self.model.integrator == "semi-implicit":
            for j in self.robot.joints:
                if j.type in (JointType.FLOATING, JointType.PLANAR) and j.independent:
                    a[:, j.v_slice] = self._of_turning(j.type, j.q_slice, j.v_slice, q0, v0)
        return Instant(self.probes, q0, v0, np.where(rested, 0.0, a))

    def _of_turning(self, kind: JointType, q: slice, v: slice, q0: Array, v0: Array) -> Array:
        """The acceleration of a joint whose linear velocity is stepped in the axes of the start (see `integration`)."""
        x0, x1, u0, u1 = q0[:, q], self.fleet.q[:, q], v0[:, v], self.fleet.v[:, v]
        a = (u1 - u0) / self.step
        if kind is JointType.FLOATING:
            end = _turned_back(x0[:, 3:], _turned(x1[:, 3:], u1[:, :3]))
            a[:, :3] = (end - u0[:, :3]) / self.step - cross(u0[:, 3:], u0[:, :3])
            return a
        (c0, s0), (c1, s1) = x0[:, 2:].T, x1[:, 2:].T
        c, s = c1 * c0 + s1 * s0, s1 * c0 - c1 * s0
        a[:, 0] = (c * u1[:, 0] - s * u1[:, 1] - u0[:, 0]) / self.step + u0[:, 2] * u0[:, 1]
        a[:, 1] = (s * u1[:, 0] + c * u1[:, 1] - u0[:, 1]) / self.step - u0[:, 2] * u0[:, 0]
        return a

    @cached_property
    def drive_forces(self) -> Array:
        """Forces (robots, nu) of the actuators in the last step, before their gears; zero without controls."""
        forces, fleet = self.forces, self.fleet
        u = fleet.last_inputs().control
        if u is None or not forces.nu:
            return np.zeros((self.robots, forces.nu))
        given = fleet.varied.drives if len(fleet.varied.drives) else forces.drives.values[None]
        drive, row, at = np.moveaxis(given, 1, 0), forces.drives.row, forces.drives.at
        then, S = self.then, forces.map(self.then.q)
        x, rates = forces.all_coordinates(then.q), _mapped(S, then.v)
        u = forces.drive_inputs(x, rates, np.broadcast_to(u, (self.robots, forces.nu)), fleet.activation_before_last_step())
        ahead = np.where(row < forces.joint_rows, self.step if self.model.driven else 0.0, 0.0)
        force = drive_law(drive, u, x[:, at], rates[:, row], ahead)  # type: ignore[arg-type]
        if self.model.driven and then.a is not None:
            a, gear = _mapped(S, then.a), drive[0]
            armature = np.where(row < forces.joint_rows, drive_armature(drive, self.step), 0.0)
            force = force - np.divide(armature, gear, out=np.zeros_like(armature), where=gear != 0.0) * a[:, row]
        return np.asarray(np.where(self.rested[:, None], 0.0, np.minimum(np.maximum(force, drive[7]), drive[8])))

    @cached_property
    def tendon_motion(self) -> tuple[Array, Array]:
        """Lengths and velocities (robots, tendons) of the file's tendons."""
        q, v = self.now.q, self.now.v
        return self.robot.tendon_lengths(q), _mapped(self.robot.tendon_moment_arms(q), v)

    def along_frame(self, force: FrameForce) -> tuple[Array, Array]:
        """The length and the velocity (robots, 1) that a force at a frame acts along."""
        x = self.probes.length_of(force)
        coordinates, S = x.evaluate(self.now.q)
        row = len(self.robot.model.tree.parent)
        return coordinates[:, self.robot.nq, None], _mapped(S[:, row, None], self.now.v)

    @cached_property
    def compensation(self) -> Array:
        """Joint forces (robots, nv) of gravity compensation in the last step."""
        carrying = self.robot.with_weights_of(carried(self.robot.model))
        return np.asarray(np.where(self.rested[:, None], 0.0, carrying.gravity_force(self.then.q)))

    def drives_along_lengths(self, dof: int) -> Array:
        """Forces (robots,) that drives along tendons and at frames have at a joint's row, of a robot without loops."""
        forces = self.forces
        chosen = np.flatnonzero(forces.drives.row >= forces.joint_rows)
        S = forces.map(self.then.q)
        if S is None or self.robot.closed or not len(chosen):
            return np.zeros(self.robots)
        rows, gears = forces.drives.row[chosen], forces.drives.values[0, chosen]
        return np.asarray(np.einsum("rk,rk->r", gears * self.drive_forces[:, chosen], S[:, rows, dof]))

    @cached_property
    def external(self) -> Array:
        """Forces (robots, bodies, 6) of the user on bodies in the last step: force, and torque about the origin, in their
        axes."""
        given = self.fleet.last_inputs().external
        shape = (self.robots, len(self.robot.bodies), 6)
        return np.zeros(shape) if given is None else np.where(self.rested[:, None, None], 0.0, np.broadcast_to(given, shape))

    @cached_property
    def contact_wrenches(self) -> Array:
        """Forces (robots, bodies, 6) of contacts on bodies in the last step, likewise."""
        return np.where(self.rested[:, None, None], 0.0, self.fleet.contact_wrenches() / self.step)

    @cached_property
    def limit_forces(self) -> Array:
        """Forces (robots, rows) of limits in the last step, each positive, by rows of all joints and lengths."""
        return np.where(self.rested[:, None], 0.0, self.fleet.limit_impulses() / self.step)

    @cached_property
    def contacts(self) -> SensedContacts:
        """All contacts of the last step."""
        known, pairs = self.probes.links, self.stage.touching.links
        names = {x: x if x in known else self.robot.frame(str(x)).body for pair in pairs for x in pair}
        links = [(names[a], names[b]) for a, b in pairs]
        found = self.fleet.spread_contacts(slice(None))
        counts = np.where(self.rested, 0, found.counts)
        robot, k = np.nonzero(np.arange(found.candidate.shape[1]) < counts[:, None])
        candidate = found.candidate[robot, k]
        normals = self.fleet.contact_normals()[robot, k]
        own = {link: number for number, link in enumerate(dict.fromkeys(x for pair in links for x in pair))}
        sides = np.array([[own[a], own[b]] for a, b in links], np.int64).reshape(-1, 2)[candidate]
        return SensedContacts(own, robot, sides, found.point[robot, k], normals, found.impulse[robot, k] / self.step)

    # inertias

    def inertias(self, parts: tuple[CarriedPart, ...]) -> PartInertias:
        """Return inertias of parts, each robot's own where `vary` made them differ and a part is a whole body."""
        mass, moment, inertia = self.probes.inertias(parts)
        varied = self.fleet.varied.parameters
        if len(varied):
            mass, moment, inertia = (np.repeat(x, self.robots, axis=0) for x in (mass, moment, inertia))
            for k, p in enumerate(parts):
                if p.whole and p.body is not None:
                    own = PartInertias.of_parameters(varied[:, self.probes.body_number[p.body]])
                    mass[:, k], moment[:, k], inertia[:, k] = own
        return PartInertias(mass, moment, inertia)


class SensedContacts(NamedTuple):
    """k contacts of many robots."""

    numbers: dict[str | None, int]  # of links, in `sides`
    robot: Array  # (k,)
    sides: Array  # (k, 2) the links that touch, of spheres the moving bodies; forces are on the first
    point: Array  # (k, 3) [m]
    normal: Array  # (k, 3)
    force: Array  # (k, 3) [N]


def _parameters(part: CarriedPart) -> tuple[float, ...]:
    """The inertial parameters (10,) of a part, in the order of `Robot.inertial_parameters`."""
    mass, moment, (xx, xy, xz, yy, yz, zz) = part.inertia
    return (mass, *moment, xx, xy, yy, xz, yz, zz)


def cross(a: Array, b: Array) -> Array:
    """The vector product of vectors (..., 3), as `numpy.cross`, which takes ten times as long for a few."""
    return np.asarray(a[..., NEXT] * b[..., PREVIOUS] - a[..., PREVIOUS] * b[..., NEXT])


def _turned(x: Array, v: Array) -> Array:
    """Vectors (..., 3) turned by unit quaternions (..., 4), the scalar last."""
    t = 2.0 * cross(x[..., :3], v)
    return np.asarray(v + x[..., 3:] * t + cross(x[..., :3], t))


def _turned_back(x: Array, v: Array) -> Array:
    return _turned(x * np.array((-1.0, -1.0, -1.0, 1.0)), v)
