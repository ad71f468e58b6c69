"""Robots in a vertical plane: Hopper, Walker2d and HalfCheetah, as in version 5 of Gymnasium's environments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..array_types import Array, Vector
from ..checks import Finite, checked
from ..simulation.smooth_motion import copy
from ..simulation.stage_records import FleetArrays
from .compiled_task import CompiledTask
from .episode_loop import Now
from .parallel_robots import ParallelRobots
from .snapshot import Links
from .task_numbers import cut, squares, total

FASTEST_SEEN = 10.0  # [m/s, rad/s] bound of velocities in observations


class PlanarText(NamedTuple):
    """The text of robots in a plane; its memory is the position before the steps."""

    forward_weight: float
    control_weight: float
    healthy_reward: float
    may_fall: bool  # the robot can be unhealthy, and is rewarded for being healthy
    ends: bool
    low: Vector  # (m,) healthy range of the first m numbers of (qpos, qvel) after x
    high: Vector
    first_seen: int
    fastest_seen: float
    height: float  # at home
    dt: float  # [s] of a step of the environment

    def begin(self, now: Now) -> None:
        """Store nothing."""

    def act(self, now: Now) -> None:
        """Copy actions to controls."""
        copy(now.action, now.control)
        now.memory[0] = now.qpos[0]

    def measure(self, now: Now, fleet: FleetArrays, i: int) -> None:
        """Compute nothing: qpos and qvel suffice."""

    def observe(self, now: Now, seen: Vector) -> None:
        """Write positions and velocities."""
        k = 0
        for x in now.qpos[self.first_seen :]:
            seen[k] = x
            k += 1
        for x in now.qvel:
            seen[k] = cut(x, -self.fastest_seen, self.fastest_seen)
            k += 1

    def healthy(self, now: Now) -> bool:
        """Return whether the state is in its healthy range."""
        n = len(now.qpos) - 1
        for k in range(len(self.low)):
            x = now.qpos[k + 1] if k < n else now.qvel[k - n]
            if not (self.low[k] < x and x < self.high[k]):
                return False
        return True

    def velocity(self, now: Now) -> float:
        """Return the mean velocity along x during the steps."""
        return float((now.qpos[0] - now.memory[0]) / self.dt)

    def reward(self, now: Now, terms: Vector) -> None:
        """Write the forward reward, the cost of controls, and the reward for survival."""
        terms[0] = self.forward_weight * self.velocity(now)
        terms[1] = -self.control_weight * squares(now.action)
        if self.may_fall:
            terms[2] = self.healthy_reward if self.healthy(now) else 0.0

    def total(self, terms: Vector) -> float:
        """Return the sum of the terms."""
        return total(terms)

    def write_info(self, now: Now, info: Vector) -> None:
        """Write the position and the mean velocity."""
        info[0] = now.qpos[0]
        if self.may_fall:
            info[1] = now.qpos[1] - self.height
        info[len(info) - 1] = self.velocity(now)

    def ended(self, now: Now) -> bool:
        """Return whether the robot is unhealthy and episodes end then."""
        return self.ends and not self.healthy(now)

    def remember(self, now: Now) -> None:
        """Store nothing."""


@dataclass(frozen=True)
class PlanarTask(CompiledTask):
    """A task of a robot in a vertical plane: a reward for the velocity along x, and a cost of controls."""

    forward_reward_weight: Finite = 1.0
    ctrl_cost_weight: Finite = 0.1
    exclude_current_positions_from_observation: bool = True

    info: ClassVar[tuple[str, ...]] = ("x_position", "x_velocity")
    places: ClassVar[int] = 1
    terms: ClassVar[tuple[str, ...]] = ("reward_forward", "reward_ctrl")

    def seen(self, links: Links) -> int:
        return len(links.home) + links.robot.nv - int(self.exclude_current_positions_from_observation)

    def memory(self, links: Links) -> int:
        return 1

    def text(self, robots: ParallelRobots, now: Now) -> Any:
        low, high = self._bounds(len(now.qpos) + len(now.qvel) - 1)
        return PlanarText(
            float(self.forward_reward_weight), float(self.ctrl_cost_weight), 0.0, False, False, low, high,
            int(self.exclude_current_positions_from_observation), np.inf, float(robots.links.home[1]),
            self.frame_skip * robots.links.timestep,
        )  # fmt: skip

    def _bounds(self, count: int) -> tuple[Array, Array]:
        """Return bounds (m,) of the first m of the `count` numbers of (qpos, qvel) after x."""
        return np.zeros(0), np.zeros(0)


@checked
@dataclass(frozen=True)
class HalfCheetah(PlanarTask):
    """Gymnasium's HalfCheetah: runs forward as fast as it can."""

    xml_file: Any = "half_cheetah.xml"
    frame_skip: int = 5
    reset_noise_scale: Finite = 0.1

    normal_velocities: ClassVar[bool] = True


@checked
@dataclass(frozen=True)
class Walker2d(PlanarTask):
    """Gymnasium's Walker2d: two legs walk forward without falling."""

    xml_file: Any = "walker2d_v5.xml"
    frame_skip: int = 4
    reset_noise_scale: Finite = 5e-3
    ctrl_cost_weight: Finite = 1e-3
    healthy_reward: Finite = 1.0
    terminate_when_unhealthy: bool = True
    healthy_z_range: tuple[float, float] = (0.8, 2.0)
    healthy_angle_range: tuple[float, float] = (-1.0, 1.0)

    info: ClassVar[tuple[str, ...]] = ("x_position", "z_distance_from_origin", "x_velocity")
    places: ClassVar[int] = 2
    terms: ClassVar[tuple[str, ...]] = ("reward_forward", "reward_ctrl", "reward_survive")

    def text(self, robots: ParallelRobots, now: Now) -> Any:
        return super().text(robots, now)._replace(
            healthy_reward=float(self.healthy_reward), may_fall=True, ends=bool(self.terminate_when_unhealthy),
            fastest_seen=FASTEST_SEEN,
        )  # fmt: skip

    def _bounds(self, count: int) -> tuple[Array, Array]:
        """Return bounds of height and angle."""
        low, high = np.array([self.healthy_z_range, self.healthy_angle_range], float).T.copy()
        return low, high


@checked
@dataclass(frozen=True)
class Hopper(Walker2d):
    """Gymnasium's Hopper: one leg hops forward without falling."""

    xml_file: Any = "hopper.xml"
    healthy_state_range: tuple[float, float] = (-100.0, 100.0)
    healthy_z_range: tuple[float, float] = (0.7, float("inf"))
    healthy_angle_range: tuple[float, float] = (-0.2, 0.2)

    def _bounds(self, count: int) -> tuple[Array, Array]:
        """Return bounds of height, angle, and all further coordinates and velocities."""
        low, high = (np.full(count, x, float) for x in self.healthy_state_range)
        low[0], high[0] = -np.inf, np.inf
        least, most = super()._bounds(count)
        low[:2], high[:2] = np.maximum(low[:2], least), np.minimum(high[:2], most)
        return low, high
