"""Queries of touching pairs and of distances, for one state or many, compiled as a whole.

`shapes` is a `PairTable`, `work` a `QueryWork`. The robot's machine code computes the placements of shapes in a state; without
machine code, `states.placement` has them.
"""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

from ..array_types import BooleanMatrix, Booleans, Integers, Matrix, Tensor, Vector
from ..engine.loops.kernels import call_machine
from .box_contacts import half_width
from .collision_scene import HEIGHTS, PLANE
from .pair_gaps import gap_of_pair
from .query_tables import PairTable, QueryWork
from .separation import NEVER
from .triples import TripleLike, axis_of, inner, minus, position_of

PAD = 1e-9  # [m] bound of rounding errors of distances between bounding volumes
NOT_FINITE = -1  # result for a state with non-finite numbers


class TouchingQuery(NamedTuple):
    """Query whether any pair touches, or comes within reach[0], in states span[0] to span[1]."""

    span: Integers  # (2,)
    q: Matrix  # (n, nq)
    placement: Tensor  # (n, shapes, 12), or (0, shapes, 12) if machine code computes them
    reach: Vector  # (1,) [m]
    found: Booleans  # (n,)
    shapes: PairTable
    work: QueryWork


class EachTouchingQuery(NamedTuple):
    """Query which pairs touch, or come within reach[0]."""

    span: Integers
    q: Matrix
    placement: Tensor
    reach: Vector
    found: BooleanMatrix  # (n, pairs)
    shapes: PairTable
    work: QueryWork


class DistanceQuery(NamedTuple):
    """Query of distances; beyond reach[0] they are infinity and NaN. Pairs have the order and direction of the request."""

    span: Integers
    q: Matrix
    placement: Tensor
    reach: Vector
    distance: Matrix  # (n, pairs)
    points: Tensor  # (n, pairs, 6) points on the first shape and on the second
    normal: Tensor  # (n, pairs, 3) from the first to the second
    shapes: PairTable
    work: QueryWork


def any_touching(query: TouchingQuery) -> int:
    """Write for each state whether any pair touches.

    Return that of the last state, or `NOT_FINITE` if a state is not finite.
    """
    answer = 0
    for s in range(query.span[0], query.span[1]):
        if not place(query, s, query.work):
            return NOT_FINITE
        answer = any_pair_touches(query.shapes, query.reach[0], query.work)
        query.found[s] = answer == 1
    return answer


def each_touching(query: EachTouchingQuery) -> int:
    """Write which pairs touch; return 0, or `NOT_FINITE` if a state is not finite."""
    for s in range(query.span[0], query.span[1]):
        if not place(query, s, query.work):
            return NOT_FINITE
        for p in range(len(query.shapes.pair)):
            query.found[s, p] = pair_touches(query.shapes, p, query.reach[0], query.work)
    return 0


def all_distances(query: DistanceQuery) -> int:
    """Write the distances of a query; return 0, or `NOT_FINITE` if a state is not finite."""
    reach = query.reach[0]
    for s in range(query.span[0], query.span[1]):
        if not place(query, s, query.work):
            return NOT_FINITE
        for p in range(len(query.shapes.pair)):
            where = query.points[s, p], query.normal[s, p]
            write_distance(query.shapes, p, reach, where, query.distance[s], query.work)
    return 0


def place(query: TouchingQuery | EachTouchingQuery | DistanceQuery, s: int, work: QueryWork) -> bool:
    """Place all shapes for state s; return whether its numbers are finite."""
    q = query.q[s]
    for i in range(len(q)):
        if q[i] - q[i] != 0.0:  # infinite or NaN
            return False
    if work.machine.address == 0:
        for g in range(len(work.placement)):
            for i in range(12):
                work.placement[g, i] = query.placement[s, g, i]
        return True
    for i in range(len(q)):
        work.q[i] = q[i]
    call_machine(work.machine)
    x = work.placement[0, 9]
    return x - x == 0.0  # NaN where memory ended


def any_pair_touches(shapes: PairTable, reach: float, work: QueryWork) -> int:
    """Return 1 if any pair touches, else 0. Touching pairs move forward in the order for later states.

    Results are unaffected.
    """
    order = work.order
    for k in range(len(order)):
        p = order[k]
        if pair_touches(shapes, p, reach, work):
            order[k] = order[k // 2]
            order[k // 2] = p
            return 1
    return 0


def pair_touches(shapes: PairTable, p: int, reach: float, work: QueryWork) -> bool:
    """Return whether a pair comes within `reach`."""
    a, b = shapes.pair[p, 0], shapes.pair[p, 1]
    apart = minus(position_of(work.placement[a]), position_of(work.placement[b]))
    if shapes.kind[b] < PLANE:
        square = inner(apart, apart)
        most, enough = shapes.radius[a] + shapes.radius[b] + reach + PAD, shapes.inner[a] + shapes.inner[b] + reach
        if square > most * most:
            return False
        if enough > 0.0 and square < enough * enough:
            return True
    if not boxes_meet(shapes, a, b, apart, reach + PAD, work):
        return False
    return gap_of_pair(shapes, a, b, (reach, reach), work) <= reach


def write_distance(
    shapes: PairTable, p: int, reach: float, where: tuple[Vector, Vector], distance: Vector, work: QueryWork
) -> None:
    """Write the distance of a pair, and its points and normal."""
    points, normal = where
    a, b = shapes.pair[p, 0], shapes.pair[p, 1]
    gap = 1e300
    if may_be_within(shapes, a, b, reach, work):
        gap = gap_of_pair(shapes, a, b, (reach, NEVER), work)
    if not (gap <= reach and gap < 1e300):
        distance[p] = inf
        for i in range(3):
            points[i] = points[3 + i] = normal[i] = nan
        return
    distance[p] = gap
    one, other, sign = (3, 0, 1.0) if shapes.flipped[p] else (0, 3, -1.0)
    for i in range(3):
        points[i], points[3 + i], normal[i] = work.nearest[one + i], work.nearest[other + i], sign * work.nearest[6 + i]


def may_be_within(shapes: PairTable, a: int, b: int, reach: float, work: QueryWork) -> bool:
    """Return whether the bounding volumes of two shapes come within `reach`."""
    if reach >= 1e300:
        return True
    apart = minus(position_of(work.placement[a]), position_of(work.placement[b]))
    most = shapes.radius[a] + shapes.radius[b] + reach + PAD
    if shapes.kind[b] < PLANE and inner(apart, apart) > most * most:
        return False
    return boxes_meet(shapes, a, b, apart, reach + PAD, work)


def boxes_meet(shapes: PairTable, a: int, b: int, apart: TripleLike, reach: float, work: QueryWork) -> bool:
    """Return whether no face of two bounding boxes separates them by more than `reach`.

    This is the test of Gottschalk, Lin and Manocha (1996) without pairs of edges.
    """
    PA, PB, HA, HB = work.placement[a], work.placement[b], shapes.half[a], shapes.half[b]
    if shapes.kind[b] >= PLANE:
        n = axis_of(PB, 2)
        return inner(n, apart) - half_width(PA, HA, n) <= reach + highest(shapes, b)
    for k in range(3):
        n = axis_of(PA, k)
        if abs(inner(n, apart)) > HA[k] + half_width(PB, HB, n) + reach:
            return False
        n = axis_of(PB, k)
        if abs(inner(n, apart)) > HB[k] + half_width(PA, HA, n) + reach:
            return False
    return True


def highest(shapes: PairTable, b: int) -> float:
    """Return the greatest height of a plane or height field in its frame."""
    return shapes.fields.edges[shapes.data[b, 0], 4] if shapes.kind[b] == HEIGHTS else 0.0
