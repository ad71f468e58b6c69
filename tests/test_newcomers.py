"""Tests of what a user of NumPy, Pinocchio, MuJoCo or Drake tries first: it works, or an error says what to write."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.types import homogeneous_matrix


def arm() -> fw.Robot:
    return fw.build(fw.generators.chain(3), execution="interpreted")


def flying() -> fw.Robot:
    """Return two links on a floating body."""
    solid = fw.Inertia(1.0, (0.0, 0.0, 0.1), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01))
    names = ["body0", "body1", "body2"]
    joints = [fw.Joint("free", "floating", None, "body0")]
    joints += [fw.Joint(f"hinge{k}", "revolute", names[k - 1], names[k], fw.Pose(p=(0.0, 0.1, 0.2))) for k in (1, 2)]
    return fw.build(fw.describe([fw.Body(name, solid) for name in names], joints), execution="interpreted")


# errors that say what to write


def assigned(name: str, x: Any) -> None:
    setattr(fw.Simulation(arm()), name, x)


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "sim.control =": (lambda: assigned("control", [1.0]), AttributeError, r"argument of step and run: step\(control=...\)"),
    "sim.tau =": (lambda: assigned("tau", [1.0]), AttributeError, r"argument of step and run: step\(tau=...\)"),
    "sim.dt =": (lambda: assigned("dt", 0.1), AttributeError, r"Simulation\(robot, dt=...\)"),
    "sim.qpos =": (lambda: assigned("qpos", [1.0]), AttributeError, "here it is featherweight.Simulation.q"),
    "sim.time = text": (lambda: assigned("time", "now"), ValueError, "time must be a finite number of seconds; got 'now'"),
    "robot.gravity =": (lambda: setattr(arm(), "gravity", (0, 0, 0)), AttributeError, r"load\(path, gravity=...\)"),
    "robot.lower =": (lambda: setattr(arm(), "lower", 0.0), AttributeError, r"with_joint\(name, limits="),
    "robot.save": (lambda: arm().save, AttributeError, r"descriptions have it: featherweight.read\(path\).save"),  # type: ignore[attr-defined]
    "sim.clone": (lambda: fw.Simulation(arm()).clone, AttributeError, r"here it is copy.copy\(simulation\)"),  # type: ignore[attr-defined]
    "sim.save_state": (lambda: fw.Simulation(arm()).save_state, AttributeError, "here it is featherweight.Simulation.state"),  # type: ignore[attr-defined]
    "step(0.01)": (lambda: fw.Simulation(arm()).step(0.01), ValueError, "steps=... is the number of steps"),
    "step(tau={})": (lambda: fw.Simulation(arm()).step({"joint1": 1.0}), ValueError, "not a dict; .* order of the joints"),  # type: ignore[arg-type]
    "step(forces=wrench)": (
        lambda: fw.Simulation(arm()).step(external_forces=arm().wrench("body2", force=[0, 0, 1])),  # type: ignore[arg-type]
        ValueError, "call the wrench with q",
    ),
    "run(too short)": (lambda: fw.Simulation(arm(), 1e-3).run(1e-4), ValueError, "must be a time step, 0.001 s, or more"),
    "run(steps=)": (lambda: fw.Simulation(arm()).run(steps=9), TypeError, "write duration=steps"),  # type: ignore[call-arg]
    "save(.avi)": (
        lambda: fw.Simulation(arm()).run(2e-3).save("film.avi"), ValueError, "must end with .npz, .gif or .mp4; got '.avi'",
    ),
    "Simulation(joint_friction=1.0)": (
        lambda: fw.Simulation(arm(), joint_friction=1.0), TypeError, r"with_joint\(\"elbow\", dry_friction=1.0\)",  # type: ignore[call-arg]
    ),
    "Simulation(num_envs=)": (lambda: fw.Simulation(arm(), num_envs=4), TypeError, r"q \(robots, nq\) makes many"),  # type: ignore[call-arg]
    "Simulation(gravity=)": (lambda: fw.Simulation(arm(), gravity=0), TypeError, r"load\(path, gravity="),  # type: ignore[call-arg]
    "InverseKinematics(name)": (
        lambda: fw.InverseKinematics(arm(), "body2"), TypeError, r"write featherweight.FrameTask\('body2'\)",  # type: ignore[arg-type]
    ),
    "pose task, position": (
        lambda: fw.InverseKinematics(arm(), fw.FrameTask("body2")).solve([0.1, 0.2, 0.3]), ValueError,
        r"FrameTask\(frame, \"position\"\)",
    ),
    "position task, matrix": (
        lambda: fw.InverseKinematics(arm(), fw.FrameTask("body2", "position")).solve(np.eye(4)), ValueError, "T is T",
    ),
    "reference by position": (
        lambda: arm().frame_jacobian("body2", np.zeros(3), "local"), TypeError, "write reference='local'",  # type: ignore[call-overload]
    ),
    "Joint(limits=)": (
        lambda: fw.Joint("j", "revolute", None, "a", limits=(0, 1)), TypeError, "write lower=..., upper=...",  # type: ignore[call-arg]
    ),
    "with_friction(-1)": (lambda: fw.generators.chain(2).with_friction(-1.0), ValueError, "must not be negative"),
}  # fmt: skip


@pytest.mark.parametrize("what", ERRORS)
def test_an_error_says_what_to_write(what: str) -> None:
    call, kind, said = ERRORS[what]
    with pytest.raises(kind, match=said):
        call()


# tables with names


class Table:
    """A table, or a series of numbers, whose columns have names, as those of pandas."""

    def __init__(self, numbers: Any, names: list[str]) -> None:
        self.numbers = np.asarray(numbers, float)
        self.ndim, self.shape = self.numbers.ndim, self.numbers.shape
        setattr(self, "columns" if self.ndim == 2 else "index", names)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numbers


@pytest.mark.parametrize("many", [False, True])
def test_columns_in_another_order_than_the_joints_are_refused(many: bool) -> None:
    robot = arm()
    names, q = [j.name for j in robot.joints], np.tile([0.1, 0.2, 0.3], (4, 1)) if many else np.array([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(robot.mass_matrix(Table(q, names)), robot.mass_matrix(q))
    np.testing.assert_array_equal(robot.mass_matrix(Table(q, ["a", "b", "c"])), robot.mass_matrix(q))
    wrong = Table(q, names[::-1])
    for call in (
        robot.mass_matrix,
        robot.check,
        lambda x: robot.frame_placement("body2", x),
        lambda x: fw.Simulation(robot, q=x),
    ):
        with pytest.raises(ValueError, match=rf"q: column 0 is '{names[2]}', which belongs in column 2.*{names[0]}"):
            call(wrong)
    if not many:
        with pytest.raises(ValueError, match="tau: column 0 is"):
            fw.Simulation(robot).step(wrong)


def test_columns_of_a_floating_robot_are_at_the_places_of_its_joints() -> None:
    robot = flying()
    names = ["x", "y", "z", "qx", "qy", "qz", "qw", *(j.name for j in robot.joints[1:])]
    robot.mass_matrix(Table(robot.neutral(), names))
    with pytest.raises(ValueError, match="column 7 is"):
        robot.mass_matrix(Table(robot.neutral(), [*names[:7], *names[:6:-1]]))


# quaternions


def test_quaternions_with_w_first_are_told() -> None:
    robot = flying()
    q = robot.neutral()
    q[3:7] = 1.0, 0.0, 0.0, 0.0
    for call in (robot.check, lambda q: fw.Simulation(robot, q=q), lambda q: setattr(fw.Simulation(robot), "q", q)):
        with pytest.warns(fw.ModelWarning, match=r"q\[3:7\], is \(1, 0, 0, 0\): half a turn"):
            call(q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot.check(robot.neutral())
        fw.Simulation(robot, q=robot.neutral())


def test_inverse_kinematics_refuses_long_quaternions() -> None:
    robot = flying()
    ik, q = fw.InverseKinematics(robot, fw.FrameTask("body1")), robot.neutral()
    target = robot.frame_placement("body1", q)
    q[3:7] *= 1.05
    for call in (lambda: ik.solve(target, q), lambda: ik.velocity(q, target, 0.1)):
        with pytest.raises(ValueError, match=r"q\[3:7\], must have length 1; got 1.05"):
            call()


# inertias, shapes and obstacles


def test_inertias_have_names_and_parameters() -> None:
    matrix = np.array([[0.17, 0.01, 0.02], [0.01, 0.18, 0.03], [0.02, 0.03, 0.1]])
    inertia = fw.Inertia(2.0, (0.1, 0.2, 0.5), matrix)
    m = inertia.rotational
    assert (m.xx, m.xy, m.xz, m.yy, m.yz, m.zz) == (0.17, 0.01, 0.02, 0.18, 0.03, 0.1)
    robot = fw.build(fw.describe([fw.Body("a", inertia)], [fw.Joint("j", "revolute", None, "a")]), execution="interpreted")
    np.testing.assert_allclose(inertia.parameters, robot.inertial_parameters[0], rtol=1e-12, atol=1e-15)
    again = fw.Inertia.of_parameters(robot.inertial_parameters[0])
    np.testing.assert_allclose([again.mass, *again.center, *again.rotational], [2.0, 0.1, 0.2, 0.5, *m], rtol=1e-12)
    with pytest.raises(ValueError, match="must be 10 numbers"):
        fw.Inertia.of_parameters([1.0, 2.0])


def ball_on_rail() -> fw.Robot:
    body, rail = fw.Body("ball", fw.Inertia(1.0)), fw.Joint("rail", "prismatic", None, "ball", axis=(1.0, 0.0, 0.0))
    shape = fw.Shape("ball", "ball", "sphere", (0.1,))
    return fw.build(fw.describe([body], [rail], shapes=[shape]), execution="interpreted")


def test_obstacles_need_no_other_robot() -> None:
    """Check the distance from a wall at x = 1, and from a ball that is held at the link."""
    robot = ball_on_rail()
    robot.mass_matrix([0.0])
    wall = fw.Shape("wall", None, "box", (0.2, 2.0, 2.0), fw.Pose(p=(1.1, 0.0, 0.0)))
    held = fw.Shape("held", "ball", "sphere", (0.05,), fw.Pose(p=(0.0, 0.0, 0.3)))
    among = robot.with_obstacles([wall, held])
    assert among.mass_matrix is robot.mass_matrix and [s.name for s in robot.shapes] == ["ball"]
    found = among.distances(np.array([[0.2], [0.95]]), pairs=[("ball", "wall"), ("held", "wall")])
    assert {str(p) for p in found.pairs} == {"ball and wall", "wall and held"}
    np.testing.assert_allclose(np.sort(found.distance, axis=1), [[0.7, 0.75], [-0.05, 0.0]], atol=1e-9)
    assert among.in_collision([0.95]) and not among.in_collision([0.2]) and not robot.in_collision([0.95])
    with pytest.raises(ValueError, match="already is a shape 'wall'"):
        among.with_obstacles(wall)
    with pytest.raises(TypeError, match="Shape objects in a list; got 'wall'"):
        robot.with_obstacles("wall")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no link 'hand'"):
        robot.with_obstacles(fw.Shape("x", "hand", "sphere", (0.1,)))


def test_obstacles_of_robots_with_loops() -> None:
    robot = fw.build(fw.robots.planar_leg_linkage(), execution="interpreted")
    wall = fw.Shape("wall", None, "sphere", (0.1,), fw.Pose(p=(5.0, 0.0, 0.0)))
    among = robot.with_obstacles(wall)
    assert type(among) is fw.ClosedRobot and among.shapes[-1].name == "wall" and among.nv == robot.nv
    assert among.with_armature(0.1).shapes[-1].name == "wall"


def test_descriptions_with_shapes_and_friction() -> None:
    d = fw.generators.chain(2).with_shape(fw.Shape("table", "world", "box", (1, 1, 0.1)))
    link = d.bodies[0].name
    d = d.with_shape(fw.Shape("tip", link, "sphere", (0.1,), visual=False))
    assert {s.friction for s in d.with_friction(0.3).shapes} == {0.3}
    for on, frictions in (("tip", [None, 0.3]), (link, [None, 0.3]), (["world"], [0.3, None])):
        assert [s.friction for s in d.with_friction(0.3, on).shapes] == frictions
    with pytest.raises(fw.ModelError, match="no collision shape 'tap'"):
        d.with_friction(0.3, "tap")
    with pytest.raises(fw.ModelError, match="there is no link 'lnk'"):
        d.with_shape(fw.Shape("x", "lnk", "sphere", (0.1,)))
    with pytest.raises(fw.ModelError, match="already is a shape 'tip'"):
        d.with_shape(fw.Shape("tip", link, "sphere", (0.1,)))


def test_a_pose_is_a_target_of_inverse_kinematics() -> None:
    robot = arm()
    T = robot.frame_placement("body2", [0.1, 0.2, 0.3])
    pose = fw.Pose.of(T)
    np.testing.assert_allclose(homogeneous_matrix(pose), T, atol=1e-15)
    ik = fw.InverseKinematics(robot, fw.FrameTask("body2"))
    np.testing.assert_array_equal(ik.solve(pose, rng=0).q, ik.solve(T, rng=0).q)


def test_calls_without_rng_draw_other_numbers() -> None:
    robot = arm()
    ik = fw.InverseKinematics(robot, fw.FrameTask("body2", "position"))
    target = robot.frame_placement("body2", [0.1, 0.2, 0.3])[:3, 3]
    assert (ik.solve(target).q != ik.solve(target).q).any()
    np.testing.assert_array_equal(ik.solve(target, rng=5).q, ik.solve(target, rng=5).q)
