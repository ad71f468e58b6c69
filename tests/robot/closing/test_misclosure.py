"""Tests of misclosure of loops: derivatives by finite differences, and exact zeros for closed loops."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.types import LoopType, Pose
from featherweight.robot.closing.misclosure import Misclosure
from oracles.mechanisms import MECHANISMS, bodies

NAMES = [
    *(f"chain_{kind}" for kind in LoopType),
    *("four_bar", "crank_and_rocker", "platform", "two_loops", "geared", "own", "tello"),
]


def gaps(name: str) -> tuple[fw.ClosedRobot, list[Misclosure]]:
    robot = fw.build(MECHANISMS[name](), execution="interpreted")
    assert isinstance(robot, fw.ClosedRobot)
    return robot, [a.gap for a in robot._loops.assemblies.values()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("as_sines", [False, True])
def test_derivatives_are_those_by_differences(name: str, as_sines: bool) -> None:
    """Check states far from closed, with couplings and all joints on manifolds; to h² of central differences."""
    robot, all_ = gaps(name)
    rng = np.random.default_rng(0)
    for gap in all_:
        x = fw.Robot.random_configuration(robot, rng=rng, size=4)[:, gap.places]
        J, h = gap(x, as_sines)[1], 1e-6
        n = len(gap.rows)
        ahead, behind = (
            np.stack([gap(gap.moved(x, np.tile(s * e, (4, 1))), as_sines)[0] for e in np.eye(n)], axis=-1) for s in (h, -h)
        )
        np.testing.assert_allclose(J, (ahead - behind) / (2.0 * h), atol=1e-8 * (1.0 + np.abs(J).max()))


@pytest.mark.parametrize("name", NAMES)
def test_as_sines_it_is_what_the_equations_of_motion_hold_at_zero(name: str) -> None:
    robot, all_ = gaps(name)
    q = fw.Robot.random_configuration(robot, rng=1, size=3)
    own = np.concatenate([gap(q[:, gap.places], as_sines=True)[0] for gap in all_], axis=1)
    np.testing.assert_allclose(own, robot.residual(q), atol=1e-13)


@pytest.mark.parametrize("kind", ["revolute", "weld", "prismatic", "cylindrical", "planar"])
def test_an_axis_the_wrong_way_round_is_half_a_turn_away(kind: str) -> None:
    """Check an axis of opposite direction, where the sines of all angles are zero."""
    joint = fw.Joint("turn", fw.JointType.REVOLUTE, "world", "a", axis=(1.0, 0.0, 0.0))
    more = fw.Joint("other", fw.JointType.SPHERICAL, "world", "b")
    loop = fw.Loop("end", LoopType(kind), "a", "b")
    robot = fw.build(fw.describe(bodies("a", "b"), [joint, more], loops=[loop]), execution="interpreted")
    assert isinstance(robot, fw.ClosedRobot)
    [a] = robot._loops.assemblies.values()
    for angle in (np.pi, np.pi - 1e-3, 0.1):
        x = np.array([[angle, 0.0, 0.0, 0.0, 1.0]])
        assert np.linalg.norm(a.gap.residual(x)) == pytest.approx(angle, rel=1e-6)


def test_frames_that_are_anywhere_are_closed_at_zero_only() -> None:
    """Check a weld of a flying body to the ground: its residual is the pose's logarithm, position and rotation."""
    joints = [fw.Joint("flight", fw.JointType.FLOATING, "world", "a"), fw.Joint("arm", fw.JointType.REVOLUTE, "a", "b")]
    at = Pose(p=(0.1, 0.2, 0.3))
    made = fw.describe(bodies("a", "b"), joints, loops=[fw.Loop("weld", LoopType.WELD, "world", "a", at)])
    robot = fw.build(dataclasses.replace(made), execution="interpreted")
    assert isinstance(robot, fw.ClosedRobot)
    [a] = robot._loops.assemblies.values()
    turn = np.array([0.3, -2.0, 0.5])
    angle = np.linalg.norm(turn)
    x = np.array([[0.1, 0.2, 0.7, *(np.sin(angle / 2) * turn / angle), np.cos(angle / 2)]])
    expected = [0.0, 0.0, 0.4, turn[2], turn[0], turn[1]]
    np.testing.assert_allclose(a.gap.residual(x)[0], expected, atol=1e-14)
