"""Distances between balls and obstacles with derivatives everywhere, including the inside and the edges of obstacles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..spatial import Scalar, sqrt

ROUNDED = 1e-6  # [m] radius of rounded edges, at which distances then have derivatives

Point = list[Scalar]


def length(*x: Scalar) -> Scalar:
    """Return the norm of a vector, rounded off at zero."""
    return sqrt(sum((a * a for a in x), ROUNDED * ROUNDED))


def positive(x: Scalar) -> Scalar:
    """Return max(x, 0), rounded off at zero."""
    return 0.5 * (x + length(x))


def greatest(*x: Scalar) -> Scalar:
    """Return the greatest of some numbers, rounded off where two are equal."""
    most, *others = x
    for a in others:
        most = a + positive(most - a)
    return most


def placed_point(T: Any, p: Any) -> Point:
    """Return a point of a frame at T, a matrix (4, 4) or its first three rows, in the world."""
    return [T[i][3] + sum((T[i][j] * p[j] for j in range(3)), 0.0) for i in range(3)]


def point_in_frame(T: Any, p: Any) -> Point:
    """Return a point of the world in a frame at T."""
    return [sum((T[i][j] * (p[i] - T[i][3]) for i in range(3)), 0.0) for j in range(3)]


def from_box(halves: tuple[float, float, float], p: Point) -> Scalar:
    """Return the distance [m] of a point in a box's frame from the box, negative inside."""
    beyond = [length(x) - half for x, half in zip(p, halves, strict=True)]
    return from_faces(beyond)


def from_cylinder(radius: float, half: float, p: Point) -> Scalar:
    """Return the distance [m] of a point in a cylinder's frame from the cylinder, negative inside."""
    return from_faces([length(p[0], p[1]) - radius, length(p[2]) - half])


def from_faces(beyond: list[Scalar]) -> Scalar:
    """Return the distance from a shape, given the distances beyond faces that are perpendicular to each other."""
    outside = length(*(positive(x) for x in beyond))
    return outside - positive(0.0 - greatest(*beyond))


def from_capsule(radius: float, half: float, p: Point) -> Scalar:
    """Return the distance [m] of a point in a capsule's frame from the capsule, which is a sphere if `half` is zero."""
    x, y, z = p
    nearest = 0.5 * (length(z + half) - length(z - half)) if half > 0.0 else 0.0
    return length(x, y, z - nearest) - radius


def distance_from(
    kind: str,
    size: tuple[float, ...],
    T: Any,
    p: Any,
    center: Sequence[float] = (0.0, 0.0, 0.0),
) -> Scalar:
    """Return the distance [m] of a point of the world from a shape around a centre of the frame T.

    Kinds and sizes are those of `Shape`.
    """
    own = [x - c for x, c in zip(point_in_frame(T, p), center, strict=True)]
    if kind == "sphere":
        return from_capsule(size[0], 0.0, own)
    if kind == "capsule":
        return from_capsule(size[0], 0.5 * size[1], own)
    if kind == "cylinder":
        return from_cylinder(size[0], 0.5 * size[1], own)
    if kind == "box":
        return from_box((0.5 * size[0], 0.5 * size[1], 0.5 * size[2]), own)
    return own[2]  # a plane
