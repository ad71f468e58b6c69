"""Playback time of a trajectory, and the selection of states to draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..array_types import Array
from ..robot.trajectory import Trajectory


@dataclass
class Clock:
    """Simulated time from 0 to `duration` [s], advancing at `speed`; restarts at the end if `loop`."""

    duration: float
    time: float = 0.0
    speed: float = 1.0
    loop: bool = True
    playing: bool = False

    def advance(self, elapsed: float) -> None:
        """Advance by elapsed real time [s]."""
        if not self.playing:
            return
        self.time += elapsed * self.speed
        if self.time >= self.duration:
            self.time = self.time % self.duration if self.loop and self.duration > 0.0 else self.duration
            self.playing = self.loop and self.duration > 0.0

    def play(self) -> None:
        """Continue; at the end, restart from the beginning."""
        if self.time >= self.duration:
            self.time = 0.0
        self.playing = True


def playing_time(trajectory: Trajectory) -> float:
    """Return the simulated time from the first state to the last [s]."""
    return float(trajectory.times[-1] - trajectory.times[0]) if len(trajectory) else 0.0


def instant_at(trajectory: Trajectory, time: float) -> int:
    """Return the index of the last state no later than `time` [s] after the first."""
    at = trajectory.times[0] + time
    at += 1e-9 * max(1.0, abs(at))  # times are sums of steps, with rounding errors
    return max(0, int(np.searchsorted(trajectory.times, at, side="right")) - 1)


def frames_to_draw(trajectory: Trajectory, rate: float) -> tuple[Array, Array]:
    """Return the indices (m,) of states to draw, at most `rate` per second, and the duration (m,) [s] of each.

    The durations sum to the duration of the trajectory.
    """
    count = max(1, int(np.floor(playing_time(trajectory) * rate + 1e-9)) + 1)
    chosen = np.unique([instant_at(trajectory, k / rate) for k in range(count)])
    lasts = np.diff(np.append(trajectory.times[chosen], trajectory.times[-1]))
    return chosen, np.maximum(lasts, 0.0)
