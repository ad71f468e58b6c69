"""Tests of a fleet in vector lanes: each robot takes bitwise the same steps as without vectors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import gymnasium
import numpy as np
import pytest

import featherweight as fw
from featherweight.engine.backends.llvm.jit import host
from featherweight.identification import random_parameters
from featherweight.simulation import fleet_vectors
from featherweight.simulation.fleet import Fleet
from featherweight.simulation.fleet_vectors import FleetVectors
from simulation.scenes import corners, free_bodies, pendulum, solid_box

pytestmark = [
    pytest.mark.skipif(host().lanes("double") < fleet_vectors.LEAST_LANES, reason="vectors of this processor are short"),
    pytest.mark.filterwarnings("ignore:.*its own configuration is beyond joint limits"),
]
ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
ROBOTS = 19  # several vectors, and three robots more
SIDES = (0.4, 0.3, 0.2)
Moved = TypeVar("Moved")


@contextmanager
def vectors(used: bool) -> Iterator[list[int]]:
    """Let fleets never take steps in vectors, or always once these are compiled, from the end of the first step on.

    The list has a number for each call that takes steps in vectors.
    """
    taken, take_steps = list[int](), FleetVectors.take_steps

    def noted(self: FleetVectors, *arguments: Any) -> int:
        taken.append(take_steps(self, *arguments))
        return taken[-1]

    with (
        patch.object(fleet_vectors, "PATIENCE", 0.0 if used else np.inf),
        patch.object(FleetVectors, "take_steps", noted),
    ):
        yield taken
    assert bool(taken) == used


def wait_for_compilation() -> None:
    for thread in threading.enumerate():
        if thread.name == fleet_vectors.THREAD:
            thread.join()


def both_ways(make: Callable[[], fw.Simulation], move: Callable[[fw.Simulation], Moved]) -> tuple[Moved, Moved]:
    """Return what `move` returns for a fleet without vectors, and for one with vectors from the first step on."""
    with vectors(False):
        alone = move(make())
    with vectors(True) as taken:
        sim = make()
        begin = sim.state
        move(sim)  # the vectors are compiled meanwhile
        wait_for_compilation()
        taken.clear()
        sim.state = begin
        together = move(sim)
    return alone, together


def require_equal(make: Callable[[], fw.Simulation], steps: int, **inputs: Any) -> fw.Simulation:
    """Compare fleets that `make` returns, with vectors and without."""

    def move(sim: fw.Simulation) -> fw.Simulation:
        sim.run(steps * sim.dt, every=steps, **inputs)
        return sim

    alone, together = both_ways(make, move)
    np.testing.assert_array_equal(together.q, alone.q)
    np.testing.assert_array_equal(together.v, alone.v)
    ours, theirs = together.contacts_of_many(slice(None)), alone.contacts_of_many(slice(None))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(together.failed, alone.failed)
    return together


def boxes(**options: Any) -> fw.Simulation:
    """Return turned boxes above the ground, at various heights."""
    robot = free_bodies(solid_box(2.0, SIDES))
    q = robot.random_configuration(rng=np.random.default_rng(0), size=ROBOTS)
    q[:, :3] = 0.0
    q[:, 2] = 0.4 + 0.05 * np.arange(ROBOTS)
    return fw.Simulation(robot, 1e-3, q=q, spheres=corners("body0", SIDES), ground=fw.Plane(), **options)


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4", "midpoint"])
def test_boxes_that_fall(integrator: str) -> None:
    sim = require_equal(lambda: boxes(integrator=integrator), 400)
    counts = np.bincount(sim.contacts_of_many(slice(None)).robot, minlength=ROBOTS)
    assert len({*counts}) > 2, "all robots have the same number of contacts"


@pytest.mark.parametrize("name", ["hopper", "half_cheetah"])
@pytest.mark.parametrize("contact", ["rigid", "file"])
def test_robots_of_gymnasium(name: str, contact: str) -> None:
    robot = fw.load(ASSETS / f"{name}.xml")
    rng = np.random.default_rng(1)
    start = robot.integrate(np.tile(fw.Simulation(robot, 0.004).q, (ROBOTS, 1)), 0.05 * rng.normal(size=(ROBOTS, robot.nv)))
    controls = rng.uniform(-1.0, 1.0, (ROBOTS, 40, len(robot.controls)))

    def make() -> fw.Simulation:
        return fw.Simulation(robot, 0.004, q=start, shapes=True, contact=contact)

    alone, together = both_ways(make, lambda sim: sim.rollout(start, np.zeros((ROBOTS, robot.nv)), control=controls))
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_array_equal(a, b)


BALLS = """<mujoco><option cone="{cone}" timestep="0.004"/>
<default><geom condim="{condim}" friction="0.8 0.01 0.003"/></default>
<worldbody><geom type="plane" size="0 0 1"/>
  <body pos="0 0 0.1"><freejoint/><geom type="capsule" size="0.05 0.1"/></body>
  <body pos="0.02 0.05 0.3"><freejoint/><geom type="sphere" size="0.08"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("condim", [3, 6])
@pytest.mark.parametrize("portion", [1, 5])
def test_contacts_that_couple_bodies_of_some_robots(cone: str, condim: int, portion: int) -> None:
    """Check robots whose bodies touch the ground, each other, or nothing, however often vectors are made anew."""
    robot = fw.load(BALLS.format(cone=cone, condim=condim))
    q = np.tile(robot.start(), (ROBOTS, 1))
    q[:, 7] += np.linspace(0.0, 0.3, ROBOTS)
    q[:, 9] += 0.02 * np.arange(ROBOTS) % 0.13
    with patch("featherweight.simulation.fleet.VECTOR_STEPS", portion):
        sim = require_equal(lambda: fw.Simulation(robot, q=q, contact="file"), 60)
    arrays = sim.contacts_of_many(slice(None))
    between_bodies = np.array([None not in links for links in sim.touching_links])
    coupled = {*arrays.robot[between_bodies[arrays.candidate]]}
    assert 0 < len(coupled) < ROBOTS


def test_robots_that_differ() -> None:
    """Check that vectors have friction, inertias and forces of each robot."""
    rng = np.random.default_rng(2)
    push = rng.normal(size=(ROBOTS, 1, 6))
    parameters = random_parameters(boxes().robot, ROBOTS, mass=(0.5, 2.0), rng=0)

    def make() -> fw.Simulation:
        sim = boxes()
        sim.vary(friction=np.linspace(0.1, 1.0, ROBOTS), parameters=parameters)
        return sim

    def move(sim: fw.Simulation) -> fw.Simulation:
        for _ in range(300):
            sim.step(external_forces=push[:, 0][:, None])
        return sim

    alone, together = both_ways(make, move)
    np.testing.assert_array_equal(together.q, alone.q)
    assert len(alone.contacts_of_many(slice(None)).robot) >= 6


def test_limits_friction_and_drives() -> None:
    robot = pendulum(lower=-0.5, upper=0.4, dry_friction=0.05)
    drive = fw.Actuator("drive", "pivot", gain=80.0, bias=(0.0, -80.0, -2.0), force=(-3.0, 3.0))
    q = np.linspace(-0.4, 0.3, ROBOTS)[:, None]

    def make() -> fw.Simulation:
        return fw.Simulation(robot, 2e-3, q=q, v=np.linspace(3.0, -3.0, ROBOTS)[:, None], actuators=[drive])

    require_equal(make, 200, control=np.linspace(-1.0, 1.0, ROBOTS)[:, None])


@pytest.mark.parametrize("what", ["damping", "stiffness", "parameters", "armature"])
def test_robots_that_differ_at_joint_limits(what: str) -> None:
    """Check that impulses of limits and dry friction, which are computed robot by robot, use the robot's inertias."""
    robot = pendulum(lower=-0.5, upper=0.4, dry_friction=0.05, damping=0.3, stiffness=2.0, armature=0.02)
    given: dict[str, Any] = {
        "parameters": random_parameters(robot, ROBOTS, mass=(0.5, 2.0), rng=0),
        "armature": np.linspace(0.01, 0.5, ROBOTS)[:, None],
    }

    def make() -> fw.Simulation:
        q, v = np.linspace(-0.4, 0.3, ROBOTS), np.linspace(3.0, -3.0, ROBOTS)
        sim = fw.Simulation(robot, 2e-3, q=q[:, None], v=v[:, None])
        sim.vary(**{what: given.get(what, np.linspace(0.0, 4.0, ROBOTS))})
        return sim

    require_equal(make, 100)


def test_contacts_that_differ() -> None:
    """Check softness, inertias that scale the compliance, and positions and sizes of shapes of each robot."""
    robot = fw.load(ASSETS / "hopper.xml")
    rng, start = np.random.default_rng(3), np.tile(fw.Simulation(robot, 0.002).q, (ROBOTS, 1))
    ground = np.array([s.type == "plane" for s in robot.shapes])
    given: dict[str, Any] = {
        "shape_offsets": 0.01 * rng.normal(size=(ROBOTS, len(robot.shapes), 3)),
        "shape_sizes": np.where(ground[:, None], 1.0, rng.uniform(0.9, 1.2, (ROBOTS, len(ground), 3))),
        "solref": rng.uniform(0.8, 2.0, (ROBOTS, 2)),
        "solimp": rng.uniform(0.7, 1.0, (ROBOTS, 5)),
        "parameters": random_parameters(robot, ROBOTS, mass=(0.5, 2.0), rng=0),
    }

    def make() -> fw.Simulation:
        sim = fw.Simulation(robot, 0.002, q=start, shapes=True)
        sim.vary(**given)
        return sim

    require_equal(make, 150)


BENT = """<mujoco><option timestep="0.002"/><default><geom condim="6" friction="1 .01 .002"/></default><worldbody>
<geom type="plane" size="1 1 1"/><body pos="0 0 .5"><freejoint/><geom size=".1"/>
<body><joint name="a" type="slide" axis="0 0 1" springref="-.3" range="-.4 .1" limited="true" frictionloss=".2"
damping=".5 .1 .3" stiffness="40 60 900"/><geom type="box" size=".1 .2 .05" pos="0 0 -.15"/></body></body>
</worldbody>{}</mujoco>"""
SERVO = '<actuator><position joint="a" kp="900" kv="20" forcerange="-30 9"/></actuator>'


@pytest.mark.parametrize("more", ["", SERVO])
@pytest.mark.parametrize("contact", ["rigid", "file"])
def test_nonlinear_springs_and_drives_at_limits_of_robots_that_roll(more: str, contact: str) -> None:
    """Check that nonlinear springs and drives add a different armature to the contact inertia of each robot."""
    robot, rng = fw.load(BENT.format(more)), np.random.default_rng(6)
    start = np.tile(fw.Simulation(robot, 2e-3).q, (ROBOTS, 1))
    start[:, 2], start[:, -1] = np.linspace(0.5, 0.8, ROBOTS), rng.uniform(-0.3, 0.0, ROBOTS)
    v = rng.normal(size=(ROBOTS, robot.nv))
    control = {"control": rng.uniform(-0.5, 0.2, (ROBOTS, 1))} if more else {}
    sim = require_equal(lambda: fw.Simulation(robot, 2e-3, q=start, v=v, shapes=True, contact=contact), 250, **control)
    assert len(sim.contacts_of_many(slice(None)).robot) > ROBOTS // 2


@pytest.mark.parametrize("on_failure", ["stop", "reset"])
def test_robots_that_fail(on_failure: str) -> None:
    """Check that some robots of a vector fail and the others continue."""
    speeds = np.where(np.arange(ROBOTS) % 5 == 2, 1e6, 0.0)

    def make() -> fw.Simulation:
        sim = boxes(on_failure=on_failure)
        v = np.zeros((ROBOTS, 6))
        v[:, 0] = speeds
        sim.reset(sim.q, v)
        return sim

    sim = require_equal(make, 60)
    assert sim.failed.any() and not sim.failed.all()


@pytest.mark.parametrize("on_failure", ["raise", "stop", "reset"])
def test_a_step_that_fails_in_a_vector_is_taken_once(on_failure: str) -> None:
    """Check that the vectors tell why robots failed, and that no other call takes the step."""
    fast = np.arange(ROBOTS) % 5 == 2
    sim = boxes(on_failure=on_failure, threads=1)
    with vectors(True) as taken:
        sim.step()
        wait_for_compilation()
        sim.v = np.where(fast[:, None], 1e6, 0.0) * np.eye(6)[0]
        before, steps = sim.state, sim.steps
        with patch.object(Fleet, "_work", side_effect=AssertionError("steps without vectors")):
            if on_failure == "raise":
                with pytest.raises(fw.SimulationError, match=f"robot 2 of {ROBOTS}: .* moves by 800 "):
                    sim.step()
            else:
                sim.step()
        assert len(taken) == 1
    if on_failure == "raise":
        assert sim.state == before
    else:
        np.testing.assert_array_equal(sim.failed, fast)
        assert sim.steps == steps + 1 and (sim.q[~fast, 2] < before.q[~fast, 2]).all()
        np.testing.assert_array_equal(sim.v[fast], before.v[fast] if on_failure == "stop" else 0.0)


def interrupt(_: threading.Thread) -> None:
    raise KeyboardInterrupt


def test_vectors_are_compiled_beside_long_work() -> None:
    sim, alone = boxes(), boxes()
    with vectors(False):
        for _ in range(301):
            alone.step()
    with vectors(True) as taken:
        with patch.object(threading.Thread, "start", interrupt), pytest.raises(KeyboardInterrupt):
            sim.step()
        sim.step()
        assert not taken
        wait_for_compilation()
        for _ in range(300):
            sim.step()
    assert len(taken) == 300
    np.testing.assert_array_equal(sim.q, alone.q)
