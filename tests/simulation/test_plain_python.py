"""Tests that one source of a step gives the same bits as machine code with rounded operations and in plain Python.

With fused operations, as in simulations, results differ by rounding.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.collision.closest_points import EXACT
from featherweight.identification import random_parameters
from featherweight.model.types import WORLD
from featherweight.robots.linkages import four_bar
from featherweight.simulation.robot_tables import StagesTable
from oracles.mechanisms import closed
from oracles.states import Array
from oracles.trees import tree
from simulation import scenes
from simulation.made import made
from simulation.plain_python import ROUNDED, plain_python, record_at, steps_by
from simulation.scenes import FREE, HINGE, NOTHING, X, Y, Z, cart, corners, free_bodies, solid_ball, solid_box

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")

H = 2e-3
SIDES = (0.2, 0.3, 0.1)
LEFT = 10.0 * fw.ContactOptions().tolerance  # relative to the greatest velocity: the solver's tolerance in each of some steps
SEARCHED = 10.0 * EXACT**0.5  # likewise, where closest points of curved shapes are found by search for the least distance
INTEGRATORS = ("semi-implicit", "rk4", "midpoint")
Scene = Callable[..., fw.Simulation]
Inputs = Callable[[fw.Simulation, int], dict[str, Any]]


def nothing(sim: fw.Simulation, steps: int) -> dict[str, Any]:
    return {}


def forces(sim: fw.Simulation, steps: int) -> dict[str, Any]:
    """Return joint forces, and forces on bodies, of all robots in each step."""
    rng, robot = np.random.default_rng(1), sim.robot
    robots = len(np.atleast_2d(sim.q))
    return {
        "tau": rng.standard_normal((robots, steps, robot.nv)),
        "external_forces": rng.standard_normal((robots, steps, len(robot.bodies), 6)),
    }


def controls(sim: fw.Simulation, steps: int) -> dict[str, Any]:
    """Return controls and joint forces of all robots in each step."""
    rng, robots = np.random.default_rng(2), len(np.atleast_2d(sim.q))
    made = forces(sim, steps)
    return {"tau": made["tau"], "control": rng.uniform(-1.5, 1.5, (robots, steps, sim.forces.nu))}


def tilted(z: float, count: int = 1) -> Array:
    """Return configurations of a slightly turned free body near the height z."""
    rng = np.random.default_rng(0)
    q = np.zeros((count, 7))
    q[:, 2] = z + 0.005 * rng.uniform(0.0, 1.0, count)
    q[:, 3:] = [0.05, -0.03, 0.02, 1.0] + 0.02 * rng.standard_normal((count, 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
    return q


def speeds(robot: fw.Robot, count: int, speed: float = 0.5) -> Array:
    return speed * np.random.default_rng(3).standard_normal((count, robot.nv))


# --- scenes


def points(integrator: str, robots: int) -> fw.Simulation:
    """Return boxes that slide and bounce on their corners."""
    robot = free_bodies(solid_box(2.0, SIDES))
    return fw.Simulation(
        robot, H, integrator, q=tilted(0.06, robots), v=speeds(robot, robots), spheres=corners("body0", SIDES),
        ground=fw.Plane(friction=0.4), contact=fw.ContactOptions(restitution=0.3),
    )  # fmt: skip


def pyramids(integrator: str, robots: int) -> fw.Simulation:
    robot = free_bodies(solid_box(2.0, SIDES))
    return fw.Simulation(
        robot, H, integrator, q=tilted(0.05, robots), v=speeds(robot, robots), spheres=corners("body0", SIDES),
        ground=fw.Plane(), contact=fw.ContactOptions(friction=0.3, pyramid=True),
    )  # fmt: skip


def balls(integrator: str, robots: int) -> fw.Simulation:
    """Return two balls, one above the other, that touch each other and the ground."""
    robot = free_bodies(solid_ball(1.0, 0.1), solid_ball(2.0, 0.1))
    q = np.concatenate([tilted(0.1, robots), tilted(0.3, robots)], axis=1)
    q[:, 7] += 0.02
    spheres = [fw.ContactSphere(f"body{k}", 0.1, restitution=0.3 * k) for k in range(2)]
    return fw.Simulation(
        robot, H, integrator, q=q, v=speeds(robot, robots), spheres=spheres, pairs=[(0, 1)], ground=fw.Plane()
    )  # fmt: skip


def shapes_of(kind: str) -> tuple[list[fw.Shape], float, Any]:
    """Return shapes of one body "body0", the height at which they touch, and the shapes below."""
    T = fw.ShapeType
    corners_of_hull = np.random.default_rng(4).standard_normal((12, 3))
    corners_of_hull *= 0.1 / np.linalg.norm(corners_of_hull, axis=1)[:, None]
    hills = fw.HeightField(np.random.default_rng(5).uniform(0.0, 0.03, (9, 9)), (-1.0, 1.0), (-1.0, 1.0))
    table = fw.Shape("table", WORLD, T.BOX, (1.0, 1.0, 0.2), fw.Pose(p=(0.1, 0.0, -0.1)))
    return {
        "box on plane": ([fw.Shape("s", "body0", T.BOX, SIDES)], 0.05, fw.Plane()),
        "box on box": ([fw.Shape("s", "body0", T.BOX, SIDES), table], 0.05, None),
        "capsule on box": ([fw.Shape("s", "body0", T.CAPSULE, (0.05, 0.2), LYING), table], 0.05, None),
        "capsule on plane": ([fw.Shape("s", "body0", T.CAPSULE, (0.05, 0.2), LYING)], 0.05, fw.Plane()),
        "cylinder on plane": ([fw.Shape("s", "body0", T.CYLINDER, (0.05, 0.1))], 0.05, fw.Plane()),
        "cylinder on box": ([fw.Shape("s", "body0", T.CYLINDER, (0.05, 0.1)), table], 0.05, None),
        "ellipsoid on box": ([fw.Shape("s", "body0", T.ELLIPSOID, (0.08, 0.07, 0.05)), table], 0.05, None),
        "hull on plane": ([hull(corners_of_hull)], 0.09, fw.Plane()),
        "hull on box": ([hull(corners_of_hull), table], 0.09, None),
        "ball on heights": ([fw.Shape("s", "body0", T.SPHERE, (0.06,))], 0.08, hills),
        "box on heights": ([fw.Shape("s", "body0", T.BOX, SIDES)], 0.07, hills),
        "hull on heights": ([hull(corners_of_hull)], 0.11, hills),
    }[kind]


LYING = fw.Pose(((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)), (0.0, 0.0, 0.0))
SHAPES = (
    "box on plane", "box on box", "capsule on box", "capsule on plane", "cylinder on plane", "cylinder on box",
    "ellipsoid on box", "hull on plane", "hull on box", "ball on heights", "box on heights", "hull on heights",
)  # fmt: skip


def hull(vertices: Array) -> fw.Shape:
    return fw.Shape("s", "body0", fw.ShapeType.MESH, (1.0, 1.0, 1.0), vertices=vertices)


def touching(kind: str) -> Scene:
    def made(integrator: str, robots: int) -> fw.Simulation:
        shapes, height, ground = shapes_of(kind)
        joints = [fw.Joint("free", FREE, WORLD, "body0")]
        robot = fw.build(fw.describe([fw.Body("body0", solid_box(2.0, SIDES))], joints, shapes=shapes))
        v = speeds(robot, robots)
        v[:, 2] = -1.0
        return fw.Simulation(robot, H, integrator, q=tilted(height, robots), v=v, shapes=True, ground=ground)

    return made


@functools.cache
def legged() -> fw.Robot:
    """Return a trunk on a floating base with two legs, whose joints have limits, dampers, springs, dry friction and efforts."""
    return scenes.two_legged(SIDES, lower=-0.3, upper=0.2, damping=0.1, stiffness=5.0, dry_friction=0.2, effort=3.0)


def standing(robots: int) -> Array:
    q = np.concatenate([tilted(0.2, robots), np.zeros((robots, 2))], axis=1)
    q[:, 7:] = np.random.default_rng(6).uniform(-0.299, 0.199, (robots, 2))
    q[0, 8] = 0.23  # beyond its limit
    return q


def legs(integrator: str, robots: int, **more: Any) -> fw.Simulation:
    v = speeds(legged(), robots)
    v[:, 6:] *= 6.0
    return scenes.on_feet(legged(), SIDES, H, integrator=integrator, q=standing(robots), v=v, **more)


def driven(integrator: str, robots: int) -> fw.Simulation:
    """Return stiff drives, which exceed their efforts in some steps."""
    return legs(integrator, robots, actuators=fw.PD(80.0, 3.0))


def motors(integrator: str, robots: int) -> fw.Simulation:
    """Return motors without stiffness; dry friction is omitted."""
    motor = [fw.Actuator(f"motor{k}", f"hip{k}", gain=2.0, control=(-1.0, 1.0)) for k in (1, 2)]
    return legs(integrator, robots, actuators=motor, joints=fw.JointOptions(dry_friction=False))


@functools.cache
def four_bars() -> fw.ClosedRobot:
    base = four_bar((0.3, 0.8, 0.6, 0.9))
    more: dict[str, Any] = {"lower": -0.35, "upper": 0.35, "dry_friction": 0.05, "damping": 0.1}
    joints = [dataclasses.replace(j, **more) if j.name == "joint1" else j for j in base.joints]
    return closed(dataclasses.replace(base, joints=tuple(joints), gravity=(0.0, -9.81, 0.0)))


def linkage(integrator: str, robots: int) -> fw.Simulation:
    """Return a loop with a limit, dry friction and drives."""
    robot = four_bars()
    crank = robot.joint("joint1").q_slice.start
    q = np.stack([robot.close([0.03 * i + 0.1, 1.0, 1.2]) for i in range(robots)])
    assert (np.abs(q[:, crank]) < 0.34).all()
    v = np.full((robots, robot.nv), 2.0)
    return fw.Simulation(robot, H, integrator, q=q, v=v, actuators=fw.PD(20.0, 1.0))


def all_joints(integrator: str, robots: int) -> fw.Simulation:
    robot = tree("mixed_5")[1]
    q = robot.random_configuration(rng=np.random.default_rng(7), size=robots)
    return fw.Simulation(robot, H, integrator, q=q, v=speeds(robot, robots), **NOTHING)


def many_bodies(integrator: str, robots: int) -> fw.Simulation:
    """Return a robot with more possible contact bodies than its Delassus matrix supports at once."""
    links = 9
    inertia = solid_box(0.5, (0.1, 0.1, 0.1))
    joints = [fw.Joint("free", FREE, WORLD, "body0")]
    joints += [
        fw.Joint(f"hinge{k}", HINGE, f"body{k - 1}", f"body{k}", fw.Pose(p=(0.12, 0.0, 0.0)), Z if k % 2 else Y, lower=-0.1)
        for k in range(1, links)
    ]
    robot = fw.build(fw.describe([fw.Body(f"body{k}", inertia) for k in range(links)], joints))
    q = np.tile(robot.neutral(), (robots, 1))
    q[:, 2] = 0.06 + 0.001 * np.arange(robots)
    spheres = [fw.ContactSphere(f"body{k}", 0.05, (x, 0.0, 0.0)) for k in range(links) for x in (-0.01, 0.01)]
    return fw.Simulation(robot, H, integrator, q=q, v=speeds(robot, robots), spheres=spheres, ground=fw.Plane())


@functools.cache
def bent_arm() -> fw.Robot:
    """Return a hinge and a slide with limits, dry friction, and nonlinear springs and dampers."""
    curves: dict[str, Any] = {
        "stiffness_poly": (2.0, 9.0),
        "damping_poly": (0.002, 0.0005),
        "stiffness": 3.0,
        "dry_friction": 0.05,
    }
    link = fw.Inertia(0.5, (0.0, 0.0, -0.1), (0.003, 0.0, 0.0, 0.003, 0.0, 0.001))
    joints = [
        fw.Joint("hinge", HINGE, WORLD, "upper", axis=Y, lower=-0.2, **curves),
        fw.Joint("slide", fw.JointType.PRISMATIC, "upper", "lower", fw.Pose(p=(0.0, 0.0, -0.2)), X, upper=0.1, **curves),
    ]
    return fw.build(fw.describe([fw.Body("upper", link), fw.Body("lower", link)], joints))


def bent(integrator: str, robots: int) -> fw.Simulation:
    robot = bent_arm()
    return fw.Simulation(robot, H, integrator, q=np.zeros((robots, 2)), v=speeds(robot, robots, 2.0), actuators=fw.PD(5.0, 0.1))


SCENES: dict[str, tuple[Scene, Inputs]] = {
    "points": (points, nothing), "pushed points": (points, forces), "pyramids": (pyramids, nothing), "balls": (balls, forces),
    "legs": (legs, forces), "drives": (driven, controls), "motors": (motors, controls), "loops": (linkage, controls),
    "all joints": (all_joints, forces), "many bodies": (many_bodies, nothing), "bent springs": (bent, controls),
}  # fmt: skip
INTEGRATED = [pytest.param(name, i, id=f"{name}-{i}") for name in SCENES for i in INTEGRATORS]
INTEGRATED += [
    pytest.param(name, i, id=f"{name}-{i}") for name in SHAPES for i in INTEGRATORS[: 3 if name == "box on box" else 1]
]


def scene(name: str) -> tuple[Scene, Inputs]:
    return SCENES[name] if name in SCENES else (touching(name), nothing)


# --- comparisons


def rolled(
    name: str, integrator: str, by: AbstractContextManager[Any], steps: int = 25, robots: int = 2
) -> tuple[list[Array], fw.Simulation]:
    """Return the states of robots side by side, and all results of the last step."""
    make, given = scene(name)
    with by:
        sim = make(integrator, robots)
        q, v = states_of_runs(sim, given(sim, steps), steps)
    points, forces, _ = sim.contacts(robots - 1)
    return [q, v, points, forces, sim.limit_forces, sim.contact_forces], sim


@pytest.mark.parametrize(("name", "integrator"), INTEGRATED)
def test_machine_code_of_rounded_operations_has_the_bits_of_plain_python(name: str, integrator: str) -> None:
    plain, sim = rolled(name, integrator, plain_python())
    code, _ = rolled(name, integrator, steps_by(ROUNDED))
    for mine, theirs in zip(code, plain, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    touched = sim.contacts_of_many().robot
    assert len(touched) > 0 or plain[4].any() or name == "all joints"


@pytest.mark.parametrize(("name", "integrator"), INTEGRATED)
def test_fused_operations_differ_by_rounding(name: str, integrator: str) -> None:
    """Check that single steps from all states of a rollout differ by 1e-12 of the largest entry; with impulses, by the
    residual of iterations.
    """
    make, given = scene(name)
    left = SEARCHED if name in ("cylinder on box", "ellipsoid on box") else LEFT
    (q, v, *_), _ = rolled(name, integrator, steps_by(ROUNDED))
    starts = [x[:, :-1].reshape(-1, x.shape[2]) for x in (q, v)]

    def stepped() -> tuple[list[Array], Array]:
        sim = make(integrator, 2)
        sim.reset(starts[0], starts[1])
        inputs = {key: x[:, 0] for key, x in given(sim, 1).items()}
        sim.step(**inputs)
        touched = np.isin(np.arange(len(starts[0])), sim.contacts_of_many().robot) | sim.limit_forces.any(axis=1)
        return [sim.q, sim.v], touched

    fused, touched = stepped()
    with steps_by(ROUNDED):
        rounded, _ = stepped()
    for mine, theirs in zip(fused, rounded, strict=True):
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(mine[~touched], theirs[~touched], rtol=0.0, atol=1e-12 * scale)
        np.testing.assert_allclose(mine[touched], theirs[touched], rtol=0.0, atol=left * scale)


# --- ways to step


def by_steps(make: Scene, given: Inputs, integrator: str, steps: int, robots: int) -> list[Array]:
    """Return states (robots, steps + 1, ..) of robots that move one after another, step by step."""
    many = make(integrator, robots)
    starts, inputs = (many.q, many.v), given(many, steps)
    qs, vs = [], []
    for i in range(robots):
        sim = make(integrator, robots)
        sim.reset(starts[0][i], starts[1][i])
        states = [(sim.q, sim.v)]
        for k in range(steps):
            sim.step(**{key: x[i, k] for key, x in inputs.items()})
            states.append((sim.q, sim.v))
        qs.append([x for x, _ in states])
        vs.append([x for _, x in states])
    return [np.array(qs), np.array(vs)]


def by_runs(make: Scene, given: Inputs, integrator: str, steps: int, robots: int) -> list[Array]:
    sim = make(integrator, robots)
    return states_of_runs(sim, given(sim, steps), steps)


def states_of_runs(sim: fw.Simulation, inputs: dict[str, Any], steps: int) -> list[Array]:
    """Return the states of robots side by side, with a run for each step."""
    states = [(sim.q, sim.v)]
    for k in range(steps):
        sim.run(H, **{key: x[:, k] for key, x in inputs.items()})
        states.append((sim.q, sim.v))
    return [np.stack(x, axis=1) for x in zip(*states, strict=True)]


def by_rollout(make: Scene, given: Inputs, integrator: str, steps: int, robots: int) -> list[Array]:
    sim = make(integrator, robots)
    return list(sim.rollout(sim.q, sim.v, steps, **given(sim, steps)))


def assert_all_ways_alike(name: str, integrator: str, steps: int) -> None:
    make, given = scene(name)
    expected = by_rollout(make, given, integrator, steps, 3)
    for way in (by_steps, by_runs):
        for mine, theirs in zip(way(make, given, integrator, steps, 3), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(("name", "integrator"), INTEGRATED)
def test_all_ways_to_step_have_the_same_bits(name: str, integrator: str) -> None:
    """Check single robots step by step, and batches in steps and in a rollout."""
    assert_all_ways_alike(name, integrator, 10)


@pytest.mark.parametrize("name", ["points", "drives", "loops", "hull on heights"])
def test_all_ways_to_step_have_the_same_bits_in_plain_python(name: str) -> None:
    with plain_python():
        assert_all_ways_alike(name, "semi-implicit", 4)


@pytest.mark.parametrize("name", ["points", "legs", "drives", "loops", "all joints", "many bodies", "box on box"])
def test_a_robot_moves_alike_in_any_batch(name: str) -> None:
    """Check rounded and fused operations, on one thread and on two."""
    make, given = scene(name)
    robots, steps = 8, 8
    for loop in (None, ROUNDED):
        with nullcontext() if loop is None else steps_by(loop):
            sim = make("semi-implicit", robots)
            inputs, q, v = given(sim, steps), sim.q, sim.v
            expected = sim.rollout(q, v, steps, **inputs)
            for first, stop in ((0, 1), (3, 5), (2, 8)):
                some = {key: x[first:stop] for key, x in inputs.items()}
                for mine, theirs in zip(sim.rollout(q[first:stop], v[first:stop], steps, **some), expected, strict=True):
                    np.testing.assert_array_equal(mine, theirs[first:stop])


@pytest.mark.parametrize("given", [nothing, forces])
def test_free_flight_has_the_bits_of_robots_alone(given: Inputs) -> None:
    """Check robots that nothing can touch."""
    robots, steps = 9, 12
    found = []
    for by in (plain_python, lambda: steps_by(ROUNDED), nullcontext):
        with by():
            sim = all_joints("semi-implicit", robots)
            states = sim.rollout(sim.q, sim.v, steps, **given(sim, steps))
            few = all_joints("semi-implicit", robots)
            inputs = {key: x[:3] for key, x in given(few, steps).items()}
            alone = few.rollout(few.q[:3], few.v[:3], steps, **inputs)
        for x, y in zip(states, alone, strict=True):
            np.testing.assert_array_equal(x[:3], y)
        found.append(states)
    plain, rounded, fused = found
    for x, y, z in zip(plain, rounded, fused, strict=True):
        np.testing.assert_array_equal(x, y)
        np.testing.assert_allclose(z, x, rtol=0.0, atol=1e-12 * steps * np.abs(x).max())


# --- robots that differ, and Python functions


def different(robots: int) -> fw.Simulation:
    sim = driven("semi-implicit", robots)
    rng = np.random.default_rng(8)
    sim.vary(
        parameters=random_parameters(sim.robot, robots, rng=rng), friction=rng.uniform(0.2, 1.0, robots),
        dry_friction=rng.uniform(0.0, 2.0, robots), damping=rng.uniform(0.0, 2.0, robots),
        stiffness=rng.uniform(0.0, 2.0, robots), gains=rng.uniform(0.5, 2.0, robots),
    )  # fmt: skip
    return sim


def of_function(robots: int) -> fw.Simulation:
    """Return a simulation whose contact inertia is a function of the user."""
    made: dict[Any, Any] = {}

    def delassus(contacts: list[Any], q: Array) -> Array:
        key = tuple(c.frame for c in contacts)
        if key not in made:
            made[key] = legged().delassus(contacts)
        return np.asarray(made[key](q))

    return legs("semi-implicit", robots, contact=fw.ContactOptions(delassus=delassus), joints=fw.JointOptions(limits=False))


@pytest.mark.parametrize("make", [different, of_function])
def test_bits_of_robots_that_differ_and_of_functions_that_python_calls(make: Callable[[int], fw.Simulation]) -> None:
    found = []
    for by in (plain_python(), steps_by(ROUNDED)):
        with by:
            sim = make(3)
            sim.run(12 * H, control=[0.1, -0.1] if sim.forces.nu else None)
            assert sum(len(sim.contacts(i)[0]) for i in range(3)) > 0
            found.append((sim.q, sim.v, sim.contact_forces, sim.limit_forces))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, theirs)


# --- the helper


def test_records_at_an_address_are_those_of_the_table() -> None:
    with made(StagesTable) as tables:
        legs("rk4", 2).step()
    table = tables[0]

    def same(a: Any, b: Any) -> int:
        if isinstance(a, tuple):
            assert type(a) is type(b)
            return sum(same(x, y) for x, y in zip(a, b, strict=True))
        if isinstance(a, np.ndarray):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            assert a.size == 0 or a.ctypes.data == b.ctypes.data
            return a.size
        assert a == b
        return 1

    assert same(table.content, record_at(table.layout, table.address)) > 500


def test_a_failure_is_that_of_machine_code() -> None:
    """Check that errors have the same words and numbers."""
    said = []
    for by in (plain_python(), steps_by(ROUNDED)):
        with by:
            sim = fw.Simulation(cart(stiffness=1e6), 1e-2, "rk4", q=[0.1])
            with pytest.raises(fw.SimulationError) as caught:
                sim.run(1.0)
            said.append(str(caught.value))
    assert said[0] == said[1]
