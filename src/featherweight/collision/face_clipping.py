"""Contacts of two faces by clipping.

`polygons[0]` is the reference face: its corners, counter-clockwise about its outward normal. `polygons[1]` is the incident
polygon, segment or point. It is clipped by the planes through the sides of the reference face.
"""

from __future__ import annotations

from math import cos, pi, sin

from ..array_types import Matrix, Tensor, Vector
from .round_contacts import SAME, put
from .triples import TripleLike, along, inner, length_of, minus, outer, plus, times

MOST_POINTS = 8  # greatest number of points of a pair of faces
EDGE_TOLERANCE = 1e-9  # distance outside a side, relative to its length, that counts as on it
NEARLY = 0.995  # least cosine (0.1 rad) between a contact's normal and a face's for which the face is in contact
TILT = 0.02  # [rad] of many points, those are chosen that would be deepest after a rotation by this angle in 8 directions


def write_box_face(P: Vector, H: Vector, k: int, sign: float, polygon: Matrix) -> int:
    """Write the face of a box with outward normal sign times axis k: its corners, counter-clockwise about the normal."""
    i, j = (k + 1) % 3, (k + 2) % 3
    for c in range(4):
        u = H[i] if c == 0 or c == 3 else -H[i]
        w = sign * H[j] if c < 2 else -sign * H[j]
        for x in range(3):
            polygon[c, x] = P[9 + x] + sign * H[k] * P[3 * x + k] + u * P[3 * x + i] + w * P[3 * x + j]
    return 4


def clipped_faces(polygons: Tensor, m: int, count: int, normal: TripleLike) -> tuple[int, int]:
    """Clip the incident polygon by the m sides of the reference face.

    Return its place in `polygons` and its number of corners.
    """
    source, target = 1, 2
    for i in range(m):
        start = polygons[0, i]
        side = minus(polygons[0, (i + 1) % m], start)
        inward = outer(normal, side)
        least = -EDGE_TOLERANCE * inner(side, side)
        kept = 0
        for j in range(count):
            p, q = polygons[source, j], polygons[source, (j + 1) % count]
            a, b = inner(inward, minus(p, start)), inner(inward, minus(q, start))
            if (a >= least) != (b >= least) and not (count == 2 and j == 1):
                t = min(max(a / (a - b), 0.0), 1.0)
                for x in range(3):
                    polygons[target, kept, x] = p[x] + t * (q[x] - p[x])
                kept += 1
            if b >= least:
                for x in range(3):
                    polygons[target, kept, x] = q[x]
                kept += 1
        source, target, count = target, source, kept
        if count == 0:
            break
    return source, count


def put_face_points(polygons: Tensor, m: int, count: int, outward: TripleLike, sign: float, reach: float, found: Matrix) -> int:
    """Write the contacts of the reference face with the incident one below `reach`; gaps are along the reference's normal.

    `outward` is that normal; `sign` times it points from the second shape to the first.
    """
    source, count = clipped_faces(polygons, m, count, outward)
    start = polygons[0, 0]
    near = 0
    for j in range(count):
        gap = inner(outward, minus(polygons[source, j], start))
        if gap < reach:
            for x in range(3):
                polygons[source, near, x] = polygons[source, j, x]
            near += 1
    if near > MOST_POINTS:
        near = spread(polygons[source], near, outward, start, polygons[3 - source])
        source = 3 - source
    normal = times(sign, outward)
    for j in range(near):
        x = polygons[source, j]
        gap = inner(outward, minus(x, start))
        put(found, j, along(x, -0.5 * gap, outward), normal, gap)
    return near


def raise_gaps(found: Matrix, count: int, least: float) -> None:
    """Limit the gaps of face points from below by the gap of two shapes: no point is deeper than overlapping shapes are."""
    for i in range(count):
        found[i, 6] = max(found[i, 6], least + SAME)


def spread(points: Matrix, count: int, outward: TripleLike, start: TripleLike, chosen: Matrix) -> int:
    """Write at most `MOST_POINTS` of many points: the deepest ones, and those that would be deepest after small rotations."""
    first = outer(outward, minus(points[1], points[0]))
    size = length_of(first)
    u = times(1.0 / size, first) if size > 0.0 else first
    w = outer(outward, u)
    kept = 0
    for d in range(MOST_POINTS):
        angle = 2.0 * pi * d / (MOST_POINTS - 1.0)
        tilt = 0.0 if d == 0 else TILT
        direction = plus(outward, plus(times(-tilt * cos(angle), u), times(-tilt * sin(angle), w)))
        best, least = 0, inner(direction, minus(points[0], start))
        for j in range(1, count):
            depth = inner(direction, minus(points[j], start))
            if depth < least:
                best, least = j, depth
        new = True
        for j in range(kept):
            new = new and length_of(minus(chosen[j], points[best])) > 0.0
        if new:
            for x in range(3):
                chosen[kept, x] = points[best, x]
            kept += 1
    return kept
