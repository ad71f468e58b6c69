"""Tests of problems and controllers in other processes, and of copies."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from optimal_control.problems import HAND, PANDA_START, goes_on, leg, pendulum

TARGETS = {"posture": np.array([0.6, -0.3])}


def swing(**options: Any) -> fw.OptimalControl:
    ocp = fw.OptimalControl(pendulum(), **({"dt": 0.02, "knots": 15} | options))
    ocp.add(fw.Effort(), weight=1e-2)
    ocp.add(fw.PostureTask(), weight=10.0)
    ocp.add(fw.JointVelocities(), weight=0.1)
    ocp.limit(efforts=True)
    return ocp


def gait() -> Any:
    """Return the leg with a loop, in repeating phases, after some ticks."""
    problem, start = leg()
    ocp = fw.OptimalControl(
        problem.robot, dt=0.005, knots=12, phases=[fw.Phase(4, problem.phases[0].contacts), fw.Phase(4)],
        driven=["base_to_thigh", "thigh_to_driver"],
    )  # fmt: skip
    ocp.add(fw.Effort(), weight=1.0)
    ocp.add(fw.PostureTask(), weight=10.0)
    return after_ticks(fw.Controller(ocp, frequency=200, targets={"posture": start}), start, 0.005)


def after_ticks(controller: Any, q: Array, step: float) -> Any:
    for k in range(5):
        controller(k * step, q, np.zeros(controller.ocp.robot.nv))
    return controller


def sampled() -> Any:
    drives = fw.PD(20.0, 2.0)
    ocp = fw.OptimalControl(pendulum(), dt=0.02, knots=15, actuators=drives)
    ocp.add(fw.JointForces(), weight=1e-2)
    ocp.add(fw.PostureTask(), weight=10.0)
    return after_ticks(fw.SamplingController(ocp, samples=200, noise=0.3, targets=TARGETS), np.zeros(2), 0.02)


def simulated() -> Any:
    sim = fw.Simulation(pendulum(), 0.01, on_failure="stop", shapes=False)
    made = fw.SamplingController(swing(), sim, samples=20, noise=0.3, targets=TARGETS)
    return after_ticks(made, np.zeros(2), 0.02)


def tracking() -> Any:
    return after_ticks(fw.Controller(swing(), frequency=50, targets=TARGETS), np.zeros(2), 0.02)


def quick() -> Any:
    ocp = swing(dt=(0.005, 0.05))
    ocp.add(fw.Duration(), weight=0.3)
    return after_ticks(fw.Controller(ocp, frequency=50, targets=TARGETS), np.zeros(2), 0.02)


@pytest.mark.parametrize("made", [tracking, quick, gait, sampled, simulated])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_a_controller_go_on_with_the_same_bits(made: Callable[[], Any], copied: Callable[[Any], Any]) -> None:
    """Check that copies are independent: the original takes these ticks before its copy does."""
    controller = made()
    other = copied(controller)
    expected = goes_on(controller)
    np.testing.assert_array_equal(goes_on(other), expected)


def test_controllers_work_in_other_processes() -> None:
    controllers = [tracking(), sampled()]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:  # fails if its process dies
        found = list(pool.map(goes_on, controllers))
    for x, controller in zip(found, controllers, strict=True):
        np.testing.assert_array_equal(x, goes_on(controller))


def power(v: Any, tau: Any, scale: float = 1.0) -> Any:
    return [scale * x * y for x, y in zip(v, tau, strict=True)]


def test_problems_with_functions_and_obstacles_are_pickled() -> None:
    """Check functions of modules, partial functions, and balls around a robot; a function without a name needs cloudpickle."""
    ocp = fw.OptimalControl(fw.load(fw.example("panda")), dt=0.02, knots=10)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.add(fw.FrameTask(HAND, kind="position"), weight=10.0)
    ocp.add(fw.Residual(partial(power, scale=0.1), size=8, name="power"), weight=1e-4)
    wall, ball = (
        fw.Shape("wall", None, fw.ShapeType.BOX, (0.5, 0.03, 0.45)),
        fw.Shape("ball", None, fw.ShapeType.SPHERE, (0.05,)),
    )
    ocp.require(fw.clearance(ocp.robot, [wall], bodies=["panda_link6"], name="wall"), 0.02, np.inf)
    ocp.require(fw.clearance(ocp.robot, [ball], bodies=["panda_link6"], moving=True, name="ball"), 0.02, np.inf)
    given: dict[str, Any] = {
        "targets": {HAND: [0.4, 0.2, 0.5]},
        "parameters": {"ball": [1.0, 0.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.9]},
        "iterations": 5,
    }
    expected = ocp.solve(PANDA_START, **given)
    again = pickle.loads(pickle.dumps(ocp)).solve(PANDA_START, **given)
    np.testing.assert_array_equal(again.u, expected.u)
    ocp.add(fw.Residual(lambda q: [q[0]], size=1, name="nameless"))
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        pickle.dumps(ocp)
    cloudpickle = pytest.importorskip("cloudpickle")
    np.testing.assert_array_equal(
        pickle.loads(cloudpickle.dumps(ocp)).solve(PANDA_START, **given).u, ocp.solve(PANDA_START, **given).u
    )
