"""Tests that all ways to step give the same bits: single steps, runs, rollouts and batches."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import featherweight as fw
from oracles.states import Array

# Ant's default configuration has its ankles beyond their limits
pytestmark = pytest.mark.filterwarnings("ignore:.*its own configuration is beyond joint limits")

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
CASES = {"hopper": ("rk4", 2e-3), "ant": ("semi-implicit", 1e-2)}
STEPS, HELD = 120, 10
ROBOTS = 40


@functools.cache
def robot_of(name: str) -> fw.Robot:
    return fw.load(ASSETS / f"{name}.xml")


def simulation(name: str, **more: Any) -> fw.Simulation:
    integrator, step = CASES[name]
    return fw.Simulation(robot_of(name), step, integrator, shapes=True, **more)


def starts(name: str) -> tuple[Array, Array]:
    """Return states near that of the file, from which robots fall on the ground within the motion."""
    robot, rng = robot_of(name), np.random.default_rng(0)
    q = np.tile(robot.configurations["qpos0"], (ROBOTS, 1))
    q = np.asarray(robot.integrate(q, 0.05 * rng.standard_normal((ROBOTS, robot.nv))))
    if name == "ant":
        q[:, 2] -= 0.1
    return q, 0.3 * rng.standard_normal((ROBOTS, robot.nv))


def controls(name: str) -> Array:
    """Return piecewise constant controls (robots, steps, nu)."""
    nu = len(robot_of(name).actuators)
    drawn = np.random.default_rng(1).uniform(-1.0, 1.0, (ROBOTS, STEPS // HELD, nu))
    return np.repeat(drawn, HELD, axis=1)


@functools.cache
def by_steps(name: str) -> tuple[Array, Array]:
    """Return states (robots, steps + 1, ...) of a few robots, stepped one robot and one step at a time."""
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
    motion = sim.run(STEPS * sim.dt, lambda time, q, v: (None, next(asked)), every=every)
    kept = [*range(0, STEPS, every), STEPS]
    assert_same((motion.q, motion.v), [x[0, kept] for x in by_steps(name)])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("every", [1, 5, 10])
def test_runs_without_a_controller_are_their_steps(name: str, every: int) -> None:
    sim, (q, v), u = simulation(name), starts(name), controls(name)
    sim.reset(q[1], v[1])
    for k in range(0, STEPS, HELD):
        motion = sim.run(HELD * sim.dt, control=u[1, k], every=every)
        assert_same((motion.q, motion.v), [x[1, k : k + HELD + 1 : every] for x in by_steps(name)])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_rollouts_of_a_batch_are_steps_of_each(name: str, threads: int) -> None:
    (q, v), u = starts(name), controls(name)
    made = simulation(name, threads=threads).rollout(q, v, control=u)
    assert_same([x[:3] for x in made], by_steps(name))
    some = simulation(name, threads=threads).rollout(q, v, control=u, every=HELD)
    assert_same([x[:3] for x in some], [x[:, ::HELD] for x in by_steps(name)])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_steps_of_a_batch_are_steps_of_each(name: str, threads: int) -> None:
    (q, v), u = starts(name), controls(name)
    sim = simulation(name, threads=threads, q=q, v=v)
    for k in range(STEPS):
        sim.step(control=u[:, k])
        assert_same((sim.q[:3], sim.v[:3]), [x[:, k + 1] for x in by_steps(name)])


@pytest.mark.parametrize("name", CASES)
def test_external_forces_of_a_batch_are_those_of_each(name: str) -> None:
    (q, v), robot = starts(name), robot_of(name)
    forces = 0.2 * np.random.default_rng(2).standard_normal((ROBOTS, len(robot.bodies), 6))
    many = simulation(name, q=q, v=v)
    for _ in range(30):
        many.step(external_forces=forces)
    for i in (0, 2):
        one = simulation(name, q=q[i], v=v[i])
        for _ in range(30):
            one.step(external_forces=forces[i])
        assert_same((one.q, one.v), (many.q[i], many.v[i]))
    without = simulation(name, q=q, v=v)
    for _ in range(30):
        without.step()
    assert np.abs(without.v - many.v).max() > 1e-3


@pytest.mark.parametrize("name", CASES)
def test_robots_that_are_reset_begin_anew_and_the_others_go_on(name: str) -> None:
    (q, v), u = starts(name), controls(name)
    sim = simulation(name, q=q, v=v)
    for k in range(30):
        sim.step(control=u[:, k])
    which = np.arange(ROBOTS) % 2 == 1
    sim.reset(q, v, which=which)
    assert_same((sim.q[which], sim.v[which]), (q[which], v[which]))
    for k in range(30):
        again = np.where(which[:, None], u[:, k], u[:, 30 + k])
        sim.step(control=again)
    expected = by_steps(name)
    for i in range(3):
        k = 30 if which[i] else 60
        assert_same((sim.q[i], sim.v[i]), [x[i, k] for x in expected])


@pytest.mark.parametrize("name", CASES)
def test_joints_stay_within_their_limits(name: str) -> None:
    """Check random drives of any strength, in the air."""
    robot = robot_of(name)
    sim = fw.Simulation(robot, CASES[name][1], CASES[name][0], shapes=False)
    q = robot.configurations["qpos0"].copy()
    driven = [j for j in robot.model.joints if np.isfinite(j.lower)]
    for j in driven:
        q[j.q_slice] = 0.5 * (j.lower + j.upper)
    sim.reset(q)
    sim.run(0.6, control=np.ones(len(robot.actuators)), every=60)
    for j in driven:
        assert j.lower - 0.05 < sim.q[j.q_slice][0] < j.upper + 0.05
