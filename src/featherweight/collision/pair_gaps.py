"""Gaps of pairs of placed shapes: in closed form if there is one, otherwise by `separation`.

Gaps are signed distances: minus the depth if shapes overlap. `bounds` are the gap above which the search stops (returning
`FAR`), and a gap below which any lower value suffices. Otherwise `work.nearest` gets the nearest or deepest points, on the
first and on the second shape, and the normal from the second to the first.
"""

from __future__ import annotations

from math import sqrt

from ..array_types import Vector
from .collision_scene import CAPSULE, CYLINDER, ELLIPSOID, HEIGHTS, PLANE, SPHERE
from .convex_shapes import convex_shape, farthest_point
from .field_gaps import gap_to_field
from .query_tables import PairTable, QueryWork
from .round_contacts import ball_ball, ball_box, ball_capsule, ball_cylinder, ball_ellipsoid, nearest_on_segment, nearest_place
from .separation import gap_or_rounding, write_nearest
from .triples import along, axis_of, inner, length_of, minus, outer, position_of, times

CROSSING = 1e-12  # distance of two capsules' axes, relative to their radii, below which it defines no normal


def gap_of_pair(table: PairTable, a: int, b: int, bounds: tuple[float, float], work: QueryWork) -> float:
    """Return the gap of shapes a and b, the one of lower kind first."""
    one, other = table.kind[a], table.kind[b]
    if other == PLANE:
        return gap_to_plane(table, a, b, work)
    if other == HEIGHTS:
        return gap_to_field(table, a, b, bounds, work)
    if one == SPHERE and other <= ELLIPSOID:
        return gap_of_ball(table, a, b, work)
    if one == CAPSULE and other == CAPSULE:
        return gap_of_capsules(table, a, b, work)
    first, second = convex_shape(table, a, work), convex_shape(table, b, work)
    return gap_or_rounding(first, second, table.radius[a] + table.radius[b], bounds, work)


def gap_to_plane(table: PairTable, a: int, b: int, work: QueryWork) -> float:
    """Return the height of the lowest point of a shape above a half space."""
    P = work.placement[b]
    n, shape = axis_of(P, 2), convex_shape(table, a, work)
    x = along(farthest_point(shape, times(-1.0, n)), -shape.rounding, n)
    height = inner(n, minus(x, position_of(P)))
    write_nearest(work.nearest, x, along(x, -height, n), n)
    return height


def gap_of_ball(table: PairTable, a: int, b: int, work: QueryWork) -> float:
    """Return the gap of a ball and a sphere, capsule, box, cylinder or ellipsoid."""
    kind, P, S, found = table.kind[b], work.placement[b], table.size[b], work.found
    c, r = position_of(work.placement[a]), table.size[a, 0]
    if kind == SPHERE:
        ball_ball(c, r, position_of(P), S[0], found, 0)
    elif kind == CAPSULE:
        ball_capsule(c, r, P, S, found, 0)
    elif kind == ELLIPSOID:
        ball_ellipsoid(c, r, P, S, found, 0)
    elif kind == CYLINDER:
        ball_cylinder(c, r, P, S, found, 0)
    else:
        ball_box(c, r, P, S, found, 0)
    return gap_of_row(found[0], work)


def gap_of_row(row: Vector, work: QueryWork) -> float:
    """Return the gap of a contact (see `round_contacts`), whose point is midway between both surfaces."""
    n, half = (row[3], row[4], row[5]), 0.5 * row[6]
    write_nearest(work.nearest, along(row, half, n), along(row, -half, n), n)
    return row[6]


def gap_of_capsules(table: PairTable, a: int, b: int, work: QueryWork) -> float:
    """Return the gap of two capsules at the nearest points of their axes; crossing axes separate along their common normal."""
    PA, PB, SA, SB = work.placement[a], work.placement[b], table.size[a], table.size[b]
    c = along(position_of(PA), nearest_place(PA, SA[1], PB, SB[1]), axis_of(PA, 2))
    d = nearest_on_segment(c, PB, SB[1])
    apart = minus(c, d)
    if length_of(apart) > CROSSING * (SA[0] + SB[0]):
        ball_ball(c, SA[0], d, SB[0], work.found, 0)
        return gap_of_row(work.found[0], work)
    u = axis_of(PA, 2)
    n = outer(u, axis_of(PB, 2))
    if not length_of(n) > 0.0:  # parallel axes
        n = outer(u, (1.0, 0.0, 0.0) if abs(u[0]) < 0.7 else (0.0, 1.0, 0.0))
    n = times(1.0 / sqrt(inner(n, n)), n)
    write_nearest(work.nearest, along(c, -SA[0], n), along(d, SB[0], n), n)
    return -SA[0] - SB[0]
