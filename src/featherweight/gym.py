"""Environments of Gymnasium by their ids: those of `featherweight.environments`, and environments of your own robots.

    import featherweight.gym
    envs = gymnasium.make_vec("featherweight/Humanoid-v0", num_envs=256)

    featherweight.gym.register("me/Dog-v0", "dog.urdf", RobotTask(reward=forward, ends=fallen), base="floating", ground=True)
    envs = gymnasium.make_vec("me/Dog-v0", num_envs=1024, autoreset_mode="SameStep")

`featherweight.environments` describes environments and tasks.
"""

from .extras import imports_from_extra

with imports_from_extra("learning", "featherweight.gym needs Gymnasium", "gymnasium"):
    from .bridges.gymnasium_environments import RobotEnv, RobotTask, RobotVectorEnv, Snapshot, Task, register

__all__ = ["RobotEnv", "RobotTask", "RobotVectorEnv", "Snapshot", "Task", "register"]
