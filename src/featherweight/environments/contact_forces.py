"""Contact forces on links, found from the contacts that simulations keep."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..engine.loops.kernels import CompiledKernel
from ..simulation.contact_arrays import ContactArrays

Array = np.ndarray[Any, np.dtype[Any]]


class Forces(NamedTuple):
    """What acted in the last step: n contacts of all robots together."""

    robot: Array  # (n,) which one touches
    link: Array  # (n,) and with what, the place among `Links.names`
    point: Array  # (n, 3) [m] in the world
    force: Array  # (n, 3) [N] on the link, in the world

    def about(self, centers: Array, links: int) -> Array:
        """Return their sums (robots, links, 6), torques first, about a centre of each robot (robots, 3)."""
        total = np.zeros((len(centers), links, 6))
        if len(self.robot):
            arrays = (np.ascontiguousarray(x, np.int64) for x in (self.robot, self.link))
            vectors = (np.ascontiguousarray(x, np.float64) for x in (self.point, self.force, centers))
            add_wrenches(*arrays, *vectors, total)
        return total


def forces_on_links(contacts: ContactArrays, links: Array, step: float) -> Forces:
    """Return the forces in a step of that length [s], on both links (candidates, 2) of contacts; -1 is the world, left out."""
    most = 2 * int(np.add.reduce(contacts.counts))
    found = Forces(np.empty(most, np.int64), np.empty(most, np.int64), np.empty((most, 3)), np.empty((most, 3)))
    if not most:
        return found
    n = share_out_forces(contacts, links, step, found)
    return Forces(found.robot[:n], found.link[:n], found.point[:n], found.force[:n])


@partial(CompiledKernel, fused=False)
def share_out_forces(contacts: ContactArrays, links: Array, step: float, found: Forces) -> int:
    """Fill `found` with contacts by robot, the first link of each before the second; how many there are."""
    n = 0
    for i in range(len(contacts.counts)):
        for k in range(contacts.counts[i]):
            for side in range(2):
                link = links[contacts.candidate[i, k], side]
                if link < 0:
                    continue
                found.robot[n], found.link[n] = i, link
                for r in range(3):
                    force = contacts.impulse[i, k, r] / step
                    found.point[n, r] = contacts.point[i, k, r]
                    found.force[n, r] = force if side == 0 else -force
                n += 1
    return n


@partial(CompiledKernel, fused=False)
def add_wrenches(robot: Array, link: Array, point: Array, force: Array, centers: Array, total: Array) -> None:
    """Add forces to total (robots, links, 6)."""
    for n in range(len(robot)):
        i, k = robot[n], link[n]
        x, y, z = point[n, 0] - centers[i, 0], point[n, 1] - centers[i, 1], point[n, 2] - centers[i, 2]
        fx, fy, fz = force[n, 0], force[n, 1], force[n, 2]
        total[i, k, 0] += y * fz - z * fy
        total[i, k, 1] += z * fx - x * fz
        total[i, k, 2] += x * fy - y * fx
        total[i, k, 3] += fx
        total[i, k, 4] += fy
        total[i, k, 5] += fz
