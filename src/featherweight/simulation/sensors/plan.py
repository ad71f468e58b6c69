"""The plan of a simulation's sensors: records for the compiled loop, and what else is needed to measure them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.mechanisms import spanning
from ...array_types import Vector
from ...engine.function import CompiledFunction
from ...engine.loops.kernels import Layout
from ...engine.program import Output
from ...model.inertial_parameters import only_compensated
from ...model.model import ModelSensor, MovingJoint, SubtreePart
from ...model.types import (
    WORLD,
    Actuator,
    Camera,
    CameraMode,
    Frame,
    FrameForce,
    JointType,
    Sensed,
    SensedKind,
    SensorKind,
    SensorZone,
    ShapeType,
)  # fmt: skip
from ...robot.arguments import Q, V
from ...robot.camera_placement import CameraPlacement, focal_length
from ...robot.tendons.length_functions import LengthFunctions
from ...robot.tendons.tendon_table import length_table
from ..contact_stage import ContactStage
from ..forces.controllers import parts_of, stacked
from ..scene import Ground
from ..step_model import StepModel
from . import loop, records
from .records import NONE, Channels, SensorRecords, zones_of

K = SensorKind
GROUND_FRAME = Frame(WORLD, None)
OF_TENDONS = K.TENDONLIMITPOS, K.TENDONLIMITVEL, K.TENDONLIMITFRC
APART = (K.CONTACT, K.RANGEFINDER, K.DISTANCE, K.NORMAL, K.FROMTO, K.E_POTENTIAL, K.E_KINETIC)
"""Kinds that the loop does not measure."""
QUATERNIONS = (K.BALLQUAT, K.FRAMEQUAT)
DIRECTIONS = (K.FRAMEXAXIS, K.FRAMEYAXIS, K.FRAMEZAXIS, K.NORMAL)
BALL = SensorZone(ShapeType.SPHERE, (1.0,))  # for sensors without a volume
NOT_CLIPPED = (*QUATERNIONS, *DIRECTIONS, K.FROMTO, K.CONTACT)
PLACED, MOVING, ACCELERATING = 1, 2, 3  # orders of the motion of frames


class Term(NamedTuple):
    """A row of `Terms`."""

    channel: int
    factor: float = 1.0
    row: int = NONE
    dof: int = 0


class SensorPlan:
    """Records of the sensors of a simulation, and the frames, lengths and functions that they need."""

    def __init__(self, model: StepModel, stage: ContactStage, ground: Ground | None) -> None:
        self.model, self.stage, self.ground, self.robot, self.forces = model, stage, ground, model.robot, model.forces
        self.sensors, robot = model.robot.sensors, model.robot
        self.frames = [GROUND_FRAME]
        self.cameras: dict[int, CameraPlacement] = {}
        """Cameras that do not simply move with their bodies, by the numbers of their frames, which follow frames that do."""
        self.now, self.then = 0, 0  # orders of the motion of frames now, and at the start of the last step
        self.reaches: list[FrameForce] = []  # lengths along which drives at frames act
        self.has_joints = self.has_lengths = self.has_drives = self.has_compensation = False
        self.joints = {j.name: j for j in robot.model.joints}
        self.bodies, self.tendons = [b.name for b in robot.bodies], [t.name for t in robot.tendons]
        links = {None, *(link for b in robot.bodies for link in b.links), *robot.model.shape_links}
        sides = [[x if x in links else robot.frame(str(x)).body for x in pair] for pair in stage.touching.links]
        self.links = {link: k for k, link in enumerate(dict.fromkeys(x for pair in sides for x in pair))}
        self._sides = np.array([[self.links[x] for x in pair] for pair in sides], np.int64).reshape(-1, 2)
        self.channels = self._channels()
        self._rows: dict[type, list[dict[str, Any]]] = {}
        self._zones: list[Any] = []
        self._links: list[int] = []  # links of incomplete bodies
        self._ranges: dict[tuple[SubtreePart, ...], dict[str, int]] = {}
        for s in self.sensors:
            if s.kind in RECORDS:
                RECORDS[s.kind](self, s)
        self.records = self._records()
        self.apart = [s for s in self.sensors if s.kind in APART]
        names = {s.name: s.slice for s in reversed(self.sensors)}
        self.names = {s.name: names[s.name] for s in self.sensors}
        self.cutoffs: Vector = np.full(self.sensors[-1].slice.stop if self.sensors else 0, np.inf)
        for s in self.sensors:
            if s.sensor.cutoff > 0.0 and s.kind not in NOT_CLIPPED:
                self.cutoffs[s.slice] = s.sensor.cutoff
        self.clips = bool((self.cutoffs < np.inf).any())
        self.layout: Layout | None = None
        self.queries: dict[Any, Any] = {}  # queries of rays, and of distances by pairs of shapes

    def _channels(self) -> Channels:
        robot, forces = self.robot, self.forces
        lengths = len(robot.tendons) + sum(a.at is not None for x in robot.actuators for a in parts_of(x))
        compensated = robot.nv if robot.model.weight_compensated else 0
        own = 1, robot.model.nq, robot.model.nv, len(self.stage.rows.joint), len(forces.parts), compensated
        return Channels(*np.cumsum((0, *own, lengths, lengths)).tolist())

    def _records(self) -> SensorRecords:
        robot, rows = self.robot, self._rows
        curved = (JointType.FLOATING, JointType.PLANAR) if self.model.integrator == "semi-implicit" else ()
        turning = [j for j in robot.joints if j.type in curved and j.independent]
        joints = [{"planar": j.type is JointType.PLANAR, "q": j.q_slice.start, "v": j.v_slice.start} for j in turning]
        kinds = (
            records.FrameSensors,
            records.SumSensors,
            records.Terms,
            records.LimitSensors,
            records.SubtreeSensors,
            records.Parts,
        )
        frames, sums, terms, limits, subtrees, parts = (stacked(kind, rows.get(kind, [])) for kind in kinds)
        reads_contacts = bool(self._links) or loop.TOUCH in frames.quantity
        return SensorRecords(
            frames, zones_of(self._zones), sums, terms, limits, subtrees, parts, np.array(self._links, np.int64), self._sides,
            stacked(records.TurningJoints, joints), self.channels,
            np.array(robot.gravity, float), float(self.model.h), reads_contacts, self.has_drives,
        )  # fmt: skip

    def _add(self, kind: type, **row: Any) -> None:
        self._rows.setdefault(kind, []).append(row)

    # functions

    @property
    def order(self) -> int:
        """The greatest order of the motion of frames."""
        return max(self.now, self.then)

    @property
    def in_stages(self) -> bool:
        """True if Python evaluates quantities that the loop needs."""
        mapped = self.has_drives and self.forces.mapped
        return bool(self.cameras or self.has_lengths or self.has_compensation or mapped)

    @cached_property
    def frames_function(self) -> CompiledFunction[Any] | None:
        """Function of q, v and a, to the order that is needed: placements, velocities and accelerations of all frames."""
        makers = self.robot.frame_placement, self.robot.frame_velocity, self.robot.frame_classical_acceleration
        functions = [make(self.frames) for make in makers[: self.order]]
        return self.robot.together(*functions) if len(functions) > 1 else functions[0] if functions else None

    @cached_property
    def joints_function(self) -> CompiledFunction[Any] | None:
        """Function of q and v that returns coordinates and velocities of all joints; None if these are the same."""
        model = self.robot.model
        outputs = Output("spanning_q", (model.nq,)), Output("spanning_v", (model.nv,))
        asked = self.robot.closed and self.has_joints
        return self.robot.bind("spanning_motion", spanning.motion, (Q, V), outputs) if asked else None

    @cached_property
    def lengths_function(self) -> LengthFunctions:
        """Lengths of all tendons, and lengths along which drives at frames act."""
        return LengthFunctions(self.robot, length_table(self.robot, self.robot.tendons, self.reaches))

    @cached_property
    def carrying(self) -> Any:
        """The robot with the weights of gravity compensation."""
        return self.robot.with_weights_of(only_compensated(self.robot.model))

    # joints, tendons and actuators

    def _add_sum(self, column: int, terms: Iterable[Term], bounds: tuple[float, float] = (-np.inf, np.inf)) -> None:
        every = self._rows.setdefault(records.Terms, [])
        first = len(every)
        every += [term._asdict() for term in terms]
        self._add(records.SumSensors, column=column, first=first, stop=len(every), lower=bounds[0], upper=bounds[1])

    def _joint_channel(self, j: MovingJoint, rate: int) -> int:
        self.has_joints = True
        return int(self.channels.v + j.v_slice.start if rate else self.channels.q + j.q_slice.start)

    def _length_channel(self, number: int, rate: int) -> int:
        self.has_lengths = True
        return number + (self.channels.length_rate if rate else self.channels.length)

    def _along(self, a: Actuator, rate: int) -> list[Term]:
        """Return the length along which an actuator acts before its gear, or its velocity."""
        if a.at is not None:
            self.reaches += [] if a.at in self.reaches else [a.at]
            return [Term(self._length_channel(len(self.robot.tendons) + self.reaches.index(a.at), rate))]
        return self._of_tendon(a.tendon, rate) if a.tendon else [Term(self._joint_channel(self.joints[str(a.joint)], rate))]

    def _of_tendon(self, name: str, rate: int) -> list[Term]:
        terms = self.robot.tendons[name].terms
        if not terms:
            return [Term(self._length_channel(self.tendons.index(name), rate))]
        return [Term(self._joint_channel(self.joints[joint], rate), x) for joint, x in terms]

    def length(self, s: ModelSensor, rate: int) -> None:
        """Record a length or, for rate 1, a velocity; of actuators times the gear, and three of orientation servos."""
        on, start = name_of(s), s.slice.start
        if s.kind in (K.TENDONPOS, K.TENDONVEL):
            self._add_sum(start, self._of_tendon(on, rate))
        elif s.kind in (K.ACTUATORPOS, K.ACTUATORVEL):
            a = self.robot.actuators[self._actuator(s)]
            for i, part in enumerate(parts_of(a) if a.orientation else (a,)):
                self._add_sum(start + i, [t._replace(factor=a.gear * t.factor) for t in self._along(part, rate)])
        else:
            channel = self._joint_channel(self.joints[on], rate)
            for i in range(s.dim):  # quaternions (w, x, y, z), MuJoCo's convention
                self._add_sum(start + i, [Term(channel + ((i + 3) % 4 if s.kind is K.BALLQUAT else i))])

    def _actuator(self, s: ModelSensor) -> int:
        return [a.name for a in self.robot.actuators].index(name_of(s))

    def _drives(self, numbers: Iterable[int]) -> list[Term]:
        self.has_drives = True
        return [Term(self.channels.drive + int(i)) for i in numbers]

    def actuator_force(self, s: ModelSensor) -> None:
        robot, number = self.robot, self._actuator(s)
        if tuple(self.forces.actuators) != tuple(robot.actuators):
            raise ValueError(
                f"{robot.name}: sensor {s.name!r} measures an actuator of the file, but the simulation has other "
                "actuators; leave out actuators=, or add them to the description"
            )
        drives = self._drives(np.flatnonzero(self.forces.owner == number))  # a motor has another one for its friction
        for i in range(s.dim):
            self._add_sum(s.slice.start + i, drives if s.dim == 1 else drives[i : i + 1])

    def tendon_actuator_force(self, s: ModelSensor) -> None:
        """Record the sum of actuator forces along a tendon, before their gears."""
        self._add_sum(s.slice.start, self._drives(i for i, a in enumerate(self.forces.parts) if a.tendon == name_of(s)))

    def joint_actuator_force(self, s: ModelSensor) -> None:
        """Record the sum of actuator forces on a joint, with gravity compensation by actuators, within its effort.

        In a robot with loops, only tendons of joints' coordinates count.
        """
        robot, forces, j = self.robot, self.forces, self.joints[name_of(s)]
        x, dof, terms = forces.drive_rows, j.v_slice.start, []
        for i, (a, row, gear) in enumerate(zip(forces.parts, forces.drives.row, forces.drives.values[0], strict=True)):
            term = self._drives([i])[0]._replace(factor=float(gear))
            if a.joint == j.name and a.at is None:
                terms.append(term._replace(factor=a.gear))
            elif row >= forces.joint_rows and not robot.closed:
                terms.append(term._replace(row=int(row), dof=dof))
            elif row >= forces.joint_rows:
                arm = x.arm[(x.length == row) & (x.joint == dof)].sum()
                terms.append(term._replace(factor=float(gear * arm)))
        if j.drive_compensates and robot.model.weight_compensated:
            self.has_compensation = True
            v = robot.joints[j.index].v_slice
            terms += [Term(self.channels.compensation + i) for i in range(v.start, v.stop)]
        self._add_sum(s.slice.start, terms, j.efforts)

    def limit(self, s: ModelSensor, rate: int) -> None:
        """Record the violation of a limit, or the outward velocity there."""
        on, of_tendon, start = name_of(s), s.kind in OF_TENDONS, s.slice.start
        limited: Any = self.robot.tendons[on] if of_tendon else self.joints[on]
        channel: Any = self._length_channel if of_tendon else self._joint_channel
        coordinate, velocity = (channel(self.tendons.index(on) if of_tendon else limited, k) for k in (0, 1))
        bounds = {"lower": limited.lower, "upper": limited.upper}
        self._add(records.LimitSensors, column=start, coordinate=coordinate, rate=velocity if rate else NONE, **bounds)

    def limit_force(self, s: ModelSensor) -> None:
        rows, tendons = self.stage.rows, [t.name for t in self.forces.tendons]
        if s.kind in OF_TENDONS:
            row = self.forces.joint_rows + tendons.index(name_of(s)) if name_of(s) in tendons else NONE
        else:
            row = self.joints[name_of(s)].v_slice.start
        found = np.flatnonzero((rows.dof == row) & ~rows.friction).tolist()
        self._add_sum(s.slice.start, [Term(self.channels.impulse + k, 1.0 / self.model.h) for k in found])

    def clock(self, s: ModelSensor) -> None:
        self._add_sum(s.slice.start, [Term(self.channels.time)])

    # frames

    def number(self, frame: Frame | None, on: Sensed | None = None) -> int:
        """Return the number of a frame; None is the ground. `on` is the object that a sensor names."""
        if (frame or GROUND_FRAME) not in self.frames:
            self.frames.append(frame or GROUND_FRAME)
        number = self.frames.index(frame or GROUND_FRAME)
        if on is None or on.kind is not SensedKind.CAMERA or self.camera(on).mode is CameraMode.FIXED:
            return number
        known = [k for k, camera in self.cameras.items() if camera.camera.name == on.name]
        if not known:
            self.frames.append(self.frames[number])
            self.cameras[len(self.frames) - 1] = CameraPlacement(self.robot, str(on.name))
        return known[0] if known else len(self.frames) - 1

    def camera(self, on: Sensed | None) -> Camera:
        return next(c for c in self.robot.cameras if on is not None and c.name == on.name)

    def frame(self, s: ModelSensor, quantity: int, axes: str = "reference") -> None:
        """Record a quantity of a frame in the axes of the reference, the frame or the world.

        Quaternions are those of cameras as if fixed to their bodies.
        """
        if quantity in (loop.INSIDE, loop.TOUCH) and s.sensor.zone is None:
            return
        ends = ((s.frame, s.sensor.on), (s.reference, s.sensor.reference))
        frame, reference = (self.number(x, None if quantity == loop.QUATERNION else on) for x, on in ends)
        if quantity in (loop.LINEAR_ACCELERATION, loop.ANGULAR_ACCELERATION, loop.TOUCH):
            self.then = max(self.then, PLACED if quantity == loop.TOUCH else ACCELERATING)
        else:
            self.now = max(self.now, MOVING if quantity in (loop.LINEAR_VELOCITY, loop.ANGULAR_VELOCITY) else PLACED)
        c = self.camera(s.sensor.reference) if quantity == loop.PIXEL else None
        width, height = (c.resolution if c else None) or (1, 1)
        self._add(
            records.FrameSensors, quantity=quantity, column=s.slice.start, frame=frame, reference=reference,
            axes={"reference": reference, "frame": frame, "world": 0}[axes], field=s.sensor.field,
            link=self.links.get(s.frame.body if s.frame else None, NONE), focal=focal_length(c) if c else (0.0, 0.0),
            center=(0.5 * width, 0.5 * height),
        )  # fmt: skip
        self._zones.append(s.sensor.zone or BALL)

    # subtrees of bodies

    def subtree(self, s: ModelSensor, quantity: int) -> None:
        self.now = max(self.now, PLACED if quantity == loop.CENTER else MOVING)
        self._add(records.SubtreeSensors, quantity=quantity, column=s.slice.start, **self._range_of(s.parts))

    def load(self, s: ModelSensor, name: str) -> None:
        """Record a force ("column") or a torque on a subtree, together with the other one if there is one."""
        self.then, at = ACCELERATING, {"quantity": loop.LOAD, "frame": self.number(s.frame), **self._range_of(s.parts)}
        rows = self._rows.setdefault(records.SubtreeSensors, [])
        alike = [x for x in rows if x | at == x and x[name] == NONE]
        if not alike:
            rows.append({"column": NONE, "torque": NONE} | at)
        (alike or rows)[-1][name] = s.slice.start

    def _range_of(self, parts: tuple[SubtreePart, ...]) -> dict[str, int]:
        """Return the ranges of the records of parts, and of the links of incomplete bodies."""
        if parts not in self._ranges:
            every, first_link = self._rows.setdefault(records.Parts, []), len(self._links)
            first = len(every)
            for p in parts:
                self._add_part(p)
            self._ranges[parts] = {"first": first, "stop": len(every), "first_link": first_link, "stop_link": len(self._links)}
        return self._ranges[parts]

    def _add_part(self, p: SubtreePart) -> None:
        mass, moment, (xx, xy, xz, yy, yz, zz) = p.inertia
        part: dict[str, Any] = dict.fromkeys(("touching", "pushed", "varied"), NONE)
        part["parameters"] = (mass, *moment, xx, xy, yy, xz, yz, zz)  # in the order of `Robot.inertial_parameters`
        if p.body is not None:
            body, touching = self.bodies.index(p.body), self.stage.numbers.tolist()
            part |= {"frame": self.number(Frame(p.body, p.body)), "pushed": body if p.body in p.links else NONE}
            if p.whole:
                part |= {"varied": body, "parameters": self.robot.inertial_parameters[body]}
                part["touching"] = touching.index(body) if body in touching else NONE
        if p.body is None or not p.whole:
            self._links += [self.links[x] for x in p.links if x in self.links]
        self._add(records.Parts, **part)

    def note(self, s: ModelSensor) -> None:
        """Note the frame that a kind in `APART` needs."""
        if s.kind is K.RANGEFINDER:
            self.number(s.frame, s.sensor.on)
            self.now = max(self.now, PLACED)
        elif s.sensor.zone is not None:
            self.number(s.frame)
            self.then = max(self.then, PLACED)


Record = Callable[[SensorPlan, ModelSensor], None]


def _of_frame(quantity: int, axes: str = "reference") -> Record:
    return partial(SensorPlan.frame, quantity=quantity, axes=axes)


RECORDS: dict[SensorKind, Record] = {
    K.FRAMEPOS: _of_frame(loop.POSITION),
    K.FRAMEQUAT: _of_frame(loop.QUATERNION),
    K.FRAMEXAXIS: _of_frame(loop.AXIS_X),
    K.FRAMEYAXIS: _of_frame(loop.AXIS_Y),
    K.FRAMEZAXIS: _of_frame(loop.AXIS_Z),
    K.FRAMELINVEL: _of_frame(loop.LINEAR_VELOCITY),
    K.FRAMEANGVEL: _of_frame(loop.ANGULAR_VELOCITY),
    K.FRAMELINACC: _of_frame(loop.LINEAR_ACCELERATION, "world"),
    K.FRAMEANGACC: _of_frame(loop.ANGULAR_ACCELERATION, "world"),
    K.ACCELEROMETER: _of_frame(loop.LINEAR_ACCELERATION, "frame"),
    K.VELOCIMETER: _of_frame(loop.LINEAR_VELOCITY, "frame"),
    K.GYRO: _of_frame(loop.ANGULAR_VELOCITY, "frame"),
    K.MAGNETOMETER: _of_frame(loop.FIELD, "frame"),
    K.CAMPROJECTION: _of_frame(loop.PIXEL),
    K.INSIDESITE: _of_frame(loop.INSIDE),
    K.TOUCH: _of_frame(loop.TOUCH),
    K.SUBTREECOM: partial(SensorPlan.subtree, quantity=loop.CENTER),
    K.SUBTREELINVEL: partial(SensorPlan.subtree, quantity=loop.VELOCITY),
    K.SUBTREEANGMOM: partial(SensorPlan.subtree, quantity=loop.MOMENTUM),
    K.FORCE: partial(SensorPlan.load, name="column"),
    K.TORQUE: partial(SensorPlan.load, name="torque"),
    **dict.fromkeys((K.JOINTPOS, K.BALLQUAT, K.TENDONPOS, K.ACTUATORPOS), partial(SensorPlan.length, rate=0)),
    **dict.fromkeys((K.JOINTVEL, K.BALLANGVEL, K.TENDONVEL, K.ACTUATORVEL), partial(SensorPlan.length, rate=1)),
    **dict.fromkeys((K.JOINTLIMITPOS, K.TENDONLIMITPOS), partial(SensorPlan.limit, rate=0)),
    **dict.fromkeys((K.JOINTLIMITVEL, K.TENDONLIMITVEL), partial(SensorPlan.limit, rate=1)),
    **dict.fromkeys((K.JOINTLIMITFRC, K.TENDONLIMITFRC), SensorPlan.limit_force),
    K.ACTUATORFRC: SensorPlan.actuator_force,
    K.TENDONACTUATORFRC: SensorPlan.tendon_actuator_force,
    K.JOINTACTUATORFRC: SensorPlan.joint_actuator_force,
    K.CLOCK: SensorPlan.clock,
    K.RANGEFINDER: SensorPlan.note,
    K.CONTACT: SensorPlan.note,
}
"""Records of kinds or, for kinds in `APART`, notes of what they need."""


def name_of(s: ModelSensor) -> str:
    assert s.sensor.on is not None and s.sensor.on.name is not None
    return s.sensor.on.name
