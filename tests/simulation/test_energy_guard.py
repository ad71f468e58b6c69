"""Tests that steps are refused if they add energy without work of forces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.types import WORLD, as_matrix, as_vector
from simulation.scenes import FREE, HINGE, NO_GRAVITY, NOTHING, X, Y, cart, free_bodies, pendulum, solid_box

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")

TUMBLING = solid_box(1.0, (0.1, 0.2, 0.3))


def scene(number: str) -> fw.Simulation:
    """Return bodies joined by floating joints, which move relative to spinning bodies, on spheres and points."""
    made: dict[str, Any] = json.loads((Path(__file__).parent / "energy_gain.json").read_text())[number]
    bodies = [fw.Body(n, fw.Inertia(mass, tuple(center), tuple(inertia))) for n, mass, center, inertia in made["bodies"]]
    joints = []
    for name, kind, parent, child, R, p, axis, lower, upper, friction in made["joints"]:
        lower, upper = (np.inf * s if x is None else x for s, x in ((-1.0, lower), (1.0, upper)))
        placement = fw.Pose(as_matrix(R), as_vector(p))
        limits = {"lower": lower, "upper": upper, "dry_friction": friction}
        joints.append(fw.Joint(name, fw.JointType(kind), parent, child, placement, tuple(axis), **limits))
    return fw.Simulation(
        fw.build(fw.describe(bodies, joints)), made["step"], q=made["q"], v=made["v"],
        spheres=[fw.ContactSphere(frame, radius, tuple(center)) for frame, radius, center in made["spheres"]],
        ground=fw.Plane(point=tuple(made["ground"])), contact=fw.ContactOptions(friction=made["friction"]),
    )  # fmt: skip


@pytest.mark.parametrize("every", [1, 100])
def test_an_impact_that_spins_bodies_too_fast_for_the_step_is_refused(every: int) -> None:
    """Check a step that would add 230 J.

    The state stays that before the step; earlier steps add at most 5 % of the kinetic energy.
    """
    sim = scene("1")
    most = sim.energy() + 0.05 * sim.robot.kinetic_energy(sim.q, sim.v)
    for _ in range(277 // every):
        sim.run(every * sim.dt, every=every)
        assert sim.energy() < most
    with pytest.raises(fw.SimulationError, match=r"gains energy .* J before it, .* J after; joint 'joint1' moves by"):
        sim.run(0.2, every=every)
    assert sim.steps == 277
    assert sim.energy() < most


def test_bodies_that_spin_are_not_sped_up_by_being_parted() -> None:
    """Check a motion to which earlier separation of overlap would add energy at each step.

    The energy oscillates by a seventh of the initial kinetic energy, due to steps of 2 ms, and falls by 180 J.
    """
    sim = scene("2")
    start = sim.energy()
    most = start + sim.robot.kinetic_energy(sim.q, sim.v) / 7.0
    for _ in range(2000):
        sim.step()
        assert sim.energy() <= most
    assert sim.energy() < start - 100.0


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4"])
def test_a_body_that_tumbles_too_fast_for_the_step_is_refused(integrator: str) -> None:
    """Check a body that a quarter of the step size simulates."""
    robot = free_bodies(TUMBLING, gravity=NO_GRAVITY)
    too_long = {"semi-implicit": 0.012, "rk4": 0.06}[integrator]
    for step, refused in ((too_long, True), (0.25 * too_long, False)):
        sim = fw.Simulation(robot, step, integrator, v=[0.0, 0.0, 0.0, 30.0, 60.0, 30.0])
        if refused:
            with pytest.raises(fw.SimulationError, match=r"gains energy.*'free0'.*shorter step"):
                sim.run(40 * step)
        else:
            sim.run(40 * step)


def test_stiff_springs_that_an_explicit_step_cannot_follow_are_refused() -> None:
    """Check springs that the semi-implicit step treats implicitly."""
    robot = cart(axis=X, stiffness=1e6)
    for integrator in ("rk4", "semi-implicit"):
        sim = fw.Simulation(robot, 1e-2, integrator, q=[0.1])
        if integrator == "rk4":
            with pytest.raises(fw.SimulationError, match="gains energy"):
                sim.run(1.0)
        else:
            sim.run(1.0)
            assert sim.energy() < 5e3


@pytest.mark.parametrize("every", [1, 50])
def test_the_robot_of_a_batch_is_named(every: int) -> None:
    robot = free_bodies(TUMBLING, gravity=NO_GRAVITY)
    v = np.zeros((3, 6))
    v[1, 3:] = 30.0, 60.0, 30.0
    sim = fw.Simulation(robot, 0.012, v=v)
    with pytest.raises(fw.SimulationError, match="robot 1 of 3") as caught:
        sim.run(1.0, every=every)
    assert caught.value.robot == 1
    assert np.isfinite(sim.v).all()


def test_bodies_that_parting_would_speed_up_are_not_parted() -> None:
    """Check a body on a long link, 1 cm in the ground, at 10 rad/s: a displacement of 0.1 rad would rotate its velocity."""
    robot = fw.build(fw.generators.random_tree(3, rng=4, joint_types=("revolute", "planar", "spherical"), masses=(0.2, 5.0)))
    touched = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        q, v = robot.random_configuration(rng=rng), 10.0 * rng.standard_normal(robot.nv)
        last = robot.bodies[-1].name
        low = robot.frame_placement(last)(q)[2, 3] - 0.05
        for every in (1, 5):
            sim = fw.Simulation(
                robot, 1e-4, q=q, v=v, spheres=[fw.ContactSphere(last, 0.05)], ground=fw.Plane((0, 0, low + 0.01)),
                contact=fw.ContactOptions(friction=0.0), joints=fw.JointOptions(limits=False),
            )  # fmt: skip
            before = robot.kinetic_energy(q, v)
            sim.run(5e-4, every=every)
            touched += len(sim.contacts()[1])
            assert robot.kinetic_energy(sim.q, sim.v) <= before * 1.12 + 0.01
    assert touched > 20


# --- no gain of energy


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4", "midpoint"])
def test_work_is_no_gain(integrator: str) -> None:
    """Check that forces, drives and springs may do any work in a step, from rest and against the motion."""
    robot = cart(axis=X, stiffness=400.0, damping=1.0)
    for tau in (1e4, -1e4):
        sim = fw.Simulation(robot, 1e-2, integrator, q=[0.3], v=[5.0])
        sim.run(0.5, tau=[tau])
        assert abs(sim.v[0]) > 0.02
    body = fw.Body("arm", solid_box(1.0, (0.1, 0.1, 0.6)))
    drive = fw.Actuator("servo", "hinge", gain=30.0, bias=(0.0, -30.0, -1.0))
    driven = fw.build(fw.describe([body], [fw.Joint("hinge", HINGE, WORLD, "arm", axis=Y)], actuators=[drive]))
    sim = fw.Simulation(driven, 2e-3, integrator)
    sim.run(0.2, lambda t, q, v: (None, [1.5]))
    assert sim.q[0] > 1.0


def test_falling_and_lifting_are_no_gain() -> None:
    """Check a pendulum that turns over, whose potential energy becomes kinetic, and a moving body that separation of
    overlap lifts.
    """
    swing = fw.Simulation(pendulum(), 1e-2, q=[3.0], **NOTHING)
    swing.run(5.0)
    assert swing.steps == 500
    body = fw.Body("box", TUMBLING)
    robot = fw.build(fw.describe([body], [fw.Joint("free", FREE, WORLD, "box")]))
    sim = fw.Simulation(
        robot,
        1e-2,
        v=[3.0, 0, 0, 0, 0, 0],
        spheres=[fw.ContactSphere("box", 0.1)],
        ground=fw.Plane(),
        contact=fw.ContactOptions(friction=0.0),
    )
    sim.q = [0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0]
    sim.run(0.1, every=5)
    assert sim.q[2] > 0.099
    np.testing.assert_allclose(sim.v, [3.0, 0, 0, 0, 0, 0], atol=1e-6)
