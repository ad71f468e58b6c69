"""Contacts of any two convex shapes: their nearest or deepest points, and those of faces that touch."""

from __future__ import annotations

from typing import Any

from .closest_points import closest, weighted
from .convex_shapes import ALIGNED, convex_shape, face_towards
from .face_clipping import MOST_POINTS, put_face_points
from .penetration import deepest, weights_of_face
from .round_contacts import SAME, put
from .triples import along, inner, length_of, minus, plus, position_of, times


def convex_contacts(scene: Any, a: int, b: int, reach: float, work: Any) -> int:
    """Contacts of shapes a and b with gaps below `reach`."""
    one, other = convex_shape(scene, a, work), convex_shape(scene, b, work)
    size = scene.radius[a] + scene.radius[b]
    apart = minus(position_of(one.P), position_of(other.P))
    guess = apart if inner(apart, apart) > 0.0 else (0.0, 0.0, 1.0)
    rounding = one.rounding + other.rounding
    count, distance = closest(one, other, guess, (size, reach + rounding), work.supports, work.weights)
    if distance >= reach + rounding:
        return 0
    if distance > 0.0:
        x, y = weighted(work.supports, count, work.weights, 3), weighted(work.supports, count, work.weights, 6)
        v = weighted(work.supports, count, work.weights, 0)
        n = times(1.0 / length_of(v), v)
        gap = distance - rounding
    else:
        f = deepest(one, other, count, size, work)
        if f < 0:
            return 0
        out = work.planes[f, 0], work.planes[f, 1], work.planes[f, 2]
        depth = work.planes[f, 3]
        u, v2, w = weights_of_face(work, f)
        i, j, k = work.triangles[f, 0], work.triangles[f, 1], work.triangles[f, 2]
        s = work.supports
        x = plus(times(u, s[i, 3:6]), plus(times(v2, s[j, 3:6]), times(w, s[k, 3:6])))
        y = plus(times(u, s[i, 6:9]), plus(times(v2, s[j, 6:9]), times(w, s[k, 6:9])))
        n = times(-1.0, out)
        gap = -depth - rounding
    middle = times(0.5, plus(along(x, -one.rounding, n), along(y, other.rounding, n)))
    return with_faces(scene.hulls, (one, other), (middle, n, gap), reach, work)


def with_faces(hulls: Any, shapes: Any, contact: Any, reach: float, work: Any) -> int:
    """The points of two shapes whose faces touch, and the nearest or deepest one where that is not among them."""
    one, other = shapes
    point, n, gap = contact
    polygons, found = work.polygons, work.found
    k = 0
    m, outward = face_towards(hulls, other, n, polygons[0])
    if inner(outward, n) > ALIGNED:
        count, _ = face_towards(hulls, one, times(-1.0, n), polygons[1])
        k = put_face_points(polygons, m, count, outward, 1.0, reach, found)
    else:
        m, outward = face_towards(hulls, one, times(-1.0, n), polygons[0])
        if -inner(outward, n) > ALIGNED:
            count, _ = face_towards(hulls, other, n, polygons[1])
            k = put_face_points(polygons, m, count, outward, -1.0, reach, found)
    for i in range(k):
        if found[i, 6] <= gap + SAME:
            return k
    put(found, k, point, n, gap)
    found[k, 7] = MOST_POINTS
    return k + 1
