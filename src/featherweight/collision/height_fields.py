"""Contacts of balls with height fields.

A height field is a solid within the edges of its grid: above its base and below its surface. Each cell of the grid has two
triangles, which share the diagonal from its corner (i, j) to (i + 1, j + 1), as in MuJoCo. `grid` (3,) has the index of its
first height, and the numbers of heights along x and y. `edges` (6,) are x and y of the first height, both spacings, the
greatest height, and the depth of the base below z = 0.

A ball outside touches the solid where the distance from its centre has a local minimum, at a face, an edge or a vertex:

    (c - p) . (x - p) <= 0    for the neighbours x of the point p next to the centre c

A ball whose centre is inside touches at the end of the shortest path out, along the normal of the triangle at the centre, or
through a wall or the base. A row of `patches` has the point, the normal, the distance of the centre, the direction of an edge
(zero for others), and the dimension of the touched element: 2 for a face, 1 for an edge, 0 for a vertex.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from ..array_types import Integers, Matrix, Vector
from .round_contacts import SAME, put
from .triples import Triple, TripleLike, along, inner, length_of, minus, placed, seen_from, times, turned

MOST_PATCHES = 4  # greatest number of contacts of one ball; the nearest are kept
INEXACT = 1e-9  # distance outside a triangle, relative to a cell, that counts as inside
GridNumbers = Integers | tuple[int, ...]


class FieldArrays(NamedTuple):
    """A height field."""

    heights: Vector
    grid: GridNumbers
    edges: Vector


def normal_and_height(
    heights: Vector, grid: GridNumbers, edges: Vector, x: float, y: float
) -> tuple[float, float, float, float]:
    """Return the normal of the triangle at (x, y), and the height of its plane there; beyond the edges, the nearest one's."""
    s, t = (x - edges[0]) / edges[2], (y - edges[1]) / edges[3]
    i, j = min(max(int(s), 0), grid[1] - 2), min(max(int(t), 0), grid[2] - 2)
    return plane_of(heights, grid, edges, (i, j, s - i < t - j), (x, y))


def plane_of(
    heights: Vector, grid: GridNumbers, edges: Vector, triangle: tuple[int, int, bool], at: tuple[float, float]
) -> tuple[float, float, float, float]:
    """Return the normal of a triangle, and the height of its plane at (x, y).

    The triangle is in cell (i, j), above its diagonal in the grid or not.
    """
    i, j, above = triangle
    ny = grid[2]
    corner = grid[0] + i * ny + j
    here, opposite = heights[corner], heights[corner + ny + 1]
    if above:
        between = heights[corner + 1]
        dx, dy = (opposite - between) / edges[2], (between - here) / edges[3]
    else:
        between = heights[corner + ny]
        dx, dy = (between - here) / edges[2], (opposite - between) / edges[3]
    size = sqrt(1.0 + dx * dx + dy * dy)
    height = here + dx * (at[0] - edges[0] - i * edges[2]) + dy * (at[1] - edges[1] - j * edges[3])
    return -dx / size, -dy / size, 1.0 / size, height


def vertex_of(field: FieldArrays, i: int, j: int) -> Triple:
    heights, grid, edges = field
    return edges[0] + i * edges[2], edges[1] + j * edges[3], heights[grid[0] + i * grid[2] + j]


def balls_on_heights(
    PA: Vector, balls: Matrix, PB: Vector, field: FieldArrays, reach: float, patches: Matrix, found: Matrix
) -> int:
    """Write the contacts within `reach` [m] of balls (n, 4), centres in the frame of a shape and radii, and a height field.

    Ball i has the candidates from MOST_PATCHES i on. `patches` is workspace.
    """
    k = 0
    for i in range(len(balls)):
        c, radius = placed(PA, balls[i]), balls[i, 3]
        for l in range(field_patches(field, seen_from(PB, c), radius + reach, patches)):
            row = patches[l]
            n = turned(PB, (row[3], row[4], row[5]))
            k = put(found, k, along(c, -row[6], n), n, row[6] - radius)
            found[k - 1, 7] = MOST_PATCHES * i + l
    return k


def field_patches(field: FieldArrays, c: TripleLike, reach: float, patches: Matrix) -> int:
    """Write the elements near a point c in the frame of the field, within `reach` [m]; return the number of rows."""
    heights, grid, edges = field
    x = min(max(c[0], edges[0]), edges[0] + (grid[1] - 1) * edges[2])
    y = min(max(c[1], edges[1]), edges[1] + (grid[2] - 1) * edges[3])
    nx, ny, nz, height = normal_and_height(heights, grid, edges, x, y)
    if c[2] < height:
        if x == c[0] and y == c[1] and c[2] >= -edges[5]:
            return way_out(field, c, (nx, ny, nz), (c[2] - height) * nz, patches)
        return side_patch(c, (x, y, max(c[2], -edges[5])), reach, patches)
    first, last = around(c[0], reach, edges[0], edges[2], grid[1])
    low, high = around(c[1], reach, edges[1], edges[3], grid[2])
    count = 0
    for dimension in (2, 1, 0):
        for i in range(first, last + 1):
            for j in range(low, high + 1):
                if dimension == 2:
                    count = triangle_patches(field, i, j, c, reach, patches, count)
                elif dimension == 1:
                    count = edge_patches(field, i, j, c, reach, patches, count)
                else:
                    count = vertex_patch(field, i, j, c, reach, patches, count)
    return count


def around(x: float, reach: float, start: float, step: float, count: int) -> tuple[int, int]:
    """Return the first and last of the grid lines that bound the cells within reach; last < first for none."""
    first, last = (x - reach - start) / step, (x + reach - start) / step
    if not (first < count and last > -1.0):
        return 0, -1
    return int(max(first, 0.0)), int(min(last + 1.0, count - 1.0))


def way_out(field: FieldArrays, c: TripleLike, normal: Triple, depth: float, patches: Matrix) -> int:
    """Write the shortest path out of the solid for a point inside.

    `normal` and the negative `depth` are those of the surface.
    """
    _, grid, edges = field
    n, d = normal, depth
    if -c[2] - edges[5] > d:
        n, d = (0.0, 0.0, -1.0), -c[2] - edges[5]
    for k in range(2):
        before = edges[k] - c[k]
        behind = c[k] - edges[k] - (grid[1 + k] - 1) * edges[2 + k]
        if max(before, behind) > d:
            way = -1.0 if before > behind else 1.0
            n, d = ((way, 0.0, 0.0) if k == 0 else (0.0, way, 0.0)), max(before, behind)
    return put_patch(patches, 0, along(c, -d, n), n, d, (0.0, 0.0, 0.0), 2)


def side_patch(c: TripleLike, p: TripleLike, reach: float, patches: Matrix) -> int:
    """Write the point p of a wall or of the base that is nearest to a point c outside."""
    apart = minus(c, p)
    distance = length_of(apart)
    if not 0.0 < distance < reach:
        return 0
    x, y, z = (1.0 if apart[0] == 0.0 else 0.0), (1.0 if apart[1] == 0.0 else 0.0), (1.0 if apart[2] == 0.0 else 0.0)
    n, dimension = times(1.0 / distance, apart), int(x + y + z)
    return put_patch(patches, 0, p, n, distance, (x, y, z) if dimension == 1 else (0.0, 0.0, 0.0), dimension)


def triangle_patches(field: FieldArrays, i: int, j: int, c: TripleLike, reach: float, patches: Matrix, count: int) -> int:
    """Write patches for the triangles of cell (i, j) that contain the foot of the perpendicular from c.

    Return the new count.
    """
    heights, grid, edges = field
    if i >= grid[1] - 1 or j >= grid[2] - 1:
        return count
    at = grid[0] + i * grid[2] + j
    top = max(heights[at], heights[at + 1], heights[at + grid[2]], heights[at + grid[2] + 1])
    if c[2] - top >= reach:
        return count
    for above in (False, True):
        nx, ny, nz, height = plane_of(heights, grid, edges, (i, j, above), (c[0], c[1]))
        d = (c[2] - height) * nz
        if not -INEXACT * (edges[2] + edges[3]) < d < reach:
            continue
        foot = along(c, -d, (nx, ny, nz))
        s, t = (foot[0] - edges[0]) / edges[2] - i, (foot[1] - edges[1]) / edges[3] - j
        low, high = (s, t) if above else (t, s)
        if low > -INEXACT and high < 1.0 + INEXACT and high > low - INEXACT:
            count = put_patch(patches, count, foot, (nx, ny, nz), d, (0.0, 0.0, 0.0), 2)
    return count


def edge_patches(field: FieldArrays, i: int, j: int, c: TripleLike, reach: float, patches: Matrix, count: int) -> int:
    """Write patches for the edges from vertex (i, j) along x, along y and along the diagonal; return the new count."""
    grid = field.grid
    last, end = grid[1] - 1, grid[2] - 1
    for k in range(3):
        u, w = 1 - (k == 1), 1 - (k == 0)
        if i + u > last or j + w > end:
            continue
        a, b = vertex_of(field, i, j), vertex_of(field, i + u, j + w)
        if c[2] - max(a[2], b[2]) >= reach:
            continue
        way = minus(b, a)
        part = inner(minus(c, a), way) / inner(way, way)
        if not -INEXACT < part < 1.0 + INEXACT:
            continue
        p = along(a, part, way)
        # opposite vertices: (i + 1, j + 1) and the one before for an edge along x or y, the other corners for a diagonal
        one = is_beside(field, i + 1, j + 1 - (k == 2), c, p)
        other = is_beside(field, i - (k == 1), j - (k == 0) + (k == 2), c, p)
        border = (k == 0 and (j == 0 or j == end)) or (k == 1 and (i == 0 or i == last))
        if one and other and not (border and c[2] < p[2]):
            distance = length_of(minus(c, p))
            if 0.0 < distance < reach:
                n = times(1.0 / distance, minus(c, p))
                count = put_patch(patches, count, p, n, distance, times(1.0 / length_of(way), way), 1)
    return count


def vertex_patch(field: FieldArrays, i: int, j: int, c: TripleLike, reach: float, patches: Matrix, count: int) -> int:
    """Write the patch for vertex (i, j), if there is one; return the new count."""
    grid = field.grid
    p = vertex_of(field, i, j)
    distance = length_of(minus(c, p))
    if not 0.0 < distance < reach:
        return count
    if c[2] < p[2] and (i == 0 or j == 0 or i == grid[1] - 1 or j == grid[2] - 1):
        return count
    for way in (-1, 1):
        if not (is_beside(field, i + way, j, c, p) and is_beside(field, i, j + way, c, p)):
            return count
        if not is_beside(field, i + way, j + way, c, p):
            return count
    return put_patch(patches, count, p, times(1.0 / distance, minus(c, p)), distance, (0.0, 0.0, 0.0), 0)


def is_beside(field: FieldArrays, i: int, j: int, c: TripleLike, p: TripleLike) -> bool:
    """Return whether moving from p towards vertex (i, j) does not come nearer to c, or there is no such vertex."""
    if i < 0 or j < 0 or i >= field.grid[1] or j >= field.grid[2]:
        return True
    way = minus(vertex_of(field, i, j), p)
    return inner(minus(c, p), way) <= INEXACT * inner(way, way)


def put_patch(
    patches: Matrix, count: int, p: TripleLike, n: TripleLike, distance: float, edge: TripleLike, dimension: int
) -> int:
    """Write a row, unless there is one at its point; if there are too many, replace the farthest."""
    farthest = 0
    for k in range(count):
        row = patches[k]
        if length_of(minus(row, p)) < SAME:
            return count
        if row[6] > patches[farthest, 6]:
            farthest = k
    row = patches[min(count, MOST_PATCHES - 1)]
    if count == MOST_PATCHES:
        if distance >= patches[farthest, 6]:
            return count
        row = patches[farthest]
    for k in range(3):
        row[k], row[3 + k], row[7 + k] = p[k], n[k], edge[k]
    row[6], row[10] = distance, dimension
    return min(count + 1, MOST_PATCHES)
