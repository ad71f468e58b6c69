"""Contacts of shapes with half spaces.

Rows of `found` are as in `round_contacts`, but with points on the ground. A half space is below its z = 0.
"""

from __future__ import annotations

from math import cos, pi, sin, sqrt

from ..array_types import Matrix, Vector
from .face_clipping import MOST_POINTS, TILT
from .hulls import SearchedHull, farthest_vertex
from .round_contacts import put
from .triples import TripleLike, along, axis_of, inner, length_of, minus, outer, placed, position_of, times, turned_back

UPRIGHT = 0.9  # least cosine of a cylinder's tilt for which its whole end can be in contact
FLAT = 1e-7  # [m] height difference across a cylinder's end up to which the end has no lowest point
LEVEL = 1e-15  # sine of the angle below which an end has no lowest point for MuJoCo
HALF_OF_ROOT = 0.5 * sqrt(3.0)
BESIDE = 0.999  # cosine of the angle on a rim from which two points count as one


def point_plane(c: TripleLike, r: float, P: Vector, found: Matrix, k: int) -> int:
    """Write the contact of a ball, or a point, and a half space."""
    n = axis_of(P, 2)
    height = inner(n, minus(c, position_of(P)))
    return put(found, k, along(c, -height, n), n, height - r)


def capsule_plane(PA: Vector, S: Vector, PB: Vector, found: Matrix) -> int:
    """Write the contacts of both ends, in MuJoCo's order, on which `noslip_iterations` depends."""
    c, axis = position_of(PA), axis_of(PA, 2)
    point_plane(along(c, S[1], axis), S[0], PB, found, 0)
    return point_plane(along(c, -S[1], axis), S[0], PB, found, 1)


def box_plane(PA: Vector, H: Vector, PB: Vector, found: Matrix) -> int:
    """Write the contacts of all corners."""
    for i in range(8):
        corner = (H[0] if i & 1 else -H[0]), (H[1] if i & 2 else -H[1]), (H[2] if i & 4 else -H[2])
        point_plane(placed(PA, corner), 0.0, PB, found, i)
    return 8


def cylinder_plane(PA: Vector, S: Vector, PB: Vector, found: Matrix) -> int:
    """Write the contacts of the lowest points of both ends, and four rim points of the lower end if it is nearly level."""
    n = turned_back(PA, axis_of(PB, 2))
    end = -S[1] if n[2] >= 0.0 else S[1]  # the lower end
    level = sqrt(n[0] * n[0] + n[1] * n[1])
    x, y = (-n[0] / level, -n[1] / level) if level > 0.0 else (0.0, 0.0)
    k = 0
    if S[0] * level > FLAT:
        k = point_plane(placed(PA, (S[0] * x, S[0] * y, end)), 0.0, PB, found, k)
        k = point_plane(placed(PA, (S[0] * x, S[0] * y, -end)), 0.0, PB, found, k)
    if abs(n[2]) > UPRIGHT:
        for i in range(4):
            u = 1.0 if i == 0 else (-1.0 if i == 1 else 0.0)
            w = 1.0 if i == 2 else (-1.0 if i == 3 else 0.0)
            if u * x + w * y < BESIDE or S[0] * level <= FLAT:
                k = point_plane(placed(PA, (S[0] * u, S[0] * w, end)), 0.0, PB, found, k)
                found[k - 1, 7] = 2.0 + i
    return k


def cylinder_plane_by_file(PA: Vector, S: Vector, PB: Vector, found: Matrix) -> int:
    """Write the contacts that MuJoCo has: the lowest points of both ends, and two more of the lower end, 120° apart."""
    n = turned_back(PA, axis_of(PB, 2))
    end = -S[1] if n[2] >= 0.0 else S[1]  # the lower end
    level = sqrt(n[0] * n[0] + n[1] * n[1])
    x, y = (-n[0] / level, -n[1] / level) if level > LEVEL else (1.0, 0.0)
    point_plane(placed(PA, (S[0] * x, S[0] * y, end)), 0.0, PB, found, 0)
    point_plane(placed(PA, (S[0] * x, S[0] * y, -end)), 0.0, PB, found, 1)
    for i in range(2):
        side = HALF_OF_ROOT if i == 0 else -HALF_OF_ROOT
        point_plane(placed(PA, (S[0] * (-0.5 * x - side * y), S[0] * (-0.5 * y + side * x), end)), 0.0, PB, found, 2 + i)
    return 4


def ellipsoid_plane(PA: Vector, e: Vector, PB: Vector, found: Matrix) -> int:
    """Write the contact of the lowest point."""
    n = turned_back(PA, axis_of(PB, 2))
    s = e[0] * n[0], e[1] * n[1], e[2] * n[2]
    d = -1.0 / length_of(s)
    return point_plane(placed(PA, (d * e[0] * s[0], d * e[1] * s[1], d * e[2] * s[2])), 0.0, PB, found, 0)


def hull_plane(PA: Vector, hull: SearchedHull, PB: Vector, found: Matrix) -> int:
    """Write the contacts of the lowest vertex, and of those that would be lowest after small rotations in seven directions."""
    n = turned_back(PA, axis_of(PB, 2))
    x = (1.0, 0.0, 0.0) if abs(n[0]) < 0.9 else (0.0, 1.0, 0.0)
    x = along(x, -inner(x, n), n)
    x = times(1.0 / length_of(x), x)
    y = outer(n, x)
    vertices = hull[0]
    k = 0
    for i in range(MOST_POINTS):
        angle = 2.0 * pi * i / (MOST_POINTS - 1.0)
        tilt = 0.0 if i == 0 else TILT
        down = minus(times(tilt * cos(angle), x), n)
        vertex = farthest_vertex(hull, along(down, tilt * sin(angle), y))
        point_plane(placed(PA, vertices[vertex]), 0.0, PB, found, k)
        new = True
        for j in range(k):
            new = new and found[j, 7] != vertex
        if new:
            found[k, 7] = vertex
            k += 1
    for j in range(k):
        found[j, 7] = j
    return k
