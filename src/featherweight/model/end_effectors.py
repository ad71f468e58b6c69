"""Which bodies of a tree carry constrained ones, and where their paths meet (Sathya, Decré and Swevers, section I-C).

Each contact is an end-effector: a child without a joint of the body that it is on. In the expanded tree a body is the last
row of its joint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

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
        sets: list[list[int]] = [[] for _ in range(len(self.tree))]
        for e, link in enumerate(self.links):
            for i in self.tree.support(link):
                sets[i].append(e)
        return tuple(map(tuple, sets))

    @cached_property
    def branching(self) -> tuple[bool, ...]:
        """Rows in N: where paths from end-effectors meet, so that no child carries all that the row carries."""
        on_link = [self.links.count(i) for i in range(len(self.tree))]
        result = []
        for i, carried in enumerate(self.supported):
            most = max((len(self.supported[j]) for j in self.tree.children[i]), default=0)
            most = max(most, 1 if on_link[i] else 0)
            result.append(bool(carried) and most < len(carried))
        return tuple(result)

    def common_ancestor(self, e: int, f: int) -> int:
        """cca: the last row that carries both end-effectors, or -1 where only the ground does."""
        both = set(self.tree.support(self.links[e])) & set(self.tree.support(self.links[f]))
        return max(both, default=-1)


class Spans:
    """Stretches of the tree between end-effectors, the rows `at`, and the ground; `sizes` are constraint rows.

    Over a stretch pass columns: those of the constraints from an end-effector on, numbered one after the other, and from the
    k-th row of `at` on six more in place of all that arrives there.
    """

    def __init__(self, ends: EndEffectors, at: Iterable[int], sizes: Sequence[int]) -> None:
        self.ends, self.at = ends, tuple(sorted(at))
        self._rank = {row: k for k, row in enumerate(self.at)}
        self.columns: list[range] = []
        for size in [*sizes, *(6 for _ in self.at)]:
            start = self.columns[-1].stop if self.columns else 0
            self.columns.append(range(start, start + size))

    def above(self, k: int) -> int:
        """A: the nearest of `at` above its k-th row, by its place in `at`; -1 where there is none."""
        return self._nearest(self.ends.tree.parent[self.at[k]])

    def end_above(self, e: int) -> int:
        """A of end-effector e: the nearest of `at` at or above its link, by its place in `at`; -1 where there is none."""
        return self._nearest(self.ends.links[e])

    def meet(self, e: int, f: int) -> int:
        """The last row of `at` that carries both, by its place in `at`; -1 where none does."""
        return self._nearest(self.ends.common_ancestor(e, f))

    def _nearest(self, row: int) -> int:
        while row >= 0 and row not in self._rank:
            row = self.ends.tree.parent[row]
        return self._rank.get(row, -1)

    @cached_property
    def passing(self) -> tuple[tuple[int, ...], ...]:
        """For each row of the tree the columns that its joint passes on."""
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


STEP, INNER_STEP = 40, 12  # operations, nearly, of a column over a joint, and over an inner row of one
PAIR = 2  # of a pair of columns over a joint
MOVE = 50  # of a column by a matrix at a branching row
PRODUCT = 11  # of a pair of columns there


def stations(ends: EndEffectors, sizes: Sequence[int]) -> tuple[int, ...]:
    """Rows where six columns can stand for more: branching ones, and those whose own end-effectors have more than six."""
    own = [0] * len(ends.tree)
    for link, size in zip(ends.links, sizes, strict=True):
        if link >= 0:
            own[link] += size
    return tuple(i for i, branching in enumerate(ends.branching) if branching or own[i] > 6)


def worthwhile(ends: EndEffectors, sizes: Sequence[int], inner: Sequence[bool]) -> tuple[int, ...]:
    """The stations at which six columns in place of all that arrive take fewer operations, as far as one can estimate.

    From the tips on: to carry c columns over the stretch to the next station or to the ground, or else six, to move the
    c columns there by a matrix, and to multiply all pairs of them. Where one is chosen, so are all above it.
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
