"""Shapes and pairs of them as arrays for queries: which pairs touch, and how far they are apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..engine.loops.array_types import Booleans, IntegerMatrix, Integers, Matrix, Vector
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
    search_room,
)
from .shape_parts import ShapePart, joined_fields, joined_hulls, part_ranges

PRISM = 6  # corners of what a cell of a height field is made of, twice


class PairTable(NamedTuple):
    """Shapes, numbered, and pairs of them, the first of which has the lower kind. Planes and height fields are second.

    Names that a `CollisionScene` has, too, have its meaning.
    """

    kind: Integers  # (shapes,)
    size: Matrix  # (shapes, 3) [m]
    radius: Vector  # (shapes,) [m] of the ball around it
    inner: Vector  # (shapes,) [m] of a ball within it, both around its origin; minus infinity where there is none
    half: Matrix  # (shapes, 3) [m] half lengths of the box around it
    data: IntegerMatrix  # (shapes, 8)
    pair: IntegerMatrix  # (pairs, 2)
    flipped: Booleans  # (pairs,) who asked has the shapes in the other order
    hulls: Hulls
    fields: HeightFields


class QueryWork(NamedTuple):
    """Room for queries to work in; of one thread."""

    machine: MachineCall  # of `placement` from `q`
    q: Vector  # (nq,)
    placement: Matrix  # (shapes, 12) in the world
    order: Integers  # (pairs,) in which `any_pair_touches` looks at them
    found: Matrix  # (1, 8) see `round_contacts`
    supports: Matrix  # as in `CollisionWork`
    planes: Matrix
    triangles: IntegerMatrix
    horizon: IntegerMatrix
    weights: Vector
    nearest: Vector  # (9,) points of both shapes, normal from the second to the first
    best: Vector  # (9,) the same, of the nearest part of a height field
    prism: Matrix  # (6, 3) corners of a part of a height field, from its middle
    middle: Vector  # (12,) placement of that


ShapeTable = CollisionScene | PairTable
SearchWork = CollisionWork | QueryWork


def pair_table(parts: Sequence[ShapePart], pairs: Sequence[tuple[int, int]]) -> PairTable:
    """Return the table of pairs of parts by their numbers."""
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
    """Return room for one thread, for states of nq numbers and the machine code `int f(double **)` that places shapes, or 0."""
    q, placement = np.zeros(nq), np.zeros((len(table.kind), 12))
    return QueryWork(
        machine=MachineCall(address, np.array([q.ctypes.data, placement.ctypes.data], np.int64)),
        q=q,
        placement=placement,
        order=np.arange(len(table.pair)),
        found=np.zeros((1, 8)),
        **search_room(),
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
    """Return the radius of a ball around a part's origin that is within the part; minus infinity where there is none."""
    if part.kind == HULL:
        hull = part.hull
        heights = np.einsum("fi,fi->f", hull.normals, hull.vertices[hull.corners[hull.faces[:-1]]])
        return float(heights.min()) if heights.min() >= 0.0 else -np.inf
    if part.kind >= PLANE:
        return -np.inf
    x, y, z = part.size
    return {SPHERE: x, CAPSULE: x, CYLINDER: min(x, y)}.get(part.kind, min(x, y, z))
