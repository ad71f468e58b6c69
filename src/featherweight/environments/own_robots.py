"""Tasks for the user's own robots: descriptions with all that an environment needs, and functions in place of methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..array_types import Array, Booleans, Matrix, Vector
from ..checks import checked
from ..model.description import Description
from ..model.position_drives import DRIVEN, PD
from ..model.types import ROOT_JOINT, WORLD, Actuator, Configuration, Joint, JointType, Shape, ShapeType
from .snapshot import HOME, Snapshot
from .task import SnapshotTask, Terms

FLOOR = "floor"


@checked
@dataclass(frozen=True)
class RobotTask(SnapshotTask):
    """A task for any robot, defined by functions of `Snapshot`s.

    `reward(before, after, action)` returns the reward (robots,) of a step; actions have shape (robots, nu). `ends(now)` returns
    which episodes terminate, (robots,) bool; by default, none. `observe(now)` returns the observation (robots, numbers); by
    default, qpos and qvel. Define the functions at the top level of a module if other processes need the task.
    """

    xml_file: Any = None
    frame_skip: int = 5
    reset_noise_scale: float = 0.01
    reward: Callable[[Snapshot, Snapshot, Array], Vector] | None = None
    ends: Callable[[Snapshot], Booleans] | None = None
    observe: Callable[[Snapshot], Matrix] | None = None

    def observation(self, now: Snapshot) -> Matrix:
        return super().observation(now) if self.observe is None else np.asarray(self.observe(now), float)

    def rewards(self, before: Snapshot, after: Snapshot, action: Array) -> Terms:
        return {
            "reward": np.zeros(len(after.q)) if self.reward is None else np.asarray(self.reward(before, after, action), float)
        }

    def terminated(self, now: Snapshot) -> Booleans:
        return super().terminated(now) if self.ends is None else np.asarray(self.ends(now), bool)


def furnished(
    description: Description,
    floating: bool,
    floor: bool,
    home: Mapping[str, float | Sequence[float]] | None,
    drives: PD | None = None,
) -> Description:
    """Return the robot with a floating base, a floor at z = 0, a home configuration and position drives, each if requested.

    Position drives replace the file's actuators. A robot without actuators gets a drive at each joint, for which action 1 is
    the joint's effort. Raises ValueError for a part that the file already has, or that is impossible.
    """
    d = description
    if floating:
        d = replace(d, joints=_with_free_flyer(d))
    if floor:
        if any(s.type is ShapeType.PLANE and s.body in (None, WORLD) for s in d.shapes):
            raise ValueError(f"{d.source}: the file has a floor; leave out ground=True")
        d = replace(d, shapes=(*d.shapes, Shape(FLOOR, None, ShapeType.PLANE, ())))
    if home is not None:
        coordinates = tuple((name, tuple(np.atleast_1d(np.asarray(x, float)).tolist())) for name, x in home.items())
        others = tuple(c for c in d.configurations if c.name != HOME)
        d = replace(d, configurations=(*others, Configuration(HOME, coordinates)))
    if drives is not None:
        return replace(d, actuators=drives.actuators(_driven(d)))
    return d if d.actuators else replace(d, actuators=_drives(d))


def _with_free_flyer(d: Description) -> tuple[Joint, ...]:
    children = {j.child for j in d.joints if j.parent not in (None, WORLD)}
    roots = [b.name for b in d.bodies if b.name not in children]
    if len(roots) != 1 or any(j.child in roots and j.type is not JointType.FIXED for j in d.joints):
        got = ", ".join(roots)
        raise ValueError(f'{d.source}: base="floating" needs one root body that is fixed to the world; got {got}')
    flyer = Joint(ROOT_JOINT, JointType.FLOATING, None, roots[0])
    return (flyer, *(j for j in d.joints if j.child != roots[0]))


def _driven(d: Description) -> list[Joint]:
    """Return the independent joints with one degree of freedom."""
    following = {c.joint for c in d.couplings} | set(d.dependent)
    return [j for j in d.joints if j.type in DRIVEN and j.name not in following]


def _drives(d: Description) -> tuple[Actuator, ...]:
    driven = _driven(d)
    if unknown := [j.name for j in driven if not 0.0 < j.effort < math.inf]:
        raise ValueError(
            f"{d.source}: it has no actuators, and joints without an effort: {', '.join(unknown)}. Give description.actuators"
        )
    return tuple(Actuator(j.name, j.name, gear=j.effort, control=(-1.0, 1.0)) for j in driven)
