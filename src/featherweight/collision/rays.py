"""Intersections of rays with shapes.

A ray is p + t d with a unit vector d. The result is the least t >= 0 on a surface, from outside or inside, or -1. Planes are
hit from above only. Meshes are triangles, hit from both sides; height fields are solids (see `height_fields`).
"""

from __future__ import annotations

from functools import partial
from math import inf, sqrt
from typing import NamedTuple

from ..array_types import IntegerMatrix, Integers, Matrix, Tensor, Vector
from ..engine.loops.kernels import CompiledKernel
from .collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHTS, HULL, PLANE, SPHERE
from .triples import Triple, inner, minus

PARALLEL = 1e-15  # component of a direction below which it counts as zero
CLOSE = 1e-9  # tolerance for rays through edges of a triangle, relative to the triangle


class RayShapes(NamedTuple):
    """Shapes that rays can hit."""

    kind: Integers  # (shapes,) kinds of `collision_scene`
    link: Integers  # (shapes,) number of each shape's link
    size: Matrix  # (shapes, 3) as in `ShapePart`
    reach: Matrix  # (shapes, 4) centre and radius of a bounding ball of each mesh
    span: IntegerMatrix  # (shapes, 4) range of triangles; or first height, and numbers of heights along x and y
    edges: Matrix  # (shapes, 6) of height fields, as in `height_fields`
    triangles: Matrix  # (triangles, 9) corners, in the shape's frame
    heights: Vector


def nearer(t: float, best: float) -> float:
    """Return the smaller of two distances; a negative distance is behind the origin and ignored."""
    return t if 0.0 <= t < best else best


def ray_and_ellipsoid(p: Triple, d: Triple, a: float, b: float, c: float) -> float:
    """Intersect a ray with an ellipsoid of radii a, b, c."""
    if a <= 0.0 or b <= 0.0 or c <= 0.0:
        return inf
    x, y, z = p[0] / a, p[1] / b, p[2] / c
    u, v, w = d[0] / a, d[1] / b, d[2] / c
    square, middle = u * u + v * v + w * w, x * u + y * v + z * w
    root = middle * middle - square * (x * x + y * y + z * z - 1.0)
    if root < 0.0:
        return inf
    root = sqrt(root)
    return nearer((-middle + root) / square, nearer((-middle - root) / square, inf))


def ray_and_tube(p: Triple, d: Triple, radius: float, half: float) -> float:
    """Intersect a ray with the side of a cylinder about z, from -half to half."""
    square = d[0] * d[0] + d[1] * d[1]
    if square < PARALLEL * PARALLEL:
        return inf
    middle = p[0] * d[0] + p[1] * d[1]
    root = middle * middle - square * (p[0] * p[0] + p[1] * p[1] - radius * radius)
    if root < 0.0:
        return inf
    best, root = inf, sqrt(root)
    for k in range(2):
        t = (-middle - root if k == 0 else -middle + root) / square
        if abs(p[2] + t * d[2]) <= half:
            best = nearer(t, best)
    return best


def ray_and_cap(p: Triple, d: Triple, radius: float, z: float) -> float:
    """Intersect a ray with the disc of a cylinder's end at z."""
    if abs(d[2]) < PARALLEL:
        return inf
    t = (z - p[2]) / d[2]
    x, y = p[0] + t * d[0], p[1] + t * d[1]
    return nearer(t, inf) if x * x + y * y <= radius * radius else inf


def ray_and_ball_end(p: Triple, d: Triple, radius: float, z: float) -> float:
    """Intersect a ray with the half of a sphere around (0, 0, z) that is farther from the origin."""
    x, y, w = p[0], p[1], p[2] - z
    middle = x * d[0] + y * d[1] + w * d[2]
    root = middle * middle - (x * x + y * y + w * w - radius * radius)
    if root < 0.0:
        return inf
    best, root = inf, sqrt(root)
    for k in range(2):
        t = -middle - root if k == 0 else -middle + root
        if (w + t * d[2]) * z >= 0.0:
            best = nearer(t, best)
    return best


def ray_and_box(p: Triple, d: Triple, a: float, b: float, c: float) -> float:
    """Intersect a ray with a box of half lengths a, b, c."""
    best = inf
    if abs(d[0]) >= PARALLEL:
        for k in range(2):
            t = ((a if k == 0 else -a) - p[0]) / d[0]
            if abs(p[1] + t * d[1]) <= b and abs(p[2] + t * d[2]) <= c:
                best = nearer(t, best)
    if abs(d[1]) >= PARALLEL:
        for k in range(2):
            t = ((b if k == 0 else -b) - p[1]) / d[1]
            if abs(p[0] + t * d[0]) <= a and abs(p[2] + t * d[2]) <= c:
                best = nearer(t, best)
    if abs(d[2]) >= PARALLEL:
        for k in range(2):
            t = ((c if k == 0 else -c) - p[2]) / d[2]
            if abs(p[0] + t * d[0]) <= a and abs(p[1] + t * d[1]) <= b:
                best = nearer(t, best)
    return best


def ray_and_triangle(p: Triple, d: Triple, a: Triple, b: Triple, c: Triple) -> float:
    """Intersect a ray with a triangle, by Cramer's rule (Möller and Trumbore 1997)."""
    e, f, s = minus(b, a), minus(c, a), minus(p, a)
    h = (d[1] * f[2] - d[2] * f[1], d[2] * f[0] - d[0] * f[2], d[0] * f[1] - d[1] * f[0])
    determinant = inner(e, h)
    if determinant == 0.0:
        return inf
    u = inner(s, h) / determinant
    g = (s[1] * e[2] - s[2] * e[1], s[2] * e[0] - s[0] * e[2], s[0] * e[1] - s[1] * e[0])
    v = inner(d, g) / determinant
    if u < -CLOSE or v < -CLOSE or u + v > 1.0 + CLOSE:
        return inf
    return nearer(inner(f, g) / determinant, inf)


def ray_and_mesh(p: Triple, d: Triple, shapes: RayShapes, s: int) -> float:
    """Intersect a ray with triangles, if it hits their bounding ball."""
    ball = shapes.reach[s]
    x, y, z = ball[0] - p[0], ball[1] - p[1], ball[2] - p[2]
    along = x * d[0] + y * d[1] + z * d[2]
    apart, radius = x * x + y * y + z * z, ball[3]
    if apart > radius * radius and (along < 0.0 or apart - along * along > radius * radius):
        return inf
    best = inf
    for k in range(shapes.span[s, 0], shapes.span[s, 1]):
        t = shapes.triangles[k]
        a, b, c = (t[0], t[1], t[2]), (t[3], t[4], t[5]), (t[6], t[7], t[8])
        best = min(best, ray_and_triangle(p, d, a, b, c))
    return best


def cells_of(x: float, d: float, first: float, last: float, start: float, spacing: float, count: int) -> tuple[int, int]:
    """Return the first and the last of `count` cells along an axis that contain the ray from t = `first` to `last`."""
    a, b = (x + first * d - start) / spacing, (x + last * d - start) / spacing
    low, high = min(a, b), max(a, b)
    return min(max(int(low) - 1, 0), count - 1), min(max(int(high) + 1, 0), count - 1)


def ray_and_field(p: Triple, d: Triple, shapes: RayShapes, s: int) -> float:
    """Intersect a ray with a height field: its surface, its walls and its base."""
    span, e = shapes.span[s], shapes.edges[s]
    nx, ny, offset = span[1], span[2], span[0]
    x1, y1 = e[0] + (nx - 1) * e[2], e[1] + (ny - 1) * e[3]
    first, last = 0.0, inf
    if abs(d[0]) >= PARALLEL:
        a, b = (e[0] - p[0]) / d[0], (x1 - p[0]) / d[0]
        first, last = max(first, min(a, b)), min(last, max(a, b))
    elif p[0] < e[0] or p[0] > x1:
        return inf
    if abs(d[1]) >= PARALLEL:
        a, b = (e[1] - p[1]) / d[1], (y1 - p[1]) / d[1]
        first, last = max(first, min(a, b)), min(last, max(a, b))
    elif p[1] < e[1] or p[1] > y1:
        return inf
    if last < first:
        return inf
    best = inf
    if abs(d[2]) >= PARALLEL:
        t = (-e[5] - p[2]) / d[2]
        if first <= t <= last:
            best = nearer(t, best)
    if last < inf:
        for k in range(2):  # the walls, at the edges of the grid
            t = first if k == 0 else last
            if k == 0 and first == 0.0:
                continue
            height = height_at(shapes, s, p[0] + t * d[0], p[1] + t * d[1])
            if -e[5] <= p[2] + t * d[2] <= height:
                best = nearer(t, best)
    stop = min(last, best)
    if stop == inf:  # a vertical ray
        stop = first
    i0, i1 = cells_of(p[0], d[0], first, stop, e[0], e[2], nx - 1)
    j0, j1 = cells_of(p[1], d[1], first, stop, e[1], e[3], ny - 1)
    for i in range(i0, i1 + 1):
        for j in range(j0, j1 + 1):
            k = offset + i * ny + j
            xa, xb, ya, yb = e[0] + i * e[2], e[0] + (i + 1) * e[2], e[1] + j * e[3], e[1] + (j + 1) * e[3]
            low, high = (xa, ya, shapes.heights[k]), (xb, yb, shapes.heights[k + ny + 1])
            right, left = (xb, ya, shapes.heights[k + ny]), (xa, yb, shapes.heights[k + 1])
            best = min(best, ray_and_triangle(p, d, low, right, high), ray_and_triangle(p, d, low, high, left))
    return best


def height_at(shapes: RayShapes, s: int, x: float, y: float) -> float:
    """Return the height of the surface at a point; beyond the edges, at the nearest point."""
    span, e = shapes.span[s], shapes.edges[s]
    nx, ny = span[1], span[2]
    u, v = (x - e[0]) / e[2], (y - e[1]) / e[3]
    i, j = min(max(int(u), 0), nx - 2), min(max(int(v), 0), ny - 2)
    u, v = min(max(u - i, 0.0), 1.0), min(max(v - j, 0.0), 1.0)
    k = span[0] + i * ny + j
    low, right = shapes.heights[k], shapes.heights[k + ny]
    left, high = shapes.heights[k + 1], shapes.heights[k + ny + 1]
    if u < v:
        return float(low + u * (high - left) + v * (left - low))
    return float(low + u * (right - low) + v * (high - right))


def ray_and_shape(p: Triple, d: Triple, shapes: RayShapes, s: int) -> float:
    """Return the distance to a shape, in its frame; infinity without a hit."""
    kind, size = shapes.kind[s], shapes.size[s]
    if kind == PLANE:
        return nearer(-p[2] / d[2], inf) if d[2] < -PARALLEL else inf
    if kind == SPHERE:
        return ray_and_ellipsoid(p, d, size[0], size[0], size[0])
    if kind == ELLIPSOID:
        return ray_and_ellipsoid(p, d, size[0], size[1], size[2])
    if kind == BOX:
        return ray_and_box(p, d, size[0], size[1], size[2])
    if kind == CYLINDER:
        caps = min(ray_and_cap(p, d, size[0], size[1]), ray_and_cap(p, d, size[0], -size[1]))
        return min(ray_and_tube(p, d, size[0], size[1]), caps)
    if kind == CAPSULE:
        ends = min(ray_and_ball_end(p, d, size[0], size[1]), ray_and_ball_end(p, d, size[0], -size[1]))
        return min(ray_and_tube(p, d, size[0], size[1]), ends)
    if kind == HEIGHTS:
        return ray_and_field(p, d, shapes, s)
    if kind == HULL:
        return ray_and_mesh(p, d, shapes, s)
    return inf


@partial(CompiledKernel, fused=False)
def cast(
    shapes: RayShapes,
    placement: Tensor,
    origin: Tensor,
    direction: Tensor,
    blind: Integers,
    distance: Matrix,
    met: IntegerMatrix,
) -> None:
    """Write distances (robots, rays) from origins (robots, rays, 3) along unit vectors (.., 3), and the hit shapes or -1.

    placement (robots, shapes, 12) has rotations by rows, and positions. Ray k ignores the link blind[k].
    """
    for i in range(len(origin)):
        for k in range(origin.shape[1]):
            best = inf
            met[i, k] = -1
            for s in range(len(shapes.kind)):
                if shapes.link[s] == blind[k]:
                    continue
                o, u, T = origin[i, k], direction[i, k], placement[i, s]
                x, y, z = o[0] - T[9], o[1] - T[10], o[2] - T[11]
                p = (T[0] * x + T[3] * y + T[6] * z, T[1] * x + T[4] * y + T[7] * z, T[2] * x + T[5] * y + T[8] * z)
                x, y, z = u[0], u[1], u[2]
                d = (T[0] * x + T[3] * y + T[6] * z, T[1] * x + T[4] * y + T[7] * z, T[2] * x + T[5] * y + T[8] * z)
                t = ray_and_shape(p, d, shapes, s)
                if t < best:
                    best = t
                    met[i, k] = s
            distance[i, k] = best if best < inf else -1.0
