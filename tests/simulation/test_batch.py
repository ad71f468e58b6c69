"""Tests of batches: many robots move as if each were alone, and many steps equal single steps."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import featherweight as fw
from featherweight.robots.linkages import four_bar
from featherweight.simulation import stage_records
from oracles.states import Array
from oracles.trees import tree
from simulation.scenes import NOTHING, corners, free_bodies, on_feet, pendulum, solid_box, two_legged

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
COUNT, STEPS, H = 100, 40, 1e-3
SIDES = (0.2, 0.3, 0.1)
INTEGRATORS = ("semi-implicit", "rk4", "midpoint")


def states(robot: fw.Robot, speed: float = 1.0, seed: int = 0, count: int = COUNT) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng=rng, size=count), speed * rng.standard_normal((count, robot.nv))


def alone(sim: fw.Simulation, q: Array, v: Array, steps: int = STEPS, **given: Any) -> tuple[Array, Array]:
    """Return the same rollouts, computed one robot and one step at a time."""
    qs, vs = np.empty((len(q), steps + 1, q.shape[1])), np.empty((len(q), steps + 1, v.shape[1]))
    for i in range(len(q)):
        sim.reset(q[i], v[i])
        qs[i, 0], vs[i, 0] = sim.q, sim.v
        for k in range(steps):
            sim.step(**{name: x[min(i, len(x) - 1), k] for name, x in given.items()})
            qs[i, k + 1], vs[i, k + 1] = sim.q, sim.v
    return qs, vs


def assert_same(a: tuple[Array, Array], b: tuple[Array, Array]) -> None:
    """Check that two results are bitwise equal."""
    np.testing.assert_array_equal(a[0], b[0])
    np.testing.assert_array_equal(a[1], b[1])


def test_one_tau_is_that_of_all_robots() -> None:
    """Check with enough robots that NumPy computes all steps together."""
    sim = fw.Simulation(pendulum(), H, **NOTHING)
    q, v = states(sim.robot, count=9)
    tau = np.random.default_rng(1).standard_normal((1, 3, 1))
    expected = sim.rollout(q, v, tau=np.repeat(tau, 9, axis=0))
    assert_same(sim.rollout(q, v, tau=tau), expected)
    sim.reset(q, v)
    sim.step(tau[0, 0])
    assert_same((sim.q, sim.v), (expected[0][:, 1], expected[1][:, 1]))


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_hundred_rollouts_are_a_hundred_single_ones(integrator: str) -> None:
    """Check a tree of all joint types with forces that change at each step; results are bitwise equal."""
    robot = tree("mixed_5")[1]
    q, v = states(robot)
    tau = np.random.default_rng(1).standard_normal((COUNT, STEPS, robot.nv))
    sim = fw.Simulation(robot, H, integrator, **NOTHING)
    assert_same(sim.rollout(q, v, tau=tau), alone(sim, q, v, tau=tau))


@functools.cache
def box() -> fw.Robot:
    return free_bodies(solid_box(2.0, SIDES))


def thrown(count: int = COUNT) -> tuple[Array, Array]:
    """Return a fleet of boxes on and just above the ground, in all attitudes."""
    q, v = states(box(), 1.0, count=count)
    q[:, 2] = np.random.default_rng(2).uniform(0.03, 0.15, count)
    return q, v


def on_ground(robot: fw.Robot, integrator: str = "semi-implicit", **more: Any) -> fw.Simulation:
    return fw.Simulation(
        robot, H, integrator, spheres=corners("body0", SIDES), ground=fw.Plane(),
        contact=fw.ContactOptions(friction=0.5, max_penetration=1.0), **more,
    )  # fmt: skip


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_contacts_of_a_batch_are_those_of_single_robots(integrator: str) -> None:
    """Check contacts and their forces bitwise."""
    q, v = thrown()
    sim = on_ground(box(), integrator)
    together = sim.rollout(q, v, STEPS)
    sim.reset(q, v)
    sim.step(steps=STEPS)
    forces = [sim.contacts(i)[1] for i in range(COUNT)]
    assert sum(map(len, forces)) > 20
    assert_same(together, alone(sim, q, v))
    for i in range(0, COUNT, 9):
        sim.reset(q[i], v[i])
        for _ in range(STEPS):
            sim.step()
        np.testing.assert_array_equal(sim.contacts()[1], forces[i])


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_robot_in_the_air_is_as_alone_beside_one_that_touches(integrator: str) -> None:
    """Check states bitwise."""
    q, v = thrown()
    q[1:, 2] += 10.0
    q[0, 2], v[0] = 0.05, 0.0
    sim = on_ground(box(), integrator)
    together, single = sim.rollout(q, v, STEPS), alone(sim, q, v)
    for x, y in zip(together, single, strict=True):
        np.testing.assert_array_equal(x[1:], y[1:])


@functools.cache
def legged() -> fw.Robot:
    """Return a trunk on a floating base with two legs, whose joints have limits, dampers, springs and dry friction."""
    return two_legged(SIDES, lower=-0.5, upper=0.4, damping=0.1, stiffness=5.0, dry_friction=0.2)


def stood(count: int) -> tuple[Array, Array]:
    q, v = states(legged(), 1.0, count=count)
    q[:, :3] = [0.0, 0.0, 0.2]
    q[:, 3:7] = [0.0, 0.0, 0.0, 1.0]
    q[:, 7:] = np.random.default_rng(3).uniform(-0.49, 0.39, (count, 2))
    return q, v


def on_legs(**more: Any) -> fw.Simulation:
    return on_feet(legged(), SIDES, H, **more)


def test_limits_and_friction_of_a_batch_are_those_of_single_robots() -> None:
    """Check contacts too. BLAS multiplies the joint rows of all robots, and contacts amplify its rounding."""
    q, v = stood(30)
    sim = on_legs()
    for together, single in zip(sim.rollout(q, v, STEPS), alone(sim, q, v), strict=True):
        np.testing.assert_allclose(together, single, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("make", [on_legs, lambda **more: on_ground(box(), **more)])
def test_threads_change_nothing(make: Any) -> None:
    """Check 300 robots, which more than one thread shares, bitwise."""
    q, v = stood(300) if make is on_legs else thrown(300)
    one, two = (make(threads=n).rollout(q, v, 20) for n in (1, 2))
    assert_same(one, two)


@pytest.mark.parametrize("make", [on_legs, lambda: on_ground(box())])
def test_a_run_is_its_steps(make: Any) -> None:
    """Check states and contacts, to the solver's tolerance, 1e-8 per step: steps between records may be computed in one
    call.
    """
    q, v = (stood if make is on_legs else thrown)(6)
    for i in range(6):
        sim = make()
        sim.reset(q[i], v[i])
        motion = sim.run(0.1, every=7)
        points, _, names = sim.contacts()
        sim.reset(q[i], v[i])
        for k in range(100):
            if k % 7 == 0:
                np.testing.assert_allclose(motion.q[k // 7], sim.q, rtol=0.0, atol=1e-6)
                np.testing.assert_allclose(motion.v[k // 7], sim.v, rtol=0.0, atol=1e-5)
            sim.step()
        np.testing.assert_allclose(motion.q[-1], sim.q, rtol=0.0, atol=1e-6)
        assert motion.times[-1] == pytest.approx(sim.time)
        assert names == sim.contacts()[2]
        np.testing.assert_allclose(points, sim.contacts()[0], atol=1e-6)


def test_loops_of_a_batch() -> None:
    """Check to 1e-11, because loop closing iterates until the last robot of a batch is closed."""
    robot = fw.build(dataclasses.replace(four_bar((0.3, 0.8, 0.6, 0.9)), gravity=(0.0, -9.81, 0.0)))
    q, v = states(robot, 3.0, count=20)
    sim = fw.Simulation(robot, H)
    for together, single in zip(sim.rollout(q, v, STEPS), alone(sim, q, v), strict=True):
        np.testing.assert_allclose(together, single, rtol=0.0, atol=1e-11)


def test_forces_and_controls_of_a_rollout_may_be_those_of_all() -> None:
    """Check that inputs with axes (1, steps, n) act on each robot."""
    robot = pendulum()
    motor = [fw.Actuator("motor", "pivot", gear=2.0)]
    sim = fw.Simulation(robot, H, actuators=motor)
    q, v = states(robot, count=5)
    rng = np.random.default_rng(0)
    tau, control = rng.standard_normal((1, STEPS, 1)), rng.standard_normal((1, STEPS, 1))
    shared = sim.rollout(q, v, tau=tau, control=control)
    assert_same(shared, sim.rollout(q, v, tau=np.repeat(tau, 5, axis=0), control=np.repeat(control, 5, axis=0)))
    assert_same(shared, alone(sim, q, v, tau=tau, control=control))


@pytest.mark.parametrize("every", [1, 3, 40, 50])
def test_a_rollout_returns_one_state_in_every(every: int) -> None:
    robot = pendulum()
    sim = fw.Simulation(robot, H)
    q, v = states(robot, count=5)
    whole, some = sim.rollout(q, v, STEPS), sim.rollout(q, v, STEPS, every=every)
    assert_same(some, (whole[0][:, ::every], whole[1][:, ::every]))
    assert_same(sim.rollout(q, v, tau=np.zeros((5, 0, 1)), every=every), (whole[0][:, :1], whole[1][:, :1]))


def test_a_run_records_one_state_in_every_and_the_last() -> None:
    """Check states and contacts; the tolerance is the difference of steps computed together."""
    sim = on_ground(box())
    q, v = thrown(1)
    sim.reset(q[0], v[0])
    whole = sim.run(0.05)
    sim.reset(q[0], v[0])
    some = sim.run(0.05, every=20)
    np.testing.assert_allclose(some.times, [0.0, 0.02, 0.04, 0.05])
    np.testing.assert_allclose(some.q, whole.q[[0, 20, 40, 50]], atol=1e-6)
    assert len(whole) == 51
    assert len(some) == 4
    for k, j in enumerate((0, 20, 40, 50)):
        points, forces = some.contacts(k)
        expected = whole.contacts(j)
        np.testing.assert_allclose(points, expected[0], atol=1e-6)
        np.testing.assert_allclose(forces, expected[1], atol=1e-2)
    assert sum(len(whole.contacts(k)[0]) for k in range(51)) == len(whole.points) > 0


def test_a_controller_is_asked_before_each_step() -> None:
    robot = pendulum()
    sim = fw.Simulation(robot, H, actuators=[fw.Actuator("motor", "pivot")])
    asked = []

    def controller(time: float, q: Array, v: Array) -> tuple[Array, Array]:
        asked.append((time, q.copy(), v.copy()))
        return np.array([1.0 - q[0]]), np.array([-v[0]])

    motion = sim.run(0.02, controller)
    np.testing.assert_allclose([t for t, _, _ in asked], motion.times[:-1])
    np.testing.assert_array_equal([q for _, q, _ in asked], motion.q[:-1])
    other = fw.Simulation(robot, H)
    for _, q, v in asked:
        other.step(tau=[1.0 - q[0] - v[0]])
    np.testing.assert_allclose(other.q, sim.q, atol=1e-15)


def test_energies_of_a_batch() -> None:
    robot = pendulum(stiffness=2.0)
    q, v = states(robot, count=4)
    energies = fw.Simulation(robot, q=q, v=v).energy()
    assert energies.shape == (4,)
    assert [fw.Simulation(robot, q=a, v=b).energy() for a, b in zip(q, v, strict=True)] == list(energies)


def test_time_counts_steps() -> None:
    """Check that time is not a sum of steps, so that rounding does not accumulate."""
    sim = fw.Simulation(pendulum(), 1e-4)
    for _ in range(1000):
        sim.step()
    assert sim.time == 1000 * 1e-4
    sim.reset(time=2.0)
    sim.step()
    assert sim.time == pytest.approx(2.0001, abs=1e-15)


def test_gaps_that_fleets_remember_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check robots that fall on the floor and on their own limbs, step by step, one of which jumps to the place of another."""

    def fallen() -> tuple[fw.Simulation, list[Array]]:
        q, v = np.tile(robot.start(), (3, 1)), np.random.default_rng(2).standard_normal((3, robot.nv))
        sim = fw.Simulation(robot, q=q, v=v, on_failure="stop")
        moved = []
        for k in range(300):
            sim.step(control=np.zeros(len(robot.controls)))
            moved.append(np.concatenate([sim.q, sim.v], axis=1))
            if k in (100, 200):
                state = sim.state
                state[0] = state[k // 100]
                sim.state = state
        return sim, moved

    robot = fw.load(ASSETS / "humanoid.xml")
    remembers, expected = fallen()
    monkeypatch.setattr(stage_records, "MOST_GAPS", 0)
    forgets, found = fallen()
    assert len(remembers.fleet_arrays.gaps.travel) == 3 and not len(forgets.fleet_arrays.gaps.travel)
    assert {0, 1, 2} == set(forgets.contacts_of_many().robot)
    np.testing.assert_array_equal(found, expected)
