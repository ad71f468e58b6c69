"""Tests of all reasons to refuse a step, by number and message; the state must not change."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import featherweight as fw
from featherweight.robots.linkages import four_bar, four_bar_configuration
from featherweight.simulation import fleet, robot_tables, step_status
from oracles.mechanisms import closed
from oracles.states import Array
from simulation.plain_python import plain_python
from simulation.scenes import NO_GRAVITY, X, cart, corners, free_bodies, pendulum, pose, solid_ball, solid_box
from simulation.test_failures import arm, spinning_chain
from simulation.test_implicit_drives import SERVO
from simulation.test_joint_limits import LENGTHS, dead_centre, with_limits

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")

H = 1e-3
STATUSES = {name: x for name, x in vars(step_status).items() if isinstance(x, int)}
SIDES = (0.2, 0.3, 0.1)
BALL = solid_ball(1.0, 0.1)


class Refused(NamedTuple):
    """A simulation, the largest number of steps until one fails, its inputs, and the error."""

    sim: fw.Simulation
    steps: int
    inputs: dict[str, Any]
    words: str


def box(v: Array | None = None, **contact: Any) -> fw.Simulation:
    return fw.Simulation(
        free_bodies(solid_box(2.0, SIDES)), H, q=pose((0, 0, 0.05)), v=v, spheres=corners("body0", SIDES), ground=fw.Plane(),
        contact=fw.ContactOptions(**contact),
    )  # fmt: skip


def no_force() -> Refused:
    return Refused(fw.Simulation(arm(), H), 1, {"tau": [0.0, np.inf]}, "the joint force tau at joint 'elbow' is inf")


def no_control() -> Refused:
    return Refused(fw.Simulation(arm(), H), 1, {"control": [0.0, np.nan]}, "the control at number 1 is nan")


def diverged() -> Refused:
    return Refused(spinning_chain("midpoint"), 1, {}, "the iteration of the implicit midpoint rule diverges; use")


def unsettled() -> Refused:
    sim = fw.Simulation(pendulum(), 1.0, "midpoint", q=[1.0], v=[50.0])
    return Refused(sim, 1, {}, "the implicit midpoint rule does not converge: iteration 100 still changes .* of the velocity")


def open_loops() -> Refused:
    """Return a crank that cannot turn over, which moves by 50 rad in a step."""
    lengths = (0.9, 0.8, 0.6, 0.4)
    robot = closed(four_bar(lengths))
    sim = fw.Simulation(robot, 0.05, "rk4", q=robot.close(four_bar_configuration(1.0, lengths)), v=[-1000.0])
    return Refused(
        sim, 1, {}, r"four_bar: the loops cannot be closed: the step opens them by \S+ m, and \S+ m of 'loop' is left"
    )


def no_velocity() -> Refused:
    words = "the velocity at joint '(shoulder|elbow)' is (nan|-?inf)"
    return Refused(fw.Simulation(arm(), H), 1, {"tau": [1e308, -1e308]}, words)


def too_deep() -> Refused:
    sim = fw.Simulation(
        free_bodies(solid_ball(1.0, 0.1)),
        H,
        q=pose((0, 0, -0.02)),
        spheres=[fw.ContactSphere("body0", 0.1)],
        ground=fw.Plane(),
        contact=fw.ContactOptions(overlaps="refuse"),
    )
    words = r"the sphere on 'body0' penetrates the ground by 0\.12 m, more than 0\.1 m \(max_penetration of ContactOptions\)"
    return Refused(sim, 1, {}, words)


UNSOLVED = (
    r"the contact solver did not converge: the residual of Coulomb's law is {} m/s for 4 contacts, \S+ allowed; "
    "use a shorter step or a larger tolerance"
)


def unsolved() -> Refused:
    """Return a step whose contact inertia is NaN, so that its contact problem has no solution."""

    def inertia(contacts: Any, q: Array) -> Array:
        return np.full((len(q), *2 * [sum(c.size for c in contacts)]), np.nan)

    return Refused(box(np.array([1.0, 0.3, -1.0, 0.1, 0.2, 0.3]), delassus=inertia), 1, {}, UNSOLVED.format("inf"))


def no_velocity_after_contact() -> Refused:
    """Return a fast ball with almost no contact inertia, which gets unbounded impulses."""

    def light(contacts: Any, q: Array) -> Array:
        return np.tile(1e-250 * np.eye(sum(c.size for c in contacts)), (len(q), 1, 1))

    sim = fw.Simulation(
        free_bodies(solid_ball(1.0, 0.1)), H, q=pose((0, 0, 0.1)), v=[0.0, 0.0, -1e57, 0.0, 0.0, 0.0],
        spheres=[fw.ContactSphere("body0", 0.1)], ground=fw.Plane(), contact=fw.ContactOptions(delassus=light, friction=0.0),
    )  # fmt: skip
    return Refused(sim, 1, {}, "the velocity after contact at joint 'free0' is (nan|-?inf)")


def limit() -> Refused:
    crank, most = dead_centre()
    robot = with_limits("joint3", most + 0.02, most + 1.0)
    start = robot.close([crank - 0.05, *four_bar_configuration(crank - 0.05, LENGTHS)[1:]])
    words = r"joint 'joint3' is at .*, beyond its lower limit .*, and loops \('[^']*'\) do not let it come back; start from"
    return Refused(fw.Simulation(robot, H, q=start), 200, {}, words)


def no_placement() -> Refused:
    """Return two carts, one on the other, the sum of whose velocities is not finite."""
    rails = [fw.Joint(x, fw.JointType.PRISMATIC, a, b, axis=X) for x, a, b in (("low", None, "cart"), ("high", "cart", "box"))]
    robot = fw.build(fw.describe([fw.Body("cart", BALL), fw.Body("box", BALL)], rails))
    sim = fw.Simulation(robot, H, v=[1.5e308, 1.5e308], spheres=[fw.ContactSphere("box", 0.1)], ground=fw.Plane())
    return Refused(sim, 1, {}, "the placement or the velocity of a body that may touch is not finite")


def no_configuration() -> Refused:
    sim = fw.Simulation(cart(axis=X), 1.0, q=[1.7e308], v=[1e308])
    return Refused(sim, 1, {}, "the configuration after the step at joint 'rail' is inf")


def no_velocity_after_step() -> Refused:
    """Return a ball that turns by an angle whose square is not finite."""
    sim = fw.Simulation(free_bodies(solid_ball(1.0, 0.1), gravity=NO_GRAVITY), H, v=[0.0, 0.0, 0.0, 0.0, 0.0, 1e200])
    return Refused(sim, 1, {}, "the velocity after the step at joint 'free0' is nan")


def too_fast() -> Refused:
    sim = fw.Simulation(fw.load(SERVO.format(integrator="Euler")), v=[2e4])
    return Refused(sim, 1, {}, "joint 'j' moves by 200 rad or m in the step, at 2e[+]04 rad/s or m/s: the motion diverges")


def gain() -> Refused:
    sim = fw.Simulation(cart(axis=X, stiffness=1e6), 1e-2, "rk4", q=[0.1])
    words = "the step gains energy without the work of a force: .* J before it, .* J after; joint 'rail' moves by"
    return Refused(sim, 100, {}, words)


SCENES: dict[str, Callable[[], Refused]] = {
    f.__name__.upper(): f
    for f in (
        no_force, no_control, diverged, unsettled, open_loops, no_velocity, no_placement, too_deep, unsolved,
        no_velocity_after_contact, limit, no_velocity_after_step, no_configuration, too_fast, gain,
    )
}  # fmt: skip


ALIKE = {"TOO_DEEP", "UNSOLVED", "NO_VELOCITY_AFTER_CONTACT", "LIMIT", "GAIN"}
"""Statuses that do not depend on velocities and forces: both robots are refused."""


def test_each_status_has_its_scene() -> None:
    """Check all statuses except success and missing room for contacts, which is added."""
    assert STATUSES.keys() == {*SCENES, "TAKEN", "TOO_MANY_CONTACTS"}
    assert sorted(STATUSES.values()) == list(range(len(STATUSES)))


def go(sim: fw.Simulation, steps: int, inputs: dict[str, Any], states: list[Any]) -> None:
    """Step, and record the state before each step."""
    for _ in range(steps):
        states.append((sim.q, sim.v, sim.time))
        sim.step(**inputs)


@pytest.mark.parametrize("by", [nullcontext, plain_python])
@pytest.mark.parametrize("name", SCENES)
def test_a_step_that_is_refused_says_why_and_keeps_the_state(name: str, by: Any) -> None:
    with by():
        sim, steps, inputs, words = SCENES[name]()
        states: list[Any] = []
        with pytest.raises(fw.SimulationError) as caught:
            go(sim, steps, inputs, states)
        q, v, time = states[-1]
        assert re.match(words, caught.value.what), caught.value.what
        assert caught.value.time == time == sim.time
        np.testing.assert_array_equal(sim.q, q)
        np.testing.assert_array_equal(sim.v, v)
        with pytest.raises(fw.SimulationError) as again:
            sim.run(3 * sim.dt, **inputs)
        assert str(again.value) == str(caught.value)


@pytest.mark.parametrize("name", SCENES)
def test_a_robot_whose_step_is_refused_is_named_and_stops_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check beside a robot at rest, for statuses where this makes a difference."""
    sim, steps, inputs, words = SCENES[name]()
    with pytest.raises(fw.SimulationError):
        go(sim, steps, inputs, [])
    q, v, slow = np.stack([sim.q, sim.q]), np.stack([sim.v, sim.v]), name not in ALIKE
    given: dict[str, Any] = {key: np.stack([x, x]) for key, x in inputs.items()}
    if slow:
        v[0] = 0.0
        for x in given.values():
            x[0] = 0.0
    sim.reset(q, v)
    with pytest.raises(fw.SimulationError) as caught:
        sim.step(**given)
    assert re.match(words, caught.value.what) and caught.value.robot == slow
    assert f" in robot {int(slow)} of 2: " in str(caught.value)
    np.testing.assert_array_equal(sim.q, q)
    np.testing.assert_array_equal(sim.v, v)
    monkeypatch.setattr(fw, "Simulation", partial(fw.Simulation, on_failure="stop"))
    sim = SCENES[name]().sim
    sim.reset(q, v)
    sim.step(**given)
    assert sim.failed.tolist() == [not slow, True]
    np.testing.assert_array_equal(sim.q[1], q[1])


def test_a_tolerance_that_rounding_exceeds_says_what_is_left() -> None:
    sim = box(np.array([1.0, 0.3, -1.0, 0.1, 0.2, 0.3]), tolerance=1e-30)
    with pytest.raises(fw.SimulationError) as caught:
        sim.step()
    assert re.match(UNSOLVED.format(r"\d\S*e-1\d"), caught.value.what), caught.value.what


# --- capacity


def test_room_for_more_contacts_than_there_was_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a step that first had too little memory has the bits of a step with enough."""
    spheres = [fw.ContactPoint("body0", (x, y, -0.05)) for x in np.linspace(-0.1, 0.1, 6) for y in np.linspace(-0.15, 0.15, 6)]
    ends = []
    for room in (fleet.CAPACITY, 64):
        monkeypatch.setattr(fleet, "CAPACITY", room)
        sim = fw.Simulation(
            free_bodies(solid_box(2.0, SIDES)), H, q=np.stack([pose((0, 0, 0.3)), pose((0, 0, 0.05))]),
            v=np.array([[0, 0, 0, 0, 0, 0], [0.3, 0.1, -0.5, 0, 0, 1.0]]), spheres=spheres, ground=fw.Plane(),
        )  # fmt: skip
        sim.run(5 * H)
        assert sim.state.layout.capacity == 64 and len(sim.contacts(1)[0]) == 36
        ends.append((sim.q, sim.v, sim.contacts(1)[1]))
    for mine, theirs in zip(*ends, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_robots_that_need_more_room_in_the_same_step_make_it_once() -> None:
    spheres = [fw.ContactPoint("body0", (x, 0.0, -0.05)) for x in np.linspace(-0.1, 0.1, fleet.CAPACITY + 1)]
    sim = fw.Simulation(
        free_bodies(solid_box(2.0, SIDES)), H, q=np.tile(pose((0, 0, 0.06)), (5, 1)), v=np.tile([0, 0, -1.0, 0, 0, 0], (5, 1)),
        spheres=spheres, ground=fw.Plane(),
    )  # fmt: skip
    sim.run(20 * H)
    assert sim.state.layout.capacity == 2 * fleet.CAPACITY
    assert sim.contact_arrays.counts.tolist() == [fleet.CAPACITY + 1] * 5


# --- functions of the user


@pytest.mark.parametrize("on_failure", ["raise", "stop"])
@pytest.mark.parametrize("robots", [1, 3])
def test_an_error_of_a_function_that_a_step_calls_is_raised(robots: int, on_failure: str) -> None:
    """Check that the error is unchanged, with the state and time before it; the next step is unaffected."""
    calls: list[int] = []

    def delassus(contacts: Any, q: Array) -> Array:
        calls.append(1)
        if len(calls) in broken:
            raise KeyError("no inertia")
        return np.asarray(robot.delassus(contacts)(q))

    def made() -> fw.Simulation:
        q = np.tile(pose((0, 0, 0.05)), (robots, 1))
        return fw.Simulation(
            robot, H, q=q if robots > 1 else q[0], spheres=corners("body0", SIDES), ground=fw.Plane(),
            contact=fw.ContactOptions(delassus=delassus), on_failure=on_failure,
        )  # fmt: skip

    robot = free_bodies(solid_box(2.0, SIDES))
    broken: list[int] = []
    sim, sound = made(), made()
    sim.step()
    sound.step()
    taken = len(calls) // 2
    q, v = sim.q, sim.v
    for take, more in ((sim.step, 1), (lambda: sim.run(3 * H, every=3), 1 + taken)):
        calls.clear()
        broken[:] = [more]
        with pytest.raises(KeyError, match="no inertia"):
            take()
        if more == 1 or robots > 1:  # batches return to their state before the call
            assert (sim.steps, sim.time) == (1, H)
            np.testing.assert_array_equal(sim.q, q)
            np.testing.assert_array_equal(sim.v, v)
        assert not sim.failed.any()
    broken.clear()
    assert sim.steps == (2 if robots == 1 else 1)
    while sim.steps < 5:
        sim.step()
    while sound.steps < 5:
        sound.step()
    assert sim.time == sound.time
    np.testing.assert_array_equal(sim.q, sound.q)
    np.testing.assert_array_equal(sim.v, sound.v)


@pytest.mark.parametrize("shape", [(4, 4), (6,)], ids=["placement", "velocity"])
def test_no_step_is_taken_where_bodies_cannot_be_placed(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check functions without machine code, which are called in Python: a failure must not look like no contact."""
    computed = robot_tables.python_call
    asked = []

    def failing(evaluate: Callable[[], None], outputs: list[Array], errors: list[BaseException]) -> Any:
        def fail_at_last() -> None:
            asked.append(1)
            if len(asked) > 3:
                raise KeyboardInterrupt
            evaluate()

        of_bodies = outputs[0].shape[1:] == shape
        return computed(fail_at_last if of_bodies else evaluate, outputs, errors)

    monkeypatch.setattr(robot_tables, "python_call", failing)
    root = fw.Joint("root", fw.JointType.FLOATING, "world", "body0")
    robot = fw.build(fw.describe([fw.Body("body0", solid_box(2.0, SIDES))], [root]), execution="interpreted")
    sim = fw.Simulation(robot, H, q=pose((0, 0, 0.05)), spheres=corners("body0", SIDES), ground=fw.Plane())
    with pytest.raises(KeyboardInterrupt):
        sim.run(10 * H)
    assert 0 < sim.steps <= 3
