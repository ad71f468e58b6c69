"""Tests of limits as vectors, in the order of q and of v, with loops and followers too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import featherweight as fw
from featherweight import Body, Coupling, Inertia, Joint, JointType

SOLID = Inertia(1.0, (0.1, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))


def chain(*joints: Joint, **more: Any) -> fw.Description:
    return fw.describe([Body("base"), *(Body(j.child, SOLID) for j in joints)], joints, **more)


def joint(name: str, parent: str, kind: JointType = JointType.REVOLUTE, **more: Any) -> Joint:
    return Joint(name, kind, parent, f"after_{name}", **more)


def test_each_is_where_its_coordinate_is() -> None:
    free = joint("free", "base", JointType.FLOATING)
    ball = joint("ball", "after_free", JointType.SPHERICAL, effort=5.0)
    hinge = joint("hinge", "after_ball", lower=-0.5, upper=1.5, velocity=3.0, effort=7.0)
    slide = joint("slide", "after_hinge", JointType.PRISMATIC, lower=0.0, velocity=0.0, effort=0.0)  # 0: unknown
    robot = fw.build(chain(free, ball, hinge, slide))
    inf = math.inf
    np.testing.assert_array_equal(robot.lower, [-inf] * 11 + [-0.5, 0.0])
    np.testing.assert_array_equal(robot.upper, [inf] * 11 + [1.5, inf])
    np.testing.assert_array_equal(robot.velocity_limit, [inf] * 9 + [3.0, inf])
    np.testing.assert_array_equal(robot.effort_limit, [inf] * 6 + [5.0] * 3 + [7.0, inf])
    for x in (robot.lower, robot.upper, robot.velocity_limit, robot.effort_limit):
        assert not x.flags.writeable


def test_a_leader_keeps_the_limits_of_those_that_follow() -> None:
    first = joint("first", "base", lower=-2.0, upper=2.0, velocity=4.0)
    second = joint("second", "after_first", upper=1.0, velocity=3.0)
    gear = Coupling("gear", "second", (("first", (-2.0,)),))
    robot = fw.build(chain(first, second, couplings=[gear]))
    assert [x.tolist() for x in (robot.lower, robot.upper, robot.velocity_limit)] == [[-0.5], [2.0], [1.5]]


def test_random_configurations_are_within_them() -> None:
    robot = fw.build(fw.robots.jvrc1(), base="floating")
    q = robot.random_configuration(rng=0, size=200)
    assert (q >= robot.lower).all() and (q <= robot.upper).all()


def test_random_configurations_keep_followers_within_their_limits() -> None:
    leader, follower = joint("leader", "base", lower=-2.0, upper=2.0), joint("follower", "after_leader", lower=-1.0, upper=1.0)
    robot = fw.build(chain(leader, follower, couplings=[Coupling("gear", "follower", (("leader", (-4.0,)),))]))
    q = robot.random_configuration(rng=0, size=200)
    assert abs(q).max() <= 0.25
