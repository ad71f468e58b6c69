"""Controllers in a loop with simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from optimal_control.problems import HAND, PANDA_START, hyq, pendulum

Array = np.ndarray[Any, np.dtype[Any]]
TARGET = [0.35, -0.45, 0.35]


def reach() -> fw.OptimalControl:
    ocp = fw.OptimalControl(fw.load(fw.example("panda")), step=0.02, knots=15)
    ocp.add(fw.FrameTask(HAND, kind="position"), weight=1e3)
    ocp.add(fw.JointVelocities(), weight=1.0)
    ocp.add(fw.Effort(), weight=1e-4)
    ocp.limit(efforts=True)
    return ocp


def test_a_controller_takes_the_hand_to_a_target_that_changes() -> None:
    ocp = reach()
    robot = ocp.robot
    hand = robot.frame_placement(HAND)
    mpc = fw.Controller(ocp, rate=50, targets={HAND: TARGET})
    sim = fw.Simulation(robot, step=2e-3, q=PANDA_START)
    first = sim.run(1.5, mpc)
    assert np.linalg.norm(hand(first.q[-1])[:3, 3] - TARGET) < 0.01
    other = [0.45, 0.2, 0.5]
    mpc.targets = {HAND: other}
    second = sim.run(1.5, mpc)
    assert np.linalg.norm(hand(second.q[-1])[:3, 3] - other) < 0.01
    assert mpc.violation < 0.1


def test_a_controller_begins_anew_after_reset() -> None:
    mpc = fw.Controller(reach(), rate=50, targets={HAND: TARGET})
    v = np.zeros(8)
    ends = []
    for _ in range(2):
        ends.append([mpc(0.02 * k, PANDA_START, v) for k in range(4)])
        mpc.reset()
    np.testing.assert_array_equal(ends[0], ends[1])


def test_between_ticks_controls_follow_the_plan_with_its_feedback() -> None:
    ocp = reach()
    mpc = fw.Controller(ocp, rate=10, targets={HAND: TARGET})
    v = np.zeros(8)
    at_plan = mpc(0.0, PANDA_START, v)
    moved = PANDA_START + np.append(0.01, np.zeros(7))
    plan = ocp.solve(PANDA_START, targets={HAND: TARGET}, iterations=50, tolerance=0.0, constraint_tolerance=0.0)
    np.testing.assert_allclose(
        mpc(0.001, moved, v) - at_plan, plan.gains[0] @ np.append(0.01, np.zeros(15)), rtol=1e-3, atol=1e-2
    )


def test_problems_of_several_phases_are_refused() -> None:
    with pytest.raises(ValueError, match="the problem has 2 phases"):
        fw.Controller(hyq(1.0)[0], rate=100)
    with pytest.raises(ValueError, match="rate must be a positive number"):
        fw.Controller(reach(), rate=0.0)


# --- sampling


def lift() -> tuple[fw.OptimalControl, fw.Simulation]:
    robot = pendulum()
    ocp = fw.OptimalControl(robot, step=0.04, knots=20)
    ocp.add(fw.FrameTask("tip", kind="position"), weight=50.0)
    ocp.add(fw.JointVelocities(), weight=0.05)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.limit(efforts=True)
    return ocp, fw.Simulation(robot, step=0.01, q=np.zeros(2), on_failure="stop")


@pytest.mark.parametrize("temperature", [0.0, 0.05])
def test_sampling_lifts_a_pendulum(temperature: float) -> None:
    ocp, inner = lift()
    target = [0.7, 0.0, -0.4]
    control = fw.SamplingController(ocp, inner, samples=64, noise=2.0, temperature=temperature, targets={"tip": target}, seed=1)
    sim = fw.Simulation(ocp.robot, step=0.01, q=np.zeros(2))
    motion = sim.run(3.0, control)
    away = np.linalg.norm(ocp.robot.frame_placement("tip")(motion.q)[:, :3, 3] - target, axis=1)
    assert away[0] > 0.8 and away[-50:].mean() < 0.1


def test_sampling_gives_the_same_for_the_same_seed() -> None:
    ends = []
    for seed in (1, 1, 2):
        ocp, inner = lift()
        control = fw.SamplingController(ocp, inner, samples=16, noise=2.0, targets={"tip": [0.7, 0.0, -0.4]}, seed=seed)
        ends.append(np.array([control(0.04 * k, np.zeros(2), np.zeros(2)) for k in range(3)]))
    np.testing.assert_array_equal(ends[0], ends[1])
    assert (ends[0] != ends[2]).any()


def test_costs_of_samples_are_those_of_plans() -> None:
    """Of motions in which nothing touches, steps of the simulation as long as those of the problem."""
    ocp, _ = lift()
    inner = fw.Simulation(ocp.robot, step=0.04, q=np.zeros(2), on_failure="stop")
    targets = {"tip": [0.7, 0.0, -0.4]}
    plan = ocp.solve(np.zeros(2), targets=targets, constraint_tolerance=1e-9)
    control = fw.SamplingController(ocp, inner, targets=targets)
    np.testing.assert_allclose(control.costs(np.zeros(2), np.zeros(2), plan.u[None]), plan.cost, rtol=1e-6)


def test_simulations_that_do_not_fit_are_refused() -> None:
    ocp, inner = lift()
    robot = ocp.robot
    with pytest.raises(ValueError, match="must be a multiple of the simulation's"):
        fw.SamplingController(ocp, fw.Simulation(robot, step=0.03, q=np.zeros(2), on_failure="stop"))
    with pytest.raises(ValueError, match='on_failure="stop"'):
        fw.SamplingController(ocp, fw.Simulation(robot, step=0.01, q=np.zeros(2)))
    with pytest.raises(ValueError, match="samples and nodes"):
        fw.SamplingController(ocp, inner, samples=1)
