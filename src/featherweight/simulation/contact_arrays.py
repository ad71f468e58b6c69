"""Contacts of many robots: as they are kept, with room for some of each, and together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..engine.loops.array_types import IntegerMatrix, Integers, Matrix, Tensor

Array = np.ndarray[Any, np.dtype[Any]]


class ManyContacts(NamedTuple):
    """n contacts of many robots together, those of one after the other."""

    robot: Integers  # (n,) its place among the robots that were asked for
    candidate: Integers  # (n,) what touches: its place in `Simulation.touching_links`
    points: Matrix  # (n, 3) [m] in the world
    forces: Matrix  # (n, 3) [N] on the first of the two links, in the world


class ContactArrays(NamedTuple):
    """Contacts of the last step: of each robot there is room for some, of which the first `counts` are there."""

    counts: Integers  # (robots,)
    candidate: IntegerMatrix  # (robots, room)
    point: Tensor  # (robots, room, 3)
    impulse: Tensor  # (robots, room, 3)

    def of_robot(self, robot: int) -> tuple[Integers, Matrix, Matrix]:
        """Candidates, points and impulses of one."""
        k = int(self.counts[robot])
        return self.candidate[robot, :k], self.point[robot, :k], self.impulse[robot, :k]

    def of(self, which: Array | Sequence[int] | slice) -> ContactArrays:
        """Return those of some robots."""
        return ContactArrays(self.counts[which], self.candidate[which], self.point[which], self.impulse[which])

    def together(self, which: Array | Sequence[int] | slice, step: float) -> ManyContacts:
        """Return the contacts of some robots one after the other, with forces over a step of that length [s]."""
        robot, k = np.nonzero(np.arange(self.candidate.shape[1]) < self.counts[which, None])
        at = np.arange(len(self.counts))[which][robot], k
        return ManyContacts(robot, self.candidate[at], self.point[at], self.impulse[at] / step)
