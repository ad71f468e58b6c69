"""Shapes and pairs as arrays for queries of touching pairs and of distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import Booleans, IntegerMatrix, Integers, Matrix, Vector
from ..engine.loops.kernels import MachineCall
from .collision_scene import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    HULL,
    PLANE,
    SPHERE,
    CollisionScene,
    CollisionWork,
    HeightFields,
    Hulls,
    search_arrays,
)
from .shape_parts import ShapePart, joined_fields, joined_hulls, part_ranges

PRISM = 6  # corners of a prism, two of which compose a cell of a height field


class PairTable(NamedTuple):
    """Shapes and pairs by number. In a pair, the shape with the lower kind comes first; planes and height fields come second.

    Names shared with `CollisionScene` have the same meaning.
    """

    kind: Integers  # (shapes,)
    size: Matrix  # (shapes, 3) [m]
    radius: Vector  # (shapes,) [m] radius of the bounding ball around the origin
    inner: Vector  # (shapes,) [m] radius of a ball inside the shape around its origin; minus infinity if there is none
    half: Matrix  # (shapes, 3) [m] half lengths of the bounding box
    data: IntegerMatrix  # (shapes, 8)
    pair: IntegerMatrix  # (pairs, 2)
    flipped: Booleans  # (pairs,) the request has the shapes in the opposite order
    hulls: Hulls
    fields: HeightFields


class QueryWork(NamedTuple):
    """Workspace of queries for one thread."""

    machine: MachineCall  # computes `placement` from `q`
    q: Vector  # (nq,)
    placement: Matrix  # (shapes, 12) in the world
    order: Integers  # (pairs,) order of pairs in `any_pair_touches`
    found: Matrix  # (1, 8) see `round_contacts`
    supports: Matrix  # as in `CollisionWork`
    planes: Matrix
    triangles: IntegerMatrix
    horizon: IntegerMatrix
    weights: Vector
    nearest: Vector  # (9,) points of both shapes, and normal from the second to the first
    face: Integers  # (1,) as in `CollisionWork`
    best: Vector  # (9,) the same for the nearest prism of a height field
    prism: Matrix  # (6, 3) corners of a prism of a height field, relative to its centre
    middle: Vector  # (12,) placement of the prism


ShapeTable = CollisionScene | PairTable
SearchWork = CollisionWork | QueryWork


def pair_table(parts: Sequence[ShapePart], pairs: Sequence[tuple[int, int]]) -> PairTable:
    """Return the table of pairs of parts, given by number."""
    kinds = np.array([p.kind for p in parts], np.int64)
    numbers = np.array(pairs, np.int64).reshape(-1, 2)
    flipped = kinds[numbers[:, 0]] > kinds[numbers[:, 1]] if len(parts) else np.zeros(0, bool)
    return PairTable(
        kind=kinds,
        size=np.array([p.size for p in parts], float).reshape(-1, 3),
        radius=np.array([p.radius for p in parts], float),
        inner=np.array([_inner_radius(p) for p in parts], float),
        half=np.array([_half_lengths(p) for p in parts], float).reshape(-1, 3),
        data=part_ranges(parts),
        pair=np.where(flipped[:, None], numbers[:, ::-1], numbers),
        flipped=np.asarray(flipped),
        hulls=joined_hulls(parts),
        fields=joined_fields(parts),
    )


def query_work(table: PairTable, nq: int, address: int) -> QueryWork:
    """Return the workspace of one thread, for states of nq numbers.

    `address` is that of machine code `int f(double **)` that places shapes, or 0.
    """
    q, placement = np.zeros(nq), np.zeros((len(table.kind), 12))
    return QueryWork(
        machine=MachineCall(address, np.array([q.ctypes.data, placement.ctypes.data], np.int64)),
        q=q,
        placement=placement,
        order=np.arange(len(table.pair)),
        found=np.zeros((1, 8)),
        **search_arrays(),
        best=np.zeros(9),
        prism=np.zeros((PRISM, 3)),
        middle=np.zeros(12),
    )


def _half_lengths(part: ShapePart) -> Sequence[float]:
    x, y, z = part.size
    if part.kind == HULL:
        return [float(s) for s in np.abs(part.hull.vertices).max(axis=0)]
    return {SPHERE: (x, x, x), CAPSULE: (x, x, x + y), CYLINDER: (x, x, y), BOX: (x, y, z), ELLIPSOID: (x, y, z)}.get(
        part.kind, (0.0, 0.0, 0.0)
    )


def _inner_radius(part: ShapePart) -> float:
    """Return the radius of a ball around a part's origin inside the part; minus infinity if there is none."""
    if part.kind == HULL:
        hull = part.hull
        heights = np.einsum("fi,fi->f", hull.normals, hull.vertices[hull.corners[hull.faces[:-1]]])
        return float(heights.min()) if heights.min() >= 0.0 else -np.inf
    if part.kind >= PLANE:
        return -np.inf
    x, y, z = part.size
    return {SPHERE: x, CAPSULE: x, CYLINDER: min(x, y)}.get(part.kind, min(x, y, z))
