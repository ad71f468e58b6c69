"""Clusters: the smallest sets of joints that contain whole loops and couplings, so that a mechanism is a tree of clusters.

Each constraint connects the rows of the tree on the paths between its bodies or joints, up to the last body that carries them
all (Chignoli et al., section IV; Jain 2009). Sets that share a row are merged. One body, the output body, then carries the
whole cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .tree import Tree


def rows_between_bodies(tree: Tree, ends: Sequence[int]) -> frozenset[int]:
    """Return the rows that a loop connects: whole joints, up to the last body that carries all `ends`.

    `ends` are the last rows of bodies, -1 for the ground.
    """
    return _rows_on_paths(tree, ends, ends)


def rows_between_joints(tree: Tree, rows: Sequence[int]) -> frozenset[int]:
    """Return the rows that a constraint on joint coordinates connects: whole joints, up to the last body that carries all.

    `rows` are the rows of those joints, which are included.
    """
    return _rows_on_paths(tree, rows, [tree.parent[tree.first[i]] for i in rows])


def _rows_on_paths(tree: Tree, ends: Sequence[int], carriers: Sequence[int]) -> frozenset[int]:
    """Return the rows on the paths from the ground to `ends`, except those on the paths to all `carriers`."""
    common = set.intersection(*(set(_support(tree, i)) for i in carriers))
    rows = {r for i in ends for r in _support(tree, i)} - common
    return frozenset(r for i in rows for r in range(tree.first[i], tree.last[i] + 1))


def _support(tree: Tree, i: int) -> list[int]:
    rows = []
    while i >= 0:
        rows.append(i)
        i = tree.parent[i]
    return rows


def clusters(tree: Tree, ties: Iterable[frozenset[int]]) -> list[tuple[int, ...]]:
    """Return all rows in clusters of whole joints, in the order of their first rows."""
    sets: list[set[int]] = [set(range(tree.first[i], tree.last[i] + 1)) for i in range(len(tree.parent)) if tree.first[i] == i]
    for tie in ties:
        touched = [s for s in sets if not s.isdisjoint(tie)]
        sets = [s for s in sets if s.isdisjoint(tie)]
        sets.append(set(tie).union(*touched))
    return sorted(tuple(sorted(s)) for s in sets)


def output_row(tree: Tree, rows: Sequence[int]) -> int:
    """Return the row of the body that carries a cluster, -1 for the ground."""
    inside = set(rows)
    outputs = {tree.parent[i] for i in rows} - inside
    assert len(outputs) == 1, "paths to the last common carrier end at one body"
    return int(outputs.pop())
