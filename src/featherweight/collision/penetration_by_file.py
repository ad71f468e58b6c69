"""The penetration depth of two meshes or boxes, as MuJoCo searches for it.

Where several faces of the difference of two shapes are as near to the origin, or finely tessellated ones nearly so, contact
points depend on the face at which the search ends. This search takes MuJoCo's steps: `MOST_STEPS` of GJK from the line between
the centroids and of a simplex that turns around the origin, then as many of the expanding polytope.

`work.planes` has the point of a face's plane that is nearest to the origin, and its squared distance. Edge e of a face is from
corner e to the next one, and `work.adjacent` has the face across it. `work.listed` are the faces that may be the nearest, and
`work.places` the place of a face among these, `UNLISTED` or `REMOVED`.
"""

from __future__ import annotations

from math import sqrt

from ..array_types import Integers
from .closest_points import add_support, nearest_of_simplex, reduced, weighted
from .collision_scene import HULL, CollisionWork
from .convex_shapes import ConvexShape
from .separation import points_of_face, write_nearest
from .triples import Triple, TripleLike, inner, length_of, minus, outer, placed, position_of, times

MOST_STEPS = 35  # MuJoCo's ccd_iterations
LEAST = 1e-15  # length [m] that MuJoCo takes as zero
UNLISTED, REMOVED = -1, -2
NONE = 1e20  # squared distance of no face


def deepest_by_file(one: ConvexShape, other: ConvexShape, work: CollisionWork) -> float:
    """Write the deepest points of two shapes and the normal to `work.nearest`, as `gap_of_convex` does; return the gap.

    The gap is zero if the search finds no depth.
    """
    if not simplex_by_file(one, other, work):
        return 0.0
    faces = faces_of_simplex(work)
    f = expanded(one, other, work) if faces == 4 else -1
    if f < 0:
        return 0.0
    depth = sqrt(work.planes[f, 3])
    for c in range(3):
        work.planes[f, c] = work.planes[f, c] / depth
    work.planes[f, 3] = depth
    x, y = points_of_face(work, f)
    write_nearest(work.nearest, x, y, times(-1.0, work.planes[f]))
    work.face[0] = f
    return -depth


def centroid(shape: ConvexShape) -> Triple:
    """Return the centroid of a mesh's hull or of a box."""
    return placed(shape.P, shape.S) if shape.kind == HULL else position_of(shape.P)


def simplex_by_file(one: ConvexShape, other: ConvexShape, work: CollisionWork) -> bool:
    """Write four points around the origin; return whether they are found. `work.order` has their rows in `work.supports`."""
    supports, weights = work.supports, work.weights
    x, before, count = minus(centroid(one), centroid(other)), 0.0, 0
    for step in range(MOST_STEPS):
        size = length_of(x)
        if size < LEAST or abs(before - size) < LEAST:
            return False
        add_support(one, other, times(-1.0 / size, x), supports, count)
        if inner(x, minus(x, supports[count])) < 0.0 or inner(x, supports[count]) > 0.0:
            return False
        if count == 3:
            return turned_simplex(one, other, step, work)
        nearest_of_simplex(supports, count + 1, weights)
        count = reduced(supports, count + 1, weights)
        x, before = weighted(supports, count, weights, 0), size
    return False


def turned_simplex(one: ConvexShape, other: ConvexShape, step: int, work: CollisionWork) -> bool:
    """Replace points of a tetrahedron until it contains the origin; return whether it does."""
    supports, planes, order = work.supports, work.planes, work.order
    for i in range(4):
        order[i] = i
    for _ in range(step, MOST_STEPS):
        write_side(work, 0, (2, 1, 3))
        write_side(work, 1, (0, 2, 3))
        write_side(work, 2, (1, 0, 3))
        write_side(work, 3, (0, 1, 2))
        if planes[0, 3] == 0.0 or planes[1, 3] == 0.0 or planes[2, 3] == 0.0 or planes[3, 3] == 0.0:
            return False
        i = 0 if planes[0, 3] < planes[1, 3] else 1
        j = 2 if planes[2, 3] < planes[3, 3] else 3
        far = i if planes[i, 3] < planes[j, 3] else j
        if planes[far, 3] > 0.0:
            return True
        add_support(one, other, planes[far], supports, order[far])
        if inner(planes[far], supports[order[far]]) < 0.0:
            return False
        i, j = (far + 1) % 4, (far + 2) % 4
        order[i], order[j] = order[j], order[i]
    return False


def write_side(work: CollisionWork, side: int, corners: tuple[int, int, int]) -> None:
    """Write the normal of a side of the tetrahedron, and the signed distance of the origin, to a row of `work.planes`."""
    i, j, k = corners
    a, order = work.supports[work.order[i]], work.order
    n = outer(minus(work.supports[order[k]], a), minus(work.supports[order[j]], a))
    size = length_of(n)
    scale = 1.0 / size if size > LEAST else 1.0
    for x in range(3):
        work.planes[side, x] = scale * n[x]
    work.planes[side, 3] = inner(work.planes[side], a) if size > LEAST else NONE


def faces_of_simplex(work: CollisionWork) -> int:
    """Write the faces of the tetrahedron; return four, or the number of the first whose plane contains the origin."""
    order = work.order
    c = work.middle
    for x in range(3):
        c[x] = 0.25 * (
            work.supports[order[0], x] + work.supports[order[1], x] + work.supports[order[2], x] + work.supports[order[3], x]
        )
    for f in range(4):
        corners = ((0, 1, 2), (0, 3, 1), (0, 2, 3), (3, 2, 1))[f]
        write_polytope_face(work, f, (order[corners[0]], order[corners[1]], order[corners[2]]))
        if work.planes[f, 3] < LEAST * LEAST:
            return f
        work.listed[f], work.places[f] = f, f
        for e in range(3):
            work.adjacent[f, e] = ((1, 3, 2), (2, 3, 0), (0, 3, 1), (2, 0, 1))[f][e]
    return 4


def write_polytope_face(work: CollisionWork, f: int, corners: tuple[int, int, int]) -> None:
    """Write a face that is not listed. Its squared distance is zero if it has no area."""
    i, j, k = corners
    work.triangles[f, 0], work.triangles[f, 1], work.triangles[f, 2] = i, j, k
    x = foot_of_plane(work.supports[k], work.supports[j], work.supports[i])
    sign = -1.0 if inner(x, minus(work.supports[i], work.middle)) < 0.0 else 1.0
    for c in range(3):
        work.planes[f, c] = sign * x[c]
    work.planes[f, 3] = inner(x, x)
    work.places[f] = UNLISTED


def foot_of_plane(a: TripleLike, b: TripleLike, c: TripleLike) -> Triple:
    """Return the point of the plane of three points that is nearest to the origin; zero without an area."""
    ab, ac, bc = minus(b, a), minus(c, a), minus(c, b)
    n = outer(bc, ab)
    height, square = inner(n, b), inner(n, n)
    if square == 0.0:
        return 0.0, 0.0, 0.0
    if height == 0.0 or square <= LEAST:
        n = outer(ab, ac)
        height, square = inner(n, a), inner(n, n)
        if square == 0.0:
            return 0.0, 0.0, 0.0
    if height == 0.0 or square <= LEAST:
        n = outer(ac, bc)
        height, square = inner(n, c), inner(n, n)
    return times(height / square, n) if square > 0.0 else (0.0, 0.0, 0.0)


def expanded(one: ConvexShape, other: ConvexShape, work: CollisionWork) -> int:
    """Expand the tetrahedron; return the face nearest to the origin, or -1 on failure."""
    supports, planes = work.supports, work.planes
    points, faces, listed, best = 4, 4, 4, -1
    most = NONE  # least bound of the depth, squared
    for _ in range(MOST_STEPS):
        before, nearest = best, NONE
        for i in range(listed):
            if planes[work.listed[i], 3] < nearest:
                best, nearest = work.listed[i], planes[work.listed[i], 3]
        if nearest > most or best < 0:
            return before
        if nearest <= 0.0:
            return best
        depth = sqrt(nearest)
        add_support(one, other, times(1.0 / depth, planes[best]), supports, points)
        bound = inner(planes[best], supports[points]) / depth
        most = min(most, bound * bound)
        if sqrt(most) - depth < LEAST or is_known(work, points):
            return best
        listed, edges = visible_faces(work, best, points, listed)
        if edges < 3 or faces + edges > len(work.triangles):
            return -1
        listed = add_faces(work, points, (faces, edges, listed), (nearest, most))
        if listed < 0:
            return -1
        points, faces = points + 1, faces + edges
        if listed == 0:
            return best
    return best


def is_known(work: CollisionWork, point: int) -> bool:
    """Return whether an earlier point of the polytope is made of the same vertices."""
    new = work.supports[point]
    for i in range(point):
        old, same = work.supports[i], True
        for x in range(3, 9):
            same = same and old[x] == new[x]
        if same:
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
