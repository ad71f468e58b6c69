"""Robots in a vertical plane: Hopper, Walker2d and HalfCheetah, as version 5 of Gymnasium's environments has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .snapshot import Snapshot
from .task import ForwardTask, Terms, UprightTask, cut, inside, kept

Array = np.ndarray[Any, np.dtype[Any]]

FASTEST_SEEN = 10.0  # [m/s, rad/s] velocities beyond are cut in observations


@dataclass(frozen=True)
class Walker2d(UprightTask, ForwardTask):
    """Two legs: forward, without falling."""

    xml_file: str = "walker2d_v5.xml"
    frame_skip: int = 4
    reset_noise_scale: float = 5e-3
    ctrl_cost_weight: float = 1e-3
    healthy_z_range: tuple[float, float] = (0.8, 2.0)
    healthy_angle_range: tuple[float, float] = (-1.0, 1.0)

    def observation(self, now: Snapshot) -> Array:
        return np.concatenate([self.positions_seen(now), cut(now.qvel, -FASTEST_SEEN, FASTEST_SEEN)], axis=-1)

    def rewards(self, before: Snapshot, after: Snapshot, action: Array) -> Terms:
        return {**super().rewards(before, after, action), "reward_survive": self.survival(after)}

    @cached_property
    def _upright(self) -> tuple[Array, Array]:
        """Bounds (2,) of height and angle."""
        low, high = np.array([self.healthy_z_range, self.healthy_angle_range], float).T
        return low, high

    @kept
    def healthy(self, now: Snapshot) -> Array:
        return inside(now.qpos[:, 1:3], *self._upright)

    def whereabouts(self, now: Snapshot) -> Terms:
        return {"x_position": now.qpos[:, 0], "z_distance_from_origin": now.qpos[:, 1] - now.links.home[1]}


@dataclass(frozen=True)
class Hopper(Walker2d):
    """One leg: forward, without falling."""

    xml_file: str = "hopper.xml"
    healthy_state_range: tuple[float, float] = (-100.0, 100.0)
    healthy_z_range: tuple[float, float] = (0.7, float("inf"))
    healthy_angle_range: tuple[float, float] = (-0.2, 0.2)

    def _bounds(self, count: int) -> tuple[Array, Array]:
        """Bounds (count,) of height, angle, and the coordinates and velocities that follow."""
        if count not in self._of_states:
            low, high = (np.full(count, x, float) for x in self.healthy_state_range)
            low[0], high[0] = -np.inf, np.inf
            low[:2], high[:2] = np.maximum(low[:2], self._upright[0]), np.minimum(high[:2], self._upright[1])
            self._of_states[count] = low, high
        return self._of_states[count]

    @cached_property
    def _of_states(self) -> dict[int, tuple[Array, Array]]:
        """Bounds by their number."""
        return {}

    @kept
    def healthy(self, now: Snapshot) -> Array:
        state = np.concatenate([now.qpos, now.qvel], axis=-1)[:, 1:]
        return inside(state, *self._bounds(state.shape[1]))


@dataclass(frozen=True)
class HalfCheetah(ForwardTask):
    """Forward, as fast as it can."""

    xml_file: str = "half_cheetah.xml"
    frame_skip: int = 5
    reset_noise_scale: float = 0.1

    normal_velocities: ClassVar[bool] = True
