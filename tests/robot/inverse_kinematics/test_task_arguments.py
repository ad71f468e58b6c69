"""Tests of refused arguments of inverse kinematics, and their errors: tasks, targets, starts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from oracles.robots import example

HAND = "panda_hand"


@functools.cache
def panda() -> fw.Robot:
    return example("panda", "interpreted")


def hand() -> fw.InverseKinematics:
    return fw.InverseKinematics(panda(), fw.FrameTask(HAND))


BAD_TASKS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (list, ValueError, "at least one task"),
    (lambda: [HAND], TypeError, "takes FrameTask.*got 'panda_hand'"),
    (lambda: fw.FrameTask("nowhere"), ValueError, "no frame 'nowhere'"),
    (lambda: fw.FrameTask(HAND, "posture"), ValueError, "'panda_hand': kind must be one of pose, position, orientation"),
    (lambda: fw.FrameTask(HAND, weight=[1, 2]), ValueError, "'panda_hand': weight must be a number or 6 numbers"),
    (lambda: fw.FrameTask(HAND, weight=-1.0), ValueError, "none negative"),
    (lambda: fw.FrameTask(HAND, weight=0.0), ValueError, "at least one positive"),
    (lambda: fw.FrameTask(HAND, priority=-1), ValueError, "priority must be an integer"),
    (lambda: fw.FrameTask(HAND, tolerance=0.0), ValueError, "tolerance must be positive"),
    (lambda: fw.PostureTask(joints=["nobody"]), ValueError, "'nobody', which is not a joint"),
    (lambda: fw.PostureTask(joints="panda_joint1"), TypeError, "joints must be a list of names"),
    (lambda: [fw.FrameTask(HAND), fw.FrameTask(HAND, "position")], ValueError, "two tasks are called 'panda_hand'"),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD_TASKS)
def test_tasks_that_are_none(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fw.InverseKinematics(panda(), make())


POSE = np.eye(4)
SHIFTED = np.vstack([POSE[:3], [5.0, 6.0, 7.0, 8.0]])
BAD_CALLS: list[tuple[dict[str, Any], str]] = [
    ({"targets": np.eye(3)}, r"target of 'panda_hand' must have shape \(..., 4, 4\); got \(3, 3\)"),
    ({"targets": 2.0 * np.eye(4)}, "not a rotation"),
    ({"targets": np.diag([1.0, 1.0, -1.0, 1.0])}, "not a rotation"),
    ({"targets": SHIFTED}, "the target of 'panda_hand' must have 0, 0, 0, 1 as its last row"),
    ({"targets": np.stack([POSE, SHIFTED])}, "must have 0, 0, 0, 1 as its last row"),
    ({"targets": np.full((4, 4), np.nan)}, "'panda_hand' has numbers that are not finite"),
    ({"targets": "there"}, "the target of 'panda_hand' must be an array of real numbers"),
    ({"targets": {"foot": POSE}}, r"those of the tasks \['panda_hand'\]; got \['foot'\]"),
    ({"targets": POSE, "q0": np.zeros(7)}, r"q0 must have shape \(..., 9\); got \(7,\)"),
    ({"targets": POSE, "q0": np.full(9, np.inf)}, "q0 has numbers that are not finite"),
    ({"targets": np.stack([POSE] * 2), "q0": np.zeros((3, 9))}, "do not broadcast"),
    ({"targets": POSE, "iterations": 0}, "iterations must be a whole number of at least 1"),
    ({"targets": POSE, "restarts": -1}, "restarts must be a whole number of at least 0"),
]


@pytest.mark.parametrize(("call", "message"), BAD_CALLS)
def test_targets_that_are_none(call: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hand().solve(**call)


def test_several_targets_come_in_a_list_or_by_name() -> None:
    robot = panda()
    ik = fw.InverseKinematics(robot, [fw.FrameTask(HAND), fw.PostureTask(priority=1)])
    with pytest.raises(ValueError, match=r"a list with one target for each of the tasks .*'posture'.*, or a dict; got ndarray"):
        ik.solve(POSE)
    with pytest.raises(ValueError, match="batch axes of targets do not broadcast: 'panda_hand'"):
        ik.solve([np.stack([POSE] * 2), np.zeros((3, 9))])
    flat = ik.flat_targets([POSE, np.arange(9.0)])
    assert np.array_equal(flat, ik.flat_targets({"posture": np.arange(9.0), HAND: POSE}))
    assert flat.shape == (21,) and np.array_equal(flat[12:], np.arange(9.0))


def test_it_takes_a_robot_that_is_not_rolled() -> None:
    with pytest.raises(TypeError, match=r"must be a Robot, .*load it: featherweight.load"):
        fw.InverseKinematics("panda", fw.FrameTask(HAND))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rolled is not offered"):
        fw.InverseKinematics(example("panda", "rolled"), fw.FrameTask(HAND))
