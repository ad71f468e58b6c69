"""Random configurations within the limits of joints."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...model.configuration import Coordinates, interval
from ...model.types import JointType
from ..robot import Robot
from ..system import System

Array = np.ndarray[Any, np.dtype[Any]]
Seed = int | np.random.Generator

STREAM = tuple(b"IK")  # of a seed: `random_configuration` has another, so that no search begins where a target was drawn


def generator_of(seed: Seed) -> np.random.Generator:
    """The generator itself, or one for the seed."""
    if isinstance(seed, (int, np.integer)):
        return np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=STREAM))
    return np.random.default_rng(seed)


class Draws:
    """Random configurations of a robot within limits; its loops are open, which an iteration closes sooner than `close`."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.lower, self.upper = robot.lower, robot.upper
        self._anywhere = [j.q_slice for j in robot.joints if j.type in (JointType.FLOATING, JointType.PLANAR)]

    def within(self, q: Array) -> Array:
        """q with its coordinates put to the limits that they pass."""
        return np.minimum(np.maximum(q, self.lower), self.upper)

    def __call__(self, rng: np.random.Generator, count: int, like: Array | None = None) -> Array:
        """So many (count, nq); floating and planar joints, of which no limits say where they may be, as in `like`."""
        if self._box is not None:
            low, width = self._box
            q: Array = low + width * rng.random((count, len(low)))
        else:
            q = self.within(System.random_configuration(self.robot, rng, count))
        if like is not None:
            for place in self._anywhere:
                q[:, place] = like[:, place]
        return q

    @cached_property
    def _box(self) -> tuple[Array, Array] | None:
        """Least coordinates and the widths of their ranges, where each may be anywhere on its own."""
        joints = [j for j in self.robot.joints if j.q_slice.stop > j.q_slice.start]
        if any(j.type.nv > 1 for j in joints):
            return None
        limits = zip(joints, self.lower, self.upper, strict=True)
        ends = np.array([interval(Coordinates(j.type, j.q_slice, j.v_slice, lower, upper)) for j, lower, upper in limits])
        return ends[:, 0], ends[:, 1] - ends[:, 0]
