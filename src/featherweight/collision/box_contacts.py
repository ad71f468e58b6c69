"""Contacts of two boxes: separating axes (Gottschalk, Lin and Manocha 1996), and clipping of faces."""

from __future__ import annotations

from ..array_types import Matrix, Tensor, Vector
from .face_clipping import MOST_POINTS, NEARLY, put_face_points, raise_gaps, write_box_face
from .round_contacts import put
from .triples import Triple, TripleLike, along, axis_of, inner, length_of, minus, outer, plus, position_of, times

BIAS = 1e-6  # advantage, relative to the boxes' size, that an edge needs over a face, which gives more points
ALIKE, BETTER = 0.99, 0.05
"""Cosine of the angle with the best face above which MuJoCo ignores edges, unless they are better by a part of its depth."""
SKEW = 1e-4  # least sine of the angle between edges that define an axis


def half_width(P: Vector, H: Vector, n: TripleLike) -> float:
    """Return half the width of a box along n."""
    a, b, c = inner(axis_of(P, 0), n), inner(axis_of(P, 1), n), inner(axis_of(P, 2), n)
    return H[0] * abs(a) + H[1] * abs(b) + H[2] * abs(c)


def best_axis(PA: Vector, HA: Vector, PB: Vector, HB: Vector, apart: TripleLike, reach: float) -> tuple[int, float]:
    """Return the axis, of 15, with the greatest gap between the boxes, and that gap.

    Axes 0-2 are faces of A, 3-5 faces of B, then pairs of edges. The search stops at the first axis with a gap beyond `reach`;
    for most nearby boxes that are farther apart, it is an axis of a face.
    """
    best, most = -1, -1e300
    bias = BIAS * (HA[0] + HA[1] + HA[2] + HB[0] + HB[1] + HB[2])
    for i in range(6):
        n = axis_of(PA, i) if i < 3 else axis_of(PB, i - 3)
        gap = abs(inner(n, apart)) - half_width(PA, HA, n) - half_width(PB, HB, n)
        if gap > reach:
            return i, gap
        if gap > most + (bias if i >= 3 else 0.0):
            best, most = i, gap
    for i in range(9):
        n = outer(axis_of(PA, i // 3), axis_of(PB, i % 3))
        size = length_of(n)
        if size > SKEW:
            gap = (abs(inner(n, apart)) - half_width(PA, HA, n) - half_width(PB, HB, n)) / size
            if gap > reach:
                return 6 + i, gap
            if gap > most + bias:
                best, most = 6 + i, gap
    return best, most


def edge_middle(P: Vector, H: Vector, k: int, n: TripleLike) -> Triple:
    """Return the midpoint of the edge along axis k that is farthest along n."""
    x = position_of(P)
    for i in range(3):
        if i != k:
            axis = axis_of(P, i)
            x = along(x, H[i] if inner(axis, n) > 0.0 else -H[i], axis)
    return x


def most_opposed(P: Vector, n: TripleLike) -> tuple[int, float]:
    """Return the axis of a box, with sign, that is most opposed to n."""
    k, sign, least = 0, 1.0, 1.0
    for i in range(3):
        c = inner(axis_of(P, i), n)
        if -abs(c) < least:
            k, sign, least = i, (1.0 if c < 0.0 else -1.0), -abs(c)
    return k, sign


def box_box(
    PA: Vector, HA: Vector, PB: Vector, HB: Vector, reach: float, found: Matrix, polygons: Tensor, by_file: bool
) -> int:
    """Write the contacts of two boxes and return their number.

    The result is -1 if the boxes are separate and their nearest points are neither on a face nor on crossing edges. If edges
    cross and two faces are nearly parallel to both, the faces are in contact as well. With the crossing alone, the boxes could
    rotate into each other. MuJoCo (`by_file`) has contacts of faces alone there, and for boxes that its axes do not separate.
    """
    apart = minus(position_of(PA), position_of(PB))
    best, most = best_axis(PA, HA, PB, HB, apart, reach)
    if most > reach:
        return 0
    if by_file and best >= 6:
        best = face_instead((best, most), (PA, HA), (PB, HB), apart)
    if best < 6:
        count = box_faces(best, (PA, HA), (PB, HB), apart, reach, found, polygons)
        if by_file:
            return count
        for j in range(count):
            if found[j, 6] <= most + 1e-9 * (1.0 + abs(most)):
                return count
        return -1
    point, n, cross = edge_edge(((best - 6) // 3, PA, HA), ((best - 6) % 3, PB, HB), apart)
    if most > 0.0 and not cross and not by_file:
        return -1
    face, cosine = face_across(PA, PB, n)
    together = cosine > NEARLY and not by_file
    count = box_faces(face, (PA, HA), (PB, HB), apart, reach, found, polygons) if together else 0
    raise_gaps(found, count, most)
    put(found, count, point, n, most)
    found[count, 7] = MOST_POINTS
    return count + 1


def face_instead(
    edges: tuple[int, float], one: tuple[Vector, Vector], other: tuple[Vector, Vector], apart: TripleLike
) -> int:  # fmt: skip
    """Return the axis for MuJoCo: the best one, of edges with a gap, or that of the best face if they are nearly alike."""
    (PA, HA), (PB, HB), (axis, gap) = one, other, edges
    best, most = 0, -1e300
    for i in range(6):
        n = axis_of(PA, i) if i < 3 else axis_of(PB, i - 3)
        of_face = abs(inner(n, apart)) - half_width(PA, HA, n) - half_width(PB, HB, n)
        if of_face > most:
            best, most = i, of_face
    cross = outer(axis_of(PA, (axis - 6) // 3), axis_of(PB, (axis - 6) % 3))
    n = axis_of(PA, best) if best < 3 else axis_of(PB, best - 3)
    alike = abs(inner(n, cross)) > ALIKE * length_of(cross)
    return best if alike and gap < most + BETTER * abs(most) else axis


def face_across(PA: Vector, PB: Vector, n: TripleLike) -> tuple[int, float]:
    """Return the axis, 0-2 of A and 3-5 of B, that is most parallel to n, and the cosine of the angle between them."""
    best, most = 0, -1.0
    for i in range(6):
        cosine = abs(inner(axis_of(PA, i) if i < 3 else axis_of(PB, i - 3), n))
        if cosine > most:
            best, most = i, cosine
    return best, most


def box_faces(
    face: int, one: tuple[Vector, Vector], other: tuple[Vector, Vector], apart: TripleLike, reach: float, found: Matrix,
    polygons: Tensor,
) -> int:  # fmt: skip
    """Write the contacts of the face across an axis, 0-2 of A and 3-5 of B, with the most opposed face of the other box.

    Each box is given by placement and half lengths.
    """
    (PA, HA), (PB, HB) = one, other
    if face < 3:
        side = 1.0 if inner(axis_of(PA, face), apart) <= 0.0 else -1.0
        outward = times(side, axis_of(PA, face))
        m = write_box_face(PA, HA, face, side, polygons[0])
        k, sign = most_opposed(PB, outward)
        count = write_box_face(PB, HB, k, sign, polygons[1])
    else:
        side = 1.0 if inner(axis_of(PB, face - 3), apart) >= 0.0 else -1.0
        outward = times(side, axis_of(PB, face - 3))
        m = write_box_face(PB, HB, face - 3, side, polygons[0])
        k, sign = most_opposed(PA, outward)
        count = write_box_face(PA, HA, k, sign, polygons[1])
    return put_face_points(polygons, m, count, outward, -1.0 if face < 3 else 1.0, reach, found)


def edge_edge(
    one: tuple[int, Vector, Vector], other: tuple[int, Vector, Vector], apart: TripleLike
) -> tuple[Triple, Triple, bool]:
    """Return the point where two edges cross, the normal, and whether the crossing is within both edges.

    Each edge is given by the number of its axis, placement and half lengths.
    """
    i, PA, HA = one
    j, PB, HB = other
    u, w = axis_of(PA, i), axis_of(PB, j)
    cross = outer(u, w)
    size = length_of(cross)
    n = times((1.0 if inner(cross, apart) >= 0.0 else -1.0) / size, cross)
    a, b = edge_middle(PA, HA, i, times(-1.0, n)), edge_middle(PB, HB, j, n)
    between = minus(b, a)
    cosine, p, q = inner(u, w), inner(u, between), inner(w, between)
    s, t = (p - cosine * q) / (size * size), (cosine * p - q) / (size * size)
    cross_within = abs(s) <= HA[i] * (1.0 + 1e-9) and abs(t) <= HB[j] * (1.0 + 1e-9)
    return times(0.5, plus(along(a, s, u), along(b, t, w))), n, cross_within
