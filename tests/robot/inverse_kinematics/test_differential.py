"""Tests of steps of differential inverse kinematics: optimality of the quadratic program, limits, priorities and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from oracles.mechanisms import MECHANISMS
from oracles.robots import example

HAND = "panda_hand"
DT = 0.01
Array = np.ndarray


def panda() -> fw.Robot:
    return example("panda", "interpreted")


def middle() -> Array:
    return np.array([(j.lower + j.upper) / 2 for j in panda().joints])


def pose_near(q: Array, away: float, seed: int = 0) -> Array:
    return panda().frame_placement(HAND)(q + away * np.random.default_rng(seed).standard_normal(9))


def test_without_limits_in_the_way_it_is_damped_least_squares() -> None:
    q, damping, gain = middle(), 1e-4, 0.5
    target = pose_near(q, 0.02)
    ik = fw.InverseKinematics(panda(), fw.FrameTask(HAND))
    v = ik.velocity(q, target, DT, damping=damping, gain=gain)
    pose = panda().frame_placement(HAND)(q)
    J = panda().frame_jacobian(HAND)(q)
    R = target[:3, :3] @ pose[:3, :3].T
    angle = np.arccos((np.trace(R) - 1.0) / 2.0)
    turn = angle / (2.0 * np.sin(angle)) * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    e = gain * np.concatenate([target[:3, 3] - pose[:3, 3], turn])
    x = np.linalg.solve(J.T @ J + damping * np.eye(9), J.T @ e)
    assert DT * v == pytest.approx(x, abs=1e-9)


def test_velocities_are_optimal_within_limits() -> None:
    """Check that no joint within its bounds has a gradient, and that the gradient points outward at bounds."""
    q, speed = middle(), np.linspace(0.3, 0.9, 9)
    ik = fw.InverseKinematics(panda(), [fw.FrameTask(HAND), fw.PostureTask(weight=1e-3, name="rest")])
    target = pose_near(q, 0.5)
    v = ik.velocity(q, [target, q], DT, speed=speed, damping=1e-5)
    assert (abs(v) <= speed).all() and (abs(v) == speed).any()
    J, e = ik._differential.rows(q, ik.flat_targets([target, q]))
    gradient = J.T @ (J @ v * DT - e) + 1e-5 * v * DT
    inside = abs(v) < speed - 1e-7
    assert abs(gradient[inside]).max(initial=0.0) < 1e-8
    assert (gradient[~inside] * np.sign(v[~inside]) < 1e-8).all()


def test_joints_come_no_farther_than_their_limits() -> None:
    robot, q = panda(), middle()
    lower, upper = (np.array([getattr(j, end) for j in robot.joints]) for end in ("lower", "upper"))
    ik = fw.InverseKinematics(robot, [fw.FrameTask(HAND, "position"), fw.PostureTask()])
    wish = [[0.0, 0.0, 1.6], np.full(9, 10.0)]
    for _ in range(40):
        q = q + 0.1 * ik.velocity(q, wish, 0.1, speed=2.0)
        assert (q >= lower - 1e-12).all() and (q <= upper + 1e-12).all()
    assert np.count_nonzero(upper - q < 1e-9) >= 5
    v = ik.velocity(np.where(np.arange(9) == 3, 0.5, q), wish, 0.1, speed=2.0)
    assert v[3] == -2.0  # beyond its limit: return as fast as allowed


def test_steps_lead_to_the_target() -> None:
    q = middle()
    target = pose_near(q, 0.3)
    ik = fw.InverseKinematics(panda(), fw.FrameTask(HAND))
    for _ in range(40):
        q = panda().integrate(q, 0.05 * ik.velocity(q, target, 0.05, speed=3.0))
    assert ik.errors(q, ik.flat_targets(target)).max() < 1e-9


def test_lower_priorities_do_not_slow_higher_ones() -> None:
    q = middle()
    target = pose_near(q, 0.05)
    first = fw.FrameTask(HAND)
    alone = fw.InverseKinematics(panda(), first).velocity(q, target, DT)
    both = fw.InverseKinematics(panda(), [first, fw.PostureTask(priority=1)]).velocity(q, [target, q + 0.3], DT)
    J = panda().frame_jacobian(HAND)(q)
    assert J @ both == pytest.approx(J @ alone, abs=1e-9)
    assert np.linalg.norm(both - alone) > 1e-2


def test_loops_are_kept() -> None:
    """Check that loops stay closed to second order in the step, and that open loops close again."""
    robot = fw.build(MECHANISMS["crank_and_rocker"](), execution="interpreted")
    assert isinstance(robot, fw.ClosedRobot)
    frame = robot.frames[-1].name
    ik = fw.InverseKinematics(robot, fw.FrameTask(frame))
    q = robot.random_configuration(rng=1)
    away = robot.frame_placement(frame)(robot.integrate(q, np.full(robot.nv, 0.2)))
    v = ik.velocity(q, away, DT, speed=1.0)
    assert v.shape == (robot.nv,) and abs(v).max() == pytest.approx(1.0)
    assert abs(robot.residual(robot.tangent_step(q, DT * v))).max() < 1e-3
    for _ in range(40):
        q = robot.integrate(q, DT * ik.velocity(q, away, DT, speed=1.0))
    assert ik.errors(q, ik.flat_targets(away)).max() < 1e-6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"dt": 0.0}, "dt must be a positive number; got 0.0"),
        ({"gain": np.nan}, "gain must be a positive number"),
        ({"damping": 0.0}, "damping must be a positive number"),
        ({"speed": -1.0}, "speed must be positive, a number or 9"),
        ({"speed": np.ones(7)}, "speed must be positive, a number or 9"),
        ({"q": np.full(9, np.nan)}, "q has numbers that are not finite"),
        ({"q": np.zeros(7)}, r"velocity takes one q \(9,\)"),
        ({"targets": np.stack([np.eye(4)] * 2)}, r"targets of batch \(2,\)"),
    ],
)
def test_arguments_that_are_none(call: dict[str, Any], message: str) -> None:
    ik = fw.InverseKinematics(panda(), fw.FrameTask(HAND))
    with pytest.raises(ValueError, match=message):
        ik.velocity(**{"q": middle(), "targets": np.eye(4), "dt": DT, **call})
