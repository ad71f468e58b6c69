"""Contact forces on links, from the contacts that simulations store."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ..array_types import IntegerMatrix, Integers, Matrix, Tensor
from ..engine.loops.kernels import CompiledKernel
from ..simulation.contact_arrays import ContactArrays


class Forces(NamedTuple):
    """Contacts of the last step, by robot, and their links. Later steps overwrite the arrays."""

    contacts: ContactArrays
    links: IntegerMatrix  # (candidates, 2) indices in `Links.names`, -1 for the world; forces act on the first
    step: float  # [s]

    def about(self, centers: Callable[[], Matrix], count: int) -> Tensor:
        """Return the sums on links (robots, count, 6), torque first, about centres (robots, 3).

        `centers` is called only if there are contacts.
        """
        total = np.zeros((len(self.contacts.counts), count, 6))
        if np.logical_or.reduce(self.contacts.counts):
            add_wrenches(*self.contacts, self.links, self.step, centers(), total)
        return total


@partial(CompiledKernel, fused=False)
def add_wrenches(
    counts: Integers,
    candidate: IntegerMatrix,
    point: Tensor,
    impulse: Tensor,
    links: IntegerMatrix,
    step: float,
    centers: Matrix,
    total: Tensor,
) -> None:
    """Add the forces on the first links of contacts, and opposite forces on the second links, to total (robots, links, 6)."""
    for i in range(len(counts)):
        center = centers[i, 0], centers[i, 1], centers[i, 2]
        add_wrenches_of(counts[i], candidate[i], point[i], impulse[i], links, step, center, total[i])


def add_wrenches_of(
    count: int,
    candidate: Integers,
    point: Matrix,
    impulse: Matrix,
    links: IntegerMatrix,
    step: float,
    center: tuple[float, float, float],
    total: Matrix,
) -> None:
    """Add the contact forces of one robot to total (links, 6), torque first, about a centre."""
    for k in range(count):
        x, y, z = point[k, 0] - center[0], point[k, 1] - center[1], point[k, 2] - center[2]
        for side in range(2):
            link, way = links[candidate[k], side], 1.0 - 2.0 * side
            if link < 0:
                continue
            fx, fy, fz = way * (impulse[k, 0] / step), way * (impulse[k, 1] / step), way * (impulse[k, 2] / step)
            total[link, 0] += y * fz - z * fy
            total[link, 1] += z * fx - x * fz
            total[link, 2] += x * fy - y * fx
            total[link, 3] += fx
            total[link, 4] += fy
            total[link, 5] += fz
