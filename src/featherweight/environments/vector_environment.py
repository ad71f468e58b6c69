"""Many environments at once for Gymnasium: arrays with a row for each environment, and no loop over them; and single ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from inspect import signature
from typing import Annotated, Any

import numpy as np
from gymnasium import Env
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..array_types import Array, Booleans, Integers, Matrix, Vector
from ..checks import (
    CHECKED_LATER,
    NAME,
    NOTHING,
    Kind,
    PixelSize,
    PositiveCount,
    Refused,
    argument,
    array_of,
    checked,
    dict_of,
    either,
    list_of,
    one_of,
    real_array,
    shown,
    whole,
)
from ..engine.exclusive import Use, exclusive
from ..names import suggestion
from ..simulation import Simulation
from ..simulation.simulation_options import FILE, LAWS
from .compiled_task import CompiledTask
from .episodes import CompiledEpisodes, SnapshotEpisodes
from .floating_tasks import Ant, Humanoid
from .humanoid_joystick import G1Joystick
from .joystick_tasks import Go1Joystick, JoystickTask
from .joystick_text import COMMANDS
from .parallel_robots import EVERY, ParallelRobots
from .planar_tasks import HalfCheetah, Hopper, Walker2d
from .reset_noise import ResetNoise
from .task import Moved, SnapshotTask, Task, Terms

Step = tuple[Matrix, Vector, Booleans, Booleans, dict[str, Any]]

RENDER_MODES = ["rgb_array"]
TASKS: dict[str, type[Task]] = {
    task.__name__: task for task in (Ant, G1Joystick, Go1Joystick, HalfCheetah, Hopper, Humanoid, Walker2d)
}


AT_LEAST_ONE = whole(1).worded("at least 1, a whole number")
SEEDS = either([whole(0), list_of(either([whole(0), NOTHING])), NOTHING]).worded(
    "a whole number of at least 0, such a number or None for each environment, or None"
)
ONE_SEED = either([whole(0), NOTHING])
OPTIONS = either([dict_of(NAME, None), NOTHING]).worded("a dict, such as {'reset_mask': ...}, or None")
RENDER_MODE = one_of((None, *RENDER_MODES)).worded("None or 'rgb_array'")


def _mode(x: Any) -> AutoresetMode:
    try:
        return AutoresetMode(x)
    except ValueError:
        raise Refused(suggestion(x, [mode.value for mode in AutoresetMode]) if isinstance(x, str) else "") from None


MODE = Kind(f"one of {', '.join(mode.value for mode in AutoresetMode)}", _mode, frozenset({AutoresetMode}))


class RobotVectorEnv(VectorEnv[Matrix, Matrix, Array]):
    """`num_envs` robots with the same task, a `Task` or a key of TASKS, each with its own episodes.

        envs = gymnasium.make_vec("featherweight/Hopper-v0", num_envs=256, reset_noise_scale=0.01)

    Episodes end after `max_episode_steps` at the latest. `autoreset_mode` says how the next episode begins, as Gymnasium
    defines it: "NextStep" (the step after the end begins the next episode and ignores the action), "SameStep"
    (`info["final_obs"]` and `["final_info"]` belong to the end of the episode, as arrays with a row for each environment) or
    "Disabled" (call `reset` with a "reset_mask"). An episode also terminates if the simulation fails;
    `info["simulation_failed"]` marks these environments.

    `integrator`, `threads` and `contact`, the name of a contact law, are arguments of `Simulation`; with `integrator=None`, the
    file chooses the integrator. With `render_mode` "rgb_array", `render` returns pictures of `size` (width, height), optionally
    through the camera `camera_name` of the robot's file. All other keywords replace fields of the task. Environment i with seed
    s has the same episodes as a single environment with seed s + i. Raises ValueError for invalid arguments. A call while
    another thread is in one raises RuntimeError: give each thread environments of its own.
    """

    @checked
    def __init__(
        self,
        task: Annotated[str | Task, CHECKED_LATER] = "Hopper",
        num_envs: Annotated[int, AT_LEAST_ONE] = 1,
        *,
        max_episode_steps: Annotated[int, AT_LEAST_ONE] | None = None,
        autoreset_mode: Annotated[str | AutoresetMode, MODE] = AutoresetMode.NEXT_STEP,
        integrator: Annotated[str | None, CHECKED_LATER] = "semi-implicit",
        contact: Annotated[str, one_of(LAWS)] = FILE,
        threads: Annotated[int | None, CHECKED_LATER] = None,
        render_mode: Annotated[str | None, RENDER_MODE] = None,
        size: PixelSize = (480, 480),
        camera_name: str | None = None,
        **parameters: Any,
    ) -> None:
        self.task, self.num_envs, self.max_episode_steps = the_task(task, parameters), num_envs, max_episode_steps
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self._use = Use(f"the environment {type(self.task).__name__}", "make one for each thread")
        self.robots = ParallelRobots(self.task.read(), num_envs, integrator, contact, threads)
        self.dt = self.task.frame_skip * self.simulation.dt  # [s] length of an environment step
        self.render_mode, self._size, self._camera = render_mode, size, camera_name
        if camera_name is not None:
            self.simulation.robot.camera_placement(camera_name)  # raises an error for a camera that the robot does not have
        self.metadata = {
            "render_modes": RENDER_MODES,
            "render_fps": round(1.0 / self.dt),
            "autoreset_mode": self.autoreset_mode,
        }
        self.episodes = episodes_of(self.task, self.robots)
        seen = self.episodes.observe().shape[1]
        self.single_observation_space = Box(-np.inf, np.inf, (seen,), np.float64)
        self.single_action_space = Box(*self.task.action_bounds(self.robots.links), dtype=np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._shape = self.action_space.shape
        self._noise: ResetNoise | None = None
        self._elapsed = np.zeros(num_envs, np.int64)
        self._ended = np.zeros(num_envs, bool)

    @property
    def simulation(self) -> Simulation:
        """The simulation that moves the robots, for reading: `simulation.q`, `simulation.view()`."""
        return self.robots.simulation

    @exclusive
    def render(self) -> tuple[Array, ...] | None:
        """Return a picture (height, width, 3) of each robot, with `render_mode` "rgb_array"; see `Simulation.render`."""
        if self.render_mode is None:
            return None
        return tuple(self.simulation.render(*self._size, k, self._camera) for k in range(self.num_envs))

    # episodes

    @exclusive
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Matrix, dict[str, Any]]:
        """Begin all episodes, or those of `options["reset_mask"]` (num_envs,); return all observations, and `info`.

        `seed` is the seed of the first environment, and the others get the numbers that follow; or give a seed for each.
        """
        which = np.flatnonzero(self._mask(options))
        self._seed(seed, which)
        if len(which) == self.num_envs:
            assert self._noise is not None
            self.task.vary(self.simulation, self._noise)
        info = self._begin(which)
        return self.episodes.observe(), info

    def _mask(self, options: dict[str, Any] | None) -> Booleans:
        argument("reset: options", options, OPTIONS)
        if options is None or "reset_mask" not in options:
            return np.ones(self.num_envs, bool)
        mask = options["reset_mask"]
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(
                f"options['reset_mask'] must be {self.num_envs} booleans in an array, one of them true; got {mask!r}"
            )
        return mask

    def _seed(self, seed: int | Sequence[int | None] | None, which: Integers) -> None:
        """Set the seeds of environments (k,). An environment without a seed keeps its own, or gets one from the system."""
        argument("reset: seed", seed, SEEDS)
        first = seed if isinstance(seed, int | np.integer) else None
        super().reset(seed=None if first is None else int(first))
        if self._noise is None:
            self._noise = ResetNoise(self.np_random.integers(2**63, size=self.num_envs))
        if seed is None:
            return
        seeds = np.arange(self.num_envs) + first if first is not None else np.array(seed, dtype=object)
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed must be one number, or {self.num_envs} of them; got {len(seeds)}")
        given = which[seeds[which] != None]  # noqa: E711  # by element
        self._noise.seed(given, seeds[given])

    @exclusive
    def set_state(self, qpos: Matrix, qvel: Matrix) -> None:
        """Set the states to qpos (num_envs, nq) and qvel (num_envs, nv), in MuJoCo's order. Episodes continue."""
        nq, nv = self.robots.links.robot.nq, self.robots.links.robot.nv
        states = array_of("set_state: qpos", qpos, self.num_envs, nq), array_of("set_state: qvel", qvel, self.num_envs, nv)
        self.robots.begin(np.arange(self.num_envs), *states)

    def _begin(self, which: Integers) -> dict[str, Any]:
        """Begin the next episodes of environments (k,), and return their entries of `info`."""
        assert self._noise is not None
        entries = self.episodes.begin(which, self._noise)
        self._elapsed[which], self._ended[which] = 0, False
        return self._info(entries, which)

    # steps

    @exclusive
    def step(self, actions: Array) -> Step:
        """Take a step; return observations (num_envs, ...), rewards, terminations and truncations (num_envs,), and `info`.

        Gymnasium defines these results. Actuators clip actions to their range; costs of controls do not. Raises ValueError for
        actions of the wrong shape and for non-finite actions.
        """
        observation, reward, terminated, info = self.advance(real_numbers("actions", actions))
        entries = info.arrays()
        self._elapsed += 1
        truncated = self._elapsed >= (self.max_episode_steps or np.inf)
        between = None
        if self.autoreset_mode is AutoresetMode.NEXT_STEP and np.count_nonzero(self._ended):
            between, going_on = self._ended, ~self._ended
            reward, terminated, truncated = np.where(between, 0.0, reward), terminated & going_on, truncated & going_on
        self._ended = terminated | truncated
        beginning = self._ended if self.autoreset_mode is AutoresetMode.SAME_STEP and np.count_nonzero(self._ended) else between
        if beginning is None:
            return observation, reward, terminated, truncated, self._info(entries)
        return observation, reward, terminated, truncated, self._with_resets(observation, entries, beginning.copy())

    @exclusive
    def advance(self, actions: Array) -> Moved:
        """Take a step of all robots under an array of actions, as `step` does, without ending or beginning episodes."""
        if self._noise is None:
            raise ValueError("call reset() before step()")
        moved = self.episodes.advance(actions) if actions.shape == self._shape else None
        if moved is None:
            raise ValueError(f"actions must be finite numbers of shape {self._shape}; got {shown(actions)}")
        return moved

    def _with_resets(self, observation: Matrix, entries: Terms, beginning: Booleans) -> dict[str, Any]:
        """Begin the episodes that are due, write their first observations, and return `info`."""
        which, others = np.flatnonzero(beginning), np.flatnonzero(~beginning)
        info = self._info({name: x[others] for name, x in entries.items()}, others)
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            final = self._info({name: x[which] for name, x in entries.items()}, which)
            info |= {"final_obs": observation.copy(), "_final_obs": beginning}
            info |= {"final_info": final, "_final_info": beginning.copy()}
        for name, x in self._begin(which).items():
            info[name] = np.where(beginning, x, info[name])
        observation[which] = self.episodes.observe(which)
        return info

    def _info(self, terms: Terms, which: Array | slice = EVERY) -> dict[str, Any]:
        """Return `info` in Gymnasium's form: arrays over all environments by name, and by "_name" which have a value."""
        has = np.zeros(self.num_envs, bool)
        has[which] = True
        info: dict[str, Any] = {}
        for name, x in terms.items():
            if which is EVERY:
                values = x.copy()
            else:
                values = np.zeros(self.num_envs, x.dtype)
                values[which] = x
            info[name], info[f"_{name}"] = values, has.copy()
        return info


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


def real_numbers(what: str, x: object) -> Array:
    """Return an array of real numbers of any type. Raises ValueError, which begins with `what`, for other objects."""
    return x if type(x) is np.ndarray and x.dtype.kind in "fiu" else real_array(what, x)


def joystick_commands(envs: RobotVectorEnv) -> Matrix:
    """Return the commands (robots, 3) of a joystick task: forward, sideways [m/s] and turn [rad/s]. You may write to the array.

    Observations and rewards use a new command from the next step on. Raises TypeError for environments with another task.
    """
    if not isinstance(envs.task, JoystickTask) or not isinstance(envs.episodes, CompiledEpisodes):
        raise TypeError(f"only joystick tasks have commands; got environments with {type(envs.task).__name__}")
    first = len(envs.robots.links.robot.controls)
    return envs.episodes.arrays.memory[:, first : first + COMMANDS]


def episodes_of(task: Task, robots: ParallelRobots) -> CompiledEpisodes | SnapshotEpisodes:
    """Return the episodes that run the task. Raises TypeError for a task of neither kind."""
    if isinstance(task, CompiledTask):
        return CompiledEpisodes(task, robots)
    if isinstance(task, SnapshotTask):
        return SnapshotEpisodes(task, robots)
    raise TypeError(f"task must be a SnapshotTask, a RobotTask or a CompiledTask; got {type(task).__name__}")


def the_task(task: str | Task, parameters: dict[str, Any]) -> Task:
    """Return the task with some fields replaced. Raises ValueError for an unknown name, and TypeError for unknown fields."""
    if not isinstance(task, Task):
        argument("task", task, one_of(TASKS).worded(f"a Task, or one of {', '.join(TASKS)}"))
    kind = TASKS[task] if isinstance(task, str) else type(task)
    names = [f.name for f in fields(kind)]
    if unknown := [name for name in parameters if name not in names]:
        *own, _ = signature(RobotVectorEnv).parameters
        meant = suggestion(unknown[0], (*names, *own))
        raise TypeError(f"{kind.__name__} has no {', '.join(unknown)}; it has {', '.join(names)}{meant}")
    given = {} if isinstance(task, str) else {name: getattr(task, name) for name in names}
    return kind(**{**given, **parameters})
