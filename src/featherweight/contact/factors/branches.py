"""Branches of a robot: runs of velocities that move the same bodies.

A branch ends where the tree of velocities forks or ends. The *path* of a body consists of the branches that move it, from the
ground on. A row of a Jacobian has entries on the paths of at most two bodies, and so does a row of J C, where M⁻¹ = C Cᵀ
(`inverse_factor`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...array_types import Integers
from ...engine.loops.kernels import LANES


class BranchPaths(NamedTuple):
    """The branches of a robot, numbered from the ground on, and their concatenated paths."""

    first: Integers  # (branches + 1,) first velocity of each branch, and the number of velocities
    begin: Integers  # (branches + 1,) start of each branch's path in `path`
    path: Integers  # branches
    spot: Integers  # start column of each branch in rows of this path, the last branch first: multiples of `LANES`
    width: Integers  # (branches,) number of columns of such rows
    shift: Integers  # (branches,) number of columns omitted before those of its tree in J


def padded(size: int) -> int:
    """Return the next multiple of `LANES`."""
    return (size + LANES - 1) // LANES * LANES


def branches_of(parent: Sequence[int], shift: Sequence[int]) -> BranchPaths:
    """Return the branches of velocities with these parents; `shift` is that of each velocity."""
    children = [0] * len(parent)
    for p in parent:
        if p >= 0:
            children[p] += 1
    first = [i for i, p in enumerate(parent) if p < 0 or p != i - 1 or children[p] > 1]
    bounds, of_velocity = [*first, len(parent)], branch_of_velocity(parent)
    paths: list[list[int]] = []
    for b, i in enumerate(first):
        paths.append([*(paths[of_velocity[parent[i]]] if parent[i] >= 0 else []), b])
    wide = [padded(stop - begin) for begin, stop in pairwise(bounds)]
    spots = [np.cumsum([0, *(wide[x] for x in reversed(path))])[::-1].tolist() for path in paths]
    return BranchPaths(
        np.array(bounds, np.int64), np.cumsum([0, *map(len, paths)]).astype(np.int64), _joined(paths),
        _joined([s[1:] for s in spots]), np.array([s[0] for s in spots], np.int64),
        np.array([shift[i] for i in first], np.int64),
    )  # fmt: skip


def columns_of_ancestors(branches: BranchPaths, parent: Sequence[int]) -> tuple[int, ...]:
    """Return the columns of C for each velocity and its ancestors by `parent`, which are all on its path.

    The order is that of a packed factor (`algorithms.ltdl`): a velocity, its parent, and so on to the ground.
    """
    columns: list[int] = []
    for b in range(len(branches.width)):
        path = branches.path[branches.begin[b] : branches.begin[b + 1]]
        spot = branches.spot[branches.begin[b] : branches.begin[b + 1]]
        place = {
            int(v): int(s + v - branches.first[x]) for x, s in zip(path, spot, strict=True) for v in _velocities(branches, x)
        }
        for i in _velocities(branches, b):
            j = i
            while j >= 0:
                columns.append(place[j])
                j = parent[j]
    return tuple(columns)


def _velocities(branches: BranchPaths, b: int) -> range:
    return range(int(branches.first[b]), int(branches.first[b + 1]))


def longest_path(branches: BranchPaths) -> int:
    """Return the greatest number of branches on a path."""
    return int(np.diff(branches.begin).max(initial=0))


def widest_row(branches: BranchPaths) -> int:
    """Return the greatest number of columns of a row with two paths."""
    return int(sum(sorted(branches.width)[-2:]))


def branch_of_velocity(parent: Sequence[int]) -> list[int]:
    """Return the branch of each velocity."""
    children = [0] * len(parent)
    for p in parent:
        if p >= 0:
            children[p] += 1
    begins = [p < 0 or p != i - 1 or children[p] > 1 for i, p in enumerate(parent)]
    return [int(b) - 1 for b in np.cumsum(begins)]


def _joined(parts: Sequence[Sequence[int]]) -> Integers:
    return np.concatenate([np.zeros(0, np.int64), *(np.asarray(x, np.int64) for x in parts)])
