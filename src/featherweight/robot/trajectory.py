"""What a simulation went through: states over time, and the forces of contacts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the arrays to an .npz file, which `featherweight view --trajectory` reads."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        with open(path, "wb") as file:
            np.savez_compressed(file, **arrays)

    def last(self) -> Trajectory:
        """The last instant alone."""
        points, forces = self.contacts(len(self) - 1)
        return Trajectory(self.times[-1:], self.q[-1:], self.v[-1:], np.array([0, len(points)]), points, forces)

    @staticmethod
    def joined(parts: Sequence[Trajectory]) -> Trajectory:
        """One after the other."""
        each = [p.contacts(k) for p in parts for k in range(len(p))]
        first = np.cumsum([0, *(len(points) for points, _ in each)])
        points, forces = (np.concatenate([_none(), *x]) for x in zip(*each, strict=True))
        times, q, v = (np.concatenate([getattr(p, name) for p in parts]) for name in ("times", "q", "v"))
        return Trajectory(times, q, v, first, points, forces)


class Recorder:
    """States and contacts of a simulation, one in `every`."""

    def __init__(self, simulation: Any, every: int) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1; got {every}")
        self._simulation, self._every = simulation, every
        self._states: list[tuple[float, Array, Array]] = []
        self._contacts: list[tuple[Array, Array]] = []
        self.note(0)

    def note(self, step: int, last: bool = False) -> None:
        """Record the state after a step, if its turn has come."""
        if step % self._every and not last:
            return
        s = self._simulation
        self._states.append((s.time, s.q.copy(), s.v.copy()))
        points, forces, _ = s.contacts() if step else (_none(), _none(), [])
        self._contacts.append((points, forces))

    def trajectory(self) -> Trajectory:
        times, q, v = zip(*self._states, strict=True)
        first = np.cumsum([0, *(len(points) for points, _ in self._contacts)])
        points, forces = (np.concatenate(x) for x in zip(*self._contacts, strict=True))
        return Trajectory(np.array(times), np.array(q), np.array(v), first, points, forces)
