"""Tests of hostile use of simulation: random scenes of random robots, and faulty controllers."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.contact.contact_solver import FASTEST_PARTING
from featherweight.contact.laws import RETURN_SPEED
from featherweight.model.types import WORLD
from featherweight.robots.linkages import four_bar
from oracles.mechanisms import MECHANISMS
from oracles.states import Array
from simulation.scenes import FREE, centers, free_bodies, momentum, solid_box
from trial.conftest import Rounds

pytestmark = pytest.mark.usefixtures("steps")

REFUSED = r"gains energy|m deep in|did not converge|midpoint|cannot be closed|velocity|configuration|diverges"
STEPS = 20
TREES = 6  # machine code depends on the robot: scenes differ in everything else
STEP_SIZES = (1e-4, 1e-3, 3e-3, 1e-2)


@functools.cache
def tree(number: int) -> fw.Robot:
    """Return a random robot; every third has a floating base, half have dampers, springs, dry friction and limits at joints."""
    rng = np.random.default_rng(number)
    kinds = ("revolute", "continuous", "prismatic", "spherical", "planar", "floating")[: 4 + number % 3]
    made = fw.generators.random_tree(int(rng.integers(2, 5)), rng=number, joint_types=kinds, masses=(0.2, 5.0))
    joints = list(made.joints)
    if number % 3 == 0:
        joints[0] = fw.Joint("base", FREE, WORLD, "body0")
    if number % 2:
        joints = [
            dataclasses.replace(
                j, damping=float(rng.choice([0.0, 0.1, 10.0])), dry_friction=float(rng.choice([0.0, 0.5])),
                stiffness=float(rng.choice([0.0, 1.0, 300.0])) if j.type.nq == 1 else 0.0,
            )
            for j in joints
        ]  # fmt: skip
    return fw.build(dataclasses.replace(made, joints=tuple(joints)))


@functools.cache
def robots() -> tuple[fw.Robot, ...]:
    loops = [four_bar(), MECHANISMS["geared"]()]
    free = [free_bodies(solid_box(1.0, (0.1, 0.2, 0.3))), free_bodies(*(solid_box(m, (0.1, 0.1, 0.1)) for m in (0.01, 10.0)))]
    return (*map(tree, range(TREES)), *free, *map(fw.build, loops))


class Scene(NamedTuple):
    robot: fw.Robot
    arguments: dict[str, Any]
    tau: Array
    lowest: float  # initial penetration [m]
    control: Array | None  # controls of servos with random stiffness, if the robot has servos

    def start(self) -> fw.Simulation:
        return fw.Simulation(self.robot, **self.arguments)


def height_field(rng: np.random.Generator, height: float, surface: dict[str, float]) -> fw.HeightField:
    grid = height + 0.05 * rng.uniform(-1.0, 0.0, (9, 9))
    return fw.HeightField(grid, (-2.0, 2.0), (-2.0, 2.0), **surface)


def random_scene(rng: np.random.Generator) -> Scene | None:
    """Return a scene with speeds up to 10 rad/s, above the ground or slightly below it; None if no closed configuration
    is found.
    """
    robot = robots()[int(rng.integers(len(robots())))]
    q = robot.random_configuration(rng=rng)
    if isinstance(robot, fw.ClosedRobot):
        try:
            q = robot.close(q)
        except ValueError:
            return None
    names = [b.name for b in robot.bodies][-3:]
    spheres = [
        fw.ContactSphere(
            name, float(rng.choice([0.0, rng.uniform(0.01, 0.1)])), tuple(map(float, rng.uniform(-0.2, 0.2, 3))),
            restitution=None if rng.random() < 0.8 else float(rng.random()),
        )
        for name in names for _ in range(int(rng.integers(2, 4)))
    ]  # fmt: skip
    x, radii = centers(robot, spheres, q), np.array([s.radius for s in spheres])
    gap = float(rng.choice([rng.uniform(-0.01, 0.0), rng.uniform(0.0, 0.02), 1e-4]))
    surface = {} if rng.random() < 0.7 else {"friction": float(rng.uniform(0.0, 2.0))}
    normal = np.array([*rng.uniform(-0.5, 0.5, 2), 1.0])
    ground: Any = fw.Plane(tuple(((x @ normal / np.linalg.norm(normal) - radii).min() - gap) * normal / np.linalg.norm(normal)),
                           tuple(normal), **surface)  # fmt: skip
    if rng.random() < 0.3:
        ground = height_field(rng, float((x[:, 2] - radii).min() - gap), surface)
    apart = np.linalg.norm(x[:, None] - x[None], axis=-1) - radii[:, None] - radii[None]
    pairs = [
        (i, j) for i in range(len(spheres)) for j in range(i)
        if spheres[i].frame != spheres[j].frame and apart[i, j] > 0.0 and radii[i] + radii[j] > 0.0 and rng.random() < 0.3
    ]  # fmt: skip
    arguments: dict[str, Any] = {
        "dt": 1e-3 if (np.array([j.damping for j in robot.joints]) > 0.0).any() else float(rng.choice(STEP_SIZES)),
        "q": q,
        "v": float(rng.choice([0.0, 0.3, 3.0, 10.0])) * rng.standard_normal(robot.nv),
        "spheres": spheres,
        "pairs": pairs,
        "ground": ground,
        "contact": fw.ContactOptions(
            friction=float(rng.choice([0.0, rng.uniform(0.0, 2.0)])),
            restitution=float(rng.choice([0.0, rng.random(), 1.0])),
            pyramid=bool(rng.random() < 0.2),
        ),
        "integrator": str(rng.choice(["semi-implicit", "rk4", "midpoint"], p=[0.7, 0.15, 0.15])),
        "joints": fw.JointOptions(limits=bool(rng.random() < 0.5) and not robot.closed),
    }
    tau = float(rng.choice([0.0, 1.0, 20.0])) * rng.standard_normal(robot.nv)
    if arguments["integrator"] == "semi-implicit" or rng.random() < 0.5:
        return Scene(robot, arguments, tau, gap, None)
    arguments["actuators"] = servos = random_servos(rng, robot, q)
    arguments["dt"] = float(rng.choice(STEP_SIZES))
    return Scene(robot, arguments, tau, gap, 0.1 * rng.standard_normal(len(servos)))


def random_servos(rng: np.random.Generator, robot: fw.Robot, q: Array) -> list[fw.Actuator]:
    """Return servos that hold the configuration, from soft ones to ones too stiff for any step size; some are weak."""
    servos = []
    for j in robot.joints:
        if j.type.nq == 1 and j.independent:
            kp, kd = float(rng.choice([1.0, 80.0, 1e4, 1e6])), float(rng.choice([0.0, 3.0, 1e3]))
            most, at = float(rng.choice([1.0, math.inf])), float(q[j.q_slice.start])
            servos.append(fw.Actuator(j.name, j.name, gain=kp, bias=(kp * at, -kp, -kd), force=(-most, most)))
    return servos


def outcome(go: Any, *given: Any, **more: Any) -> str | None:
    """Return the message if a step is refused."""
    try:
        go(*given, **more)
    except fw.SimulationError as error:
        return str(error)
    return None


def check_step(scene: Scene, sim: fw.Simulation, before: tuple[Array, Array, float]) -> None:
    """Check that energy grows only by the work of forces: within the guard for steps with large motion, to the order of the
    step for others.

    Forces that separate overlapping bodies may lift them and load springs.
    """
    robot, h = scene.robot, sim.dt
    pushed = FASTEST_PARTING * h
    q, v, energy = before
    kinetic = float(robot.kinetic_energy(q, v)), float(robot.kinetic_energy(sim.q, sim.v))
    tau = np.clip(scene.tau, *robot.effort_bounds)
    work = h * np.maximum(np.maximum(tau * v, tau * sim.v), 0.0).sum()
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    s = sim.forces.springs
    springs = s.stiffness * (np.abs(q[sim.forces.at] - s.rest) + pushed)
    touched = scene.lowest < 0.0 or len(sim.contacts()[1]) > 0
    lifted = pushed * (weight + float(np.where(springs > 0.0, springs, 0.0).sum())) if touched else 0.0
    least = weight**2 * h * h / robot.mass + 1e-9 * (1.0 + abs(energy))
    assert sim.energy() - energy <= work + 0.06 * sum(kinetic) + least + lifted


def check_momentum(robot: fw.Robot, sim: fw.Simulation, before: tuple[Array, Array, float], tau: Array) -> None:
    """Check that the linear momentum of free bodies changes by the forces of the step, in the world frame."""
    q, v, _ = before
    h = sim.dt
    _, forces, names = sim.contacts()
    outside = np.array([f for f, n in zip(forces, names, strict=True) if " and " not in n]).reshape(-1, 3).sum(axis=0)
    given = sum(
        robot.frame_placement(b.name)(q)[:3, :3] @ tau[j.v_slice][:3] for b, j in zip(robot.bodies, robot.joints, strict=True)
    )
    change = (np.array(momentum(robot, sim.q, sim.v)) - np.array(momentum(robot, q, v)))[:3] / h
    expected = outside + given + robot.mass * np.array(robot.gravity)
    scale = np.abs(forces).sum() + np.abs(expected).max() + np.abs(momentum(robot, q, v)).max() / h
    np.testing.assert_allclose(change, expected, atol=1e-8 * scale)


def test_scenes_gain_nothing_and_however_stepped_are_the_same(rounds: Rounds) -> None:
    """Compare single steps, recorded runs, and batches with another state: bitwise equal, or refused in the same way."""
    for rng in rounds(0.15):
        scene = random_scene(rng)
        if scene is None:
            continue
        robot, sim = scene.robot, scene.start()
        states = [(sim.q, sim.v)]
        said = None
        for _ in range(STEPS):
            before = sim.q, sim.v, sim.energy()
            said = outcome(sim.step, scene.tau, scene.control)
            if said:
                assert re.search(REFUSED, said)
                assert np.array_equal(sim.q, before[0])
                assert np.array_equal(sim.v, before[1])
                break
            assert np.isfinite(sim.q).all()
            assert np.isfinite(sim.v).all()
            if scene.control is None:  # servos do work
                check_step(scene, sim, before)
            if sim.integrator == "semi-implicit" and robot.name == "mechanism" and not robot.closed:
                check_momentum(robot, sim, before, scene.tau)
            states.append((sim.q, sim.v))
        run = scene.start()
        assert outcome(run.run, STEPS * run.dt, every=int(rng.integers(2, 9)), tau=scene.tau, control=scene.control) == said
        assert run.steps == sim.steps
        np.testing.assert_array_equal(run.q, sim.q)
        np.testing.assert_array_equal(run.v, sim.v)
        compare_batch(scene, states)


def compare_batch(scene: Scene, states: list[tuple[Array, Array]]) -> None:
    """Compare the scene with a batch where another state begins a step later; bitwise."""
    taken = len(states) - 1
    if taken < 2:
        return
    batch = scene.start()
    q, v = (np.stack([states[0][k], states[1][k]]) for k in range(2))
    tau, control = (None if x is None else np.broadcast_to(x, (1, taken - 1, len(x))) for x in (scene.tau, scene.control))
    qs, vs = batch.rollout(q, v, tau=tau, control=control)
    for k in range(taken):
        np.testing.assert_array_equal(qs[0, k], states[k][0])
        np.testing.assert_array_equal(vs[0, k], states[k][1])


def test_what_lies_on_the_ground_has_no_velocity(rounds: Rounds) -> None:
    """Check boxes of any size, integrator and step on a plane that tilts less than friction holds: no velocity, and no
    creeping.
    """
    made = [
        free_bodies(solid_box(m, s)) for m, s in ((1e-3, (0.02, 0.03, 0.01)), (1.0, (0.1, 0.2, 0.3)), (1e3, (1.0, 2.0, 0.4)))
    ]
    sides = ((0.02, 0.03, 0.01), (0.1, 0.2, 0.3), (1.0, 2.0, 0.4))
    for rng in rounds(0.025):
        n = int(rng.integers(len(made)))
        robot, half = made[n], 0.5 * np.array(sides[n])
        turn = Rotation.from_rotvec([*rng.uniform(-0.2, 0.2, 2), rng.uniform(-3.0, 3.0)])
        normal = turn.apply([0.0, 0.0, 1.0])
        q = np.concatenate([half[2] * normal, turn.as_quat()])
        spheres = [fw.ContactSphere("body0", 0.0, (a * half[0], b * half[1], -half[2])) for a in (-1, 1) for b in (-1, 1)]
        sim = fw.Simulation(
            robot, float(rng.choice(STEP_SIZES)), str(rng.choice(["semi-implicit", "rk4", "midpoint"])), q=q, spheres=spheres,
            ground=fw.Plane((0.0, 0.0, 0.0), tuple(normal)), contact=fw.ContactOptions(friction=1.0),
        )  # fmt: skip
        for _ in range(STEPS):
            sim.step()
            assert np.abs(sim.v).max() < 1e-6 * sim.dt * 9.81 / half.min()
        np.testing.assert_allclose(sim.q, q, rtol=0.0, atol=1e-6 * sim.dt)


def test_drives_of_any_gains_do_not_diverge(rounds: Rounds) -> None:
    """Check drives that hold joints, at any step size, beside joints that fly, turn and swing freely."""
    for rng in rounds(0.05):
        robot = tree(int(rng.integers(TREES)))
        stiffness, damping = (float(10.0 ** rng.uniform(-1.0, most)) for most in (6.0, 4.0))
        drives = fw.PD(stiffness, damping)
        start: dict[str, Any] = {
            "q": robot.random_configuration(rng=rng),
            "v": float(rng.choice([0.0, 1.0])) * rng.standard_normal(robot.nv),
        }
        sim = fw.Simulation(
            robot, float(rng.choice(STEP_SIZES)), **start, actuators=drives, joints=fw.JointOptions(limits=False)
        )
        if not sim.forces.nu:
            continue
        targets = start["q"][sim.forces.drives.at]
        said = outcome(sim.run, STEPS * sim.dt, control=targets)
        assert said is None or "diverges" not in said


@functools.cache
def limited(number: int) -> fw.Robot:
    """Return a tree of hinges and slides with limits, some of them equal, with or without a floating base."""
    made = fw.generators.random_tree(3, rng=number, joint_types=("revolute", "prismatic"), masses=(0.2, 5.0))
    rng = np.random.default_rng(number)
    joints = [dataclasses.replace(j, upper=j.lower) if rng.random() < 0.2 else j for j in made.joints]
    if number % 2:
        joints[0] = fw.Joint("base", FREE, WORLD, "body0")
    return fw.build(dataclasses.replace(made, joints=tuple(joints)))


@pytest.mark.filterwarnings("ignore:.*equal lower and upper limits")
def test_starts_beyond_limits_are_refused_or_come_back_slowly(rounds: Rounds) -> None:
    """Check starts at any distance beyond limits.

    The correction moves a joint by at most h `RETURN_SPEED`. No joint moves farther beyond its limit; an exception is a joint
    within its limit while another is corrected, by at most one such correction.
    """
    for rng in rounds(0.025):
        robot = limited(int(rng.integers(6)))
        equal = robot.lower == robot.upper
        lower, upper = np.where(equal, -np.inf, robot.lower), np.where(equal, np.inf, robot.upper)
        q = np.clip(robot.random_configuration(rng=rng), lower, upper)
        far = False
        for k in np.flatnonzero(np.isfinite(lower) & (rng.random(robot.nq) < 0.5)):
            beyond = float(rng.choice([1e-7, 1e-4, 0.03, 0.199, 0.201, 1.0, 30.0]))
            q[k] = upper[k] + beyond if rng.random() < 0.5 else lower[k] - beyond
            far |= beyond > min(0.2, max(upper[k] - lower[k], 1e-3))
        h, integrator = float(rng.choice(STEP_SIZES)), str(rng.choice(["semi-implicit", "rk4", "midpoint"]))
        if far:
            sim = fw.Simulation(robot, h, integrator)
            start = sim.q
            for give in (lambda: fw.Simulation(robot, h, q=q), lambda: sim.reset(q), lambda: setattr(sim, "q", q)):  # noqa: B023
                with pytest.raises(ValueError, match=r"beyond joint limits: joint .* \(limits .*numpy\.clip"):
                    give()
            np.testing.assert_array_equal(sim.q, start)
            continue
        sim = fw.Simulation(robot, h, integrator, q=q, v=float(rng.choice([0.0, 0.3])) * rng.standard_normal(robot.nv))
        places = [(j.q_slice.start, j.v_slice.start) for j in robot.joints if j.q_slice.stop - j.q_slice.start == 1]
        at, row = np.array(places, int).reshape(-1, 2).T
        rounding = 2e-6 + 1e-8  # slop and solver residual; rk4 and midpoint add the motion within a step
        for _ in range(STEPS):
            before = np.maximum(np.maximum(lower - sim.q, sim.q - upper)[at], 0.0)
            speed, q = np.abs(sim.v[row]), sim.q
            if outcome(sim.step):
                break
            after = np.maximum(np.maximum(lower - sim.q, sim.q - upper)[at], 0.0)
            within = 0.0 if integrator == "semi-implicit" else h * float((speed + np.abs(sim.v[row])).max(initial=100.0 * h))
            assert (after <= np.maximum(before, h * RETURN_SPEED) + rounding + within).all()
            pushed = np.abs((sim.q - q)[at] - h * sim.v[row])
            assert (pushed <= h * RETURN_SPEED * (1.0 + 1e-9) + rounding + within).all()


def test_robots_without_a_place_begin_on_the_floor_and_others_are_refused_in_it(rounds: Rounds) -> None:
    """Check environments: the lowest shape touches the floor if any shape would be below; a given position is not changed."""
    environments = pytest.importorskip("featherweight.environments")
    for rng in rounds(0.01, most=15):
        description = fw.generators.random_tree(3, rng=int(rng.integers(4)), joint_types=("revolute",), masses=(0.2, 5.0))
        base = fw.Joint("base", FREE, WORLD, "body0")
        radii, names = rng.uniform(0.02, 0.3, 3), [b.name for b in description.bodies]
        spheres = [
            fw.Shape(f"ball{k}", name, fw.ShapeType.SPHERE, (float(r),), fw.Pose(p=(float(x), 0.0, float(z))))
            for k, (name, r, (x, z)) in enumerate(zip(names, radii, rng.uniform(-0.5, 0.5, (3, 2)), strict=True))
        ]
        placed = {} if rng.random() < 0.5 else {"base": (0.0, 0.0, float(rng.uniform(-0.5, 0.5)), 0.0, 0.0, 0.0, 1.0)}
        whole = dataclasses.replace(
            description, joints=(base, *description.joints[1:]),
            shapes=(*spheres, fw.Shape("floor", None, fw.ShapeType.PLANE, ())),
            configurations=(fw.Configuration("qpos0", tuple(placed.items())),),
        )  # fmt: skip
        robot = fw.build(whole)
        carriers = [fw.ContactSphere(s.body, s.size[0], s.placement.p) for s in spheres if s.body is not None]

        def lowest(q: Array) -> float:
            return float((centers(robot, carriers, q)[:, 2] - radii).min())  # noqa: B023

        depth = -lowest(np.array(robot.configurations["qpos0"]))

        def envs() -> Any:
            return environments.RobotVectorEnv(environments.RobotTask(xml_file=whole, reset_noise_scale=0.0), 2)  # noqa: B023

        if placed and depth > 0.1:
            with pytest.raises(ValueError, match=r"shapes in one another: the shape 'ball\d' on 'body\d' and .*'floor'"):
                envs()
            continue
        one = envs()
        one.reset(seed=0)
        assert -lowest(one.simulation.q[1]) == pytest.approx(depth if placed else min(depth, 0.0), abs=1e-9)
        assert not one.step(np.zeros((2, 0)))[4]["simulation_failed"].any()


class Broken(Exception):
    pass


def test_controllers_that_misbehave_leave_the_state_as_it_was(rounds: Rounds) -> None:
    """Check controllers that raise, return invalid values, write to their arguments, or keep arrays and write to them later."""
    answers: list[Any] = [None, "go", math.nan, (1.0,), (None, None, None), [[1.0]], 1j, np.zeros((2, 2, 2)), object()]
    for rng in rounds(0.01):
        robot = tree(int(rng.integers(TREES)))
        sim = fw.Simulation(robot, 1e-3, str(rng.choice(["semi-implicit", "rk4"])), q=robot.random_configuration(rng=rng))
        at, kind, good = int(rng.integers(1, 6)), int(rng.integers(4)), 0.1 * rng.standard_normal(robot.nv)
        kept: list[tuple[Array, Array]] = []

        def controller(time: float, q: Array, v: Array) -> Any:
            kept.append((q, q.copy()))  # noqa: B023
            force = good.copy()  # noqa: B023
            if len(kept) <= at:  # noqa: B023
                return force
            if kind == 0:  # noqa: B023
                raise Broken
            if kind == 1:  # noqa: B023
                bad = answers[int(rng.integers(len(answers)))]  # noqa: B023
                return np.full(robot.nv, math.nan) if bad is math.nan else bad  # noqa: B023
            if kind == 2:  # noqa: B023
                q[...] = math.nan
            return np.zeros(robot.nv + 1)  # noqa: B023

        with pytest.raises((Broken, ValueError, fw.SimulationError)):
            sim.run(0.01, controller)
        assert sim.steps == at
        for seen, copy in kept:
            np.testing.assert_array_equal(seen, copy)
        alone = fw.Simulation(robot, 1e-3, sim.integrator, q=kept[0][1])
        alone.run(at * 1e-3, tau=good, every=at)
        np.testing.assert_array_equal(alone.q, sim.q)
        np.testing.assert_array_equal(alone.v, sim.v)
