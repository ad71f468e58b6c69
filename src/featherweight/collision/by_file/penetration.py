"""The gap of two convex shapes, as MuJoCo searches for it.

Contact points of shapes that touch along a face, or whose surfaces are smooth, depend on the simplex or the face at which the
search ends. This search takes MuJoCo's steps: GJK from the line between the centroids, and the expanding polytope, both
`MOST_STEPS` at most and to `TOLERANCE` for shapes other than meshes and boxes. Shapes are without
their margins, balls are points and capsules segments at first, and grow if these overlap.

`work.planes` has the point of a face's plane that is nearest to the origin, and its squared distance. Edge e of a face is from
corner e to the next one, and `work.adjacent` has the face across it. `work.listed` are the faces that may be the nearest, and
`work.places` the place of a face among these, `UNLISTED` or `REMOVED`. `work.numbers` has the vertex of each shape of which a
support is made: a corner of a box or mesh, an end of a cylinder.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from ...array_types import Integers, Matrix, Vector
from ..closest_points import weighted
from ..collision_scene import BOX, CAPSULE, CYLINDER, HULL, CollisionWork
from ..convex_shapes import ConvexShape, numbered_point
from ..separation import NEVER, write_nearest
from ..triples import Triple, TripleLike, along, component, inner, length_of, minus, outer, placed, plus, position_of, times

MOST_STEPS = 35  # MuJoCo's ccd_iterations
TOLERANCE = 1e-6  # MuJoCo's ccd_tolerance [m]
LEAST = 1e-15  # length [m] that MuJoCo takes as zero
MOST_FACES_OF_POLYTOPE = 6 * MOST_STEPS
UNLISTED, REMOVED = -1, -2
NONE = 1e20  # squared distance of no face
APART = 1e10  # distance [m] of shapes that the search found to be apart
HALF_TURN = 0.86602540378  # sine of 120 degrees, with MuJoCo's digits


class InflatedPair(NamedTuple):
    """Two shapes, enlarged by radii."""

    one: ConvexShape
    other: ConvexShape
    radii: tuple[float, float]  # [m]
    discrete: bool  # whether both have vertices only, so that the search ends by itself


def inflated_pair(one: ConvexShape, other: ConvexShape, radii: tuple[float, float]) -> InflatedPair:
    """Return two shapes with radii."""
    return InflatedPair(one, other, radii, have_vertices_only(one, other) and radii[0] == 0.0 and radii[1] == 0.0)


def have_vertices_only(one: ConvexShape, other: ConvexShape) -> bool:
    """Return whether both shapes are boxes or meshes."""
    return (one.kind == HULL or one.kind == BOX) and (other.kind == HULL or other.kind == BOX)


def has_patches(one: ConvexShape, other: ConvexShape) -> bool:
    """Return whether contacts of two shapes may be faces or edges."""
    a, b = has_faces(one), has_faces(other)
    return (a and b) or (a and other.kind == CAPSULE) or (b and one.kind == CAPSULE)


def has_faces(shape: ConvexShape) -> bool:
    return shape.kind == BOX or shape.kind == CYLINDER or shape.kind == HULL


def gap_by_file(one: ConvexShape, other: ConvexShape, margin: float, work: CollisionWork) -> float:
    """Return the gap of two shapes if it is below a margin [m], and `NEVER` otherwise.

    It writes the nearest or deepest points of the shapes, each enlarged by half of the margin, and the normal from the second
    to the first to `work.nearest`, and the row of `work.triangles` with the three supports of these points to `work.face`.
    If the shapes are apart, the normal separates them.
    """
    radii = one.rounding + 0.5 * margin, other.rounding + 0.5 * margin
    if radii[0] + radii[1] > 0.0:
        count, distance = simplex_by_file(inflated_pair(one, other, (0.0, 0.0)), radii[0] + radii[1], work)
        if distance > TOLERANCE:
            return gap_of_simplex(work, count, distance, radii) + margin if distance < radii[0] + radii[1] else NEVER
    pair = inflated_pair(one, other, radii)
    count, distance = simplex_by_file(pair, 0.0, work)
    if distance > TOLERANCE or count < 2:
        return NEVER
    faces = polytope(pair, count, work)
    f = expanded(pair, faces, work) if faces > 0 else -1
    if f < 0:
        return NEVER
    depth = sqrt(work.planes[f, 3])
    u = affine_weights(corner_of(work, f, 0), corner_of(work, f, 1), corner_of(work, f, 2), work.planes[f])
    x, y = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for i in range(3):
        row = work.supports[work.triangles[f, i]]
        x = along(x, component(u, i), (row[3], row[4], row[5]))
        y = along(y, component(u, i), (row[6], row[7], row[8]))
    write_nearest(work.nearest, x, y, times(-1.0 / depth, work.planes[f]))
    work.face[0] = f
    return margin - depth


def gap_of_simplex(work: CollisionWork, count: int, distance: float, radii: tuple[float, float]) -> float:
    """Return the gap of shapes with radii from the nearest points of a simplex, and write them."""
    s, w = work.supports, work.weights
    x, y = weighted(s, count, w, 3), weighted(s, count, w, 6)
    n = minus(x, y)
    n = times(1.0 / length_of(n), n)
    write_nearest(work.nearest, along(x, -radii[0], n), along(y, radii[1], n), n)
    for i in range(3):
        work.triangles[0, i] = i if i < count else 0
    work.face[0] = 0
    return distance - radii[0] - radii[1]


def corner_of(work: CollisionWork, f: int, i: int) -> Triple:
    x = work.supports[work.triangles[f, i]]
    return x[0], x[1], x[2]


def centroid(shape: ConvexShape) -> Triple:
    """Return the centroid of a shape."""
    return placed(shape.P, shape.S) if shape.kind == HULL else position_of(shape.P)


def write_support(pair: InflatedPair, direction: TripleLike, work: CollisionWork, k: int) -> None:
    """Write the point of the difference of two shapes that is farthest along a unit vector to row k."""
    a, i = numbered_point(pair.one, direction)
    b, j = numbered_point(pair.other, times(-1.0, direction))
    a, b = along(a, pair.radii[0], direction), along(b, -pair.radii[1], direction)
    for x in range(3):
        work.supports[k, 3 + x], work.supports[k, 6 + x] = component(a, x), component(b, x)
        work.supports[k, x] = component(a, x) - component(b, x)
    work.numbers[k, 0], work.numbers[k, 1] = i, j


def copy_support(work: CollisionWork, source: int, target: int) -> None:
    for x in range(9):
        work.supports[target, x] = work.supports[source, x]
    for x in range(2):
        work.numbers[target, x] = work.numbers[source, x]


# --- GJK


def simplex_by_file(pair: InflatedPair, most: float, work: CollisionWork) -> tuple[int, float]:
    """Write the simplex whose point is nearest to the origin; return its number of supports and the distance.

    There are four if the origin is inside. The search ends with `APART` for shapes farther apart than `most`, and then the
    normal separates them.
    """
    supports, weights = work.supports, work.weights
    x, before, count = minus(centroid(pair.one), centroid(pair.other)), 0.0, 0
    least, enough = (LEAST, 0.0) if pair.discrete else (TOLERANCE, 0.5 * TOLERANCE * TOLERANCE)
    size, step = length_of(x), 0
    while step < MOST_STEPS and size >= least and abs(before - size) >= LEAST:
        write_support(pair, times(-1.0 / size, x), work, count)
        if inner(x, minus(x, supports[count])) < enough:
            break
        lower = inner(x, supports[count])
        if lower > 0.0 and lower >= most * size:
            write_nearest(work.nearest, x, x, x)
            return 0, APART
        write_weights(supports, count + 1, weights)
        count = with_weights(work, count + 1)
        if count == 0:
            return 0, APART
        x, before = weighted(supports, count, weights, 0), size
        size, step = length_of(x), step + 1
        if count == 4:
            break
    if size > 0.0:
        write_support(pair, times(-1.0 / size, x), work, 4)
        if inner(x, supports[4]) > 0.0:
            return (0, APART) if most == 0.0 else (count, size)
    return count, 0.0 if count == 4 else size


def with_weights(work: CollisionWork, count: int) -> int:
    """Remove the supports of a simplex without weight; return the number of supports left."""
    kept = 0
    for i in range(count):
        if work.weights[i] > 0.0:
            work.weights[kept] = work.weights[i]
            copy_support(work, i, kept)
            kept += 1
    return kept


def write_weights(supports: Matrix, count: int, weights: Vector) -> None:
    """Write the weights of the supports of a simplex in its point nearest to the origin (Montanari et al. 2017)."""
    for i in range(4):
        weights[i] = 0.0
    if count == 1:
        weights[0] = 1.0
    elif count == 2:
        weights[0], weights[1] = weights_of_segment(supports[0], supports[1])
    elif count == 3:
        weights[0], weights[1], weights[2] = weights_of_triangle(supports[0], supports[1], supports[2])
    else:
        write_weights_of_tetrahedron(supports, weights)


def write_weights_of_tetrahedron(supports: Matrix, weights: Vector) -> None:
    a, b, c, d = supports[0], supports[1], supports[2], supports[3]
    volumes = -volume(b, c, d), volume(a, c, d), -volume(a, b, d), volume(a, b, c)
    total = volumes[0] + volumes[1] + volumes[2] + volumes[3]
    inside, least = True, NONE
    for i in range(4):
        far = (volumes[0] if i == 0 else volumes[1]) if i < 2 else (volumes[2] if i == 2 else volumes[3])
        weights[i] = far
        inside = inside and ((total > 0.0 and far > 0.0) or (total < 0.0 and far < 0.0))
    if inside:
        for i in range(4):
            weights[i] = weights[i] / total
        return
    chosen, best = -1, (0.0, 0.0, 0.0)
    for i in range(4):
        if (total > 0.0 and weights[i] > 0.0) or (total < 0.0 and weights[i] < 0.0):
            continue
        p, q, r = (1 if i == 0 else 0), (2 if i < 2 else 1), (3 if i < 3 else 2)
        u = weights_of_triangle(supports[p], supports[q], supports[r])
        x = plus(times(u[0], supports[p]), plus(times(u[1], supports[q]), times(u[2], supports[r])))
        if inner(x, x) < least:
            least, chosen, best = inner(x, x), i, u
    k = 0
    for i in range(4):
        if i == chosen:
            weights[i] = 0.0
        else:
            weights[i] = component(best, k)
            k += 1


def weights_of_triangle(a: TripleLike, b: TripleLike, c: TripleLike) -> Triple:
    """Return the weights of the corners of a triangle in its point nearest to the origin."""
    foot, flat = foot_of_plane(a, b, c)
    if flat:
        u, v = weights_of_segment(a, b)
        return u, v, 0.0
    w = affine_weights(a, b, c, foot)
    if w[0] > 0.0 and w[1] > 0.0 and w[2] > 0.0:
        return w
    best, least = (0.0, 0.0, 0.0), NONE
    if not w[0] > 0.0:
        u, v = weights_of_segment(b, c)
        x = plus(times(u, b), times(v, c))
        best, least = (0.0, u, v), inner(x, x)
    if not w[1] > 0.0:
        u, v = weights_of_segment(a, c)
        x = plus(times(u, a), times(v, c))
        if inner(x, x) < least:
            best, least = (u, 0.0, v), inner(x, x)
    if not w[2] > 0.0:
        u, v = weights_of_segment(a, b)
        x = plus(times(u, a), times(v, b))
        if inner(x, x) < least:
            best = u, v, 0.0
    return best


def weights_of_segment(a: TripleLike, b: TripleLike) -> tuple[float, float]:
    """Return weights of the ends of a segment: of the foot of the origin, or of the second end if the foot is outside."""
    side = minus(b, a)
    square = inner(side, side)
    if not square > 0.0:
        return 0.0, 1.0
    foot = along(b, -(inner(b, side) / square), side)
    k, span = 0, a[0] - b[0]
    for i in range(1, 3):
        if abs(component(side, i)) >= abs(span):
            k, span = i, -component(side, i)
    u, v = component(minus(foot, b), k), component(minus(a, foot), k)
    inside = (span > 0.0 and u > 0.0 and v > 0.0) or (span < 0.0 and u < 0.0 and v < 0.0)
    return (u / span, v / span) if inside else (0.0, 1.0)


def affine_weights(a: TripleLike, b: TripleLike, c: TripleLike, p: TripleLike) -> Triple:
    """Return the weights of three points in a point of their plane; zeros without an area."""
    n = minor(a, b, c, 1, 2), minor(a, b, c, 0, 2), minor(a, b, c, 0, 1)
    sizes = abs(n[0]), abs(n[1]), abs(n[2])
    i, j, area = 0, 1, n[2]
    if sizes[0] >= sizes[1] and sizes[0] >= sizes[2]:
        i, j, area = 1, 2, n[0]
    elif sizes[1] >= sizes[2]:
        i, j, area = 0, 2, n[1]
    if area == 0.0:
        return 0.0, 0.0, 0.0
    return minor(p, b, c, i, j) / area, minor(a, p, c, i, j) / area, minor(a, b, p, i, j) / area


def minor(a: TripleLike, b: TripleLike, c: TripleLike, i: int, j: int) -> float:
    """Return twice the signed area of a triangle, projected along an axis."""
    ai, bi, ci = of(a, i), of(b, i), of(c, i)
    aj, bj, cj = of(a, j), of(b, j), of(c, j)
    return bi * cj - bj * ci - ai * cj + aj * ci + ai * bj - aj * bi


def of(a: TripleLike, k: int) -> float:
    return component((a[0], a[1], a[2]), k)


def volume(a: TripleLike, b: TripleLike, c: TripleLike) -> float:
    """Return the determinant of three vectors."""
    return inner(a, outer(b, c))


# --- the first polytope


def polytope(pair: InflatedPair, count: int, work: CollisionWork) -> int:
    """Write the faces of a polytope around the origin from a simplex; return their number, zero on failure."""
    bad, faces = -1, 6
    if count == 4:
        bad, faces = tetrahedron(work), 4
        if bad < 0 and not around_origin(work):
            return 0
    elif count == 2:
        bad = around_segment(pair, work)
        if bad < 0 and not crosses_triangle(work):
            return 0
    if bad >= 0:  # the origin is in the plane of a face
        for i in range(3):
            copy_support(work, work.triangles[bad, i], 5 + i)
        for i in range(3):
            copy_support(work, 5 + i, i)
    if bad >= 0 or count == 3:
        faces = 6 if around_triangle(pair, work) else 0
    for f in range(faces):
        work.listed[f], work.places[f] = f, f
    return faces


def tetrahedron(work: CollisionWork) -> int:
    """Write the faces of a tetrahedron; return the first whose plane contains the origin, or -1."""
    write_middle(work, 4)
    for f in range(4):
        write_polytope_face(work, f, ((0, 1, 2), (0, 3, 1), (0, 2, 3), (3, 2, 1))[f])
        if work.planes[f, 3] < LEAST * LEAST:
            return f
        for e in range(3):
            work.adjacent[f, e] = ((1, 3, 2), (2, 3, 0), (0, 3, 1), (2, 0, 1))[f][e]
    return -1


def around_segment(pair: InflatedPair, work: CollisionWork) -> int:
    """Write the faces of a double pyramid around a segment; return the first whose plane contains the origin, or -1."""
    a, b = work.supports[0], work.supports[1]
    write_middle(work, 2)
    side = minus(b, a)
    k, least = 0, NONE
    for i in range(3):
        if abs(component(side, i)) < least:
            k, least = i, abs(component(side, i))
    d = outer((1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0), side)
    u = times(1.0 / length_of(side), side)
    for i in range(3):
        size = length_of(d)
        write_support(pair, times(1.0 / size, d) if size > LEAST else (1.0, 0.0, 0.0), work, 2 + i)
        d = plus(times(-0.5, d), plus(times(HALF_TURN, outer(u, d)), times(1.5 * inner(u, d), u)))
    return double_pyramid(work, 0, 1, 2)


def around_triangle(pair: InflatedPair, work: CollisionWork) -> bool:
    """Write the faces of a double pyramid over a triangle; return whether it is around the origin."""
    a, b, c = work.supports[0], work.supports[1], work.supports[2]
    write_middle(work, 3)
    n = outer(minus(b, a), minus(c, a))
    size = length_of(n)
    if size < LEAST:
        return False
    write_support(pair, times(-1.0 / size, n), work, 3)
    write_support(pair, times(1.0 / size, n), work, 4)
    if is_on_triangle(work, 3) or is_on_triangle(work, 4):
        return False
    return double_pyramid(work, 4, 3, 0) < 0


def double_pyramid(work: CollisionWork, top: int, bottom: int, first: int) -> int:
    """Write the faces between two supports and a ring of three, `first` and the next two.

    Return the first face whose plane contains the origin, or -1.
    """
    a, b, c = first, first + 1, first + 2
    for f in range(6):
        u, v = ((a, b), (c, a), (b, c), (b, a), (a, c), (c, b))[f]
        write_polytope_face(work, f, (top if f < 3 else bottom, u, v))
        if work.planes[f, 3] < LEAST * LEAST:
            return f
        for e in range(3):
            work.adjacent[f, e] = ((1, 3, 2), (2, 4, 0), (0, 5, 1), (5, 0, 4), (3, 1, 5), (4, 2, 3))[f][e]
    return -1


def write_middle(work: CollisionWork, count: int) -> None:
    """Write the mean of the first supports, a point inside the polytope."""
    for x in range(3):
        total = 0.0
        for i in range(count):
            total += work.supports[i, x]
        work.middle[x] = total / count


def is_on_triangle(work: CollisionWork, k: int) -> bool:
    """Return whether a support is on the triangle of the first three."""
    a, b, c, p = work.supports[0], work.supports[1], work.supports[2], work.supports[k]
    u = affine_weights(a, b, c, p)
    if u[0] < 0.0 or u[1] < 0.0 or u[2] < 0.0:
        return False
    x = plus(times(u[0], a), plus(times(u[1], b), times(u[2], c)))
    return length_of(minus(x, p)) < LEAST


def around_origin(work: CollisionWork) -> bool:
    """Return whether the tetrahedron of the first four supports contains the origin."""
    s = work.supports
    return (
        same_side(s[0], s[1], s[2], s[3])
        and same_side(s[1], s[2], s[3], s[0])
        and same_side(s[2], s[3], s[0], s[1])
        and same_side(s[3], s[0], s[1], s[2])
    )


def same_side(a: TripleLike, b: TripleLike, c: TripleLike, d: TripleLike) -> bool:
    """Return whether the origin and d are on the same side of the plane of a, b and c."""
    n = outer(minus(b, a), minus(c, a))
    x, y = inner(n, minus(d, a)), -inner(n, a)
    return (x > 0.0 and y > 0.0) or (x < 0.0 and y < 0.0)


def crosses_triangle(work: CollisionWork) -> bool:
    """Return whether the ray from the first support to the second crosses the triangle of the next three."""
    s = work.supports
    a = s[0]
    d, x, y, z = minus(s[1], a), minus(s[2], a), minus(s[3], a), minus(s[4], a)
    u, v, w = volume(x, y, d), volume(y, z, d), volume(z, x, d)
    return (u >= 0.0 and v >= 0.0 and w >= 0.0) or (u <= 0.0 and v <= 0.0 and w <= 0.0)


def write_polytope_face(work: CollisionWork, f: int, corners: tuple[int, int, int]) -> None:
    """Write a face that is not listed. Its squared distance is zero if it has no area."""
    i, j, k = corners
    work.triangles[f, 0], work.triangles[f, 1], work.triangles[f, 2] = i, j, k
    x, _ = foot_of_plane(work.supports[k], work.supports[j], work.supports[i])
    sign = -1.0 if inner(x, minus(work.supports[i], work.middle)) < 0.0 else 1.0
    for c in range(3):
        work.planes[f, c] = sign * x[c]
    work.planes[f, 3] = inner(x, x)
    work.places[f] = UNLISTED


def foot_of_plane(a: TripleLike, b: TripleLike, c: TripleLike) -> tuple[Triple, bool]:
    """Return the point of the plane of three points that is nearest to the origin, and whether they have no area."""
    ab, ac, bc = minus(b, a), minus(c, a), minus(c, b)
    n = outer(bc, ab)
    height, square = inner(n, b), inner(n, n)
    if square != 0.0 and (height == 0.0 or square <= LEAST):
        n = outer(ab, ac)
        height, square = inner(n, a), inner(n, n)
        if square != 0.0 and (height == 0.0 or square <= LEAST):
            n = outer(ac, bc)
            height, square = inner(n, c), inner(n, n)
    return (times(height / square, n), False) if square > 0.0 else ((0.0, 0.0, 0.0), True)


# --- the expanding polytope


def expanded(pair: InflatedPair, faces: int, work: CollisionWork) -> int:
    """Expand a polytope; return the face nearest to the origin, or -1 on failure."""
    supports, planes = work.supports, work.planes
    points, listed, best = 4 if faces == 4 else 5, faces, -1
    bound, most, enough = NONE, NONE, LEAST if pair.discrete else TOLERANCE  # least bounds of the depth, and of its square
    for step in range(MOST_STEPS):
        before, nearest = best, NONE
        for i in range(listed):
            if planes[work.listed[i], 3] < nearest:
                best, nearest = work.listed[i], planes[work.listed[i], 3]
        if nearest > most or best < 0:
            return before
        if nearest <= 0.0:
            return best
        depth = sqrt(nearest)
        write_support(pair, times(1.0 / depth, planes[best]), work, points)
        here = inner(planes[best], supports[points]) / depth
        bound = min(bound, here)
        most = bound * bound
        if here - depth < enough:
            return -1 if step == 0 and bound < depth - 1e-10 else best
        if pair.discrete and is_known(work, points):
            return best
        listed, edges = visible_faces(work, best, points, listed)
        if edges < 3:
            return -1
        if faces + edges > MOST_FACES_OF_POLYTOPE:
            return best
        listed = add_faces(work, points, (faces, edges, listed), (nearest, most))
        if listed < 0:
            return -1
        points, faces = points + 1, faces + edges
        if listed == 0:
            return best
    return best


def is_known(work: CollisionWork, point: int) -> bool:
    """Return whether an earlier point of the polytope is made of the same vertices."""
    for i in range(point):
        if work.numbers[i, 0] == work.numbers[point, 0] and work.numbers[i, 1] == work.numbers[point, 1]:
            return True
    return False


def visible_faces(work: CollisionWork, face: int, point: int, listed: int) -> tuple[int, int]:
    """Remove the faces that are visible from a point, starting at one; return the numbers of listed faces and of edges around.

    Rows of `work.horizon` are a face beyond an edge, and the number of the edge there.
    """
    listed, edges = removed(work, face, listed), 0
    for e in range(3):
        beyond = work.adjacent[face, e]
        if e == 0 or work.places[beyond] != REMOVED:
            edge = edge_from(work, beyond, work.triangles[face, (e + 1) % 3])
            listed, edges = follow(work, (beyond, edge), point, (listed, edges))
    return listed, edges


def follow(work: CollisionWork, start: tuple[int, int], point: int, counts: tuple[int, int]) -> tuple[int, int]:
    """Remove visible faces depth first from a face that was entered across one of its edges; return the counts."""
    horizon, stack, (listed, edges), (face, edge) = work.horizon, work.stack, counts, start
    depth = 0
    if is_visible(work, face, point):
        listed = removed(work, face, listed)
        stack[0, 0], stack[0, 1], stack[0, 2], depth = face, edge, 1, 1
    elif edges < len(horizon):
        horizon[edges, 0], horizon[edges, 1], edges = face, edge, edges + 1
    while depth > 0:
        face, edge, turn = stack[depth - 1, 0], stack[depth - 1, 1], stack[depth - 1, 2]
        if turn == 3:
            depth -= 1
            continue
        stack[depth - 1, 2] = turn + 1
        e = (edge + turn) % 3
        beyond = work.adjacent[face, e]
        if work.places[beyond] == REMOVED:
            continue
        edge = edge_from(work, beyond, work.triangles[face, (e + 1) % 3])
        if is_visible(work, beyond, point):
            listed = removed(work, beyond, listed)
            stack[depth, 0], stack[depth, 1], stack[depth, 2], depth = beyond, edge, 1, depth + 1
        elif edges < len(horizon):
            horizon[edges, 0], horizon[edges, 1], edges = beyond, edge, edges + 1
    return listed, edges


def is_visible(work: CollisionWork, face: int, point: int) -> bool:
    return inner(work.planes[face], work.supports[point]) - work.planes[face, 3] > LEAST


def removed(work: CollisionWork, face: int, listed: int) -> int:
    """Remove a face; return the number of listed faces."""
    place = work.places[face]
    if place >= 0:
        listed -= 1
        last = work.listed[listed]
        work.listed[place] = last
        work.places[last] = place
    work.places[face] = REMOVED
    return listed


def edge_from(work: CollisionWork, face: int, corner: int) -> int:
    """Return the edge of a face that begins at a corner."""
    corners: Integers = work.triangles[face]
    return 0 if corners[0] == corner else (1 if corners[1] == corner else 2)


def add_faces(
    work: CollisionWork, point: int, counts: tuple[int, int, int], bounds: tuple[float, float]
) -> int:  # fmt: skip
    """Write faces from the edges of the horizon to a point; return the number of listed faces, -1 for a face without area.

    Only faces whose squared distances are within the bounds are listed.
    """
    (faces, edges, listed), (least, most) = counts, bounds
    for i in range(edges):
        f, beyond, e = faces + i, work.horizon[i, 0], work.horizon[i, 1]
        start, end = work.triangles[beyond, e], work.triangles[beyond, (e + 1) % 3]
        write_polytope_face(work, f, (point, end, start))
        work.adjacent[beyond, e] = f
        work.adjacent[f, 0] = faces + (i + edges - 1) % edges
        work.adjacent[f, 1] = beyond
        work.adjacent[f, 2] = faces + (i + 1) % edges
        square = work.planes[f, 3]
        if square == 0.0:
            return -1
        if least <= square <= most:
            work.listed[listed], work.places[f] = f, listed
            listed += 1
    return listed
