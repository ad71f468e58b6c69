"""However steps are taken, one by one, by a run, a rollout or in a batch, a robot's motion has the same bits."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import featherweight as fw
from oracles.states import Array

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
CASES = {"hopper": ("rk4", 2e-3), "ant": ("semi-implicit", 1e-2)}
STEPS, HELD = 120, 10
ROBOTS = 40


@functools.cache
def robot_of(name: str) -> fw.Robot:
    return fw.load(ASSETS / f"{name}.xml")


def simulation(name: str, **more: Any) -> fw.Simulation:
    integrator, step = CASES[name]
    return fw.Simulation(robot_of(name), step, integrator, shapes=True, ground=fw.Plane(), **more)


def starts(name: str) -> tuple[Array, Array]:
    """States near that of the file, from which robots fall on the ground within the motion."""
    robot, rng = robot_of(name), np.random.default_rng(0)
    q = np.tile(robot.configurations["qpos0"], (ROBOTS, 1))
    q = np.asarray(robot.integrate(q, 0.05 * rng.standard_normal((ROBOTS, robot.nv))))
    if name == "ant":
        q[:, 2] -= 0.1
    return q, 0.3 * rng.standard_normal((ROBOTS, robot.nv))


def controls(name: str) -> Array:
    """(robots, steps, nu), held."""
    nu = len(robot_of(name).actuators)
    drawn = np.random.default_rng(1).uniform(-1.0, 1.0, (ROBOTS, STEPS // HELD, nu))
    return np.repeat(drawn, HELD, axis=1)


@functools.cache
def by_steps(name: str) -> tuple[Array, Array]:
    """States (robots, steps + 1, ...) of a few robots, one after another, step by step."""
    sim, (q, v), u = simulation(name), starts(name), controls(name)
    qs, vs, touched = [], [], 0
    for i in range(3):
        sim.reset(q[i], v[i])
        states = [(sim.q, sim.v)]
        for k in range(STEPS):
            sim.step(control=u[i, k])
            states.append((sim.q, sim.v))
            touched += len(sim.contacts()[0])
        qs.append([s[0] for s in states])
        vs.append([s[1] for s in states])
    assert touched > 100
    return np.array(qs), np.array(vs)


def assert_same(made: Any, expected: Any) -> None:
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("every", [1, 7])
def test_a_run_with_a_controller_is_its_steps(name: str, every: int) -> None:
    q, v = starts(name)
    sim, asked = simulation(name, q=q[0], v=v[0]), iter(controls(name)[0])
    motion = sim.run(STEPS * sim.step_size, lambda time, q, v: (None, next(asked)), every=every)
    kept = [*range(0, STEPS, every), STEPS]
    assert_same((motion.q, motion.v), [x[0, kept] for x in by_steps(name)])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("every", [1, 5, 10])
def test_runs_without_a_controller_are_their_steps(name: str, every: int) -> None:
    sim, (q, v), u = simulation(name), starts(name), controls(name)
    sim.reset(q[1], v[1])
    for k in range(0, STEPS, HELD):
        motion = sim.run(HELD * sim.step_size, control=u[1, k], every=every)
        assert_same((motion.q, motion.v), [x[1, k : k + HELD + 1 : every] for x in by_steps(name)])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_rollouts_of_a_batch_are_steps_of_each(name: str, threads: int) -> None:
    (q, v), u = starts(name), controls(name)
    made = simulation(name, threads=threads).rollout(q, v, control=u)
    assert_same([x[:3] for x in made], by_steps(name))
    some = simulation(name, threads=threads).rollout(q, v, control=u, every=HELD)
    assert_same(some, [x[:, ::HELD] for x in made])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_steps_of_a_batch_are_steps_of_each(name: str, threads: int) -> None:
    (q, v), u = starts(name), controls(name)
    sim = simulation(name, threads=threads, q=q, v=v)
    for k in range(STEPS):
        sim.step(control=u[:, k])
        assert_same((sim.q[:3], sim.v[:3]), [x[:, k + 1] for x in by_steps(name)])
