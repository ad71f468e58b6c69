"""Vectors, rotations, poses, and named frames."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...array_types import Array
from ...checks import NAME, Kind, Refused, argument, checked, either, numbers, object_of, rows_of_numbers
from ...spatial import Vec3
from ...spatial.elementary import norm

Vector = tuple[float, float, float]
Matrix = tuple[Vector, Vector, Vector]


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


def homogeneous_matrix(pose: Pose) -> Array:
    """Return a pose as a homogeneous matrix (4, 4)."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = pose.R, pose.p
    return T


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


AnyFrame = Frame | str  # a frame that you create, or the name of a frame of the robot
FRAME = either([NAME, object_of(Frame)])


def frame_name(frame: AnyFrame) -> str:
    return frame.name if isinstance(frame, Frame) else frame
