"""The topology of a kinematic tree, from its parent array."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property


def path_to_ground(parent: Sequence[int], i: int) -> list[int]:
    """Return i, its parent, and so on to a child of the ground."""
    path = []
    while i >= 0:
        path.append(i)
        i = parent[i]
    return path


class Topology:
    """The structure of a kinematic tree, given by `parent`, where parent[i] < i and -1 is the ground.

    All sets are in ascending order. Raises ValueError for an invalid parent array.
    """

    def __init__(self, parent: Sequence[int]) -> None:
        for i, p in enumerate(parent):
            if not -1 <= p < i:
                raise ValueError(f"parent[{i}] is {p}; it must be -1 (the ground) or an earlier index")
        self.parent: tuple[int, ...] = tuple(int(p) for p in parent)

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def trees(self) -> tuple[int, ...]:
        """The first body of each tree that shares only the ground with others, followed by the number of bodies.

        The bodies of a tree are consecutive; trees whose bodies are interleaved count as one.
        """
        first, begins = len(self), [len(self)]
        for i in range(len(self) - 1, -1, -1):
            if self.parent[i] >= 0:
                first = min(first, self.parent[i])
            if i <= first:
                begins.append(i)
                first = len(self)
        return tuple(begins[::-1])

    @cached_property
    def depth(self) -> tuple[int, ...]:
        """The number of joints between each body and the ground; 1 for a child of the ground."""
        depth: list[int] = []
        for p in self.parent:
            depth.append(1 if p < 0 else depth[p] + 1)
        return tuple(depth)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each body."""
        children: list[list[int]] = [[] for _ in self.parent]
        for i, p in enumerate(self.parent):
            if p >= 0:
                children[p].append(i)
        return tuple(map(tuple, children))

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """The children of the ground."""
        return tuple(i for i, p in enumerate(self.parent) if p < 0)

    def support(self, i: int) -> tuple[int, ...]:
        """Return the path from the ground to i, including i: kappa(i) of Featherstone (2005)."""
        return tuple(reversed(path_to_ground(self.parent, i)))

    def subtree(self, i: int) -> tuple[int, ...]:
        """Return i and all its descendants: nu(i) of Featherstone (2005)."""
        inside = {i}
        for j in range(i + 1, len(self.parent)):
            if self.parent[j] in inside:
                inside.add(j)
        return tuple(sorted(inside))
