"""The distance of two convex shapes (Gilbert, Johnson and Keerthi 1988).

The differences a - b of points of two shapes form a convex set. GJK finds its point nearest to the origin in simplices of
support points. Rows of `supports` contain a - b, a and b.
"""

from __future__ import annotations

from math import sqrt

from ..array_types import Matrix, Vector
from .convex_shapes import ConvexShape, farthest_point
from .triples import Triple, TripleLike, along, inner, minus, outer, times

MOST_STEPS = 100
KEPT = 4  # index of the first stored weight
FLAT = 1e-20  # square of the sine of the angle below which a tetrahedron counts as flat
EXACT = 1e-13  # relative tolerance of the squared distance
TOUCHING = 1e-8  # distance, relative to the shapes' size, below which `penetration` takes over


def add_support(one: ConvexShape, other: ConvexShape, direction: TripleLike, supports: Matrix, k: int) -> None:
    """Write the point of `one` - `other` that is farthest along a direction to row k."""
    a, b = farthest_point(one, direction), farthest_point(other, times(-1.0, direction))
    for i in range(3):
        supports[k, 3 + i], supports[k, 6 + i] = a[i], b[i]
        supports[k, i] = a[i] - b[i]


def nearest_of_triangle(a: TripleLike, b: TripleLike, c: TripleLike) -> Triple:
    """Return the weights of a triangle's corners in its point nearest to the origin (Ericson 2005, section 5.1.5)."""
    ab, ac = minus(b, a), minus(c, a)
    d1, d2 = -inner(ab, a), -inner(ac, a)
    if d1 <= 0.0 and d2 <= 0.0:
        return 1.0, 0.0, 0.0
    d3, d4 = -inner(ab, b), -inner(ac, b)
    if d3 >= 0.0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        t = share(d1, -d3)
        return 1.0 - t, t, 0.0
    d5, d6 = -inner(ab, c), -inner(ac, c)
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        t = share(d2, -d6)
        return 1.0 - t, 0.0, t
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 >= d3 and d5 >= d6:
        t = share(d4 - d3, d5 - d6)
        return 0.0, 1.0 - t, t
    total = va + vb + vc
    if total > 0.0 and va >= 0.0 and vb >= 0.0 and vc >= 0.0:
        return va / total, vb / total, vc / total
    return nearest_of_edges(a, b, c)  # the triangle has no area


def share(x: float, y: float) -> float:
    """Return the fraction of x in the sum of two nonnegative numbers; zero if both are zero."""
    return x / (x + y) if x + y > 0.0 else 0.0


def nearest_of_edges(a: TripleLike, b: TripleLike, c: TripleLike) -> Triple:
    """Return the weights of a triangle's corners in the point of its sides nearest to the origin."""
    r, s, t = part_of_segment(a, b), part_of_segment(b, c), part_of_segment(c, a)
    x, y, z = along(a, r, minus(b, a)), along(b, s, minus(c, b)), along(c, t, minus(a, c))
    ab, bc, ca = inner(x, x), inner(y, y), inner(z, z)
    if ab <= bc and ab <= ca:
        return 1.0 - r, r, 0.0
    return (0.0, 1.0 - s, s) if bc <= ca else (t, 0.0, 1.0 - t)


def part_of_segment(a: TripleLike, b: TripleLike) -> float:
    """Return the position, from 0 at a to 1 at b, of the segment's point nearest to the origin."""
    ab = minus(b, a)
    square = inner(ab, ab)
    return min(max(-inner(ab, a) / square, 0.0), 1.0) if square > 0.0 else 0.0


def nearest_of_simplex(supports: Matrix, count: int, weights: Vector) -> bool:
    """Write the weights of a simplex's point nearest to the origin; return whether the origin is inside."""
    for i in range(4):
        weights[i] = 0.0
    a = supports[0]
    if count == 1:
        weights[0] = 1.0
        return False
    if count == 2:
        t = part_of_segment(a, supports[1])
        weights[0], weights[1] = 1.0 - t, t
        return False
    if count == 3:
        weights[0], weights[1], weights[2] = nearest_of_triangle(a, supports[1], supports[2])
        return False
    least, inside = 1e300, True
    for apex in range(4):
        i, j, k = (apex + 1) % 4, (apex + 2) % 4, (apex + 3) % 4
        x, y, z = supports[i], supports[j], supports[k]
        n = outer(minus(y, x), minus(z, x))
        edge = minus(supports[apex], x)
        height = inner(n, edge)
        flat = height * height <= FLAT * inner(n, n) * inner(edge, edge)
        if not flat and -inner(n, x) * height > 0.0:  # the origin and the fourth point are on the same side
            continue
        inside = False
        u, v, w = nearest_of_triangle(x, y, z)
        p = u * x[0] + v * y[0] + w * z[0], u * x[1] + v * y[1] + w * z[1], u * x[2] + v * y[2] + w * z[2]
        square = inner(p, p)
        if square < least:
            least = square
            weights[apex], weights[i], weights[j], weights[k] = 0.0, u, v, w
    return inside


def reduced(supports: Matrix, count: int, weights: Vector) -> int:
    """Remove the points of a simplex without weight; return the number of points left."""
    kept = 0
    for i in range(count):
        if weights[i] > 0.0:
            weights[kept] = weights[i]
            for j in range(9):
                supports[kept, j] = supports[i, j]
            kept += 1
    return kept


def weighted(supports: Matrix, count: int, weights: Vector, column: int) -> Triple:
    x = y = z = 0.0
    for i in range(count):
        w = weights[i]
        x += w * supports[i, column]
        y += w * supports[i, column + 1]
        z += w * supports[i, column + 2]
    return x, y, z


def merge_simplex(supports: Matrix, count: int, weights: Vector) -> None:
    """Replace a simplex by its nearest point, with the corresponding points of both shapes."""
    for j in range(9):
        x = 0.0
        for i in range(count):
            x += weights[i] * supports[i, j]
        supports[0, j] = x
    weights[0] = 1.0


def closest(
    one: ConvexShape, other: ConvexShape, direction: TripleLike, bounds: Triple, supports: Matrix, weights: Vector
) -> tuple[int, float]:
    """Return the number of points left in the simplex, and the distance of two shapes without rounding radii.

    `direction` is an initial guess of the direction from `other` to `one`. `bounds` are the shapes' size, the distance above
    which the search stops and returns infinity, and a distance below which the search stops and returns an upper bound. The
    result is zero near contact. Four points are left if the shapes overlap, fewer if they are farther apart or nearly in
    contact.
    """
    size, most, enough = bounds
    touching = size * TOUCHING
    add_support(one, other, times(-1.0, direction), supports, 0)
    weights[0] = 1.0
    count = 1
    square = inner(supports[0], supports[0])
    for _ in range(MOST_STEPS):
        if square <= touching * touching:
            return count, 0.0
        if square <= enough * enough:
            return count, sqrt(square)
        v = weighted(supports, count, weights, 0)
        add_support(one, other, times(-1.0, v), supports, count)
        lower = inner(v, supports[count])  # divided by the length of v, a lower bound of the distance
        if lower > most * sqrt(square):
            return count, 1e300
        if square - lower <= EXACT * square:
            break
        known = False
        for i in range(count):
            same = minus(supports[i], supports[count])
            known = known or inner(same, same) == 0.0
        if known:
            break
        for i in range(count):
            weights[KEPT + i] = weights[i]
        if nearest_of_simplex(supports, count + 1, weights):
            return count + 1, 0.0
        u = weighted(supports, count + 1, weights, 0)
        now = inner(u, u)
        if now < square:
            count, square = reduced(supports, count + 1, weights), now
            continue
        for i in range(count):  # replace a degenerate simplex by its nearest point
            weights[i] = weights[KEPT + i]
        merge_simplex(supports, count, weights)
        add_support(one, other, times(-1.0, v), supports, 1)
        nearest_of_simplex(supports, 2, weights)
        u = weighted(supports, 2, weights, 0)
        now = inner(u, u)
        count = reduced(supports, 2, weights)
        if not now < square:  # no progress because of rounding errors
            square = now
            break
        square = now
    return count, sqrt(square)
