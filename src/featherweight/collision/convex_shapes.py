"""Support points and faces of convex shapes, for distance algorithms."""

from __future__ import annotations

from math import cos, pi, sin, sqrt
from typing import NamedTuple

from ..array_types import Matrix, Vector
from .box_contacts import most_opposed
from .collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HULL, ROUND, SPHERE, Hulls
from .face_clipping import write_box_face
from .hulls import SearchedHull, farthest_vertex, searched_hull
from .query_tables import SearchWork, ShapeTable
from .triples import Triple, TripleLike, along, inner, placed, position_of, times, turned, turned_back

ALIGNED = 1.0 - 5e-11  # least cosine between a face's normal and the contact's for which the whole face is in contact
END = 0.7  # least cosine between a cylinder's axis and the contact's normal for which its end is in contact, not its side


class ConvexShape(NamedTuple):
    """A placed shape. Spheres are a point and capsules a segment, with a radius `rounding` [m] around them."""

    kind: int
    P: Vector  # placement row
    S: Vector  # size
    rounding: float
    hull: SearchedHull


def convex_shape(scene: ShapeTable, g: int, work: SearchWork) -> ConvexShape:
    """Return shape g of a scene."""
    kind, S, h = scene.kind[g], scene.size[g], scene.hulls
    rounding = S[0] if kind in (SPHERE, CAPSULE) else 0.0
    return ConvexShape(kind, work.placement[g], S, rounding, searched_hull(h, scene.data[g]))


def farthest_point(shape: ConvexShape, direction: TripleLike) -> Triple:
    """Return the point of a shape, without its rounding radius, that is farthest along a direction in the world frame."""
    x, _ = numbered_point(shape, direction)
    return x


def numbered_point(shape: ConvexShape, direction: TripleLike) -> tuple[Triple, int]:
    """Return the farthest point as `farthest_point` does, and the number of that corner, of a cylinder's end, or -1."""
    P, S, kind = shape.P, shape.S, shape.kind
    if kind == SPHERE:
        return position_of(P), -1
    d, number = turned_back(P, direction), -1
    if kind == BOX:
        x = (S[0] if d[0] >= 0.0 else -S[0]), (S[1] if d[1] >= 0.0 else -S[1]), (S[2] if d[2] >= 0.0 else -S[2])
        number = (1 if d[0] >= 0.0 else 0) + (2 if d[1] >= 0.0 else 0) + (4 if d[2] >= 0.0 else 0)
    elif kind == CAPSULE:
        x = (0.0, 0.0, S[1] if d[2] >= 0.0 else -S[1])
    elif kind == CYLINDER:
        out = sqrt(d[0] * d[0] + d[1] * d[1])
        scale = S[0] / out if out > 0.0 else 0.0
        x = (scale * d[0], scale * d[1], S[1] if d[2] >= 0.0 else -S[1])
        number = 0 if d[2] >= 0.0 else 1
    elif kind == ELLIPSOID:
        e0, e1, e2 = S[0] * d[0], S[1] * d[1], S[2] * d[2]
        scale = 1.0 / sqrt(e0 * e0 + e1 * e1 + e2 * e2)
        x = (scale * S[0] * e0, scale * S[1] * e1, scale * S[2] * e2)
    else:
        number = farthest_vertex(shape.hull, d)
        v = shape.hull[0][number]
        x = (v[0], v[1], v[2])
    return placed(P, x), number


def face_towards(hulls: Hulls, shape: ConvexShape, direction: TripleLike, polygon: Matrix) -> tuple[int, Triple]:
    """Write the face, side or point of a shape most aligned with a direction; return its number of corners and outward normal.

    Without a face (fewer than three corners), the normal is zero.
    """
    P, S, kind = shape.P, shape.S, shape.kind
    none = (0.0, 0.0, 0.0)
    if kind == BOX:
        k, sign = most_opposed(P, times(-1.0, direction))
        return write_box_face(P, S, k, sign, polygon), times(sign, (P[k], P[3 + k], P[6 + k]))
    d = turned_back(P, direction)
    if kind == CYLINDER and abs(d[2]) > END:
        side = 1.0 if d[2] > 0.0 else -1.0
        for i in range(ROUND):
            angle = side * 2.0 * pi * i / ROUND
            write_corner(polygon, i, placed(P, (S[0] * cos(angle), S[0] * sin(angle), side * S[1])))
        return ROUND, turned(P, (0.0, 0.0, side))
    if kind == HULL:
        face = face_of_hull(hulls, shape, d)
        first, stop = hulls.faces[face], hulls.faces[face + 1]
        for i in range(first, stop):
            write_corner(polygon, i - first, placed(P, hulls.vertices[hulls.corners[i]]))
        return stop - first, turned(P, hulls.normals[face])
    if kind in (CYLINDER, CAPSULE):
        out = sqrt(d[0] * d[0] + d[1] * d[1])
        x, y = (S[0] * d[0] / out, S[0] * d[1] / out) if out > 0.0 else (0.0, 0.0)
        write_corner(polygon, 0, placed(P, (x, y, -S[1])))
        write_corner(polygon, 1, placed(P, (x, y, S[1])))
        return 2, none
    write_corner(polygon, 0, along(farthest_point(shape, direction), shape.rounding, direction))
    return 1, none


def face_of_hull(hulls: Hulls, shape: ConvexShape, d: TripleLike) -> int:
    """Return the face most aligned with d (in the hull's frame) among those at its farthest vertex."""
    vertex = farthest_vertex(shape.hull, d)
    best, most = 0, -2.0
    for i in range(hulls.owners[vertex], hulls.owners[vertex + 1]):
        c = inner(hulls.normals[hulls.owned[i]], d)
        if c > most:
            best, most = hulls.owned[i], c
    return best


def write_corner(polygon: Matrix, i: int, x: TripleLike) -> None:
    polygon[i, 0], polygon[i, 1], polygon[i, 2] = x[0], x[1], x[2]
