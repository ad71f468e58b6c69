"""Tests of starts beyond joint limits, equal limits, and limits that loops make unreachable."""

from __future__ import annotations

import dataclasses
import functools
import sysconfig
import warnings
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.contact.laws import RETURN_SPEED
from featherweight.model.types import ModelWarning
from featherweight.robots.linkages import four_bar, four_bar_configuration
from featherweight.simulation.starts import FAR
from oracles.mechanisms import closed
from oracles.states import Array
from simulation.plain_python import ROUNDED, plain_python, steps_by
from simulation.scenes import NO_GRAVITY, Y, double_pendulum, pendulum

H = 1e-3
INTEGRATORS = ("semi-implicit", "rk4", "midpoint")
PANDA = Path(sysconfig.get_path("purelib"), "cmeel.prefix/share/example-robot-data/robots/panda_description/urdf/panda.urdf")
LENGTHS = (0.3, 0.8, 0.6, 0.9)


@functools.cache
def arm(gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)) -> fw.Robot:
    """Return two hanging links; the first turns from -0.5 to 0.5, the second from 0.2 to 0.25."""
    return double_pendulum({"lower": -0.5, "upper": 0.5}, {"lower": 0.2, "upper": 0.25}, name="arm", gravity=gravity)


# --- slightly beyond


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_joint_beyond_its_limit_comes_back_at_a_bounded_speed(integrator: str) -> None:
    """Check a joint that gravity pulls outward: it is held without velocity, and returns by h `RETURN_SPEED` in each step, to
    rounding.

    With other integrators than Euler's, it returns by h² a / 2 less, a = 9 rad/s², the fall in a step: impulses change the
    motion within the step.
    """
    falls = 0.0 if integrator == "semi-implicit" else 5e-6
    sim = fw.Simulation(pendulum(lower=0.5), H, integrator, q=[0.45])
    for k in range(1, 50):
        sim.step()
        assert sim.q[0] == pytest.approx(0.45 + k * H * RETURN_SPEED, abs=1e-9 + k * falls)
        assert abs(sim.v[0]) < 1e-9
    sim.run(0.1)
    assert sim.q[0] == pytest.approx(0.5, abs=2e-6 + falls)  # twice the slop
    assert abs(sim.v[0]) < 1e-9 + falls / H


def test_one_that_moves_back_by_itself_is_not_pushed() -> None:
    sim = fw.Simulation(pendulum(lower=0.5), H, q=[0.45], v=[2.0])
    free = fw.Simulation(pendulum(lower=0.5), H, q=[0.45], v=[2.0], joints=fw.JointOptions(limits=False))
    sim.step()
    free.step()
    np.testing.assert_allclose([sim.q, sim.v], [free.q, free.v], rtol=1e-14)


def test_no_joint_is_pushed_faster_and_none_gains_velocity() -> None:
    """Check that nothing gains kinetic energy on the way back, without gravity and from rest."""
    robot = arm(NO_GRAVITY)
    sim = fw.Simulation(robot, H, q=[0.58, 0.28])
    for _ in range(200):
        q = sim.q
        sim.step()
        assert np.abs(sim.q - q).max() <= H * RETURN_SPEED * (1.0 + 1e-9)
        assert robot.kinetic_energy(sim.q, sim.v) < 1e-20
    np.testing.assert_allclose(np.clip(sim.q, robot.lower, robot.upper), sim.q, atol=2e-6)


def test_all_ways_to_step_come_back_with_the_same_bits() -> None:
    """Check single steps, runs and rollouts; in plain Python too, against machine code whose operations are rounded."""
    start, steps = np.array([0.57, 0.16]), 30
    sim = fw.Simulation(arm(), H, q=start)
    by_steps = []
    for _ in range(steps):
        sim.step()
        by_steps.append(sim.q)
    run = fw.Simulation(arm(), H, q=start).run(steps * H)
    np.testing.assert_array_equal(run.q[1:], by_steps)
    rolled, _ = sim.rollout(np.stack([start, 0.5 * start + 0.1]), steps=steps)
    np.testing.assert_array_equal(rolled[0, 1:], by_steps)
    ends = []
    for by in (plain_python(), steps_by(ROUNDED)):
        with by:
            sim = fw.Simulation(arm(), H, q=start)
            sim.run(steps * H)
            ends.append(sim.q)
    np.testing.assert_array_equal(ends[0], ends[1])
    np.testing.assert_allclose(ends[0], by_steps[-1], rtol=1e-12, atol=1e-12)


def test_derivatives_of_a_step_that_comes_back() -> None:
    """Compare with central differences of whole steps; the correction does not depend on the distance."""
    q, v, e = np.array([0.57, 0.22]), np.array([0.0, 0.1]), 1e-6
    sim = fw.Simulation(arm(), H, q=q, v=v)
    A = sim.derivatives().A

    def after(x: Array) -> Array:
        sim.reset(x[:2], x[2:])
        sim.step()
        return np.concatenate([sim.q, sim.v])

    x = np.concatenate([q, v])
    differences = np.stack([(after(x + e * d) - after(x - e * d)) / (2.0 * e) for d in np.eye(4)], axis=1)
    np.testing.assert_allclose(A, differences, atol=1e-6)
    assert A[0, 0] == pytest.approx(1.0, abs=1e-4)  # zero if the joint returned at once


# --- far beyond


def test_a_start_far_beyond_is_refused_however_it_is_given() -> None:
    """Check that the error has the joint, its position and its limits, and that its advice works."""
    robot, far = arm(), np.array([2.5, 0.22])
    message = (
        r"^q: beyond joint limits: joint 'shoulder' at 2\.5 \(limits -0\.5 to 0\.5\)\. .*\(q = numpy\.clip\(q, robot\.lower"
    )
    with pytest.raises(ValueError, match=message):
        fw.Simulation(robot, H, q=far)
    sim = fw.Simulation(robot, H)
    for give in (sim.reset, lambda x: setattr(sim, "q", x)):
        with pytest.raises(ValueError, match=message):
            give(far)
    with pytest.raises(ValueError, match=r"limits -0\.5 to 0\.5\) of robot 1"):
        sim.rollout(np.stack([[0.0, 0.22], far]), steps=3)
    clipped = np.clip(far, robot.lower, robot.upper)
    fw.Simulation(robot, H, q=clipped).step()
    fw.Simulation(robot, H, q=far, joints=fw.JointOptions(limits=False))


def test_far_is_no_more_than_the_range() -> None:
    """Check the elbow, with a range of 0.05 rad: it may start as far beyond, and the shoulder `FAR`."""
    for q, refused in (([0.5 + FAR - 1e-6, 0.3 - 1e-6], False), ([0.5 + FAR + 1e-6, 0.22], True), ([0.0, 0.3 + 1e-6], True)):
        if refused:
            with pytest.raises(ValueError, match="beyond joint limits"):
                fw.Simulation(arm(), H, q=q)
        else:
            fw.Simulation(arm(), H, q=q)


KEYS = """<mujoco model="knee"><compiler angle="radian"/><worldbody><body name="leg"><joint name="knee" axis="0 1 0"
  range="-2.8 -0.9" damping="0.1"/><geom type="capsule" size=".02" fromto="0 0 0 0 0 -.3"/></body></worldbody>
  <keyframe><key name="bent" qpos="-1.5"/><key name="stretched" qpos="-0.2"/></keyframe></mujoco>"""


def test_a_start_of_the_robots_own_file_is_pushed_back_as_in_mujoco(tmp_path: Path) -> None:
    """Check starts by name and by numbers, with a warning; MuJoCo's spring and the correction end at the same limit, to
    its softness.
    """
    path = tmp_path / "knee.xml"
    path.write_text(KEYS)
    robot = fw.load(path)
    for q in ("stretched", "qpos0", robot.configurations["stretched"], [-0.15]):
        with pytest.warns(ModelWarning, match=r"its own configuration is beyond joint limits: joint 'knee' at .*pushed back"):
            fw.Simulation(robot, H, q=q, contact="rigid")
    with pytest.raises(ValueError, match="beyond joint limits"):
        fw.Simulation(robot, H, q=[0.3], contact="rigid")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fw.Simulation(robot, H, q="bent", contact="rigid")
    with pytest.warns(ModelWarning):
        sim = fw.Simulation(robot, H, q="stretched", contact="rigid")
    motion = sim.run(1.0)
    assert np.abs(np.diff(motion.q[:, 0])).max() <= H * RETURN_SPEED * (1.0 + 1e-9)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 1)
    while data.time < 3.0:
        mujoco.mj_step(model, data)
    assert sim.q[0] == pytest.approx(data.qpos[0], abs=2e-3)


# --- the default start


def test_a_simulation_starts_within_limits() -> None:
    """Check Panda, whose neutral configuration exceeds the limit of the fourth joint."""
    robot = fw.load(PANDA)
    assert not (robot.neutral() <= robot.upper).all()
    sim = fw.Simulation(robot, shapes=False)
    np.testing.assert_array_equal(sim.q, np.clip(robot.neutral(), robot.lower, robot.upper))
    sim.reset()
    np.testing.assert_array_equal(sim.q, np.clip(robot.neutral(), robot.lower, robot.upper))


def with_limits(name: str, lower: float, upper: float) -> fw.ClosedRobot:
    base = four_bar(LENGTHS)
    joints = [dataclasses.replace(j, lower=lower, upper=upper) if j.name == name else j for j in base.joints]
    return closed(dataclasses.replace(base, joints=tuple(joints), gravity=NO_GRAVITY))


def test_a_robot_with_loops_starts_within_limits_and_closed() -> None:
    """Check that the neutral configuration closes loops within limits, and leaves other joints at zero."""
    loop = dataclasses.replace(four_bar(LENGTHS), gravity=NO_GRAVITY)
    tool = fw.Joint("tool", fw.JointType.REVOLUTE, "link3", "tool", axis=Y, lower=0.3, upper=0.6)
    bodies = (*loop.bodies, fw.Body("tool", fw.Inertia(1.0, (0.1, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))))
    limited = [dataclasses.replace(j, lower=1.5, upper=1.7) if j.name == "joint1" else j for j in loop.joints]
    robot = closed(dataclasses.replace(loop, bodies=bodies, joints=(*limited, tool)))
    assert robot.neutral()[robot.joint("tool").q_slice] == 0.0
    sim = fw.Simulation(robot, H)
    np.testing.assert_allclose(np.clip(sim.q, robot.lower, robot.upper), sim.q, atol=1e-12)
    assert sim.q[robot.joint("tool").q_slice] == 0.3
    assert robot.opening(sim.q) < 1e-9


# --- equal limits

EQUAL = """<robot name="drawn"><link name="a"/><link name="b"><inertial><mass value="1"/><origin xyz="0 0 -.3"/>
  <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
  <limit lower="0" upper="0" effort="0" velocity="0"/></joint></robot>"""


@pytest.mark.filterwarnings("ignore:not simulated")
def test_equal_limits_are_ignored_as_in_mujoco_and_reported(tmp_path: Path) -> None:
    """Check Euler steps of both, which agree to rounding."""
    path = tmp_path / "drawn.urdf"
    path.write_text(EQUAL)
    robot = fw.load(path)
    (kind,) = robot.report()
    assert "equal lower and upper limits" in kind and robot.report()[kind] == "j"
    with pytest.warns(ModelWarning, match=r"not simulated: .*equal lower and upper limits.*: j"):
        sim = fw.Simulation(robot, H, q=[1.0])
    model = mujoco.MjModel.from_xml_string(EQUAL)
    model.opt.timestep = H
    data = mujoco.MjData(model)
    data.qpos[:] = 1.0
    for _ in range(300):
        sim.step()
        mujoco.mj_step(model, data)
    assert sim.q[0] == pytest.approx(data.qpos[0], abs=1e-9)


def test_equal_limits_hold_a_joint_where_that_is_asked_for() -> None:
    robot = pendulum(lower=0.7, upper=0.7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim = fw.Simulation(robot, H, q=[0.7], joints=fw.JointOptions(limits="all"))
    sim.run(0.1, tau=[3.0])
    assert sim.q[0] == pytest.approx(0.7, abs=2e-6)


# --- limits that loops make unreachable


def rocker(crank: float) -> float:
    return four_bar_configuration(crank, LENGTHS)[2]


@functools.cache
def dead_centre() -> tuple[float, float]:
    """Return the angles of the crank and the rocker where the rocker is farthest."""
    cranks = np.linspace(0.0, 2.0 * np.pi, 2001)[:-1]
    angles = [rocker(c) for c in cranks]
    k = int(np.argmax(angles))
    assert 0 < k < len(cranks) - 1
    return float(cranks[k]), float(angles[k])


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("way", ["step", "run", "rollout"])
def test_a_limit_that_a_loop_leaves_out_of_reach_is_named(integrator: str, way: str) -> None:
    """Check a rocker that is pushed towards a limit beyond its dead centre: no joint jumps, and the error names joint and
    loop.
    """
    crank, most = dead_centre()
    robot = with_limits("joint3", most + 0.02, most + 1.0)
    start = robot.close([crank - 0.05, *four_bar_configuration(crank - 0.05, LENGTHS)[1:]])
    assert most - start[2] < 0.03
    sim = fw.Simulation(robot, H, integrator, q=start)
    message = (
        r"joint 'joint3' is at .*, beyond its lower limit .* loops \('[^']*'\) do not let it come back; .*random_configuration"
    )
    states = [sim.q]

    def go(steps: int) -> None:
        for _ in range(steps):
            sim.step()
            states.append(sim.q)

    ways: dict[str, Any] = {"step": go, "run": lambda n: sim.run(n * H), "rollout": lambda n: sim.rollout(start[None], steps=n)}
    with pytest.raises(fw.SimulationError, match=message):
        ways[way](200)
    assert np.abs(np.diff(states, axis=0)).max(initial=0.0) <= 1.1 * H * RETURN_SPEED
    assert sim.q[2] == start[2] if way == "rollout" else most - 1e-4 < sim.q[2] <= most + 1e-6


def test_a_limit_within_a_loops_reach_is_reached() -> None:
    crank, most = dead_centre()
    robot = with_limits("joint3", most - 0.01, most + 1.0)
    start = robot.close([crank - 0.4, *four_bar_configuration(crank - 0.4, LENGTHS)[1:]])
    assert 0.01 < most - 0.01 - start[2] < FAR
    sim = fw.Simulation(robot, H, q=start)
    sim.run(0.5)
    assert sim.q[2] == pytest.approx(most - 0.01, abs=3e-6)
    assert np.abs(sim.v).max() < 1e-6
