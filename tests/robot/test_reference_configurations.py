"""Tests of named configurations: positions of coordinates, omissions, open loops, and errors."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

import featherweight as fw
from featherweight import Body, Closure, Configuration, Coupling, Inertia, Joint, JointType, ModelError, Pose, describe
from featherweight.robots.linkages import four_bar_configuration

SOLID = Inertia(1.0, (0.1, 0.0, 0.0), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01))


def arm(*configurations: Configuration, base: str = "fixed", couplings: tuple[Coupling, ...] = ()) -> fw.Robot:
    """Return a weld, a spherical joint, a planar one and a hinge that may follow a slide."""
    kinds = [JointType.FIXED, JointType.SPHERICAL, JointType.PLANAR, JointType.REVOLUTE, JointType.PRISMATIC]
    joints = [Joint(f"j{k}", kind, f"b{k}", f"b{k + 1}", Pose(p=(0.3, 0.0, 0.0))) for k, kind in enumerate(kinds)]
    bodies = [Body(f"b{k}", SOLID) for k in range(len(kinds) + 1)]
    return fw.build(describe(bodies, joints, configurations=configurations, couplings=couplings), base)


def test_coordinates_go_to_the_joints_that_they_are_named_for() -> None:
    given = (("j4", (0.5,)), ("root_joint", (1.0, 2.0, 3.0, 0.0, 0.6, 0.0, 0.8)), ("j1", (0.0, 2.0, 0.0, 0.0)), ("j0", ()))
    for base, root in (("floating", [1.0, 2.0, 3.0, 0.0, 0.6, 0.0, 0.8]), ("fixed", [])):
        robot = arm(Configuration("home", given), base=base)
        expected = [*root, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.5]  # the quaternion normalized, other joints neutral
        np.testing.assert_allclose(robot.configurations["home"], expected, atol=1e-15)


def test_configurations_are_a_mapping_of_read_only_arrays() -> None:
    robot = arm(Configuration("home", (("j3", (0.5,)),)), Configuration("zero", ()))
    assert list(robot.configurations) == ["home", "zero"] and len(robot.configurations) == 2
    np.testing.assert_array_equal(robot.configurations["zero"], robot.neutral())
    with pytest.raises(ValueError, match="read-only"):
        robot.configurations["home"][0] = 1.0
    with pytest.raises(KeyError, match=r"no configuration 'hoem' \(is it 'home'\?\); it has home, zero"):
        robot.configurations["hoem"]
    assert arm().configurations.get("home") is None
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(robot)).configurations["home"], robot.configurations["home"])


def test_joints_that_follow_others_have_no_coordinates() -> None:
    follow = Coupling("gear", "j3", (("j4", (2.0,)),))
    robot = arm(Configuration("home", (("j3", (1.004,)), ("j4", (0.5,)))), couplings=(follow,))  # rounded
    assert robot.nq == 9
    np.testing.assert_allclose(robot.configurations["home"][-1], 0.5)


def test_a_follower_elsewhere_than_its_coupling_puts_it_is_told() -> None:
    follow = Coupling("gear", "j3", (("j4", (2.0,)),))
    robot = arm(Configuration("home", (("j3", (9.0,)), ("j4", (0.5,)))), couplings=(follow,))
    told = "configuration 'home' has joint 'j3' at 9, and coupling 'gear' puts it at 1, where it is; correct one of them in"
    with pytest.warns(fw.ModelWarning, match=told):
        np.testing.assert_allclose(robot.configurations["home"][-1], 0.5)


def test_a_configuration_that_closing_moves_far_is_told_once_with_loop_distance_and_joint() -> None:
    exact = four_bar_configuration(0.4)
    robot = four_bar(*exact[:2], exact[2] + 0.1)
    told = (
        r"configuration 'home' leaves 0\.0\d+ m of 'loop' open.* moves a coordinate of joint 'joint3' by 0\.1, the most of all"
    )
    with pytest.warns(fw.ModelWarning, match=told):
        first = robot.configurations["home"]
    np.testing.assert_allclose(first, exact, atol=1e-9)
    assert robot.configurations["home"] is first


@pytest.mark.parametrize(
    ("coordinates", "message"),
    [
        ((("j9", (0.0,)),), "there is no joint 'j9'"),
        ((("j3", (0.0, 1.0)),), r"joint 'j3' \(revolute\) has 1 coordinates, not 2"),
        ((("j1", (0.0, 0.0, 0.0, 0.0)),), "rotation of joint 'j1' is zero"),
        ((("j3", (float("nan"),)),), "joint 'j3', has the number nan"),
    ],
)
def test_coordinates_that_do_not_fit_are_refused(coordinates: tuple[tuple[str, tuple[float, ...]], ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        arm(Configuration("home", coordinates))


def test_two_configurations_of_one_name_are_refused() -> None:
    with pytest.raises(ModelError, match="two configurations have the name 'home'"):
        arm(Configuration("home", ()), Configuration("home", ()))


def four_bar(*angles: float) -> fw.Robot:
    coordinates = tuple((f"joint{k}", (angle,)) for k, angle in enumerate(angles, 1))
    loop = dataclasses.replace(fw.robots.four_bar(), configurations=(Configuration("home", coordinates),))
    return fw.build(loop, execution="interpreted")


def test_open_loops_are_closed_near_a_configuration_with_independent_joints_where_they_are() -> None:
    exact = four_bar_configuration(0.4)
    np.testing.assert_array_equal(four_bar(*exact).configurations["home"], exact)
    crank, middle, rocker = exact
    open_ = four_bar(crank, middle + 1e-3, rocker - 2e-3).configurations["home"]
    np.testing.assert_allclose(open_, exact, atol=1e-9)
    assert open_[0] == crank


def test_loops_that_cannot_be_closed_are_refused_by_name() -> None:
    """Check constraints with a slope of zero, where Newton's method stops."""
    home = Configuration("home", (("a", (1.0,)), ("b", (0.5,))))
    joints = [Joint("a", JointType.REVOLUTE, "world", "one"), Joint("b", JointType.REVOLUTE, "one", "two")]
    own = Closure("own", ("a",), lambda q: [q[0] * q[0] * q[0] - 3.0 * q[0] + 2.5])
    bodies = [Body("one", SOLID), Body("two", SOLID)]
    robot = fw.build(describe(bodies, joints, closures=[own], configurations=[home]), execution="interpreted")
    with pytest.raises(ValueError, match=r"configuration 'home' leaves 0.5 rad of 'own' open"):
        robot.configurations["home"]
