"""Contacts of a capsule and a box as in MuJoCo: balls at two places of the capsule's axis.

The first place is nearest to the box: an end of the axis above a face, or a point whose nearest point of the box is on an edge
or at a corner. The axis leads from there over a face or along an edge of the box, if at all; the second place is at its end, or
where it leaves the face or edge. Places t are in units of half the axis h from its centre c, all in the box's frame.
"""

from __future__ import annotations

from typing import NamedTuple

from ...array_types import Matrix, Vector
from ..round_contacts import ball_box
from ..triples import (
    Triple,
    TripleLike,
    along,
    axis_of,
    clamped,
    component,
    inner,
    minus,
    placed,
    position_of,
    seen_from,
    times,
    turned_back,
    with_component,
)

INSIDE, OF_FACE, OF_EDGE, OF_CORNER = range(4)
NEARER = 1e-15  # [m²] least difference of squared distances, and least determinant of two lines that are not parallel
STEEP = 0.5  # greatest squared cosine of the axis and an edge for which the axis leads over a face
NEVER = 1e300


class Nearest(NamedTuple):
    """The first place, and what is nearest to it."""

    square: float  # [m²] of the distance
    place: float
    kind: int
    axis: int  # across the face, or along the edge
    on_edge: float  # place on the edge, from -1 to 1
    corner: Triple  # signs of the corner, or of the edge


def capsule_box_by_file(PA: Vector, SA: Vector, PB: Vector, H: Vector, found: Matrix) -> int:
    """Write the contacts; return their number."""
    c, h = seen_from(PB, position_of(PA)), turned_back(PB, times(SA[1], axis_of(PA, 2)))
    near = nearest_edge(c, h, H, nearest_end(c, h, H))
    k, more = ball_box(placed(PB, along(c, near.place, h)), SA[0], PB, H, found, 0), way_to_second(c, h, H, near)
    if more < NEVER:
        k = ball_box(placed(PB, along(c, near.place + more, h)), SA[0], PB, H, found, k)
    return k


def nearest_end(c: TripleLike, h: TripleLike, H: Vector) -> Nearest:
    """Return the nearer end of the axis that is inside the box or above a face; at infinity for none."""
    best = Nearest(NEVER, 0.0, INSIDE, 0, 0.0, (0.0, 0.0, 0.0))
    for i in range(2):
        end = 2.0 * i - 1.0
        x, square, count, face = along(c, end, h), 0.0, 0, 0
        for j in range(3):
            out = component(x, j) - clamped(component(x, j), -H[j], H[j])
            if out != 0.0:
                square, count, face = square + out * out, count + 1, j
        if count <= 1 and square < best.square:
            best = Nearest(square, end, OF_FACE if count == 1 else INSIDE, face, 0.0, (0.0, 0.0, 0.0))
    return best


def nearest_edge(c: TripleLike, h: TripleLike, H: Vector, best: Nearest) -> Nearest:
    """Return the place nearest to an edge or corner, if it is nearer than the best one."""
    for j in range(3):
        for i in range(4):
            one, other = -1.0 if i % 2 == 0 else 1.0, -1.0 if i < 2 else 1.0
            signs = with_component(with_component((0.0, 0.0, 0.0), 0 if j > 0 else 1, one), 2 if j < 2 else 1, other)
            x = minus((signs[0] * H[0], signs[1] * H[1], signs[2] * H[2]), c)
            square, place, on_edge = line_and_edge(x, h, j, H[j])
            if square < best.square - NEARER:
                end = -1.0 if on_edge == -1.0 else (1.0 if on_edge == 1.0 else 0.0)
                kind, corner = OF_EDGE if end == 0.0 else OF_CORNER, with_component(signs, j, end)
                best = Nearest(square, place, kind, j, on_edge, corner)
    return best


def line_and_edge(x: TripleLike, h: TripleLike, j: int, half: float) -> tuple[float, float, float]:
    """Return the squared distance of the axis and an edge, and the nearest places on both.

    The edge has its middle at x from the centre of the axis, and extends by `half` along j.
    """
    across = component(h, j)
    own, both, other = half * half, -half * across, inner(h, h)
    a, b = -half * component(x, j), inner(h, x)
    det = own * other - both * both
    if abs(det) < NEARER:
        return NEVER, 0.0, 0.0
    s, t = (other * a - both * b) / det, (own * b - both * a) / det
    if abs(s) > 1.0:
        s = 1.0 if s > 0.0 else -1.0
        t = (b - s * both) / other
    if abs(t) > 1.0:
        t = 1.0 if t > 0.0 else -1.0
        s = clamped((a - t * both) / own, -1.0, 1.0)
    apart = along(x, -t, h)
    apart = with_component(apart, j, component(apart, j) + s * half)
    return inner(apart, apart), t, s


def way_to_second(c: TripleLike, h: TripleLike, H: Vector, near: Nearest) -> float:
    """Return the way from the first place to the second, `NEVER` for none; zero for a second contact at the first place."""
    if near.kind == OF_FACE:
        return way_over_face(c, h, H, near)
    if near.kind == OF_EDGE:
        return way_from_edge(h, H, near)
    return way_from_corner(h, H, near) if near.kind == OF_CORNER else NEVER


def way_over_face(c: TripleLike, h: TripleLike, H: Vector, near: Nearest) -> float:
    """Return the way from an end above a face to where the axis leaves the face, or to the other end."""
    x, way = along(c, near.place, h), 2.0
    for i in range(3):
        speed = -near.place * component(h, i)
        if i != near.axis and speed != 0.0:
            for k in range(2):
                after = ((2.0 * k - 1.0) * H[i] - component(x, i)) / speed
                if 0.0 < after < way:
                    way = after
    return -near.place * way


def way_from_edge(h: TripleLike, H: Vector, near: Nearest) -> float:
    """Return the way over the face to which the axis is less inclined; none if it leads over neither."""
    i, j = (near.axis + 1) % 3, (near.axis + 2) % 3
    if leads_away(h, near, i) == leads_away(h, near, j):
        return NEVER
    along_face = j if abs(component(h, i)) <= abs(component(h, j)) else i
    sign = 1.0 if leads_away(h, near, along_face) else -1.0
    speed = component(h, near.axis)
    left = 1.0 - near.on_edge if (speed > 0.0) == (sign > 0.0) else 1.0 + near.on_edge
    way = min(1.0 - sign * near.place, ratio(2.0 * H[along_face], component(h, along_face)), ratio(H[near.axis] * left, speed))
    return sign * way


def way_from_corner(h: TripleLike, H: Vector, near: Nearest) -> float:
    """Return the way along an edge, or over a face for a steeper axis; none for an axis that points to or from the corner."""
    x, y, z = leads_away(h, near, 0), leads_away(h, near, 1), leads_away(h, near, 2)
    if x == y and y == z:
        return NEVER
    odd = 0 if y == z else (1 if x == z else 2)
    sign = 1.0 if leads_away(h, near, odd) else -1.0
    i, j = (odd + 1) % 3, (odd + 2) % 3
    if component(h, odd) * component(h, odd) > STEEP * inner(h, h):
        return sign * min(1.0 - sign * near.place, ratio(2.0 * H[odd], component(h, odd)))
    over = min(ratio(2.0 * H[i], component(h, i)), ratio(2.0 * H[j], component(h, j)))
    return -sign * min(1.0 + sign * near.place, over)


def leads_away(h: TripleLike, near: Nearest, i: int) -> bool:
    """Return whether the axis leads away from the nearest corner or edge along i."""
    return (component(h, i) > 0.0) != (component(near.corner, i) > 0.0)


def ratio(x: float, y: float) -> float:
    """Return x / |y|, large for zero."""
    return x / abs(y) if y != 0.0 else NEVER
