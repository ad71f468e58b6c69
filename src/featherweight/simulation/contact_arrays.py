"""Contacts of many robots: as they are kept, with room for some of each, and together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class ManyContacts(NamedTuple):
    """n contacts of many robots together, those of one after the other."""

    robot: Array  # (n,) its place among the robots that were asked for
    candidate: Array  # (n,) what touches: its place in `Simulation.touching_links`
    points: Array  # (n, 3) [m] in the world
    forces: Array  # (n, 3) [N] on the first of the two links, in the world


class ContactArrays(NamedTuple):
    """Contacts of the last step: of each robot there is room for some, of which the first `counts` are there."""

    counts: Array  # (robots,)
    candidate: Array  # (robots, room)
    point: Array  # (robots, room, 3)
    impulse: Array  # (robots, room, 3)

    def of_robot(self, robot: int) -> tuple[Array, Array, Array]:
        """Candidates, points and impulses of one."""
        k = int(self.counts[robot])
        return self.candidate[robot, :k], self.point[robot, :k], self.impulse[robot, :k]

    def of(self, which: Array | Sequence[int] | slice) -> ContactArrays:
        """Return those of some robots."""
        return ContactArrays(*(x[which] for x in self))

    def together(self, which: Array | Sequence[int] | slice, step: float) -> ManyContacts:
        """Those of some robots, in a step of that length [s]."""
        robot, k = np.nonzero(np.arange(self.candidate.shape[1]) < self.counts[which, None])
        at = np.arange(len(self.counts))[which][robot], k
        return ManyContacts(robot, self.candidate[at], self.point[at], self.impulse[at] / step)
