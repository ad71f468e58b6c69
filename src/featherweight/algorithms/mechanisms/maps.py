"""Maps from a cluster's independent velocities to the motion of its joints: q' = G y', q'' = G y'' + g (section II-B).

Loops: K q' = 0 and K q'' = k = -K' q' (equation 2), where K_d belongs to the dependent joints and K_i to the independent ones:

    G_d = -K_d^-1 K_i,     g_d = K_d^-1 k

Couplings: q_f = P(q_j), so G_f = P' G_j and g_f = P' g_j + P'' q'_j^2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...spatial import sqrt
from ..contact.operational_space.dense_factors import dot, is_zero
from .cluster_tree import Cluster, ClusterTree, Follower, unconstrained
from .loop_constraints import Posed, alignment_rates, alignment_rows, closing_rates, closing_rows, poses


class Map(NamedTuple):
    """G and g of one cluster, by rows of the tree."""

    G: dict[int, list[Any]]
    g: dict[int, Any]


def spanning_configuration(mech: ClusterTree, q) -> list[Any]:
    """Return the coordinates of the spanning tree."""
    result = [q[k] if k >= 0 else 0.0 for k in mech.position]
    for cluster in mech.clusters:
        for f in cluster.followers:
            result[mech.tree.q_index[f.row]] = followed(mech, f, result)
    return result


def followed(mech: ClusterTree, f: Follower, qs):
    """Return a follower's coordinate."""
    x = f.offset
    for row, coefficients in f.terms:
        x = x + polynomial(coefficients, qs[mech.tree.q_index[row]])
    return x


def polynomial(coefficients, x):
    """Return c1 x + c2 x² + ..."""
    total = 0.0
    for c in reversed(coefficients):
        total = (total + c) * x
    return total


def derivative(coefficients):
    """Return the coefficients of the derivative: its constant, and the others."""
    d = [(k + 1) * c for k, c in enumerate(coefficients)]
    return (d[0] if d else 0.0), tuple(d[1:])


def slopes(mech: ClusterTree, f: Follower, qs):
    """Return (row, P', P'') of each term."""
    terms = []
    for row, coefficients in f.terms:
        x = qs[mech.tree.q_index[row]]
        constant, others = derivative(coefficients)
        second, more = derivative(others)
        terms.append((row, constant + polynomial(others, x), second + polynomial(more, x) if others else 0.0))
    return terms


def velocity_map(mech: ClusterTree, cluster: Cluster, K, qs) -> dict[int, list[Any]]:
    """Return G of a cluster, from its constraint matrix."""
    m = len(cluster.independent)
    G = {r: [1.0 if k == j else 0.0 for k in range(m)] for j, r in enumerate(cluster.independent)}
    if cluster.dependent:
        right = [[0.0 - x for x in row] for row in of_rows(K, cluster.independent)]
        solved = solve_square(of_rows(K, cluster.dependent), right)
        G |= dict(zip(cluster.dependent, solved, strict=True))
    for f in cluster.followers:
        G[f.row] = [0.0] * m
        for row, slope, _ in slopes(mech, f, qs):
            G[f.row] = [x + slope * y for x, y in zip(G[f.row], G[row], strict=True)]
    return G


def constraint_matrix(mech: ClusterTree, cluster: Cluster, P: Posed, qs) -> list[dict[int, Any]]:
    """Return the independent rows of K, by those rows of the tree that no coupling determines."""
    K = [alignment_rows(mech.tree, cluster, P, a) for a in cluster.alignments]
    for c in cluster.closings:
        K += closing_rows(mech.tree, cluster, c, qs)
    K = [K[k] for k in cluster.kept]
    for f in reversed(cluster.followers):
        for row, slope, _ in slopes(mech, f, qs):
            for constraint in K:
                constraint[row] = constraint[row] + slope * constraint[f.row]
    return K


def acceleration_bias(mech: ClusterTree, cluster: Cluster, K, P: Posed | None, qs, G, v) -> Map:
    """Return G and g; velocities of the rows are computed on the way."""
    rates = {r: dot(G[r], v) for r in cluster.rows}
    g = dict.fromkeys((*cluster.independent, *cluster.dependent), 0.0)
    add_followers(mech, cluster, qs, rates, g)
    if P:
        k = alignment_rates(mech.tree, cluster, P, rates, g)
        for c in cluster.closings:
            k += closing_rates(mech.tree, c, qs, rates, g)
        right = [[0.0 - k[i]] for i in cluster.kept]
        solved = solve_square(of_rows(K, cluster.dependent), right)
        g |= {r: x[0] for r, x in zip(cluster.dependent, solved, strict=True)}
        add_followers(mech, cluster, qs, rates, g)
    return Map(G, g)


def add_followers(mech: ClusterTree, cluster: Cluster, qs, rates, g) -> None:
    """Add g of followers, from that of their leaders."""
    for f in cluster.followers:
        g[f.row] = 0.0
        for row, slope, bend in slopes(mech, f, qs):
            g[f.row] = g[f.row] + slope * g[row] + bend * (rates[row] * rates[row])


def of_rows(K, rows):
    """Return the columns of a constraint matrix that belong to some rows of the tree."""
    return [[constraint[r] for r in rows] for constraint in K]


TINY = 1e-150  # turns 0 / 0 into 0 in a rotation of two zeros


class Triangle(NamedTuple):
    """A x = B, with rows rotated so that row k has no entry in columns pivots[:k] of A."""

    A: list[list[Any]]
    B: list[list[Any]]
    pivots: list[int]

    def diagonal(self) -> list[Any]:
        return [row[c] for row, c in zip(self.A, self.pivots, strict=True)]

    def solution(self) -> list[list[Any]]:
        """Return x, by back-substitution."""
        x: list[list[Any]] = [[] for _ in self.B]
        for k in range(len(x) - 1, -1, -1):
            row, own = self.A[k], self.B[k]
            for c in self.pivots[k + 1 :]:
                own = [y - row[c] * z for y, z in zip(own, x[c], strict=True)]
            reciprocal = 1.0 / row[self.pivots[k]]
            x[self.pivots[k]] = [reciprocal * y for y in own]
        return x


def solve_square(A, B):
    """Return A^-1 B by Givens rotations, which are stable without choices that depend on values."""
    return triangle(A, B).solution()


def triangle(A, B) -> Triangle:
    """Rotate rows to a triangle.

    Columns and rows with few entries come first, so that loops with few common joints mix little.
    """
    n = len(A)
    left, columns = [(list(a), list(b)) for a, b in zip(A, B, strict=True)], list(range(n))
    done: list[tuple[list[Any], list[Any]]] = []
    pivots: list[int] = []
    for _ in range(n):
        entries = {c: [i for i, (a, _) in enumerate(left) if not is_zero(a[c])] for c in columns}
        k = min(columns, key=lambda c: len(entries[c]))
        own = sorted(entries[k], key=lambda i: sum(not is_zero(left[i][0][c]) for c in columns)) or [0]
        for i in own[1:]:
            left[own[0]], left[i] = rotated(left[own[0]], left[i], k)
        done.append(left.pop(own[0]))
        columns.remove(k)
        pivots.append(k)
    return Triangle([a for a, _ in done], [b for _, b in done], pivots)


def rotated(upper, lower, k: int):
    """Return two rows of A and B, rotated so that the lower one has no entry in column k of A."""
    a, b = upper[0][k] + TINY, lower[0][k]
    scale = 1.0 / sqrt(a * a + b * b)
    c, s = a * scale, b * scale
    turned = tuple([c * x + s * y for x, y in zip(u, l, strict=True)] for u, l in zip(upper, lower, strict=True))
    other = tuple([c * y - s * x for x, y in zip(u, l, strict=True)] for u, l in zip(upper, lower, strict=True))
    return turned, other


def maps(mech: ClusterTree, X, qs, v=None):
    """Return the map of each cluster, or None if all its rows move independently; without velocities there is no g."""
    result: list[Map | None] = []
    for cluster in mech.clusters:
        if unconstrained(cluster):
            result.append(None)
            continue
        P = poses(mech.tree, cluster, X) if cluster.dependent else None
        K = constraint_matrix(mech, cluster, P, qs) if P else []
        G = velocity_map(mech, cluster, K, qs)
        if v is None:
            result.append(Map(G, {}))
        else:
            m = len(cluster.independent)
            result.append(acceleration_bias(mech, cluster, K, P, qs, G, v[cluster.start : cluster.start + m]))
    return result


def spanning_velocity(mech: ClusterTree, M, v):
    """Return G y' for all rows of the tree."""
    result = [0.0] * len(mech.tree.parent)
    for cluster, map in zip(mech.clusters, M, strict=True):
        y = v[cluster.start : cluster.start + len(cluster.independent)]
        for k, r in enumerate(cluster.rows):
            result[r] = y[k] if map is None else dot(map.G[r], y)
    return result


def spanning_acceleration(mech: ClusterTree, M, a):
    """Return G y'' + g for all rows of the tree."""
    result = spanning_velocity(mech, M, a)
    for map in M:
        if map is not None:
            for r, x in map.g.items():
                result[r] = result[r] + x
    return result


def write_projected(mech: ClusterTree, M, forces, tau) -> None:
    """Write G^T times generalized forces of the tree, or a row times G."""
    for cluster, map in zip(mech.clusters, M, strict=True):
        for k in range(len(cluster.independent)):
            if map is None:
                tau[cluster.start + k] = forces[cluster.rows[k]]
            else:
                tau[cluster.start + k] = dot([map.G[r][k] for r in cluster.rows], [forces[r] for r in cluster.rows])
