"""What a robot file says, as small frozen types: bodies, joints and frames, before any algorithm sees them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

Vector = tuple[float, float, float]
Matrix = tuple[Vector, Vector, Vector]


class ModelError(ValueError):
    """A robot description that is damaged, inconsistent, or not supported. The message names file and element."""


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


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint of the file.

    At zero the child's frame lies at `placement` in the parent's frame. `axis` is a unit vector in the child's frame
    (revolute, continuous, prismatic: along it; planar: normal to the plane). `anchor` is the point of the child's frame
    that a revolute or spherical joint turns about.
    """

    name: str
    type: JointType
    parent: str  # body, or WORLD
    child: str
    placement: Pose = Pose()
    axis: Vector = (0.0, 0.0, 1.0)
    anchor: Vector = (0.0, 0.0, 0.0)
    armature: float = 0.0  # reflected rotor inertia, added to the diagonal of the mass matrix
    lower: float = -math.inf
    upper: float = math.inf
    zero: float = 0.0  # the file's coordinate at which the child lies at `placement` (MJCF `ref`)


@dataclass(frozen=True, slots=True)
class Frame:
    """A named frame fixed to a body."""

    name: str
    body: str
    placement: Pose = Pose()


@dataclass(frozen=True, slots=True)
class Description:
    """One robot file, complete and unchanged: fixed joints are still there, order is the file's.

    `unused` says in plain words what the file holds that dynamics does not use, by kind: ("meshes", "35 visual, ...").
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


ROUNDING_RADIUS = 1e-6  # [m]: a moment below that of the mass at this distance is what rounding left behind
WORLD = "world"  # the parent of a joint that hangs on the ground in files that name no root body (MJCF)


def matmul(a: Matrix, b: Matrix) -> Matrix:
    t = transpose(b)
    return (rotate(t, a[0]), rotate(t, a[1]), rotate(t, a[2]))


def rotate(R: Matrix, v: Vector) -> Vector:
    return (dot(R[0], v), dot(R[1], v), dot(R[2], v))


def transpose(a: Matrix) -> Matrix:
    return ((a[0][0], a[1][0], a[2][0]), (a[0][1], a[1][1], a[2][1]), (a[0][2], a[1][2], a[2][2]))


def dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def add(a: Vector, b: Vector) -> Vector:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def scale(s: float, a: Vector) -> Vector:
    return (s * a[0], s * a[1], s * a[2])
