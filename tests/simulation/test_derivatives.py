"""Tests of derivatives of steps against central differences of whole steps."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.engine import program_trace
from featherweight.model.types import WORLD, Actuator
from featherweight.robots import linkages, mini_cheetah
from featherweight.simulation.derivatives.fleet_derivatives import StepDerivatives
from featherweight.simulation.step_model import StepModel
from oracles.mechanisms import MECHANISMS, closed
from oracles.states import Array
from simulation.made import made
from simulation.scenes import (
    BALL,
    FREE,
    HINGE,
    NOTHING,
    PLANAR,
    cart,
    corners,
    free_bodies,
    pendulum,
    pose,
    solid_ball,
    solid_box,
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")

H = 1e-3
INTEGRATORS = ("semi-implicit", "rk4", "midpoint")


def tight(**more: Any) -> fw.ContactOptions:
    """Use a tight tolerance, because differences of steps over 1e-6 contain the solver's residual."""
    return fw.ContactOptions(tolerance=1e-13, **more)


TURN = Rotation.from_rotvec([0.3, -0.2, 0.5])


def after(sim: fw.Simulation, q: Array, v: Array, tau: Array, control: Array | None) -> tuple[Array, Array]:
    sim.reset(q, v)
    sim.step(tau, control)
    return sim.q, sim.v


def agreed(
    sim: fw.Simulation, q: Any, v: Any, tau: Array | None = None, control: Array | None = None, small: float = 1e-6
) -> StepDerivatives:
    """Return the derivatives at a state, after a comparison with differences of whole steps.

    The tolerance is 1e-7 of the greatest entry for each direction, because of curvature where gaps count by 1/h, or 3e-14 in
    states, the remainder of the midpoint rule's iterations, divided by the step of the differences.
    """
    robot, nv = sim.robot, sim.robot.nv
    tau = np.zeros(nv) if tau is None else tau
    q, v = np.array(q, dtype=float), np.array(v, dtype=float)
    sim.reset(q, v)
    derivatives = sim.derivatives(tau, control)
    np.testing.assert_array_equal(sim.q, q)
    np.testing.assert_array_equal(sim.v, v)
    reference, _ = after(sim, q, v, tau, control)
    for k, column in enumerate(np.hstack([derivatives.A, derivatives.B, derivatives.B_control]).T):
        ends = []
        step = small if k < 2 * nv else 100.0 * small  # forces act for a short time
        for x in (step, -step):
            e = np.zeros(3 * nv + sim.forces.nu)
            e[k] = x
            controls = None if control is None else control + e[3 * nv :]
            ends.append(after(sim, robot.integrate(q, e[:nv]), v + e[nv : 2 * nv], tau + e[2 * nv : 3 * nv], controls))
        (qa, va), (qb, vb) = ends
        moved = robot.difference(reference, qa) - robot.difference(reference, qb)
        expected = np.concatenate([moved, va - vb]) / (2.0 * step)
        np.testing.assert_allclose(column, expected, rtol=0.0, atol=max(1e-7 * np.abs(expected).max(), 3e-14 / small))
    return derivatives


def with_springs(description: fw.Description, **more: dict[str, Any]) -> fw.Description:
    """Return the robot with damping at all joints, springs at hinges, and the given properties of some joints."""
    joints = [
        dataclasses.replace(
            j, damping=0.1, stiffness=1.0 if j.type is HINGE else 0.0, **more.get(j.name, {})
        )
        for j in description.joints
    ]  # fmt: skip
    return dataclasses.replace(description, joints=tuple(joints))


def one_of_each_joint() -> fw.Robot:
    inertia = fw.Inertia(2.0, (0.1, 0.05, 0.02), (0.1, 0.0, 0.0, 0.2, 0.0, 0.25))
    bodies = [fw.Body(name, inertia) for name in "abcd"]
    joints = [
        fw.Joint("free", FREE, WORLD, "a"),
        fw.Joint("ball", BALL, "a", "b", damping=0.2),
        fw.Joint("flat", PLANAR, "b", "c", damping=0.1),
        fw.Joint("hinge", HINGE, "c", "d", stiffness=3.0, rest=0.1),
    ]
    return fw.build(fw.describe(bodies, joints))


# --- rates of configurations


@pytest.mark.parametrize("followers", [False, True])
def test_rates_of_a_result_that_is_a_configuration_are_velocities_there(followers: bool) -> None:
    """Check all types of joints, and independent joints with followers, against closed forms."""
    robot = fw.build(mini_cheetah()) if followers else one_of_each_joint()
    rng = np.random.default_rng(3)
    q, v = robot.random_configuration(rng=rng), rng.standard_normal(robot.nv)
    for size in (0.0, 1.0, 5.0):
        given = robot.step_functions.integrate.derivative("q", "v")(q, size * v)
        for J, expected in zip(given, robot.integrate_derivatives(q, size * v), strict=True):
            np.testing.assert_allclose(J, expected, rtol=0.0, atol=1e-13)


def test_rates_where_origins_move_straight_on_are_differences_of_steps() -> None:
    robot, rng = one_of_each_joint(), np.random.default_rng(4)
    advance, h = robot.step_functions.advance, 0.3
    q, u, d, e = robot.random_configuration(rng=rng), *rng.standard_normal((2, robot.nv)), 1e-6
    J = advance.derivative("q", "u", "d")(q, u, d, h)
    for k, way in enumerate(e * np.eye(robot.nv)):
        pairs = [(robot.integrate(q, way), robot.integrate(q, -way)), (u + way, u - way), (d + way, d - way)]
        for i, (more, less) in enumerate(pairs):
            ends = [advance(*(x if j == i else y for j, y in enumerate((q, u, d))), h) for x in (more, less)]
            moved = robot.difference(ends[1].ahead, ends[0].ahead) / (2.0 * e)
            np.testing.assert_allclose(J[i][:, k], moved, rtol=0.0, atol=1e-8)
            np.testing.assert_allclose(J[3 + i][:, k], (ends[0].velocity - ends[1].velocity) / (2.0 * e), rtol=0.0, atol=1e-8)


# --- free motion


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_pendulum_with_spring_damper_and_drive(integrator: str) -> None:
    robot = pendulum(damping=0.3, stiffness=2.0, rest=0.2, effort=5.0)
    drive = Actuator("motor", "pivot", gear=2.0, gain=3.0, bias=(0.1, -0.5, -0.2))
    sim = fw.Simulation(robot, 0.01, integrator, actuators=[drive])
    derivatives = agreed(sim, [0.7], [1.3], np.array([0.4]), np.array([0.3]))
    assert derivatives.doubtful == () and derivatives.B_control[1, 0] == pytest.approx(0.01 * 6.0 / 0.29, rel=0.05)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_joints_of_all_kinds(integrator: str) -> None:
    robot, rng = one_of_each_joint(), np.random.default_rng(1)
    sim = fw.Simulation(robot, 0.01, integrator)
    agreed(sim, robot.random_configuration(rng=rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv))


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_loop_with_springs_and_dampers(integrator: str) -> None:
    robot, rng = fw.build(with_springs(MECHANISMS["geared"]())), np.random.default_rng(2)
    sim = fw.Simulation(robot, 0.01, integrator, joints=fw.JointOptions(limits=False, dry_friction=False))
    agreed(sim, robot.random_configuration(rng=1), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv))


def test_forces_at_their_limits_are_doubtful_and_beyond_have_no_effect() -> None:
    sim = fw.Simulation(pendulum(effort=5.0), 0.01)
    assert not agreed(sim, [0.7], [1.3], np.array([6.0])).B.any()
    assert sim.derivatives(np.array([5.0])).doubtful == ("the effort of joint 'pivot' at its limit",)
    drive = Actuator("motor", "pivot", control=(-1.0, 1.0), force=(-2.0, 2.0), gain=3.0)
    sim = fw.Simulation(pendulum(), 0.01, actuators=[drive])
    assert agreed(sim, [0.7], [1.3], control=np.array([0.5])).B_control.any()
    assert not agreed(sim, [0.7], [1.3], control=np.array([0.9])).B_control.any()
    assert sim.derivatives(control=[1.0]).doubtful == ("actuator 'motor' at its limit",)


def driven_linkage(gain: float, effort: float, integrator: str) -> fw.Simulation:
    """Return a linkage with servos at three joints, two of which move with the first, and the same effort at each."""
    d = linkages.four_bar()
    robot = fw.build(dataclasses.replace(d, joints=tuple(dataclasses.replace(j, effort=effort) for j in d.joints)))
    drives = [Actuator(f"servo {j.name}", j.name, gain=gain, bias=(0.0, -gain, -0.01 * gain)) for j in d.joints[:3]]
    q = linkages.four_bar_configuration(1.0)
    return fw.Simulation(robot, H, integrator, q=q, actuators=drives, joints=fw.JointOptions(limits=False, dry_friction=False))


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("effort", [np.inf, 3.0])
@pytest.mark.parametrize("gain", [1.0, 30.0, 300.0])
def test_drives_at_all_joints_of_a_loop(gain: float, effort: float, integrator: str) -> None:
    """Check that efforts bound the drives of each joint, also of one that a loop moves."""
    sim = driven_linkage(gain, effort, integrator)
    control = sim.q[:3] + min(1.0, 30.0 / gain) * np.array([0.05, -0.5, 0.2])
    derivatives = agreed(sim, sim.q, [0.3], np.array([0.1]), control)
    held = np.abs(derivatives.B_control[-1]) < 1e-15
    assert derivatives.doubtful == () and held.any() == (effort < np.inf and gain > 1.0) and not held.all()


def test_drives_without_a_gear_have_no_effect() -> None:
    """Check drives of gear zero beside others on their joint, evaluated at the start and at the end of the step."""
    none = [Actuator("none", "pivot", gear=0.0, gain=3.0), Actuator("bounded", "pivot", gear=0.0, force=(-1.0, 1.0))]
    for bias in ((0.1, 0.0, 0.0), (0.1, -5.0, -0.2)):
        drive = Actuator("motor", "pivot", gear=2.0, gain=3.0, bias=bias)
        alone, several = (fw.Simulation(pendulum(effort=5.0), 0.01, actuators=x) for x in ([drive], [drive, *none]))
        given = agreed(several, [0.7], [1.3], control=np.array([0.3, 0.2, 0.1]))
        expected = agreed(alone, [0.7], [1.3], control=np.array([0.3]))
        np.testing.assert_array_equal(given.A, expected.A)
        np.testing.assert_array_equal(given.B_control, expected.B_control @ [[1.0, 0.0, 0.0]])


def test_steps_too_large_for_straight_code_have_the_same_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the same Jacobians, in the air and on the ground, with drives that the step evaluates at its end."""
    shape = fw.generators.random_tree(3, rng=4, joint_types=("revolute", "floating"))
    hinge = next(j.name for j in shape.joints if j.type is HINGE)
    drive = Actuator("servo", hinge, gain=20.0, bias=(0.0, -20.0, -1.0))

    def derivatives(height: float) -> StepDerivatives:
        robot = fw.build(with_springs(shape))
        last, q = robot.bodies[-1].name, robot.random_configuration(rng=1)
        ground = fw.Plane((0.0, 0.0, robot.frame_placement(last)(q)[2, 3] - height))
        spheres = [fw.ContactSphere(last, 0.05)]
        with made(StepModel) as models:
            sim = fw.Simulation(robot, H, spheres=spheres, ground=ground, contact=tight(), actuators=[drive], q=q)
        [model] = models
        sim.v = np.linspace(-1.0, 1.0, robot.nv)
        assert model.driven and model.passive
        return sim.derivatives(np.linspace(0.0, 1.0, robot.nv), [0.3])

    expected = [derivatives(height) for height in (1.0, 0.0499)]
    monkeypatch.setattr(program_trace, "NODE_BUDGET", 2500)
    for height, whole in zip((1.0, 0.0499), expected, strict=True):
        parts = derivatives(height)
        for x, y in zip(parts[:3], whole[:3], strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12 * np.abs(y).max())
        assert parts.doubtful == whole.doubtful


def test_a_pendulum_at_rest_at_the_bottom_by_the_midpoint_rule() -> None:
    """Check a pendulum at rest, where energy needs no correction: A is the Cayley transform of the linear oscillator."""
    sim = fw.Simulation(pendulum(), 0.01, "midpoint")
    F = np.array([[0.0, 1.0], [-1.5 * 9.81 * 0.4 / 0.29, 0.0]])
    cayley = np.linalg.solve(np.eye(2) - 0.005 * F, np.eye(2) + 0.005 * F)
    np.testing.assert_allclose(sim.derivatives().A, cayley, rtol=1e-12)


# --- contacts


def ball_on_a_slope(gap: float, velocity: Any, integrator: str = "semi-implicit", **how: Any) -> StepDerivatives:
    """Return a ball on a slope; `velocity` is linear and angular, in the world and in the body."""
    robot, center = free_bodies(solid_ball(2.0, 0.1)), np.array([0.01, 0.0, 0.02])
    plane = fw.Plane(normal=(0.2, 0.1, 1.0))
    spheres = [fw.ContactSphere("body0", 0.1, tuple(center))]
    sim = fw.Simulation(robot, H, integrator, spheres=spheres, ground=plane, contact=tight(**how))
    q = pose((0.1 + gap) * np.array(plane.normal) - TURN.apply(center), TURN)
    v = np.concatenate([TURN.inv().apply(velocity[:3]), velocity[3:]])
    return agreed(sim, q, v, np.array([0.1, 0.2, 0.3, 0.01, 0.02, 0.03]))


SLIDING, FALLING = [0.6, 0.2, -0.5, 0.3, 0.2, 0.1], [0.1, 0.2, -0.5, 0.3, 0.2, 0.1]


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("gap", [2e-4, -2e-4, -3e-3])
def test_a_ball_sticks_and_slides(integrator: str, gap: float) -> None:
    """Check also a ball before contact, and one that the step separates from the ground, in whole or as far as it may."""
    assert ball_on_a_slope(gap, FALLING, integrator, friction=0.8).doubtful == ()
    assert ball_on_a_slope(gap, SLIDING, integrator, friction=0.05).doubtful == ()


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_ball_bounces(integrator: str) -> None:
    for friction in (0.05, 0.9):
        assert ball_on_a_slope(2e-4, SLIDING, integrator, friction=friction, restitution=0.6).doubtful == ()


def test_pyramids_no_friction_and_no_contact() -> None:
    assert ball_on_a_slope(2e-4, SLIDING, friction=0.05, pyramid=True).doubtful == ()
    assert ball_on_a_slope(2e-4, SLIDING, friction=0.0).doubtful == ()
    assert ball_on_a_slope(9e-4, [0.1, 0.2, 0.5, 0.0, 0.0, 0.0]).doubtful == ()


def test_restitution_that_friction_would_make_gain_energy() -> None:
    """Check that the step reduces the restitution, by an amount that depends on the state."""
    rod = free_bodies(fw.Inertia(1.0, (0.0, 0.0, 0.0), (0.02, 0.0, 0.0, 0.03, 0.0, 0.002)))
    tip, turn = np.array([0.1, 0.05, -0.3]), Rotation.random(random_state=4)
    rebound = []
    for restitution in (0.9, 0.95):
        spheres = [fw.ContactPoint("body0", tuple(tip))]
        sim = fw.Simulation(rod, H, spheres=spheres, ground=fw.Plane(), contact=tight(friction=0.9, restitution=restitution))
        v = [0.8, 1.7, -3.3, -0.8, -2.9, -0.5]
        agreed(sim, pose(np.array([0.0, 0.0, 1e-4]) - turn.apply(tip), turn), v)
        rebound.append(sim.v)
    np.testing.assert_allclose(rebound[0], rebound[1], rtol=1e-9)  # so the step reduced it


def box_on_the_ground(height: float, v: Any, lean: float = 0.0, small: float = 1e-7, **how: Any) -> StepDerivatives:
    robot = free_bodies(solid_box(3.0, (0.4, 0.3, 0.2)))
    spheres = corners("body0", (0.4, 0.3, 0.2))
    sim = fw.Simulation(robot, H, spheres=spheres, ground=fw.Plane(), contact=tight(**how))
    q = pose((0.0, 0.0, 0.1 + height), Rotation.from_rotvec([lean, 0.7 * lean, 0.3]))
    return agreed(sim, q, np.array(v, dtype=float), small=small)


def test_a_box_on_its_corners() -> None:
    """Check redundant contacts: impulses are not unique, but their effect is."""
    assert box_on_the_ground(5e-5, [0.0, 0.0, -0.1, 0.0, 0.0, 0.0], friction=0.8).doubtful == ()
    assert box_on_the_ground(5e-5, [0.7, 0.1, -0.1, 0.0, 0.0, 0.0], friction=0.3).doubtful == ()
    assert box_on_the_ground(5e-5, [0.7, 0.1, -0.6, 0.0, 0.0, 0.0], friction=0.3, restitution=0.7).doubtful == ()
    assert box_on_the_ground(-1e-4, [0.7, 0.1, -0.1, 0.0, 0.0, 0.0], lean=1e-4, friction=0.3, slop=1e-12).doubtful == ()


def test_overlap_within_the_slop_stays() -> None:
    kept = box_on_the_ground(-5e-6, [0.0, 0.0, -0.1, 0.0, 0.0, 0.0], friction=0.8, slop=1e-5)
    assert kept.doubtful == () and kept.A[2, 2] == pytest.approx(1.0) and abs(kept.A[8, 2]) < 1e-9


def test_overlap_that_is_not_parted_for_the_sake_of_energy() -> None:
    """Check an overlap whose separation would speed the body up, which the step omits (see `energy_guard`)."""
    robot = fw.build(fw.generators.random_tree(3, rng=4, joint_types=("revolute", "planar", "spherical"), masses=(0.2, 5.0)))
    last = robot.bodies[-1].name
    rng = np.random.default_rng(0)
    q, v = robot.random_configuration(rng=rng), 10.0 * rng.standard_normal(robot.nv)
    ground = fw.Plane((0.0, 0.0, robot.frame_placement(last)(q)[2, 3] - 0.04))
    agreed(
        fw.Simulation(robot, H, spheres=[fw.ContactSphere(last, 0.05)], ground=ground, contact=tight(friction=0.0), **NOTHING),
        q,
        v,
    )


def test_a_ball_that_came_to_rest_is_held() -> None:
    """Check a gap of zero up to rounding, whose sign is random: a small overlap stays unchanged, and is not doubtful."""
    robot = free_bodies(solid_ball(2.0, 0.1))
    sim = fw.Simulation(robot, H, spheres=[fw.ContactSphere("body0", 0.1)], ground=fw.Plane(), contact=tight(friction=0.5))
    sim.reset(pose((0.0, 0.0, 0.1005)))
    for _ in range(20):
        sim.step()
    for gap in (0.0, 1e-12, -1e-12):
        sim.q = pose((0.0, 0.0, 0.1 + gap))
        at_rest = sim.derivatives()
        assert not at_rest.doubtful
        np.testing.assert_allclose(at_rest.A[2], np.eye(12)[2], atol=1e-9)
        np.testing.assert_allclose(at_rest.A[8], 0.0, atol=1e-9)


def test_edges_are_doubtful() -> None:
    robot = free_bodies(solid_box(3.0, (0.4, 0.3, 0.2)))
    where = ("the point on 'body0'",)

    def doubtful(z: float, v: Any, **how: Any) -> tuple[str, ...]:
        sim = fw.Simulation(
            robot, H, spheres=corners("body0", (0.4, 0.3, 0.2)), ground=fw.Plane(), contact=fw.ContactOptions(**how)
        )
        sim.reset(pose((0.0, 0.0, 0.1 + z)), np.array(v, dtype=float))
        return sim.derivatives().doubtful

    assert doubtful(0.0, np.zeros(6)) == ()  # at rest
    assert doubtful(1e-4, [0.0, 0.0, -0.1 + 9.81 * H, 0.0, 0.0, 0.0]) == where  # arrives without force
    assert doubtful(5e-5, [0.7, 0.1, -0.1, 0.0, 0.0, 0.4], friction=0.3) == where  # slides and turns
    assert doubtful(5e-5, [0.0, 0.0, -0.1, 0.0, 0.0, 0.0], friction=0.3) == ()
    slide = 0.3 * (0.1 - 0.05 + 9.81 * H)  # impulses per mass: at the limit of friction
    assert doubtful(5e-5, [slide, 0.0, -0.1, 0.0, 0.0, 0.0], friction=0.3) == where


def test_a_ball_on_heights() -> None:
    """Check a ball on a face, an edge between triangles, a vertex and two faces of a valley; contacts are not smooth
    where these meet.
    """
    roof = fw.HeightField([[0.0, 0.1, 0.0], [0.0, 0.2, 0.0], [0.0, 0.1, 0.0]], (-1.0, 1.0), (-1.0, 1.0))
    robot, r = free_bodies(solid_ball(2.0, 0.1)), 0.09999
    sim = fw.Simulation(robot, H, spheres=[fw.ContactSphere("body0", 0.1)], ground=roof, contact=tight(friction=0.2))
    v = np.array([0.3, 0.1, -0.9, 0.2, 0.1, 0.3])
    face = np.array([0.1, 0.1, 1.0]) / np.sqrt(1.02)  # normal of the triangle with the middle, (1, 0) and (1, 1)
    for place in (
        np.array([0.7, 0.2, 0.11]) + r * face,  # a point of the triangle at 0.2 - 0.1 x - 0.1 y
        np.array([0.5, 0.0, 0.15]) + r * np.array([0.1, 0.0, 1.0]) / np.sqrt(1.01),  # the ridge
        np.array([0.0, 0.0, 0.2]) + r * np.array([0.0, 0.0, 1.0]),  # the top
    ):
        assert agreed(sim, pose(place, TURN), v).doubtful == ()
    sim.reset(pose(np.array([0.7, 1e-9, 0.13]) + r * face, TURN), v)
    assert len(sim.derivatives().doubtful) == 1

    valley = fw.HeightField([[0.3, 0.0, 0.3], [0.3, 0.0, 0.3]], (-1.0, 1.0), (-1.0, 1.0))
    sim = fw.Simulation(robot, H, spheres=[fw.ContactSphere("body0", 0.1)], ground=valley, contact=tight(friction=0.2))
    assert agreed(sim, pose((0.1, 1e-6, r * np.sqrt(1.09)), TURN), v).doubtful == ()
    assert len(sim.contacts()[0]) == 2


def test_two_balls() -> None:
    two = free_bodies(solid_ball(2.0, 0.1), solid_ball(1.0, 0.2))
    spheres = [fw.ContactSphere("body0", 0.1, (0.01, 0.0, 0.0)), fw.ContactSphere("body1", 0.2)]
    sim = fw.Simulation(two, H, spheres=spheres, pairs=[(0, 1)], contact=tight(friction=0.3))
    way = np.array([0.3, 0.5, 0.7]) / np.linalg.norm([0.3, 0.5, 0.7])
    q = np.concatenate([pose(-TURN.apply([0.01, 0.0, 0.0]), TURN), pose(0.2999 * way)])
    v = np.concatenate([TURN.inv().apply(0.5 * way), [0.1, 0.0, 0.0], [0.2, 0.3, 0.1, 1.0, 0.0, 0.5]])
    agreed(sim, q, v)


# --- joints


def test_limits_and_dry_friction() -> None:
    sim = fw.Simulation(cart(2.0, dry_friction=3.0, lower=-0.5, upper=0.5, damping=0.2), H, contact=tight())
    force = np.array([0.5])
    assert agreed(sim, [0.1], [1.0], force).A[1, 1] > 0.99  # slides
    np.testing.assert_allclose(agreed(sim, [0.1], [0.0], force).A, [[1.0, 0.0], [0.0, 0.0]], atol=1e-12)  # held
    np.testing.assert_allclose(agreed(sim, [0.4999], [1.0], force).A, [[0.0, 0.0], [-1.0 / H, 0.0]], atol=1e-6)  # arrives
    sim.reset([0.1], [0.0])
    assert sim.derivatives([3.0]).doubtful == ("the dry friction of joint 'rail'",)  # held at the limit of friction


def test_a_loop_that_determines_a_part_of_a_ball_joint() -> None:
    """Check the product of the derivatives of three steps by differences of three steps."""
    inertia = fw.Inertia(1.0, (0.1, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    ball = fw.Joint("ball", fw.JointType.SPHERICAL, None, "rod")
    hinge = fw.Joint("hinge", fw.JointType.REVOLUTE, "rod", "tip", fw.Pose(p=(0.4, 0.0, 0.0)), (0.0, 1.0, 0.0))
    loop = fw.Loop("loop", fw.LoopType.SPHERICAL, None, "tip", fw.Pose(p=(0.6, 0.0, 0.1)), fw.Pose(p=(0.2, 0.0, 0.1)))
    robot = fw.build(fw.describe([fw.Body(name, inertia) for name in ("rod", "tip")], [ball, hinge], loops=[loop]))
    assert robot.split_joint == "ball"
    q, v, tau, n = robot.random_configuration(rng=2), np.full(robot.nv, 0.4), np.full(robot.nv, 0.3), robot.nv
    sim, product = fw.Simulation(robot, 0.01, q=q, v=v), np.eye(2 * n)
    for _ in range(3):
        product = sim.derivatives(tau=tau).A @ product
        sim.step(tau=tau)
    end, columns = sim.q, []

    def after_three(x: Array) -> Array:
        sim.reset(robot.integrate(q, x[:n]), v + x[n:])
        sim.step(tau=tau, steps=3)
        return np.concatenate((robot.difference(end, sim.q), sim.v))

    for x in 1e-5 * np.eye(2 * n):
        columns.append((after_three(x) - after_three(-x)) / 2e-5)
    np.testing.assert_allclose(product, np.transpose(columns), atol=1e-7, rtol=1e-7)


def test_limits_friction_and_contacts_of_a_loop() -> None:
    q = np.array(closed(MECHANISMS["four_bar"]()).close([0.4, 1.0, 1.2]))
    base = with_springs(MECHANISMS["four_bar"](), joint1={"dry_friction": 0.5}, joint3={"dry_friction": 0.5})
    robot = closed(base)
    agreed(fw.Simulation(robot, H, contact=tight()), q, [0.7], np.array([0.3]))
    way = np.sign(robot.spanning_velocity(q, np.ones(1))[2])
    for beyond in (1e-4, -2e-4):  # before the limit of a following joint, and past it
        bounded = with_springs(MECHANISMS["four_bar"](), joint3={"lower": -9.0, "upper": float(q[2]) + beyond})
        agreed(fw.Simulation(fw.build(bounded), H, contact=tight()), q, [0.7 * way], np.array([0.3]))
    tip = robot.frame_placement("link2")(q) @ np.array([0.3, 0.0, 0.0, 1.0])
    down = np.sign(robot.frame_velocity("link2", "world")(q, np.ones(1))[1])
    ground = fw.Plane(tip[:3] - [0.0, 5e-5, 0.0], (0.0, 1.0, 0.2))
    sim = fw.Simulation(
        robot, H, spheres=[fw.ContactPoint("link2", (0.3, 0.0, 0.0))], ground=ground, contact=tight(friction=0.1)
    )
    agreed(sim, q, [-0.7 * down], np.array([0.3]))
    assert len(sim.contacts()[0]) == 1


@pytest.mark.parametrize("integrator", ["semi-implicit", "midpoint"])
def test_a_quadruped_on_its_feet(integrator: str) -> None:
    robot, legs, rng = fw.build(mini_cheetah()), ("FR", "FL", "HR", "HL"), np.random.default_rng(1)
    feet = [fw.ContactPoint(f"{leg}_knee_link", (0.0, 0.0, -0.2)) for leg in legs]
    sim = fw.Simulation(robot, H, integrator, spheres=feet, ground=fw.Plane(), contact=tight(friction=0.6))
    q, v = robot.neutral(), 0.02 * rng.standard_normal(robot.nv)
    places = {j.name: j.q_slice for j in robot.joints}
    for leg in legs:
        q[places[f"{leg}_abad_to_hip_j"]], q[places[f"{leg}_hip_to_knee_j"]] = -0.8, 1.5
    soles = robot.frame_placement([f.frame for f in feet])(q) @ np.array([0.0, 0.0, -0.2, 1.0])
    q[2] -= soles[:, 2].min() - 5e-5
    v[2] -= 0.2
    assert agreed(sim, q, v, 0.5 * rng.standard_normal(robot.nv)).doubtful == ()
    assert len(sim.contacts()[0]) == 4


# --- many robots, and refused cases


def test_many_robots_have_those_of_each_and_go_on_as_they_would() -> None:
    robot, rng = free_bodies(solid_ball(2.0, 0.1)), np.random.default_rng(4)
    sim, alone = (
        fw.Simulation(robot, H, spheres=[fw.ContactSphere("body0", 0.1)], ground=fw.Plane(), contact=tight()) for _ in range(2)
    )
    q = np.stack([pose((0.0, 0.0, 0.1 + gap), TURN) for gap in (1e-4, -1e-4, 0.5)])
    v, tau = rng.standard_normal((3, 6)), rng.standard_normal((3, 6))
    sim.reset(q, v)
    many = sim.derivatives(tau)
    assert many.A.shape == (3, 12, 12) and many.B.shape == (3, 12, 6) and many.B_control.shape == (3, 12, 0)
    sim.step(tau)
    for i in range(3):
        alone.reset(q[i], v[i])
        one = alone.derivatives(tau[i])
        np.testing.assert_allclose(many.A[i], one.A, rtol=1e-12, atol=1e-12)
        assert many.doubtful[i] == one.doubtful
        alone.step(tau[i])
        np.testing.assert_allclose(sim.q[i], alone.q, rtol=1e-15, atol=1e-15)


def test_what_makes_no_sense_is_refused_as_in_a_step() -> None:
    sim = fw.Simulation(pendulum(), 0.01)
    with pytest.raises(ValueError, match=r"tau must have shape \(1,\)"):
        sim.derivatives([1.0, 2.0])
    with pytest.raises(ValueError, match="control must have shape"):
        sim.derivatives(control=[1.0])
    with pytest.raises(fw.SimulationError, match="joint force tau"):
        sim.derivatives([np.nan])


@pytest.mark.parametrize("kind", ["CYLINDER", "BOX", "CAPSULE", "ELLIPSOID"])
def test_contacts_of_shapes(kind: str) -> None:
    """Check a shape that sticks to the ground at one point, or slides and rolls there."""
    size = {"CYLINDER": (0.1, 0.2), "BOX": (0.2, 0.3, 0.25), "CAPSULE": (0.1, 0.2), "ELLIPSOID": (0.1, 0.15, 0.2)}[kind]
    shape = fw.Shape("can", "body0", fw.ShapeType[kind], size)
    robot = fw.Robot(dataclasses.replace(free_bodies(solid_ball(2.0, 0.1)).model, shapes=(shape,), shape_links=("body0",)))
    lowest = {
        "CYLINDER": lambda n: 0.1 * np.hypot(n[0], n[1]) + 0.1 * abs(n[2]), "BOX": lambda n: 0.5 * np.abs(n) @ size,
        "CAPSULE": lambda n: 0.1 + 0.1 * abs(n[2]), "ELLIPSOID": lambda n: np.linalg.norm(n * np.array(size)),
    }[kind]  # fmt: skip
    rng = np.random.default_rng(0)
    for speed in (0.0, 0.5):
        sim = fw.Simulation(robot, H, shapes=True, ground=fw.Plane(), contact=tight(friction=0.4))
        turn = Rotation.random(random_state=rng)
        low = lowest(turn.as_matrix()[2]) - 1e-5
        v = speed * rng.standard_normal(6)
        v[:3] += turn.inv().apply([0.0, 0.0, -0.1])
        assert agreed(sim, pose((0.0, 0.0, low), turn), v, small=1e-7).doubtful == ()
        sim.reset(pose((0.0, 0.0, low), turn), v)
        sim.step()
        assert len(sim.contacts().points) == 1
