"""Robots as their sensors see them: the functions and the memory of the loop that measures most sensors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..algorithms.mechanisms import spanning
from ..array_types import Array, Vector
from ..engine.function import CompiledFunction
from ..engine.loops.kernels import Layout, MachineCall, Table, machine_call
from ..engine.loops.prepared_calls import prepared_call
from ..engine.program import Output
from ..model.inertial_parameters import carried
from ..model.model import ModelSensor
from ..model.types import Pose, SensorKind
from ..robot.arguments import Q, V
from ..robot.collision.shape_rays import RayPart, ShapeRays, ray_part
from ..robot.tendons.length_functions import LengthFunctions
from ..robot.tendons.tendon_table import length_table
from .contact_stage import ContactStage
from .fleet import Fleet
from .forces import ordered_sum
from .scene import Ground
from .scene_building import ground_part
from .sensor_loop import ALL, MEASURE, MEASURE_FLEET, PREPARE
from .sensor_plan import NOT_CLIPPED, RECORDS, SensorPlan
from .sensor_readings import SensorReadings
from .sensor_records import DrivesOfStep, Instant, SensedFleet
from .step_model import StepModel

T = TypeVar("T")

NEXT, PREVIOUS = np.array((1, 2, 0)), np.array((2, 0, 1))
NO_CALL = MachineCall(0, np.zeros(0, np.int64))


class Group(NamedTuple):
    """Sensors of one kind, the numbers of their frames, and the columns (sensors, dim) of their readings."""

    kind: SensorKind
    sensors: tuple[ModelSensor, ...]
    frame: Array  # (sensors,) int; 0 is the ground
    columns: Array


class Probes:
    """The sensors of a simulation, and compiled functions that they need."""

    def __init__(self, model: StepModel, stage: ContactStage, ground: Ground | None) -> None:
        self.model, self.stage, self.ground, self.robot, self.forces = model, stage, ground, model.robot, model.forces
        sensors, self.plan = self.robot.sensors, SensorPlan(model, stage)
        self.records = self.plan.records()
        self.groups = self.groups_of(sensors)
        names = {s.name: s.slice for s in reversed(sensors)}
        self.names = {s.name: names[s.name] for s in sensors}
        self.cutoffs: Vector = np.full(sensors[-1].slice.stop if sensors else 0, np.inf)
        for s in sensors:
            if s.sensor.cutoff > 0.0 and s.kind not in NOT_CLIPPED:
                self.cutoffs[s.slice] = s.sensor.cutoff
        self.clips = bool((self.cutoffs < np.inf).any())
        self.layout: Layout | None = None
        self.queries: dict[Any, Any] = {}  # distance queries by pairs of shapes
        self._sensed: SensedRobots | None = None

    def of(self, fleet: Fleet) -> SensedRobots:
        """Return the robots of a fleet as these sensors see them."""
        sensed = self._sensed
        if sensed is None or sensed.home is not fleet.home:
            sensed = self._sensed = SensedRobots(self, fleet)
        return sensed

    def groups_of(self, sensors: Iterable[ModelSensor]) -> list[Group]:
        """Group the sensors that the loop does not measure by kind and dimension."""
        alike: dict[tuple[SensorKind, int], list[ModelSensor]] = {}
        for s in sensors:
            if s.kind not in RECORDS:
                alike.setdefault((s.kind, s.dim), []).append(s)
        return [self._group(kind, tuple(chosen)) for (kind, _), chosen in alike.items()]

    def _group(self, kind: SensorKind, sensors: tuple[ModelSensor, ...]) -> Group:
        frame = np.array([self.plan.number(s.frame, s.sensor.on) for s in sensors], np.int64)
        return Group(kind, sensors, frame, np.array([range(s.slice.start, s.slice.stop) for s in sensors]))

    @cached_property
    def frames(self) -> CompiledFunction[Any] | None:
        """Function of q, v and a, to the order that is needed: placements, velocities and accelerations of all frames."""
        robot, every = self.robot, self.plan.frames
        makers = robot.frame_placement, robot.frame_velocity, robot.frame_classical_acceleration
        functions = [make(every) for make in makers[: self.plan.order]]
        return robot.together(*functions) if len(functions) > 1 else functions[0] if functions else None

    @cached_property
    def joints(self) -> CompiledFunction[Any] | None:
        """Function of q and v that returns coordinates and velocities of all joints; None if these are the same."""
        if not (self.robot.closed and self.plan.has_joints):
            return None
        model = self.robot.model
        outputs = Output("spanning_q", (model.nq,)), Output("spanning_v", (model.nv,))
        return self.robot.bind("spanning_motion", spanning.motion, (Q, V), outputs)

    @cached_property
    def reaches(self) -> list[LengthFunctions]:
        """Lengths along which drives at frames act."""
        return [LengthFunctions(self.robot, length_table(self.robot, (), [x])) for x in self.plan.reaches]

    @cached_property
    def carrying(self) -> Any:
        """The robot with the weights of gravity compensation."""
        return self.robot.with_weights_of(carried(self.robot.model))

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


class SensedRobots:
    """The robots of a fleet as their sensors see them: `now`, and `then`, at the start of the last step.

    `measure` writes the arrays. They belong to the fleet's arrays, `home`.
    """

    def __init__(self, probes: Probes, fleet: Fleet) -> None:
        self.probes, self.fleet, self.home, self.robot = probes, fleet, fleet.home, probes.robot
        plan, states, functions = probes.plan, self.home.states, [f for f in (probes.frames, probes.joints) if f]
        self.robots, remembered = len(states.q), len(states.before_q)
        self.now = self._instant(states.q, states.v)
        self.then = self._instant(*(np.zeros((remembered, x.shape[1])) for x in (states.q, states.v)))
        self.values: Array = np.zeros((self.robots, len(probes.cutoffs)))
        self.content = SensedFleet(
            probes.records, self.now, self.then, self._drives(), np.zeros(self.home.contacts.force.shape),
            np.zeros((self.robots, plan.channels.count)), self.values, NO_CALL, NO_CALL, NO_CALL,
        )  # fmt: skip
        self._in_stages = plan.in_stages or self.robots > 1 or any(f.address is None for f in functions)
        if not self._in_stages:
            c, channels = plan.channels, self.content.channels[0]
            self.content = self.content._replace(
                joints_now=_call(probes.joints, self.now.q, self.now.v, channels[None, c.q :], channels[None, c.v :]),
                frames_now=_call(probes.frames if plan.now else None, *self.now.arguments(plan.order)),
                frames_then=_call(probes.frames if plan.then else None, *self.then.arguments(plan.order)),
            )
        table, many = Table(self.content, probes.layout), Table(self.home, fleet.arrays_layout)
        probes.layout, run, kept = table.layout, MEASURE_FLEET.for_tables(table, many), (table, many, functions)
        self._prepare, self._measure, self._measure_all = (
            prepared_call(run, table.address, many.address, work, kept=kept) for work in (PREPARE, MEASURE, ALL)
        )
        self.readings, self.first = (SensorReadings(x, probes.names) for x in (self.values, self.values[0]))
        self._kept: dict[Hashable, Any] = {}

    def _instant(self, q: Array, v: Array) -> Instant:
        n, frames = len(q), len(self.probes.plan.frames)
        return Instant(q, v, np.zeros(v.shape), np.zeros((n, frames, 4, 4)), np.zeros((n, frames, 6)), np.zeros((n, frames, 6)))

    def _drives(self) -> DrivesOfStep:
        forces, values = self.probes.forces, self.home.varied.drives
        has_drives = self.probes.plan.has_drives
        mapped, count = has_drives and forces.mapped, len(forces.parts) if has_drives else 0
        lengths = forces.lengths.count if forces.lengths else 0
        return DrivesOfStep(
            forces.drives, forces.laws, values if len(values) else forces.drives.values[None],
            np.zeros((self.robots, self.robot.nq + lengths)) if mapped else self.then.q,
            np.zeros((self.robots if mapped else 0, forces.rows, self.robot.nv)), np.zeros(forces.rows), np.zeros(forces.nu),
            np.zeros(count), np.zeros(forces.states), np.zeros(count), forces.joint_rows,
        )  # fmt: skip

    def measure(self) -> None:
        """Write the readings of the sensors that the loop measures, and the motion of all frames."""
        self._kept.clear()
        missing = self._prepare() if self._in_stages else self._measure_all()
        if self._in_stages:
            self._evaluate()
        if missing:
            self.content.spread[...] = self.fleet.spread_contacts(slice(None)).impulse
        if missing or self._in_stages:
            self._measure()

    def _evaluate(self) -> None:
        """Evaluate the functions that the loop does not call."""
        plan, x, forces = self.probes.plan, self.content, self.probes.forces
        c, q, v = plan.channels, self.now.q, self.now.v
        for order, instant in ((plan.now, self.now), (plan.then, self.then)):
            if order:
                self._evaluate_frames(instant)
        if self.probes.joints:
            x.channels[:, c.q : c.v], x.channels[:, c.v : c.impulse] = self.probes.joints(q, v)
        if plan.has_lengths:
            x.channels[:, c.length : c.length_rate] = self.robot.tendon_lengths(q)
            x.channels[:, c.length_rate : c.reach] = ordered_sum(self.robot.tendon_moment_arms(q) * v[:, None])
        for k, reach in enumerate(self.probes.reaches):
            coordinates, S = reach.evaluate(q)
            row = len(self.robot.model.tree.parent)
            x.channels[:, c.reach + k] = coordinates[:, self.robot.nq]
            x.channels[:, c.reach_rate + k] = ordered_sum(S[:, row] * v)
        if plan.has_compensation:
            force = np.asarray(self.probes.carrying.gravity_force(self.then.q))
            x.channels[:, c.compensation : c.length] = np.where(self.rested[:, None], 0.0, force)
        if len(x.drives.S):
            x.drives.coordinates[...], x.drives.S[...] = forces.all_coordinates(self.then.q), forces.map(self.then.q)

    def _evaluate_frames(self, x: Instant) -> None:
        """Write the motion of frames; cameras that are not fixed to their bodies move with them where they are."""
        order, function = self.probes.plan.order, self.probes.frames
        given = x.arguments(order)
        out = given[order:]
        assert function is not None
        function(*given[:order], out=out if order > 1 else out[0])
        T, v, a = x.placement, x.velocity, x.acceleration
        for k, (fixed, camera) in self.probes.plan.cameras.items():
            T[:, k] = camera(x.q)
            arm, w = T[:, k, :3, 3] - T[:, fixed, :3, 3], v[:, k, 3:]
            v[:, k, :3] += cross(w, arm)
            a[:, k, :3] += cross(a[:, k, 3:], arm) + cross(w, cross(w, arm))

    def kept(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return a quantity that several sensors need, computed once for a measurement."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]  # type: ignore[no-any-return]

    @property
    def rested(self) -> Array:
        """Which robots (robots,) have taken no step from their states."""
        return np.asarray(np.isnan(self.home.states.before_v).any(axis=1))


def _call(function: CompiledFunction[Any] | None, *arrays: Array) -> MachineCall:
    """Return the call of a function for the first robot."""
    return NO_CALL if function is None else machine_call(function, *(x[0] for x in arrays))


def cross(a: Array, b: Array) -> Array:
    """Return the vector product of vectors (..., 3); `numpy.cross` takes ten times as long for a few vectors."""
    return np.asarray(a[..., NEXT] * b[..., PREVIOUS] - a[..., PREVIOUS] * b[..., NEXT])
