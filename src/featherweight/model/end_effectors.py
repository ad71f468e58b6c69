"""End-effectors of a tree: which bodies carry them, and where their paths meet (Sathya, Decré and Swevers, section I-C).

Each contact is an end-effector: a child, without a joint, of the body with the contact. In the expanded tree, a body is the
last row of its joint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from ..array_types import Array
from .topology import Topology


class EndEffectors:
    """End-effectors on the rows `links` of a tree, -1 for the ground."""

    def __init__(self, tree: Topology, links: Sequence[int]) -> None:
        for link in links:
            if not -1 <= link < len(tree):
                raise ValueError(f"there is no row {link}; the tree has {len(tree)}")
        self.tree = tree
        self.links = tuple(links)

    @cached_property
    def supported(self) -> tuple[tuple[int, ...], ...]:
        """ES(i): the end-effectors that row i carries."""
        sets = self._on_links
        for i in range(len(self.tree) - 1, -1, -1):
            sets[i].sort()
            if self.tree.parent[i] >= 0:
                sets[self.tree.parent[i]] += sets[i]
        return tuple(map(tuple, sets))

    @property
    def _on_links(self) -> list[list[int]]:
        """The end-effectors on each row itself."""
        sets: list[list[int]] = [[] for _ in range(len(self.tree))]
        for e, link in enumerate(self.links):
            if link >= 0:
                sets[link].append(e)
        return sets

    @cached_property
    def branching(self) -> tuple[bool, ...]:
        """The rows in N: rows where paths from end-effectors meet, so that no child carries all end-effectors of the row."""
        on_link = self._on_links
        result = []
        for i, ends in enumerate(self.supported):
            most = max((len(self.supported[j]) for j in self.tree.children[i]), default=0)
            most = max(most, 1 if on_link[i] else 0)
            result.append(bool(ends) and most < len(ends))
        return tuple(result)

    @cached_property
    def common_ancestors(self) -> Array:
        """cca: the last row that carries both of two end-effectors, or -1 if only the ground does; (E, E)."""
        ancestors = np.full((len(self.links), len(self.links)), -1)
        on_link = self._on_links
        for i in {link for link in self.links if link >= 0}.union(k for k, meet in enumerate(self.branching) if meet):
            below = [self.supported[j] for j in self.tree.children[i]]
            seen = np.array(on_link[i], dtype=int)
            ancestors[seen[:, None], seen] = i
            for more in map(np.array, filter(None, below)):
                ancestors[seen[:, None], more] = i
                ancestors[more[:, None], seen] = i
                seen = np.concatenate([seen, more])
        return ancestors


class Spans:
    """The branches of the tree between end-effectors, the rows `at`, and the ground; `sizes` are numbers of constraint rows.

    Columns are passed along a branch: the constraint columns of the end-effectors, numbered consecutively. At the k-th row of
    `at`, six additional columns replace all columns that arrive there.
    """

    def __init__(self, ends: EndEffectors, at: Iterable[int], sizes: Sequence[int]) -> None:
        self.ends, self.at = ends, tuple(sorted(at))
        self._rank = {row: k for k, row in enumerate(self.at)}
        self.columns: list[range] = []
        for size in [*sizes, *(6 for _ in self.at)]:
            start = self.columns[-1].stop if self.columns else 0
            self.columns.append(range(start, start + size))

    def above(self, k: int) -> int:
        """A: the nearest of `at` above its k-th row, by its index in `at`; -1 if there is none."""
        return self._nearest(self.ends.tree.parent[self.at[k]])

    def end_above(self, e: int) -> int:
        """A of end-effector e: the nearest of `at` at or above its link, by its index in `at`; -1 if there is none."""
        return self._nearest(self.ends.links[e])

    @cached_property
    def meets(self) -> Array:
        """The last row of `at` that carries both of two end-effectors, by its index in `at`; -1 if none does; (E, E)."""
        return np.array(self._near)[self.ends.common_ancestors]

    def meet(self, e: int, f: int) -> int:
        return int(self.meets[e, f])

    def _nearest(self, row: int) -> int:
        return self._near[row]

    @cached_property
    def _near(self) -> list[int]:
        """The nearest of `at` at or above each row, and for the ground, which comes last."""
        near = [-1] * (len(self.ends.tree) + 1)
        for i, p in enumerate(self.ends.tree.parent):
            near[i] = self._rank.get(i, near[p])
        return near

    @cached_property
    def passing(self) -> tuple[tuple[int, ...], ...]:
        """The columns that the joint of each row passes on."""
        arriving: list[list[int]] = [[] for _ in range(len(self.ends.tree))]
        for e, link in enumerate(self.ends.links):
            if link >= 0:
                arriving[link] += self.columns[e]
        passing = []
        for i in range(len(self.ends.tree) - 1, -1, -1):
            if i in self._rank:
                arriving[i] = list(self.columns[len(self.ends.links) + self._rank[i]])
            passing.append(tuple(sorted(arriving[i])))
            if self.ends.tree.parent[i] >= 0:
                arriving[self.ends.tree.parent[i]] += arriving[i]
        return tuple(reversed(passing))

    @cached_property
    def pairs(self) -> list[list[tuple[int, int, int]]]:
        """The end-effectors that meet at each of `at`, and last at the ground, with later columns.

        The ranges of later columns are those that meet theirs there. A range (end-effector, first column, stop) begins with
        its own columns or after them.
        """
        pairs: list[list[tuple[int, int, int]]] = [[] for _ in range(len(self.at) + 1)]
        for f in range(len(self.ends.links)):
            there = self.meets[f, f:]
            starts = [0, *(np.flatnonzero(np.diff(there)) + 1).tolist(), len(there)]
            for a, b in pairwise(starts):
                pairs[there[a]].append((f, self.columns[f + a].start, self.columns[f + b - 1].stop))
        return pairs

    @cached_property
    def supporting_ranges(self) -> list[list[tuple[int, int]]]:
        """The ranges of constraint columns that each of `at` carries."""
        all_ranges = []
        for row in self.at:
            ends = self.ends.supported[row]
            breaks = [k for k, (e, f) in enumerate(pairwise(ends), 1) if f != e + 1]
            ranges = pairwise([0, *breaks, len(ends)])
            all_ranges.append([(self.columns[ends[a]].start, self.columns[ends[b - 1]].stop) for a, b in ranges])
        return all_ranges

    @cached_property
    def earliest(self) -> list[int]:
        """The first column that passes a joint together with each column, or the column itself."""
        first = list(range(self.columns[-1].stop))
        for passing in set(self.passing):
            for c in passing:
                first[c] = min(first[c], passing[0])
        return first


STEP, INNER_STEP = 40, 12  # approximate operations for a column over a joint, and over an inner row of a joint
PAIR = 2  # for a pair of columns over a joint
MOVE = 50  # for a column times a matrix at a branching row
PRODUCT = 11  # for a pair of columns there


def stations(ends: EndEffectors, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the rows where six columns may replace others.

    These are branching rows, and rows whose own end-effectors have more than six columns.
    """
    own = [0] * len(ends.tree)
    for link, size in zip(ends.links, sizes, strict=True):
        if link >= 0:
            own[link] += size
    return tuple(i for i, branching in enumerate(ends.branching) if branching or own[i] > 6)


def worthwhile_stations(ends: EndEffectors, sizes: Sequence[int], inner: Sequence[bool]) -> tuple[int, ...]:
    """Return the stations at which replacing all columns by six saves operations, by an estimate.

    From the tips on, the estimate compares carrying c columns, or six, over the branch to the next station or to the ground,
    including the product of the c columns with a matrix at the station and the products of all pairs of columns. If a station
    is chosen, so are all stations above it.
    """
    tree = ends.tree
    possible = set(stations(ends, sizes))
    chosen: set[int] = set()
    arriving = [0] * len(tree)
    for e, link in enumerate(ends.links):
        if link >= 0:
            arriving[link] += sizes[e]
    for i in range(len(tree) - 1, -1, -1):
        if i in possible:
            c, straight, six = arriving[i], 0, MOVE * (6 + 2 * arriving[i]) + PRODUCT * arriving[i] * (arriving[i] + 1) // 2
            j = i
            while True:
                step = INNER_STEP if inner[j] else STEP
                straight += step * c + PAIR * c * (c + 1) // 2
                six += step * 6 + PAIR * 21
                j = tree.parent[j]
                if j < 0 or j in possible:
                    break
            if six < straight or not chosen.isdisjoint(tree.subtree(i)):
                chosen.add(i)
                arriving[i] = 6
        if tree.parent[i] >= 0:
            arriving[tree.parent[i]] += arriving[i]
    return tuple(sorted(chosen))
