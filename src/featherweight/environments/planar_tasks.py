"""Robots in a vertical plane: Hopper, Walker2d and HalfCheetah, as version 5 of Gymnasium's environments has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .snapshot import Snapshot
from .task import ForwardTask, Terms, UprightTask, inside

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
        return np.concatenate([self.positions_seen(now), np.clip(now.qvel, -FASTEST_SEEN, FASTEST_SEEN)], axis=-1)

    def rewards(self, before: Snapshot, after: Snapshot, action: Array) -> Terms:
        return {**super().rewards(before, after, action), "reward_survive": self.survival(after)}

    def healthy(self, now: Snapshot) -> Array:
        return inside(now.qpos[:, 1], self.healthy_z_range) & inside(now.qpos[:, 2], self.healthy_angle_range)

    def whereabouts(self, now: Snapshot) -> Terms:
        return {"x_position": now.qpos[:, 0], "z_distance_from_origin": now.qpos[:, 1] - now.links.home[1]}


@dataclass(frozen=True)
class Hopper(Walker2d):
    """One leg: forward, without falling."""

    xml_file: str = "hopper.xml"
    healthy_state_range: tuple[float, float] = (-100.0, 100.0)
    healthy_z_range: tuple[float, float] = (0.7, float("inf"))
    healthy_angle_range: tuple[float, float] = (-0.2, 0.2)

    def healthy(self, now: Snapshot) -> Array:
        state = np.concatenate([now.qpos, now.qvel], axis=-1)[:, 2:]
        return super().healthy(now) & inside(state, self.healthy_state_range).all(axis=-1)


@dataclass(frozen=True)
class HalfCheetah(ForwardTask):
    """Forward, as fast as it can."""

    xml_file: str = "half_cheetah.xml"
    frame_skip: int = 5
    reset_noise_scale: float = 0.1

    normal_velocities: ClassVar[bool] = True
