"""Tests of copies of simulations by `pickle` and `copy`: they continue with the same bits, independently of the original."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.environments import RobotVectorEnv
from oracles.mechanisms import MECHANISMS, closed
from simulation import scenes
from simulation.scenes import pendulum


def boxes(robots: int = 2, **options: Any) -> fw.Simulation:
    """Return falling boxes; the first hits the ground at once."""
    return scenes.boxes(0.11 + 0.1 * np.arange(robots), **options)


def alone() -> fw.Simulation:
    sim = boxes(1)
    sim.reset(sim.q[0])
    return sim


def different() -> fw.Simulation:
    sim = boxes(3)
    sim.vary(parameters=np.multiply.outer([1.0, 2.0, 3.0], sim.robot.inertial_parameters), friction=[1.0, 0.5, 0.0])
    return sim


def failed() -> fw.Simulation:
    """Return a fleet with a stopped robot, whose error the simulation keeps."""
    sim = boxes(3, on_failure="stop")
    v = np.zeros((3, 6))
    v[1, 0] = 1e6
    sim.v = v
    sim.step()
    assert sim.failed.tolist() == [False, True, False]
    return sim


def loop() -> fw.Simulation:
    robot = closed(MECHANISMS["four_bar"]())
    return fw.Simulation(robot, 1e-3, q=robot.close([0.4, 1.0, 1.2]))


def side_by_side() -> fw.Simulation:
    """Return many robots in free flight."""
    robot = pendulum(0.5)
    return fw.Simulation(robot, 1e-3, q=np.linspace(-1.0, 1.0, 9)[:, None])


def controlled() -> fw.Simulation:
    return fw.Simulation(pendulum(damping=0.1), 1e-3, "rk4", q=[0.4], actuators=[fw.Actuator("motor", "pivot", gain=2.0)])


SIMULATIONS: dict[str, Callable[[], fw.Simulation]] = {
    f.__name__: f for f in (boxes, alone, different, failed, loop, side_by_side, controlled)
}
WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


def moved(sim: fw.Simulation) -> tuple[Any, ...]:
    control = None if sim.forces.nu == 0 else np.full(sim.forces.nu, 0.3)
    sim.run(0.02, control=control)
    sim.step(control=control)
    points, forces, names = sim.contacts()
    return sim.time, sim.q, sim.v, points, forces, names, sim.failed, sim.energy(), sim.limit_forces, sim.contact_forces


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SIMULATIONS)
def test_a_copy_goes_on_to_the_same_bits_and_is_independent(name: str, way: str) -> None:
    sim = SIMULATIONS[name]()
    moved(sim)
    other, again = WAYS[way](sim), WAYS[way](sim)
    before = sim.q
    first = moved(other)
    assert (sim.q == before).all()  # only the copy moved
    for a, b in zip(first, moved(sim), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(first, moved(WAYS[way](again)), strict=True):  # a copy of a copy at the start
        np.testing.assert_array_equal(a, b)


def test_robots_that_begin_anew_are_those_of_the_copy() -> None:
    sim = boxes(2)
    sim.run(0.01)
    other = copy.deepcopy(sim)
    other.reset(other.robot.neutral(), which=[0])
    other.vary(friction=[0.1, 0.2])
    expected = copy.copy(sim)
    sim.run(0.02)
    expected.run(0.02)
    np.testing.assert_array_equal(sim.q, expected.q)


def test_environments_copy() -> None:
    envs = RobotVectorEnv("Hopper", 2)
    envs.reset(seed=3)
    actions = np.zeros((2, 3), np.float32)
    envs.step(actions)
    copies = [way(envs) for way in (WAYS["pickle"], WAYS["deepcopy"])]
    theirs = [other.step(actions) for other in copies]
    own = envs.step(actions)
    for other in theirs:
        np.testing.assert_array_equal(other[0], own[0])
        np.testing.assert_array_equal(other[1], own[1])


@pytest.mark.parametrize("way", WAYS)
def test_errors_are_copied_whole(way: str) -> None:
    """Check errors, which processes copy to one another."""
    error = fw.SimulationError("too fast", 0.5, 3, 8)
    copied = WAYS[way](error)
    assert (str(copied), vars(copied)) == (str(error), vars(error))


def test_a_copy_may_treat_failures_otherwise() -> None:
    sim = boxes(3)
    stopping, alike = sim.with_options(on_failure="stop", threads=1), sim.with_options()
    assert (sim.on_failure, stopping.on_failure, alike.on_failure) == ("raise", "stop", "raise")
    v = np.zeros((3, 6))
    v[1, 0] = 1e6
    for copied in (sim, stopping, alike):
        copied.v = v
    stopping.step()
    assert stopping.failed.tolist() == [False, True, False]
    for copied in (sim, alike):
        with pytest.raises(fw.SimulationError):
            copied.step()
    with pytest.raises(ValueError, match="on_failure"):
        sim.with_options(on_failure="forget")
    with pytest.raises(ValueError, match="threads"):
        sim.with_options(threads=0)
