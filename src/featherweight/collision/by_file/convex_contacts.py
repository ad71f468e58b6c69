"""Contacts of convex shapes, as in MuJoCo.

They are in contact where the search for their gap ended, at the points of which a simplex or a face of a polytope is made: two
faces there that nearly oppose each other, or an edge that nearly lies in a face, with at most four points; otherwise the
nearest or deepest point alone. An end of a cylinder is a face with 16 corners, and the side of a cylinder or a
capsule that faces the other shape is an edge.
"""

from __future__ import annotations

from math import cos, pi, sin

from ...array_types import Matrix, Tensor, Vector
from ..collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HULL, CollisionWork, Hulls
from ..convex_shapes import ConvexShape, face_towards, write_corner
from ..ground_contacts import point_plane
from ..round_contacts import put
from ..separation import NEVER, gap_of_convex, middle_of, nearest_normal, nearest_point, write_nearest
from ..triples import (
    Triple,
    TripleLike,
    along,
    axis_of,
    component,
    inner,
    length_of,
    minus,
    outer,
    placed,
    position_of,
    times,
    turned,
    turned_back,
)
from .penetration import gap_by_file, has_patches, have_vertices_only

OPPOSED = 0.996  # least cosine between the normal of a face and the opposite of that of another in contact
IN_FACE = 0.0888  # greatest sine of the angle between an edge and a face in contact
MOST = 4  # contacts of two faces
CORNERS = 16  # of an end of a cylinder
SAME_NORMAL = 0.999  # least cosine between the normals of MuJoCo's search and of an exact one for the same contact
ROUNDED = 1e-15  # [m] distance outside a side of a face that counts as inside


def contacts_by_file(
    hulls: Hulls, shapes: tuple[ConvexShape, ConvexShape], size: float, margin: float, work: CollisionWork, apart: Vector
) -> int:  # fmt: skip
    """Write the contacts of two shapes with gaps below a margin [m]; `size` and `apart` are those of `convex_contacts`.

    MuJoCo's search for round and curved shapes ends at a depth that is exact to 1e-6 m, with a normal that jumps by a
    thousandth as they move. Contacts are at the faces or edges where it ends, with the exact normal and depth.
    """
    one, other = shapes
    swapped = (one.kind == BOX and (other.kind == CYLINDER or other.kind == ELLIPSOID)) or (
        one.kind == CYLINDER and other.kind == ELLIPSOID
    )  # MuJoCo has ellipsoids, cylinders and boxes in this order
    if swapped:
        one, other = other, one
    x, curved, patches, exact = work.nearest, not have_vertices_only(one, other), has_patches(one, other), NEVER
    if curved:
        exact = gap_of_convex(one, other, size, (margin, NEVER), work)
    p, q, normal, gap = nearest_point(x, 0), nearest_point(x, 1), nearest_normal(x), exact
    if exact == NEVER or (patches and exact < margin):
        gap = gap_by_file(one, other, margin, work)
    n = nearest_normal(x)
    if gap == NEVER or gap >= margin:
        sign = -1.0 if swapped else 1.0
        apart[0], apart[1], apart[2] = sign * n[0], sign * n[1], sign * n[2]
        return 0
    if exact != NEVER and inner(n, normal) > SAME_NORMAL:
        gap, n = exact, normal
        write_nearest(x, along(p, -0.5 * margin, n), along(q, 0.5 * margin, n), n)
    k = on_faces(hulls, (one, other), n, margin, work) if patches else 0
    if k == 0:
        k = put(work.found, 0, middle_of(x), n, gap)
    for c in range(k if swapped else 0):
        for i in range(3):
            work.found[c, 3 + i] = -work.found[c, 3 + i]
    return k


def on_faces(hulls: Hulls, shapes: tuple[ConvexShape, ConvexShape], n: TripleLike, margin: float, work: CollisionWork) -> int:
    """Write the contacts of two faces, or of an edge and a face, at the supports; return their number, zero without such.

    n is the normal from the second shape to the first.
    """
    one, other = shapes
    polygons, back = work.polygons, times(-1.0, n)
    raised = 0.5 * margin if one.kind == CAPSULE or other.kind == CAPSULE else 0.0  # edges of capsules include their margin
    size_a, size_b = feature_of(one, 0, work), feature_of(other, 1, work)
    faces_a = faces_at(hulls, one, 0, size_a, back, work)
    faces_b = faces_at(hulls, other, 1, size_b, n, work)
    i, j = opposed_faces(hulls, shapes, (faces_a, faces_b), n, work)
    if i >= 0:
        normal, towards = normal_of(hulls, one, i), normal_of(hulls, other, j)
        corners = write_face(hulls, one, i, polygons[0]), write_face(hulls, other, j, polygons[1])
        return put_patch(polygons, corners, (normal, towards), towards, margin, work.found)
    if size_a < 3:
        j = edge_in_face(hulls, (one, other), 0, (size_a, faces_b), n, work)
        if j >= 0:
            corners = write_face(hulls, other, j, polygons[0]), 2
            return put_edge(polygons, corners, normal_of(hulls, other, j), 1.0, (margin, raised), work.found)
    if size_b < 3:
        i = edge_in_face(hulls, (other, one), 1, (size_b, faces_a), back, work)
        if i >= 0:
            corners = write_face(hulls, one, i, polygons[0]), 2
            return put_edge(polygons, corners, normal_of(hulls, one, i), -1.0, (margin, raised), work.found)
    return 0


def feature_of(shape: ConvexShape, side: int, work: CollisionWork) -> int:
    """Write the supports that are different points of a shape first to `work.corners`; return the number of points."""
    found, number = work.corners[side], work.numbers
    for i in range(3):
        found[i] = work.triangles[work.face[0], i]
    a, b, c = number[found[0], side], number[found[1], side], number[found[2], side]
    if a != b:
        return 2 if c in (a, b) else 3
    found[1] = found[2]
    return 2 if a != c else 1


def faces_at(hulls: Hulls, shape: ConvexShape, side: int, size: int, facing: TripleLike, work: CollisionWork) -> int:
    """Write the faces that contain the points of a shape; return their number.

    Without any, a face of a box whose normal is nearly `facing`, from the shape to the other one, takes their place.
    """
    faces, found = work.candidates[side], 0
    at, number = work.corners[side], work.numbers
    a, b, c = number[at[0], side], number[at[1], side], number[at[2], side]
    if shape.kind == CYLINDER and size == 1:
        faces[0] = 4 + a
        return 1
    if shape.kind == BOX:
        for k in range(3):
            bit = bit_of(a, k)
            if (size < 2 or bit_of(b, k) == bit) and (size < 3 or bit_of(c, k) == bit):
                faces[found] = 2 * k + 1 - bit
                found += 1
        if found == 0:
            d = turned_back(shape.P, facing)
            for k in range(3):
                x = component(d, k)
                if abs(x) > OPPOSED * length_of(d):
                    faces[0] = 2 * k + (0 if x > 0.0 else 1)
                    found = 1
        return found
    if shape.kind != HULL:
        return 0
    for i in range(hulls.owners[a], hulls.owners[a + 1]):
        face = hulls.owned[i]
        if (size < 2 or has_corner(hulls, face, b)) and (size < 3 or has_corner(hulls, face, c)) and found < len(faces):
            faces[found] = face
            found += 1
    return found


def bit_of(number: int, k: int) -> int:
    """Return bit k of the number of a box's corner: 1 on the positive side of axis k."""
    return number // (1 if k == 0 else (2 if k == 1 else 4)) % 2


def has_corner(hulls: Hulls, face: int, vertex: int) -> bool:
    """Return whether a vertex is a corner of a face."""
    found = False
    for i in range(hulls.faces[face], hulls.faces[face + 1]):
        found = found or hulls.corners[i] == vertex
    return found


def normal_of(hulls: Hulls, shape: ConvexShape, face: int) -> Triple:
    """Return the outward normal of a face."""
    if shape.kind == HULL:
        return turned(shape.P, hulls.normals[face])
    return times(1.0 - 2.0 * (face % 2), axis_of(shape.P, face // 2))


def write_face(hulls: Hulls, shape: ConvexShape, face: int, polygon: Matrix) -> int:
    """Write the corners of a face in MuJoCo's order, clockwise about its normal; return their number."""
    P, S = shape.P, shape.S
    sign, axis = 1.0 - 2.0 * (face % 2), face // 2
    if shape.kind == BOX:
        for i in range(4):
            u, w = (1.0 if i == 1 or i == 2 else -1.0), (1.0 if i < 2 else -1.0)
            if axis == 0:
                x = sign * S[0], w * S[1], -sign * u * S[2]
            elif axis == 1:
                x = u * S[0], sign * S[1], -sign * w * S[2]
            else:
                x = sign * u * S[0], w * S[1], sign * S[2]
            write_corner(polygon, i, placed(P, x))
        return 4
    if shape.kind == CYLINDER:
        for i in range(CORNERS):
            angle = 2.0 * pi * i / CORNERS
            write_corner(polygon, i, placed(P, (S[0] * cos(angle), -sign * S[0] * sin(angle), sign * S[1])))
        return CORNERS
    first, stop = hulls.faces[face], hulls.faces[face + 1]
    for i in range(first, stop):
        write_corner(polygon, stop - 1 - i, placed(P, hulls.vertices[hulls.corners[i]]))
    return int(stop - first)


def opposed_faces(
    hulls: Hulls, shapes: tuple[ConvexShape, ConvexShape], counts: tuple[int, int], n: TripleLike, work: CollisionWork
) -> tuple[int, int]:
    """Return the faces, one of each shape, that are nearest to opposing each other; -1 if none are near enough."""
    best, i, j = -OPPOSED, -1, -1
    for a in range(counts[0]):
        x = normal_of(hulls, shapes[0], work.candidates[0, a])
        for b in range(counts[1] if inner(x, n) < -IN_FACE else 0):
            y = normal_of(hulls, shapes[1], work.candidates[1, b])
            if inner(y, n) > IN_FACE and inner(x, y) < best:
                best, i, j = inner(x, y), work.candidates[0, a], work.candidates[1, b]
    return i, j


def edge_in_face(
    hulls: Hulls, shapes: tuple[ConvexShape, ConvexShape], side: int, counts: tuple[int, int], n: TripleLike,
    work: CollisionWork,
) -> int:  # fmt: skip
    """Write the first edge of the first shape that lies in a face of the second; return that face, or -1 for none.

    The first shape, to which n points, is `side` of the pair and has counts[0] points. The second has counts[1] candidates.
    """
    shape, polygon = shapes[0], work.polygons[1]
    for k in range(counts[1]):
        face = work.candidates[1 - side, k]
        normal = normal_of(hulls, shapes[1], face)
        for e in range(edges_at(hulls, shape, side, counts[0], work) if inner(normal, n) > 0.0 else 0):
            x, y = edge_of(hulls, shape, side, counts[0], e, work)
            edge = minus(y, x)
            length = length_of(edge)
            if abs(inner(edge, normal)) < IN_FACE * length:
                write_corner(polygon, 0, x)
                write_corner(polygon, 1, y)
                return face
    return -1


def edges_at(hulls: Hulls, shape: ConvexShape, side: int, size: int, work: CollisionWork) -> int:
    """Return the number of edges at the points of a shape."""
    if shape.kind == CYLINDER or shape.kind == CAPSULE or size == 2:
        return 1
    if shape.kind == BOX:
        return 3
    vertex = work.numbers[work.corners[side, 0], side]
    return int(hulls.owners[vertex + 1] - hulls.owners[vertex])


def edge_of(hulls: Hulls, shape: ConvexShape, side: int, size: int, e: int, work: CollisionWork) -> tuple[Triple, Triple]:
    """Return both ends of edge e."""
    P, S, support = shape.P, shape.S, work.corners[side, 0]
    u, number = axis_of(P, 2), work.numbers[support, side]
    if shape.kind == CAPSULE:
        x = nearest_point(work.nearest, side)
        middle = along(x, -inner(minus(x, position_of(P)), u), u)
        return along(middle, -S[1], u), along(middle, S[1], u)
    if shape.kind == CYLINDER:
        towards = times(2.0 * side - 1.0, nearest_normal(work.nearest))  # the normal points to the first shape
        row, d = work.supports[support], turned_back(P, towards)
        out = length_of((d[0], d[1], 0.0))
        if out < abs(d[2]):  # on an end
            d = turned_back(P, minus((row[3 + 3 * side], row[4 + 3 * side], row[5 + 3 * side]), position_of(P)))
            out = length_of((d[0], d[1], 0.0))
        scale, end = (S[0] / out if out > ROUNDED else 0.0), (S[1] if number == 0 else -S[1])
        return placed(P, (scale * d[0], scale * d[1], end)), placed(P, (scale * d[0], scale * d[1], -end))
    x = corner_at(hulls, shape, number)
    if size == 2:
        return x, corner_at(hulls, shape, work.numbers[work.corners[side, 1], side])
    if shape.kind == BOX:
        axis = axis_of(P, e)
        return x, along(x, -2.0 * inner(axis, minus(x, position_of(P))), axis)
    face = hulls.owned[hulls.owners[number] + e]
    first, stop = hulls.faces[face], hulls.faces[face + 1]
    before = hulls.corners[stop - 1]
    for i in range(first + 1, stop):
        before = hulls.corners[i - 1] if hulls.corners[i] == number else before
    return x, placed(P, hulls.vertices[before])


def corner_at(hulls: Hulls, shape: ConvexShape, number: int) -> Triple:
    """Return a corner of a box or a mesh by number."""
    if shape.kind == HULL:
        return placed(shape.P, hulls.vertices[number])
    S = shape.S
    x, y, z = (
        (2.0 * bit_of(number, 0) - 1.0) * S[0],
        (2.0 * bit_of(number, 1) - 1.0) * S[1],
        (2.0 * bit_of(number, 2) - 1.0) * S[2],
    )
    return placed(shape.P, (x, y, z))


def put_patch(
    polygons: Tensor, corners: tuple[int, int], directions: tuple[Triple, Triple], normal: TripleLike, margin: float,
    found: Matrix,
) -> int:  # fmt: skip
    """Write contacts at the corners of a face or an edge that are behind another face and within its sides; at most four.

    `directions` are the normal of that face, and the direction along which gaps are measured. Contact points are midway.
    """
    outward, across = directions
    source, count = clipped(polygons, corners, outward)
    start, deep = polygons[0, 0], 0
    for i in range(count):
        if inner(outward, minus(polygons[source, i], start)) <= margin:
            for x in range(3):
                polygons[source, deep, x] = polygons[source, i, x]
            deep += 1
    most, k = (MOST if corners[1] > 2 else 2), 0
    a, b, c, d = wide_part(polygons[source], deep) if corners[1] > 2 else far_ends(polygons[source], deep)
    for i in range(min(deep, most)):
        x = polygons[source, i if deep <= most else (a if i == 0 else b if i == 1 else c if i == 2 else d)]
        on_face = along(x, -inner(outward, minus(x, start)), outward)
        gap = inner(minus(on_face, x), across)
        k = put(found, k, along(on_face, -0.5 * gap, across), normal, gap)
    return k


def put_edge(
    polygons: Tensor, corners: tuple[int, int], outward: Triple, sign: float, margins: tuple[float, float], found: Matrix
) -> int:  # fmt: skip
    """Write contacts of an edge and a face as `put_patch` does; sign times the face's normal points to the first shape.

    `margins` are that of the pair, and the part of it by which the edge was moved towards the face. Contacts are in the order
    of the ends of the edge, so that each remains the same one in the next step.
    """
    margin, raised = margins
    edge = minus(polygons[1, 1], polygons[1, 0])
    directions = outward, times(-1.0, outward)
    count = put_patch(polygons, corners, directions, times(sign, outward), margin - raised, found)
    if count == 2 and inner(edge, minus(found[1], found[0])) < 0.0:
        for x in range(7):
            found[0, x], found[1, x] = found[1, x], found[0, x]
    for k in range(count):
        for x in range(3):
            found[k, x] += 0.5 * raised * component(outward, x)
        found[k, 6] += raised
    return count


def clipped(polygons: Tensor, corners: tuple[int, int], outward: TripleLike) -> tuple[int, int]:
    """Clip a face or an edge in `polygons[1]` by the sides of the face in `polygons[0]`, clockwise about its normal.

    Return its place in `polygons` and its number of corners, which may be equal.
    """
    source, target, count = 1, 2, corners[1]
    for e in range(corners[0]):
        start = polygons[0, e]
        side = outer(minus(polygons[0, (e + 1) % corners[0]], start), outward)
        size = length_of(side)
        inward = times(1.0 / size, side) if size > ROUNDED else (1.0, 0.0, 0.0)
        height, kept = inner(inward, start), 0
        for i in range(count):
            p, q = polygons[source, i], polygons[source, (i + 1) % count]
            before, after = inner(minus(p, start), inward) > -ROUNDED, inner(minus(q, start), inward) > -ROUNDED
            slope = inner(inward, minus(q, p))
            if before != after and slope != 0.0:
                t = (height - inner(inward, p)) / slope
                if 0.0 <= t <= 1.0:
                    write_corner(polygons[target], kept, along(p, t, minus(q, p)))
                    kept += 1
            if after:
                write_corner(polygons[target], kept, (q[0], q[1], q[2]))
                kept += 1
        source, target, count = target, source, kept
    return source, count


def far_ends(points: Matrix, count: int) -> tuple[int, int, int, int]:
    """Return the numbers of the two points that are farthest apart, each twice."""
    most, a, b = 0.0, 0, 1
    for i in range(count):
        for j in range(i + 1, count):
            apart = minus(points[j], points[i])
            if inner(apart, apart) > most:
                most, a, b = inner(apart, apart), i, j
    return a, b, a, b


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
