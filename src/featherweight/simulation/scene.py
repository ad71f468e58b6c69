"""Contact points and spheres of a robot, and the ground."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..array_types import Matrix, Vector
from ..checks import Fraction, Kind, NonNegative, Refused, checked, numbers
from ..model.types import AnyFrame
from ..summaries import summarized


def _point(x: Any) -> tuple[float, ...]:
    p: tuple[float, ...] = numbers(3).convert(x)
    if not all(map(math.isfinite, p)):
        raise Refused
    return p


POINT = Kind("three finite numbers", _point)
Point = Annotated[Sequence[float], POINT]


@checked
@dataclass(frozen=True)
class ContactSphere:
    """A sphere on a robot that can touch the ground and other spheres. A sphere without radius is a point.

    `center` [m] is in `frame`, the name of a frame or a `Frame`. `friction` (Coulomb's coefficient) and `restitution` (0 to 1)
    default to those of `ContactOptions`. Raises ValueError for negative or infinite numbers.
    """

    frame: AnyFrame
    radius: NonNegative = 0.0
    center: Point = (0.0, 0.0, 0.0)
    friction: NonNegative | None = None
    restitution: Fraction | None = None


@checked
def ContactPoint(
    frame: AnyFrame, position: Point = (0.0, 0.0, 0.0), friction: NonNegative | None = None, restitution: Fraction | None = None
) -> ContactSphere:
    """A point on a robot, at `position` [m] in a frame (a name or a `Frame`), that can touch the ground and spheres.

    It is a `ContactSphere` without a radius.
    """
    return ContactSphere(frame, 0.0, position, friction, restitution)


@checked
@dataclass(frozen=True)
class Plane:
    """The ground as a plane through `point` [m] with an upward `normal`, in the world frame."""

    point: Point = (0.0, 0.0, 0.0)
    normal: Point = (0.0, 0.0, 1.0)
    friction: NonNegative | None = None
    restitution: Fraction | None = None

    def __post_init__(self) -> None:
        length = math.sqrt(sum(c * c for c in self.normal))
        if length == 0.0:
            raise ValueError("normal of the plane must not be zero")
        object.__setattr__(self, "normal", tuple(float(c) / length for c in self.normal))


def _span(x: Any) -> tuple[float, ...]:
    span: tuple[float, ...] = numbers(2).convert(x)
    if not (span[1] > span[0] and math.isfinite(span[0]) and math.isfinite(span[1])):
        raise Refused
    return span


SPAN = Kind("(first, last) with last above first", _span)


@checked
@summarized
@dataclass(frozen=True, eq=False)
class HeightField:
    """The ground as heights (nx, ny) [m] on a regular grid over `x` and `y` (first, last) [m], in the world frame.

    Each cell of the grid consists of two triangles, which share the diagonal from point (i, j) to (i + 1, j + 1), as in MuJoCo.
    The ground ends at the first and last points. `base` [m] is the depth of its lower side below z = 0; by default it has no
    lower side. Spheres and points touch faces, edges, vertices, walls and the lower side. A sphere whose centre is inside is
    pushed out by the shortest path.
    """

    heights: npt.ArrayLike
    x: Annotated[tuple[float, float], SPAN]
    y: Annotated[tuple[float, float], SPAN]
    friction: NonNegative | None = None
    restitution: Fraction | None = None
    base: float = math.inf
    grid: Matrix = field(init=False, repr=False)

    def __post_init__(self) -> None:
        grid = np.array(self.heights, dtype=np.float64)
        if grid.ndim != 2 or min(grid.shape) < 2 or not np.isfinite(grid).all():
            raise ValueError(f"heights must be finite numbers of shape (nx, ny), both at least 2; got shape {grid.shape}")
        if not self.base + grid.min() >= 0.0:
            raise ValueError(f"base must be a depth [m] below z = 0 that no height is below; got {self.base!r}")
        grid.flags.writeable = False
        object.__setattr__(self, "grid", grid)


Ground = Plane | HeightField


LEAST_FRICTION = 1e-5  # MuJoCo's lower bound for the friction of contacts


class TouchingParts(NamedTuple):
    """Parts that may touch in a simulation. `friction` and `restitution` are defaults for surfaces without their own."""

    spheres: Sequence[ContactSphere]
    pairs: Sequence[tuple[int, int]]
    ground: Ground | None
    shapes: bool  # whether the collision shapes of the robot's file take part
    friction: float
    restitution: float
    lower: Vector  # (n,) limits to enforce, by degree of freedom of all joints (see `JointLimits`)
    upper: Vector
    joint_friction: bool
    file_axes: bool = False  # contacts have MuJoCo's tangents; friction pyramids depend on them
    least_friction: float = 0.0  # lower bound for contacts that are not frictionless
    by_file: bool = False  # contact points are those of MuJoCo


def common_coefficient(a: float | None, b: float | None, default: float) -> float:
    """Return the coefficient of two surfaces: the geometric mean, or the only one given, or the default."""
    if a is None or b is None:
        return default if a is None and b is None else float(b if a is None else a)  # type: ignore[arg-type]
    return math.sqrt(a * b)
