"""Cameras and sensors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from ...checks import checked
from .actuators import SampleInterpolation
from .bodies import ShapeType
from .frames import Pose, PoseLike, VectorLike


class CameraMode(StrEnum):
    """Modes of a camera's motion. The start is the initial configuration of the robot's file."""

    FIXED = "fixed"  # fixed to its body
    TRACK = "track"  # follows the origin of its body; offset and orientation in the world are those of the start
    TRACKCOM = "trackcom"  # follows the centre of mass of the subtree of its body
    TARGETBODY = "targetbody"  # moves with its body and looks at the origin of the target, upright
    TARGETBODYCOM = "targetbodycom"  # looks at the centre of mass of the target's subtree


@checked
class CameraSensor(NamedTuple):
    """The sensor of a camera: lengths [m] along the width and the height of the image."""

    size: tuple[float, float]
    focal: tuple[float, float]
    principal: tuple[float, float] = (0.0, 0.0)  # offset of the sensor's centre from the axis


@checked
@dataclass(frozen=True, slots=True)
class Camera:
    """A camera on a link of the file, or on the ground (None or WORLD).

    It looks along -z of its frame; x points right and y up in its image, as in MuJoCo. `field_of_view` [rad] extends from the
    bottom to the top of the image.
    """

    name: str
    body: str | None
    placement: PoseLike = Pose()
    field_of_view: float = math.pi / 4
    mode: CameraMode | Any = CameraMode.FIXED
    target: str | None = None  # a link or the ground, for modes with a target
    sensor: CameraSensor | None = None  # determines the field of view, if the file gives it
    resolution: tuple[int, int] | None = None  # (width, height) of its images, if the file gives it
    orthographic: bool = False  # field_of_view is then a length [m]

    @property
    def has_target(self) -> bool:
        """True if the camera turns to look at its target."""
        return self.mode in (CameraMode.TARGETBODY, CameraMode.TARGETBODYCOM)


class SensorKind(StrEnum):
    """Kinds of sensors, named as their elements in MJCF."""

    TOUCH = "touch"
    ACCELEROMETER = "accelerometer"
    VELOCIMETER = "velocimeter"
    GYRO = "gyro"
    FORCE = "force"
    TORQUE = "torque"
    MAGNETOMETER = "magnetometer"
    RANGEFINDER = "rangefinder"
    CAMPROJECTION = "camprojection"
    CONTACT = "contact"
    JOINTPOS = "jointpos"
    JOINTVEL = "jointvel"
    ACTUATORPOS = "actuatorpos"
    ACTUATORVEL = "actuatorvel"
    ACTUATORFRC = "actuatorfrc"
    JOINTACTUATORFRC = "jointactuatorfrc"
    BALLQUAT = "ballquat"
    BALLANGVEL = "ballangvel"
    JOINTLIMITPOS = "jointlimitpos"
    JOINTLIMITVEL = "jointlimitvel"
    JOINTLIMITFRC = "jointlimitfrc"
    TENDONPOS = "tendonpos"
    TENDONVEL = "tendonvel"
    TENDONACTUATORFRC = "tendonactuatorfrc"
    TENDONLIMITPOS = "tendonlimitpos"
    TENDONLIMITVEL = "tendonlimitvel"
    TENDONLIMITFRC = "tendonlimitfrc"
    FRAMEPOS = "framepos"
    FRAMEQUAT = "framequat"
    FRAMEXAXIS = "framexaxis"
    FRAMEYAXIS = "frameyaxis"
    FRAMEZAXIS = "framezaxis"
    FRAMELINVEL = "framelinvel"
    FRAMEANGVEL = "frameangvel"
    FRAMELINACC = "framelinacc"
    FRAMEANGACC = "frameangacc"
    SUBTREECOM = "subtreecom"
    SUBTREELINVEL = "subtreelinvel"
    SUBTREEANGMOM = "subtreeangmom"
    INSIDESITE = "insidesite"
    DISTANCE = "distance"
    NORMAL = "normal"
    FROMTO = "fromto"
    E_POTENTIAL = "e_potential"
    E_KINETIC = "e_kinetic"
    CLOCK = "clock"


class SensedKind(StrEnum):
    """Kinds of objects that carry a sensor or serve as its reference, named as in MJCF."""

    BODY = "body"  # the inertial frame of a body: its centre of mass and principal axes
    XBODY = "xbody"  # the body's frame
    GEOM = "geom"  # a shape
    SITE = "site"  # a frame of the description
    CAMERA = "camera"
    SUBTREE = "subtree"  # a body and its descendants ("contact")
    JOINT = "joint"
    TENDON = "tendon"
    ACTUATOR = "actuator"


@checked
class Sensed(NamedTuple):
    """An object that carries a sensor or serves as its reference; a body without a name is the ground."""

    kind: SensedKind | Any
    name: str | None


@checked
class SensorZone(NamedTuple):
    """A volume in the frame of a sensor; sizes are those of shapes."""

    type: ShapeType | Any
    size: tuple[float, ...]


class SensorField(StrEnum):
    """Data of a contact ("contact") or of a ray ("rangefinder"), named as in MJCF."""

    FOUND = "found"  # number of matching contacts; 0 in an empty slot
    FORCE = "force"  # [N] on the second shape, in the contact's frame: along its normal and two tangents
    TORQUE = "torque"  # [N m] as FORCE
    DIST = "dist"  # [m] between the surfaces, negative where they overlap; or along a ray, -1 without a hit
    DIR = "dir"  # unit vector along a ray with a hit, in the world
    ORIGIN = "origin"  # [m] origin of a ray, in the world
    POINT = "point"  # [m] point where a ray hits a surface, in the world
    POS = "pos"  # [m] position of a contact, in the world
    NORMAL = "normal"  # unit vector in the world: from the first shape to the second; for a ray, outward from the surface
    TANGENT = "tangent"  # unit vector in the world: first tangent of a contact
    LINVEL = "linvel"  # [m/s] of the second shape relative to the first at the contact, in the contact's frame
    ANGVEL = "angvel"  # [rad/s] as LINVEL
    DEPTH = "depth"  # [m] of the hit point in front of the camera, or along the ray of a site; -1 without a hit


class ContactReduction(StrEnum):
    """Rules by which a sensor selects from all matching contacts, named as in MJCF."""

    NONE = "none"  # the first
    MINDIST = "mindist"  # the deepest
    MAXFORCE = "maxforce"  # the contacts with the greatest forces
    NETFORCE = "netforce"  # one contact with the total wrench, in the world's axes


@checked
class SensorSampling(NamedTuple):
    """Samples from which a sensor's readings are computed: each reading is the value `delay` [s] before.

    With a `period` [s], samples are taken at this interval, otherwise in each step. `phase` in (-period, 0] is the time of the
    last sample before a simulation starts; 0 stands for -period.
    """

    samples: int  # number of samples that are kept
    delay: float = 0.0
    period: float = 0.0
    phase: float = 0.0
    interpolation: SampleInterpolation | Any = SampleInterpolation.HOLD


@checked
@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor of the file; kinds have MuJoCo's meaning (chapter "sensor" of MuJoCo's XML reference).

    Readings are clipped to ±`cutoff`, in the sensor's unit, if that is positive. `noise` is the standard deviation in the
    file.
    """

    name: str
    kind: SensorKind | Any
    on: Sensed | None = None
    reference: Sensed | None = None  # reference of a frame; second object of a distance or of contacts; site of
    # "insidesite"; the camera of "camprojection"
    cutoff: float = 0.0
    noise: float = 0.0
    zone: SensorZone | None = None  # in which contacts count ("touch", "contact"), or that contains it ("insidesite")
    field: VectorLike = (0.0, 0.0, 0.0)  # the magnetic field in the world ("magnetometer")
    data: tuple[SensorField | Any, ...] = ()  # of each contact (default "found") or ray (default "dist")
    slots: int = 1  # of contacts ("contact")
    reduction: ContactReduction | Any = ContactReduction.NONE  # of contacts ("contact")
    sampling: SensorSampling | None = None  # if readings are delayed or not taken in each step
