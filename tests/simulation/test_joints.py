"""Tests of forces at joints: damping, springs, dry friction, limits, efforts and actuators."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.model.types import WORLD
from featherweight.robots.linkages import four_bar, four_bar_configuration
from oracles.mechanisms import closed
from oracles.states import Array, state
from oracles.trees import tree
from simulation.scenes import HINGE, NO_GRAVITY, G, Z, cart, pendulum

H = 1e-3

# --- damping and springs


@pytest.mark.parametrize("damping", [0.5, 1e3, 1e9])
def test_damping_is_implicit(damping: float) -> None:
    """Check v+ = v / (1 + h d / m), to rounding: stable for any d and h."""
    sim = fw.Simulation(cart(2.0, damping=damping), H, v=[3.0])
    for k in range(1, 20):
        sim.step()
        assert sim.v[0] == pytest.approx(3.0 / (1.0 + H * damping / 2.0) ** k, rel=1e-12)


@pytest.mark.parametrize("stiffness", [10.0, 1e9])
def test_springs_are_implicit(stiffness: float) -> None:
    """Check v+ = (v - h k (x - rest) / m) / (1 + h² k / m), x+ = x + h v+; the step dissipates energy."""
    m, rest = 2.0, 0.3
    sim = fw.Simulation(cart(m, stiffness=stiffness, rest=rest), H, v=[1.0])
    x, v, first = 0.0, 1.0, sim.energy()
    for _ in range(50):
        sim.step()
        v = (v - H * stiffness / m * (x - rest)) / (1.0 + H * H * stiffness / m)
        x += H * v
        assert sim.v[0] == pytest.approx(v, rel=1e-9, abs=1e-12)
        assert sim.q[0] == pytest.approx(x, rel=1e-9, abs=1e-12)
    assert sim.energy() <= first * (1.0 + 1e-12)


def test_energy_has_that_of_springs() -> None:
    sim = fw.Simulation(cart(2.0, stiffness=7.0, rest=0.3), q=[1.0], v=[2.0])
    assert sim.energy() == pytest.approx(0.5 * 2.0 * 4.0 + 0.5 * 7.0 * 0.49)
    assert fw.Simulation(sim.robot, q=[1.0], v=[2.0], joints=fw.JointOptions(passive=False)).energy() == pytest.approx(4.0)


@pytest.mark.parametrize(("integrator", "tolerance"), [("semi-implicit", 3e-2), ("rk4", 1e-9), ("midpoint", 1e-4)])
def test_damped_oscillation(integrator: str, tolerance: float) -> None:
    """Check x = e^(-c t) (cos w t + c / w sin w t), c = d / 2m, w² = k/m - c².

    Errors are C h^order, C about w² t / 4 = 15 for Euler and less for the others.
    """
    m, d, k = 2.0, 1.0, 50.0
    sim = fw.Simulation(cart(m, damping=d, stiffness=k), H, integrator, q=[1.0])
    motion = sim.run(2.0, every=10)
    c = d / (2 * m)
    w, t = math.sqrt(k / m - c * c), motion.times
    np.testing.assert_allclose(motion.q[:, 0], np.exp(-c * t) * (np.cos(w * t) + c / w * np.sin(w * t)), atol=tolerance)


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4", "midpoint"])
def test_a_hanging_spring_comes_to_rest_where_it_carries_the_weight(integrator: str) -> None:
    """Check critical damping, for 10 s at 10 rad/s: a remainder of e^-100."""
    m, k = 1.5, 150.0
    sim = fw.Simulation(cart(m, Z, damping=2.0 * math.sqrt(k * m), stiffness=k, rest=0.2), 5e-3, integrator)
    sim.run(10.0, every=10**6)
    assert sim.q[0] == pytest.approx(0.2 - m * G / k, abs=1e-9)
    assert sim.v[0] == pytest.approx(0.0, abs=1e-9)


def with_each(description: fw.Description, **properties: Any) -> fw.Description:
    return dataclasses.replace(description, joints=tuple(dataclasses.replace(j, **properties) for j in description.joints))


@pytest.mark.parametrize("damping", [1.0, 1e6])
def test_damped_joints_of_every_type_lose_energy(damping: float) -> None:
    """Check that energy falls in each step in a tree of all joint types, for any step size, because damping is implicit."""
    made = dataclasses.replace(with_each(tree("mixed_8")[0], damping=damping), gravity=NO_GRAVITY)
    robot = fw.build(made)
    x = state(robot, 2, 1.0)
    sim = fw.Simulation(robot, 1e-2, q=x.q, v=0.2 * x.v, joints=fw.JointOptions(limits=False))
    energy = sim.energy()
    for _ in range(50):
        sim.step()
        assert sim.energy() <= energy * (1.0 + 1e-9)
        energy = sim.energy()
    assert energy < 0.95 * robot.kinetic_energy(x.q, 0.2 * x.v)


def test_a_passive_joint_of_a_loop_damps_and_springs_what_moves_it() -> None:
    """Check a four-bar: M (v+ - v) / h = tau - c - S' (D w + K (x + h w - rest)), with the joints' rates w = S v + h (S v)'.

    The tolerance is rounding of the central difference for S' v, 1e-10 of a part of 1e-3.
    """
    lengths = (0.3, 0.8, 0.6, 0.9)
    base = four_bar(lengths)
    d, k, rest = np.array([0.1, 0.5, 0.2]), np.array([0.0, 3.0, 2.0]), np.array([0.0, -0.5, 0.3])
    joints = [
        dataclasses.replace(j, damping=float(a), stiffness=float(b), rest=float(c))
        for j, a, b, c in zip(base.joints, d, k, rest, strict=True)
    ]
    robot, bare = closed(dataclasses.replace(base, joints=tuple(joints))), fw.build(base)
    q = robot.close(four_bar_configuration(0.8, lengths))

    def rates(q: Array, t: float, v: Array) -> Array:
        return np.asarray(robot.spanning_velocity(robot.integrate(q, t * v), v))

    sim = fw.Simulation(robot, H, q=q, v=[2.0])
    assert sim.energy() == pytest.approx(bare.kinetic_energy(q, sim.v) + 0.5 * k @ (q - rest) ** 2)
    for _ in range(20):
        q, v, tau = sim.q, sim.v, np.array([0.7])
        S = robot.spanning_velocity(q, np.ones(1))[:, None]
        turning = (rates(q, 1e-5, v) - rates(q, -1e-5, v)) / 2e-5
        sim.step(tau)
        M = bare.mass_matrix(q) + H * S.T @ np.diag(d + H * k) @ S
        w = S @ v + H * turning
        force = tau - bare.bias_force(q, v) - S.T @ (d * w + k * (q + H * w - rest))
        np.testing.assert_allclose(sim.v - v, H * np.linalg.solve(M, force), rtol=1e-9, atol=1e-13)


def test_the_midpoint_rule_loses_what_dampers_of_a_loop_dissipate() -> None:
    """Check that the loss is h v' S' D S v' at the middle of the step, with S there, to rounding; springs dissipate nothing."""
    lengths = (0.3, 0.8, 0.6, 0.9)
    robot = closed(with_each(four_bar(lengths), damping=0.3, stiffness=2.0, rest=0.1))
    sim = fw.Simulation(robot, H, "midpoint", q=robot.close(four_bar_configuration(0.8, lengths)), v=[3.0])
    for _ in range(20):
        before, q, v = sim.energy(), sim.q, sim.v
        sim.step()
        mean = 0.5 * (v + sim.v)
        rates = robot.spanning_velocity(robot.integrate(q, 0.5 * H * mean), mean)
        assert sim.energy() - before == pytest.approx(-H * 0.3 * rates @ rates, abs=1e-12)


# --- dry friction


def test_dry_friction_holds_below_its_force() -> None:
    """Check 99 % of the friction for 0.3 s: not even rounding moves the joint, because the impulse leaves no velocity."""
    sim = fw.Simulation(cart(2.0, dry_friction=5.0), H)
    sim.run(0.3, tau=[0.99 * 5.0], every=1000)
    assert abs(sim.v[0]) < 1e-12
    assert abs(sim.q[0]) < 1e-12


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_dry_friction_opposes_a_stronger_force(way: float) -> None:
    """Check the acceleration (F - f) / m, to rounding in each step."""
    sim = fw.Simulation(cart(2.0, dry_friction=5.0), H)
    for k in range(1, 100):
        sim.step(tau=[way * 8.0])
        assert sim.v[0] == pytest.approx(way * k * H * (8.0 - 5.0) / 2.0, rel=1e-9)


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4", "midpoint"])
def test_dry_friction_stops_a_motion_at_its_rate(integrator: str) -> None:
    """Check that v falls by h f / m in each step, to rounding, and ends at zero without reversal."""
    sim = fw.Simulation(cart(2.0, dry_friction=5.0), H, integrator, v=[0.0321])
    v = 0.0321
    for _ in range(20):
        sim.step()
        v = max(v - H * 5.0 / 2.0, 0.0)
        assert sim.v[0] == pytest.approx(v, abs=1e-12)
    assert v == 0.0


def test_a_robot_with_enough_friction_in_its_joints_does_not_sag() -> None:
    """Check a tree of all types: nothing moves with twice the friction that gravity requires; without friction the tree
    falls.
    """
    robot, held = (fw.build(with_each(tree("roots")[0], dry_friction=f)) for f in (0.0, 1e3))
    q = state(robot, 4).q
    assert np.abs(robot.gravity_force(q)).max() < 500.0
    sim = fw.Simulation(held, H, q=q, joints=fw.JointOptions(limits=False))
    sim.run(0.02, every=100)
    assert np.abs(sim.v).max() < 1e-9
    sim = fw.Simulation(held, H, q=q, joints=fw.JointOptions(limits=False, dry_friction=False))
    sim.run(0.02, every=100)
    assert np.abs(sim.v).max() > 1e-3


def test_friction_of_a_geared_joint_counts_by_its_ratio() -> None:
    """Check a wheel geared 3 : 1 with friction 2 N m: it holds a torque of 6 N m at the arm, and subtracts 6 N m from a
    greater one.
    """
    body = fw.Body("arm", fw.Inertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1)))
    wheel = dataclasses.replace(body, name="wheel")
    joints = [fw.Joint("a", HINGE, WORLD, "arm"), fw.Joint("b", HINGE, WORLD, "wheel", dry_friction=2.0)]
    couplings = [fw.Coupling("gear", "b", (("a", (3.0,)),))]
    robot = fw.build(fw.describe([body, wheel], joints, couplings=couplings))
    sim = fw.Simulation(robot, H)
    sim.step(tau=[5.99])
    assert abs(sim.v[0]) < 1e-9  # the solver's tolerance, 1e-8 of h tau / inertia
    sim.step(tau=[8.0])
    assert sim.v[0] == pytest.approx(H * (8.0 - 6.0) / (0.1 + 9 * 0.1), rel=1e-7)


# --- limits


def limit_force(sim: fw.Simulation, q: Array, v: Array, tau: Any = 0.0) -> Array:
    """Return the force of a semi-implicit step from (q, v) on the joints beyond tau, by the equation of motion."""
    return sim.robot.inverse_dynamics(q, v, (sim.v - v) / sim.dt) - tau


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4", "midpoint"])
@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_pendulum_stops_at_its_limit(integrator: str, way: float) -> None:
    """Check a pendulum that falls onto the limit and stays, at most 1e-6 (the slop) beyond it; energy grows by at most h
    g m v.
    """
    limits = {"lower": 0.5} if way > 0 else {"upper": -0.5}
    robot = pendulum(**limits)
    sim = fw.Simulation(robot, H, integrator, q=[way * 1.2])
    first = energy = sim.energy()
    for _ in range(700):
        sim.step()
        assert way * sim.q[0] >= 0.5 - 1e-6
        assert sim.energy() <= first + 1e-2
        energy = sim.energy()
    assert way * sim.q[0] == pytest.approx(0.5, abs=1e-5)
    assert abs(sim.v[0]) < 1e-2
    assert energy == pytest.approx(robot.potential_energy([way * 0.5]), abs=1e-4)


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_limit_pushes_away_from_it_and_never_pulls(way: float) -> None:
    """Check that at rest on the limit, the force carries the pendulum's weight, to 1e-6 of it (the slop); elsewhere it is
    zero.
    """
    robot = pendulum(**({"lower": 0.5} if way > 0 else {"upper": -0.5}))
    sim = fw.Simulation(robot, H, q=[way * 0.7])
    met = 0
    for _ in range(600):
        q, v = sim.q, sim.v
        sim.step()
        force = way * limit_force(sim, q, v)[0]
        assert force >= -1e-9
        if way * q[0] > 0.51:
            assert abs(force) < 1e-9
        met += force > 1e-3
    assert met > 300
    assert force == pytest.approx(way * robot.gravity_force([way * 0.5])[0], rel=1e-5)
    sim.run(0.2, tau=[way * 20.0])  # and releases it
    assert way * sim.q[0] > 0.6


@pytest.mark.parametrize("seed", range(4))
def test_limits_of_random_trees_hold(seed: int) -> None:
    """Check that joints exceed limits by at most the slop and the solver's tolerance, for any forces; energy falls."""
    robot = fw.build(fw.generators.random_tree(5, rng=seed, joint_types=("revolute", "prismatic"), masses=(0.3, 3.0)))
    lower, upper = (np.array([getattr(j, name) for j in robot.joints]) for name in ("lower", "upper"))
    rng = np.random.default_rng(seed)
    q = 0.8 * rng.uniform(lower, upper)
    sim = fw.Simulation(robot, H, q=q, v=rng.standard_normal(robot.nv))
    reached = np.zeros(robot.nv, dtype=bool)
    tau = 5.0 * rng.standard_normal(robot.nv)
    for _ in range(400):
        q, v = sim.q, sim.v
        sim.step(tau)
        assert (sim.q >= lower - 2e-6).all()
        assert (sim.q <= upper + 2e-6).all()
        force = limit_force(sim, q, v, tau)
        at_lower, at_upper = q + H * sim.v < lower + 1e-4, q + H * sim.v > upper - 1e-4
        scale = 1e-8 * (1.0 + np.abs(force).max())
        assert (force[~at_upper] >= -scale).all()
        assert (force[~at_lower] <= scale).all()
        free = v + H * robot.forward_dynamics(q, v, tau)
        assert robot.kinetic_energy(q, sim.v) <= robot.kinetic_energy(q, free) * (1.0 + 1e-7)
        reached |= at_lower | at_upper
    assert reached.any()


@pytest.mark.parametrize("name", ["joint1", "joint2", "joint3"])
def test_limits_in_loops_hold(name: str) -> None:
    """Check limits of independent and dependent joints to (h v)² of a dependent joint, the curvature of the loop."""
    lengths = (0.3, 0.8, 0.6, 0.9)
    base = four_bar(lengths)
    q = np.array(four_bar_configuration(0.8, lengths))
    which = [j.name for j in base.joints].index(name)
    joints = [
        dataclasses.replace(j, lower=float(q[which]) - 0.1, upper=float(q[which]) + 0.1) if j.name == name else j
        for j in base.joints
    ]
    robot = closed(dataclasses.replace(base, joints=tuple(joints), gravity=(0.0, -G, 0.0)))
    for way in (1.0, -1.0):
        sim = fw.Simulation(robot, H, q=robot.close(q), v=[3.0 * way])
        furthest = 0.0
        for _ in range(300):
            sim.step(tau=[30.0 * way])
            furthest = max(furthest, abs(sim.q[which] - q[which]))
        assert furthest == pytest.approx(0.1, abs=2e-5)
        assert abs(sim.v[0]) < 1e-2


def test_limits_can_be_left_out() -> None:
    robot = pendulum(lower=0.5)
    sim = fw.Simulation(robot, H, q=[0.7], joints=fw.JointOptions(limits=False))
    sim.run(0.5, every=1000)
    assert sim.q[0] < 0.4


# --- efforts and actuators


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_joint_forces_are_cut_to_efforts(way: float) -> None:
    sim = fw.Simulation(cart(2.0, effort=3.0), H)
    sim.step(tau=[way * 2.5])
    assert sim.v[0] == pytest.approx(way * H * 2.5 / 2.0, rel=1e-12)
    sim.reset()
    sim.step(tau=[way * 100.0])
    assert sim.v[0] == pytest.approx(way * H * 3.0 / 2.0, rel=1e-12)


def test_efforts_are_those_of_independent_joints() -> None:
    """Check a four-bar with its second joint driven, where the efforts of other joints do not count."""
    lengths = (0.3, 0.8, 0.6, 0.9)
    base = four_bar(lengths, independent="joint2")
    efforts = dict(joint1=0.1, joint2=2.0, joint3=0.2)
    joints = tuple(dataclasses.replace(j, effort=efforts[j.name]) for j in base.joints)
    robot = closed(dataclasses.replace(base, joints=joints))
    q = robot.close(four_bar_configuration(0.8, lengths))
    sim = fw.Simulation(robot, H, q=q)
    sim.step(tau=[50.0])
    np.testing.assert_allclose(sim.v, H * robot.forward_dynamics(q, [0.0], [2.0]), rtol=1e-12)


def servo(kp: float, kv: float, **rest: Any) -> fw.Actuator:
    return fw.Actuator("servo", "rail", gain=kp, bias=(0.0, -kp, -kv), **rest)


def test_a_position_servo_reaches_its_target_but_for_its_load() -> None:
    """Check that it stays m g / kp below the target under a weight m g, after e^-40 of the way."""
    m, kp = 2.0, 800.0
    sim = fw.Simulation(cart(m, Z), H, actuators=[servo(kp, 2.0 * math.sqrt(kp * m))])
    sim.run(2.0, control=[0.3], every=10000)
    assert sim.q[0] == pytest.approx(0.3 - m * G / kp, abs=1e-9)
    assert abs(sim.v[0]) < 1e-9


def test_ranges_of_controls_forces_and_efforts_cut() -> None:
    """Check the acceleration of one step from rest, for a motor of gear 2 and gain 3 on a cart of 2 kg."""

    def acceleration(u: float, effort: float = math.inf, **ranges: Any) -> float:
        motor = fw.Actuator("motor", "rail", gear=2.0, gain=3.0, **ranges)
        sim = fw.Simulation(cart(2.0, effort=effort), H, actuators=[motor])
        sim.step(control=[u])
        return float(sim.v[0] / H)

    assert acceleration(1.0) == pytest.approx(3.0)
    assert acceleration(1.0, control=(-1.0, 0.5)) == pytest.approx(1.5)
    assert acceleration(-2.0, control=(-1.0, 0.5)) == pytest.approx(-3.0)
    assert acceleration(1.0, force=(-4.0, 2.0)) == pytest.approx(2.0)
    assert acceleration(-9.0, force=(-4.0, 2.0)) == pytest.approx(-4.0)
    assert acceleration(1.0, effort=5.0) == pytest.approx(2.5)


def test_two_actuators_of_a_joint_add_up() -> None:
    motors = [fw.Actuator("a", "rail", gain=3.0), fw.Actuator("b", "rail", gain=-1.0)]
    sim = fw.Simulation(cart(2.0), H, actuators=motors)
    sim.step(control=[1.0, 0.5], tau=[1.5])
    assert sim.v[0] == pytest.approx(H * (3.0 - 0.5 + 1.5) / 2.0, rel=1e-12)


DRIVEN = """<mujoco>
  <compiler angle="radian"/>
  <option timestep="1e-3" integrator="Euler"><flag contact="disable" constraint="disable"/></option>
  <worldbody>
    <body name="arm">
      <joint name="shoulder" axis="0 1 0" damping="0.6" armature="0.02"/>
      <inertial pos="0.2 0 0.02" mass="2" fullinertia="0.01 0.03 0.025 0.001 0 0"/>
      <body name="tray" pos="0.4 0 0">
        <joint name="rail" type="slide" axis="1 0 0" damping="2" actuatorfrcrange="-9 9"/>
        <inertial pos="0 0.05 0" mass="0.8" fullinertia="0.004 0.005 0.006 0 0 0.001"/>
        <body name="head">
          <joint name="neck" type="ball" damping="0.05"/>
          <inertial pos="0.05 0.02 0.1" mass="0.7" fullinertia="0.008 0.007 0.004 0.001 0 0"/>
        </body>
        <body name="hand" pos="0.1 0 0">
          <joint name="wrist" axis="0 0 1"/>
          <inertial pos="0.1 0 0" mass="0.3" fullinertia="0.001 0.002 0.002 0 0 0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    {drives}
  </actuator>
</mujoco>
"""
MOTORS = """
    <motor name="shoulder" joint="shoulder" gear="60" forcerange="-0.4 0.4"/>
    <motor name="rail" joint="rail" gear="10"/>
    <motor name="wrist" joint="wrist" gear="0.7" ctrlrange="-0.5 0.5"/>
    <general name="push" joint="wrist" gainprm="0.2" biastype="affine" biasprm="0.05 0 0" gear="-2"/>"""
SERVOS = """
    <position name="shoulder" joint="shoulder" kp="60" kv="3" forcerange="-25 25"/>
    <velocity name="rail" joint="rail" kv="12" gear="1.5"/>
    <motor name="wrist" joint="wrist" gear="0.7" ctrlrange="-0.5 0.5"/>
    <general name="spring" joint="wrist" gainprm="0.2" biastype="affine" biasprm="0.05 -0.4 -0.02" gear="-2"/>"""


def driven_arm(drives: str, step: float, **options: Any) -> tuple[fw.Simulation, mujoco.MjModel, mujoco.MjData]:
    text = DRIVEN.format(drives=drives)
    robot, model = fw.load(text), mujoco.MjModel.from_xml_string(text)
    assert [a.name for a in robot.actuators] == [model.actuator(k).name for k in range(model.nu)]
    model.opt.timestep = step
    return fw.Simulation(robot, step, **options), model, mujoco.MjData(model)


def step_both(sim: fw.Simulation, model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Step both simulations; return the controls."""
    t = sim.time
    u = np.array([np.sin(9.0 * t), 2.0 * np.cos(20.0 * t), 1.5 * np.sin(30.0 * t), 0.3])
    data.ctrl[:] = u
    mujoco.mj_step(model, data)
    sim.step(control=u)
    return u


def velocities_of(sim: fw.Simulation, model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return MuJoCo's velocities in the robot's order."""
    velocities: Array = data.qvel[[model.joint(j.name).dofadr[0] + k for j in sim.robot.joints for k in range(j.type.nv)]]
    return velocities


def test_an_arm_with_motors_steps_as_in_mujoco() -> None:
    """Check Euler steps of both, with implicit dampers: rounding grows to 1e-9 over 0.4 s.

    Forces, controls and the rail's effort all reach their limits.
    """
    sim, model, data = driven_arm(MOTORS, 1e-3)
    cut = np.zeros(3, dtype=bool)
    for _ in range(400):
        u = step_both(sim, model, data)
        cut |= [abs(data.actuator_force[0]) == 0.4, abs(data.joint("rail").qfrc_actuator[0]) == 9.0, abs(u[2]) > 0.5]
        np.testing.assert_allclose(sim.v, velocities_of(sim, model, data), atol=1e-9)
    assert cut.all()


def test_an_arm_with_servos_moves_as_in_mujoco() -> None:
    """Check convergence of both to one motion: MuJoCo's Euler evaluates servos at the start of the step, steps with rigid
    contacts at its end; both are of order 1.
    """
    apart = []
    for step in (1e-3, 1e-4):
        sim, model, data = driven_arm(SERVOS, step, contact="rigid")
        cut = np.zeros(2, dtype=bool)
        for _ in range(round(0.4 / step)):
            step_both(sim, model, data)
            cut |= [abs(data.actuator_force[0]) == 25.0, abs(data.joint("rail").qfrc_actuator[0]) == 9.0]
        assert cut.all()
        apart.append(float(np.abs(sim.v - velocities_of(sim, model, data)).max()))
    assert apart[0] / apart[1] == pytest.approx(10.0, rel=0.3)
