"""Tests of changes of limits, friction and other numbers of joints."""

from __future__ import annotations

import math

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.generators import chain


def test_numbers_that_are_given_change_and_no_others() -> None:
    before = chain(3)
    numbers = {"effort": 20.0, "velocity": 3.0, "damping": 0.1, "dry_friction": 0.2, "armature": 0.01}
    made = before.with_joint("joint1", limits=(-0.5, 1.0), **numbers)
    j = made.joints[1]
    assert (j.lower, j.upper) == (-0.5, 1.0)
    assert {name: getattr(j, name) for name in numbers} == numbers
    assert (made.joints[0], made.joints[2]) == (before.joints[0], before.joints[2])
    assert made.with_joint("joint1", limits=(-math.inf, math.inf)).joints[1].damping == 0.1
    robot = fw.build(made)
    assert (robot.lower[1], robot.upper[1], robot.effort_limit[1]) == (-0.5, 1.0, 20.0)
    np.testing.assert_array_equal(robot.lower[[0, 2]], fw.build(before).lower[[0, 2]])


def test_several_joints_change_at_once() -> None:
    made = chain(3).with_joint(["joint0", "joint2"], stiffness=2.0, rest=0.3)
    assert [(j.stiffness, j.rest) for j in made.joints] == [(2.0, 0.3), (0.0, 0.0), (2.0, 0.3)]


def test_wrong_numbers_and_names_are_refused() -> None:
    made = chain(2)
    with pytest.raises(fw.ModelError, match=r"with_joint: .*joint9"):
        made.with_joint("joint9", damping=1.0)
    with pytest.raises(ValueError, match=r"limits must be \(lower, upper\)"):
        made.with_joint("joint0", limits=(1.0, -1.0))
    with pytest.raises(ValueError, match="friction must not be negative"):
        made.with_joint("joint0", dry_friction=-1.0)
    with pytest.raises(TypeError, match="with_joint has no argument 'mass'"):
        made.with_joint("joint0", mass=1.0)  # type: ignore[call-arg]
