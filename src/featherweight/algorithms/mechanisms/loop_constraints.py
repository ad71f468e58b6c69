"""Constraints of loops, in the frame of the last body outside the cluster that carries the ends of a loop, its handle.

With unit twists (w_j, l_j) of the joints at the points o_j, and points and axes of two bodies a and b,

    phi = e . (p_b - p_a)      K_j = +-e . (w_j x (p_b - o_j) + l_j)
    phi = e . f                K_j = +-e . (w_j x f)

with plus for joints on the way to b, minus for those on the way to a, and zero for those that carry both. Second derivatives
follow from the accelerations of points and axes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...model.tree import INNER, Tree
from ...spatial import IDENTITY3, ZERO3, Mat3, Vec3, unit_motion
from .cluster_tree import Alignment, Attached, Closing, Cluster


class Posed(NamedTuple):
    """The frame of each row of a cluster, and the unit twist of its joint, in the frame of the handle on its path."""

    R: dict[int, Mat3]
    o: dict[int, Vec3]
    w: dict[int, Vec3]
    l: dict[int, Vec3]


class Moving(NamedTuple):
    """A body's angular velocity and acceleration, and the velocity and acceleration of its origin."""

    w: Vec3
    alpha: Vec3
    v: Vec3
    a: Vec3


AT_REST = Moving(ZERO3, ZERO3, ZERO3, ZERO3)


def poses(tree: Tree, cluster: Cluster, X) -> Posed:
    P = Posed({-2: IDENTITY3}, {-2: ZERO3}, {}, {})  # -2 is the handle
    for j in cluster.rows:
        p = tree.parent[j] if tree.parent[j] in P.w else -2
        if tree.kind[j] == INNER:
            P.R[j], P.o[j] = P.R[p], P.o[p]
        else:
            P.R[j] = P.R[p].product(X[j].orientation())
            P.o[j] = P.o[p] + P.R[p] @ X[j].p
        s = unit_motion(tree.axis[j], 1.0)
        P.w[j], P.l[j] = P.R[j] @ s.ang, P.R[j] @ s.lin
    return P


def carrying_body(P: Posed, frame: Attached) -> int:
    """Return the row whose body carries a frame, or the handle."""
    return frame.row if frame.row in P.w else -2


def point(P: Posed, frame: Attached) -> Vec3:
    i = carrying_body(P, frame)
    return P.o[i] + P.R[i] @ Vec3(*frame.p)


def axis(P: Posed, frame: Attached, k: int) -> Vec3:
    return P.R[carrying_body(P, frame)] @ Vec3(frame.R[0][k], frame.R[1][k], frame.R[2][k])


def value(P: Posed, A: Alignment):
    """Return phi."""
    e = axis(P, A.a, A.axis)
    return e.dot(point(P, A.b) - point(P, A.a)) if A.other < 0 else e.dot(axis(P, A.b, A.other))


def alignment_rows(tree: Tree, cluster: Cluster, P: Posed, A: Alignment) -> dict[int, Any]:
    """Return one row of K, by rows of the tree."""
    e = axis(P, A.a, A.axis)
    b = point(P, A.b) if A.other < 0 else axis(P, A.b, A.other)
    on_a, on_b = moving_rows(tree, P, A.a), moving_rows(tree, P, A.b)
    K: dict[int, Any] = {}
    for j in cluster.rows:
        K[j] = 0.0
        if (j in on_a) != (j in on_b):
            moved = P.w[j].cross(b - P.o[j]) + P.l[j] if A.other < 0 else P.w[j].cross(b)
            K[j] = e.dot(moved) if j in on_b else 0.0 - e.dot(moved)
    return K


def moving_rows(tree: Tree, P: Posed, frame: Attached) -> set[int]:
    """Return the rows of the cluster that move a frame."""
    rows = set()
    i = frame.row
    while i in P.w:
        rows.add(i)
        i = tree.parent[i]
    return rows


def motions(tree: Tree, cluster: Cluster, P: Posed, rates, accelerations) -> dict[int, Moving]:
    """Return the motions of bodies while the handle is at rest."""
    M = {-2: AT_REST}
    for j in cluster.rows:
        if tree.first[j] != j:
            continue
        p = tree.parent[j] if tree.parent[j] in P.w else -2
        w, l, spin, slide = ZERO3, ZERO3, ZERO3, ZERO3
        for i in range(j, tree.last[j] + 1):
            w, l = w + rates[i] * P.w[i], l + rates[i] * P.l[i]
            spin, slide = spin + accelerations[i] * P.w[i], slide + accelerations[i] * P.l[i]
        m = M[p]
        d = P.o[j] - P.o[p]
        moving = m.w + w
        body = Moving(
            moving,
            m.alpha + moving.cross(w) + spin,
            m.v + m.w.cross(d) + l,
            m.a + m.alpha.cross(d) + m.w.cross(m.w.cross(d) + l) + moving.cross(l) + slide,
        )
        for i in range(j, tree.last[j] + 1):
            M[i] = body
    return M


def alignment_rates(tree: Tree, cluster: Cluster, P: Posed, rates, accelerations) -> list[Any]:
    """Return phi'' of all alignments for these rates and accelerations of the joints."""
    return second_rates(P, motions(tree, cluster, P, rates, accelerations), cluster.alignments)


def second_rates(P: Posed, M: dict[int, Moving], alignments: Iterable[Alignment]) -> list[Any]:
    """Return phi'' of alignments for motions of their bodies; a motion that all bodies share does not matter."""
    phi2 = []
    for A in alignments:
        e, e1, e2 = moving_axis(P, M, A.a, A.axis)
        if A.other < 0:
            a, a1, a2 = moving_point(P, M, A.a)
            b, b1, b2 = moving_point(P, M, A.b)
            f, f1, f2 = b - a, b1 - a1, b2 - a2
        else:
            f, f1, f2 = moving_axis(P, M, A.b, A.other)
        mixed = e1.dot(f1)
        phi2.append(e2.dot(f) + (mixed + mixed) + e.dot(f2))
    return phi2


def moving_axis(P: Posed, M, frame: Attached, k: int):
    """Return an axis and its first two derivatives."""
    m, e = M[carrying_body(P, frame)], axis(P, frame, k)
    e1 = m.w.cross(e)
    return e, e1, m.alpha.cross(e) + m.w.cross(e1)


def moving_point(P: Posed, M, frame: Attached):
    """Return a point and its first two derivatives."""
    i = carrying_body(P, frame)
    m, x = M[i], point(P, frame)
    r = x - P.o[i]
    turned = m.w.cross(r)
    return x, m.v + turned, m.a + m.alpha.cross(r) + m.w.cross(turned)


def violations(tree: Tree, cluster: Cluster, P: Posed, qs) -> list[Any]:
    """Return phi of all constraints of a cluster."""
    phi = [value(P, A) for A in cluster.alignments]
    for c in cluster.closings:
        phi += c.value.run([qs[tree.q_index[r]] for r in c.rows])
    return phi


def cosines(cluster: Cluster, P: Posed) -> list[Any]:
    """Return cosines between axes that must point the same way."""
    return [value(P, A) for A in cluster.facings]


# user-defined constraints


def closing_rows(tree: Tree, cluster: Cluster, c: Closing, qs) -> list[dict[int, Any]]:
    """Return rows of K, by rows of the tree."""
    entries = c.jacobian.run([qs[tree.q_index[r]] for r in c.rows])
    n = len(c.rows)
    return [{r: entries[k * n + c.rows.index(r)] if r in c.rows else 0.0 for r in cluster.rows} for k in range(c.size)]


def closing_rates(tree: Tree, c: Closing, qs, rates, accelerations) -> list[Any]:
    """Return phi''."""
    x = [qs[tree.q_index[r]] for r in c.rows]
    second: list[Any] = c.rate.run([*x, *(rates[r] for r in c.rows)])
    slope = c.jacobian.run(x)
    n = len(c.rows)
    for k in range(c.size):
        for i, r in enumerate(c.rows):
            second[k] = second[k] + slope[k * n + i] * accelerations[r]
    return second
