"""Tests of arguments of whole-body control that are wrong, and of what they leave behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw

FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")


@pytest.fixture(scope="module")
def robot() -> fw.Robot:
    robot = fw.load(fw.example("b1"), base="floating")
    assert isinstance(robot, fw.Robot)
    return robot


def controller(robot: fw.Robot) -> fw.WholeBodyControl:
    tasks = [
        fw.CenterOfMassTask(),
        fw.FrameTask("trunk", "orientation", name="trunk"),
        fw.FrameTask("imu_link", name="imu"),
        fw.PostureTask(weight=0.01),
        fw.AngularMomentumTask(weight=0.01),
    ]
    return fw.WholeBodyControl(robot, tasks, [fw.UnilateralContact(foot) for foot in FEET])


def targets_at(robot: fw.Robot, q: np.ndarray) -> dict[str, Any]:
    return {
        "center of mass": robot.center_of_mass(q),
        "trunk": np.eye(3),
        "imu": robot.frame_placement("imu_link", q),
        "posture": q,
    }


def test_a_refused_tick_does_not_change_the_next_one(robot: fw.Robot) -> None:
    q, v = robot.start(), np.zeros(robot.nv)
    wbc, targets = controller(robot), targets_at(robot, q)
    first = wbc(q, v, targets)
    assert first.status == "solved"
    long, nan, turned = q.copy(), v.copy(), np.diag([1.0, 1.0, -1.0])
    long[3:7] *= 1.05
    nan[7] = np.nan
    for given, named, message in (
        ((q * np.nan, v), {}, "WholeBodyControl: q has numbers that are not finite"),
        ((q, nan), {}, "WholeBodyControl: v has numbers that are not finite"),
        ((long, v), {}, r"quaternion of joint 'root_joint', q\[3:7\], must have length 1; got 1.05"),
        ((q[:-1], v), {}, r"q must have shape \(19,\); got \(18,\)"),
        ((np.tile(q, (3, 1)), v), {}, r"q must have shape \(19,\); got \(3, 19\)"),
        ((q, v, {"trunk": turned}), {}, "the target of 'trunk' contains a matrix that is not a rotation"),
        ((q, v, {"imu": np.eye(4)[None]}), {}, r"the target of 'imu' must have shape \(4, 4\); got \(1, 4, 4\)"),
        ((q, v, {"imu": np.zeros(3)}), {}, "a position is the target of FrameTask"),
        ((q, v, {"center of mass": [np.inf, 0, 0]}), {}, "the target of 'center of mass' has numbers that are not finite"),
        ((q, v, {"angular momentum": [0, 0, 0]}), {}, "'angular momentum' has no target"),
        ((q, v), {"velocities": {"imu": [1.0, 2.0]}}, r"the velocity of 'imu' must have shape \(6,\); got \(2,\)"),
        ((q, v), {"accelerations": {"posture": np.full(12, np.nan)}}, "the acceleration of 'posture' has numbers that are not"),
    ):
        with pytest.raises(ValueError, match=message):
            wbc(*given, **named)
    again = wbc(q, v, targets)
    assert again.status == "solved"
    np.testing.assert_allclose(again.tau, first.tau, atol=1e-6 * np.abs(first.tau).max())  # warm start: another rounding


def test_the_identity_of_mujoco_gives_a_warning(robot: fw.Robot) -> None:
    q = robot.start()
    q[3:7] = [1.0, 0.0, 0.0, 0.0]
    with pytest.warns(fw.ModelWarning, match="w is last here"):
        controller(robot)(q, np.zeros(robot.nv), targets_at(robot, q))


def test_a_pose_is_a_target(robot: fw.Robot) -> None:
    q, v = robot.start(), np.zeros(robot.nv)
    targets = targets_at(robot, q)
    T = targets["imu"]
    with_pose = controller(robot)(q, v, targets | {"imu": fw.Pose(tuple(map(tuple, T[:3, :3])), tuple(T[:3, 3]))})
    np.testing.assert_array_equal(with_pose.tau, controller(robot)(q, v, targets).tau)
