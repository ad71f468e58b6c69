"""Records of sensors for the compiled loop: what each sensor measures, by numbers of frames, channels and bodies.

A channel is a number that several kinds of sensors read, such as a coordinate, a velocity or the force of a drive.
"""

from __future__ import annotations

from typing import NamedTuple

from ..array_types import Array, Booleans, IntegerMatrix, Integers, Matrix, Tensor, Tensor4, Vector
from ..engine.loops.kernels import MachineCall
from .drive_inputs import DriveLaws
from .forces import Drives
from .sensor_zones import Zones

POSITION, AXIS_X, AXIS_Y, AXIS_Z, LINEAR_VELOCITY, ANGULAR_VELOCITY, LINEAR_ACCELERATION, ANGULAR_ACCELERATION, FIELD = range(9)
QUATERNION = 9
NONE = -1


class FrameSensors(NamedTuple):
    """Quantities of frames relative to references, in the axes of a third frame."""

    quantity: Integers  # (n,)
    column: Integers  # (n,) of the first reading
    frame: Integers  # (n,) numbers of frames
    reference: Integers
    axes: Integers
    field: Matrix  # (n, 3) magnetic field


class PixelSensors(NamedTuple):
    """Pixels (column, row) of points in the pictures of cameras."""

    column: Integers  # (n,)
    frame: Integers
    camera: Integers  # frame of the camera
    focal: Matrix  # (n, 2) [pixels]
    center: Matrix  # (n, 2) [pixels]


class SumSensors(NamedTuple):
    """Sums of channels, within bounds."""

    column: Integers  # (n,)
    first: Integers  # (n,) range of the terms
    stop: Integers
    lower: Vector
    upper: Vector


class Terms(NamedTuple):
    """Terms of `SumSensors`: a factor times a channel, times an entry of S at the start of the last step if it has a row."""

    channel: Integers  # (n,)
    factor: Vector
    row: Integers  # NONE for no entry
    dof: Integers


class Term(NamedTuple):
    """A row of `Terms`."""

    channel: int
    factor: float = 1.0
    row: int = NONE
    dof: int = 0


class LimitSensors(NamedTuple):
    """Violations of limits: distances, or outward velocities for those with a rate."""

    column: Integers  # (n,)
    coordinate: Integers  # channel
    rate: Integers  # channel, or NONE
    lower: Vector
    upper: Vector


class BallSensors(NamedTuple):
    """Quaternions (w, x, y, z) of ball joints."""

    column: Integers  # (n,)
    channel: Integers  # of the first coordinate


class InsideSensors(NamedTuple):
    """Whether frames are inside of volumes."""

    column: Integers  # (n,)
    frame: Integers
    reference: Integers  # frame of the volume


class TouchSensors(NamedTuple):
    """Sums of normal forces of contacts of links in volumes, or whose normals point into them."""

    column: Integers  # (n,)
    frame: Integers
    link: Integers


class Parts(NamedTuple):
    """Parts of subtrees."""

    frame: Integers  # (n,) of the body
    body: Integers  # (n,) number of the moving body, NONE for the ground
    row: Integers  # (n,) of the body among those that may touch, NONE for others and for parts of bodies
    pushed: Integers  # (n,) number of the body if the user's forces act on the part, NONE otherwise
    parameters: Matrix  # (n, 10) inertial parameters
    varied: Integers  # (n,) number of the body whose parameters `vary` replaces, NONE otherwise


class SubtreeSensors(NamedTuple):
    """Motions of subtrees; a column is NONE for a quantity that is not measured."""

    center: Integers  # (n,)
    velocity: Integers
    momentum: Integers
    first: Integers  # range of the parts
    stop: Integers


class LoadSensors(NamedTuple):
    """Forces and torques on subtrees from outside, at a frame and in its axes; a column is NONE for what is not measured."""

    force: Integers  # (n,)
    torque: Integers
    frame: Integers
    first: Integers  # range of the parts
    stop: Integers
    first_link: Integers  # range of the links of incomplete bodies
    stop_link: Integers


class TurningJoints(NamedTuple):
    """Floating and planar joints, whose linear velocities are stepped in the axes of the start (see `integration`)."""

    planar: Booleans  # (n,)
    q: Integers  # (n,) first coordinate
    v: Integers  # (n,) first velocity


class Channels(NamedTuple):
    """First channels of the quantities that `SumSensors` add."""

    time: int
    q: int  # of all joints
    v: int
    impulse: int  # of joint rows
    drive: int  # forces before gears
    compensation: int  # gravity compensation
    length: int  # of tendons
    length_rate: int
    reach: int  # lengths along which drives at frames act
    reach_rate: int
    count: int


class SensorRecords(NamedTuple):
    """The sensors of a robot, by what they measure."""

    frames: FrameSensors
    pixels: PixelSensors
    sums: SumSensors
    terms: Terms
    limits: LimitSensors
    balls: BallSensors
    inside: InsideSensors
    inside_zones: Zones
    touch: TouchSensors
    touch_zones: Zones
    parts: Parts
    subtrees: SubtreeSensors
    loads: LoadSensors
    links: Integers  # links of `LoadSensors`
    sides: IntegerMatrix  # (candidates, 2) links of possible contacts
    turning: TurningJoints
    channels: Channels
    gravity: Vector  # (3,) [m/s²]
    step: float  # [s]
    driven: bool  # the step evaluates drives at its end


class Instant(NamedTuple):
    """Robots at an instant, with the motion of their sensors' frames; arrays of unused quantities have no frames."""

    q: Matrix  # (robots, nq)
    v: Matrix  # (robots, nv)
    a: Matrix  # (robots, nv)
    placement: Tensor4  # (robots, frames, 4, 4)
    velocity: Tensor  # (robots, frames, 6) linear and angular, in the world's axes
    acceleration: Tensor  # (robots, frames, 6) of origins as points, without gravity

    def arguments(self, order: int) -> tuple[Array, ...]:
        """Return the arguments and the results of the function of frames whose motion is needed to an order."""
        return *(self.q, self.v, self.a)[:order], *(self.placement, self.velocity, self.acceleration)[:order]


class DrivesOfStep(NamedTuple):
    """Drives in the last step."""

    drives: Drives
    laws: DriveLaws
    values: Tensor  # (1 or robots, 9, drives)
    coordinates: Matrix  # (robots, nq + lengths) at its start
    S: Tensor  # (robots, rows, nv) at its start, or no rows if these are the independent velocities
    rates: Vector  # (rows,)
    control: Vector  # (nu,)
    inputs: Vector  # (drives,)
    act_rate: Vector  # (na,)
    law: Vector  # (drives,)
    joint_rows: int


class SensedFleet(NamedTuple):
    """All data of the sensors of a fleet."""

    records: SensorRecords
    now: Instant
    then: Instant  # start of the last step, with its mean acceleration; robots without a step are held still
    drives: DrivesOfStep
    spread: Tensor  # (robots, room, 3) impulses of contacts of robots with some that are not in the solver
    channels: Matrix  # (robots, channels)
    readings: Matrix  # (robots, nsensordata)
    joints_now: MachineCall  # q, v -> channels of all joints of a robot with loops
    frames_now: MachineCall  # q, v, a -> placement, velocity, acceleration
    frames_then: MachineCall
