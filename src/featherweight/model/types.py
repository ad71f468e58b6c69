"""The contents of a robot file, as small frozen types: bodies, joints and frames, before any algorithm sees them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from ..spatial import Vec3
from ..summaries import summarized
from .contact_rules import DEFAULT_SOFTNESS, ContactPair, NeighbourRule, Softness
from .servos import DCMotor, OrientationServo, Range, Servo

Vector = tuple[float, float, float]
Matrix = tuple[Vector, Vector, Vector]
Color = tuple[float, float, float, float]  # red, green, blue, opacity in 0..1

DTYPE = "dtype"  # in the metadata of a field that stays an array: as tuples, a mesh is slow and large


class ModelError(ValueError):
    """A robot description that is damaged, inconsistent, or not supported. The message names file and element."""


class ModelWarning(UserWarning):
    """A robot description that is used as it is, but that no robot can have. The message names file and element."""


class JointType(StrEnum):
    """The joints a robot may have; `continuous` is a revolute joint without limits."""

    REVOLUTE = "revolute"
    CONTINUOUS = "continuous"
    PRISMATIC = "prismatic"
    FIXED = "fixed"
    FLOATING = "floating"
    SPHERICAL = "spherical"
    PLANAR = "planar"

    @property
    def nq(self) -> int:
        """Length of its configuration."""
        return {"fixed": 0, "floating": 7, "spherical": 4, "planar": 4}.get(self.value, 1)

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return {"fixed": 0, "floating": 6, "spherical": 3, "planar": 3}.get(self.value, 1)

    @property
    def rotation(self) -> int:
        """How many of its last coordinates are a quaternion, or a cosine and sine, of unit length."""
        return {"floating": 4, "spherical": 4, "planar": 2}.get(self.value, 0)


class Pose(NamedTuple):
    """A frame in another: orientation (columns are its axes) and origin [m]."""

    R: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    p: Vector = (0.0, 0.0, 0.0)

    def __matmul__(self, other: Pose) -> Pose:
        """The pose of `other`'s frame, which is given in this one, in this one's parent."""
        return Pose(matmul(self.R, other.R), add(rotate(self.R, other.p), self.p))

    def inverse(self) -> Pose:
        T = transpose(self.R)
        return Pose(T, scale(-1.0, rotate(T, self.p)))

    @staticmethod
    def of(placement: Any, what: str) -> Pose:
        """The pose that a homogeneous matrix (4, 4) is, or a pose, of plain numbers; raises ValueError, with `what`, for no
        rigid motion."""
        if isinstance(placement, Pose):
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = placement
        else:
            T = real_array(placement, what)
        if T.shape != (4, 4) or not np.isfinite(T).all():
            raise ValueError(f"{what} must be a homogeneous matrix (4, 4) of finite numbers; got shape {T.shape}")
        R = T[:3, :3]
        rotation = as_matrix(R)
        x, y, z = (Vec3(*row) for row in rotation)
        square = np.allclose(matmul(rotation, transpose(rotation)), np.eye(3), atol=1e-9)
        if not square or x.dot(y.cross(z)) < 0.0 or not np.array_equal(T[3], [0, 0, 0, 1]):
            raise ValueError(f"{what} must be a rotation and a translation, with 0, 0, 0, 1 as its last row")
        return Pose(rotation, as_vector(T[:3, 3]))


class Inertia(NamedTuple):
    """Mass [kg], centre of mass [m], and rotational inertia about that centre (xx, xy, xz, yy, yz, zz) [kg m²], in one
    frame."""

    mass: float = 0.0
    center: Vector = (0.0, 0.0, 0.0)
    rotational: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Body:
    """A link of the file."""

    name: str
    inertia: Inertia = Inertia()
    principal: Matrix | None = None  # principal axes of the inertia, as columns, where the file gives them
    gravity_compensation: float = 0.0  # the part of its weight that simulations carry, at its centre of mass


class Fluid(NamedTuple):
    """The fluid that a robot moves in: density [kg/m³], viscosity [Pa s], and its own velocity [m/s] in the world."""

    density: float = 0.0
    viscosity: float = 0.0
    wind: Vector = (0.0, 0.0, 0.0)


class FluidCoefficients(NamedTuple):
    """Coefficients of the forces of a fluid on a shape, taken as the ellipsoid with its extents.

    The first five are MJCF's `fluidcoef`. A fluid of density 1 that moves along with the shape has the mass `added_mass` along
    each axis of the shape, and the inertia `added_inertia` about it.
    """

    blunt_drag: float = 0.5
    slender_drag: float = 0.25
    angular_drag: float = 1.5
    kutta_lift: float = 1.0
    magnus_lift: float = 1.0
    added_mass: Vector = (0.0, 0.0, 0.0)  # [m³]
    added_inertia: Vector = (0.0, 0.0, 0.0)  # [m⁵]


NO_POLY = (0.0, 0.0)
"""Further coefficients of springs and dampers that are linear."""


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint of the file.

    At zero the child's frame lies at `placement` in the parent's frame. `axis` is a unit vector in the child's frame
    (revolute, continuous, prismatic: along it; planar: normal to the plane). `anchor` is the point of the child's frame
    that a revolute or spherical joint turns about.

    Springs and dampers are polynomials, as MJCF's. That of a spring of a spherical joint is one of the angle of its rotation;
    a floating joint has two of the same stiffness, one of its displacement, and one of that angle. That of a damper is one of
    each component of its velocity. Dry friction and dampers of a floating joint act along the axes of its place in the parent,
    and about those of the child.
    """

    name: str
    type: JointType
    parent: str | None  # body, or the ground: None, or WORLD
    child: str
    placement: Pose = Pose()
    axis: Vector = (0.0, 0.0, 1.0)
    anchor: Vector = (0.0, 0.0, 0.0)
    armature: float = 0.0  # reflected rotor inertia, added to the diagonal of the mass matrix
    lower: float = -math.inf
    upper: float = math.inf  # of a spherical joint: the greatest angle of its rotation from zero
    zero: float = 0.0  # the file's coordinate at which the child lies at `placement` (MJCF `ref`)
    damping: float = 0.0  # joint force per velocity [N m s/rad, N s/m]
    friction: float = 0.0  # the greatest force of dry friction [N m, N]
    stiffness: float = 0.0  # of a spring [N m/rad, N/m]
    rest: float = 0.0  # coordinate at which the spring is at rest
    effort: float = math.inf  # the greatest force of the joint's drive [N m, N]
    velocity: float = math.inf  # the greatest velocity [rad/s, m/s]; files write 0 for one that they do not know
    limit_softness: Softness = DEFAULT_SOFTNESS
    friction_softness: Softness = DEFAULT_SOFTNESS
    effort_range: tuple[float, float] | None = None  # least and greatest force of the drive, where these are not ±effort
    drive_compensates: bool = False  # whether the drive carries what gravity compensation carries, within its effort
    damping_poly: tuple[float, float] = NO_POLY  # b, c of the force damping v + b |v| v + c v³ [N m s²/rad², N m s³/rad³, ...]
    stiffness_poly: tuple[float, float] = NO_POLY  # b, c of stiffness x + b x² + c x³ for x from `rest` [N m/rad², ...]
    rest_pose: tuple[
        float, ...
    ] = ()  # (x, y, z, qx, qy, qz, qw) at which the spring of a floating joint is at rest; or at zero


class LoopType(StrEnum):
    """Types of loop joints, by the motion left free between the two frames that they join; the z axes are the joint's axis."""

    REVOLUTE = "revolute"  # turning about z
    SPHERICAL = "spherical"  # turning
    WELD = "weld"  # nothing
    PRISMATIC = "prismatic"  # sliding along z
    CYLINDRICAL = "cylindrical"  # turning about z and sliding along it
    UNIVERSAL = "universal"  # turning about z of the predecessor's frame and x of the successor's, which stay perpendicular
    PLANAR = "planar"  # sliding along x and y, and turning about z


@dataclass(frozen=True, slots=True)
class Loop:
    """A joint that closes a loop: a frame on one body, and a frame on another that it holds on the first."""

    name: str
    type: LoopType
    predecessor: str | None  # body, or the ground: None, or WORLD
    successor: str | None  # likewise
    predecessor_frame: Pose = Pose()
    successor_frame: Pose = Pose()
    softness: Softness = DEFAULT_SOFTNESS  # where equalities are compliant
    torque_scale: float = 1.0  # MJCF's: of a weld's rotation, by which it counts beside its displacement [m]


class LengthTie(NamedTuple):
    """Two lengths, sums of coefficient × coordinate over (joint, coefficient): the first less its rest is a polynomial of the
    second less its own."""

    first: tuple[tuple[str, float], ...]
    second: tuple[tuple[str, float], ...]
    rests: tuple[float, float]
    coefficients: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Coupling:
    """A joint whose coordinate follows those of others: offset + sum of c1 q + c2 q² + ... over `terms`.

    All joints have one degree of freedom. `terms` are (joint, (c1, c2, ...)); a gear has one coefficient, its ratio.
    """

    name: str
    joint: str
    terms: tuple[tuple[str, tuple[float, ...]], ...]
    offset: float = 0.0
    softness: Softness = DEFAULT_SOFTNESS  # where equalities are compliant
    tie: LengthTie | None = None  # what the file says, of a coupling that comes from lengths


@dataclass(frozen=True, slots=True)
class Closure:
    """Constraints of one's own: `function(q)` is zero, for the coordinates q of `joints`, which have one each.

    The function takes an array of numbers, or of symbolic ones, and returns a sequence; arithmetic, numpy.sin, numpy.cos and
    numpy.sqrt work on them, comparisons do not.
    """

    name: str
    joints: tuple[str, ...]
    function: Callable[[Any], Sequence[Any]]


STILL = (0.0,) * 6


class ShapeType(StrEnum):
    """Geometries of bodies, in frames of their own; `size` [m] of each in brackets."""

    SPHERE = "sphere"  # (radius), zero for a point
    BOX = "box"  # (length along x, y, z)
    CYLINDER = "cylinder"  # (radius, length along z)
    CAPSULE = "capsule"  # (radius, length of its cylinder along z, without the caps)
    ELLIPSOID = "ellipsoid"  # (radius along x, y, z)
    PLANE = "plane"  # (), normal along z
    MESH = "mesh"  # (scale along x, y, z)
    HEIGHTFIELD = "heightfield"  # (length along x, y, depth of its base below z = 0)


@summarized
@dataclass(frozen=True, slots=True)
class Shape:
    """A shape that a file draws for a body, or lets touch others.

    A mesh is a file (`path`), or `vertices` (n, 3) and `faces` (k, 3) of triangles, to be scaled by `size`; without
    faces it is the convex hull of the vertices. `heights` (nx, ny) [m] of a height field are the heights above z = 0 at the
    points of a regular grid over its lengths; the frame is in the middle of the grid. All three are arrays, and == does not
    compare them.
    """

    name: str
    body: str | None  # link of the file, or the ground: None, or WORLD; in a robot: its moving body, or None
    type: ShapeType
    size: tuple[float, ...]
    placement: Pose = Pose()
    visual: bool = True
    collision: bool = True
    color: Color | None = None
    friction: float | None = None  # Coulomb's coefficient, where the file has one; as below, see `touching_pairs`
    path: str | None = None
    vertices: Any = field(default=None, compare=False, metadata={DTYPE: np.float64})
    faces: Any = field(default=None, compare=False, metadata={DTYPE: np.int64})
    contype: int = 1  # MJCF's: of two shapes that may touch, one's contype
    conaffinity: int = 1  # and the other's conaffinity have a bit in common
    condim: int = 3  # MJCF's: 1 without friction, 3 with; 4 and 6 with friction against spinning and rolling, too
    margin: float = 0.0  # [m] of the gap to another shape, at which the two touch already
    priority: int = 0  # of two shapes, that of higher priority says friction and condim
    heights: Any = field(default=None, compare=False, metadata={DTYPE: np.float64})
    softness: Softness = DEFAULT_SOFTNESS
    turning_friction: tuple[float, float] = (0.005, 0.0001)  # [m] against spinning (condim 4, 6) and rolling (condim 6)
    surface_velocity: tuple[float, ...] = STILL  # [m/s, rad/s] over its body: linear at the origin, angular, in its frame
    adhesion: float = 0.0  # [N] by which each contact pulls; those of two shapes are added
    gap: float = 0.0  # [m] beyond the margin, across which adhesion pulls; those of two shapes are added
    fluid: FluidCoefficients | None = None  # of a primitive shape; a link with such shapes has the drag of these alone


class TendonPoint(NamedTuple):
    """A point [m] in the frame of a body (None: the ground) that a tendon passes through."""

    body: str | None
    position: Vector


class TendonWrap(NamedTuple):
    """A sphere, or a cylinder about z of `placement`, of some radius [m] on a body: a tendon takes the shortest way around it.

    `side` is a point that says on which side; where it is inside, the tendon passes inside.
    """

    body: str | None
    placement: Pose
    radius: float
    cylinder: bool = False
    side: TendonPoint | None = None


class Pulley(NamedTuple):
    """The beginning of a branch of a tendon; its length counts divided by `divisor`, as do the next branches up to a pulley."""

    divisor: float


@dataclass(frozen=True, slots=True)
class Tendon:
    """A length that forces act along.

    It is the sum of coefficient × coordinate over `terms`, (joint, coefficient) each, of joints with one degree of freedom; or
    that of a string along `path`, which begins and ends with points, as each of its branches does. A spring pulls where the
    length is beyond `rest`, and pushes where it is below.
    """

    name: str
    terms: tuple[tuple[str, float], ...] = ()
    path: tuple[TendonPoint | TendonWrap | Pulley, ...] = ()
    lower: float = -math.inf  # limits of the length [m, rad]
    upper: float = math.inf
    stiffness: float = 0.0  # [N/m, N m/rad]
    rest: tuple[float, float] = (0.0, 0.0)  # lengths between which the spring is slack
    damping: float = 0.0  # [N s/m, N m s/rad]
    friction: float = 0.0  # the greatest force of dry friction [N, N m]
    force: tuple[float, float] = (-math.inf, math.inf)
    """Least and greatest sum of the forces of all drives along it, before their limits and gears: beyond, all are scaled."""
    limit_softness: Softness = DEFAULT_SOFTNESS
    friction_softness: Softness = DEFAULT_SOFTNESS
    damping_poly: tuple[float, float] = NO_POLY  # as those of `Joint`
    stiffness_poly: tuple[float, float] = NO_POLY


class ActivationType(StrEnum):
    """Laws by which the activation a of a drive follows its control u."""

    INTEGRATOR = "integrator"  # a' = u
    FILTER = "filter"  # a' = (u - a) / time_constant
    EXACT_FILTER = "exact_filter"  # likewise, solved over a step with constant u
    MUSCLE = "muscle"  # a' = (u - a) / T(u, a) for u and a from 0 to 1 (Millard et al. 2013)


@dataclass(frozen=True, slots=True)
class Activation:
    """A state of a drive, which takes the place of its control; zero at first.

    Muscles have a time constant for activation and another one for deactivation, between which they change over `smoothing`
    of u - a.
    """

    type: ActivationType
    time_constant: float = 0.0  # [s]
    deactivation: float = 0.0  # [s]
    smoothing: float = 0.0
    range: tuple[float, float] = (-math.inf, math.inf)  # that the activation is kept in
    early: bool = False  # whether the force is that of the activation after the step


@dataclass(frozen=True, slots=True)
class Muscle:
    """The force of a muscle: -peak (a FL(L) FV(V) + FP(L)), for its activation a, length L and velocity V.

    L is (length - slack) / optimum, and V the velocity over `fastest` × optimum. FL is 1 at L = 1 and 0 beyond `lengths`; FV is
    0 at V = -1, 1 at rest and `lengthening` where it lengthens fast; FP grows with the length from L = 1 on, by `passive`.
    """

    peak: float  # [N]
    optimum: float  # length [m] of greatest force
    slack: float  # length [m] that is left where L is zero
    lengths: tuple[float, float] = (0.5, 1.6)
    fastest: float = 1.5  # [1/s]
    passive: float = 1.3
    lengthening: float = 1.2
    at_rest: Muscle | None = None  # whose passive force it has, if that has other numbers


class SampleInterpolation(StrEnum):
    """Ways to read between samples, by MJCF's words."""

    HOLD = "zoh"  # the sample before
    LINEAR = "linear"
    CUBIC = "cubic"  # Catmull and Rom's spline


class ControlDelay(NamedTuple):
    """A control acts as it was so long before, read from as many samples as are kept, one of each step's beginning.

    They are zero at first. What is less than a step is one step.
    """

    time: float  # [s]
    samples: int
    interpolation: SampleInterpolation = SampleInterpolation.HOLD


class Axes(StrEnum):
    """Axes of a force or a torque: those of its frame, of its reference, or of the world."""

    FRAME = "frame"
    REFERENCE = "reference"
    WORLD = "world"


@dataclass(frozen=True, slots=True)
class FrameForce:
    """A force and a torque at a frame, `wrench` = (force, torque) for each unit of a drive's force.

    With a `reference`, the opposite acts there, and the drive's length is the displacement of the frame from it, along the
    wrench; without, the length is zero. What carries both frames feels nothing.

    With a `rod` [m] the force acts on a slider, from the reference on along the force in the reference's axes, which the rod
    joins to the frame, the pin of a crank. The drive's length is the place of the slider; its mass is none.
    """

    frame: AnyFrame
    wrench: tuple[float, float, float, float, float, float]
    reference: AnyFrame | None = None
    force_axes: Axes = Axes.FRAME
    torque_axes: Axes = Axes.FRAME
    rod: float | None = None


@dataclass(frozen=True, slots=True)
class Actuator:
    """A drive with a control u: joint force = gear × clip(gain × clip(u) + b0 + b1 gear q + b2 gear q').

    `bias` are b0, b1, b2; a position servo of stiffness kp and damping kv has gain kp and bias (0, -kp, -kv). It acts on a
    joint, whose coordinate q is, or on a tendon, whose length takes the place of q, or by a force at a frame, or by `adhesion`.

    With `slopes` g1, g2 the gain is gain + g1 gear q + g2 gear q'. With an `activation`, this takes the place of the control.
    A `muscle`, a `servo` and an `orientation` servo take the place of gain and bias. A servo has several controls; with a
    `motor`, it sets the voltage of that. An orientation servo acts at a frame with a reference.
    """

    name: str
    joint: str | None = None
    gear: float = 1.0
    gain: float = 1.0
    bias: Vector = (0.0, 0.0, 0.0)
    control: tuple[float, float] = (-math.inf, math.inf)  # least and greatest u
    force: tuple[float, float] = (-math.inf, math.inf)  # least and greatest force, before the gear
    tendon: str | None = None
    at: FrameForce | None = None
    slopes: tuple[float, float] = (0.0, 0.0)
    activation: Activation | None = None
    muscle: Muscle | None = None
    adhesion: str | None = None  # body whose contacts it pulls together, by equal parts of its force
    servo: Servo | None = None
    motor: DCMotor | None = None
    orientation: OrientationServo | None = None
    delay: ControlDelay | None = None  # of its control

    @property
    def controls(self) -> Mapping[str, Range]:
        """Names of its controls, with the range of each; where there is one, it has the actuator's name."""
        if self.orientation is not None:
            return {f"{self.name}.{axis}": self.control for axis in ("wxyz" if self.orientation.quaternion else "xyz")}
        if self.servo is not None:
            bounds = {f"{self.name}.{x}": self.servo.bounds(k) for k, x in enumerate(self.servo.inputs)}
            return bounds if len(bounds) != 1 else {self.name: self.servo.bounds(0)}
        return {self.name: self.control}


def controls_of(actuators: Iterable[Actuator]) -> dict[str, Range]:
    """Return names and ranges of the controls of actuators, in their order."""
    return {name: within for a in actuators for name, within in a.controls.items()}


@dataclass(frozen=True, slots=True)
class Frame:
    """A named frame fixed to a body, in a description, or made for a function of a robot in place of a frame's name.

    `body` is a link of the file, also one that is fixed to another; None, or WORLD, is the ground. `placement` in that link's
    frame is a pose, or a homogeneous matrix (4, 4). Raises ValueError for a matrix that is no rigid motion.
    """

    name: str
    body: str | None
    placement: Pose | Any = Pose()

    def __post_init__(self) -> None:
        given, what = self.placement, f"placement of frame {self.name!r}"
        object.__setattr__(self, "placement", plain(given) if isinstance(given, Pose) else Pose.of(given, what))


class CameraMode(StrEnum):
    """Modes of a camera's motion; the start is the configuration in which the robot's file starts."""

    FIXED = "fixed"  # with its body
    TRACK = "track"  # with the origin of its body, along the world's axes: offset and orientation are those of the start
    TRACKCOM = "trackcom"  # likewise, with the centre of mass of its body and all that it carries
    TARGETBODY = "targetbody"  # with its body, but turned to look at the origin of the target, upright
    TARGETBODYCOM = "targetbodycom"  # likewise, at the centre of mass of the target and all that it carries


class CameraSensor(NamedTuple):
    """The sensor of a camera: lengths [m] along the width and the height of the picture."""

    size: tuple[float, float]
    focal: tuple[float, float]
    principal: tuple[float, float] = (0.0, 0.0)  # by how much the middle of the sensor is off the axis


@dataclass(frozen=True, slots=True)
class Camera:
    """A camera on a link of the file, or on the ground (None, or WORLD).

    It looks along -z of its frame; x points to the right and y up in its picture, as in MuJoCo. `field_of_view` [rad] is that
    from the bottom of the picture to its top.
    """

    name: str
    body: str | None
    placement: Pose = Pose()
    field_of_view: float = math.pi / 4
    mode: CameraMode = CameraMode.FIXED
    target: str | None = None  # a link, or the ground, for the modes that have one
    sensor: CameraSensor | None = None  # which the field of view is that of, where the file gives it
    resolution: tuple[int, int] | None = None  # (width, height) of its pictures, where the file gives it
    orthographic: bool = False  # with a length [m] of what it sees in place of the field of view

    @property
    def has_target(self) -> bool:
        """Whether it turns to look at its target."""
        return self.mode in (CameraMode.TARGETBODY, CameraMode.TARGETBODYCOM)


AnyFrame = Frame | str  # a frame made for the purpose, or the name of one that the robot has


def frame_name(frame: AnyFrame) -> str:
    return frame.name if isinstance(frame, Frame) else frame


class SensorKind(StrEnum):
    """Sensors, by the names of their elements in MJCF."""

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
    """Kinds of things that a sensor is on, or relative to, by MJCF's words."""

    BODY = "body"  # the frame of a body's inertia: its centre of mass, and its principal axes
    XBODY = "xbody"  # the body's frame
    GEOM = "geom"  # a shape
    SITE = "site"  # a frame of the description
    CAMERA = "camera"
    SUBTREE = "subtree"  # a body and all that it carries ("contact")
    JOINT = "joint"
    TENDON = "tendon"
    ACTUATOR = "actuator"


class Sensed(NamedTuple):
    """A thing that a sensor is on, or relative to; a body without a name is the ground."""

    kind: SensedKind
    name: str | None


class SensorZone(NamedTuple):
    """A volume in the frame of a sensor; sizes are those of shapes."""

    type: ShapeType
    size: tuple[float, ...]


class SensorField(StrEnum):
    """Numbers of a contact ("contact") or of a ray ("rangefinder"), by MJCF's words."""

    FOUND = "found"  # how many contacts match; 0 in a slot that is empty
    FORCE = "force"  # [N] on the second, in the contact's frame: along its normal and two tangents
    TORQUE = "torque"  # [N m] likewise
    DIST = "dist"  # [m] between the surfaces, negative where they overlap; or along a ray, -1 where it meets nothing
    DIR = "dir"  # unit vector along a ray that meets something, in the world
    ORIGIN = "origin"  # [m] where a ray begins, in the world
    POINT = "point"  # [m] where a ray meets a surface, in the world
    POS = "pos"  # [m] the place of a contact, in the world
    NORMAL = "normal"  # unit vector in the world: of a contact from the first to the second; of a surface, outward
    TANGENT = "tangent"  # unit vector in the world: the first tangent of a contact
    LINVEL = "linvel"  # [m/s] of the second relative to the first at the contact, in the contact's frame
    ANGVEL = "angvel"  # [rad/s] likewise
    DEPTH = "depth"  # [m] of the point that a ray meets before its camera, or along the ray of a site; -1 for nothing


class ContactReduction(StrEnum):
    """Rules by which a sensor takes some of all contacts that match, by MJCF's words."""

    NONE = "none"  # the first
    MINDIST = "mindist"  # the deepest
    MAXFORCE = "maxforce"  # those of the greatest force
    NETFORCE = "netforce"  # one with the wrench of all, in the axes of the world


class SensorSampling(NamedTuple):
    """Samples of a sensor, of which its readings are made: each reading is that of `delay` [s] before.

    With a `period` [s] samples are taken that often, else in each step; `phase` in (-period, 0] is the time of the last one
    before a simulation starts, 0 for -period.
    """

    samples: int  # that are kept
    delay: float = 0.0
    period: float = 0.0
    phase: float = 0.0
    interpolation: SampleInterpolation = SampleInterpolation.HOLD


@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor of the file, with MuJoCo's meaning of its kind (see the chapter "sensor" of MuJoCo's XML reference).

    Readings are clipped to ±`cutoff`, in the sensor's unit, where that is above zero; `noise` is the standard deviation that
    the file has.
    """

    name: str
    kind: SensorKind
    on: Sensed | None = None
    reference: Sensed | None = None  # what a frame is relative to; the second end of a distance or of contacts; the site of
    # "insidesite"; the camera of "camprojection"
    cutoff: float = 0.0
    noise: float = 0.0
    zone: SensorZone | None = None  # where contacts count ("touch", "contact"), or what is to be inside ("insidesite")
    field: Vector = (0.0, 0.0, 0.0)  # the magnetic field in the world ("magnetometer")
    data: tuple[SensorField, ...] = ()  # of each contact, "found" unless given, or of each ray, "dist" unless given
    slots: int = 1  # of contacts ("contact")
    reduction: ContactReduction = ContactReduction.NONE  # of contacts ("contact")
    sampling: SensorSampling | None = None  # where readings are delayed, or not of each step


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration with a name: (joint, its coordinates), in the conventions of a robot's; joints left out are at zero.

    It may have coordinates of a free-flyer `root_joint`, which a robot has with base="floating", and of joints that follow
    others, which have none in a robot. `controls` are (actuator, its u); those left out are zero.
    """

    name: str
    coordinates: tuple[tuple[str, tuple[float, ...]], ...]
    controls: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of one robot file, complete and unchanged: fixed joints are kept, and the order is the file's.

    `Description` adds methods that return changed descriptions.

    `unused` says in plain words what the file holds that is not used, by kind: ("calibrations", "12 joints").
    Massless bodies between the joints of one MJCF body are named in `virtual` and are not shown to users.
    """

    name: str
    source: str  # path, for messages
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...] = ()  # beyond one for each body
    gravity: Vector = (0.0, 0.0, -9.81)
    unused: tuple[tuple[str, str], ...] = ()
    virtual: frozenset[str] = field(default_factory=frozenset)
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    closures: tuple[Closure, ...] = ()
    independent: tuple[str, ...] = ()  # joints of loops that the velocities are to be those of
    dependent: tuple[str, ...] = ()  # joints of loops that are to follow
    shapes: tuple[Shape, ...] = ()
    tendons: tuple[Tendon, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    configurations: tuple[Configuration, ...] = ()
    disabled_collisions: tuple[
        tuple[str | None, str | None], ...
    ] = ()  # pairs of links, or a link and the ground, that do not touch
    contact_pairs: tuple[ContactPair, ...] = ()  # that touch nevertheless
    neighbours: NeighbourRule = NeighbourRule.JOINED  # whose shapes do not touch
    timestep: float | None = None  # [s] of a simulation, as the file has it
    integrator: str | None = None  # and how it is to integrate, in the file's word: MJCF's "euler", "rk4", "implicit", ...
    impratio: float = 1.0  # MJCF's: impedance of friction over that of normal forces
    noslip: int = 0  # MJCF's: rounds after the contact problem, in which friction does not yield
    cone: str | None = None  # MJCF's word for cones of friction
    fluid: Fluid | None = None
    cameras: tuple[Camera, ...] = ()
    sensors: tuple[Sensor, ...] = ()


LARGEST = 1e30  # of the numbers of a description, in SI units: the sun is as heavy; products of a few do not overflow
SMALLEST_MASS = 1e-30  # [kg] of an electron: its reciprocal is no larger than other numbers
SMALLEST_INERTIA = 1e-40  # [kg m², kg] that moves with a joint: below it, reciprocals get too large
ROUNDING_RADIUS = 1e-6  # [m]: a moment below that of the mass at this distance is what rounding left behind
ROOT_JOINT = "root_joint"  # the free-flyer that base="floating" puts below the root
PYRAMIDAL = "pyramidal"  # cones of friction
START = "qpos0"  # the name of the configuration in which a robot's file starts
WORLD = "world"  # the ground, in descriptions that have no body of this name


def plain(x: Any) -> Any:
    """The same description, or part of one, with Python's numbers and tuples in place of NumPy's and lists, meshes aside."""
    kind = type(x)
    if kind in _PLAIN:
        return x
    if isinstance(x, tuple):
        if _PLAIN.issuperset(map(type, x)):
            return x
        return kind(*map(plain, x)) if hasattr(x, "_fields") else tuple(map(plain, x))
    if isinstance(x, list):
        return tuple(map(plain, x))
    if isinstance(x, (np.floating, np.integer)):
        return x.item()
    if isinstance(x, np.ndarray):
        return plain(x.tolist())
    if is_dataclass(kind):
        return kind(**{name: _plain_field(getattr(x, name), dtype) for name, dtype in _dtypes(kind)})
    return x


_PLAIN = {float, int, bool, str, type(None)}


@functools.cache
def _dtypes(kind: Any) -> tuple[tuple[str, Any], ...]:
    """The fields of a class, and which of them stay arrays, of what numbers."""
    return tuple((f.name, f.metadata.get(DTYPE)) for f in fields(kind))


def _plain_field(value: Any, dtype: Any) -> Any:
    return plain(value) if dtype is None or value is None else np.asarray(value, dtype)


def real_array(x: Any, what: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A float copy; raises ValueError for what is no array of real numbers."""
    try:
        array = np.array(x)
    except ValueError:  # of unequal lengths
        array = np.array(None)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{what} must be an array of real numbers; got {x!r}")
    return array.astype(np.float64)


def as_vector(x: Any) -> Vector:
    """Three numbers, of an array for example."""
    a, b, c = (float(value) for value in x)
    return (a, b, c)


def as_matrix(x: Any) -> Matrix:
    """Three rows of three numbers."""
    a, b, c = map(as_vector, x)
    return (a, b, c)


def matmul(a: Matrix, b: Matrix) -> Matrix:
    t = transpose(b)
    return (rotate(t, a[0]), rotate(t, a[1]), rotate(t, a[2]))


def rotate(R: Matrix, v: Vector) -> Vector:
    (a, b, c), (d, e, f), (g, h, i) = R
    x, y, z = v
    return (a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z)


def transpose(a: Matrix) -> Matrix:
    return ((a[0][0], a[1][0], a[2][0]), (a[0][1], a[1][1], a[2][1]), (a[0][2], a[1][2], a[2][2]))


def dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def add(a: Vector, b: Vector) -> Vector:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def scale(s: float, a: Vector) -> Vector:
    return (s * a[0], s * a[1], s * a[2])
