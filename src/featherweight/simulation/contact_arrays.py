"""Contacts of many robots: as stored, with a fixed number of places for each robot, and as one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import Array, IntegerMatrix, Integers, Matrix, Tensor
from ..summaries import summarized


@summarized
class ContactsOfRobot(NamedTuple):
    """k contacts of one robot: points [m] and forces [N] in the world, and their names; forces act on the first body named."""

    points: Matrix  # (k, 3)
    forces: Matrix  # (k, 3)
    names: list[str]


@summarized
class ManyContacts(NamedTuple):
    """The n contacts of many robots as one list, robot after robot."""

    robot: Integers  # (n,) index among the robots in the request
    candidate: Integers  # (n,) index in `Simulation.touching_links`
    points: Matrix  # (n, 3) [m] in the world frame
    forces: Matrix  # (n, 3) [N] on the first of the two links, in the world frame


@summarized
class ContactArrays(NamedTuple):
    """Contacts of the last step. The arrays have `room` places for each robot; the first `counts` of them are used."""

    counts: Integers  # (robots,)
    candidate: IntegerMatrix  # (robots, room)
    point: Tensor  # (robots, room, 3)
    impulse: Tensor  # (robots, room, 3)

    def of_robot(self, robot: int) -> tuple[Integers, Matrix, Matrix]:
        """Return candidates, points and impulses of one robot."""
        k = int(self.counts[robot])
        return self.candidate[robot, :k], self.point[robot, :k], self.impulse[robot, :k]

    def of(self, which: Array | Sequence[int] | slice) -> ContactArrays:
        """Return the contacts of some robots."""
        return ContactArrays(self.counts[which], self.candidate[which], self.point[which], self.impulse[which])

    def together(self, which: Array | Sequence[int] | slice, step: float) -> ManyContacts:
        """Return the contacts of some robots as one list, with forces averaged over a step of length `step` [s]."""
        robot, k = np.nonzero(np.arange(self.candidate.shape[1]) < self.counts[which, None])
        at = np.arange(len(self.counts))[which][robot], k
        return ManyContacts(robot, self.candidate[at], self.point[at], self.impulse[at] / step)
