"""Tests of closing loops without a start: as often as SciPy, within limits and tolerances, for all kinds of mechanisms."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from assembly import Peer
from loop_generators import closed_mechanism
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.model.description import Description
from featherweight.model.types import as_matrix
from featherweight.robots.linkages import four_bar_configuration
from oracles.mechanisms import closed

BARS = (0.3, 0.9, 0.7, 1.0)  # a crank that turns over, and two assemblies of the others


def built(made: Description, **options: Any) -> fw.ClosedRobot:
    return closed(made, execution="interpreted", **options)


def test_what_scipy_closes_from_twenty_starts_is_closed() -> None:
    """Check all mechanisms of a small sample; for many, the rate is 99 of 100 (benchmarks/peers/assembly.py)."""
    sample = [("planar", 4), ("planar", 9), ("planar", 16), ("spatial", 7), ("spatial", 9), ("spatial", 60)]
    sample += [("linkage", 10), ("linkage", 16), ("platform", 36)]
    closed = 0
    for kind, joints in sample:
        for seed in range(2):
            made = closed_mechanism(kind, joints, rng=seed)
            peer = Peer(made)
            if not any(map(peer.closes, np.random.default_rng(seed).uniform(-math.pi, math.pi, (20, joints)))):
                continue
            robot = built(made)
            for q in (robot.neutral(), *robot.random_configuration(rng=seed, size=3)):
                assert np.abs(peer.residual(q[peer.order(robot)])).max() <= 1e-4
                assert robot.opening(q) <= 1e-11
            np.testing.assert_array_equal(robot.neutral(), robot.neutral())
            np.testing.assert_array_equal(robot.random_configuration(rng=1, size=2), robot.random_configuration(rng=1, size=2))
            closed += 1
    assert closed >= 16  # SciPy closes these, and so must we


@pytest.mark.parametrize(("kind", "joints", "free"), [("planar", 4, 1), ("planar", 9, 6), ("linkage", 10, 1)])
@pytest.mark.parametrize("digits", [3, 5])
def test_loops_that_contradict_each_other_are_closed_but_for_that(kind: str, joints: int, free: int, digits: int) -> None:
    """Check welded planar loops, where the constraints across the plane follow from the others up to rounding."""
    made = closed_mechanism(kind, joints, rng=2, digits=digits)
    rounding = 20.0 * joints * 10.0**-digits
    robot = built(made, loop_tolerance=rounding)
    assert robot.nv == free
    assert robot.report()["redundant constraints"].startswith(str(6 * len(made.loops) - joints + free))
    assert "'loop0' by " in robot.report()["loops that contradict each other"]
    q = robot.random_configuration(rng=0, size=5)
    assert 1e-2 * 10.0**-digits < np.abs(robot.residual(q)).max() <= rounding
    assert robot.opening(q).max() <= 2e-12
    moved = robot.integrate(q, 0.01 * np.random.default_rng(0).standard_normal((5, robot.nv)))
    assert robot.opening(moved).max() <= 2e-12 and np.abs(robot.residual(moved)).max() <= rounding
    if free == 1:  # with more joints, errors across the plane cancel in some configurations
        with pytest.raises(fw.ModelError, match=r"cannot be closed.*attempts leaves .* open\. .*give a larger loop_tolerance"):
            built(made, loop_tolerance=1e-9)


def cranks(count: int, off: float, arm: int = 0) -> Description:
    """Return a bar on parallel cranks, whose holes are `off` [m] from their places, and an arm from the ground to the bar."""
    inertia = fw.Inertia(1.0, (0.05, 0.0, 0.0), np.eye(3).tolist())
    bodies, joints, loops = [fw.Body("bar", inertia)], [], []
    hinge, z = fw.JointType.CONTINUOUS, (0.0, 0.0, 1.0)
    for k in range(count):
        bodies.append(fw.Body(f"crank{k}", inertia))
        joints.append(fw.Joint(f"joint{k}", hinge, None, f"crank{k}", fw.Pose(p=(0.2 * k, 0.0, 0.0)), z))
    joints.append(fw.Joint("hole0", hinge, "crank0", "bar", fw.Pose(p=(0.1, 0.1, 0.0)), z))
    for k in range(1, count):
        hole = fw.Pose(p=(0.2 * k + off * (k - 1), 0.0, 0.0))
        loops.append(fw.Loop(f"hole{k}", fw.LoopType.REVOLUTE, f"crank{k}", "bar", fw.Pose(p=(0.1, 0.1, 0.0)), hole))
    for k in range(arm):
        bodies.append(fw.Body(f"arm{k}", inertia))
        place = fw.Pose(p=(0.3, 0.0, 0.0)) if k else fw.Pose(p=(0.0, 0.4, 0.0))
        joints.append(fw.Joint(f"arm_joint{k}", hinge, f"arm{k - 1}" if k else None, f"arm{k}", place, z))
    if arm:
        loops.append(fw.Loop("grip", fw.LoopType.REVOLUTE, f"arm{arm - 1}", "bar", fw.Pose(p=(0.3, 0.0, 0.0)), fw.Pose()))
    return fw.describe(bodies, joints, loops=loops, name="cranks")


@pytest.mark.parametrize(("count", "arm", "off"), [(3, 0, 5e-6), (3, 0, 5e-5), (5, 0, 1e-6), (3, 3, 5e-6)])
def test_contradicting_loops_that_close_exactly_somewhere_are_closed_elsewhere(count: int, arm: int, off: float) -> None:
    """Check cranks whose contradicting holes match where the cranks are at right angles."""
    robot = built(cranks(count, off, arm))
    assert robot.nv == (2 if arm else 1)
    assert "by" in robot.report()["loops that contradict each other"]
    assert np.abs(robot.neutral()[0]) < 0.3
    q = robot.random_configuration(rng=0, size=4)
    assert np.ptp(q[:, 0]) > 0.5 and robot.opening(q).max() <= 2e-12 and np.abs(robot.residual(q)).max() <= 1e-4


def tilted(tilt: float, crank: float) -> Description:
    """Return a four-bar whose last hinge tilts out of the common direction, closed at one crank angle, beside a turntable."""
    made = fw.robots.four_bar(BARS)
    first, second, third = four_bar_configuration(crank, BARS)

    def turned(frame: fw.Pose, angle: float) -> fw.Pose:
        bar = Rotation.from_rotvec([0.0, 0.0, angle])
        return fw.Pose(as_matrix((bar.inv() * Rotation.from_rotvec([tilt, 0.0, 0.0]) * bar).as_matrix() @ frame.R), frame.p)

    ends = made.loops[0].predecessor_frame, made.loops[0].successor_frame
    a, b = (turned(frame, angle) for frame, angle in zip(ends, (first + second, third), strict=True))
    loop = dataclasses.replace(made.loops[0], type=fw.LoopType.REVOLUTE, predecessor_frame=a, successor_frame=b)
    table = fw.Body("table", fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    joints = (*made.joints, fw.Joint("turn", fw.JointType.CONTINUOUS, None, "table", axis=(0.0, 0.0, 1.0)))
    return dataclasses.replace(made, bodies=(*made.bodies, table), joints=joints, loops=(loop,), independent=())


@pytest.mark.parametrize("crank", [0.3, 1.0, 2.0])
def test_constraints_that_nearly_depend_on_others_hold_where_loops_close_exactly(crank: float) -> None:
    """Check that tilts that open the loop by more than the tolerance, though not nearby, lock the bars, and that smaller tilts
    do not.
    """
    for tilt, free in ((2e-3, 1), (1e-3, 1), (1e-5, 2)):
        robot = built(tilted(tilt, crank))
        assert robot.nv == free and ("loops that contradict each other" in robot.report()) == (free == 2)


def test_the_dynamics_of_rounded_mechanisms_are_those_of_exact_ones() -> None:
    """Check that all algorithms agree to rounding of floats, and with the mechanism whose loops close exactly, to that of
    the file.
    """
    exact = built(closed_mechanism("planar", 7, rng=3, digits=14))
    independent = [j.name for j in exact.joints if j.independent]
    rounded = built(dataclasses.replace(closed_mechanism("planar", 7, rng=3), independent=tuple(independent)))
    assert exact.nv == rounded.nv == 4
    q = min(exact.random_configuration(rng=1, size=10), key=exact.singularity)
    near = rounded.close(q)
    np.testing.assert_allclose(near, q, atol=1e-4)
    v, tau = np.random.default_rng(0).standard_normal((2, 4))
    a = rounded.forward_dynamics(near, v, tau, algorithm="aba")
    for other in ("crba-ltdl", "projection"):
        np.testing.assert_allclose(rounded.forward_dynamics(near, v, tau, algorithm=other), a, rtol=1e-9)
    np.testing.assert_allclose(rounded.inverse_dynamics(near, v, a), tau, rtol=1e-9)
    np.testing.assert_allclose(a, exact.forward_dynamics(q, v, tau), rtol=1e-3)


def test_a_guess_says_in_which_way_a_mechanism_goes_together() -> None:
    robot = built(fw.robots.four_bar(BARS))
    for branch in (1, -1):
        for crank in np.linspace(-3.0, 3.0, 7):
            q = np.array(four_bar_configuration(crank, BARS, branch=branch))
            np.testing.assert_allclose(robot.close(q + np.array([0.0, 0.2, -0.2])), q, atol=1e-9)


def test_random_configurations_come_in_all_ways_and_within_limits() -> None:
    made = fw.robots.four_bar(BARS)
    elbow = built(made).random_configuration(rng=0, size=40)[:, 1]
    assert (elbow > 0.0).sum() >= 5 and (elbow < 0.0).sum() >= 5
    limited = [dataclasses.replace(j, lower=0.1, upper=3.0) if j.name == "joint2" else j for j in made.joints]
    elbow = built(dataclasses.replace(made, joints=tuple(limited))).random_configuration(rng=0, size=40)[:, 1]
    assert (elbow >= 0.1 - 1e-9).all() and (elbow <= 3.0 + 1e-9).all()


def test_limits_that_no_closed_configuration_meets_are_no_obstacle() -> None:
    made = fw.robots.four_bar(BARS)
    limited = tuple(dataclasses.replace(j, lower=-0.1, upper=0.0) for j in made.joints)
    robot = built(dataclasses.replace(made, joints=limited))
    assert robot.opening(robot.neutral()) <= 2e-12


def test_how_far_the_best_attempt_came_is_said() -> None:
    """Check bars that are 0.4 m too short for two points."""
    made = fw.robots.four_bar((0.2, 0.2, 0.2, 1.0))
    with pytest.raises(
        fw.ModelError, match=r"'loop' cannot be closed: .*the best of \d+ attempts leaves 0\.\d+ m of 'loop' open"
    ):
        built(made)
    robot = built(fw.robots.four_bar((0.5, 1.0, 0.2, 1.0)))
    with pytest.raises(ValueError, match=r"from this guess: the best of 1 attempts leaves 0\.\d+ m of 'loop' open"):
        robot.close([3.0, 0.0, 0.0], attempts=1)
    with pytest.raises(ValueError, match=r"from this guess; .* of 'loop' is left open"):
        robot.integrate(robot.neutral(), [3.0])  # beyond the reach of the bars
    with pytest.raises(ValueError, match="loop_tolerance must be a length"):
        built(made, loop_tolerance=-1.0)


def test_singular_values_that_are_small_but_no_rounding_count() -> None:
    """Check a loop that closes exactly and keeps a constraint with a lever arm of 0.1 mm."""
    robot = built(fw.robots.four_bar((0.5, 1.0, 1e-4, 1.0)), loop_tolerance=1e-3)
    assert robot.nv == 1


def test_loading_warns_of_loops_that_contradict_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    made = closed_mechanism("planar", 4, rng=1, digits=4)
    monkeypatch.setattr("featherweight.robot.build.load_description", lambda path, **options: made)
    with pytest.warns(fw.ModelWarning, match=r"numbers are rounded, close only to 'loop0' by .* rad. .* more digits"):
        robot = fw.load("drawn.urdf", loop_tolerance=1e-2)
    assert robot.nv == 1
    monkeypatch.setattr("featherweight.robot.build.load_description", lambda path, **options: fw.robots.four_bar())
    assert "loops that contradict each other" not in fw.load("exact.urdf").report()
