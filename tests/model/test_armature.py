"""Tests of the same robot with other reflected inertias."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw


def test_armature_is_added_to_the_diagonal_of_the_mass_matrix() -> None:
    robot = fw.build(fw.generators.random_tree(5, rng=3))
    q = robot.random_configuration(rng=0)
    joint = robot.joints[2]
    other = robot.with_armature({joint.name: joint.armature + 0.7})
    gained = other.mass_matrix(q) - robot.mass_matrix(q)
    expected = np.zeros((robot.nv, robot.nv))
    for k in range(joint.v_slice.start, joint.v_slice.stop):
        expected[k, k] = 0.7
    np.testing.assert_allclose(gained, expected, atol=1e-12)
    assert other.joints[2].armature == joint.armature + 0.7
    assert robot.joints[2].armature == joint.armature


def test_armature_of_a_joint_that_follows_counts_by_its_ratio() -> None:
    """Check a rotor that turns 6 times as fast, which adds 36 times its armature."""
    robot = fw.build(fw.robots.geared_chain(1))
    other = robot.with_armature({"joint1r": 0.5})
    gained = other.mass_matrix(np.zeros(robot.nq)) - robot.mass_matrix(np.zeros(robot.nq))
    np.testing.assert_allclose(gained, [[18.0]], rtol=1e-12)


@pytest.mark.parametrize(
    ("armature", "message"), [({"none": 1.0}, "no moving joint 'none'"), ({"joint": -1.0}, "zero or more")]
)
def test_bad_armature_is_refused(armature: dict[str, float], message: str) -> None:
    robot = fw.build(fw.generators.random_tree(2, rng=0))
    if "joint" in armature:
        armature = {robot.joints[0].name: -1.0}
    with pytest.raises(ValueError, match=message):
        robot.with_armature(armature)
