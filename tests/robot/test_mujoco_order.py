"""Tests of conversions of states to and from MuJoCo's order: positions and motions of bodies agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.model.generators import random_tree
from featherweight.model.types import JointType
from oracles import robots
from oracles.mujoco_models import CRANK_ROD_AND_ROCKER
from oracles.states import Array, evaluated, random_states

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"

JOINTED = """
<mujoco model="jointed">
  <worldbody>
    <body name="trunk" pos="0.1 0.2 1.3" euler="10 20 30">
      <freejoint/>
      <geom type="capsule" size="0.1 0.2"/>
      <body name="thigh" pos="0 0.1 -0.2" euler="0 90 0">
        <joint name="hip" type="ball" pos="0.01 0.02 -0.03"/>
        <geom type="capsule" fromto="0 0 0 0.05 0.02 -0.4" size="0.05"/>
        <body name="shank" pos="0 0 -0.4">
          <joint name="knee" type="hinge" axis="0 1 0.2" pos="0 0.01 0.02" ref="-20"/>
          <geom type="box" size="0.05 0.04 0.2"/>
        </body>
      </body>
      <body name="arm" pos="0 -0.2 0.2">
        <joint type="hinge" axis="1 0 0" pos="0 0 0.02"/>
        <joint name="extension" type="slide" axis="0 0.6 -0.8" ref="0.1"/>
        <geom type="box" size="0.05 0.04 0.2"/>
      </body>
    </body>
    <body name="ball" pos="3 0 0" quat="0 1 0 0">
      <freejoint name="flying"/>
      <geom type="ellipsoid" size="0.1 0.2 0.3"/>
      <body name="wheel"><joint type="hinge" axis="0 0 1"/><geom type="sphere" size="0.1"/></body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="extension" gear="3"/>
    <general name="filtered" joint="knee" dyntype="user"/>
    <motor name="bend" joint="knee" gear="20"/>
    <position joint="extension" kp="10"/>
  </actuator>
</mujoco>
"""

LINKAGE = f"""
<mujoco model="linkage">
  <worldbody>
    <body name="wheel" pos="0 0.3 0"><joint name="wheel" axis="0 1 0" ref="10"/><geom size="0.1"/></body>
    {CRANK_ROD_AND_ROCKER}
  </worldbody>
  <equality>
    <connect body1="rod" body2="rocker" anchor="0.7 0 0.2"/>
    <joint joint1="wheel" joint2="crank" polycoef="0 -2 0 0 0"/>
  </equality>
</mujoco>
"""


def loaded(path: Path) -> tuple[fw.Robot, Any]:
    return fw.load(path, execution="interpreted"), mujoco.MjModel.from_xml_path(str(path))


def written(folder: Path, text: str) -> Path:
    path = folder / "robot.xml"
    path.write_text(text)
    return path


def assert_bodies_move_as_mujocos(robot: fw.Robot, model: Any, order: fw.MujocoOrder, q: Array, v: Array) -> None:
    names = [name for b in range(1, model.nbody) if (name := model.body(b).name)]
    data, velocity = mujoco.MjData(model), np.empty(6)
    (T,), (V,) = evaluated(robot.frame_placement(names), q), evaluated(robot.frame_velocity(names), q, v)
    qpos, qvel = order.state(q, v)
    assert qpos.shape == (len(q), model.nq) and qvel.shape == (len(q), model.nv)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:] = qpos[k], qvel[k]
        mujoco.mj_forward(model, data)
        for i, name in enumerate(names):
            np.testing.assert_allclose(T[k, i, :3, 3], data.body(name).xpos, atol=1e-12)
            np.testing.assert_allclose(T[k, i, :3, :3].ravel(), data.body(name).xmat, atol=1e-12)
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, model.body(name).id, velocity, 0)
            np.testing.assert_allclose(V[k, i], [*velocity[3:], *velocity[:3]], atol=1e-11)
    back = order.robot_state(qpos, qvel)
    np.testing.assert_allclose(back.q, q, atol=1e-15)
    np.testing.assert_allclose(back.v, v, atol=1e-14)
    one = order.state(q[0], v[0])
    np.testing.assert_array_equal(one.qpos, qpos[0])
    np.testing.assert_array_equal(order.robot_state(*one).v, back.v[0])


@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper", "humanoid", "walker2d"])
def test_gymnasiums_robots_move_as_in_mujoco(name: str) -> None:
    robot, model = loaded(ASSETS / f"{name}.xml")
    x = random_states(robot, 2)
    for order in (fw.MujocoOrder(robot), fw.MujocoOrder(robot, model)):
        assert_bodies_move_as_mujocos(robot, model, order, x.q, x.v)
    u = np.random.default_rng(0).standard_normal((2, model.nu))
    order = fw.MujocoOrder(robot, model)
    np.testing.assert_array_equal(order.ctrl(u), u)
    np.testing.assert_array_equal(order.control(u), u)


def test_joints_of_every_type_move_as_in_mujoco(tmp_path: Path) -> None:
    """Check free joints and balls, references, and joints without a name."""
    robot, model = loaded(written(tmp_path, JOINTED))
    x = random_states(robot, 3)
    order = fw.MujocoOrder(robot, model)
    assert order.joints == fw.MujocoOrder(robot).joints == tuple(j.name for j in robot.joints)
    assert_bodies_move_as_mujocos(robot, model, order, x.q, x.v)


def test_actuators_without_names_or_that_the_robot_lacks(tmp_path: Path) -> None:
    robot, model = loaded(written(tmp_path, JOINTED))
    assert [(a.name, a.gear) for a in robot.actuators] == [("extension_actuator", 3), ("bend", 20), ("extension_actuator_2", 1)]
    order = fw.MujocoOrder(robot, model)
    np.testing.assert_array_equal(order.ctrl([1, 2, 3]), [1, 0, 2, 3])
    np.testing.assert_array_equal(order.control([[1, 0, 2, 3]]), [[1, 2, 3]])


WITH_STATES = """<mujoco><worldbody>
<body name="a"><joint name="a" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
<body name="b"><joint name="b" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
<tendon><fixed name="t"><joint joint="a" coef="2"/></fixed><fixed name="both"><joint joint="a" coef="1"/>
<joint joint="b" coef="1"/></fixed></tendon><equality><joint joint1="b" joint2="a" polycoef="0 3 0 0 0"/></equality>
<actuator><general joint="a" dyntype="user"/><motor tendon="t"/><motor joint="a" gear="4" ctrlrange="-1 2"/>
<general name="f" joint="a" dyntype="user"/><motor tendon="both" gear="2" ctrlrange="-3 4"/></actuator></mujoco>"""


def test_actuators_without_names_drive_what_they_drive_in_mujoco() -> None:
    """Check actuators on tendons of one joint, and those after actuators of the same joint that the robot lacks."""
    robot, model = fw.load(WITH_STATES, execution="interpreted"), mujoco.MjModel.from_xml_string(WITH_STATES)
    order = fw.MujocoOrder(robot, model)
    np.testing.assert_array_equal(order.ctrl([1.0, 2.0, 3.0]), [0.0, 1.0, 2.0, 0.0, 3.0])
    data = mujoco.MjData(model)
    for k, actuator in enumerate(robot.actuators):
        data.ctrl[:] = order.ctrl(np.eye(3)[k])
        mujoco.mj_forward(model, data)  # at the leader, and through the follower
        assert data.qfrc_actuator @ [1.0, 3.0] == pytest.approx(actuator.gear, abs=1e-12)


def test_without_a_model_controls_of_other_actuators_are_not_guessed() -> None:
    order = fw.MujocoOrder(fw.load(WITH_STATES, execution="interpreted"))
    remedy = r"actuators that the robot lacks \(2 user\).*; pass the mjModel, as in MujocoOrder\(robot, model\)"
    for asked in (lambda: order.nu, lambda: order.ctrl(np.zeros(3)), lambda: order.control(np.zeros(5))):
        with pytest.raises(ValueError, match=remedy):
            asked()
    np.testing.assert_array_equal(order.state([0.5], [2.0]).qvel, [2.0, 6.0])


SEVERAL_CONTROLS = """<mujoco><worldbody><body name="a"><joint name="j" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
<body name="b"><joint name="b" type="ball"/><geom size=".1" pos=".2 0 0"/></body></worldbody><actuator>
<pid joint="j" kp="10" input="pos vel"/><motor name="first" joint="j" ctrlrange="-.1 .1" gear="4"/><orientation joint="b"
kp="1"/>
<motor joint="j" ctrlrange="-.2 .3"/></actuator><keyframe><key name="k" ctrl="1 2 3 4 5 6 7"/></keyframe></mujoco>"""


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "actuator_ctrladr"), reason="actuators have one control each before MuJoCo 4")
def test_controls_behind_actuators_with_several() -> None:
    robot, model = fw.load(SEVERAL_CONTROLS, execution="interpreted"), mujoco.MjModel.from_xml_string(SEVERAL_CONTROLS)
    assert [len(a.controls) for a in robot.actuators] == [2, 1, 3, 1]
    order = fw.MujocoOrder(robot, model)
    assert order.nu == model.nu == 7
    np.testing.assert_array_equal(order.ctrl(np.arange(7)), np.arange(7))
    np.testing.assert_array_equal(robot.configurations.control("k"), [1, 2, 3, 4, 5, 6, 7])
    two = fw.build(replace(fw.read(SEVERAL_CONTROLS), actuators=(robot.actuators[3], robot.actuators[0]), configurations=()))
    other = fw.MujocoOrder(two, model)
    np.testing.assert_array_equal(other.ctrl([1.0, 2.0, 3.0]), [2, 3, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(other.control(np.arange(7)), [6, 0, 1])


def test_loops_and_couplings_move_as_in_mujoco(tmp_path: Path) -> None:
    robot, model = loaded(written(tmp_path, LINKAGE))
    assert (robot.nq, robot.nv) == (3, 1)
    assert isinstance(robot, fw.ClosedRobot)
    q = robot.close(np.add(robot.neutral(), [[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]]))
    v = np.array([[0.3], [-2.0]])
    assert_bodies_move_as_mujocos(robot, model, fw.MujocoOrder(robot, model), q, v)


def test_the_same_robot_from_urdf_in_another_order() -> None:
    """Check MuJoCo's model of a floating robot, whose legs come in another order and whose free joint has no name."""
    robot = robots.example("solo12")
    spec = mujoco.MjSpec()
    trunk = spec.worldbody.add_body(name="trunk")
    trunk.add_geom(size=[0.1, 0.1, 0.1])
    trunk.add_freejoint()
    names = [j.name for j in robot.joints if j.type is not JointType.FLOATING]
    for name in reversed(names):
        trunk = trunk.add_body(name=name)
        trunk.add_joint(name=name)
        trunk.add_geom(size=[0.1, 0.1, 0.1])
    order = fw.MujocoOrder(robot, spec.compile())
    assert order.joints == (robot.joints[0].name, *reversed(names))
    (q,), (v,), _ = random_states(robot, 1)
    qpos, qvel = order.state(q, v)
    np.testing.assert_array_equal(qpos[7:], q[:6:-1])
    np.testing.assert_array_equal(qvel[6:], v[:5:-1])


def test_models_of_other_robots_are_refused(tmp_path: Path) -> None:
    robot, model = loaded(written(tmp_path, JOINTED))
    order = fw.MujocoOrder(robot, model)
    with pytest.raises(ValueError, match=r"jointed: q must have shape \(\.\.\., 22\); got \(3,\)"):
        order.state(np.zeros(3), np.zeros(robot.nv))
    with pytest.raises(ValueError, match=r"batch axes do not broadcast: qpos \(2, 22\), qvel \(3, 19\)"):
        order.robot_state(np.zeros((2, 22)), np.zeros((3, 19)))
    other, changed = loaded(written(tmp_path, JOINTED.replace('name="knee" type="hinge"', 'name="knee" type="slide"')))
    with pytest.raises(ValueError, match="joint 'knee' is revolute here and prismatic"):
        fw.MujocoOrder(robot, changed)
    renamed = mujoco.MjModel.from_xml_string(JOINTED.replace('"knee"', '"elbow"'))
    with pytest.raises(ValueError, match="has no joint 'elbow', but MuJoCo's model has"):
        fw.MujocoOrder(other, renamed)
    with pytest.raises(ValueError, match="planar"):
        fw.MujocoOrder(fw.build(random_tree(2, rng=0, joint_types=("planar",))))
    without = mujoco.MjModel.from_xml_string(JOINTED.replace('<motor name="bend" joint="knee" gear="20"/>', ""))
    with pytest.raises(ValueError, match="no actuator 'bend'"):
        fw.MujocoOrder(robot, without)
