"""Tests of many robots that stop, restart, differ, or are pushed, independently of each other."""

from __future__ import annotations

import pickle
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

import featherweight as fw
from featherweight.engine.loops.kernels import Table
from featherweight.identification import random_parameters
from featherweight.simulation import fleet
from simulation.scenes import boxes, corners, free_bodies, pendulum, solid_box

SIDES = (0.4, 0.3, 0.2)


def falling(robots: int, **options: Any) -> fw.Simulation:
    """Return boxes above the ground."""
    return boxes(0.3 + 0.1 * np.arange(robots), **options)


def test_some_begin_anew_and_the_others_go_on() -> None:
    sim, alone = falling(4), falling(4)
    sim.run(0.2, every=200)
    alone.run(0.2, every=200)
    start = sim.robot.neutral()
    start[2] = 0.7
    sim.reset(start, which=np.array([False, True, False, True]))
    assert (sim.q[[1, 3]] == start).all() and (sim.v[[1, 3]] == 0.0).all()
    assert sim.time == pytest.approx(0.2)
    sim.run(0.1, every=100)
    alone.run(0.1, every=100)
    assert (sim.q[[0, 2]] == alone.q[[0, 2]]).all()
    fresh = falling(1)
    fresh.reset(start[None])
    fresh.run(0.1, every=100)
    assert (sim.q[1] == fresh.q[0]).all()


@pytest.mark.parametrize("which", [slice(None), [3, 1], np.array([False, True, False, True])])
def test_contacts_of_many_are_those_of_each(which: slice | list[int] | np.ndarray) -> None:
    """Check that robots in the air have no contacts, and that forces are those on the boxes."""
    sim = falling(4)
    sim.run(0.26, every=260)
    many, chosen = sim.contacts_of_many(which), np.arange(4)[which]
    assert 0 < len(many.robot) < 4 * len(chosen)
    for place, robot in enumerate(chosen):
        points, forces, names = sim.contacts(robot)
        own = many.robot == place
        np.testing.assert_array_equal(many.points[own], points)
        np.testing.assert_array_equal(many.forces[own], forces)
        assert [sim.touching_links[c] for c in many.candidate[own]] == [("body0", None)] * len(names)
    assert (many.forces[:, 2] >= 0.0).all()


@pytest.mark.parametrize("which", [[0, 9], np.ones(3, bool), 0.5])
def test_robots_that_are_not_there_are_refused(which: ArrayLike) -> None:
    sim = falling(2)
    with pytest.raises(ValueError, match="which"):
        sim.reset(which=which)


def bad(sim: fw.Simulation) -> np.ndarray:
    tau = np.zeros(sim.v.shape)
    tau[1, 0] = np.nan
    return tau


def test_one_robot_that_fails_stops_alone() -> None:
    sim, sound = falling(3, on_failure="stop"), falling(3)
    sim.step()
    sound.step()
    before = sim.q[1]
    sim.step(bad(sim))
    sound.step()
    assert sim.failed.tolist() == [False, True, False]
    sim.run(0.05, every=50)
    sound.run(0.05, every=50)
    assert (sim.q[1] == before).all()
    assert (sim.q[[0, 2]] == sound.q[[0, 2]]).all()
    sim.reset(which=[1])
    assert not sim.failed.any()


@pytest.mark.parametrize("robots", [1, 3])
def test_a_robot_that_stops_in_a_rollout_stays_there(robots: int) -> None:
    sim = falling(robots, on_failure="stop")
    v = np.zeros((robots, 6))
    v[-1, 0] = 1e6
    start = sim.q.copy()
    for every in (1, 2):
        states = sim.rollout(start, v, 5, every=every)
        assert (states.q[-1] == start[-1]).all() and (states.v[-1] == v[-1]).all()
        assert states.failed.nonzero()[0].tolist() == [robots - 1]


def test_controls_do_not_act_after_their_steps() -> None:
    """Check controls that are not numbers, and controls that a delay could still release."""
    robot = pendulum()
    late = fw.Actuator("late", "pivot", delay=fw.ControlDelay(0.01, 4))

    def run(before: Any) -> np.ndarray:
        sim = fw.Simulation(robot, 1e-3, q=np.zeros((2, 1)), actuators=[late], threads=1)
        if before is not None:
            with suppress(fw.SimulationError):
                sim.step(control=before)
            sim.reset(np.zeros((2, 1)))
        sim.step(steps=20)
        sim.step(control=np.zeros(1), steps=20)
        return sim.q

    fresh = run(None)
    for before in (np.ones(1), np.array([np.nan])):
        np.testing.assert_array_equal(run(before), fresh)


def test_one_robot_that_fails_begins_anew() -> None:
    sim = falling(3, on_failure="reset")
    first = sim.q[1]
    sim.run(0.1, every=100)
    sim.step(bad(sim))
    assert sim.failed.tolist() == [False, True, False]
    assert (sim.q[1] == first).all() and (sim.v[1] == 0.0).all()
    sim.step()
    assert not sim.failed.any()


def test_a_robot_that_begins_anew_takes_all_further_steps_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that it moves as a single robot, also if the call takes its steps in portions."""
    monkeypatch.setattr(fleet, "MOST_STEPS", 5)
    sim, tau = falling(3, on_failure="reset"), np.zeros((3, 20, 6))
    tau[1, [2, 8], 0] = np.nan
    start = sim.q
    many = sim.rollout(start, np.zeros((3, 6)), tau=tau)
    alone = sim.rollout(start[1:2], np.zeros((1, 6)), tau=tau[1:2])
    np.testing.assert_array_equal(many.q[1], alone.q[0])
    assert (many.q[1, [3, 9]] == start[1]).all() and many.q[1, -1, 2] < many.q[1, 10, 2] < start[1, 2]


def test_a_failure_that_is_raised_leaves_all_robots_before_the_step() -> None:
    sim = falling(3)
    sim.run(0.05, every=50)
    q, v = sim.q, sim.v
    with pytest.raises(fw.SimulationError, match="robot 1 of 3"):
        sim.step(bad(sim))
    assert (sim.q == q).all() and (sim.v == v).all() and sim.steps == 50


def test_a_failure_leaves_no_trace_of_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check forces of contacts and the following steps, also if the failed step allocated memory for more contacts."""
    monkeypatch.setattr(fleet, "CAPACITY", 2)
    slide = np.zeros((3, 6))
    slide[:, :2], slide[:, 3] = [0.3, 0.2], [0.5, 1.0, 1.5]
    sim, sound = falling(3), falling(3)
    for each in (sim, sound):
        each.reset(each.q - [0.0, 0.0, 0.19, 0.0, 0.0, 0.0, 0.0], slide)
    rooms = set()
    for _ in range(150):
        before, wrenches = sim.contacts_of_many(slice(None)), sim.contact_forces
        had = sim.state.layout.capacity
        with pytest.raises(fw.SimulationError, match="robot 1 of 3"):
            sim.step(bad(sim))
        for x, y in zip(before, sim.contacts_of_many(slice(None)), strict=True):
            np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(sim.contact_forces, wrenches)
        rooms.add((had, sim.state.layout.capacity))
        sim.step()
        sound.step()
        np.testing.assert_array_equal(sim.q, sound.q)
    assert {a < b for a, b in rooms} == {False, True}


@pytest.mark.parametrize("robots", [1, 3])
def test_rollouts_change_nothing_even_if_they_fail(robots: int) -> None:
    sim, other = falling(3), falling(3)
    for each in (sim, other):
        each.vary(friction=[0.3, 0.6, 0.9])
        each.run(0.3, every=300)
    if robots == 1:
        sim, other = falling(1), falling(1)
        sim.reset(sim.q[0], time=0.5)
        other.reset(other.q[0], time=0.5)
    before = sim.time, sim.steps, sim.revision
    tau = np.zeros((3, 40, 6))
    q, v = np.broadcast_to(sim.q, (3, 7)), np.broadcast_to(sim.v, (3, 6))
    sim.rollout(q, v, tau=tau)
    tau[2, 25, 1] = np.inf
    with pytest.raises(fw.SimulationError, match="robot 2 of 3") as caught:
        sim.rollout(q, v, tau=tau)
    assert caught.value.time == pytest.approx(0.025)
    assert (sim.time, sim.steps, sim.revision) == before
    for _ in range(2):
        np.testing.assert_array_equal(sim.q, other.q)
        np.testing.assert_array_equal(sim.v, other.v)
        for x, y in zip(sim.contacts(), other.contacts(), strict=True):
            np.testing.assert_array_equal(x, y)
        sim.run(0.1)
        other.run(0.1)


def test_rollouts_of_numbers_of_robots_that_were_there_before_make_no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check rollouts of other lengths, with other inputs and in another order of memory, and a step in between."""
    sim, twin, rng = falling(1), falling(1), np.random.default_rng(0)
    made: list[Table] = []

    def counted(*content: Any) -> Table:
        made.append(Table(*content))
        return made[-1]

    monkeypatch.setattr(fleet, "Table", counted)
    for robots, steps, shared in ((3, 4, False), (1, 4, False), (3, 4, True), (3, 7, False), (1, 2, False)):
        start, v = np.repeat(twin.q, robots, axis=0), np.zeros((robots, 6))
        tau = np.asarray(rng.uniform(-1.0, 1.0, (1 if shared else robots, steps, 6)), order="F")
        states = sim.rollout(start, v, tau=tau)
        for i in range(robots):
            twin.reset(start[i : i + 1], v[i : i + 1])
            for k in range(steps):
                twin.step(tau[0 if shared else i, k])
                np.testing.assert_array_equal(states.q[i, k + 1], twin.q[0])
    assert len(made) == 1 + len({1, 3})  # for `twin`, and for each number of robots


def test_rollouts_have_the_parameters_of_the_simulation() -> None:
    sim = falling(2)
    start, v = sim.q, np.array([[1.0, 0, 0, 0, 0, 0]] * 2)
    same = sim.rollout(start, v, steps=400).q[:, -1]
    sim.vary(friction=[1.0, 0.1])
    far, farther = sim.rollout(start, v, steps=400).q[:, -1, 0]
    sim.vary()
    np.testing.assert_array_equal(sim.rollout(start, v, steps=400).q[:, -1], same)
    sim.reset(start, v)
    sim.vary(friction=[1.0, 0.1])
    sim.run(0.4)
    np.testing.assert_array_equal(sim.q[:, 0], [far, farther])
    assert farther > far + 1e-3


@pytest.mark.parametrize("on_failure", ["stop", "reset"])
def test_rollouts_mark_the_robots_that_failed(on_failure: str) -> None:
    sim = falling(3, on_failure=on_failure)
    tau = np.zeros((3, 5, 6))
    tau[2, 3, 1] = np.inf
    states = sim.rollout(sim.q, sim.v, tau=tau)
    np.testing.assert_array_equal(states.failed, [False, False, True])
    assert not sim.failed.any()
    copied = pickle.loads(pickle.dumps(states))
    np.testing.assert_array_equal(copied.failed, states.failed)


def test_forces_on_bodies_are_those_of_forward_dynamics() -> None:
    sim = falling(2)
    push = np.zeros((2, 1, 6))
    push[1, 0] = 3.0, 0.0, 1.0, 0.0, 0.0, 0.0
    for _ in range(100):
        sim.step(external_forces=push)
    assert sim.v[0, 0] == 0.0
    assert sim.v[1, 0] == pytest.approx(0.1 * 3.0 / 2.0, rel=1e-2)


def test_contact_forces_carry_the_weight_in_axes_of_the_body() -> None:
    sim = falling(2)
    sim.run(1.0, every=1000)
    forces = sim.contact_forces
    assert forces.shape == (2, 1, 6)
    np.testing.assert_allclose(forces[:, 0, :3], [[0.0, 0.0, 2.0 * 9.81]] * 2, atol=1e-5)


def test_limits_are_felt_as_forces() -> None:
    robot = pendulum(lower=-0.2, upper=0.2)
    sim = fw.Simulation(robot, 1e-3, q=[0.2])
    sim.run(0.5, every=500, tau=[5.0])
    weight = 1.5 * 9.81 * 0.4 * np.sin(0.2)
    assert sim.limit_forces == pytest.approx([-(5.0 - weight)], rel=1e-3)


def test_robots_that_differ_fall_as_robots_of_their_own() -> None:
    robot = free_bodies(solid_box(2.0, SIDES))
    parameters = random_parameters(robot, 3, mass=(0.5, 2.0), rng=0)
    q = np.tile(robot.neutral(), (3, 1))
    q[:, 2] = 0.12
    v = np.tile([0.5, 0.0, 0.0, 0.0, 0.4, 0.0], (3, 1))
    options: dict[str, Any] = {"spheres": corners("body0", SIDES), "ground": fw.Plane(friction=0.5)}
    sim = fw.Simulation(robot, 1e-3, q=q, v=v, **options)
    sim.vary(parameters=parameters, friction=[1.0, 0.5, 2.0])
    sim.run(0.3, every=300)
    for k, mu in enumerate((0.5, 0.25, 1.0)):
        own = robot.with_inertial_parameters(parameters[k])
        ground: dict[str, Any] = {"spheres": corners("body0", SIDES), "ground": fw.Plane(friction=mu)}
        one = fw.Simulation(own, 1e-3, q=q[k], v=v[k], **ground)
        one.run(0.3, every=300)
        np.testing.assert_allclose(sim.q[k], one.q, atol=1e-8)
        assert sim.energy()[k] == pytest.approx(one.energy(), rel=1e-8)


def test_springs_and_drives_differ_by_factors() -> None:
    robot = pendulum(damping=0.3, stiffness=4.0)
    drive = fw.Actuator("motor", "pivot", gain=2.0)
    options: dict[str, Any] = {"actuators": [drive], "q": np.full((2, 1), 0.4)}
    sim = fw.Simulation(robot, 1e-3, **options)
    sim.vary(damping=[1.0, 2.0], stiffness=[1.0, 0.5], gains=[1.0, 3.0])
    for _ in range(200):
        sim.step(control=[0.7])
    for k, (damping, stiffness, gain) in enumerate(((0.3, 4.0, 2.0), (0.6, 2.0, 6.0))):
        own = pendulum(damping=damping, stiffness=stiffness)
        one = fw.Simulation(own, 1e-3, q=[0.4], actuators=[fw.Actuator("motor", "pivot", gain=gain)])
        for _ in range(200):
            one.step(control=[0.7])
        np.testing.assert_allclose(sim.q[k], one.q, atol=1e-10)
        assert sim.energy()[k] == pytest.approx(one.energy(), rel=1e-9)
        whole, alone = sim.derivatives(control=[0.7]), one.derivatives(control=[0.7])
        for found, expected in zip((whole.A, whole.B, whole.B_control), (alone.A, alone.B, alone.B_control), strict=True):
            np.testing.assert_allclose(found[k], expected, rtol=1e-6, atol=1e-8)  # differences of whole steps


def test_energies_have_the_armatures_of_robots_that_differ() -> None:
    robot = pendulum(armature=0.2)
    sim = fw.Simulation(robot, 1e-3, q=np.full((2, 1), 0.4), v=np.full((2, 1), 3.0))
    before = sim.energy()
    sim.vary(armature=[[0.2], [0.7]])
    np.testing.assert_allclose(sim.energy() - before, [0.0, 0.5 * 0.5 * 3.0**2], rtol=1e-12, atol=1e-14)
    sim.vary()
    np.testing.assert_array_equal(sim.energy(), before)


@pytest.mark.parametrize(
    ("given", "message"),
    [({"friction": [1.0]}, "friction must be a number or have shape"), ({"damping": [-1.0, 1.0]}, "zero or more"),
     ({"parameters": np.zeros((2, 10))}, "parameters must have shape")],
)  # fmt: skip
def test_variations_that_make_no_sense_are_refused(given: dict[str, ArrayLike], message: str) -> None:
    sim = falling(2)
    with pytest.raises(ValueError, match=message):
        sim.vary(**given)
