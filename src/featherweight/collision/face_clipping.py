"""Contacts of two faces by clipping.

`polygons[0]` is the reference face, by its corners counter-clockwise about its outward normal; what touches it, a polygon, a
segment or a point, is in `polygons[1]`, and is cut by the planes through the sides of the reference.
"""

from __future__ import annotations

from math import cos, pi, sin

from ..engine.loops.array_types import Matrix, Tensor, Vector
from .round_contacts import SAME, put
from .triples import TripleLike, along, inner, length_of, minus, outer, plus, times

MOST_POINTS = 8  # of one pair's faces
EDGE_TOLERANCE = 1e-9  # of the length of a side: so far outside it counts as on it
NEARLY = 0.995  # cosine of the angle (0.1 rad) between a contact's normal and a face's, up to which the face touches too
TILT = 0.02  # of many points those count that would be deepest if the body were turned by this angle [rad] in 8 directions


def write_box_face(P: Vector, H: Vector, k: int, sign: float, polygon: Matrix) -> int:
    """The face of a box whose outward normal is sign times axis k: its corners, counter-clockwise about the normal."""
    i, j = (k + 1) % 3, (k + 2) % 3
    for c in range(4):
        u = H[i] if c == 0 or c == 3 else -H[i]
        w = sign * H[j] if c < 2 else -sign * H[j]
        for x in range(3):
            polygon[c, x] = P[9 + x] + sign * H[k] * P[3 * x + k] + u * P[3 * x + i] + w * P[3 * x + j]
    return 4


def clipped_faces(polygons: Tensor, m: int, count: int, normal: TripleLike) -> tuple[int, int]:
    """Cut the incident polygon by the m sides of the reference face; where it then is, and how many corners it has."""
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
            if a >= least:
                for x in range(3):
                    polygons[target, kept, x] = p[x]
                kept += 1
            if (a >= least) != (b >= least) and not (count == 2 and j == 1):
                t = min(max(a / (a - b), 0.0), 1.0)
                for x in range(3):
                    polygons[target, kept, x] = p[x] + t * (q[x] - p[x])
                kept += 1
        source, target, count = target, source, kept
        if count == 0:
            break
    return source, count


def put_face_points(polygons: Tensor, m: int, count: int, outward: TripleLike, sign: float, reach: float, found: Matrix) -> int:
    """Contacts of the reference face with the incident one below `reach`: gaps are those along the reference's normal.

    `outward` is that normal, `sign` times it leads from the second shape to the first.
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
    """Raise gaps of face points above the gap of two shapes: where these overlap, no point is deeper than they are."""
    for i in range(count):
        found[i, 6] = max(found[i, 6], least + SAME)


def spread(points: Matrix, count: int, outward: TripleLike, start: TripleLike, chosen: Matrix) -> int:
    """Write at most `MOST_POINTS` of many points: the deepest, and those that would be if the body turned a little."""
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
