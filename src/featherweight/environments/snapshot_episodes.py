"""Episodes of tasks defined by functions of snapshots: NumPy over all robots."""

from __future__ import annotations

import numpy as np

from ..array_types import Array
from .parallel_robots import EVERY, ParallelRobots
from .reset_noise import ResetNoise
from .snapshot import Snapshot
from .task import Moved, SnapshotTask, StepInfo, Terms


class SnapshotEpisodes:
    """Episodes of many robots with a `SnapshotTask`."""

    def __init__(self, task: SnapshotTask, robots: ParallelRobots) -> None:
        self.task, self.robots = task, robots
        self._last: tuple[Snapshot, int] | None = None  # after the last step, with the simulation's revision

    def begin(self, which: Array, noise: ResetNoise) -> Terms:
        """Begin the next episodes of robots (k,), and return their entries of `info`."""
        links = self.robots.links
        self.robots.begin(which, *self.task.beginning(links.home, links.robot.nv, noise, which))
        return self.task.position_info(self.robots.snapshot(which))

    def observe(self, which: Array | slice = EVERY) -> Array:
        """Return the observations (k, ...) of robots in their current states."""
        return self._observation(self.robots.snapshot(which, self.task.asks_for_forces))

    def advance(self, action: Array) -> Moved | None:
        """Take a step of the environment under actions (robots, actions), or none if an action is not finite."""
        if not np.isfinite(action).all():
            return None
        task, before, action = self.task, self._before(), np.asarray(action, np.float64)
        self.robots.control[...] = action
        self.robots.advance(task.frame_skip)
        failed = self.robots.simulation.failed
        after = self.robots.snapshot(forces=task.asks_for_forces)
        self._last = after, self.robots.simulation.revision
        terms = task.rewards(before, after, action)
        info = {**task.position_info(after), **task.motion(before, after), **terms, "simulation_failed": failed}
        rewards, numbers = _sum(terms, len(failed)), np.zeros((len(failed), 0))
        return Moved(self._observation(after), rewards, task.terminated(after) | failed, StepInfo((), numbers, info))

    def _before(self) -> Snapshot:
        """Return the snapshot before a step: the one after the last step, unless the state has changed since."""
        if self._last is not None and self._last[1] == self.robots.simulation.revision:
            return self._last[0].as_before()
        return self.robots.snapshot()

    def _observation(self, now: Snapshot) -> Array:
        """Return the task's observation, in memory that no snapshot shares."""
        seen = self.task.observation(now)
        shared = seen.base is not None
        for x in now.__dict__.values():
            shared = shared or x is seen
        return seen.copy() if shared else seen


def _sum(terms: Terms, robots: int) -> Array:
    """Return the rewards (robots,), sums of their terms."""
    parts = iter(terms.values())
    total = np.array(next(parts, 0.0), np.float64)
    for x in parts:
        total = total + x
    return total if total.shape == (robots,) else np.broadcast_to(total, robots).copy()
