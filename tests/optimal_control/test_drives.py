"""Tests of controls of actuators: motors and servos, whose forces depend on q and v."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.robots.example_files import example
from optimal_control.problems import HAND, PANDA_START, layout_of, pendulum
from optimal_control.test_stage_functions import check

NO_LIMITS = fw.JointOptions(limits=False)
TARGET = [0.35, -0.45, 0.35]
MOTOR = fw.Actuator("motor", "shoulder", gear=3.0, control=(-1.0, 1.0))
SERVO = fw.Actuator("servo", "elbow", gear=0.5, gain=40.0, bias=(1.0, -40.0, -2.0), control=(-3.0, 3.0), force=(-8.0, 8.0))


def arm() -> fw.OptimalControl:
    """Return an arm with servos at all joints."""
    robot = fw.load(example("panda"))
    ocp = fw.OptimalControl(robot, dt=0.02, knots=20, actuators=fw.PD(200.0, 30.0))
    ocp.add(fw.FrameTask(HAND, kind="position", name="hand"), weight=np.append(np.full(20, 10.0), 1e3))
    ocp.add(fw.JointVelocities(), weight=1.0)
    ocp.add(fw.JointForces(), weight=1e-4)
    return ocp


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4"])
def test_derivatives_go_through_the_drives(integrator: str) -> None:
    """Check derivatives by differences: of steps, and of rows of u, tau and a."""
    rng = np.random.default_rng(0)
    ocp = fw.OptimalControl(pendulum(), dt=0.02, knots=4, actuators=[MOTOR, SERVO], integrator=integrator)
    ocp.add(fw.Effort(), weight=1.0)
    ocp.add(fw.JointForces(), weight=1.0)
    ocp.add(fw.PostureTask(), weight=1.0)
    ocp.add(fw.Residual(lambda q, a, tau: [a[0] * np.sin(q[1]) + tau[1] * np.cos(tau[0])], size=1, name="mixed"), weight=1.0)
    for stage in layout_of(ocp).stages:
        check(ocp, stage, rng.normal(size=2), layout_of(ocp).parameters(np.zeros(2), None, None)[0], rng)


@pytest.mark.parametrize("step", [1e-4, 0.02])
def test_steps_are_those_of_a_simulation(step: float) -> None:
    """Check steps, which are implicit in stiffness and damping, too; joint forces are those at the end of the step."""
    robot = pendulum()
    ocp = fw.OptimalControl(robot, dt=step, knots=1, actuators=[MOTOR, SERVO])
    ocp.add(fw.JointForces(), weight=1.0)
    q, v, u = np.array([0.3, -0.8]), np.array([0.5, 0.2]), np.array([0.7, -0.4])
    ahead, after, tau = layout_of(ocp).stages[0].step(q, v, u, step)
    sim = fw.Simulation(robot, step, q=q, v=v, actuators=[MOTOR, replace(SERVO, force=(-np.inf, np.inf))], joints=NO_LIMITS)
    sim.step(control=u)
    np.testing.assert_allclose(after, sim.v, rtol=1e-10)
    np.testing.assert_allclose(ahead, sim.q, rtol=1e-10)
    np.testing.assert_allclose(tau, [2.1, 0.5 * (40.0 * -0.4 + 1.0 - 20.0 * ahead[1] - after[1])], rtol=1e-10)


def test_an_arm_with_servos_reaches_a_target_in_a_simulation_of_them() -> None:
    ocp = arm()
    robot, hand = ocp.robot, ocp.robot.frame_placement(HAND)
    plan = ocp.solve(PANDA_START, targets={"hand": TARGET})
    assert plan.converged and np.linalg.norm(hand(plan.q[-1])[:3, 3] - TARGET) < 0.02
    assert plan.u.shape == (20, 8)
    sim = fw.Simulation(robot, dt=2e-3, q=PANDA_START, actuators=fw.PD(200.0, 30.0), shapes=False)
    sim.run(1.5, fw.Controller(ocp, frequency=50, targets={"hand": TARGET}))
    assert np.linalg.norm(hand(sim.q)[:3, 3] - TARGET) < 0.02


def test_controls_that_hold_are_the_first_guess() -> None:
    """Check that a robot at rest under gravity stays there, at the controls of servos that hold it."""
    robot = fw.load(example("panda"))
    ocp = fw.OptimalControl(robot, dt=0.02, knots=3, actuators=fw.PD(200.0, 30.0))
    ocp.add(fw.JointVelocities(), weight=1.0)
    ocp.add(fw.JointForces(weight=0.0), weight=1.0)
    with pytest.raises(ValueError, match="no term of the knots from 0 on depends on controls"):
        fw_only_rest(robot).solve(PANDA_START)
    plan = ocp.solve(PANDA_START, iterations=0)
    np.testing.assert_allclose(plan.q, np.tile(PANDA_START, (4, 1)))
    np.testing.assert_allclose(200.0 * (plan.u[0] - PANDA_START), robot.gravity_force(PANDA_START), atol=1e-9)


def fw_only_rest(robot: fw.Robot) -> fw.OptimalControl:
    ocp = fw.OptimalControl(robot, dt=0.02, knots=3, actuators=fw.PD(200.0, 30.0))
    ocp.add(fw.JointVelocities(), weight=1.0)
    return ocp


def test_limits_of_controls_and_of_forces() -> None:
    """Check that controls stay within their ranges, and joint forces within those of joints and actuators."""
    ocp = fw.OptimalControl(pendulum(), dt=0.02, knots=25, actuators=[MOTOR, SERVO])
    ocp.add(fw.PostureTask(), weight=1e3, at="end")
    ocp.add(fw.JointVelocities(), weight=np.append(np.full(25, 0.01), 10.0))
    ocp.add(fw.Effort(), weight=1e-2)
    ocp.limit(controls=True, efforts=True)
    plan = ocp.solve([0.0, 0.0], targets={"posture": [0.6, -0.5]}, iterations=300)
    tau = 0.5 * (40.0 * plan.u[:, 1] + 1.0 - 20.0 * plan.q[1:, 1] - plan.v[1:, 1])
    assert plan.converged and np.abs(plan.u[:, 0]).max() < 1.0 + 1e-3
    assert np.abs(plan.u[:, 0]).max() > 0.99  # the motor reaches its limit
    assert np.abs(tau).max() < 3.0 + 1e-3  # limit of the joint, which is less than the servo's 8 times its gear


def test_sampling_with_actuators() -> None:
    robot = pendulum()
    ocp = fw.OptimalControl(robot, dt=0.02, knots=20, actuators=[MOTOR, SERVO])
    ocp.add(fw.PostureTask(), weight=10.0)
    ocp.add(fw.Effort(), weight=1e-3)
    plant, model = (fw.Simulation(robot, 5e-3, actuators=[MOTOR, SERVO], on_failure=x) for x in ("raise", "stop"))
    targets = {"posture": [0.0, -0.5]}
    mppi = fw.SamplingController(ocp, model, samples=256, noise=0.1, temperature=0.01, targets=targets, rng=0)
    plant.run(1.0, mppi)
    assert abs(plant.q[1] + 0.5) < 0.05 and mppi.plan is not None
    assert np.abs(mppi.plan[:, 0]).max() <= 1.0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (dict(actuators=True), "two_links? has no actuators|has no actuators; give actuators=featherweight.PD"),
        (dict(actuators=[MOTOR], driven=["elbow"]), "either driven joints or actuators"),
        (
            dict(actuators=[fw.Actuator("string", tendon="t")]),
            "actuator 'string' has tendon; the problem supports actuators of joints",
        ),
        (dict(actuators=[fw.Actuator("weak", "elbow", gain=0.0)]), "the control of actuator 'weak' has no effect"),
        (dict(actuators=[SERVO], knots=None, phases=[fw.Phase(2), fw.Phase(2, dt=0.1)]), "all phases need the same step"),
        (dict(actuators=[fw.Actuator("curved", "elbow", slopes=(1.0, 0.0))]), "actuator 'curved' has slopes"),
    ],
)
def test_actuators_that_are_not_linear_are_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fw.OptimalControl(pendulum(), **{"knots": 3, **given})
    with pytest.raises(ValueError, match="controls=True is for actuators"):
        fw.OptimalControl(pendulum(), knots=3).limit(controls=True)
