"""The plan of a simulation's sensors: records for the compiled loop, and what else is needed to measure them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np

from ..array_types import Array
from ..model.model import CarriedPart, ModelSensor, MovingJoint
from ..model.types import (
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
    Tendon,
)  # fmt: skip
from ..robot.camera_placement import CameraPlacement
from .contact_stage import ContactStage
from .controllers import parts_of
from .sensor_records import (
    ANGULAR_ACCELERATION,
    ANGULAR_VELOCITY,
    AXIS_X,
    AXIS_Y,
    AXIS_Z,
    FIELD,
    LINEAR_ACCELERATION,
    LINEAR_VELOCITY,
    NONE,
    POSITION,
    QUATERNION,
    BallSensors,
    Channels,
    FrameSensors,
    InsideSensors,
    LimitSensors,
    LoadSensors,
    Parts,
    PixelSensors,
    SensorRecords,
    SubtreeSensors,
    SumSensors,
    Term,
    Terms,
    TouchSensors,
    TurningJoints,
)  # fmt: skip
from .sensor_zones import zones_of
from .step_model import StepModel

K = SensorKind
GROUND_FRAME = Frame(WORLD, None)

PLACED, MOVING, ACCELERATING = 1, 2, 3  # greatest order of the motion of frames that is needed; 0 for none


class FrameKind(NamedTuple):
    """The quantity that a kind measures, and in whose axes."""

    quantity: int
    axes: str = "reference"  # or "frame", "world"


FRAME_KINDS = {
    K.FRAMEPOS: FrameKind(POSITION),
    K.FRAMEQUAT: FrameKind(QUATERNION),
    K.FRAMEXAXIS: FrameKind(AXIS_X),
    K.FRAMEYAXIS: FrameKind(AXIS_Y),
    K.FRAMEZAXIS: FrameKind(AXIS_Z),
    K.FRAMELINVEL: FrameKind(LINEAR_VELOCITY),
    K.FRAMEANGVEL: FrameKind(ANGULAR_VELOCITY),
    K.FRAMELINACC: FrameKind(LINEAR_ACCELERATION, "world"),
    K.FRAMEANGACC: FrameKind(ANGULAR_ACCELERATION, "world"),
    K.ACCELEROMETER: FrameKind(LINEAR_ACCELERATION, "frame"),
    K.VELOCIMETER: FrameKind(LINEAR_VELOCITY, "frame"),
    K.GYRO: FrameKind(ANGULAR_VELOCITY, "frame"),
    K.MAGNETOMETER: FrameKind(FIELD, "frame"),
}


class SensorPlan:
    """The records of the sensors of a simulation, and the frames, lengths and other quantities that they need."""

    def __init__(self, model: StepModel, stage: ContactStage) -> None:
        self.robot, self.forces, self.stage, robot = model.robot, model.forces, stage, model.robot
        self.step, self.driven, self.semi_implicit = float(model.h), model.driven, model.integrator == "semi-implicit"
        self.joints = {j.name: j for j in robot.model.joints}
        self.bodies = {b.name: k for k, b in enumerate(robot.bodies)}
        self.frames = [GROUND_FRAME]
        self.numbers: dict[Any, int] = {GROUND_FRAME: 0}
        self.cameras: dict[int, tuple[int, CameraPlacement]] = {}
        """Cameras that do not simply move with their bodies, by the numbers of their frames; and frames fixed to the bodies."""
        self.now, self.then = 0, 0  # orders of the motion that is needed now, and at the start of the last step
        self.reaches: list[FrameForce] = []  # lengths along which drives at frames act
        self.has_joints = self.has_lengths = self.has_drives = self.has_compensation = False
        self.links = {link: k for k, link in enumerate(dict.fromkeys(x for pair in self._sides for x in pair))}
        self.channels = self._channels()
        self._rows: dict[type, list[Any]] = {}
        self._zones: dict[type, list[Any]] = {InsideSensors: [], TouchSensors: []}
        self._terms: list[Term] = []
        self._parts: list[Any] = []
        self._held: list[int] = []  # links of incomplete bodies
        self._ranges: dict[Any, tuple[int, int]] = {}  # of parts, and of links
        for s in robot.sensors:
            record = RECORDS.get(s.kind) or NOTED.get(s.kind)
            if record is not None:
                record(self, s)

    @cached_property
    def _sides(self) -> list[tuple[str | None, str | None]]:
        """The two links, or moving bodies of spheres, of possible contacts."""
        robot = self.robot
        links = {None, *(link for b in robot.bodies for link in b.links), *robot.model.shape_links}
        return [tuple(x if x in links else robot.frame(str(x)).body for x in pair) for pair in self.stage.touching.links]  # type: ignore[misc]

    def _channels(self) -> Channels:
        robot, forces = self.robot, self.forces
        reaches = sum(a.at is not None for x in robot.actuators for a in parts_of(x))
        tendons, carried = len(robot.tendons), robot.nv if robot.model.carried else 0
        sizes = (
            1, robot.model.nq, robot.model.nv, len(self.stage.rows.joint), len(forces.parts), carried, tendons, tendons,
            reaches, reaches,
        )  # fmt: skip
        return Channels(*np.cumsum((0, *sizes)).tolist())

    def records(self) -> SensorRecords:
        """Return the records of all sensors."""

        def rows(kind: type) -> Any:
            return stacked(kind, self._rows.get(kind, ()))

        sides = [[self.links[a], self.links[b]] for a, b in self._sides]
        curved = (JointType.FLOATING, JointType.PLANAR)
        turning = [j for j in self.robot.joints if j.type in curved and j.independent and self.semi_implicit]
        return SensorRecords(
            rows(FrameSensors), rows(PixelSensors), rows(SumSensors), stacked(Terms, self._terms), rows(LimitSensors),
            rows(BallSensors), rows(InsideSensors), zones_of(self._zones[InsideSensors]), rows(TouchSensors),
            zones_of(self._zones[TouchSensors]), stacked(Parts, self._parts), rows(SubtreeSensors), rows(LoadSensors),
            np.array(self._held, np.int64), np.array(sides, np.int64).reshape(-1, 2),
            stacked(TurningJoints, [(j.type is JointType.PLANAR, j.q_slice.start, j.v_slice.start) for j in turning]),
            self.channels, np.array(self.robot.gravity, float), self.step, self.driven,
        )  # fmt: skip

    @property
    def order(self) -> int:
        """The greatest order of the motion of frames."""
        return max(self.now, self.then)

    @property
    def in_stages(self) -> bool:
        """Whether Python evaluates quantities that the loop needs."""
        mapped = self.has_drives and self.forces.mapped
        return bool(self.cameras or self.has_lengths or self.reaches or self.has_compensation or mapped)

    # what records refer to

    def number(self, frame: Frame | None, on: Sensed | None = None, *, now: int = 0, then: int = 0) -> int:
        """Return the number of a frame whose motion is needed to these orders; None is the ground.

        `on` is the object that a sensor names, which may be a camera.
        """
        self.now, self.then = max(self.now, now), max(self.then, then)
        number = self._fixed(frame or GROUND_FRAME)
        if on is None or on.kind is not SensedKind.CAMERA or self.camera(on).mode is CameraMode.FIXED:
            return number
        if ("camera", number) not in self.numbers:
            moving = self.numbers["camera", number] = len(self.frames)
            self.frames.append(self.frames[number])
            self.cameras[moving] = number, CameraPlacement(self.robot, str(on.name))
        return self.numbers["camera", number]

    def _fixed(self, frame: Frame) -> int:
        if frame not in self.numbers:
            self.numbers[frame] = len(self.frames)
            self.frames.append(frame)
        return self.numbers[frame]

    def camera(self, on: Sensed | None) -> Camera:
        """Return the camera that a sensor names."""
        return next(c for c in self.robot.cameras if on is not None and c.name == on.name)

    def _add(self, kind: type, *row: Any) -> None:
        self._rows.setdefault(kind, []).append(row)

    def _add_sum(self, column: int, terms: Iterable[Term], bounds: tuple[float, float] = (-np.inf, np.inf)) -> None:
        first = len(self._terms)
        self._terms += terms
        self._add(SumSensors, column, first, len(self._terms), *bounds)

    def _range_of(self, parts: tuple[CarriedPart, ...]) -> tuple[int, int]:
        """Return the range of the records of parts."""
        if parts not in self._ranges:
            first = len(self._parts)
            self._parts += map(self._part, parts)
            self._ranges[parts] = first, len(self._parts)
        return self._ranges[parts]

    def _range_of_links(self, links: tuple[str, ...]) -> tuple[int, int]:
        """Return the range of links of incomplete bodies."""
        if links not in self._ranges:
            first = len(self._held)
            self._held += [self.links[x] for x in links if x in self.links]
            self._ranges[links] = first, len(self._held)
        return self._ranges[links]

    def _part(self, p: CarriedPart) -> tuple[Any, ...]:
        if p.body is None:
            return 0, NONE, NONE, NONE, parameters_of(p), NONE
        body, rows = self.bodies[p.body], self.stage.numbers.tolist()
        row = rows.index(body) if p.whole and body in rows else NONE
        parameters = self.robot.inertial_parameters[body] if p.whole else parameters_of(p)
        frame = self._fixed(Frame(p.body, p.body))
        return frame, body, row, body if p.body in p.links else NONE, parameters, body if p.whole else NONE

    # joints, tendons and actuators

    def _joint_channel(self, j: MovingJoint, rate: int) -> int:
        self.has_joints = True
        return self.channels.v + j.v_slice.start if rate else self.channels.q + j.q_slice.start

    def _of_tendon(self, t: Tendon, rate: int) -> list[Term]:
        """Return the length of a tendon, or its velocity."""
        if t.terms:
            return [Term(self._joint_channel(self.joints[name], rate), x) for name, x in t.terms]
        return [Term(self._length_channel(t, rate))]

    def _length_channel(self, t: Tendon, rate: int) -> int:
        self.has_lengths = True
        number = [x.name for x in self.robot.tendons].index(t.name)
        return number + (self.channels.length_rate if rate else self.channels.length)

    def _along(self, a: Actuator, rate: int) -> list[Term]:
        """Return the length along which an actuator acts before its gear, or its velocity."""
        if a.at is not None:
            if a.at not in self.reaches:
                self.reaches.append(a.at)
            first = self.channels.reach_rate if rate else self.channels.reach
            return [Term(first + self.reaches.index(a.at))]
        if a.tendon is not None:
            return self._of_tendon(self.robot.tendons[a.tendon], rate)
        return [Term(self._joint_channel(self.joints[str(a.joint)], rate))]

    def of_joint(self, s: ModelSensor, rate: int) -> None:
        channel = self._joint_channel(self.joints[name_of(s)], rate)
        for i in range(s.dim):
            self._add_sum(s.slice.start + i, [Term(channel + i)])

    def ball_quaternion(self, s: ModelSensor) -> None:
        self._add(BallSensors, s.slice.start, self._joint_channel(self.joints[name_of(s)], 0))

    def of_tendon(self, s: ModelSensor, rate: int) -> None:
        self._add_sum(s.slice.start, self._of_tendon(self.robot.tendons[name_of(s)], rate))

    def of_actuator(self, s: ModelSensor, rate: int) -> None:
        """Record a length or, for rate 1, a velocity: the gear times the joint's; three for orientation servos."""
        a = self.robot.actuators[self._actuator(s)]
        for i, part in enumerate(parts_of(a) if a.orientation else (a,)):
            terms = self._along(part, rate)
            self._add_sum(s.slice.start + i, [t._replace(factor=a.gear * t.factor) for t in terms])

    def _actuator(self, s: ModelSensor) -> int:
        return [a.name for a in self.robot.actuators].index(name_of(s))

    def actuator_force(self, s: ModelSensor) -> None:
        robot, forces, number = self.robot, self.forces, self._actuator(s)
        if tuple(forces.actuators) != tuple(robot.actuators):
            raise ValueError(
                f"{robot.name}: sensor {s.name!r} measures an actuator of the file, but the simulation has other "
                "actuators; leave out actuators=, or add them to the description"
            )
        drives = self._drives(np.flatnonzero(forces.owner == number))  # a motor has another one for its friction
        for i in range(s.dim):
            self._add_sum(s.slice.start + i, drives if s.dim == 1 else drives[i : i + 1])

    def _drives(self, numbers: Iterable[int]) -> list[Term]:
        self.has_drives = True
        return [Term(self.channels.drive + int(i)) for i in numbers]

    def tendon_actuator_force(self, s: ModelSensor) -> None:
        """Record the sum of actuator forces along a tendon, before their gears."""
        on = [i for i, a in enumerate(self.forces.parts) if a.tendon == name_of(s)]
        self._add_sum(s.slice.start, self._drives(on))

    def joint_actuator_force(self, s: ModelSensor) -> None:
        """Record the sum of actuator forces on a joint, with gravity compensation by actuators, within its effort.

        In a robot with loops, only tendons of joints' coordinates count.
        """
        robot, forces, j = self.robot, self.forces, self.joints[name_of(s)]
        on = {i: a.gear for i, a in enumerate(forces.parts) if a.joint == j.name and a.at is None}
        terms = [t._replace(factor=gear) for t, gear in zip(self._drives(on), on.values(), strict=True)]
        x, dof = forces.drive_rows, j.v_slice.start
        along = np.flatnonzero((forces.drives.row >= forces.joint_rows) & forces.mapped)
        for t, row, gear in zip(self._drives(along), forces.drives.row[along], forces.drives.values[0, along], strict=True):
            if robot.closed:
                arm = x.arm[(x.length == row) & (x.joint == dof)].sum()
                terms.append(t._replace(factor=float(gear * arm)))
            else:
                terms.append(Term(t.channel, float(gear), int(row), dof))
        if j.drive_compensates and robot.model.carried:
            self.has_compensation = True
            v = robot.joints[j.index].v_slice
            terms += [Term(self.channels.compensation + i) for i in range(v.start, v.stop)]
        self._add_sum(s.slice.start, terms, j.efforts)

    def limit(self, s: ModelSensor, rate: int) -> None:
        """Record the violation of a limit, or the outward velocity there."""
        x: Any = self.robot.tendons[name_of(s)] if s.kind in OF_TENDONS else self.joints[name_of(s)]
        channel: Any = self._length_channel if s.kind in OF_TENDONS else self._joint_channel
        self._add(LimitSensors, s.slice.start, channel(x, 0), channel(x, 1) if rate else NONE, x.lower, x.upper)

    def limit_force(self, s: ModelSensor) -> None:
        forces, rows = self.forces, self.stage.rows
        if s.kind in OF_TENDONS:
            names = [t.name for t in forces.tendons]
            row = forces.joint_rows + names.index(name_of(s)) if name_of(s) in names else NONE
        else:
            row = self.joints[name_of(s)].v_slice.start
        found = np.flatnonzero((rows.dof == row) & ~rows.friction)
        self._add_sum(s.slice.start, [Term(self.channels.impulse + int(k), 1.0 / self.step) for k in found])

    def clock(self, s: ModelSensor) -> None:
        self._add_sum(s.slice.start, [Term(self.channels.time)])

    # frames

    def frame(self, s: ModelSensor) -> None:
        """Record a motion. Quaternions are those of cameras as if fixed to their bodies."""
        quantity, axes = FRAME_KINDS[s.kind]
        on, reference = (None, None) if quantity == QUATERNION else (s.sensor.on, s.sensor.reference)
        if quantity in (LINEAR_ACCELERATION, ANGULAR_ACCELERATION):
            needed = {"then": ACCELERATING}
        else:
            needed = {"now": MOVING if quantity in (LINEAR_VELOCITY, ANGULAR_VELOCITY) else PLACED}
        frame = self.number(s.frame, on, **needed)
        other = self.number(s.reference, reference, **needed)
        number = {"frame": frame, "reference": other, "world": 0}[axes]
        self._add(FrameSensors, quantity, s.slice.start, frame, other, number, s.sensor.field)

    def pixel(self, s: ModelSensor) -> None:
        """Record the pixel (column, row) of a site in a camera's picture."""
        camera = self.camera(s.sensor.reference)
        width, height = camera.resolution or (1, 1)
        ends = self.number(s.frame, now=PLACED), self.number(s.reference, s.sensor.reference, now=PLACED)
        self._add(PixelSensors, s.slice.start, *ends, focal_length(camera), (0.5 * width, 0.5 * height))

    def inside(self, s: ModelSensor) -> None:
        ends = self.number(s.frame, s.sensor.on, now=PLACED), self.number(s.reference, s.sensor.reference, now=PLACED)
        self._add(InsideSensors, s.slice.start, *ends)
        self._zones[InsideSensors].append(s.sensor.zone)

    def touch(self, s: ModelSensor) -> None:
        link = s.frame.body if s.frame is not None else None
        if s.sensor.zone is not None and link in self.links:
            self._add(TouchSensors, s.slice.start, self.number(s.frame, then=PLACED), self.links[link])
            self._zones[TouchSensors].append(s.sensor.zone)

    # subtrees of bodies

    def subtree(self, s: ModelSensor, which: int) -> None:
        self.now = max(self.now, MOVING if which else PLACED)
        self._add_column(SubtreeSensors, 3, which, s, self._range_of(s.parts))

    def load(self, s: ModelSensor, which: int) -> None:
        """Record a force or, for 1, a torque on a subtree."""
        links = tuple(link for p in s.parts if p.body is None or not p.whole for link in p.links)
        frame = self.number(s.frame, then=ACCELERATING)
        self._add_column(LoadSensors, 2, which, s, (frame, *self._range_of(s.parts), *self._range_of_links(links)))

    def _add_column(self, kind: type, columns: int, which: int, s: ModelSensor, rest: tuple[int, ...]) -> None:
        """Record one of several quantities, in a record of the others if there is one."""
        for row in self._rows.setdefault(kind, []):
            if tuple(row[columns:]) == rest and row[which] == NONE:
                row[which] = s.slice.start
                return
        self._rows[kind].append([*(s.slice.start if k == which else NONE for k in range(columns)), *rest])

    # shapes

    def ray(self, s: ModelSensor) -> None:
        """Note the frame of rays, which the loop does not measure."""
        self.number(s.frame, s.sensor.on, now=PLACED)

    def contact(self, s: ModelSensor) -> None:
        """Note the frame of a volume of contacts, which the loop does not measure."""
        self.number(s.frame, then=PLACED)


RECORDS: dict[SensorKind, Callable[[SensorPlan, ModelSensor], None]] = {
    **dict.fromkeys(FRAME_KINDS, SensorPlan.frame),
    K.CAMPROJECTION: SensorPlan.pixel,
    K.INSIDESITE: SensorPlan.inside,
    K.TOUCH: SensorPlan.touch,
    K.FORCE: partial(SensorPlan.load, which=0),
    K.TORQUE: partial(SensorPlan.load, which=1),
    K.SUBTREECOM: partial(SensorPlan.subtree, which=0),
    K.SUBTREELINVEL: partial(SensorPlan.subtree, which=1),
    K.SUBTREEANGMOM: partial(SensorPlan.subtree, which=2),
    K.JOINTPOS: partial(SensorPlan.of_joint, rate=0),
    K.JOINTVEL: partial(SensorPlan.of_joint, rate=1),
    K.BALLQUAT: SensorPlan.ball_quaternion,
    K.BALLANGVEL: partial(SensorPlan.of_joint, rate=1),
    K.TENDONPOS: partial(SensorPlan.of_tendon, rate=0),
    K.TENDONVEL: partial(SensorPlan.of_tendon, rate=1),
    K.ACTUATORPOS: partial(SensorPlan.of_actuator, rate=0),
    K.ACTUATORVEL: partial(SensorPlan.of_actuator, rate=1),
    K.ACTUATORFRC: SensorPlan.actuator_force,
    K.TENDONACTUATORFRC: SensorPlan.tendon_actuator_force,
    K.JOINTACTUATORFRC: SensorPlan.joint_actuator_force,
    K.JOINTLIMITPOS: partial(SensorPlan.limit, rate=0),
    K.JOINTLIMITVEL: partial(SensorPlan.limit, rate=1),
    K.JOINTLIMITFRC: SensorPlan.limit_force,
    K.TENDONLIMITPOS: partial(SensorPlan.limit, rate=0),
    K.TENDONLIMITVEL: partial(SensorPlan.limit, rate=1),
    K.TENDONLIMITFRC: SensorPlan.limit_force,
    K.CLOCK: SensorPlan.clock,
}
"""How the kinds are recorded that the compiled loop measures. `MEASURES` of `sensor_measures` has the others."""

NOTED: dict[SensorKind, Callable[[SensorPlan, ModelSensor], None]] = {
    K.RANGEFINDER: SensorPlan.ray,
    K.CONTACT: SensorPlan.contact,
}
QUATERNIONS = (K.BALLQUAT, K.FRAMEQUAT)
DIRECTIONS = (K.FRAMEXAXIS, K.FRAMEYAXIS, K.FRAMEZAXIS, K.NORMAL)
NOT_CLIPPED = (*QUATERNIONS, *DIRECTIONS, K.FROMTO, K.CONTACT)
OF_TENDONS = K.TENDONLIMITPOS, K.TENDONLIMITVEL, K.TENDONLIMITFRC


def stacked(kind: Any, rows: Sequence[Any]) -> Any:
    """Return records from rows with the fields of one."""
    columns = zip(*rows, strict=True) if rows else [()] * len(kind._fields)
    arrays = {}
    for (name, hint), column in zip(get_type_hints(kind).items(), columns, strict=True):
        axes, dtype = (get_args(x) for x in get_args(hint))
        arrays[name] = np.array(column, *dtype) if rows else np.zeros([0] * len(axes), *dtype)
    return kind(**arrays)


def name_of(s: ModelSensor) -> str:
    """Return the joint, tendon or actuator of a sensor."""
    assert s.sensor.on is not None
    assert s.sensor.on.name is not None
    return s.sensor.on.name


def focal_length(c: Camera) -> tuple[float, float]:
    """Return focal lengths of a camera [pixels], for columns and rows."""
    width, height = c.resolution or (1, 1)
    if c.sensor is not None:
        return c.sensor.focal[0] / c.sensor.size[0] * width, c.sensor.focal[1] / c.sensor.size[1] * height
    angle = np.radians(c.field_of_view) if c.orthographic else c.field_of_view  # MuJoCo interprets the height as degrees
    return (0.5 / np.tan(0.5 * angle) * height,) * 2


def parameters_of(part: CarriedPart) -> tuple[float, ...]:
    """Return the inertial parameters (10,) of a part, in the order of `Robot.inertial_parameters`."""
    mass, moment, (xx, xy, xz, yy, yz, zz) = part.inertia
    return (mass, *moment, xx, xy, yy, xz, yz, zz)
