"""A single environment for Gymnasium: the first of a vector of one."""

from __future__ import annotations

from typing import Annotated, Any

from gymnasium import Env
from gymnasium.vector import AutoresetMode

from ..array_types import Array, Vector
from ..checks import CHECKED_LATER, NOTHING, PositiveCount, argument, checked, either, real_array, whole
from .task import Task
from .vector_environment import OPTIONS, RENDER_MODE, RENDER_MODES, RobotVectorEnv, real_numbers

ONE_SEED = either([whole(0), NOTHING])


class RobotEnv(Env[Vector, Vector]):
    """A single robot with a task, a `gymnasium.Env`.

    Its arguments are those of `RobotVectorEnv`, except for those of episodes: `gymnasium.make` ends episodes. With
    `render_mode` "rgb_array", `render` returns a picture (height, width, 3); see `Simulation.render`.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES}  # noqa: RUF012  # as Gymnasium declares it

    @checked
    def __init__(
        self,
        task: Annotated[str | Task, CHECKED_LATER] = "Hopper",
        render_mode: Annotated[str | None, RENDER_MODE] = None,
        width: PositiveCount = 480,
        height: PositiveCount = 480,
        **parameters: Any,
    ) -> None:
        how: dict[str, Any] = {"render_mode": render_mode, "size": (width, height), **parameters}
        self.vector = RobotVectorEnv(task, 1, autoreset_mode=AutoresetMode.DISABLED, **how)
        self.render_mode = render_mode
        self.observation_space = self.vector.single_observation_space
        self.action_space = self.vector.single_action_space
        self.metadata = {**type(self).metadata, "render_fps": self.vector.metadata["render_fps"]}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Vector, dict[str, Any]]:
        """Begin an episode, and return its first observation and `info`."""
        argument("reset: seed", seed, ONE_SEED)
        argument("reset: options", options, OPTIONS)
        super().reset(seed=seed)
        observation, info = self.vector.reset(seed=seed)
        return observation[0], {name: x[0] for name, x in info.items() if not name.startswith("_")}

    def step(self, action: Array) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """Take a step; return observation, reward, whether the episode has terminated, False, and `info`."""
        observation, reward, terminated, info = self.vector.advance(real_numbers("action", action)[None])
        return observation[0], reward.item(), terminated.item(), False, info.of(0)

    def render(self) -> Array | None:
        """Return a picture of the current state, with `render_mode` "rgb_array"; otherwise None."""
        pictures = self.vector.render()
        return None if pictures is None else pictures[0]

    def set_state(self, qpos: Vector, qvel: Vector) -> None:
        """Set the state to qpos (nq,) and qvel (nv,), in MuJoCo's order."""
        self.vector.set_state(real_array("set_state: qpos", qpos)[None], real_array("set_state: qvel", qvel)[None])
