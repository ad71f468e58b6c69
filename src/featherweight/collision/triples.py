"""Vectors as tuples of three floats, and placements of shapes as rows of twelve.

A placement row is a rotation by rows, R[0, 0], R[0, 1], ..., R[2, 2], followed by the position.
"""

from __future__ import annotations

from math import sqrt

from ..array_types import Vector

Triple = tuple[float, float, float]
TripleLike = Triple | Vector
"""Three numbers: a tuple, or the first numbers of a row of an array."""


def plus(a: TripleLike, b: TripleLike) -> Triple:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def minus(a: TripleLike, b: TripleLike) -> Triple:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def times(s: float, a: TripleLike) -> Triple:
    return s * a[0], s * a[1], s * a[2]


def along(a: TripleLike, s: float, b: TripleLike) -> Triple:
    """Return a + s b."""
    return a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]


def inner(a: TripleLike, b: TripleLike) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def outer(a: TripleLike, b: TripleLike) -> Triple:
    """Return the vector product."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def length_of(a: TripleLike) -> float:
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


def axis_of(P: Vector, k: int) -> Triple:
    """Return an axis of a placed shape in the world frame."""
    return P[k], P[3 + k], P[6 + k]


def position_of(P: Vector) -> Triple:
    return P[9], P[10], P[11]


def turned(P: Vector, x: TripleLike) -> Triple:
    """Rotate a vector from the shape's frame to the world frame."""
    return (
        P[0] * x[0] + P[1] * x[1] + P[2] * x[2],
        P[3] * x[0] + P[4] * x[1] + P[5] * x[2],
        P[6] * x[0] + P[7] * x[1] + P[8] * x[2],
    )


def turned_back(P: Vector, x: TripleLike) -> Triple:
    """Rotate a vector from the world frame to the shape's frame."""
    return (
        P[0] * x[0] + P[3] * x[1] + P[6] * x[2],
        P[1] * x[0] + P[4] * x[1] + P[7] * x[2],
        P[2] * x[0] + P[5] * x[1] + P[8] * x[2],
    )


def placed(P: Vector, x: TripleLike) -> Triple:
    """Transform a point from the shape's frame to the world frame."""
    return plus(turned(P, x), position_of(P))


def seen_from(P: Vector, x: TripleLike) -> Triple:
    """Transform a point from the world frame to the shape's frame."""
    return turned_back(P, minus(x, position_of(P)))


def component(a: TripleLike, k: int) -> float:
    """Return an element of a tuple by a variable index."""
    return a[0] if k == 0 else (a[1] if k == 1 else a[2])


def with_component(a: TripleLike, k: int, x: float) -> Triple:
    """Return the tuple with a new element at index k."""
    return x if k == 0 else a[0], x if k == 1 else a[1], x if k == 2 else a[2]


def clamped(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)
