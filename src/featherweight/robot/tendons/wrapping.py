"""The shortest path of a string around a sphere or a cylinder, or through a ring, between two outer points.

In the plane of the path the surface is a circle about the origin. The string leaves each point along a tangent:

    t = r²/d² a ± r/d² sqrt(d² - r²) a'     d = |a|, a' = a turned by 90 degrees

and follows the circle between both tangent points. It takes the shorter way if the straight line meets the circle, and always
the longer way if a side point lies on the other side of the origin. On a cylinder, the height is proportional to the unrolled
length of the path. If the side point lies inside, the string passes through the circle. If the straight line passes beside the
circle, the string touches it at one point, where the path is shortest: both segments have the same angle with the normal. The
conditions are those of MuJoCo (XML reference, element `geom` of `spatial`).
"""

from __future__ import annotations

from math import cos, pi, sin, sqrt
from typing import NamedTuple

from ...collision.triples import Triple, inner, length_of, outer, times

TINY = 1e-15
TURNS = 6  # steps of Newton's method for an angle
HALVINGS = 60  # most halvings of an interval

Flat = tuple[float, float]


class FlatPath(NamedTuple):
    """The points in the plane where a string meets and leaves a circle, and its length between them."""

    touches: bool
    x0: float
    y0: float
    x1: float
    y1: float
    length: float


class StringPath(NamedTuple):
    """The points where a string meets and leaves a surface, and its length between them."""

    touches: bool
    first: Triple
    last: Triple
    length: float


def angle_of(s: float, c: float) -> float:
    """Return the angle from 0 to pi whose sine and cosine are s >= 0 and c."""
    positive = c >= 0.0
    w = c if positive else -c
    angle = s if s < w else 0.5 * pi - w
    for _ in range(TURNS):
        angle += s * cos(angle) - w * sin(angle)
    return angle if positive else pi - angle


def wrap_around(x0: Triple, x1: Triple, radius: float, cylinder: bool, sided: bool, side: Triple) -> StringPath:
    """Return the path between two points around a sphere at the origin, or a cylinder about z."""
    nothing = StringPath(False, x0, x1, 0.0)
    if length_of(x0) < TINY or length_of(x1) < TINY:
        return nothing
    e, f = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)) if cylinder else plane_of(x0, x1)
    a, b, s = (inner(x0, e), inner(x0, f)), (inner(x1, e), inner(x1, f)), (inner(side, e), inner(side, f))
    far = sqrt(s[0] * s[0] + s[1] * s[1])
    if sided and length_of(side) < radius:
        flat = pass_through_circle(a, b, radius)
    else:
        toward = (s[0] / far, s[1] / far) if far > TINY else (1.0, 0.0)
        flat = wrap_around_circle(a, b, radius, sided, toward)
    if not flat.touches:
        return nothing
    first, last, arc = in_plane(e, f, flat.x0, flat.y0), in_plane(e, f, flat.x1, flat.y1), flat.length
    if not cylinder:
        return StringPath(True, first, last, arc)
    before, after = distance(a, (flat.x0, flat.y0)), distance(b, (flat.x1, flat.y1))
    whole, rise = before + arc + after, x1[2] - x0[2]
    first = first[0], first[1], x0[2] + rise * before / whole
    last = last[0], last[1], x0[2] + rise * (before + arc) / whole
    height = rise * arc / whole
    return StringPath(True, first, last, sqrt(arc * arc + height * height))


def wrap_around_circle(a: Flat, b: Flat, radius: float, sided: bool, toward: Flat) -> FlatPath:
    """Return the path around a circle; `toward` is the direction of the side on which it passes."""
    nothing, square = FlatPath(False, 0.0, 0.0, 0.0, 0.0, 0.0), radius * radius
    from_a, from_b = a[0] * a[0] + a[1] * a[1], b[0] * b[0] + b[1] * b[1]
    d0, d1 = b[0] - a[0], b[1] - a[1]
    apart = d0 * d0 + d1 * d1
    if from_a < square or from_b < square or radius < TINY or apart < TINY:
        return nothing
    area = a[0] * b[1] - a[1] * b[0]
    left = area if area != 0.0 else a[0] * toward[1] - a[1] * toward[0]
    turns = 1.0 if left >= 0.0 else -1.0
    if sided and lies_opposite(toward, a, b):
        turns = -turns
    else:
        part = min(max(-(d0 * a[0] + d1 * a[1]) / apart, 0.0), 1.0)
        if distance((0.0, 0.0), (a[0] + part * d0, a[1] + part * d1)) > radius:
            return nothing
    path = tangents(a, b, radius, turns)
    sine = (path.x0 * path.y1 - path.y0 * path.x1) / square * turns
    cosine = (path.x0 * path.x1 + path.y0 * path.y1) / square
    size = sqrt(sine * sine + cosine * cosine)
    angle = angle_of(abs(sine) / size, cosine / size)
    return FlatPath(True, path.x0, path.y0, path.x1, path.y1, radius * (angle if sine >= 0.0 else 2.0 * pi - angle))


def tangents(a: Flat, b: Flat, radius: float, turns: float) -> FlatPath:
    """Return the tangent points of a path that turns left about the origin (1.0), or right (-1.0)."""
    x0, y0 = tangent(a, radius, turns)
    x1, y1 = tangent(b, radius, -turns)
    return FlatPath(True, x0, y0, x1, y1, 0.0)


def tangent(a: Flat, radius: float, turns: float) -> Flat:
    """Return the point at which a line from a touches the circle, to the left of a's direction (1.0) or to the right (-1.0)."""
    square = a[0] * a[0] + a[1] * a[1]
    along, across = radius * radius / square, turns * radius * sqrt(max(square - radius * radius, 0.0)) / square
    return along * a[0] - across * a[1], along * a[1] + across * a[0]


def lies_opposite(s: Flat, a: Flat, b: Flat) -> bool:
    """Return whether the origin lies within the triangle of a, b and a point in this direction."""
    area = a[0] * b[1] - a[1] * b[0]
    return (s[0] * b[1] - s[1] * b[0]) * area < 0.0 and (a[0] * s[1] - a[1] * s[0]) * area < 0.0


def pass_through_circle(a: Flat, b: Flat, radius: float) -> FlatPath:
    """Return the path through a circle that touches it from inside if the straight line passes beside it."""
    nothing = FlatPath(False, 0.0, 0.0, 0.0, 0.0, 0.0)
    far_a, far_b = sqrt(a[0] * a[0] + a[1] * a[1]), sqrt(b[0] * b[0] + b[1] * b[1])
    if far_a <= radius or far_b <= radius or radius < TINY:
        return nothing
    d0, d1 = b[0] - a[0], b[1] - a[1]
    apart = d0 * d0 + d1 * d1
    if apart > TINY:
        part = -(d0 * a[0] + d1 * a[1]) / apart
        if 0.0 < part < 1.0 and distance((0.0, 0.0), (a[0] + part * d0, a[1] + part * d1)) <= radius:
            return nothing
    e = a[0] / far_a, a[1] / far_a
    cosine, sine = (a[0] * b[0] + a[1] * b[1]) / (far_a * far_b), (a[0] * b[1] - a[1] * b[0]) / (far_a * far_b)
    if cosine < -1.0 + TINY:
        return nothing
    left = 1.0 if sine >= 0.0 else -1.0
    size = sqrt(sine * sine + cosine * cosine)
    between = angle_of(abs(sine) / size, cosine / size)
    turned = touching_angle(far_a, far_b, radius, between)
    c, s = cos(turned), left * sin(turned)
    x, y = radius * (c * e[0] - s * e[1]), radius * (s * e[0] + c * e[1])
    return FlatPath(True, x, y, x, y, 0.0)


def touching_angle(far_a: float, far_b: float, radius: float, between: float) -> float:
    """Return the angle from a at which the path through a point of the circle is shortest.

    `between` is the angle between both points.
    """
    low, high = 0.0, between
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if pull_along_circle(far_a, radius, middle) > pull_along_circle(far_b, radius, between - middle):
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


def pull_along_circle(far: float, radius: float, angle: float) -> float:
    """Return the sine of the angle between the circle's normal and the line to a point at this distance and angle."""
    return far * sin(angle) / sqrt(far * far + radius * radius - 2.0 * far * radius * cos(angle))


def plane_of(x0: Triple, x1: Triple) -> tuple[Triple, Triple]:
    """Return unit vectors that span the plane of two points and the origin, the first along the first point."""
    e = unit(x0)
    normal = outer(x0, x1)
    if length_of(normal) < TINY:
        x, y, z = abs(e[0]), abs(e[1]), abs(e[2])
        first, second = x >= y and x >= z, y > x and y >= z
        normal = outer(e, (0.0, 1.0, 1.0) if first else (1.0, 0.0, 1.0) if second else (1.0, 1.0, 0.0))
    f = unit(outer(normal, e))
    return e, f


def in_plane(e: Triple, f: Triple, x: float, y: float) -> Triple:
    """Return x e + y f."""
    return x * e[0] + y * f[0], x * e[1] + y * f[1], x * e[2] + y * f[2]


def distance(a: Flat, b: Flat) -> float:
    """Return the distance of two points in the plane."""
    x, y = b[0] - a[0], b[1] - a[1]
    return sqrt(x * x + y * y)


def unit(a: Triple) -> Triple:
    """Return the direction of a vector."""
    return times(1.0 / length_of(a), a)
