"""Environments of Gymnasium for robots of users. The environments of the library register themselves when they are imported."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import gymnasium

from ..checks import CHECKED_LATER, PositiveCount, checked, one_of
from ..environments import RobotEnv, RobotTask, RobotVectorEnv, Snapshot, Task
from ..environments.own_robots import furnished
from ..model.description import Description
from ..model.position_drives import PD
from ..robot.build import read

BASE = one_of(("fixed", "floating"))

__all__ = ["RobotEnv", "RobotTask", "RobotVectorEnv", "Snapshot", "Task", "register"]


@checked
def register(
    id: str,
    robot: Annotated[str | os.PathLike[str] | Description, CHECKED_LATER],
    task: Task,
    *,
    base: Annotated[str, BASE] = "fixed",
    ground: bool = False,
    q: Mapping[str, float | Sequence[float]] | None = None,
    actuators: PD | None = None,
    max_episode_steps: PositiveCount | None = 1000,
) -> None:
    """Register an environment, for `gymnasium.make` (one robot) and `gymnasium.make_vec` (many robots in one batch).

    `robot` is a file, or a description (`featherweight.read`). With base="floating", its root moves freely; `ground` adds a
    floor at z = 0 that its collision shapes touch.

    Episodes start near `q`, coordinates by joint ("root_joint" is the free root: x, y, z and a quaternion xyzw), or near the
    configuration of the file. A free root without coordinates in `q` starts where no shape is in the floor.

    Actions are the controls of the actuators of the file. If the file has none, actions from -1 to 1 are fractions of the
    joints' efforts. With `actuators`, a `featherweight.PD`, actions are target positions of the joints. Other arguments of
    `make` are those of `RobotVectorEnv` and fields of the task.

    Raises TypeError if `robot` is neither a file nor a description; ValueError if the robot already has a floor or moves
    freely, or if a joint has neither an actuator nor an effort; and the errors of `featherweight.read`.
    """
    if not isinstance(robot, str | os.PathLike | Description):
        raise TypeError(f"robot must be a file or a description (featherweight.read); got {type(robot).__name__}")
    description = robot if isinstance(robot, Description) else read(robot)
    description = furnished(description, base == "floating", ground, q, actuators)
    gymnasium.register(
        id=id,
        entry_point=RobotEnv,
        vector_entry_point=RobotVectorEnv,
        max_episode_steps=max_episode_steps,
        kwargs={"task": replace(task, xml_file=description)},
    )
