"""Tests of damping, dry friction, springs, effort limits and actuators: values and forces equal Pinocchio's and MuJoCo's."""

from __future__ import annotations

import math
import sysconfig
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio
import pytest

import featherweight as fw
from featherweight import Actuator, JointType, ModelError
from featherweight.model.formats.registry import load_description

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"
INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
LINKS = '<link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'


def urdf(folder: Path, inside: str, type: str = "revolute", **options: Any) -> fw.Joint:
    path = folder / "robot.urdf"
    joint = f'<joint name="j" type="{type}"><parent link="a"/><child link="b"/>{inside}</joint>'
    path.write_text(f'<robot name="r">{LINKS}</inertial></link>{joint}</robot>')
    return load_description(path, **options).joints[0]


def mjcf(folder: Path, joints: str, rest: str = "") -> str:
    path = folder / "robot.xml"
    path.write_text(f'<mujoco><worldbody><body name="arm">{joints}{INERTIAL}</body></worldbody>{rest}</mujoco>')
    return str(path)


# --- URDF


@pytest.mark.parametrize(
    "file",
    [
        "talos_data/robots/talos_reduced.urdf",
        "panda_description/urdf/panda.urdf",
        "hyq_description/robots/hyq_no_sensors.urdf",
        "solo_description/robots/solo12.urdf",
        "pr2_description/urdf/pr2.urdf",
    ],
)
def test_numbers_of_urdf_joints_are_pinocchios(file: str) -> None:
    path = str(ROBOTS / file)
    model = pinocchio.buildModelFromUrdf(path)
    robot = fw.load(path, mimic="independent")
    assert len(robot.joints) == model.njoints - 1
    for joint in robot.joints:
        v = model.joints[model.getJointId(joint.name)].idx_v
        assert joint.damping == model.damping[v]
        assert joint.dry_friction == model.upperDryFrictionLimit[v]
        assert joint.effort == model.upperEffortLimit[v]
        assert joint.stiffness == 0.0


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "planar", "floating", "spherical"])
def test_every_joint_of_a_urdf_has_them(tmp_path: Path, kind: str) -> None:
    joint = urdf(tmp_path, '<dynamics damping="0.1" friction="0.2"/><limit effort="3" velocity="1"/>', kind)
    assert (joint.damping, joint.dry_friction, joint.effort) == (0.1, 0.2, 3.0)


def test_without_a_word_nothing_acts_and_nothing_limits(tmp_path: Path) -> None:
    joint = urdf(tmp_path, "<dynamics/><limit/>")
    assert (joint.damping, joint.dry_friction, joint.stiffness, joint.rest, joint.effort) == (0.0, 0.0, 0.0, 0.0, math.inf)


@pytest.mark.parametrize(
    ("inside", "word"),
    [
        ('<dynamics damping="-1"/>', "damping"),
        ('<dynamics friction="-1"/>', "friction"),
        ('<limit effort="-1"/>', "effort"),
        ('<dynamics damping="nan"/>', "damping"),
        ('<dynamics friction="a"/>', "friction"),
    ],
)
def test_impossible_numbers_of_urdf_joints_are_refused_by_name(tmp_path: Path, inside: str, word: str) -> None:
    with pytest.raises(ModelError, match=rf"robot\.urdf: joint 'j': .*{word}"):
        urdf(tmp_path, inside, unsupported="raise")


# --- MJCF

DRIVEN = """
<mujoco>
  <worldbody>
    <body name="arm">
      <joint name="elbow" axis="0 1 0" ref="20" stiffness="3" springref="50" damping="0.5" frictionloss="0.25"/>
      <geom size="0.1" pos="0.3 0 0"/>
      <body name="tray" pos="0.5 0 0">
        <joint name="rail" type="slide" axis="1 0 0" springdamper="0.2 0.7" actuatorfrcrange="-2 2"/>
        <geom type="box" size="0.1 0.1 0.1"/>
        <body name="head"><joint name="neck" type="ball" stiffness="2" damping="0.3"/><geom size="0.1" pos="0 0 0.1"/></body>
      </body>
    </body>
    <body name="box"><joint name="loose" type="free" damping="0.4"/><geom size="0.1"/></body>
  </worldbody>
  <actuator>
    <motor name="motor" joint="elbow" gear="3" ctrlrange="-0.5 0.5"/>
    <position name="servo" joint="elbow" gear="-2" kp="30" kv="4" forcerange="-5 4"/>
    <velocity name="brake" joint="rail" kv="6"/>
    <general gainprm="2" biastype="affine" biasprm="0.5 -3 -0.7" jointinparent="rail" gear="1.5"/>
    <motor name="damped" joint="elbow" gear="3" damping="0.1" armature="0.2"/>
  </actuator>
</mujoco>
"""


@pytest.fixture
def driven(tmp_path: Path) -> tuple[fw.Robot, mujoco.MjModel, mujoco.MjData]:
    path = tmp_path / "driven.xml"
    path.write_text(DRIVEN)
    model = mujoco.MjModel.from_xml_path(str(path))
    return fw.load(path), model, mujoco.MjData(model)


def force(actuator: Actuator, u: float, q: float, v: float) -> float:
    """Return the joint force by the docstring of `Actuator`."""
    b0, b1, b2 = actuator.bias
    u = min(max(u, actuator.control[0]), actuator.control[1])
    inner = actuator.gain * u + b0 + b1 * actuator.gear * q + b2 * actuator.gear * v
    return actuator.gear * min(max(inner, actuator.force[0]), actuator.force[1])


def test_actuator_forces_are_mujocos(driven: tuple[fw.Robot, mujoco.MjModel, mujoco.MjData]) -> None:
    robot, model, data = driven
    assert [a.name for a in robot.actuators] == ["motor", "servo", "brake", "rail_actuator", "damped"]
    joints = {j.name: j for j in robot.joints}
    rng = np.random.default_rng(0)
    for _ in range(20):
        data.qpos[:2], data.qvel[:2], data.ctrl[:] = rng.normal(size=2), rng.normal(size=2), rng.normal(size=5)
        mujoco.mj_forward(model, data)
        ours = dict.fromkeys(joints, 0.0)
        for actuator, u in zip(robot.actuators, data.ctrl, strict=True):
            joint = str(actuator.joint)
            v = model.joint(joint).dofadr[0]
            ours[joint] += force(actuator, u, data.qpos[v], data.qvel[v])
        for name in ("elbow", "rail"):
            limited = min(max(ours[name], -joints[name].effort), joints[name].effort)
            assert limited == pytest.approx(data.joint(name).qfrc_actuator[0], rel=1e-13, abs=1e-13)


def test_forces_of_springs_and_dampers_are_mujocos(driven: tuple[fw.Robot, mujoco.MjModel, mujoco.MjData]) -> None:
    robot, model, data = driven
    rng = np.random.default_rng(0)
    for _ in range(5):
        data.qpos[:2], data.qvel[:] = rng.normal(size=2), rng.normal(size=model.nv)
        mujoco.mj_forward(model, data)
        for joint in robot.joints:
            v = model.joint(joint.name).dofadr[0]
            expected = data.qfrc_passive[v : v + joint.type.nv]
            ours = -joint.damping * data.qvel[v : v + joint.type.nv]
            if joint.type in (JointType.REVOLUTE, JointType.PRISMATIC):
                ours -= joint.stiffness * (data.qpos[v] - joint.rest)
            np.testing.assert_allclose(ours, expected, rtol=1e-13, err_msg=joint.name)  # the ball joint's spring is at rest
    joints = {j.name: j for j in robot.joints}
    assert joints["neck"].stiffness == 2.0
    assert joints["elbow"].dry_friction == 0.25
    assert (joints["rail"].effort, joints["elbow"].effort) == (2.0, math.inf)
    assert joints["elbow"].armature == pytest.approx(9 * 0.2)
    assert robot.report() == {}


def test_mimic_and_loops_keep_actuators(tmp_path: Path) -> None:
    gear = '<equality><joint joint1="k" joint2="j" polycoef="0 2 0 0 0"/></equality><actuator><motor joint="j"/></actuator>'
    path = tmp_path / "robot.xml"
    bodies = f'<body><joint name="j" damping="2"/>{INERTIAL}</body><body><joint name="k" damping="3"/>{INERTIAL}</body>'
    path.write_text(f"<mujoco><worldbody>{bodies}</worldbody>{gear}</mujoco>")
    robot = fw.load(path)
    assert isinstance(robot, fw.ClosedRobot)
    assert robot.actuators == (Actuator("j_actuator", "j"),)
    assert [j.damping for j in robot.joints] == [2.0, 3.0]


@pytest.mark.parametrize(
    ("flag", "field"), [("spring", "stiffness"), ("damper", "damping"), ("frictionloss", "dry_friction"), ("actuation", "")]
)
def test_what_the_file_disables_is_not_there(tmp_path: Path, flag: str, field: str) -> None:
    joint = '<joint name="j" stiffness="1" damping="2" frictionloss="3"/>'
    rest = f'<option><flag {flag}="disable"/></option><actuator><motor joint="j"/></actuator>'
    robot = load_description(mjcf(tmp_path, joint, rest))
    found = {"stiffness": 1.0, "damping": 2.0, "dry_friction": 3.0} | ({field: 0.0} if field else {})
    assert {key: getattr(robot.joints[0], key) for key in found} == found
    assert dict(robot.unused) == ({} if field else {"actuators": "1 disabled"})
    assert len(robot.actuators) == (1 if field else 0)


def test_control_is_not_limited_where_the_file_says_so(tmp_path: Path) -> None:
    motor = '<actuator><motor joint="j" ctrlrange="-1 2"/></actuator>'
    assert load_description(mjcf(tmp_path, '<joint name="j"/>', motor)).actuators[0].control == (-1.0, 2.0)
    free = '<option><flag clampctrl="disable"/></option>' + motor
    assert load_description(mjcf(tmp_path, '<joint name="j"/>', free)).actuators[0].control == (-math.inf, math.inf)


def test_what_no_number_of_a_joint_can_say_is_listed(tmp_path: Path) -> None:
    joint = '<joint name="j" damping="1 2" stiffness="1 0 3" actuatorfrcrange="-1 2"/>'
    robot = load_description(mjcf(tmp_path, joint))
    own = robot.joints[0]
    assert (own.damping, own.stiffness, own.effort) == (1.0, 1.0, 2.0)
    assert (own.damping_poly, own.stiffness_poly) == ((2.0, 0.0), (0.0, 3.0))
    assert own.effort_range == (-1.0, 2.0)
    assert dict(robot.unused) == {}


@pytest.mark.parametrize(
    ("joint", "word"),
    [
        ('<joint name="j" damping="-1"/>', "damping is negative"),
        ('<joint name="j" stiffness="-1"/>', "stiffness is negative"),
        ('<joint name="j" frictionloss="-1"/>', "friction is negative"),
        ('<joint name="j" armature="-3"/>', "armature is negative"),
    ],
)
def test_negative_numbers_of_mjcf_joints_are_refused_by_name(tmp_path: Path, joint: str, word: str) -> None:
    with pytest.raises(ModelError, match=rf"robot\.xml: joint 'j': the {word}"):
        load_description(mjcf(tmp_path, joint), unsupported="raise")
    d = load_description(mjcf(tmp_path, joint))
    assert (d.joints[0].damping, d.joints[0].stiffness, d.joints[0].dry_friction, d.joints[0].armature) == (0.0, 0.0, 0.0, 0.0)
    assert f"joint 'j': the {word}" in dict(d.unused)["odd contents, taken as said"]


@pytest.mark.parametrize("key", ["damping", "stiffness", "springref", "frictionloss"])
def test_numbers_that_are_not_finite_are_refused_by_name(tmp_path: Path, key: str) -> None:
    with pytest.raises(ModelError, match=rf"robot\.xml: <joint> of joint 'j': '{key}'"):
        load_description(mjcf(tmp_path, f'<joint name="j" {key}="nan"/>'))


@pytest.mark.skipif(not hasattr(mujoco.MjsActuator, "armature"), reason="this version of MuJoCo has no actuator armature")
def test_negative_armature_of_an_actuator_is_refused_by_name(tmp_path: Path) -> None:
    motor = '<actuator><motor name="a" joint="j" armature="-3"/></actuator>'
    with pytest.raises(ModelError, match=r"robot\.xml: actuator 'a': the armature is negative"):
        load_description(mjcf(tmp_path, '<joint name="j"/>', motor), unsupported="raise")
    assert load_description(mjcf(tmp_path, '<joint name="j"/>', motor)).joints[0].armature == 0.0


# --- robots made in Python


@pytest.mark.parametrize("key", ["armature", "damping", "dry_friction", "stiffness", "effort"])
def test_negative_numbers_of_joints_made_in_python_are_refused_by_name(key: str) -> None:
    wrong: dict[str, Any] = {key: -1.0}
    joint = fw.Joint("j", JointType.REVOLUTE, None, "b", **wrong)
    with pytest.raises(ModelError, match=f"joint 'j': the {key} is negative"):
        fw.build(fw.describe([fw.Body("b", fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))], [joint]))


def test_an_actuator_of_a_mechanism_drives_a_joint_with_one_degree_of_freedom() -> None:
    body = fw.Body("b", fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    for kind, driven in ((JointType.REVOLUTE, "j"), (JointType.SPHERICAL, "j"), (JointType.REVOLUTE, "nowhere")):
        joints, actuators = [fw.Joint("j", kind, "world", "b", damping=2, effort=3)], [Actuator("a", driven, gear=2)]
        if (kind, driven) == (JointType.REVOLUTE, "j"):
            robot = fw.build(fw.describe([body], joints, actuators=actuators))
            assert robot.actuators == tuple(actuators)
            assert (robot.joints[0].damping, robot.joints[0].effort) == (2.0, 3.0)
        else:
            with pytest.raises(ModelError, match=f"actuator 'a': '{driven}' is not a joint"):
                fw.build(fw.describe([body], joints, actuators=actuators))


# --- URDF: this package's own attributes and elements


def test_armature_and_springs_of_urdf_joints(tmp_path: Path) -> None:
    joint = urdf(tmp_path, '<dynamics damping="1" armature="0.5" stiffness="3" rest="-0.2"/>')
    assert (joint.damping, joint.armature, joint.stiffness, joint.rest) == (1.0, 0.5, 3.0, -0.2)
    with pytest.raises(ModelError, match=r"joint 'j': the armature is negative \(-1\)"):
        urdf(tmp_path, '<dynamics armature="-1"/>', unsupported="raise")


def test_the_largest_number_is_no_limit(tmp_path: Path) -> None:
    joint = urdf(tmp_path, '<limit lower="-1e30" upper="1e+30" effort="1e30" velocity="1e30"/>')
    assert (joint.lower, joint.upper, joint.effort, joint.velocity) == (-math.inf, math.inf, math.inf, math.inf)
    assert urdf(tmp_path, '<limit velocity="3"/>').velocity == 3.0


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ('joint="k"', "actuator 'm': 'k' is not a joint with one degree of freedom"),
        ("", "actuator 'm': <actuator> has no attribute 'joint'"),
        ('joint="j" control="2 1"', "actuator 'm': the least control 2 is above the greatest 1"),
        ('joint="j" bias="1 2"', "actuator 'm': 'bias' needs 3 numbers, not 2"),
    ],
)
def test_actuators_of_urdf_files_that_mean_nothing(tmp_path: Path, attributes: str, message: str) -> None:
    path = tmp_path / "robot.urdf"
    urdf(tmp_path, "")
    path.write_text(path.read_text().replace("</robot>", f'<actuator name="m" {attributes}/></robot>'))
    with pytest.raises(ModelError, match=message):
        load_description(path)
