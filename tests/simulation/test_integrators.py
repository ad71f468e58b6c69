"""Tests of smooth motion: against closed forms, a solver of high order, conserved quantities, and MuJoCo."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.special import ellipj, ellipk

import featherweight as fw
from featherweight.model.types import WORLD
from featherweight.robots.linkages import four_bar, four_bar_configuration
from oracles.mechanisms import MECHANISMS, closed
from oracles.mujoco_models import from_description
from oracles.robots import example
from oracles.states import state
from oracles.trees import tree
from simulation.scenes import (
    BALL,
    FREE,
    HINGE,
    NO_GRAVITY,
    NOTHING,
    PLANAR,
    G,
    X,
    Z,
    double_pendulum,
    free_bodies,
    momentum,
    pendulum,
    pose,
    solid_box,
    solved,
    state_error,
)

CRANK_AND_ROCKER = (0.3, 0.8, 0.6, 0.9)  # [m] lengths of a four-bar whose crank turns over
INTEGRATORS = ("semi-implicit", "rk4", "midpoint")

# --- closed forms


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_free_fall(integrator: str) -> None:
    """Check a parabola: exact to rounding for methods of order 2 and more; the semi-implicit step is ahead by h t g / 2."""
    robot = free_bodies(solid_box(2.0, (0.1, 0.2, 0.3)))
    start = np.array([1.0, -2.0, 3.0, 0.0, 0.0, 0.0])
    sim = fw.Simulation(robot, 1e-3, integrator, q=pose((0.1, 0.2, 5.0)), v=start)
    sim.run(0.7)
    t = sim.time
    lead = 0.5 * G * 1e-3 * t if integrator == "semi-implicit" else 0.0
    fallen = np.array([0.1, 0.2, 5.0]) + start[:3] * t + [0.0, 0.0, -0.5 * G * t * t - lead]
    np.testing.assert_allclose(sim.q, pose(fallen), atol=1e-12)
    np.testing.assert_allclose(sim.v, start - np.array([0.0, 0.0, G * t, 0.0, 0.0, 0.0]), atol=1e-12)


# Step size and tolerance: the error of the method is C h^order, with C about 3, 2 and 10, measured with another step.
@pytest.mark.parametrize(
    ("integrator", "step", "tolerance"), [("semi-implicit", 1e-4, 1e-3), ("rk4", 2e-3, 1e-9), ("midpoint", 1e-3, 2e-5)]
)
def test_pendulum_swings_as_elliptic_functions_say(integrator: str, step: float, tolerance: float) -> None:
    """Check sin(angle / 2) = k cd(w t, k²), where k is the sine of half the amplitude; the period is 4 K(k²) / w."""
    mass, length, inertia, amplitude = 1.5, 0.4, 0.05, 2.0
    robot = pendulum(mass, length, inertia)
    w = math.sqrt(mass * G * length / (inertia + mass * length**2))
    m = math.sin(amplitude / 2) ** 2
    period = 4.0 * ellipk(m) / w
    steps = round(period / step)
    sim = fw.Simulation(robot, period / steps, integrator, q=[amplitude])
    motion = sim.run(period, every=max(1, steps // 64))
    _, cn, dn, _ = ellipj(w * motion.times, m)
    np.testing.assert_allclose(motion.q[:, 0], 2.0 * np.arcsin(math.sqrt(m) * cn / dn), atol=tolerance)
    assert abs(sim.q[0] - amplitude) < tolerance


TOP = (0.3, 0.3, 0.12)
SPIN = np.array([1.5, -0.7, 4.0])


def spun(moments: tuple[float, ...], joint: fw.JointType) -> fw.Robot:
    """Return a body without forces, on a ball joint at its centre or flying."""
    body = fw.Body("top", fw.Inertia(1.3, (0.0, 0.0, 0.0), (moments[0], 0.0, 0.0, moments[1], 0.0, moments[2])))
    return fw.build(fw.describe([body], [fw.Joint("joint", joint, WORLD, "top")], gravity=NO_GRAVITY))


@pytest.mark.parametrize("joint", [BALL, FREE])
@pytest.mark.parametrize(
    ("integrator", "step", "tolerance"), [("semi-implicit", 1e-4, 2e-3), ("rk4", 2e-3, 1e-9), ("midpoint", 1e-3, 5e-5)]
)
def test_symmetric_top_precesses(joint: fw.JointType, integrator: str, step: float, tolerance: float) -> None:
    """Check R(t) = exp(t L / I1) R(0) exp(t (1 - I3 / I1) w3 e3): rotation about the angular momentum L and about the axis.

    Tolerances are C h^order, as for the pendulum: 2 s are 9 rad of precession.
    """
    robot = spun(TOP, joint)
    q, v = robot.random_configuration(rng=3), np.zeros(robot.nv)
    v[-3:] = SPIN
    if joint is FREE:
        q[:3] = 0.0
    R = Rotation.from_quat(q[-4:])
    sim = fw.Simulation(robot, step, integrator, q=q, v=v)
    sim.run(2.0, every=10**6)
    L = R.apply(np.array(TOP) * SPIN)
    expected = (
        Rotation.from_rotvec(2.0 * L / TOP[0]) * R * Rotation.from_rotvec([0.0, 0.0, 2.0 * (1 - TOP[2] / TOP[0]) * SPIN[2]])
    )
    assert (Rotation.from_quat(sim.q[-4:]) * expected.inv()).magnitude() < tolerance


@pytest.mark.parametrize(("integrator", "tolerance"), [("rk4", 1e-9), ("midpoint", 5e-4)])
def test_asymmetric_body_tumbles_as_elliptic_functions_say(integrator: str, tolerance: float) -> None:
    """Check Euler's equations: with I1 > I2 > I3 and 2 E I2 < L², w = (a1 dn, -a2 sn, a3 cn) of (n t, m) (Landau and Lifshitz §
    37).

    Tolerances are C h^order, h = 2 ms, over 4 s.
    """
    I1, I2, I3 = 0.31, 0.22, 0.14
    robot = spun((I1, I2, I3), BALL)
    w1, w3 = 3.0, 2.0  # at the time when w2 = 0
    E2, L2 = I1 * w1**2 + I3 * w3**2, (I1 * w1) ** 2 + (I3 * w3) ** 2
    assert L2 > E2 * I2
    n = math.sqrt((I1 - I2) * (L2 - E2 * I3) / (I1 * I2 * I3))
    m = (I2 - I3) * (E2 * I1 - L2) / ((I1 - I2) * (L2 - E2 * I3))
    a2 = math.sqrt((E2 * I1 - L2) / (I2 * (I1 - I2)))
    sim = fw.Simulation(robot, 2e-3, integrator, v=[w1, 0.0, w3])
    motion = sim.run(4.0, every=20)
    sn, cn, dn, _ = ellipj(n * motion.times, m)
    np.testing.assert_allclose(motion.v, np.stack([w1 * dn, -a2 * sn, w3 * cn], axis=1), atol=tolerance)


@pytest.mark.parametrize("turns", [0.5, 10.0, 2.0 * np.pi])
def test_a_free_ball_goes_straight_on_however_far_it_turns_in_a_step(turns: float) -> None:
    robot = free_bodies(fw.Inertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1)), gravity=NO_GRAVITY)
    sim = fw.Simulation(robot, 1.0, v=[1.0, 2.0, 0.0, 0.0, 0.0, turns])
    sim.step()
    np.testing.assert_allclose(sim.q[:3], [1.0, 2.0, 0.0], atol=1e-14)
    turn = Rotation.from_quat(sim.q[3:].copy())
    np.testing.assert_allclose(turn.as_matrix(), Rotation.from_rotvec([0.0, 0.0, turns]).as_matrix(), atol=1e-14)
    np.testing.assert_allclose(turn.apply(sim.v[:3].copy()), [1.0, 2.0, 0.0], atol=1e-14)


def test_a_planar_body_goes_straight_on_however_far_it_turns_in_a_step() -> None:
    body = fw.Body("puck", fw.Inertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1)))
    robot = fw.build(fw.describe([body], [fw.Joint("table", fw.JointType.PLANAR, "world", "puck")], gravity=NO_GRAVITY))
    sim = fw.Simulation(robot, 1.0, v=[1.0, 2.0, 10.0])
    sim.step()
    np.testing.assert_allclose(sim.q, [1.0, 2.0, np.cos(10.0), np.sin(10.0)], atol=1e-14)


def test_a_base_of_a_mechanism_goes_straight_on_however_far_it_turns_in_a_step() -> None:
    """Check a flying body with two geared wheels; all axes are parallel to the spin, which stays constant."""
    wheel = fw.Inertia(0.5, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    joints = [
        fw.Joint("free", FREE, WORLD, "base"),
        fw.Joint("a", fw.JointType.REVOLUTE, "base", "one", axis=(0.0, 0.0, 1.0)),
        fw.Joint("b", fw.JointType.REVOLUTE, "base", "two", axis=(0.0, 0.0, 1.0)),
    ]
    bodies = [fw.Body(name, wheel) for name in ("base", "one", "two")]
    robot = fw.build(fw.describe(bodies, joints, couplings=[fw.Coupling("gear", "b", (("a", (2.0,)),))], gravity=NO_GRAVITY))
    sim = fw.Simulation(robot, 1.0, v=[1.0, 2.0, 0.0, 0.0, 0.0, 10.0, 0.0])
    sim.step()
    np.testing.assert_allclose(sim.q[:3], [1.0, 2.0, 0.0], atol=1e-13)
    np.testing.assert_allclose(np.hypot(*sim.v[:2]), np.sqrt(5.0), rtol=1e-12)


def test_angular_momentum_and_energy_of_a_tumbling_body_are_kept() -> None:
    """Check in the world frame.

    Runge-Kutta: h⁴ times about 10 for 5 s; the midpoint rule conserves energy to rounding, L to h².
    """
    robot = free_bodies(fw.Inertia(2.0, (0.05, -0.1, 0.2), (0.3, 0.02, -0.01, 0.25, 0.03, 0.1)), gravity=NO_GRAVITY)
    x = state(robot, 8, 2.0)
    for integrator, allowed, energy in (("rk4", 1e-9, 1e-9), ("midpoint", 1e-4, 1e-12)):
        sim = fw.Simulation(robot, 2e-3, integrator, q=x.q, v=x.v)
        before, at_first = momentum(robot, x.q, x.v), sim.energy()
        sim.run(5.0, every=10**6)
        np.testing.assert_allclose(momentum(robot, sim.q, sim.v), before, atol=allowed * float(np.linalg.norm(before)))
        assert sim.energy() == pytest.approx(at_first, rel=energy)


@pytest.mark.parametrize(("integrator", "speed_up"), [("semi-implicit", 0.6), ("rk4", 1e-6), ("midpoint", 1e-9)])
def test_the_speed_of_a_body_that_spins_in_flight(integrator: str, speed_up: float) -> None:
    """Check that all integrators keep the speed, except Euler: its velocities are in turning axes, and it adds a part h
    w² t / 2: 2.5 % here.
    """
    spin, t = 10.0, 0.5
    robot = free_bodies(solid_box(1.0, (0.1, 0.2, 0.3)), gravity=NO_GRAVITY)
    sim = fw.Simulation(robot, 1e-3, integrator, v=[1.0, 0.0, 0.0, 0.0, 0.0, spin])
    sim.run(t, every=1000)
    assert np.linalg.norm(sim.v[:3]) == pytest.approx(1.0, abs=speed_up * 1e-3 * spin**2 * t)
    np.testing.assert_allclose(sim.v[3:], [0.0, 0.0, spin], atol=1e-9)  # about a principal axis


# --- order


def jointed() -> fw.Robot:
    """Return a free-flyer that carries a ball joint, a planar and a revolute joint, with dampers and a spring."""
    kinds = (FREE, BALL, PLANAR, HINGE)
    inertia = fw.Inertia(1.0, (0.1, 0.05, -0.1), (0.05, 0.01, 0.0, 0.06, 0.005, 0.04))
    bodies = [fw.Body(f"body{k}", inertia) for k in range(4)]
    parents = (WORLD, "body0", "body0", "body2")
    joints = [
        fw.Joint(f"joint{k}", kind, parent, f"body{k}", fw.Pose(p=(0.1, 0.2, 0.1)), (0.0, 0.6, 0.8), damping=0.1 * k)
        for k, (kind, parent) in enumerate(zip(kinds, parents, strict=True))
    ]
    spring: dict[str, Any] = {"stiffness": 3.0, "rest": 0.5, "armature": 0.1}
    joints[3] = fw.Joint("joint3", HINGE, "body2", "body3", fw.Pose(p=(0.1, 0.2, 0.1)), X, damping=0.3, **spring)
    return fw.build(fw.describe(bodies, joints))


@pytest.mark.parametrize(("integrator", "order", "steps"), [("semi-implicit", 1, 200), ("rk4", 4, 25), ("midpoint", 2, 50)])
def test_order(integrator: str, order: int, steps: int) -> None:
    """Check that half the step divides the error by 2^order, to 10 %: terms of the next order at these steps."""
    robot = jointed()
    x = state(robot, 5, 1.0)
    tau = 0.3 * x.a
    damping = np.concatenate([np.full(j.type.nv, j.damping) for j in robot.joints])

    def force(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        total = tau - damping * v
        total[-1] -= 3.0 * (q[-1] - 0.5)
        return total

    reference = solved(robot, x.q, x.v, 0.5, force)
    errors = []
    for n in (steps, 2 * steps, 4 * steps):
        sim = fw.Simulation(robot, 0.5 / n, integrator, q=x.q, v=x.v)
        sim.run(0.5, tau=tau, every=n)
        errors.append(state_error(robot, sim.q, sim.v, *reference))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, order, atol=0.15)
    assert errors[-1] < 1e-2  # and steps converge to the reference


@pytest.mark.parametrize(("integrator", "order"), [("semi-implicit", 1), ("rk4", 4), ("midpoint", 2)])
@pytest.mark.parametrize(("make", "speed"), [(lambda: four_bar(CRANK_AND_ROCKER), 5.0), (MECHANISMS["platform"], 1.0)])
def test_order_with_loops(make: Any, speed: float, integrator: str, order: int) -> None:
    """Check that motions with steps h, h / 2 and h / 4 differ by C h^order and a 2^order-th of it, to the next order's 20 %."""
    robot = closed(make())
    rng = np.random.default_rng(2)
    q = min(robot.random_configuration(rng=rng, size=8), key=robot.singularity)
    v = speed * rng.standard_normal(robot.nv)
    ends = []
    for n in (10, 20, 40, 80):
        sim = fw.Simulation(robot, 0.2 / n, integrator, q=q, v=v, **NOTHING)
        sim.run(0.2, every=n)
        ends.append(np.concatenate([sim.q, sim.v]))
    changes = [np.abs(a - b).max() for a, b in itertools.pairwise(ends)]
    assert math.log2(changes[1] / changes[2]) == pytest.approx(order, abs=0.3)
    assert changes[2] < 0.1 * speed


# --- energy


def drift(sim: fw.Simulation, duration: float, scale: float) -> float:
    """Return the greatest change of energy relative to `scale` [J]."""
    first, worst = sim.energy(), 0.0
    for _ in range(round(duration / sim.dt)):
        sim.step()
        worst = max(worst, abs(sim.energy() - first))
    return worst / scale


@pytest.mark.parametrize(("integrator", "step", "allowed"), [("midpoint", 1e-2, 1e-11), ("rk4", 2e-3, 1e-6)])
def test_energy_of_a_chaotic_double_pendulum(integrator: str, step: float, allowed: float) -> None:
    """Check 10 s. The midpoint step leaves rounding, 1000 steps of about 1e-15; Runge-Kutta's drift is of order h⁴."""
    sim = fw.Simulation(double_pendulum(), step, integrator, q=[2.5, 1.0])
    assert drift(sim, 10.0, G * 2.0) < allowed


def test_energy_of_a_falling_humanoid() -> None:
    """Check Talos, limbs flailing at about 1 rad/s, for 0.5 s: rounding is about 1e-15 of 90 kg m g for each of 250 steps."""
    robot = example("talos")
    x = state(robot, 1, 1.0)
    sim = fw.Simulation(robot, 2e-3, "midpoint", q=x.q, v=x.v, **NOTHING)
    assert drift(sim, 0.5, robot.mass * G) < 1e-11


def test_momentum_of_a_falling_humanoid() -> None:
    """Check linear momentum, -m g t, and constant angular momentum about the centre of mass.

    Runge-Kutta at 2 ms: (20 rad/s h)^4 / 120 of joints is 1e-8.
    """
    robot = example("talos")
    x = state(robot, 1, 1.0)
    sim = fw.Simulation(robot, 2e-3, "rk4", q=x.q, v=x.v, **NOTHING)

    def about_center() -> np.ndarray:
        h = momentum(robot, sim.q, sim.v)
        return np.array([*h[:3], *(h[3:] - np.cross(robot.center_of_mass(sim.q), h[:3]))])

    before = about_center()
    sim.run(0.3, every=10**6)
    change = about_center() - before
    weight = robot.mass * G
    np.testing.assert_allclose(change / weight, [0.0, 0.0, -sim.time, 0.0, 0.0, 0.0], atol=1e-6)


def test_energy_of_a_four_bar() -> None:
    """Check a crank and rocker that rotates for 5 s: loop closing changes the energy only by its residual, 1e-13 per step."""
    robot = closed(four_bar(CRANK_AND_ROCKER))
    q = robot.close(four_bar_configuration(0.8, CRANK_AND_ROCKER))
    sim = fw.Simulation(robot, 5e-3, "midpoint", q=q, v=[4.0])
    assert drift(sim, 5.0, sim.energy()) < 1e-9
    assert abs(sim.q[0] - q[0]) > 6.0  # it turned over


@pytest.mark.parametrize("step", [1e-2, 1e-3, 1e-4])
def test_midpoint_steps_from_rest(step: float) -> None:
    """Check that the step converges with almost no kinetic energy, and conserves energy to rounding of the potential energy."""
    sim = fw.Simulation(pendulum(), step, "midpoint", q=[2.0])
    for _ in range(10):
        sim.step()
    assert sim.energy() == pytest.approx(fw.Simulation(pendulum(), q=[2.0]).energy(), abs=1e-13)
    assert sim.v[0] < 0.0


def test_midpoint_balances_energy_with_the_work_of_forces() -> None:
    """Check that the gained energy is the work of tau and dampers, h v' .

    (tau - d v') at the mean velocity, and that springs conserve theirs.
    """
    robot = jointed()
    x = state(robot, 5, 1.0)
    damping = np.concatenate([np.full(j.type.nv, j.damping) for j in robot.joints])
    sim = fw.Simulation(robot, 5e-3, "midpoint", q=x.q, v=x.v)
    for _ in range(40):
        before, v = sim.energy(), sim.v
        sim.step(tau=x.a)
        mean = 0.5 * (v + sim.v)
        assert sim.energy() - before == pytest.approx(5e-3 * mean @ (x.a - damping * mean), abs=1e-11)


# --- loops


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", ["four_bar", "six_bar", "crank_and_rocker", "platform", "geared", "rotors_up"])
def test_loops_stay_closed(name: str, integrator: str) -> None:
    """Check that residuals are below 1e-9 after each step; before closing, they are of order h²: 1e-3 at these speeds and
    1 ms.
    """
    robot = closed(MECHANISMS[name]())
    rng = np.random.default_rng(2)
    q = min(robot.random_configuration(rng=rng, size=8), key=robot.singularity)
    sim = fw.Simulation(robot, 1e-3, integrator, q=q, v=0.5 * rng.standard_normal(robot.nv), **NOTHING)
    assert sim.opened == 0.0
    widest = 0.0
    for _ in range(30):
        sim.step()
        assert np.abs(robot.residual(sim.q)).max() < 1e-9
        widest = max(widest, sim.opened)
    assert 0.0 < widest < 1e-3


def test_a_geared_wheel_is_inertia_at_the_joint_that_it_is_geared_to() -> None:
    """Check that the factor is the square of the gear ratio.

    Runge-Kutta's h⁴ at 1 ms leaves 1e-11 in 1 s; the tolerance is 1e-9.
    """
    inertia = fw.Inertia(1.0, (0.2, 0.0, 0.0), (0.01, 0.0, 0.0, 0.01, 0.0, 0.02))
    wheel = fw.Inertia(0.5, (0.0, 0.0, 0.0), (0.01, 0.0, 0.0, 0.01, 0.0, 0.015))
    made = fw.describe(
        [fw.Body("arm", inertia), fw.Body("wheel", wheel)],
        [fw.Joint("a", HINGE, WORLD, "arm", axis=Z), fw.Joint("b", HINGE, WORLD, "wheel", axis=Z)],
        couplings=[fw.Coupling("gear", "b", (("a", (3.0,)),))],
        gravity=(0.0, -G, 0.0),
    )
    alone = fw.Body("arm", inertia)
    geared = fw.build(made)
    single = fw.build(
        fw.describe([alone], [fw.Joint("a", HINGE, WORLD, "arm", axis=Z, armature=9 * 0.015)], gravity=(0.0, -G, 0.0))
    )
    one, two = fw.Simulation(geared, 1e-3, "rk4"), fw.Simulation(single, 1e-3, "rk4")
    one.run(1.0, every=1000)
    two.run(1.0, every=1000)
    assert one.q[0] == pytest.approx(two.q[0], abs=1e-9)
    assert abs(one.q[0]) > 1.0


# --- MuJoCo

MACHINE = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="1e-4" integrator="RK4"><flag contact="disable"/></option>
  <worldbody>
    <body name="base" pos="0 0 1">
      <freejoint name="base"/>
      <inertial pos="0.02 -0.01 0.03" mass="3" fullinertia="0.05 0.06 0.04 0.002 -0.003 0.001"/>
      <body name="arm" pos="0.2 0.1 0">
        <joint name="shoulder" axis="0 0.6 0.8" damping="0.3" stiffness="4" springref="0.4" armature="0.01"/>
        <inertial pos="0.1 0 0.02" mass="1" fullinertia="0.01 0.02 0.015 0.001 0 0"/>
        <body name="tray" pos="0.3 0 0">
          <joint name="rail" type="slide" axis="1 0 0" damping="0.8" stiffness="40" springref="0.05"/>
          <inertial pos="0 0.05 0" mass="0.5" fullinertia="0.004 0.005 0.006 0 0 0.001"/>
          <body name="head" pos="0 0 0.1">
            <joint name="neck" type="ball" pos="0 0 -0.05" damping="0.05"/>
            <inertial pos="0.05 0.02 0.1" mass="0.7" fullinertia="0.008 0.007 0.004 0.001 0 0"/>
          </body>
        </body>
      </body>
      <body name="tail" pos="-0.2 0 0">
        <joint name="tail" axis="0 1 0" ref="0.3" springref="0.9" stiffness="1.5"/>
        <inertial pos="-0.1 0 0" mass="0.4" fullinertia="0.003 0.004 0.002 0 0.0005 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def test_a_machine_of_all_joints_moves_as_in_mujoco(tmp_path: Path) -> None:
    """Check 1 s with dampers and springs, to 1e-6.

    MuJoCo's Runge-Kutta step adds its stages as vectors, which leaves an error of order h² with rotations: 1e-8 at 0.1 ms. Ours
    at 1 ms leaves less.
    """
    path = tmp_path / "machine.xml"
    path.write_text(MACHINE)
    robot = fw.load(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(4)
    v = rng.standard_normal(robot.nv)
    order = [model.joint(j.name).dofadr[0] + k for j in robot.joints for k in range(j.type.nv)]
    data.qvel[order] = v  # the base is not turned yet: its axes are the world's
    for _ in range(10000):
        mujoco.mj_step(model, data)
    sim = fw.Simulation(robot, 1e-3, "rk4", q=start(robot, model), v=v)
    sim.run(1.0, every=1000)
    for joint in robot.joints:
        x, at = sim.q[joint.q_slice], model.joint(joint.name).qposadr[0]
        theirs = data.qpos[at : at + joint.type.nq]
        if joint.type in (FREE, BALL):
            np.testing.assert_allclose(x[:-4], theirs[:-4], atol=1e-6)
            turn = Rotation.from_quat(theirs[-4:], scalar_first=True).inv() * Rotation.from_quat(x[-4:])
            assert turn.magnitude() < 1e-6
        else:
            np.testing.assert_allclose(x, theirs, atol=1e-6, err_msg=joint.name)


@pytest.mark.parametrize("name", ["roots", "mixed_5"])
def test_random_trees_move_as_in_mujoco(name: str) -> None:
    """Check every joint type, for 0.4 s from any state: bodies move as with MuJoCo's Runge-Kutta, to 1e-6 as above."""
    description = tree(name)[0]
    robot = fw.build(description)
    peer = from_description(description, robot)
    x = state(robot, 3, 1.0)
    peer.model.opt.integrator, peer.model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-4
    peer._set(x.q, x.v)
    for _ in range(4000):
        mujoco.mj_step(peer.model, peer.data)
    mujoco.mj_kinematics(peer.model, peer.data)
    sim = fw.Simulation(robot, 1e-3, "rk4", q=x.q, v=x.v, **NOTHING)
    sim.run(0.4, every=400)
    names = [body.name for body in robot.bodies]
    for body, T in zip(names, robot.frame_placement(names)(sim.q), strict=True):
        theirs = peer.data.body(body)
        np.testing.assert_allclose(T[:3, 3], theirs.xpos, atol=1e-6, err_msg=body)
        np.testing.assert_allclose(T[:3, :3], theirs.xmat.reshape(3, 3), atol=1e-6, err_msg=body)


def start(robot: fw.Robot, model: mujoco.MjModel) -> np.ndarray:
    """Return the file's configuration."""
    q = np.empty(robot.nq)
    for joint in robot.joints:
        at = model.joint(joint.name).qposadr[0]
        x = model.qpos0[at : at + joint.type.nq]
        q[joint.q_slice] = [*x[:-4], *x[-3:], x[-4]] if joint.type in (FREE, BALL) else x
    return q
