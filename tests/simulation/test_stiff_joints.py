"""Tests of springs, dampers and servos of any stiffness with the midpoint rule, which is implicit and always stable."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import featherweight as fw
from featherweight.model.types import WORLD
from featherweight.robots.linkages import four_bar
from oracles.mechanisms import closed
from oracles.states import Array
from simulation.plain_python import ROUNDED, plain_python, steps_by
from simulation.scenes import FREE, HINGE, NO_GRAVITY, Y, pendulum
from simulation.spring_forces import spring_forces

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")

KINDS = ("revolute", "continuous", "prismatic", "spherical", "planar")
TREES = 8


class Machine:
    """A robot, its servos, and a state (robots, ..) near the rest state of its springs."""

    def __init__(self, robot: fw.Robot, rest: Array, rng: np.random.Generator, speed: float, robots: int = 4) -> None:
        self.robot = robot
        self.servos = [
            fw.Actuator(j.name, j.name, gain=kp, bias=(kp * float(rest[j.q_slice.start]), -kp, -kd), force=(-most, most))
            for k, j in enumerate(robot.joints) if j.type.nq == 1 and j.independent
            for kp, kd, most in [((80.0, 3.0, np.inf), (1e4, 0.0, np.inf), (200.0, 20.0, 2.0))[k % 3]]
        ]  # fmt: skip
        near = robot.integrate(np.tile(rest, (robots, 1)), 0.05 * rng.standard_normal((robots, robot.nv)))
        self.q, self.v = np.asarray(near), speed * rng.standard_normal((robots, robot.nv))
        self.control = 0.1 * rng.standard_normal((robots, len(self.servos)))

    def simulation(self, step: float) -> fw.Simulation:
        return fw.Simulation(self.robot, step, "midpoint", actuators=self.servos, joints=fw.JointOptions(limits=False))


@functools.cache
def machine(number: int) -> Machine:
    """Return a random tree: mass ratios to 1e6, stiffness to 1e5, damping to 1e3; every third flies; the last is a four-bar."""
    rng = np.random.default_rng(number)
    if number == TREES:
        mechanism = closed(four_bar())
        return Machine(mechanism, mechanism.close(mechanism.random_configuration(rng=rng)), rng, 1.0)
    made = fw.generators.random_tree(
        2 + number % 5, rng=number, joint_types=KINDS, masses=(1e-3, 1e3) if number % 2 else (0.2, 5.0)
    )
    joints = list(made.joints)
    if number % 3 == 0:
        joints[0] = fw.Joint("base", FREE, WORLD, "body0")
    plain = fw.build(dataclasses.replace(made, joints=tuple(joints)))
    rest = plain.random_configuration(rng=rng)
    place = {j.name: k for k, j in enumerate(joints)}
    for j in plain.joints:
        passive: dict[str, Any] = {"damping": float(rng.choice([0.0, 0.1, 10.0, 1e3])) if j.type is not FREE else 0.0}
        if j.type.nq == 1:
            passive |= {"stiffness": float(rng.choice([0.0, 1.0, 300.0, 1e5])), "rest": float(rest[j.q_slice.start])}
        joints[place[j.name]] = dataclasses.replace(joints[place[j.name]], **passive)
    return Machine(fw.build(dataclasses.replace(made, joints=tuple(joints))), rest, rng, float(rng.choice([0.0, 1.0, 5.0])))


@pytest.mark.parametrize("number", range(TREES + 1))
@pytest.mark.parametrize("step", [1e-3, 1e-2])
def test_robots_move_as_if_alone_and_in_plain_python(number: int, step: float) -> None:
    """Check bits of single robots, batches, and plain Python with rounded operations; fused operations differ by rounding."""
    m = machine(number)

    def moved(some: slice = slice(None)) -> tuple[Array, Array]:
        sim = m.simulation(step)
        sim.reset(m.q[some], m.v[some])
        sim.run(6 * step, control=m.control[some])
        return sim.q, sim.v

    together = moved()
    with steps_by(ROUNDED):
        rounded = moved()
    with plain_python():
        plain = moved()
    for x, y, z in zip(plain, rounded, together, strict=True):
        np.testing.assert_array_equal(x, y)
        np.testing.assert_allclose(z, x, rtol=0.0, atol=(1e-11 if m.robot.closed else 1e-12) * max(1.0, np.abs(x).max()))
    for i in range(len(m.q)):
        for x, y in zip(moved(slice(i, i + 1)), together, strict=True):
            np.testing.assert_array_equal(x[0], y[i])


@pytest.mark.parametrize("number", range(TREES))
def test_steps_solve_the_equations_of_the_rule(number: int) -> None:
    """Check v+ - v - h a(q', v') - g v' = 0, and the energy balance with the work of servos and dampers; SciPy solves for v+
    and g.

    SciPy starts from values off by a thousandth. The tolerance is 1e-9 of velocities, and of stiffness times the rounding of
    coordinates.
    """
    h, m = 1e-2, machine(number)
    sim, robot = m.simulation(h), m.robot
    q, v, forces = m.q[0], m.v[0], sim.forces
    sim.reset(q, v)
    before = sim.energy()
    sim.step(control=m.control[0])
    scale = np.abs(v).max() + np.abs(sim.v).max() + h * 9.81

    def power_and_lack(x: Array) -> tuple[float, Array, Array]:
        after, g = x[:-1], x[-1]
        w = 0.5 * (v + after)
        middle = robot.integrate(q, 0.5 * h * w)
        driven = np.clip(forces.of_drives(middle, w, m.control[0]), *robot.effort_bounds)
        passive = spring_forces(forces, middle, w)
        a = robot.forward_dynamics(middle, w, driven + passive)
        return float(w @ (driven - forces.springs.damping * w)), after - v - h * a - g * w, w

    def equations(x: Array) -> Array:
        work, lack, w = power_and_lack(x)
        end = robot.integrate(q, h * w)
        energy = robot.kinetic_energy(end, x[:-1]) + robot.potential_energy(end) + forces.spring_energy(end)
        return np.append(lack, (before + h * work - energy) / (1.0 + abs(before)))

    rng = np.random.default_rng(0)
    guess = np.append(sim.v * (1.0 + 1e-3 * rng.standard_normal(robot.nv)), 0.0)
    found = scipy.optimize.root(equations, guess, method="hybr", options={"xtol": 1e-14})
    # the tolerance of SciPy's solution is its residual
    assert np.abs(equations(found.x)).max() < 1e-6 * scale
    np.testing.assert_allclose(sim.v, found.x[:-1], rtol=0.0, atol=1e-7 * scale)


def test_a_servo_that_is_stiff_for_the_step_settles() -> None:
    """Check a link of 150 g at 10 ms against the exact solution; its damping alone reverses velocities in less than a step."""
    I, kp, kd, h, aim = 0.002, 80.0, 3.0, 1e-2, 0.5
    link = fw.Inertia(0.15, (0.0, 0.0, 0.0), (I, 0.0, 0.0, I, 0.0, I))
    robot = fw.build(
        fw.describe([fw.Body("link", link)], [fw.Joint("hinge", HINGE, WORLD, "link", axis=Y)], gravity=NO_GRAVITY)
    )
    sim = fw.Simulation(robot, h, "midpoint", actuators=[fw.Actuator("servo", "hinge", gain=kp, bias=(0.0, -kp, -kd))])
    A = np.array([[0.0, 1.0], [-kp / I, -kd / I]])
    step = np.linalg.solve(np.eye(2) - 0.5 * h * A, np.eye(2) + 0.5 * h * A)  # the midpoint rule for a linear system
    x = np.array([-aim, 0.0])
    for _ in range(60):
        sim.step(control=[aim])
        x = step @ x
        np.testing.assert_allclose([sim.q[0] - aim, sim.v[0]], x, rtol=0.0, atol=1e-10)
    sim.run(1.0, control=[aim])
    assert sim.q[0] == pytest.approx(aim, abs=1e-9)
    # Second order: compare with exp(A t).
    errors = []
    for n in (400, 800):
        sim = fw.Simulation(robot, 0.1 / n, "midpoint", actuators=sim.forces.actuators)
        sim.run(0.1, control=[aim], every=n)
        errors.append(abs(sim.q[0] - aim - (scipy.linalg.expm(0.1 * A) @ [-aim, 0.0])[0]))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("stiffness", [1e2, 1e4, 1e6])
def test_springs_of_any_stiffness_keep_the_energy(stiffness: float) -> None:
    """Check to rounding. Steps are 10 ms, so h w of the stiffest spring is 18."""
    sim = fw.Simulation(pendulum(stiffness=stiffness, rest=0.3), 1e-2, "midpoint", q=[0.5])
    first = sim.energy()
    sim.run(2.0, every=10**4)
    assert abs(sim.energy() - first) < 1e-11 * (0.5 * stiffness * 0.04 + 10.0)


def test_rk4_beyond_its_stability_says_what_to_do() -> None:
    """Check a step of 2.8 over the fastest rate of a damper, the limit of Runge-Kutta."""
    sim = fw.Simulation(pendulum(damping=100.0), 1e-2, "rk4", v=[1.0])
    with pytest.raises(fw.SimulationError, match="shorter step"):
        sim.run(2.0, every=10**4)
