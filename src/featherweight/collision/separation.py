"""The signed distance of two convex shapes: GJK for separate shapes, the expanding polytope for overlaps."""

from __future__ import annotations

from math import sqrt

from ..array_types import Vector
from .closest_points import closest, weighted
from .convex_shapes import ConvexShape, farthest_point
from .curved_contacts import is_curved, refined
from .penetration import deepest, weights_of_face
from .query_tables import SearchWork
from .triples import Triple, TripleLike, along, inner, length_of, minus, plus, position_of, times

FAR = 1e300  # result for a gap above the upper bound of the search
SLACK = 1e-9  # excess over that bound, relative to the shapes' size, at which a gap may still be computed
NEVER = -1e300  # result for shapes without a depth
OVERLAPPING = 4  # points of a simplex around the origin


def write_nearest(nearest: Vector, x: TripleLike, y: TripleLike, n: TripleLike) -> None:
    """Write the nearest or deepest points of two shapes, and the normal from the second shape to the first."""
    for i in range(3):
        nearest[i], nearest[3 + i], nearest[6 + i] = x[i], y[i], n[i]


def nearest_point(nearest: Vector, side: int) -> Triple:
    """Return the nearest or deepest point of the first (0) or second (1) shape, as `write_nearest` wrote it."""
    return nearest[3 * side], nearest[3 * side + 1], nearest[3 * side + 2]


def nearest_normal(nearest: Vector) -> Triple:
    """Return the normal from the second shape to the first, as `write_nearest` wrote it."""
    return nearest[6], nearest[7], nearest[8]


def middle_of(nearest: Vector) -> Triple:
    """Return the point between two nearest points."""
    return times(0.5, plus(nearest_point(nearest, 0), nearest_point(nearest, 1)))


def gap_of_convex(one: ConvexShape, other: ConvexShape, size: float, bounds: tuple[float, float], work: SearchWork) -> float:
    """Return the gap of two shapes, minus the depth if they overlap; write points and normal to `work.nearest`.

    `work.face` gets the number of a row of `work.triangles`: the nearest face of `deepest` for shapes that overlap, or the
    points of the simplex of `closest`.

    `bounds` are the gap above which the search stops (returning `FAR`, with a separating direction of at least that gap as
    normal), and a gap below which any lower value suffices (no points are written). Touching shapes whose difference has no
    volume have no depth: the result is `NEVER`.
    """
    most, enough = bounds
    rounding = one.rounding + other.rounding
    apart = minus(position_of(one.P), position_of(other.P))
    guess = apart if inner(apart, apart) > 0.0 else (0.0, 0.0, 1.0)
    core = (size, most + rounding + SLACK * size, max(enough + rounding, 0.0))
    count, distance = closest(one, other, guess, core, work.supports, work.weights)
    if distance >= FAR:
        v = weighted(work.supports, count, work.weights, 0)
        write_nearest(work.nearest, v, v, v)
        return FAR
    if distance - rounding <= enough and (distance > 0.0 or count == OVERLAPPING):
        return distance - rounding
    if distance > 0.0:
        x, y = weighted(work.supports, count, work.weights, 3), weighted(work.supports, count, work.weights, 6)
        v = weighted(work.supports, count, work.weights, 0)
        n = times(1.0 / length_of(v), v)
        gap = distance - rounding
        for i in range(3):
            work.triangles[0, i] = min(i, count - 1)
        work.face[0] = 0
    else:
        f = deepest(one, other, count, size, work)
        if f < 0:
            return NEVER
        n = -work.planes[f, 0], -work.planes[f, 1], -work.planes[f, 2]
        gap = -work.planes[f, 3] - rounding
        x, y = points_of_face(work, f)
        work.face[0] = f
    if is_curved(one) or is_curved(other):
        x, y, n = refined(one, other, (x, y, n), size, work)
        gap = inner(n, minus(x, y)) - rounding
    write_nearest(work.nearest, along(x, -one.rounding, n), along(y, other.rounding, n), n)
    return gap


def are_apart(one: ConvexShape, other: ConvexShape, size: float, reach: float, direction: TripleLike) -> bool:
    """Return whether two shapes' gap along a direction (which may be zero) exceeds that of `gap_of_convex` for `reach`."""
    d = direction[0], direction[1], direction[2]
    square = inner(d, d)
    if not square > 0.0:
        return False
    between = minus(farthest_point(one, times(-1.0, d)), farthest_point(other, d))
    return inner(d, between) > (reach + one.rounding + other.rounding + 2.0 * SLACK * size) * sqrt(square)


def points_of_face(work: SearchWork, f: int) -> tuple[Triple, Triple]:
    """Return the points of both shapes whose difference is a face's point nearest to the origin."""
    u, v, w = weights_of_face(work, f)
    i, j, k = work.triangles[f, 0], work.triangles[f, 1], work.triangles[f, 2]
    s = work.supports
    x = plus(times(u, s[i, 3:6]), plus(times(v, s[j, 3:6]), times(w, s[k, 3:6])))
    y = plus(times(u, s[i, 6:9]), plus(times(v, s[j, 6:9]), times(w, s[k, 6:9])))
    return x, y


def gap_or_rounding(one: ConvexShape, other: ConvexShape, size: float, bounds: tuple[float, float], work: SearchWork) -> float:
    """Return the gap as `gap_of_convex` does; shapes without volume are separated along the line between their centres."""
    gap = gap_of_convex(one, other, size, bounds, work)
    if gap != NEVER:
        return gap
    apart = minus(position_of(one.P), position_of(other.P))
    distance = length_of(apart)
    n = times(1.0 / distance, apart) if distance > 0.0 else (0.0, 0.0, 1.0)
    x = farthest_point(other, n)
    write_nearest(work.nearest, along(x, -one.rounding, n), along(x, other.rounding, n), n)
    return -one.rounding - other.rounding
