"""Tests of the humanoid's joystick task: observations and rewards by their formulas, the clock, commands, and equal bits."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from featherweight.environments import RobotVectorEnv, joystick_commands
from featherweight.environments.episodes import CompiledEpisodes
from featherweight.environments.humanoid_joystick import FEET
from featherweight.environments.humanoid_rules import HumanoidWeights, height_of_gait

JOINTS = 29
LEG = [-0.312, 0.0, 0.0, 0.669, -0.363, 0.0]
ARM = [0.2, 0.2, 0.0, 0.6, 0.0, 0.0, 0.0]
POSE = np.array([*LEG, *LEG, 0.0, 0.0, 0.073, *ARM, *(x if k != 1 else -x for k, x in enumerate(ARM))])


def joystick(robots: int, **how: Any) -> RobotVectorEnv:
    return RobotVectorEnv("G1Joystick", robots, **{"autoreset_mode": "SameStep", **how})


def memory_of(envs: RobotVectorEnv) -> Any:
    assert isinstance(envs.episodes, CompiledEpisodes)
    return envs.episodes.arrays.memory


class Formulas:
    """Observations and reward terms in NumPy, from states, contacts and the memory before a step."""

    def __init__(self, envs: RobotVectorEnv) -> None:
        self.envs, self.sim, self.robot = envs, envs.simulation, envs.simulation.robot
        memory = memory_of(envs).copy()
        self.last, self.command, rest = memory[:, :JOINTS], memory[:, JOINTS : JOINTS + 3], memory[:, JOINTS + 3 :]
        self.air, self.touched = rest[:, :2], rest[:, 2:4]
        self.phase = (rest[:, 6, None] + [0.0, np.pi] + np.pi) % (2.0 * np.pi) - np.pi

    def see(self) -> None:
        q, v, frames = self.sim.q, self.sim.v, self.robot
        self.joints, self.rates = q[:, 7:], v[:, 6:]
        pelvis = frames.frame_placement("imu_in_pelvis")(q)[:, :3, :3]
        self.world = frames.frame_velocity("imu_in_pelvis")(q, v).reshape(-1, 2, 3)
        self.linear, self.gyro = (np.einsum("nij,ni->nj", pelvis, self.world[:, k]) for k in range(2))
        self.up = pelvis[:, 2]
        self.torso = frames.frame_placement("torso_link")(q)[:, :3, 2]
        self.turning = frames.frame_velocity("torso_link")(q, v)[:, 3:5]
        T = frames.frame_placement(FEET)(q)
        self.heights = T[:, :, 2, 3]
        self.touches, self.force, self.crossed = np.zeros((len(q), 2), bool), np.zeros((len(q), 2)), np.zeros(len(q), bool)
        robot, candidate, _, forces = self.sim.contacts_of_many(np.arange(len(q)))
        for i, link, force in zip(robot, (self.sim.touching_links[c] for c in candidate), forces, strict=True):
            if set(FEET) <= set(link):
                self.crossed[i] |= bool(force.any())
                continue
            foot = FEET.index(next(x for x in link if x in FEET))
            self.touches[i, foot] |= bool(force.any())
            self.force[i, foot] += force @ T[i, foot, :3, 2]

    def ended(self) -> Any:
        return (self.torso[:, 2] < 0.0) | self.crossed

    def observation(self) -> Any:
        parts = self.linear, self.gyro, -self.up, self.command, self.joints - POSE, self.rates, self.last
        return np.concatenate([*parts, np.cos(self.phase), np.sin(self.phase)], axis=1)

    def terms(self) -> dict[str, Any]:
        low, high = self.robot.lower[-JOINTS:], self.robot.upper[-JOINTS:]
        middle, half = 0.5 * (low + high), 0.475 * (high - low)
        names = [j.name for j in self.robot.joints][1:]
        off = self.joints - POSE

        def part(word: str) -> Any:
            return np.abs(off[:, [word in name for name in names]]).sum(1)

        walks = np.linalg.norm(self.command, axis=1) > 0.01
        lands = (self.air > 0.0) & (self.touches | (self.touched > 0.0))
        lag = self.command - np.column_stack([self.linear[:, :2], self.gyro[:, 2]])
        speed = np.linalg.norm(self.world[:, 0, :2], axis=1)
        gait = np.vectorize(height_of_gait)(self.phase, 0.15)
        moves = (speed > 0.1) | (np.abs(self.world[:, 1, 2]) > 0.1) | walks
        return {
            "tracking_lin_vel": np.exp(-(lag[:, :2] ** 2).sum(1) / 0.25),
            "tracking_ang_vel": 0.75 * np.exp(-(lag[:, 2] ** 2) / 0.25),
            "ang_vel_xy": -0.15 * (self.turning**2).sum(1),
            "orientation": -2.0 * ((self.torso - [0.073, 0.0, 1.0]) ** 2).sum(1),
            "feet_air_time": 2.0 * np.minimum((self.air + 0.02 - 0.2) * lands, 0.3).sum(1),
            "feet_slip": -0.25 * speed * self.touches.sum(1),
            "feet_phase": np.exp(-((self.heights - gait) ** 2).sum(1) / 0.01) * moves,
            "stand_still": -np.abs(off).sum(1) * ~walks,
            "termination": -100.0 * self.ended(),
            "contact_force": -0.01 * np.maximum(np.abs(self.force) - 500.0, 0.0).sum(1),
            "joint_deviation_knee": -0.1 * part("knee"),
            "joint_deviation_hip": -0.25 * (part("hip_yaw") + part("hip_roll") * ~(self.command[:, 1] > 0.1)),
            "dof_pos_limits": -np.maximum(np.abs(self.joints - middle) - half, 0.0).sum(1),
            "pose": -0.1 * (off**2).sum(1),
        }


def test_observations_and_rewards_are_by_their_formulas() -> None:
    """Check robots that stumble, cross their feet and fall, some with the command to stand; all terms occur."""
    envs = joystick(16, autoreset_mode="Disabled", noise_level=0.0)
    envs.reset(seed=2)
    rng, seen = np.random.default_rng(0), dict.fromkeys(HumanoidWeights._fields, 0.0)
    for _ in range(80):
        memory_of(envs)[:4, JOINTS : JOINTS + 3] = 0.0
        formulas, action = Formulas(envs), rng.uniform(-1.0, 1.0, (16, JOINTS))
        observation, reward, terminated, _, info = envs.step(action)
        formulas.see()
        expected = formulas.terms()
        for name in HumanoidWeights._fields:
            np.testing.assert_allclose(info[f"reward_{name}"], expected[name], rtol=1e-8, atol=1e-8, err_msg=name)
            seen[name] += np.abs(expected[name]).sum()
        np.testing.assert_array_equal(terminated, formulas.ended())
        np.testing.assert_allclose(reward, 0.02 * sum(expected.values()), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(observation, formulas.observation(), rtol=1e-8, atol=1e-8)
    assert all(x > 0.0 for x in seen.values()), seen


def test_the_clock_turns_feet_in_turns_at_its_rate() -> None:
    envs = joystick(20, autoreset_mode="Disabled", noise_level=0.0)
    first = envs.reset(seed=0)[0][:, -4:]
    np.testing.assert_allclose(first, np.tile([1.0, -1.0, 0.0, 0.0], (20, 1)), atol=1e-15)  # cosines, sines
    rates = memory_of(envs)[:, -2] / (2.0 * np.pi * 0.02)
    assert (rates >= 1.25).all() and (rates <= 1.5).all() and np.ptp(rates) > 0.1
    for k in range(1, 60):
        seen = envs.step(np.zeros((20, JOINTS)))[0][:, -4:]
        angles = 2.0 * np.pi * 0.02 * rates[:, None] * (k - 1) + [0.0, np.pi]
        np.testing.assert_allclose(seen, np.hstack([np.cos(angles), np.sin(angles)]), atol=1e-9)


def test_the_gait_lifts_a_foot_and_puts_it_down() -> None:
    phases = np.linspace(-np.pi, np.pi, 101)
    heights = np.array([height_of_gait(x, 0.15) for x in phases])
    assert heights[0] == pytest.approx(0.0) and heights[-1] == pytest.approx(0.0) and heights[50] == pytest.approx(0.15)
    assert (np.diff(heights[:51]) > 0.0).all() and (np.diff(heights[50:]) < 0.0).all()


def test_commands_change_after_ten_seconds_and_one_in_ten_is_to_stand() -> None:
    envs = joystick(2000, autoreset_mode="Disabled", command_time=0.1, dry_friction=False)
    envs.reset(seed=0)
    commands = [joystick_commands(envs).copy()]
    for _ in range(7):
        envs.step(np.zeros((2000, JOINTS)))
        commands.append(joystick_commands(envs).copy())
    changed = [bool((a != b).any(axis=1).mean() > 0.9) for a, b in pairwise(commands)]
    assert changed == [False] * 5 + [True, False]
    assert (np.abs(commands) <= [1.0, 0.5, 1.0]).all()
    assert (commands[0] == 0.0).all(axis=1).mean() == pytest.approx(0.1, abs=0.03)


def test_any_number_of_threads_gives_the_same_bits_and_so_does_a_robot_alone() -> None:
    ends = []
    for threads in (1, 2):
        envs = joystick(12, threads=threads, max_episode_steps=15, randomized=True)
        envs.reset(seed=3)
        rng = np.random.default_rng(1)
        ends.append([envs.step(rng.uniform(-0.4, 0.4, (12, JOINTS)))[:4] for _ in range(20)])
    for a, b in zip(*ends, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
    together, alone = joystick(3), joystick(1)
    np.testing.assert_array_equal(together.reset(seed=5)[0][2], alone.reset(seed=7)[0][0])


def test_on_rough_ground_and_with_loads_on_the_torso() -> None:
    envs = joystick(6, roughness=0.05, randomized=True)
    envs.reset(seed=0)
    parameters = envs.simulation.varied("parameters")
    assert parameters is not None
    nominal = np.array(envs.simulation.robot.inertial_parameters)
    torso = [b.name for b in envs.simulation.robot.bodies].index("torso_link")
    factor = parameters[:, :, 0] / nominal[:, 0]
    others = np.delete(factor, torso, axis=1)
    assert (others >= 0.9).all() and (others <= 1.1).all()
    load = parameters[:, torso, 0] - nominal[torso, 0]
    assert np.ptp(load) > 0.5 and (np.abs(load) <= 1.0 + 0.1 * nominal[torso, 0]).all()
    for _ in range(20):
        envs.step(np.zeros((6, JOINTS)))
    assert len(envs.simulation.contacts_of_many(np.arange(6))[0]) > 6
