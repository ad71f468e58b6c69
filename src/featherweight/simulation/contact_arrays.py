"""Contacts of many robots: as stored, with a fixed number of places for each robot, and as one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import Array, IntegerMatrix, Integers, Matrix, Tensor, Vector
from ..collision.detection import ContactPoints
from ..contact.spread_impulses import SpreadWork, find_closed, spread_over_patches, spread_work
from ..engine.loops.kernels import CompiledLoop, Table
from ..summaries import summarized
from .stage_records import FleetContacts


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
    """Contacts of the last step. The arrays have `capacity` places for each robot; the first `counts` of them are used."""

    counts: Integers  # (robots,)
    candidate: IntegerMatrix  # (robots, capacity)
    point: Tensor  # (robots, capacity, 3)
    impulse: Tensor  # (robots, capacity, 3)

    def of(self, which: Array | Sequence[int] | slice) -> ContactArrays:
        return ContactArrays(self.counts[which], self.candidate[which], self.point[which], self.impulse[which])

    def together(self, which: Array | Sequence[int] | slice, step: float) -> ManyContacts:
        """Return the contacts of some robots as one list, with forces averaged over a step of length `step` [s]."""
        robot, k = np.nonzero(np.arange(self.candidate.shape[1]) < self.counts[which, None])
        at = np.arange(len(self.counts))[which][robot], k
        return ManyContacts(robot, self.candidate[at], self.point[at], self.impulse[at] / step)


class SpreadTable(NamedTuple):
    """Contacts of robots, the constants of their patches, and their impulses after these are spread."""

    contacts: FleetContacts
    friction: Matrix  # (robots, candidates), or one row for all robots
    restitution: Vector  # (candidates,)
    pyramid: bool
    force: Tensor  # (robots, capacity, 3) results
    ends: IntegerMatrix  # (2, capacity) bodies of the contacts of a robot
    work: SpreadWork


def spread_of_robots(s: SpreadTable, first: int, stop: int) -> int:
    """Spread the impulses of the contacts of some robots over their patches."""
    contacts, ends = s.contacts, s.ends
    for i in range(first, stop):
        k = contacts.counts[i]
        for c in range(k):
            for j in range(3):
                s.force[i, c, j] = contacts.force[i, c, j]
            ends[0, c], ends[1, c] = int(contacts.bodies[i, c, 0]), int(contacts.bodies[i, c, 1])
        if contacts.solved[i] < k:
            points = ContactPoints(
                contacts.candidate[i, :k], ends[0, :k], ends[1, :k], contacts.point[i, :k], contacts.normal[i, :k],
                contacts.gap[i, :k],
            )  # fmt: skip
            friction, force = s.friction[min(i, len(s.friction) - 1)], s.force[i, :k]
            find_closed(points, friction, s.restitution, force, contacts.solved[i], s.work)
            spread_over_patches(points, friction, s.restitution, s.pyramid, force, s.work)
    return stop - first


SPREAD = CompiledLoop(spread_of_robots, numbers=2, what="the forces of all contacts of patches, which all robots share")


class SpreadImpulses:
    """Impulses of contacts, spread to those left out of their patches, with each robot's friction, or the row of all."""

    def __init__(self, contacts: FleetContacts, friction: Matrix, restitution: Vector, pyramid: bool) -> None:
        capacity, force = contacts.gap.shape[1], np.zeros(contacts.force.shape)
        ends = np.zeros((2, capacity), np.int64)
        self._table = Table(SpreadTable(contacts, friction, restitution, pyramid, force, ends, spread_work(capacity)))
        self._run, self._force = SPREAD.for_tables(self._table), force

    def of(self, first: int, stop: int) -> Tensor:
        """Return the impulses (stop - first, capacity, 3) of some robots, which the next call overwrites."""
        self._run(self._table.address, first, stop)
        return self._force[first:stop]
