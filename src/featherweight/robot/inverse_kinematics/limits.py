"""Limits of joints, as rows of the tree and as coordinates have them, and random configurations within them."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from ...model.configuration import Coordinates, interval
from ...model.types import JointType
from ..closed import ClosedRobot
from ..robot import Robot
from ..system import System

Array = np.ndarray[Any, np.dtype[Any]]
Bounds = tuple[tuple[float, ...], tuple[float, ...]]


def row_limits(robot: Robot) -> Bounds:
    """Lower and upper limits of the tree's rows; infinite ones for joints of several degrees of freedom.

    A joint that others follow in proportion keeps their limits, too.
    """
    lower, upper = [-math.inf] * robot.model.nv, [math.inf] * robot.model.nv
    for j in robot.model.joints:
        if j.type.nv == 1:
            lower[j.v_slice.start], upper[j.v_slice.start] = j.lower, j.upper
    for f in _followers(robot):
        if len(f.terms) != 1:
            continue
        [(leader, (slope, *curvature))] = f.terms
        if slope != 0.0 and not curvature:
            ends = sorted(((lower[f.row] - f.offset) / slope, (upper[f.row] - f.offset) / slope))
            lower[leader], upper[leader] = max(lower[leader], ends[0]), min(upper[leader], ends[1])
    return tuple(lower), tuple(upper)


def _followers(robot: Robot) -> list[Any]:
    """Those that follow others first, so that limits are handed on to the first of a chain."""
    if not isinstance(robot, ClosedRobot):
        return []
    return [f for cluster in robot.mechanism.clusters for f in reversed(cluster.followers)]


def coordinate_limits(robot: Robot) -> tuple[Array, Array]:
    """Lower and upper limits (nq) of the coordinates of q."""
    by_row = row_limits(robot)
    lower, upper = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
    for j in robot.joints:
        row = robot.model.joints[j.index].v_slice.start
        if j.type.nv == 1:
            lower[j.q_slice], upper[j.q_slice] = by_row[0][row], by_row[1][row]
    return lower, upper


class Draws:
    """Random configurations of a robot within limits; its loops are open, which an iteration closes sooner than `close`."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.lower, self.upper = coordinate_limits(robot)
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
