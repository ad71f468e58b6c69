"""Tests that unsupported simulations raise descriptive errors, and that a failed step keeps the state before it."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.names import MOVED_KEYWORDS
from featherweight.robots.linkages import four_bar, four_bar_configuration
from featherweight.simulation import fleet
from oracles.mechanisms import closed
from simulation.scenes import NO_GRAVITY, cart, double_pendulum, free_bodies, pendulum, pose, solid_ball, solid_box
from simulation.test_batch import on_ground

H = 1e-3
BALL = solid_ball(1.0, 0.1)

# --- steps that fail


def arm() -> fw.Robot:
    return double_pendulum(actuators=[fw.Actuator("a", "shoulder"), fw.Actuator("b", "elbow")])


def test_a_start_near_a_singular_configuration_is_reported_at_each_reset() -> None:
    """Check a parallelogram with its bars in line."""
    robot = closed(four_bar())
    sim = fw.Simulation(robot, H, q=four_bar_configuration(0.5), shapes=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step()
    sim.reset(four_bar_configuration(1e-9))
    with pytest.warns(RuntimeWarning, match="near a singular configuration, .* do not determine joint2"):
        sim.step()


def test_a_step_that_fails_in_the_lock_of_a_gimbal_names_the_joint_without_mass() -> None:
    joints = [
        fw.Joint(x, fw.JointType.CONTINUOUS, a, b, axis=tuple(float(x == y) for y in "xyz"))
        for x, a, b in (("x", None, "outer"), ("y", "outer", "inner"), ("z", "inner", "body"))
    ]
    inertia = fw.Inertia(1.0, (0.0, 0.0, 0.1), (0.1, 0.0, 0.0, 0.2, 0.0, 0.3))
    robot = fw.build(fw.describe([fw.Body("outer"), fw.Body("inner"), fw.Body("body", inertia)], joints))
    sim = fw.Simulation(robot, H, q=[0.1, math.pi / 2, 0.2], v=[1.0, 0.0, 0.0], shapes=False)
    with (
        pytest.warns(RuntimeWarning, match="near a singular configuration, where joint 'x' moves no mass"),
        pytest.raises(fw.SimulationError, match="the step begins near a singular configuration, where joint 'x' moves no"),
    ):
        sim.step()


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4", "midpoint"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_force_that_is_no_number_is_named(integrator: str, bad: float) -> None:
    """Check that the error has the joint and the time, and that stepping can continue from the kept state."""
    sim = fw.Simulation(arm(), 0.015625, integrator, q=[0.1, 0.2], v=[1.0, 0.0])
    sim.step()
    q, v = sim.q.copy(), sim.v.copy()
    with pytest.raises(fw.SimulationError, match=r"at t = 0\.015625 s: .*tau.*'elbow'") as caught:
        sim.step(tau=[0.0, bad])
    assert (caught.value.time, caught.value.robot) == (0.015625, 0)
    np.testing.assert_array_equal(sim.q, q)
    np.testing.assert_array_equal(sim.v, v)
    assert (sim.time, sim.steps) == (0.015625, 1)
    sim.step()
    assert sim.steps == 2


def test_a_force_that_is_no_number_names_its_robot() -> None:
    sim = fw.Simulation(arm(), H, q=np.zeros((5, 2)))
    tau = np.zeros((5, 2))
    tau[3, 0] = math.nan
    with pytest.raises(fw.SimulationError, match=r"robot 3 of 5.*'shoulder'") as caught:
        sim.step(tau)
    assert caught.value.robot == 3
    np.testing.assert_array_equal(sim.q, np.zeros((5, 2)))


def test_a_control_that_is_no_number_is_named() -> None:
    sim = fw.Simulation(arm(), H)
    with pytest.raises(fw.SimulationError, match="control"):
        sim.step(control=[0.0, math.nan])
    np.testing.assert_array_equal(sim.v, [0.0, 0.0])


def test_a_velocity_that_overflows_is_named() -> None:
    sim = fw.Simulation(arm(), H)
    with pytest.raises(fw.SimulationError, match=r"velocity at joint '(shoulder|elbow)'"):
        sim.step(tau=[1e308, -1e308])
    np.testing.assert_array_equal(sim.v, [0.0, 0.0])


@pytest.mark.parametrize(
    ("inputs", "steps"), [(np.array([0.0, math.nan]), 1), ([0.0, math.nan], 1), (np.array([0.0, math.nan]), 3)]
)
@pytest.mark.parametrize("robots", [(), (3,)])
@pytest.mark.parametrize("on_failure", ["raise", "stop", "reset"])
def test_a_step_that_fails_is_taken_once(
    inputs: Any, steps: int, robots: tuple[int, ...], on_failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check the number of kernel calls, of one robot or of several, whether built-in functions copy the inputs or not."""
    calls = []

    def counting(prepare: Any) -> Any:
        def prepared(*arguments: Any, **options: Any) -> Any:
            call = prepare(*arguments, **options)

            def counted(*given: Any) -> Any:
                done = call(*given)
                if done is not None:
                    calls.append(given)
                return done

            return counted

        return prepared

    for name in ("prepared_call", "writing_call"):
        monkeypatch.setattr(fleet, name, counting(getattr(fleet, name)))
    sim = fw.Simulation(arm(), 0.015625, q=np.full((*robots, 2), 0.1), on_failure=on_failure, threads=1)
    sim.step(np.zeros(2))
    before = sim.state
    calls.clear()
    if on_failure == "raise":
        with pytest.raises(fw.SimulationError, match=r"at t = 0\.015625 s.*: the joint force tau at joint 'elbow' is nan"):
            sim.step(inputs, steps=steps)
        assert sim.state == before
    else:
        sim.step(inputs, steps=steps)
        assert sim.failed.all()
        np.testing.assert_array_equal(sim.q, before.q if on_failure == "stop" else np.full((*robots, 2), 0.1))
    assert sim.steps == 1 + (steps if on_failure != "raise" else 0)
    assert len(calls) == 1
    sim.step(np.zeros(2))
    assert sim.failed.all() == (on_failure == "stop")


def test_a_run_that_fails_keeps_the_last_good_state() -> None:
    sim = on_ground(free_bodies(solid_box(2.0, (0.2, 0.3, 0.1))))
    sim.reset(pose((0, 0, 0.06)))
    with pytest.raises(fw.SimulationError, match=r"at t = 0\.02 s"):
        sim.run(0.1, lambda t, q, v: np.full(6, math.nan) if t > 0.0195 else np.zeros(6))
    assert sim.steps == 20
    assert np.isfinite(sim.q).all()


REFUSE = fw.ContactOptions(overlaps="refuse")


def ball(height: float, **more: Any) -> fw.Simulation:
    return fw.Simulation(
        free_bodies(BALL), H, q=pose((0, 0, height)), spheres=[fw.ContactSphere("body0", 0.1)], ground=fw.Plane(), **more
    )


def test_deep_penetration_is_refused() -> None:
    """Check that the first step raises, with the depth and the shapes; a larger max_penetration accepts the state."""
    sim = ball(-0.02, contact=REFUSE)
    with pytest.raises(fw.SimulationError, match=r"at t = 0 s: the sphere on 'body0' penetrates the ground by 0\.12 m"):
        sim.step()
    np.testing.assert_array_equal(sim.q, pose((0, 0, -0.02)))
    sim = ball(-0.02, contact=fw.ContactOptions(max_penetration=0.2, overlaps="refuse"))
    sim.step()
    assert sim.q[2] > -0.02


def test_deep_penetration_of_one_another_is_refused() -> None:
    robot = free_bodies(BALL, BALL, gravity=NO_GRAVITY)
    spheres = [fw.ContactSphere("body0", 0.1), fw.ContactSphere("body1", 0.1)]
    start = np.concatenate([pose((0, 0, 0)), pose((0.05, 0, 0))])
    sim = fw.Simulation(robot, H, q=start, spheres=spheres, pairs=[(0, 1)], contact=REFUSE)
    with pytest.raises(fw.SimulationError, match=r"'body0' and .*'body1' overlap by 0\.15 m"):
        sim.step()


def test_deep_penetration_names_its_robot() -> None:
    sim = ball(0.1, contact=REFUSE)
    sim.reset(np.array([pose((0, 0, z)) for z in (0.1, 0.2, -0.05)]))
    with pytest.raises(fw.SimulationError, match="robot 2 of 3") as caught:
        sim.step()
    assert caught.value.robot == 2


def test_a_midpoint_step_that_is_too_long_says_so() -> None:
    """Check a pendulum that turns eight times in a step: the iteration does not converge."""
    sim = fw.Simulation(pendulum(), 1.0, "midpoint", q=[1.0], v=[50.0])
    with pytest.raises(fw.SimulationError, match=r"at t = 0 s: .*midpoint.*shorter step"):
        sim.step()
    np.testing.assert_array_equal(sim.q, [1.0])


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4", "midpoint"])
def test_a_loop_that_a_long_step_tears_says_so(integrator: str) -> None:
    """Check a crank that is driven against its end: after some steps of 50 ms no closed configuration is near."""
    lengths = (0.9, 0.8, 0.6, 0.4)
    robot = closed(four_bar(lengths))
    q = robot.close(four_bar_configuration(1.0, lengths))
    sim = fw.Simulation(robot, 0.05, integrator, q=q)
    with pytest.raises(fw.SimulationError, match=r"closed|midpoint|gains energy"):
        sim.run(6.0, tau=[1e4])
    assert np.abs(robot.residual(sim.q)).max() < 1e-9


def spinning_chain(integrator: str = "semi-implicit") -> fw.Simulation:
    """Return a chain whose velocities overflow in the second step; without gravity and friction nothing else fails."""
    robot = fw.build(fw.generators.chain(5))
    return fw.Simulation(
        robot, H, integrator, v=[3e160] * 5, spheres=[fw.ContactSphere("body4", 0.05)], ground=fw.Plane(point=(0, 0, -9)),
        joints=fw.JointOptions(limits=False),
    )  # fmt: skip


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4", "midpoint"])
@pytest.mark.parametrize("way", ["step", "run", "every", "controller", "rollout"])
def test_what_overflows_is_told_however_it_is_stepped(integrator: str, way: str) -> None:
    sim = spinning_chain(integrator)
    q, v = sim.q, sim.v
    ways: dict[str, Any] = {
        "step": sim.step,
        "run": lambda: sim.run(0.02),
        "every": lambda: sim.run(0.02, every=10),
        "controller": lambda: sim.run(0.02, lambda t, q, v: np.zeros(5)),
        "rollout": lambda: sim.rollout(np.stack([0.0 * q, q]), np.stack([0.0 * v, v]), steps=20),
    }
    with pytest.raises(fw.SimulationError, match=r"^at t = 0 s.*(velocity|configuration|gains energy|midpoint)") as caught:
        ways[way]()
    assert caught.value.robot == (way == "rollout")
    np.testing.assert_array_equal(np.atleast_2d(sim.q)[-1], q)
    np.testing.assert_array_equal(np.atleast_2d(sim.v)[-1], v)


@pytest.mark.parametrize("speed", [300.0, 1e5, 1e80, 1e154])
def test_a_run_without_controller_never_returns_what_is_not_finite(speed: float) -> None:
    sim = spinning_chain()
    sim.v = [speed] * 5
    with pytest.raises(fw.SimulationError):
        sim.run(1.0, every=10)
    assert np.isfinite(sim.q).all()
    assert np.isfinite(sim.v).all()


def test_a_step_that_was_refused_leaves_no_trace() -> None:
    """Check that the impulses for the next warm start are restored too: its bits are those without the failed step."""
    steps = []
    for refused in (False, True):
        sim = on_ground(free_bodies(solid_box(2.0, (0.2, 0.3, 0.1))))
        sim.reset(pose((0, 0, 0.05)), [0.5, 0.2, 0.0, 0.0, 0.0, 1.0])
        sim.run(0.02, every=7)
        if refused:
            with pytest.raises(fw.SimulationError, match="velocity after the step"):
                sim.step(tau=[1e304, 0.0, -1e304, 0.0, 0.0, 0.0])
        sim.step(tau=[3.0, 0.0, 0.0, 0.0, 0.0, 0.1])
        steps.append((sim.q, sim.v))
    np.testing.assert_array_equal(steps[0][0], steps[1][0])
    np.testing.assert_array_equal(steps[0][1], steps[1][1])


def test_an_error_is_one_of_featherweights() -> None:
    assert issubclass(fw.SimulationError, RuntimeError)


# --- invalid arguments

BOX = (0.2, 0.3, 0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dt": 0.0}, "dt must be a positive"),
        ({"dt": -1e-3}, "dt must be a positive"),
        ({"dt": math.nan}, "dt must be a positive"),
        ({"dt": math.inf}, "dt must be a positive"),
        ({"integrator": "euler"}, "integrator must be one of semi-implicit, rk4, midpoint"),
        ({"threads": 0}, "threads must be a whole number of at least 1, or None; got 0"),
        ({"spheres": [fw.ContactSphere("nowhere", 0.1)], "ground": fw.Plane()}, "no frame 'nowhere'"),
        ({"spheres": [fw.ContactSphere("body0", 0.1)], "pairs": [(0, 1)]}, "pairs must name two of the 1 spheres"),
        ({"spheres": [fw.ContactSphere("body0", 0.1)], "pairs": [(0, 0)]}, "pairs must name two of the 1 spheres"),
        ({"spheres": [fw.ContactSphere("body0", 0.1)], "pairs": [(-1, 0)]}, "pairs must name two of the 1 spheres"),
        ({"spheres": [fw.ContactPoint("body0"), fw.ContactPoint("body0")], "pairs": [(0, 1)]}, "two points never touch"),
        ({"q": np.zeros(6)}, r"q must have shape \(7,\)"),
        ({"q": np.zeros((2, 3, 7))}, r"q must have shape \(7,\)"),
        ({"q": np.full(7, math.nan)}, "q must be finite"),
        ({"v": np.zeros(7)}, r"v must have shape \(6,\)"),
        ({"v": np.full(6, math.inf)}, "v must be finite"),
        ({"actuators": [fw.Actuator("motor", "free0")]}, "motor.*free0.*neither a joint with one coordinate"),
        ({"actuators": [fw.Actuator("motor", "nothing")]}, "motor.*nothing"),
    ],
)
def test_arguments_of_a_simulation_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fw.Simulation(free_bodies(BALL), **arguments)


UNTURNED = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ground": "flat"}, r"ground must be True \(the plane z = 0\), featherweight\.Plane\(\.\.\.\).* got 'flat'"),
        ({"ground": 0.0}, "ground must be True"),
        ({"spheres": fw.ContactSphere("body0", 0.1)}, r"spheres must be a list; put the ContactSphere into one"),
        ({"spheres": ["body0"], "ground": True}, r"spheres must be a list of ContactSphere.*; it contains 'body0'"),
        ({"spheres": "body0"}, "spheres must be a list of ContactSphere"),
        ({"spheres": True}, "spheres must be a list of ContactSphere"),
        ({"pairs": [0, 1]}, r"pairs must be pairs of numbers of spheres, such as \[\(0, 1\)\]"),
        ({"pairs": [("body0", "body1")]}, "pairs must be pairs of numbers"),
        ({"actuators": ["motor"]}, "actuators must be a list of Actuator.* it contains 'motor'"),
        ({"shapes": "all"}, "shapes must be True or False; got 'all'"),
        ({"contact": {"friction": 0.5}}, r"contact must be featherweight\.ContactOptions\(\.\.\.\); got {'friction': 0\.5}"),
        ({"contact": None}, "contact must be featherweight"),
        ({"joints": False}, r"joints must be featherweight\.JointOptions\(\.\.\.\); got False"),
    ],
)
def test_arguments_of_another_kind_say_what_they_must_be(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        fw.Simulation(free_bodies(BALL), **arguments)


@pytest.mark.parametrize(
    ("options", "arguments", "error", "message"),
    [
        (fw.ContactOptions, {"restitution": 2.0}, ValueError, "ContactOptions: restitution must be a number between 0 and 1"),
        (fw.ContactOptions, {"restitution": math.nan}, ValueError, "ContactOptions: restitution must be"),
        (fw.ContactOptions, {"friction": -0.1}, ValueError, "ContactOptions: friction must be a finite number, zero or more"),
        (fw.ContactOptions, {"friction": math.inf}, ValueError, "ContactOptions: friction must be"),
        (fw.ContactOptions, {"margin": -1.0}, ValueError, "margin must be zero or more"),
        (fw.ContactOptions, {"slop": -1.0}, ValueError, "slop must be zero or more"),
        (fw.ContactOptions, {"bounce": "high"}, ValueError, "bounce must be zero or more"),
        (fw.ContactOptions, {"tolerance": 0.0}, ValueError, "tolerance must be between 0 and 1"),
        (fw.ContactOptions, {"max_penetration": math.nan}, ValueError, "max_penetration must be zero or more"),
        (fw.ContactOptions, {"pyramid": 4}, TypeError, "pyramid must be True or False; got 4"),
        (fw.ContactOptions, {"delassus": 4}, TypeError, "delassus must be the name of an algorithm or a function; got 4"),
        (fw.JointOptions, {"limits": "some"}, ValueError, r"limits must be True, False or 'all' .* got 'some'"),
        (fw.JointOptions, {"dry_friction": "no"}, TypeError, "dry_friction must be True or False"),
        (fw.JointOptions, {"passive": 1.0}, TypeError, "passive must be True or False"),
    ],
)
def test_options_that_make_no_sense(options: Any, arguments: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        options(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"friction": 0.5}, "Simulation has no argument 'friction'; write contact=featherweight.ContactOptions(friction=0.5)"),
        (
            {"joint_limits": False, "joint_friction": False},
            "Simulation has no argument 'joint_limits' or 'joint_friction'; write "
            "joints=featherweight.JointOptions(limits=False, dry_friction=False)",
        ),
        (
            {"delassus": np.eye, "joint_passive": False},
            "Simulation has no argument 'delassus' or 'joint_passive'; write "
            "contact=featherweight.ContactOptions(delassus=...), joints=featherweight.JointOptions(passive=False)",
        ),
    ],
)
def test_arguments_that_are_fields_of_options_now_say_what_to_write(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        fw.Simulation(free_bodies(BALL), **arguments)
    assert str(caught.value) == message


def test_all_arguments_that_moved_are_fields_of_options() -> None:
    fields = {f.name for f in dataclasses.fields(fw.ContactOptions)}, {f.name for f in dataclasses.fields(fw.JointOptions)}
    for place, field in MOVED_KEYWORDS.values():
        assert field in fields["JointOptions" in place]
    later = {"overlaps", "law"}
    assert {name for _, name in MOVED_KEYWORDS} == fields[0] - later | {
        "joint_limits",
        "joint_friction",
        "joint_passive",
        "dry_friction",
    }


def test_robots_of_another_kind_say_how_to_make_one() -> None:
    with pytest.raises(TypeError, match=r"robot must be a Robot, .* got Description .*; build it: featherweight\.build"):
        fw.Simulation(fw.generators.chain(2))  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"'robot\.urdf'"):
        fw.Simulation("robot.urdf")


def test_the_ground_may_be_asked_for_by_true() -> None:
    """Check that `True` gives the plane z = 0, with the friction of the simulation."""
    sphere = [fw.ContactSphere("body0", 0.1)]
    plain, made = (fw.Simulation(free_bodies(BALL), H, q=pose((0, 0, 0.1)), v=[1, 0, 0, 0, 0, 0], spheres=sphere, ground=g)
                   for g in (True, fw.Plane()))  # fmt: skip
    for sim in (plain, made):
        sim.run(0.01)
    assert plain.ground == fw.Plane()
    np.testing.assert_array_equal(plain.q, made.q)
    assert fw.Simulation(free_bodies(BALL), ground=False).ground is None


def test_configurations_by_name() -> None:
    robot = free_bodies(BALL)
    with pytest.raises(ValueError, match="has no configuration 'upright'; it has none"):
        fw.Simulation(robot, q="upright")
    sim = fw.Simulation(robot)
    with pytest.raises(ValueError, match="q must be an array of real numbers"):
        sim.q = "upright"


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (np.zeros(7), r"quaternion of joint 'free0'.*, q\[3:7\], must have unit length, but has 0; use that of robot.neutral"),
        ([0, 0, 0, 0, 0, 0, 2.0], "quaternion of joint 'free0'.* has 2; divide it by its length"),
        ([0, 0, 0, 0, 0, 0, 1.002], "must have unit length"),
        ([0, 0, math.nan, 0, 0, 0, 1], "q must be finite numbers; number 2, of joint 'free0'"),
        ([UNTURNED, np.zeros(7)], "quaternion of joint 'free0' of robot 1"),
        (np.zeros((0, 7)), r"at least one robot; got shape \(0, 7\)"),
        (np.zeros(7, complex), "q must be an array of real numbers: its type is complex128"),
        ([[0.0], [0.0, 1.0]], "q must be an array of real numbers"),
        ({"free0": 1.0}, "q must be an array of real numbers.* got {"),
        (np.ma.masked_greater(UNTURNED, 0.5), "q has masked elements; fill them with numbers"),
    ],
)
def test_configurations_that_are_none(q: Any, message: str) -> None:
    """Check invalid configurations in the constructor, `reset`, assignment and `rollout`; the state is kept."""
    robot = free_bodies(BALL)
    with pytest.raises(ValueError, match=message):
        fw.Simulation(robot, q=q)
    sim = fw.Simulation(robot)
    for give in (sim.reset, lambda x: setattr(sim, "q", x), lambda x: sim.rollout(x, steps=3)):
        with pytest.raises(ValueError, match=message):
            give(q)
    sim.step()
    np.testing.assert_array_equal(sim.q[3:], UNTURNED[3:])


def test_rounded_quaternions_are_normalized_and_exact_ones_kept() -> None:
    sim = fw.Simulation(free_bodies(BALL, gravity=NO_GRAVITY), q=[0, 0, 0, 0.7071, 0, 0, 0.7071])
    np.testing.assert_allclose(sim.q[3:], [math.sqrt(0.5), 0, 0, math.sqrt(0.5)], rtol=1e-15)
    q = sim.q + np.array([0, 0, 0, 1e-10, 0, 0, 0])
    sim.q = q
    np.testing.assert_array_equal(sim.q, q)
    planar = fw.build(fw.describe([fw.Body("puck", BALL)], [fw.Joint("table", fw.JointType.PLANAR, "world", "puck")]))
    np.testing.assert_allclose(fw.Simulation(planar, q=[0, 0, 0.7071, 0.7071]).q[2:], math.sqrt(0.5), rtol=1e-15)
    with pytest.raises(ValueError, match=r"cosine and sine of joint 'table', q\[2:4\]"):
        fw.Simulation(planar, q=[0, 0, 1, 1])


def test_states_are_assigned_whole_and_checked() -> None:
    sim = fw.Simulation(arm(), H, q=[0.1, 0.2])
    sim.step()
    sim.q, sim.v = [0.5, 0.6], [1.0, 2.0]
    assert sim.steps == 1
    np.testing.assert_array_equal([*sim.q, *sim.v], [0.5, 0.6, 1.0, 2.0])
    for bad, message in (([math.nan, 0.0], "finite"), ([0.0], "shape"), (np.zeros((2, 2)), "number of robots|all robots")):
        with pytest.raises(ValueError, match=message):
            sim.v = bad
        with pytest.raises(ValueError, match=message):
            sim.q = bad
    with pytest.raises(ValueError, match="read-only"):
        sim.q[0] = math.nan
    np.testing.assert_array_equal([*sim.q, *sim.v], [0.5, 0.6, 1.0, 2.0])


def test_pairs_that_never_part_are_refused() -> None:
    """Check shapes on one body, or on a body that is fixed to the other."""
    bodies = [fw.Body("hand", BALL), fw.Body("tool", BALL), fw.Body("other", BALL)]
    joints = [
        fw.Joint("free", fw.JointType.FLOATING, "world", "hand"),
        fw.Joint("grip", fw.JointType.FIXED, "hand", "tool"),
        fw.Joint("free2", fw.JointType.FLOATING, "world", "other"),
    ]
    robot = fw.build(fw.describe(bodies, joints))
    spheres = [
        fw.ContactSphere("hand", 0.1),
        fw.ContactSphere("tool", 0.1, (0.05, 0, 0)),
        fw.ContactSphere("other", 0.1, (9, 0, 0)),
        fw.ContactPoint("hand"),
    ]
    for pair, names in (((0, 1), "sphere 0 on 'hand' and the sphere 1 on 'tool'"), ((0, 3), "sphere 0 on .*point 3 on 'hand'")):
        with pytest.raises(ValueError, match=f"pair.*{names} are both fixed to body 'hand'"):
            fw.Simulation(robot, spheres=spheres, pairs=[pair])
    fw.Simulation(robot, spheres=spheres, pairs=[(0, 2), (1, 2)]).step()


def test_batches_of_q_and_v_must_agree() -> None:
    with pytest.raises(ValueError, match=r"\bq\b.*\bv\b"):
        fw.Simulation(arm(), q=np.zeros((3, 2)), v=np.zeros((4, 2)))
    assert fw.Simulation(arm(), q=np.zeros((3, 2)), v=np.ones(2)).v.shape == (3, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fw.ContactSphere("a", -1.0), "ContactSphere 'a': radius must be"),
        (lambda: fw.ContactSphere("a", math.nan), "ContactSphere 'a': radius must be"),
        (lambda: fw.ContactSphere("a", 0.1, (0.0, 0.0)), "ContactSphere 'a': center must be"),
        (lambda: fw.ContactSphere("a", 0.1, (0.0, 0.0, math.inf)), "ContactSphere 'a': center must be"),
        (lambda: fw.ContactSphere("a", friction=-1.0), "ContactSphere 'a': friction must be"),
        (lambda: fw.ContactPoint("a", restitution=2.0), "ContactPoint 'a': restitution must be"),
        (lambda: fw.Plane(normal=(0.0, 0.0, 0.0)), "normal of the plane must not be zero"),
        (lambda: fw.Plane(normal=(0.0, 1.0)), "Plane: normal must be three finite numbers"),
        (lambda: fw.Plane(point=(0.0, math.nan, 0.0)), "Plane: point must be"),
        (lambda: fw.Plane(restitution=-0.1), "Plane: restitution must be"),
        (lambda: fw.HeightField(np.zeros(4), (0, 1), (0, 1)), r"shape \(nx, ny\)"),
        (lambda: fw.HeightField(np.zeros((1, 4)), (0, 1), (0, 1)), r"shape \(nx, ny\)"),
        (lambda: fw.HeightField(np.full((2, 2), math.nan), (0, 1), (0, 1)), "finite"),
        (lambda: fw.HeightField(np.zeros((2, 2)), (1, 0), (0, 1)), "HeightField: x must be"),
        (lambda: fw.HeightField(np.zeros((2, 2)), (0, 1), (0, math.inf)), "HeightField: y must be"),
        (lambda: fw.HeightField(np.zeros((2, 2)), (0, 1), (0, 1), friction=-1.0), "HeightField: friction must be"),
    ],
)
def test_surfaces_that_make_no_sense(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_sphere_that_cannot_move_is_refused() -> None:
    fixed = [fw.Body("base"), fw.Body("body0", BALL)]
    joints = [fw.Joint("fix", fw.JointType.FIXED, "world", "base"), fw.Joint("rail", fw.JointType.PRISMATIC, "base", "body0")]
    with pytest.raises(ValueError, match="'base' is fixed to the world"):
        fw.Simulation(fw.build(fw.describe(fixed, joints)), spheres=[fw.ContactPoint("base")], ground=fw.Plane())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tau": np.zeros(3)}, r"tau must have shape \(2,\)"),
        ({"tau": 1.0}, r"tau must have shape \(2,\)"),
        ({"tau": np.zeros((3, 2))}, r"tau must have shape \(2,\) or \(robots, 2\)"),
        ({"control": np.zeros(3)}, r"control must have shape \(2,\)"),
        ({"control": np.zeros((2, 2, 2))}, r"control must have shape \(2,\)"),
        ({"control": np.zeros((3, 2))}, r"control must have shape \(2,\) or \(robots, 2\)"),
    ],
)
@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4"])
def test_forces_of_a_wrong_shape(integrator: str, arguments: dict[str, Any], message: str) -> None:
    """Check one robot and two."""
    for q in (np.zeros(2), np.zeros((2, 2))):
        sim = fw.Simulation(arm(), H, integrator, q=q)
        with pytest.raises(ValueError, match=message):
            sim.step(**arguments)
        assert sim.steps == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "steps="),
        ({"tau": np.zeros((5, 2))}, "must have shape"),
        ({"tau": np.zeros((2, 5, 2)), "steps": 4}, "must have shape"),
        ({"tau": np.zeros((2, 5, 2)), "control": np.zeros((2, 6, 2))}, "must have shape"),
        ({"tau": np.zeros((3, 5, 2))}, "shape"),
        ({"control": np.zeros((2, 5, 3))}, "shape"),
        ({"steps": 5, "every": 0}, "every must be at least 1"),
        ({"steps": 5, "every": 2.0}, "every must be at least 1, a whole number"),
        ({"steps": -1}, "steps must be at least 0"),
        ({"steps": 2.5}, "steps must be at least 0, a whole number"),
        ({"steps": 3, "v": np.zeros(3)}, "v must have shape"),
        ({"steps": 3, "v": [math.nan, 0.0]}, "v must be finite numbers; number 0, of joint 'shoulder'"),
    ],
)
def test_rollouts_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fw.Simulation(arm(), H).rollout(np.zeros((2, 2)), **arguments)
    sim = fw.Simulation(arm(), H, q=[0.1, 0.2])
    with pytest.raises(ValueError, match=message):
        sim.rollout(np.zeros((2, 2)), **arguments)
    np.testing.assert_array_equal(sim.q, [0.1, 0.2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"duration": 1.0, "every": 0}, "every must be at least 1"),
        ({"duration": 1.0, "every": 1.5}, "every must be at least 1, a whole number"),
        ({"duration": math.nan}, "duration must be zero or more seconds; got nan"),
        ({"duration": math.inf}, "duration must be zero or more"),
        ({"duration": -0.1}, "duration must be zero or more"),
        ({"duration": "1"}, "duration must be zero or more"),
        ({"duration": 1.0, "tau": "strong"}, "tau must be an array of real numbers"),
        ({"duration": 1.0, "tau": [1j, 0.0]}, "tau must be an array of real numbers"),
    ],
)
def test_runs_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    sim = fw.Simulation(arm(), H)
    with pytest.raises(ValueError, match=message):
        sim.run(**arguments)
    assert sim.steps == 0


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "controller must return joint forces tau, or a pair .* got None"),
        ((1.0, 2.0, 3.0), "got a tuple of 3"),
        (np.zeros(3), r"tau must have shape \(2,\)"),
        ((None, np.zeros(3)), r"control must have shape \(2,\)"),
        ("none", "tau must be an array of real numbers"),
        ([math.nan, 0.0], "tau at joint 'shoulder' is nan"),
    ],
)
def test_controllers_that_answer_nonsense(answer: Any, message: str) -> None:
    """Check that the state stays that before the step, also if a controller raises."""
    sim = fw.Simulation(arm(), H, q=[0.1, 0.2])
    with pytest.raises((ValueError, fw.SimulationError), match=message):
        sim.run(0.1, lambda t, q, v: answer if t > 0.0045 else np.zeros(2))
    assert sim.steps == 5

    def fails(time: float, q: Any, v: Any) -> Any:
        raise KeyError("gait")

    q = sim.q
    with pytest.raises(KeyError, match="gait"):
        sim.run(0.1, fails)
    assert sim.steps == 5
    np.testing.assert_array_equal(sim.q, q)


@pytest.mark.parametrize("robots", [1, 3])
def test_a_controller_cannot_move_the_robot(robots: int) -> None:
    """Check that states are read-only, also later, and that the controller may return its own array."""
    q = np.zeros(2) if robots == 1 else np.zeros((3, 2))
    sim, alone = fw.Simulation(arm(), H, q=q), fw.Simulation(arm(), H, q=q)
    seen, force = [], np.zeros_like(q)

    def controller(time: float, q: Any, v: Any) -> Any:
        for x in (q, v):
            with pytest.raises(ValueError, match="read-only"):
                x -= 1.0
        seen.append((q, q.copy()))
        force[...] = math.sin(1e3 * time)
        return force

    motion = sim.run(0.02, controller)
    for view, copy in seen:
        np.testing.assert_array_equal(view, copy)
    for k in range(20):
        alone.step(np.full_like(q, math.sin(1e3 * (k * H))))
    np.testing.assert_array_equal(motion.q[-1], alone.q)


def test_an_open_loop_is_refused() -> None:
    robot = fw.build(four_bar((0.3, 0.8, 0.6, 0.9)))
    with pytest.raises(ValueError, match=r"loops are open by .*robot\.close"):
        fw.Simulation(robot, q=[0.1, 0.2, 0.3])


# --- missing packages

ALONE = """
import sys
for name in ("scipy", "clarabel", "coal", "trimesh"):
    sys.modules[name] = None
import numpy as np, featherweight as fw
from featherweight.robots.linkages import four_bar
shapes = [fw.Shape("box", "body", fw.ShapeType.BOX, (0.2, 0.3, 0.1)), fw.Shape("ball", "other", fw.ShapeType.SPHERE, (0.1,))]
inertia = fw.Inertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
joints = [fw.Joint(f"free-{b}", fw.JointType.FLOATING, "world", b) for b in ("body", "other")]
robot = fw.build(fw.describe([fw.Body(b, inertia) for b in ("body", "other")], joints, shapes=shapes))
q = robot.neutral()
q[2], q[9] = 0.05, 0.2
sim = fw.Simulation(robot, 1e-3, q=q, shapes=True, ground=True)
sim.run(0.05)
rail = fw.Joint("rail", fw.JointType.PRISMATIC, "world", "body", lower=-0.1, upper=0.1, dry_friction=0.1)
limited = fw.Simulation(fw.build(fw.describe([fw.Body("body", inertia)], [rail])), 1e-3, "midpoint", actuators=fw.PD(10.0))
limited.run(0.05, control=[1.0])
looped = fw.Simulation(fw.build(four_bar()), 1e-3, "rk4")
looped.run(0.05)
print(len(sim.contacts()[0]) > 3, limited.steps, looped.steps, robot.nq == 14)
"""


def test_simulations_need_no_package_but_those_of_the_core() -> None:
    told = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True", "50", "50", "True"]


@pytest.mark.parametrize("on_failure", ["stop", "reset"])
@pytest.mark.parametrize("every", [1, 2])
def test_runs_of_a_robot_that_fails_record_what_steps_give(on_failure: str, every: int) -> None:
    """Check runs without and with a controller, and several steps at once, after a run that left records behind."""

    def made() -> fw.Simulation:
        sim = fw.Simulation(cart(), 0.01, q=[0.1], on_failure=on_failure)
        sim.run(0.04, tau=[1.0])
        return sim

    tau, steps = np.array([1e160]), 6
    sims, step_by_step = [made(), made()], made()
    expected = [(step_by_step.time, step_by_step.q[0])]
    for k in range(1, steps + 1):
        step_by_step.step(tau)
        if k % every == 0:
            expected.append((step_by_step.time, step_by_step.q[0]))
    assert step_by_step.failed[0]
    runs = sims[0].run(0.06, tau=tau, every=every), sims[1].run(0.06, lambda time, q, v: tau, every=every)
    for run in runs:
        np.testing.assert_allclose(np.column_stack([run.times, run.q[:, 0]]), expected, rtol=0, atol=1e-15)
    at_once = made()
    at_once.step(tau, steps=steps)
    for sim in (*sims, at_once):
        assert sim.state == step_by_step.state and sim.failed[0]
