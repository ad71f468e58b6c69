"""Tests that tasks equal Gymnasium's: observations, rewards and ends are the same functions of states and contact forces."""

from __future__ import annotations

from dataclasses import fields, replace
from inspect import signature
from typing import Any

import gymnasium
import numpy as np
import pytest

from featherweight.environments import TASKS, CompiledTask, RobotEnv, RobotVectorEnv
from featherweight.environments.episodes import CompiledEpisodes

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:ant. its own configuration")

NAMES = ["Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2d"]
ROUNDING: dict[str, Any] = dict(rtol=1e-10, atol=1e-10)  # the same numbers, computed in another order


class Pair:
    """A task, and Gymnasium's environment of the same name."""

    def __init__(self, name: str) -> None:
        task = TASKS[name]()  # type: ignore[call-arg]
        assert isinstance(task, CompiledTask)
        self.task = task
        self.theirs: Any = gymnasium.make(f"{name}-v5").unwrapped
        self.spec = gymnasium.spec(f"{name}-v5")
        self.links = Run(self.task, 1).links

    def states(self, count: int, seed: int, spread: float = 0.3) -> tuple[Any, Any]:
        """Return qpos and qvel near the start; free joints turn far."""
        rng = np.random.default_rng(seed)
        model = self.theirs.model
        qpos = self.theirs.init_qpos + spread * rng.standard_normal((count, model.nq))
        if model.nq > model.nv:
            qpos[:, 3:7] = rng.standard_normal((count, 4))
            qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
        return qpos, 3.0 * rng.standard_normal((count, model.nv))


class Run:
    """Robots with a task, in any state, regardless of limits."""

    def __init__(self, task: CompiledTask, count: int) -> None:
        envs = RobotVectorEnv(task, count)
        envs.reset(seed=0)
        assert isinstance(envs.episodes, CompiledEpisodes)
        self.episodes, self.robots, self.links = envs.episodes, envs.robots, envs.robots.links
        self.arrays = envs.simulation.fleet_arrays

    def put(self, qpos: Any, qvel: Any, control: Any = 0.0) -> None:
        self.arrays.states.q[:], self.arrays.states.v[:] = self.links.order.back(qpos, qvel)
        self.episodes.arrays.control[:] = control

    def feel(self, env: Any) -> None:
        """Set the contact forces to those of Gymnasium's environment: on the second body, and the opposite on the first,
        except the world.
        """
        model, data, felt = env.model, env.data, self.arrays.contacts
        felt.counts[:] = data.ncon
        pairs = np.array([[model.geom_bodyid[g] - 1 for g in (c.geom2, c.geom1)] for c in data.contact], np.int64)
        self.robots.touching_links[: len(pairs)] = pairs
        for i in range(data.ncon):
            contact, wrench = data.contact[i], np.zeros(6)
            mujoco.mj_contactForce(model, data, i, wrench)
            felt.candidate[:, i], felt.point[:, i] = i, contact.pos
            felt.force[:, i] = self.links.timestep * contact.frame.reshape(3, 3).T @ wrench[:3]


@pytest.fixture(scope="module", params=NAMES)
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair(request.param)


def test_links_are_their_bodies(pair: Pair) -> None:
    model = pair.theirs.model
    names = [model.body(i).name or name for i, name in enumerate(pair.links.names, 1)]
    assert pair.links.names == names and len(names) == model.nbody - 1
    np.testing.assert_allclose([pair.links._inertia[name].mass for name in pair.links.names], model.body_mass[1:], **ROUNDING)
    np.testing.assert_allclose(pair.links.home, model.qpos0, **ROUNDING)


def test_a_task_has_their_numbers(pair: Pair) -> None:
    """Check steps, and all arguments that both have."""
    assert pair.links.timestep == pair.theirs.model.opt.timestep
    assert pair.task.frame_skip == pair.theirs.frame_skip
    theirs = signature(type(pair.theirs).__init__).parameters
    own = {f.name: getattr(pair.task, f.name) for f in fields(pair.task)}
    same = {name: theirs[name].default for name in own if name in theirs}
    assert {name: own[name] for name in same} == same
    assert own.keys() == same.keys()
    assert theirs.keys() - own.keys() <= {"self", "kwargs", "default_camera_config", "main_body"}


def test_observations_are_theirs(pair: Pair) -> None:
    qpos, qvel = pair.states(5, seed=1)
    control = np.random.default_rng(2).uniform(-1.5, 1.5, (5, pair.theirs.model.nu))  # also beyond the range
    seen = []
    for q, v, u in zip(qpos, qvel, control, strict=True):
        pair.theirs.data.ctrl[:] = u
        pair.theirs.set_state(q, v)
        seen.append(pair.theirs._get_obs())
    run = Run(pair.task, 5)
    run.put(qpos, qvel, control)
    np.testing.assert_allclose(run.episodes.observe(), seen, **ROUNDING)


def test_what_is_left_out_or_put_in_is_as_theirs(pair: Pair) -> None:
    """Check each argument of Gymnasium's environment with the opposite value."""
    flags = {f.name: not f.default for f in fields(pair.task) if f.name.startswith(("exclude_", "include_"))}
    theirs: Any = gymnasium.make(pair.spec, **flags).unwrapped
    qpos, qvel = pair.states(1, seed=6)
    theirs.set_state(qpos[0], qvel[0])
    run = Run(replace(pair.task, **flags), 1)
    run.put(qpos, qvel)
    np.testing.assert_allclose(run.episodes.observe()[0], theirs._get_obs(), **ROUNDING)


def test_contact_forces_are_theirs(pair: Pair) -> None:
    """Check forces by body about the centre of mass, from Gymnasium's contacts after the robot has fallen."""
    env = pair.theirs
    env.reset(seed=0)
    for _ in range(60):
        env.data.ctrl[:] = 0.0
        mujoco.mj_step(env.model, env.data)
        if env.data.ncon > 2:
            break
    else:
        qpos = env.data.qpos.copy()
        qpos[1 if env.model.nq == env.model.nv else 2] -= 0.4
        env.set_state(qpos, env.data.qvel.copy())
    mujoco.mj_forward(env.model, env.data)
    mujoco.mj_rnePostConstraint(env.model, env.data)
    assert env.data.ncon > 0 and np.abs(env.data.cfrc_ext).max() > 1.0
    run = Run(pair.task, 1)
    run.episodes.act(env.data.ctrl[None])
    run.put(env.data.qpos[None], env.data.qvel[None], env.data.ctrl)
    run.feel(env)
    now = run.robots.snapshot(forces=True)
    np.testing.assert_allclose(now.cfrc_ext[0], env.data.cfrc_ext[1:], rtol=1e-8, atol=1e-8)
    moved = run.episodes.arrive()
    np.testing.assert_allclose(moved.observation[0], env._get_obs(), rtol=1e-8, atol=1e-8)
    if "reward_contact" in pair.task.terms:
        cost = -moved.info.of(0)["reward_contact"]
        assert cost == pytest.approx(env.contact_cost, rel=1e-8) and cost > 0.0


def test_rewards_and_ends_are_theirs(pair: Pair) -> None:
    """Check pairs of states, some of them healthy."""
    env, task = pair.theirs, pair.task
    start, stop = pair.states(40, seed=3, spread=0.15), pair.states(40, seed=4, spread=0.15)
    stop[0][30:, travelled(pair)] -= 0.5  # fallen
    actions = np.random.default_rng(5).uniform(-1.0, 1.0, (40, env.model.nu))
    run = Run(task, 40)
    run.put(*start)
    run.episodes.act(actions)
    run.put(*stop)
    moved = run.episodes.arrive()
    rewards, ends, told = moved.reward, moved.terminated, moved.info.arrays()
    for i, action in enumerate(actions):
        env.set_state(start[0][i], start[1][i])
        x0 = place(pair)
        env.set_state(stop[0][i], stop[1][i])
        env.data.ctrl[:], env.data.cfrc_ext[:] = action, 0.0
        velocity = (place(pair) - x0) / env.dt
        reward, parts = env._get_rew(velocity[0], action)
        assert {name: told[name][i] for name in task.terms} == pytest.approx(parts, rel=1e-9, abs=1e-9)
        assert rewards[i] == pytest.approx(reward, rel=1e-9, abs=1e-9)
        assert ends[i] == (hasattr(env, "is_healthy") and not env.is_healthy)
        reset = {name: x for name, x in env._get_reset_info().items() if not name.startswith("tendon")}
        assert {name: told[name][i] for name in reset} == pytest.approx(reset, rel=1e-9)
        assert told["x_velocity"][i] == pytest.approx(velocity[0], rel=1e-9)
    assert not hasattr(env, "is_healthy") or 0 < ends.sum() < 40


def travelled(pair: Pair) -> int:
    """Return the indices of the position on the ground."""
    return 1 if pair.theirs.model.nq == pair.theirs.model.nv else 2


def place(pair: Pair) -> Any:
    """Return the position that Gymnasium's environment reports at a state that was just set."""
    env = pair.theirs
    if travelled(pair) == 1:
        return env.data.qpos[:1].copy()
    if type(env).__name__ == "AntEnv":
        return env.data.body("torso").xpos[:2].copy()
    mass = env.model.body_mass[:, None]
    return ((mass * env.data.xipos).sum(axis=0) / mass.sum())[:2]


def test_episodes_begin_around_the_same_state_as_widely(pair: Pair) -> None:
    from featherweight.environments.reset_noise import ResetNoise

    count, scale, model = 4000, pair.task.reset_noise_scale, pair.theirs.model
    noise = ResetNoise(np.arange(count))
    qpos, qvel = pair.task.beginning(pair.links.home, model.nv, noise, np.arange(count))
    spread = qpos - pair.theirs.init_qpos
    assert np.abs(spread).max() <= scale and np.abs(spread.mean(axis=0)).max() < 0.05 * scale
    # deviation of uniform numbers; 4 standard errors
    np.testing.assert_allclose(spread.std(axis=0), scale / np.sqrt(3.0), rtol=0.05)
    expected = scale * (1.0 if pair.task.normal_velocities else 1.0 / np.sqrt(3.0))
    np.testing.assert_allclose(qvel.std(axis=0), expected, rtol=0.05)
    assert (np.abs(qvel).max() > scale) == pair.task.normal_velocities
    pair.theirs.reset(seed=1)
    assert (np.abs(pair.theirs.data.qvel) <= scale).all() or pair.task.normal_velocities


STEPS = {"Hopper": (20, 1e-7), "Walker2d": (20, 1e-7), "HalfCheetah": (20, 1e-7), "Ant": (5, 1e-2), "Humanoid": (10, 1e-2)}


@pytest.mark.parametrize("name", STEPS)
def test_motions_by_the_integrator_of_the_file_are_theirs(name: str) -> None:
    """Check steps under random actions with contacts, and that rigid contacts move otherwise.

    Rewards of the Ant and the Humanoid read positions of bodies, which MuJoCo computes in the last stage of RK4, not after it.
    """
    theirs: Any = gymnasium.make(f"{name}-v5").unwrapped
    o = theirs.model.opt
    o.tolerance, o.iterations, o.ls_iterations, o.ls_tolerance = 0.0, 300, 200, 1e-10
    ours, rigid = (RobotEnv(name, integrator=None, contact=law) for law in ("file", "rigid"))
    for env in (theirs, ours, rigid):
        env.reset(seed=0)
    for env in (ours, rigid):
        env.set_state(theirs.data.qpos.copy(), theirs.data.qvel.copy())
    (steps, near), rng = STEPS[name], np.random.default_rng(1)
    for _ in range(steps):
        action = rng.uniform(theirs.action_space.low, theirs.action_space.high)
        (_, reward, *ended), (_, expected, *ends) = ours.step(action), theirs.step(action)
        rigid.step(action)
        np.testing.assert_allclose(ours.vector.robots.snapshot().qpos[0], theirs.data.qpos, rtol=0, atol=1e-9)
        assert reward == pytest.approx(expected, abs=near) and ended[0] == ends[0]
    assert np.abs(rigid.vector.robots.snapshot().qpos[0] - theirs.data.qpos).max() > 1e-2
