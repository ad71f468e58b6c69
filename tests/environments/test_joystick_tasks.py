"""Tests of joystick tasks: observations and rewards by their formulas, commands, and equal bits on any number of threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

import featherweight as fw
from featherweight.array_types import Integers, Vector
from featherweight.engine.loops.kernels import compiled
from featherweight.environments import RobotVectorEnv
from featherweight.environments.episodes import CompiledEpisodes
from featherweight.environments.quadruped_rules import QuadrupedWeights
from featherweight.environments.reset_noise import ResetNoise
from featherweight.environments.task_numbers import drawn_number, falling_exponential
from featherweight.environments.varied_robots import moved

JOINTS, FEET = 12, 4
LEGS = ("FR", "FL", "RR", "RL")


def joystick(robots: int, **how: Any) -> RobotVectorEnv:
    return RobotVectorEnv("Go1Joystick", robots, autoreset_mode="SameStep", **how)


def walked(envs: RobotVectorEnv, steps: int, spread: float = 0.4) -> list[Any]:
    rng, found = np.random.default_rng(1), list[Any]([envs.reset(seed=3)[0]])
    for _ in range(steps):
        actions = rng.uniform(-spread, spread, envs.action_space.shape)
        found.append(envs.step(actions))
    return found


class Formulas:
    """Observations and reward terms in NumPy, from states, contacts and the memory before a step."""

    def __init__(self, envs: RobotVectorEnv) -> None:
        assert isinstance(envs.episodes, CompiledEpisodes)
        self.envs, self.sim, self.robot = envs, envs.simulation, envs.simulation.robot
        self.pose = np.tile([0.1, 0.9, -1.8, -0.1, 0.9, -1.8], 2)
        memory = envs.episodes.arrays.memory.copy()
        self.last, self.command, rest = memory[:, :JOINTS], memory[:, JOINTS : JOINTS + 3], memory[:, JOINTS + 3 :]
        self.air, self.touched, self.peak = (rest[:, k * FEET : (k + 1) * FEET] for k in range(3))

    def see(self) -> None:
        q, v, frames = self.sim.q, self.sim.v, self.robot
        self.joints, self.rates = q[:, 7:], v[:, 6:]
        R = frames.frame_placement("imu_link")(q)[:, :3, :3]
        self.world = frames.frame_velocity("imu_link")(q, v).reshape(-1, 2, 3)
        self.linear, self.gyro = (np.einsum("nij,ni->nj", R, self.world[:, k]) for k in range(2))
        self.up = R[:, 2]
        feet = [f"{leg}_foot" for leg in LEGS]
        self.heights = frames.frame_placement(feet)(q)[:, :, 2, 3]
        self.speeds = np.linalg.norm(frames.frame_velocity(feet)(q, v)[:, :, :2], axis=-1)
        self.touches = np.zeros((len(q), FEET), bool)
        robot, candidate, _, forces = self.sim.contacts_of_many(np.arange(len(q)))
        links = [self.sim.touching_links[c][0] for c in candidate]
        for i, link, force in zip(robot, links, forces, strict=True):
            self.touches[i, feet.index(str(link))] |= bool(force.any())

    def observation(self) -> Any:
        return np.concatenate(
            [self.linear, self.gyro, -self.up, self.joints - self.pose, self.rates, self.last, self.command], axis=1
        )

    def terms(self, action: Any) -> dict[str, Any]:
        limits = np.tile([23.7, 23.7, 35.55], FEET)
        target = np.clip(self.pose + 0.5 * action, self.robot.lower[-JOINTS:], self.robot.upper[-JOINTS:])
        force = np.clip(35.0 * (target - self.joints), -limits, limits)
        soft = 0.95 * self.robot.lower[-JOINTS:], 0.95 * self.robot.upper[-JOINTS:]
        walks = np.linalg.norm(self.command, axis=1) > 0.01
        lands = (self.air > 0.0) & (self.touches | (self.touched > 0.0))
        air, peak = self.air + 0.02, np.maximum(self.peak, self.heights)
        lag = self.command - np.column_stack([self.linear[:, :2], self.gyro[:, 2]])
        return {
            "tracking_lin_vel": np.exp(-(lag[:, :2] ** 2).sum(1) / 0.25),
            "tracking_ang_vel": 0.5 * np.exp(-(lag[:, 2] ** 2) / 0.25),
            "lin_vel_z": -0.5 * self.world[:, 0, 2] ** 2,
            "ang_vel_xy": -0.05 * (self.world[:, 1, :2] ** 2).sum(1),
            "orientation": -5.0 * (self.up[:, :2] ** 2).sum(1),
            "dof_pos_limits": -np.maximum(soft[0] - self.joints, 0.0).sum(1) - np.maximum(self.joints - soft[1], 0.0).sum(1),
            "pose": 0.5 * np.exp(-((self.joints - self.pose) ** 2 * np.tile([1.0, 1.0, 0.1], FEET)).sum(1)),
            "termination": -1.0 * (self.up[:, 2] < 0.0),
            "stand_still": -np.abs(self.joints - self.pose).sum(1) * ~walks,
            "torques": -2e-4 * (np.linalg.norm(force, axis=1) + np.abs(force).sum(1)),
            "action_rate": -0.01 * ((action - self.last) ** 2).sum(1),
            "energy": -1e-3 * (np.abs(self.rates) * np.abs(force)).sum(1),
            "feet_clearance": -2.0 * (np.abs(self.heights - 0.1) * np.sqrt(self.speeds)).sum(1),
            "feet_height": -0.2 * ((peak / 0.1 - 1.0) ** 2 * lands).sum(1) * walks,
            "feet_slip": -0.1 * (self.speeds**2 * self.touches).sum(1) * walks,
            "feet_air_time": 0.1 * ((air - 0.1) * lands).sum(1) * walks,
        }


def test_observations_and_rewards_are_by_their_formulas() -> None:
    """Check robots that stumble and fall, some with the command to stand; all terms occur."""
    envs = RobotVectorEnv("Go1Joystick", 12, autoreset_mode="Disabled", noise_level=0.0)
    envs.reset(seed=2)
    assert isinstance(envs.episodes, CompiledEpisodes)
    rng, seen = np.random.default_rng(0), dict.fromkeys(QuadrupedWeights._fields, 0.0)
    for _ in range(60):
        envs.episodes.arrays.memory[:4, JOINTS : JOINTS + 3] = 0.0
        formulas, action = Formulas(envs), rng.uniform(-1.0, 1.0, (12, JOINTS))
        observation, reward, terminated, _, info = envs.step(action)
        formulas.see()
        np.testing.assert_allclose(observation, formulas.observation(), rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(terminated, formulas.up[:, 2] < 0.0)
        expected = formulas.terms(action)
        for name in QuadrupedWeights._fields:
            np.testing.assert_allclose(info[f"reward_{name}"], expected[name], rtol=1e-9, atol=1e-9, err_msg=name)
            seen[name] += np.abs(expected[name]).sum()
        np.testing.assert_allclose(reward, np.maximum(0.02 * sum(expected.values()), 0.0), rtol=1e-9, atol=1e-12)
    assert all(x > 0.0 for x in seen.values())


def test_any_number_of_threads_gives_the_same_bits() -> None:
    """Check noise, commands, resets and steps."""
    one, two = (walked(joystick(40, threads=k, max_episode_steps=15), 40) for k in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    for a, b in zip(one[1:], two[1:], strict=True):
        for x, y in zip(a[:4], b[:4], strict=True):
            np.testing.assert_array_equal(x, y)


def test_an_environment_is_the_same_alone() -> None:
    together, alone = joystick(3), RobotVectorEnv("Go1Joystick", 1, autoreset_mode="SameStep")
    np.testing.assert_array_equal(together.reset(seed=5)[0][2], alone.reset(seed=7)[0][0])
    for k in range(5):
        a, b = together.step(np.full((3, 12), 0.1 * k)), alone.step(np.full((1, 12), 0.1 * k))
        np.testing.assert_array_equal(a[0][2], b[0][0])
        assert a[1][2] == b[1][0]


def test_commands_change_after_five_seconds_on_average() -> None:
    envs = RobotVectorEnv("Go1Joystick", 100, autoreset_mode="Disabled", dry_friction=False)
    envs.reset(seed=0)
    assert isinstance(envs.episodes, CompiledEpisodes)
    commands = [envs.episodes.arrays.memory[:, JOINTS : JOINTS + 3].copy()]
    for _ in range(200):
        envs.step(np.zeros((100, JOINTS)))
        commands.append(envs.episodes.arrays.memory[:, JOINTS : JOINTS + 3].copy())
    c = np.array(commands)
    assert (np.abs(c) <= [1.5, 0.8, 1.2]).all()
    changed = (np.diff(c, axis=0) != 0.0).any(axis=-1).mean()
    expected = (1.0 - math.exp(-0.02 / 5.0)) * (1.0 - 0.5**3)  # all three components may stay unchanged
    assert changed == pytest.approx(expected, rel=0.35)  # 70 events: three standard errors


def test_robots_that_differ_are_drawn_by_their_seeds() -> None:
    """Check that masses, centres and friction are within bounds and independent of other robots, and that observations
    are those of their states.
    """
    envs = joystick(6, randomized=True, dry_friction=False)
    envs.reset(seed=3)
    sim, first = envs.simulation, envs.step(np.zeros((6, 12)))[0]
    parameters, friction = sim.varied("parameters"), sim.varied("friction")
    assert parameters is not None and friction is not None
    nominal = np.array(sim.robot.inertial_parameters)
    factor = parameters[:, 1:, 0] / nominal[1:, 0]
    assert (factor >= 0.9).all() and (factor <= 1.1).all() and np.ptp(factor) > 0.1
    np.testing.assert_allclose(parameters[:, 1:], factor[:, :, None] * nominal[1:], rtol=1e-12)
    trunk = parameters[:, 0]
    assert (np.abs(trunk[:, 0] - nominal[0, 0]) <= 1.0 + 0.1 * nominal[0, 0]).all()
    centers = trunk[:, 1:4] / trunk[:, :1] - nominal[0, 1:4] / nominal[0, 0]
    assert (np.abs(centers) <= 0.05).all() and np.ptp(centers, axis=0).min() > 0.02
    assert fw.identification.inconsistent_bodies(sim.robot, parameters.reshape(6, -1)[0]) == {}
    assert (friction >= 0.4).all() and (friction <= 1.0).all() and np.ptp(friction) > 0.2
    alone = joystick(1, randomized=True, dry_friction=False)
    alone.reset(seed=5)
    own = alone.simulation.varied("parameters")
    assert own is not None
    np.testing.assert_array_equal(own[0], parameters[2])
    np.testing.assert_array_equal(alone.step(np.zeros((1, 12)))[0][0], first[2])


def test_loads_and_shifts_keep_the_inertia_about_the_centre() -> None:
    """Check against the parallel axis theorem, with a body that has the load in its description."""
    about_center = (0.5, 0.1, 0.05, 0.6, -0.02, 0.7)
    inertia = fw.Inertia(2.0, (0.1, -0.2, 0.3), about_center)
    shift, load = np.array([[0.03, 0.04, -0.05]]), np.array([0.7])

    def parameters(x: fw.Inertia) -> Any:
        joint = fw.Joint("free", fw.JointType.FLOATING, "world", "body")
        return np.array(fw.build(fw.describe([fw.Body("body", x)], [joint])).inertial_parameters)

    other = fw.Inertia(2.7, (0.13, -0.16, 0.25), about_center)
    np.testing.assert_allclose(moved(parameters(inertia), shift, load), parameters(other), rtol=1e-12, atol=1e-15)


def test_on_rough_ground_robots_begin_above_it_and_bear_on_it() -> None:
    envs = joystick(8, roughness=0.05, dry_friction=False)
    envs.reset(seed=0)
    begun = envs.simulation.q[:, :3]
    assert np.ptp(begun[:, 0]) > 4.0 and (begun[:, 2] >= 0.29).all() and np.ptp(begun[:, 2]) > 1e-3
    for _ in range(60):
        envs.step(np.zeros((8, 12)))
    _, candidates, points, forces = envs.simulation.contacts_of_many(np.arange(8))
    assert len(candidates) > 8 and forces[:, 2].sum() > 0.0
    assert points[:, 2].max() <= 0.06 and np.ptp(points[:, 2]) > 5e-3


@compiled
def write_numbers(drawn: Integers, numbers: Vector) -> None:
    for k in range(len(numbers)):
        numbers[k] = drawn_number(drawn)


@compiled
def write_exponentials(x: Vector, y: Vector) -> None:
    for k in range(len(x)):
        y[k] = falling_exponential(x[k])


def test_random_numbers_of_texts_are_those_of_episodes() -> None:
    noise, which = ResetNoise([11, 12]), np.arange(2)
    noise.begin(which)
    expected = noise.uniform(which, 5, 20)
    for i in range(2):
        numbers = np.empty(20)
        write_numbers(np.array([noise.keys(which)[i], 5]), numbers)
        np.testing.assert_array_equal(numbers, expected[i])


def test_the_falling_exponential_is_exact_to_rounding() -> None:
    x = np.concatenate([np.linspace(0.0, 40.0, 4001), [1e-300, 0.34657359, 690.0, 701.0, np.inf]])
    y = np.empty_like(x)
    write_exponentials(x, y)
    np.testing.assert_allclose(y[:-2], np.exp(-x[:-2]), rtol=1e-15)
    assert y[-2] == y[-1] == 0.0


def test_weights_of_no_term_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no term 'tracking'; terms are tracking_lin_vel"):
        joystick(1, reward_weights={"tracking": 1.0})
