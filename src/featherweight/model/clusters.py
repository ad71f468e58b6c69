"""Clusters: the smallest sets of joints that contain whole loops and couplings, so that a mechanism is a tree of clusters.

A loop connects the rows of the tree on the paths between its bodies, up to the last body that carries both; a coupling connects
its joints (Chignoli et al., section IV; Jain 2009). Sets that share a row, or that carry each other, are merged. Bodies outside
a cluster that carry it, or what it carries, are its handles (the output bodies of section V-B, and those that clusters on it
have beyond it). The parent of a cluster is the last cluster that has a handle of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from .tree import Tree


def rows_between_bodies(tree: Tree, ends: Sequence[int]) -> frozenset[int]:
    """Return the rows that a loop connects: whole joints, up to the last body that carries all `ends`.

    `ends` are the last rows of bodies, -1 for the ground.
    """
    common = set.intersection(*(set(_support(tree, i)) for i in ends))
    return whole_joints(tree, {r for i in ends for r in _support(tree, i)} - common)


def whole_joints(tree: Tree, rows: Iterable[int]) -> frozenset[int]:
    """Return all rows of the joints of some rows."""
    return frozenset(r for i in rows for r in range(tree.first[i], tree.last[i] + 1))


def _support(tree: Tree, i: int) -> list[int]:
    rows = []
    while i >= 0:
        rows.append(i)
        i = tree.parent[i]
    return rows


def clusters(tree: Tree, ties: Iterable[frozenset[int]]) -> list[tuple[int, ...]]:
    """Return all rows in clusters of whole joints, each after those that carry it, otherwise in the order of their first rows."""
    sets: list[set[int]] = [set(range(tree.first[i], tree.last[i] + 1)) for i in range(len(tree.parent)) if tree.first[i] == i]
    while True:
        for tie in ties:
            touched = [s for s in sets if not s.isdisjoint(tie)]
            sets = [s for s in sets if s.isdisjoint(tie)]
            sets.append(set(tie).union(*touched))
        found = sorted(tuple(sorted(s)) for s in sets)
        order, ties = _ordered(tree, found)
        if not ties:
            return [found[k] for k in order]


def _ordered(tree: Tree, found: Sequence[Sequence[int]]) -> tuple[list[int], list[frozenset[int]]]:
    """Return clusters in an order in which each comes after those that carry it, and the rows of a cycle of those that cannot."""
    owner = owners(tree, found)
    carriers = [{owner[p] for r in rows if (p := tree.parent[r]) >= 0} - {k} for k, rows in enumerate(found)]
    carried: list[list[int]] = [[] for _ in found]
    for k, own in enumerate(carriers):
        for c in own:
            carried[c].append(k)
    left = [len(own) for own in carriers]
    ready = [k for k, count in enumerate(left) if count == 0]
    order: list[int] = []
    while ready:
        order.append(heapq.heappop(ready))
        for k in carried[order[-1]]:
            left[k] -= 1
            if left[k] == 0:
                heapq.heappush(ready, k)
    path = [k for k, count in enumerate(left) if count][:1]
    while path and path.index(path[-1]) == len(path) - 1:
        path.append(next(c for c in sorted(carriers[path[-1]]) if left[c]))
    cycle = path[path.index(path[-1]) :] if path else []
    return order, [frozenset(r for k in cycle for r in found[k])] if cycle else []


def owners(tree: Tree, found: Sequence[Sequence[int]]) -> list[int]:
    """Return the number of the cluster of each row."""
    owner = [-1] * len(tree.parent)
    for k, rows in enumerate(found):
        for r in rows:
            owner[r] = k
    return owner


def handles(tree: Tree, found: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the handles of each cluster, as rows in the order of clusters: the last one is a body of the parent cluster."""
    owner = owners(tree, found)
    result: list[set[int]] = [{p for r in rows if (p := tree.parent[r]) >= 0} - set(rows) for rows in found]
    for own in reversed(result):
        if own:
            parent = max(owner[h] for h in own)
            result[parent] |= {h for h in own if owner[h] != parent}
    return [tuple(sorted(own, key=lambda h: (owner[h], h))) for own in result]
