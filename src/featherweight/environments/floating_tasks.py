"""Robots that move freely: Ant and Humanoid, as version 5 of Gymnasium's environments has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .snapshot import Snapshot
from .task import ForwardTask, Terms, UprightTask, cut, inside, kept, squares

Array = np.ndarray[Any, np.dtype[Any]]


def flat(x: Array) -> Array:
    return x.reshape(len(x), -1)


@dataclass(frozen=True)
class FloatingTask(UprightTask, ForwardTask):
    """With a place on the ground, and a cost of contact forces."""

    ctrl_cost_weight: float = 0.5
    contact_cost_weight: float = 5e-4
    healthy_z_range: tuple[float, float] = (0.2, 1.0)
    include_cfrc_ext_in_observation: bool = True

    asks_for_forces: ClassVar[bool] = True
    travelled: ClassVar[int] = 2

    def contact_cost(self, now: Snapshot) -> Array:
        raise NotImplementedError

    def rewards(self, before: Snapshot, after: Snapshot, action: Array) -> Terms:
        moving, contact = super().rewards(before, after, action), -self.contact_cost(after)
        return {**moving, "reward_contact": contact, "reward_survive": self.survival(after)}

    def whereabouts(self, now: Snapshot) -> Terms:
        x, y = now.qpos[:, :2].T
        return {"x_position": x, "y_position": y, "distance_from_origin": np.hypot(x, y)}


@dataclass(frozen=True)
class Ant(FloatingTask):
    """Four legs: forward."""

    xml_file: str = "ant.xml"
    frame_skip: int = 5
    reset_noise_scale: float = 0.1
    contact_force_range: tuple[float, float] = (-1.0, 1.0)

    normal_velocities: ClassVar[bool] = True

    @kept
    def _contact_forces(self, now: Snapshot) -> Array:
        return cut(now.cfrc_ext, *self.contact_force_range)

    def contact_cost(self, now: Snapshot) -> Array:
        return self.contact_cost_weight * squares(self._contact_forces(now))

    def observation(self, now: Snapshot) -> Array:
        forces = [flat(self._contact_forces(now))] if self.include_cfrc_ext_in_observation else []
        return np.concatenate([self.positions_seen(now), now.qvel, *forces], axis=-1)

    @kept
    def healthy(self, now: Snapshot) -> Array:
        state = np.concatenate([now.qpos, now.qvel], axis=-1)
        (low, high), z = self.healthy_z_range, now.qpos[:, 2]
        upright: Array = np.logical_and.reduce(np.isfinite(state), axis=-1) & (low <= z) & (z <= high)
        return upright


@dataclass(frozen=True)
class Humanoid(FloatingTask):
    """Two legs and two arms: forward, without falling."""

    xml_file: str = "humanoid.xml"
    frame_skip: int = 5
    reset_noise_scale: float = 1e-2
    forward_reward_weight: float = 1.25
    ctrl_cost_weight: float = 0.1
    contact_cost_weight: float = 5e-7
    contact_cost_range: tuple[float, float] = (-float("inf"), 10.0)
    healthy_reward: float = 5.0
    healthy_z_range: tuple[float, float] = (1.0, 2.0)
    include_cinert_in_observation: bool = True
    include_cvel_in_observation: bool = True
    include_qfrc_actuator_in_observation: bool = True

    def place(self, now: Snapshot) -> Array:
        return now.center_of_mass[:, :2]

    def contact_cost(self, now: Snapshot) -> Array:
        return cut(self.contact_cost_weight * squares(now.cfrc_ext), *self.contact_cost_range)

    def observation(self, now: Snapshot) -> Array:
        seen = [self.positions_seen(now), now.qvel]
        if self.include_cinert_in_observation:
            seen.append(flat(now.cinert))
        if self.include_cvel_in_observation:
            seen.append(flat(now.cvel))
        if self.include_qfrc_actuator_in_observation:
            seen.append(now.qfrc_actuator[:, 6:])
        if self.include_cfrc_ext_in_observation:
            seen.append(flat(now.cfrc_ext))
        return np.concatenate(seen, axis=-1)

    @kept
    def healthy(self, now: Snapshot) -> Array:
        return inside(now.qpos[:, 2:3], *self.healthy_z_range)
