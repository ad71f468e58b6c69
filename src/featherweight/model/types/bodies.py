"""Bodies with their inertias, shapes, and the fluid around them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...checks import ARRAY, Kind, Refused, argument, checked, numbers
from ...summaries import summarized
from ..contact_rules import DEFAULT_SOFTNESS, Softness
from .frames import MATRIX, Matrix, Pose, PoseLike, VectorLike, matmul, transpose


class Moments(NamedTuple):
    """Moments and products of inertia [kg m²], row by row of the upper triangle of the symmetric matrix."""

    xx: float
    xy: float
    xz: float
    yy: float
    yz: float
    zz: float

    @property
    def matrix(self) -> Matrix:
        """The symmetric matrix."""
        xx, xy, xz, yy, yz, zz = self
        return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))

    @classmethod
    def of_matrix(cls, matrix: Matrix) -> Moments:
        """Return the upper triangle of a matrix."""
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = matrix
        return cls(xx, xy, xz, yy, yz, zz)

    def rotated(self, R: Matrix) -> Moments:
        """Return the moments in other axes: those of `R`, whose columns are the present axes."""
        return self.of_matrix(matmul(matmul(R, self.matrix), transpose(R)))


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
    gravity_compensation: float = 0.0  # fraction of its weight that simulations compensate, at its centre of mass


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


Color = tuple[float, float, float, float]  # red, green, blue, opacity in 0..1
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
    friction: float | None = None  # Coulomb coefficient of the file; `touching_pairs` combines this and the following
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
        STILL  # [m/s, rad/s] against its body, in its frame: linear, at its origin, and angular
    )
    adhesion: float = 0.0  # [N] pull of each contact; the values of two shapes are added
    gap: float = 0.0  # [m] range of adhesion beyond the margin; the values of two shapes are added
    fluid: FluidCoefficients | None = None  # for primitive shapes; a link with any has the drag of these only
    part_of: str | None = None  # the mesh of which it is a convex part: sensors of that shape are those of its parts
