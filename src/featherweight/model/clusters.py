"""Clusters: the smallest sets of joints that contain whole loops and couplings, so that a mechanism is a tree of clusters.

A loop connects the rows of the tree on the paths between its bodies, up to the last body that carries both; a coupling connects
its joints (Chignoli et al., section IV; Jain 2009). Sets that share a row, or that carry each other, are merged. Bodies outside
a cluster that carry it, or what it carries, are its handles (the output bodies of section V-B, and those that clusters on it
have beyond it). The parent of a cluster is the last cluster that has a handle of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from .topology import path_to_ground
from .tree import Tree


def rows_between_bodies(tree: Tree, ends: Sequence[int]) -> frozenset[int]:
    """Return the rows that a loop connects: whole joints, up to the last body that carries all `ends`.

    `ends` are the last rows of bodies, -1 for the ground.
    """
    return _rows_on_paths(tree, ends, ends)


def _rows_on_paths(tree: Tree, ends: Iterable[int], carriers: Sequence[int]) -> frozenset[int]:
    """Return the rows on the paths from the ground to `ends`, except those on the paths to all `carriers`."""
    common = set.intersection(*(set(path_to_ground(tree.parent, i)) for i in carriers))
    return whole_joints(tree, {r for i in ends for r in path_to_ground(tree.parent, i)} - common)


def whole_joints(tree: Tree, rows: Iterable[int]) -> frozenset[int]:
    """Return all rows of the joints of some rows."""
    return frozenset(r for i in rows for r in range(tree.first[i], tree.last[i] + 1))


def clusters(tree: Tree, ties: Iterable[frozenset[int]]) -> list[tuple[int, ...]]:
    """Return all rows in clusters of whole joints, each after those that carry it, otherwise in the order of their first rows.

    Clusters that carry each other are merged. A cluster with a handle beyond its parent that does not carry the parent grows up
    to the last body that carries all of it, since its velocities would otherwise couple different branches.
    """
    sets: list[set[int]] = [set(range(tree.first[i], tree.last[i] + 1)) for i in range(len(tree.parent)) if tree.first[i] == i]
    while True:
        for tie in ties:
            touched = [s for s in sets if not s.isdisjoint(tie)]
            sets = [s for s in sets if s.isdisjoint(tie)]
            sets.append(set(tie).union(*touched))
        found = sorted(tuple(sorted(s)) for s in sets)
        order = _order(tree, found)
        if len(order) < len(found):
            ties = [_cycle(tree, found, order)]
            continue
        found = [found[k] for k in order]
        ties = _detours(tree, found)
        if not ties:
            return found


def _carriers(tree: Tree, found: Sequence[Sequence[int]]) -> list[set[int]]:
    """Return the clusters on whose bodies each cluster hangs."""
    owner = owners(tree, found)
    return [{owner[p] for r in rows if (p := tree.parent[r]) >= 0} - {k} for k, rows in enumerate(found)]


def _order(tree: Tree, found: Sequence[Sequence[int]]) -> list[int]:
    """Return the order in which each cluster comes after those that carry it, without those that carry each other."""
    carriers = _carriers(tree, found)
    above: list[list[int]] = [[] for _ in found]
    for k, own in enumerate(carriers):
        for c in own:
            above[c].append(k)
    left = [len(own) for own in carriers]
    ready = [k for k, count in enumerate(left) if count == 0]
    order: list[int] = []
    while ready:
        order.append(heapq.heappop(ready))
        for k in above[order[-1]]:
            left[k] -= 1
            if left[k] == 0:
                heapq.heappush(ready, k)
    return order


def _cycle(tree: Tree, found: Sequence[Sequence[int]], order: Sequence[int]) -> frozenset[int]:
    """Return the rows of clusters that carry each other in a cycle, which are not in the order."""
    carriers, left = _carriers(tree, found), set(range(len(found))) - set(order)
    path = [min(left)]
    while path[-1] not in path[:-1]:
        path.append(min(carriers[path[-1]] & left))
    return frozenset(r for k in path[path.index(path[-1]) :] for r in found[k])


def _detours(tree: Tree, found: Sequence[Sequence[int]]) -> list[frozenset[int]]:
    """Return the rows of the last cluster with a handle beyond its parent that does not carry the parent, and those between.

    These are the rows up to the last body that carries the whole cluster.
    """
    owner = owners(tree, found)
    for rows, own in zip(reversed(found), reversed(handles(tree, found)), strict=True):
        if len(own) > 1:
            carrying = {owner[i] for r in found[owner[own[-1]]] for i in path_to_ground(tree.parent, r)}
            if not carrying.issuperset(owner[h] for h in own):
                return [_rows_on_paths(tree, rows, own)]
    return []


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
