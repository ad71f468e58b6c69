"""Tests of inverse kinematics of all types of robots: solutions are within limits and correct by Pinocchio's kinematics."""

from __future__ import annotations

import functools
import pickle
import threading

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.generators import from_parents
from featherweight.robot.inverse_kinematics.tasks import IkTask
from oracles import pinocchio_models
from oracles.mechanisms import MECHANISMS
from oracles.robots import example

Array = np.ndarray
HAND = "panda_hand"
KEPT = 1e-9  # change of higher priorities by lower ones


@functools.cache
def panda() -> fw.Robot:
    return example("panda")


@functools.cache
def hand() -> fw.InverseKinematics:
    return fw.InverseKinematics(panda(), fw.FrameTask(HAND))


def hand_targets(count: int, seed: int = 0) -> Array:
    return panda().frame_placement(HAND)(panda().random_configuration(rng=seed, size=count))


def limits_of(robot: fw.Robot) -> tuple[Array, Array]:
    lower, upper = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
    for j in robot.joints:
        if j.type.nv == 1 and j.q_slice.stop > j.q_slice.start:
            lower[j.q_slice], upper[j.q_slice] = j.lower, j.upper
    return lower, upper


def within_limits(robot: fw.Robot, q: Array) -> bool:
    lower, upper = limits_of(robot)
    return bool(((q >= lower) & (q <= upper)).all())


def turn_between(a: Array, b: Array) -> Array:
    """Return the angles between orientations (..., 3, 3) by the sine, because they are small."""
    R = np.swapaxes(a, -1, -2) @ b
    return np.linalg.norm(R - np.swapaxes(R, -1, -2), axis=(-2, -1)) / np.sqrt(8.0)


@pytest.mark.usefixtures("hasty")
def test_threads_share_a_solver() -> None:
    targets, found = hand_targets(8), dict[int, Array]()
    threads = [threading.Thread(target=lambda k=k: found.update({k: hand().solve(targets[k], rng=0).q})) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, target in enumerate(targets):
        assert np.array_equal(found[k], hand().solve(target, rng=0).q)


# poses of an arm


def test_reachable_poses_are_reached_by_pinocchios_kinematics_too() -> None:
    targets = hand_targets(500)
    found = hand().solve(targets, rng=1)
    assert found.converged.mean() >= 0.995
    q = found.q[found.converged][:100]
    poses = pinocchio_models.example("panda").frame_placement([HAND], q)[:, 0]
    wanted = targets[found.converged][:100]
    assert np.linalg.norm(poses[:, :3, 3] - wanted[:, :3, 3], axis=1).max() <= 1e-6
    assert turn_between(poses[:, :3, :3], wanted[:, :3, :3]).max() <= 1e-6
    assert found.errors[found.converged].max() <= 1e-6
    assert within_limits(panda(), found.q)


def test_one_problem_from_nearby_takes_few_iterations() -> None:
    [target] = hand_targets(1)
    q = hand().solve(target).q
    found = hand().solve(target, q + 0.01)
    assert found.converged is True and found.restarts == 0 and found.iterations <= 4
    assert found.q.shape == (9,) and found.errors.shape == (2,)
    assert abs(panda().frame_placement(HAND)(found.q) - target).max() < 1e-6


def test_results_follow_from_the_seed() -> None:
    targets = hand_targets(40)
    one, same, other = (hand().solve(targets, rng=seed) for seed in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not np.array_equal(one.q, other.q)
    assert np.array_equal(hand().solve(targets[0], rng=3).q, hand().solve(targets[0], rng=3).q)


def test_a_search_does_not_begin_where_the_same_seed_draws_a_configuration() -> None:
    robot = panda()
    for seed in range(5):
        q = robot.random_configuration(rng=seed)
        for targets in (robot.frame_placement(HAND)(q), robot.frame_placement(HAND)(q[None])):
            assert np.abs(hand().solve(targets, rng=seed).q - q).max() > 1e-3  # the arm has one joint more than a pose needs
            drawn = hand().solve(targets, rng=np.random.default_rng(seed))
            np.testing.assert_allclose(drawn.q.reshape(-1), q, atol=1e-12)  # equal to a generator with that seed


def test_batches_have_any_axes() -> None:
    targets = hand_targets(6)
    q0 = panda().random_configuration(rng=5, size=(2, 1))
    found = hand().solve(targets.reshape(3, 2, 4, 4)[:, :1], q0[:, 0])
    assert found.q.shape == (3, 2, 9) and found.errors.shape == (3, 2, 2) and found.converged.shape == (3, 2)
    assert hand().solve(targets[:0]).q.shape == (0, 9)
    assert hand().solve(targets[0], q0).q.shape == (2, 1, 9)


def test_where_one_begins_is_not_changed_and_may_be_past_limits() -> None:
    [target] = hand_targets(1)
    for q0 in (np.full(9, 10.0), np.full((2, 9), 10.0)):
        before = q0.copy()
        found = hand().solve(target, q0)
        assert np.array_equal(q0, before) and np.all(found.converged) and within_limits(panda(), found.q)


def test_what_is_out_of_reach_is_not_converged_and_has_the_least_error() -> None:
    """Check a position 3 m away: the arm reaches as far as its limits allow, which no other configuration exceeds.

    Other local minima exist within the limits: at most two of 60 seeds reach the global one, and at least six with 20 restarts.
    """
    ik = fw.InverseKinematics(panda(), fw.FrameTask(HAND, "position"))
    far = np.array([3.0, 0.0, 0.333])
    reach = np.linalg.norm(
        panda().frame_placement(HAND)(panda().random_configuration(rng=0, size=20_000))[:, :3, 3] - far, axis=1
    )
    for found in (ik.solve(far, restarts=100), ik.solve(far[None], restarts=100)):
        assert not np.any(found.converged)
        assert found.errors.max() == pytest.approx(np.linalg.norm(far - [0.0, 0.0, 0.333]) - 0.8 - 0.05, abs=0.1)
        assert found.errors.max() < reach.min()
        assert within_limits(panda(), found.q)
        assert np.all(np.array(found.restarts) == 100)


def test_least_errors_have_no_gradient_that_limits_let_it_follow() -> None:
    ik = fw.InverseKinematics(panda(), fw.FrameTask(HAND, "position"))
    far = np.array([1.5, 0.4, 0.3])
    q = ik.solve(far, restarts=10).q
    J = panda().frame_jacobian(HAND)(q)[:3]
    downhill = J.T @ (far - panda().frame_placement(HAND)(q)[:3, 3])
    lower, upper = limits_of(panda())
    free = ~(((q <= lower + 1e-9) & (downhill < 0.0)) | ((q >= upper - 1e-9) & (downhill > 0.0)))
    assert abs(downhill[free]).max() < 1e-5


# kinds of tasks


def test_rows_of_weight_zero_are_left_out() -> None:
    """Check a hand that may turn about its own z axis, and one that may be anywhere at a height."""
    robot = panda()
    [target] = hand_targets(1, seed=4)
    found = fw.InverseKinematics(robot, fw.FrameTask(HAND, weight=[1, 1, 1, 1, 1, 0])).solve(target, rng=2)
    pose = robot.frame_placement(HAND)(found.q)
    assert (
        found.converged
        and abs(pose[:3, 3] - target[:3, 3]).max() < 1e-6
        and pose[:3, 2] == pytest.approx(target[:3, 2], abs=1e-6)
    )
    assert turn_between(pose[:3, :3], target[:3, :3]) > 1e-3
    found = fw.InverseKinematics(robot, fw.FrameTask(HAND, "position", weight=[0, 0, 1])).solve([9.0, 9.0, 0.5], rng=2)
    assert found.converged and robot.frame_placement(HAND)(found.q)[2, 3] == pytest.approx(0.5, abs=1e-6)


def test_orientations_are_reached_alone() -> None:
    [target] = hand_targets(1, seed=5)
    found = fw.InverseKinematics(panda(), fw.FrameTask(HAND, "orientation")).solve(target[:3, :3])
    assert found.converged and turn_between(panda().frame_placement(HAND)(found.q)[:3, :3], target[:3, :3]) < 1e-6


def test_frames_of_ones_own_are_reached() -> None:
    """Check a frame on the hand, against the pose of the hand that places it there."""
    at = fw.Pose(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)), (0.0, 0.02, 0.1034))
    homogeneous = np.eye(4)
    homogeneous[:3, :3], homogeneous[:3, 3] = at.R, at.p
    [target] = hand_targets(1, seed=6)
    ik = fw.InverseKinematics(panda(), fw.FrameTask(fw.Frame("tip", HAND, at)))
    found = ik.solve(target @ homogeneous)
    assert ik.error_names == ("tip position", "tip orientation")
    assert found.converged and abs(panda().frame_placement(HAND)(found.q) - target).max() < 2e-6


def test_weights_trade_errors_as_their_squares() -> None:
    """Check two targets for a point on a slider: it rests at their weighted mean."""
    slider = fw.Description(
        "slider",
        "made",
        (fw.Body("sled", fw.Inertia(1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))),),
        (fw.Joint("slide", fw.JointType.PRISMATIC, None, "sled", axis=(1.0, 0.0, 0.0), lower=-5.0, upper=5.0),),
    )
    robot = fw.build(slider, execution="interpreted")
    tasks = [fw.FrameTask("sled", "position", weight=w, tolerance=np.inf, name=name) for w, name in ((1.0, "a"), (3.0, "b"))]
    ik = fw.InverseKinematics(robot, tasks)
    found = ik.solve({"a": [0.0, 0.0, 0.0], "b": [1.0, 0.0, 0.0]}, [0.0])
    assert found.converged and found.q == pytest.approx([0.75], abs=1e-7)
    held = ik.solve({"a": [6.0, 0.0, 0.0], "b": [9.0, 0.0, 0.0]}, [0.0])
    assert held.q == pytest.approx([5.0], abs=1e-12) and held.q[0] <= 5.0


# priorities


def test_lower_priorities_leave_higher_ones_as_they_are() -> None:
    """Check position, direction and posture of the hand, in this order: to 1e-9, each as well as those above allow."""
    robot = panda()
    target = hand_targets(10, seed=7)
    rest = robot.neutral()
    rest[3] = -1.5
    tasks: list[IkTask] = [
        fw.FrameTask(HAND, "position", tolerance=KEPT, name="place"),
        fw.FrameTask(HAND, "orientation", priority=1, weight=[1, 1, 0], name="direction"),
        fw.PostureTask(priority=2, weight=0.1),
    ]
    ik = fw.InverseKinematics(robot, tasks)
    assert ik.error_names == ("place position", "direction orientation", "posture")
    found = ik.solve([target[:, :3, 3], target[:, :3, :3], rest], rng=1)
    good = found.converged  # some do not converge
    assert good.mean() >= 0.8 and found.errors[good, 0].max() <= KEPT
    assert within_limits(robot, found.q)
    for q, pose in zip(found.q[good], target[good], strict=True):
        _stationary(robot, q, pose, rest)


def _stationary(robot: fw.Robot, q: Array, pose: Array, rest: Array) -> None:
    """Check that the posture's error has no component in the null space of higher rows and of joints at limits."""
    lower, upper = limits_of(robot)
    inside = (q > lower + 1e-7) & (q < upper - 1e-7)
    J = robot.frame_jacobian(HAND)(q)
    axes = pose[:3, :3].T @ J[3:]
    rows = np.vstack([J[:3], axes[:2]])[:, inside]
    _, sizes, V = np.linalg.svd(rows)
    null = V[np.count_nonzero(sizes > 1e-6 * sizes[0]) :]
    assert np.linalg.norm(null @ (rest - q)[inside]) < 1e-4


def test_a_wish_that_cannot_be_met_does_not_move_what_comes_first() -> None:
    targets = hand_targets(20, seed=8)
    pull = np.array([5.0, 5.0, 5.0])
    elbow = fw.FrameTask("panda_link4", "position", priority=1)
    ik = fw.InverseKinematics(panda(), [fw.FrameTask(HAND, tolerance=KEPT), elbow])
    found = ik.solve([targets, pull], rng=1)
    plain = hand().solve(targets, found.q)
    assert found.converged.mean() >= 0.9 and found.errors[found.converged][:, :2].max() <= KEPT
    assert (plain.iterations[found.converged] <= 3).all() and abs(plain.q - found.q)[found.converged].max() < 1e-8


# kinds of robots


def test_joints_of_every_kind_and_branches() -> None:
    kinds = ("revolute", "prismatic", "spherical", "planar")
    description = from_parents([-1, 0, 1, 0, 3, 4], rng=49, joint_types=kinds)
    assert {str(j.type) for j in description.joints} == set(kinds)
    robot = fw.build(description)
    ik = fw.InverseKinematics(robot, [fw.FrameTask("body2"), fw.FrameTask("body5", "position")])
    wanted = robot.random_configuration(rng=1, size=50)
    one, other = (robot.frame_placement(name)(wanted) for name in ("body2", "body5"))
    found = ik.solve([one, other[:, :3, 3]], rng=2)
    assert found.converged.mean() >= 0.95
    q = found.q[found.converged][0]
    poses = pinocchio_models.from_description(description, robot).frame_placement(["body2", "body5"], q[None])[0]
    assert abs(poses[0] - one[found.converged][0]).max() < 2e-6
    assert abs(poses[1, :3, 3] - other[found.converged][0][:3, 3]).max() < 2e-6
    assert within_limits(robot, found.q)


@pytest.mark.parametrize("kind", ["spherical", "planar", "floating", "prismatic"])
def test_postures_of_joints_of_every_kind(kind: str) -> None:
    robot = fw.build(from_parents([-1, 0] if kind != "floating" else [-1], rng=2, joint_types=[kind]), execution="interpreted")
    ik = fw.InverseKinematics(robot, fw.PostureTask(tolerance=1e-8))
    wanted, start = robot.random_configuration(rng=1), robot.random_configuration(rng=2)
    found = ik.solve(wanted, start, restarts=0)
    assert found.converged
    assert np.linalg.norm(robot.difference(found.q, wanted)) < 1e-7
    assert found.errors == pytest.approx([np.linalg.norm(robot.difference(found.q, wanted))], abs=1e-9)


def test_a_result_that_keeps_all_tolerances_has_converged() -> None:
    robot = fw.build(from_parents([-1], rng=1, joint_types=["floating"]), execution="interpreted")
    ik, far = fw.InverseKinematics(robot, fw.FrameTask("body0", "position")), np.array([50.0, 0.0, 0.0])
    for target in (far, far[None]):
        found = ik.solve(target, robot.neutral(), iterations=1, restarts=0, rng=0)
        assert np.all(found.converged) and found.errors.max() < 1e-5


def test_a_robot_with_one_joint() -> None:
    robot = fw.build(from_parents([-1], rng=1), execution="interpreted")
    ik = fw.InverseKinematics(robot, fw.FrameTask("body0"))
    wanted = robot.random_configuration(rng=3)
    found = ik.solve(robot.frame_placement("body0")(wanted), rng=1)
    assert found.converged and found.q == pytest.approx(wanted, abs=1e-6)
    away = np.eye(4)
    away[:3, 3] = 10.0
    assert not ik.solve(away, restarts=3).converged


def test_a_humanoid_stands_on_two_feet_and_reaches() -> None:
    """Check feet first, then the hand and the centre of mass, then the posture; the free-flyer's position follows."""
    robot = example("simple_humanoid", "interpreted")
    feet, palm = ("l_ankle", "r_ankle"), "r_wrist"
    start = robot.neutral()
    lower, upper = limits_of(robot)
    bent = np.random.default_rng(0).normal(size=robot.nv) * 0.1
    bent[:6] = 0.0
    wanted = np.clip(robot.integrate(start, bent), lower, upper)
    poses = [robot.frame_placement(name)(wanted) for name in (*feet, palm)]
    tasks: list[IkTask] = [
        *(fw.FrameTask(name, tolerance=KEPT) for name in feet),
        fw.FrameTask(palm, "position", priority=1),
        fw.CenterOfMassTask(priority=1, weight=[1.0, 1.0, 0.0]),
        fw.PostureTask(priority=2, weight=0.01),
    ]
    ik = fw.InverseKinematics(robot, tasks)
    start = np.clip(start, lower, upper)
    found = ik.solve([*poses[:2], poses[2][:3, 3], robot.center_of_mass(wanted), start], start, restarts=0)
    assert found.converged and found.errors[:4].max() <= KEPT
    assert found.errors[4] < 1e-6 and np.hypot(*(robot.center_of_mass(found.q) - robot.center_of_mass(wanted))[:2]) < 1e-6
    assert within_limits(robot, found.q)


# loops


@pytest.mark.parametrize("name", ["four_bar", "crank_and_rocker", "geared"])
def test_loops_are_closed_where_tasks_are_kept(name: str) -> None:
    robot = fw.build(MECHANISMS[name]())
    assert isinstance(robot, fw.ClosedRobot)
    frame = robot.frames[-1].name
    ik = fw.InverseKinematics(robot, fw.FrameTask(frame, "position"))
    wanted = robot.frame_placement(frame)(robot.random_configuration(rng=0, size=50))[:, :3, 3]
    found = ik.solve(wanted, rng=1)
    assert found.converged.mean() >= 0.95
    q = found.q[found.converged]
    assert abs(robot.residual(q)).max(initial=0.0) < 1e-9
    assert abs(robot.frame_placement(frame)(q)[:, :3, 3] - wanted[found.converged]).max() < 1e-6
    one = ik.solve(wanted[0], rng=1)
    assert one.converged and abs(robot.residual(one.q)).max(initial=0.0) < 1e-9


@pytest.mark.parametrize("task", [fw.FrameTask("left"), fw.PostureTask(tolerance=1e-8)])
def test_loops_may_be_redundant(task: IkTask) -> None:
    """A second rod beside that of a parallelogram: its constraints depend on those of the first one."""
    inertia = fw.Inertia(1.0, rotational=(0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    bodies = [fw.Body(name, inertia) for name in ("right", "rod", "left")]
    joints = [
        fw.Joint("r", "revolute", None, "right", axis=(0.0, 0.0, 1.0), lower=-3.0, upper=3.0),
        fw.Joint("s", "revolute", "right", "rod", fw.Pose(p=(1.0, 0.0, 0.0)), (0.0, 0.0, 1.0), lower=-3.0, upper=3.0),
        fw.Joint("l", "revolute", None, "left", fw.Pose(p=(0.0, 1.0, 0.0)), (0.0, 0.0, 1.0), lower=-3.0, upper=3.0),
    ]
    ends = (fw.Pose(p=(0.0, 1.0, 0.0)), fw.Pose(p=(1.0, 0.0, 0.0)))
    loops = [fw.Loop(name, fw.LoopType.REVOLUTE, "rod", "left", *ends) for name in ("first", "second")]
    robot = fw.build(fw.describe(bodies, joints, loops=loops))
    wanted = robot.random_configuration(rng=0, size=20)
    targets = robot.frame_placement("left")(wanted) if isinstance(task, fw.FrameTask) else wanted
    found = fw.InverseKinematics(robot, task).solve(targets, rng=0)
    assert isinstance(robot, fw.ClosedRobot)
    assert found.converged.all() and abs(robot.residual(found.q)).max() < 1e-10


def test_loops_are_closed_where_tasks_cannot_be_kept() -> None:
    robot = fw.build(MECHANISMS["four_bar"]())
    assert isinstance(robot, fw.ClosedRobot)
    ik = fw.InverseKinematics(robot, fw.FrameTask(robot.frames[-1].name, "position"))
    found = ik.solve([5.0, 5.0, 5.0], restarts=5)
    assert not found.converged and abs(robot.residual(found.q)).max() < 1e-9


def geared(*coefficients: float) -> fw.Robot:
    """Return two joints, the second of which follows the first, between -0.5 and 0.4 rad."""
    made = from_parents([-1, 0], rng=1)
    lead, follow = made.joints
    description = fw.Description(
        "geared",
        "made",
        made.bodies,
        (
            fw.Joint("lead", lead.type, None, "body0", lead.placement, lead.axis, lower=-3.0, upper=3.0),
            fw.Joint("follow", follow.type, "body0", "body1", follow.placement, follow.axis, lower=-0.5, upper=0.4),
        ),
        couplings=(fw.Coupling("gear", "follow", (("lead", coefficients),)),),
    )
    return fw.build(description, execution="interpreted")


def test_joints_that_others_follow_keep_the_limits_of_those() -> None:
    robot = geared(-2.0)
    ik = fw.InverseKinematics(robot, fw.PostureTask(joints=["lead"]))
    for wish, limit in ((2.0, 0.25), (-2.0, -0.2)):
        assert ik.solve([wish], [0.0], restarts=0).q == pytest.approx([limit], abs=1e-12)


def test_joints_that_couplings_hold_are_left_alone() -> None:
    robot = fw.build(MECHANISMS["locked"](), execution="interpreted")
    assert fw.InverseKinematics(robot, fw.PostureTask()).solve(robot.neutral(), rng=1).converged


def test_where_joints_follow_along_curves_their_limits_tell_what_is_a_solution() -> None:
    """Check a follower at 0.2 q²: q = 2 would move it to 0.8, beyond its limit."""
    ik = fw.InverseKinematics(geared(0.0, 0.2), fw.PostureTask(joints=["lead"]))
    assert ik.solve([1.0], [0.0], restarts=0).converged
    assert not ik.solve([2.0], [0.0], restarts=0).converged


def test_it_goes_to_other_processes() -> None:
    ik = pickle.loads(pickle.dumps(hand()))
    [target] = hand_targets(1)
    assert np.array_equal(ik.solve(target, rng=5).q, hand().solve(target, rng=5).q)
    assert repr(ik) == "<InverseKinematics of 'panda': panda_hand>"
