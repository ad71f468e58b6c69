"""The contents of a robot file as small frozen types: bodies, joints, frames and other parts."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..checks import (
    ARRAY,
    NAME,
    NUMBER,
    ONE_OR_SEVERAL,
    Kind,
    Refused,
    argument,
    checked,
    either,
    numbers,
    object_of,
    pairs_by_name,
    rows_of_numbers,
)
from ..spatial import Vec3
from ..spatial.elementary import norm
from ..summaries import VisibleMessage, summarized
from .contact_rules import DEFAULT_SOFTNESS, ContactPair, NeighbourRule, Softness
from .servos import DCMotor, OrientationServo, Range, Servo

Vector = tuple[float, float, float]
Matrix = tuple[Vector, Vector, Vector]
Color = tuple[float, float, float, float]  # red, green, blue, opacity in 0..1


class ModelError(VisibleMessage, ValueError):
    """Raised for a robot description that is damaged, inconsistent or not supported. The message names file and element."""


class ModelWarning(VisibleMessage, UserWarning):
    """Issued for a description that is used although it is physically impossible or only partly supported.

    The message names the file and the element.
    """


class JointType(StrEnum):
    """Types of joints; `continuous` is a revolute joint without limits."""

    REVOLUTE = "revolute"
    CONTINUOUS = "continuous"
    PRISMATIC = "prismatic"
    FIXED = "fixed"
    FLOATING = "floating"
    SPHERICAL = "spherical"
    PLANAR = "planar"

    @property
    def nq(self) -> int:
        """The number of coordinates."""
        return {"fixed": 0, "floating": 7, "spherical": 4, "planar": 4}.get(self.value, 1)

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return {"fixed": 0, "floating": 6, "spherical": 3, "planar": 3}.get(self.value, 1)

    @property
    def rotation(self) -> int:
        """The number of last coordinates that form a unit quaternion, or a cosine and sine."""
        return {"floating": 4, "spherical": 4, "planar": 2}.get(self.value, 0)


def _rotation(x: Any) -> Any:
    """Return a matrix (3, 3) as tuples."""
    try:
        return MATRIX.convert(x)
    except Refused:
        homogeneous = getattr(x, "shape", None) == (4, 4) or (isinstance(x, tuple | list) and len(x) == 4)
        advice = "; a homogeneous matrix becomes a pose by featherweight.Pose.of(matrix)"
        raise Refused(advice if homogeneous else "") from None


def _direction(x: Any) -> Vector:
    """Return a vector, which gets length one unless it has it up to rounding, or is zero."""
    direction: Vector = VECTOR.convert(x)
    length = norm(*direction)
    if abs(length - 1.0) < 1e-6 or not 0.0 < length < math.inf:
        return direction
    x, y, z = direction
    return (x / length, y / length, z / length)


VECTOR = numbers(3)
DIRECTION = VECTOR._replace(convert=_direction)
MATRIX = rows_of_numbers(3, 3)
ROTATION = Kind("a rotation matrix (3, 3)", _rotation)

VectorLike = Annotated[Vector | Any, VECTOR]
"""Three numbers, as a tuple; constructors take lists and arrays too."""


@checked
class Pose(NamedTuple):
    """The pose of a frame in another: orientation (its columns are the frame's axes) and origin [m].

    Arguments are tuples, lists or arrays: R (3, 3) and p (3,). `Pose.of` takes a homogeneous matrix (4, 4), and so do all
    arguments for which a pose is wanted.
    """

    R: Annotated[Matrix | Any, ROTATION] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    p: VectorLike = (0.0, 0.0, 0.0)

    def __matmul__(self, other: PoseLike) -> Pose:
        """Return the pose of `other` in this pose's parent; `other` is given in this frame."""
        R, p = other if type(other) is Pose else Pose.of(other, "the right side of Pose @")
        return Pose._make((matmul(self.R, R), add(rotate(self.R, p), self.p)))

    def inverse(self) -> Pose:
        T = transpose(self.R)
        return Pose._make((T, scale(-1.0, rotate(T, self.p))))

    @staticmethod
    def of(placement: PoseLike, what: str = "placement") -> Pose:
        """Return the pose of a homogeneous matrix (4, 4), or a pose, in Python's numbers.

        Raises ValueError, which begins with `what`, for a matrix that is not a rigid motion.
        """
        pose: Pose = argument(what, placement, RIGID_POSE)
        return pose


def rotation_defect(rows: Any) -> Any:
    """Return the deviation of matrices (3, 3, ...) from rotations: rows x and y from orthonormality, z from x cross y."""
    (a, b, c), (d, e, f), (g, h, i) = rows
    lengths = abs(a * a + b * b + c * c - 1.0) + abs(d * d + e * e + f * f - 1.0) + abs(a * d + b * e + c * f)
    return lengths + abs(g - (b * f - c * e)) + abs(h - (c * d - a * f)) + abs(i - (a * e - b * d))


def _pose(x: Any) -> Pose:
    """Return the pose of a homogeneous matrix. Its last row must be exactly 0, 0, 0, 1."""
    if isinstance(x, Pose):
        return x
    T = HOMOGENEOUS.convert(x)
    if T[3] != (0, 0, 0, 1):
        raise Refused(wanted=RIGID)
    return _rigid(Pose(tuple(row[:3] for row in T[:3]), tuple(row[3] for row in T[:3])))


def _rigid(pose: Pose) -> Pose:
    """Return a pose in floating-point numbers. It must be a rotation and a translation."""
    R, p = as_matrix(pose.R), as_vector(pose.p)
    if not all(map(math.isfinite, (*R[0], *R[1], *R[2], *p))):
        raise Refused
    x, y, z = (Vec3(*row) for row in R)
    square = np.allclose(matmul(R, transpose(R)), np.eye(3), atol=1e-9)
    if not square or x.dot(y.cross(z)) < 0.0:
        raise Refused(wanted=RIGID)
    return Pose._make((R, p))


RIGID = "a rotation and a translation, with 0, 0, 0, 1 as its last row"
HOMOGENEOUS = rows_of_numbers(4, 4)
POSE = Kind("a homogeneous matrix (4, 4) of finite numbers, or a featherweight.Pose", _pose, frozenset({Pose}))
RIGID_POSE = POSE._replace(convert=lambda x: _rigid(_pose(x)), fits=frozenset())

PoseLike = Annotated[Pose | Any, POSE]
"""A pose; constructors take homogeneous matrices (4, 4) too."""


class Moments(NamedTuple):
    """Moments and products of inertia [kg m²], row by row of the upper triangle of the symmetric matrix."""

    xx: float
    xy: float
    xz: float
    yy: float
    yz: float
    zz: float


def _rotational(x: Any) -> Moments:
    """Return moments and products of inertia: six numbers in the order of `Moments`, or a symmetric matrix."""
    if type(x) is Moments:
        return x
    if not (isinstance(x, tuple | list) or (isinstance(x, np.ndarray) and x.ndim)) or len(x) != 3:
        return Moments._make(SIX.convert(x))
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = MATRIX.convert(x)
    if not np.allclose((xy, xz, yz), (yx, zx, zy), rtol=1e-9, atol=1e-9 * max(map(abs, (xx, yy, zz)))):
        raise Refused(", which is not symmetric")
    return Moments(xx, xy, xz, yy, yz, zz)


SIX, TEN = numbers(6), numbers(10)
ROTATIONAL = Kind("six numbers (xx, xy, xz, yy, yz, zz) or a symmetric matrix (3, 3)", _rotational)


@checked
class Inertia(NamedTuple):
    """Mass [kg], centre of mass [m], and rotational inertia about that centre (xx, xy, xz, yy, yz, zz) [kg m²].

    All are given in one frame. The rotational inertia is a symmetric matrix (3, 3) or six numbers, which become `Moments` with
    the names xx, xy, xz, yy, yz, zz. The ten `parameters`, as of `Robot.inertial_parameters`, have another order, and are about
    the frame's origin: `Inertia.of_parameters(p)` converts them.

        rod = featherweight.Inertia(2.0, (0.0, 0.0, 0.5), np.diag([0.17, 0.17, 0.001]))
        rod.rotational.xx, rod.parameters[4]  # about the centre of mass; about the origin
    """

    mass: float = 0.0
    center: VectorLike = (0.0, 0.0, 0.0)
    rotational: Annotated[Moments | Any, ROTATIONAL] = Moments(*[0.0] * 6)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The ten parameters m, m x, m y, m z, Ixx, Ixy, Iyy, Ixz, Iyz, Izz, whose moments are about the frame's origin."""
        m, (x, y, z), (xx, xy, xz, yy, yz, zz) = self
        return (
            m, m * x, m * y, m * z, xx + m * (y * y + z * z), xy - m * x * y, yy + m * (x * x + z * z), xz - m * x * z,
            yz - m * y * z, zz + m * (x * x + y * y),
        )  # fmt: skip

    @classmethod
    def of_parameters(cls, parameters: Any) -> Inertia:
        """Return the inertia of ten parameters, in the order of `parameters`. Raises ValueError for other numbers."""
        m, hx, hy, hz, xx, xy, yy, xz, yz, zz = argument("Inertia.of_parameters: parameters", parameters, TEN)
        if m == 0.0 and (hx or hy or hz):
            raise ValueError(f"Inertia.of_parameters: without mass, its first moment must be zero; got {(hx, hy, hz)}")
        x, y, z = (hx / m, hy / m, hz / m) if m else (0.0, 0.0, 0.0)
        moments = Moments(
            xx - m * (y * y + z * z), xy + m * x * y, xz + m * x * z, yy - m * (x * x + z * z), yz + m * y * z,
            zz - m * (x * x + y * y),
        )  # fmt: skip
        return cls(m, (x, y, z), moments)


@checked
@dataclass(frozen=True, slots=True)
class Body:
    """A link of the file."""

    name: str
    inertia: Inertia = Inertia()
    principal: Matrix | Any | None = None  # principal axes of the inertia, as columns, if the file gives them
    gravity_compensation: float = 0.0  # fraction of its weight that simulations carry, at its centre of mass


@checked
class Fluid(NamedTuple):
    """The fluid around a robot: density [kg/m³], viscosity [Pa s], and velocity [m/s] in the world."""

    density: float = 0.0
    viscosity: float = 0.0
    wind: VectorLike = (0.0, 0.0, 0.0)


@checked
class FluidCoefficients(NamedTuple):
    """Coefficients of fluid forces on a shape, which is treated as the ellipsoid with the same extents.

    The first five are MJCF's `fluidcoef`. In a fluid of density 1, the fluid that moves with the shape has the mass
    `added_mass` along each axis of the shape and the inertia `added_inertia` about each axis.
    """

    blunt_drag: float = 0.5
    slender_drag: float = 0.25
    angular_drag: float = 1.5
    kutta_lift: float = 1.0
    magnus_lift: float = 1.0
    added_mass: VectorLike = (0.0, 0.0, 0.0)  # [m³]
    added_inertia: VectorLike = (0.0, 0.0, 0.0)  # [m⁵]


NO_POLY = (0.0, 0.0)
"""Higher coefficients of linear springs and dampers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassiveDynamics:
    """Limits, springs, dampers and dry friction of a joint or a tendon, for its coordinate or length x and velocity v.

    The forces of springs and dampers are polynomials, as in MJCF.
    """

    lower: float = -math.inf  # limits [rad, m]
    upper: float = math.inf  # for a spherical joint, the greatest angle of its rotation from zero
    stiffness: float = 0.0  # of the spring [N m/rad, N/m]
    damping: float = 0.0  # force per velocity [N m s/rad, N s/m]
    dry_friction: float = 0.0  # greatest force of dry friction [N m, N]
    stiffness_poly: tuple[float, float] = NO_POLY  # b, c in stiffness x + b x² + c x³ for x from rest [N m/rad², ...]
    damping_poly: tuple[float, float] = NO_POLY  # b, c in the force damping v + b |v| v + c v³ [N m s²/rad², N m s³/rad³, ...]
    limit_softness: Softness = DEFAULT_SOFTNESS
    dry_friction_softness: Softness = DEFAULT_SOFTNESS

    @property
    def has_spring(self) -> bool:
        """True if there is a spring."""
        return self.stiffness != 0.0 or any(self.stiffness_poly)

    @property
    def is_nonlinear(self) -> bool:
        """True if the spring or the damper is nonlinear."""
        return any(self.stiffness_poly) or any(self.damping_poly)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointDynamics(PassiveDynamics):
    """Limits of a joint and the forces that act at it: what joints of files and of robots share.

    The spring of a spherical joint depends on the angle of its rotation. A floating joint has two springs of the same
    stiffness, on its displacement and on its angle of rotation. A damper acts on each component of the velocity. Dry friction
    and dampers of a floating joint act along the axes of the parent and about the axes of the child.
    """

    rest: float = 0.0  # coordinate at which the spring's force is zero
    armature: float = 0.0  # reflected rotor inertia, added to the diagonal of the mass matrix
    effort: float = math.inf  # greatest force of the joint's drive [N m, N]
    velocity: float = math.inf  # greatest velocity [rad/s, m/s]; files write 0 if it is unknown
    rest_pose: tuple[float, ...] = ()
    """(x, y, z, qx, qy, qz, qw) of zero force, for the springs of a floating joint; by default at zero."""
    effort_range: tuple[float, float] | None = None  # least and greatest force of the drive, if not ±effort
    drive_compensates: bool = False  # the drive supplies the gravity compensation, within its effort

    def dynamics(self) -> dict[str, Any]:
        """Return these values by name: keyword arguments of a class that has them."""
        return {f.name: getattr(self, f.name) for f in fields(JointDynamics)}


@checked
@summarized
@dataclass(frozen=True, slots=True)
class Joint(JointDynamics):
    """A joint of the file.

    At zero, the child's frame lies at `placement` in the parent's frame. `axis` is a direction in the child's frame, which gets
    length one: the axis of a revolute, continuous or prismatic joint, and the normal of a planar joint's plane. `anchor` is
    the point of the child's frame about which a revolute or spherical joint turns. Limits and forces are keyword arguments,
    described in `JointDynamics`.
    """

    name: str
    type: JointType | Any
    parent: str | None  # body, or the ground: None, or WORLD
    child: str
    placement: PoseLike = Pose()
    axis: Annotated[Vector | Any, DIRECTION] = (0.0, 0.0, 1.0)
    anchor: VectorLike = (0.0, 0.0, 0.0)
    zero: float = 0.0  # coordinate in the file at which the child lies at `placement` (MJCF `ref`)


class LoopType(StrEnum):
    """Types of loop joints, by the free motion between the two connected frames; their z axes are the joint's axis."""

    REVOLUTE = "revolute"  # turning about z
    SPHERICAL = "spherical"  # turning
    WELD = "weld"  # nothing
    PRISMATIC = "prismatic"  # sliding along z
    CYLINDRICAL = "cylindrical"  # turning about z and sliding along it
    UNIVERSAL = "universal"  # turning about z of the predecessor's frame and x of the successor's; they stay perpendicular
    PLANAR = "planar"  # sliding along x and y, and turning about z


@checked
@dataclass(frozen=True, slots=True)
class Loop:
    """A joint that closes a loop: it connects a frame on one body with a frame on another."""

    name: str
    type: LoopType | Any
    predecessor: str | None  # body, or the ground: None or WORLD
    successor: str | None  # body, or the ground: None or WORLD
    predecessor_frame: PoseLike = Pose()
    successor_frame: PoseLike = Pose()
    softness: Softness = DEFAULT_SOFTNESS  # where equalities are compliant
    torque_scale: float = 1.0  # MJCF: weight of a weld's rotation relative to its displacement [m]


@checked
class LengthTie(NamedTuple):
    """A relation between two lengths: the first minus its rest is a polynomial of the second minus its rest.

    Lengths are sums of coefficient × coordinate over (joint, coefficient).
    """

    first: tuple[tuple[str, float], ...]
    second: tuple[tuple[str, float], ...]
    rests: tuple[float, float]
    coefficients: tuple[float, ...]


COEFFICIENTS = pairs_by_name(ONE_OR_SEVERAL)
FACTORS = pairs_by_name(NUMBER)


@checked
@dataclass(frozen=True, slots=True)
class Coupling:
    """A joint that follows others: its coordinate is offset + sum of c1 q + c2 q² + ... over `terms`.

    All joints have one degree of freedom. `terms` are (joint, (c1, c2, ...)); a gear has one coefficient, its ratio.
    """

    name: str
    joint: str
    terms: Annotated[tuple[tuple[str, tuple[float, ...]], ...] | Any, COEFFICIENTS]
    offset: float = 0.0
    softness: Softness = DEFAULT_SOFTNESS  # where equalities are compliant
    tie: LengthTie | None = None  # the relation in the file, if the coupling comes from lengths


@checked
@dataclass(frozen=True, slots=True)
class Closure:
    """User-defined constraints: `function(q)` is zero for the coordinates q of `joints`, which have one coordinate each.

    The function takes an array of numeric or symbolic numbers and returns a sequence. Arithmetic, numpy.sin, numpy.cos and
    numpy.sqrt accept symbolic numbers; comparisons do not.
    """

    name: str
    joints: tuple[str, ...]
    function: Callable[[Any], Sequence[Any]]


STILL = (0.0,) * 6


def _rows(columns: int | None, dtype: Any, x: Any) -> Any:
    """Return an array of two axes, of which the second has this length."""
    array = np.asarray(ARRAY.convert(x))
    if array.ndim != 2 or (columns is not None and array.shape[1] != columns):
        raise Refused
    return np.asarray(array, dtype)


POINTS = Kind("an array (n, 3) of numbers", functools.partial(_rows, 3, np.float64))
TRIANGLES = Kind("an array (k, 3) of numbers of vertices", functools.partial(_rows, 3, np.int64))
HEIGHTS = Kind("an array (nx, ny) of numbers", functools.partial(_rows, None, np.float64))


class ShapeType(StrEnum):
    """Types of shapes, in their own frames; brackets give `size` [m]."""

    SPHERE = "sphere"  # (radius), zero for a point
    BOX = "box"  # (length along x, y, z)
    CYLINDER = "cylinder"  # (radius, length along z)
    CAPSULE = "capsule"  # (radius, length of its cylinder along z, without the caps)
    ELLIPSOID = "ellipsoid"  # (radius along x, y, z)
    PLANE = "plane"  # (), normal along z
    MESH = "mesh"  # (scale along x, y, z)
    HEIGHTFIELD = "heightfield"  # (length along x, y, depth of its base below z = 0)


@checked
@summarized
@dataclass(frozen=True, slots=True)
class Shape:
    """A visual or collision shape of the file.

    A mesh is a file (`path`), or `vertices` (n, 3) and triangles `faces` (k, 3), scaled by `size`; without faces it is the
    convex hull of the vertices. `heights` (nx, ny) [m] of a height field are heights above z = 0 at the points of a regular
    grid over its lengths; the frame is at the centre of the grid. Vertices, faces and heights are arrays, which == does not
    compare.
    """

    name: str
    body: str | None  # link of the file, or the ground: None or WORLD; in a robot: its moving body, or None
    type: ShapeType | Any
    size: tuple[float, ...]
    placement: PoseLike = Pose()
    visual: bool = True
    collision: bool = True
    color: Color | None = None
    friction: float | None = (
        None  # Coulomb coefficient, if the file gives one; `touching_pairs` combines this and the following
    )
    path: str | None = None
    vertices: Annotated[Any, POINTS] = field(default=None, compare=False)
    faces: Annotated[Any, TRIANGLES] = field(default=None, compare=False)
    contype: int = 1  # MJCF: two shapes may collide if the contype of one
    conaffinity: int = 1  # and the conaffinity of the other have a common bit
    condim: int = 3  # MJCF: 1 without friction, 3 with; 4 and 6 also with torsional and rolling friction
    margin: float = 0.0  # [m] distance at which the shape touches another
    priority: int = 0  # the shape of higher priority determines friction and condim
    heights: Annotated[Any, HEIGHTS] = field(default=None, compare=False)
    softness: Softness = DEFAULT_SOFTNESS
    turning_friction: tuple[float, float] = (0.005, 0.0001)  # [m] torsional (condim 4, 6) and rolling (condim 6)
    surface_velocity: tuple[float, ...] = (
        STILL  # [m/s, rad/s] relative to its body: linear at the origin, angular, in its frame
    )
    adhesion: float = 0.0  # [N] pull of each contact; the values of two shapes are added
    gap: float = 0.0  # [m] range of adhesion beyond the margin; the values of two shapes are added
    fluid: FluidCoefficients | None = None  # for primitive shapes; a link with any has the drag of these only
    part_of: str | None = None  # the mesh of which it is a convex part: sensors of that shape are those of its parts


@checked
class TendonPoint(NamedTuple):
    """A point [m] in the frame of a body (None: the ground) through which a tendon passes."""

    body: str | None
    position: VectorLike


@checked
class TendonWrap(NamedTuple):
    """A sphere, or a cylinder about z of `placement`, on a body: a tendon takes the shortest path around it.

    `side` is a point that selects the side on which the tendon passes. If `side` lies inside the sphere or cylinder, the
    tendon passes inside.
    """

    body: str | None
    placement: PoseLike
    radius: float
    cylinder: bool = False
    side: TendonPoint | None = None


@checked
class Pulley(NamedTuple):
    """The start of a branch of a tendon. Lengths of the branches up to the next pulley are divided by `divisor`."""

    divisor: float


@checked
@summarized
@dataclass(frozen=True, slots=True)
class Tendon(PassiveDynamics):
    """A length along which forces act.

    The length is the sum of coefficient × coordinate over `terms`, which are (joint, coefficient) for joints with one degree
    of freedom, or the length of a string along `path`. A path and each of its branches begin and end with points. The spring
    pulls if the length is above `rest` and pushes if it is below. Limits and forces are keyword arguments, described in
    `PassiveDynamics`.
    """

    name: str
    terms: Annotated[tuple[tuple[str, float], ...] | Any, FACTORS] = ()
    path: tuple[TendonPoint | TendonWrap | Pulley, ...] = ()
    rest: tuple[float, float] = (0.0, 0.0)  # lengths between which the spring is slack
    force: tuple[float, float] = (-math.inf, math.inf)
    """Least and greatest sum of the forces of all drives along the tendon, before their limits and gears.

    If the sum is beyond, all forces are scaled.
    """


class ActivationType(StrEnum):
    """Laws by which the activation a of a drive follows its control u."""

    INTEGRATOR = "integrator"  # a' = u
    FILTER = "filter"  # a' = (u - a) / time_constant
    EXACT_FILTER = "exact_filter"  # as FILTER, solved exactly over a step with constant u
    MUSCLE = "muscle"  # a' = (u - a) / T(u, a) for u and a from 0 to 1 (Millard et al. 2013)


@checked
@dataclass(frozen=True, slots=True)
class Activation:
    """A state of a drive that replaces its control; initially zero.

    Muscles have different time constants for activation and deactivation; the transition between them extends over `smoothing`
    of u - a.
    """

    type: ActivationType | Any
    time_constant: float = 0.0  # [s]
    deactivation: float = 0.0  # [s]
    smoothing: float = 0.0
    range: tuple[float, float] = (-math.inf, math.inf)  # limits of the activation
    early: bool = False  # True: the force uses the activation after the step


@checked
@dataclass(frozen=True, slots=True)
class Muscle:
    """The force of a muscle: -peak (a FL(L) FV(V) + FP(L)), for its activation a, length L and velocity V.

    L is (length - slack) / optimum, and V is the velocity over `fastest` × optimum. FL is 1 at L = 1 and 0 outside `lengths`.
    FV is 0 at V = -1, 1 at rest and `lengthening` during fast lengthening. FP grows from L = 1 on, in proportion to `passive`.
    """

    peak: float  # [N]
    optimum: float  # length [m] of greatest force
    slack: float  # length [m] at which L is zero
    lengths: tuple[float, float] = (0.5, 1.6)
    fastest: float = 1.5  # [1/s]
    passive: float = 1.3
    lengthening: float = 1.2
    at_rest: Muscle | None = None  # muscle that gives the passive force, if its parameters differ


class SampleInterpolation(StrEnum):
    """Ways to interpolate between samples, named as in MJCF."""

    HOLD = "zoh"  # the previous sample
    LINEAR = "linear"
    CUBIC = "cubic"  # Catmull and Rom's spline


@checked
class ControlDelay(NamedTuple):
    """The delay of a control, which acts as it was `time` seconds before.

    The value is read from a limited number of samples, one for the beginning of each step; samples are zero initially. A delay
    shorter than a step becomes one step.
    """

    time: float  # [s]
    samples: int
    interpolation: SampleInterpolation | Any = SampleInterpolation.HOLD


class Axes(StrEnum):
    """The axes of a force or a torque: those of its frame, of its reference, or of the world."""

    FRAME = "frame"
    REFERENCE = "reference"
    WORLD = "world"


@checked
@dataclass(frozen=True, slots=True)
class FrameForce:
    """A force and a torque at a frame: `wrench` is (force, torque) per unit of a drive's force.

    With a `reference`, the opposite wrench acts there, and the drive's length is the displacement of the frame from the
    reference along the wrench. Bodies that carry both frames then feel nothing. Without a reference, the length is zero.

    With a `rod` [m], the force acts on a massless slider, which moves from the reference along the force, in the reference's
    axes. The rod connects the slider to the frame, the pin of a crank. The drive's length is the position of the slider.
    """

    frame: AnyFrame
    wrench: tuple[float, float, float, float, float, float]
    reference: AnyFrame | None = None
    force_axes: Axes | Any = Axes.FRAME
    torque_axes: Axes | Any = Axes.FRAME
    rod: float | None = None


@checked
@dataclass(frozen=True, slots=True)
class Actuator:
    """A drive with a control u: joint force = gear × clip(gain × clip(u) + b0 + b1 gear q + b2 gear q').

    `bias` are b0, b1, b2; a position servo of stiffness kp and damping kv has gain kp and bias (0, -kp, -kv). The drive acts
    on a joint with the coordinate q, or on a tendon, whose length replaces q, or by a force at a frame, or by `adhesion`.

    With `slopes` g1, g2 the gain is gain + g1 gear q + g2 gear q'. An `activation` replaces the control. A `muscle`, a `servo`
    or an `orientation` servo replaces gain and bias. A servo has several controls; with a `motor`, it sets the motor's
    voltage. An orientation servo acts at a frame with a reference.
    """

    name: str
    joint: str | None = None
    gear: float = 1.0
    gain: float = 1.0
    bias: VectorLike = (0.0, 0.0, 0.0)
    control: tuple[float, float] = (-math.inf, math.inf)  # least and greatest u
    force: tuple[float, float] = (-math.inf, math.inf)  # least and greatest force, before the gear
    tendon: str | None = None
    at: FrameForce | None = None
    slopes: tuple[float, float] = (0.0, 0.0)
    activation: Activation | None = None
    muscle: Muscle | None = None
    adhesion: str | None = None  # body whose contacts it pulls together; all contacts share its force equally
    servo: Servo | None = None
    motor: DCMotor | None = None
    orientation: OrientationServo | None = None
    delay: ControlDelay | None = None  # delay of its control

    @property
    def controls(self) -> Mapping[str, Range]:
        """The names of its controls, with the range of each. A single control has the actuator's name."""
        if self.orientation is not None:
            return {f"{self.name}.{axis}": self.control for axis in ("wxyz" if self.orientation.quaternion else "xyz")}
        if self.servo is not None:
            bounds = {f"{self.name}.{x}": self.servo.bounds(k) for k, x in enumerate(self.servo.inputs)}
            return bounds if len(bounds) != 1 else {self.name: self.servo.bounds(0)}
        return {self.name: self.control}


def controls_of(actuators: Iterable[Actuator]) -> dict[str, Range]:
    """Return the names and ranges of the controls of actuators, in order."""
    return {name: within for a in actuators for name, within in a.controls.items()}


@checked
@dataclass(frozen=True, slots=True)
class Frame:
    """A named frame fixed to a body, in a description, or as an argument in place of a frame's name.

    `body` is a link of the file, including links fixed to others; None or WORLD is the ground. `placement` is a pose, or a
    homogeneous matrix (4, 4), in that link's frame. Raises ValueError for a matrix that is not a rigid motion.
    """

    name: str
    body: str | None
    placement: PoseLike = Pose()


class CameraMode(StrEnum):
    """Modes of a camera's motion. The start is the initial configuration of the robot's file."""

    FIXED = "fixed"  # fixed to its body
    TRACK = "track"  # follows the origin of its body; offset and orientation in the world are those of the start
    TRACKCOM = "trackcom"  # follows the centre of mass of its body and of all bodies that this carries
    TARGETBODY = "targetbody"  # moves with its body and looks at the origin of the target, upright
    TARGETBODYCOM = "targetbodycom"  # looks at the centre of mass of the target and of all bodies that this carries


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


AnyFrame = Frame | str  # a frame that you create, or the name of a frame of the robot
FRAME = either([NAME, object_of(Frame)])


def frame_name(frame: AnyFrame) -> str:
    return frame.name if isinstance(frame, Frame) else frame


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
    SUBTREE = "subtree"  # a body and all bodies that it carries ("contact")
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
    zone: SensorZone | None = (
        None  # zone in which contacts count ("touch", "contact"), or that contains the object ("insidesite")
    )
    field: VectorLike = (0.0, 0.0, 0.0)  # the magnetic field in the world ("magnetometer")
    data: tuple[SensorField | Any, ...] = ()  # of each contact (default "found") or ray (default "dist")
    slots: int = 1  # of contacts ("contact")
    reduction: ContactReduction | Any = ContactReduction.NONE  # of contacts ("contact")
    sampling: SensorSampling | None = None  # if readings are delayed or not taken in each step


@checked
@dataclass(frozen=True, slots=True)
class Configuration:
    """A named configuration: (joint, its coordinates), in the conventions of robots. Joints that are left out are at zero.

    It may contain coordinates of a free-flyer `root_joint`, which a robot has with base="floating", and of followers, which
    have no coordinates in a robot. `controls` are (actuator, its u); controls that are left out are zero.
    """

    name: str
    coordinates: Annotated[tuple[tuple[str, tuple[float, ...]], ...] | Any, COEFFICIENTS]
    controls: Annotated[tuple[tuple[str, float], ...] | Any, FACTORS] = ()


@checked
@dataclass(frozen=True, slots=True)
class Contents:
    """The complete, unchanged contents of one robot file, with its fixed joints and in its order.

    `Description` adds methods that return changed descriptions.

    `unused` describes the unused contents of the file, by kind: ("calibrations", "12 joints"). `virtual` names massless bodies
    between the joints of one MJCF body, which users do not see.
    """

    name: str
    source: str  # path, for messages
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...] = ()  # in addition to one for each body
    gravity: VectorLike = (0.0, 0.0, -9.81)
    unused: tuple[tuple[str, str], ...] = ()
    virtual: frozenset[str] = field(default_factory=frozenset)
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    closures: tuple[Closure, ...] = ()
    independent: tuple[str, ...] = ()  # joints of loops whose velocities are independent
    dependent: tuple[str, ...] = ()  # joints of loops that depend on others
    shapes: tuple[Shape, ...] = ()
    tendons: tuple[Tendon, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    configurations: tuple[Configuration, ...] = ()
    disabled_collisions: tuple[
        tuple[str | None, str | None], ...
    ] = ()  # pairs of links, or of a link and the ground, that do not collide
    contact_pairs: tuple[ContactPair, ...] = ()  # pairs that always collide
    neighbours: NeighbourRule = NeighbourRule.JOINED  # rule for bodies whose shapes do not collide
    timestep: float | None = None  # [s] time step of the file
    integrator: str | None = None
    """Integrator of the file, in its words: MJCF's "euler", "rk4", "implicit", ..., and `EXPLICIT_EULER`."""
    impratio: float = 1.0  # MJCF: impedance of friction relative to normal forces
    noslip: int = 0  # MJCF: iterations after the contact problem that prevent slip
    cone: str | None = None  # friction cone, in MJCF's words
    fluid: Fluid | None = None
    cameras: tuple[Camera, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    led_tendons: tuple[str, ...] = field(default=(), compare=False)  # of joints that follow one, as forces of that joint


LARGEST = 1e30  # largest number in a description, in SI units (the mass of the sun); short products do not overflow
SMALLEST_MASS = 1e-30  # [kg] mass of an electron: its reciprocal is not above LARGEST
SMALLEST_INERTIA = 1e-40  # [kg m², kg] least inertia that a joint moves: smaller ones have too large reciprocals
ROUNDING_RADIUS = 1e-6  # [m] a moment below that of the mass at this distance is a rounding error
ROOT_JOINT = "root_joint"  # name of the free-flyer that base="floating" adds at the root
PYRAMIDAL = "pyramidal"  # cones of friction
EXPLICIT_EULER = "explicit euler"  # MJCF's "euler" without implicit damping (flag eulerdamp)
START = "qpos0"  # name of the initial configuration of a robot's file
WORLD = "world"  # name of the ground, in descriptions without a body of this name


def as_vector(x: Iterable[float]) -> Vector:
    """Return three numbers, for example of an array, as a tuple."""
    a, b, c = (float(value) for value in x)
    return (a, b, c)


def as_matrix(x: Iterable[Iterable[float]]) -> Matrix:
    """Return three rows of three numbers as tuples."""
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
