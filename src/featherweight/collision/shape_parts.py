"""Shapes of a file as numbers and arrays, from which simulations and queries make their tables."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..array_types import Array, IntegerMatrix, Integers, Matrix
from ..model.types import Shape, ShapeType
from .collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHTS, HULL, PLANE, SPHERE, HeightFields, Hulls
from .hulls import NO_HULL, Hull, hull_of_mesh
from .stand_ins import extreme_points, local_stand_ins
from .triples import Triple

KINDS = {
    ShapeType.SPHERE: SPHERE,
    ShapeType.CAPSULE: CAPSULE,
    ShapeType.BOX: BOX,
    ShapeType.CYLINDER: CYLINDER,
    ShapeType.ELLIPSOID: ELLIPSOID,
    ShapeType.MESH: HULL,
    ShapeType.PLANE: PLANE,
    ShapeType.HEIGHTFIELD: HEIGHTS,
}


class SampledHeights(NamedTuple):
    """Heights (nx, ny) [m] on a regular grid over `x` and `y` (first, last), and the depth of the base below z = 0."""

    grid: Matrix
    x: tuple[float, float]
    y: tuple[float, float]
    base: float


class ShapePart(NamedTuple):
    """A shape in its body's frame. Its balls represent it on height fields of simulations."""

    kind: int
    placement: Matrix  # (4, 4)
    size: tuple[float, float, float]  # radius and half length, half lengths, or radii; the centroid of a hull
    radius: float  # radius of the bounding ball around its origin
    balls: Matrix = np.zeros((0, 4))
    hull: Hull = NO_HULL
    field: SampledHeights | None = None


class GridOfHeights(Protocol):
    """A height field with the fields of `SampledHeights`."""

    @property
    def grid(self) -> Matrix: ...
    @property
    def x(self) -> tuple[float, float]: ...
    @property
    def y(self) -> tuple[float, float]: ...
    @property
    def base(self) -> float: ...


class PartArrays(Protocol):
    """Ranges of a part in the common arrays."""

    @property
    def balls(self) -> Matrix: ...
    @property
    def hull(self) -> Hull: ...
    @property
    def field(self) -> GridOfHeights | None: ...


def shape_part(shape: Shape, by_file: bool = False) -> ShapePart:
    """Return a shape as numbers. The origin of a mesh's frame is the centre of its hull's bounding box.

    `by_file` is that of `hull_of_mesh`.

    Raises ValueError for a mesh without volume or an unreadable mesh, and ImportError if reading it needs a missing package.
    """
    kind, size, T = KINDS[shape.type], [*shape.size, 0.0, 0.0, 0.0], np.eye(4)
    T[:3, :3], T[:3, 3] = shape.placement
    if kind == PLANE:
        return ShapePart(kind, T, (0.0, 0.0, 0.0), 0.0)
    if kind == HEIGHTS:
        x, y = 0.5 * shape.size[0], 0.5 * shape.size[1]
        heights = SampledHeights(np.array(shape.heights, dtype=float), (-x, x), (-y, y), shape.size[2])
        return ShapePart(kind, T, (0.0, 0.0, 0.0), 0.0, field=heights)
    if kind == HULL:
        return _hull_part(shape, by_file)
    if kind == BOX:
        size = [0.5 * s for s in shape.size]
    elif kind in (CAPSULE, CYLINDER):
        size[1] *= 0.5
    radius, centers = local_stand_ins(shape)
    around = float(bounding_radius(kind, np.array(size[:3], float)))
    return ShapePart(kind, T, (float(size[0]), float(size[1]), float(size[2])), around, _as_balls(centers, radius))


def bounding_radius(kind: int, size: Array) -> Array:
    """Return the radius (...) of the ball around spheres, capsules, boxes, cylinders or ellipsoids of sizes (..., 3)."""
    if kind == CAPSULE:
        return np.asarray(size[..., 0] + size[..., 1])
    return np.asarray(np.linalg.norm(size, axis=-1) if kind in (BOX, CYLINDER) else size.max(axis=-1))


def _hull_part(shape: Shape, by_file: bool) -> ShapePart:
    hull = hull_of_mesh(shape, by_file)
    middle = 0.5 * (hull.vertices.min(axis=0) + hull.vertices.max(axis=0))
    hull, T = hull._replace(vertices=hull.vertices - middle, around=hull.around - middle), np.eye(4)
    T[:3, 3] = middle
    around = float(np.linalg.norm(hull.vertices, axis=1).max())
    x, y, z = (hull.centroid - middle).tolist()
    return ShapePart(HULL, T, (x, y, z), around, _as_balls(extreme_points(hull.vertices), 0.0), hull)


def _as_balls(centers: Sequence[Triple] | Matrix, radius: float) -> Matrix:
    """Return the centres, in the part's frame, and the radius of the balls that represent a shape."""
    return np.array([(*c, radius) for c in centers], dtype=float).reshape(-1, 4)


def part_ranges(parts: Sequence[PartArrays]) -> IntegerMatrix:
    """Return the ranges of each part in the common arrays, (n, 8).

    Columns are the number of its height field; start and stop of its balls, of its vertices, and of its faces; and the first of
    its start vertices for searches (`Hull.starts`).
    """
    data = np.zeros((len(parts), 8), np.int64)
    data[:, 7] = np.cumsum([0, *(len(p.hull.starts) for p in parts)])[:-1]
    data[:, 0] = np.cumsum([0, *(p.field is not None for p in parts)])[:-1]
    for column, sizes in (
        (1, [len(p.balls) for p in parts]),
        (3, [len(p.hull.vertices) for p in parts]),
        (5, [len(p.hull.normals) for p in parts]),
    ):
        ends = np.cumsum([0, *sizes])
        data[:, column], data[:, column + 1] = ends[:-1], ends[1:]
    return data


def joined_fields(parts: Sequence[PartArrays]) -> HeightFields:
    """Return the height fields of all parts in one set of arrays."""
    fields = [p.field for p in parts if p.field is not None]
    starts = itertools.accumulate((f.grid.size for f in fields), initial=0)
    edges = [
        (f.x[0], f.y[0], (f.x[1] - f.x[0]) / (f.grid.shape[0] - 1), (f.y[1] - f.y[0]) / (f.grid.shape[1] - 1),
         f.grid.max(), f.base)
        for f in fields
    ]  # fmt: skip
    return HeightFields(
        heights=np.concatenate([np.zeros(0), *(f.grid.ravel() for f in fields)]),
        grid=np.array([(start, *f.grid.shape) for start, f in zip(starts, fields, strict=False)], np.int64).reshape(-1, 3),
        edges=np.array(edges, float).reshape(-1, 6),
    )


def joined_hulls(parts: Sequence[PartArrays]) -> Hulls:
    """Return the hulls of all parts in one set of arrays, with numbers counted from the first of all."""
    hulls = [p.hull for p in parts]
    vertex = np.cumsum([0, *(len(h.vertices) for h in hulls)])
    face = np.cumsum([0, *(len(h.normals) for h in hulls)])

    def ranges(name: str) -> Integers:
        lists = [np.diff(getattr(h, name)) for h in hulls]
        return np.cumsum(np.concatenate([[0], *lists])).astype(np.int64)

    def numbers(name: str, shift: Integers) -> Integers:
        lists = [getattr(h, name) + s for h, s in zip(hulls, shift, strict=False)]
        return np.concatenate([np.zeros(0, np.int64), *lists]).astype(np.int64)

    return Hulls(
        vertices=np.concatenate([np.zeros((0, 3)), *(h.vertices for h in hulls)]),
        around=np.concatenate([np.zeros((0, 3)), *(h.around for h in hulls)]),
        normals=np.concatenate([np.zeros((0, 3)), *(h.normals for h in hulls)]),
        links=ranges("links"), linked=numbers("linked", vertex), faces=ranges("faces"), corners=numbers("corners", vertex),
        owners=ranges("owners"), owned=numbers("owned", face),
        starts=numbers("starts", vertex),
    )  # fmt: skip
