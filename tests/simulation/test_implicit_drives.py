"""Tests of drives with stiffness and damping, which a semi-implicit step treats implicitly, and of diverging velocities."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.robots import linkages
from oracles.robots import ROOT
from oracles.states import Array
from simulation.plain_python import ROUNDED, plain_python, steps_by

H = 0.01
SERVO = """<mujoco><option timestep="0.01" integrator="{integrator}" gravity="0 0 0"/>
  <worldbody><body><joint name="j" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass=".15"/></body></worldbody>
  <actuator><position joint="j" kp="80" kv="3"/></actuator></mujoco>"""


def random_tree(seed: int, effort: float = np.inf, least: float | None = None) -> fw.Robot:
    """Return a robot whose joints have the effort; in one direction, `least` replaces it if given."""
    efforts: dict[str, Any] = {"effort": effort, "effort_range": None if least is None else (least, effort)}
    d = fw.generators.random_tree(5, rng=seed, joint_types=("revolute", "prismatic"), masses=(0.5, 2.0))
    return fw.build(replace(d, joints=tuple(replace(j, **efforts) for j in d.joints)))


def stiff_drives(robot: fw.Robot, low: float, high: float) -> list[fw.Actuator]:
    """Return drives with gears of both signs and limits; the first joint also has a motor without stiffness."""
    servos = [
        fw.Actuator(j.name, j.name, gear=1.0 if k % 2 else -2.0, gain=80.0, bias=(0.3, -80.0, -3.0), force=(low, high))
        for k, j in enumerate(robot.joints)
    ]
    return [*servos, fw.Actuator("motor", robot.joints[0].name, gear=2.0, control=(-1.0, 1.0))]


def force_at(drives: Any, x: Array, v: Array, u: Array, robot: fw.Robot) -> Array:
    """Return the forces of drives by their definition, within efforts."""
    total = np.zeros(robot.nv)
    for a, control in zip(drives, u, strict=True):
        k = next(j.v_slice.start for j in robot.joints if j.name == a.joint)
        law = a.gain * np.clip(control, *a.control) + a.bias[0] + a.gear * (a.bias[1] * x[k] + a.bias[2] * v[k])
        total[k] += a.gear * np.clip(law, *a.force)
    return np.clip(total, *robot.effort_bounds)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_a_stiff_servo_of_a_light_link_settles_as_in_mujoco(integrator: str) -> None:
    """Check a servo that would multiply velocities by 16 in each step if it were explicit."""
    text = SERVO.format(integrator=integrator)
    model = mujoco.MjModel.from_xml_string(SERVO.format(integrator="implicitfast"))
    data, sim = mujoco.MjData(model), fw.Simulation(fw.load(text), contact="rigid")
    data.ctrl[0] = 0.5
    for _ in range(100):
        mujoco.mj_step(model, data)
        sim.step(control=[0.5])
    assert sim.q[0] == pytest.approx(0.5, abs=1e-9)
    assert sim.q[0] == pytest.approx(data.qpos[0], abs=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_a_step_solves_the_equations_of_its_end(seed: int) -> None:
    """Check M (v+ - v)/h + bias = f(x + h v+, v+), with forces and efforts at their limits, to rounding of terms of 1e3."""
    rng = np.random.default_rng(seed)
    robot = random_tree(seed, *((np.inf,), (12.0,), (12.0, -2.0))[seed % 3])
    drives = stiff_drives(robot, -5.0, 8.0)
    sim = fw.Simulation(
        robot, H, q=robot.random_configuration(rng=seed), actuators=drives, joints=fw.JointOptions(limits=False)
    )
    at_limits = 0
    for _ in range(30):
        q, v, u = sim.q, sim.v, rng.normal(size=6)
        sim.step(control=u)
        force = force_at(drives, q + H * sim.v, sim.v, u, robot)
        left = robot.mass_matrix(q) @ (sim.v - v) / H + robot.bias_force(q, v) - force
        assert np.abs(left).max() < 1e-9
        at_limits += int((np.abs(force) > 7.9).sum())
    assert at_limits > 10  # some drives reach their limits


@pytest.mark.parametrize(("effort", "least"), [(np.inf, None), (4.0, None), (4.0, -1.0)])
def test_steps_as_machine_code_have_the_bits_of_plain_python(effort: float, least: float | None) -> None:
    """Check bits with each operation rounded; with fused sums, differences are rounding."""
    robot = random_tree(1, effort, least)
    start: dict[str, Any] = dict(q=robot.random_configuration(rng=1), actuators=stiff_drives(robot, -5.0, 8.0))
    controls, ends = np.random.default_rng(0).normal(size=(50, 6)), []
    for by in (plain_python(), steps_by(ROUNDED), nullcontext()):
        with by:
            sim = fw.Simulation(robot, H, **start)
            for u in controls:
                sim.step(control=u)
            ends.append((sim.q, sim.v))
    plain, rounded, fused = ends
    for x, y, z in zip(plain, rounded, fused, strict=True):
        np.testing.assert_array_equal(x, y)
        np.testing.assert_allclose(z, x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("effort", [np.inf, 3.0])
def test_drives_of_a_loop(effort: float) -> None:
    """Check a four-bar linkage with a driven crank: the difference of two step sizes halves with the step (order 1)."""
    d = linkages.four_bar()
    robot = fw.build(replace(d, joints=tuple(replace(j, effort=effort) for j in d.joints)))
    q = linkages.four_bar_configuration(1.0)
    ends = []
    for h in (H, H / 2, H / 4):
        sim = fw.Simulation(robot, h, q=q, actuators=fw.PD(80.0, 3.0))
        sim.run(0.2, control=[q[0] + 0.2])
        ends.append(sim.q)
    wide, narrow = (np.abs(a - b).max() for a, b in pairwise(ends))
    assert 1.5 < wide / narrow < 2.5


def standing(height: float) -> tuple[fw.Robot, Array, Array]:
    """Return a Go2, its start with bent legs, and the angles of its legs."""
    robot = fw.load(ROOT / "go2_description/urdf/go2.urdf", base="floating")
    q = robot.neutral()
    for j in robot.joints:
        q[j.q_slice] = 0.8 if "thigh" in j.name else -1.6 if "calf" in j.name else q[j.q_slice]
    q[2] = height
    return robot, q, q[7:].copy()


def test_a_quadruped_stands_by_stiff_drives_at_ten_milliseconds() -> None:
    robot, q, angles = standing(0.4)
    sim = fw.Simulation(robot, H, q=q, ground=fw.Plane(), actuators=fw.PD(80.0, 3.0))
    sim.run(2.0, control=angles)
    assert np.abs(sim.v).max() < 0.02
    assert np.abs(sim.q[7:] - angles).max() < 0.1  # the legs yield by load over stiffness
    assert 0.25 < sim.q[2] < 0.35


def test_efforts_hold_while_feet_hit_the_ground() -> None:
    """Check a landing, whose impulses change velocities, and so the forces of drives in the same step."""
    robot, q, angles = standing(0.8)
    sim = fw.Simulation(robot, H, q=q, ground=fw.Plane(), actuators=fw.PD(80.0, 3.0))
    most, greatest = robot.effort_limit[6:], 0.0
    for _ in range(45):
        q, v = sim.q, sim.v
        sim.step(control=angles)
        before, after = robot.frame_placement("base")(np.stack([q, sim.q]))[:, :3, :3]
        change = (sim.v - v) / H
        change[:3] = (before.T @ after @ sim.v[:3] - v[:3]) / H - np.cross(v[3:6], v[:3])  # of the base's linear velocity
        force = robot.inverse_dynamics(q, v, change, external_forces=sim.contact_forces) - sim.limit_forces
        np.testing.assert_allclose(force[:6], 0.0, atol=1e-9)
        greatest = max(greatest, float((np.abs(force[6:]) / most).max()))
    assert greatest == pytest.approx(1.0, rel=1e-12)  # reached, not exceeded


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("effort", "least"), [(np.inf, None), (15.0, None), (15.0, -4.0)])
def test_derivatives_of_driven_steps(seed: int, effort: float, least: float | None) -> None:
    """Check against central differences of whole steps, with drives free and at their limits."""
    rng = np.random.default_rng(seed)
    robot = random_tree(seed, effort, least)
    q, v, u, n, e = robot.random_configuration(rng=seed), rng.normal(size=5), rng.normal(size=6), 5, 1e-6
    drives = stiff_drives(robot, -25.0, 28.0)

    def after(x: Array) -> Array:
        sim = fw.Simulation(robot, H, q=q + x[:n], v=v + x[n : 2 * n], actuators=drives)
        sim.step(x[2 * n : 3 * n], u + x[3 * n :])
        return np.concatenate([sim.q, sim.v])

    d = fw.Simulation(robot, H, q=q, v=v, actuators=drives).derivatives(np.zeros(n), u)
    given = np.hstack([d.A, d.B, d.B_control])
    found = np.stack([(after(e * x) - after(-e * x)) / (2 * e) for x in np.eye(3 * n + 6)], axis=1)
    assert not d.doubtful
    assert np.abs(given - found).max() < 1e-7 * np.abs(found).max()


def test_gains_of_robots_that_differ_are_taken_at_the_end() -> None:
    robot, factors = fw.load(SERVO.format(integrator="Euler")), np.array([0.5, 1.0, 20.0])
    many = fw.Simulation(robot, q=np.zeros((3, 1)), contact="rigid")
    many.vary(gains=factors)
    many.run(0.05, control=np.full((3, 1), 0.5))
    for q, f in zip(many.q, factors, strict=True):
        drive = fw.Actuator("a", "j", gain=80.0 * f, bias=(0.0, -80.0 * f, -3.0 * f))
        one = fw.Simulation(robot, actuators=[drive], contact="rigid")
        one.run(0.05, control=[0.5])
        np.testing.assert_array_equal(q, one.q)


def test_drives_without_controls_do_nothing() -> None:
    """Check that such drives add neither force nor armature, also in the step after one with controls."""
    robot = fw.load(SERVO.format(integrator="Euler"))
    sim, free = fw.Simulation(robot), fw.Simulation(robot, actuators=())
    sim.step(control=[0.5])
    free.reset(sim.q, sim.v)
    sim.step()
    free.step()
    np.testing.assert_array_equal(sim.q, free.q)


# --- velocities that diverge


def unstable(time: float, q: Array, v: Array) -> Array:
    """Return the servo's law as a controller, which is constant during a step."""
    tau: Array = 80.0 * (0.5 - q) - 3.0 * v
    return tau


@pytest.mark.parametrize("by", [nullcontext, plain_python])
def test_a_controller_that_diverges_is_refused(by: Any) -> None:
    with by():
        sim = fw.Simulation(fw.load(SERVO.format(integrator="Euler")))
        with pytest.raises(fw.SimulationError, match=r"joint 'j' moves by .* diverges.*featherweight\.PD"):
            sim.run(1.0, unstable)
    assert np.abs(sim.q).max() < 1e3


def test_rollouts_that_diverge_are_refused() -> None:
    robot = fw.load(SERVO.format(integrator="Euler"))
    push = np.full((1, 400, 1), 50.0)
    with pytest.raises(fw.SimulationError, match="'j' moves by"):
        fw.Simulation(robot).rollout(np.zeros((3, 1)), tau=push)


def test_robots_that_diverge_stop() -> None:
    robot = fw.load(SERVO.format(integrator="Euler"))
    sim = fw.Simulation(robot, q=np.zeros((2, 1)), v=[[0.0], [2e4]], on_failure="stop")
    sim.step()
    np.testing.assert_array_equal(sim.failed, [False, True])


# --- PD


def test_pd_names_joints_that_are_none() -> None:
    robot = random_tree(0)
    for wrong, words in (
        (fw.PD(1.0, joints=["knee"]), "joints names 'knee'"),
        (fw.PD({"knee": 1.0}), "stiffness names 'knee'"),
        (fw.PD({"joint1": 1.0}, joints=["joint1", "joint2"]), "stiffness has no number for joint 'joint2'"),
    ):
        with pytest.raises(ValueError, match=words):
            fw.Simulation(robot, actuators=wrong)
    with pytest.raises(ValueError, match="PD: damping must be a finite number, zero or more"):
        fw.PD(1.0, -1.0)


def test_pd_drives_the_joints_that_move_by_themselves() -> None:
    d = linkages.four_bar()
    robot = fw.build(d)
    sim = fw.Simulation(robot, q=linkages.four_bar_configuration(1.0), actuators=fw.PD(1.0))
    assert [a.joint for a in sim.forces.actuators] == [j.name for j in robot.joints if j.independent]


# --- messages


def test_the_integrator_implicit_is_told() -> None:
    robot = fw.load(SERVO.format(integrator="implicit"))
    with pytest.warns(fw.ModelWarning, match="requests the integrator 'implicit'; 'semi-implicit' is used"):
        fw.Simulation(robot)
    for same in (SERVO.format(integrator="implicitfast"), SERVO.format(integrator="Euler")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fw.Simulation(fw.load(same))


def test_stiff_drives_of_a_robot_that_is_not_traced_are_told() -> None:
    robot = fw.build(fw.generators.chain(3), execution="rolled")
    with pytest.warns(fw.ModelWarning, match="stiffness and damping of its drives at their start, because it is too large"):
        fw.Simulation(robot, actuators=fw.PD(80.0, 3.0))
