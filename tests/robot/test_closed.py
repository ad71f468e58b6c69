"""Tests of the user interface of robots with loops: coordinates, builder, constraint forces, singular configurations."""

from __future__ import annotations

import dataclasses
import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.robots.linkages import four_bar_configuration
from oracles.mechanisms import MECHANISMS, bodies, closed
from oracles.spanning import mechanism as built

HINGE = fw.JointType.REVOLUTE


def test_followers_are_in_neither_q_nor_v_and_dependents_in_q_only() -> None:
    robot = built("geared")
    joints = {j.name: j for j in robot.joints}
    assert (robot.nq, robot.nv) == (4, 2)
    assert [s.stop - s.start for s in (joints["gear"].q_slice, joints["gear"].v_slice)] == [0, 0]
    assert [joints[f"joint{k}"].independent for k in (1, 2, 3)] == [True, False, False]
    assert joints["joint2"].q_slice == slice(1, 2) and joints["carried"].v_slice == slice(1, 2)
    assert set(map(frozenset, robot.clusters)) == {frozenset({"joint1", "joint2", "joint3", "gear"}), frozenset({"carried"})}


def test_any_joint_of_a_loop_may_be_the_independent_one() -> None:
    """Check that the accelerations of the linkage are the same for any choice."""
    base = MECHANISMS["four_bar"]()
    with pytest.raises(fw.ModelError, match=r"1 of 3 velocities stay free with .*, but the joints that are marked"):
        fw.build(base, independent=["joint1", "joint2"])
    q = four_bar_configuration(0.4)
    spanning = []
    for k in (1, 2, 3):
        robot = fw.build(base, independent=[f"joint{k}"])
        assert isinstance(robot, fw.ClosedRobot)
        assert [j.name for j in robot.joints if j.independent] == [f"joint{k}"]
        a = robot.forward_dynamics(q, np.zeros(1), np.zeros(1))
        spanning.append(robot.spanning_velocity(q, a))
    np.testing.assert_allclose(spanning[1], spanning[0], rtol=1e-10)
    np.testing.assert_allclose(spanning[2], spanning[0], rtol=1e-10)


@pytest.mark.parametrize("name", ["four_bar", "crank_and_rocker", "geared", "own", "coupled", "two_loops"])
def test_forces_of_loops_and_drives_are_all_there_is(name: str) -> None:
    """Check that the drives, the loops (K^T times their forces) and the couplings balance the tree's inverse dynamics."""
    robot = built(name)
    q = robot.random_configuration(rng=1)
    v, a = np.random.default_rng(0).standard_normal((2, robot.nv))
    needed = robot.spanning_torque(q, v, a)
    kept = [k for c in robot._mechanism.clusters for k in c.kept]
    assert len(robot.loop_rows) == len(kept)
    if kept:
        needed = needed - robot._closing.closing_matrix(q)[kept].T @ robot.loop_forces(q, v, a)
    rows = {r: c.start + k for c in robot._mechanism.clusters for k, r in enumerate(c.independent)}
    G = np.array([robot.spanning_velocity(q, unit) for unit in np.eye(robot.nv)]).T
    following = list(robot._loops.followers)
    tau = robot.inverse_dynamics(q, v, a)
    scale = np.abs(needed).max()
    passed_on = G[following].T @ needed[following] if following else np.zeros(robot.nv)
    for r, k in rows.items():
        assert abs(needed[r] + passed_on[k] - tau[k]) <= 1e-9 * scale
    free = [r for r in range(len(needed)) if r not in rows and r not in following]
    assert np.abs(needed[free]).max(initial=0.0) <= 1e-9 * scale


def test_the_force_on_a_coupler_is_its_force() -> None:
    """Check a gear without a load: the crank gives it its angular acceleration times its inertia, times the ratio."""
    made = fw.describe(
        bodies("crank", "wheel"),
        [fw.Joint("a", HINGE, "world", "crank"), fw.Joint("b", HINGE, "world", "wheel", fw.Pose(p=(0.3, 0.0, 0.0)))],
        couplings=[fw.Coupling("teeth", "b", (("a", (-2.0,)),))],
        gravity=(0.0, 0.0, 0.0),
    )
    robot = fw.build(made)
    assert isinstance(robot, fw.ClosedRobot)
    I = 0.25 + 0.3**2 + 0.02**2  # about the joint
    assert robot.mass_matrix(np.zeros(1)) == pytest.approx(I + 4.0 * I)
    force = robot.spanning_torque(np.zeros(1), np.zeros(1), np.ones(1))
    np.testing.assert_allclose(force, [I, -2.0 * I])


def test_a_singular_configuration_is_reported() -> None:
    """Check all bars in line: the crank's angle does not determine the others."""
    robot = fw.build(fw.robots.four_bar())
    assert isinstance(robot, fw.ClosedRobot)
    with pytest.warns(RuntimeWarning, match="near a singular configuration, .* do not determine joint2"):
        robot.close(np.zeros(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = robot.close(four_bar_configuration(0.4))
    assert robot.singularity(q) < 1e4
    assert (robot.singularity(robot.random_configuration(rng=0, size=50)) < 1e8).all()


def test_a_robot_says_which_configurations_are_singular() -> None:
    robot = closed(fw.robots.four_bar(), execution="interpreted")
    regular, beside = np.array(four_bar_configuration(1.0)), np.array(four_bar_configuration(1e-9))
    robot.require_regular(np.stack([regular, regular]))
    with pytest.raises(ValueError, match=r"four_bar: near a singular configuration, .* do not determine joint2"):
        robot.require_regular(beside)
    with pytest.raises(ValueError, match=r"state \(1, 2\) of q is near a singular configuration"):
        robot.require_regular(np.stack([[regular] * 3, [regular, regular, beside]]))
    with pytest.raises(ValueError, match=r"q must have shape"):
        robot.require_regular(np.zeros(2))


def test_loops_that_cannot_be_closed_from_a_guess_say_so() -> None:
    robot = fw.build(fw.robots.four_bar())
    assert isinstance(robot, fw.ClosedRobot)
    q = np.add(four_bar_configuration(0.4), [0.0, 0.3, 0.0])
    with pytest.raises(ValueError, match="cannot be closed from this guess"):
        robot.close(q, keep=["joint1", "joint2", "joint3"])
    closed = robot.close(q, keep=["joint1"])
    assert closed[0] == q[0] and np.abs(robot.residual(closed)).max() < 1e-12
    with pytest.raises(ValueError, match="no joint 'nothing'"):
        robot.close(q, keep=["nothing"])


@pytest.mark.parametrize("name", ["six_bar", "platform", "crank_and_rocker", "tello"])
def test_the_neutral_configuration_is_closed(name: str) -> None:
    robot = built(name)
    assert np.abs(robot.residual(robot.neutral())).max() < 1e-11


def test_redundant_rows_are_reported_and_left_out() -> None:
    robot = built("four_bar")
    assert robot.report()["redundant constraints"] == "3 of 'loop'"
    assert robot.loop_rows == ("loop: force along x", "loop: force along y")


def test_a_loop_that_always_holds_leaves_all_joints_free() -> None:
    """A point on the axis of a hinge, seen from both of its bodies: derivatives of the gap are rounding errors."""
    links = [fw.Body(name, fw.Inertia(1.0, (0.1, 0.2, 0.3), (0.1, 0.0, 0.0, 0.2, 0.0, 0.3))) for name in ("a", "b")]
    place = fw.Pose(p=(-0.1551, 0.1341, -0.2053))
    joints = [
        fw.Joint("slide", fw.JointType.PRISMATIC, "world", "a", axis=(0.8336, 0.719, -0.2269)),
        fw.Joint("turn", HINGE, "a", "b", placement=place, axis=(1.0, 0.0, 0.0)),
    ]
    point = fw.Loop("point", fw.LoopType.SPHERICAL, "a", "b", place)
    robot = fw.build(fw.describe(links, joints, loops=[point]))
    assert robot.report() == {"redundant constraints": "3 of 'point'"}
    tree = fw.build(fw.describe(links, joints))
    q, v = tree.random_configuration(rng=0), np.array([0.3, -2.0])
    np.testing.assert_allclose(robot.forward_dynamics(q, v, v), tree.forward_dynamics(q, v, v), rtol=1e-12)


def test_motion_without_mass_is_warned_of_and_has_no_dynamics() -> None:
    joints = [fw.Joint("a", HINGE, "world", "arm"), fw.Joint("b", HINGE, "world", "wheel")]
    coupling = fw.Coupling("teeth", "b", (("a", (2.0,)),))
    massless = fw.describe([fw.Body("arm"), fw.Body("wheel")], joints, couplings=[coupling])
    with pytest.warns(fw.ModelWarning, match=r"joints move arm, wheel without moving any mass"):
        robot = fw.build(massless)
    np.testing.assert_allclose(robot.frame_placement("wheel")([0.3])[:2, 0], (np.cos(0.6), np.sin(0.6)), atol=1e-15)
    with pytest.raises(
        fw.NotDefinedError, match="mass_matrix needs the masses of all moving links; these have none: arm, wheel"
    ):
        robot.mass_matrix  # noqa: B018
    assert fw.build(fw.describe([fw.Body("arm"), *bodies("wheel")], joints, couplings=[coupling])).nv == 1


def test_descriptions_may_hold_numpy_s_numbers() -> None:
    """Check lists and arrays, too, because Python code that makes mechanisms has them."""
    inertia = fw.Inertia(np.float64(1.0), np.array([0.1, 0.0, 0.0]), tuple(np.array([0.1, 0, 0, 0.2, 0, 0.25])))
    axis = [np.float64(0.0), 0.0, 1.0]
    hung = fw.Pose(np.eye(3), np.zeros(3))
    made = fw.describe([fw.Body("arm", inertia)], [fw.Joint("a", HINGE, "world", "arm", hung, axis)])
    assert fw.build(made).mass_matrix(np.zeros(1)) == pytest.approx(0.26)


def test_rolled_execution_is_refused() -> None:
    with pytest.raises(ValueError, match="rolled is not offered for robots with loops"):
        fw.build(fw.robots.four_bar(), execution="rolled")


def test_robots_with_loops_are_pickled() -> None:
    robot = fw.build(fw.robots.mini_cheetah())
    again = pickle.loads(pickle.dumps(robot))
    q = robot.random_configuration(rng=0)
    np.testing.assert_array_equal(again.mass_matrix(q), robot.mass_matrix(q))
    function = pickle.loads(pickle.dumps(robot.forward_dynamics))
    zero = np.zeros(robot.nv)
    np.testing.assert_array_equal(function(q, zero, zero), robot.forward_dynamics(q, zero, zero))


def test_files_with_loops_are_loaded(tmp_path: Path) -> None:
    """Check loops, couplings and marks of independence, as in the files of generalized_rbda."""
    inertial = '<inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>'
    links = "".join(f'<link name="{n}">{inertial}</link>' for n in ("a", "b", "c", "rotor"))
    joints = "".join(
        f'<joint name="{n}" type="revolute" independent="{mark}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x} 0 0"/><axis xyz="0 0 1"/></joint>'
        for n, mark, parent, child, x in (
            ("j1", "true", "base", "a", 0.0),
            ("j2", "false", "a", "b", 0.5),
            ("j3", "false", "base", "c", 1.0),
            ("jr", "false", "base", "rotor", 0.0),
        )
    )
    ends = '<predecessor link="b"><origin xyz="1 0 0"/></predecessor><successor link="c"><origin xyz="0.6 0 0"/></successor>'
    loop = f'<loop name="l" type="revolute">{ends}<axis xyz="0 0 1"/></loop>'
    gear = '<coupling name="g" type="rolling"><predecessor link="a"/><successor link="rotor"/><ratio value="5"/></coupling>'
    path = tmp_path / "linkage.urdf"
    path.write_text(f'<robot name="linkage"><link name="base"/>{links}{joints}{loop}{gear}</robot>')
    robot = fw.load(path)
    assert isinstance(robot, fw.ClosedRobot)
    assert (robot.nq, robot.nv) == (3, 1)
    q = robot.random_configuration(rng=0)
    assert robot.spanning_velocity(q, np.ones(1))[3] == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"independent": ["x"]}, "'x' is marked as independent or dependent, but there is no such joint"),
        ({"joints": "twice"}, "two joints have the name 'a'"),
        ({"joints": "parent"}, "joint 'b': its parent 'nowhere' is not a body"),
        ({"joints": "two"}, "body 'arm' is the child of two joints; make one of them a Loop"),
    ],
)
def test_the_builder_refuses_what_does_not_fit(change: dict[str, Any], message: str) -> None:
    a = fw.Joint("a", HINGE, "world", "arm")
    others = {
        "twice": [a, fw.Joint("a", HINGE, "arm", "hand")],
        "parent": [a, fw.Joint("b", HINGE, "nowhere", "hand")],
        "two": [a, fw.Joint("b", HINGE, "hand", "arm")],
    }
    joints = others[str(change["joints"])] if "joints" in change else [a, fw.Joint("b", HINGE, "arm", "hand")]
    independent = change.get("independent", ())
    with pytest.raises(fw.ModelError, match=message):
        fw.describe(bodies("arm", "hand"), joints, independent=independent)


def follower(coefficients: tuple[float, ...], **leader: Any) -> fw.Description:
    """Return a wheel that follows a joint without mass."""
    wheel = fw.Body("wheel", fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    joints = [fw.Joint("a", HINGE, None, "crank", **leader), fw.Joint("b", HINGE, None, "wheel")]
    return fw.describe([fw.Body("crank"), wheel], joints, couplings=[fw.Coupling("c", "b", (("a", coefficients),))])


def test_a_joint_without_mass_must_always_move_what_follows_it() -> None:
    with pytest.warns(fw.ModelWarning, match="without moving any mass"):
        robot = closed(follower((1.0, 2.0)))
    with pytest.raises(fw.NotDefinedError):
        robot.mass_matrix  # noqa: B018
    with pytest.raises(fw.ModelError, match=r"joint 'a', .* moves no mass where 'a' is -0\.25; give"):
        robot._loops.require_mass()
    assert fw.build(follower((1.0, 2.0), lower=0.0, upper=1.0)).nv == 1
    assert fw.build(follower((1.0, 0.0, 2.0))).nv == 1


def test_a_joint_of_a_loop_is_not_put_where_what_follows_it_stands_still() -> None:
    """Check a placement for which the loop would be open and its constraints may be singular."""
    base = MECHANISMS["four_bar"]()
    wheel = fw.Body("wheel", fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    joints = (*base.joints, fw.Joint("gear", HINGE, None, "wheel"))
    coupling = fw.Coupling("cam", "gear", (("joint1", (0.0, 1.0)),))
    robot = fw.build(dataclasses.replace(base, bodies=(*base.bodies, wheel), joints=joints, couplings=(coupling,)))
    assert isinstance(robot, fw.ClosedRobot) and len(robot.clusters) == 1
    assert list(robot._loops._standstills(robot.neutral())) == []


def test_a_joint_without_mass_may_follow_one_with_mass() -> None:
    wheel = fw.Body("wheel", fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 2.0)))
    joints = [fw.Joint("a", HINGE, None, "wheel"), fw.Joint("b", HINGE, None, "pointer")]
    needle = fw.describe([fw.Body("pointer"), wheel], joints, couplings=[fw.Coupling("c", "b", (("a", (3.0,)),))])
    robot = fw.build(needle, execution="interpreted")
    assert robot.forward_dynamics([0.1], [0.2], [4.0]) == pytest.approx([2.0])


def test_couplings_alone_leave_no_residual() -> None:
    robot = closed(follower((1.0,)))
    assert robot.residual(robot.random_configuration(rng=0)).shape == (0,)
    assert robot.residual(robot.random_configuration(rng=0, size=7)).shape == (7, 0)
    assert robot.random_configuration(rng=0, size=np.int64(3)).shape == (3, 1)


@pytest.mark.parametrize("name", ["geared", "four_bar"])
def test_configurations_are_arrays_of_their_own(name: str) -> None:
    """Check that changes of a configuration change neither the argument that it came from nor the next one."""
    robot = built(name)
    for q in (
        robot.random_configuration(rng=0),
        robot.random_configuration(rng=0, size=(2, 3)),
        robot.random_configuration(rng=0, size=0),
    ):
        given = q.copy()
        closed = robot.close(q)
        np.testing.assert_allclose(closed, given, atol=1e-12)
        closed += 1.0
        np.testing.assert_array_equal(q, given)
    for make in (robot.neutral, lambda: robot.random_configuration(rng=0)):
        first = make()
        kept = first.copy()
        first += 1.0
        np.testing.assert_array_equal(make(), kept)


@pytest.mark.parametrize("name", ["geared", "four_bar"])
def test_configurations_of_a_wrong_length_are_not_closed(name: str) -> None:
    robot = built(name)
    for shape in ((), (2 * robot.nq,), (robot.nq, 1), (0,)):
        with pytest.raises(ValueError, match=rf"q must have shape \(\.\.\., {robot.nq}\); got {re.escape(str(shape))}"):
            robot.close(np.zeros(shape))


def slopes(f: Callable[[np.ndarray], np.ndarray], n: int, small: float = 1e-5) -> np.ndarray:
    """Return the Jacobian of f at zero, by central differences."""
    return np.stack([(f(small * e) - f(-small * e)) / (2.0 * small) for e in np.eye(n)], axis=-1)


@pytest.mark.parametrize("name", ["four_bar", "planar_leg", "coupled", "geared", "own", "chain_revolute"])
def test_jacobians_of_integrate_are_those_of_independent_joints(name: str) -> None:
    robot = built(name)
    q, v = robot.random_configuration(rng=1), 0.1 * np.random.default_rng(0).standard_normal(robot.nv)
    end = robot.integrate(q, v)
    by_q, by_v = robot.integrate_derivatives(q, v)
    expected = slopes(lambda x: robot.difference(end, robot.integrate(robot.integrate(q, x), v)), robot.nv)
    np.testing.assert_allclose(by_q, expected, atol=1e-8)
    np.testing.assert_allclose(by_v, slopes(lambda x: robot.difference(end, robot.integrate(q, v + x)), robot.nv), atol=1e-8)
    assert robot.integrate_derivatives(np.stack([q, q]), v).dresult_dq.shape == (2, robot.nv, robot.nv)


@pytest.mark.parametrize("name", ["four_bar", "coupled", "crank_and_rocker", "two_loops"])
def test_jacobians_of_difference_are_those_on_closed_configurations(name: str) -> None:
    robot = built(name)
    # differences contain curvature, which grows with singularity
    q0 = min(robot.random_configuration(rng=1, size=10), key=robot.singularity)
    q1 = robot.integrate(q0, 0.1 * np.random.default_rng(0).standard_normal(robot.nv))
    by_q0, by_q1 = robot.difference_derivatives(q0, q1)
    expected = slopes(lambda x: robot.difference(robot.integrate(q0, x), q1), robot.nv)
    np.testing.assert_allclose(by_q0, expected, atol=1e-6)  # closed by Newton's method to 1e-12, over steps of 1e-5
    np.testing.assert_allclose(by_q1, slopes(lambda x: robot.difference(q0, robot.integrate(q1, x)), robot.nv), atol=1e-6)


def test_jacobians_of_integrate_are_refused_where_loops_take_a_part_of_a_joint() -> None:
    robot = built("crank_and_rocker")
    q = robot.random_configuration(rng=1)
    with pytest.raises(NotImplementedError, match=r"do not support loops .* joint 'ball'"):
        robot.integrate_derivatives(q, np.zeros(robot.nv))
