"""Newton's method for the nearest or deepest points of curved shapes, from those that a search finds.

The gap of convex shapes a and b is the greatest f(n) = n . (S_a(-n) - S_b(n)) over unit vectors n, with the farthest points S
along a direction. A search stops where f is exact to 1e-9 of the shapes' size; the normal is then exact to 3e-5. With the
derivatives R of S (see `contact_motion`), the gradient of f is the part t of S_a(-n) - S_b(n) across n, and its second
derivative along tangents is -(R_a + R_b + f). Hence Newton's step is (R_a + R_b + f) dn = t.

Edges and faces that the last simplex of the search contains restrict n: it is perpendicular to edges, and the normal of a face.
"""

from __future__ import annotations

from math import sqrt

from ..array_types import Integers, Matrix
from .box_contacts import most_opposed
from .collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HULL
from .convex_shapes import ConvexShape, farthest_point
from .query_tables import SearchWork
from .triples import (
    Triple,
    TripleLike,
    along,
    axis_of,
    inner,
    length_of,
    minus,
    outer,
    plus,
    seen_from,
    times,
    turned,
    turned_back,
)

MOST_STEPS = 6
ACCURATE = 1e-9  # last step of a Newton iteration that converges
NEAR = 1e-2  # greatest angle between the normals of the search and of the iteration
SPREAD = 0.1  # distance, relative to the radius, of points of an end of a cylinder that are not neighbors on its rim
CROSSING = 1e-6  # least sine of the angle between edges that determine the normal
CHOICES = 3  # of edges and faces of a shape
ROUNDED = 1e-14  # error of a gap by rounding, relative to the shapes' size

Flat = tuple[int, Triple]
"""Number of directions in which a surface is straight, and the direction of the edge or the outward normal of the face."""


def is_curved(shape: ConvexShape) -> bool:
    """Return whether a shape, without its rounding radius, has curved surfaces."""
    return shape.kind in (CYLINDER, ELLIPSOID)


def refined(
    one: ConvexShape, other: ConvexShape, start: tuple[Triple, Triple, Triple], size: float, work: SearchWork
) -> tuple[Triple, Triple, Triple]:  # fmt: skip
    """Return the nearest or deepest points of two shapes without rounding radii, and the normal, from those of a search.

    If no edges and faces of the shapes give a greater gap, these are the result. `work` has the last simplex of the search.
    """
    x, before = start[0], start[2]
    back, corners = times(-1.0, before), work.triangles[work.face[0]]
    least = inner(before, minus(farthest_point(one, back), farthest_point(other, before))) - ROUNDED * size
    for choice in range(CHOICES * CHOICES):
        first = flat_of(one, back, corners, 3, work.supports, choice % CHOICES)
        second = flat_of(other, before, corners, 6, work.supports, choice // CHOICES)
        if first[0] < 0 or second[0] < 0:
            continue
        n, found = best_normal(one, other, before, (first, second))
        a, b = farthest_point(one, times(-1.0, n)), farthest_point(other, n)
        gap = inner(n, minus(a, b))
        if not found or not gap >= least:
            continue
        p = point_on_first((first, second), (a, b), n, x)
        q = along(p, -gap, n)
        if contains(one, first, p, times(-1.0, n)) and contains(other, second, q, n):
            return p, q, n
    return start


def best_normal(one: ConvexShape, other: ConvexShape, before: Triple, flats: tuple[Flat, Flat]) -> tuple[Triple, bool]:
    """Return the normal with the greatest gap that edges and faces permit, near another one, and whether it is found."""
    n, left = restricted(before, flats[0], flats[1])
    edge, last = edge_between(flats[0], flats[1], left), 0.0
    for _ in range(MOST_STEPS if left > 0 else 0):
        step = newton_step(one, other, n, edge)
        last = length_of(step)
        if not last < NEAR:
            return n, False
        n = along(n, 1.0, step)
        n = times(1.0 / length_of(n), n)
        if last < ROUNDED:
            break
    return n, last < ACCURATE and length_of(minus(n, before)) < NEAR


def contains(shape: ConvexShape, flat: Flat, x: Triple, outward: Triple) -> bool:
    """Return whether a point in the plane or on the line of a face or edge is within its bounds; true for faces of meshes."""
    y, S, kind = seen_from(shape.P, x), shape.S, shape.kind
    most = 1.0 + ACCURATE * NEAR
    if kind == BOX:
        return bool(abs(y[0]) <= most * S[0] and abs(y[1]) <= most * S[1] and abs(y[2]) <= most * S[2])
    if kind in (CAPSULE, CYLINDER):
        return bool(abs(y[2]) <= most * S[1] and (kind == CAPSULE or y[0] * y[0] + y[1] * y[1] <= most * most * S[0] * S[0]))
    if kind != HULL or flat[0] != 1:
        return True
    e = flat[1]
    low, high = farthest_point(shape, along(outward, -NEAR * NEAR, e)), farthest_point(shape, along(outward, NEAR * NEAR, e))
    return bool(inner(e, low) <= inner(e, x) <= inner(e, high))


def flat_of(shape: ConvexShape, outward: Triple, corners: Integers, side: int, supports: Matrix, choice: int) -> Flat:
    """Return an edge or a face of a shape, or neither, as a choice; a negative number if there is no such choice.

    The first choice is that at the corners of a simplex, whose points are in columns `side` of the supports; then none; then a
    face of a box or an end of a cylinder whose normal is near.
    """
    kind, x, none = shape.kind, supports[corners[0], side : side + 3], (0, outward)
    u, w = minus(supports[corners[1], side : side + 3], x), minus(supports[corners[2], side : side + 3], x)
    long, wide = length_of(u), max(length_of(w), length_of(minus(u, w)))
    if kind == ELLIPSOID or wide == 0.0:
        return none if choice == 0 else (-1, outward)
    if choice == 1:
        return none
    k = most_opposed(shape.P, times(-1.0, outward))[0] if kind == BOX else 2
    axis = axis_of(shape.P, k)
    cosine = inner(axis, outward)
    if choice == 2 and kind == HULL:
        return face_beside(shape, outward, x, u if long > 0.0 else w)
    face = 2, times(1.0 if cosine > 0.0 else -1.0, axis)
    if choice == 2:
        return face if kind in (BOX, CYLINDER) else (-1, outward)
    if kind == CYLINDER:
        if max(abs(inner(axis, u)), abs(inner(axis, w))) > 0.5 * wide:
            return 1, axis
        return face if wide > SPREAD * shape.S[0] else none
    normal = outer(u, w)
    area = length_of(normal)
    if area > ACCURATE * wide * wide:
        return 2, times((1.0 if inner(normal, outward) > 0.0 else -1.0) / area, normal)
    return 1, (times(1.0 / long, u) if long > 0.0 else times(1.0 / length_of(w), w))


def face_beside(shape: ConvexShape, outward: Triple, x: TripleLike, edge: TripleLike) -> Flat:
    """Return the face of a mesh beside an edge from x, or beside a line in that face."""
    for turn in range(2):
        aside = times((1.0 - 2.0 * turn) * NEAR * NEAR / length_of(edge), outer(edge, outward))
        normal = outer(edge, minus(farthest_point(shape, along(outward, 1.0, aside)), x))
        area = length_of(normal)
        if area > NEAR * inner(edge, edge):
            return 2, times((1.0 if inner(normal, outward) > 0.0 else -1.0) / area, normal)
    return -1, outward


def restricted(n: Triple, first: Flat, second: Flat) -> tuple[Triple, int]:
    """Return the normal from b to a nearest to n that edges and faces permit, and the number of its directions of motion."""
    if first[0] == 2:
        return times(-1.0, first[1]), 0
    if second[0] == 2:
        return second[1], 0
    e = first[1] if first[0] == 1 else second[1]
    if first[0] == 1 and second[0] == 1:
        normal = outer(e, second[1])
        sine = length_of(normal)
        if sine > CROSSING:
            return times((1.0 if inner(normal, n) > 0.0 else -1.0) / sine, normal), 0
    if first[0] == 0 and second[0] == 0:
        return n, 2
    across = along(n, -inner(n, e), e)
    return times(1.0 / length_of(across), across), 1


def edge_between(first: Flat, second: Flat, left: int) -> Triple:
    """Return the direction of the edge to which the normal is perpendicular, or zero without one."""
    if left == 2:
        return 0.0, 0.0, 0.0
    return first[1] if first[0] == 1 else second[1]


def newton_step(one: ConvexShape, other: ConvexShape, n: Triple, edge: Triple) -> Triple:
    """Return a step of the normal, perpendicular to it and to an edge, if that is not zero; of length 1 at no maximum."""
    back = times(-1.0, n)
    apart = minus(farthest_point(one, back), farthest_point(other, n))
    gap, e = inner(n, apart), edge
    if inner(e, e) == 0.0:
        k = 0 if abs(n[0]) < 0.6 else 1
        e = outer(n, (1.0 - k, 1.0 * k, 0.0))
        e = times(1.0 / length_of(e), e)
    f = outer(e, n)
    bent = plus(bending(one, back, f), bending(other, n, f))
    c, t = inner(f, bent) + gap, inner(f, apart)
    if inner(edge, edge) > 0.0:
        return times(t / c, f) if c > 0.0 else f
    b, a = inner(e, bent), inner(e, plus(bending(one, back, e), bending(other, n, e))) + gap
    s, det = inner(e, apart), a * c - b * b
    if not (a > 0.0 and det > 0.0):
        return f
    return along(times((c * s - b * t) / det, e), (a * t - b * s) / det, f)


def bending(shape: ConvexShape, outward: Triple, way: Triple) -> Triple:
    """Return R times a vector: the motion of the farthest point along `outward` as this direction turns."""
    P, S = shape.P, shape.S
    k, x = turned_back(P, outward), turned_back(P, way)
    if shape.kind == CYLINDER:
        sine = sqrt(k[0] * k[0] + k[1] * k[1])
        if sine == 0.0:
            return 0.0, 0.0, 0.0
        around = -k[1] / sine, k[0] / sine, 0.0
        return turned(P, times(S[0] * inner(around, x) / sine, around))
    if shape.kind == ELLIPSOID:
        d = S[0] * S[0] * k[0], S[1] * S[1] * k[1], S[2] * S[2] * k[2]
        s = sqrt(inner(d, k))
        moved = S[0] * S[0] * x[0], S[1] * S[1] * x[1], S[2] * S[2] * x[2]
        return turned(P, along(times(1.0 / s, moved), -inner(d, x) / (s * s * s), d))
    return 0.0, 0.0, 0.0


def point_on_first(flats: tuple[Flat, Flat], points: tuple[Triple, Triple], n: Triple, x: Triple) -> Triple:
    """Return the point of the first shape, from the farthest points of both, which are ends of edges or anywhere on faces.

    x is near the result, and stays as it is in directions that both surfaces leave open.
    """
    (first, e), (second, f), a, b = flats[0], flats[1], points[0], points[1]
    apart = minus(a, b)
    gap = inner(n, apart)
    if first == 0:
        return a
    if second == 0:
        return along(b, gap, n)
    if first == 1 and second == 1:
        crossing = inner(outer(e, f), n)
        if abs(crossing) > CROSSING:
            return along(a, -inner(outer(apart, f), n) / crossing, e)
    if first == 1:
        return along(a, inner(e, minus(x, a)), e)
    if second == 1:
        return along(along(b, inner(f, minus(x, b)), f), gap, n)
    return along(x, inner(n, minus(a, x)), n)
