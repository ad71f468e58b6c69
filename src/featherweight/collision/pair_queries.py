"""Which pairs of shapes touch, and how far they are apart, for one state or many: compiled as a whole.

`shapes` is a `PairTable`, `work` a `QueryWork`. The robot's machine code computes the placements of shapes in a state; where
there is none, `states.placement` has them.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any, NamedTuple

from ..simulation.machine_code import call_address
from .box_contacts import half_width
from .collision_scene import HEIGHTS, PLANE
from .pair_gaps import gap_of_pair
from .separation import NEVER
from .triples import axis_of, inner, minus, position_of

PAD = 1e-9  # [m] what rounding may take from a distance between bounding volumes
NOT_FINITE = -1  # for a state with numbers that are not finite


class QueriedStates(NamedTuple):
    """States, and where they are not computed here the placements of their shapes."""

    q: Any  # (n, nq)
    placement: Any  # (n, shapes, 12), or (0, shapes, 12)


class Measured(NamedTuple):
    """Distances of n states, for pairs in the order in which they were asked for; infinity and NaN beyond the reach."""

    distance: Any  # (n, pairs)
    points: Any  # (n, pairs, 6) on the first shape and on the second
    normal: Any  # (n, pairs, 3) from the first to the second


def any_touching(first: int, stop: int, shapes: Any, states: Any, reach: Any, touches: Any, work: Any) -> int:
    """Write whether any pair touches, or comes within reach[0], in states first to stop.

    The number of the last state's answer, or `NOT_FINITE` for a state that is not.
    """
    answer = 0
    for s in range(first, stop):
        if not place(states, s, work):
            return NOT_FINITE
        answer = any_pair_touches(shapes, reach[0], work)
        touches[s] = answer == 1
    return answer


def all_touching(first: int, stop: int, shapes: Any, states: Any, reach: Any, touches: Any, work: Any) -> int:
    """Write whether each pair touches, or comes within reach[0], in states first to stop: (n, pairs)."""
    for s in range(first, stop):
        if not place(states, s, work):
            return NOT_FINITE
        for p in range(len(shapes.pair)):
            touches[s, p] = pair_touches(shapes, p, reach[0], work)
    return 0


def all_distances(first: int, stop: int, shapes: Any, states: Any, reach: Any, measured: Any, work: Any) -> int:
    """Write distances up to reach[0] in states first to stop."""
    for s in range(first, stop):
        if not place(states, s, work):
            return NOT_FINITE
        for p in range(len(shapes.pair)):
            write_distance(shapes, p, reach[0], (measured.points[s, p], measured.normal[s, p]), measured.distance[s], work)
    return 0


def place(states: Any, s: int, work: Any) -> bool:
    """Place all shapes as in state s; whether its numbers are finite."""
    q = states.q[s]
    for i in range(len(q)):
        if not q[i] - q[i] == 0.0:
            return False
    if work.machine.address == 0:
        for g in range(len(work.placement)):
            for i in range(12):
                work.placement[g, i] = states.placement[s, g, i]
        return True
    for i in range(len(q)):
        work.q[i] = q[i]
    call_address(work.machine.address, work.machine.pointers)
    return True


def any_pair_touches(shapes: Any, reach: float, work: Any) -> int:
    """1 if any pair does, else 0. Pairs that touch are looked at earlier in later states, which changes no answer."""
    order = work.order
    for k in range(len(order)):
        p = order[k]
        if pair_touches(shapes, p, reach, work):
            order[k] = order[k // 2]
            order[k // 2] = p
            return 1
    return 0


def pair_touches(shapes: Any, p: int, reach: float, work: Any) -> bool:
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
    return gap_of_pair(shapes, a, b, (reach, reach), work) <= reach  # type: ignore[no-any-return]


def write_distance(shapes: Any, p: int, reach: float, where: Any, distance: Any, work: Any) -> None:
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


def may_be_within(shapes: Any, a: int, b: int, reach: float, work: Any) -> bool:
    """Whether what is around two shapes comes within `reach`."""
    if reach >= 1e300:
        return True
    apart = minus(position_of(work.placement[a]), position_of(work.placement[b]))
    most = shapes.radius[a] + shapes.radius[b] + reach + PAD
    if shapes.kind[b] < PLANE and inner(apart, apart) > most * most:
        return False
    return boxes_meet(shapes, a, b, apart, reach + PAD, work)


def boxes_meet(shapes: Any, a: int, b: int, apart: Any, reach: float, work: Any) -> bool:
    """Whether no face of the boxes around two shapes parts them by more than `reach` (Gottschalk, Lin and Manocha 1996, without
    the pairs of edges)."""
    PA, PB, HA, HB = work.placement[a], work.placement[b], shapes.half[a], shapes.half[b]
    if shapes.kind[b] >= PLANE:
        n = axis_of(PB, 2)
        return inner(n, apart) - half_width(PA, HA, n) <= reach + highest(shapes, b)  # type: ignore[no-any-return]
    for k in range(3):
        n = axis_of(PA, k)
        if abs(inner(n, apart)) > HA[k] + half_width(PB, HB, n) + reach:
            return False
        n = axis_of(PB, k)
        if abs(inner(n, apart)) > HB[k] + half_width(PA, HA, n) + reach:
            return False
    return True


def highest(shapes: Any, b: int) -> float:
    """The greatest height of a plane or height field in its frame."""
    return shapes.fields.edges[shapes.data[b, 0], 4] if shapes.kind[b] == HEIGHTS else 0.0  # type: ignore[no-any-return]
