"""Volumes of sensors: tests for points inside and for rays that hit them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from ..array_types import Booleans, Integers, Matrix
from ..engine.loops.kernels import compiled
from ..model.types import SensorZone, ShapeType
from ..spatial import Vec3

Span = tuple[float, float]  # first and last parameter of a ray inside a volume; last < first if the ray misses

BOX, CYLINDER, CAPSULE, ELLIPSOID = range(4)
KINDS = {ShapeType.BOX: BOX, ShapeType.CYLINDER: CYLINDER, ShapeType.CAPSULE: CAPSULE}


class Zones(NamedTuple):
    """Volumes in the frames of sensors."""

    kind: Integers  # (n,)
    size: Matrix  # (n, 3) [m] half lengths of boxes, semi-axes of ellipsoids; radius and half length of others


def zones_of(zones: Sequence[SensorZone]) -> Zones:
    """Return the volumes of sensors."""
    sizes = [_size(z) for z in zones]
    return Zones(np.array([KINDS.get(z.type, ELLIPSOID) for z in zones], np.int64), np.array(sizes, float).reshape(-1, 3))


def _size(zone: SensorZone) -> tuple[float, float, float]:
    if zone.type in (ShapeType.CYLINDER, ShapeType.CAPSULE):
        return zone.size[0], 0.5 * zone.size[1], 0.0
    x, y, z = zone.size if len(zone.size) == 3 else zone.size * 3
    return (0.5 * x, 0.5 * y, 0.5 * z) if zone.type is ShapeType.BOX else (x, y, z)


def is_inside(zones: Zones, k: int, p: Vec3) -> bool:
    """Return whether a point in the frame of a zone is inside it or on its surface."""
    kind, a, b, c = zones.kind[k], zones.size[k, 0], zones.size[k, 1], zones.size[k, 2]
    x, y, z = abs(p.x), abs(p.y), abs(p.z)
    if kind == BOX:
        return bool(x <= a and y <= b and z <= c)
    if kind == CYLINDER:
        return bool(sqrt(x * x + y * y) <= a and z <= b)
    if kind == CAPSULE:
        beyond = max(z - b, 0.0)
        return bool(x * x + y * y + beyond * beyond <= a * a)
    return bool(x / a * (x / a) + y / b * (y / b) + z / c * (z / c) <= 1.0)


@compiled
def are_inside(zones: Zones, points: Matrix, inside: Booleans) -> None:
    """Write whether points (n, 3) in the frame of the first zone are inside it or on its surface."""
    for i in range(len(points)):
        inside[i] = is_inside(zones, 0, Vec3(points[i, 0], points[i, 1], points[i, 2]))


def is_met(zones: Zones, k: int, p: Vec3, d: Vec3) -> bool:
    """Return whether a ray from p along d, in the frame of a zone, hits it or starts inside."""
    kind, a, b, c = zones.kind[k], zones.size[k, 0], zones.size[k, 1], zones.size[k, 2]
    if kind == BOX:
        return is_ahead(common(common(slab(p.x, d.x, a), slab(p.y, d.y, b)), slab(p.z, d.z, c)))
    if kind == ELLIPSOID:
        return is_ahead(in_unit_ball(Vec3(p.x / a, p.y / b, p.z / c), Vec3(d.x / a, d.y / b, d.z / c)))
    q, e = (1.0 / a) * p, (1.0 / a) * d
    if is_ahead(common(slab(p.z, d.z, b), in_unit_ball(Vec3(q.x, q.y, 0.0), Vec3(e.x, e.y, 0.0)))):
        return True
    up = Vec3(0.0, 0.0, b / a)
    return bool(kind == CAPSULE and (is_ahead(in_unit_ball(q - up, e)) or is_ahead(in_unit_ball(q + up, e))))


def is_ahead(span: Span) -> bool:
    """Return whether a ray is inside a volume somewhere."""
    return span[1] >= span[0] and span[1] >= 0.0


def slab(x: float, d: float, half: float) -> Span:
    """Return the span in which a coordinate x + t d is within ±half."""
    if d == 0.0:
        return (-inf, inf) if abs(x) <= half else (inf, -inf)
    a, b = (-half - x) / d, (half - x) / d
    return min(a, b), max(a, b)


def in_unit_ball(p: Vec3, d: Vec3) -> Span:
    """Return the span in which a ray is within the unit ball."""
    a, b, c = d.dot(d), p.dot(d), p.dot(p) - 1.0
    if a == 0.0:
        return (-inf, inf) if c <= 0.0 else (inf, -inf)
    square = b * b - a * c
    if square < 0.0:
        return inf, -inf
    root = sqrt(square)
    return (-b - root) / a, (-b + root) / a


def common(a: Span, b: Span) -> Span:
    """Return the span in which a ray is within both of two volumes."""
    return max(a[0], b[0]), min(a[1], b[1])
