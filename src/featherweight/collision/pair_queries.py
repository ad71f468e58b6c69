"""Which pairs of shapes touch, and how far they are apart, for one state or many: compiled as a whole.

`shapes` is a `PairTable`, `work` a `QueryWork`. The robot's machine code computes the placements of shapes in a state; where
there is none, `states.placement` has them.
"""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

from ..engine.loops.array_types import BooleanMatrix, Booleans, Integers, Matrix, Tensor, Vector
from ..engine.loops.kernels import call_machine
from .box_contacts import half_width
from .collision_scene import HEIGHTS, PLANE
from .pair_gaps import gap_of_pair
from .query_tables import PairTable, QueryWork
from .separation import NEVER
from .triples import TripleLike, axis_of, inner, minus, position_of

PAD = 1e-9  # [m] what rounding may take from a distance between bounding volumes
NOT_FINITE = -1  # for a state with numbers that are not finite


class TouchingQuery(NamedTuple):
    """The question whether any pair touches, or comes within reach[0], in states span[0] to span[1]."""

    span: Integers  # (2,)
    q: Matrix  # (n, nq)
    placement: Tensor  # (n, shapes, 12), or (0, shapes, 12) where machine code computes them
    reach: Vector  # (1,) [m]
    found: Booleans  # (n,)
    shapes: PairTable
    work: QueryWork


class EachTouchingQuery(NamedTuple):
    """The same of each pair."""

    span: Integers
    q: Matrix
    placement: Tensor
    reach: Vector
    found: BooleanMatrix  # (n, pairs)
    shapes: PairTable
    work: QueryWork


class DistanceQuery(NamedTuple):
    """A query of distances; beyond reach[0] they are infinity and NaN. Pairs are in the order and direction asked for."""

    span: Integers
    q: Matrix
    placement: Tensor
    reach: Vector
    distance: Matrix  # (n, pairs)
    points: Tensor  # (n, pairs, 6) on the first shape and on the second
    normal: Tensor  # (n, pairs, 3) from the first to the second
    shapes: PairTable
    work: QueryWork


def any_touching(query: TouchingQuery) -> int:
    """Whether any pair touches in the last of the states, of a `TouchingQuery`; `NOT_FINITE` if one is not finite."""
    answer = 0
    for s in range(query.span[0], query.span[1]):
        if not place(query, s, query.work):
            return NOT_FINITE
        answer = any_pair_touches(query.shapes, query.reach[0], query.work)
        query.found[s] = answer == 1
    return answer


def each_touching(query: EachTouchingQuery) -> int:
    """Write which pairs touch; 0, or `NOT_FINITE` if a state is not finite."""
    for s in range(query.span[0], query.span[1]):
        if not place(query, s, query.work):
            return NOT_FINITE
        for p in range(len(query.shapes.pair)):
            query.found[s, p] = pair_touches(query.shapes, p, query.reach[0], query.work)
    return 0


def all_distances(query: DistanceQuery) -> int:
    """Write the distances of a query; 0, or `NOT_FINITE` if a state is not finite."""
    reach = query.reach[0]
    for s in range(query.span[0], query.span[1]):
        if not place(query, s, query.work):
            return NOT_FINITE
        for p in range(len(query.shapes.pair)):
            where = query.points[s, p], query.normal[s, p]
            write_distance(query.shapes, p, reach, where, query.distance[s], query.work)
    return 0


def place(query: TouchingQuery | EachTouchingQuery | DistanceQuery, s: int, work: QueryWork) -> bool:
    """Place all shapes as in state s; whether its numbers are finite."""
    q = query.q[s]
    for i in range(len(q)):
        if q[i] - q[i] != 0.0:  # infinity and NaN
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
    return x - x == 0.0  # type: ignore[no-any-return]  # NaN where memory ended


def any_pair_touches(shapes: PairTable, reach: float, work: QueryWork) -> int:
    """1 if any pair does, else 0. Pairs that touch are looked at earlier in later states, which changes no answer."""
    order = work.order
    for k in range(len(order)):
        p = order[k]
        if pair_touches(shapes, p, reach, work):
            order[k] = order[k // 2]
            order[k // 2] = p
            return 1
    return 0


def pair_touches(shapes: PairTable, p: int, reach: float, work: QueryWork) -> bool:
    """Whether a pair comes within `reach`."""
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
    """Whether what is around two shapes comes within `reach`."""
    if reach >= 1e300:
        return True
    apart = minus(position_of(work.placement[a]), position_of(work.placement[b]))
    most = shapes.radius[a] + shapes.radius[b] + reach + PAD
    if shapes.kind[b] < PLANE and inner(apart, apart) > most * most:
        return False
    return boxes_meet(shapes, a, b, apart, reach + PAD, work)


def boxes_meet(shapes: PairTable, a: int, b: int, apart: TripleLike, reach: float, work: QueryWork) -> bool:
    """Whether no face of the boxes around two shapes parts them by more than `reach` (Gottschalk, Lin and Manocha 1996, without
    the pairs of edges)."""
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
    """The greatest height of a plane or height field in its frame."""
    return shapes.fields.edges[shapes.data[b, 0], 4] if shapes.kind[b] == HEIGHTS else 0.0
