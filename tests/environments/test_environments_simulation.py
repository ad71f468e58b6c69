"""Tests of the environments through Gymnasium's interface: single environments and vectors, which must agree."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import NormalizeObservation, RecordEpisodeStatistics

from engine.used import REFUSED, used_by_another_thread
from featherweight.environments import TASKS, Hopper, RobotEnv, RobotVectorEnv, Snapshot, SnapshotTask

HOPPER = "featherweight/Hopper-v0"


def test_featherweight_does_not_import_gymnasium() -> None:
    code = "import sys, featherweight as f; f.Simulation; sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", [name for name in TASKS if f"{name}-v5" in gymnasium.registry])
def test_environments_are_registered_with_spaces_of_gymnasium(name: str) -> None:
    spec, theirs = gymnasium.spec(f"featherweight/{name}-v0"), gymnasium.spec(f"{name}-v5")
    assert spec.max_episode_steps == theirs.max_episode_steps
    assert spec.entry_point == "featherweight.environments.vector_environment:RobotEnv"
    assert spec.vector_entry_point == "featherweight.environments.vector_environment:RobotVectorEnv"


@pytest.mark.filterwarnings("ignore:.*infinity.*")
def test_gymnasium_finds_nothing_wrong_with_one() -> None:
    env = gymnasium.make(HOPPER)
    assert isinstance(env.unwrapped, RobotEnv)
    theirs = gymnasium.make("Hopper-v5")
    assert env.observation_space == theirs.observation_space and env.action_space == theirs.action_space
    check_env(env.unwrapped)  # draws a picture, too
    with pytest.raises(ValueError, match="rgb_array"):
        RobotEnv("Hopper", render_mode="human")


def test_actions_are_real_numbers_of_any_type() -> None:
    env, found = RobotEnv("Hopper"), []
    for action in ([1, 0, -1], np.array([1, 0, -1]), np.array([1.0, 0.0, -1.0], np.float32), np.array([1.0, 0.0, -1.0])):
        env.reset(seed=0)
        found.append(env.step(action))  # type: ignore[arg-type]
    for other in found[1:]:
        np.testing.assert_array_equal(other[0], found[0][0])
        assert other[1:] == found[0][1:]
    for wrong in ("abc", [[1.0], [2.0, 3.0]]):
        with pytest.raises(ValueError, match=r"^action must be an array of real numbers"):
            env.step(wrong)  # type: ignore[arg-type]


def test_a_second_thread_needs_an_environment_of_its_own() -> None:
    envs = RobotVectorEnv("Hopper", 2)
    envs.reset(seed=0)
    action, q, v = np.zeros((2, 3)), np.zeros((2, 6)), np.zeros((2, 6))
    with used_by_another_thread(envs):
        for call in (lambda: envs.step(action), lambda: envs.reset(), lambda: envs.set_state(q, v)):
            with pytest.raises(RuntimeError, match=f"^the environment Hopper {REFUSED}"):
                call()
    envs.step(action)


def played(envs: Any, steps: int, seed: int = 0) -> list[Any]:
    """Return all results of steps with random actions, which make hoppers fall."""
    rng = np.random.default_rng(seed)
    found = [envs.reset(seed=seed)]
    for _ in range(steps):
        actions = rng.uniform(-1.0, 1.0, envs.action_space.shape).astype(np.float32)
        found.append(envs.step(actions))
    return found


def same(a: Any, b: Any, where: str = "") -> None:
    """Check that results are equal where both have a value."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for name in a:
            if not name.startswith("_"):
                mask = a[f"_{name}"]
                np.testing.assert_array_equal(mask, b[f"_{name}"], err_msg=f"{where} _{name}")
                if isinstance(a[name], dict):
                    same(a[name], b[name], f"{where} {name}")
                elif mask.any():
                    one, other = (np.stack(list(x[name][mask])) for x in (a, b))
                    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=f"{where} {name}")
    elif isinstance(a, tuple | list):
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{where} {k}")
    else:
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=where)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_many_at_once_are_as_gymnasium_runs_them_one_by_one(mode: AutoresetMode) -> None:
    """Check all results, over several episodes; `max_episode_steps` ends some, and falling ends others."""
    ours = gymnasium.make_vec(HOPPER, num_envs=3, autoreset_mode=mode, max_episode_steps=30)
    assert isinstance(ours, RobotVectorEnv) and ours.metadata["autoreset_mode"] is mode
    theirs: Any = SyncVectorEnv([lambda: gymnasium.make(HOPPER, max_episode_steps=30)] * 3, autoreset_mode=mode)
    assert ours.observation_space == theirs.observation_space and ours.action_space == theirs.action_space
    a, b = played(ours, 100), played(theirs, 100)
    same(a, b)
    terminated, truncated = (np.array([step[k] for step in a[1:]]) for k in (2, 3))
    assert terminated.sum() > 3 and truncated.any()
    assert all(step[0] in ours.observation_space for step in a)


def test_some_begin_anew_by_a_mask_and_others_go_on() -> None:
    envs = RobotVectorEnv(Hopper(), 3, autoreset_mode="Disabled")
    played(envs, 5)
    before = envs.robots.snapshot()
    observation, info = envs.reset(seed=[7, 8, None], options={"reset_mask": np.array([False, True, False])})
    after = envs.robots.snapshot()
    np.testing.assert_array_equal(after.qpos[[0, 2]], before.qpos[[0, 2]])
    np.testing.assert_array_equal(info["_x_position"], [False, True, False])
    alone = RobotVectorEnv("Hopper", 1)
    np.testing.assert_array_equal(observation[1], alone.reset(seed=8)[0][0])
    for wrong in (np.zeros(3, bool), [True] * 3, np.ones(2, bool), np.ones(3)):
        with pytest.raises(ValueError, match="reset_mask"):
            envs.reset(options={"reset_mask": wrong})


def test_seeds_repeat_and_episodes_differ() -> None:
    envs = RobotVectorEnv("Hopper", 2)
    first = envs.reset(seed=5)[0]
    second = envs.reset()[0]
    assert not np.isclose(first, second).any()
    np.testing.assert_array_equal(envs.reset(seed=5)[0], first)
    np.testing.assert_array_equal(envs.reset()[0], second)
    np.testing.assert_array_equal(envs.reset(seed=[6, 5])[0][1], first[0])


def test_a_robot_whose_step_cannot_be_taken_terminates_and_others_go_on() -> None:
    envs, undisturbed = (RobotVectorEnv("Hopper", 3, autoreset_mode="Disabled") for _ in range(2))
    for e in (envs, undisturbed):
        e.reset(seed=0)
    now = envs.robots.snapshot()
    qvel = now.qvel.copy()
    qvel[1] = 1e7
    envs.set_state(now.qpos, qvel)
    actions = np.full((3, 3), 0.5)
    observation, reward, terminated, truncated, info = envs.step(actions)
    expected = undisturbed.step(actions)
    np.testing.assert_array_equal(info["simulation_failed"], [False, True, False])
    np.testing.assert_array_equal(terminated, [False, True, False])
    assert np.isfinite(observation).all() and np.isfinite(reward).all() and not truncated.any()
    for x, y in zip((observation, reward), expected[:2], strict=True):
        np.testing.assert_allclose(x[[0, 2]], y[[0, 2]], rtol=1e-9, atol=1e-9)


def test_feet_on_the_floor_carry_the_robot() -> None:
    """Check the rows of contact forces: they belong to the touching links, also for feet that are fixed to shins."""
    envs = RobotVectorEnv("Humanoid", 2, contact="rigid", reset_noise_scale=0.0)
    envs.reset(seed=0)
    qpos = envs.robots.snapshot().qpos.copy()
    qpos[:, 2] -= 0.125  # its feet are on the floor; both robots fall alike from here
    envs.set_state(qpos, np.zeros((2, 23)))
    for _ in range(4):
        envs.step(np.zeros((2, 17)))
    now = envs.robots.snapshot(forces=True)
    feet = [now.links.names.index(f"{side}_foot") for side in ("left", "right")]
    others = [k for k in range(13) if k not in feet]
    assert not now.cfrc_ext[:, others].any()
    np.testing.assert_allclose(now.cfrc_ext[:, feet, 5].sum(axis=1), 9.81 * now.links.robot.mass, rtol=0.3)
    envs.reset(seed=1)
    assert not envs.robots.snapshot(forces=True).cfrc_ext.any()
    with pytest.raises(ValueError, match="asks_for_forces"):
        _ = envs.robots.snapshot().cfrc_ext


def test_beginnings_do_not_depend_on_what_was_before() -> None:
    """Check that controls, contacts and rewards of an episode do not affect the next."""
    used, fresh = (RobotVectorEnv("Humanoid", 2, autoreset_mode="Disabled") for _ in range(2))
    used.reset(seed=1)
    for _ in range(8):
        used.step(np.full((2, 17), 0.4))
    np.testing.assert_array_equal(used.reset(seed=4)[0], fresh.reset(seed=4)[0])


@dataclass(frozen=True)
class StandStill(SnapshotTask):
    """A user-defined task."""

    xml_file: str = "hopper.xml"
    frame_skip: int = 4
    reset_noise_scale: float = 0.0

    def observation(self, now: Snapshot) -> Any:
        return np.concatenate([now.qpos, now.qvel], axis=-1)

    def rewards(self, before: Snapshot, after: Snapshot, action: Any) -> dict[str, Any]:
        return {"reward_rest": -np.square(after.qvel).sum(axis=-1)}


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_tasks_of_ones_own_and_wrappers_of_gymnasium(mode: str) -> None:
    envs = RobotVectorEnv(StandStill(), 4, autoreset_mode=mode, max_episode_steps=3)
    wrapped: Any = RecordEpisodeStatistics(NormalizeObservation(envs) if mode == "NextStep" else envs)
    wrapped.reset(seed=0)
    totals = np.zeros(4)
    for _ in range(3):
        observation, reward, terminated, truncated, info = wrapped.step(np.zeros((4, 3), np.float32))
        totals += reward
    assert observation.shape == (4, 12) and truncated.all() and not terminated.any()
    np.testing.assert_allclose(info["episode"]["r"], totals)
    assert (totals < 0.0).all() and (info["episode"]["l"] == 3).all()


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="one of Ant, G1Joystick, Go1Joystick, HalfCheetah"):
        RobotVectorEnv("Hoper")
    with pytest.raises(TypeError, match="Hopper has no healthy_range; it has xml_file"):
        RobotVectorEnv("Hopper", healthy_range=(0.0, 1.0))
    with pytest.raises(ValueError, match="num_envs must be at least 1"):
        RobotVectorEnv("Hopper", 0)
    with pytest.raises(ValueError, match="max_episode_steps"):
        RobotVectorEnv("Hopper", max_episode_steps=0)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        RobotVectorEnv("Hopper", xml_file="./nowhere.xml")
    envs = RobotVectorEnv(Hopper(ctrl_cost_weight=0.5), 2, frame_skip=2)
    assert isinstance(envs.task, Hopper) and envs.task.ctrl_cost_weight == 0.5 and envs.dt == 0.004
    with pytest.raises(ValueError, match="reset"):
        envs.step(np.zeros((2, 3)))
    envs.reset()
    for wrong in (np.zeros(3), np.full((2, 3), np.nan), np.zeros((3, 3))):
        with pytest.raises(ValueError, match="actions must be finite"):
            envs.step(wrong)
    with pytest.raises(ValueError, match="seed must be one number, or 2"):
        envs.reset(seed=[1, 2, 3])


def test_what_tasks_see_is_of_robots_as_vary_made_them() -> None:
    envs = RobotVectorEnv("Hopper", 2)
    envs.reset(seed=0)
    sim, robots = envs.simulation, envs.robots
    envs.step(np.full(envs.action_space.shape, 0.5, np.float32))
    before = robots.snapshot(forces=True)
    middle, driven = before.center_of_mass, before.qfrc_actuator
    parameters = np.stack([sim.robot.inertial_parameters] * 2)
    parameters[1, -1] *= 3.0  # a heavy foot
    sim.vary(parameters=parameters, gains=[1.0, 2.0])
    now = robots.snapshot(forces=True)
    own = sim.robot.with_inertial_parameters(parameters[1])
    np.testing.assert_allclose(now.center_of_mass[0], middle[0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(now.center_of_mass[1], own.center_of_mass(sim.q[1]), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(robots.snapshot(np.array([1])).center_of_mass, now.center_of_mass[1:], rtol=1e-12)
    np.testing.assert_allclose(now.qfrc_actuator, driven * [[1.0], [2.0]], rtol=1e-12)
    with pytest.raises(NotImplementedError, match="cinert and cvel belong to links of the file"):
        _ = now.cinert
    sim.vary()
    np.testing.assert_array_equal(robots.snapshot().cinert, before.cinert)


@dataclass(frozen=True)
class Distance(SnapshotTask):
    """A hopper whose reward is the distance travelled, by snapshots."""

    xml_file: str = "hopper.xml"
    frame_skip: int = 4
    reset_noise_scale: float = 5e-3

    def rewards(self, before: Snapshot, after: Snapshot, action: Any) -> Any:
        return {"way": (after.qpos - before.qpos)[:, 0]}

    def observation(self, now: Snapshot) -> Any:
        return now.qpos


def test_steps_begin_where_robots_are_whoever_put_them_there() -> None:
    """Check that rewards compare states of the simulation, also after the user moved the robots or changed an observation."""
    envs = RobotVectorEnv(Distance(), 2, autoreset_mode="Disabled")
    envs.reset(seed=0)
    sim, actions = envs.simulation, np.full((2, 3), 0.1)

    def put_by_state() -> None:
        now = envs.robots.snapshot()
        envs.set_state(now.qpos + 0.5 * np.eye(6)[0], now.qvel)

    def put_by_configuration() -> None:
        sim.q = sim.q + 0.25 * np.eye(6)[0]

    def step_alone() -> None:
        sim.v = 2.0 * sim.v + 0.1
        sim.step()

    def begin_one() -> None:
        envs.reset(options={"reset_mask": np.array([True, False])})

    def write_to_observation() -> None:
        seen[:] = 7.0

    seen = envs.step(actions)[0]
    for disturb in (lambda: None, put_by_state, put_by_configuration, step_alone, begin_one, write_to_observation):
        disturb()
        x = sim.q[:, 0]
        seen, reward, *_ = envs.step(actions)
        np.testing.assert_array_equal(reward, sim.q[:, 0] - x)
        np.testing.assert_array_equal(seen, sim.q)


@pytest.mark.filterwarnings("ignore:ant. its own configuration")
def test_forces_of_a_snapshot_stay_as_they_were() -> None:
    """Check that snapshots keep their forces while the simulation continues, and that links have the forces of `contacts`."""
    envs = RobotVectorEnv("Ant", 2, reset_noise_scale=0.0)
    envs.reset(seed=0)
    for _ in range(40):
        envs.step(np.zeros((2, 8)))
    now = envs.robots.snapshot(forces=True)
    for i in range(2):
        _, points, forces = envs.simulation.contacts_of_many([i])[1:]
        assert len(forces) > 0
        torque = np.cross(points - now.center_of_mass[i], forces).sum(axis=0)
        np.testing.assert_allclose(now.cfrc_ext[i].sum(axis=0), [*torque, *forces.sum(axis=0)], rtol=1e-9, atol=1e-9)
        alone, found, same = envs.simulation.contacts(i)[1], forces, envs.simulation.contacts(i)[0]
        np.testing.assert_allclose(found, alone, rtol=1e-14)
        np.testing.assert_array_equal(points, same)
    before = now.cfrc_ext.copy()
    envs.step(np.ones((2, 8)))
    np.testing.assert_array_equal(now.cfrc_ext, before)
    assert (envs.robots.snapshot(forces=True).cfrc_ext != before).any()
