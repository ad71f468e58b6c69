"""Environments for Gymnasium: its walking robots and joystick locomotion, many at once.

    import featherweight.environments
    envs = gymnasium.make_vec("featherweight/Ant-v0", num_envs=256)

Ant, HalfCheetah, Hopper, Humanoid and Walker2d follow version 5 of Gymnasium's environments: observations, rewards, start and
end of episodes, and arguments. They run on `featherweight.Simulation` by the contact law of their files, which is MuJoCo's.
Go1Joystick and G1Joystick are a quadruped and a humanoid that follow a joystick, with the rewards of MuJoCo Playground; their
robots come from URDF files, so contacts are rigid. The argument `contact` chooses another law: `contact="rigid"`.
"""

from __future__ import annotations

from ..extras import imports_from_extra

with imports_from_extra("learning", "environments need Gymnasium", "gymnasium"):
    import gymnasium

from .compiled_task import CompiledTask
from .floating_tasks import Ant, Humanoid
from .humanoid_joystick import G1Joystick
from .joystick_tasks import Go1Joystick, JoystickTask
from .own_robots import RobotTask
from .planar_tasks import HalfCheetah, Hopper, Walker2d
from .snapshot import Snapshot
from .task import SnapshotTask, Task
from .vector_environment import TASKS, RobotEnv, RobotVectorEnv, joystick_commands

__all__ = [
    "TASKS", "Ant", "CompiledTask", "G1Joystick", "Go1Joystick", "HalfCheetah", "Hopper", "Humanoid", "JoystickTask",
    "RobotEnv", "RobotTask", "RobotVectorEnv", "Snapshot", "SnapshotTask", "Task", "Walker2d", "joystick_commands",
]  # fmt: skip

for _name in TASKS:
    gymnasium.register(
        id=f"featherweight/{_name}-v0",
        entry_point=f"{__name__}.vector_environment:RobotEnv",
        vector_entry_point=f"{__name__}.vector_environment:RobotVectorEnv",
        max_episode_steps=1000,
        kwargs={"task": _name},
    )
