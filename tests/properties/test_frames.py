"""Tests that placements, velocities, Jacobians and their derivatives are consistent."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import featherweight as fw
from oracles.robots import robot_of, watched_frames
from oracles.states import Array, States, state

ROBOTS = ("panda", "kinova", "hyq", "mixed_8", "anchored", "floating_inside", "fixed_between")
REFERENCES = ("local", "local_world_aligned", "world")
STEP = 1e-5  # of central differences, whose error is then about 1e-9 of the function
DIFFERENCE = 1e-6

robots = st.sampled_from(ROBOTS)
references = st.sampled_from(REFERENCES)
seeds = st.integers(0, 2**32 - 1)


def two_sides(robot: fw.Robot, x: States) -> Array:
    """Return configurations (2, nq) slightly before and after q along v."""
    return np.asarray(robot.integrate(x.q, STEP * np.array([-x.v, x.v])))


def close(result: Array, expected: Array, tolerance: float) -> bool:
    return bool(np.linalg.norm(result - expected) <= tolerance * (1.0 + np.linalg.norm(expected)))


@settings(deadline=None, max_examples=50)
@given(robots, seeds)
def test_placements_are_rigid(name: str, seed: int) -> None:
    robot = robot_of(name)
    poses = robot.frame_placement(watched_frames(robot))(state(robot, seed).q)
    R = poses[:, :3, :3]
    np.testing.assert_allclose(R @ R.transpose(0, 2, 1), np.broadcast_to(np.eye(3), R.shape), atol=1e-13)
    np.testing.assert_allclose(np.linalg.det(R), 1.0, atol=1e-13)
    np.testing.assert_array_equal(poses[:, 3], np.broadcast_to([0.0, 0.0, 0.0, 1.0], (len(poses), 4)))


@settings(deadline=None, max_examples=60)
@given(robots, seeds, references)
def test_velocity_is_jacobian_times_joint_velocity(name: str, seed: int, reference: str) -> None:
    robot = robot_of(name)
    q, v, _ = state(robot, seed)
    names = watched_frames(robot)
    velocity = robot.frame_velocity(names, reference)(q, v)
    assert close(velocity, robot.frame_jacobian(names, reference)(q) @ v, 1e-13)


@settings(deadline=None, max_examples=60)
@given(robots, seeds)
def test_velocity_is_the_rate_of_the_placement(name: str, seed: int) -> None:
    robot = robot_of(name)
    x = state(robot, seed)
    names = watched_frames(robot)
    before, after = robot.frame_placement(names)(two_sides(robot, x))
    velocity = robot.frame_velocity(names, "local_world_aligned")(x.q, x.v)
    for k in range(len(names)):
        linear = (after[k, :3, 3] - before[k, :3, 3]) / (2 * STEP)
        turn = Rotation.from_matrix(after[k, :3, :3] @ before[k, :3, :3].T).as_rotvec() / (2 * STEP)
        assert close(velocity[k], np.concatenate([linear, turn]), DIFFERENCE)


@settings(deadline=None, max_examples=60)
@given(robots, seeds, references)
def test_bias_acceleration_is_the_rate_of_the_jacobian_times_velocity(name: str, seed: int, reference: str) -> None:
    robot = robot_of(name)
    x = state(robot, seed)
    names = watched_frames(robot)
    before, after = robot.frame_jacobian(names, reference)(two_sides(robot, x))
    bias = robot.frame_bias_acceleration(names, reference)(x.q, x.v)
    assert close(bias, (after - before) @ x.v / (2 * STEP), DIFFERENCE)


@settings(deadline=None, max_examples=60)
@given(robots, seeds)
def test_references_differ_by_a_change_of_axes_and_point(name: str, seed: int) -> None:
    robot = robot_of(name)
    q = state(robot, seed).q
    names = watched_frames(robot)
    local, aligned, world = (robot.frame_jacobian(names, reference)(q) for reference in REFERENCES)
    for k, pose in enumerate(robot.frame_placement(names)(q)):
        R, p = pose[:3, :3], pose[:3, 3]
        assert close(aligned[k, :3], R @ local[k, :3], 1e-13)
        assert close(aligned[k, 3:], R @ local[k, 3:], 1e-13)
        assert close(world[k, 3:], aligned[k, 3:], 1e-13)
        assert close(world[k, :3], aligned[k, :3] + np.cross(p, aligned[k, 3:].T).T, 1e-13)
