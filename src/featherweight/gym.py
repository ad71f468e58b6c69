"""Environments of Gymnasium's by their ids: ours, and those of robots of one's own.

    import featherweight.gym
    envs = gymnasium.make_vec("featherweight/Humanoid-v0", num_envs=256)

    featherweight.gym.register("me/Dog-v0", "dog.urdf", RobotTask(reward=forward, ends=fallen), floating=True, floor=True)
    envs = gymnasium.make_vec("me/Dog-v0", num_envs=1024, autoreset_mode="SameStep")

See `featherweight.environments` for what environments are, and what tasks may say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from .extras import install_command

try:
    import gymnasium
except ModuleNotFoundError as error:
    if error.name != "gymnasium":
        raise
    raise ImportError(f"featherweight.gym needs Gymnasium: {install_command('learning')}") from error

from .environments import RobotEnv, RobotTask, RobotVectorEnv, Snapshot, Task
from .environments.own_robots import furnished
from .model.description import Description
from .model.position_drives import PD
from .robot.build import read

__all__ = ["RobotEnv", "RobotTask", "RobotVectorEnv", "Snapshot", "Task", "register"]


def register(
    id: str,
    robot: str | os.PathLike[str] | Description,
    task: Task,
    *,
    floating: bool = False,
    floor: bool = False,
    home: Mapping[str, float | Sequence[float]] | None = None,
    drives: PD | None = None,
    max_episode_steps: int | None = 1000,
) -> None:
    """Give an environment an id, for `gymnasium.make` (one robot) and `gymnasium.make_vec` (many, without a loop over them).

    `robot` is a file, or a description (`featherweight.read`). `floating` lets its root move freely, and `floor` puts a floor
    at z = 0, which its collision shapes touch. Episodes begin near `home`, coordinates by joint ("root_joint" is the free
    root's: x, y, z and a quaternion xyzw), or near the file's configuration; a free root without a place there begins where
    no shape is in the floor. Actions are the controls of the file's actuators; of a file without, they are parts -1 to 1 of the
    joints' efforts. With `drives`, a `featherweight.PD`, actions are target positions of the joints. Other arguments of `make`
    are those of `RobotVectorEnv`
    and fields of the task.

    Raises ValueError where the robot has a floor or moves freely already, or a joint has neither actuator nor effort; and as
    `featherweight.read` does.
    """
    if not isinstance(robot, str | os.PathLike | Description):
        raise TypeError(f"robot must be a file or a description (featherweight.read); got {type(robot).__name__}")
    description = robot if isinstance(robot, Description) else read(robot)
    description = furnished(description, floating, floor, home, drives)
    gymnasium.register(
        id=id,
        entry_point=RobotEnv,
        vector_entry_point=RobotVectorEnv,
        max_episode_steps=max_episode_steps,
        kwargs={"task": replace(task, xml_file=description)},
    )
