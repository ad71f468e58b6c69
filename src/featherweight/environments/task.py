"""What a task is: how episodes begin, what is seen, what is rewarded, and when they end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..model.description import Description
from ..robot.build import read
from .reset_noise import ResetNoise
from .snapshot import Snapshot

Array = np.ndarray[Any, np.dtype[Any]]
Terms = dict[str, Array]
VELOCITIES = ("x_velocity", "y_velocity")


def kept(method: Callable[..., Array]) -> Callable[..., Array]:
    """A method of a task and snapshots whose result the last snapshot keeps, for the terms of a step that share it."""

    @wraps(method)
    def shared(task: Task, *snapshots: Snapshot, **named: Snapshot) -> Array:
        if named:
            return method(task, *snapshots, **named)
        terms, others = snapshots[-1].terms, snapshots[:-1]
        found = terms.get(method)
        if found is None or found[0] is not task or found[1] != others:
            found = terms[method] = task, others, method(task, *snapshots)
        result: Array = found[2]
        return result

    return shared


@dataclass(frozen=True)
class Task:
    """A robot's file and functions of `Snapshot`s, all over many robots.

    Fields are named as arguments of Gymnasium's environments, and steps of the simulation are as long as the file says.
    `xml_file` is one of Gymnasium's files, a path of one's own, or a description.
    """

    xml_file: Any
    frame_skip: int  # steps of the simulation in one of the environment
    reset_noise_scale: float
    exclude_current_positions_from_observation: bool = True

    normal_velocities: ClassVar[bool] = False  # normal at the beginning, not uniform
    asks_for_forces: ClassVar[bool] = False  # of contacts or actuators, after a step
    travelled: ClassVar[int] = 1  # coordinates of the place that observations leave out

    def read(self) -> Description:
        """The robot. Raises FileNotFoundError and ModelError as `featherweight.read` does."""
        if isinstance(self.xml_file, Description):
            return self.xml_file
        own = Path(self.xml_file).expanduser()
        if own.is_absolute() or self.xml_file.startswith("."):
            return read(own)
        with as_file(files("gymnasium.envs") / "mujoco" / "assets" / self.xml_file) as path:
            return read(path)

    def beginning(self, qpos: Array, nv: int, noise: ResetNoise, which: Array) -> tuple[Array, Array]:
        """qpos (k, nq) and qvel (k, nv) of the next episodes of robots (k,), around a configuration (nq,)."""
        noise.begin(which)
        scale, nq = self.reset_noise_scale, len(qpos)
        positions = scale * (2.0 * noise.uniform(which, 0, nq) - 1.0)
        if self.normal_velocities:
            return qpos + positions, scale * noise.normal(which, nq, nv)
        return qpos + positions, scale * (2.0 * noise.uniform(which, nq, nv) - 1.0)

    def place(self, now: Snapshot) -> Array:
        """Where robots are (robots, travelled): what moves forward."""
        return now.qpos[:, : self.travelled]

    @kept
    def velocity(self, before: Snapshot, after: Snapshot) -> Array:
        """How fast they got there (robots, travelled)."""
        return (self.place(after) - self.place(before)) / (self.frame_skip * after.links.timestep)

    def positions_seen(self, now: Snapshot) -> Array:
        return now.qpos[:, self.travelled :] if self.exclude_current_positions_from_observation else now.qpos

    def observation(self, now: Snapshot) -> Array:
        """What is seen (robots, numbers)."""
        return np.concatenate([self.positions_seen(now), now.qvel], axis=-1)

    def rewards(self, before: Snapshot, after: Snapshot, action: Array) -> Terms:
        """What adds up to the reward (robots,), by names of Gymnasium's."""
        raise NotImplementedError

    def terminated(self, now: Snapshot) -> Array:
        """Which episodes end here (robots,)."""
        return np.zeros(len(now.q), bool)

    def whereabouts(self, now: Snapshot) -> Terms:
        """What `info` tells of robots, also at the beginning."""
        return {"x_position": now.qpos[:, 0]}

    def motion(self, before: Snapshot, after: Snapshot) -> Terms:
        """What else it tells after a step, besides rewards."""
        velocity = self.velocity(before, after)
        return {name: velocity[:, k] for k, name in enumerate(VELOCITIES[: velocity.shape[1]])}


@dataclass(frozen=True)
class ForwardTask(Task):
    """With a reward for the velocity along x, and a cost of controls."""

    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 0.1

    def rewards(self, before: Snapshot, after: Snapshot, action: Array) -> Terms:
        return {
            "reward_forward": self.forward_reward_weight * self.velocity(before, after)[:, 0],
            "reward_ctrl": -self.ctrl_cost_weight * squares(action),
        }


@dataclass(frozen=True)
class UprightTask(Task):
    """With a reward for being healthy; episodes end where a robot is not."""

    healthy_reward: float = 1.0
    terminate_when_unhealthy: bool = True

    def healthy(self, now: Snapshot) -> Array:
        """Which robots are (robots,)."""
        raise NotImplementedError

    def survival(self, now: Snapshot) -> Array:
        """The reward for it (robots,)."""
        return self.healthy_reward * self.healthy(now)

    def terminated(self, now: Snapshot) -> Array:
        return ~self.healthy(now) if self.terminate_when_unhealthy else super().terminated(now)


def inside(x: Array, low: Array | float, high: Array | float) -> Array:
    """Whether each robot's numbers (robots, n) are all strictly between bounds."""
    between: Array = np.logical_and.reduce((low < x) & (x < high), axis=-1)
    return between


def cut(x: Array, low: float, high: float) -> Array:
    """Numbers cut to a range; `numpy.clip` takes several times as long for few."""
    within: Array = np.minimum(np.maximum(x, low), high)
    return within


def squares(x: Array) -> Array:
    """The sum of squares of each robot's numbers."""
    squared = np.square(x)
    total: Array = np.add.reduce(squared if squared.ndim == 2 else squared.reshape(len(x), -1), axis=-1)
    return total
