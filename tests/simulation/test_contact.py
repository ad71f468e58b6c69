"""Tests of contacts against closed forms, Newton's and Coulomb's laws, and a bound on the energy."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import featherweight as fw
import featherweight.engine.backends.llvm.backend
import featherweight.engine.loops.kernel_code
from featherweight.contact.laws import MOST_LATE
from featherweight.model.types import WORLD
from oracles.robots import path
from oracles.states import Array
from simulation.scenes import (
    FREE,
    NO_GRAVITY,
    SLIDE,
    G,
    Z,
    centers,
    corners,
    end_velocity,
    free_bodies,
    free_velocity,
    momentum,
    pose,
    solid_ball,
    solid_box,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")

H = 1e-3
SIDES = (0.2, 0.3, 0.1)

# --- one body on the ground


def tilted(angle: float, heading: float = 0.0, **surface: Any) -> tuple[fw.Plane, Rotation]:
    """Return a plane through the origin that falls by `angle` towards `heading`, and the rotation of a body that lies on
    it, x ahead.
    """
    R = Rotation.from_euler("ZY", [heading, angle])
    return fw.Plane(normal=tuple(R.apply([0.0, 0.0, 1.0])), **surface), R


def slid(angle: float, friction: float, *, heading: float = 0.0, pyramid: bool = False, duration: float = 1.0) -> Array:
    """Return the displacement of a block that starts on a plane, in the plane's axes: downhill, across, normal."""
    plane, R = tilted(angle, heading)
    robot = free_bodies(solid_box(2.0, SIDES))
    sim = fw.Simulation(
        robot, H, q=pose(R.apply([0.0, 0.0, 0.05]), R), spheres=corners("body0", SIDES), ground=plane,
        contact=fw.ContactOptions(friction=friction, pyramid=pyramid),
    )  # fmt: skip
    sim.run(duration, every=10**6)
    return np.asarray(R.inv().apply(sim.q[:3].copy())) - [0.0, 0.0, 0.05]


@pytest.mark.parametrize("touching", ["points", "shapes"])
def test_a_flying_body_called_world_lands_on_the_ground(touching: str) -> None:
    box = fw.Shape("box", "world", fw.ShapeType.BOX, SIDES)
    joints = [fw.Joint("fixed", fw.JointType.FIXED, "world", "plate", fw.Pose(p=(0.0, 0.0, -0.05)))]
    made = fw.describe([fw.Body("world", solid_box(2.0, SIDES)), fw.Body("plate")], joints, shapes=[box])
    flat = [fw.ContactPoint("plate", (x, y, 0.0)) for x in (-0.1, 0.1) for y in (-0.15, 0.15)]
    on: dict[str, Any] = {"spheres": flat} if touching == "points" else {"shapes": True}
    sim = fw.Simulation(fw.build(made, "floating"), H, q=pose((0.0, 0.0, 0.06)), ground=fw.Plane(), **on)
    sim.run(0.3, every=10**6)
    assert sim.q[2] == pytest.approx(0.05, abs=1e-4)


@pytest.mark.parametrize("pyramid", [False, True])
@pytest.mark.parametrize("friction", [0.3, 0.7])
def test_a_block_sticks_below_the_friction_angle(friction: float, pyramid: bool) -> None:
    """Check 98 % of the angle for 1 s; the tolerance 1e-9 m is the accumulated tolerance of the solver, 1e-8 of h g."""
    np.testing.assert_allclose(slid(0.98 * math.atan(friction), friction, pyramid=pyramid), 0.0, atol=1e-9)


@pytest.mark.parametrize("pyramid", [False, True])
@pytest.mark.parametrize(("angle", "friction"), [(0.35, 0.3), (0.7, 0.7), (0.5, 0.0)])
def test_a_block_slides_above_it(angle: float, friction: float, pyramid: bool) -> None:
    """Check the distance after n Euler steps, h² n (n + 1) / 2 of g (sin - mu cos), downhill only, to 1e-6: overlap up to
    the slop.
    """
    moved = slid(angle, friction, pyramid=pyramid)
    a = G * (math.sin(angle) - friction * math.cos(angle))
    np.testing.assert_allclose(moved, [0.5 * a * 1.0 * (1.0 + H), 0.0, 0.0], atol=2e-6)


def test_pyramids_hold_more_along_their_diagonals() -> None:
    """Check a plane that falls halfway between x and y; its tangents are along x and (nearly) y: up to sqrt(2) times as
    much friction.
    """
    angle = math.atan(1.2 * 0.4)
    assert slid(angle, 0.4, heading=math.pi / 4, duration=0.3)[0] > 1e-2
    np.testing.assert_allclose(slid(angle, 0.4, heading=math.pi / 4, duration=0.3, pyramid=True), 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("body", "ground", "expected"),
    [(0.4, 0.9, 0.6), (0.4, None, 0.4), (None, 0.9, 0.9), (None, None, 0.25), (0.0, 0.9, 0.0)],
)
def test_friction_of_two_surfaces(body: float | None, ground: float | None, expected: float) -> None:
    """Check the deceleration with the geometric mean of two frictions, the friction of one surface, and that of the
    simulation.
    """
    robot = free_bodies(solid_box(2.0, SIDES))
    feet = corners("body0", SIDES, **({} if body is None else {"friction": body}))
    sim = fw.Simulation(
        robot,
        H,
        q=pose((0.0, 0.0, 0.05)),
        v=[3.0, 0, 0, 0, 0, 0],
        spheres=feet,
        ground=fw.Plane(friction=ground),
        contact=fw.ContactOptions(friction=0.25),
    )
    sim.run(0.1, every=1000)
    assert sim.v[0] == pytest.approx(3.0 - 0.1 * expected * G, abs=1e-7)


def bounced(speed: float, ball: float | None, ground: float | None, otherwise: float) -> float:
    """Return the velocity with which a ball leaves the ground without gravity, by the restitutions of both or of the
    simulation.
    """
    sim = fw.Simulation(
        free_bodies(solid_ball(1.0, 0.1), gravity=NO_GRAVITY), H, q=pose((0, 0, 0.1)), v=[0, 0, -speed, 0, 0, 0],
        spheres=[fw.ContactSphere("body0", 0.1, restitution=ball)], ground=fw.Plane(restitution=ground),
        contact=fw.ContactOptions(restitution=otherwise),
    )  # fmt: skip
    sim.step()
    return float(sim.v[2])


@pytest.mark.parametrize(
    ("ball", "ground", "expected"), [(0.4, 0.9, 0.6), (0.4, None, 0.4), (None, 0.9, 0.9), (None, None, 0.25), (0.0, 0.9, 0.0)]
)
def test_restitution_of_two_surfaces(ball: float | None, ground: float | None, expected: float) -> None:
    assert bounced(2.0, ball, ground, 0.25) == pytest.approx(2.0 * expected, abs=1e-7)


@pytest.mark.parametrize("e", [0.3, 0.8, 1.0])
def test_a_ball_bounces_to_the_square_of_its_restitution(e: float) -> None:
    """Check the ratio of heights. The impact is up to a step late, which changes a height by 2 h v / height: 1 % above 5 cm."""
    h = 5e-4
    sim = fw.Simulation(
        free_bodies(solid_ball(1.0, 0.1)), h, q=pose((0, 0, 1.1)), spheres=[fw.ContactSphere("body0", 0.1)],
        ground=fw.Plane(), contact=fw.ContactOptions(restitution=e),
    )  # fmt: skip
    motion = sim.run(2.4)
    z, v = motion.q[:, 2] - 0.1, motion.v[:, 2]
    bounces = np.flatnonzero((v[:-1] < -0.1) & (v[1:] > 0.0))
    heights = np.array([z[i:j].max() for i, j in zip([0, *bounces], bounces, strict=False)])
    high = heights[heights > 0.05]
    assert len(high) == {0.3: 2, 0.8: 4, 1.0: 3}[e]
    np.testing.assert_allclose(high[1:] / high[:-1], e * e, rtol=0.01)


@pytest.mark.parametrize(
    ("integrator", "h", "share"),
    [("semi-implicit", 1e-3, 1.02), ("semi-implicit", 1e-2, 1.02), ("rk4", 1e-2, 0.0), ("midpoint", 1e-2, 0.0)],
)
def test_a_ball_that_loses_nothing_bounces_for_ever(integrator: str, h: float, share: float) -> None:
    """Check the energy.

    In free fall, semi-implicit steps change it by at most h m g v / 2. The other integrators conserve it, up to the solver's
    1e-8 of the speed at each impact.
    """
    robot = free_bodies(solid_ball(1.0, 0.1))
    sim = fw.Simulation(
        robot,
        h,
        integrator,
        q=pose((0, 0, 1.1)),
        spheres=[fw.ContactSphere("body0", 0.1)],
        ground=fw.Plane(),
        contact=fw.ContactOptions(restitution=1.0),
    )
    motion = sim.run(30.0)
    fall = G * (motion.q[:, 2] - 0.1) + 0.5 * motion.v[:, 2] ** 2
    impacts = int(np.sum((motion.v[:-1, 2] < -1.0) & (motion.v[1:, 2] > 1.0)))
    assert impacts == 33
    assert np.abs(fall - G).max() <= share * 0.5 * h * G * math.sqrt(2.0 * G) + impacts * 2e-8 * 2.0 * G


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_a_ball_under_a_ceiling_gains_nothing(e: float) -> None:
    """Check a ball thrown up, which gravity accelerates away from the ceiling in the step of the impact."""
    robot = free_bodies(solid_ball(1.0, 0.1))
    ceiling = fw.Plane(point=(0, 0, 1.0), normal=(0, 0, -1.0))
    sim = fw.Simulation(
        robot,
        1e-2,
        q=pose((0, 0, 0.5)),
        v=[0, 0, 5.0, 0, 0, 0],
        spheres=[fw.ContactSphere("body0", 0.1)],
        ground=ceiling,
        contact=fw.ContactOptions(restitution=e),
    )
    motion = sim.run(0.15)
    height = sim.energy()
    impact = 25.0 - 2.0 * G * 0.4  # v² at the ceiling
    kept = 0.5 * 25.0 + G * 0.5 - 0.5 * (1.0 - e * e) * impact
    assert motion.v[-1, 2] < 0.0
    assert height == pytest.approx(kept, abs=0.6)  # h g v at the impact, and the same for its delay


def test_slow_contacts_do_not_bounce() -> None:
    """Check speeds below `bounce` (default 1 cm/s), or below two steps of gravity."""
    for speed, after in ((0.009, 0.0), (0.011, 0.011)):
        assert bounced(speed, None, None, 1.0) == pytest.approx(after, abs=1e-9)


def test_a_ball_rolls_down_with_five_sevenths_of_gravity() -> None:
    """Check friction too, 2/7 g sin.

    Velocities of a turning body are in its axes, which causes an error of h w, at most 1 %.
    """
    plane, R = tilted(0.25)
    robot = free_bodies(solid_ball(1.0, 0.1))
    sim = fw.Simulation(
        robot,
        H,
        q=pose(R.apply([0, 0, 0.1])),
        spheres=[fw.ContactSphere("body0", 0.1)],
        ground=plane,
        contact=fw.ContactOptions(friction=0.5),
    )
    sim.run(0.5)
    down, normal = R.apply([1.0, 0.0, 0.0]), R.apply([0.0, 0.0, 1.0])
    velocity = Rotation.from_quat(sim.q[3:]).apply(sim.v[:3].copy())
    turning = Rotation.from_quat(sim.q[3:]).apply(sim.v[3:].copy())
    assert velocity @ down == pytest.approx(5.0 / 7.0 * G * math.sin(0.25) * 0.5, rel=0.01)
    np.testing.assert_allclose(velocity + np.cross(turning, -0.1 * normal), 0.0, atol=0.02)  # normal velocity h w r
    (force,) = sim.contacts()[1]
    assert -force @ down == pytest.approx(2.0 / 7.0 * G * math.sin(0.25), rel=0.02)
    assert force @ normal == pytest.approx(G * math.cos(0.25), rel=0.02)


def test_a_ball_without_friction_does_not_turn() -> None:
    plane, R = tilted(0.25)
    sim = fw.Simulation(
        free_bodies(solid_ball(1.0, 0.1)), H, q=pose(R.apply([0, 0, 0.1])), spheres=[fw.ContactSphere("body0", 0.1)],
        ground=plane, contact=fw.ContactOptions(friction=0.0),
    )  # fmt: skip
    sim.run(0.5, every=1000)
    np.testing.assert_allclose(sim.v[3:], 0.0, atol=1e-12)
    assert np.linalg.norm(sim.v[:3]) == pytest.approx(0.5 * G * math.sin(0.25), rel=1e-9)


# --- bodies on bodies


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_two_balls_collide(e: float) -> None:
    """Check a head-on collision: v1 - v0 is multiplied by -e, momentum is conserved, both to the solver's tolerance."""
    robot = free_bodies(solid_ball(1.0, 0.1), solid_ball(3.0, 0.1), gravity=NO_GRAVITY)
    q = np.concatenate([pose((0, 0, 0)), pose((0.2, 0, 0))])
    v = np.zeros(12)
    v[0], v[6] = 2.0, -0.5
    spheres = [fw.ContactSphere("body0", 0.1), fw.ContactSphere("body1", 0.1)]
    sim = fw.Simulation(robot, H, q=q, v=v, spheres=spheres, pairs=[(0, 1)], contact=fw.ContactOptions(restitution=e))
    sim.step()
    assert sim.v[6] - sim.v[0] == pytest.approx(e * 2.5, abs=1e-7)
    assert sim.v[0] + 3.0 * sim.v[6] == pytest.approx(0.5, abs=1e-9)
    np.testing.assert_allclose(np.delete(sim.v, [0, 6]), 0.0, atol=1e-9)
    points, forces, names = sim.contacts()
    np.testing.assert_allclose(points, [[0.1, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(forces, [[(sim.v[0] - 2.0) / H, 0, 0]], atol=1e-4)
    assert names == ["the sphere on 'body0' and the sphere on 'body1'"]


def test_a_stack_of_ten_boxes_rests() -> None:
    """Check boxes with four small spheres each: nothing moves in 0.5 s, and each level carries the weight above, to 1e-6
    of the total.
    """
    masses = np.array([2.0, 0.5, 1.0, 3.0, 1.5, 0.7, 2.0, 1.0, 0.4, 5.0])
    robot = free_bodies(*(solid_box(m, (0.2, 0.2, 0.2)) for m in masses))
    feet, heads = ([(x, y, z) for x in (-0.08, 0.08) for y in (-0.08, 0.08)] for z in (-0.09, 0.09))
    spheres, pairs = [], []
    for k in range(10):
        spheres += [fw.ContactSphere(f"body{k}", 0.01, c) for c in (*feet, *heads)]
        if k:
            pairs += [(8 * k + i, 8 * (k - 1) + 4 + i) for i in range(4)]
    q = np.concatenate([pose((0.0, 0.0, 0.1 + 0.2 * k)) for k in range(10)])
    sim = fw.Simulation(robot, H, q=q, spheres=spheres, pairs=pairs, ground=fw.Plane(), contact=fw.ContactOptions(friction=0.5))
    sim.run(0.5, every=1000)
    assert np.abs(sim.v).max() < 1e-6
    np.testing.assert_allclose(sim.q, q, atol=2e-6)  # twice the slop
    _, forces, names = sim.contacts()
    weight = G * masses.sum()
    for k in range(10):
        on = np.array([name == f"the sphere on 'body{k}'" or name.startswith(f"the sphere on 'body{k}' and") for name in names])
        assert on.sum() == 4
        np.testing.assert_allclose(forces[on].sum(axis=0), [0.0, 0.0, G * masses[k:].sum()], atol=1e-6 * weight)


# --- Newton's and Coulomb's laws


def support(sim: fw.Simulation, q: Array, v: Array, tau: Any = 0.0) -> Array:
    """Return force and torque about the origin, in the world, that a flying base needs in addition to tau for the step
    from (q, v).
    """
    a = (end_velocity(sim, q) - free_velocity(sim.robot, v, np.zeros_like(v), sim.dt)) / sim.dt
    needed = sim.robot.inverse_dynamics(q, v, a) - tau
    R, p = Rotation.from_quat(q[3:7]), q[:3]
    force, torque = R.apply(needed[:3]), R.apply(needed[3:6])
    return np.array([*force, *(torque + np.cross(p, force))])


def wrench(points: Array, forces: Array) -> Array:
    return np.array([*forces.sum(axis=0), *np.cross(points, forces).sum(axis=0)])


def assert_coulomb(sim: fw.Simulation, q: Array, friction: float, spheres: list[fw.ContactSphere], tolerance: float) -> None:
    """Check Signorini's condition and Coulomb's law on the plane z = 0, for the velocities after the last step, from q.

    The tolerance is `tolerance` [m/s], or the force that gives the robot's mass that velocity in a step.
    """
    h, robot = sim.dt, sim.robot
    points, forces, names = sim.contacts()
    small = tolerance * robot.mass / h
    for point, force, name in zip(points, forces, names, strict=True):
        frame = name.split("'")[1]
        T = robot.frame_placement(frame)(q)
        twist = robot.frame_velocity(frame, "local_world_aligned")(q, end_velocity(sim, q))
        u = twist[:3] + np.cross(twist[3:], point - T[:3, 3])
        centers = [T[:3, :3] @ s.center + T[:3, 3] - [0, 0, s.radius] for s in spheres if s.frame == frame]
        gap = min(centers, key=lambda c: float(np.linalg.norm(c[:2] - point[:2])))[2]
        normal, sliding = force[2], np.linalg.norm(u[:2])
        assert normal >= -small
        assert np.linalg.norm(force[:2]) <= friction * normal + small
        approach = u[2] + max(gap, 0.0) / h
        assert approach >= -tolerance
        assert normal <= small or approach <= tolerance
        if sliding > 10.0 * tolerance:
            np.testing.assert_allclose(
                force[:2], -friction * normal * u[:2] / sliding, atol=small + normal * tolerance / sliding
            )


@pytest.mark.parametrize("seed", range(3))
def test_laws_hold_for_a_box_thrown_on_the_ground(seed: int) -> None:
    """Check that in each step the contacts' force and torque balance the equation of motion, to 1e-9 of its size.

    A second check uses states alone: linear momentum changes by h (forces + m g). Residuals of Coulomb's law are the solver's,
    1e-8 of velocities of about 10 m/s.
    """
    rng = np.random.default_rng(seed)
    mass = 2.0
    robot = free_bodies(solid_box(mass, SIDES))
    turn = Rotation.random(random_state=seed)
    q, v = pose((0.0, 0.0, 0.25), turn), np.concatenate([turn.inv().apply([2.0, 1.0, -1.0]), 3.0 * rng.standard_normal(3)])
    feet = corners("body0", SIDES)
    sim = fw.Simulation(robot, H, q=q, v=v, spheres=feet, ground=fw.Plane(), contact=fw.ContactOptions(friction=0.4))
    touched = 0
    for _ in range(500):
        q, v, before = sim.q, sim.v, momentum(robot, sim.q, sim.v)
        sim.step()
        points, forces, _ = sim.contacts()
        touched += len(points)
        scale = max(G * mass, np.abs(forces).max(initial=0.0))
        np.testing.assert_allclose(support(sim, q, v), wrench(points, forces), atol=1e-8 * scale)
        change = (momentum(robot, sim.q, sim.v) - before)[:3] / H
        expected = forces.sum(axis=0) - np.array([0.0, 0.0, mass * G])
        np.testing.assert_allclose(change, expected, atol=1e-9 * scale)
        assert_coulomb(sim, q, 0.4, feet, 3e-7)
    assert touched > 500


@functools.cache
def talos() -> fw.Robot:
    return fw.load(path("talos"), base="floating")


CROUCH = {"3": -0.41, "4": 0.86, "5": -0.45}


def test_laws_hold_for_a_humanoid_on_its_feet() -> None:
    """Check Talos on eight points under its soles, held by servos of its joints: force and torque of the ground move it.

    The tolerance is 1e-9 of its weight and of the torque's size. The robot stays up, and the mean of the forces is the weight
    to 5 % at the end.
    """
    robot = talos()
    q = robot.neutral()
    for side in ("left", "right"):
        for number, angle in CROUCH.items():
            (joint,) = (j for j in robot.joints if j.name == f"leg_{side}_{number}_joint")
            q[joint.q_slice] = angle
    soles = ("left_sole_link", "right_sole_link")
    feet = [fw.ContactPoint(sole, (x, y, 0.0)) for sole in soles for x in (-0.1, 0.1) for y in (-0.06, 0.06)]
    q[2] -= robot.frame_placement("left_sole_link")(q)[2, 3]
    sim = fw.Simulation(
        robot,
        H,
        q=q,
        spheres=feet,
        shapes=False,
        ground=fw.Plane(),
        joints=fw.JointOptions(dry_friction=False),
        contact=fw.ContactOptions(friction=0.7),
    )
    goal, stiffness = q.copy(), 4000.0 * np.diagonal(robot.mass_matrix(q)).copy()
    stiffness[:6] = 0.0
    weight, carried = robot.mass * G, []
    for _ in range(300):
        q, v = sim.q, sim.v
        tau = stiffness * robot.difference(q, goal) - 2.0 / 63.0 * stiffness * v
        tau[6:] += robot.gravity_force(q)[6:]
        sim.step(tau)
        points, forces, _ = sim.contacts()
        scale = max(weight, np.abs(forces).max(initial=0.0))
        np.testing.assert_allclose(support(sim, q, v), wrench(points, forces), atol=1e-8 * scale)
        assert_coulomb(sim, q, 0.7, feet, 1e-7)
        carried.append(forces.sum(axis=0)[2])
    assert abs(sim.q[2] - goal[2]) < 0.02
    assert np.mean(carried[-100:]) == pytest.approx(weight, rel=0.05)


@pytest.mark.parametrize("integrator", ["rk4", "midpoint"])
def test_other_integrators_carry_the_weight_too(integrator: str) -> None:
    """Check that forces at rest equal the weight to the solver's tolerance, and that nothing sinks, or rises by more than
    g h² / 2.
    """
    robot = free_bodies(solid_box(2.0, SIDES))
    sim = fw.Simulation(robot, H, integrator, q=pose((0, 0, 0.05)), spheres=corners("body0", SIDES), ground=fw.Plane())
    sim.run(0.2, every=1000)
    assert sim.q[2] == pytest.approx(0.05, abs=0.6 * G * H * H)
    np.testing.assert_allclose(sim.q[[0, 1, 3, 4, 5, 6]], [0, 0, 0, 0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(sim.contacts()[1].sum(axis=0), [0.0, 0.0, 2.0 * G], atol=1e-6)


# --- height fields


def test_a_slope_of_heights_is_a_plane() -> None:
    """Check a tumbling box: for 0.3 s, it moves as on the plane with that slope, to rounding that contacts magnify."""
    plane, R = tilted(0.3, 0.8)
    n = np.array(plane.normal)
    x, y = np.linspace(-2.0, 3.0, 11), np.linspace(-1.0, 2.0, 4)
    heights = -(n[0] * x[:, None] + n[1] * y[None, :]) / n[2]
    field = fw.HeightField(heights, (-2.0, 3.0), (-1.0, 2.0))
    robot = free_bodies(solid_box(2.0, SIDES))
    start = pose(R.apply([0.0, 0.0, 0.3]), R * Rotation.from_rotvec([0.4, -0.7, 0.2]))
    spheres = [dataclasses.replace(s, radius=0.02) for s in corners("body0", SIDES)]
    on = []
    for ground in (plane, field):
        sim = fw.Simulation(
            robot,
            H,
            q=start,
            v=[0.5, 0.2, 0, 2.0, 1.0, 0],
            spheres=spheres,
            ground=ground,
            contact=fw.ContactOptions(friction=0.3),
        )
        sim.run(0.3, every=1000)
        on.append(np.concatenate([sim.q, sim.v]))
    np.testing.assert_allclose(on[1], on[0], atol=1e-7)
    assert len(sim.contacts()[0]) > 0


def test_there_is_nothing_beyond_the_edge_of_heights_and_nothing_below_their_base() -> None:
    """Check balls that fall freely beside a field and below its base, and balls on its edge and slope, which stay on top."""
    field = fw.HeightField([[0.0, 0.0], [0.5, 0.5]], (0.0, 1.0), (0.0, 1.0), base=0.3)
    robot = free_bodies(solid_ball(1.0, 0.1))
    q = np.array([pose(p) for p in ((3.0, 0.5, 0.6), (0.5, 0.5, -0.45), (1.05, 0.5, 0.6), (0.5, 0.5, 0.37))])
    sim = fw.Simulation(robot, H, q=q, spheres=[fw.ContactSphere("body0", 0.1)], ground=field)
    sim.run(0.1, every=1000)
    steps = round(0.1 / H)
    fallen = 0.5 * G * H * H * steps * (steps + 1)
    np.testing.assert_allclose(sim.q[:2, 2], q[:2, 2] - fallen, atol=1e-12)
    assert (sim.q[2:, 2] > q[2:, 2] - 0.8 * fallen).all() and sim.q[2, 0] > 1.05
    with pytest.raises(ValueError, match="base must be a depth"):
        fw.HeightField([[0.0, -1.0], [0.5, 0.5]], (0.0, 1.0), (0.0, 1.0), base=0.3)


def test_a_block_comes_to_rest_in_a_bowl() -> None:
    """Check a block that rests where the slope is below its friction, on at least three points that carry its weight. Energy
    only falls.

    The separation of overlap may add m g times about 1e-6 in each step, and Euler steps add h w for rotation.
    """
    x = np.linspace(-1.0, 1.0, 81)
    field = fw.HeightField(0.5 * (x[:, None] ** 2 + x[None, :] ** 2), (-1.0, 1.0), (-1.0, 1.0))
    robot = free_bodies(solid_box(2.0, (0.1, 0.1, 0.1)))
    sim = fw.Simulation(
        robot,
        H,
        q=pose((0.5, 0.1, 0.25)),
        spheres=corners("body0", (0.1, 0.1, 0.1)),
        ground=field,
        contact=fw.ContactOptions(friction=0.3),
    )
    first = sim.energy()
    sim.run(2.5, every=10**4)
    assert np.abs(sim.v).max() < 1e-3
    assert sim.energy() < first
    points, forces, _ = sim.contacts()
    assert len(points) >= 3
    np.testing.assert_allclose(forces.sum(axis=0), [0.0, 0.0, 2.0 * G], atol=0.02)
    assert np.hypot(*sim.q[:2]) < 0.3 + 0.05


# --- contacts that start and end


def test_contacts_that_come_and_go_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a box that bounces on one to eight corners, after one step in the air and one on the ground."""
    robot = free_bodies(solid_box(2.0, SIDES))
    make = functools.partial(
        fw.Simulation, robot, H, spheres=corners("body0", SIDES), ground=fw.Plane(), contact=fw.ContactOptions(restitution=0.3)
    )
    sim = make(q=pose((0, 0, 0.3)))
    sim.step()
    sim.reset(pose((0, 0, 0.05)))
    sim.step()
    compiled = []

    def refuse(ir: str) -> bytes:
        compiled.append(ir)
        raise AssertionError("compiled")

    monkeypatch.setattr(featherweight.engine.backends.llvm.backend, "compile_object", refuse)
    for name in ("compile_loops", "compile_optimized"):
        monkeypatch.setattr(featherweight.engine.loops.kernel_code, name, refuse)
    sim.reset(pose((0, 0, 0.35), Rotation.from_rotvec([0.4, 0.5, 0.1])), np.array([0.5, 0, 0, 1.0, 2.0, 0.3]))
    sets = set()
    for _ in range(1500):
        sim.step()
        sets.add(len(sim.contacts()[1]))
    shorter = make(q=pose((0, 0, 0.05)))
    shorter.step()
    assert sets >= {0, 1, 2, 4}
    assert not compiled


# --- energy and approach, for any robot


SEEDS = range(6)


@functools.cache
def walker(seed: int) -> tuple[fw.Robot, list[fw.ContactSphere]]:
    """Return a random tree with spheres and points on bodies; every second tree has a floating base."""
    rng = np.random.default_rng(seed)
    made = fw.generators.random_tree(3 + seed % 3, rng=seed, masses=(0.2, 5.0))
    if seed % 2:
        made = dataclasses.replace(made, joints=(fw.Joint("base", FREE, WORLD, "body0"), *made.joints[1:]))
    robot = fw.build(made)
    spheres = []
    for body in robot.bodies[-3:]:
        for _ in range(3):
            center, radius = rng.uniform(-0.2, 0.2, 3), rng.choice([0.0, rng.uniform(0.02, 0.1)])
            spheres.append(fw.ContactSphere(body.name, float(radius), tuple(map(float, center))))
    return robot, spheres


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(SEEDS), st.integers(0, 2**32 - 1), st.floats(0.0, 1.5), st.floats(0.0, 1.0), st.booleans(),
    st.floats(0.0, 5.0), st.floats(-0.02, 8e-4),
)  # fmt: skip
@example(0, 72, 0.0, 1.0, False, 1.0, 0.0)
@example(0, 0, 0.0, 1.0, False, 2.0, 0.0)
def test_contacts_bring_no_energy_and_let_nothing_approach(
    seed: int, chance: int, friction: float, restitution: float, pyramid: bool, speed: float, gap: float
) -> None:
    """Check some steps of random trees and spheres from any state that touches a tilted ground.

    Kinetic energy at q is at most that without contacts, or with restitution that before the step. The tolerance is 1e-7 of it:
    the solver's 1e-8 of all velocities, and cancellation. The velocities of bouncing contacts before the impact are those at
    the start of the step, without half the change of velocity by the forces of the step: their impulses may do that much work.

    Normal forces push, friction is in its cone, and contacts approach no faster than their gap closes in a step, to 1e-7. With
    redundant contacts the solver may leave more, up to 1e-3; it reports the residual, and the tolerance includes it.
    """
    robot, spheres = walker(seed)
    rng = np.random.default_rng(chance)
    q, v = robot.random_configuration(rng=rng), speed * rng.standard_normal(robot.nv)
    normal = np.array([*rng.uniform(-0.5, 0.5, 2), 1.0])
    normal /= np.linalg.norm(normal)
    radii = np.array([s.radius for s in spheres])
    x = centers(robot, spheres, q)
    lowest = float((x @ normal - radii).min())
    ground = fw.Plane(point=tuple((lowest - gap) * normal), normal=tuple(normal))
    apart = np.linalg.norm(x[:, None] - x[None], axis=-1) - radii[:, None] - radii[None]
    pairs = [
        (i, j) for i in range(len(spheres)) for j in range(i)
        if spheres[i].frame != spheres[j].frame and apart[i, j] > 0.0 and radii[i] + radii[j] > 0.0
    ]  # fmt: skip
    sim = fw.Simulation(
        robot, H, q=q, v=v, spheres=spheres, pairs=pairs, ground=ground, joints=fw.JointOptions(limits=False),
        contact=fw.ContactOptions(friction=friction, restitution=restitution, pyramid=pyramid, max_penetration=10.0),
    )  # fmt: skip
    for _ in range(6):
        q, v = sim.q, sim.v
        free = free_velocity(robot, v, robot.forward_dynamics(q, v, np.zeros(robot.nv)), H)
        sim.step()
        end = end_velocity(sim, q)
        energy = robot.kinetic_energy(q, free)
        if restitution > 0.0:
            late = robot.mass_matrix(q) @ (end - free) @ (free - v)  # impulses times the change of velocities by forces
            energy = max(energy, robot.kinetic_energy(q, v)) + 0.5 * max(late, 0.0)
        points, forces, names = sim.contacts()
        left = sim.solver["residual"]
        assert robot.kinetic_energy(q, end) <= energy * (1.0 + 1e-7) + 1e-12 + 2.0 * left * H * np.abs(forces).sum()
        size = np.abs(forces).max(initial=1.0)
        fastest = max(np.abs(robot.frame_velocity([b.name for b in robot.bodies])(q, v)).max() for v in (free, end))
        x = centers(robot, spheres, q)
        for point, force, name in zip(points, forces, names, strict=True):
            if " and " in name:
                continue
            pushing = force @ normal
            assert pushing >= -1e-12 * size
            sliding = np.linalg.norm(force - pushing * normal)
            assert sliding <= friction * pushing * (math.sqrt(2.0) if pyramid else 1.0) + 1e-6 * size
            frame = name.split("'")[1]
            twist = robot.frame_velocity(frame, "local_world_aligned")(q, end)
            u = twist[:3] + np.cross(twist[3:], point - robot.frame_placement(frame)(q)[:3, 3])
            mine = [(c - point - (c - point) @ normal * normal, c @ normal - r) for c, r, s in
                    zip(x, radii, spheres, strict=True) if s.frame == frame]  # fmt: skip
            gap = min(mine, key=lambda m: float(np.linalg.norm(m[0])))[1] - np.array(ground.point) @ normal
            closing = max(gap, 0.0) / H
            if restitution:  # bouncing contacts may close in the next step; bounces of others may move them there by MOST_LATE
                closing = 2.0 * closing if len(names) == 1 else closing + MOST_LATE / H
            assert u @ normal >= -closing - 1e-7 * max(1.0, fastest) - 2.0 * left
        assert left <= 2e-3 * max(1.0, fastest)


def test_overlap_is_pushed_apart_without_velocity() -> None:
    """Check that the speed is 1 m/s until the slop, and that the body stays at rest."""
    robot = free_bodies(solid_ball(1.0, 0.1), gravity=NO_GRAVITY)
    sim = fw.Simulation(robot, H, q=pose((0, 0, 0.09)), spheres=[fw.ContactSphere("body0", 0.1)], ground=fw.Plane())
    for count in range(1, 12):
        sim.step()
        assert sim.q[2] == pytest.approx(min(0.09 + count * H, 0.1), abs=1.2e-6)
        np.testing.assert_allclose(sim.v, 0.0, atol=1e-12)


def test_a_limit_and_a_contact_act_together() -> None:
    """Check a cart on a vertical rail with a limit above the ground: the cart stays on the limit, and the ground carries
    nothing.
    """
    body = fw.Body("cart", solid_box(2.0, (0.1, 0.1, 0.1)))
    robot = fw.build(fw.describe([body], [fw.Joint("rail", SLIDE, WORLD, "cart", axis=Z, lower=0.3)]))
    for height, force in ((0.2995, 0.0), (0.3005, 2.0 * G)):
        ground = fw.Plane(point=(0.0, 0.0, height))
        sim = fw.Simulation(robot, H, q=[0.31], spheres=[fw.ContactPoint("cart")], ground=ground)
        sim.run(0.3, every=1000)
        assert sim.q[0] == pytest.approx(max(0.3, height), abs=2e-6)
        np.testing.assert_allclose(sim.contacts()[1].sum(axis=0), [0.0, 0.0, force], atol=1e-5)
