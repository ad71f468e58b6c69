"""Random configurations within joint limits."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...array_types import Array
from ...checks import generator
from ...model.configuration import Coordinates, interval
from ...model.types import JointType
from ..robot import Robot
from ..system import System

Seed = int | np.random.Generator | None

STREAM = tuple(b"IK")  # stream of a seed; `random_configuration` uses another, so no search starts at a random target


def generator_of(seed: Seed) -> np.random.Generator:
    """Return the generator itself, or a generator for the seed, or one of fresh numbers for None."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0:
        return np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=STREAM))
    return generator("InverseKinematics: rng", seed)


class Draws:
    """Random configurations of a robot within limits, with open loops: iterations close them faster than `close` does."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.lower, self.upper = robot.lower, robot.upper
        unlimited = [j.q_slice for j in robot.joints if j.type in (JointType.FLOATING, JointType.PLANAR)]
        self.free = np.array([k for s in unlimited for k in range(s.start, s.stop)], np.int64)

    def within(self, q: Array) -> Array:
        """Return q with its coordinates clipped to their limits."""
        return np.minimum(np.maximum(q, self.lower), self.upper)

    def __call__(self, rng: np.random.Generator, count: int, like: Array | None = None) -> Array:
        """Return configurations (count, nq); floating and planar joints, which have no limits, are as in `like`."""
        if self._box is not None:
            low, width = self._box
            q: Array = low + width * rng.random((count, len(low)))
        else:
            q = self.within(System.random_configuration(self.robot, rng=rng, size=count))
        if like is not None:
            q[:, self.free] = like[:, self.free]
        return q

    @cached_property
    def _box(self) -> tuple[Array, Array] | None:
        """The least coordinates and the widths of their ranges, for coordinates that vary independently."""
        joints = [j for j in self.robot.joints if j.q_slice.stop > j.q_slice.start]
        if any(j.type.nv > 1 for j in joints):
            return None
        limits = zip(joints, self.lower, self.upper, strict=True)
        ends = np.array([interval(Coordinates(j.type, j.q_slice, j.v_slice, lower, upper)) for j, lower, upper in limits])
        return ends[:, 0], ends[:, 1] - ends[:, 0]
