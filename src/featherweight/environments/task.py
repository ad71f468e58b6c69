"""Tasks: the start of episodes, and functions of snapshots for observations, rewards and the end of episodes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..array_types import Array, Booleans, Integers, Matrix, Vector
from ..checks import NONNEGATIVE, PATH, argument, either, object_of, whole
from ..model.description import Description
from ..robot.build import read
from ..simulation import Simulation
from ..summaries import summarized
from .reset_noise import ResetNoise
from .snapshot import Links, Snapshot

Terms = dict[str, Array]


@summarized
class StepInfo(NamedTuple):
    """Entries of `info`, until the next step: numbers (robots, names), and other arrays with a row for each robot."""

    names: tuple[str, ...]
    numbers: Matrix
    others: dict[str, Array]

    def arrays(self) -> dict[str, Array]:
        """Return the entries of all robots."""
        return dict(zip(self.names, self.numbers.T.copy(), strict=True)) | self.others

    def of(self, i: int) -> dict[str, Any]:
        """Return the entries of robot i."""
        entries: dict[str, Any] = dict(zip(self.names, self.numbers[i].tolist()))  # noqa: B905  # takes half the time
        for name, x in self.others.items():
            entries[name] = x[i]
        return entries


@summarized
class Moved(NamedTuple):
    """Results of a step of all robots, without ending or beginning episodes."""

    observation: Matrix  # (robots, numbers)
    reward: Vector  # (robots,)
    terminated: Booleans  # (robots,)
    info: StepInfo


FILE = either([PATH, object_of(Description)]).worded("a path, the name of one of Gymnasium's files, or a Description")


@dataclass(frozen=True)
class Task:
    """A robot's file and the start of episodes: the base of snapshot tasks and compiled tasks.

    Fields are named like the arguments of Gymnasium's environments. The simulation uses the file's time step. `xml_file` is one
    of Gymnasium's files, a path, or a description.
    """

    xml_file: Any
    frame_skip: int  # simulation steps per environment step
    reset_noise_scale: float

    def __post_init__(self) -> None:
        """Check the numbers that all tasks have. Raises ValueError, with the name of the task."""
        argument(f"{type(self).__name__}: frame_skip", self.frame_skip, whole(1))
        argument(f"{type(self).__name__}: reset_noise_scale", self.reset_noise_scale, NONNEGATIVE)

    normal_velocities: ClassVar[bool] = False  # initial velocities are drawn from a normal distribution, not a uniform one

    def read(self) -> Description:
        """Return the robot's description. Raises FileNotFoundError and ModelError as `featherweight.read` does."""
        file = argument(f"{type(self).__name__}: xml_file", self.xml_file, FILE)
        if isinstance(file, Description):
            return file
        own = Path(file).expanduser()
        if own.is_absolute() or os.fspath(file).startswith("."):
            return read(own)
        with as_file(files("gymnasium.envs") / "mujoco" / "assets" / file) as path:
            return read(path)

    def beginning(self, qpos: Vector, nv: int, noise: ResetNoise, which: Integers) -> tuple[Matrix, Matrix]:
        """Return qpos (k, nq) and qvel (k, nv) of the next episodes of robots (k,), drawn around qpos (nq,)."""
        noise.begin(which)
        scale, nq = self.reset_noise_scale, len(qpos)
        positions = scale * (2.0 * noise.uniform(which, 0, nq) - 1.0)
        if self.normal_velocities:
            return qpos + positions, scale * noise.normal(which, nq, nv)
        return qpos + positions, scale * (2.0 * noise.uniform(which, nq, nv) - 1.0)

    def vary(self, simulation: Simulation, noise: ResetNoise) -> None:
        """Give robots different parameters, when all begin. The default leaves them identical."""

    def action_bounds(self, links: Links) -> tuple[Array, Array]:
        """Return the lower and upper bounds (actions,) of actions: the ranges of controls."""
        low, high = np.array([*links.robot.controls.values()], np.float32).reshape(-1, 2).T
        return low, high


@dataclass(frozen=True)
class SnapshotTask(Task):
    """A task defined by functions of `Snapshot`s, which evaluate all robots at once with NumPy."""

    asks_for_forces: ClassVar[bool] = False  # snapshots after a step have forces of contacts and actuators

    def observation(self, now: Snapshot) -> Matrix:
        """Return the observation (robots, numbers): qpos and qvel."""
        return np.concatenate([now.qpos, now.qvel], axis=-1)

    def rewards(self, before: Snapshot, after: Snapshot, action: Array) -> Terms:
        """Return the terms (robots,) whose sum is the reward, by name."""
        raise NotImplementedError

    def terminated(self, now: Snapshot) -> Booleans:
        """Return which episodes terminate, (robots,) bool."""
        return np.zeros(len(now.q), bool)

    def position_info(self, now: Snapshot) -> Terms:
        """Return the entries of `info` that are also known when an episode begins, by name."""
        return {}

    def motion(self, before: Snapshot, after: Snapshot) -> Terms:
        """Return the further entries of `info` after a step, besides the rewards, by name."""
        return {}
