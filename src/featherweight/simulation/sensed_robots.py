"""Robots as sensors see them at two instants: now, and at the start of the last step, with its accelerations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..algorithms.mechanisms import spanning
from ..array_types import Array
from ..collision.collision_scene import CAPSULE, PLANE
from ..contact.laws import RIGID
from ..engine.function import CompiledFunction
from ..engine.program import Output
from ..model.inertial_parameters import carried
from ..model.model import CarriedPart, ModelSensor
from ..model.types import WORLD, CameraMode, Frame, FrameForce, JointType, Pose, SensedKind, SensorKind
from ..robot.arguments import Q, V
from ..robot.camera_placement import CameraPlacement
from ..robot.collision.shape_rays import RayPart, ShapeRays, ray_part
from ..robot.robot import Robot
from ..robot.tendons.length_functions import LengthFunctions
from ..robot.tendons.tendon_table import length_table
from .fleet import Fleet
from .forces import bound_laws, drive_armature, drive_law
from .scene import Ground
from .scene_building import ground_part

T = TypeVar("T")

NEXT, PREVIOUS = np.array((1, 2, 0)), np.array((2, 0, 1))
GROUND_FRAME = Frame(WORLD, None)
TINY = 1e-15
MUJOCO_ORDER = np.array((2, 3, 6, 5, 4, 7, 0, 1))  # MuJoCo's order of the kinds of `collision_scene`


class Group(NamedTuple):
    """Sensors of one kind, the numbers of their frames, and the columns (sensors, dim) of their readings."""

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
        """Return inertias from inertial parameters (..., 10)."""
        inertia = parameters[..., [[4, 5, 7], [5, 6, 8], [7, 8, 9]]]
        return cls(parameters[..., 0], parameters[..., 1:4], inertia)


class Probes:
    """The frames that a robot's sensors need, and compiled functions of them."""

    def __init__(self, robot: Robot, ground: Ground | None) -> None:
        self.robot, self.ground, sensors = robot, ground, robot.sensors
        frames = [x for s in sensors for x in (s.frame, s.reference) if x is not None]
        bodies = [b for s in sensors for p in s.parts if (b := p.body) is not None]
        self.frames = tuple(dict.fromkeys((GROUND_FRAME, *frames, *(Frame(b, b) for b in bodies))))
        self.number = {frame: k for k, frame in enumerate(self.frames)}
        self.number_of_body = {b: self.number[Frame(b, b)] for b in bodies}
        self.links = {None, *(link for b in robot.bodies for link in b.links), *robot.model.shape_links}
        self.body_number = {b.name: k for k, b in enumerate(robot.bodies)}
        self.groups = self.groups_of(sensors)
        self.names = {s.name: s.slice for s in reversed(sensors)}
        self.names = {s.name: self.names[s.name] for s in sensors}
        self._inertias: dict[tuple[CarriedPart, ...], PartInertias] = {}
        self._lengths: dict[FrameForce, LengthFunctions] = {}
        self.queries: dict[Any, Any] = {}  # distance queries by pairs of shapes
        self.size = sensors[-1].slice.stop if sensors else 0

    def groups_of(self, sensors: Iterable[ModelSensor]) -> list[Group]:
        """Group sensors by kind and dimension."""
        alike: dict[tuple[SensorKind, int], list[ModelSensor]] = {}
        for s in sensors:
            alike.setdefault((s.kind, s.dim), []).append(s)
        return [self._group(kind, tuple(chosen)) for (kind, _), chosen in alike.items()]

    @cached_property
    def cameras(self) -> dict[int, CameraPlacement]:
        """Cameras that do not simply move with their bodies, by the numbers of the frames fixed to these."""
        modes = {c.name: c.mode for c in self.robot.cameras}
        ends = [x for s in self.robot.sensors for x in ((s.sensor.on, s.frame), (s.sensor.reference, s.reference))]
        return {
            self.number[frame]: CameraPlacement(self.robot, str(on.name))
            for on, frame in ends
            if on is not None and frame is not None and on.kind is SensedKind.CAMERA
            if modes[str(on.name)] is not CameraMode.FIXED
        }

    def _group(self, kind: SensorKind, sensors: tuple[ModelSensor, ...]) -> Group:
        frame, reference = (
            np.array([0 if x is None else self.number[x] for x in frames], np.int64)
            for frames in ((s.frame for s in sensors), (s.reference for s in sensors))
        )
        return Group(kind, sensors, frame, reference, np.array([range(s.slice.start, s.slice.stop) for s in sensors]))

    def length_of(self, force: FrameForce) -> LengthFunctions:
        """Return the length along which a force at a frame acts."""
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
        """Function of q and v that returns coordinates and velocities of all joints; None if these are the same."""
        if not self.robot.closed:
            return None
        model = self.robot.model
        outputs = Output("spanning_q", (model.nq,)), Output("spanning_v", (model.nv,))
        return self.robot.bind("spanning_motion", spanning.motion, (Q, V), outputs)

    @cached_property
    def rays(self) -> ShapeRays:
        """All visible shapes, and the ground."""
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
            own = self.robot.inertial_parameters  # from the file, or from `with_inertial_parameters`
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
    def fixed_placement(self) -> Array:
        """Placements (robots, frames, 4, 4) in the world frame; cameras as if fixed to their bodies."""
        return np.asarray(self.probes.placement(self.q))

    @cached_property
    def placement(self) -> Array:
        """Placements (robots, frames, 4, 4) in the world frame."""
        if not self.probes.cameras:
            return self.fixed_placement
        T = self.fixed_placement.copy()
        for k, camera in self.probes.cameras.items():
            T[:, k] = camera(self.q)
        return T

    @cached_property
    def velocity(self) -> Array:
        """Velocities (robots, frames, 6), linear (of origins) and angular, in the world's axes.

        Cameras move with their bodies.
        """
        v = np.asarray(self.probes.velocity(self.q, self.v))
        for k, arm in self._arms():
            v[:, k, :3] += cross(v[:, k, 3:], arm)
        return v

    @cached_property
    def acceleration(self) -> Array:
        """Accelerations (robots, frames, 6), linear (of origins as points) and angular, in the world's axes, without gravity.

        Cameras have those of their bodies at the camera's origin.
        """
        a = np.zeros_like(self.v) if self.a is None else self.a
        a = np.asarray(self.probes.acceleration(self.q, self.v, a))
        for k, arm in self._arms():
            w = self.velocity[:, k, 3:]
            a[:, k, :3] += cross(a[:, k, 3:], arm) + cross(w, cross(w, arm))
        return a

    def _arms(self) -> Iterable[tuple[int, Array]]:
        """Yield the frames of cameras that are not fixed to their bodies, and their offsets (robots, 3)."""
        return ((k, self.placement[:, k, :3, 3] - self.fixed_placement[:, k, :3, 3]) for k in self.probes.cameras)

    @cached_property
    def joints(self) -> tuple[Array, Array]:
        """Coordinates (robots, n) and velocities (robots, n) of all joints."""
        function = self.probes.all_joints
        return (self.q, self.v) if function is None else tuple(map(np.asarray, function(self.q, self.v)))  # type: ignore[return-value]

    def rotation(self, frames: Array) -> Array:
        """Return rotations (robots, k, 3, 3) of some frames."""
        return np.asarray(self.placement[..., :3, :3][:, frames])

    def origin(self, frames: Array) -> Array:
        """Return origins (robots, k, 3) [m] of some frames."""
        return np.asarray(self.placement[..., :3, 3][:, frames])

    def seen_from(self, frames: Array, x: Array) -> Array:
        """Return vectors (robots, k, 3) of the world frame in the axes of frames."""
        return np.asarray(np.einsum("...ji,...j->...i", self.rotation(frames), x))


def _mapped(S: Array | None, v: Array) -> Array:
    """Return velocities of all rows for independent ones."""
    return v if S is None else np.asarray(np.einsum("...ij,...j->...i", S, v))


class SensedRobots:
    """Robots of a simulation as their sensors see them: `now`, and `then`, at the start of the last step."""

    def __init__(self, probes: Probes, fleet: Fleet) -> None:
        self.probes, self.fleet = probes, fleet
        self.model, self.stage, self.forces, self.robot = fleet.model, fleet.contacts, fleet.model.forces, fleet.model.robot
        self.times, self.step = fleet.times, fleet.model.h
        self.now = Instant(probes, fleet.q, fleet.v)
        self.gravity = np.array(self.robot.gravity)
        self._kept: dict[Hashable, Any] = {}

    @property
    def robots(self) -> int:
        return len(self.fleet.q)

    def kept(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return a quantity that several sensors need, computed once."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]  # type: ignore[no-any-return]

    # the last step

    @cached_property
    def rested(self) -> Array:
        """Return which robots (robots,) have taken no step from their states."""
        return np.asarray(np.isnan(self.fleet.before_last_step()[1]).any(axis=1))

    @cached_property
    def then(self) -> Instant:
        """The start of the last step, with its mean acceleration: the change of velocity, including impulses, over the step.

        Robots without a step are held still at their current states.
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
            end = _turned(x0[:, 3:] * (-1.0, -1.0, -1.0, 1.0), _turned(x1[:, 3:], u1[:, :3]))
            a[:, :3] = (end - u0[:, :3]) / self.step - cross(u0[:, 3:], u0[:, :3])
            return a
        (c0, s0), (c1, s1) = x0[:, 2:].T, x1[:, 2:].T
        c, s = c1 * c0 + s1 * s0, s1 * c0 - c1 * s0
        a[:, 0] = (c * u1[:, 0] - s * u1[:, 1] - u0[:, 0]) / self.step + u0[:, 2] * u0[:, 1]
        a[:, 1] = (s * u1[:, 0] + c * u1[:, 1] - u0[:, 1]) / self.step - u0[:, 2] * u0[:, 0]
        return a

    @cached_property
    def drive_forces(self) -> Array:
        """Forces (robots, drives) of the actuators' drives in the last step, before their gears; zero without controls."""
        forces, fleet = self.forces, self.fleet
        u = fleet.last_inputs().control
        if u is None or not forces.parts:
            return np.zeros((self.robots, len(forces.parts)))
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
        for law in force:
            bound_laws(forces.drives, law)
        return np.asarray(np.where(self.rested[:, None], 0.0, np.minimum(np.maximum(force, drive[7]), drive[8])))

    @cached_property
    def tendon_motion(self) -> tuple[Array, Array]:
        """Lengths and velocities (robots, tendons) of the file's tendons."""
        q, v = self.now.q, self.now.v
        return self.robot.tendon_lengths(q), _mapped(self.robot.tendon_moment_arms(q), v)

    def along_frame(self, force: FrameForce) -> tuple[Array, Array]:
        """Return the length and the velocity (robots, 1) along which a force at a frame acts."""
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
        """Return forces (robots,) of drives along tendons and at frames, at a joint's row.

        In a robot with loops, only tendons of joints' coordinates count.
        """
        forces, x = self.forces, self.forces.drive_rows
        chosen = np.flatnonzero(forces.drives.row >= forces.joint_rows)
        S = forces.map(self.then.q)
        if S is None or not len(chosen):
            return np.zeros(self.robots)
        rows, gears = forces.drives.row[chosen], forces.drives.values[0, chosen]
        arms = S[:, rows, dof] if not self.robot.closed else (rows[:, None] == x.length) @ np.where(x.joint == dof, x.arm, 0.0)
        return np.asarray((gears * self.drive_forces[:, chosen] * arms).sum(axis=1))

    @cached_property
    def external(self) -> Array:
        """Forces (robots, bodies, 6) of the user on bodies in the last step.

        A row is force, and torque about the origin, in the body's axes.
        """
        given = self.fleet.last_inputs().external
        shape = (self.robots, len(self.robot.bodies), 6)
        return np.zeros(shape) if given is None else np.where(self.rested[:, None, None], 0.0, np.broadcast_to(given, shape))

    @cached_property
    def contact_wrenches(self) -> Array:
        """Forces (robots, bodies, 6) of contacts on bodies in the last step, in the same form as `external`."""
        return np.where(self.rested[:, None, None], 0.0, self.fleet.contact_wrenches() / self.step)

    @cached_property
    def limit_forces(self) -> Array:
        """Nonnegative forces (robots, rows) of limits in the last step, by rows of all joints and lengths."""
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
        force = found.impulse[robot, k] / self.step
        gaps = self.fleet.contact_gaps()[robot, k]
        return SensedContacts(own, robot, sides, found.point[robot, k], normals, force, candidate, gaps)

    @cached_property
    def touching(self) -> TouchingContacts:
        """Contacts of the last step by MuJoCo's definition: surfaces within their margin.

        Rigid contacts with an impulse count as well, because their surfaces meet within the step.
        """
        c, touching, scene = self.contacts, self.stage.touching, self.stage.scene
        rigid = self.stage.settings.law == RIGID
        pair = touching.pairs[c.candidate]
        parts, margin = scene.pair[pair], scene.margin[pair]
        kinds, shapes = MUJOCO_ORDER[scene.kind[parts]], touching.shapes[parts]
        swapped = scene.body[parts[:, 0]] < 0  # the world comes second
        kinds[swapped], shapes[swapped] = kinds[swapped, ::-1], shapes[swapped, ::-1]
        distance, plane = c.gap + margin, scene.kind[parts[:, 1]] == PLANE
        lift = 0.5 * np.where(plane, distance if rigid else margin, 0.0)
        point = c.point + (np.where(swapped, -lift, lift))[:, None] * c.normal
        back = (kinds[:, 0] > kinds[:, 1]) | ((kinds[:, 0] == kinds[:, 1]) & (shapes[:, 0] > shapes[:, 1]))
        sign = np.where(back, 1.0, -1.0)[:, None]  # MuJoCo's normal points from the first to the second
        sides = np.where(back[:, None], c.sides[:, ::-1], c.sides)
        shapes = np.where(back[:, None], shapes[:, ::-1], shapes)
        at = (distance <= margin) | (c.force.any(axis=1) if rigid else False)
        normal = sign * c.normal
        lying = np.flatnonzero(plane & (scene.kind[parts[:, 0]] == CAPSULE))
        tangent = tangents_of(normal)
        tangent[lying] = tangents_of(normal[lying], self._axes_of_parts(c.robot[lying], parts[lying, 0]))
        axes = np.stack([normal, tangent, cross(normal, tangent)], axis=1)
        ordered = np.where((back != swapped)[:, None], parts[:, ::-1], parts)
        found = c.robot, sides, shapes, ordered, point, distance, axes, np.einsum("kij,kj->ki", axes, sign * c.force)
        return TouchingContacts(c.numbers, *(x[at] for x in found))

    @cached_property
    def sliding(self) -> Array:
        """Return velocities (k, 2, 3) of the second relative to the first of `touching`, linear and angular, along the axes."""
        c, stage = self.touching, self.stage
        body = stage.scene.body[c.parts]
        if stage.body_placements is None or not len(body):
            return np.zeros((len(body), 2, 3))
        T, v = (np.asarray(x) for x in (stage.body_placements(self.then.q), stage.body_velocities(self.then.q, self.then.v)))
        at = c.robot[:, None], np.maximum(body, 0)
        linear, angular = (np.einsum("ksij,ksj->ksi", T[at][..., :3, :3], x) for x in (v[at][..., :3], v[at][..., 3:]))
        linear = linear + cross(angular, c.point[:, None] - T[at][..., :3, 3])
        both = np.stack([linear, angular], axis=2) * (body >= 0)[..., None, None]
        return np.asarray(np.einsum("kij,knj->kni", c.axes, both[:, 1] - both[:, 0]))

    def _axes_of_parts(self, robot: Array, part: Array) -> Array:
        """Return the z axes (k, 3) of touching parts, in the world frame, at the start of the last step."""
        body, axes = self.stage.scene.body[part], self.stage.scene.placement[part][:, [2, 5, 8]]
        if self.stage.body_placements is None or not len(part):
            return axes
        R = np.asarray(self.stage.body_placements(self.then.q))[robot, np.maximum(body, 0), :3, :3]
        return np.where((body >= 0)[:, None], np.einsum("kij,kj->ki", R, axes), axes)

    # inertias

    def inertias(self, parts: tuple[CarriedPart, ...]) -> PartInertias:
        """Return inertias of parts; each robot has its own, if `vary` made them different and the part is a whole body."""
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

    numbers: dict[str | None, int]  # numbers of links in `sides`
    robot: Array  # (k,)
    sides: Array  # (k, 2) touching links (for spheres, moving bodies); forces act on the first
    point: Array  # (k, 3) [m]
    normal: Array  # (k, 3)
    force: Array  # (k, 3) [N]
    candidate: Array  # (k,) index in `TouchingScene`
    gap: Array  # (k,) [m] gap minus margin


class TouchingContacts(NamedTuple):
    """k contacts of many robots between two objects, in MuJoCo's order."""

    numbers: dict[str | None, int]  # numbers of links in `sides`
    robot: Array  # (k,)
    sides: Array  # (k, 2)
    shapes: Array  # (k, 2) numbers of the robot's shapes, -1 for others
    parts: Array  # (k, 2) numbers of the objects in the scene
    point: Array  # (k, 3) [m] midway between the surfaces
    distance: Array  # (k,) [m]
    axes: Array  # (k, 3, 3) rows: the normal to the second, and two tangents
    force: Array  # (k, 3) [N] on the second, along the axes


def tangents_of(normal: Array, near: Array | None = None) -> Array:
    """Return MuJoCo's first tangents (k, 3) of contacts for normals (k, 3).

    They are near the vectors `near` (k, 3), by default near y, or near z if the normal is near y.
    """
    if near is None:
        near = np.where(np.abs(normal[:, 1:2]) < 0.5, np.eye(3)[1], np.eye(3)[2])
    tangent = near - np.einsum("ki,ki->k", near, normal)[:, None] * normal
    length = np.linalg.norm(tangent, axis=1, keepdims=True)
    return np.asarray(np.where(length < TINY, np.eye(3)[0], tangent / np.maximum(length, TINY)))


def _parameters(part: CarriedPart) -> tuple[float, ...]:
    """Return the inertial parameters (10,) of a part, in the order of `Robot.inertial_parameters`."""
    mass, moment, (xx, xy, xz, yy, yz, zz) = part.inertia
    return (mass, *moment, xx, xy, yy, xz, yz, zz)


def cross(a: Array, b: Array) -> Array:
    """Return the vector product of vectors (..., 3); `numpy.cross` takes ten times as long for a few vectors."""
    return np.asarray(a[..., NEXT] * b[..., PREVIOUS] - a[..., PREVIOUS] * b[..., NEXT])


def _turned(x: Array, v: Array) -> Array:
    """Return vectors (..., 3) rotated by unit quaternions (..., 4), scalar last."""
    t = 2.0 * cross(x[..., :3], v)
    return np.asarray(v + x[..., 3:] * t + cross(x[..., :3], t))
