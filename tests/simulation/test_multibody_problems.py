"""Benchmark problems of multibody dynamics: against closed forms, equations of motion, and published solutions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from simulation.multibody_problems import (
    MOTOR,
    SQUEEZED,
    bricard,
    four_bars,
    four_bars_angle,
    governor,
    governor_motion,
    governor_start,
    pendulum_position,
    simple_pendulum,
    squeezer,
    squeezer_start,
)

UNLIMITED = fw.JointOptions(limits=False)
SINGULAR = -0.5 * math.pi  # angle at which all bars of a row of four-bars are collinear
RATE = -3.8  # [rad/s] at this angle


def closed(robot: fw.Robot) -> fw.ClosedRobot:
    assert isinstance(robot, fw.ClosedRobot)
    return robot


def started(robot: fw.Robot, step: float, integrator: str, q: Any, v: Any) -> fw.Simulation:
    return fw.Simulation(robot, step, integrator, q=q, v=v, joints=UNLIMITED)


def energy_change(robot: fw.Robot, t: fw.Trajectory) -> float:
    energy = robot.kinetic_energy(t.q, t.v) + robot.potential_energy(t.q)
    return float(np.abs(energy - energy[0]).max())


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_pendulum_follows_its_closed_form(side: float) -> None:
    """Compare with Jacobi's elliptic functions for ten seconds; fourth order at 5 ms leaves 1e-8."""
    robot = simple_pendulum()
    t = started(robot, 5e-3, "rk4", [0.5 * math.pi * side], [0.0]).run(10.0, every=20)
    angle = t.q[:, 0]
    np.testing.assert_allclose(np.stack([np.sin(angle), -np.cos(angle)], -1), pendulum_position(t.times, side), atol=1e-7)
    assert energy_change(robot, t) < 1e-7


def test_pendulum_keeps_the_energy_that_the_benchmark_asks_for() -> None:
    """Check the requirement of the benchmark: a drift below 5e-5 J in 10 s."""
    robot = simple_pendulum()
    assert energy_change(robot, started(robot, 2.5e-2, "rk4", [-0.5 * math.pi], [0.0]).run(10.0)) < 5e-5


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("integrator", ["rk4", "midpoint"])
def test_four_bars_pass_where_all_bars_are_in_line(count: int, integrator: str) -> None:
    """Check ten passes in 10 s, where each four-bar may stay a parallelogram or fold: all stay parallelograms."""
    robot = closed(four_bars(count))
    t = started(robot, 1e-2, integrator, robot.close(np.zeros(robot.nq)), [-1.0]).run(10.0)
    reference = four_bars_angle(count, t.times, -1.0)
    assert (np.diff(np.sign(np.cos(t.q[:, 0]))) != 0.0).sum() == 10
    uprights = [j.q_slice.start for j in robot.joints if not j.name.startswith("pin")]
    np.testing.assert_allclose(t.q[:, uprights], t.q[:, :1].repeat(count + 1, axis=1), atol=1e-9)
    np.testing.assert_allclose(t.q[:, 0], reference[:, 0], atol=1e-5 if integrator == "rk4" else 5e-3)
    assert energy_change(robot, t) < 1e-4


def test_two_four_bars_arrive_where_others_do() -> None:
    """Check B0 after 10 s against Exudyn's `fourBarMechanismIftomm.py`: steps of 0.25 and 0.125 ms, extrapolated."""
    robot = closed(four_bars(2))
    sim = started(robot, 1e-3, "rk4", robot.close(np.zeros(robot.nq)), [-1.0])
    sim.run(10.0, every=10_000)
    at = np.array([-math.sin(sim.q[0]), math.cos(sim.q[0]), -math.cos(sim.q[0]) * sim.v[0], -math.sin(sim.q[0]) * sim.v[0]])
    coarse = np.array([0.3284552113, 0.9445195467, 1.423045728, -0.4948619021])
    fine = np.array([0.3284573768, 0.9445187937, 1.423050003, -0.4948670827])
    np.testing.assert_allclose(at, fine + (fine - coarse) / 3.0, atol=5e-7)


def test_simulations_look_for_no_closed_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check with a search that fails, as it does for forty coupled four-bars."""
    robot = closed(four_bars(2))

    def search(*_: Any) -> None:
        raise ValueError("no closed configuration was found")

    monkeypatch.setattr(fw.ClosedRobot, "random_configuration", search)
    signs = np.array([-1.0 if joint.name.startswith("pin") else 1.0 for joint in robot.joints])
    fw.Simulation(robot, 1e-3, q=0.3 * signs).step()


@pytest.mark.parametrize("beyond", [1e-3, 1e-6, 1e-9, 0.0, -1e-9, -1e-6, -1e-3])
def test_steps_that_end_next_to_the_singular_configuration(beyond: float) -> None:
    """Check ten steps to a small distance from it, and twenty steps away; at it, rounding has the greatest effect."""
    robot = closed(four_bars(2))
    signs = np.array([-1.0 if joint.name.startswith("pin") else 1.0 for joint in robot.joints])
    at = np.array([SINGULAR + beyond, RATE])
    M, W = 3.0, 9.81 * 3.5
    y = at.copy()
    for _ in range(10):  # backward in time, by the scalar equation
        y = _stepped(y, -1e-3, W / M)
    sim = started(robot, 1e-3, "rk4", signs * y[0], y[1:])
    sim.run(1e-2)
    np.testing.assert_allclose([sim.q[0], sim.v[0]], at, atol=1e-7)
    sim.run(2e-2)
    for _ in range(20):
        at = _stepped(at, 1e-3, W / M)
    np.testing.assert_allclose(sim.q, signs * at[0], atol=1e-5)
    np.testing.assert_allclose(sim.v, at[1:], atol=1e-3)


def _stepped(y: Any, h: float, ratio: float) -> Any:
    """Return a Runge-Kutta step of the angle a and its rate, a'' = ratio sin a."""

    def rates(x: Any) -> Any:
        return np.array([x[1], ratio * math.sin(x[0])])

    k1 = rates(y)
    k2 = rates(y + 0.5 * h * k1)
    k3 = rates(y + 0.5 * h * k2)
    k4 = rates(y + h * k3)
    return y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def test_squeezer_has_the_angles_of_the_test_set() -> None:
    """Check all seven angles after 0.03 s, in which the crank turns two and a half times; the reference has 16 digits,
    ours eight.
    """
    robot = closed(squeezer())
    sim = started(robot, 2e-5, "rk4", squeezer_start(robot), [0.0])
    sim.run(0.03, every=1500, tau=np.array([MOTOR]))
    ends = {joint.name: sim.q[joint.q_slice.start] for joint in robot.joints}
    for name, (_, end) in SQUEEZED.items():
        assert ends[name] == pytest.approx(end, abs=1e-7), name


def test_bricard_swings_to_the_other_side_and_back() -> None:
    """Check that every second hinge turns alike, and that P3 moves as in the figure of the problem.

    One constraint is redundant.
    """
    robot = closed(bricard())
    t = started(robot, 2e-2, "rk4", robot.close(np.zeros(robot.nq)), [0.0]).run(10.0)
    assert energy_change(robot, t) < 1e-6
    np.testing.assert_allclose(t.q[:, 2:], t.q[:, :3], atol=1e-9)
    corner = np.eye(4)
    corner[:3, 3] = 0.0, -1.0, 0.0
    x, y, z = (robot.frame_placement("rod1")(t.q) @ corner)[:, :3, 3].T
    np.testing.assert_allclose([x.min(), x[-1], y.max(), z.min()], [-1.0, 1.0, -math.sqrt(0.75), -0.5], atol=5e-4)


@pytest.mark.parametrize(("integrator", "step", "most"), [("midpoint", 2e-3, 2e-4), ("rk4", 1e-4, 1e-9)])
def test_governor_follows_its_equations(integrator: str, step: float, most: float) -> None:
    """Check two stiff springs with dampers; the steps of "midpoint" are too long for the damper with "rk4"."""
    robot = closed(governor())
    sim = started(robot, step, integrator, governor_start(robot), [2.0 * math.pi, 0.0, 0.0, 0.0])
    t = sim.run(2.0, every=round(0.1 / step))
    reference = governor_motion(t.times, 2.0 * math.pi)
    by_name = {joint.name: t.q[:, joint.q_slice.start] for joint in robot.joints}
    np.testing.assert_allclose(by_name["slide"], reference[:, 0], atol=most)
    for side in ("right", "left"):
        np.testing.assert_allclose(by_name[f"{side}_hinge"], reference[:, 1], atol=most)
    assert by_name["slide"].max() == pytest.approx(0.743, abs=2e-3)  # as in the figure of the OpenSim model
