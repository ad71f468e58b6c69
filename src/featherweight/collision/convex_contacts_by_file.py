"""Contacts of convex shapes that overlap, as in MuJoCo.

They are in contact where the search for their depth ended, at the points of which a triangle of their difference is made: along
two of the faces there that nearly oppose each other, or along an edge that nearly lies in a face, with at most four points;
otherwise at the deepest point alone. An end of a cylinder is a face with 16 corners, and the side of a cylinder or a capsule
that faces the other shape is an edge.
"""

from __future__ import annotations

from math import cos, pi, sin

from ..array_types import Integers, Matrix, Tensor, Vector
from .box_contacts import most_opposed
from .collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HULL, SPHERE, CollisionWork, Hulls
from .convex_shapes import ConvexShape, face_towards, write_corner
from .face_clipping import clipped_faces, put_face_points, write_box_face
from .ground_contacts import point_plane
from .round_contacts import put
from .triples import (
    Triple,
    TripleLike,
    along,
    axis_of,
    inner,
    length_of,
    minus,
    outer,
    placed,
    position_of,
    times,
    turned,
)

OPPOSED = 0.996  # least cosine between the normal of a face and the opposite of that of another in contact
IN_FACE = 0.0888  # greatest sine of the angle between an edge and a face in contact
MOST = 4  # contacts of two faces
STRAIGHT = 0.7  # least cosine between the normal of the deepest point and that of an end of a cylinder, or a face at an edge
CORNERS = 16  # of an end of a cylinder


def contacts_by_file(
    hulls: Hulls, shapes: tuple[ConvexShape, ConvexShape], contact: tuple[Triple, Triple, float], work: CollisionWork
) -> int:  # fmt: skip
    """Write the contacts of two shapes; `contact` is their deepest point, the normal and the gap.

    `work.nearest` has the result of `gap_of_convex`.
    """
    one, other = shapes
    point, n, gap = contact
    swapped = one.kind == BOX and other.kind == CYLINDER  # MuJoCo has cylinders before boxes
    k = 0
    if gap < 0.0 and one.kind != SPHERE and one.kind != ELLIPSOID and other.kind != ELLIPSOID:
        k = on_faces(hulls, (other, one) if swapped else shapes, (6, 3) if swapped else (3, 6), n, work)
    if k == 0:
        return put(work.found, 0, point, n, gap)
    for c in range(k if swapped else 0):
        for x in range(3):
            work.found[c, 3 + x] = -work.found[c, 3 + x]
    return k


def on_faces(
    hulls: Hulls, shapes: tuple[ConvexShape, ConvexShape], columns: tuple[int, int], n: TripleLike, work: CollisionWork
) -> int:  # fmt: skip
    """Write the contacts of faces or edges at the nearest face of the polytope; return their number, zero if none are alike.

    The points of both shapes are in these columns of the supports; n is the normal from the second shape of the pair.
    """
    one, other = shapes
    polygons, found = work.polygons, work.found
    facing = n if columns[0] == 6 else times(-1.0, n)  # from the first shape to the second
    corners, places = work.triangles[work.face[0]], work.corners
    first = distinct_corners(work, corners, columns[0], places[0])
    second = distinct_corners(work, corners, columns[1], places[1])
    a = faces_at(hulls, one, (places[0], first), facing, work.candidates[0])
    b = faces_at(hulls, other, (places[1], second), times(-1.0, facing), work.candidates[1])
    i, j = opposed_faces(hulls, shapes, work, (a, b))
    if i >= 0:
        normal, towards = normal_of(hulls, one, i), normal_of(hulls, other, j)
        a, b = write_face(hulls, one, i, polygons[0]), write_face(hulls, other, j, polygons[1])
        return put_patch(polygons, (a, b), (normal, towards), found)
    j = edge_in_face(hulls, shapes, work, 0, (first, b), facing)
    if j >= 0:
        a = write_face(hulls, other, j, polygons[0])
        lead_with_last(polygons[0], a)
        return put_face_points(polygons, a, 2, normal_of(hulls, other, j), 1.0, 0.0, found)
    i = edge_in_face(hulls, (other, one), work, 1, (second, a), times(-1.0, facing))
    if i >= 0:
        a = write_face(hulls, one, i, polygons[0])
        lead_with_last(polygons[0], a)
        return put_face_points(polygons, a, 2, normal_of(hulls, one, i), -1.0, 0.0, found)
    return 0


def distinct_corners(work: CollisionWork, corners: Integers, side: int, places: Matrix) -> int:
    """Write the distinct points of a shape, in columns `side` of the supports, of which a face of the polytope is made."""
    count = 0
    for i in range(3):
        x, new = work.supports[corners[i]], True
        for k in range(count):
            same = places[k, 0] == x[side] and places[k, 1] == x[side + 1] and places[k, 2] == x[side + 2]
            new = new and not same
        if new:
            write_corner(places, count, (x[side], x[side + 1], x[side + 2]))
            count += 1
    return count


def faces_at(hulls: Hulls, shape: ConvexShape, at: tuple[Matrix, int], facing: TripleLike, faces: Integers) -> int:
    """Write the faces that contain a number of corners, or the end of a cylinder nearly towards `facing`; return their number.

    Without any, a face of a box whose normal is nearly `facing` takes their place.
    """
    places, count = at
    found = 0
    if shape.kind == CAPSULE:
        return 0
    if shape.kind == CYLINDER:
        cosine = inner(axis_of(shape.P, 2), facing)
        faces[0] = 4 if cosine > 0.0 else 5
        return 1 if abs(cosine) > STRAIGHT else 0
    if shape.kind == BOX:
        for face in range(6):
            sign, inside = 1.0 - 2.0 * (face % 2), True
            for k in range(count):
                inside = inside and sign * inner(axis_of(shape.P, face // 2), minus(places[k], position_of(shape.P))) > 0.0
            if inside:
                faces[found] = face
                found += 1
        k, sign = most_opposed(shape.P, times(-1.0, facing))
        if found == 0 and sign * inner(axis_of(shape.P, k), facing) > OPPOSED:
            faces[0] = 2 * k + (0 if sign > 0.0 else 1)
            found = 1
        return found
    vertex = vertex_at(shape, places[0])
    for i in range(hulls.owners[vertex], hulls.owners[vertex + 1]):
        face, inside = hulls.owned[i], True
        for k in range(1, count):
            here = False
            for c in range(hulls.faces[face], hulls.faces[face + 1]):
                x = placed(shape.P, hulls.vertices[hulls.corners[c]])
                here = here or (x[0] == places[k, 0] and x[1] == places[k, 1] and x[2] == places[k, 2])
            inside = inside and here
        if inside and found < len(faces):
            faces[found] = face
            found += 1
    return found


def vertex_at(shape: ConvexShape, place: TripleLike) -> int:
    """Return the number of the vertex of a mesh at a place."""
    for i in range(shape.hull[5], shape.hull[6]):
        x = placed(shape.P, shape.hull[0][i])
        if x[0] == place[0] and x[1] == place[1] and x[2] == place[2]:
            return i
    return shape.hull[5]


def normal_of(hulls: Hulls, shape: ConvexShape, face: int) -> Triple:
    """Return the outward normal of a face."""
    if shape.kind == HULL:
        return turned(shape.P, hulls.normals[face])
    return times(1.0 - 2.0 * (face % 2), axis_of(shape.P, face // 2))


def write_face(hulls: Hulls, shape: ConvexShape, face: int, polygon: Matrix) -> int:
    """Write the corners of a face, counter-clockwise about its normal; return their number."""
    if shape.kind == BOX:
        return write_box_face(shape.P, shape.S, face // 2, 1.0 - 2.0 * (face % 2), polygon)
    if shape.kind == CYLINDER:
        side = 1.0 - 2.0 * (face % 2)
        for i in range(CORNERS):
            angle = side * 2.0 * pi * i / CORNERS
            write_corner(polygon, i, placed(shape.P, (shape.S[0] * cos(angle), shape.S[0] * sin(angle), side * shape.S[1])))
        return CORNERS
    first, stop = hulls.faces[face], hulls.faces[face + 1]
    for i in range(first, stop):
        write_corner(polygon, i - first, placed(shape.P, hulls.vertices[hulls.corners[i]]))
    return int(stop - first)


def opposed_faces(
    hulls: Hulls, shapes: tuple[ConvexShape, ConvexShape], work: CollisionWork, counts: tuple[int, int]
) -> tuple[int, int]:
    """Return the faces, one of each shape, that are nearest to opposing each other; -1 if none are near enough."""
    best, i, j = -OPPOSED, -1, -1
    for a in range(counts[0]):
        n = normal_of(hulls, shapes[0], work.candidates[0, a])
        for b in range(counts[1]):
            cosine = inner(n, normal_of(hulls, shapes[1], work.candidates[1, b]))
            if cosine < best:
                best, i, j = cosine, work.candidates[0, a], work.candidates[1, b]
    return i, j


def edge_in_face(
    hulls: Hulls, shapes: tuple[ConvexShape, ConvexShape], work: CollisionWork, side: int, counts: tuple[int, int],
    facing: TripleLike,
) -> int:  # fmt: skip
    """Write the first edge of the first shape that lies in a face of the second; return that face, or -1 for none.

    The first shape has counts[0] corners, of `side`, in the polytope's face, and the second counts[1] candidates.
    """
    shape, places, polygon = shapes[0], work.corners[side], work.polygons[1]
    for k in range(counts[1]):
        face = work.candidates[1 - side, k]
        n = normal_of(hulls, shapes[1], face)
        for e in range(edges_at(hulls, shape, places, counts[0]) if -inner(n, facing) > STRAIGHT else 0):
            x, y = edge_of(hulls, shape, places, counts[0], e, facing)
            edge = minus(y, x)
            length = length_of(edge)
            if length > 0.0 and abs(inner(edge, n)) < IN_FACE * length:
                write_corner(polygon, 0, x)
                write_corner(polygon, 1, y)
                return face
    return -1


def edges_at(hulls: Hulls, shape: ConvexShape, places: Matrix, count: int) -> int:
    """Return the number of edges at the corners of a shape."""
    if shape.kind == CYLINDER or shape.kind == CAPSULE:
        return 1
    if count > 1:
        return 1 if count == 2 else 0
    if shape.kind == BOX:
        return 3
    vertex = vertex_at(shape, places[0])
    return hulls.owners[vertex + 1] - hulls.owners[vertex]


def edge_of(
    hulls: Hulls, shape: ConvexShape, places: Matrix, count: int, e: int, facing: TripleLike
) -> tuple[Triple, Triple]:  # fmt: skip
    """Return both ends of edge e."""
    P, x = shape.P, (places[0, 0], places[0, 1], places[0, 2])
    if shape.kind == CYLINDER or shape.kind == CAPSULE:
        u, c = axis_of(P, 2), position_of(P)
        out = along(facing, -inner(facing, u), u)
        middle = along(c, shape.S[0], out)
        return along(middle, -shape.S[1], u), along(middle, shape.S[1], u)
    if count == 2:
        return x, (places[1, 0], places[1, 1], places[1, 2])
    if shape.kind == BOX:
        axis = axis_of(P, e)
        return x, along(x, -2.0 * inner(axis, minus(x, position_of(P))), axis)
    vertex = vertex_at(shape, x)
    face = hulls.owned[hulls.owners[vertex] + e]
    first, stop = hulls.faces[face], hulls.faces[face + 1]
    before = hulls.corners[stop - 1]
    for i in range(first + 1, stop):
        before = hulls.corners[i - 1] if hulls.corners[i] == vertex else before
    return x, placed(P, hulls.vertices[before])


def put_patch(polygons: Tensor, corners: tuple[int, int], normals: tuple[Triple, Triple], found: Matrix) -> int:
    """Write contacts at the corners of the second of two faces that are behind the first and within its sides; at most four.

    The points are midway between both faces, and the gaps along the normal of the second one. MuJoCo has the corners clockwise
    about the normals, on which the choice of four depends.
    """
    normal, towards = normals
    turn_around(polygons[0], corners[0])
    turn_around(polygons[1], corners[1])
    source, count = clipped_faces(polygons, corners[0], corners[1], times(-1.0, normal))
    start, deep = polygons[0, 0], 0
    for i in range(count):
        gap = inner(normal, minus(polygons[source, i], start))
        if gap < 0.0:
            for x in range(3):
                polygons[source, deep, x] = polygons[source, i, x]
            deep += 1
    chosen = wide_part(polygons[source], deep)
    k = 0
    for i in range(deep):
        if deep <= MOST or i == chosen[0] or i == chosen[1] or i == chosen[2] or i == chosen[3]:
            gap = inner(normal, minus(polygons[source, i], start))
            across = -gap * inner(normal, towards)
            k = put(found, k, along(along(polygons[source, i], -gap, normal), -0.5 * across, towards), towards, across)
    return k


def lead_with_last(corners: Matrix, count: int) -> None:
    """Begin the corners of a face with the last one, from which MuJoCo measures gaps of faces that are not quite plane."""
    for x in range(3):
        last = corners[count - 1, x]
        for i in range(count - 1):
            corners[count - 1 - i, x] = corners[count - 2 - i, x]
        corners[0, x] = last


def turn_around(corners: Matrix, count: int) -> None:
    """Reverse the order of corners."""
    for i in range(count // 2):
        for x in range(3):
            corners[i, x], corners[count - 1 - i, x] = corners[count - 1 - i, x], corners[i, x]


def wide_part(points: Matrix, count: int) -> tuple[int, int, int, int]:
    """Return the numbers of four points, of many in the order of a convex polygon, with a large area, as MuJoCo finds them.

    From each point a in turn, the others advance while the area grows.
    """
    b, c, d, chosen = 1, 2, 3, (0, 1, 2, 3)
    most = area_of(points, 0, 1, 2, 3) if count > MOST else 0.0
    for a in range(count if count > MOST else 0):
        while area_of(points, a, b, c, (d + 1) % count) > most:
            d = (d + 1) % count
            most = area_of(points, a, b, c, d)
            while area_of(points, a, b, (c + 1) % count, d) > most:
                c = (c + 1) % count
                most = area_of(points, a, b, c, d)
            while area_of(points, a, (b + 1) % count, c, d) > most:
                b = (b + 1) % count
                most = area_of(points, a, b, c, d)
            chosen = a, b, c, d
        if b == a:
            b = (b + 1) % count
            if c == b:
                c = (c + 1) % count
                d = (d + 1) % count if d == c else d
    return chosen


def area_of(points: Matrix, a: int, b: int, c: int, d: int) -> float:
    """Return twice the area of a quadrilateral."""
    return length_of(outer(minus(points[c], points[a]), minus(points[d], points[b])))


def largest_part(points: Matrix, count: int) -> tuple[int, int, int, int]:
    """Return the numbers of the four points, of many in the order of a convex polygon, with the largest area."""
    most, best = -1.0, (0, 1, 2, 3)
    for a in range(count if count > MOST else 0):
        for c in range(a + 2, count):
            diagonal, one, other, b, d = minus(points[c], points[a]), -1.0, -1.0, a, a
            for i in range(count):
                far = length_of(outer(diagonal, minus(points[i], points[a])))
                if a < i < c and far > one:
                    one, b = far, i
                if (i < a or i > c) and far > other:
                    other, d = far, i
            if one >= 0.0 and other >= 0.0 and one + other > most:
                most, best = one + other, (a, b, c, d)
    return best


def hull_plane_by_file(hulls: Hulls, shape: ConvexShape, PB: Vector, reach: float, work: CollisionWork) -> int:
    """Write the contacts of a mesh and a half space: the corners of its lowest face, at most four."""
    corners, n, low = work.polygons[0], axis_of(PB, 2), 0
    count, _ = face_towards(hulls, shape, times(-1.0, n), corners)
    for i in range(count):
        if inner(n, minus(corners[i], position_of(PB))) < reach:
            write_corner(corners, low, (corners[i, 0], corners[i, 1], corners[i, 2]))
            low += 1
    chosen, k = largest_part(corners, low), 0
    for i in range(low):
        if low <= MOST or i == chosen[0] or i == chosen[1] or i == chosen[2] or i == chosen[3]:
            k = point_plane((corners[i, 0], corners[i, 1], corners[i, 2]), 0.0, PB, work.found, k)
    return k
