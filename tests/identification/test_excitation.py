"""Tests of exciting motions: limits, rest at the ends, and better information than random motions."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from featherweight.identification import base_parameters, excite
from oracles.robots import example


def arm() -> fw.Robot:
    """Return the first three joints of a UR5, whose base has few parameters."""
    description = fw.read(fw.example("ur5_robot"))
    return fw.build(description.locked({"wrist_1_joint": 0.0, "wrist_2_joint": 0.0, "wrist_3_joint": 0.0}))


def test_motions_are_within_limits_and_begin_and_end_at_rest() -> None:
    robot = arm()
    made = excite(robot, 8.0, harmonics=4, dt=0.01, velocity=1.5, iterations=5)
    assert made.q.shape == (801, 3)
    assert (made.q > robot.lower).all()
    assert (made.q < robot.upper).all()
    assert np.abs(made.v).max() <= 1.5
    assert (np.abs(made.tau) <= robot.effort_limit).all()
    for x in (made.v, made.a):
        np.testing.assert_allclose(x[[0, -1]], 0.0, atol=1e-9)
    np.testing.assert_allclose(np.gradient(made.q, 0.01, axis=0)[1:-1], made.v[1:-1], atol=1e-3)
    np.testing.assert_allclose(made.tau, robot.inverse_dynamics(made.q, made.v, made.a))


def test_the_information_is_greater_than_that_of_random_motions() -> None:
    robot = arm()
    best = excite(robot, 8.0, dt=0.05, velocity=1.5, iterations=300)
    random = [excite(robot, 8.0, dt=0.05, velocity=1.5, iterations=1, rng=seed).determinant for seed in range(5)]
    assert best.determinant > max(random) + 1.0
    base = base_parameters(robot, joint_friction=True)
    W = base.matrix(best.q, best.v, best.a).reshape(-1, len(base))
    assert np.linalg.cond(W / np.linalg.norm(W, axis=0)) == pytest.approx(best.condition, rel=0.3)


def test_weak_drives_get_small_motions() -> None:
    robot = arm()
    strong, weak = (excite(robot, 4.0, dt=0.01, effort=e, iterations=2) for e in (500.0, 75.0))
    assert np.ptp(weak.q) < np.ptp(strong.q)
    assert np.abs(weak.tau).max() <= 75.0
    with pytest.raises(ValueError, match="gravity alone exceeds"):
        excite(robot, 4.0, effort=1e-3, iterations=1)


def test_robots_with_loops_and_free_bases_are_refused() -> None:
    for robot in (fw.build(fw.robots.four_bar()), example("hyq")):
        with pytest.raises(ValueError, match="one degree of freedom each"):
            excite(robot)
