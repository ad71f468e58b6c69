"""Contacts of balls and capsules in closed form.

Contacts of a pair of shapes are rows of `found`: the point (midway between the two surfaces), the normal from the second shape
to the first, the gap (negative for overlaps), and the number among the pair's candidates. `k` is the number of rows; functions
return the new number. Shapes are given by their placement rows (see `triples`) and sizes: radius and half length of capsules
and cylinders, half lengths of boxes, radii of ellipsoids.
"""

from __future__ import annotations

from math import sqrt

from ..array_types import Matrix, Vector
from .triples import (
    Triple,
    TripleLike,
    along,
    axis_of,
    clamped,
    component,
    inner,
    length_of,
    minus,
    outer,
    placed,
    position_of,
    seen_from,
    times,
    turned,
    with_component,
)  # fmt: skip

SAME = 1e-7  # [m] difference of depths below which points of one pair count once
PARALLEL = 0.05  # sine of the angle below which two capsules are in contact along a line
PARALLEL_BY_FILE = 1e-4  # the same for MuJoCo
THIN = 1e-12  # distance from an ellipsoid's plane of symmetry, relative to a radius, that counts as in the plane
NEWTON_STEPS = 60


def put(found: Matrix, k: int, point: TripleLike, normal: TripleLike, gap: float) -> int:
    """Write row k."""
    found[k, 0], found[k, 1], found[k, 2] = point[0], point[1], point[2]
    found[k, 3], found[k, 4], found[k, 5] = normal[0], normal[1], normal[2]
    found[k, 6], found[k, 7] = gap, k
    return k + 1


def ball_ball(c: TripleLike, r: float, d: TripleLike, s: float, found: Matrix, k: int) -> int:
    """Write the contact of balls at c and d with radii r and s."""
    apart = minus(c, d)
    distance = length_of(apart)
    n = times(1.0 / distance, apart) if distance > 0.0 else (0.0, 0.0, 1.0)
    gap = distance - r - s
    return put(found, k, along(d, s + 0.5 * gap, n), n, gap)


def ball_outside(c: TripleLike, r: float, P: Vector, inside: TripleLike, near: TripleLike, found: Matrix, k: int) -> int:
    """Write the contact of a ball outside a shape.

    `inside` is its centre in the shape's frame, and near[:3] the shape's nearest point there.
    """
    apart = minus(inside, near)
    distance = length_of(apart)
    n = turned(P, times(1.0 / distance, apart))
    gap = distance - r
    return put(found, k, along(c, -r - 0.5 * gap, n), n, gap)


def ball_box(c: TripleLike, r: float, P: Vector, H: Vector, found: Matrix, k: int) -> int:
    """Write the contact of a ball and a box."""
    x = seen_from(P, c)
    near = clamped(x[0], -H[0], H[0]), clamped(x[1], -H[1], H[1]), clamped(x[2], -H[2], H[2])
    if length_of(minus(x, near)) > 0.0:
        return ball_outside(c, r, P, x, near, found, k)
    least, face = H[0] - abs(x[0]), 0
    for i in range(1, 3):
        depth = H[i] - abs(component(x, i))
        if depth < least:
            least, face = depth, i
    n = times(1.0 if component(x, face) >= 0.0 else -1.0, axis_of(P, face))
    gap = -least - r
    return put(found, k, along(c, -r - 0.5 * gap, n), n, gap)


def ball_cylinder(c: TripleLike, r: float, P: Vector, S: Vector, found: Matrix, k: int) -> int:
    """Write the contact of a ball and a cylinder."""
    x = seen_from(P, c)
    out = sqrt(x[0] * x[0] + x[1] * x[1])
    side, end = S[0] - out, S[1] - abs(x[2])
    if side >= 0.0 and end >= 0.0:
        if side < end:
            local = (x[0] / out, x[1] / out, 0.0) if out > 0.0 else (1.0, 0.0, 0.0)
        else:
            local = (0.0, 0.0, 1.0 if x[2] >= 0.0 else -1.0)
        n, gap = turned(P, local), -min(side, end) - r
        return put(found, k, along(c, -r - 0.5 * gap, n), n, gap)
    shrink = S[0] / out if side < 0.0 else 1.0
    near = x[0] * shrink, x[1] * shrink, clamped(x[2], -S[1], S[1])
    return ball_outside(c, r, P, x, near, found, k)


def nearest_on_ellipsoid(x: TripleLike, e: Vector) -> tuple[Triple, Triple]:
    """Return the point of the surface with radii e nearest to x, and the normal there, both in its frame.

    The point is e² x / (t + e²) with the greatest t for which it is on the surface. Newton's method finds s = t + least² from
    below, applied to the reciprocal of the length of e x / (t + e²), which is nearly linear.
    """
    least = min(e[0], min(e[1], e[2]))
    a0 = e[0] * max(abs(x[0]), THIN * e[0])
    a1 = e[1] * max(abs(x[1]), THIN * e[1])
    a2 = e[2] * max(abs(x[2]), THIN * e[2])
    b0, b1, b2 = ((e[0] - least) * (e[0] + least), (e[1] - least) * (e[1] + least), (e[2] - least) * (e[2] + least))
    s = max(a0 - b0, max(a1 - b1, a2 - b2))
    for _ in range(NEWTON_STEPS):
        u0, u1, u2 = a0 / (s + b0), a1 / (s + b1), a2 / (s + b2)
        square = u0 * u0 + u1 * u1 + u2 * u2
        slope = u0 * u0 / (s + b0) + u1 * u1 / (s + b1) + u2 * u2 / (s + b2)
        more = square * (sqrt(square) - 1.0) / slope
        if not more > 1e-16 * s:
            break
        s += more
    u0, u1, u2 = a0 / (s + b0), a1 / (s + b1), a2 / (s + b2)
    unit = 1.0 / sqrt(u0 * u0 + u1 * u1 + u2 * u2)
    u0 = u0 * unit if x[0] >= 0.0 else -u0 * unit
    u1 = u1 * unit if x[1] >= 0.0 else -u1 * unit
    u2 = u2 * unit if x[2] >= 0.0 else -u2 * unit
    n = u0 / e[0], u1 / e[1], u2 / e[2]
    return (e[0] * u0, e[1] * u1, e[2] * u2), times(1.0 / length_of(n), n)


def ball_ellipsoid(c: TripleLike, r: float, P: Vector, e: Vector, found: Matrix, k: int) -> int:
    """Write the contact of a ball and an ellipsoid."""
    x = seen_from(P, c)
    near, normal = nearest_on_ellipsoid(x, e)
    n, gap = turned(P, normal), inner(normal, minus(x, near)) - r
    return put(found, k, along(placed(P, near), 0.5 * gap, n), n, gap)


def nearest_on_segment(x: TripleLike, P: Vector, half: float) -> Triple:
    """Return the point nearest to x on a segment along the z axis of a placement."""
    middle, axis = position_of(P), axis_of(P, 2)
    return along(middle, clamped(inner(axis, minus(x, middle)), -half, half), axis)


def ball_capsule(c: TripleLike, r: float, P: Vector, S: Vector, found: Matrix, k: int) -> int:
    """Write the contact of a ball and a capsule."""
    return ball_ball(c, r, nearest_on_segment(c, P, S[1]), S[0], found, k)


def nearest_place(PA: Vector, half: float, PB: Vector, other: float) -> float:
    """Return the position on the axis of A nearest to the axis of B.

    Each axis is a segment, given by its centre and half length.
    """
    u, w = axis_of(PA, 2), axis_of(PB, 2)
    apart = minus(position_of(PB), position_of(PA))
    cosine, a, b = inner(u, w), inner(u, apart), inner(w, apart)
    sine = length_of(outer(u, w))
    s = clamped((a - cosine * b) / (sine * sine), -half, half) if sine > 1e-9 else 0.0
    t = clamped(cosine * s - b, -other, other)
    return clamped(cosine * t + a, -half, half)


def capsule_capsule(PA: Vector, SA: Vector, PB: Vector, SB: Vector, found: Matrix, by_file: bool) -> int:
    """Write the contacts of two capsules: their nearest points, and both ends of the range where they are parallel.

    For MuJoCo (`by_file`), only capsules at a smaller angle are parallel. If they are next to each other, their nearest points
    are two contacts.
    """
    u, w, middle = axis_of(PA, 2), axis_of(PB, 2), position_of(PA)
    s = nearest_place(PA, SA[1], PB, SB[1])
    c = along(middle, s, u)
    k = ball_capsule(c, SA[0], PB, SB, found, 0)
    if length_of(outer(u, w)) > (PARALLEL_BY_FILE if by_file else PARALLEL):
        return k
    cosine, shift = inner(u, w), inner(u, minus(position_of(PB), middle))
    low = clamped(shift - abs(cosine) * SB[1], -SA[1], SA[1])
    high = clamped(shift + abs(cosine) * SB[1], -SA[1], SA[1])
    if high - low < SAME and not by_file:
        return k
    ball_capsule(along(middle, low, u), SA[0], PB, SB, found, 1)
    ball_capsule(along(middle, high, u), SA[0], PB, SB, found, 2)
    if found[0, 6] < min(found[1, 6], found[2, 6]) - SAME and not by_file:
        return 3
    for i in range(8):
        found[0, i] = found[2, i]
    return 2


def gap_of_capsules(PA: Vector, SA: Vector, PB: Vector, SB: Vector) -> float:
    """Return the gap of two capsules."""
    c = along(position_of(PA), nearest_place(PA, SA[1], PB, SB[1]), axis_of(PA, 2))
    return length_of(minus(c, nearest_on_segment(c, PB, SB[1]))) - SA[0] - SB[0]


def gap_of_capsule_and_box(PA: Vector, SA: Vector, PB: Vector, H: Vector) -> float:
    """Return the gap of a capsule and a box, at least minus its radius."""
    x = seen_from(PB, along(position_of(PA), -SA[1], axis_of(PA, 2)))
    d = minus(seen_from(PB, along(position_of(PA), SA[1], axis_of(PA, 2))), x)
    return distance_from_box(along(x, nearest_part(x, d, H), d), H) - SA[0]


def segment_slope(x: TripleLike, d: TripleLike, H: Vector, t: float) -> float:
    """Return half the derivative at x + t d of the squared distance from a box, in its frame."""
    y = along(x, t, d)
    total = 0.0
    for i in range(3):
        c = component(y, i)
        total += (c - clamped(c, -H[i], H[i])) * component(d, i)
    return total


def where_a_face_is_passed(x: TripleLike, d: TripleLike, H: Vector, i: int) -> float:
    """Return the t, clamped to 0 and 1, at which x + t d passes the plane of face i (0 to 5) of a box; 0 if parallel."""
    axis = i // 2
    c = component(d, axis)
    if c == 0.0:
        return 0.0
    side = H[axis] if i % 2 else -H[axis]
    return clamped((side - component(x, axis)) / c, 0.0, 1.0)


def nearest_part(x: TripleLike, d: TripleLike, H: Vector) -> float:
    """Return the t in [0, 1] at which x + t d is nearest to a box; the slope is linear between planes of its faces."""
    low, high = 0.0, 1.0
    below, above = segment_slope(x, d, H, low), segment_slope(x, d, H, high)
    if below >= 0.0:
        return low
    if above <= 0.0:
        return high
    for i in range(6):
        t = where_a_face_is_passed(x, d, H, i)
        if low < t < high:
            slope = segment_slope(x, d, H, t)
            if slope > 0.0:
                high, above = t, slope
            else:
                low, below = t, slope
    return low - below * (high - low) / (above - below)


def distance_from_box(x: TripleLike, H: Vector) -> float:
    """Return the distance of a point x, in the box's frame, from the box; zero inside."""
    a, b, c = max(abs(x[0]) - H[0], 0.0), max(abs(x[1]) - H[1], 0.0), max(abs(x[2]) - H[2], 0.0)
    return sqrt(a * a + b * b + c * c)


def capsule_box(PA: Vector, SA: Vector, PB: Vector, H: Vector, reach: float, found: Matrix) -> int:
    """Write the contacts of a capsule and a box: their nearest points, and both ends of the range where they are parallel."""
    x = seen_from(PB, along(position_of(PA), -SA[1], axis_of(PA, 2)))
    y = seen_from(PB, along(position_of(PA), SA[1], axis_of(PA, 2)))
    d = minus(y, x)
    t = nearest_part(x, d, H)
    nearest = distance_from_box(along(x, t, d), H)
    if nearest <= 1e-12 * (H[0] + H[1] + H[2]):
        return through_box(x, d, SA[0], PB, H, found)
    low, high = t, t
    for i in range(8):
        s = where_a_face_is_passed(x, d, H, i) if i < 6 else i - 6.0
        if distance_from_box(along(x, s, d), H) - SA[0] < reach:
            low, high = min(low, s), max(high, s)
    k = 0
    if (high - low) * length_of(d) > SAME:
        k = ball_box(placed(PB, along(x, low, d)), SA[0], PB, H, found, 0)
        k = ball_box(placed(PB, along(x, high, d)), SA[0], PB, H, found, 1)
    if k == 0 or nearest - SA[0] < min(found[0, 6], found[1, 6]) - SAME:
        k = ball_box(placed(PB, along(x, t, d)), SA[0], PB, H, found, k)
    return k


def through_box(x: TripleLike, d: TripleLike, r: float, P: Vector, H: Vector, found: Matrix) -> int:
    """Write the contact of a capsule whose axis, from x to x + d in a box's frame, passes through the box.

    The normal is the direction of least depth.
    """
    middle = along(x, 0.5, d)
    least, best = 1e300, 0
    n = (1.0, 0.0, 0.0)
    for i in range(6):
        axis = with_component((0.0, 0.0, 0.0), i % 3, 1.0)
        if i >= 3:
            axis = outer(d, axis)
            size = length_of(axis)
            if size <= 1e-6 * length_of(d):
                continue
            axis = times(1.0 / size, axis)
        wide = abs(axis[0]) * H[0] + abs(axis[1]) * H[1] + abs(axis[2]) * H[2]
        depth = wide + 0.5 * abs(inner(axis, d)) - abs(inner(axis, middle))
        if depth < least - 1e-9 * wide:
            least, best = depth, i
            n = axis if inner(axis, middle) >= 0.0 else times(-1.0, axis)
    normal = turned(P, n)
    if best >= 3:  # past an edge of the box
        corner = H[0] if n[0] >= 0.0 else -H[0], H[1] if n[1] >= 0.0 else -H[1], H[2] if n[2] >= 0.0 else -H[2]
        edge = with_component((0.0, 0.0, 0.0), best - 3, 1.0)
        across = outer(n, edge)  # direction in which the segment passes the edge
        speed = inner(across, d)
        s = clamped(inner(across, minus(corner, x)) / speed, 0.0, 1.0) if speed != 0.0 else 0.5
        return put(found, 0, placed(P, along(along(x, s, d), 0.5 * (least - r), n)), normal, -least - r)
    low, high = 0.0, 1.0
    for i in range(3):
        c = component(d, i)
        if i != best and c != 0.0:
            one, other = (-H[i] - component(x, i)) / c, (H[i] - component(x, i)) / c
            low, high = max(low, min(one, other)), min(high, max(one, other))
    k = 0
    for i in range(2):
        y = along(x, low if i == 0 else high, d)
        gap = inner(n, y) - H[best] - r
        k = put(found, k, placed(P, along(y, -r - 0.5 * gap, n)), normal, gap)
    return k
