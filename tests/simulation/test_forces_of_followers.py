"""Tests of forces at joints that follow others: springs, limits and drives act as in MuJoCo, or are reported with a warning."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.not_simulated import not_simulated
from featherweight.robot.system import EQUAL_LIMITS
from featherweight.simulation.forces.at_joints import ForcesAtJoints, forces_at_joints
from oracles.mujoco_models import CRANK_ROD_AND_ROCKER
from oracles.states import random_states
from simulation.spring_forces import spring_forces

BODIES = """<body name="a"><joint name="a" axis="0 1 0" damping=".3" armature=".2" stiffness="3" springref="20"/>
<geom size=".1" pos=".2 0 0"/><body name="b"><joint name="b" axis="0 0 1" damping=".5" armature=".3" stiffness="5"
springref="-10"
range="-40 50" ref="5"/><geom size=".1" pos=".2 0.1 0"/></body></body>
<body name="c" pos="0 0 1"><joint name="c" type="slide" axis="0 0 1" damping=".7" stiffness="11" armature=".4" springref=".2"
range="-1 3"/><geom size=".1" pos=".2 0.1 0"/></body>
<body name="d" pos="0 0 2"><joint name="d" type="ball" damping=".4" armature=".1"/><geom type="box" size=".1 .2 .3"/></body>
<body name="e" pos="0 0 3"><joint name="e" type="free" damping=".6"/><geom type="box" size=".1 .2 .3" pos=".2 .1 0"/></body>"""
DRIVES = """<actuator><position name="servo" joint="b" kp="7" kv="2" gear="3" forcerange="-50 60"/>
<motor name="motor" joint="c" gear="2" ctrlrange="-1 1"/></actuator>"""
IN_PROPORTION = f"""<mujoco><option gravity="0 0 0"/><worldbody>{BODIES}</worldbody>{DRIVES}<equality>
<joint joint1="b" joint2="a" polycoef=".1 2 0 0 0"/>
<joint joint1="c" joint2="b" polycoef=".05 -.7 0 0 0"/></equality></mujoco>"""
BY_A_SQUARE = IN_PROPORTION.replace(".05 -.7 0 0 0", ".05 -.7 0.3 0 0")
URDF = """<robot name="g"><link name="w"/><link name="a">{inertial}</link><link name="b">{inertial}</link>
<joint name="j1" type="revolute"><parent link="w"/><child link="a"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="9" velocity="1"/></joint>
<joint name="j2" type="revolute"><parent link="w"/><child link="b"/>
<axis xyz="0 1 0"/><limit lower="-.2" upper=".4" effort="9" velocity="1"/><mimic joint="j1" multiplier="-2" offset=".1"/>
<dynamics stiffness="1000" rest="0.3"/></joint></robot>"""
INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def require_mujocos_forces(forces: ForcesAtJoints, order: fw.MujocoOrder, data: Any, q: Any, v: Any, tolerance: float) -> Any:
    """Compare forces of springs and drives with MuJoCo's, mapped by S (nv, MuJoCo's nv); return S."""
    u = 3.0 * v[:2]
    data.qpos[:], data.qvel[:] = order.state(q, v)
    data.ctrl[:] = order.ctrl(u)
    mujoco.mj_forward(data.model, data)
    S = np.array([order.state(q, e).qvel for e in np.eye(len(v))])
    np.testing.assert_allclose(spring_forces(forces, q, v), S @ data.qfrc_passive, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(forces.of_drives(q, v, u), S @ data.qfrc_actuator, rtol=tolerance, atol=tolerance)
    return S


def test_springs_damping_armature_and_drives_of_followers_are_mujocos() -> None:
    """Check MuJoCo's passive and actuator forces at all joints, mapped to the independent joints, to rounding."""
    robot, model = (
        fw.load(IN_PROPORTION, equalities="exact", execution="interpreted"),
        mujoco.MjModel.from_xml_string(IN_PROPORTION),
    )
    assert not_simulated(robot) == {}
    forces, order, data = forces_at_joints(robot, robot.actuators), fw.MujocoOrder(robot, model), mujoco.MjData(model)
    x = random_states(robot, 3)
    for q, v in zip(x.q, x.v, strict=True):
        S = require_mujocos_forces(forces, order, data, q, v, 1e-12)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        np.testing.assert_allclose(robot.mass_matrix(q), S @ M @ S.T, rtol=1e-12, atol=1e-10)


LINKAGE = f"""<mujoco><default><joint stiffness="3" damping=".2" armature=".1" range="-3 3"/></default>
<worldbody>{CRANK_ROD_AND_ROCKER}</worldbody><equality><connect body1="rod" body2="rocker" anchor="0.7 0 0.2"/></equality>
<actuator><position joint="crank" kp="3"/><position joint="{{driven}}" kp="7" kv="1" gear="2"/></actuator></mujoco>"""


def test_springs_and_drives_of_joints_that_a_loop_determines_are_mujocos() -> None:
    names = [j.name for j in fw.load(LINKAGE.format(driven="crank"), execution="interpreted").joints if not j.independent]
    assert len(names) == 2
    text = LINKAGE.format(driven=names[0])
    robot, model = fw.load(text, equalities="exact", execution="interpreted"), mujoco.MjModel.from_xml_string(text)
    assert not_simulated(robot) == {}
    forces, order, data = forces_at_joints(robot, robot.actuators), fw.MujocoOrder(robot, model), mujoco.MjData(model)
    assert np.isfinite(forces.lower).all() and np.isfinite(forces.upper).all()
    q = robot.configurations["qpos0"]
    for v in ([0.7], [-1.5]):
        data.qpos[:], data.qvel[:] = order.state(q, v)
        data.ctrl[:] = 0.3, -0.4
        mujoco.mj_forward(model, data)
        S = np.array([order.state(q, e).qvel for e in np.eye(robot.nv)])
        np.testing.assert_allclose(spring_forces(forces, q, np.array(v)), S @ data.qfrc_passive, rtol=1e-11)
        np.testing.assert_allclose(forces.of_drives(q, np.array(v), data.ctrl), S @ data.qfrc_actuator, rtol=1e-11)


def test_spring_energy_of_followers_is_the_work_against_them() -> None:
    robot = fw.load(IN_PROPORTION, equalities="exact", execution="interpreted")
    forces, step = forces_at_joints(robot, ()), 1e-6
    q = random_states(robot, 1).q[0]
    for k in range(robot.nv):
        there = [forces.spring_energy(robot.integrate(q, sign * step * np.eye(robot.nv)[k])) for sign in (1.0, -1.0)]
        force = spring_forces(forces, q, np.zeros(robot.nv))[k]
        assert (there[1] - there[0]) / (2.0 * step) == pytest.approx(force, rel=1e-7, abs=1e-7)


def test_limits_and_springs_of_mimic_joints_are_those_of_the_leader() -> None:
    """Check the limits -0.2 <= 0.1 - 2 q <= 0.4; a spring of 1000 at 0.1 - 2 q = 0.3 equals one of 4000 at q = -0.1."""
    robot = fw.load(URDF.format(inertial=INERTIAL), execution="interpreted")
    forces = forces_at_joints(robot, ())
    np.testing.assert_allclose([forces.lower[0], forces.upper[0]], [-0.15, 0.15], rtol=1e-15)
    np.testing.assert_allclose([forces.lower[0], forces.upper[0]], [robot.lower[0], robot.upper[0]], rtol=0)
    assert spring_forces(forces, np.array([0.05]), np.zeros(1)) == pytest.approx([-4000 * 0.15], rel=1e-14)
    assert robot.report() == {}


@pytest.mark.parametrize(("lower", "upper"), [("0.1", "0.8"), ("1", "8"), ("1", "1")])
def test_limits_of_a_mimic_joint_that_leave_its_leader_no_room_are_left_out_by_name(lower: str, upper: str) -> None:
    """Check followers that rotate in the opposite direction with the same limits, as in some files."""
    text = URDF.format(inertial=INERTIAL).replace('lower="-.2" upper=".4"', f'lower="{lower}" upper="{upper}"')
    robot = fw.load(text.replace('lower="-3" upper="3"', 'lower="0" upper="0.8"'), execution="interpreted")
    told = {"limits of joints that follow others and leave these no range of motion": "j2"}
    if lower == upper:
        told[EQUAL_LIMITS] = "j2"
    assert robot.report() == told == not_simulated(robot)
    forces = forces_at_joints(robot, ())
    assert (forces.lower[0], forces.upper[0]) == (robot.lower[0], robot.upper[0]) == (0.0, 0.8)
    assert forces.left_out == ["j2"]


def test_a_follower_in_proportion_of_one_that_follows_by_a_square_is_named() -> None:
    inertia = fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    joints = [fw.Joint(f"j{k}", fw.JointType.REVOLUTE, None, f"b{k}", stiffness=1.0, lower=-1.0) for k in range(4)]
    follow = [
        fw.Coupling("square", "j1", (("j0", (1.0, 1.0)),)),
        fw.Coupling("after", "j2", (("j1", (2.0,)),)),
        fw.Coupling("ratio", "j3", (("j0", (2.0,)),)),
    ]
    bodies = [fw.Body(f"b{k}", inertia) for k in range(4)]
    robot = fw.build(fw.describe(bodies, joints, couplings=follow), execution="interpreted")
    assert robot.report() == {}
    forces = forces_at_joints(robot, ())
    assert forces.springs.stiffness.tolist() == [5.0, 5.0, 0.0, 0.0] and forces.lower[:2].tolist() == [-0.5, -0.5]
    q = np.array([0.3])
    np.testing.assert_allclose(forces.all_coordinates(q), [0.3, 0.39], rtol=1e-15)
    stretched = 5.0 * 0.3 + 5.0 * 0.39 * 1.6  # j0 and j3, and j1 and j2, which j0 moves at 1 + 2 q
    assert spring_forces(forces, q, np.zeros(1)) == pytest.approx([-stretched], rel=1e-14)


def test_springs_limits_and_drives_of_a_follower_by_a_square_are_mujocos() -> None:
    robot, model = (
        fw.load(BY_A_SQUARE, equalities="exact", execution="interpreted"),
        mujoco.MjModel.from_xml_string(BY_A_SQUARE),
    )
    assert robot.report() == {}
    forces, order, data = forces_at_joints(robot, robot.actuators), fw.MujocoOrder(robot, model), mujoco.MjData(model)
    row = next(j.v_slice.start for j in robot.model.joints if j.name == "c")
    x = random_states(robot, 3)
    for q, v in zip(x.q, x.v, strict=True):
        require_mujocos_forces(forces, order, data, q, v, 1e-11)
        assert forces.coordinates(q, np.array([row]))[0] == pytest.approx(data.joint("c").qpos[0], rel=1e-13)


def test_limits_of_a_follower_by_a_square_hold() -> None:
    text = BY_A_SQUARE.replace('gravity="0 0 0"', 'gravity="0 0 -9.8"').replace('range="-1 3"', 'range="-.1 .1"')
    robot = fw.load(text.replace('range="-40 50" ref="5"', ""))
    with pytest.warns(fw.ModelWarning, match="configuration 'qpos0'"):  # the couplings change b and c
        sim = fw.Simulation(robot, 0.001, contact="rigid")
    forces, row = sim.forces, next(j.v_slice.start for j in robot.model.joints if j.name == "c")
    reached = []
    for _ in range(1000):
        sim.step()
        reached.append(float(forces.coordinates(sim.q, np.array([row]))[0]))
    assert max(reached) < 0.1 + 1e-4 and min(reached) > -0.1 - 1e-4
    assert max(map(abs, reached)) > 0.0999


def test_own_actuators_act_on_such_joints() -> None:
    robot = fw.load(BY_A_SQUARE, equalities="exact", execution="interpreted")
    tau = forces_at_joints(robot, [fw.Actuator("mine", "c")]).of_drives(robot.neutral(), np.zeros(robot.nv), np.ones(1))
    assert tau[0] != 0.0


def test_springs_and_limits_of_such_joints_made_in_python_are_named() -> None:
    ball = fw.Joint("j", fw.JointType.PLANAR, None, "b", stiffness=1.0, lower=-1.0)
    d = fw.describe([fw.Body("b", fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))], [ball])
    several = " of joints with several degrees of freedom"
    assert fw.build(d, execution="interpreted").report() == {f"springs{several}": "j", f"limits{several}": "j"}


FREE = fw.JointOptions(limits=False)
EFFORTS = {"a": "-5 5", "b": "-9 2", "c": "-.1 .4"}
ALONG = """<tendon><fixed name="t"><joint joint="a" coef="1"/><joint joint="b" coef="-.6"/></fixed>
<fixed name="u"><joint joint="c" coef="2"/><joint joint="b" coef=".4"/></fixed></tendon></mujoco>"""
MORE = """<motor name="x" tendon="t" gear="3"/><motor name="y" tendon="u" gear="-2"/><motor name="z" joint="a" gear="4"/>
</actuator>"""


@pytest.mark.parametrize("bounded", ["a", "b", "bc", "abc"])
@pytest.mark.parametrize("text", [IN_PROPORTION, BY_A_SQUARE], ids=["in proportion", "by a square"])
def test_efforts_bound_the_drives_of_each_joint_as_in_mujoco(text: str, bounded: str) -> None:
    """Check the efforts of leading joints, followers, and both, also if tendons drive them together; steps are so short
    that both integrators use the acceleration at their beginning.
    """
    for name in bounded:
        text = text.replace(f'<joint name="{name}"', f'<joint name="{name}" actuatorfrcrange="{EFFORTS[name]}"')
    sensed = "".join(f'<jointactuatorfrc joint="{name}"/>' for name in "abc")
    text = text.replace("</actuator>", MORE).replace("</mujoco>", f"<sensor>{sensed}</sensor>{ALONG}")
    robot, model = fw.load(text, equalities="exact"), mujoco.MjModel.from_xml_string(text)
    assert not_simulated(robot) == {}
    order, data, h = fw.MujocoOrder(robot, model), mujoco.MjData(model), 1e-6
    x = random_states(robot, 6)
    with pytest.warns(fw.ModelWarning, match="configuration 'qpos0'"):  # the couplings change b and c
        sims = [fw.Simulation(robot, h, i, shapes=False, joints=FREE) for i in ("rk4", "semi-implicit")]
    forces, cut = sims[0].forces, 0
    for q, v in zip(x.q, x.v, strict=True):
        u = 3.0 * np.resize(v, model.nu)
        data.qpos[:], data.qvel[:] = order.state(q, v)
        data.ctrl[:] = order.ctrl(u)
        mujoco.mj_forward(model, data)
        S = np.array([order.state(q, e).qvel for e in np.eye(len(v))])
        tau = forces.of_drives(q, v, u)
        np.testing.assert_allclose(tau, S @ data.qfrc_actuator, rtol=1e-11, atol=1e-11)
        cut += sum(data.joint(k).qfrc_actuator[0] in map(float, EFFORTS[k].split()) for k in bounded)
        expected = robot.forward_dynamics(q, v, spring_forces(forces, q, v) + tau)
        for sim in sims:
            sim.reset(q, v)
            sim.step(control=u)
            rate = (sim.v - v) / h
            np.testing.assert_allclose(rate[:1], expected[:1], rtol=1e-4, atol=1e-3)
            np.testing.assert_allclose(sim.sensors(), data.sensordata, rtol=1e-3, atol=1e-3)
    assert cut > 2
