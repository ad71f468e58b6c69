"""Volumes of sensors: tests for points inside and for rays that hit them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array
from ..model.types import SensorZone, ShapeType

Span = tuple[Array, Array]  # first and last parameter of a ray inside a volume; last < first if the ray misses


def is_inside(zone: SensorZone, points: Array) -> Array:
    """Return whether points (..., 3) in the zone's frame are inside it or on its surface."""
    kind, size = zone
    x, y, z = np.moveaxis(np.abs(points), -1, 0)
    if kind is ShapeType.BOX:
        return np.asarray((2.0 * np.abs(points) <= np.array(size)).all(axis=-1))
    if kind is ShapeType.CYLINDER:
        return np.asarray((np.hypot(x, y) <= size[0]) & (2.0 * z <= size[1]))
    if kind is ShapeType.CAPSULE:
        beyond = np.maximum(z - 0.5 * size[1], 0.0)
        return np.asarray(x * x + y * y + beyond * beyond <= size[0] ** 2)
    radii = np.array(size if kind is ShapeType.ELLIPSOID else (size[0],) * 3)
    return np.asarray(((points / radii) ** 2).sum(axis=-1) <= 1.0)


def is_met(zone: SensorZone, points: Array, directions: Array) -> Array:
    """Return whether rays from points (..., 3) along directions (..., 3), in the zone's frame, hit it or start inside."""
    kind, size = zone
    if kind is ShapeType.BOX:
        spans = [_common(_slab(points, directions, k, 0.5 * size[k]) for k in range(3))]
    elif kind is ShapeType.CYLINDER:
        spans = [_common((_slab(points, directions, 2, 0.5 * size[1]), _round(points, directions, (size[0], size[0], np.inf))))]
    elif kind is ShapeType.CAPSULE:
        up = np.array((0.0, 0.0, 0.5 * size[1]))
        tube = _slab(points, directions, 2, 0.5 * size[1]), _round(points, directions, (size[0], size[0], np.inf))
        balls = [_round(points + end, directions, (size[0],) * 3) for end in (-up, up)]
        spans = [_common(tube), *balls]
    else:
        spans = [_round(points, directions, size if kind is ShapeType.ELLIPSOID else (size[0],) * 3)]
    return np.asarray(np.any([(last >= first) & (last >= 0.0) for first, last in spans], axis=0))


def _slab(points: Array, directions: Array, axis: int, half: float) -> Span:
    """Return the span in which a ray is within ±half along an axis."""
    x, d = points[..., axis], directions[..., axis]
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = (-half - x) / d, (half - x) / d
    within = np.abs(x) <= half
    first = np.where(d == 0.0, np.where(within, -np.inf, np.inf), np.minimum(a, b))
    return first, np.where(d == 0.0, np.where(within, np.inf, -np.inf), np.maximum(a, b))


def _round(points: Array, directions: Array, radii: ArrayLike) -> Span:
    """Return the span in which a ray is within an ellipsoid; an infinite radius gives a cylinder."""
    scale = 1.0 / np.array(radii)
    p, d = points * scale, directions * scale
    a, b, c = (d * d).sum(-1), (p * d).sum(-1), (p * p).sum(-1) - 1.0
    square = b * b - a * c
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(square, 0.0))
        first, last = (-b - root) / a, (-b + root) / a
    along = a == 0.0
    first = np.where(along, np.where(c <= 0.0, -np.inf, np.inf), np.where(square >= 0.0, first, np.inf))
    return first, np.where(along, np.where(c <= 0.0, np.inf, -np.inf), np.where(square >= 0.0, last, -np.inf))


def _common(spans: Iterable[Span]) -> Span:
    """Return the span in which a ray is within all of several volumes."""
    firsts, lasts = zip(*spans, strict=True)
    return np.maximum.reduce(firsts), np.minimum.reduce(lasts)
