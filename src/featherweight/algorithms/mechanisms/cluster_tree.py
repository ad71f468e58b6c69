"""Mechanisms as data of the cluster algorithms: a spanning tree, and the clusters of rows that move together."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.tree import Tree
from .counterparts import registered


class Follower(NamedTuple):
    """A row whose coordinate a coupling determines: offset + sum over terms of c1 q + c2 q² + ..."""

    row: int
    offset: float
    terms: tuple[tuple[int, tuple[float, ...]], ...]  # (row, (c1, c2, ...))


class Attached(NamedTuple):
    """A frame on the body of a row of the tree, or on the ground (-1)."""

    row: int
    R: Any  # (3, 3)
    p: Any  # (3,)


class Alignment(NamedTuple):
    """One row of a loop's constraint: e . (p_b - p_a) if `other` is -1, otherwise e . f.

    e is the axis `axis` of frame a, f the axis `other` of frame b.
    """

    a: Attached
    b: Attached
    axis: int
    other: int


class Closing(NamedTuple):
    """User-defined constraints on the coordinates of rows: tapes of phi(q), K(q) row by row, and K' q' of (q, q')."""

    rows: tuple[int, ...]
    size: int
    value: Any
    jacobian: Any
    rate: Any


class Cluster(NamedTuple):
    """Rows that move together, in ascending order."""

    rows: tuple[int, ...]
    handles: tuple[int, ...]  # rows of the bodies outside that carry it or what it carries; the last is in the parent cluster
    start: int  # start of the independent velocities in v
    independent: tuple[int, ...]  # rows whose velocities are independent
    dependent: tuple[int, ...]  # rows whose velocities follow by loops
    followers: tuple[Follower, ...]  # rows that follow by couplings, in the order of their computation
    alignments: tuple[Alignment, ...]
    facings: tuple[Alignment, ...]  # axes of loops that must point the same way, not only lie along one line
    closings: tuple[Closing, ...]
    kept: tuple[int, ...]  # independent constraint rows; alignments come first
    crossed: bool = False  # it has several handles, or a cluster on it has, so that inertias couple different bodies

    @property
    def output(self) -> int:
        """The row of the body in the parent cluster that carries it, the last of several; -1 for the ground."""
        return self.handles[-1] if self.handles else -1


class ClusterTree(NamedTuple):
    """Clusters, each after those that carry it."""

    tree: Tree
    clusters: tuple[Cluster, ...]
    position: tuple[int, ...]  # index in q of each coordinate of the tree, -1 for followers
    owner: tuple[int, ...]  # (n,) the cluster of each row
    parent: tuple[int, ...]  # (nv,) of the independent velocities: the expanded tree of the clusters

    @staticmethod
    def code():
        """Return the kernels that a function of a mechanism may depend on, in addition to those that its own kernel names."""
        return registered()


def constraint_count(cluster: Cluster) -> int:
    """Return the number of constraint rows of a cluster's loops, including redundant ones."""
    return len(cluster.alignments) + sum(c.size for c in cluster.closings)


def moving(cluster: Cluster) -> list[int]:
    """Return the rows of a cluster that no coupling determines."""
    following = {f.row for f in cluster.followers}
    return [r for r in cluster.rows if r not in following]


def unconstrained(cluster: Cluster) -> bool:
    """Return whether the recursions for trees apply to the rows of a cluster: all move independently, and none is crossed."""
    return not cluster.dependent and not cluster.followers and not cluster.crossed


def forces_pass(mech: ClusterTree) -> list[int]:
    """Return, for each row, an earlier row through whose body all forces on the row's cluster pass, -1 for the ground.

    It is the last such body with a lower number: the handle if there is one, otherwise the last body that carries all handles.
    """
    parent = [-1] * len(mech.tree.parent)
    for cluster in mech.clusters:
        if unconstrained(cluster):
            for r in cluster.rows:
                parent[r] = mech.tree.parent[r]
            continue
        ways = {*cluster.handles} or {-1}
        while len(ways) > 1 or max(ways) >= cluster.rows[0]:
            last = max(ways)
            ways = {parent[last] if way == last else way for way in ways}
        for r in cluster.rows:
            parent[r] = max(ways)
    return parent
