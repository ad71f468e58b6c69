"""Records of sensors for the compiled loop: what each sensor measures, by numbers of frames, channels and bodies.

A channel is a number that several kinds of sensors read, such as a coordinate, a velocity or the force of a drive.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from ...array_types import Array, Booleans, IntegerMatrix, Integers, Matrix, Tensor, Tensor4, Vector
from ...collision.rays import RayShapes, ray_and_shape
from ...collision.shape_parts import KINDS
from ...collision.triples import Triple
from ...engine.loops.kernels import MachineCall, compiled
from ...model.types import SensorZone, ShapeType
from ..forces.drive_inputs import DriveLaws
from ..forces.implicit_drives import DriveWork
from ..forces.laws import Drives

NONE = -1
HALVED = {ShapeType.BOX: (0.5, 0.5, 0.5), ShapeType.CYLINDER: (1.0, 0.5), ShapeType.CAPSULE: (1.0, 0.5)}  # sizes of zones


class FrameSensors(NamedTuple):
    """Quantities of frames relative to references, in the axes of a third frame."""

    quantity: Integers  # (n,) see `loop`
    column: Integers  # (n,) of the first reading
    frame: Integers  # (n,) numbers of frames
    reference: Integers
    axes: Integers
    link: Integers  # (n,) of the frame, among links that may touch
    field: Matrix  # (n, 3) magnetic
    focal: Matrix  # (n, 2) [pixels] of the picture of a reference that is a camera
    center: Matrix  # (n, 2) [pixels]


class SumSensors(NamedTuple):
    """Sums of terms, within bounds."""

    column: Integers  # (n,)
    first: Integers  # (n,) range of the terms
    stop: Integers
    lower: Vector
    upper: Vector


class Terms(NamedTuple):
    """Products of a factor and a channel and, for terms with a row, an entry of S at the start of the last step."""

    channel: Integers  # (n,)
    factor: Vector
    row: Integers  # NONE for no entry
    dof: Integers


class LimitSensors(NamedTuple):
    """Violations of limits: distances, or outward velocities for those with a rate."""

    column: Integers  # (n,)
    coordinate: Integers  # channel
    rate: Integers  # channel, or NONE
    lower: Vector
    upper: Vector


class SubtreeSensors(NamedTuple):
    """Motions of subtrees, and loads on subtrees from outside, at a frame and in its axes."""

    quantity: Integers  # (n,) see `loop`
    column: Integers  # of the motion or the force, or NONE
    torque: Integers  # column, or NONE
    frame: Integers
    first: Integers  # range of the parts
    stop: Integers
    first_link: Integers  # range of the links of incomplete bodies
    stop_link: Integers


class Parts(NamedTuple):
    """Parts of subtrees. A number is NONE where there is none."""

    frame: Integers  # (n,) of the body
    touching: Integers  # (n,) number of a whole body among those that may touch
    pushed: Integers  # (n,) number of the body on which forces of the user act
    varied: Integers  # (n,) number of the body whose parameters `vary` replaces
    parameters: Matrix  # (n, 10) inertial parameters


class TurningJoints(NamedTuple):
    """Floating and planar joints, whose linear velocities are stepped in the axes of the start (see `integration`)."""

    planar: Booleans  # (n,)
    q: Integers  # (n,) first coordinate
    v: Integers  # (n,) first velocity


class Channels(NamedTuple):
    """The first channels of quantities."""

    time: int
    q: int  # of all joints
    v: int
    impulse: int  # of joint rows
    drive: int  # forces before gears
    compensation: int  # gravity compensation
    length: int  # of tendons, and lengths along which drives at frames act
    length_rate: int
    end: int


class SensorRecords(NamedTuple):
    """The sensors of a robot, by what they measure."""

    frames: FrameSensors
    zones: RayShapes  # volumes of `frames`
    sums: SumSensors
    terms: Terms
    limits: LimitSensors
    subtrees: SubtreeSensors
    parts: Parts
    links: Integers  # of `SubtreeSensors`
    sides: IntegerMatrix  # (candidates, 2) links of possible contacts
    turning: TurningJoints
    channels: Channels
    gravity: Vector  # (3,) [m/s²]
    step: float  # [s]
    reads_contacts: bool
    reads_drives: bool


class Instant(NamedTuple):
    """Robots at an instant, with the motion of their sensors' frames in the world's axes."""

    q: Matrix  # (robots, nq)
    v: Matrix  # (robots, nv)
    a: Matrix  # (robots, nv)
    placement: Tensor4  # (robots, frames, 4, 4)
    velocity: Tensor  # (robots, frames, 6) linear and angular
    acceleration: Tensor  # (robots, frames, 6) of origins as points, and angular; without gravity

    def arguments(self, order: int) -> tuple[Array, ...]:
        """Return the arguments and the results of the function of frames whose motion is needed to an order."""
        return *(self.q, self.v, self.a)[:order], *(self.placement, self.velocity, self.acceleration)[:order]


class DrivesOfStep(NamedTuple):
    """Drives in the last step."""

    drives: Drives  # with the numbers of the robot that is measured
    laws: DriveLaws
    coordinates: Matrix  # (robots, nq + lengths) at its start
    S: Tensor  # (robots, rows, nv) at its start, or no rows if these are the independent velocities
    rates: Vector  # (rows,)
    control: Vector  # (nu,)
    inputs: Vector  # (drives,)
    act_rate: Vector  # (na,)
    work: DriveWork
    ahead: float  # [s] after the start, where stiffness and damping are evaluated


class SensedFleet(NamedTuple):
    """All data of the sensors of a fleet."""

    records: SensorRecords
    now: Instant
    then: Instant  # start of the last step, with its mean acceleration; robots without a step are held still
    drives: DrivesOfStep
    spread: Tensor  # (robots, capacity, 3) impulses at contacts of robots with some that were not in the solver
    channels: Matrix  # (robots, channels)
    readings: Matrix  # (robots, nsensordata)
    joints_now: MachineCall  # q, v -> channels of all joints of a robot with loops
    frames_now: MachineCall  # see `Instant.arguments`
    frames_then: MachineCall


def zones_of(zones: Sequence[SensorZone]) -> RayShapes:
    """Return volumes, in the frames of sensors, as shapes that rays hit."""
    n, none = len(zones), np.zeros(0)
    sizes = [[*(x * s for x, s in zip(z.size, HALVED.get(z.type, (1.0, 1.0, 1.0)), strict=False)), 0.0, 0.0][:3] for z in zones]
    numbers = np.array([KINDS[z.type] for z in zones], np.int64), np.zeros(n, np.int64), np.array(sizes, float).reshape(-1, 3)
    return RayShapes(*numbers, np.zeros((n, 4)), np.zeros((n, 4), np.int64), np.zeros((n, 6)), np.zeros((0, 9)), none)


def is_met(zones: RayShapes, k: int, p: Triple, d: Triple) -> bool:
    """Return whether a ray from p along a unit vector d, in the frame of a zone, hits it or starts inside."""
    return ray_and_shape(p, d, zones, k) < inf


def is_inside(zones: RayShapes, k: int, p: Triple) -> bool:
    """Return whether a point in the frame of a zone, which is convex, is inside it or on its surface."""
    return is_met(zones, k, p, (0.0, 0.0, 1.0)) and is_met(zones, k, p, (0.0, 0.0, -1.0))


@compiled
def are_inside(zones: RayShapes, points: Matrix, inside: Booleans) -> None:
    """Write whether points (n, 3) are inside of the first zone."""
    for i in range(len(points)):
        inside[i] = is_inside(zones, 0, (points[i, 0], points[i, 1], points[i, 2]))
