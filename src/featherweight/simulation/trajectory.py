"""What a simulation went through: states over time, and the forces of contacts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def _none() -> Array:
    return np.zeros((0, 3))


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States at T instants, and K contacts in all of them together, in the world.

    The contacts of instant k are rows `first[k]:first[k + 1]` of `points` and `forces`.
    """

    times: Array  # (T,) [s]
    q: Array  # (T, nq)
    v: Array  # (T, nv)
    first: Array = field(default_factory=lambda: np.zeros(1, dtype=int))  # (T + 1,)
    points: Array = field(default_factory=_none)  # (K, 3) [m]
    forces: Array = field(default_factory=_none)  # (K, 3) [N], on the robot

    def contacts(self, k: int) -> tuple[Array, Array]:
        """Points and forces of the contacts at instant k."""
        if len(self.first) <= k + 1:
            return _none(), _none()
        rows = slice(int(self.first[k]), int(self.first[k + 1]))
        return self.points[rows], self.forces[rows]

    def __len__(self) -> int:
        return len(self.times)
