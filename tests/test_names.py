"""Tests of the names of the package: public names, and hidden ones."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw


def test_dir_lists_all_public_names_and_nothing_else() -> None:
    names = dir(fw)
    assert {*fw.__all__} <= {*names} and names == sorted(set(names))
    assert all(not name.startswith("_") or name == "__version__" for name in names)
    assert {"Any", "TYPE_CHECKING", "annotations", "engine", "model", "spatial", "algorithms"}.isdisjoint(names)


def test_names_of_dir_are_there_without_having_been_imported() -> None:
    code = "import featherweight as fw; print([n for n in fw.__all__ if not hasattr(fw, n)])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_joints_bodies_and_frames_by_name() -> None:
    robot = fw.build(fw.robots.mini_cheetah())
    for k, joint in enumerate(robot.joints):
        assert robot.joint(joint.name) is robot.joints[k]
    for k, body in enumerate(robot.bodies):
        assert all(robot.body(link) is robot.bodies[k] for link in body.links)
    for frame in robot.frames:
        assert robot.frame(frame.name) == frame
    with pytest.raises(ValueError, match="has no moving joint 'nobody'; it has .*" + robot.joints[0].name):
        robot.joint("nobody")
    with pytest.raises(ValueError, match="has no moving body 'nobody'; it has .*" + robot.bodies[0].name):
        robot.body("nobody")


def test_bodies_have_whole_inertias() -> None:
    """Check that the inertias equal those of the inertial parameters, about the frame's origin."""
    robot = fw.build(fw.robots.jvrc1())
    changed = robot.with_inertial_parameters(1.5 * robot.inertial_parameters)
    for r in (robot, changed):
        for body, (m, *h, xx, xy, yy, xz, yz, zz) in zip(r.bodies, r.inertial_parameters, strict=True):
            a, b, c, d, e, f = body.inertia.rotational
            central, center = np.array([[a, b, c], [b, d, e], [c, e, f]]), np.array(body.center)
            about_origin = central + m * (center @ center * np.eye(3) - np.outer(center, center))
            np.testing.assert_allclose([body.mass, *body.mass * center], [m, *h], rtol=1e-12, atol=1e-12)
            wanted = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
            np.testing.assert_allclose(about_origin, wanted, rtol=1e-9, atol=1e-12)


class Failing(fw.Robot):
    @property
    def broken(self) -> int:
        raise AttributeError("it failed within")


def arm() -> fw.Robot:
    return fw.build(fw.generators.chain(2), execution="interpreted")


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        (arm, "rnea", "'Robot' object has no attribute 'rnea'; here it is robot.inverse_dynamics(q, v, a)"),
        (arm, "forwardDynamics", "; here it is forward_dynamics"),
        (arm, "mass_matrx", " (is it 'mass_matrix'?)"),
        (arm, "potential", " (is it 'potential_energy' or 'potential_energy_regressor'?)"),
        (arm, "close", "; here it is in featherweight.ClosedRobot, which load gives for robots with loops or couplings"),
        (arm, "xyzzy", "; dir() lists those that there are"),
        (arm, "_hidden", "'Robot' object has no attribute '_hidden'"),
        (lambda: fw.Simulation(arm()), "qpos", "; here it is featherweight.Simulation.q, in the order of our conventions"),
        (lambda: fw.Simulation(arm()), "nq", "; its robot has it: .robot.nq"),
        (lambda: fw.generators.chain(2), "lock", " (is it 'locked'?)"),
        (lambda: fw.generators.chain(2), "nq", "; featherweight.build makes a Robot, which computes, of a Description"),
        (lambda: arm().joints[0], "torque", "'MovingJoint' object has no attribute 'torque'; dir() lists those that there are"),
        (lambda: arm().bodies[0], "centre", "'MovingBody' object has no attribute 'centre' (is it 'center'?)"),
        (lambda: arm().frames[0], "placment", " (is it 'placement'?)"),
        (lambda: arm().factorize([0.0, 0.0]), "solved", " (is it 'solve'?)"),
        (lambda: arm().mass_matrix, "operation", " (is it 'operations'?)"),
        (lambda: fw, "rnea", "module 'featherweight' has no attribute 'rnea'; here it is robot.inverse_dynamics(q, v, a)"),
        (lambda: fw, "Simulator", "; here it is featherweight.Simulation"),
        (lambda: fw, "laod", " (is it 'load'?)"),
        (lambda: Failing(arm().model), "broken", "it failed within"),
    ],
)
def test_a_name_that_is_not_there_says_what_it_is_here(owner: Callable[[], Any], name: str, said: str) -> None:
    """Check names of other libraries, of other objects, and misspelled names; an AttributeError inside a property must
    pass unchanged.
    """
    with pytest.raises(AttributeError) as error:
        getattr(owner(), name)
    assert str(error.value).endswith(said)


def test_parts_are_found_by_name() -> None:
    robot = arm()
    assert robot.joints["joint1"] is robot.joints[1] and robot.frames[robot.frames[0].name] is robot.frames[0]
    assert robot.joints == tuple(robot.joints) and robot.bodies[:1] == (robot.bodies[0],)
    with pytest.raises(KeyError, match=r"there is no 'joint_1' \(is it 'joint1'\?\); there are joint0, joint1"):
        robot.joints["joint_1"]
    with pytest.raises(ValueError, match=r"has no frame 'bdy1' \(is it 'body1'\?\); it has body0, body1"):
        robot.frame_placement("bdy1")
