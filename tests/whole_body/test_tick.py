"""One tick of whole-body control: optimality, dynamics, limits and priorities."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight.array_types import Array
from oracles.pinocchio_models import Peer
from whole_body.humanoids import CORNERS, FEET, FRICTION, problem, residual, skew, soles, talos, targets

TASKS = (
    fw.CenterOfMassTask(weight=[1.0, 2.0, 3.0]),
    fw.FrameTask("torso_2_link", "orientation", weight=0.5),
    fw.FrameTask("gripper_left_base_link", weight=[0.1, 0.2, 0.3, 0.01, 0.02, 0.0], stiffness=30.0),
    fw.FrameTask("gripper_right_base_link", "position", weight=0.1, damping=3.0),
    fw.AngularMomentumTask(weight=1e-3),
    fw.PostureTask(weight=0.01, stiffness=50.0),
)


def disturbed(number: int) -> tuple[Array, Array]:
    """Return a state near that of standing."""
    robot, q = talos()
    rng = np.random.default_rng(number)
    return robot.integrate(q, 0.03 * rng.standard_normal(robot.nv)), 0.2 * rng.standard_normal(robot.nv)


def controller(**options: Any) -> fw.WholeBodyControl:
    return fw.WholeBodyControl(talos().robot, TASKS, soles(), limit_rate=0.0, **options)


def force_of_contacts(wrenches: Array, q: Array) -> Array:
    """Return the joint forces that wrenches on the feet amount to."""
    J = talos().robot.frame_jacobian(FEET, "local")(q)
    return np.asarray(np.einsum("kij,ki->j", J, wrenches))


@pytest.mark.parametrize("away", [0.0, 0.3], ids=["within limits", "at limits"])
@pytest.mark.parametrize("number", range(5))
def test_a_tick_is_optimal(number: int, away: float) -> None:
    """The conditions of optimality hold to 1e-8 for matrices that do not come from the kernel."""
    (robot, start), (q, v), wbc = talos(), disturbed(number), controller()
    given = targets(TASKS, robot, start)
    given["center of mass"] = given["center of mass"] + [0.0, away, 0.0]
    result = wbc(q, v, given)
    assert result.status == "solved"
    p, x = problem(wbc, q, v, given), np.append(result.acceleration, result.forces)
    np.testing.assert_allclose(p.E @ x, p.e, atol=1e-8)
    np.testing.assert_allclose(result.tau[6:], p.N @ x + p.h, atol=1e-8)
    assert residual(wbc, p, result) < 1e-8
    if away:
        assert wbc.state.size[0] > 3


@pytest.mark.parametrize("edges", [0, 4, 8])
def test_forces_stay_in_their_cones_and_limits(edges: int) -> None:
    """A centre of mass that must move sideways by 1 m needs more friction, and up by 1 m more effort, than there is."""
    (robot, start), wbc = talos(), controller(friction_edges=edges)
    given, still = targets(TASKS, robot, start), np.zeros(robot.nv)
    least, most = robot.effort_bounds
    at_cone = at_limit = False
    for away in np.vstack([np.eye(3), -np.eye(3)]):
        result = wbc(start, still, {**given, "center of mass": given["center of mass"] + away})
        assert result.status == "solved"
        sideways, normal = np.hypot(*result.forces[:, :2].T), result.forces[:, 2]
        assert (sideways <= FRICTION * normal + 1e-7).all()
        assert (result.tau >= least).all() and (result.tau <= most).all()
        at_cone |= bool((np.abs(sideways - FRICTION * normal)[normal > 1.0] < 1e-6).any())
        at_limit |= bool(np.isclose(result.tau, most).any() or np.isclose(result.tau, least).any())
        left = robot.inverse_dynamics(start, still, result.acceleration) - force_of_contacts(result.wrenches, start)
        np.testing.assert_allclose(left, result.tau, atol=1e-8)
    assert at_cone or edges  # forces in a pyramid touch the cone at the pyramid's edges only
    assert at_limit


def test_more_edges_approach_the_cone() -> None:
    (robot, start), costs = talos(), []
    given, still = targets(TASKS, robot, start), np.zeros(robot.nv)
    given["center of mass"] = given["center of mass"] + [1.0, 0.7, 0.0]
    for edges in (4, 8, 16, 32, 0):
        wbc = controller(friction_edges=edges)
        result, p = wbc(start, still, given), problem(wbc, start, still, given)
        costs.append(np.sum((p.A @ np.append(result.acceleration, result.forces) - p.b) ** 2))
    np.testing.assert_allclose(costs, sorted(costs, reverse=True), rtol=1e-9)
    assert costs[-2] < 1.01 * costs[-1]


def test_the_dynamics_are_those_of_pinocchio() -> None:
    (robot, start), (q, v), wbc = talos(), disturbed(1), controller()
    result = wbc(q, v, targets(TASKS, robot, start))
    model = pin.buildModelFromUrdf(str(fw.example("talos_reduced")), pin.JointModelFreeFlyer())
    peer = Peer(robot, model)
    tau = peer.inverse_dynamics(q[None], v[None], result.acceleration[None])[0]
    J = peer.frame_jacobian(list(FEET), "local", q[None])[0]
    left = tau - np.einsum("kij,ki->j", J, result.wrenches)
    np.testing.assert_allclose(left, result.tau, atol=1e-8)  # of moments up to 100 N m
    np.testing.assert_allclose(left[:6], 0.0, atol=1e-8)


def test_wrenches_are_those_of_the_forces_at_the_points() -> None:
    (robot, start), (q, v), wbc = talos(), disturbed(2), controller()
    result = wbc(q, v, targets(TASKS, robot, start))
    for wrench, forces in zip(result.wrenches, result.forces.reshape(2, 4, 3), strict=True):
        moment = sum(skew(p) @ f for p, f in zip(CORNERS, forces, strict=True))
        np.testing.assert_allclose(wrench, np.append(forces.sum(axis=0), moment), atol=1e-9)


def test_a_foot_in_the_air_has_no_force_and_moves_freely() -> None:
    (robot, start), wbc = talos(), controller()
    still = np.zeros(robot.nv)
    result = wbc(start, still, targets(TASKS, robot, start), contacts=[FEET[0]])
    assert result.status == "solved"
    np.testing.assert_allclose(result.wrenches[1], 0.0, atol=1e-9)
    motion = robot.frame_jacobian(FEET, "local")(start) @ result.acceleration
    np.testing.assert_allclose(motion[0], 0.0, atol=1e-9)
    assert np.abs(motion[1]).max() > 0.01


def test_the_greatest_force_of_a_contact_is_kept() -> None:
    robot, start = talos()
    half, least = 0.5 * robot.mass * 9.81, 0.4 * robot.mass * 9.81
    wbc = fw.WholeBodyControl(robot, TASKS, [soles(max_force=least)[0], soles()[1]])
    result = wbc(start, np.zeros(robot.nv), targets(TASKS, robot, start))
    assert result.wrenches[0, 2] == pytest.approx(least)
    assert result.wrenches[1, 2] > half


def test_a_lower_priority_does_not_disturb_a_higher_one() -> None:
    """Check that a posture changes the acceleration of the centre of mass with weights, but not with priorities."""
    robot, start = talos()
    bent = start.copy()
    bent[robot.joint("leg_left_4_joint").q_slice] += 0.5
    given = {"center of mass": robot.center_of_mass(start) + np.array([0.0, 0.01, 0.0]), "posture": bent}
    errors = []
    for priority in (0, 1):
        tasks = [fw.CenterOfMassTask(), fw.PostureTask(priority=priority)]
        wbc = fw.WholeBodyControl(robot, tasks, soles())
        result = wbc(start, np.zeros(robot.nv), given)
        assert result.status == "solved"
        wanted = 100.0 * np.array([0.0, 0.01, 0.0])
        errors.append(np.abs(robot.center_of_mass_jacobian(start) @ result.acceleration - wanted).max())
        left = robot.inverse_dynamics(start, np.zeros(robot.nv), result.acceleration)
        np.testing.assert_allclose(left - force_of_contacts(result.wrenches, start), result.tau, atol=1e-8)
    assert errors[0] > 0.1
    assert errors[1] < 1e-3  # the small weights of accelerations and forces


def test_the_lower_priority_is_optimal_in_the_remaining_freedom() -> None:
    """The second level is the solution of a problem in which the first is nearly infinitely heavy."""
    robot, start = talos()
    bent = robot.integrate(start, np.append(np.zeros(6), 0.05 * np.random.default_rng(0).standard_normal(robot.nv - 6)))
    given = {"center of mass": robot.center_of_mass(start), "posture": bent}
    found = []
    for weight, priority in ((1.0, 1), (1e6, 0)):
        tasks = [fw.CenterOfMassTask(weight=weight), fw.PostureTask(priority=priority)]
        found.append(fw.WholeBodyControl(robot, tasks, soles())(start, np.zeros(robot.nv), given).acceleration)
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)
    assert np.abs(found[0]).max() > 0.5


def test_an_arm_without_contacts_follows_the_law_of_its_task() -> None:
    robot = fw.load(fw.example("panda"), mimic="independent")
    q, v, a = 0.5 * (robot.lower + robot.upper), 0.1 * np.ones(robot.nv), np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    hand = fw.FrameTask("panda_hand", stiffness=80.0, damping=5.0)
    wbc = fw.WholeBodyControl(robot, [hand], limit_rate=0.0, acceleration_weight=1e-9)
    T, J = robot.frame_placement("panda_hand")(q), robot.frame_jacobian("panda_hand")(q)
    result = wbc(q, v, {"panda_hand": T}, velocities={"panda_hand": J @ v + 0.1}, accelerations={"panda_hand": a})
    assert result.status == "solved"
    drift = robot.frame_bias_acceleration("panda_hand")(q, v)
    np.testing.assert_allclose(J @ result.acceleration + drift, a + 0.5, atol=1e-5)  # less the weight of accelerations
    np.testing.assert_allclose(result.tau, robot.inverse_dynamics(q, v, result.acceleration), atol=1e-9)


@pytest.mark.parametrize("execution", ["rolled", "interpreted"])
def test_a_robot_without_straight_code_has_the_same_forces(execution: str) -> None:
    found = []
    for own in ("traced", execution):
        robot = fw.load(fw.example("so100"), execution=own)
        tasks = [fw.FrameTask(robot.frames[-1].name, "position"), fw.PostureTask(priority=1)]
        q, v = robot.neutral(), np.full(robot.nv, 0.1)
        target = np.array([0.1, -0.2, 0.3])
        found.append(fw.WholeBodyControl(robot, tasks)(q, v, {tasks[0].called: target, "posture": q + 0.1}).tau)
    np.testing.assert_allclose(found[1], found[0], rtol=0.0, atol=1e-9)


def test_a_robot_with_loops_stands() -> None:
    """Tello's legs are differentials; its joint forces are those of the independent joints."""
    robot = fw.build(fw.robots.tello(), base="floating")
    q, v = robot.neutral(), np.zeros(robot.nv)
    tasks = [fw.CenterOfMassTask(), fw.PostureTask(weight=0.1)]
    heel_and_toe = [(-0.05, 0.02, 0.0), (0.1, 0.02, 0.0), (-0.05, -0.02, 0.0), (0.1, -0.02, 0.0)]
    feet = [fw.UnilateralContact(f"{side}-foot", heel_and_toe) for side in ("left", "right")]
    wbc = fw.WholeBodyControl(robot, tasks, feet)
    result = wbc(q, v, targets(tasks, robot, q))
    assert result.status == "solved"
    J = robot.frame_jacobian([c.frame for c in feet], "local")(q)
    np.testing.assert_allclose(J @ result.acceleration, 0.0, atol=1e-8)
    left = robot.inverse_dynamics(q, v, result.acceleration) - np.einsum("kij,ki->j", J, result.wrenches)
    np.testing.assert_allclose(left, result.tau, atol=1e-8)
    np.testing.assert_allclose(left[:6], 0.0, atol=1e-8)
    R = robot.frame_placement([c.frame for c in feet])(q)[:, :3, :3]
    force = robot.mass * (robot.center_of_mass_acceleration(q, v, result.acceleration) + np.array([0.0, 0.0, 9.81]))
    np.testing.assert_allclose(np.einsum("kij,kj->i", R, result.wrenches[:, :3]), force, atol=1e-8)


@pytest.mark.parametrize("points", [1, 2, 4])
def test_a_contact_keeps_as_many_directions_as_its_points_do(points: int) -> None:
    rows = fw.UnilateralContact("foot", CORNERS[:points]).rows
    assert np.linalg.matrix_rank(rows) == len(rows) == {1: 3, 2: 5, 4: 6}[points]
    for p in CORNERS[:points]:  # the velocity of each point is a combination of the rows
        every = np.vstack([rows, np.hstack([np.eye(3), -skew(p)])])
        assert np.linalg.matrix_rank(every, tol=1e-9) == len(rows)


def test_limits_of_positions_and_velocities_are_approached_without_passing_them() -> None:
    robot = fw.load(fw.example("panda"), mimic="independent")
    q, dt = 0.5 * (robot.lower + robot.upper), 1e-3
    v, target = np.zeros(robot.nv), q + 10.0
    wbc = fw.WholeBodyControl(robot, fw.PostureTask(stiffness=400.0), limit_rate=5.0)
    for _ in range(3000):
        result = wbc(q, v, {"posture": target})
        assert result.status == "solved"
        v = v + dt * result.acceleration
        q = robot.integrate(q, dt * v)
        assert (np.abs(v) <= robot.velocity_limit * 1.001).all()
        assert (q <= robot.upper + 1e-6).all()
    assert (q > robot.upper - 0.05).all()


def test_limits_that_exclude_each_other_are_reported_by_name() -> None:
    """A joint that moves toward its limit at full speed, 0.1 rad away, needs more effort to stop than there is."""
    robot = fw.load(fw.example("panda"), mimic="independent")
    joint = robot.joint("panda_joint2")
    q, v = 0.5 * (robot.lower + robot.upper), np.zeros(robot.nv)
    q[joint.q_slice], v[joint.v_slice] = robot.upper[joint.q_slice] - 0.1, robot.velocity_limit[joint.v_slice]
    result = fw.WholeBodyControl(robot, fw.PostureTask())(q, v, {"posture": q})
    assert result.status == "infeasible"
    assert {"position or velocity limit of 'panda_joint2'", "effort limit of 'panda_joint2'"} <= {*result.blocking}
    least, most = robot.effort_bounds
    assert (result.tau >= least).all() and (result.tau <= most).all()


def test_a_fall_that_no_force_stops_is_infeasible() -> None:
    robot, start = talos()
    v = np.zeros(robot.nv)
    v[robot.joint("arm_left_4_joint").v_slice] = -300.0
    result = fw.WholeBodyControl(robot, TASKS, soles())(start, v, targets(TASKS, robot, start))
    assert result.status == "infeasible"
    assert result.blocking
    assert np.isfinite(result.tau).all()


def test_a_planned_contact_that_measurements_show_open_is_named() -> None:
    (robot, start), wbc = talos(), controller()
    still, given = np.zeros(robot.nv), targets(TASKS, robot, start)
    both = dict.fromkeys(FEET, 400.0)
    assert wbc(start, still, given, measured=both).open_contacts == ()
    assert wbc(start, still, measured={**both, FEET[1]: 3.0}).open_contacts == (FEET[1],)
    assert wbc(start, still, distances={FEET[0]: 0.004, FEET[1]: 0.0}).open_contacts == (FEET[0],)
    assert wbc(start, still, contacts=[FEET[1]], distances={FEET[0]: 0.004}).open_contacts == ()


def test_copies_and_pickles_go_on_with_the_same_targets_and_state() -> None:
    (robot, start), wbc = talos(), controller()
    given = targets(TASKS, robot, start)
    q, v = disturbed(3)
    wbc(q, v, {**given, "center of mass": given["center of mass"] + [0.3, 0.0, 0.0]})
    others = copy.copy(wbc), pickle.loads(pickle.dumps(wbc))
    result = wbc(q, v)
    for other in others:
        np.testing.assert_array_equal(other(q, v).tau, result.tau)
    fresh = controller()
    fresh.state = wbc.state
    assert fresh.state.size[0] == wbc.state.size[0] > 0


def test_the_state_saves_steps() -> None:
    (robot, start), wbc = talos(), controller()
    q, v = disturbed(4)
    given = targets(TASKS, robot, start)
    given["center of mass"] = given["center of mass"] + [0.3, 0.0, 0.0]
    cold, warm = wbc(q, v, given), wbc(q, v)
    assert warm.steps < cold.steps
    np.testing.assert_allclose(warm.tau, cold.tau, atol=1e-5)


def test_errors_name_what_is_wrong() -> None:
    (robot, start), wbc = talos(), controller()
    still, given = np.zeros(robot.nv), targets(TASKS, robot, start)
    with pytest.raises(ValueError, match="give targets for center of mass, "):
        wbc(start, still)
    with pytest.raises(ValueError, match="no task 'centre of mass'"):
        wbc(start, still, {**given, "centre of mass": np.zeros(3)})
    with pytest.raises(ValueError, match=r"target of 'center of mass' must have shape \(3,\); got \(2,\)"):
        wbc(start, still, {**given, "center of mass": np.zeros(2)})
    with pytest.raises(ValueError, match=r"q must have shape \(39,\); got \(3,\)"):
        wbc(np.zeros(3), still, given)
    with pytest.raises(ValueError, match="no contact 'left'"):
        wbc(start, still, given, contacts=["left"])
    with pytest.raises(ValueError, match="two tasks are called 'posture'"):
        fw.WholeBodyControl(robot, [fw.PostureTask(), fw.PostureTask()])
    with pytest.raises(ValueError, match="at least one task"):
        fw.WholeBodyControl(robot, [])
    with pytest.raises(TypeError, match="WholeBodyControl takes FrameTask"):
        fw.WholeBodyControl(robot, ["posture"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="friction_edges must be 0, or at least 3"):
        fw.WholeBodyControl(robot, fw.PostureTask(), friction_edges=2)
    with pytest.raises(ValueError, match="points must be"):
        fw.UnilateralContact("foot", np.zeros((0, 3)))
