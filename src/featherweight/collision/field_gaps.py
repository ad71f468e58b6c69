"""Gaps of convex shapes and height fields: the least gap to the prisms that compose the field.

A cell of a field has two triangles (see `height_fields`). Below each is a prism down to the field's base. The depth of an
overlap is the depth in the deepest prism. For a shape that is deeper below the surface than it is wide, the path out of the
whole field may be longer.
"""

from __future__ import annotations

from math import sqrt

from ..array_types import Vector
from .collision_scene import HULL
from .convex_shapes import ConvexShape, convex_shape, write_corner
from .height_fields import FieldArrays, around, vertex_of
from .query_tables import PairTable, QueryWork
from .separation import FAR, gap_or_rounding
from .triples import TripleLike, position_of, seen_from, turned

CORNERS = 6


def gap_to_field(table: PairTable, a: int, b: int, bounds: tuple[float, float], work: QueryWork) -> float:
    """Return the gap of shape a and height field b (see `pair_gaps`)."""
    most, enough = bounds
    f = table.data[b, 0]
    field = FieldArrays(table.fields.heights, table.fields.grid[f], table.fields.edges[f])
    grid, edges = field.grid, field.edges
    shape, radius = convex_shape(table, a, work), table.radius[a]
    c = seen_from(work.placement[b], position_of(work.placement[a]))
    # start with the cell below the centre, because most others are farther
    i = min(max(int((c[0] - edges[0]) / edges[2]), 0), grid[1] - 2)
    j = min(max(int((c[1] - edges[1]) / edges[3]), 0), grid[2] - 2)
    best = gap_to_cell(table, shape, b, (field, i, j), (most, enough, radius, FAR), work)
    reach = radius + max(min(most, best), 0.0)
    first, last = around(c[0], reach, edges[0], edges[2], grid[1])
    low, high = around(c[1], reach, edges[1], edges[3], grid[2])
    for k in range(first, last):
        for l in range(low, high):
            apart = distance_of_cell(field, k, l, c)
            if best > enough and (k != i or l != j) and (apart == 0.0 or apart - radius <= min(most, best)):
                best = gap_to_cell(table, shape, b, (field, k, l), (most, enough, radius, best), work)
    for k in range(9):
        work.nearest[k] = work.best[k]
    return best


def distance_of_cell(field: FieldArrays, i: int, j: int, c: TripleLike) -> float:
    """Return the distance of a point from the bounding box of a cell."""
    heights, grid, edges = field
    at = grid[0] + i * grid[2] + j
    top = max(max(heights[at], heights[at + 1]), max(heights[at + grid[2]], heights[at + grid[2] + 1]))
    x, y = edges[0] + i * edges[2], edges[1] + j * edges[3]
    dx = max(x - c[0], c[0] - x - edges[2], 0.0)
    dy = max(y - c[1], c[1] - y - edges[3], 0.0)
    dz = max(-edges[5] - c[2], c[2] - top, 0.0)
    return sqrt(dx * dx + dy * dy + dz * dz)


def gap_to_cell(
    table: PairTable,
    shape: ConvexShape,
    b: int,
    cell: tuple[FieldArrays, int, int],
    bounds: tuple[float, float, float, float],
    work: QueryWork,
) -> float:
    """Return the least of `best` and the gaps to both prisms of a cell; write the nearest points to `work.best`."""
    field, i, j = cell
    most, enough, radius, best = bounds
    for k in range(2):
        size = write_prism(field, (i, j, k), work.placement[b], work)
        hull = work.prism, table.hulls.links, table.hulls.linked, table.hulls.around, table.hulls.starts, 0, CORNERS, 0
        prism = ConvexShape(HULL, work.middle, table.size[b], 0.0, hull)
        gap = gap_or_rounding(shape, prism, radius + size, (min(most, best), enough), work)
        if gap < best:
            best = gap
            for x in range(9):
                work.best[x] = work.nearest[x]
    return best


def write_prism(field: FieldArrays, triangle: tuple[int, int, int], P: Vector, work: QueryWork) -> float:
    """Write the corners of the prism under triangle (i, j, which of two) relative to its centre, and the centre.

    Returns its radius.
    """
    i, j, k = triangle
    u, w, x = vertex_of(field, i, j), vertex_of(field, i + 1, j + 1), vertex_of(field, i + 1 - k, j + k)
    base = -field.edges[5]
    m = (u[0] + w[0] + x[0]) / 3.0, (u[1] + w[1] + x[1]) / 3.0, 0.5 * ((u[2] + w[2] + x[2]) / 3.0 + base)
    square = 0.0
    for n in range(CORNERS):
        v = u if n % 3 == 0 else (w if n % 3 == 1 else x)
        corner = v[0] - m[0], v[1] - m[1], (v[2] if n < 3 else base) - m[2]
        write_corner(work.prism, n, corner)
        square = max(square, corner[0] * corner[0] + corner[1] * corner[1] + corner[2] * corner[2])
    middle = turned(P, m)
    for n in range(9):
        work.middle[n] = P[n]
    for n in range(3):
        work.middle[9 + n] = P[9 + n] + middle[n]
    return sqrt(square)
